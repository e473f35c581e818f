"""The loop: batches in, updates of the model out, figures on the way."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from ember_ml import backend as backends
from ember_ml import ops, transform, tree
from ember_ml.contract import operation_of
from ember_ml.training.callbacks import Callback
from ember_ml.training.data import Arrays, Batches, as_data, size_of
from ember_ml.training.history import History
from ember_ml.training.metrics import Metric, get_metric
from ember_ml.training.progress import Progress


class Trainer:
    """What fits a model to data: ``fit``, ``evaluate``, ``predict``.

    Args:
        model: a ``Module``, or anything callable with ``tensors``, ``assign`` and ``parameters``.
        loss: one of the losses of ``ops``, itself, its name or a ``partial`` of it; or a function of the prediction and
            the target that answers a number.
        optimizer: from ``ember_ml.optim``.
        metrics: metrics, or their names.
        callbacks: from ``ember_ml.training``.
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
        metrics: Iterable[str | Metric] = (),
        callbacks: Sequence[Callback] = (),
        *,
        compile: bool = False,
    ) -> None:
        self.model = model
        self.loss = get_loss(loss)
        self.optimizer = optimizer
        self.metrics = [get_metric(metric) for metric in metrics]
        names = [metric.name for metric in self.metrics]
        if len(set(names)) < len(names):
            raise ValueError(f"two metrics have one name: {', '.join(names)}")
        self.callbacks = list(callbacks)
        self.history = History()
        # How many epochs were done, and updates, in this one and in all.
        self.epoch = self.batch = self.step = 0
        self._epoch_seed: Any = None
        self._losses: list[Any] = []
        self._sizes: list[int] = []
        self._is_stopped = False
        self._update = transform.compile(self._updated) if compile else self._updated
        self._gradient = transform.value_and_grad(self._objective, has_aux=bool(self.metrics))

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
    ) -> History:
        """The history of training the model for some epochs.

        Args:
            x: examples along the first axis: a host array, a tensor, a list, or a dictionary or tuple of those; or,
                without ``y``, an iterable of batches ``(x, y)``.
            validation_data: a pair ``(x, y)``, or an iterable of batches, to measure after every epoch.
            shuffle: take the examples of ``x`` in a new order every epoch, drawn from the portable random stream.
            verbose: 0 for nothing, 1 for a progress bar, 2 for a line for every epoch; by default a bar. There is none
                where the output is no terminal.
            resume: where ``Checkpoint`` wrote: go on from its last file, if there is one, until ``epochs`` are done in
                all. The file may come from another engine.
        """
        with self._at_home():
            data = as_data(x, y, batch_size, self._device)
            self.epoch = self.batch = self.step = 0
            self.history, self._epoch_seed, self._is_stopped = History(), None, False
            self._begin_epoch()
            if resume is not None:
                self.restore(resume)
            self.optimizer.init(self.model)
            progress = Progress(epochs, verbose)
            self._call("on_fit_begin")
            try:
                while self.epoch < epochs and not self._is_stopped:
                    self._fit_epoch(data, validation_data, batch_size, shuffle, progress)
            finally:
                self._call("on_fit_end")
        return self.history

    def evaluate(self, x: Any, y: Any = None, batch_size: int = 32) -> dict[str, float]:
        """The loss and the metrics of the model on data, by name; ``x`` and ``y`` are as in ``fit``."""
        metrics = [_fresh(metric) for metric in self.metrics]
        losses: list[Any] = []
        sizes: list[int] = []
        with self._at_home(), self._in_mode(training=False):
            for batch, target in as_data(x, y, batch_size, self._device).batches(shuffle=False):
                prediction = self.model(batch)
                losses.append(self.loss(prediction, target))
                sizes.append(size_of(batch))
                for metric in metrics:
                    metric.update(target, prediction)
                self._settle(losses[-1], metrics)
            return {"loss": _mean(losses, sizes), **{metric.name: metric.compute() for metric in metrics}}

    def predict(self, x: Any, batch_size: int = 32) -> Any:
        """What the model answers for ``x``: an array, or an iterable of batches; the answers are joined."""
        answers = []
        with self._at_home(), self._in_mode(training=False):
            is_array = not isinstance(x, Iterator)
            data = Arrays(x, None, batch_size, self._device) if is_array else Batches(x, self._device)
            for batch, _ in data.batches(shuffle=False):
                answers.append(self.model(batch))
                self._settle(answers[-1], ())
            if not answers:
                raise ValueError("there is nothing to predict")
            return tree.map(lambda *parts: ops.concatenate(list(parts)), *answers)

    def stop(self) -> None:
        """Nothing; training ends after this epoch."""
        self._is_stopped = True

    def save(self, directory: Any, keep: int | None = None) -> Path:
        """The path of a new checkpoint, numbered by the updates so far; see ``Checkpoint``."""
        losses = self._read_losses()
        progress = {
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "seed": ops.random.get_state(),
            "epoch_seed": self._epoch_seed,
            "losses": losses,
            "sizes": self._sizes,
            "history": {"epochs": self.history.epochs, "steps": self.history.steps},
        }
        content = {
            "model": self.model.tensors(),
            "optimizer": self.optimizer.tensors(),
            "metrics": [metric.state() for metric in self.metrics],
            "callbacks": [callback.state() for callback in self.callbacks],
            "progress": json.dumps(progress),
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
            except FileNotFoundError:
                return False
            _check_paths("model", self.model.tensors(), content["model"])
            self.optimizer.init(self.model)
            # A schedule may have taken the place of a rate since, or the other way round.
            held = ({path: x for path, x in some.items() if not path.endswith("learning_rate")}
                    for some in (self.optimizer.tensors(), content["optimizer"]))  # fmt: skip
            _check_paths("optimiser", *held)
            progress = json.loads(content["progress"])
            self.model.assign(_beside(self.model.tensors(), content["model"]))
            self.optimizer.assign(_beside(self.optimizer.tensors(), content["optimizer"]))
            ops.random.set_state(progress["seed"])
            self.epoch, self.batch, self.step = progress["epoch"], progress["batch"], progress["step"]
            self._epoch_seed = progress["epoch_seed"]
            self._losses, self._sizes = progress["losses"], progress["sizes"]
            self.history = History(**progress["history"])
            for metric, state in zip(self.metrics, content["metrics"], strict=True):
                metric.restore(state)
            for callback, state in zip(self.callbacks, content["callbacks"], strict=False):
                callback.restore(state)
        return True

    def _fit_epoch(
        self, data: Arrays | Batches, validation_data: Any, batch_size: int, shuffle: bool, progress: Progress
    ) -> None:
        begin = time.perf_counter()
        self._call("on_epoch_begin")
        with self._in_mode(training=True), progress.epoch(self.epoch, len(data), self.batch) as told:
            for x, y in self._batches(data, shuffle):
                loss, prediction = self._update(self.model, self.optimizer, x, y)
                for metric in self.metrics:
                    metric.update(y, prediction)
                self._settle(loss, self.metrics)
                self._losses.append(loss)
                self._sizes.append(size_of(x))
                self.batch += 1
                self.step += 1
                self._call("on_step_end", loss)
                told.step(self._sizes[-1], partial(self._figures, loss))
            if not self._losses:
                raise ValueError("there are no data to train on; an iterator is empty after its first epoch")
            losses = self._read_losses()
            record = {"loss": _mean(losses, self._sizes), **{m.name: m.compute() for m in self.metrics}}
            if validation_data is not None:
                found = self.evaluate(*_pair(validation_data), batch_size=batch_size)
                record.update({f"val_{name}": value for name, value in found.items()})
            record["learning_rate"] = self.optimizer.learning_rate
            record["seconds"] = time.perf_counter() - begin
            told.end(record)
        self.history.steps += losses
        self.history.add(record)
        self.epoch += 1
        self._begin_epoch()
        progress.line(self.epoch, record)
        self._call("on_epoch_end", record)

    def _begin_epoch(self) -> None:
        self.batch, self._losses, self._sizes, self._epoch_seed = 0, [], [], None
        for metric in self.metrics:
            metric.reset()

    def _batches(self, data: Arrays | Batches, shuffle: bool) -> Iterator[tuple[Any, Any]]:
        """The batches of this epoch that are still to come."""
        if self._epoch_seed is None:
            self._epoch_seed = ops.random.get_state()
            return data.batches(shuffle)
        # The order is drawn as it was when the epoch began; then the stream goes on from where it had come to.
        later = ops.random.get_state()
        ops.random.set_state(self._epoch_seed)
        rest = data.batches(shuffle, self.batch)
        first = next(rest, None)
        ops.random.set_state(later)
        return iter(()) if first is None else _chained(first, rest)

    def _objective(self, model: Any, x: Any, y: Any) -> Any:
        prediction = model(x)
        loss = self.loss(prediction, y)
        return (loss, prediction) if self.metrics else loss

    def _updated(self, model: Any, optimizer: Any, x: Any, y: Any) -> tuple[Any, Any]:
        value, grads = self._gradient(model, x, y)
        optimizer.update(model, grads)
        return value if self.metrics else (value, None)

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
        home = home_of(self.model)
        # Only a lazy engine has a function of its own that makes it compute.
        self._is_lazy = home.own(operation_of(ops.eval)) is not None
        with nullcontext() if backends.current() is home else backends.use_backend(home.name):
            first = next(iter(self.model.tensors().values()), None)
            self._device = None if first is None else ops.get_device(first)
            yield

    @contextmanager
    def _in_mode(self, training: bool) -> Iterator[None]:
        """The model is in training, or not, and then as it was."""
        if not hasattr(self.model, "train"):
            yield
            return
        before = [(module, module.training) for module in self.model.modules()]
        self.model.train(training)
        try:
            yield
        finally:
            for module, mode in before:
                module.training = mode


def get_loss(loss: str | Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """A function of prediction and target, from one of the losses of ``ops``, its name, or such a function.

    >>> get_loss("mse")([1.0, 2.0], [2.0, 4.0]).tolist()
    2.5
    """
    if isinstance(loss, str):
        found = getattr(ops, loss, None)
        if found is None or not _is_loss(found):
            raise ValueError(f"no loss {loss!r} in ember_ml.ops")
        loss = found
    if not callable(loss):
        raise TypeError(f"a loss is a function or its name, not {loss!r}")
    if not _is_loss(loss.func if isinstance(loss, partial) else loss):
        return loss
    # Those of ops take the truth first.
    return lambda prediction, target: loss(target, prediction)


def home_of(model: Any) -> backends.Backend:
    """The engine that the tensors of a model live on; the active one, if it has none."""
    for tensor in model.tensors().values():
        for backend in backends.loaded():
            if isinstance(tensor, backend.tensors):
                return backend
    return backends.current()


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
    tensors = [loss for loss in losses if type(loss) is not float]
    read = iter(ops.stack(tensors).tolist() if tensors else [])  # emberlint: ignore[EMB202] all in one read
    return [loss if type(loss) is float else next(read) for loss in losses]


def _mean(losses: list[Any], sizes: list[int]) -> float:
    total = math.fsum(loss * size for loss, size in zip(_numbers(losses), sizes, strict=True))
    return total / sum(sizes) if sizes else math.nan


def _pair(data: Any) -> tuple[Any, Any]:
    return data if type(data) is tuple and len(data) == 2 else (data, None)


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _beside(own: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What was found, on the devices of those in whose place it comes."""
    return {path: ops.to_device(x, ops.get_device(own[path])) if path in own else x for path, x in found.items()}


def _check_paths(name: str, own: dict[str, Any], found: dict[str, Any]) -> None:
    lacking, unknown = own.keys() - found.keys(), found.keys() - own.keys()
    shapes = [p for p in own.keys() & found.keys() if tuple(own[p].shape) != tuple(found[p].shape)]
    complaints = [
        f"{what}: {', '.join(sorted(paths))}"
        for what, paths in (("lacking", lacking), ("unknown", unknown), ("of another shape", shapes))
        if paths
    ]
    if complaints:
        raise ValueError(f"the checkpoint is of another {name}; {'; '.join(complaints)}")
