"""Activations on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.stats import _wide
from ember_ml.dispatch import REGISTRY


def _defined(name: str, *args: Any) -> mx.array:
    """The operation by its definition: MLX computes the exponential of float64 in float32."""
    definition = REGISTRY[name].definition
    assert definition is not None
    return definition(*args)


def relu(x: mx.array, /) -> mx.array:
    return mx.maximum(x, 0)


def relu6(x: mx.array, /) -> mx.array:
    # Unlike clip, which gives the slope at its ends to x. Here it is zero there.
    return mx.minimum(mx.maximum(x, 0), 6)


def silu(x: mx.array, /) -> mx.array:
    return x * sigmoid(x) if x.dtype != mx.float64 else _defined("silu", x)


def sigmoid(x: mx.array, /) -> mx.array:
    return mx.sigmoid(x) if x.dtype != mx.float64 else _defined("sigmoid", x)


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
        return _defined("softmax", x, axis)
    return mx.softmax(x, axis, precise=True)


def log_softmax(x: mx.array, /, axis: Any = -1) -> mx.array:
    if x.dtype != mx.float32 or x.size == 0:
        return _defined("log_softmax", x, axis)
    lowered = x - mx.stop_gradient(mx.max(x, axis, keepdims=True))
    return lowered - mx.logsumexp(lowered, axis, keepdims=True)


def log_sigmoid(x: mx.array, /) -> mx.array:
    return -mx.logaddexp(-x, 0) if x.dtype == mx.float32 else _defined("log_sigmoid", x)
