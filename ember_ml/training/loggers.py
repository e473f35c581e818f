"""Callbacks that log to experiment trackers, whose client libraries are imported when training begins."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml import distributed
from ember_ml.dtypes import written
from ember_ml.errors import warn
from ember_ml.training.callbacks import Callback, check_interval

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Tracker(Callback):
    """Base class of callbacks that log parameters, figures and checkpoints of a run; rank 0 alone does.

    Args:
        every: number of steps between two logs of the loss of a step; ``None`` for none. Reading it waits for the step.
        checkpoints: number of epochs between two checkpoints that are stored with the run; ``None`` for none.
        params: further parameters of the run, by name.
    """

    # Name of the library, and of the extra that installs it.
    library: str

    def __init__(self, every: int | None, checkpoints: int | None, params: Mapping[str, Any] | None) -> None:
        for name, value in (("every", every), ("checkpoints", checkpoints)):
            if value is not None:
                check_interval(self, name, value, "None or ")
        if params is not None and not isinstance(params, Mapping):
            raise TypeError(f"{type(self).__name__}: params must be a dictionary, got {written(params)}")
        self.every, self.checkpoints, self.params = every, checkpoints, dict(params or {})
        # Identifier of the run, by which a resumed training continues it.
        self.run_id: str | None = None
        self._is_open = self._is_due = False
        self._status = "finished"

    def start(self, params: dict[str, Any]) -> None:
        """Start a run, or continue ``run_id``, and set ``run_id``."""
        raise NotImplementedError

    def log(self, figures: dict[str, float], step: int) -> None:
        """Log figures of a step."""
        raise NotImplementedError

    def store(self, file: Path) -> None:
        """Store a file with the run."""
        raise NotImplementedError

    def finish(self, status: str) -> None:
        """End the run: ``"finished"``, ``"failed"``, or ``"killed"`` by an interrupt; ``start`` may have failed."""
        raise NotImplementedError

    def on_fit_begin(self, trainer: Trainer) -> None:
        self._status, self._is_due = "finished", False
        if not trainer.step:
            self.run_id = None
        if distributed.rank() == 0:
            # Before the start, since one that fails may have begun a run, which is then ended.
            self._is_open = True
            self.start({**_parameters(trainer), **self.params})

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        self._is_due = False
        if self._is_open and self.every is not None and trainer.step % self.every == 0:
            self.log({"step/loss": float(loss)}, trainer.step)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if self._is_open:
            self.log({"epoch": trainer.epoch, **{name: float(value) for name, value in record.items()}}, trainer.step)
        self._is_due = self.checkpoints is not None and trainer.epoch % self.checkpoints == 0

    def on_settled(self, trainer: Trainer) -> None:
        # A checkpoint holds the state of all callbacks, and all ranks take part in writing it.
        if self._is_due:
            self._is_due = False
            with tempfile.TemporaryDirectory() as folder:
                path = trainer.save(Path(folder) / f"epoch-{trainer.epoch}.safetensors")
                if self._is_open:
                    self.store(path)

    def on_exception(self, trainer: Trainer, error: BaseException) -> None:
        self._status = "failed" if isinstance(error, Exception) else "killed"

    def on_fit_end(self, trainer: Trainer) -> None:
        if self._is_open:
            self._is_open = False
            self.finish(self._status)

    def state(self) -> Any:
        return self.run_id

    def restore(self, state: Any) -> None:
        self.run_id = state

    def lacking(self, params: dict[str, Any], held: Mapping[str, Any], is_new: bool = True) -> dict[str, Any]:
        """Those of ``params`` that a run lacks, with a warning about those of which it has other values.

        Args:
            is_new: whether this training begins in the run, and does not continue what it began there.
        """
        # What is read from the trainer may have changed since then, such as the learning rate.
        compared = params if is_new else self.params
        other = [name for name, value in compared.items() if name in held and str(held[name]) != str(value)]
        if other:
            run, hint = "run", ""
            if is_new:
                run, hint = "active run", "; end the run before training to log to a run of its own"
            warn(
                f"{type(self).__name__}: the {run} has other values of {', '.join(other)}, which stay as they are{hint}"
            )
        return {name: value for name, value in params.items() if name not in held}

    def missing(self) -> str:
        """Message for a library that is not installed."""
        return f"{type(self).__name__} requires {self.library}: pip install 'ember-ml[{self.library}]'"


class MLflow(Tracker):
    """Log the parameters of a run, its figures and optionally checkpoints to MLflow.

    If a run of ``mlflow.start_run`` is active, it is used and left open; else one is started, and ended with the status
    of the training: ``FINISHED``, ``FAILED`` or ``KILLED``. A training that is resumed from a checkpoint continues its
    run. Parameters of which a run has other values, such as those of an earlier training, stay as they are, with a
    warning. The experiment and the address that you have set in MLflow stay as they are, too.

    Args:
        experiment: name of the experiment of a new run, created if missing; by default MLflow's own.
        run_name: name of a new run; by default one that MLflow draws.
        tracking_uri: address of the server or folder of the store; by default MLflow's own. An active run keeps its
            own.
        every: number of steps between two logs of ``step/loss``; ``None`` for none.
        checkpoints: number of epochs between two checkpoints that are stored as artifacts; ``None`` for none.
        params: further parameters of the run, by name.
    """

    library = "mlflow"

    def __init__(
        self,
        experiment: str | None = None,
        run_name: str | None = None,
        *,
        tracking_uri: str | None = None,
        every: int | None = 10,
        checkpoints: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(every, checkpoints, params)
        self.experiment, self.run_name, self.tracking_uri = experiment, run_name, tracking_uri
        self._client: Any = None
        self._is_own = self._is_moved = False
        # Address before that of this run was set; ``None`` for none.
        self._address: str | None = None

    def start(self, params: dict[str, Any]) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise ImportError(self.missing()) from error
        self._client, active = mlflow, mlflow.active_run()
        if active is None:
            if self.tracking_uri is not None:
                self._address = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
                self._is_moved = True
                mlflow.set_tracking_uri(self.tracking_uri)
            active = self._started(mlflow)
            self._is_own = True
        is_new = self.run_id != active.info.run_id
        self.run_id = active.info.run_id
        # What active_run returns has the parameters of the start of the run. MLflow refuses other values for them.
        held = {} if is_new and self._is_own else mlflow.get_run(self.run_id).data.params
        if lacking := self.lacking(params, held, is_new):
            mlflow.log_params(lacking)

    def _started(self, mlflow: Any) -> Any:
        """A run of its own, which is active: a new one, or that of ``run_id``."""
        if self.run_id is not None:
            with _no_experiment(mlflow):
                return mlflow.start_run(run_id=self.run_id, run_name=self.run_name)
        number = None if self.experiment is None else _experiment_id(mlflow, self.experiment)
        return mlflow.start_run(run_name=self.run_name, experiment_id=number)

    def log(self, figures: dict[str, float], step: int) -> None:
        self._client.log_metrics(figures, step=step)

    def store(self, file: Path) -> None:
        self._client.log_artifact(str(file), artifact_path="checkpoints")

    def finish(self, status: str) -> None:
        client, is_own, is_moved, address = self._client, self._is_own, self._is_moved, self._address
        # A module cannot be pickled, as estimators with callbacks are.
        self._client, self._is_own, self._is_moved, self._address = None, False, False, None
        try:
            if is_own:
                client.end_run(status=status.upper())
        finally:
            if is_moved:
                client.set_tracking_uri(address)


def _experiment_id(mlflow: Any, name: str) -> Any:
    """Number of an experiment, which is created if missing, and does not become that of later runs."""
    found = mlflow.get_experiment_by_name(name)
    if found is not None:
        return found.experiment_id
    try:
        return mlflow.create_experiment(name)
    except Exception:
        # Another process may have created it since.
        found = mlflow.get_experiment_by_name(name)
        if found is None:
            raise
        return found.experiment_id


@contextmanager
def _no_experiment(mlflow: Any) -> Iterator[None]:
    """Context manager in which ``mlflow.set_experiment`` has chosen no experiment.

    MLflow 3.17: ``start_run`` refuses to continue a run of another experiment than the chosen one, without an option.
    """
    fluent, name = mlflow.tracking.fluent, "_active_experiment_id"
    held = getattr(fluent, name, None)
    if held is None:
        yield
        return
    setattr(fluent, name, None)
    try:
        yield
    finally:
        setattr(fluent, name, held)


class WandB(Tracker):
    """Log the parameters of a run, its figures and optionally checkpoints to Weights & Biases.

    If a run of ``wandb.init`` is active, it is used and left open, unless ``options`` have ``reinit``; else one is
    started, and finished with exit code 0, or 1 if training failed or was interrupted. A training that is resumed from
    a checkpoint continues its run.

    Weights & Biases numbers the logs of an active run, so figures have ``step`` there. Parameters of which an active
    run has other values stay as they are, with a warning.

    Args:
        project: name of the project; by default that of the settings of ``wandb``.
        name: name of the run; by default one that ``wandb`` draws.
        every: number of steps between two logs of ``step/loss``; ``None`` for none.
        checkpoints: number of epochs between two checkpoints that are stored as artifacts; ``None`` for none.
        params: further parameters of the run, by name.
        options: further arguments of ``wandb.init``, such as ``entity``, ``tags`` or ``mode="offline"``.
    """

    library = "wandb"

    def __init__(
        self,
        project: str | None = None,
        name: str | None = None,
        *,
        every: int | None = 10,
        checkpoints: int | None = None,
        params: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(every, checkpoints, params)
        self.project, self.name, self.options = project, name, options
        self._client: Any = None
        self._run: Any = None
        self._is_own = False

    def start(self, params: dict[str, Any]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ImportError(self.missing()) from error
        options = dict(self.options)
        if self.run_id is not None:
            options |= {"id": self.run_id, "resume": "allow"}
        # wandb 0.31: init returns the active run, which finish would then end.
        active = None if "reinit" in options else wandb.run
        self._client, self._is_own = wandb, active is None
        self._run = active or wandb.init(project=self.project, name=self.name, config=params, **options)
        if active is not None:
            active.config.update(self.lacking(params, active.config, self.run_id != active.id))
        self.run_id = self._run.id

    def log(self, figures: dict[str, float], step: int) -> None:
        if self._is_own:
            self._run.log(figures, step=step)
        else:
            # wandb drops what has a lower step than earlier logs of the run, such as those of another training.
            self._run.log({**figures, "step": step})

    def store(self, file: Path) -> None:
        artifact = self._client.Artifact(f"checkpoint-{self.run_id}", type="model")
        # This copies the file, which is removed before an upload in the background ends.
        artifact.add_file(str(file))
        self._run.log_artifact(artifact)

    def finish(self, status: str) -> None:
        run, self._client, self._run = self._run, None, None
        if run is not None and self._is_own:
            run.finish(exit_code=0 if status == "finished" else 1)


def _parameters(trainer: Trainer) -> dict[str, Any]:
    """Parameters of a run: the model, the loss, the optimizer with its options, and how it is trained."""
    loss: Any = getattr(trainer.loss, "operation", trainer.loss)
    loss = getattr(loss, "func", loss)
    tensors = trainer.model.parameters()
    found = {
        "model": type(trainer.model).__name__,
        "parameters": sum(math.prod(x.shape) for x in tensors.values()),
        "backend": getattr(trainer.model, "backend", None),
        "loss": getattr(loss, "__name__", type(loss).__name__),
        "batch_size": trainer._batch_size,
        "accumulate": trainer.accumulate,
        "precision": None if trainer.precision is None else str(trainer.precision),
        "optimizer": type(trainer.optimizer).__name__,
        # The optimizer may hold a float32, 0.009999999776482582 for 0.01; a run has the number that was given.
        "learning_rate": float(f"{trainer.optimizer.learning_rate:.7g}"),
    }
    options = {f"optimizer.{name}": value for name, value in vars(trainer.optimizer).items() if name[:1] != "_"}
    return {
        name: value
        for name, value in {**found, **options}.items()
        if value is not None and isinstance(value, (bool, int, float, str))
    }
