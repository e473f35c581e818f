"""Activations on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.contract import REGISTRY


def _defined(name: str, *args: Any) -> mx.array:
    """The operation by its definition: MLX computes the exponential of float64 in float32."""
    definition = REGISTRY[name].definition
    assert definition is not None
    return definition(*args)


def relu(x: mx.array, /) -> mx.array:
    return mx.maximum(x, 0)


def silu(x: mx.array, /) -> mx.array:
    return x * sigmoid(x) if x.dtype != mx.float64 else _defined("silu", x)


def sigmoid(x: mx.array, /) -> mx.array:
    return mx.sigmoid(x) if x.dtype != mx.float64 else _defined("sigmoid", x)


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
