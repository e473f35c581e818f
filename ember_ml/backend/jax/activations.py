"""Activations on JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ember_ml.backend.jax.core import jitted, static_lists
from ember_ml.backend.jax.math import in_single
from ember_ml.shapes.axes import axes_of

# The gradients of these are zero at the corners. JAX has others.
relu = jitted(lambda x: jnp.where(x <= 0, 0, x))
relu6 = jitted(lambda x: _clamp(x, 0, 6))


def _clamp(x: Array, low: Any, high: Any) -> Array:
    return jnp.where(x <= low, low, jnp.where(x >= high, high, x))


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


@static_lists("axis")
@in_single
def softmax(x: Array, /, axis: Any = -1) -> Array:
    return jax.nn.softmax(x, axes_of(axis, x.ndim))


@static_lists("axis")
@in_single
def log_softmax(x: Array, /, axis: Any = -1) -> Array:
    return jax.nn.log_softmax(x, axes_of(axis, x.ndim))


log_sigmoid = jitted(in_single(jax.nn.log_sigmoid))
