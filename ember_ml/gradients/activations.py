"""Gradients of activations that engines compute in one go."""

from __future__ import annotations

from typing import Any

from ember_ml.ops import stats
from ember_ml.ops.activations import sigmoid
from ember_ml.ops.math import add, exp, multiply, sign, square, subtract


def _softmax(g: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    weighted = multiply(g, out)
    return subtract(weighted, multiply(out, stats.sum(weighted, axis=axis, keepdims=True)))


def _log_softmax(g: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    return subtract(g, multiply(exp(out), stats.sum(g, axis=axis, keepdims=True)))


def _silu(g: Any, out: Any, x: Any) -> Any:
    gate = sigmoid(x)
    # s + x s (1 - s), with s = sigmoid(x) and x s the answer
    return multiply(g, add(gate, subtract(out, multiply(out, gate))))


RULES = {
    "relu": (lambda g, out, x: multiply(g, sign(out)),),
    "sigmoid": (lambda g, out, x: multiply(g, subtract(out, square(out))),),
    "silu": (_silu,),
    "softmax": (_softmax,),
    "log_softmax": (_log_softmax,),
    "log_sigmoid": (lambda g, out, x: subtract(g, multiply(g, exp(out))),),
}
