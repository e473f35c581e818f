"""What users of Keras, Lightning, torch and scikit-learn expect of training, and traps that are no longer silent."""

from __future__ import annotations

import inspect
import io
import itertools
import math
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exceptions import HIDDEN_WARNING

import ember_ml
from ember_ml import ops, optim, training, transform
from ember_ml.backend import Backend
from ember_ml.errors import UnsupportedError
from ember_ml.nn import features, modules
from ember_ml.nn.tensor import EmberTensor
from ember_ml.testing.comparison import is_on_cpu
from ember_ml.training.data import Arrays

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4)).astype("float32")
Y = (X @ RNG.standard_normal((4, 3))).argmax(1)
LOGITS = partial(ops.sparse_categorical_crossentropy, from_logits=True)


def host(x: Any) -> Any:
    return ops.to_numpy(x)


def trainer(*callbacks: training.Callback, optimizer: Any = None, seed: int = 1, **options: Any) -> Any:
    ops.random.set_seed(seed)
    model = modules.Sequential(modules.Linear(4, 16), ops.relu, modules.Dropout(0.1), modules.Linear(16, 3))
    return training.Trainer(model, LOGITS, optimizer or optim.Adam(0.02), ["accuracy"], callbacks, **options)


class Batches:
    """Batches of eight in a new order for every pass, drawn from the library's stream."""

    def __iter__(self) -> Iterator[Any]:
        order = host(ops.random.permutation(50))
        return ((X[order[i : i + 8]], Y[order[i : i + 8]]) for i in range(0, 50, 8))


class Endless:
    """Batches without end."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            rows = host(ops.random.randint(8, 0, 50))
            yield X[rows], Y[rows]


class Interrupted(training.Callback):
    """Ctrl-C once all callbacks know of a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_settled(self, trainer: Any) -> None:
        if trainer.step == self.step:
            raise KeyboardInterrupt


def outcome(mine: Any) -> dict[str, Any]:
    """What a run has come to, to the last bit."""
    tensors = {**mine.model.tensors(), **{f"optimizer {k}": x for k, x in mine.optimizer.tensors().items()}}
    figures = [{k: v for k, v in one.items() if k != "seconds"} for one in mine.history.epochs]
    return {**{k: host(x).tolist() for k, x in tensors.items()}, "figures": figures, "steps": mine.history.steps}


# Losses by name.

NAMES = ["sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy", "focal_loss"]


def classifier(loss: Any, last: Any = modules.Identity, width: int = 3, **options: Any) -> Any:
    ops.random.set_seed(0)
    model = modules.Sequential(modules.Linear(4, width), last())
    return training.Trainer(model, loss, optim.SGD(0.1), **options)


def target_of(name: str) -> Any:
    return Y if name.startswith("sparse") else np.eye(3, dtype="float32")[Y]


# A warning of torch's compiler that pytest.warns shows again is no longer from the module that the settings ignore.
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning")
@pytest.mark.parametrize(("name", "compile"), [*((name, False) for name in NAMES), (NAMES[0], True)])
def test_logits_for_a_loss_of_probabilities_are_warned_of(name: str, compile: bool, backend: Backend) -> None:
    mine = classifier(name, compile=compile)
    line = inspect.currentframe().f_lineno + 2  # type: ignore[union-attr]
    with pytest.warns(UserWarning, match="must be probabilities for the loss") as caught:
        mine.fit(X, target_of(name), epochs=2, batch_size=10)
    # torch's compiler has warnings of its own.
    found = [one for one in caught if "must be probabilities" in str(one.message)]
    assert len(found) == 1, "once for a run"
    assert (found[0].filename, found[0].lineno) == (__file__, line)
    assert f"write loss=functools.partial(ops.{name}, from_logits=True)" in str(found[0].message)
    assert "values from -" in str(found[0].message)
    # What the warning says to write is silent.
    classifier(partial(getattr(ops, name), from_logits=True)).fit(X, target_of(name))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_not_warned_of(name: str, dtype: str, backend: Backend) -> None:
    last = modules.Sigmoid if name in ("binary_crossentropy", "focal_loss") else partial(modules.Softmax, -1)
    mine = classifier(name, last)
    mine.model.astype(dtype)
    assert math.isfinite(mine.fit(ops.cast(X, dtype), target_of(name))["loss"][0])


def test_probabilities_that_have_another_sum_are_warned_of(backend: Backend) -> None:
    with pytest.warns(UserWarning, match=r"with sum 1 along axis -1, got sums from .* along axis -1"):
        classifier("sparse_categorical_crossentropy", modules.Sigmoid).fit(X, Y)


@pytest.mark.usefixtures("traced_only")
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_the_check_of_predictions_leaves_no_trace(compile: bool, backend: Backend) -> None:
    """It draws no random number, changes no statistics, and reads predictions once."""

    def fitted(loss: Any) -> dict[str, Any]:
        ops.random.set_seed(0)
        layers = modules.Linear(4, 3), modules.BatchNorm(3), modules.Dropout(0.2), modules.Softmax(-1)
        mine = training.Trainer(modules.Sequential(*layers), loss, optim.SGD(0.1), compile=compile)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine.fit(X, Y, epochs=2, batch_size=10)
        return outcome(mine)

    assert fitted("sparse_categorical_crossentropy") == fitted(
        lambda prediction, target: ops.sparse_categorical_crossentropy(target, prediction)
    )


def test_predictions_are_read_once(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    checks = []
    monkeypatch.setattr("ember_ml.training.probabilities.Probabilities.check", lambda *args: checks.append(args))
    mine = classifier("sparse_categorical_crossentropy")
    mine.fit(X, Y, epochs=3, batch_size=5)
    assert len(checks) == 1


# Feature scaling.


@pytest.mark.parametrize("rows", [X, X.tolist(), EmberTensor(X)], ids=["array", "list", "EmberTensor"])
def test_rows_for_a_function_that_takes_options(rows: Any, backend: Backend) -> None:
    for function in (features.standardize_features, features.normalize_features, features.pca):
        name = function.__name__
        with pytest.raises(TypeError, match=rf"^{name}: .* must be .*; .* write {name}\(\)\.fit_transform\(rows\)$"):
            function(rows)
        assert tuple(function().fit_transform(rows).shape) == (50, 4)


# ``backward`` of PyTorch.


def mse(model: Any) -> Any:
    return ops.mse(ops.zeros((50, 3)), model(ops.asarray(X)))


def test_a_model_may_be_trained_with_backward(backend: Backend) -> None:
    if backend.name != "torch":
        with pytest.raises(UnsupportedError, match=r"must be on the torch backend, got .*value_and_grad"):
            modules.Linear(4, 3).requires_grad_()
        return
    import torch

    runs = []
    for optimizer in (None, optim.SGD(0.1), optim.Grouped([(lambda path, p: True, optim.SGD(0.1))])):
        ops.random.set_seed(0)
        model = modules.Linear(4, 3).requires_grad_()
        native = torch.optim.SGD(model.parameters().values(), 0.1)
        losses = []
        for _ in range(5):
            native.zero_grad()
            loss = mse(model)
            loss.backward()
            if optimizer is None:
                native.step()
            else:
                optimizer.update(model, {path: p.grad for path, p in model.parameters().items()})
            losses.append(loss.item())
        assert all(p.requires_grad and p.is_leaf for p in model.parameters().values())
        runs.append(losses)
    ops.random.set_seed(0)
    model, step, optimizer = modules.Linear(4, 3), transform.value_and_grad(mse), optim.SGD(0.1)
    expected = []
    for _ in range(5):
        loss, grads = step(model)
        optimizer.update(model, grads)
        expected.append(float(loss))
    for losses in runs:
        np.testing.assert_allclose(losses, expected, rtol=1e-6)
    assert expected[-1] < expected[0]


def test_backward_without_a_record_says_what_to_write(backend: Backend) -> None:
    loss = EmberTensor(mse(modules.Linear(4, 3)))
    kind = RuntimeError if backend.name == "torch" else AttributeError
    with pytest.raises(kind, match=r"ember_ml\.transform\.(value_and_)?grad"):
        loss.backward()


@pytest.mark.filterwarnings(HIDDEN_WARNING)
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_steps_keep_no_record_of_those_before(compile: bool, backend: Backend) -> None:
    """Parameters of torch that are recorded would refer to those of the step before, and so on to the first."""
    if backend.name != "torch":
        pytest.skip("torch alone records operations")
    import torch

    class Scale(modules.Module):
        def __init__(self) -> None:
            self.weight = modules.Parameter(torch.nn.Parameter(torch.ones(4, 3)))

        def forward(self, x: Any) -> Any:
            return ops.matmul(x, self.weight)

    mine = training.Trainer(Scale(), LOGITS, optim.Adam(0.1), compile=compile)
    history = mine.fit(X, Y, epochs=3)
    assert history["loss"][-1] < history["loss"][0]
    assert mine.model.weight.grad_fn is None


def test_updates_within_a_gradient_are_differentiated(backend: Backend) -> None:
    """The loss after an update is a function of the learning rate, also where torch records parameters."""

    def later(rate: Any) -> Any:
        weights = {"w": ops.asarray([2.0])}
        grads = {"w": ops.multiply(weights["w"], rate)}
        return ops.sum(optim.SGD(1.0).update(weights, grads)["w"])

    assert float(transform.grad(later)(ops.asarray(0.5))) == -2.0


# Memory-mapped files.


def mapped(folder: Path, name: str, values: np.ndarray) -> np.memmap:
    np.save(folder / name, values)
    return np.load(folder / f"{name}.npy", mmap_mode="r")  # type: ignore[no-any-return]


@pytest.mark.parametrize("shuffle", [False, True], ids=["ordered", "shuffled"])
def test_a_mapped_file_is_read_batch_by_batch(shuffle: bool, backend: Backend, tmp_path: Path) -> None:
    x, y = mapped(tmp_path, "x", X), mapped(tmp_path, "y", Y)
    data = Arrays(x, {"class": y}, 8)
    assert data.parts[0] is x, "the file itself is kept"
    assert data.parts[1]["class"] is y
    found = [host(rows) for rows, _ in data.batches(shuffle)]
    assert all(type(rows) is np.ndarray for rows in found)
    assert sorted(np.concatenate(found).tolist()) == sorted(X.tolist())
    expected = trainer().fit(X, Y, epochs=2, batch_size=8, shuffle=shuffle, validation_split=0.2)
    mine = trainer()
    history = mine.fit(x, y, epochs=2, batch_size=8, shuffle=shuffle, validation_split=0.2)
    assert history.steps == expected.steps
    assert history["val_loss"] == expected["val_loss"]
    np.testing.assert_array_equal(host(mine.predict(x)), host(mine.predict(X)))


MEMORY = """
import resource, sys
import numpy as np
import ember_ml
from ember_ml import nn, ops, optim, training

name, path = sys.argv[1:]
ember_ml.set_backend(name)
x = np.load(path, mmap_mode="r")
y = np.zeros((len(x), 1), "float32")
mine = training.Trainer(nn.modules.Linear(x.shape[1], 1), "mse", optim.SGD(1e-3))
mine.fit(x[:64], y[:64], batch_size=16)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
mine.fit(x, y, batch_size=16, max_steps=8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_mapped_file_does_not_fill_the_memory(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / "large.npy"
    file = np.lib.format.open_memmap(path, "w+", "float32", (4096, 16384))  # 256 MiB, a hole in the file system
    del file
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, ember_ml.get_backend(), str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 64 * 2**20, "a few batches of a MiB, not the file"


# How long an epoch and a run are.


def test_an_epoch_of_an_endless_iterable_ends(backend: Backend) -> None:
    mine = trainer()
    history = mine.fit(Endless(), epochs=3, steps_per_epoch=4)
    assert (len(history), len(history.steps), mine.step) == (3, 12, 12)
    mine = trainer()
    history = mine.fit(iter(Endless()), epochs=2, steps_per_epoch=4)
    assert len(history.steps) == 8, "an iterator goes on in the next epoch"


def test_an_epoch_goes_on_where_the_last_one_ended(backend: Backend) -> None:
    seen: list[int] = []

    class Numbers(modules.Module):
        def __init__(self) -> None:
            self.weight = modules.Parameter([1.0])

        def forward(self, x: Any) -> Any:
            seen.extend(host(ops.stop_gradient(x))[:, 0].astype(int).tolist())
            return ops.multiply(x, self.weight)

    numbers = np.arange(10, dtype="float32")[:, None]
    mine = training.Trainer(Numbers(), "mse", optim.SGD(0.0))
    mine.fit(numbers, numbers, epochs=5, batch_size=2, steps_per_epoch=3, shuffle=False)
    assert seen == [*range(10), *range(10), *range(10)], "15 steps are three passes over 5 batches"
    seen.clear()
    ops.random.set_seed(0)
    mine.fit(numbers, numbers, epochs=5, batch_size=2, steps_per_epoch=3)
    passes = [seen[i : i + 10] for i in (0, 10, 20)]
    assert [sorted(one) for one in passes] == [list(range(10))] * 3
    assert passes[0] != passes[1]


def test_steps_of_a_pass_are_an_epoch(backend: Backend) -> None:
    for data in ((X, Y), (Batches(),)):
        expected = trainer().fit(*data, epochs=3, batch_size=8)
        history = trainer().fit(*data, epochs=3, batch_size=8, steps_per_epoch=7)
        assert history.steps == expected.steps
        assert history["accuracy"] == expected["accuracy"]


def test_a_run_ends_after_so_many_steps(backend: Backend) -> None:
    mine = trainer()
    history = mine.fit(X, Y, batch_size=8, max_steps=17)
    assert (mine.step, len(history.steps), len(history)) == (17, 17, 3), "two epochs of 7 and one of 3"
    assert history.steps == trainer().fit(X, Y, batch_size=8, epochs=3).steps[:17]
    assert len(trainer().fit(X, Y, batch_size=8, max_steps=17, epochs=2).steps) == 14, "whichever comes first"
    history = trainer().fit(Endless(), max_steps=5, validation_data=(X, Y))
    assert (len(history.steps), len(history["val_loss"])) == (5, 1)


def test_the_last_examples_validate(backend: Backend) -> None:
    expected = trainer().fit(X[:40], Y[:40], epochs=2, batch_size=8, validation_data=(X[40:], Y[40:]))
    history = trainer().fit(X, Y, epochs=2, batch_size=8, validation_split=0.2)
    assert history.steps == expected.steps
    assert history["val_loss"] == expected["val_loss"]
    weights = np.linspace(0.0, 1.0, 50, dtype="float32")
    expected = trainer().fit(X[:33], Y[:33], sample_weight=weights[:33], validation_data=(X[33:], Y[33:], weights[33:]))
    history = trainer().fit(X, Y, sample_weight=weights, validation_split=0.33)
    assert history["val_loss"] == expected["val_loss"], "Keras rounds the number of training examples down"


@pytest.mark.parametrize(
    ("options", "kind", "hint"),
    [
        ({"steps_per_epoch": 0}, ValueError, "steps_per_epoch must be >= 1, got 0"),
        ({"steps_per_epoch": 2.5}, TypeError, r"steps_per_epoch must be an integer, got 2\.5"),
        ({"max_steps": 0}, ValueError, "max_steps must be >= 1, got 0"),
        ({"max_steps": "9"}, TypeError, "max_steps must be an integer, got '9'"),
        ({"validation_split": 1.0}, ValueError, r"validation_split must be > 0 and < 1, got 1\.0"),
        ({"validation_split": -0.1}, ValueError, r"validation_split must be > 0 and < 1, got -0\.1"),
        ({"validation_split": "0.1"}, TypeError, r"validation_split must be a number, got '0\.1'"),
        ({"validation_split": 0.999}, ValueError, r"must leave at least 1 example .* got 0\.999 of 50 examples"),
        ({"validation_split": 0.1, "validation_data": (X, Y)}, ValueError, "must be 0 if validation_data is given"),
    ],
)
def test_lengths_are_looked_at(options: dict[str, Any], kind: Any, hint: str, backend: Backend) -> None:
    mine = trainer()
    with pytest.raises(kind, match=f"Trainer: .*{hint}"):
        mine.fit(X, Y, **options)
    assert not mine.history.steps


def test_an_iterable_is_not_split(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"must be 0 for an iterable of batches, got 0\.2; use validation_data"):
        trainer().fit(Batches(), validation_split=0.2)


@pytest.mark.parametrize("data", [(X, Y), (Batches(),)], ids=["arrays", "iterable"])
@pytest.mark.parametrize("stop", [1, 4, 6, 7, 8, 12, 13])
def test_lengths_survive_an_interrupt(stop: int, data: Any, backend: Backend, tmp_path: Path) -> None:
    """Epochs of 6 steps over passes of 7, of which the last ends early."""
    options = {"batch_size": 8, "steps_per_epoch": 6, "max_steps": 13, "validation_data": (X, Y)}
    whole = trainer()
    whole.fit(*data, **options)
    assert len(whole.history) == 3
    with pytest.raises(KeyboardInterrupt):
        trainer(training.Checkpoint(tmp_path, every=1), Interrupted(stop)).fit(*data, **options)
    mine = trainer(seed=5)
    mine.fit(*data, **options, resume=tmp_path)
    assert outcome(mine) == outcome(whole)


# Checkpoints of one's own name.


@pytest.mark.parametrize("name", ["run.safetensors", "new/run.npz"])
def test_a_checkpoint_has_the_name_that_was_asked_for(name: str, backend: Backend, tmp_path: Path) -> None:
    whole = trainer()
    whole.fit(X, Y, epochs=4)
    mine = trainer()
    mine.fit(X, Y, epochs=2)
    assert mine.save(tmp_path / name) == tmp_path / name
    assert mine.save(str(tmp_path / name)) == tmp_path / name, "it is replaced"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]
    other = trainer(seed=4)
    assert other.restore(tmp_path / name)
    assert outcome(other) == outcome(mine)
    other = trainer(seed=4)
    other.fit(X, Y, epochs=4, resume=tmp_path / name)
    assert outcome(other) == outcome(whole)
    with pytest.raises(ValueError, match="Trainer: keep must be None for the path of one file, got 2"):
        mine.save(tmp_path / name, keep=2)


def test_a_callback_writes_the_file_that_was_asked_for(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    trainer(training.Checkpoint(path, every=2)).fit(X, Y, epochs=2)
    assert list(tmp_path.iterdir()) == [path]
    assert trainer().restore(path)
    with pytest.raises(ValueError, match="Checkpoint: keep must be None for the path of one file, got 1"):
        training.Checkpoint(path, keep=1)


# Clipping.


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_groups_are_clipped_by_one_norm(limit: float, backend: Backend) -> None:
    torch = pytest.importorskip("torch")
    values = {"a": RNG.standard_normal((3, 2)), "b": RNG.standard_normal(4), "c": RNG.standard_normal((2, 2))}
    grads = {path: 3 * RNG.standard_normal(x.shape) for path, x in values.items()}
    theirs = {path: torch.tensor(x, requires_grad=True) for path, x in values.items()}
    for path, x in theirs.items():
        x.grad = torch.tensor(grads[path])
    torch.nn.utils.clip_grad_norm_(theirs.values(), limit)
    groups = [{"params": [theirs["a"]], "lr": 0.5}, {"params": [theirs["b"], theirs["c"]], "momentum": 0.9}]
    torch.optim.SGD(groups, lr=0.1).step()

    mine = optim.Grouped(
        [(lambda path, p: path == "a", optim.SGD(0.5)), (lambda path, p: True, optim.SGD(0.1, momentum=0.9))],
        clip_norm=limit,
    )
    dtype = "float64"
    new = mine.update(*({path: ops.asarray(x, dtype=dtype) for path, x in one.items()} for one in (values, grads)))
    for path, x in new.items():
        np.testing.assert_allclose(host(x), theirs[path].detach().numpy(), rtol=1e-6, atol=1e-6)
    assert f"clip_norm={limit}" in repr(mine)


@pytest.mark.usefixtures("traced_only")
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_groups_of_a_model_are_clipped_by_one_norm(compile: bool, backend: Backend) -> None:
    """One group with all parameters is clipped as an optimizer alone is."""

    def steps(optimizer: Any) -> list[float]:
        return trainer(optimizer=optimizer, compile=compile).fit(X, Y, epochs=2, batch_size=25).steps

    groups = [(lambda path, p: p.ndim == 2, optim.SGD(0.5)), (lambda path, p: True, optim.SGD(0.5))]
    expected = steps(optim.SGD(0.5, clip_norm=0.1))
    np.testing.assert_allclose(steps(optim.Grouped(groups, clip_norm=0.1)), expected, rtol=1e-5)
    if compile:
        return
    groups = [(lambda path, p: p.ndim == 2, optim.SGD(0.5)), (lambda path, p: True, optim.SGD(0.5))]
    assert not np.allclose(steps(optim.Grouped(groups)), expected, rtol=1e-3)
    groups = [(lambda path, p: p.ndim == 2, optim.SGD(0.5)), (lambda path, p: True, optim.SGD(0.5))]
    clipped = steps(optim.Grouped(groups, clip_value=0.01))
    np.testing.assert_allclose(clipped, steps(optim.SGD(0.5, clip_value=0.01)), rtol=1e-5)


def test_limits_of_groups_are_looked_at() -> None:
    for name in ("clip_norm", "clip_value"):
        with pytest.raises(ValueError, match=f"Grouped: {name} must be > 0, got -1"):
            optim.Grouped([(lambda path, p: True, optim.SGD(0.1))], **{name: -1})  # type: ignore[arg-type]


# Callbacks.


class Figures(training.Callback):
    """Give the figure ``merit`` of each epoch a value."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def on_epoch_end(self, trainer: Any, record: dict[str, float]) -> None:
        record["merit"] = self.values[trainer.epoch - 1]


def rates(merits: list[float], *more: training.Callback, optimizer: Any = None, **options: Any) -> list[float]:
    """Learning rates of epochs with these figures."""
    plateau = training.ReduceLROnPlateau("merit", **options)
    mine = trainer(Figures(*merits), plateau, *more, optimizer=optimizer or optim.SGD(1.0))
    history = mine.fit(X, Y, epochs=len(merits), batch_size=50)
    return [*history["learning_rate"], mine.optimizer.learning_rate]


def keras_rates(
    merits: list[float], factor: float, patience: int, least: float, cooldown: int, floor: float
) -> list[float]:
    """The rule of ``keras.callbacks.ReduceLROnPlateau`` with ``mode="max"``, as its source has it."""
    found, rate, best, wait, counter = [1.0], 1.0, -math.inf, 0, 0
    for merit in merits:
        if counter > 0:
            counter -= 1
            wait = 0
        if merit - least > best:
            best, wait = merit, 0
        elif counter <= 0:
            wait += 1
            if wait >= patience and rate > floor:
                rate, counter, wait = max(rate * factor, floor), cooldown, 0
        found.append(rate)
    return found


@pytest.mark.parametrize("cooldown", [0, 1, 3])
@pytest.mark.parametrize("patience", [0, 1, 2])
def test_a_plateau_lowers_the_rate_as_in_keras(patience: int, cooldown: int, backend: Backend) -> None:
    merits = [0.1, 0.2, 0.2, 0.15, 0.1, 0.3, 0.3005, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.4, 0.1, 0.1, 0.1]
    found = rates(
        merits, factor=0.5, patience=patience, least=1e-3, mode="max", cooldown=cooldown, min_learning_rate=0.1
    )
    expected = keras_rates(merits, 0.5, patience, 1e-3, cooldown, 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert min(found) < 1.0


def test_a_plateau_lowers_the_rates_of_all_groups(backend: Backend) -> None:
    both = optim.Grouped([(lambda path, p: p.ndim == 2, optim.SGD(1.0)), (lambda path, p: True, optim.SGD(0.5))])
    assert rates([1.0, 1.0, 1.0], optimizer=both, factor=0.1, patience=2)[-1] == pytest.approx(0.1)
    assert both.groups[1][1].learning_rate == pytest.approx(0.05)


def test_a_scheduler_sets_the_rate_of_an_epoch(backend: Backend) -> None:
    mine = trainer(training.LearningRateScheduler(lambda epoch: 0.5 / (epoch + 1)), optimizer=optim.SGD(9.0))
    assert mine.fit(X, Y, epochs=3)["learning_rate"] == pytest.approx([0.5, 0.25, 0.5 / 3])
    mine = trainer(training.LearningRateScheduler(lambda epoch, rate: rate * 0.5), optimizer=optim.SGD(1.0))
    assert mine.fit(X, Y, epochs=3)["learning_rate"] == [0.5, 0.25, 0.125]
    groups = [(lambda path, p: p.ndim == 2, optim.SGD(1.0)), (lambda path, p: True, optim.SGD(0.5))]
    mine = trainer(training.LearningRateScheduler(lambda epoch, rate: rate * 0.5), optimizer=optim.Grouped(groups))
    mine.fit(X, Y, epochs=2)
    assert [optimizer.learning_rate for _, optimizer in groups] == [0.25, 0.125]


def test_rates_of_a_schedule_are_not_replaced(backend: Backend) -> None:
    for callback in (training.ReduceLROnPlateau(), training.LearningRateScheduler(lambda epoch: 0.1)):
        mine = trainer(callback, optimizer=optim.SGD(optim.schedules.cosine(0.1, steps=9)))
        with pytest.raises(ValueError, match=f"{type(callback).__name__}: the learning_rate .* must be a number, got"):
            mine.fit(X, Y)


def test_functions_are_a_callback(backend: Backend) -> None:
    calls: list[str] = []
    names = [
        "on_fit_begin",
        "on_epoch_begin",
        "on_step_end",
        "on_epoch_end",
        "on_settled",
        "on_exception",
        "on_fit_end",
    ]
    assert names == list(inspect.signature(training.LambdaCallback).parameters)
    public = {name for name in vars(training.Callback) if name.startswith("on_")}
    assert set(names) == public, "each method of a callback"
    mine = trainer(training.LambdaCallback(**{name: lambda *args, name=name: calls.append(name) for name in names}))
    mine.fit(X, Y, batch_size=25)
    step = ["on_step_end", "on_settled"]
    assert calls == ["on_fit_begin", "on_epoch_begin", *step, *step, "on_epoch_end", "on_settled", "on_fit_end"]
    assert repr(training.LambdaCallback(on_fit_end=print)) == "LambdaCallback(on_fit_end)"
    with pytest.raises(TypeError, match="LambdaCallback: on_fit_end must be a function, got 3"):
        training.LambdaCallback(on_fit_end=3)  # type: ignore[arg-type]


class Values(training.Callback):
    """Parameters after every step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.epochs: list[dict[str, Any]] = []

    def on_step_end(self, trainer: Any, loss: Any) -> None:
        self.steps.append({path: host(x) for path, x in trainer.model.parameters().items()})

    def on_epoch_end(self, trainer: Any, record: Any) -> None:
        self.epochs.append(self.steps[-1])


def torch_average(values: list[dict[str, Any]], decay: float | None) -> dict[str, Any]:
    """Averages as ``torch.optim.swa_utils.AveragedModel`` computes them."""
    torch = pytest.importorskip("torch")
    from torch.optim import swa_utils

    model = torch.nn.ParameterDict({path.replace(".", "_"): torch.tensor(x) for path, x in values[0].items()})
    rule = {} if decay is None else {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(decay)}
    averaged = swa_utils.AveragedModel(model, **rule)
    for one in values:
        with torch.no_grad():
            for path, x in one.items():
                model[path.replace(".", "_")].copy_(torch.tensor(x))
        averaged.update_parameters(model)
    return {path: averaged.module[path.replace(".", "_")].detach().numpy() for path in values[0]}


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({"decay": 0.9}, lambda values: values.steps),
        ({"decay": None}, lambda values: values.steps),
        ({"decay": 0.5, "every": 3, "start": 2}, lambda values: values.steps[4::3]),
        ({"decay": None, "every": None, "start": 1}, lambda values: values.epochs[1:]),
    ],
)
def test_averages_are_those_of_torch(options: dict[str, Any], chosen: Any, backend: Backend) -> None:
    values, average = Values(), training.ModelAverage(**options)
    mine = trainer(values, average)
    mine.fit(X, Y, epochs=4, batch_size=16)
    expected = torch_average(chosen(values), options["decay"])
    assert list(average.tensors) == list(mine.model.parameters())
    for path, x in average.tensors.items():
        np.testing.assert_allclose(host(x), expected[path], rtol=1e-4, atol=1e-6)
    last = {path: host(x) for path, x in mine.model.parameters().items()}
    with average.applied(mine.model):
        np.testing.assert_array_equal(host(mine.model[0].weight), host(average.tensors["0.weight"]))
        found = mine.evaluate(X, Y)
    np.testing.assert_array_equal(host(mine.model[0].weight), last["0.weight"])
    average.assign(mine.model)
    assert mine.evaluate(X, Y) == found


def test_averages_of_half_precision_are_wide(backend: Backend) -> None:
    average = training.ModelAverage(0.999)
    mine = trainer(average)
    mine.model.astype("bfloat16")
    mine.fit(ops.cast(X, "bfloat16"), Y, epochs=2, batch_size=10)
    assert {ops.dtype(x).name for x in average.tensors.values()} == {"float32"}
    average.assign(mine.model)
    assert {ops.dtype(x).name for x in mine.model.parameters().values()} == {"bfloat16"}


CALLBACKS: dict[str, Any] = {
    "plateau": lambda: [training.ReduceLROnPlateau("loss", factor=0.5, patience=1, least=1.0, cooldown=1)],
    "scheduler": lambda: [training.LearningRateScheduler(lambda epoch, rate: rate * 0.5)],
    "average": lambda: [training.ModelAverage(0.9)],
    "mean of epochs": lambda: [training.ModelAverage(None, every=None)],
    "function": lambda: [training.LambdaCallback(on_epoch_end=lambda trainer, record: record.update(at=trainer.step))],
}


@pytest.mark.usefixtures("traced_only")
@pytest.mark.parametrize(("kind", "compile"), [*((kind, False) for kind in CALLBACKS), ("scheduler", True)])
def test_callbacks_go_on_after_an_interrupt(kind: str, compile: bool, backend: Backend, tmp_path: Path) -> None:
    def state(mine: Any) -> Any:
        average = mine.callbacks[0]
        return {p: host(x).tolist() for p, x in getattr(average, "tensors", {}).items()}

    options = {"epochs": 5, "batch_size": 25}
    whole = trainer(*CALLBACKS[kind](), compile=compile)
    whole.fit(X, Y, **options)
    for stop in (5,) if compile else (2, 5, 7):
        folder = tmp_path / str(stop)
        mine = trainer(*CALLBACKS[kind](), training.Checkpoint(folder, every=1), Interrupted(stop), compile=compile)
        with pytest.raises(KeyboardInterrupt):
            mine.fit(X, Y, **options)
        mine = trainer(*CALLBACKS[kind](), seed=5, compile=compile)
        mine.fit(X, Y, **options, resume=folder)
        assert outcome(mine) == outcome(whole)
        assert state(mine) == state(whole)
    # A second run begins anew.
    ops.random.set_seed(1)
    mine.callbacks[0].on_fit_begin(trainer())
    assert state(mine) == {}


@pytest.mark.parametrize("kind", ["plateau", "scheduler", "average"])
def test_a_callback_that_is_called_again_changes_nothing(kind: str, backend: Backend) -> None:
    """A callback is called a second time for a step, an epoch or its begin if it was interrupted."""
    plain, twice = trainer(*CALLBACKS[kind](), optimizer=optim.SGD(1.0)), trainer(optimizer=optim.SGD(1.0))
    (one,) = CALLBACKS[kind]()

    class Twice(training.Callback):
        def __getattribute__(self, name: str) -> Any:
            if not name.startswith("on_"):
                return super().__getattribute__(name)
            return lambda *args: [getattr(one, name)(*args) for _ in range(2)]

    histories = []
    for mine, callbacks in ((plain, plain.callbacks), (twice, [Twice()])):
        mine.callbacks = callbacks
        ops.random.set_seed(3)
        histories.append(mine.fit(X, Y, epochs=5, batch_size=25)["learning_rate"])
    assert histories[0] == histories[1]
    assert {p: host(x).tolist() for p, x in getattr(one, "tensors", {}).items()} == {
        p: host(x).tolist() for p, x in getattr(plain.callbacks[0], "tensors", {}).items()
    }


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: training.ReduceLROnPlateau(factor=1.0), r"ReduceLROnPlateau: factor must be > 0 and < 1, got 1\.0"),
        (lambda: training.ReduceLROnPlateau(patience=-1), "ReduceLROnPlateau: patience must be >= 0, got -1"),
        (lambda: training.ReduceLROnPlateau(cooldown=-1), "ReduceLROnPlateau: cooldown must be >= 0, got -1"),
        (lambda: training.ReduceLROnPlateau(mode="least"), "ReduceLROnPlateau: mode must be 'auto', 'min' or 'max'"),
        (lambda: training.ModelAverage(1.0), r"ModelAverage: decay must be None, or >= 0 and < 1, got 1\.0"),
        (lambda: training.ModelAverage(every=0), "ModelAverage: every must be >= 1, got 0"),
        (lambda: training.ModelAverage(start=-1), "ModelAverage: start must be >= 0, got -1"),
        (lambda: training.ModelAverage().assign(modules.Linear(1, 1)), "ModelAverage: there must be an average"),
        (lambda: training.LearningRateScheduler(0.1), "LearningRateScheduler: schedule must be a function, got 0.1"),
        (
            lambda: trainer(training.LearningRateScheduler(lambda epoch: "fast")).fit(X, Y),
            "LearningRateScheduler: schedule must return a number, got 'fast'",
        ),
    ],
)
def test_options_of_callbacks_are_looked_at(wrong: Any, hint: str) -> None:
    with pytest.raises((TypeError, ValueError), match=hint):
        wrong()


# What is shown.


def test_lines_in_a_pipe_are_whole(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    mine = trainer(Figures(*range(9)))
    mine.metrics = [training.Accuracy(), training.TopKAccuracy(1), training.TopKAccuracy(2)]
    mine.fit(X, Y, epochs=2, validation_data=(X, Y), verbose=2)
    lines = sys.stdout.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [line.split()[:2] for line in lines] == [["epoch", "1/2"], ["epoch", "2/2"]]
    assert all(len(line) > 120 and "seconds" in line for line in lines)
    sys.stdout.truncate(0)
    mine.fit(X, Y, max_steps=2, verbose=2)
    assert "epoch 1  loss" in sys.stdout.getvalue()  # type: ignore[attr-defined]


def test_a_history_in_a_notebook(backend: Backend) -> None:
    from xml.etree import ElementTree

    mine = trainer(training.LambdaCallback(on_epoch_end=lambda trainer, record: record.update({"<b>&": ops.ones(())})))
    history = mine.fit(X, Y, epochs=3, batch_size=10)
    root = ElementTree.fromstring(history._repr_html_())
    header, *rows = [[cell.text for cell in row] for row in root.iter("tr")]
    assert header == ["epoch", *history.names()]
    assert "<b>&" in header, "text is escaped"
    assert [row[:2] for row in rows] == [[str(i), f"{x:.4g}"] for i, x in enumerate(history["loss"], 1)]
    (line,) = root.iter("polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    assert len(points) == 15
    height = np.array([y for _, y in points])
    assert np.argmin(height) == np.argmax(history.steps), "the largest loss is on top"
    assert points == sorted(points, key=lambda point: point[0])


@pytest.mark.parametrize("count", [0, 1, 2, 11, 12, 500])
def test_histories_of_any_length_are_small(count: int) -> None:
    from xml.etree import ElementTree

    steps = [math.nan if i % 7 == 3 else 1.0 / (i + 1) for i in range(20 * count)]
    history = training.History([{"loss": 1.0 / (i + 1)} for i in range(count)], steps)
    text = history._repr_html_()
    root = ElementTree.fromstring(text)
    assert len(list(root.iter("tr"))) == 1 + min(count, 11)
    assert len(text) < 8000
    assert "nan" not in text
    assert len(list(root.iter("polyline"))) == (count > 0)


def test_losses_that_are_not_finite_are_left_out() -> None:
    assert "<svg" not in training.History([{"loss": 1.0}], [math.inf, math.nan, 1.0])._repr_html_()
    assert "<svg" in training.History([{"loss": 1.0}], [2.0, 2.0])._repr_html_(), "a constant loss"


# scikit-learn.


def test_curves_of_predictions(backend: Backend) -> None:
    """What scikit-learn makes of an engine's own tensors and of EmberTensors, without its array API."""
    metrics = pytest.importorskip("sklearn.metrics")
    mine = trainer()
    mine.fit(X, Y, epochs=3)
    probabilities = ops.softmax(mine.predict(X), axis=-1)
    expected = host(probabilities)
    # torch does not copy tensors of an accelerator to arrays by itself.
    is_array_like = backend.name != "torch" or is_on_cpu(backend)
    for given in (probabilities, EmberTensor(probabilities)) if is_array_like else (EmberTensor(probabilities),):
        for options in itertools.product(["ovr", "ovo"], ["macro"]):
            chosen = dict(zip(("multi_class", "average"), options, strict=True))
            found = metrics.roc_auc_score(Y, given, **chosen)
            assert found == pytest.approx(metrics.roc_auc_score(Y, expected, **chosen))
        is_first, scores = EmberTensor(ops.equal(ops.asarray(Y), 0)), given[:, 0]
        assert metrics.roc_auc_score(is_first, scores) == pytest.approx(metrics.roc_auc_score(Y == 0, expected[:, 0]))
        for ours, theirs in zip(
            metrics.roc_curve(is_first, scores), metrics.roc_curve(Y == 0, expected[:, 0]), strict=True
        ):
            np.testing.assert_allclose(ours, theirs)
    auc = training.AUC()
    assert auc(Y == 0, probabilities[:, 0]) == pytest.approx(metrics.roc_auc_score(Y == 0, expected[:, 0]))
