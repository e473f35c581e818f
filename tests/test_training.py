"""The trainer: data of every kind, figures, callbacks, checkpoints, and what is said when something is wrong."""

from __future__ import annotations

import builtins
import csv
import ctypes
import doctest
import gc
import importlib
import inspect
import io
import math
import os
import pkgutil
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interruption import Lines

import ember_ml
from ember_ml import ops, optim, training, tree
from ember_ml.backend import Backend
from ember_ml.nn import modules
from ember_ml.nn.tensor import EmberTensor
from ember_ml.testing.comparison import is_on_cpu
from ember_ml.training.data import Arrays, as_data
from ember_ml.training.trainer import get_loss
from ember_ml.transform import compilation

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4)).astype("float32")
Y = (X @ RNG.standard_normal((4, 3))).argmax(1)
LOSS = partial(ops.sparse_categorical_crossentropy, from_logits=True)


def trainer(*callbacks: training.Callback, metrics: Any = ("accuracy",), seed: int = 1, **options: Any) -> Any:
    ops.random.set_seed(seed)
    model = modules.Sequential(modules.Linear(4, 16), ops.relu, modules.Dropout(0.1), modules.Linear(16, 3))
    return training.Trainer(model, LOSS, optim.Adam(0.02), metrics, callbacks, **options)


def host(x: Any) -> Any:
    return ops.to_numpy(x)


MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (optim, training)
    for module in pkgutil.iter_modules(package.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(backend: Backend, name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_a_model_learns_and_is_measured(backend: Backend) -> None:
    mine = trainer(metrics=["accuracy", training.TopKAccuracy(2)])
    history = mine.fit(X, Y, epochs=12, batch_size=8, validation_data=(X[:20], Y[:20]))
    assert len(history) == 12
    assert len(history.steps) == 12 * 7
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    found = mine.evaluate(X, Y, batch_size=11)
    assert found["accuracy"] > 0.9
    prediction = host(mine.predict(X, batch_size=9))
    assert found["accuracy"] == pytest.approx(np.mean(prediction.argmax(1) == Y))
    rows = prediction - np.log(np.exp(prediction).sum(1, keepdims=True))
    assert found["loss"] == pytest.approx(-rows[np.arange(50), Y].mean(), abs=1e-5)
    last = mine.evaluate(X[:20], Y[:20])
    assert {f"val_{name}": value for name, value in last.items()} == pytest.approx(
        {name: history[name][-1] for name in ("val_loss", "val_accuracy", "val_top_2_accuracy")}, abs=1e-6
    )
    assert mine.model.training


def test_the_loss_of_an_epoch_counts_every_example_once(backend: Backend) -> None:
    mine = trainer()
    mine.optimizer.learning_rate = 0.0
    mine.model[2] = modules.Identity()
    history = mine.fit(X, Y, epochs=1, batch_size=16)
    assert history["loss"][0] == pytest.approx(mine.evaluate(X, Y)["loss"], abs=1e-5)


KINDS: dict[str, Any] = {
    "host arrays": lambda: (X, Y),
    "tensors": lambda: (ops.asarray(X), ops.asarray(Y)),
    "lists": lambda: (X.tolist(), Y.tolist()),
    "portable tensors": lambda: (EmberTensor(X), EmberTensor(Y)),
    "tensors of another engine": lambda: tuple(elsewhere(values) for values in (X, Y)),
    "a list of batches": lambda: ([(X[i : i + 8], Y[i : i + 8]) for i in range(0, 50, 8)],),
    "an iterable": lambda: (Source(),),
}


def elsewhere(values: Any) -> Any:
    """A tensor of an engine that is not the active one, if there is one."""
    others = [name for name in ember_ml.get_available_backends() if name != ember_ml.get_backend()]
    with ember_ml.use_backend(others[-1] if others else ember_ml.get_backend()):
        return ops.asarray(values)


class Source:
    """Batches, made anew for every epoch, of no known number."""

    def __iter__(self) -> Any:
        return ((X[i : i + 8], Y[i : i + 8]) for i in range(0, 50, 8))


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_every_kind(backend: Backend, kind: str) -> None:
    expected = trainer().fit(X, Y, epochs=2, batch_size=8, shuffle=False)
    history = trainer().fit(*KINDS[kind](), epochs=2, batch_size=8, shuffle=False)
    np.testing.assert_allclose(history.steps, expected.steps, rtol=0, atol=1e-6)


def test_inputs_in_containers(backend: Backend) -> None:
    class Both(modules.Module):
        def __init__(self) -> None:
            self.linear = modules.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.linear(ops.add(x["a"], x["b"]))

    mine = training.Trainer(Both(), LOSS, optim.SGD(0.1))
    history = mine.fit({"a": X, "b": X[::-1].copy()}, Y, epochs=3, batch_size=10)
    assert history["loss"][-1] < history["loss"][0]
    assert tuple(mine.predict({"a": X, "b": X}).shape) == (50, 3)


def test_orders_are_drawn_from_the_stream(backend: Backend) -> None:
    data = as_data(np.arange(20), np.arange(20), 6)
    ops.random.set_seed(3)
    first = [host(x).tolist() for x, _ in data.batches(shuffle=True)]
    assert [len(batch) for batch in first] == [6, 6, 6, 2]
    assert sorted(number for batch in first for number in batch) == list(range(20))
    again = [host(x).tolist() for x, _ in data.batches(shuffle=True)]
    assert first != again
    ops.random.set_seed(3)
    assert [host(x).tolist() for x, _ in data.batches(shuffle=True, skip=2)] == first[2:]
    assert first[0] != list(range(6))


def test_losses_by_name_operation_and_function(backend: Backend) -> None:
    true, found = ops.asarray([1.0, 2.0]), ops.asarray([2.0, 4.0])
    for loss in ("mse", "mean_squared_error", ops.mse, partial(ops.mse), lambda found, true: ops.mse(true, found)):
        assert float(get_loss(loss)(found, true)) == 2.5
    hinge = get_loss("hinge_loss")
    assert float(hinge(ops.asarray([3.0]), ops.asarray([1.0]))) == 0.0, "the truth is given as the truth"
    with pytest.raises(ValueError, match="Trainer: loss must be a function or one of binary_crossentropy, categor"):
        get_loss("relu")
    with pytest.raises(TypeError, match="3"):
        get_loss(3)  # type: ignore[arg-type]


def test_compiled_training_is_the_same(backend: Backend) -> None:
    histories = []
    for is_compiled in (False, True):
        mine = trainer(compile=is_compiled)
        mine.model[2] = modules.Identity()
        # A compiled call takes a key from the stream that orders are drawn from.
        histories.append(mine.fit(X[:48], Y[:48], epochs=2, batch_size=16, shuffle=False))
    np.testing.assert_allclose(histories[0].steps, histories[1].steps, rtol=0, atol=1e-4)
    assert histories[0]["accuracy"] == histories[1]["accuracy"]


def test_compiled_training_drops_other_neurons_every_time(backend: Backend) -> None:
    mine = trainer(compile=True)
    mine.model[2] = modules.Dropout(0.9)
    mine.optimizer.learning_rate = 0.0
    history = mine.fit(X[:16], Y[:16], epochs=6, batch_size=16, shuffle=False)
    assert len(set(history.steps)) > 3


def test_a_model_trains_at_home(backend: Backend) -> None:
    """Whatever engine is active, a model is trained on its own."""
    mine = trainer()
    for other in ember_ml.get_available_backends():
        with ember_ml.use_backend(other):
            mine.fit(X, Y, epochs=1)
            assert isinstance(mine.predict(X), backend.tensors)
    assert all(isinstance(x, backend.tensors) for x in mine.model.tensors().values())


def test_early_stopping_restores_the_best() -> None:
    stopping = training.EarlyStopping("val_accuracy", patience=2)
    mine = trainer(stopping)
    values = iter([0.5, 0.7, 0.6, 0.7, 0.9])
    kept = []

    class Fake(training.Callback):
        def on_epoch_end(self, trainer: Any, record: dict[str, float]) -> None:
            record["val_accuracy"] = next(values)
            kept.append(trainer.model.tensors())

    mine.callbacks.insert(0, Fake())
    history = mine.fit(X, Y, epochs=10, batch_size=10)
    assert len(history) == 4
    assert stopping.watch.best == 0.7
    for path, x in mine.model.tensors().items():
        np.testing.assert_array_equal(x, kept[1][path])
    with pytest.raises(ValueError, match="EarlyStopping: monitor must be one of loss, accuracy, learning_rate, se"):
        trainer(training.EarlyStopping("charm")).fit(X, Y)
    with pytest.raises(ValueError, match="mode"):
        training.EarlyStopping(mode="up")


@pytest.mark.parametrize("callback", [training.EarlyStopping, training.ReduceLROnPlateau])
def test_a_monitor_that_is_not_there_has_a_hint(backend: Backend, callback: Any) -> None:
    with pytest.raises(
        ValueError, match="got 'val_loss'; give fit validation_data for the metrics that start with val_"
    ):
        trainer(callback("val_loss")).fit(X, Y)
    for name, meant in (("val_acuracy", "val_accuracy"), ("los", "loss")):
        with pytest.raises(ValueError, match=f"got '{name}'; did you mean '{meant}'"):
            trainer(callback(name)).fit(X, Y, validation_data=(X, Y))


@pytest.mark.parametrize("name", ["acc", "val_acc"])
def test_a_monitor_has_the_names_that_metrics_have(backend: Backend, name: str) -> None:
    found = {}
    for monitor in (name, name.replace("acc", "accuracy")):
        stopping = training.EarlyStopping(monitor, patience=0)
        found[monitor] = trainer(stopping, metrics=["acc"]).fit(X, Y, epochs=9, validation_data=(X, Y)), stopping
    (first, one), (second, other) = found.values()
    assert first["accuracy"] == second["accuracy"]
    assert one.watch.best == other.watch.best > 0


@pytest.mark.parametrize(
    "as_labels", [np.array, list, lambda y: np.array(y, dtype=object)], ids=["text", "list", "object"]
)
def test_labels_that_are_text_must_be_encoded(backend: Backend, as_labels: Any) -> None:
    labels = as_labels(["cat", "dog"] * 25)
    expected = "Trainer: y must be numbers, got text such as 'cat'; encode the labels as integers"
    for call in (
        lambda: trainer().fit(X, labels),
        lambda: trainer().fit(X, Y, validation_data=(X, labels)),
        lambda: trainer().fit([(X, labels)]),
        lambda: trainer().evaluate(X, labels),
    ):
        with pytest.raises(TypeError, match=expected):
            call()
    with pytest.raises(TypeError, match="Trainer: x must be numbers, got text such as 'cat'; encode it as numbers"):
        trainer().fit(labels, Y)
    with pytest.raises(TypeError, match=r"Trainer: x\['b'\] must be numbers, got text such as 'cat'"):
        trainer().fit({"a": X, "b": labels}, Y)


def test_what_better_means() -> None:
    for monitor, values, expected in (
        ("val_loss", [3.0, 2.0, 2.5, float("nan"), 1.0], [True, True, False, False, True]),
        ("val_auc", [0.5, 0.6, 0.6], [True, True, False]),
        ("mse", [0.5, 0.6], [True, False]),
        ("val_rmse", [0.5, 0.6], [True, False]),
        ("reconstruction_loss", [0.5, 0.6], [True, False]),
        ("relative_error", [0.5, 0.6], [True, False]),
        ("lossless", [0.5, 0.6], [True, True]),
    ):
        watch = training.EarlyStopping(monitor).watch
        assert [watch.is_better({monitor: value}) for value in values] == expected
    assert training.EarlyStopping().watch.is_better({"loss": 1.0})


def test_an_infinity_is_no_better_than_another() -> None:
    class Scripted(training.Callback):
        def __init__(self, losses: list[float]) -> None:
            self.losses = losses

        def on_epoch_end(self, trainer: Any, record: dict[str, float]) -> None:
            record["watched"] = self.losses[trainer.epoch - 1]

    for mode, worst in (("min", math.inf), ("max", -math.inf)):
        stopping = training.EarlyStopping("watched", patience=2, mode=mode)
        assert len(trainer(Scripted([worst] * 9), stopping).fit(X, Y, epochs=9)) == 3
        stopping = training.EarlyStopping("watched", patience=2, mode=mode)
        losses = [math.nan, worst, 1.0, math.nan, 1.0, 0.0]
        assert len(trainer(Scripted(losses), stopping).fit(X, Y, epochs=6)) == 5
        assert stopping.watch.best == 1.0


def test_a_second_fit_begins_anew(tmp_path: Path) -> None:
    """What callbacks remember of one fit has no say in the next, unless that resumes it."""
    stopping = training.EarlyStopping("val_loss", patience=2)
    best = training.Checkpoint(tmp_path, monitor="val_loss")
    mine = trainer(stopping, best)
    values = iter([0.1, 0.2, 0.3, 0.9, 0.8, 0.85, 0.86])

    class Fake(training.Callback):
        def on_epoch_end(self, trainer: Any, record: dict[str, float]) -> None:
            record["val_loss"] = next(values)

    mine.callbacks.insert(0, Fake())
    assert len(mine.fit(X, Y, epochs=9, batch_size=50)) == 3
    assert len(mine.fit(X, Y, epochs=9, batch_size=50)) == 4
    assert stopping.watch.best == best.state() == 0.8


def test_a_loss_that_is_no_number_is_an_error(backend: Backend) -> None:
    bad = X.copy()
    bad[41] = np.nan
    quiet = trainer().fit(bad, Y, batch_size=10, shuffle=False)
    assert math.isnan(quiet["loss"][0])
    for every, row, update in ((1, 41, 5), (3, 21, 3), (2, 21, 4)):
        bad = X.copy()
        bad[row] = np.nan
        mine = trainer(training.FailOnNaN(every))
        with pytest.raises(FloatingPointError, match=rf"update {update}\b.*nan"):
            mine.fit(bad, Y, batch_size=10, shuffle=False, epochs=2)
        assert mine.step == update
    with pytest.raises(FloatingPointError, match=r"epoch 1.*nan"):
        trainer(training.FailOnNaN(every=100)).fit(bad, Y, batch_size=10)
    assert len(trainer(training.FailOnNaN()).fit(X, Y)) == 1


COUNTS = np.arange(50) % 3


@pytest.mark.parametrize("compile", [False, True])
def test_weights_count_examples_as_often(compile: bool, backend: Backend) -> None:
    """An example of weight 2 is the same as that example twice, in the loss, its gradient and the metrics."""
    # torch takes long to compile the same function.
    mine = [trainer(compile=compile and backend.name != "torch") for _ in range(3)]
    for one in mine:
        one.model[2] = modules.Identity()
    twice = np.repeat(X, COUNTS, 0), np.repeat(Y, COUNTS)
    expected = mine[0].fit(*twice, epochs=3, batch_size=200, shuffle=False)
    found = mine[1].fit(X, Y, epochs=3, batch_size=200, shuffle=False, sample_weight=COUNTS)
    for name in ("loss", "accuracy"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)
    batches = [(X[:20], Y[:20], COUNTS[:20]), (X[20:], Y[20:], COUNTS[20:])]
    measured = mine[1].evaluate(X, Y, 20, COUNTS)
    assert measured == pytest.approx(mine[1].evaluate(batches), rel=1e-5)
    assert measured == pytest.approx(mine[1].evaluate(*twice), rel=1e-5)
    held = mine[2].fit(batches, epochs=1, validation_data=(X, Y, COUNTS))
    assert held["val_loss"][0] == pytest.approx(mine[2].evaluate(X, Y, sample_weight=COUNTS)["loss"], rel=1e-6)


def test_weights_of_steps_and_of_own_losses(backend: Backend) -> None:
    steps, there = RNG.standard_normal((6, 5, 4)).astype("float32"), np.arange(5) < np.arange(1, 7)[:, None] - 1
    truth = RNG.integers(0, 3, (6, 5))
    mine = trainer()
    mine.model.eval()
    measured = mine.evaluate(steps, truth, sample_weight=there)
    assert measured == pytest.approx(mine.evaluate(steps[there], truth[there]), rel=1e-5)
    assert mine.fit(steps, truth, sample_weight=there, batch_size=1).epochs, "a batch may be padding alone"
    assert not any(math.isnan(loss) for loss in mine.history.steps)

    seen = []

    def own(prediction: Any, target: Any, weights: Any = None) -> Any:
        seen.append(weights is not None)
        return ops.mean(prediction)

    other = training.Trainer(mine.model, own, optim.SGD(0.1))
    other.fit(X, Y, sample_weight=COUNTS)
    other.fit(X, Y)
    assert seen == [True, True, False, False]
    with pytest.raises(ValueError, match=r"\(50, 4\), \(50,\), \(7,\)"):
        other.fit(X, Y, sample_weight=COUNTS[:7])
    with pytest.raises(ValueError, match=r"\(x, y, weights\)"):
        other.fit([(X, Y)], sample_weight=COUNTS)


def test_predictions_of_every_kind(backend: Backend) -> None:
    mine = trainer()
    expected = host(mine.predict(X))
    near = 0 if is_on_cpu(backend) else 1e-6  # a GPU multiplies batches of other sizes in another order

    class Loader:
        def __iter__(self) -> Any:
            return iter([[X[:20], Y[:20]], [X[20:], Y[20:]]])

    for data in (X.tolist(), iter([X[:7], X[7:]]), Loader(), [(X[:20], Y[:20]), (X[20:], Y[20:])], EmberTensor(X)):
        np.testing.assert_allclose(host(mine.predict(data)), expected, rtol=1e-6, atol=near)


def test_one_metric_and_one_callback(backend: Backend) -> None:
    mine = training.Trainer(modules.Linear(4, 3), LOSS, optim.Adam(), "accuracy", training.EarlyStopping())
    history = mine.fit(X, Y, validation_data=[X, Y])
    assert {"accuracy", "val_accuracy"} <= set(history.names())
    for options, hint in (
        ({"optimizer": 0.1}, "optimizer must .* got 0.1"),
        ({"optimizer": optim.Adam}, r"write Adam\(...\)"),
        ({"optimizer": optim.Adam(), "callbacks": [training.EarlyStopping]}, r"write EarlyStopping\(...\)"),
        ({"optimizer": optim.Adam(), "callbacks": [print]}, "callbacks must be Callback instances"),
        ({"optimizer": optim.Adam(), "metrics": [training.Accuracy]}, r"write Accuracy\(\)"),
    ):
        with pytest.raises(TypeError, match=hint):
            training.Trainer(modules.Linear(4, 3), LOSS, **options)


def test_a_checkpoint_takes_the_dtype_of_the_model(backend: Backend, tmp_path: Path) -> None:
    trainer(training.Checkpoint(tmp_path)).fit(X, Y)
    again = trainer()
    again.model.astype("float64")
    assert again.restore(tmp_path)
    assert {ops.dtype(x).name for x in again.model.tensors().values()} == {"float64"}
    assert {ops.dtype(x).name for p, x in again.optimizer.tensors().items() if "weight" in p} == {"float64"}
    again.fit(X, Y, resume=tmp_path, epochs=2)
    with pytest.raises(ValueError, match=r"Trainer: metrics must be those of the checkpoint, \['accuracy'\], got"):
        trainer(metrics=["accuracy", "auc"]).restore(tmp_path)


def test_the_best_of_a_checkpoint_takes_the_dtype_of_the_model(backend: Backend, tmp_path: Path) -> None:
    class Falling(training.Callback):
        def on_epoch_end(self, trainer: Any, record: dict[str, float]) -> None:
            record["merit"] = -float(trainer.epoch)

    def parts() -> tuple[training.Callback, ...]:
        return Falling(), training.EarlyStopping("merit", patience=2), training.Checkpoint(tmp_path)

    trainer(*parts()).fit(X, Y, epochs=2)
    later = trainer(*parts())
    later.model.astype("float64")
    assert len(later.fit(X, Y, epochs=9, resume=tmp_path)) == 3
    assert {ops.dtype(x).name for x in later.model.tensors().values()} == {"float64"}


def test_a_file_that_is_no_checkpoint(tmp_path: Path) -> None:
    modules.Linear(4, 3).save(tmp_path / "checkpoint-00000001.safetensors")
    with pytest.raises(ValueError, match="Trainer: directory must hold a checkpoint of a Trainer, got "):
        trainer().restore(tmp_path)


def test_weights_go_on_after_a_resume(tmp_path: Path) -> None:
    whole = trainer().fit(X, Y, epochs=3, batch_size=10, sample_weight=COUNTS)
    trainer(training.Checkpoint(tmp_path, every=7)).fit(X, Y, epochs=2, batch_size=10, sample_weight=COUNTS)
    rest = trainer(seed=9).fit(X, Y, epochs=3, batch_size=10, sample_weight=COUNTS, resume=tmp_path)
    assert rest["loss"] == whole["loss"]
    assert rest["accuracy"] == whole["accuracy"]


def test_an_empty_iterator_is_no_validation(backend: Backend) -> None:
    """A generator gives its batches once: figures that are not there must not be taken for measured ones."""
    with pytest.raises(ValueError, match="Trainer: x must have at least 1 batch, got none; an iterator is empty a"):
        trainer().fit(X, Y, epochs=2, validation_data=iter([(X, Y)]))
    with pytest.raises(ValueError, match="Trainer: x must have at least 1 batch, got none; an iterator is empty a"):
        trainer().evaluate(iter([]))
    with pytest.raises(ValueError, match="x must have at least 1 example"):
        trainer().evaluate(X[:0], Y[:0])
    with pytest.raises(ValueError, match="x must have at least 1 example"):
        trainer().fit(X, Y, validation_data=(X[:0], Y[:0]))


def test_checkpoints_are_kept_and_taken_up(backend: Backend, tmp_path: Path) -> None:
    trainer(training.Checkpoint(tmp_path / "epochs", keep=2)).fit(X, Y, epochs=4, batch_size=25)
    assert sorted(p.name for p in (tmp_path / "epochs").iterdir()) == [
        "checkpoint-00000006.safetensors", "checkpoint-00000008.safetensors"
    ]  # fmt: skip
    best = trainer(training.Checkpoint(tmp_path / "best", keep=1, monitor="accuracy"))
    history = best.fit(X, Y, epochs=6, batch_size=25)
    top = int(np.argmax(history["accuracy"])) + 1
    assert [p.name for p in (tmp_path / "best").iterdir()] == [f"checkpoint-{2 * top:08d}.safetensors"]
    again = trainer(seed=5)
    assert again.restore(tmp_path / "best")
    assert (again.epoch, again.step, len(again.history)) == (top, 2 * top, top)
    assert not trainer().restore(tmp_path / "nothing")
    fresh = trainer(seed=5).fit(X, Y, epochs=1, resume=tmp_path / "nothing")
    assert len(fresh) == 1
    done = trainer().fit(X, Y, epochs=4, batch_size=25, resume=tmp_path / "epochs")
    assert len(done) == 4, "nothing is left to do"


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    trainer(training.Checkpoint(tmp_path)).fit(X, Y)
    small = training.Trainer(modules.Sequential(modules.Linear(4, 3)), LOSS, optim.Adam())
    with pytest.raises(ValueError, match=r"Trainer: the checkpoint must be of this model\nunexpected: 3\.bias, 3"):
        small.restore(tmp_path)
    wide = training.Trainer(
        modules.Sequential(modules.Linear(4, 8), ops.relu, modules.Identity(), modules.Linear(8, 3)), LOSS, "adam"
    )
    with pytest.raises(
        ValueError,
        match=r"must be of this model\nwrong shape:\n  0\.bias: \[16\] where the model has \[8\]\n  0\.weight: ",
    ):
        wide.restore(tmp_path)
    other = trainer()
    other.optimizer = optim.SGD(0.1, 0.9)
    with pytest.raises(ValueError, match="optimizer"):
        other.restore(tmp_path)
    again = trainer()
    again.optimizer = optim.Adam(optim.schedules.constant(0.5))
    assert again.restore(tmp_path)
    assert again.optimizer.learning_rate == 0.5


def test_callbacks_go_on_after_a_resume(tmp_path: Path) -> None:
    def parts(folder: Path) -> tuple[training.Callback, ...]:
        stopping = training.EarlyStopping("loss", patience=100)
        return stopping, training.CSVLogger(folder / "log.csv"), training.Checkpoint(folder, every=6)

    whole = parts(tmp_path / "whole")
    trainer(*whole).fit(X, Y, epochs=3, batch_size=10, validation_data=(X, Y))
    first = parts(tmp_path / "part")
    trainer(*first).fit(X, Y, epochs=2, batch_size=10, validation_data=(X, Y))
    second = parts(tmp_path / "part")
    trainer(*second, seed=7).fit(X, Y, epochs=3, batch_size=10, validation_data=(X, Y), resume=tmp_path / "part")
    assert second[0].state()["best"] == whole[0].state()["best"]
    logs = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(text.splitlines())]
        for text in ((tmp_path / folder / "log.csv").read_text() for folder in ("whole", "part"))
    ]
    assert logs[0] == logs[1]
    assert list(logs[0][0]) == ["epoch", "loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"]


class Averages(training.Callback):
    """Running means of the parameters."""

    def __init__(self) -> None:
        self.means: dict[str, Any] = {}

    def on_step_end(self, trainer: Any, loss: Any) -> None:
        new = trainer.model.parameters()
        self.means = {path: ops.lerp(self.means.get(path, x), x, 0.25) for path, x in new.items()}

    def state(self) -> Any:
        return self.means

    def restore(self, state: Any) -> None:
        self.means = state


@pytest.mark.parametrize("every", [None, 7])
def test_a_checkpoint_may_precede_other_callbacks(every: int | None, backend: Backend, tmp_path: Path) -> None:
    """It holds their state after the step or the epoch, not before."""

    def parts() -> tuple[training.Callback, ...]:
        stopping, best = training.EarlyStopping("loss"), training.Checkpoint(tmp_path / "best", monitor="accuracy")
        return training.Checkpoint(tmp_path / "run", every=every), Averages(), stopping, best

    def known(averages: Any, stopping: Any, best: Any) -> Any:
        return {p: host(x) for p, x in averages.means.items()}, stopping.watch.best, stopping.waited, best.state()

    first, again = parts(), parts()
    trainer(*first).fit(X, Y, epochs=3, batch_size=8)
    assert trainer(*again, seed=5).restore(tmp_path / "run")
    expected, *figures = known(*first[1:])
    found, *others = known(*again[1:])
    assert found.keys() == expected.keys()
    for path, x in found.items():
        np.testing.assert_array_equal(x, expected[path])
    assert figures == others


def test_a_checkpoint_of_the_last_step_of_an_epoch_holds_the_epoch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"epochs": 2, "batch_size": 25, "validation_data": (X, Y)}
    whole = trainer(training.Checkpoint(tmp_path, every=1)).fit(X, Y, **options)
    again = trainer(training.Checkpoint(tmp_path, every=1)).fit(X, Y, **options, resume=tmp_path, verbose=2)
    assert capsys.readouterr().out == "", "no epoch is left"
    assert again.epochs == whole.epochs
    assert len(list(tmp_path.iterdir())) == 4


def test_an_epoch_that_was_cut_short_goes_on_with_more_steps(tmp_path: Path) -> None:
    whole = trainer().fit(X, Y, max_steps=7, batch_size=10)
    trainer(training.Checkpoint(tmp_path, every=3)).fit(X, Y, max_steps=3, batch_size=10)
    rest = trainer(seed=9).fit(X, Y, max_steps=7, batch_size=10, resume=tmp_path)
    assert rest.steps == whole.steps


def test_the_seconds_of_an_epoch_are_those_before_a_resume_too(tmp_path: Path) -> None:
    slow = training.LambdaCallback(on_step_end=lambda trainer, loss: time.sleep(0.05))
    options: dict[str, Any] = {"batch_size": 10}
    mine = trainer(slow, training.Checkpoint(tmp_path, every=4))
    assert mine.fit(X, Y, **options)["seconds"][0] >= 0.25
    assert trainer().fit(X, Y, **options, resume=tmp_path)["seconds"][0] >= 0.15


def test_a_run_that_was_stopped_is_over(backend: Backend, tmp_path: Path) -> None:
    class Falling(training.Callback):
        def on_epoch_end(self, trainer: Any, record: dict[str, float]) -> None:
            record["merit"] = -float(trainer.epoch)

    def run(patience: int, **options: Any) -> Any:
        stopping = training.EarlyStopping("merit", patience=patience)
        mine = trainer(Falling(), training.Checkpoint(tmp_path), stopping)
        mine.fit(X, Y, epochs=9, **options)
        return mine

    whole = run(2)
    assert len(whole.history) == 3
    later = run(2, resume=tmp_path)
    assert len(later.history) == 3
    for path, x in whole.model.tensors().items():
        np.testing.assert_array_equal(host(later.model.tensors()[path]), host(x))
    assert len(run(4, resume=tmp_path).history) == 5
    mine = trainer(Falling(), training.EarlyStopping("merit", patience=0))
    assert [len(mine.fit(X, Y, epochs=9)) for _ in range(2)] == [2, 2], "a second run begins anew"


class Watched(training.Callback):
    """Figures of the epochs, which are not measured."""

    def __init__(self, *figures: float) -> None:
        self.figures = figures

    def on_epoch_end(self, trainer: Any, record: dict[str, float]) -> None:
        record["val_loss"] = self.figures[trainer.epoch - 1]


class TestWhyTrainingEnds:
    FIGURES = 3.0, 2.0, 2.5, 2.0, 1.0, 1.5

    def run(self, capsys: pytest.CaptureFixture[str], *callbacks: Any, epochs: int = 6, **options: Any) -> list[str]:
        trainer(Watched(*self.FIGURES), *callbacks).fit(X[:4], Y[:4], epochs=epochs, **options)
        return capsys.readouterr().out.splitlines()

    @pytest.mark.parametrize("verbose", [1, 2])
    def test_early_stopping_is_shown(self, capsys: pytest.CaptureFixture[str], verbose: int) -> None:
        lines = self.run(capsys, training.EarlyStopping(patience=2), verbose=verbose)
        assert lines[-1] == (
            "early stopping after epoch 4: val_loss did not improve for 2 epochs; "
            "the parameters of epoch 2 are restored"
        )
        assert len(lines) == (5 if verbose == 2 else 1)
        lines = self.run(capsys, training.EarlyStopping(patience=0, restore_best=False), verbose=verbose)
        assert lines[-1] == "early stopping after epoch 3: val_loss did not improve for 1 epoch"

    def test_it_is_not_without_output_or_if_the_run_ends_otherwise(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run(capsys, training.EarlyStopping(patience=2), verbose=0) == []
        assert self.run(capsys, training.EarlyStopping(patience=2)) == [], "there is no terminal"
        assert self.run(capsys, training.EarlyStopping(patience=2), epochs=3, verbose=1) == []

    def test_a_resumed_run_says_what_to_do(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        stopping = partial(training.EarlyStopping, patience=2)
        self.run(capsys, stopping(), training.Checkpoint(tmp_path))
        assert self.run(capsys, stopping(), resume=tmp_path, verbose=2) == [
            "the run was stopped early after epoch 4: val_loss did not improve for 2 epochs; "
            "resume it with patience > 2, or without EarlyStopping, to go on"
        ]
        assert len(self.run(capsys, stopping(patience=3), resume=tmp_path, verbose=2)) == 2
        assert len(self.run(capsys, resume=tmp_path, verbose=2)) == 2

    def test_a_reason_of_your_own(self, capsys: pytest.CaptureFixture[str]) -> None:
        stopping = training.LambdaCallback(on_step_end=lambda trainer, loss: trainer.stop("the time is up"))
        lines = self.run(capsys, stopping, verbose=2, batch_size=2)
        assert len(lines) == 2
        assert lines[-1] == "the time is up"


def test_checkpoints_of_another_run_are_noticed(backend: Backend, tmp_path: Path) -> None:
    """They have higher numbers, so that a resume would take them for the latest."""
    trainer(training.Checkpoint(tmp_path)).fit(X, Y, epochs=3)
    trainer(training.Checkpoint(tmp_path)).fit(X, Y, epochs=4, resume=tmp_path)
    with pytest.warns(UserWarning, match=r"another run, up to checkpoint-00000008.*not from checkpoint-00000002"):
        trainer(training.Checkpoint(tmp_path)).fit(X, Y)
    trainer(training.Checkpoint(tmp_path / "own")).fit(X, Y)


class Noisy:
    """Batches in a new order every time, each with noise: both from the portable stream."""

    def __iter__(self) -> Any:
        order = host(ops.random.permutation(50))
        for begin in range(0, 50, 12):
            rows = order[begin : begin + 12]
            yield ops.add(X[rows], ops.random.normal((len(rows), 4), stddev=0.1)), Y[rows]


@pytest.mark.parametrize("stop", [1, 5, 7, 10])
def test_a_loader_that_draws_goes_on_as_it_would_have(stop: int, backend: Backend, tmp_path: Path) -> None:
    class Interrupted(training.Callback):
        def on_settled(self, trainer: Any) -> None:
            if trainer.step == stop:
                raise KeyboardInterrupt

    whole = trainer().fit(Noisy(), epochs=3)
    with pytest.raises(KeyboardInterrupt):
        trainer(training.Checkpoint(tmp_path, every=1), Interrupted()).fit(Noisy(), epochs=3)
    assert trainer(seed=5).fit(Noisy(), epochs=3, resume=tmp_path).steps == whole.steps


def test_a_run_that_was_interrupted_in_its_first_update(backend: Backend, tmp_path: Path) -> None:
    mine = trainer()
    good = mine.loss

    def loss(prediction: Any, target: Any) -> Any:
        raise KeyboardInterrupt

    mine.loss = loss
    with pytest.raises(KeyboardInterrupt):
        mine.fit(Noisy(), epochs=2)
    mine.save(tmp_path)
    mine.loss = good
    assert mine.fit(Noisy(), epochs=2, resume=tmp_path).steps == trainer().fit(Noisy(), epochs=2).steps


# What takes part in a step.
STEP_FILES = (
    "training/trainer.py", "training/metrics.py", "training/data.py", "training/history.py", "optim/optimizer.py",
    "optim/adam.py", "numpy/optim.py", "torch/optim.py", "ember_ml/interrupts.py",
)  # fmt: skip


def small(*callbacks: training.Callback, **options: Any) -> Any:
    """A trainer of a small model that has buffers and draws random numbers."""
    ops.random.set_seed(1)
    model = modules.Sequential(modules.Linear(4, 3), modules.BatchNorm(3), ops.tanh, modules.Dropout(0.2))
    model = modules.Sequential(model, modules.Linear(3, 3))
    return training.Trainer(model, LOSS, optim.Adam(0.05), ["accuracy"], callbacks, **options)


def fit_small(mine: Any, **options: Any) -> Any:
    return mine.fit(X[:8], Y[:8], epochs=2, batch_size=4, validation_data=(X[8:12], Y[8:12]), verbose=0, **options)


def result_of(mine: Any) -> dict[str, Any]:
    """What a run has come to, to the last bit."""
    tensors = {**mine.model.tensors(), **{f"optimizer {k}": x for k, x in mine.optimizer.tensors().items()}}
    tensors |= {f"mean {k}": x for one in mine.callbacks if isinstance(one, Averages) for k, x in one.means.items()}
    figures = [{k: v for k, v in one.items() if k != "seconds"} for one in mine.history.epochs]
    found = {path: host(x).tolist() for path, x in tensors.items()}
    return {**found, "figures": figures, "losses": mine.history.steps, "stream": ops.random.get_state()}


def assert_whole(mine: Any, folder: Path, expected: dict[str, Any], where: Any) -> None:
    """What an interrupted run saves is the state of one step, with which it goes on as it would have."""
    assert mine.step == mine.optimizer.step, where
    assert mine.step == 2 * mine.epoch + mine.batch, where
    assert len(mine.history.steps) == 2 * mine.epoch, where
    mine.save(folder)
    ops.random.set_seed(9)
    fit_small(mine, resume=folder)
    assert result_of(mine) == expected, where


@pytest.mark.usefixtures("traced_only")
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_a_step_is_whole_whenever_a_signal_comes(
    compile: bool, backend: Backend, tmp_path: Path, one_in: Callable[[int], int]
) -> None:
    mine = small(Averages(), compile=compile)
    # Every run begins with this, so that a compiled step is compiled once.
    mine.save(tmp_path / "begin")
    fit_small(mine, resume=tmp_path / "begin")
    expected = result_of(mine)
    assert expected["losses"] == fit_small(small(Averages(), compile=compile)).steps
    files = ("training/trainer.py", "transform/compilation.py") if compile else STEP_FILES
    counting = Lines(*files)
    with counting:
        fit_small(mine, resume=tmp_path / "begin")
    assert len(counting.seen) > 150
    # Engines begin at other lines, so that together they are interrupted at most of them.
    step = one_in(4)
    begin = ember_ml.get_available_backends().index(backend.name) % step
    for number, (at, count) in enumerate(list(counting.seen.items())[begin::step]):
        # The first time is often that before the first step.
        nth = (count + 1) // 2
        with pytest.raises(KeyboardInterrupt), Lines(*files, at=at, nth=nth):
            fit_small(mine, resume=tmp_path / "begin")
        assert_whole(mine, tmp_path / str(number), expected, (at, nth))


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_from_outside_leaves_a_whole_step(backend: Backend, tmp_path: Path) -> None:
    # What earlier tests left need not be searched each time.
    gc.collect()
    gc.freeze()
    mine = small(Averages())
    mine.save(tmp_path / "begin")
    # The first run takes longer on engines that compile.
    fit_small(mine, resume=tmp_path / "begin")
    begin = time.perf_counter()
    fit_small(mine, resume=tmp_path / "begin")
    expected, whole = result_of(mine), time.perf_counter() - begin
    interrupted = 0
    for number in range(20):
        timer = threading.Timer(whole * (number + 0.5) / 20, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            fit_small(mine, resume=tmp_path / "begin")
            timer.join()
        except KeyboardInterrupt:
            interrupted += 1
        # A signal may also come between the opening of the checkpoint and the block that closes it.
        gc.collect()
        assert_whole(mine, tmp_path / str(number), expected, number)
    assert interrupted > 5


def test_a_signal_right_after_a_callback_does_not_repeat_it(tmp_path: Path) -> None:
    """Python checks for signals when a call has returned, before its caller goes on."""
    callback, steps = training.Callback(), []
    # No frame of Python, in which the signal would be noticed earlier.
    interrupt: Any = ctypes.PyDLL(None).PyErr_SetInterrupt
    interrupt.argtypes, interrupt.restype = [ctypes.py_object] * 2, None
    callback.on_step_end = interrupt  # type: ignore[method-assign]
    mine = small(callback)
    with pytest.raises(KeyboardInterrupt):
        fit_small(mine)
    mine.save(tmp_path)
    callback.on_step_end = lambda trainer, loss: steps.append(trainer.step)  # type: ignore[method-assign]
    fit_small(mine, resume=tmp_path)
    assert steps == [2, 3, 4]


def test_a_second_signal_does_not_keep_a_step_from_being_undone(backend: Backend, tmp_path: Path) -> None:
    mine = small()
    mine.save(tmp_path / "begin")
    fit_small(mine, resume=tmp_path / "begin")
    expected = result_of(mine)
    good = mine.loss

    def interrupting(prediction: Any, target: Any) -> Any:
        if mine.step == 1:
            raise KeyboardInterrupt
        return good(prediction, target)

    files = ("training/trainer.py",)
    counting = Lines(*files)
    mine.loss = interrupting
    with pytest.raises(KeyboardInterrupt), counting:
        fit_small(mine, resume=tmp_path / "begin")
    code, first = inspect.getsourcelines(training.Trainer._roll_back)
    places = [at for at in counting.seen if first <= at[1] < first + len(code)]
    assert len(places) > 5
    for number, at in enumerate(places):
        mine.loss = interrupting
        with pytest.raises(KeyboardInterrupt), Lines(*files, at=at, nth=counting.seen[at]):
            fit_small(mine, resume=tmp_path / "begin")
        mine.loss = good
        assert_whole(mine, tmp_path / str(number), expected, at)


class Failing(training.Callback):
    """A callback that fails once, at one of its methods and steps, after drawing from the random stream."""

    def __init__(self, method: str, step: int) -> None:
        self.method, self.step, self.is_due = method, step, True

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("on_") or name != self.method:
            return found

        def fail(trainer: Any, *args: Any) -> None:
            drawn = ops.random.uniform(())
            if self.is_due and trainer.step == self.step:
                self.is_due = False
                raise RuntimeError(f"failed after {float(drawn)}")

        return fail


@pytest.mark.parametrize(
    ("method", "step"),
    [("on_epoch_begin", 0), ("on_epoch_begin", 2), ("on_step_end", 1), ("on_step_end", 2), ("on_step_end", 3),
     ("on_epoch_end", 2), ("on_epoch_end", 4)],
)  # fmt: skip
def test_a_callback_that_fails_leaves_a_whole_step(method: str, step: int, backend: Backend, tmp_path: Path) -> None:
    """It is called again when the run goes on, and those after it are called then."""
    whole = small(Averages(), Failing(method, -1), Averages())
    fit_small(whole)
    expected = result_of(whole)
    mine = small(Averages(), Failing(method, step), Averages())
    with pytest.raises(RuntimeError, match="failed after"):
        fit_small(mine)
    assert mine.step == step
    assert_whole(mine, tmp_path, expected, method)


def _fail_once(function: Any, after: int, is_done: bool = True) -> Any:
    """``function``, which fails when it is called for the time after some, with its work done or before."""
    calls = iter(range(1000))

    def failing(*args: Any, **options: Any) -> Any:
        is_due = next(calls) == after
        found = function(*args, **options) if is_done or not is_due else None
        if is_due:
            raise RuntimeError("failed once")
        return found

    return failing


class Drawing(training.Metric):
    """A metric that draws from the random stream."""

    name = "drawn"

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        return ops.stack([ops.random.uniform(())])

    def score(self, rows: Any) -> float:
        return sum(row[0] for row in rows)


def failing_trainer(folder: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
    """A trainer whose checkpoint before the first step is in ``begin``, and what it comes to if nothing fails."""
    mine = small(Averages(), **options)
    mine.metrics.append(Drawing())
    mine.save(folder / "begin")
    fit_small(mine, resume=folder / "begin")
    return mine, result_of(mine)


@pytest.mark.parametrize("what", ["data", "gradient", "metric", "rule", "validation"])
def test_an_error_in_a_step_leaves_a_whole_step(
    what: str, backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is raised; when its cause is gone, the run goes on as it would have."""
    mine, expected = failing_trainer(tmp_path)
    shares = Arrays.shares
    target, name, failing = {
        "data": (Arrays, "shares", lambda self, *args: _fail_later(shares(self, *args))),
        "gradient": (mine, "_gradient", _fail_once(mine._gradient, 1)),
        "metric": (mine.metrics[1], "measure", _fail_once(mine.metrics[1].measure, 1)),
        "rule": (mine.optimizer, "_plan", _fail_once(mine.optimizer._plan, 1)),
        "validation": (mine, "_evaluate", _fail_once(mine._evaluate, 0)),
    }[what]
    with monkeypatch.context() as patch:
        patch.setattr(target, name, failing)
        with pytest.raises(RuntimeError, match="failed once"):
            fit_small(mine, resume=tmp_path / "begin")
    assert mine.step == (2 if what == "validation" else 1)
    assert_whole(mine, tmp_path, expected, what)


def test_an_error_in_a_compiled_step_leaves_a_whole_step(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, expected = failing_trainer(tmp_path, compile=True)
    with monkeypatch.context() as patch:
        patch.setattr(mine, "_compiled_step", _fail_once(mine._compiled_step, 1, is_done=False))
        with pytest.raises(RuntimeError, match="failed once"):
            fit_small(mine, resume=tmp_path / "begin")
    assert mine.step == 1
    assert_whole(mine, tmp_path, expected, "program")
    # An engine that writes into the state of the optimiser has done so: the step is taken, and the metric misses it.
    with monkeypatch.context() as patch:
        patch.setattr(mine.metrics[1], "measure", _fail_once(mine.metrics[1].measure, 1, is_done=False))
        with pytest.raises(RuntimeError, match="failed once"):
            fit_small(mine, resume=tmp_path / "begin")
    assert mine.step == mine.optimizer.step == (1 if backend.name == "mlx" else 2)
    mine.save(tmp_path / "missed")
    assert fit_small(mine, resume=tmp_path / "missed").steps[:2] == expected["losses"][:2]


@pytest.mark.skipif("mlx" not in ember_ml.get_available_backends(), reason="MLX is lazy, and is not installed")
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_an_error_when_a_lazy_engine_computes_leaves_a_whole_step(
    compile: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then, the model and the optimiser have the tensors that cannot be computed."""
    with ember_ml.use_backend("mlx"):
        mine, expected = failing_trainer(tmp_path, compile=compile)
        with monkeypatch.context() as patch:
            patch.setattr(mine, "_eval_step", _fail_once(mine._eval_step, 1, is_done=False))
            with pytest.raises(RuntimeError, match="failed once"):
                fit_small(mine, resume=tmp_path / "begin")
        assert mine.step == 1
        assert_whole(mine, tmp_path, expected, "computation")


@pytest.mark.skipif("mlx" not in ember_ml.get_available_backends(), reason="MLX is lazy, and is not installed")
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_a_lazy_engine_computes_every_step(compile: bool) -> None:
    """A step that is put off would hold the arrays of all before it."""
    import mlx.core as mx

    class Pending(training.Callback):
        def on_step_end(self, trainer: Any, loss: Any) -> None:
            measured = [metric.state()[-1:] for metric in trainer.metrics]
            tensors = [*trainer.model.tensors().values(), *trainer.optimizer.tensors().values()]
            graph = io.StringIO()
            mx.export_to_dot(graph, *(x for x in tree.leaves([loss, measured, tensors]) if isinstance(x, mx.array)))
            pending.append(graph.getvalue().count("label"))

    pending: list[int] = []
    with ember_ml.use_backend("mlx"):
        fit_small(small(Pending(), compile=compile))
    assert pending == [0] * 4


@pytest.mark.skipif("mlx" not in ember_ml.get_available_backends(), reason="MLX traces, and is not installed")
def test_metrics_do_not_compile_a_step_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they have measured so far is no part of the program."""
    with ember_ml.use_backend("mlx"):
        made = []
        make = compilation._Entry.__init__
        monkeypatch.setattr(compilation._Entry, "__init__", lambda *args: made.append(make(*args)))
        fit_small(small(compile=True))
        assert len(made) == 1


def _fail_later(batches: Any) -> Any:
    for number, batch in enumerate(batches):
        if number == 1:
            ops.random.uniform(())
            raise RuntimeError("failed once")
        yield batch


def test_other_parameters_are_frozen_when_a_run_goes_on(tmp_path: Path) -> None:
    mine = trainer(training.Checkpoint(tmp_path))
    mine.model.freeze("0")
    mine.fit(X, Y)
    with pytest.raises(ValueError, match="must be of this optimizer, with the same parameters frozen"):
        trainer().restore(tmp_path)


def test_tensorboard_files_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="an optional extra")
    trainer(training.TensorBoard(tmp_path, every=2)).fit(X, Y, epochs=2, batch_size=10, validation_data=(X, Y))
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    for name in (b"step/loss", b"training/accuracy", b"validation/loss"):
        assert name in content


def test_tensorboard_is_told_the_loss_of_every_so_many_updates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    board = pytest.importorskip("tensorboardX", reason="an optional extra")
    written: dict[str, list[int]] = {}

    class Writer(board.SummaryWriter):
        def add_scalar(self, tag: str, value: float, step: int) -> None:
            written.setdefault(tag, []).append(step)

    monkeypatch.setattr(board, "SummaryWriter", Writer)
    trainer(training.TensorBoard(tmp_path, every=3)).fit(X, Y, epochs=2, batch_size=10, validation_data=(X, Y))
    steps = -(-len(X) // 10)
    assert written["step/loss"] == list(range(3, 2 * steps + 1, 3))
    assert written["training/loss"] == written["validation/loss"] == [steps, 2 * steps]


def test_tensorboard_keeps_the_figures_of_the_step_that_training_resumes_after(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    board = pytest.importorskip("tensorboardX", reason="an optional extra")
    purged: list[int | None] = []

    class Writer(board.SummaryWriter):
        def __init__(self, directory: str, purge_step: int | None) -> None:
            super().__init__(directory, purge_step=purge_step)
            purged.append(purge_step)

    monkeypatch.setattr(board, "SummaryWriter", Writer)
    for epochs in (1, 2):
        callbacks = [training.TensorBoard(tmp_path / "events"), training.Checkpoint(tmp_path / "run")]
        trainer(*callbacks).fit(X, Y, epochs=epochs, batch_size=10, resume=tmp_path / "run")
    # TensorBoard hides the events of this step and of later ones.
    assert purged == [None, -(-len(X) // 10) + 1]


@pytest.mark.parametrize(("package", "extra"), [("tensorboardX", "tensorboard"), ("matplotlib", "plot")])
def test_an_absent_extra_is_named(package: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def absent(name: str, *args: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(f"no {package}")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", absent)
    use = training.History().plot if extra == "plot" else partial(trainer(training.TensorBoard(tmp_path)).fit, X, Y)
    with pytest.raises(ImportError, match=rf"ember-ml\[{extra}\]"):
        use()


def test_a_history_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an optional extra")
    history = trainer().fit(X, Y, epochs=3, validation_data=(X, Y))
    figure = history.plot(tmp_path / "curves.png")
    assert [axes.get_title() for axes in figure.axes] == ["loss", "loss", "accuracy"]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert all(tick == int(tick) for axes in figure.axes[1:] for tick in axes.get_xticks())
    with pytest.raises(KeyError, match="History: a name must be one of loss, accuracy, val_loss, val_accuracy, le"):
        history["charm"]
    assert "loss" in history
    assert "charm" not in history
    assert repr(history).startswith("<History of 3 epochs: loss=")


def test_output_is_quiet_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    trainer().fit(X, Y, epochs=2)
    trainer().fit(X, Y, epochs=2, verbose=1)
    trainer().fit(X, Y, epochs=2, verbose=0)
    assert capsys.readouterr() == ("", "")
    trainer().fit(X, Y, epochs=2, verbose=2)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 1/2  loss ")
    assert "accuracy" in second


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_a_bar_is_on_a_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is cut off, however few columns there are."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr("ember_ml.training.progress.INTERVAL", 0.0)
    monkeypatch.setitem(os.environ, "TERM", "xterm")
    monkeypatch.setitem(os.environ, "COLUMNS", str(columns))
    trainer().fit(X, Y, epochs=2, batch_size=10, validation_data=(X, Y))
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sys.stdout.getvalue())
    last = shown[shown.rindex("epoch 2/2") :]
    for part in ("5/5", "loss ", "accuracy ", "val_loss", "val_accuracy", "/s", "0:00:0"):
        assert part in last
    assert "epoch 1/2" in shown
    assert "…" not in shown


def test_the_loss_is_not_read_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off a terminal, numbers are read once an epoch."""
    reads = []
    monkeypatch.setattr(
        "ember_ml.training.trainer._read_numbers", lambda losses: reads.append(1) or [0.0] * len(losses)
    )
    monkeypatch.setattr(training.Trainer, "_figures", lambda *args: pytest.fail("nobody looks"))
    trainer(metrics=()).fit(X, Y, epochs=3, batch_size=5)
    assert len(reads) <= 9


def test_modes_are_as_they_were(backend: Backend) -> None:
    mine = trainer()
    mine.model.eval()
    mine.model[0].train()
    mine.fit(X, Y)
    mine.predict(X)
    assert [module.training for module in mine.model.modules()] == [False, True, False, False, False]


def test_a_part_of_a_model_may_stay_out_of_training(backend: Backend) -> None:
    """Such as a normalisation whose statistics are to stay, where a model is tuned further."""

    def moved(prepare: Any, kind: Any = modules.Sequential) -> list[bool]:
        model = kind(modules.Linear(4, 3), modules.BatchNorm(3), modules.Sequential(modules.BatchNorm(3)))
        prepare(model)
        modes, old = [module.training for module in model.modules()], [host(x) for x in model.buffers().values()]
        training.Trainer(model, LOSS, optim.SGD(0.1)).fit(X, Y, validation_data=(X, Y))
        assert [module.training for module in model.modules()] == modes
        new = [host(x) for x in model.buffers().values()]
        return [not np.array_equal(one, other) for one, other in zip(old, new, strict=True)][::2]

    class Tuned(modules.Sequential):
        def train(self, mode: bool = True) -> Any:
            super().train(mode)
            self[1].eval()
            return self

    assert moved(lambda model: model.train()) == [True, True]
    assert moved(lambda model: model[1].eval()) == [False, True]
    assert moved(lambda model: model[2].eval()) == [True, False]
    assert moved(lambda model: model.eval()) == [True, True], "it was looked at, and is trained"
    assert moved(lambda model: model.train(), Tuned) == [False, True]


def test_mistakes_are_explained(backend: Backend) -> None:
    mine = trainer()
    with pytest.raises(ValueError, match=r"\(50, 4\), \(3,\)"):
        mine.fit(X, Y[:3])
    with pytest.raises(ValueError, match="Trainer: batch_size must be >= 1, got 0"):
        mine.fit(X, Y, batch_size=0)
    with pytest.raises(TypeError, match="Trainer: x must be arrays or an iterable of batches, got 3"):
        mine.fit(3)
    with pytest.raises(ValueError, match="x must have at least 1 batch"):
        mine.fit([], epochs=1)
    with pytest.raises(ValueError, match="empty after its first epoch"):
        mine.fit(iter([(X, Y)]), epochs=2)
    with pytest.raises(ValueError, match="x must have at least 1 example"):
        mine.predict(X[:0])
    with pytest.raises(ValueError, match="metrics must have different names, got accuracy, accuracy"):
        trainer(metrics=["accuracy", "accuracy"])
    with pytest.raises(ValueError, match="every must be >= 1, got 0"):
        training.Checkpoint("x", every=0)
    for wrong in (
        lambda: training.EarlyStopping(patience=-1),
        lambda: training.EarlyStopping(least=-0.1),
        lambda: training.Checkpoint("x", keep=0),
        lambda: training.TensorBoard("x", every=0),
        lambda: training.FailOnNaN(every=0),
    ):
        with pytest.raises(ValueError, match=r"got (-1|-0\.1|0)$"):
            wrong()
    with pytest.raises(ValueError, match="monitor and every must not both"):
        training.Checkpoint("x", every=1, monitor="loss")
    assert mine.model.training, "a failure leaves no trace in the model"


def test_what_is_given_to_fit_is_looked_at(backend: Backend) -> None:
    mine = trainer()
    for options, kind, hint in (
        ({"epochs": -1}, ValueError, "epochs must be >= 0, got -1"),
        ({"epochs": 1.5}, TypeError, "epochs must be an integer, got 1.5"),
        ({"epochs": "2"}, TypeError, "epochs must be an integer, got '2'"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be an integer, got 2.5"),
        ({"batch_size": None}, TypeError, "batch_size must be an integer, got None"),
        ({"batch_size": -3}, ValueError, "batch_size must be >= 1, got -3"),
        ({"verbose": 3}, ValueError, "verbose must be 0, 1, 2 or None, got 3"),
    ):
        with pytest.raises(kind, match=hint):
            mine.fit(X, Y, **options)
    for measure in (partial(mine.evaluate, y=Y), mine.predict):
        with pytest.raises(TypeError, match=r"batch_size must be an integer, got 2\.5"):
            measure(X, batch_size=2.5)
    assert not mine.history.steps
    assert len(mine.fit(X, Y, epochs=np.int64(2), batch_size=np.int32(25), verbose=False).steps) == 4


def test_single_examples_are_no_batches(backend: Backend) -> None:
    """Pairs of an example and its class have no axis that counts, so that each would be taken for a batch."""
    for pairs in (list(zip(X, Y, strict=True)), [(x, {"class": y}) for x, y in zip(X, Y, strict=True)]):
        with pytest.raises(ValueError, match=r"Trainer: without y, x must be an iterable of batches \(x, y\), who"):
            trainer().fit(pairs)
        with pytest.raises(ValueError, match=r"Trainer: without y, x must be an iterable of batches \(x, y\), who"):
            trainer().evaluate(pairs)


def test_examples_of_a_batch_are_counted(backend: Backend) -> None:
    required = "Trainer: the first axes must have one length, the number of examples, got shapes "
    own = training.Trainer(modules.Linear(4, 3), lambda p, *_: ops.mean(p), optim.SGD(0.1))
    for batch, shapes in (
        ((X[:2], Y[:5]), r"\(2, 4\), \(5,\)$"),
        ((X[:4], Y[:4], [1.0, 2.0]), r"\(4, 4\), \(4,\), \(2,\)$"),
        (([X[:4], X[4:8]], Y[:4]), r"\(2, 4, 4\), \(4,\); if x is a list of several inputs, write a tuple$"),
    ):
        for measure in (own.fit, own.evaluate):
            with pytest.raises(ValueError, match=required + shapes):
                measure([batch])
    with pytest.raises(ValueError, match=required + r".*; if x is a list of several inputs, write a tuple$"):
        own.fit([X[:4], X[4:8]], Y[:4])
    # On one rank, tensors beside the examples may have other lengths, such as the classes of texts one after the other.
    same = training.Trainer(modules.Lambda(lambda x: x["x"]), lambda p, *_: ops.mean(p), optim.SGD(0.1))
    assert same.evaluate([({"mask": X[:3], "x": X[:4]}, (Y[:9], Y[:4]))])["loss"] == pytest.approx(
        X[:4].mean(), rel=1e-5
    )


def test_a_target_that_is_not_there_is_missed(backend: Backend) -> None:
    for measure in (trainer().fit, trainer().evaluate):
        with pytest.raises(ValueError, match="Trainer: y must be given for this loss, got None"):
            measure(X)
        with pytest.raises(ValueError, match="Trainer: y must be given for this loss, got None"):
            measure(iter([X]))
    with pytest.raises(ValueError, match="Trainer: y must be given"):
        trainer().fit(X, Y, validation_data=(X,))
    with pytest.raises(ValueError, match=r"an iterable of batches \(x, y\).*; if x is data itself, y is missing"):
        trainer().fit(X[:, :3].tolist())
    own = training.Trainer(modules.Linear(4, 4), lambda p, _: ops.mean(ops.square(p)), optim.SGD(0.1))
    assert own.fit(X).steps, "a loss of one's own need not have a target"


def test_a_loss_that_is_not_there_says_which_are() -> None:
    with pytest.raises(ValueError, match="Trainer: loss must be a function or one of binary_crossentropy, categor"):
        training.Trainer(modules.Linear(4, 3), "cross_entropy", optim.SGD(0.1))


def test_a_loss_in_the_order_of_keras_is_noticed() -> None:
    def loss(y_true: Any, y_pred: Any) -> Any:
        return ops.mean(ops.maximum(ops.subtract(y_true, y_pred), 0.0))

    with pytest.warns(UserWarning, match=r"Trainer: loss must take the prediction first .* of y_true and y_pred"):
        get_loss(loss)
    found = get_loss(lambda prediction, target: loss(target, prediction))
    assert float(found(ops.asarray([1.0]), ops.asarray([3.0]))) == 2.0


def test_a_loss_of_ones_own_without_weights_says_so(backend: Backend) -> None:
    def loss(prediction: Any, target: Any) -> Any:
        return ops.mean(prediction)

    mine = training.Trainer(modules.Linear(4, 3), loss, optim.SGD(0.1))
    for measure in (mine.fit, mine.evaluate):
        with pytest.raises(TypeError, match="Trainer: sample_weight must be None for a loss without a third argum"):
            measure(X, Y, sample_weight=COUNTS)
    assert mine.fit(X, Y).steps


def test_a_loss_whose_signature_cannot_be_read_is_given_weights(backend: Backend) -> None:
    """As functions of C extensions are: nothing says that they take none."""
    seen = []

    class Native:
        @property
        def __signature__(self) -> Any:
            raise ValueError("no signature found for builtin")

        def __call__(self, prediction: Any, target: Any, *weights: Any) -> Any:
            seen.append(len(weights))
            return ops.mean(prediction)

    mine = training.Trainer(modules.Linear(4, 3), Native(), optim.SGD(0.1))
    mine.evaluate(X, Y)
    mine.evaluate(X, Y, sample_weight=COUNTS)
    assert seen == [0, 0, 1, 1]


@pytest.mark.parametrize("compile", [False, True])
def test_another_loss_is_asked_as_the_first_was(compile: bool, backend: Backend) -> None:
    x, y = X[:, :1], np.abs(X[:, 1:2])
    # torch takes long to compile the same function.
    mine = training.Trainer(modules.Linear(1, 1), "mse", optim.SGD(0.0), compile=compile and backend.name != "torch")
    mine.fit(x, y)
    for loss in ("kl_divergence", ops.kl_divergence, partial(ops.kl_divergence, axis=-1)):
        mine.loss = loss
        expected = float(ops.kl_divergence(y, mine.predict(x)))
        for found in (mine.evaluate(x, y)["loss"], mine.fit(x, y, batch_size=50)["loss"][0]):
            assert found == pytest.approx(expected, rel=1e-5)
        assert mine.fit(x, y, sample_weight=COUNTS).steps
    mine.loss = lambda prediction, target: ops.mean(prediction)
    for measure in (mine.fit, mine.evaluate):
        with pytest.raises(TypeError, match="Trainer: sample_weight must be None for a loss without a third argum"):
            measure(x, y, sample_weight=COUNTS)
    with pytest.raises(ValueError, match="Trainer: loss must be a function or one of binary_crossentropy, categor"):
        mine.loss = "mean"


def test_what_has_no_weight_may_be_anything(backend: Backend) -> None:
    """Targets are padded with NaN, or with a class that is none."""
    there = np.arange(50) % 5 > 0
    padded, classes = np.where(there, X[:, 0], np.nan)[:, None].astype("float32"), np.where(there, Y, -100)
    ends = []
    for x, y, weights in ((X, padded, there), (X[there], padded[there], there[there])):
        ops.set_seed(3)
        mine = training.Trainer(modules.Linear(4, 1), "mse", optim.SGD(0.1), ["mse", "mae", "r2"])
        mine.fit(x, y, epochs=3, batch_size=50, sample_weight=weights)
        ends.append([*mine.history.steps, *mine.evaluate(x, y, sample_weight=weights).values()])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-5)
    ends = []
    for x, y, weights in ((X, classes, there), (X[there], classes[there], there[there])):
        mine = trainer(metrics=["accuracy", training.F1("macro"), "auc", training.TopKAccuracy(2)])
        mine.model[2] = modules.Identity()
        mine.fit(x, y, epochs=3, batch_size=50, sample_weight=weights)
        ends.append([*mine.history.steps, *mine.evaluate(x, y, sample_weight=weights).values()])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-5)
    # Weights of other axes than the first ones of the target are those of the losses.
    loss = get_loss(partial(ops.cosine_similarity_loss, axis=0))
    one, other = ops.asarray(X[:2]), ops.asarray(X[2:4])
    expected = ops.cosine_similarity_loss(other[:, :1], one[:, :1], axis=0)
    assert float(loss(one, other, ops.asarray([1.0, 0.0, 0.0, 0.0]))) == pytest.approx(float(expected), abs=1e-6)


def test_weights_of_a_loss_that_is_a_sum(backend: Backend) -> None:
    loss = get_loss(partial(ops.mse, reduction="sum"))
    truth, found = ops.asarray([1.0, 2.0]), ops.asarray([2.0, 4.0])
    assert float(loss(found, truth, ops.asarray([1.0, 1.0]))) == float(loss(found, truth)) == 5.0
    assert float(loss(found, truth, ops.asarray([0.0, 3.0]))) == 12.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_weights_of_many_are_summed_wide(dtype: str, backend: Backend) -> None:
    """Half types have no place for the sum of 20,000 losses, and their means need none."""
    found = ops.full((20000, 1), 3.0, dtype=dtype)
    loss = get_loss("mse")
    gradient = ember_ml.transform.grad(lambda x, w: loss(x, ops.zeros_like(x), w))
    for weights in (np.ones(20000), np.arange(20000) < 301):
        result = loss(found, ops.zeros_like(found), ops.asarray(weights))
        assert ops.dtype(result).name == dtype
        assert float(result) == 9.0
        each = host(ops.cast(gradient(found, ops.asarray(weights)), "float64"))
        np.testing.assert_allclose(each[:, 0], 6.0 * weights / weights.sum(), rtol=max(ops.finfo(dtype).eps, 1e-6))


def test_sizes_of_batches_may_be_numpys(backend: Backend, tmp_path: Path) -> None:
    sizes = {"batch_size": np.int64(8), "epochs": np.int32(2)}
    history = trainer(training.Checkpoint(tmp_path, every=3)).fit(X, Y, **sizes)
    again = trainer().fit(X, Y, resume=tmp_path / "checkpoint-00000009.safetensors", **sizes)
    np.testing.assert_allclose(again.steps, history.steps, rtol=1e-6)


def test_figures_of_callbacks_are_kept(backend: Backend, tmp_path: Path) -> None:
    class Norms(training.Callback):
        def on_epoch_end(self, trainer: Any, record: dict[str, Any]) -> None:
            record["norm"] = ops.norm(trainer.model[0].weight)
            record["half"] = np.float32(0.5)

    options = {"epochs": 2, "resume": tmp_path}
    trainer(Norms(), training.Checkpoint(tmp_path)).fit(X, Y)
    history = trainer(Norms(), training.Checkpoint(tmp_path)).fit(X, Y, **options)
    assert history["half"] == [0.5, 0.5]
    assert all(float(norm) > 0 for norm in history["norm"])


def test_metrics_may_come_and_go(backend: Backend) -> None:
    mine = trainer(metrics=())
    assert "accuracy" not in mine.fit(X, Y)
    mine.metrics.append(training.Accuracy())
    assert "accuracy" in mine.fit(X, Y)
    mine.metrics.clear()
    assert "accuracy" not in mine.fit(X, Y)


@pytest.mark.parametrize("model", [lambda x: x, modules.Linear, None, {"weight": 1.0}])
def test_a_model_is_a_module(model: Any) -> None:
    hint = r"write Linear\(...\)" if model is modules.Linear else "model must be a Module, got"
    with pytest.raises(TypeError, match=hint):
        training.Trainer(model, LOSS, optim.SGD(0.1))


def test_no_metrics_and_no_callbacks(backend: Backend) -> None:
    mine = training.Trainer(modules.Linear(4, 3), LOSS, optim.SGD(0.1), metrics=None, callbacks=None)
    assert set(mine.fit(X, Y).names()) == {"loss", "learning_rate", "seconds"}
    with pytest.raises(TypeError, match="a metric of your own is a subclass of Metric"):
        trainer(metrics=[lambda y, p: 0.0])


def test_a_checkpoint_that_is_named_must_be_there(backend: Backend, tmp_path: Path) -> None:
    trainer(training.Checkpoint(tmp_path / "run")).fit(X, Y)
    (path,) = (tmp_path / "run").iterdir()
    assert len(trainer().fit(X, Y, epochs=2, resume=path)) == 2
    assert len(trainer().fit(X, Y, resume=tmp_path / "elsewhere")) == 1
    for name in ("one.safetensors", "run/checkpont.npz", "absent/one.safetensors"):
        mine = trainer(training.Checkpoint(tmp_path / "other.safetensors"), training.Checkpoint(tmp_path))
        with pytest.raises(FileNotFoundError, match=f"resume must be a file that exists .* got '.*{name}'"):
            mine.fit(X, Y, resume=tmp_path / name)
        assert mine.step == 0
    with pytest.raises(FileNotFoundError, match="checkpoint-00000099"):
        trainer().fit(X, Y, resume=path.with_name("checkpoint-00000099.safetensors"))


def test_a_run_that_may_be_started_again_names_the_file_that_it_writes(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first start finds no file; the next ones go on from it."""
    monkeypatch.chdir(tmp_path)
    for epochs, done in ((2, 0), (3, 2)):
        mine = trainer(training.Checkpoint("run/last.safetensors"))
        begun: list[int] = []
        mine.callbacks.append(training.LambdaCallback(on_fit_begin=lambda one, begun=begun: begun.append(one.epoch)))
        assert len(mine.fit(X, Y, epochs=epochs, resume=tmp_path / "run" / "last.safetensors")) == epochs
        assert begun == [done]


@pytest.mark.parametrize("wrapped", [lambda x: x, lambda x: (x,), lambda x: [x], lambda x: (x, None)])
def test_batches_to_predict_may_be_alone_in_a_tuple(backend: Backend, wrapped: Any) -> None:
    """As loaders of other libraries give them."""
    mine = trainer()
    batches = iter([wrapped(X[:20]), wrapped(X[20:40]), wrapped(X[40:])])
    found = mine.predict(batches)
    assert tuple(found.shape) == (50, 3)
    np.testing.assert_allclose(host(found), host(mine.predict(X)), rtol=1e-5, atol=1e-6)


def test_callbacks_may_be_others_when_a_run_goes_on(backend: Backend, tmp_path: Path) -> None:
    """Each has its own state again, whatever its position; a new one begins anew."""
    first = training.EarlyStopping("loss", patience=50)
    trainer(first, training.Checkpoint(tmp_path / "run", monitor="loss")).fit(X, Y, epochs=3)
    log, second = training.CSVLogger(tmp_path / "log.csv"), training.EarlyStopping("loss", patience=50)
    other = training.Checkpoint(tmp_path / "run", monitor="loss")
    mine = trainer(log, other, second, training.FailOnNaN())
    assert mine.restore(tmp_path / "run")
    assert second.watch.best == first.watch.best == other.watch.best
    assert second.tensors.keys() == first.tensors.keys()
    assert len(mine.fit(X, Y, epochs=5, resume=tmp_path / "run")["loss"]) == 5
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 6


def test_figures_are_those_of_their_metrics_when_a_run_goes_on(backend: Backend, tmp_path: Path) -> None:
    trainer(training.Checkpoint(tmp_path, every=2), metrics=["accuracy", training.TopKAccuracy(2)]).fit(X, Y)
    for metrics in ([training.TopKAccuracy(2), "accuracy"], ["accuracy"]):
        with pytest.raises(ValueError, match=r"Trainer: metrics must be those of the checkpoint, \['accuracy', 't"):
            trainer(metrics=metrics).fit(X, Y, resume=tmp_path)


def test_an_epoch_goes_on_with_batches_of_its_own_size(backend: Backend, tmp_path: Path) -> None:
    """Others would leave out examples, or take some twice."""
    trainer(training.Checkpoint(tmp_path, every=2)).fit(X, Y, batch_size=20)
    with pytest.raises(ValueError, match="Trainer: batch_size must be that of the checkpoint, 20, to go on within"):
        trainer().fit(X, Y, batch_size=10, resume=tmp_path)
    assert len(trainer().fit(X, Y, batch_size=20, resume=tmp_path).steps) == 3
    trainer(training.Checkpoint(tmp_path / "whole")).fit(X, Y, batch_size=20)
    assert len(trainer().fit(X, Y, epochs=2, batch_size=10, resume=tmp_path / "whole").steps) == 3 + 5


def test_predictions_are_made_in_batches_of_32(backend: Backend) -> None:
    sizes: list[int] = []

    def identity(x: Any) -> Any:
        sizes.append(x.shape[0])
        return x

    mine = training.Trainer(modules.Sequential(identity), LOSS, optim.SGD(0.1))
    np.testing.assert_array_equal(host(mine.predict(X)), X)
    assert sizes == [32, 18]
