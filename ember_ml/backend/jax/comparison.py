"""Comparison and logic on JAX."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ember_ml.backend import native_for
from ember_ml.backend.jax.core import jitted, static, static_lists
from ember_ml.backend.jax.stats import axis_in

equal, not_equal = map(jitted, (jnp.equal, jnp.not_equal))
less, less_equal = map(jitted, (jnp.less, jnp.less_equal))
greater, greater_equal = map(jitted, (jnp.greater, jnp.greater_equal))


@static("equal_nan")
def isclose(x: Array, y: Array, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    return jnp.isclose(_comparable(x), _comparable(y), rtol, atol, equal_nan) | (x == y)


def _comparable(x: Array) -> Array:
    """Half precision as float32, as its spacing is coarser than the tolerance; integers as float64."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return x.astype(float)
    return x.astype(jnp.float32) if x.dtype.itemsize == 2 else x


isnan, isinf, isfinite = map(jitted, (jnp.isnan, jnp.isinf, jnp.isfinite))
isposinf, isneginf = map(jitted, (jnp.isposinf, jnp.isneginf))
logical_and, logical_or, logical_xor = map(jitted, (jnp.logical_and, jnp.logical_or, jnp.logical_xor))
logical_not = jitted(jnp.logical_not)


# JAX 0.10: bool of a complex number looks at its real part alone, here and in ``any``.
@native_for(jitted(jnp.all), "real", bare=True)
@static_lists("axis", "keepdims")
def all(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    return jnp.all(x != 0, axis_in(x, axis), keepdims=keepdims)


@native_for(jitted(jnp.any), "real", bare=True)
@static_lists("axis", "keepdims")
def any(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    return jnp.any(x != 0, axis_in(x, axis), keepdims=keepdims)


where = jitted(jnp.where)
