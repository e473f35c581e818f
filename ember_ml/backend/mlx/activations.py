"""Activations on MLX."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.mapping import recomputed
from ember_ml.backend.mlx.stats import _wide
from ember_ml.dispatch import REGISTRY


def _by_definition(name: str, *args: Any) -> mx.array:
    """Operation by its definition. MLX 0.32: exp of float64 is computed in float32."""
    definition = REGISTRY[name].definition
    assert definition is not None
    return definition(*args)


def relu(x: mx.array, /) -> mx.array:
    return mx.maximum(x, 0)


def relu6(x: mx.array, /) -> mx.array:
    # Unlike for clip, the gradient at the limits is zero.
    return mx.minimum(mx.maximum(x, 0), 6)


def gelu(x: mx.array, /, approximate: bool = False) -> mx.array:
    if x.dtype == mx.float64:
        return _by_definition("gelu", x, approximate)
    return (_gelu_tanh if approximate else _gelu)(x)


@recomputed
def _gelu(x: mx.array) -> mx.array:
    wide = _wide(x)
    return (wide * 0.5 * (1 + mx.erf(wide * math.sqrt(0.5)))).astype(x.dtype)


@recomputed
def _gelu_tanh(x: mx.array) -> mx.array:
    wide = _wide(x)
    inner = (wide + wide * wide * wide * 0.044715) * math.sqrt(2 / math.pi)
    return (wide * 0.5 * (1 + mx.tanh(inner))).astype(x.dtype)


def silu(x: mx.array, /) -> mx.array:
    return x * sigmoid(x) if x.dtype != mx.float64 else _by_definition("silu", x)


def sigmoid(x: mx.array, /) -> mx.array:
    return mx.sigmoid(x) if x.dtype != mx.float64 else _by_definition("sigmoid", x)


def hard_sigmoid(x: mx.array, /) -> mx.array:
    return _gate(_wide(x)).astype(x.dtype)


def hard_silu(x: mx.array, /) -> mx.array:
    wide = _wide(x)
    return (wide * _gate(wide)).astype(x.dtype)


def _gate(x: mx.array) -> mx.array:
    return relu6(x + 3) / 6


def hard_tanh(x: mx.array, /, min_val: float = -1.0, max_val: float = 1.0) -> mx.array:
    if min_val > max_val:
        raise ValueError(f"min_val must be <= max_val, got min_val={min_val}, max_val={max_val}")
    return mx.minimum(mx.maximum(x, mx.array(min_val, x.dtype)), mx.array(max_val, x.dtype))


def softmax(x: mx.array, /, axis: Any = -1) -> mx.array:
    if x.dtype == mx.float64 or x.size == 0:
        return _by_definition("softmax", x, axis)
    return mx.softmax(x, axis, precise=True)


def log_softmax(x: mx.array, /, axis: Any = -1) -> mx.array:
    if x.dtype != mx.float32 or x.size == 0:
        return _by_definition("log_softmax", x, axis)
    shifted = x - mx.stop_gradient(mx.max(x, axis, keepdims=True))
    return shifted - mx.logsumexp(shifted, axis, keepdims=True)


def log_sigmoid(x: mx.array, /) -> mx.array:
    return -mx.logaddexp(-x, 0) if x.dtype == mx.float32 else _by_definition("log_sigmoid", x)
