"""Activations on JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ember_ml.backend.jax.core import jitted, static
from ember_ml.backend.jax.math import in_single
from ember_ml.shapes.axes import axes_of

# The gradients of these are zero at the corners. JAX has others.
relu = jitted(lambda x: jnp.where(x <= 0, 0, x))
relu6 = jitted(lambda x: _clamp(x, 0, 6))


def _clamp(x: Array, low: Any, high: Any) -> Array:
    return jnp.where(x <= low, low, jnp.where(x >= high, high, x))


@static("approximate")
@in_single
def gelu(x: Array, /, approximate: bool = False) -> Array:
    return jax.nn.gelu(x, approximate=approximate)


silu = jitted(in_single(jax.nn.silu))
sigmoid = jitted(in_single(jax.nn.sigmoid))


@jitted
@in_single
def hard_sigmoid(x: Array, /) -> Array:
    return _clamp(x + 3, 0, 6) / 6


@jitted
@in_single
def hard_silu(x: Array, /) -> Array:
    return x * (_clamp(x + 3, 0, 6) / 6)


def hard_tanh(x: Array, /, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    if min_val > max_val:
        raise ValueError(f"min_val must be <= max_val, got min_val={min_val}, max_val={max_val}")
    return _hard_tanh(x, min_val, max_val)


_hard_tanh = jitted(_clamp)


def softmax(x: Array, /, axis: Any = -1) -> Array:
    return _softmax(x, axis=axes_of(axis, x.ndim))


def log_softmax(x: Array, /, axis: Any = -1) -> Array:
    return _log_softmax(x, axis=axes_of(axis, x.ndim))


_softmax = jitted(in_single(jax.nn.softmax), "axis")
_log_softmax = jitted(in_single(jax.nn.log_softmax), "axis")
log_sigmoid = jitted(in_single(jax.nn.log_sigmoid))
