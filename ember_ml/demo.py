"""A regression, fitted by closed form and by gradient descent: one program that runs unchanged on every engine.

The data come from an integer hash, so that every engine makes the same ones. Samples run along the last axis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ember_ml import ops
from ember_ml.backend import load, use_backend
from ember_ml.types import Tensor

TRUE = (0.5, 2.0, -3.0, 1.25)
"""The intercept and the weights of the features."""

NOISE = 0.1
STEPS = 200
RATE = 0.6

_MASK = (1 << 31) - 1


def hashed(x: Tensor) -> Tensor:
    """Integers of 24 bits that look random, one per integer of ``x``. No product leaves the range of int64."""
    for _ in range(3):
        x = ops.bitwise_xor(x, ops.bitwise_right_shift(x, 16))
        x = ops.bitwise_and(ops.multiply(x, 0x45D9F3B), _MASK)
    return ops.bitwise_right_shift(x, 7)


def data(samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Features, the first of them a row of ones, and targets with noise."""
    count, parts = len(TRUE) - 1, 12
    start = seed * 0x9E3779B1 & _MASK
    numbers = ops.reshape(ops.add(ops.arange((count + parts) * samples), start), (count + parts, samples))
    bits = hashed(ops.bitwise_and(numbers, _MASK))
    uniform = ops.subtract(ops.divide(bits[:count], 1 << 23), 1.0)
    # A sum of twelve uniform numbers is close to normal; summed as integers, it is the same on every engine.
    normal = ops.subtract(ops.divide(ops.sum(bits[count:], axis=0), 1 << 24), parts / 2)
    features = ops.concatenate([ops.ones((1, samples)), uniform], axis=0)
    return features, ops.add(predicted(features, ops.asarray(TRUE)), ops.multiply(normal, NOISE))


def predicted(features: Tensor, weights: Tensor) -> Tensor:
    """The linear model's answers."""
    return ops.sum(ops.multiply(ops.expand_dims(weights, axis=1), features), axis=0)


def loss(features: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """The mean of the squared errors."""
    return ops.mean(ops.square(ops.subtract(predicted(features, weights), targets)))


def solved(matrix: Tensor, column: Tensor) -> Tensor:
    """The solution of a linear system with a positive definite matrix, by Gauss-Jordan elimination."""
    count = matrix.shape[0]
    rows = ops.concatenate([matrix, column], axis=1)
    for k in range(count):
        pivot = ops.divide(rows[k : k + 1], rows[k : k + 1, k : k + 1])
        is_pivot = ops.expand_dims(ops.equal(ops.arange(count), k), axis=1)
        rows = ops.where(is_pivot, pivot, ops.subtract(rows, ops.multiply(rows[:, k : k + 1], pivot)))
    return ops.squeeze(rows[:, count:], axis=1)


def closed_form(features: Tensor, targets: Tensor) -> Tensor:
    """The weights that solve the normal equations."""
    moments = ops.mean(ops.multiply(ops.expand_dims(features, axis=1), ops.expand_dims(features, axis=0)), axis=2)
    return solved(moments, ops.mean(ops.multiply(features, targets), axis=1, keepdims=True))


def gradient_descent(features: Tensor, targets: Tensor) -> Tensor:
    """The weights after a fixed number of steps down the gradient of the loss."""
    weights = ops.zeros(len(TRUE))
    for _ in range(STEPS):
        errors = ops.subtract(predicted(features, weights), targets)
        gradient = ops.multiply(ops.mean(ops.multiply(features, errors), axis=1), 2.0)
        weights = ops.subtract(weights, ops.multiply(gradient, RATE))
    return weights


METHODS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "closed form": closed_form,
    "descent": gradient_descent,
}


@dataclass(frozen=True)
class Fit:
    """What one method found on one engine, and how long it took."""

    backend: str
    method: str
    coefficients: list[float]
    loss: float
    seconds: float


def run(backend: str, samples: int, seed: int) -> list[Fit]:
    """The fits of all methods on an engine. A small rehearsal keeps what is loaded on first use out of the times."""
    load(backend, "ember-ml demo")
    with use_backend(backend):
        _fits(backend, 16, seed)
        return _fits(backend, samples, seed)


def _fits(backend: str, samples: int, seed: int) -> list[Fit]:
    features, targets = data(samples, seed)
    float(ops.sum(targets))  # a lazy engine makes the data here, not in the time of the first method
    found = []
    for method, fit in METHODS.items():
        start = time.perf_counter()
        weights = fit(features, targets)
        coefficients = weights.tolist()
        seconds = time.perf_counter() - start
        found.append(Fit(backend, method, coefficients, float(loss(features, targets, weights)), seconds))
    return found


def disagreement(fits: Sequence[Fit]) -> float:
    """The largest difference between the coefficients that two engines found by the same method."""
    largest = 0.0
    for method in METHODS:
        rows = [fit.coefficients for fit in fits if fit.method == method]
        largest = max([largest, *(max(column) - min(column) for column in zip(*rows, strict=True))])
    return largest
