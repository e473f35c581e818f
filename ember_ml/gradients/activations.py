"""Gradients of activations that engines implement as primitives."""

from __future__ import annotations

from typing import Any

from ember_ml.ops import comparison, stats
from ember_ml.ops.activations import sigmoid
from ember_ml.ops.math import add, divide, exp, multiply, sign, square, subtract


def _softmax(g: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    weighted = multiply(g, out)
    return subtract(weighted, multiply(out, stats.sum(weighted, axis=axis, keepdims=True)))


def _log_softmax(g: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    return subtract(g, multiply(exp(out), stats.sum(g, axis=axis, keepdims=True)))


def _silu(g: Any, out: Any, x: Any) -> Any:
    gate = sigmoid(x)
    # s + x s (1 - s), with s = sigmoid(x) and x s the result
    return multiply(g, add(gate, subtract(out, multiply(out, gate))))


def _between(g: Any, x: Any, low: float, high: float) -> Any:
    """``g`` where ``low < x < high``, else zero."""
    return comparison.where(comparison.logical_and(comparison.greater(x, low), comparison.less(x, high)), g, 0)


def _hard_tanh(g: Any, out: Any, x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    return _between(g, x, min_val, max_val)


def _hard_silu(g: Any, out: Any, x: Any) -> Any:
    inside = multiply(g, add(divide(x, 3), 0.5))
    return add(_between(inside, x, -3, 3), comparison.where(comparison.less(x, 3), 0, g))


RULES = {
    "relu": (lambda g, out, x: multiply(g, sign(out)),),
    "relu6": (lambda g, out, x: _between(g, x, 0, 6),),
    "hard_sigmoid": (lambda g, out, x: _between(divide(g, 6), x, -3, 3),),
    "hard_silu": (_hard_silu,),
    "hard_tanh": (_hard_tanh,),
    "sigmoid": (lambda g, out, x: multiply(g, subtract(out, square(out))),),
    "silu": (_silu,),
    "softmax": (_softmax,),
    "log_softmax": (_log_softmax,),
    "log_sigmoid": (lambda g, out, x: subtract(g, multiply(g, exp(out))),),
}
