"""What the check of gradients must know of operations whose samples do not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml import ops
from ember_ml.testing.samples import Call, call


def symmetric(x: Any) -> Any:
    """A symmetric or Hermitian matrix from its lower half, which is all that such operations read."""
    real = ops.multiply(ops.add(x, ops.conj(x)), 0.5)
    lower = ops.tril(x, k=-1)
    return ops.add(ops.add(lower, ops.conj(ops.matrix_transpose(lower))), ops.triu(ops.tril(real)))


# Functions applied to the first tensor before the operation, and differentiated with it.
THROUGH: dict[str, Callable[[Any], Any]] = dict.fromkeys(
    ("cholesky", "eigh", "eigvalsh", "logm_spd", "sqrtm_spd"), symmetric
)


def reduced(result: Any) -> Any:
    """Singular values and their vectors; the other vectors are not unique."""
    u, s, vh = result
    k = s.shape[-1]
    return u[..., :, :k], s, vh[..., :k, :]


# The part of a result that has a gradient.
SEEN: dict[str, Callable[[Any], Any]] = {"svd": reduced, "batch_standardization": lambda result: result[0]}


def is_tall_and_complete(call: Call) -> bool:
    """Whether the last columns of Q may be any."""
    rows, columns = call.args[0].shape[-2:]
    return call.kwargs.get("mode") == "complete" and rows > columns


# Calls without a gradient.
WITHOUT: dict[str, Callable[[Call], bool]] = {"qr": is_tall_and_complete}

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]], np.float32)
Y = np.array([[1.5, 0.25, -2.0], [-0.5, 1.25, 0.75]], np.float32)

# Calls with floating tensors, where the samples have none that is finite.
MORE: dict[str, list[Call]] = {
    "nan_to_num": [call(X)],
    "select": [call([X > 1, X < 0], [X, Y], Y)],
    "random_uniform": [call((2, 3), X, X + 2, key=7)],
    "random_normal": [call((2, 3), X, Y * Y, key=7)],
    "truncated_normal": [call((2, 3), X, Y * Y, key=7)],
}
