"""The training loop."""

from __future__ import annotations

import inspect
import json
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml import distributed, ops, transform, tree
from ember_ml.distributed.buckets import Overlap
from ember_ml.dtypes import written
from ember_ml.errors import UnsupportedError, warn
from ember_ml.extend import activate, backend_of, current_backend
from ember_ml.interrupts import interruptible, uninterrupted
from ember_ml.nn.modules import BatchNorm
from ember_ml.nn.precision import LossScale, Precision
from ember_ml.optim import get_optimizer
from ember_ml.optim.optimizer import RATE, STEP
from ember_ml.spellings import torch_hint, value_hint, value_named
from ember_ml.training.callbacks import Callback, Checkpoint, checkpoint_file
from ember_ml.training.data import (
    Arrays,
    Batch,
    Batches,
    Column,
    Share,
    as_data,
    as_validation,
    batches_of,
    check_integer,
    columns_of,
    converted_like,
    is_table,
    target_of,
    weight_of,
)
from ember_ml.training.history import History
from ember_ml.training.metrics import Metric, get_metric, spread_weights
from ember_ml.training.probabilities import expected_by
from ember_ml.training.progress import Epoch, Progress
from ember_ml.training.ranks import check_checkpoint, check_model, gather, run_on_first
from ember_ml.training.sharding import Sharding
from ember_ml.transform.leaves import can_compile, has_compiler


class _Snapshot(NamedTuple):
    """State before a step, restored if the step does not finish."""

    stream: dict[str, int]
    model: dict[str, Any]
    # ``None`` if the engine writes into the state in place, which is then the last thing a step changes.
    optimizer: dict[str, Any] | None
    # State of the scale of the loss; empty without one.
    scale: dict[str, Any]
    # Number of batches that each metric has measured.
    measured: list[int]


class _Run(NamedTuple):
    """Arguments of one call of ``fit``."""

    data: Arrays | Batches
    validation_data: Arrays | Batches | None
    shuffle: bool
    epochs: float
    steps_per_epoch: int | None
    max_steps: float
    progress: Progress


class Trainer:
    """Training, evaluation and prediction with a model.

    Steps are atomic: an error or Ctrl-C during a step leaves the state of the last finished step, and ``save`` then
    writes a checkpoint of it.

    On several ranks, ``batch_size`` is that of all ranks together: each of them computes a slice of every batch, with
    the random numbers that a single process draws for these examples, and all have the same model after each step.
    Losses and metrics are those of all examples. Rank 0 alone shows progress and writes files.

    Args:
        model: a ``Module``, or a callable with the methods ``tensors``, ``assign`` and ``parameters``.
        loss: a loss of ``ops``, its name, or a ``functools.partial`` of it; or a function ``(prediction, target)`` or
            ``(prediction, target, weights)`` that returns a scalar.
        optimizer: an optimizer from ``ember_ml.optim``, or the name of one, such as ``"adam"``, with its defaults.
        metrics: one metric or several, each a ``Metric`` or its name.
        callbacks: one ``Callback`` or several.
        compile: compile the training step. It is compiled again for each batch size, such as that of a smaller last
            batch.
        precision: an ``nn.Precision`` or its name, such as ``"bf16-mixed"``, to compute in. The parameters are cast to
            its parameter dtype now. With float16, the loss is scaled, and steps whose gradients overflow are skipped.
        accumulate: number of batches per step, whose gradients are added. A step then equals one with a batch of that
            size, except for what depends on the batch, such as ``BatchNorm``, and needs less memory. The last step of
            a pass over the data has the batches that are left.
        strategy: ``"replicated"``, or ``"sharded"`` to divide the parameters, their gradients and the state of the
            optimizer over the ranks during ``fit``, on torch and JAX. A step gathers the parameters and scatters the
            sums of the gradients; the optimizer must update each element by itself, unlike ``Muon`` and ``Adafactor``.
            All ranks must then call ``evaluate``, ``predict`` and ``save`` within ``fit``.
        sync_batch_norm: whether ``BatchNorm`` uses the statistics of the batches of all ranks in training, as one
            process does, or each rank those of its examples, which needs less communication, and which torch and JAX
            can compile.

    >>> from ember_ml import nn, ops, optim
    >>> model = nn.modules.Linear(1, 1)
    >>> trainer = Trainer(model, "mse", optim.SGD(0.1))
    >>> history = trainer.fit([[0.0], [1.0]], [[1.0], [3.0]], epochs=300, batch_size=2)
    >>> [round(x, 1) for x in trainer.predict([[2.0]])[0].tolist()]
    [5.0]
    """

    def __init__(
        self,
        model: Any,
        loss: str | Callable[..., Any],
        optimizer: Any,
        metrics: str | Metric | Iterable[str | Metric] | None = (),
        callbacks: Callback | Iterable[Callback] | None = (),
        *,
        compile: bool = False,
        precision: str | Precision | None = None,
        accumulate: int = 1,
        strategy: str = "replicated",
        sync_batch_norm: bool = True,
    ) -> None:
        self.model = _check_instance(model, "tensors", "model must be a Module")
        self.loss = loss
        self.optimizer = _check_instance(
            get_optimizer(optimizer), "update", "optimizer must be an ember_ml.optim.Optimizer instance"
        )
        given = [metrics] if isinstance(metrics, (str, Metric)) else metrics
        self.metrics = [get_metric(metric) for metric in given or ()]
        names = [metric.name for metric in self.metrics]
        if len(set(names)) < len(names):
            raise ValueError(f"Trainer: metrics must have different names, got {', '.join(names)}")
        given_callbacks = [callbacks] if isinstance(callbacks, Callback) else callbacks
        required = "callbacks must be Callback instances"
        self.callbacks = [_check_instance(one, "on_epoch_end", required) for one in given_callbacks or ()]
        self.precision = Precision(precision) if isinstance(precision, str) else precision
        if self.precision is not None:
            if not isinstance(self.precision, Precision):
                raise TypeError(f"Trainer: precision must be an nn.Precision or its name, got {written(precision)}")
            self.precision.cast_parameters(self.model)
        self.loss_scale = None if self.precision is None or self.precision.compute != "float16" else LossScale()
        self.accumulate = check_integer("accumulate", accumulate, 1)
        self.sync_batch_norm = sync_batch_norm
        self.strategy = strategy
        self._sharding = Sharding(strategy, self.model, self.optimizer, self.callbacks)
        if strategy == "sharded" and self.loss_scale is not None:
            raise UnsupportedError(f"Trainer: precision must not be in float16 for strategy='sharded', got {precision}")
        self.history = History()
        # Number of finished epochs, of steps in the current epoch, and of steps in total.
        self.epoch = self.batch = self.step = 0
        # Random state at the start of the epoch, and of the pass over the data; ``None`` before the start.
        self._epoch_seed: Any = None
        self._pass_seed: Any = None
        # Number of batches taken in the pass over the data, which may be longer or shorter than an epoch.
        self._position = 0
        # Seconds of the epoch up to its last step, and the time at which it began, or would have without interrupts.
        self._seconds = self._epoch_start = 0.0
        self._losses: list[Any] = []
        self._sizes: list[Any] = []
        self._batch_size: int | None = None
        self._is_stopped = False
        # Whether ``max_steps`` ended the last epoch.
        self.is_cut_short = False
        # Lines to show when training has stopped.
        self._reasons: list[str] = []
        # Number of measurements of each metric that all ranks hold; those that follow are of this rank's examples.
        self._gathered = [0] * len(self.metrics)
        # What begins to average gradients over the ranks while others are computed; ``None`` to do that afterwards.
        # An attribute, so that compiled steps, which do not use it, do not depend on what it reads.
        self._begin: Callable[[dict[str, Any], Any], None] | None = None
        self._overlap: Overlap | None = None
        # State before the current step; ``None`` between steps.
        self._snapshot: _Snapshot | None = None
        # Callbacks not yet notified of the last step, or of the end of the epoch.
        self._pending: list[Callback] = []
        # Whether predictions have yet to be compared with what the loss expects.
        self._is_unchecked = False
        self._is_compiled = compile
        # Shapes of the batches for which a step has been compiled.
        self._compiled_shapes: set[Any] = set()
        self._compiled_step = transform.compile(self._train_step)
        self._compiled_part = transform.compile(self._add_gradients)
        self._gradient = transform.value_and_grad(self._objective, has_aux=True)

    @property
    def loss(self) -> Callable[..., Any]:
        """Loss function of prediction, target and, optionally, weights. It can be set to anything ``Trainer`` takes."""
        return self._loss

    @loss.setter
    def loss(self, loss: str | Callable[..., Any]) -> None:
        self._loss = get_loss(loss)
        operation = getattr(self._loss, "operation", None)
        self._expected = expected_by(operation)
        self._is_weighted = _accepts_weights(self._loss)
        # A function of the user may do without targets.
        self._needs_target = operation is not None
        self._is_sum = isinstance(operation, partial) and operation.keywords.get("reduction") == "sum"

    def fit(
        self,
        x: Any,
        y: Any = None,
        epochs: int | None = None,
        batch_size: int = 32,
        validation_data: Any = None,
        shuffle: bool = True,
        verbose: int | None = None,
        resume: Any = None,
        sample_weight: Any = None,
        validation_split: float = 0.0,
        steps_per_epoch: int | None = None,
        max_steps: int | None = None,
    ) -> History:
        """Train the model and return the history.

        Args:
            x: examples along the first axis: an array, a tensor, a list, a data frame, a dataset of Hugging Face, or
                a dictionary or tuple of these. Without ``y``, an iterable of batches ``(x, y)`` or ``(x, y, weights)``,
                such as a ``torch.utils.data.DataLoader``.
            y: targets, in the same forms as ``x``; or the name of the column of targets in a data frame, a dataset, or
                each of the batches of an iterable, if these are dictionaries. What is left is the input of the model.
                A list of names gives a matrix for a data frame, and else a dictionary.
            epochs: number of passes over the data; by default 1, or with ``max_steps`` as many as that takes. With
                ``resume``, the total number including earlier runs.
            batch_size: number of examples per step. An iterable of batches determines its own.
            validation_data: data to evaluate after every epoch: ``(x, y)``, ``(x, y, weights)`` or an iterable of
                batches; if ``y`` is a name, also a data frame, a dataset or batches that have it.
            shuffle: draw a new order of the examples every epoch from the library's random stream. Iterables of
                batches keep their order.
            verbose: 0 for no output, 1 for a progress bar, 2 for one line per epoch. By default a progress bar. The
                bar is only shown on a terminal.
            resume: directory that ``Checkpoint`` wrote to. Training continues from its last file if there is one, and
                starts from the beginning otherwise. The path of one file is accepted too; that file must exist, unless
                a ``Checkpoint`` callback writes it. Checkpoints of every engine can be read.
            sample_weight: weight of each example in the loss and the metrics, or of each element of the target, such
                as the steps of a sequence with 0 for padding. The loss is then the weighted mean, as in scikit-learn;
                with ``reduction="sum"``, the weighted sum.
            validation_split: fraction of the examples to evaluate after every epoch, and not to train on: the last
                ones, before any shuffling. Not for iterables of batches.
            steps_per_epoch: number of steps in an epoch, such as for an iterable that never ends. The next epoch goes
                on where this one stopped; the data begin anew when all are used.
            max_steps: total number of steps, including earlier runs. The epoch of the last step ends with it.
        """
        if epochs is not None or max_steps is None:
            epochs = check_integer("epochs", 1 if epochs is None else epochs, 0)
        if steps_per_epoch is not None:
            steps_per_epoch = check_integer("steps_per_epoch", steps_per_epoch, 1)
        if max_steps is not None:
            max_steps = check_integer("max_steps", max_steps, 1)
        with self._on_model_backend():
            progress = Progress(epochs, verbose, is_shown=self._rank == 0)
            data = as_data(x, y, batch_size, self._device, sample_weight, self._needs_target)
            if validation_split != 0:
                data, validation_data = _split(data, validation_split, validation_data)
            validation = None
            if validation_data is not None:
                with _noting_validation():
                    target = target_of(x, y)
                    validation = as_validation(validation_data, target, batch_size, self._device, self._needs_target)
                    if isinstance(validation, Arrays):
                        self._check_weights(validation.parts[2:])
            run = _Run(
                data,
                validation,
                shuffle,
                epochs=math.inf if epochs is None else epochs,
                steps_per_epoch=steps_per_epoch,
                max_steps=math.inf if max_steps is None else max_steps,
                progress=progress,
            )
            self._roll_back()
            self._sharding.join()
            self._batch_size = data.batch_size if isinstance(data, Arrays) else None
            self._is_stopped, self._reasons, self._is_unchecked = False, [], self._expected is not None
            if resume is None or not self.restore(resume):
                self._check_missing(resume)
                with uninterrupted():
                    self.epoch = self.batch = self.step = 0
                    self.history, self._pending = History(), []
                    self._begin_epoch()
                    self._begin_pass()
            if self._size > 1:
                self._check_compiled_statistics()
                check_model(self.model.tensors(), self._device)
                # One order of examples and one set of masks for all ranks.
                ops.random.set_state(gather(ops.random.get_state(), self._device)[0])
            self._sharding.divide()
            self.optimizer.init(self.model)
            if self.loss_scale is not None:
                self.loss_scale.init(next(iter(self.model.parameters().values())))
            try:
                self._call("on_fit_begin")
                if self._pending:
                    self._notify_pending()
                # Closed at the end, since a thread may be reading ahead.
                with closing(self._batches(run)) as batches:
                    while self._has_epochs(run):
                        self._fit_epoch(run, batches)
                for reason in self._reasons:
                    progress.note(reason)
                self._sharding.join_model()
            except BaseException as error:
                self._roll_back()
                self._call_all("on_exception", error)
                raise
            finally:
                self._call_all("on_fit_end")
        return self.history

    def evaluate(self, x: Any, y: Any = None, batch_size: int = 32, sample_weight: Any = None) -> dict[str, float]:
        """Loss and metrics on data, by name. The arguments are those of ``fit``.

        On several ranks, each evaluates a slice of every batch, so all of them must call it.
        """
        with self._on_model_backend():
            return self._evaluate(as_data(x, y, batch_size, self._device, sample_weight, self._needs_target))

    def _evaluate(self, data: Arrays | Batches) -> dict[str, float]:
        """Loss and metrics on data that are split into batches, by name."""
        metrics = [_reset_copy(metric) for metric in self.metrics]
        losses: list[Any] = []
        sizes: list[Any] = []
        with self._in_mode(training=False), self._sharding.whole_model():
            for share in data.shares(shuffle=False, rank=self._rank, size=self._size):
                batch, target, *weights = share.batch
                self._check_weights(weights)
                if not share.is_counted:
                    continue
                prediction = self._predict(self.model, batch)
                losses.append(self.loss(prediction, target, *weights))
                sizes.append(weight_of(share.examples, *weights))
                for metric in metrics:
                    metric.update(target, prediction, *weights)
                self._eval_step(losses[-1], metrics)
            losses, sizes = _read_numbers(losses), _read_numbers(sizes)
            if self._size > 1:
                parts = gather((losses, sizes, [metric.state() for metric in metrics]), self._device)
                losses, sizes = ([x for part in parts for x in part[i]] for i in range(2))
                for i, metric in enumerate(metrics):
                    metric.restore([row for *_, measured in parts for row in measured[i]])
            return {"loss": _mean(losses, sizes), **{metric.name: metric.compute() for metric in metrics}}

    def predict(self, x: Any, batch_size: int = 32) -> Any:
        """Predictions of the model for ``x``, concatenated along the first axis. Each rank predicts all of them.

        Args:
            x: examples as for ``fit``, or an iterable of batches. A list holds examples, unless its items are tuples:
                then it holds batches.
            batch_size: number of examples per call of the model.
        """
        predictions = []
        with self._on_model_backend(), self._in_mode(training=False), self._sharding.whole_model():
            x = columns_of(x) if is_table(x) else x
            data: Arrays | Batches = (
                Batches(batches_of(x, batch_size), self._device)
                if _is_batches(x)
                else Arrays(x, None, batch_size, self._device)
            )
            for batch, *_ in data.batches(shuffle=False):
                predictions.append(self._predict(self.model, batch))
                self._eval_step(predictions[-1], ())
            if not predictions:
                raise ValueError("Trainer: x must have at least 1 batch to predict, got none")
            return tree.map(lambda *parts: ops.concatenate(list(parts)), *predictions)

    def stop(self, reason: str = "") -> None:
        """Stop training after this epoch.

        Args:
            reason: line to show with the progress when training has stopped.
        """
        self._is_stopped = True
        if reason and reason not in self._reasons:
            self._reasons.append(reason)

    def save(self, directory: Any, keep: int | None = None) -> Path:
        """Write a checkpoint, and return its path. ``restore`` and ``fit(resume=...)`` read it.

        On several ranks, all of them must call it after the same step; rank 0 writes the file, which a run with any
        number of ranks can read.

        Args:
            directory: directory of checkpoints that are numbered by the steps so far, created if missing; or the path
                of one file, which ends with ``.safetensors`` or ``.npz`` and is replaced if it exists.
            keep: number of latest files in the directory to keep; by default all.
        """
        file = checkpoint_file(directory)
        if file is not None and keep is not None:
            raise ValueError(f"Trainer: keep must be None for the path of one file, got {keep}")
        with self._on_model_backend():
            self._roll_back()
            # The optimizer has no state yet if the run was interrupted before its first step.
            self.optimizer.init(self.model)
            self._gather_measured()
        losses = self._read_losses()
        progress = {
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "seed": ops.random.get_state(),
            "epoch_seed": self._epoch_seed,
            "position": self._position,
            "pass_seed": self._pass_seed,
            "seconds": self._seconds,
            "losses": losses,
            "sizes": _read_numbers(self._sizes),
            "batch_size": self._batch_size,
            "metrics": [metric.name for metric in self.metrics],
            "callbacks": [type(callback).__name__ for callback in self.callbacks],
            "waiting": [any(callback is one for one in self._pending) for callback in self.callbacks],
            "history": {"epochs": self.history.epochs, "steps": self.history.steps},
        }
        content = {
            "model": self._checkpointed(),
            "optimizer": self.optimizer.tensors(),
            "loss_scale": self.loss_scale.tensors() if self.loss_scale is not None else {},
            "metrics": [metric.state() for metric in self.metrics],
            "callbacks": [callback.state() for callback in self.callbacks],
            # Figures added by callbacks may be NumPy scalars or tensors.
            "progress": json.dumps(progress, default=float),
        }
        content.update(self._sharding.joined_on_host(content))

        def write() -> str:
            if file is None:
                return str(ops.save_checkpoint(directory, content, step=self.step, keep=keep))
            file.parent.mkdir(parents=True, exist_ok=True)
            ops.save(file, content)
            return str(file)

        return Path(run_on_first(write, self._device))

    def _check_missing(self, resume: Any) -> None:
        """Raise an error if ``resume``, where there is no checkpoint, is a file that no callback writes."""
        file = None if resume is None else checkpoint_file(resume)
        written_here = (one.directory.absolute() for one in self.callbacks if isinstance(one, Checkpoint))
        if file is not None and file.absolute() not in written_here:
            raise FileNotFoundError(
                f"Trainer: resume must be a file that exists or that a Checkpoint callback writes, got {str(resume)!r}"
            )

    def restore(self, directory: Any) -> bool:
        """Restore the state saved in a checkpoint. Return whether there was one.

        Args:
            directory: directory of the checkpoints, of which the last is restored, or the path of one file.
        """
        with self._on_model_backend():
            self._sharding.join()
            try:
                content = ops.load_checkpoint(directory)
            except FileNotFoundError as error:
                if error.filename is not None:  # ``directory`` is the path of one file
                    raise
                check_checkpoint(None, self._device)
                return False
            if not isinstance(content, dict) or "progress" not in content:
                raise ValueError(f"Trainer: directory must hold a checkpoint of a Trainer, got {str(directory)!r}")
            if self._device is not None:
                # Metrics and callbacks combine their state with tensors on the device of the model.
                content = tree.map(lambda x: ops.to_device(x, self._device) if ops.is_tensor(x) else x, content)
            _check_paths("model", self._checkpointed(), content["model"])
            self.optimizer.init(self.model)
            # A rate may have been replaced by a schedule or the reverse, and only parameters that missed a step have
            # a separate step count.
            held = ({path: x for path, x in some.items() if path.rpartition(".")[2] not in (RATE, STEP)}
                    for some in (self.optimizer.tensors(), content["optimizer"]))  # fmt: skip
            _check_paths("optimizer, with the same parameters frozen", *held)
            progress = json.loads(content["progress"])
            check_checkpoint(progress["step"], self._device)
            self._check_progress(progress)
            tensors = converted_like(self._checkpointed(), content["model"])
            state = converted_like(self.optimizer.tensors(), content["optimizer"])
            saved = list(
                zip(
                    progress["callbacks"],
                    content["callbacks"],
                    progress.get("waiting", [False] * len(progress["callbacks"])),  # absent in earlier versions
                    strict=True,
                )
            )
            with uninterrupted():
                self.model.assign(tensors)
                self.optimizer.assign(state)
                if self.loss_scale is not None:
                    # Absent in earlier versions, and if the run was in another precision.
                    self.loss_scale.assign(content.get("loss_scale", {}))
                ops.random.set_state(progress["seed"])
                self.epoch, self.batch, self.step = progress["epoch"], progress["batch"], progress["step"]
                self._epoch_seed, self._snapshot, self._pending = progress["epoch_seed"], None, []
                # Absent in earlier versions, where a pass over the data was an epoch.
                self._position = progress.get("position", progress["batch"])
                self._pass_seed = progress.get("pass_seed", progress["epoch_seed"])
                self._losses, self._sizes = progress["losses"], progress["sizes"]
                self._seconds = progress.get("seconds", 0.0)  # absent in earlier versions
                self.history = History(**progress["history"])
                for metric, measured in zip(self.metrics, content["metrics"], strict=True):
                    metric.restore(measured)
                self._gathered = [len(measured) for measured in content["metrics"]]
                for callback in self.callbacks:
                    # Callbacks of the same class are matched in order; a callback without saved state starts fresh.
                    place = next((i for i, (name, *_) in enumerate(saved) if name == type(callback).__name__), None)
                    if place is not None:
                        _, kept, is_waiting = saved.pop(place)
                        callback.restore(kept)
                        self._pending += [callback] if is_waiting else []
        return True

    def _checkpointed(self) -> dict[str, Any]:
        """Tensors of the model in a checkpoint: all, or those that a model with adapters names."""
        find = getattr(self.model, "checkpoint_tensors", self.model.tensors)
        return find()  # type: ignore[no-any-return]

    def _check_weights(self, weights: Sequence[Any]) -> None:
        if weights and not self._is_weighted:
            raise TypeError("Trainer: sample_weight must be None for a loss without a third argument for weights")

    def _check_compiled_statistics(self) -> None:
        """Raise an error if the step is to be compiled with collectives by an engine that cannot.

        torch 2.13: ``torch.compile`` does not trace the gradient of an operator that is defined in Python. JAX 0.10: a
        collective of several processes is a program of its own.
        """
        name = current_backend().name
        if not (self._is_compiled and self.sync_batch_norm and name in ("torch", "jax")):
            return
        if any(isinstance(module, BatchNorm) for module in getattr(self.model, "modules", list)()):
            raise UnsupportedError(
                f"Trainer: sync_batch_norm must be False for compile=True on the {name} backend and several ranks, got "
                "True for a model with BatchNorm"
            )

    def _check_progress(self, progress: dict[str, Any]) -> None:
        """Raise an error if training cannot continue from a checkpoint with other metrics or another batch size."""
        names = [metric.name for metric in self.metrics]
        if progress["metrics"] != names:
            raise ValueError(f"Trainer: metrics must be those of the checkpoint, {progress['metrics']}, got {names}")
        size = progress["batch_size"]
        is_within = progress.get("position", progress["batch"])
        if is_within and None not in (size, self._batch_size) and size != self._batch_size:
            raise ValueError(
                f"Trainer: batch_size must be that of the checkpoint, {size}, to go on within an epoch, got "
                f"{self._batch_size}"
            )

    def _has_epochs(self, run: _Run) -> bool:
        """Whether an epoch is to be trained, or recorded: ``max_steps`` may have ended it before an interrupt."""
        # A callback may stop one of the ranks.
        self._is_stopped = any(gather(self._is_stopped, self._device))
        return self.epoch < run.epochs and not self._is_stopped and bool(self.batch or self.step < run.max_steps)

    def _fit_epoch(self, run: _Run, batches: Iterator[list[Share] | None]) -> None:
        self._epoch_start = time.perf_counter() - self._seconds
        self._call_epoch_begin()
        limit = math.inf if run.steps_per_epoch is None else run.steps_per_epoch
        total = run.steps_per_epoch or -(-len(run.data) // self.accumulate)
        with self._in_mode(training=True), run.progress.epoch(self.epoch, total, self.batch) as listener:
            while self.batch < limit and self.step < run.max_steps:
                examples = self._take_step(batches, listener)
                if examples is None:
                    if run.steps_per_epoch is None:
                        break
                    self._begin_pass()
                    continue
                loss = self._losses[-1]
                self._notify_pending()
                listener.step(examples, partial(self._figures, loss), self._memory)
            self.is_cut_short = self.step >= run.max_steps
            if not self._losses:
                raise ValueError(
                    "Trainer: x must have at least 1 batch to train on, got none; an iterator is empty after its "
                    "first epoch"
                )
            losses = self._read_losses()
            self._gather_measured()
            record = {"loss": _mean(losses, self._sizes), **{m.name: m.compute() for m in self.metrics}}
            if run.validation_data is not None:
                with _noting_validation():
                    found = self._evaluate(run.validation_data)
                record.update({f"val_{name}": value for name, value in found.items()})
            record.update(self._scale_figures())
            record["learning_rate"] = self.optimizer.learning_rate
            record["seconds"] = time.perf_counter() - self._epoch_start
            listener.end(record)
        with uninterrupted():
            self.history.steps += losses
            self.history.add(record)
            self.epoch += 1
            self._begin_epoch()
            if run.steps_per_epoch is None:
                self._begin_pass()
            self._pending = list(self.callbacks)
        run.progress.line(self.epoch, record)
        self._notify_pending()

    def _begin_epoch(self) -> None:
        self.batch, self._losses, self._sizes, self._epoch_seed, self._snapshot = 0, [], [], None, None
        self._seconds = 0.0
        for metric in self.metrics:
            metric.reset()
        self._gathered = [0] * len(self.metrics)

    def _gather_measured(self) -> None:
        """Give each rank the measurements of all ranks."""
        if self._size == 1 or not self.metrics:
            return
        own = [metric.state()[count:] for metric, count in zip(self.metrics, self._gathered, strict=True)]
        parts = gather(own, self._device)
        with uninterrupted():
            for i, (metric, count) in enumerate(zip(self.metrics, self._gathered, strict=True)):
                metric.restore(metric.state()[:count] + [row for part in parts for row in part[i]])
            self._gathered = [len(metric.state()) for metric in self.metrics]

    def _begin_pass(self) -> None:
        with uninterrupted():
            self._position, self._pass_seed = 0, None

    def _call_epoch_begin(self) -> None:
        """Call ``on_epoch_begin``. In a resumed epoch, random numbers drawn there do not advance the stream."""
        stream = ops.random.get_state()
        with _restoring_stream():
            self._call("on_epoch_begin")
            if self._epoch_seed is None:
                self._epoch_seed = ops.random.get_state()
                return
        # A resumed epoch has already drawn these numbers.
        ops.random.set_state(stream)

    def _batches(self, run: _Run) -> Generator[list[Share] | None, None, None]:
        """Batches of each step of this pass over the data and of all later ones, with ``None`` after each pass."""
        while True:
            stream = ops.random.get_state()
            if self._pass_seed is None:
                self._pass_seed = stream
            # The order is drawn with the stream as it was at the start of the pass; then the current state is restored.
            if stream != self._pass_seed:
                ops.random.set_state(self._pass_seed)
            resume_state = stream if self._position else None
            data = run.data.shares(run.shuffle, self._position, resume_state, self._rank, self._size)
            with closing(data) as batches:
                while group := list(islice(batches, self.accumulate)):
                    yield group
            yield None

    def _take_step(self, batches: Iterator[list[Share] | None], listener: Epoch) -> int | None:
        """Train on the next batches, and return the number of examples; ``None`` if the pass over the data is over."""
        self._snapshot = _Snapshot(
            ops.random.get_state(),
            self.model.tensors(),
            self.optimizer.tensors() if self._is_lazy else None,
            self.loss_scale.tensors() if self.loss_scale is not None else {},
            [len(metric._measured) for metric in self.metrics],
        )
        distributed.set_step(self.step + 1)
        group = next(batches)
        if group is None:
            return None
        take = self._take_batch if self.accumulate == self._size == 1 else self._take_parts
        shapes = self._uncompiled_shapes(group) if self._is_compiled else None
        if shapes is None:
            take(group)
        else:
            with listener.compilation():
                take(group)
            self._compiled_shapes.add(shapes)
        return sum([share.of for share in group])

    def _uncompiled_shapes(self, group: list[Share]) -> Any:
        """Shapes of a batch if the step is compiled for them now; ``None`` otherwise."""
        shapes = tuple([tuple(leaf.shape) for leaf in tree.leaves(group[0].batch) if leaf is not None])
        return shapes if self._has_compiler and shapes not in self._compiled_shapes else None

    def _memory(self) -> int | None:
        """Number of bytes in use on the device of the model, at most so far if known; ``None`` on the CPU."""
        if self._device in (None, "cpu"):
            return None
        found = ops.memory_info(self._device)
        return found["peak"] or found["allocated"]

    def _take_batch(self, group: list[Share]) -> None:
        """Train on one batch."""
        (share,) = group
        (x, y, *weights), size = share.batch, share.weight
        self._check_weights(weights)
        if self._is_compiled:
            if self._is_unchecked:
                self._check_prediction(self._forward(x))
            with uninterrupted():
                loss, prediction, is_finite = self._compiled_step(
                    self.model, self.optimizer, self.loss_scale, x, y, *weights
                )
                size = _counted(size, is_finite)
                try:
                    self._measure(prediction, y, *weights)
                    self._eval_step(loss, self.metrics)
                except BaseException:
                    if not self._is_lazy:
                        # The program has written into the optimizer state, so the step must be completed.
                        self._count_step(loss, size)
                    raise
                self._count_step(loss, size)
        else:
            (value, aux), grads = self._gradient(self.model, self.loss_scale, None, x, y, *weights)
            loss, prediction = (value, aux) if self.loss_scale is None else aux
            if self._is_unchecked:
                self._check_prediction(prediction)
            self._measure(prediction, y, *weights)
            self._finish_step(loss, size, grads)

    def _take_parts(self, group: list[Share]) -> None:
        """Train on several batches, or the parts of several ranks, with the gradient of the loss of all examples."""
        total = sum([share.weight for share in group[1:]], group[0].weight)
        is_plain = len(group) == 1 and not self._is_compiled and not self._sharding.is_model_divided
        is_overlapped = is_plain and self._size > 1 and Overlap.is_available()
        self._begin = partial(self._begin_overlap, group) if is_overlapped else None
        self._overlap = None
        with self._sharding.whole_model():
            loss, grads = self._add_parts(group, total)
        if self._size > 1:
            loss, grads = self._average_ranks(loss, grads, group)
        self._finish_step(loss, total, grads, len(group))

    def _add_parts(self, group: list[Share], total: Any) -> tuple[Any, dict[str, Any]]:
        """Loss and gradients of this rank for batches whose examples have the weight ``total`` on all ranks."""
        run = self._compiled_part if self._is_compiled else self._add_gradients
        sums: dict[str, Any] | None = None
        if len(group) > 1:
            sums = {path: ops.zeros_like(x) for path, x in self.model.parameters().items()}
        loss: Any = 0.0
        for share in group:
            x, y, *weights = share.batch
            self._check_weights(weights)
            if self._is_unchecked and self._is_compiled:
                self._check_prediction(self._forward(x))
            # A tensor, since a compiled program is for one value of a number.
            factor = ops.asarray(self._factor(share, total), dtype="float32", device=self._device)
            with self._rows(share):
                part, prediction, sums = run(self.model, self.loss_scale, factor, sums, x, y, *weights)
            if self._is_unchecked:
                self._check_prediction(prediction)
            if share.is_counted:
                self._measure(prediction, y, *weights)
            loss = ops.add(loss, part)
            self._eval_step((loss, sums), self.metrics)
        assert sums is not None
        return loss, sums

    def _factor(self, share: Share, total: Any) -> Any:
        """Factor of the loss of a part in the loss of a step whose examples have the weight ``total``."""
        factor: Any = 1.0
        if not self._is_sum:
            weight = weight_of(share.examples, *share.batch[2:])
            # Weights may all be zero.
            factor = weight / total if type(total) is int else weight / ops.maximum(total, 1e-30)
        # The mean of all ranks is taken. If a batch has fewer examples than ranks, each computes the whole of it.
        is_whole = share.examples == share.of
        # Larger gradients would overflow more often in float16, so there the mean is multiplied.
        if self.loss_scale is not None:
            return factor / self._size if is_whole else factor
        return factor if is_whole else factor * self._size

    def _rows(self, share: Share) -> AbstractContextManager[None]:
        """Context manager in which the part of a batch draws the random numbers of its examples."""
        if self._size == 1:
            return nullcontext()
        return ops.random.rows(share.first, share.examples, share.of if self.sync_batch_norm else None)

    def _average_ranks(self, loss: Any, grads: dict[str, Any], group: list[Share]) -> tuple[Any, dict[str, Any]]:
        """Loss and gradients of all ranks. The buffers that the step changed become their means."""
        overlap, self._overlap = self._overlap, None
        if overlap is not None:
            grads, buffers = overlap.finish(grads)
            loss = buffers.pop("")
        elif self._sharding.is_model_divided:
            grads = self._sharding.average(grads)
            loss, buffers = distributed.average_gradients((loss, self._changed_buffers(group)))
        else:
            loss, grads, buffers = distributed.average_gradients((loss, grads, self._changed_buffers(group)))
        self.model.assign(buffers)
        if self.loss_scale is not None:
            loss, grads = tree.map(lambda x: ops.multiply(x, self._size), (loss, grads))
        return loss, grads

    def _begin_overlap(self, group: list[Share], parameters: dict[str, Any], loss: Any) -> None:
        """Average gradients of parameters as they are computed, and the loss and buffers with them."""
        self._overlap = Overlap(parameters, {"": loss, **self._changed_buffers(group)})

    def _changed_buffers(self, group: list[Share]) -> dict[str, Any]:
        """Buffers that the step changed, in proportion to the examples of this rank, of which the mean is taken."""
        assert self._snapshot is not None
        before, parameters = self._snapshot.model, self.model.parameters()
        count = sum([share.examples for share in group])
        mean = sum([share.of if share.examples == share.of else share.of / self._size for share in group])
        return {
            path: ops.multiply(x, count / mean)
            for path, x in self.model.tensors().items()
            if path not in parameters and x is not before.get(path) and ops.is_float(x)
        }

    def _finish_step(self, loss: Any, size: Any, grads: dict[str, Any], batches: int = 1) -> None:
        """Update the model and count the step, in which so many batches were used."""
        with uninterrupted():
            is_finite = None
            if self.loss_scale is None:
                self.optimizer.update(self.model, grads)
            else:
                assert self._snapshot is not None
                is_finite = self.loss_scale.update(self.model, self.optimizer, grads, self._snapshot.model)
            self._eval_step(loss, self.metrics)
            self._count_step(loss, _counted(size, is_finite), batches)

    def _check_prediction(self, prediction: Any) -> None:
        """Warn if the first prediction of a run is not what the loss expects."""
        self._is_unchecked = False
        if self._expected is not None:
            self._expected.check(prediction)

    def _forward(self, x: Any) -> Any:
        """Prediction for a batch before its step, which leaves no trace in the model and the random stream."""
        stream, tensors = ops.random.get_state(), self.model.tensors()
        with self._in_mode(training=False):
            prediction = self._predict(self.model, x)
        self.model.assign(tensors)
        ops.random.set_state(stream)
        return prediction

    def _measure(self, prediction: Any, y: Any, *weights: Any) -> None:
        for metric in self.metrics:
            metric.update(y, prediction, *weights)

    def _count_step(self, loss: Any, size: Any, batches: int = 1) -> None:
        self._losses.append(loss)
        self._sizes.append(size)
        self.batch += 1
        self.step += 1
        self._position += batches
        self._seconds = time.perf_counter() - self._epoch_start
        self._pending, self._snapshot = list(self.callbacks), None

    def _roll_back(self) -> None:
        """Undo a step that did not finish, if there is one."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        with uninterrupted():
            ops.random.set_state(snapshot.stream)
            self.model.assign(snapshot.model)
            if self.loss_scale is not None:
                self.loss_scale.assign(snapshot.scale)
            if snapshot.optimizer is not None:
                self.optimizer.assign(snapshot.optimizer)
            for metric, count in zip(self.metrics, snapshot.measured, strict=True):
                metric.restore(metric.state()[:count])
            self._snapshot = None

    def _notify_pending(self) -> None:
        """Notify the pending callbacks of the last step, or of the end of the epoch.

        A callback that was interrupted stays pending, and is called again when the run continues. One that had returned
        does not: then the error was raised here, and no other frame is in its traceback.
        """
        if self.batch:
            loss = self._losses[-1]
            # Losses restored from a checkpoint are floats, and callbacks receive tensors.
            name, what = "on_step_end", ops.asarray(loss) if type(loss) is float else loss
        else:
            name, what = "on_epoch_end", self.history.epochs[-1]
        while self._pending:
            call, rest, stream = getattr(self._pending[0], name), self._pending[1:], ops.random.get_state()
            try:
                _, self._pending = call(self, what), rest
            except BaseException as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                    self._pending = rest
                else:
                    ops.random.set_state(stream)
                raise
        self._call("on_settled")

    def _predict(self, model: Any, x: Any) -> Any:
        return model(x) if self.precision is None else self.precision.apply(model, x)

    def _objective(self, model: Any, scale: LossScale | None, share: Any, x: Any, y: Any, *weights: Any) -> Any:
        """Value to differentiate, and the prediction; with a scale, the loss and the prediction.

        Args:
            scale: factor of the loss; ``None`` for 1.
            share: share of this batch in the loss of the step; ``None`` for 1.
        """
        parameters = {} if self._begin is None else model.parameters()
        prediction = self._predict(model, x)
        loss = self._loss(prediction, y, *weights)
        if share is not None:
            loss = ops.multiply(loss, ops.cast(share, ops.dtype(loss)))
        if self._begin is not None and ops.is_tensor(loss) and ops.is_float(loss):
            self._begin(parameters, loss)
        # Without metrics the prediction is not needed, so a compiler can drop it.
        needed = prediction if self._is_measured or self._is_unchecked else None
        return (loss, needed) if scale is None else (scale.multiply(loss), (loss, needed))

    def _train_step(
        self, model: Any, optimizer: Any, scale: LossScale | None, x: Any, y: Any, *weights: Any
    ) -> tuple[Any, Any, Any]:
        """Loss and prediction of a step, and whether it was not skipped; ``None`` for the last without a scale."""
        before = None if scale is None else model.tensors()
        # Without a compiler this is ordinary Python, so Ctrl-C is allowed until the state changes.
        with nullcontext() if self._is_traced else interruptible():
            (value, aux), grads = self._gradient(model, scale, None, x, y, *weights)
        if scale is None:
            optimizer.update(model, grads)
            return value, aux, None
        loss, prediction = aux
        return loss, prediction, scale.update(model, optimizer, grads, before)

    def _add_gradients(
        self,
        model: Any,
        scale: LossScale | None,
        share: Any,
        sums: dict[str, Any] | None,
        x: Any,
        y: Any,
        *weights: Any,
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Loss and prediction of one of the batches of a step, and the sums of the gradients including its own."""
        (value, aux), grads = self._gradient(model, scale, share, x, y, *weights)
        loss, prediction = (value, aux) if scale is None else aux
        if sums is not None:
            grads = {path: ops.add(sums[path], gradient) for path, gradient in grads.items()}
        return loss, prediction, grads

    def _eval_step(self, result: Any, metrics: Sequence[Metric]) -> None:
        """Evaluate the results of a step on a lazy engine, so that its graph does not grow from step to step."""
        if self._is_lazy:
            ops.eval(
                result,
                [metric.state()[-1:] for metric in metrics],
                self.model.tensors(),
                self.optimizer.tensors(),
                {} if self.loss_scale is None else self.loss_scale.tensors(),
            )

    def _figures(self, loss: Any) -> dict[str, float]:
        figures = {metric.name: metric.compute() for metric in self.metrics if metric.is_quick}
        return {"loss": float(loss), **figures, **self._scale_figures()}

    def _scale_figures(self) -> dict[str, float]:
        """Number of skipped steps so far, and the scale of the loss, if there is one."""
        if self.loss_scale is None:
            return {}
        return {"skipped_steps": self.loss_scale.skipped, "loss_scale": self.loss_scale.value}

    def _read_losses(self) -> list[float]:
        self._losses = _read_numbers(self._losses)
        return self._losses

    def _call(self, name: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, name)(self, *args)

    def _call_all(self, name: str, *args: Any) -> None:
        """Call a method of every callback, whatever the others raise; then raise the first error."""
        errors: list[Exception] = []
        for callback in self.callbacks:
            try:
                getattr(callback, name)(self, *args)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    @contextmanager
    def _on_model_backend(self) -> Iterator[None]:
        """Activate the engine of the model, and note its properties and the device of the model."""
        first = next(iter(self.model.tensors().values()), None)
        backend = backend_of(first) or current_backend()
        self._is_lazy = backend.is_lazy
        self._is_traced = has_compiler(backend)
        self._has_compiler = can_compile(backend)
        self._is_measured = bool(self.metrics)
        with activate(backend):
            self._device = None if first is None else ops.get_device(first)
            distributed.init()
            self._rank, self._size = distributed.rank(), distributed.size()
            yield

    @contextmanager
    def _in_mode(self, training: bool) -> Iterator[None]:
        """Set the mode of the model and restore it afterwards.

        If the model as a whole is in training mode, modules that were set to evaluation mode stay in it.
        """
        if not hasattr(self.model, "train"):
            yield
            return
        before = [(module, module.training) for module in self.model.modules()]
        is_chosen = training and getattr(self.model, "training", False)
        self.model.train(training)
        for module, mode in before if is_chosen else ():
            module.training = module.training and mode
        try:
            yield
        finally:
            for module, mode in before:
                module.training = mode


@contextmanager
def _restoring_stream() -> Iterator[None]:
    """Restore the random stream if the block raises, so that running it again draws the same numbers."""
    stream = ops.random.get_state()
    try:
        yield
    except BaseException:
        ops.random.set_state(stream)
        raise


def get_loss(loss: str | Callable[..., Any]) -> Callable[..., Any]:
    """Loss function of prediction, target and, optionally, weights, from a loss of ``ops``, its name, or a function.

    >>> get_loss("mse")([1.0, 2.0], [2.0, 4.0]).tolist()
    2.5
    >>> get_loss("mse")([1.0, 2.0], [2.0, 4.0], ops.asarray([3.0, 1.0])).tolist()
    1.75
    """
    if isinstance(loss, str):
        found: Any = vars(ops).get(loss)
        if not _is_loss(found):
            names = [name for name in dir(ops) if _is_loss(getattr(ops, name))]
            name = value_named(loss, names)
            if name is None:
                hint = value_hint(loss, names)
                raise ValueError(f"Trainer: loss must be a function or one of {', '.join(names)}, got {loss!r}{hint}")
            found = getattr(ops, name)
        loss = found
    if not callable(loss):
        raise TypeError(f"Trainer: loss must be a function or the name of one, got {written(loss)}")
    if not _is_loss(loss.func if isinstance(loss, partial) else loss):
        if _parameters(loss)[:2] == ["y_true", "y_pred"]:
            warn(
                "Trainer: loss must take the prediction first and then the target, got a function of y_true and "
                "y_pred, as in Keras; write lambda prediction, target: loss(target, prediction)"
            )
        return loss
    is_sum = isinstance(loss, partial) and loss.keywords.get("reduction") == "sum"

    def function(prediction: Any, target: Any, weights: Any = None) -> Any:
        if target is None:
            raise ValueError("Trainer: y must be given for this loss, got None")
        # The losses of ops take the target first.
        if weights is None:
            return loss(target, prediction)
        each: Any = loss(_without_padding(target, weights), prediction, reduction="none")
        # Weights are at least float32: sums overflow in half precision.
        weights = spread_weights(weights, each)
        total, weight = ops.sum(ops.multiply(each, weights)), ops.sum(weights)
        result = total if is_sum else ops.divide(total, ops.where(ops.equal(weight, 0), 1, weight))
        return ops.cast(result, ops.dtype(each))

    function.operation = loss  # type: ignore[attr-defined]
    return function


def _without_padding(target: Any, weights: Any) -> Any:
    """Targets, with zeros where the weight is 0: padding may be NaN or an invalid class."""
    target, sizes = ops.asarray(target), tuple(weights.shape)
    if sizes != tuple(target.shape)[: len(sizes)]:
        return target
    return ops.where(ops.equal(spread_weights(weights, target), 0), ops.zeros_like(target), target)


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Names of the parameters of a function; none if its signature is not available, as for some builtins."""
    try:
        return list(inspect.signature(function).parameters)
    except ValueError:
        return []


def _accepts_weights(loss: Callable[..., Any]) -> bool:
    """Whether a loss function accepts weights as a third argument."""
    try:
        inspect.signature(loss).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:
        # The signature of some builtins is not available.
        return True
    return True


def _is_loss(function: Any) -> bool:
    operation = getattr(function, "__operation__", None)
    return operation is not None and operation.category == "losses"


def _reset_copy(metric: Metric) -> Metric:
    """Metric with the same options and no batches."""
    new = object.__new__(type(metric))
    new.__dict__.update(metric.__dict__)
    new.reset()
    return new


def _counted(size: Any, is_finite: Any) -> Any:
    """Weight of the loss of a step in the mean of the epoch: zero if the step was skipped."""
    return size if is_finite is None else ops.where(is_finite, ops.asarray(size, dtype="float32"), 0.0)


def _read_numbers(losses: list[Any]) -> list[float]:
    """Numbers from tensors and numbers, with a single read for all tensors."""
    tensors = [loss for loss in losses if type(loss) not in (float, int)]
    read = iter(ops.stack(tensors).tolist() if tensors else [])  # emberlint: ignore[EMB202] all in one read
    return [loss if type(loss) in (float, int) else next(read) for loss in losses]


def _mean(losses: list[Any], sizes: list[Any]) -> float:
    weights = _read_numbers(sizes)
    # The loss of a batch of weight 0 may be NaN.
    total = math.fsum(loss * weight for loss, weight in zip(_read_numbers(losses), weights, strict=True) if weight)
    weight = math.fsum(weights)
    return total / weight if weight else math.nan


def _split(data: Arrays | Batches, fraction: float, validation_data: Any) -> tuple[Arrays, Batch]:
    """Data to train on and data to validate with, of which ``fraction`` of the examples are."""
    if validation_data is not None:
        raise ValueError(f"Trainer: validation_split must be 0 if validation_data is given, got {fraction}")
    if not isinstance(data, Arrays):
        raise ValueError(
            f"Trainer: validation_split must be 0 for an iterable of batches, got {fraction}; use validation_data"
        )
    return data.split(fraction)


@contextmanager
def _noting_validation() -> Iterator[None]:
    """Note on errors of the block that they are about the validation data."""
    try:
        yield
    except Exception as error:
        error.add_note("in validation_data of Trainer.fit")
        raise


def _is_batches(x: Any) -> bool:
    """Whether the input of ``predict`` is an iterable of batches: an iterator, a loader, or a list of tuples."""
    if isinstance(x, list):
        return bool(x) and isinstance(x[0], tuple)
    return not ops.is_tensor(x) and not hasattr(x, "__array__") and not isinstance(x, (Mapping, tuple, Column))


def _check_instance(value: Any, method: str, what: str) -> Any:
    """``value``; an error if it is a class or lacks ``method``."""
    if isinstance(value, type) or not hasattr(value, method):
        hint = f"; write {value.__name__}(...)" if isinstance(value, type) else torch_hint(value)
        raise TypeError(f"Trainer: {what}, got {written(value)}{hint}")
    return value


def _check_paths(name: str, expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Raise an error, in the words of ``load_state_dict``, unless paths and shapes are those expected."""
    sides = ("missing", expected.keys() - found.keys()), ("unexpected", found.keys() - expected.keys())
    complaints = [f"{what}: {', '.join(sorted(paths))}" for what, paths in sides if paths]
    wrong = [
        f"  {path}: {list(found[path].shape)} where the {name.partition(',')[0]} has {list(expected[path].shape)}"
        for path in sorted(expected.keys() & found.keys())
        if tuple(expected[path].shape) != tuple(found[path].shape)
    ]
    complaints += ["wrong shape:", *wrong] if wrong else []
    if complaints:
        raise ValueError("\n".join([f"Trainer: the checkpoint must be of this {name}", *complaints]))
