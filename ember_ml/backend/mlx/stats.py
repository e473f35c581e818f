"""Statistics on MLX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend import native_for
from ember_ml.backend.mlx.comparison import _axis_of_scalar, _readable
from ember_ml.backend.mlx.dtypes import cast
from ember_ml.backend.mlx.gradients import with_rule


def _sum_all(x: mx.array) -> mx.array:
    return mx.sum(_readable(x))


@native_for(_sum_all, "floating", "int64", "uint64", bare=True)
def sum(x: mx.array, /, *, axis: Any = None, dtype: mx.Dtype | None = None, keepdims: bool = False) -> mx.array:
    x = _cast_complex(_readable(x), dtype)
    try:
        return mx.sum(x, axis, keepdims) if dtype is None else mx.sum(x.astype(dtype), axis, keepdims).astype(dtype)
    except IndexError:
        return sum(x, axis=_axis_of_scalar(x, axis), dtype=dtype, keepdims=keepdims)


def _cast_complex(x: mx.array, dtype: mx.Dtype | None) -> mx.array:
    """``x``, cast if it is complex: ``cast`` rejects the loss of imaginary parts, which MLX discards."""
    return cast(x, dtype) if dtype is not None and x.dtype == mx.complex64 else x


def prod(x: mx.array, /, *, axis: Any = None, dtype: mx.Dtype | None = None, keepdims: bool = False) -> mx.array:
    x = _cast_complex(_readable(x), dtype)
    try:
        return mx.prod(_wide(x if dtype is None else x.astype(dtype)), axis, keepdims).astype(dtype or x.dtype)
    except IndexError:
        return prod(x, axis=_axis_of_scalar(x, axis), dtype=dtype, keepdims=keepdims)


def max(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.max(x, axis, keepdims)
    except IndexError:
        return max(x, axis=_axis_of_scalar(x, axis), keepdims=keepdims)


def min(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.min(x, axis, keepdims)
    except IndexError:
        return min(x, axis=_axis_of_scalar(x, axis), keepdims=keepdims)


def mean(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.mean(_wide(_readable(x)), axis, keepdims).astype(x.dtype)
    except IndexError:
        return mx.mean(_wide(x), _axis_of_scalar(x, axis), keepdims).astype(x.dtype)


def _wide(x: mx.array) -> mx.array:
    """Halves as float32: MLX accumulates them as they are, and LAPACK does not know them."""
    return x.astype(mx.float32) if x.dtype in (mx.float16, mx.bfloat16) else x


def var(x: mx.array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> mx.array:
    return _variance(x, axis, correction, keepdims).astype(_real_of(x.dtype))


def std(x: mx.array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> mx.array:
    variance = _variance(x, axis, correction, keepdims)
    # The gradient at zero deviation is defined as 0, not NaN.
    is_zero = variance == 0
    return mx.where(is_zero, 0, mx.sqrt(mx.where(is_zero, 1, variance))).astype(_real_of(x.dtype))


def _variance(x: mx.array, axis: Any, correction: float, keepdims: bool) -> mx.array:
    x = _wide(_readable(x))
    centered = x - mean(x, axis=axis, keepdims=True)
    total = sum(
        mx.square(mx.abs(centered) if centered.dtype == mx.complex64 else centered), axis=axis, keepdims=keepdims
    )
    freedom = _count(x, axis) - correction
    return total / freedom if freedom > 0 else mx.where(total > 0, mx.inf, mx.nan)


def _real_of(dtype: mx.Dtype) -> mx.Dtype:
    return mx.float32 if dtype == mx.complex64 else dtype


def _count(x: mx.array, axis: Any) -> int:
    """Number of elements reduced to each result."""
    if axis is None or not x.ndim:
        return x.size
    return x.shape[axis] if isinstance(axis, int) else math.prod(x.shape[i] for i in axis)


def cumsum(
    x: mx.array, /, *, axis: int | None = None, dtype: mx.Dtype | None = None, include_initial: bool = False
) -> mx.array:
    return _accumulate(mx.cumsum, 0, x, axis, dtype, include_initial)


def cumprod(
    x: mx.array, /, *, axis: int | None = None, dtype: mx.Dtype | None = None, include_initial: bool = False
) -> mx.array:
    run = _complex_cumprod if x.dtype == mx.complex64 else mx.cumprod
    return _accumulate(run, 1, x, axis, dtype, include_initial)


# MLX 0.32: the gradient of cumprod is wrong for complex numbers.
_complex_cumprod = with_rule(lambda x, axis: mx.cumprod(x, axis=axis), "cumprod")


def _accumulate(
    run: Callable[..., mx.array],
    first: int,
    x: mx.array,
    axis: int | None,
    dtype: mx.Dtype | None,
    include_initial: bool,
) -> mx.array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    x = x if dtype is None else _cast_complex(x, dtype).astype(dtype)
    running = _accumulate_along(run, x, axis)
    if not include_initial:
        return running
    shape = list(x.shape)
    shape[axis] = 1
    return mx.concatenate([mx.full(shape, first, x.dtype), running], axis)


def _accumulate_along(run: Callable[..., mx.array], x: mx.array, axis: int) -> mx.array:
    try:
        # MLX 0.32: cumulative operations ignore NaN in half precision.
        return run(_wide(x), axis=axis).astype(x.dtype)
    except IndexError:
        _axis_of_scalar(x, axis)
        return x


def cummax(x: mx.array, /, *, axis: int) -> mx.array:
    return _accumulate_along(mx.cummax, x, axis)


def cummin(x: mx.array, /, *, axis: int) -> mx.array:
    return _accumulate_along(mx.cummin, x, axis)
