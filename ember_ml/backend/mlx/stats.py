"""Statistics on MLX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.core import max, min


def sum(x: mx.array, /, *, axis: Any = None, dtype: mx.Dtype | None = None, keepdims: bool = False) -> mx.array:
    return mx.sum(x if dtype is None else x.astype(dtype), axis, keepdims)


def prod(x: mx.array, /, *, axis: Any = None, dtype: mx.Dtype | None = None, keepdims: bool = False) -> mx.array:
    return mx.prod(x if dtype is None else x.astype(dtype), axis, keepdims)


def mean(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    return mx.mean(_wide(x), axis, keepdims).astype(x.dtype)


def _wide(x: mx.array) -> mx.array:
    """Halves as float32: MLX accumulates them as they are."""
    return x.astype(mx.float32) if x.dtype in (mx.float16, mx.bfloat16) else x


def cumsum(
    x: mx.array, /, *, axis: int | None = None, dtype: mx.Dtype | None = None, include_initial: bool = False
) -> mx.array:
    return _accumulated(mx.cumsum, 0, x, axis, dtype, include_initial)


def cumprod(
    x: mx.array, /, *, axis: int | None = None, dtype: mx.Dtype | None = None, include_initial: bool = False
) -> mx.array:
    return _accumulated(mx.cumprod, 1, x, axis, dtype, include_initial)


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
    x = x if dtype is None else x.astype(dtype)
    running = run(_wide(x), axis=axis).astype(x.dtype)
    if not include_initial:
        return running
    shape = list(x.shape)
    shape[axis] = 1
    return mx.concatenate([mx.full(shape, first, x.dtype), running], axis)
