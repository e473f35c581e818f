"""Statistics on JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ember_ml.backend import native_for
from ember_ml.backend.jax.core import cast, jitted, static_lists
from ember_ml.backend.numpy.core import check_cast
from ember_ml.shapes.axes import axes_of, axis_of


@native_for(jitted(jnp.sum), "floating", "int64", "uint64", bare=True)
@static_lists("axis", "dtype", "keepdims")
def sum(x: Array, /, *, axis: Any = None, dtype: np.dtype[Any] | None = None, keepdims: bool = False) -> Array:
    return jnp.sum(_in_dtype(x, dtype), axis_in(x, axis), dtype, keepdims=keepdims)


def axis_in(x: Array, axis: Any) -> Any:
    """``axis`` counted from the front, or ``None`` for all; axis 0 or -1 of a 0-d array is accepted, as in NumPy."""
    if axis is None or (not x.ndim and axis in (0, -1)):
        return None
    return axis_of(axis, x.ndim) if isinstance(axis, int) else axes_of(axis, x.ndim)


def _in_dtype(x: Array, dtype: np.dtype[Any] | None) -> Array:
    """``x`` cast to ``dtype``, unless that discards imaginary parts."""
    if dtype is None:
        return x
    check_cast(x.dtype, dtype)
    return cast(x, dtype)


@static_lists("axis", "dtype", "keepdims")
def prod(x: Array, /, *, axis: Any = None, dtype: np.dtype[Any] | None = None, keepdims: bool = False) -> Array:
    return jnp.prod(_in_dtype(x, dtype), axis_in(x, axis), dtype, keepdims=keepdims)


@native_for(jitted(jnp.mean), "floating", bare=True)
@static_lists("axis", "keepdims")
def mean(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    return jnp.mean(x, axis_in(x, axis), keepdims=keepdims)


@static_lists("axis", "correction", "keepdims")
def var(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    return _variance(x, axis_in(x, axis), correction, keepdims).astype(x.real.dtype)


@static_lists("axis", "correction", "keepdims")
def std(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    return root(_variance(x, axis_in(x, axis), correction, keepdims)).astype(x.real.dtype)


def root(x: Array) -> Array:
    """Square root, with a gradient of zero at zero."""
    is_zero = x == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, x)))


def _variance(x: Array, axis: Any, correction: float, keepdims: bool) -> Array:
    total = jnp.sum(squares(wide(x) - jnp.mean(wide(x), axis, keepdims=True)), axis, keepdims=keepdims)
    freedom = _count(x, axis) - correction
    return total / freedom if freedom > 0 else jnp.where(total > 0, jnp.inf, jnp.nan)


def _count(x: Array, axis: Any) -> int:
    """Number of elements reduced to each result."""
    return math.prod(x.shape[i] for i in axes_of(axis, x.ndim))


def squares(x: Array) -> Array:
    """Squared magnitudes."""
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


def wide(x: Array) -> Array:
    """Halves as float32."""
    return x.astype(jnp.float32) if x.dtype.itemsize == 2 and jnp.issubdtype(x.dtype, jnp.floating) else x


def reduction(run: Callable[..., Array]) -> Callable[..., Array]:
    """``run``, a reduction of JAX, as an operation."""

    def reduce(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        return run(x, axis_in(x, axis), keepdims=keepdims)

    return static_lists("axis", "keepdims")(reduce)


max, min = reduction(jnp.max), reduction(jnp.min)


def _accumulation(run: Callable[..., Array], initial: int) -> Callable[..., Array]:
    """Running reduction by ``run``, whose initial value is that of no elements."""

    def accumulate(
        x: Array, /, *, axis: int | None = None, dtype: np.dtype[Any] | None = None, include_initial: bool = False
    ) -> Array:
        x = _in_dtype(x, dtype)
        if axis is None:
            x, axis = x.reshape(-1), 0
        if not x.ndim and axis in (0, -1):
            if include_initial:
                raise IndexError("axis must be None for a 0-d tensor with include_initial=True")
            return x
        axis = axis_of(axis, x.ndim)
        running = run(x.astype(jnp.int64) if x.dtype == bool else wide(x), axis).astype(x.dtype)
        if not include_initial:
            return running
        first = jnp.full([1 if i == axis else n for i, n in enumerate(x.shape)], initial, x.dtype)
        return lax.concatenate([first, running], axis)

    return jitted(accumulate, "axis", "dtype", "include_initial")


cumsum, cumprod = _accumulation(lax.cumsum, 0), _accumulation(lax.cumprod, 1)


def _running(run: Callable[..., Array]) -> Callable[..., Array]:
    def extreme(x: Array, /, *, axis: int) -> Array:
        return x if not x.ndim and axis in (0, -1) else _running_extreme(x, axis_of(axis, x.ndim), run)

    return jitted(extreme, "axis")


cummax, cummin = _running(lax.cummax), _running(lax.cummin)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _running_extreme(x: Array, axis: int, run: Callable[..., Array]) -> Array:
    return run(x.astype(jnp.uint8), axis).astype(x.dtype) if x.dtype == bool else run(x, axis)


@_running_extreme.defjvp
def _(axis: int, run: Callable[..., Array], primals: Any, tangents: Any) -> tuple[Array, Array]:
    """Each running extreme gets its value from the latest element equal to it; JAX divides it among equal ones."""
    (x,), (change,) = primals, tangents
    result = _running_extreme(x, axis, run)
    places = jnp.where(x == result, lax.broadcasted_iota(jnp.int64, x.shape, axis), 0)
    return result, jnp.take_along_axis(change, lax.cummax(places, axis), axis)
