"""Inputs for comparison and logic: special values, all kinds of axes, choices among several."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ember_ml.testing.samples import call

NAN, INF = float("nan"), float("inf")

SPECIAL = np.asarray([0.0, -0.0, 1.5, NAN, INF, -INF], np.float32)
OTHER = np.asarray([-0.0, 1.0, 1.5, NAN, INF, INF], np.float32)
COMPLEX = np.asarray(
    [1 + 2j, complex(NAN, 0), complex(0, NAN), complex(INF, NAN), complex(0, -INF), 0, 3], np.complex64
)
MATRIX = np.asarray([[0.0, 1.0, NAN], [2.0, 0.0, -0.0]], np.float32)
TRUTH = np.asarray([[True, False, True], [True, True, True]])
NOTHING = np.zeros((0, 3), np.float32)
CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4) % 5
LARGE = np.asarray([2**53, 2**53 + 1, -(2**62)], np.int64)
HUGE = np.asarray([2**64 - 1, 2**63, 0], np.uint64)
BROAD = (np.asarray([[1.0], [2.0]], np.float32), np.asarray([1.0, 2.0, NAN], np.float32))

PAIRS = [
    call(np.asarray([[1.0, 2.0, 0.0], [-1.0, 3.0, 2.5]], np.float32), np.asarray([1.0, 3.0, 0.5], np.float32)),
    call(SPECIAL, OTHER),
    call(OTHER, SPECIAL),
    call(SPECIAL, 1.5),
    call(*BROAD),
    call(NOTHING, NOTHING),
    call(np.asarray(2), np.asarray(3)),
    call(LARGE, LARGE[::-1].copy()),
    call(HUGE, HUGE[::-1].copy()),
    call(TRUTH, TRUTH[::-1].copy()),
    call(np.asarray([1, 2], np.int8), np.asarray([1, 200], np.uint8)),
]
ALSO_COMPLEX = [*PAIRS, call(COMPLEX, COMPLEX[::-1].copy()), call(COMPLEX, COMPLEX), call(COMPLEX, 3)]

NEAR = np.asarray([1.0, 1.00001, 1.0001, 0.0, 1e-9, 1e-7, NAN, NAN, INF, INF, -INF, 1e30], np.float32)
NEAR_TO = np.asarray([1.0, 1.0, 1.0, 1e-9, 0.0, 0.0, NAN, 1.0, INF, -INF, 1e30, 1.00001e30], np.float32)
CLOSE = [
    call(np.asarray([[1.0, 2.0, 0.0], [-1.0, 3.0, 2.5]], np.float32), np.asarray([1.0, 3.0, 0.5], np.float32)),
    call(NEAR, NEAR_TO),
    call(NEAR_TO, NEAR),
    call(NEAR, NEAR_TO, equal_nan=True),
    call(NEAR, NEAR_TO, 1e-3, 1e-6),
    call(NEAR, NEAR_TO, rtol=0.0, atol=0.0),
    call(np.asarray([100.0], np.float32), np.asarray([110.0], np.float32), rtol=0.0953),
    call(np.asarray([110.0], np.float32), np.asarray([100.0], np.float32), rtol=0.0953),
    call(NEAR.astype(np.float16), NEAR_TO.astype(np.float16), 1e-2, 1e-3),
    call(np.asarray([1, 100000, 5]), np.asarray([1, 100001, 6])),
    call(np.asarray([0, 5], np.uint8), np.asarray([1, 3], np.uint8), atol=1.0),
    call(np.asarray([2**24, 2**24]), np.asarray([2**24 + 1, 2**24]), rtol=0.0, atol=0.5),
    call(TRUTH, TRUTH[::-1].copy()),
    call(COMPLEX, COMPLEX),
    call(COMPLEX, COMPLEX, equal_nan=True),
    call(np.asarray([1 + 1j, 1 + 1j], np.complex64), np.asarray([1 + 1.000001j, 1 + 1.1j], np.complex64)),
    call(NOTHING, NOTHING),
    call(NEAR.astype(np.float64), NEAR_TO.astype(np.float64)),
    call(NEAR, NEAR_TO, rtol=-1.0),
    call(NEAR, NEAR, atol=-1.0, equal_nan=True),
    call(*BROAD),
]
SINGLE = [
    call(np.asarray([[1.0, NAN, INF], [-INF, 0.0, -3.0]], np.float32)),
    call(SPECIAL),
    call(SPECIAL.astype(np.float64)),
    call(SPECIAL.astype(np.float16)),
    call(np.asarray(NAN, np.float32)),
    call(NOTHING),
    call(CUBE),
    call(TRUTH),
]
REDUCED = [
    call(MATRIX, axis=0),
    call(MATRIX),
    call(MATRIX, axis=1),
    call(MATRIX, axis=-1, keepdims=True),
    call(MATRIX, keepdims=True),
    call(MATRIX, axis=()),
    call(CUBE, axis=(0, 2)),
    call(CUBE, axis=(-1, 0), keepdims=True),
    call(CUBE, axis=[1, 2]),
    call(CUBE.astype(np.uint8), axis=1),
    call(CUBE.astype(np.uint8)),
    call(CUBE.astype(np.uint64), axis=0),
    call(TRUTH, axis=1),
    call(COMPLEX),
    call(np.asarray(0.0, np.float32)),
    call(np.asarray(3), axis=()),
    call(np.asarray(3), axis=0),
    call(np.asarray(0.0, np.float32), axis=-1, keepdims=True),
    call(NOTHING),
    call(NOTHING, axis=0),
    call(NOTHING, axis=1),
]
HALVES = np.asarray([1.0, 2.0, 4.0, NAN] * 10, ml_dtypes.bfloat16)
MEMBERS = np.asarray([[1.0, 2.0, NAN], [-0.5, 2.5, 0.0]], np.float32)

CALLS = {
    "equal": ALSO_COMPLEX,
    "not_equal": ALSO_COMPLEX,
    "less": PAIRS,
    "less_equal": PAIRS,
    "greater": PAIRS,
    "greater_equal": PAIRS,
    "isclose": CLOSE,
    "allclose": [*CLOSE, call(NEAR[:2], NEAR_TO[:2], rtol=1e-4)],
    "array_equal": [
        call(MATRIX, MATRIX.copy()),
        call(MATRIX, MATRIX, True),
        call(MATRIX, MATRIX[:1].copy()),
        call(MATRIX, MATRIX.T.copy()),
        call(MATRIX, 0),
        call(CUBE, CUBE),
        call(CUBE, CUBE.astype(np.float32)),
        call(NOTHING, NOTHING),
        call(NOTHING, NOTHING.T.copy()),
        call(np.asarray(1), 1),
        call(COMPLEX, COMPLEX, equal_nan=True),
    ],
    "isnan": [*SINGLE, call(COMPLEX)],
    "isinf": [*SINGLE, call(COMPLEX)],
    "isfinite": [*SINGLE, call(COMPLEX)],
    "isposinf": SINGLE,
    "isneginf": SINGLE,
    "isreal": [*SINGLE, call(COMPLEX)],
    "logical_and": ALSO_COMPLEX,
    "logical_or": ALSO_COMPLEX,
    "logical_not": [*SINGLE, call(COMPLEX)],
    "logical_xor": ALSO_COMPLEX,
    "all": REDUCED,
    "any": REDUCED,
    "where": [
        call(TRUTH, np.asarray([1.0, 2.0, 3.0], np.float32), np.asarray([[-1.0], [-2.0]], np.float32)),
        call(TRUTH, MATRIX, 0.0),
        call(TRUTH, 1, MATRIX),
        call(TRUTH, 1, 2),
        call(TRUTH, True, 2.5),
        call(MATRIX, MATRIX, -1.0),
        call(True, MATRIX, NOTHING[:, :1].sum(0)),
        call(TRUTH[0], np.asarray(1, np.int8), np.asarray(2.5, np.float16)),
        call(TRUTH, COMPLEX[:3], 1.0),
        call(TRUTH[:0], NOTHING, 1.0),
    ],
    "select": [
        call([TRUTH, ~TRUTH], [MATRIX, MATRIX * 2], -1.0),
        call([TRUTH, TRUTH], [MATRIX, MATRIX * 2]),
        call([TRUTH], [MATRIX], 5),
        call([TRUTH[0], TRUTH[:, :1]], [np.asarray([1, 2, 3]), 7], 0),
        call((TRUTH, ~TRUTH), (1, 2.5), MATRIX),
        call([TRUTH], [np.asarray([1, 2, 3], np.int8)], 0.5),
    ],
    "isin": [
        call(MEMBERS, np.asarray([2.0, -0.0, NAN, 7.0], np.float32)),
        call(MEMBERS, np.asarray([2.0, -0.0, NAN, 7.0], np.float32), invert=True),
        call(MEMBERS, 2.0),
        call(2, np.asarray([1, 2])),
        call(MEMBERS, NOTHING),
        call(MEMBERS, NOTHING, invert=True),
        call(NOTHING, MEMBERS),
        call(np.asarray([1, 5, 3]), np.asarray([3, 1, 9]), assume_unique=True),
        call(CUBE, np.asarray([[1], [4]])),
        call(CUBE.astype(np.uint64), np.asarray([[1], [4]], np.uint64)),
        call(np.arange(40), np.arange(0, 80, 3)),
        call(TRUTH, np.asarray([False])),
        call(np.asarray([1, 2], np.int8), np.asarray([1.0, 2.5], np.float32)),
        call(SPECIAL, SPECIAL),
        call(HALVES, np.asarray([NAN] * 20 + [1.0, 3.0, 2.0], ml_dtypes.bfloat16)),
    ],
}
