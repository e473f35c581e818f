"""Callbacks: early stopping, learning rates, averages, checkpoints and logs."""

from __future__ import annotations

import csv
import inspect
import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml import distributed, ops
from ember_ml.dtypes import written
from ember_ml.errors import warn
from ember_ml.interrupts import uninterrupted
from ember_ml.spellings import value_hint, value_named
from ember_ml.training.data import converted_like
from emberlint import atomic

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Callback:
    """Base class of callbacks. Every method is optional.

    On several ranks, each has its own callbacks, which receive the same losses and figures. What prints or writes
    belongs into ``if ember_ml.distributed.rank() == 0``.

    Checkpoints hold the value of ``state``, a tree of tensors, numbers and strings, and pass it to ``restore``.
    """

    def on_fit_begin(self, trainer: Trainer) -> None:
        """Called before the first epoch."""

    def on_epoch_begin(self, trainer: Trainer) -> None:
        """Called before every epoch. ``trainer.epoch`` is its number, from 0."""

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        """Called after every step. ``loss`` is a tensor; reading its value waits for the computation."""

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Called after every epoch with its figures. ``trainer.epoch`` is the number of finished epochs."""

    def on_settled(self, trainer: Trainer) -> None:
        """Called when ``on_step_end`` or ``on_epoch_end`` of all callbacks has run; the time to save their state."""

    def on_exception(self, trainer: Trainer, error: BaseException) -> None:
        """Called when training ends with an error or an interrupt, before ``on_fit_end``."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """Called after the last epoch, and when training ends with an error."""

    def state(self) -> Any:
        """State of this callback to save in a checkpoint."""
        return None

    def restore(self, state: Any) -> None:
        """Restore the state saved by ``state``."""


# Words in the names of figures that are better when smaller.
_ERRORS = frozenset({"loss", "error", "mse", "mae", "rmse", "perplexity", "crossentropy"})


class _Watch:
    """Best value of a figure so far."""

    def __init__(self, owner: Callback, monitor: str | None, mode: str, least: float) -> None:
        self.owner = type(owner).__name__
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{self.owner}: mode must be 'auto', 'min' or 'max', got {mode!r}")
        if not least >= 0:
            raise ValueError(f"{self.owner}: least must be >= 0, got {least}")
        self.monitor, self.mode, self.least = monitor, mode, least
        self.best = math.nan

    def is_better(self, record: dict[str, float]) -> bool:
        """Whether the figure is better than the best so far by more than ``least``; if so, it becomes the best."""
        name = self.name(record)
        value = record[name]
        gain = value - self.best if self._is_maximized(name) else self.best - value
        # The first value is always the best so far. Two equal infinities differ by NaN, which is not an improvement.
        if math.isnan(value) or not (math.isnan(self.best) or gain > self.least):
            return False
        self.best = value
        return True

    def name(self, record: dict[str, float]) -> str:
        """Name of the figure in a record. Metrics have the other names that ``Trainer`` accepts, also after val_."""
        if self.monitor is None:
            return "val_loss" if "val_loss" in record else "loss"
        prefix = "val_" if self.monitor.startswith("val_") else ""
        known = [name.removeprefix(prefix) for name in record if name.startswith(prefix)]
        name = value_named(self.monitor.removeprefix(prefix), known)
        if name is not None:
            return prefix + name
        if prefix and not known:
            hint = "; give fit validation_data for the metrics that start with val_"
        else:
            hint = value_hint(self.monitor, record)
        raise ValueError(f"{self.owner}: monitor must be one of {', '.join(record)}, got {self.monitor!r}{hint}")

    def _is_maximized(self, name: str) -> bool:
        """Whether larger values are better."""
        if self.mode != "auto":
            return self.mode == "max"
        return _ERRORS.isdisjoint(name.split("_"))


class EarlyStopping(Callback):
    """Stop training when a figure has not improved for ``patience`` epochs.

    A run that was stopped early continues from its checkpoint only if ``patience`` is raised, or without this callback.

    Args:
        monitor: name of the figure, such as ``"val_accuracy"``; by default ``val_loss``, or ``loss`` without validation
            data.
        patience: number of consecutive epochs without improvement after which training stops.
        least: smallest change that counts as an improvement.
        mode: ``"min"``, ``"max"`` or ``"auto"``. With ``"auto"``, smaller is better for names that contain loss,
            error, mse, mae, rmse, perplexity or crossentropy, and larger is better for all others.
        restore_best: restore the parameters of the best epoch when training stops early. A run that ends for another
            reason, such as its number of epochs, keeps its last parameters.
    """

    def __init__(
        self,
        monitor: str | None = None,
        patience: int = 5,
        least: float = 0.0,
        mode: str = "auto",
        restore_best: bool = True,
    ) -> None:
        if patience < 0:
            raise ValueError(f"{type(self).__name__}: patience must be >= 0, got {patience}")
        self.watch = _Watch(self, monitor, mode, least)
        self.patience = patience
        self.restore_best = restore_best
        self.waited = 0
        self.tensors: dict[str, Any] = {}

    def on_fit_begin(self, trainer: Trainer) -> None:
        if not trainer.step:
            self.watch.best, self.waited, self.tensors = math.nan, 0, {}
        elif self.waited and self.waited >= self.patience:
            trainer.stop(
                f"the run was stopped early {self._reason(trainer)}; resume it with patience > {self.waited}, or "
                f"without {type(self).__name__}, to go on"
            )

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if self.watch.is_better(record):
            self.waited = 0
            # Steps replace the tensors and never write into them, so no copy is needed.
            self.tensors = dict(trainer.model.tensors()) if self.restore_best else {}
            return
        self.waited += 1
        if self.waited >= self.patience:
            restored = f"; the parameters of epoch {trainer.epoch - self.waited} are restored" if self.tensors else ""
            trainer.stop(f"early stopping {self._reason(trainer)}{restored}")
            if self.tensors:
                # Tensors restored from a checkpoint may have another dtype.
                trainer.model.assign(converted_like(trainer.model.tensors(), self.tensors))

    def state(self) -> Any:
        return {"best": self.watch.best, "waited": self.waited, "tensors": self.tensors}

    def restore(self, state: Any) -> None:
        self.watch.best, self.waited, self.tensors = state["best"], state["waited"], state["tensors"]

    def _reason(self, trainer: Trainer) -> str:
        """When and why training stops."""
        name = self.watch.name(trainer.history.epochs[-1])
        epochs = "1 epoch" if self.waited == 1 else f"{self.waited} epochs"
        return f"after epoch {trainer.epoch}: {name} did not improve for {epochs}"


class ReduceLROnPlateau(Callback):
    """Lower the learning rate when a figure has not improved for ``patience`` epochs, as in Keras.

    The learning rate of the optimizer must be a number, not a schedule. The rates of all optimizers of a ``Grouped``
    are lowered.

    Args:
        monitor: name of the figure; by default ``val_loss``, or ``loss`` without validation data.
        factor: factor by which the learning rate is multiplied, above 0 and below 1.
        patience: number of consecutive epochs without improvement after which the rate is lowered.
        least: smallest change that counts as an improvement.
        mode: ``"min"``, ``"max"`` or ``"auto"``, as in ``EarlyStopping``.
        cooldown: number of epochs after a change in which epochs without improvement do not count.
        min_learning_rate: rate below which it is not lowered.
    """

    def __init__(
        self,
        monitor: str | None = None,
        factor: float = 0.1,
        patience: int = 10,
        least: float = 1e-4,
        mode: str = "auto",
        cooldown: int = 0,
        min_learning_rate: float = 0.0,
    ) -> None:
        name = type(self).__name__
        if not 0 < factor < 1:
            raise ValueError(f"{name}: factor must be > 0 and < 1, got {factor}")
        for option, value in (("patience", patience), ("cooldown", cooldown), ("min_learning_rate", min_learning_rate)):
            if not value >= 0:
                raise ValueError(f"{name}: {option} must be >= 0, got {value}")
        self.watch = _Watch(self, monitor, mode, least)
        self.factor, self.patience, self.cooldown = factor, patience, cooldown
        self.min_learning_rate = min_learning_rate
        # Epochs without improvement, epochs of cooldown that are left, and number of epochs counted.
        self.waited = self.cooling = self._counted = 0

    def on_fit_begin(self, trainer: Trainer) -> None:
        _check_rates(self, trainer)
        if not trainer.step:
            self.watch.best, self.waited, self.cooling, self._counted = math.nan, 0, 0, 0

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        # A callback is called a second time for an epoch if it was interrupted.
        if self._counted == trainer.epoch:
            return
        with uninterrupted():
            is_better = self.watch.is_better(record)
            self._counted = trainer.epoch
            self.cooling = max(self.cooling - 1, 0)
            self.waited = 0 if is_better or self.cooling else self.waited + 1
            if self.waited and self.waited >= self.patience:
                self._lower(trainer)

    def _lower(self, trainer: Trainer) -> None:
        for optimizer in _optimizers(trainer):
            rate = optimizer.learning_rate
            if rate > self.min_learning_rate:
                optimizer.learning_rate = max(rate * self.factor, self.min_learning_rate)
                self.waited, self.cooling = 0, self.cooldown

    def state(self) -> Any:
        return {"best": self.watch.best, "waited": self.waited, "cooling": self.cooling, "counted": self._counted}

    def restore(self, state: Any) -> None:
        self.watch.best, self.waited = state["best"], state["waited"]
        self.cooling, self._counted = state["cooling"], state["counted"]


class LearningRateScheduler(Callback):
    """Set the learning rate before every epoch.

    ``optim.schedules`` change the rate with every step instead, and need no callback.

    Args:
        schedule: function ``(epoch)`` or ``(epoch, learning_rate)`` that returns the new learning rate. ``epoch``
            counts from 0. It is called for each optimizer of a ``Grouped``, with the rate of that optimizer.
    """

    def __init__(self, schedule: Callable[..., float]) -> None:
        if not callable(schedule):
            raise TypeError(f"{type(self).__name__}: schedule must be a function, got {written(schedule)}")
        self.schedule = schedule
        self._takes_rate = _accepts(schedule, 2)
        # Epoch for which the rate is set. A resumed epoch begins a second time, and its rate is that of the first.
        self._epoch = -1

    def on_fit_begin(self, trainer: Trainer) -> None:
        _check_rates(self, trainer)
        if not trainer.step:
            self._epoch = -1

    def on_epoch_begin(self, trainer: Trainer) -> None:
        if self._epoch == trainer.epoch:
            return
        optimizers = _optimizers(trainer)
        rates = [self._rate(trainer.epoch, optimizer.learning_rate) for optimizer in optimizers]
        with uninterrupted():
            for optimizer, rate in zip(optimizers, rates, strict=True):
                optimizer.learning_rate = rate
            self._epoch = trainer.epoch

    def _rate(self, epoch: int, rate: float) -> float:
        new = self.schedule(epoch, rate) if self._takes_rate else self.schedule(epoch)
        if not ops.is_tensor(new) and not isinstance(new, Real):
            raise TypeError(f"{type(self).__name__}: schedule must return a number, got {written(new)}")
        return float(new)

    def state(self) -> Any:
        return self._epoch

    def restore(self, state: Any) -> None:
        self._epoch = state


class LambdaCallback(Callback):
    """Callback of functions. Each has the arguments of the method of ``Callback`` with its name.

    >>> LambdaCallback(on_epoch_end=lambda trainer, record: print(record["loss"]))
    LambdaCallback(on_epoch_end)
    """

    def __init__(
        self,
        *,
        on_fit_begin: Callable[[Trainer], Any] | None = None,
        on_epoch_begin: Callable[[Trainer], Any] | None = None,
        on_step_end: Callable[[Trainer, Any], Any] | None = None,
        on_epoch_end: Callable[[Trainer, dict[str, float]], Any] | None = None,
        on_settled: Callable[[Trainer], Any] | None = None,
        on_exception: Callable[[Trainer, BaseException], Any] | None = None,
        on_fit_end: Callable[[Trainer], Any] | None = None,
    ) -> None:
        given = {
            "on_fit_begin": on_fit_begin,
            "on_epoch_begin": on_epoch_begin,
            "on_step_end": on_step_end,
            "on_epoch_end": on_epoch_end,
            "on_settled": on_settled,
            "on_exception": on_exception,
            "on_fit_end": on_fit_end,
        }
        self._functions = {name: function for name, function in given.items() if function is not None}
        for name, function in self._functions.items():
            if not callable(function):
                raise TypeError(f"{type(self).__name__}: {name} must be a function, got {written(function)}")
            setattr(self, name, function)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._functions)})"


class ModelAverage(Callback):
    """Average of the parameters over training, which often generalizes better than the last parameters.

    Training goes on with the parameters themselves. Use the average with ``applied``, or assign it after training.

    Args:
        decay: share of the old average that is kept by an update, for an exponential moving average. ``None`` for the
            mean of all values, as in stochastic weight averaging.
        every: number of steps between two updates; ``None`` for one update after every epoch.
        start: number of steps before the first update; if ``every`` is ``None``, of epochs.

    >>> from ember_ml import nn, optim, training
    >>> average = ModelAverage(decay=0.9)
    >>> trainer = training.Trainer(nn.modules.Linear(1, 1), "mse", optim.SGD(0.1), callbacks=average)
    >>> history = trainer.fit([[0.0], [1.0]], [[1.0], [3.0]], epochs=300, batch_size=2)
    >>> with average.applied(trainer.model):
    ...     [round(x, 1) for x in trainer.predict([[2.0]])[0].tolist()]
    [5.0]
    """

    def __init__(self, decay: float | None = 0.999, every: int | None = 1, start: int = 0) -> None:
        name = type(self).__name__
        if decay is not None and not 0 <= decay < 1:
            raise ValueError(f"{name}: decay must be None, or >= 0 and < 1, got {decay}")
        if every is not None:
            check_interval(self, "every", every)
        if start < 0:
            raise ValueError(f"{name}: start must be >= 0, got {start}")
        self.decay, self.every, self.start = decay, every, start
        # Number of updates, the step of the last one, and the averages by path, in float32 or wider.
        self.count = self._step = 0
        self.tensors: dict[str, Any] = {}

    def on_fit_begin(self, trainer: Trainer) -> None:
        if not trainer.step:
            self.count, self._step, self.tensors = 0, 0, {}

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        if self.every is not None and trainer.step > self.start and (trainer.step - self.start) % self.every == 0:
            self._update(trainer)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if self.every is None and trainer.epoch > self.start:
            self._update(trainer)

    def assign(self, model: Any) -> None:
        """Replace the parameters of a model by their averages; buffers keep their values."""
        if not self.tensors:
            raise ValueError(f"{type(self).__name__}: there must be an average to assign, got none before any update")
        model.assign(converted_like(model.tensors(), self.tensors))

    @contextmanager
    def applied(self, model: Any) -> Iterator[None]:
        """Context manager in which the parameters of a model are their averages."""
        before = dict(model.tensors())
        self.assign(model)
        try:
            yield
        finally:
            model.assign({path: before[path] for path in self.tensors})

    def _update(self, trainer: Trainer) -> None:
        # A callback is called a second time for a step if it was interrupted.
        if self._step == trainer.step:
            return
        # The weight of the new parameters; the first are the average so far.
        weight = 1 / (self.count + 1) if self.decay is None else 1 - self.decay
        new = {}
        for path, x in trainer.model.parameters().items():
            # In half precision, an average would not move by small steps.
            wide = ops.cast(x, "float32") if ops.dtype(x) in ("float16", "bfloat16") else x
            new[path] = ops.lerp(self.tensors[path], wide, weight) if path in self.tensors else wide
        # On a lazy engine, the averages would otherwise refer to all earlier parameters.
        ops.eval(new)
        with uninterrupted():
            self.count, self._step, self.tensors = self.count + 1, trainer.step, {**self.tensors, **new}

    def state(self) -> Any:
        return {"count": self.count, "step": self._step, "tensors": self.tensors}

    def restore(self, state: Any) -> None:
        self.count, self._step, self.tensors = state["count"], state["step"], state["tensors"]


def _optimizers(trainer: Trainer) -> list[Any]:
    """The optimizer, or those of a ``Grouped``."""
    return [one for _, one in getattr(trainer.optimizer, "groups", [(None, trainer.optimizer)])]


def _check_rates(owner: Callback, trainer: Trainer) -> None:
    """Raise an error if a learning rate is a schedule, which a callback does not replace."""
    for optimizer in _optimizers(trainer):
        if getattr(optimizer, "schedule", None) is not None:
            raise ValueError(
                f"{type(owner).__name__}: the learning_rate of the optimizer must be a number, got a schedule"
            )


def _accepts(function: Callable[..., Any], count: int) -> bool:
    """Whether a function accepts ``count`` positional arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    return True


class Checkpoint(Callback):
    """Write numbered checkpoint files; ``fit(resume=directory)`` continues from the last one.

    A file holds the tensors of the model and the optimizer, the state of the random stream, the metrics and all
    callbacks, the history, and the position in the epoch. Files are written atomically, and every engine can read
    them. Use one directory per run: a warning is issued if the directory has checkpoints of another run with higher
    numbers.

    Args:
        directory: directory of the files, created if missing; or the path of one file, which ends with
            ``.safetensors`` or ``.npz`` and is replaced every time.
        every: number of steps between two checkpoints; by default one is written after every epoch. That of the last
            step of an epoch is written again after the epoch.
        keep: number of latest files to keep; by default all.
        monitor: name of a figure; write a checkpoint only after epochs where it is the best so far.
        mode: ``"min"``, ``"max"`` or ``"auto"`` for ``monitor``, as in ``EarlyStopping``.
    """

    def __init__(
        self,
        directory: Any,
        every: int | None = None,
        keep: int | None = None,
        monitor: str | None = None,
        mode: str = "auto",
    ) -> None:
        for option, value in (("every", every), ("keep", keep)):
            if value is not None:
                check_interval(self, option, value)
        if keep is not None and checkpoint_file(directory) is not None:
            raise ValueError(f"{type(self).__name__}: keep must be None for the path of one file, got {keep}")
        if every is not None and monitor is not None:
            raise ValueError(
                f"{type(self).__name__}: monitor and every must not both be given, as metrics are known after an "
                "epoch alone"
            )
        self.directory = Path(directory)
        self.every, self.keep = every, keep
        self.watch = _Watch(self, monitor, mode, 0.0) if monitor else None
        self._is_due = self._is_checked = False

    def on_fit_begin(self, trainer: Trainer) -> None:
        self._is_due = self._is_checked = False
        if self.watch is not None and not trainer.step:
            self.watch.best = math.nan

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        self._is_due = self.every is not None and trainer.step % self.every == 0

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if self.every is not None:
            # The file of the last step is of an epoch that is not over, and would be evaluated again on a resume. An
            # epoch that max_steps cut short goes on if the run is resumed with more steps, so that file stays.
            self._is_due = trainer.step % self.every == 0 and not trainer.is_cut_short
        else:
            self._is_due = self.watch is None or self.watch.is_better(record)

    def on_settled(self, trainer: Trainer) -> None:
        # A file holds the state of all callbacks, including those that run after this one.
        if self._is_due:
            self._is_due = False
            path = trainer.save(self.directory, keep=self.keep)
            if not self._is_checked and path != self.directory and distributed.rank() == 0:
                _warn_if_not_latest(path)
                self._is_checked = True

    def state(self) -> Any:
        return None if self.watch is None else self.watch.best

    def restore(self, state: Any) -> None:
        if self.watch is not None:
            self.watch.best = state


def checkpoint_file(place: Any) -> Path | None:
    """Path of the one file that ``place`` names; ``None`` if it is a directory of numbered checkpoints."""
    path = Path(place)
    return path if path.suffix.lower() in (".safetensors", ".npz") and not path.is_dir() else None


def _warn_if_not_latest(path: Path) -> None:
    """Warn if the directory has checkpoints with higher numbers than ``path``, which was just written."""
    prefix = path.stem.rpartition("-")[0]
    # Numbers are zero-padded, so longer names have higher numbers.
    last = max(path.parent.glob(f"{prefix}-*{path.suffix}"), key=lambda other: (len(other.name), other.name))
    if last.name != path.name:
        warn(
            f"Checkpoint: {path.parent} has checkpoints of another run, up to {last.name}, which are taken for the "
            f"latest: resume goes on from there, not from {path.name}. Remove them, or give each run its own directory"
        )


def check_interval(owner: Callback, name: str, value: Any, other: str = "") -> None:
    """Raise an error that names the option of a callback unless it is an integer of at least 1.

    Args:
        other: what else the option may be, for the message.
    """
    if not hasattr(type(value), "__index__"):
        raise TypeError(f"{type(owner).__name__}: {name} must be {other}an integer, got {written(value)}")
    if value < 1:
        raise ValueError(f"{type(owner).__name__}: {name} must be {other}>= 1, got {value}")


class FailOnNaN(Callback):
    """Raise ``FloatingPointError`` when the loss is NaN or infinite.

    Training can be resumed from an earlier checkpoint.

    Args:
        every: number of steps between two checks. A check waits for the loss. The loss of an epoch is always checked.
    """

    def __init__(self, every: int = 1) -> None:
        check_interval(self, "every", every)
        self.every = every

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        if trainer.step % self.every == 0:
            self._check(loss, f"update {trainer.step}")

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        self._check(record["loss"], f"epoch {trainer.epoch}")

    def _check(self, loss: Any, where: str) -> None:
        value = float(loss)
        if not math.isfinite(value):
            raise FloatingPointError(f"{type(self).__name__}: the loss of {where} must be finite, got {value}")


class CSVLogger(Callback):
    """Write the figures of every epoch to a CSV file. A resumed run continues the file.

    Args:
        path: the CSV file.
    """

    def __init__(self, path: Any) -> None:
        self.path = Path(path)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if distributed.rank() != 0:
            return
        history = trainer.history
        names = ["epoch", *history.names()]
        text = io.StringIO(newline="")
        # Rewriting the whole file handles new columns, and rows that a resumed run would write twice.
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows({"epoch": i, **one} for i, one in enumerate(history.epochs, 1))
        atomic.write(self.path, text.getvalue(), parents=True)


class TensorBoard(Callback):
    """Write the figures of every epoch, and ``step/loss`` of every ``every``-th step, as TensorBoard event files.

    Args:
        directory: directory of the event files.
        every: number of steps between two writes of the loss.
    """

    def __init__(self, directory: Any, every: int = 10) -> None:
        check_interval(self, "every", every)
        self.directory, self.every = str(directory), every
        self.writer: Any = None

    def on_fit_begin(self, trainer: Trainer) -> None:
        if distributed.rank() != 0:
            return
        try:
            from tensorboardX import SummaryWriter  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError(
                f"{type(self).__name__} requires tensorboardX: pip install 'ember-ml[tensorboard]'"
            ) from error
        # TensorBoard hides the events of purge_step too, and the last step before a resume is not repeated.
        self.writer = SummaryWriter(self.directory, purge_step=trainer.step + 1 if trainer.step else None)

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        if self.writer is not None and trainer.step % self.every == 0:
            self.writer.add_scalar("step/loss", float(loss), trainer.step)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        for name, value in record.items() if self.writer is not None else ():
            part = "validation" if name.startswith("val_") else "training"
            self.writer.add_scalar(f"{part}/{name.removeprefix('val_')}", value, trainer.step)

    def on_fit_end(self, trainer: Trainer) -> None:
        if self.writer is not None:
            self.writer.close()
