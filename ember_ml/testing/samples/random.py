"""Draws: with keys, so that they are the same on every engine and in every run."""

from __future__ import annotations

import numpy as np

from ember_ml.testing.samples import Call, call

KEY = np.array([3, 4_000_000_000], np.uint32)
HALVES = np.array([0.25, 0.5, 0.75], np.float32)
FEW = np.array([0.5, 3.0, 20.0], np.float32)
LOGITS = np.array([[0.0, 1.0, -1.0], [2.0, -3.0, 0.5]], np.float32)
# Not an array, so that no other values are drawn for it: it has to be positive definite.
SQUARE = [[2.0, 0.5], [0.5, 1.0]]


def placed(*parameters: float) -> list[Call]:
    """Calls of a distribution with a location and a scale, of all sorts."""
    return [
        call((2, 3), key=KEY),
        call((), key=KEY),
        call((0, 2), key=KEY),
        call(5, *parameters, key=KEY),
        call((2, 3), *parameters, dtype="float64", key=KEY),
        call((2, 3), *parameters, dtype="float16", key=KEY),
        call((2, 3), *parameters, dtype="bfloat16", key=KEY),
        call((2, 3), HALVES, 1.5, key=KEY) if len(parameters) > 1 else call((2, 3), HALVES, key=KEY),
    ]


CALLS = {
    "set_seed": [call(7)],
    "get_seed": [call()],
    "random_bits": [
        call((2, 3), key=KEY),
        call((), key=7),
        call(0, key=7),
        *(call(5, dtype=name, key=7) for name in ("bool", "int8", "uint8", "int16", "int32", "int64", "uint64")),
    ],
    "random_uniform": placed(-1.5, 2.5),
    "random_normal": placed(3.0, 2.0),
    "truncated_normal": [*placed(3.0, 2.0), call(4, 0.0, 1.0, 0.5, 3.0, key=KEY)],
    "random_bernoulli": [
        call((2, 3), 0.25, key=KEY),
        call((2, 3), HALVES, key=KEY),
        call(5, 0.5, dtype="float32", key=7),
        call((), 0.0, key=7),
        call(3, 1, key=7),
    ],
    "random_binomial": [
        call((2, 3), 10, 0.25, key=KEY),
        call((2, 3), np.array([3, 50, 1000]), HALVES, key=KEY),
        call((), 5, 0.5, dtype="int32", key=7),
        call((0,), 5, 0.5, key=7),
    ],
    "random_gamma": [
        call((2, 3), 2.0, key=KEY),
        call((2, 3), FEW, HALVES, key=KEY),
        call((), 0.1, dtype="float64", key=7),
    ],
    "random_beta": [call((2, 3), 2.0, 0.5, key=KEY), call((2, 3), FEW, HALVES, key=KEY), call((0,), 1, 1, key=7)],
    "random_exponential": placed(2.0),
    "random_poisson": [
        call((2, 3), 4.0, key=KEY),
        call((2, 3), FEW, key=KEY),
        call((), 1000, dtype="float32", key=7),
        call(3, 0.0, key=7),
    ],
    "random_laplace": placed(3.0, 2.0),
    "random_gumbel": placed(3.0, 2.0),
    "random_categorical": [
        call(LOGITS, 4, key=KEY),
        call(LOGITS[0], 5, key=KEY),
        call(LOGITS[:0], 5, key=KEY),
        call(LOGITS[None], 0, key=KEY),
    ],
    "random_multivariate_normal": [
        call(np.array([1.0, 2.0], np.float32), SQUARE, 3, key=KEY),
        call(np.zeros((4, 2), np.float32), SQUARE, key=KEY),
        call(np.zeros(2, np.float32), SQUARE, (2, 2), dtype="float64", key=KEY),
    ],
    "random_dirichlet": [call(FEW, 4, key=KEY), call(FEW, key=KEY), call([[1.0, 2.0]], (0, 2), key=KEY)],
    "random_randint": [
        call((2, 3), -5, 10, key=KEY),
        call((), 0, 1, key=7),
        call(0, 0, 5, key=7),
        call(5, -(2**63), 2**63, key=7),
        call(5, 0, 2**64, dtype="uint64", key=7),
        call(5, 5, 2**40, key=7),
        call(5, -128, 128, dtype="int8", key=7),
        call((2, 3), np.array([0, -5, 3]), np.array([10, 2**40, 2**62]), key=KEY),
    ],
    "random_permutation": [
        call(np.arange(6, dtype=np.float32).reshape(3, 2), key=KEY),
        call(10, key=KEY),
        call(1, key=7),
        call(0, key=7),
    ],
    "shuffle": [
        call(np.arange(6, dtype=np.float32).reshape(3, 2), key=KEY),
        call(np.arange(6).reshape(2, 3), -1, key=KEY),
        call(np.zeros((0, 2), np.float32), key=7),
    ],
    "random_choice": [
        call(np.array([10.0, 20.0, 30.0], np.float32), 4, key=KEY),
        call(np.arange(6).reshape(2, 3), (2, 2), axis=1, key=KEY),
        call(5, (2, 3), key=KEY),
        call(5, 5, False, key=KEY),
        call(3, 4, True, HALVES / 1.5, key=KEY),
        call(3, 2, False, HALVES / 1.5, key=KEY),
        call(5, key=7),
    ],
    "random_keep_mask": [call((2, 3), 0.25, key=KEY), call((), 0.5, key=7), call(0, 1.0, key=7)],
}  # fmt: skip

# Their bits are the same on every engine; what logarithms are taken for agrees to a few ulp.
TOLERANCE = dict.fromkeys(
    (
        "random_bits", "random_uniform", "random_bernoulli", "random_randint", "random_permutation", "shuffle",
        "random_categorical", "random_choice", "random_keep_mask",
    ),
    0.0,
)  # fmt: skip
