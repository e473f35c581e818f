"""Tensors with their elements rearranged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx.core import broadcast_to, moveaxis, squeeze, swapaxes, tile, transpose
from mlx.core import transpose as permute_dims


def shape(x: mx.array, /) -> tuple[int, ...]:
    return x.shape


def ndim(x: mx.array, /) -> int:
    return x.ndim


def size(x: mx.array, /) -> int:
    return x.size


def reshape(x: mx.array, /, shape: Any, *, copy: bool | None = None) -> mx.array:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return mx.reshape(x, shape)


def ravel(x: mx.array, /) -> mx.array:
    return mx.reshape(x, (-1,))


def matrix_transpose(x: mx.array, /) -> mx.array:
    return mx.swapaxes(x, -1, -2)


def expand_dims(x: mx.array, /, *, axis: int | Sequence[int] = 0) -> mx.array:
    return mx.expand_dims(x, axis)


def concat(arrays: Sequence[mx.array], /, *, axis: int | None = 0) -> mx.array:
    return mx.concatenate(arrays, axis)


def stack(arrays: Sequence[mx.array], /, *, axis: int = 0) -> mx.array:
    return mx.stack(arrays, axis)
