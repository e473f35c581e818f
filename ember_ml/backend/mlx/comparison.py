"""Comparison and logic on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
from mlx.core import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    where,
)

from ember_ml.backend import takes_numbers
from ember_ml.backend.mlx.core import has_float64, stream_for
from ember_ml.backend.mlx.mapping import map_both, mapped


@takes_numbers
def not_equal(x: mx.array, y: mx.array, /) -> mx.array:
    # MLX 0.32: not_equal, mapped over its second operand alone, has the shape of the first.
    return mx.not_equal(*map_both(x, y)) if mapped else mx.not_equal(x, y)


def isclose(x: mx.array, y: mx.array, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> mx.array:
    if x.dtype == mx.complex64:
        # MLX 0.32: a complex infinity is close to finite numbers, but not to itself.
        close = (mx.abs(x - y) <= atol + rtol * mx.abs(y)) & mx.isfinite(y) | mx.equal(x, y)
        return close | (mx.isnan(x) & mx.isnan(y)) if equal_nan else close
    # MLX supports float64 on the CPU only. Equal values are close even with a negative tolerance.
    with stream_for(x.dtype):
        return mx.isclose(_comparable(x), _comparable(y), rtol, atol, equal_nan=equal_nan) | mx.equal(x, y)


def _comparable(x: mx.array) -> mx.array:
    """Half precision as float32, as its spacing is coarser than the tolerance; integers as float64 if supported."""
    if x.dtype in (mx.float32, mx.float64):
        return x
    return x.astype(mx.float64 if has_float64() and not mx.issubdtype(x.dtype, mx.floating) else mx.float32)


def all(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.all(_readable(x), axis, keepdims)
    except IndexError:
        return mx.all(x, _axis_of_scalar(x, axis), keepdims)


def any(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.any(_readable(x), axis, keepdims)
    except IndexError:
        return mx.any(x, _axis_of_scalar(x, axis), keepdims)


def _axis_of_scalar(x: mx.array, axis: Any) -> Any:
    """``None`` for axis 0 or -1 of a 0-d array, as in NumPy; otherwise re-raise the current exception."""
    if x.ndim or axis not in (0, -1):
        raise
    return None


def _readable(x: mx.array) -> mx.array:
    """``x``, recreated if it is empty. MLX 0.32: reductions of empty arrays that came from NumPy read out of bounds."""
    return x if x.size else mx.zeros(x.shape, x.dtype)
