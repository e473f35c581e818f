"""Statistics on MLX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend import native_for
from ember_ml.backend.mlx.comparison import _none, _sound
from ember_ml.backend.mlx.dtypes import cast
from ember_ml.backend.mlx.gradients import ruled


def _whole_sum(x: mx.array) -> mx.array:
    return mx.sum(_sound(x))


@native_for(_whole_sum, "floating", "int64", "uint64", bare=True)
def sum(x: mx.array, /, *, axis: Any = None, dtype: mx.Dtype | None = None, keepdims: bool = False) -> mx.array:
    x = _uncut(_sound(x), dtype)
    try:
        return mx.sum(x, axis, keepdims) if dtype is None else mx.sum(x.astype(dtype), axis, keepdims).astype(dtype)
    except IndexError:
        return sum(x, axis=_none(x, axis), dtype=dtype, keepdims=keepdims)


def _uncut(x: mx.array, dtype: mx.Dtype | None) -> mx.array:
    """``x``, cast if it is complex: ``cast`` does not let imaginary parts get lost, as MLX would."""
    return cast(x, dtype) if dtype is not None and x.dtype == mx.complex64 else x


def prod(x: mx.array, /, *, axis: Any = None, dtype: mx.Dtype | None = None, keepdims: bool = False) -> mx.array:
    x = _uncut(_sound(x), dtype)
    try:
        return mx.prod(_wide(x if dtype is None else x.astype(dtype)), axis, keepdims).astype(dtype or x.dtype)
    except IndexError:
        return prod(x, axis=_none(x, axis), dtype=dtype, keepdims=keepdims)


def max(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.max(x, axis, keepdims)
    except IndexError:
        return max(x, axis=_none(x, axis), keepdims=keepdims)


def min(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.min(x, axis, keepdims)
    except IndexError:
        return min(x, axis=_none(x, axis), keepdims=keepdims)


def mean(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    try:
        return mx.mean(_wide(_sound(x)), axis, keepdims).astype(x.dtype)
    except IndexError:
        return mx.mean(_wide(x), _none(x, axis), keepdims).astype(x.dtype)


def _wide(x: mx.array) -> mx.array:
    """Halves as float32: MLX accumulates them as they are, and LAPACK does not know them."""
    return x.astype(mx.float32) if x.dtype in (mx.float16, mx.bfloat16) else x


def var(x: mx.array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> mx.array:
    return _variance(x, axis, correction, keepdims).astype(_real_of(x.dtype))


def std(x: mx.array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> mx.array:
    variance = _variance(x, axis, correction, keepdims)
    # Where nothing differs there is no direction in which the deviation would fall: its gradient is 0, not NaN.
    none = variance == 0
    return mx.where(none, 0, mx.sqrt(mx.where(none, 1, variance))).astype(_real_of(x.dtype))


def _variance(x: mx.array, axis: Any, correction: float, keepdims: bool) -> mx.array:
    x = _wide(_sound(x))
    apart = x - mean(x, axis=axis, keepdims=True)
    total = sum(mx.square(mx.abs(apart) if apart.dtype == mx.complex64 else apart), axis=axis, keepdims=keepdims)
    freedom = _count(x, axis) - correction
    return total / freedom if freedom > 0 else mx.where(total > 0, mx.inf, mx.nan)


def _real_of(dtype: mx.Dtype) -> mx.Dtype:
    return mx.float32 if dtype == mx.complex64 else dtype


def _count(x: mx.array, axis: Any) -> int:
    """How many elements each answer of a reduction is made of."""
    if axis is None or not x.ndim:
        return x.size
    return x.shape[axis] if isinstance(axis, int) else math.prod(x.shape[i] for i in axis)


def cumsum(
    x: mx.array, /, *, axis: int | None = None, dtype: mx.Dtype | None = None, include_initial: bool = False
) -> mx.array:
    return _accumulated(mx.cumsum, 0, x, axis, dtype, include_initial)


def cumprod(
    x: mx.array, /, *, axis: int | None = None, dtype: mx.Dtype | None = None, include_initial: bool = False
) -> mx.array:
    run = _complex_cumprod if x.dtype == mx.complex64 else mx.cumprod
    return _accumulated(run, 1, x, axis, dtype, include_initial)


# MLX's own gradient forgets that it is not real.
_complex_cumprod = ruled(lambda x, axis: mx.cumprod(x, axis=axis), "cumprod")


def _accumulated(
    run: Callable[..., mx.array],
    first: int,
    x: mx.array,
    axis: int | None,
    dtype: mx.Dtype | None,
    include_initial: bool,
) -> mx.array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    x = x if dtype is None else _uncut(x, dtype).astype(dtype)
    running = _running(run, x, axis)
    if not include_initial:
        return running
    shape = list(x.shape)
    shape[axis] = 1
    return mx.concatenate([mx.full(shape, first, x.dtype), running], axis)


def _running(run: Callable[..., mx.array], x: mx.array, axis: int) -> mx.array:
    try:
        # Of halves, MLX forgets NaN.
        return run(_wide(x), axis=axis).astype(x.dtype)
    except IndexError:
        _none(x, axis)
        return x


def cummax(x: mx.array, /, *, axis: int) -> mx.array:
    return _running(mx.cummax, x, axis)


def cummin(x: mx.array, /, *, axis: int) -> mx.array:
    return _running(mx.cummin, x, axis)
