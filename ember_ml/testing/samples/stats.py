"""Inputs for statistics: axes of every kind, nothing to reduce, special values, and every option."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ember_ml.testing.samples import Call, call

NAN, INF = float("nan"), float("inf")

MATRIX = np.asarray([[1.5, -2.0, 3.0], [0.25, 5.0, -1.0]], np.float32)
CUBE = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11 - 4) / 4
ODD = np.asarray([[1.0, NAN, -2.0], [INF, 3.0, 4.0], [NAN, NAN, NAN]], np.float32)
ENDLESS = np.asarray([[INF, INF, INF], [-INF, 1.0, INF], [-INF, -INF, 2.0]], np.float32)
NOTHING = np.zeros((0, 3), np.float32)
NUMBER = np.asarray(2.5, np.float32)
WHOLE = np.asarray([[3, 1, 2], [5, 4, 4]], np.int32)
SMALL = np.asarray([[100, 100, 100], [-100, -100, -100]], np.int8)
BYTES = np.asarray([[200, 100, 255], [1, 2, 3]], np.uint8)
TRUTH = np.asarray([[True, False, True], [True, True, True]])
COMPLEX = np.asarray([[1 + 2j, -3j, 2.5], [1 - 1j, 4, 0.5 + 0.5j]], np.complex64)
DOUBLE = MATRIX.astype(np.float64) * 1e100
HALF_DTYPES = (np.float16, ml_dtypes.bfloat16)
# Sums that float16 itself would round to something else, or that pass through values it cannot hold.
HALVES = np.full((4096,), 0.1, np.float16)
LARGE_HALVES = np.full((300, 2), 1000.0, np.float16)


def over_axes(*arrays: np.ndarray, **options: object) -> list[Call]:
    """A reduction of a matrix and a cube over all kinds of axes, and of further arrays over all and over the last."""
    return [
        call(MATRIX, axis=0, **options),
        call(MATRIX, **options),
        call(MATRIX, axis=-1, keepdims=True, **options),
        call(MATRIX, keepdims=True, **options),
        call(MATRIX, axis=(), **options),
        call(CUBE, axis=(0, 2), **options),
        call(CUBE, axis=(-1, 0), keepdims=True, **options),
        call(CUBE, axis=[1, 2], **options),
        call(CUBE, axis=1, **options),
        call(NUMBER, **options),
        call(NUMBER, axis=(), **options),
        *(call(array, **options) for array in arrays),
        *(call(array, axis=-1, **options) for array in arrays if array.ndim),
    ]


def of_nothing() -> list[Call]:
    """Reductions of no elements, and of none of them."""
    return [call(NOTHING), call(NOTHING, axis=0), call(NOTHING, axis=1), call(NOTHING, axis=0, keepdims=True)]


REAL = (ODD, ENDLESS, WHOLE, TRUTH, DOUBLE)
HALF = [call(HALVES), call(LARGE_HALVES, axis=0)]
LONE = [call(NUMBER, axis=0), call(NUMBER, axis=-1)]
NAN_FREE = [call(NOTHING, axis=1), call(NOTHING, axis=1, keepdims=True)]

QUANTILES = [
    call(MATRIX, 0.25, axis=1),
    *(Call((c.args[0], 0.3), c.kwargs) for c in over_axes(ODD, ENDLESS, WHOLE, DOUBLE)),
    *(Call((c.args[0], [0.0, 0.5]), c.kwargs) for c in of_nothing()),
    call(MATRIX, 0),
    call(MATRIX, 1),
    call(MATRIX, [0.0, 0.2, 1.0]),
    call(MATRIX, [[0.0, 0.2], [0.5, 1.0]], axis=0),
    call(CUBE, [0.1, 0.9], axis=(0, 2), keepdims=True),
    call(MATRIX, []),
    call(MATRIX, np.asarray([0.1, 0.75, 0.5], np.float32), axis=1),
    call(MATRIX, np.asarray(0.4, np.float64), axis=1, keepdims=True),
    call(ODD, np.asarray([[0.25], [0.5]], np.float32), axis=1),
    *(
        call(array, [0.0, 0.1, 0.125, 0.25, 0.5, 0.625, 0.7, 1.0], axis=1, method=method)
        for method in ("linear", "lower", "higher", "nearest", "midpoint")
        for array in (CUBE, ODD)
    ),
    *(
        call(CUBE, np.asarray([0.0, 0.1, 0.5, 0.7, 1.0], np.float32), axis=0, method=method)
        for method in ("linear", "lower", "higher", "nearest", "midpoint")
    ),
    call(np.arange(5, dtype=np.float16), 0.3),
]


def percent(calls: list[Call]) -> list[Call]:
    """The same calls with levels from 0 to 100."""

    def scaled(q: Any) -> Any:
        if isinstance(q, list):
            return [scaled(item) for item in q]
        return q * q.dtype.type(100) if isinstance(q, np.ndarray) else q * 100

    return [Call((c.args[0], scaled(c.args[1])), c.kwargs) for c in calls]


RUNNING = [
    call(MATRIX, axis=0),
    call(MATRIX),
    call(MATRIX, axis=1),
    call(MATRIX, axis=-2),
    call(CUBE, axis=1),
    call(NUMBER),
    call(ODD, axis=1),
    call(ODD, axis=0),
    call(NOTHING, axis=0),
    call(NOTHING, axis=1),
    call(NOTHING),
    call(SMALL, axis=1),
    call(BYTES, axis=1),
    call(TRUTH, axis=1),
    call(COMPLEX, axis=1),
    call(HALVES),
]
INITIAL = [
    call(MATRIX, include_initial=True),
    call(MATRIX, axis=0, include_initial=True),
    call(MATRIX, axis=-1, include_initial=True),
    call(SMALL, axis=1, include_initial=True),
    call(BYTES, axis=0, include_initial=True),
    call(NOTHING, axis=0, include_initial=True),
]
EXTREMES = [
    *RUNNING[:1],
    *(c for c in RUNNING[2:] if "axis" in c.kwargs and c.args[0].dtype.kind != "c"),
    call(ENDLESS, axis=0),
    *(call(np.asarray([1.0, 2.0, NAN, 5.0, 0.0], dtype), axis=0) for dtype in (np.float32, *HALF_DTYPES)),
    call(np.asarray([[1.0, 2.0], [NAN, 1.0], [3.0, NAN], [0.0, 0.0]], np.float32), axis=0),
]
TYPED = [
    call(MATRIX, dtype="float64"),
    call(SMALL, axis=1, dtype="int32"),
    call(WHOLE, dtype="float32"),
    call(WHOLE, axis=0, dtype="float16"),
    call(TRUTH, axis=0, dtype="uint8"),
    call(BYTES, dtype="uint64"),
]

SUMS = [*over_axes(*REAL, SMALL, BYTES, COMPLEX), *of_nothing(), *TYPED]
SPREADS = [
    *over_axes(*REAL, COMPLEX),
    *of_nothing(),
    call(MATRIX, correction=1),
    call(MATRIX, axis=1, correction=0.5),
    call(CUBE, axis=(0, 2), correction=1.0, keepdims=True),
    call(MATRIX, axis=0, correction=2),
    call(MATRIX, axis=0, correction=3),
    call(np.full((2, 3), 7.0, np.float32), axis=0, correction=2),
    call(np.asarray([1e4, 1e4 + 1, 1e4 + 2], np.float32)),
    call(np.asarray([300.0, -300.0, 200.0], np.float16)),
]

WEIGHTS = np.asarray([[0.5, 1.0, 2.0], [1.0, 0.0, 3.0]], np.float32)
VECTOR = np.asarray([0.5, 1.0, 2.0], np.float32)
PAIR = np.asarray([[0.0, 1.0, 2.5, 4.0], [2.0, 1.0, 0.5, -1.0], [1.0, 1.5, -2.0, 0.0]], np.float32)
COUNTS = np.asarray([1, 2, 3, 1])

CALLS = {
    "sum": [*SUMS, *HALF, *LONE, call(NUMBER, axis=0, keepdims=True)],
    "prod": [*SUMS, *LONE, call(np.asarray([300.0, 300.0, 0.001], np.float16))],
    "mean": [*over_axes(*REAL, COMPLEX), *of_nothing(), *HALF, *LONE],
    "average": [
        call(MATRIX, 0, WEIGHTS),
        call(MATRIX),
        call(MATRIX, 1),
        call(MATRIX, returned=True),
        call(MATRIX, axis=1, weights=VECTOR),
        call(MATRIX, axis=-1, weights=VECTOR, keepdims=True),
        call(MATRIX, weights=WEIGHTS),
        call(MATRIX, axis=1, weights=WEIGHTS, returned=True),
        call(MATRIX, axis=1, weights=VECTOR, returned=True, keepdims=True),
        call(CUBE, axis=(0, 2), weights=np.arange(8, dtype=np.float32).reshape(2, 4)),
        call(CUBE, axis=(2, 0), weights=np.arange(8, dtype=np.float32).reshape(4, 2)),
        call(MATRIX, axis=(), returned=True),
        call(WHOLE, axis=1, weights=np.asarray([1, 2, 3])),
        call(COMPLEX, axis=1, weights=VECTOR),
        call(LARGE_HALVES, axis=0, weights=np.ones(300, np.float16)),
    ],
    "var": [*SPREADS, *LONE],
    "std": [*SPREADS, *LONE],
    "median": [*over_axes(*REAL), *of_nothing(), call(np.asarray([INF, 1.0, 2.0, INF], np.float32))],
    "percentile": percent(QUANTILES),
    "quantile": QUANTILES,
    "max": [*over_axes(*REAL, SMALL, BYTES), *NAN_FREE],
    "min": [*over_axes(*REAL, SMALL, BYTES), *NAN_FREE],
    "ptp": [*over_axes(ODD, ENDLESS, WHOLE, BYTES, DOUBLE), *NAN_FREE],
    "cumsum": [*RUNNING, *INITIAL, *LONE, *(Call(c.args, {"axis": 1} | c.kwargs) for c in TYPED)],
    "cumprod": [*RUNNING, *INITIAL, *LONE, *(Call(c.args, {"axis": 1} | c.kwargs) for c in TYPED)],
    "cummax": [*EXTREMES, *LONE],
    "cummin": [*EXTREMES, *LONE],
    "moments": [
        call(MATRIX, 0),
        call(MATRIX),
        call(MATRIX, (0, 1)),
        call(CUBE, (0, 2), True),
        call(CUBE, axes=[-1], keepdims=True),
        call(WHOLE, 1),
        call(NOTHING, 0),
        call(LARGE_HALVES, 0),
    ],
    "cov": [
        call(PAIR),
        call(PAIR[0]),
        call(PAIR, PAIR[1:]),
        call(PAIR[0], PAIR[1]),
        call(PAIR, rowvar=False),
        call(PAIR.T.copy(), PAIR[:2].T.copy(), rowvar=False),
        call(PAIR, bias=True),
        call(PAIR, correction=0),
        call(PAIR, correction=2, bias=True),
        call(PAIR, fweights=COUNTS),
        call(PAIR, aweights=np.asarray([0.5, 1.0, 2.0, 0.25], np.float32)),
        call(PAIR, fweights=COUNTS, aweights=np.asarray([0.5, 1.0, 2.0, 0.25], np.float32), bias=True),
        call(COMPLEX),
        call(PAIR.astype(np.float16)),
        call(WHOLE),
        call(PAIR.astype(np.float64)),
    ],
    "corrcoef": [
        call(PAIR),
        call(PAIR[0]),
        call(PAIR, PAIR[1:]),
        call(PAIR[0], PAIR[1]),
        call(PAIR, rowvar=False),
        call(COMPLEX),
        call(PAIR.astype(np.float16)),
        call(WHOLE),
    ],
    "gaussian": [
        call(MATRIX),
        call(MATRIX, 1.0, 2.0),
        call(MATRIX, mu=VECTOR, sigma=WEIGHTS[:1]),
        call(np.asarray([0.0, 40.0, INF, -INF, NAN], np.float32)),
        call(WHOLE, 1, 2),
    ],
    "zscore": [
        call(MATRIX),
        call(MATRIX, axis=1),
        call(MATRIX, axis=None),
        call(MATRIX, axis=1, correction=1),
        call(CUBE, axis=(0, 2)),
        call(ODD, axis=1),
        call(np.full((2, 3), 0.1, np.float32), axis=1),
        call(NOTHING),
        call(WHOLE),
        call(LARGE_HALVES * np.arange(2, dtype=np.float16) + np.arange(300, dtype=np.float16)[:, None]),
    ],
    "skew": [
        call(PAIR),
        call(PAIR, axis=1),
        call(PAIR, axis=None),
        call(PAIR, axis=1, bias=False),
        call(PAIR[:2], axis=0, bias=False),
        call(CUBE, axis=(0, 2)),
        call(CUBE, axis=-1, keepdims=True),
        call(ODD, axis=1),
        call(np.full((2, 3), 0.1, np.float32), axis=1),
        call(NOTHING),
        call(WHOLE),
    ],
    "nansum": [*SUMS, *HALF],
    "nanprod": SUMS,
    "nanmean": [*over_axes(*REAL, COMPLEX), *of_nothing(), *HALF],
    "nanvar": SPREADS,
    "nanstd": SPREADS,
    "nanmedian": [*over_axes(*REAL), *of_nothing()],
    "nanmax": [*over_axes(*REAL, SMALL), *NAN_FREE],
    "nanmin": [*over_axes(*REAL, SMALL), *NAN_FREE],
    "nanpercentile": percent(QUANTILES),
    "nanquantile": QUANTILES,
    "nancumsum": RUNNING,
    "nancumprod": RUNNING,
}
CALLS["kurtosis"] = [
    *CALLS["skew"],
    call(PAIR, axis=1, fisher=False),
    call(PAIR, axis=1, fisher=False, bias=False),
    call(CUBE, axis=None, bias=False),
]
CALLS["nanargmax"] = CALLS["nanargmin"] = [
    call(MATRIX, axis=0),
    call(MATRIX),
    call(MATRIX, axis=-1, keepdims=True),
    call(MATRIX, keepdims=True),
    call(ODD),
    call(ODD[:2], axis=1),
    call(np.asarray([NAN, -INF, NAN, INF, -INF, INF], np.float32)),
    call(np.asarray([NAN, -INF], np.float32)),
    call(np.asarray([NAN, INF], np.float32)),
    call(WHOLE, axis=0),
    call(WHOLE, axis=1),
    call(TRUTH),
    call(NOTHING, axis=1),
]

DOMAIN = {"gaussian": (0.5, 3.0), "average": (0.5, 3.0)}
