"""Inputs for activations: both sides of every corner, sizes that overflow, special values, and every option."""

from __future__ import annotations

import numpy as np

from ember_ml.testing.samples import Call, call

NAN, INF = float("nan"), float("inf")

MATRIX = np.asarray([[1.5, -2.0, 3.0, 0.0], [0.25, -0.5, -1.0, 0.5]], np.float32)
CUBE = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11 - 4) / 4
LARGE = np.asarray([-1e4, -100.0, -50.0, -20.5, -7.0, -1e-6, 0.0, 1e-6, 7.0, 19.5, 20.5, 50.0, 1e4], np.float32)
SPECIAL = np.asarray([NAN, INF, -INF, 0.0, -0.0, 1e30, -1e30], np.float32)
DOUBLE = np.asarray([-745.0, -40.0, -3.0, -0.1, 0.0, 1e-3, 0.7, 2.5, 19.0, 300.0, NAN], np.float64)
HALF = np.asarray([-60000.0, -12.0, -0.3, 0.0, 0.3, 12.0, 60000.0], np.float16)
NOTHING = np.zeros((0, 3), np.float32)
NUMBER = np.asarray(2.5, np.float32)
ODD = np.asarray([[1.0, NAN, -2.0], [INF, 3.0, 4.0], [-INF, 3.0, 4.0], [-INF, -INF, -INF]], np.float32)
# More elements than are computed at a time.
LONG = np.linspace(-9, 9, 40001, dtype=np.float32)


def each(*arrays: np.ndarray, **options: object) -> list[Call]:
    """The activation of every kind of array."""
    usual = (MATRIX, CUBE.transpose(2, 0, 1), LARGE, SPECIAL, DOUBLE, HALF, NOTHING, NUMBER)
    return [call(array, **options) for array in (*usual, *arrays)]


def along(*arrays: np.ndarray) -> list[Call]:
    """An activation along axes of every kind."""
    return [
        call(MATRIX),
        call(CUBE, axis=0),
        call(CUBE, axis=1),
        call(CUBE, axis=-2),
        call(MATRIX * 1e4),
        call(np.asarray([1.0], np.float32)),
        call(CUBE.astype(np.float64) * 30, axis=1),
        call(CUBE.astype(np.float16) * 50),
        call(NOTHING, axis=0),
        call(NOTHING),
        *(call(array) for array in arrays),
    ]


SOFT = [
    *along(ODD),
    call(CUBE, axis=None),
    call(CUBE, axis=(0, 2)),
    call(CUBE, axis=[-1, 0]),
    call(CUBE.astype(np.float64), axis=(1, 2)),
    call(MATRIX, axis=()),
    call(NUMBER, axis=None),
    call(NOTHING, axis=(0, 1)),
]

CALLS = {
    "leaky_relu": [*each(), *each(negative_slope=0.25)],
    "elu": [*each(LONG), *each(alpha=0.5)],
    "celu": [*each(), *each(alpha=0.5), call(MATRIX, alpha=-2.0)],
    # torch 2.13: the float32 kernel returns NaN for an infinity, unlike the float64 kernel.
    "gelu": [
        *(c for c in each(LONG) if c.args[0] is not SPECIAL),
        call(SPECIAL[[0, 3, 4, 5, 6]]),
        *each(LONG, approximate=True),
    ],
    "selu": each(LONG),
    "silu": each(LONG),
    "mish": each(LONG),
    "sigmoid": each(LONG),
    "relu": each(),
    "hard_sigmoid": each(),
    "hard_silu": each(),
    "hard_tanh": [*each(), *each(min_val=-0.25, max_val=2.0)],
    "lecun_tanh": each(),
    "tanh_shrink": each(),
    "soft_shrink": [*each(), *each(threshold=0.0), *each(threshold=1.5)],
    "hard_shrink": [*each(), *each(threshold=0.0), *each(threshold=1.5)],
    "softplus": [*each(LONG), *each(beta=2.0), *each(beta=0.5, threshold=4.0)],
    "softsign": each(),
    "squareplus": [*each(LONG), *each(b=0.0), *each(b=0.25)],
    "softmax": SOFT,
    "log_softmax": SOFT,
    "log_sigmoid": each(LONG),
    "sparsemax": [
        *along(np.asarray([[1.0, 1.0, 1.0], [0.0, -9.0, 9.0]], np.float32)),
        call(np.asarray([0.4, 0.3, 0.2, -0.1, 0.4], np.float32)),
        call(np.asarray([0.1, 1.1, 0.2], np.float64)),
    ],
    "glu": [
        call(MATRIX),
        call(CUBE, axis=0),
        call(CUBE, axis=-1),
        call(MATRIX * 1e4),
        call(DOUBLE[:10]),
        call(HALF[:6]),
        call(NOTHING, axis=0),
    ],
    "threshold": [Call((*c.args, 0.5, 7.0), {}) for c in each()] + [call(MATRIX, threshold=-1.0, value=-3.0)],
}
