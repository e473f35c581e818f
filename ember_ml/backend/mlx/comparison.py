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
from ember_ml.backend.mlx.core import has_float64, placing
from ember_ml.backend.mlx.mapping import alike, mapped


@takes_numbers
def not_equal(x: mx.array, y: mx.array, /) -> mx.array:
    # Mapped over the second operand alone, MLX's has the shape of the first.
    return mx.not_equal(*alike(x, y)) if mapped else mx.not_equal(x, y)


def isclose(x: mx.array, y: mx.array, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> mx.array:
    if x.dtype == mx.complex64:
        # MLX 0.32 takes a complex infinity for close to finite numbers, and not for close to itself.
        near = (mx.abs(x - y) <= atol + rtol * mx.abs(y)) & mx.isfinite(y) | mx.equal(x, y)
        return near | (mx.isnan(x) & mx.isnan(y)) if equal_nan else near
    # MLX computes in float64 on the CPU alone. With a negative tolerance, what is equal is still close.
    with placing(x.dtype):
        return mx.isclose(_comparable(x), _comparable(y), rtol, atol, equal_nan=equal_nan) | mx.equal(x, y)


def _comparable(x: mx.array) -> mx.array:
    """Halves as float32 (their own steps are coarser than the tolerance), integers as float64 if it holds more."""
    if x.dtype in (mx.float32, mx.float64):
        return x
    return x.astype(mx.float64 if has_float64() and not mx.issubdtype(x.dtype, mx.floating) else mx.float32)


def all(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.all(_sound(x), axis, keepdims)
    except IndexError:
        return mx.all(x, _none(x, axis), keepdims)


def any(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.any(_sound(x), axis, keepdims)
    except IndexError:
        return mx.any(x, _none(x, axis), keepdims)


def _none(x: mx.array, axis: Any) -> Any:
    """``None`` for the first or last axis of an array without axes, as in NumPy; else the error at hand is raised."""
    if x.ndim or axis not in (0, -1):
        raise
    return None


def _sound(x: mx.array) -> mx.array:
    """``x``, made anew if it is empty: MLX reduces an empty array that came from NumPy by reading past its end."""
    return x if x.size else mx.zeros(x.shape, x.dtype)
