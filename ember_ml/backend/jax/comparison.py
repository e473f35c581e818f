"""Comparison and logic on JAX."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from ember_ml.backend import native_for
from ember_ml.backend.jax.core import jitted, static
from ember_ml.backend.jax.math import hashable_axis

equal = jitted(jnp.equal)
not_equal = jitted(jnp.not_equal)
less = jitted(jnp.less)
less_equal = jitted(jnp.less_equal)
greater = jitted(jnp.greater)
greater_equal = jitted(jnp.greater_equal)


@static("equal_nan")
def isclose(x: Array, y: Array, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    same = x == y
    x, y = _comparable(x), _comparable(y)
    close = (jnp.abs(x - y) <= atol + rtol * jnp.abs(y)) & jnp.isfinite(y) | same
    return close | (jnp.isnan(x) & jnp.isnan(y)) if equal_nan else close


def _comparable(x: Array) -> Array:
    """Half precision as float32, as its spacing is coarser than the tolerance; integers as float64."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return x.astype(float)
    return x.astype(jnp.float32) if x.dtype.itemsize == 2 else x


isnan = jitted(jnp.isnan)
isinf = jitted(jnp.isinf)
isfinite = jitted(jnp.isfinite)
isposinf = jitted(jnp.isposinf)
isneginf = jitted(jnp.isneginf)
logical_and = jitted(jnp.logical_and)
logical_or = jitted(jnp.logical_or)
logical_not = jitted(jnp.logical_not)
logical_xor = jitted(jnp.logical_xor)


@native_for(jitted(jnp.all), "real", bare=True)
def all(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    return _all(x, axis=hashable_axis(x, axis), keepdims=keepdims)


@native_for(jitted(jnp.any), "real", bare=True)
def any(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    return _any(x, axis=hashable_axis(x, axis), keepdims=keepdims)


# JAX 0.10: bool of a complex number looks at its real part alone.
_all = jitted(lambda x, axis, keepdims: jnp.all(x != 0, axis, keepdims=keepdims), "axis", "keepdims")
_any = jitted(lambda x, axis, keepdims: jnp.any(x != 0, axis, keepdims=keepdims), "axis", "keepdims")
where = jitted(jnp.where)
