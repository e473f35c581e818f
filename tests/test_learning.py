"""Learning: one seed gives one loss curve on every engine, and a run that was broken off stays on it elsewhere."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops, optim, training
from ember_ml.nn import modules
from ember_ml.nn.wirings import AutoNCP

ENGINES = ember_ml.get_available_backends()
OTHERS = [name for name in ENGINES if name != "numpy"]
STEPS = 100
CLASSES = 4

# To differentiate, JAX traces every step that is not compiled, which takes long for large models. Of these, a whole run
# is compiled, and the first epoch is also run without.
COMPILED = {("transformer", "jax"), ("cfc", "jax")}

LOSS = partial(ops.sparse_categorical_crossentropy, from_logits=True)


class Reader(modules.Module):
    """The class of a sequence, from the last output of a recurrent layer."""

    def __init__(self, layer: modules.Module, width: int) -> None:
        self.layer = layer
        self.head = modules.Linear(width, CLASSES)

    def forward(self, x: Any) -> Any:
        outputs, _ = self.layer(x)
        return self.head(outputs[:, -1])


class Transformer(modules.Module):
    """The class of a sequence of tokens."""

    def __init__(self) -> None:
        self.embedding = modules.Embedding(12, 16)
        self.position = modules.PositionalEncoding(16, 8)
        self.encoder = modules.TransformerEncoder(2, 16, 2, 32, 0.1, norm_first=True)
        self.head = modules.Linear(16, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.head(ops.mean(self.encoder(self.position(self.embedding(x))), axis=1))


def mlp() -> Any:
    return modules.Sequential(
        modules.Linear(8, 32),
        ops.relu,
        modules.Dropout(0.2),
        modules.Linear(32, 16),
        ops.tanh,
        modules.Linear(16, CLASSES),
    )


def cnn() -> Any:
    return modules.Sequential(
        modules.Conv2d(1, 4, 3, padding="same"),
        modules.BatchNorm(4),
        ops.relu,
        modules.MaxPool2d(2),
        modules.Conv2d(4, 8, 3),
        ops.relu,
        modules.GlobalAveragePool(),
        modules.Linear(8, CLASSES),
    )


# Each model, the shape of an example, and its optimiser.
MODELS: dict[str, tuple[Any, tuple[int, ...], Any]] = {
    "mlp": (mlp, (8,), lambda: optim.Adam(5e-3)),
    "cnn": (cnn, (8, 8, 1), lambda: optim.SGD(optim.schedules.one_cycle(0.1, STEPS), 0.9, nesterov=True)),
    "transformer": (
        Transformer,
        (8,),
        lambda: optim.AdamW(optim.schedules.warm_up(optim.schedules.cosine(3e-3, 90), 10), clip_norm=1.0),
    ),
    "lstm": (lambda: Reader(modules.LSTM(3, 12), 12), (6, 3), lambda: optim.RMSprop(2e-3)),
    "cfc": (lambda: Reader(modules.CfC(3, AutoNCP(12, 4)), 4), (6, 3), lambda: optim.Lion(5e-3)),
}


def data(name: str) -> tuple[Any, Any]:
    """Examples that can be learned: the class is that of the nearest of four patterns."""
    rng = np.random.default_rng(3)
    shape = MODELS[name][1]
    y = rng.integers(0, CLASSES, 80)
    if name == "transformer":
        x = (rng.integers(0, 5, (80, *shape)) + 2 * y[:, None]) % 12
        return x, y
    patterns = rng.standard_normal((CLASSES, *shape))
    return (patterns[y] + rng.standard_normal((80, *shape))).astype("float32"), y


def trainer(name: str, *callbacks: training.Callback, **options: Any) -> training.Trainer:
    ops.random.set_seed(11)
    model, _, optimizer = MODELS[name]
    return training.Trainer(model(), LOSS, optimizer(), ["accuracy"], callbacks, **options)


@cache
def curve(name: str, engine: str, is_compiled: bool = False) -> tuple[np.ndarray[Any, Any], list[float]]:
    """The losses of a hundred updates, and the accuracy of every epoch."""
    ember_ml.set_backend(engine)
    history = trainer(name, compile=is_compiled).fit(*data(name), epochs=10, batch_size=8)
    return np.array(history.steps), history["accuracy"]


@pytest.fixture(autouse=True)
def _numpy_again() -> Any:
    yield
    ember_ml.set_backend("numpy")


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("name", MODELS)
def test_one_seed_gives_one_curve(name: str, engine: str) -> None:
    # A compiled step takes a key from the stream, so that the orders of examples are others; on NumPy, too.
    is_compiled = (name, engine) in COMPILED
    losses, accuracy = curve(name, engine, is_compiled)
    expected, expected_accuracy = curve(name, "numpy", is_compiled)
    assert len(losses) == STEPS
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(accuracy, expected_accuracy, rtol=0, atol=1e-6)
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10]), "it learns"
    if is_compiled:
        ember_ml.set_backend(engine)
        epoch = trainer(name).fit(*data(name), epochs=1, batch_size=8).steps
        np.testing.assert_allclose(epoch, curve(name, "numpy")[0][: len(epoch)], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_a_run_resumed_is_the_run_uninterrupted(backend: Any, name: str, tmp_path: Path) -> None:
    x, y = data(name)
    whole = trainer(name)
    whole.fit(x, y, epochs=4, batch_size=8)
    trainer(name, training.Checkpoint(tmp_path, every=13, keep=1)).fit(x, y, epochs=2, batch_size=8)
    ops.random.set_seed(0)
    later = training.Trainer(MODELS[name][0](), LOSS, MODELS[name][2](), ["accuracy"])
    history = later.fit(x, y, epochs=4, batch_size=8, resume=tmp_path)
    assert history.steps == whole.history.steps
    assert history["accuracy"] == whole.history["accuracy"]
    for path, tensor in whole.model.tensors().items():
        np.testing.assert_array_equal(backend.to_host(later.model.tensors()[path]), backend.to_host(tensor), path)


@pytest.mark.skipif("torch" not in ENGINES, reason="the run begins on torch, which is not installed")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["mlp", "transformer"])
def test_a_run_that_began_on_torch_stays_on_its_curve(name: str, engine: str, tmp_path: Path) -> None:
    x, y = data(name)
    ember_ml.set_backend("torch")
    trainer(name, training.Checkpoint(tmp_path, every=50)).fit(x, y, epochs=6, batch_size=8)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-00000050.safetensors"]
    ember_ml.set_backend(engine)
    ops.random.set_seed(0)
    later = training.Trainer(MODELS[name][0](), LOSS, MODELS[name][2](), ["accuracy"])
    history = later.fit(x, y, epochs=10, batch_size=8, resume=tmp_path)
    losses, accuracy = curve(name, "torch")
    np.testing.assert_allclose(history.steps, losses, rtol=0, atol=1e-4)
    np.testing.assert_allclose(history["accuracy"], accuracy, rtol=0, atol=1e-6)


@pytest.mark.parametrize("engine", OTHERS)
def test_a_hand_written_loop_is_on_the_same_curve(engine: str) -> None:
    ember_ml.set_backend(engine)
    ops.random.set_seed(11)
    model, optimizer = mlp(), MODELS["mlp"][2]()
    x, y = (ops.asarray(value) for value in data("mlp"))
    step = ember_ml.transform.value_and_grad(lambda model, x, y: LOSS(y, model(x)))
    losses = []
    for _ in range(2):
        order = ops.random.permutation(80)
        for begin in range(0, 80, 8):
            rows = order[begin : begin + 8]
            loss, grads = step(model, ops.take(x, rows, axis=0), ops.take(y, rows, axis=0))
            optimizer.update(model, grads)
            losses.append(float(loss))
    np.testing.assert_allclose(losses, curve("mlp", engine)[0][:20], rtol=0, atol=1e-6)
