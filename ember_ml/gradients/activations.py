"""Gradients of activations that engines compute in one go."""

from __future__ import annotations

from typing import Any

from ember_ml.ops import comparison, stats
from ember_ml.ops.activations import sigmoid
from ember_ml.ops.math import add, exp, multiply, subtract


def _softmax(g: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    weighted = multiply(g, out)
    return subtract(weighted, multiply(out, stats.sum(weighted, axis=axis, keepdims=True)))


def _log_softmax(g: Any, out: Any, x: Any, axis: Any = -1) -> Any:
    return subtract(g, multiply(exp(out), stats.sum(g, axis=axis, keepdims=True)))


def _silu(g: Any, out: Any, x: Any) -> Any:
    gate = sigmoid(x)
    return multiply(g, add(gate, multiply(out, subtract(1, gate))))


RULES = {
    "relu": (lambda g, out, x: multiply(g, comparison.greater(x, 0)),),
    "sigmoid": (lambda g, out, x: multiply(g, multiply(out, subtract(1, out))),),
    "silu": (_silu,),
    "softmax": (_softmax,),
    "log_softmax": (_log_softmax,),
    "log_sigmoid": (lambda g, out, x: multiply(g, subtract(1, exp(out))),),
}
