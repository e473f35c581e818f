"""The cost of a training step: ``ember_ml`` against the same model hand-written in each engine, and against Keras.

Three models with Adam: an MLP of 784-512-512-10 on batches of 128, a small CNN on batches of 32 images of 28 x 28, a
transformer of 4 layers of 128 features on batches of 16 sequences of 32. A step is forward, loss, gradient and update,
all of it computed. Hand-written means ``torch.nn`` with default ``torch.optim``, ``mlx.nn`` with
``mlx.optimizers``, functions of ``jax.numpy`` with ``optax``, and on NumPy an MLP with a hand-written backward pass.
Eager, and compiled: ``torch.compile`` of the model with its loss and of the optimizer step, ``mx.compile`` of the whole
step, ``jax.jit`` of the whole step with donated parameters and state, ``ember_ml.compile`` of the whole step.

All start with the same weights and must have the same losses over three steps before anything is timed. Steps take
turns: native, ember_ml, Keras, native again. A figure is the median over all turns, a ratio the median of the ratios in
each round. The time is CPU time of the process (with one thread for the engine), which depends little on other
programs; ``--wall`` measures wall-clock time.

The targets: at most 1.10 times the hand-written step eager and 1.03 times compiled; on NumPy, which compiles nothing,
1.50 times. An eager step on JAX has no target, since programs compile theirs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from operator import truediv
from typing import Any, NamedTuple

from measuring import (
    AGAIN,
    EMBER,
    NATIVE,
    Caller,
    Engine,
    SkippedError,
    Stage,
    add_options,
    agree,
    bars,
    finish_bars,
    parsed,
    save_figure,
    setting,
    skipped_lines,
    table,
    times,
    trust,
    turns,
    working,
    write,
)

EAGER, COMPILED = "eager", "compiled"
TARGETS = {EAGER: 1.10, COMPILED: 1.03, "numpy": 1.50}
KERAS = "Keras"

# Seconds in a turn.
TURN = 2e-2

REPEATS, QUICK = 31, 7

RATE = 1e-3
VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 64, 32, 128, 4, 4

Step = Callable[[], Any]
Weights = dict[str, Any]


class Case(NamedTuple):
    """A model, what it is in words, and its data as host arrays."""

    name: str
    size: str
    data: Callable[[Any], tuple[Any, Any]]


PANEL = [
    Case(
        "mlp",
        "784-512-512-10, batch 128",
        lambda rng: (rng.standard_normal((128, 784), "float32"), rng.integers(0, 10, 128)),
    ),
    Case(
        "cnn",
        "conv 16, conv 32, batch 32",
        lambda rng: (rng.standard_normal((32, 28, 28, 1), "float32"), rng.integers(0, 10, 32)),
    ),
    Case(
        "transformer",
        "4 layers, d 128, batch 16 x 32",
        lambda rng: (rng.integers(0, VOCABULARY, (16, LENGTH)), rng.integers(0, VOCABULARY, (16, LENGTH))),
    ),
]


def ember_model(name: str) -> Any:
    """The model in ember_ml, on the active engine."""
    from ember_ml import nn, ops

    modules = nn.modules
    if name == "mlp":
        return modules.Sequential(
            modules.Linear(784, 512), ops.relu, modules.Linear(512, 512), ops.relu, modules.Linear(512, 10)
        )
    if name == "cnn":
        return modules.Sequential(
            modules.Conv2d(1, 16, 3, padding="same"),
            ops.relu,
            modules.MaxPool2d(2),
            modules.Conv2d(16, 32, 3, padding="same"),
            ops.relu,
            modules.MaxPool2d(2),
            modules.GlobalAveragePool(),
            modules.Linear(32, 10),
        )

    class Transformer(modules.Module):
        def __init__(self) -> None:
            self.embedding = modules.Embedding(VOCABULARY, WIDTH)
            self.position = modules.PositionalEmbedding(WIDTH, LENGTH)
            self.encoder = modules.TransformerEncoder(LAYERS, WIDTH, HEADS, 4 * WIDTH, 0.0, norm_first=True)
            self.head = modules.Linear(WIDTH, VOCABULARY)

        def forward(self, x: Any) -> Any:
            return self.head(self.encoder(self.position(self.embedding(x)), is_causal=True))

    return Transformer()


def ember_step(engine: Engine, case: Case, weights: Weights, mode: str) -> Step:
    import ember_ml
    from ember_ml import ops, optim, transform

    ember_ml.set_backend(engine.name)
    model, optimizer = ember_model(case.name), optim.Adam(RATE)
    model.load_state_dict(weights)
    optimizer.init(model)
    x, y = (ops.asarray(value) for value in _data(case))
    gradient = transform.value_and_grad(
        lambda model, x, y: ops.sparse_categorical_crossentropy(y, model(x), from_logits=True)
    )

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = gradient(model, x, y)
        optimizer.update(model, grads)
        return loss

    run = transform.compile(step) if mode == COMPILED else step
    if engine.finish is None:
        return lambda: run(model, optimizer, x, y)

    def finished() -> Any:
        loss = run(model, optimizer, x, y)
        # JAX computes all results of a compiled step at once.
        state = () if (engine.name, mode) == ("jax", COMPILED) else (model.tensors(), optimizer.tensors())
        ops.eval(loss, *state)
        return loss

    return finished


def torch_step(engine: Engine, case: Case, weights: Weights, mode: str) -> Step:
    import torch
    from torch import nn
    from torch.nn import functional

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def heads(self, x: Any) -> Any:
            return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)

        def forward(self, x: Any) -> Any:
            z = self.norm1(x)
            q, k, v = self.heads(self.query(z)), self.heads(self.key(z)), self.heads(self.value(z))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            return x + self.down(functional.relu(self.up(self.norm2(x))))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.position = nn.Parameter(torch.zeros(LENGTH, WIDTH))
            self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.layers(self.embedding(x) + self.position)))

    models: dict[str, Callable[[], Any]] = {
        "mlp": lambda: nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        ),
        "cnn": lambda: nn.Sequential(
            nn.Conv2d(1, 16, 3, padding="same"),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding="same"),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(32, 10),
        ),
        "transformer": Transformer,
    }
    model = models[case.name]()
    own = dict(model.named_parameters())
    if "position" in own:
        # torch lists the parameters of a module before those of its submodules.
        own = {"embedding.weight": own.pop("embedding.weight"), "position": own.pop("position"), **own}
    with torch.no_grad():
        for parameter, (path, weight) in zip(own.values(), weights.items(), strict=True):
            kernel = weight.transpose(3, 2, 0, 1) if weight.ndim == 4 else weight
            parameter.copy_(torch.tensor(kernel.T if _is_linear(path, weight) else kernel))
    x, y = (torch.tensor(value) for value in _data(case))
    if case.name == "cnn":
        x = x.permute(0, 3, 1, 2).contiguous()
    optimizer = torch.optim.Adam(model.parameters(), RATE)

    def loss_of(x: Any, y: Any) -> Any:
        return functional.cross_entropy(model(x).flatten(0, -2), y.flatten())

    update = optimizer.step
    if mode == COMPILED:
        loss_of, update = torch.compile(loss_of), torch.compile(optimizer.step)

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        update()
        return loss.detach()

    return step


def mlx_step(engine: Engine, case: Case, weights: Weights, mode: str) -> Step:
    import mlx.core as mx
    import mlx.optimizers
    from mlx import nn
    from mlx.utils import tree_flatten, tree_unflatten

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def heads(self, x: Any) -> Any:
            return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

        def __call__(self, x: Any) -> Any:
            z = self.norm1(x)
            q, k, v = self.heads(self.query(z)), self.heads(self.key(z)), self.heads(self.value(z))
            scale = (WIDTH // HEADS) ** -0.5
            mixed = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask="causal")
            x = x + self.out(mixed.transpose(0, 2, 1, 3).reshape(x.shape))
            return x + self.down(nn.relu(self.up(self.norm2(x))))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.position = mx.zeros((LENGTH, WIDTH))
            self.layers = [Layer() for _ in range(LAYERS)]
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def __call__(self, x: Any) -> Any:
            x = self.embedding(x) + self.position
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x))

    models: dict[str, Callable[[], Any]] = {
        "mlp": lambda: nn.Sequential(nn.Linear(784, 512), nn.relu, nn.Linear(512, 512), nn.relu, nn.Linear(512, 10)),
        "cnn": lambda: nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.relu,
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.relu,
            nn.MaxPool2d(2),
            lambda x: mx.mean(x, axis=(1, 2)),
            nn.Linear(32, 10),
        ),
        "transformer": Transformer,
    }
    model = models[case.name]()
    own = []
    for (name, old), (path, weight) in zip(tree_flatten(model.parameters()), weights.items(), strict=True):
        kernel = weight.transpose(3, 0, 1, 2) if weight.ndim == 4 else weight
        new = mx.array(kernel.T if _is_linear(path, weight) else kernel)
        if new.shape != old.shape:
            raise SkippedError(f"{name} of {old.shape} is not {path} of {new.shape}")
        own.append((name, new))
    model.update(tree_unflatten(own))
    x, y = (mx.array(value) for value in _data(case))
    optimizer = mlx.optimizers.Adam(RATE, bias_correction=True)
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state]

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    gradient = nn.value_and_grad(model, loss_of)

    def step(x: Any, y: Any) -> Any:
        loss, grads = gradient(model, x, y)
        optimizer.update(model, grads)
        return loss

    run = mx.compile(step, inputs=state, outputs=state) if mode == COMPILED else step

    def finished() -> Any:
        loss = run(x, y)
        mx.eval(loss, state)
        return loss

    return finished


def jax_step(engine: Engine, case: Case, weights: Weights, mode: str) -> Step:
    if find_spec("optax") is None:
        raise SkippedError("optax is not installed")
    import jax
    import jax.numpy as jnp
    import optax
    from jax import lax, nn

    def linear(parameters: Weights, path: str, x: Any) -> Any:
        return x @ parameters[f"{path}.weight"] + parameters[f"{path}.bias"]

    def mlp(parameters: Weights, x: Any) -> Any:
        x = nn.relu(linear(parameters, "0", x))
        x = nn.relu(linear(parameters, "2", x))
        return linear(parameters, "4", x)

    def conv(parameters: Weights, path: str, x: Any) -> Any:
        kernel = parameters[f"{path}.weight"]
        axes = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=axes) + parameters[f"{path}.bias"]

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def cnn(parameters: Weights, x: Any) -> Any:
        x = pool(nn.relu(conv(parameters, "0", x)))
        x = pool(nn.relu(conv(parameters, "3", x)))
        return linear(parameters, "7", jnp.mean(x, axis=(1, 2)))

    def norm(parameters: Weights, path: str, x: Any) -> Any:
        return nn.standardize(x, epsilon=1e-5) * parameters[f"{path}.weight"] + parameters[f"{path}.bias"]

    def layer(parameters: Weights, path: str, x: Any) -> Any:
        z = norm(parameters, f"{path}.norm1", x)
        q, k, v = (
            linear(parameters, f"{path}.attention.{part}", z).reshape(*z.shape[:2], HEADS, -1)
            for part in ("query", "key", "value")
        )
        mixed = nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(parameters, f"{path}.attention.out", mixed.reshape(x.shape))
        z = nn.relu(linear(parameters, f"{path}.feed_forward.linear1", norm(parameters, f"{path}.norm2", x)))
        return x + linear(parameters, f"{path}.feed_forward.linear2", z)

    def transformer(parameters: Weights, x: Any) -> Any:
        x = parameters["embedding.weight"][x] + parameters["position.weight"]
        for i in range(LAYERS):
            x = layer(parameters, f"encoder.layers.{i}", x)
        return linear(parameters, "head", norm(parameters, "encoder.norm", x))

    model = {"mlp": mlp, "cnn": cnn, "transformer": transformer}[case.name]
    parameters = {path: jnp.array(weight) for path, weight in weights.items()}
    optimizer = optax.adam(RATE)
    state = optimizer.init(parameters)
    x, y = (jnp.array(value, "int32" if value.dtype.kind == "i" else value.dtype) for value in _data(case))

    def loss_of(parameters: Weights, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(model(parameters, x), y).mean()

    def step(parameters: Weights, state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(parameters, x, y)
        updates, state = optimizer.update(grads, state, parameters)
        return loss, optax.apply_updates(parameters, updates), state

    run = jax.jit(step, donate_argnums=(0, 1)) if mode == COMPILED else step

    def finished() -> Any:
        nonlocal parameters, state
        loss, parameters, state = run(parameters, state, x, y)
        jax.block_until_ready(loss if mode == COMPILED else (loss, parameters, state))
        return loss

    return finished


def numpy_step(engine: Engine, case: Case, weights: Weights, mode: str) -> Step:
    """MLP with a hand-written backward pass."""
    import numpy as np

    if case.name != "mlp":
        raise SkippedError("hand-written for the MLP only")
    parameters = [weight.copy() for weight in weights.values()]
    first = [np.zeros_like(weight) for weight in parameters]
    second = [np.zeros_like(weight) for weight in parameters]
    x, y = _data(case)
    rows = np.arange(len(y))
    count = 0

    def step() -> Any:
        nonlocal count
        w1, b1, w2, b2, w3, b3 = parameters
        h1 = np.maximum(x @ w1 + b1, 0)
        h2 = np.maximum(h1 @ w2 + b2, 0)
        z = h2 @ w3 + b3
        z = z - z.max(1, keepdims=True)
        logs = z - np.log(np.exp(z).sum(1, keepdims=True))
        loss = -logs[rows, y].mean()
        d3 = np.exp(logs)
        d3[rows, y] -= 1
        d3 /= len(y)
        d2 = (d3 @ w3.T) * (h2 > 0)
        d1 = (d2 @ w2.T) * (h1 > 0)
        grads = [x.T @ d1, d1.sum(0), h1.T @ d2, d2.sum(0), h2.T @ d3, d3.sum(0)]
        count += 1
        for p, g, m, v in zip(parameters, grads, first, second, strict=True):
            m *= 0.9
            m += 0.1 * g
            v *= 0.999
            v += 0.001 * g * g
            p -= RATE / (1 - 0.9**count) * m / (np.sqrt(v / (1 - 0.999**count)) + 1e-8)
        return loss

    return step


def keras_step(engine: Engine, case: Case, weights: Weights, mode: str) -> Step:
    """A step of Keras on torch, as ``fit`` takes it."""
    if find_spec("keras") is None:
        raise SkippedError("keras is not installed")
    os.environ["KERAS_BACKEND"] = engine.name
    import keras
    from keras import layers

    if keras.backend.backend() != engine.name:
        raise SkippedError(f"Keras was loaded for {keras.backend.backend()}")

    class Position(layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.table = self.add_weight(shape=(LENGTH, WIDTH))

        def call(self, x: Any) -> Any:
            return x + self.table

    def transformer() -> Any:
        given = keras.Input((LENGTH,), dtype="int64")
        x = Position()(layers.Embedding(VOCABULARY, WIDTH)(given))
        for _ in range(LAYERS):
            z = layers.LayerNormalization(epsilon=1e-5)(x)
            x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(z, z, use_causal_mask=True)
            z = layers.LayerNormalization(epsilon=1e-5)(x)
            x = x + layers.Dense(WIDTH)(layers.Dense(4 * WIDTH, "relu")(z))
        return keras.Model(given, layers.Dense(VOCABULARY)(layers.LayerNormalization(epsilon=1e-5)(x)))

    models: dict[str, Callable[[], Any]] = {
        "mlp": lambda: keras.Sequential([
            keras.Input((784,)), layers.Dense(512, "relu"), layers.Dense(512, "relu"), layers.Dense(10)
        ]),
        "cnn": lambda: keras.Sequential([
            keras.Input((28, 28, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]),
        "transformer": transformer,
    }  # fmt: skip
    model = models[case.name]()
    _fill_keras(model, case, weights)
    model.compile(
        keras.optimizers.Adam(RATE, epsilon=1e-8),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=mode == COMPILED,
    )
    import torch

    x, y = (torch.tensor(value) for value in _data(case))
    return lambda: model.train_on_batch(x, y)


def _fill_keras(model: Any, case: Case, weights: Weights) -> None:
    """Set the initial weights of a Keras model, which lists them layer by layer."""
    order = list(weights)
    if case.name == "transformer":
        parts = ("norm1", "attention.query", "attention.key", "attention.value", "attention.out", "norm2",
                 "feed_forward.linear1", "feed_forward.linear2")  # fmt: skip
        inner = [
            f"encoder.layers.{i}.{part}.{kind}" for i in range(LAYERS) for part in parts for kind in ("weight", "bias")
        ]
        ends = ["encoder.norm.weight", "encoder.norm.bias", "head.weight", "head.bias"]
        order = ["embedding.weight", "position.weight", *inner, *ends]
    if len(order) != len(model.weights):
        raise SkippedError("its weights differ from those of ember_ml")
    model.set_weights([weights[path].reshape(old.shape) for path, old in zip(order, model.weights, strict=True)])


def _data(case: Case) -> tuple[Any, Any]:
    import numpy as np

    return case.data(np.random.default_rng(0))


def _is_linear(path: str, weight: Any) -> bool:
    """Whether a weight is the matrix of a linear layer, which torch and MLX store transposed."""
    return weight.ndim == 2 and "embedding" not in path and "position" not in path


def _weights(case: Case) -> Weights:
    """Initial weights as host arrays."""
    import ember_ml
    from ember_ml import ops

    ember_ml.set_backend("numpy")
    ops.random.set_seed(0)
    return dict(ember_model(case.name).state_dict())


NATIVES = {"torch": torch_step, "mlx": mlx_step, "numpy": numpy_step, "jax": jax_step}


class Plan(NamedTuple):
    """What to measure, and how thoroughly."""

    engines: list[str]
    cases: list[Case]
    modes: list[str]
    repeats: int
    turn: float
    clock: Callable[[], float]


def rows(plan: Plan) -> Iterator[dict[str, Any]]:
    """One record per engine, model and mode: the time of every way in microseconds, or why there is none."""
    for name in plan.engines:
        engine = Engine(name)
        for case in plan.cases:
            for mode in plan.modes:
                if name != "numpy" or (case.name == "mlp" and mode == EAGER):
                    yield _row(engine, case, mode, plan)


def _row(engine: Engine, case: Case, mode: str, plan: Plan) -> dict[str, Any]:
    weights = _weights(case)
    ways = {NATIVE: NATIVES[engine.name], EMBER: ember_step, AGAIN: NATIVES[engine.name]}
    if engine.name == "torch":
        ways[KERAS] = keras_step
    results: list[Any] = []

    def agrees(found: Any) -> bool:
        results.append(found)
        return agree(found, results[0], 1e-3, 1e-4)

    made = {way: partial(_caller, step_of, engine, case, weights, mode) for way, step_of in ways.items()}
    callers, skipped = working(made, {}, agrees)
    timers = {way: timeit.Timer(caller.names["step"], timer=plan.clock) for way, caller in callers.items()}
    found = turns(timers, plan.repeats, plan.turn) if {NATIVE, EMBER} <= set(timers) else {}
    us = {way: statistics.median(some) * 1e6 for way, some in found.items()}
    ratios = {way: statistics.median(map(truediv, some, found[NATIVE])) for way, some in found.items() if way != NATIVE}
    row = {"engine": engine.name, "case": case.name, "size": case.size, "mode": mode, "target": _target(engine, mode)}
    return {**row, "us": us, "ratios": ratios, "skipped": skipped}


def _caller(step_of: Callable[..., Step], *args: Any) -> Caller:
    """Caller of a step, whose result is the losses of the first three steps."""
    step = step_of(*args)
    return Caller("[float(step()) for _ in range(3)]", {"step": step})


def _target(engine: Engine, mode: str) -> float | None:
    if (engine.name, mode) == ("jax", EAGER):
        return None
    return TARGETS["numpy" if engine.name == "numpy" else mode]


def show(found: list[dict[str, Any]], console: Any) -> None:
    """A table per engine, what was skipped, whether the targets are met."""
    for engine in dict.fromkeys(row["engine"] for row in found):
        mine = [row for row in found if row["engine"] == engine and row["ratios"]]
        if mine:
            console.print(_table(engine, mine))
            console.print(trust([row["ratios"][AGAIN] for row in mine]), style="dim")
            console.print()
    for line in skipped_lines(found):
        console.print(line, style="dim", highlight=False, soft_wrap=True)
    for row in found:
        if row["ratios"]:
            ratio, target = row["ratios"][EMBER], row["target"]
            text = f"[bold]{row['engine']}[/] {row['case']} {row['mode']}: {ratio:.3f}x"
            if target is not None:
                word = "[green]met[/]" if ratio <= target else "[red]missed[/]"
                text += f" (target {target:.2f}x, {word})"
            console.print(text, highlight=False)


def _table(engine: str, mine: list[dict[str, Any]]) -> Any:
    made = table(f"{engine}, milliseconds a step")
    for column in ("model", "mode"):
        made.add_column(column, no_wrap=True)
    for column in ("native", "ember_ml", "ratio", "Keras", "ratio", "again"):
        made.add_column(column, justify="right", no_wrap=True, style="bold" if column == "ratio" else "")
    for row in mine:
        us, ratios = row["us"], row["ratios"]
        keras = (f"{us[KERAS] / 1000:.2f}", times(ratios[KERAS])) if KERAS in us else ("", "")
        made.add_row(
            row["case"],
            row["mode"],
            f"{us[NATIVE] / 1000:.2f}",
            f"{us[EMBER] / 1000:.2f}",
            times(ratios[EMBER]),
            *keras,
            times(ratios[AGAIN]),
        )
    return made


def plot(found: list[dict[str, Any]], path: str) -> None:
    """Bars of the ratios: a panel per engine, with a line at 1."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    engines = list(dict.fromkeys(row["engine"] for row in found))
    figure, panels = pyplot.subplots(
        1, len(engines), figsize=(1.5 + 3.6 * len(engines), 4), squeeze=False, layout="constrained"
    )
    for axes, engine in zip(panels[0], engines, strict=True):
        mine = [row for row in found if row["engine"] == engine and row["ratios"]]
        heights = {way: [row["ratios"].get(way, 0.0) for row in mine] for way in (EMBER, KERAS, AGAIN)}
        bars(axes, heights, {EMBER: "#d1495b", KERAS: "#5b8e7d", AGAIN: "#9aa5b8"}, 2.5)
        finish_bars(axes, [f"{row['case']} {row['mode']}" for row in mine], 2.5)
        axes.set_title(engine, loc="left", fontweight="bold", pad=18)
        axes.set_ylabel("time / hand-written")
    save_figure(figure, panels, path)


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python benchmarks/training.py                             everything; compiling takes minutes\n"
        "  python benchmarks/training.py --quick --modes eager       a first impression\n"
        "  python benchmarks/training.py --ops mlp --engines torch   one model on one engine\n"
        "  python benchmarks/training.py --json - > figures.json     for machines; tables go to stderr\n"
        "  python benchmarks/training.py --plot training.png         bars of the ratios",
    )
    add_options(parser, [case.name for case in PANEL], REPEATS, QUICK)
    parser.add_argument("--modes", nargs="+", choices=[EAGER, COMPILED], default=[EAGER, COMPILED], metavar="MODE",
                        help=f"{EAGER}, {COMPILED}")  # fmt: skip
    parser.add_argument("--wall", action="store_true", help="measure wall-clock time, not CPU time")
    return parsed(parser, given)


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    stage = Stage.of(options)
    cases = [case for case in PANEL if case.name in options.ops]
    repeats = options.repeats or (QUICK if options.quick else REPEATS)
    clock = time.perf_counter if options.wall else time.process_time
    plan = Plan(options.engines, cases, options.modes, repeats, TURN, clock)
    where = setting("keras", "optax")
    stage.introduce(where)
    found = []
    with stage.show_progress(len(plan.engines) * len(cases) * len(plan.modes)) as advance:
        for row in rows(plan):
            found.append(row)
            advance(f"{row['engine']} {row['case']} {row['mode']}", 1)
    show(found, stage.results)
    clock_name = "wall" if options.wall else "processors"
    write({**where, "repeats": plan.repeats, "clock": clock_name, "rows": found}, options.json)
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
