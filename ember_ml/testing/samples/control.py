"""Samples for control flow: functions of operations, and what they are applied to."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml import ops
from ember_ml.ops import control
from ember_ml.testing.samples import call

F = np.float32
X = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -1.0]], F)
LINE = np.array([1.0, -2.0, 3.0, 0.5, 4.0], F)
ONE = np.array(1.5, F)
EMPTY = np.zeros((0, 3), F)
COUNTS = np.arange(5, dtype=np.int32)


def doubled(x: Any) -> Any:
    return ops.multiply(x, 2)


def pair(x: Any, y: Any) -> Any:
    return {"sum": ops.add(x, y), "both": [x, (y,)]}


def reversed_pair(x: Any, y: Any) -> Any:
    return {"both": [y, (x,)], "sum": ops.subtract(x, y)}


def is_small(x: Any, i: Any) -> Any:
    return ops.less(i, 3)


def grown(x: Any, i: Any) -> Any:
    return ops.multiply(x, 2), ops.add(i, 1)


def sum_is_small(x: Any) -> Any:
    return ops.less(ops.sum(x), 100)


def halved(state: Any) -> Any:
    return {"x": ops.divide(state["x"], 2), "n": ops.add(state["n"], 1)}


def is_large(state: Any) -> Any:
    return ops.greater(state["x"], 1)


def weighted(i: Any, x: Any) -> Any:
    return ops.add(ops.multiply(x, 0.5), i)


def running(carry: Any, x: Any) -> Any:
    total = ops.add(carry, x)
    return total, ops.square(total)


def counted(carry: Any, x: Any) -> Any:
    return ops.add(carry, 1), None


def fibonacci(carry: Any, x: Any) -> Any:
    a, b = carry
    return (b, ops.add(a, b)), a


def affine(left: Any, right: Any) -> Any:
    return ops.multiply(left[0], right[0]), ops.add(ops.multiply(left[1], right[0]), right[1])


def product(left: Any, right: Any) -> Any:
    return ops.sum(ops.multiply(left[..., None], right[:, None]), axis=-2)


def row_norm(row: Any) -> Any:
    return ops.sqrt(ops.sum(ops.square(row)))


def two_answers(row: Any) -> Any:
    return {"sorted": ops.sort(row), "top": (ops.max(row), ops.argmax(row))}


def clipped(row: Any) -> Any:
    return control.cond(ops.greater(ops.sum(row), 3), ops.negative, doubled, row)


def constant(row: Any) -> Any:
    return 1.0


def together(xs: Any) -> Any:
    return ops.add(xs[0], ops.sum(xs[1]))


MATRICES = np.array([[[1.0, k], [0.0, 1.0]] for k in range(5)], F)

ROWS = [
    call(row_norm, X),
    call(two_answers, X),
    call(clipped, X),
    call(doubled, LINE),
    call(doubled, COUNTS),
    call(together, (LINE[:2], X)),
    call(constant, X),
    call(doubled, EMPTY),
    call(two_answers, np.zeros((0, 2), F)),
    call(ops.logical_not, np.array([True, False])),
]

CALLS = {
    "cond": [
        call(np.array(True), ops.negative, doubled, X),
        call(np.array(False), ops.negative, doubled, X),
        call(True, ops.add, ops.subtract, X, LINE[:3]),
        call(False, pair, reversed_pair, X, ONE),
        call(np.array(True), pair, reversed_pair, LINE, ONE),
        call(np.array(0.0, F), ops.negative, doubled, LINE),
        call(np.array(7, np.int32), ops.negative, doubled, LINE),
        call(1, ops.negative, doubled, 3),
        call(np.array(True), constant, row_norm, X),
        call(True, ops.sum, ops.max, EMPTY),
    ],
    "while_loop": [
        call(is_small, grown, (ONE, np.array(0, np.int64)), 5),
        call(is_small, grown, (ONE, np.array(0, np.int64))),
        call(is_small, grown, [X, np.array(1, np.int32)]),
        call(is_small, grown, (1.5, 0), maximum_iterations=2),
        call(is_small, grown, (1.5, 0), maximum_iterations=0),
        call(is_small, grown, (X, np.array(3, np.int64))),
        call(sum_is_small, doubled, X),
        call(sum_is_small, doubled, LINE, 2),
        call(is_large, halved, {"x": 37.0, "n": 0}),
    ],
    "fori_loop": [
        call(0, 4, weighted, X),
        call(np.array(1, np.int64), np.array(3, np.int32), weighted, LINE),
        call(2, np.array(5, np.uint8), weighted, ONE),
        call(3, 3, weighted, X),
        call(5, 2, weighted, X),
        call(-2, 1, weighted, 0.5),
    ],
    "scan": [
        call(running, ONE, LINE),
        call(running, 0.0, LINE, reverse=True),
        call(running, LINE[:3], X),
        call(running, 0, COUNTS),
        call(fibonacci, (0, 1), None, 6),
        call(counted, 0, X),
        call(running, LINE[:3], X, 2, True, 2),
        call(running, LINE[:3], EMPTY),
        call(running, np.array(3, np.int32), np.zeros((0,), np.int32)),
        call(counted, np.array(0, np.int32), None, length=0),
    ],
    "associative_scan": [
        call(ops.add, LINE),
        call(ops.add, X),
        call(ops.add, X, axis=1),
        call(ops.maximum, X, axis=-1),
        call(ops.add, LINE, True),
        call(ops.multiply, X, reverse=True, axis=-1),
        call(product, MATRICES),
        call(product, MATRICES, reverse=True),
        call(affine, (LINE, COUNTS.astype(F))),
        call(ops.add, np.arange(8)),
        call(ops.add, COUNTS[:1]),
        call(ops.add, COUNTS[:2]),
        call(ops.add, COUNTS[:3]),
        call(ops.add, EMPTY),
        call(ops.logical_or, np.array([False, True, False, False])),
    ],
    "map": ROWS,
    "vectorized_map": ROWS,
    "eval": [call(X), call(X, LINE), call([X, LINE], 3.0), call()],
    "is_tensor": [call(X), call(ONE), call(1.0), call("x"), call(None), call([X]), call(object)],
}
