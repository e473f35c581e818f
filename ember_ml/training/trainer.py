"""The loop: batches in, updates of the model out, figures on the way."""

from __future__ import annotations

import inspect
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml import ops, transform, tree
from ember_ml.dtypes import written
from ember_ml.extend import activate, backend_of, current_backend, operation_of
from ember_ml.interrupts import interruptible, uninterrupted
from ember_ml.optim.optimizer import RATE, STEP
from ember_ml.training.callbacks import Callback
from ember_ml.training.data import Arrays, Batch, Batches, as_data, beside, size_of, whole
from ember_ml.training.history import History
from ember_ml.training.metrics import Metric, get_metric, spread_weights
from ember_ml.training.progress import Progress
from ember_ml.transform.leaves import has_compiler


class _Mark(NamedTuple):
    """What a step may have changed when it does not come to its end, as it was before."""

    stream: dict[str, int]
    model: dict[str, Any]
    # ``None`` where the engine writes into the state: there it is changed last of all.
    optimizer: dict[str, Any] | None
    # How many batches each metric had measured.
    measured: list[int]


class Trainer:
    """What fits a model to data: ``fit``, ``evaluate``, ``predict``.

    A step of training happens whole or not at all, whatever is raised in it and whenever Ctrl-C is pressed: ``save``
    after that writes a checkpoint of the last whole step.

    Args:
        model: a ``Module``, or anything callable with ``tensors``, ``assign`` and ``parameters``.
        loss: one of the losses of ``ops``, itself, its name or a ``partial`` of it; or a function of the prediction and
            the target (and of weights, if it is to be given any) that answers a number.
        optimizer: from ``ember_ml.optim``.
        metrics: metrics, or their names; or one.
        callbacks: from ``ember_ml.training``; or one.
        compile: compile the update. It is compiled anew for batches of another size, such as a last one.

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
    ) -> None:
        self.model = _instance(model, "tensors", "model must be a Module")
        self.loss = loss
        self.optimizer = _instance(optimizer, "update", "optimizer must be an ember_ml.optim.Optimizer instance")
        given = [metrics] if isinstance(metrics, (str, Metric)) else metrics
        self.metrics = [get_metric(metric) for metric in given or ()]
        names = [metric.name for metric in self.metrics]
        if len(set(names)) < len(names):
            raise ValueError(f"Trainer: metrics must have different names, got {', '.join(names)}")
        given_callbacks = [callbacks] if isinstance(callbacks, Callback) else callbacks
        required = "callbacks must be Callback instances"
        self.callbacks = [_instance(one, "on_epoch_end", required) for one in given_callbacks or ()]
        self.history = History()
        # How many epochs were done, and updates, in this one and in all.
        self.epoch = self.batch = self.step = 0
        self._epoch_seed: Any = None
        self._losses: list[Any] = []
        self._sizes: list[Any] = []
        self._batch_size: int | None = None
        self._is_stopped = False
        # What there is to go back to while a step is under way.
        self._mark: _Mark | None = None
        # The callbacks that have not heard of the last step yet, or of the end of the epoch.
        self._waiting: list[Callback] = []
        self._is_compiled = compile
        self._update = transform.compile(self._updated)
        self._gradient = transform.value_and_grad(self._objective, has_aux=True)

    @property
    def loss(self) -> Callable[..., Any]:
        """The loss, as a function of prediction, target and perhaps weights. A new one is given as to ``Trainer``."""
        return self._loss

    @loss.setter
    def loss(self, loss: str | Callable[..., Any]) -> None:
        self._loss = get_loss(loss)
        self._is_weighted = _takes_weights(self._loss)

    def fit(
        self,
        x: Any,
        y: Any = None,
        epochs: int = 1,
        batch_size: int = 32,
        validation_data: Any = None,
        shuffle: bool = True,
        verbose: int | None = None,
        resume: Any = None,
        sample_weight: Any = None,
    ) -> History:
        """The history of training the model for some epochs.

        Args:
            x: examples along the first axis: a host array, a tensor, a list, or a dictionary or tuple of those; or,
                without ``y``, an iterable of batches ``(x, y)`` or ``(x, y, weights)``.
            validation_data: ``(x, y)``, ``(x, y, weights)``, or an iterable of batches, to measure after every epoch.
            shuffle: take the examples of ``x`` in a new order every epoch, drawn from the portable random stream.
            verbose: 0 for nothing, 1 for a progress bar, 2 for a line for every epoch; by default a bar. There is none
                where the output is no terminal.
            resume: where ``Checkpoint`` wrote: go on from its last file, if there is one, until ``epochs`` are done in
                all. The file may come from another engine. One file of several can be named; it must be there.
            sample_weight: how much each example counts in the loss and the metrics; one for each example, or for each
                element of what is true, such as the steps of a sequence, 0 where there is nothing but padding. The
                loss is then the mean by weight, as in scikit-learn; with ``reduction="sum"``, the sum.
        """
        epochs = whole("epochs", epochs, 0)
        progress = Progress(epochs, verbose)
        with self._at_home():
            data = as_data(x, y, batch_size, self._device, sample_weight)
            self._go_back()
            self._batch_size = data.batch_size if isinstance(data, Arrays) else None
            self._is_stopped = False
            if resume is None or not self.restore(resume):
                with uninterrupted():
                    self.epoch = self.batch = self.step = 0
                    self.history, self._waiting = History(), []
                    self._begin_epoch()
            self.optimizer.init(self.model)
            self._call("on_fit_begin")
            try:
                if self._waiting:
                    self._tell()
                while self.epoch < epochs and not self._is_stopped:
                    self._fit_epoch(data, validation_data, batch_size, shuffle, progress)
            except BaseException:
                self._go_back()
                raise
            finally:
                self._call("on_fit_end")
        return self.history

    def evaluate(self, x: Any, y: Any = None, batch_size: int = 32, sample_weight: Any = None) -> dict[str, float]:
        """The loss and the metrics of the model on data, by name; ``x``, ``y`` and weights are as in ``fit``."""
        metrics = [_fresh(metric) for metric in self.metrics]
        losses: list[Any] = []
        sizes: list[Any] = []
        with self._at_home(), self._in_mode(training=False):
            data = as_data(x, y, batch_size, self._device, sample_weight)
            for batch, target, *weights in data.batches(shuffle=False):
                self._check_weights(weights)
                prediction = self.model(batch)
                losses.append(self.loss(prediction, target, *weights))
                sizes.append(_weight_of(batch, *weights))
                for metric in metrics:
                    metric.update(target, prediction, *weights)
                self._settle(losses[-1], metrics)
            return {"loss": _mean(losses, sizes), **{metric.name: metric.compute() for metric in metrics}}

    def predict(self, x: Any, batch_size: int = 32) -> Any:
        """What the model answers for ``x``: an array, or an iterable of batches; the answers are joined.

        A list is an array, whose items are examples, unless they are tuples: these are batches.
        """
        answers = []
        with self._at_home(), self._in_mode(training=False):
            data = Batches(x, self._device) if _is_batches(x) else Arrays(x, None, batch_size, self._device)
            for batch, *_ in data.batches(shuffle=False):
                answers.append(self.model(batch))
                self._settle(answers[-1], ())
            if not answers:
                raise ValueError("Trainer: x must have at least 1 batch to predict, got none")
            return tree.map(lambda *parts: ops.concatenate(list(parts)), *answers)

    def stop(self) -> None:
        """Nothing; training ends after this epoch."""
        self._is_stopped = True

    def save(self, directory: Any, keep: int | None = None) -> Path:
        """The path of a new checkpoint, numbered by the updates so far; see ``Checkpoint``."""
        with self._at_home():
            self._go_back()
            # A run that was interrupted before its first step has no state yet.
            self.optimizer.init(self.model)
        losses = self._read_losses()
        progress = {
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "seed": ops.random.get_state(),
            "epoch_seed": self._epoch_seed,
            "losses": losses,
            "sizes": _numbers(self._sizes),
            "batch_size": self._batch_size,
            "metrics": [metric.name for metric in self.metrics],
            "callbacks": [type(callback).__name__ for callback in self.callbacks],
            "waiting": [any(callback is one for one in self._waiting) for callback in self.callbacks],
            "history": {"epochs": self.history.epochs, "steps": self.history.steps},
        }
        content = {
            "model": self.model.tensors(),
            "optimizer": self.optimizer.tensors(),
            "metrics": [metric.state() for metric in self.metrics],
            "callbacks": [callback.state() for callback in self.callbacks],
            # Figures that callbacks add may be numbers of NumPy's, or tensors.
            "progress": json.dumps(progress, default=float),
        }
        return ops.save_checkpoint(directory, content, step=self.step, keep=keep)

    def restore(self, directory: Any) -> bool:
        """Whether there was a checkpoint; if so, everything is as it was when it was written.

        Args:
            directory: where checkpoints were written, or one of the files.
        """
        with self._at_home():
            try:
                content = ops.load_checkpoint(directory)
            except FileNotFoundError as error:
                if error.filename is not None:  # it was one file that was asked for
                    raise
                return False
            if not isinstance(content, dict) or "progress" not in content:
                raise ValueError(f"Trainer: directory must hold a checkpoint of a Trainer, got {str(directory)!r}")
            if self._device is not None:
                # What metrics and callbacks are given meets tensors that are there.
                content = tree.map(lambda x: ops.to_device(x, self._device) if ops.is_tensor(x) else x, content)
            _check_paths("model", self.model.tensors(), content["model"])
            self.optimizer.init(self.model)
            # A schedule may have taken the place of a rate since, or the other way round; and only those parameters
            # have a count of their own that need one.
            held = ({path: x for path, x in some.items() if path.rpartition(".")[2] not in (RATE, STEP)}
                    for some in (self.optimizer.tensors(), content["optimizer"]))  # fmt: skip
            _check_paths("optimiser, or other parameters were frozen", *held)
            progress = json.loads(content["progress"])
            self._check_progress(progress)
            tensors = beside(self.model.tensors(), content["model"])
            state = beside(self.optimizer.tensors(), content["optimizer"])
            saved = list(
                zip(
                    progress["callbacks"],
                    content["callbacks"],
                    progress.get("waiting", [False] * len(progress["callbacks"])),  # earlier versions know none
                    strict=True,
                )
            )
            with uninterrupted():
                self.model.assign(tensors)
                self.optimizer.assign(state)
                ops.random.set_state(progress["seed"])
                self.epoch, self.batch, self.step = progress["epoch"], progress["batch"], progress["step"]
                self._epoch_seed, self._mark, self._waiting = progress["epoch_seed"], None, []
                self._losses, self._sizes = progress["losses"], progress["sizes"]
                self.history = History(**progress["history"])
                for metric, measured in zip(self.metrics, content["metrics"], strict=True):
                    metric.restore(measured)
                for callback in self.callbacks:
                    # Those of one class in their order; one that is new begins anew.
                    place = next((i for i, (name, *_) in enumerate(saved) if name == type(callback).__name__), None)
                    if place is not None:
                        _, kept, is_waiting = saved.pop(place)
                        callback.restore(kept)
                        self._waiting += [callback] if is_waiting else []
        return True

    def _check_weights(self, weights: Sequence[Any]) -> None:
        if weights and not self._is_weighted:
            raise TypeError("Trainer: sample_weight must be None for a loss without a third argument for weights")

    def _check_progress(self, progress: dict[str, Any]) -> None:
        """Raise an error if a checkpoint is of a run that this one cannot go on with."""
        names = [metric.name for metric in self.metrics]
        if progress["metrics"] != names:
            raise ValueError(f"Trainer: metrics must be those of the checkpoint, {progress['metrics']}, got {names}")
        size = progress["batch_size"]
        if progress["batch"] and None not in (size, self._batch_size) and size != self._batch_size:
            raise ValueError(
                f"Trainer: batch_size must be that of the checkpoint, {size}, to go on within an epoch, got "
                f"{self._batch_size}"
            )

    def _fit_epoch(
        self, data: Arrays | Batches, validation_data: Any, batch_size: int, shuffle: bool, progress: Progress
    ) -> None:
        begin = time.perf_counter()
        self._call_epoch_begin()
        with self._in_mode(training=True), progress.epoch(self.epoch, len(data), self.batch) as told:
            batches = self._batches(data, shuffle)
            while (batch := self._take_step(batches)) is not None:
                loss = self._losses[-1]
                self._tell()
                told.step(size_of(batch[0]), partial(self._figures, loss))
            if not self._losses:
                raise ValueError(
                    "Trainer: x must have at least 1 batch to train on, got none; an iterator is empty after its "
                    "first epoch"
                )
            losses = self._read_losses()
            record = {"loss": _mean(losses, self._sizes), **{m.name: m.compute() for m in self.metrics}}
            if validation_data is not None:
                x, y, *weights = _parts(validation_data)
                found = self.evaluate(x, y, batch_size, *weights)
                record.update({f"val_{name}": value for name, value in found.items()})
            record["learning_rate"] = self.optimizer.learning_rate
            record["seconds"] = time.perf_counter() - begin
            told.end(record)
        with uninterrupted():
            self.history.steps += losses
            self.history.add(record)
            self.epoch += 1
            self._begin_epoch()
            self._waiting = list(self.callbacks)
        progress.line(self.epoch, record)
        self._tell()

    def _begin_epoch(self) -> None:
        self.batch, self._losses, self._sizes, self._epoch_seed, self._mark = 0, [], [], None, None
        for metric in self.metrics:
            metric.reset()

    def _call_epoch_begin(self) -> None:
        """Tell the callbacks that an epoch begins; what they draw of the random stream counts once."""
        stream = ops.random.get_state()
        with _drawing_again():
            self._call("on_epoch_begin")
            if self._epoch_seed is None:
                self._epoch_seed = ops.random.get_state()
                return
        # An epoch that goes on has drawn these numbers already.
        ops.random.set_state(stream)

    def _batches(self, data: Arrays | Batches, shuffle: bool) -> Iterator[Batch]:
        """The batches of this epoch that are still to come."""
        stream = ops.random.get_state()
        # The order is drawn as it was when the epoch began; then the stream goes on from where it had come to.
        if stream != self._epoch_seed:
            ops.random.set_state(self._epoch_seed)
        yield from data.batches(shuffle, self.batch, stream if self.batch else None)

    def _take_step(self, batches: Iterator[Batch]) -> Batch | None:
        """The next batch, after a step with it; ``None`` if there is none left."""
        self._mark = _Mark(
            ops.random.get_state(),
            self.model.tensors(),
            self.optimizer.tensors() if self._is_lazy else None,
            [len(metric._measured) for metric in self.metrics],
        )
        batch = next(batches, None)
        if batch is None:
            return None
        x, y, *weights = batch
        self._check_weights(weights)
        size = _weight_of(x, *weights)
        if self._is_compiled:
            with uninterrupted():
                loss, prediction = self._update(self.model, self.optimizer, x, y, *weights)
                try:
                    self._measure(prediction, y, *weights)
                    self._settle(loss, self.metrics)
                except BaseException:
                    if not self._is_lazy:
                        # The program has written into the state of the optimiser, so that the rest must follow.
                        self._count_step(loss, size)
                    raise
                self._count_step(loss, size)
        else:
            (loss, prediction), grads = self._gradient(self.model, x, y, *weights)
            self._measure(prediction, y, *weights)
            with uninterrupted():
                self.optimizer.update(self.model, grads)
                self._settle(loss, self.metrics)
                self._count_step(loss, size)
        return batch

    def _measure(self, prediction: Any, y: Any, *weights: Any) -> None:
        for metric in self.metrics:
            metric.update(y, prediction, *weights)

    def _count_step(self, loss: Any, size: Any) -> None:
        self._losses.append(loss)
        self._sizes.append(size)
        self.batch += 1
        self.step += 1
        self._waiting, self._mark = list(self.callbacks), None

    def _go_back(self) -> None:
        """Undo what was done of a step that has not come to its end, if there is one."""
        mark = self._mark
        if mark is None:
            return
        with uninterrupted():
            ops.random.set_state(mark.stream)
            self.model.assign(mark.model)
            if mark.optimizer is not None:
                self.optimizer.assign(mark.optimizer)
            for metric, count in zip(self.metrics, mark.measured, strict=True):
                metric.restore(metric.state()[:count])
            self._mark = None

    def _tell(self) -> None:
        """Tell the callbacks of the last step, or of the end of the epoch, that have not heard of it yet.

        One that was interrupted has not: it is told again when the run goes on.
        """
        if self.batch:
            loss = self._losses[-1]
            # A checkpoint holds numbers, and callbacks are given tensors.
            name, what = "on_step_end", ops.asarray(loss) if type(loss) is float else loss
        else:
            name, what = "on_epoch_end", self.history.epochs[-1]
        while self._waiting:
            with _drawing_again():
                getattr(self._waiting[0], name)(self, what)
                self._waiting = self._waiting[1:]
        self._call("on_settled")

    def _objective(self, model: Any, x: Any, y: Any, *weights: Any) -> Any:
        prediction = model(x)
        # Without metrics nobody asks for the prediction, and a compiler need not keep it.
        return self._loss(prediction, y, *weights), prediction if self._is_measured else None

    def _updated(self, model: Any, optimizer: Any, x: Any, y: Any, *weights: Any) -> tuple[Any, Any]:
        # An engine without a compiler runs this as it is.
        with nullcontext() if self._is_traced else interruptible():
            (loss, prediction), grads = self._gradient(model, x, y, *weights)
        optimizer.update(model, grads)
        return loss, prediction

    def _settle(self, answer: Any, metrics: Sequence[Metric]) -> None:
        """Have a lazy engine compute what there is, lest it put off more and more."""
        if self._is_lazy:
            ops.eval(
                answer, [metric.state()[-1:] for metric in metrics], self.model.tensors(), self.optimizer.tensors()
            )

    def _figures(self, loss: Any) -> dict[str, float]:
        return {"loss": float(loss), **{metric.name: metric.compute() for metric in self.metrics if metric.is_quick}}

    def _read_losses(self) -> list[float]:
        self._losses = _numbers(self._losses)
        return self._losses

    def _call(self, name: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, name)(self, *args)

    @contextmanager
    def _at_home(self) -> Iterator[None]:
        """The engine of the model is active."""
        first = next(iter(self.model.tensors().values()), None)
        home = backend_of(first) or current_backend()
        # Only a lazy engine has a function of its own that makes it compute.
        self._is_lazy = home.own(operation_of(ops.eval)) is not None
        self._is_traced = has_compiler(home)
        self._is_measured = bool(self.metrics)
        with activate(home):
            self._device = None if first is None else ops.get_device(first)
            yield

    @contextmanager
    def _in_mode(self, training: bool) -> Iterator[None]:
        """The model is in training, but for parts of it that somebody took out, or not, and then as it was."""
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
def _drawing_again() -> Iterator[None]:
    """A block that draws the same random numbers when it is run again because something was raised in it."""
    stream = ops.random.get_state()
    try:
        yield
    except BaseException:
        ops.random.set_state(stream)
        raise


def get_loss(loss: str | Callable[..., Any]) -> Callable[..., Any]:
    """A function of prediction, target and perhaps weights, from a loss of ``ops``, its name, or such a function.

    >>> get_loss("mse")([1.0, 2.0], [2.0, 4.0]).tolist()
    2.5
    >>> get_loss("mse")([1.0, 2.0], [2.0, 4.0], ops.asarray([3.0, 1.0])).tolist()
    1.75
    """
    if isinstance(loss, str):
        found = getattr(ops, loss, None)
        if found is None or not _is_loss(found):
            names = [name for name in dir(ops) if _is_loss(getattr(ops, name))]
            raise ValueError(f"Trainer: loss must be a function or one of {', '.join(names)}, got {loss!r}")
        loss = found
    if not callable(loss):
        raise TypeError(f"Trainer: loss must be a function or the name of one, got {written(loss)}")
    if not _is_loss(loss.func if isinstance(loss, partial) else loss):
        return loss
    is_sum = isinstance(loss, partial) and loss.keywords.get("reduction") == "sum"

    def function(prediction: Any, target: Any, weights: Any = None) -> Any:
        if target is None:
            raise ValueError("Trainer: y must be given for this loss, got None")
        # Those of ops take the truth first.
        if weights is None:
            return loss(target, prediction)
        each: Any = loss(_without_padding(target, weights), prediction, reduction="none")
        # Wide, as means are: half types have no place for sums.
        weights = spread_weights(weights, each)
        total, whole = ops.sum(ops.multiply(each, weights)), ops.sum(weights)
        answer = total if is_sum else ops.divide(total, ops.where(ops.equal(whole, 0), 1, whole))
        return ops.cast(answer, ops.dtype(each))

    return function


def _without_padding(target: Any, weights: Any) -> Any:
    """What is true, with zeros where there is no weight: NaN, or a class that is none, may stand there."""
    target, sizes = ops.asarray(target), tuple(weights.shape)
    if sizes != tuple(target.shape)[: len(sizes)]:
        return target
    return ops.where(ops.equal(spread_weights(weights, target), 0), ops.zeros_like(target), target)


def _takes_weights(loss: Callable[..., Any]) -> bool:
    """Whether a function of prediction and target takes weights too."""
    try:
        inspect.signature(loss).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:
        # Nothing is known of its arguments.
        return True
    return True


def _is_loss(function: Any) -> bool:
    operation = getattr(function, "__operation__", None)
    return operation is not None and operation.category == "losses"


def _fresh(metric: Metric) -> Metric:
    """A metric with the same options that has seen nothing."""
    new = object.__new__(type(metric))
    new.__dict__.update(metric.__dict__)
    new.reset()
    return new


def _numbers(losses: list[Any]) -> list[float]:
    """Tensors and numbers as numbers; all tensors are read at once."""
    tensors = [loss for loss in losses if type(loss) not in (float, int)]
    read = iter(ops.stack(tensors).tolist() if tensors else [])  # emberlint: ignore[EMB202] all in one read
    return [loss if type(loss) in (float, int) else next(read) for loss in losses]


def _mean(losses: list[Any], sizes: list[Any]) -> float:
    weights = _numbers(sizes)
    # A batch without weight does not count, whatever its loss.
    total = math.fsum(loss * weight for loss, weight in zip(_numbers(losses), weights, strict=True) if weight)
    whole = math.fsum(weights)
    return total / whole if whole else math.nan


def _weight_of(x: Any, weights: Any = None) -> Any:
    """How much a batch counts: the number of its examples, or the sum of their weights."""
    return size_of(x) if weights is None else ops.sum(ops.cast(weights, "float32"))


def _parts(data: Any) -> tuple[Any, ...]:
    """What is to be validated, true, and perhaps weighed, from a tuple, a list of arrays, or an iterable of batches."""
    is_pair = type(data) is tuple or (type(data) is list and all(hasattr(part, "shape") for part in data))
    return tuple(data) if is_pair and len(data) in (2, 3) else (data, None)


def _is_batches(x: Any) -> bool:
    """Whether something to predict comes in batches: an iterator, a loader, or a list of tuples."""
    if isinstance(x, list):
        return bool(x) and isinstance(x[0], tuple)
    return not ops.is_tensor(x) and not hasattr(x, "__array__") and not isinstance(x, (dict, tuple))


def _instance(value: Any, method: str, what: str) -> Any:
    """``value``, if it is an object with a method."""
    if isinstance(value, type) or not hasattr(value, method):
        hint = f"; write {value.__name__}(...)" if isinstance(value, type) else ""
        raise TypeError(f"Trainer: {what}, got {written(value)}{hint}")
    return value


def _check_paths(name: str, own: dict[str, Any], found: dict[str, Any]) -> None:
    lacking, unknown = own.keys() - found.keys(), found.keys() - own.keys()
    shapes = [p for p in own.keys() & found.keys() if tuple(own[p].shape) != tuple(found[p].shape)]
    complaints = [
        f"{what}: {', '.join(sorted(paths))}"
        for what, paths in (("lacking", lacking), ("unknown", unknown), ("of another shape", shapes))
        if paths
    ]
    if complaints:
        raise ValueError(f"Trainer: the checkpoint must be of this {name}, got {'; '.join(complaints)}")
