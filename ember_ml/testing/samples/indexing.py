"""Samples for picking, placing, searching, sorting and counting."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ember_ml.testing.samples import call

F = np.float32
X = np.array([[1.5, -2.0, 3.0, 0.5], [4.0, 1.5, -1.0, 2.5], [0.25, 3.0, 3.0, -2.0]], F)
CUBE = np.arange(24, dtype=F).reshape(2, 3, 4)
LINE = np.array([3.0, 1.0, 2.0, 1.0, 3.0], F)
EMPTY = np.zeros((0, 3), F)
NONE = np.zeros((0,), np.int64)
SPECIAL = np.array([1.0, np.nan, -np.inf, 2.0, np.nan, np.inf, -0.0, 0.0], F)
TIES = np.array([[2, 1, 2, 3, 1], [0, 0, 0, 0, 0]], np.int32)


def i(*values: object) -> np.ndarray:
    return np.array(values, np.int64)


def f(*values: object) -> np.ndarray:
    return np.array(values, F)


def b(*values: object) -> np.ndarray:
    return np.array(values, bool)


ALL = slice(None)
MASK = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 1]], bool)

SCATTERS = [
    call(X, i(0, 2, 0), np.arange(12, dtype=F).reshape(3, 4)),
    call(X, i(3, -1, 1), np.arange(9, dtype=F).reshape(3, 3), axis=1),
    call(X, i(0, -4), f([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]), axis=-1),
    call(LINE, i(4, 4, 4, 0), f(1.0, 9.0, 2.0, 5.0)),
    call(LINE, NONE, np.zeros((0,), F)),
    call(LINE[:0], NONE, np.zeros((0,), F)),
    call(X[:, :0], i(1, 1), np.array(7.0, F)),
    call(X[:0], i(1, 1), np.zeros((0, 2), F), axis=1),
    call(X, i(1, 1), np.array(7.0, F)),
    call(CUBE, i(2, 0, 2), np.ones((2, 3, 4), F), axis=1),
]

UPDATES = [
    call(X, i(0, 2, 0), np.arange(12, dtype=F).reshape(3, 4)),
    call(X, 1, np.array(9.0, F)),
    call(X, -1, f(1.0, 2.0, 3.0, 4.0)),
    call(X, (ALL, 2), f(7.0, 8.0, 9.0)),
    call(X, (slice(0, 2), slice(1, None, 2)), f([7.0, 8.0])),
    call(X, (..., slice(None, None, -1)), f(1.0, 2.0, 3.0, 4.0)),
    call(X, (slice(2, 0, -1), i(0, 3)), f([1.0, 2.0], [3.0, 4.0])),
    call(X, ..., np.array(5.0, F)),
    call(X, (), np.array(5.0, F)),
    call(X, (None, 1), f([1.0, 2.0, 3.0, 4.0])),
    call(X, slice(3, 3), np.array(5.0, F)),
    call(X, (i(0, 1, 0), i(1, -1, 1)), f(1.0, 2.0, 3.0)),
    call(X, (i([0], [2]), i(1, 3)), f([1.0, 2.0], [3.0, 4.0])),
    call(X, i([0, 1], [1, 0]), np.arange(4, dtype=F)),
    call(X, i(), np.array(1.0, F)),
    call(X, MASK, np.array(0.0, F)),
    call(X, MASK, np.arange(5, dtype=F)),
    call(X, b(True, False, True), f([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0])),
    call(X, b(True, False, True), f(1.0, 2.0, 3.0, 4.0)),
    call(X, b(False, False, False), np.zeros((0, 4), F)),
    call(X, (ALL, b(True, False, False, True)), f([1.0, 2.0])),
    call(X, (ALL, b(True, False, False, True)), f([1.0], [2.0], [3.0])),
    call(CUBE, (1, i(2, 0), ALL), np.ones((2, 4), F)),
    call(CUBE, (i(0, 1), ALL, i(3, 3)), np.arange(6, dtype=F).reshape(2, 3)),
    call(CUBE, (ALL, i(0, 0), slice(1, 3)), np.arange(4, dtype=F).reshape(2, 2)),
    call(CUBE, (0, ..., None, slice(0, 4, 3)), np.array(2.0, F)),
    call(CUBE, (b(True, False), i(1, 1), ALL), np.arange(8, dtype=F).reshape(2, 4)),
    call(np.array(3.0, F), (), np.array(5.0, F)),
    call(np.array([1, 2, 3], np.int32), np.array([2], np.uint8), np.array([9], np.int32)),
    call(LINE, (..., 0), f([9.0])),
    call(X, (1, 2), f(9.0)),
]

UNIQUES = [
    call(LINE),
    call(X),
    call(SPECIAL),
    call(np.array(3.0, F)),
    call(np.zeros((0,), F)),
    call(TIES),
    call(np.array([2 - 1j, 1 + 1j, 1 - 1j, 2 - 1j], np.complex64)),
    call(b(True, False, True)),
]

SEGMENTS = [
    call(X, i(0, 2, 0), 4),
    call(LINE, i(1, 1, 0, 3, 1), 4),
    call(LINE, i(1, 1, 0, 3, 1)),
    call(CUBE, i(1, 0), 2),
    call(np.zeros((0, 2), F), NONE, 2),
    call(np.zeros((0, 2), F), NONE),
    call(np.array([5, 3, 2], np.int32), i(0, 0, 2), 3),
]

EXTREMES = [
    call(X),
    call(X, axis=0),
    call(X, axis=-1, keepdims=True),
    call(X, keepdims=True),
    call(TIES, axis=1),
    call(SPECIAL),
    call(f(3.0, 3.0, 1.0, 1.0)),
    call(np.array(3.0, F)),
    call(np.array(3.0, F), axis=0),
    call(np.array(3.0, F), axis=-1, keepdims=True),
    call(np.array(3.0, F), keepdims=True),
    call(CUBE, axis=1),
    call(b(False, True, True)),
]

ORDERS = [
    call(X),
    call(X, axis=0),
    call(X, axis=1, descending=True),
    call(SPECIAL),
    call(SPECIAL, descending=True),
    call(TIES, axis=1),
    call(TIES, axis=1, descending=True),
    call(TIES, axis=-1, stable=False),
    call(EMPTY, axis=0),
    call(CUBE, axis=-2, descending=True),
    call(SPECIAL.astype(np.float16)),
    call(np.array([0, 2**64 - 1, 2**63], np.uint64)),
    call(b(True, False, True), descending=True),
]

HALVES = np.array([2.0, np.nan, 1.0], ml_dtypes.bfloat16)

CALLS = {
    "take": [
        call(X, i(2, 0, -1), axis=0),
        call(X, i(2, 0, -1), axis=1),
        call(X, i(2, 11, -12)),
        call(X, i([0, 1], [2, 3]), axis=-1),
        call(X, np.array(1, np.int64), axis=0),
        call(X, NONE, axis=1),
        call(EMPTY, NONE, axis=0),
        call(EMPTY, i(0, 2), axis=1),
        call(np.array(3.0, F), i(0, 0)),
        call(CUBE, i([2], [0]), axis=1),
    ],
    "take_along_axis": [
        call(X, i([0, 3], [1, 1], [2, -1]), axis=1),
        call(X, i([0, 2, 1, 0]), axis=0),
        call(X, i([0], [3], [-4])),
        call(X[:1], i([0, 1], [2, 3])),
        call(CUBE, np.zeros((2, 1, 4), np.int64), axis=1),
        call(LINE, NONE),
        call(X, np.zeros((1, 0), np.int64), axis=1),
        call(CUBE, np.zeros((0, 1, 1), np.int64), axis=0),
    ],
    "put_along_axis": [
        call(X, i([0, 3], [1, 1], [2, -1]), f([7.0, 8.0], [9.0, 10.0], [11.0, 12.0]), axis=1),
        call(X, i([0, 2, 1, 0]), np.array(5.0, F), axis=0),
        call(X, i([0], [3], [-4]), f([1.0], [2.0], [3.0])),
        call(LINE, i(1, 1, 1), f(5.0, 6.0, 7.0)),
    ],
    "gather": [call(X, i(2, 0, -1)), call(X, i([1], [0]), axis=1), call(CUBE, i([0, 1], [1, 1]), axis=-2)],
    "gather_nd": [
        call(X, i([0, 1], [2, 3])),
        call(X, i([2], [0])),
        call(X, i(1, 2)),
        call(CUBE, i([[1, 2]], [[0, 0]])),
        call(CUBE, i([[2], [0]], [[1], [1]]), batch_dims=1),
        call(CUBE, i([[0], [1], [2]], [[3], [0], [1]]), batch_dims=2),
        call(X, np.zeros((2, 0), np.int64)),
    ],
    "scatter": [
        *SCATTERS,
        *(
            c._replace(kwargs={**c.kwargs, "mode": mode})
            for mode in ("add", "max", "min", "multiply", "mean")
            for c in SCATTERS
        ),
        call(b(True, False, False), i(0, 1), b(False, True)),
    ],
    "scatter_add": SCATTERS,
    "scatter_max": [*SCATTERS, call(LINE, i(1, 1, 3), f(np.nan, 9.0, -1.0)), call(SPECIAL, i(1, 0), f(9.0, 9.0))],
    "scatter_min": [*SCATTERS, call(LINE, i(1, 1, 3), f(np.nan, 9.0, -1.0)), call(SPECIAL, i(1, 0), f(9.0, 9.0))],
    "tensor_scatter_nd_update": [
        call(X, i([0, 1], [2, 3]), f(7.0, 8.0)),
        call(X, i([2], [0], [2]), np.arange(12, dtype=F).reshape(3, 4)),
        call(CUBE, i([[0, 1], [1, 2]]), np.ones((1, 2, 4), F)),
        call(LINE, np.zeros((0, 1), np.int64), np.zeros((0,), F)),
    ],
    "index_get": [call(*update.args[:2]) for update in UPDATES]
    + [call(X, b(True)[0]), call(CUBE, (None, ..., i(2, 0)))],
    "index_update": UPDATES,
    "index_add": UPDATES,
    "slice": [
        call(X, (1, 2), (2, 2)),
        call(X, [0, 0], [3, 4]),
        call(X, (-2, -1), (2, 1)),
        call(X, i(1, 2), (2, 2)),
        call(X, i(-1, 0), (1, 3)),
        call(X, (0, 4), (3, 0)),
        call(LINE, (2,), 3),
        call(np.array(3.0, F), (), ()),
    ],
    "slice_update": [
        call(X, (1, 2), f([7.0, 8.0], [9.0, 10.0])),
        call(X, i(1, -2), f([7.0, 8.0], [9.0, 10.0])),
        call(LINE, [2], f(5.0)),
        call(LINE, [5], np.zeros((0,), F)),
    ],
    "masked_select": [
        call(X, MASK),
        call(X, b(True, False, False, True)),
        call(LINE, np.zeros(5, bool)),
        call(np.array(3.0, F), np.array(True)),
        call(f(1.0, 2.0), b([True, True], [False, True])),
    ],
    "masked_fill": [
        call(X, MASK, np.array(9.0, F)),
        call(X, b(True, False, False, True), f(1.0, 2.0, 3.0, 4.0)),
        call(X, np.array(True), 0),
        call(EMPTY, np.zeros((0, 1), bool), 1.5),
    ],
    "nonzero": [call(X), call(f(0.0, -0.0, np.nan, 1.0)), call(EMPTY), call(MASK), call(i([0, 1], [2, 0]))],
    "argwhere": [
        call(X),
        call(f(0.0, -0.0, np.nan, 1.0)),
        call(EMPTY),
        call(MASK),
        call(np.array(2.0, F)),
        call(np.array(0.0, F)),
    ],
    "count_nonzero": [
        call(X),
        call(MASK, axis=0),
        call(MASK, axis=(0, 1)),
        call(MASK, axis=-1, keepdims=True),
        call(CUBE, axis=(0, -1), keepdims=True),
        call(f(0.0, -0.0, np.nan, 1.0)),
        call(EMPTY, axis=0),
        call(np.array(3.0, F)),
    ],
    "searchsorted": [
        call(f(1.0), f([2.0, 0.0], [9.0, 1.0])),  # one element is sorted in whatever dtype it is drawn
        call(f(1.0, 2.0, 2.0, 3.0), f([2.0, 0.0], [9.0, 2.5])),
        call(f(1.0, 2.0, 2.0, 3.0), f(2.0, 0.0, 3.0), side="right"),
        call(LINE, f(2.0, 0.0, 3.0), sorter=i(1, 3, 2, 0, 4)),
        call(np.sort(SPECIAL), SPECIAL),
        call(np.sort(SPECIAL), SPECIAL, side="right"),
        call(f(np.nan, 2.0, 2.0, 3.0), f(2.0, 5.0)),
        call(f(), f(1.0)),
        call(f(1.0), np.array(0.5, F)),
        call(f(1.0, 2.0), f(np.nan), side="right"),
        call(np.arange(100, dtype=np.int64), np.arange(-5, 105, 7)),
    ],
    "digitize": [
        call(f([0.5, 1.0], [9.0, -1.0]), f(0.0, 1.0)),  # two boundaries rise or fall, however they are drawn
        call(f([0.5, 1.0], [9.0, -1.0]), f(0.0, 1.0, 2.0)),
        call(f(0.5, 1.0, 9.0, -1.0), f(0.0, 1.0, 2.0), right=True),
        call(f(0.5, 1.0, 9.0, -1.0), f(2.0, 1.0, 0.0)),
        call(f(0.5, 1.0, 9.0, -1.0), f(2.0, 1.0, 0.0), True),
        call(f(0.5), f()),
        call(f(0.5), f(0.25)),
    ],
    "bincount": [
        call(i(0, 3, 3), f(0.5, 1.0, 2.0)),
        call(i(0, 3, 3)),
        call(i(1), minlength=4),
        call(NONE),
        call(NONE, minlength=2),
        call(i(1, 1), np.array([2, 3], np.int32), 3),
        call(np.array([1, 2], np.uint8)),
    ],
    "histogram": [
        call(X),
        call(X, 3),
        call(X, bins=[-2.0, 0.0, 1.5, 3.0]),
        call(X, f(-2.0, 0.0, 1.5, 3.0), density=True),
        call(X, 4, range=(-1.0, 3.0)),
        call(X, 4, weights=np.abs(X)),
        call(X, 4, density=True),
        call(np.full((3,), 2.0, F), 2),
        call(np.zeros((0,), F), 2),
        call(np.arange(7, dtype=np.int32), 3),
    ],
    "argmax": EXTREMES,
    "argmin": EXTREMES,
    "sort": ORDERS,
    "argsort": ORDERS,
    "partition": [call(X, 1), call(X, (0, 2), axis=0), call(SPECIAL, -1), call(TIES, 2, axis=1)],
    "argpartition": [call(X, 1), call(X, [0, 2], axis=0), call(SPECIAL, -1), call(TIES, 2, axis=1)],
    "top_k": [
        call(X, 2),
        call(np.array([1, 2**32 - 1, 2**31, 5], np.uint32), 3),
        call(f(1.0, 1.0, np.inf, np.nan, np.inf), 4),
        call(X, 2, axis=0),
        call(X, 3, largest=False),
        call(TIES, 3),
        call(TIES, 3, 1, False, False),
        call(SPECIAL, 4),
        call(SPECIAL, 4, largest=False),
        call(X, 0),
        call(LINE, 5),
        call(np.array([0, 2**64 - 1, 2**63], np.uint64), 2),
        call(np.array([-(2**63), 2**63 - 1, 0], np.int64), 3),
    ],
    "in_top_k": [
        call(i(1, 0, 3), X, 2),
        call(i(1, 0, 3), X, k=1),
        call(i(1, 2), f([np.nan, 1.0, 0.0], [0.0, 0.0, np.inf]), 1),
        call(i(0, 1, 2), f([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 2.0]), 1),
        call(np.array(2, np.int64), LINE, 3),
    ],
    "unique": [
        *UNIQUES,
        *(c._replace(args=(*c.args, True, True, True)) for c in UNIQUES),
        *(c._replace(kwargs={"equal_nan": False, "return_counts": True}) for c in UNIQUES),
        call(TIES.T, axis=0),
        call(TIES, True, True, True, axis=1),
    ],
    "unique_all": UNIQUES,
    "unique_counts": UNIQUES,
    "unique_inverse": UNIQUES,
    "unique_values": UNIQUES,
    "intersect1d": [
        call(LINE, f(1.0, 5.0, 3.0)),
        call(LINE, f(1.0, 5.0, 3.0), return_indices=True),
        call(X, LINE),
        call(f(1.0, 2.0), f(3.0, 2.0), assume_unique=True),
        call(f(5.0, 1.0, 2.0), f(3.0, 2.0, 5.0), assume_unique=True, return_indices=True),
        call(f(), f(), assume_unique=True),
        call(LINE, f(1.0, 5.0, 3.0), assume_unique=True),
        call(f(), LINE),
    ],
    "union1d": [call(LINE, f(1.0, 5.0, 3.0)), call(HALVES, HALVES + 1), call(X, LINE), call(f(), LINE)],
    "setdiff1d": [
        call(LINE, f(1.0, 5.0)),
        call(X, LINE),
        call(f(), LINE),
        call(LINE, f()),
        call(f(9.0, 1.0, 5.0), f(1.0, 2.0), assume_unique=True),
    ],
    "unravel_index": [
        call(i(1, 5), (2, 3)),
        call(np.array(7, np.int64), (2, 2, 2)),
        call(i([0], [3]), 4),
        call(NONE, (0, 3)),
    ],
    "ravel_multi_index": [
        call((i(0, 1), i(1, 2)), (2, 3)),
        call([i([0], [1]), i(1, 2)], (2, 3)),
        call((np.array(1, np.int64), np.array(2, np.int64)), (2, 3)),
        call((i(3, 0),), 4),
    ],
    "one_hot": [
        call(i(2, 0, 1), 3),
        call(i([2, -1], [3, 0]), 3),
        call(i([2, 1], [0, 0]), 3, axis=0),
        call(i([2, 1], [0, 0]), 3, axis=1),
        call(np.array(1, np.int64), 2, dtype="int32"),
        call(i(2, 0), 3, dtype="bool"),
        call(NONE, 3),
    ],
    "multi_hot": [
        call(i([0, 2], [1, 1]), 3),
        call(i(0, 5, 2), 4),
        call(i([0, 2], [1, 1]), 3, axis=0),
        call(i([0, 2], [1, 1]), 3, dtype="int64"),
    ],
    "segment_sum": SEGMENTS,
    "segment_mean": SEGMENTS,
    "segment_max": [*SEGMENTS, call(SPECIAL, i(0, 0, 1, 1, 1, 2, 2, 0), 3)],
    "segment_min": [*SEGMENTS, call(SPECIAL, i(0, 0, 1, 1, 1, 2, 2, 0), 3)],
    "segment_prod": SEGMENTS,
}
