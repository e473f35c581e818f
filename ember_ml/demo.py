"""Demo: a classifier of handwritten digits, trained by the same program with the same seed on every engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ember_ml import nn, ops, optim, training
from ember_ml.backend import load, use_backend
from ember_ml.datasets import digits
from ember_ml.nn import modules
from ember_ml.types import Tensor

BATCH = 64
HELD = 360
"""Number of images in the test set."""


def mlp() -> modules.Module:
    """Multilayer perceptron with two hidden layers."""
    return modules.Sequential(
        modules.Flatten(),
        modules.Linear(64, 128),
        modules.ReLU(),
        modules.Linear(128, 64),
        modules.ReLU(),
        modules.Linear(64, 10),
    )


def cnn() -> modules.Module:
    """Convolutional network: two convolutions with pooling, and a linear layer."""
    return modules.Sequential(
        modules.Reshape((8, 8, 1)),
        modules.Conv2d(1, 16, 3, padding="same"),
        modules.ReLU(),
        modules.MaxPool2d(2),
        modules.Conv2d(16, 32, 3, padding="same"),
        modules.ReLU(),
        modules.MaxPool2d(2),
        modules.Flatten(),
        modules.Linear(128, 10),
    )


class Transformer(modules.Module):
    """Transformer encoder over the rows of an image."""

    def __init__(self) -> None:
        self.embedding = modules.Linear(8, 32)
        self.positions = modules.PositionalEmbedding(32, 8)
        self.encoder = modules.TransformerEncoder(2, 32, 4, 64, 0.1, norm_first=True)
        self.head = modules.Linear(8 * 32, 10)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.encoder(self.positions(self.embedding(x)))
        return self.head(ops.reshape(seen, (seen.shape[0], -1)))


class Liquid(modules.Module):
    """Closed-form continuous-time network with NCP wiring that reads an image row by row."""

    def __init__(self) -> None:
        self.reader = modules.CfC(8, nn.wirings.AutoNCP(64, 24))
        self.head = modules.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        seen, _ = self.reader(x)
        return self.head(seen[:, -1])


class Plan(NamedTuple):
    """Constructor of a model, its number of epochs, and its initial learning rate."""

    make: Callable[[], modules.Module]
    epochs: int
    rate: float


MODELS = {
    "mlp": Plan(mlp, 20, 3e-3),
    "cnn": Plan(cnn, 15, 1e-2),
    "transformer": Plan(Transformer, 20, 3e-3),
    "cfc": Plan(Liquid, 20, 1e-2),
}


@dataclass(frozen=True)
class Run:
    """Result of training on one engine: the loss of every epoch and step, the test accuracy, and the time."""

    backend: str
    losses: list[float]
    updates: list[float]
    accuracy: float
    seconds: float


class _Watched(training.Callback):
    """Callback that passes the loss of every epoch to a function."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self.tell = tell

    def on_epoch_end(self, trainer: training.Trainer, record: dict[str, float]) -> None:
        self.tell(record["loss"])


def run(
    backend: str,
    model: str = "mlp",
    seed: int = 0,
    epochs: int | None = None,
    tell: Callable[[float], None] = lambda loss: None,
) -> Run:
    """Train a model on an engine. The seed determines the data split, the initial weights and the order of the images.

    Args:
        backend: name of the backend.
        model: a key of ``MODELS``.
        seed: seed of the random stream.
        epochs: number of epochs; by default that of the model.
        tell: function called with the loss of every epoch.
    """
    load(backend, "ember-ml demo")
    plan = MODELS[model]
    epochs = plan.epochs if epochs is None else epochs
    with use_backend(backend):
        ops.random.set_seed(seed)
        images, labels = digits()
        order = ops.random.permutation(images.shape[0])
        images, labels = ops.take(images, order, axis=0), ops.take(labels, order, axis=0)
        rate = optim.schedules.cosine(plan.rate, max(1, epochs * -(-(images.shape[0] - HELD) // BATCH)))
        trainer = training.Trainer(plan.make(), _loss, optim.Adam(rate), ["accuracy"], [_Watched(tell)])
        start = time.perf_counter()
        history = trainer.fit(images[HELD:], labels[HELD:], epochs=epochs, batch_size=BATCH, verbose=0)
        seconds = time.perf_counter() - start
        test = trainer.evaluate(images[:HELD], labels[:HELD], batch_size=BATCH)
    return Run(backend, [record["loss"] for record in history.epochs], history.steps, test["accuracy"], seconds)


def _loss(prediction: Tensor, target: Tensor) -> Tensor:
    return ops.sparse_categorical_crossentropy(target, prediction, from_logits=True)


def disagreement(runs: Sequence[Run]) -> list[float]:
    """Largest difference between the losses of any two engines, for each epoch."""
    return [max(losses) - min(losses) for losses in zip(*(run.losses for run in runs), strict=True)]


def plot(runs: Sequence[Run], title: str, path: str) -> Any:
    """Plot the loss of every step on all engines and the largest difference between them, and save the figure.

    With one engine there is no difference to plot.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plotting requires matplotlib: pip install 'ember-ml[plot]'") from error
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    heights = [3, 2] if len(runs) > 1 else [1]
    upper, *others = panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    # Earlier curves are drawn wider, so that they stay visible below later ones.
    widths = [8.0, 5.0, 2.8, 1.0][-len(runs) :]
    for place, one in enumerate(runs):
        steps = range(1, len(one.updates) + 1)
        width = widths[min(place, len(widths) - 1)]
        upper.plot(steps, one.updates, linewidth=width, alpha=0.75, label=f"{one.backend}  ({one.accuracy:.1%} right)")
    upper.set(yscale="log", ylabel="loss of a step", title=title)
    upper.legend(frameon=False)
    for lower in others:
        apart = [max(losses) - min(losses) for losses in zip(*(one.updates for one in runs), strict=True)]
        lower.plot(range(1, len(apart) + 1), [max(value, 1e-9) for value in apart], color="black", linewidth=0.8)
        lower.set(yscale="log", ylabel="largest difference")
    panels[-1].set(xlabel="step")
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
    figure.savefig(path, dpi=120)
    return figure


def report(runs: Sequence[Run], model: str, seed: int) -> dict[str, Any]:
    """Results of all engines as JSON-compatible values."""
    return {
        "model": model,
        "seed": seed,
        "runs": [
            {"backend": one.backend, "losses": one.losses, "accuracy": one.accuracy, "seconds": one.seconds}
            for one in runs
        ],
        "largest_disagreement": max(disagreement(runs)) if len(runs) > 1 else None,
    }
