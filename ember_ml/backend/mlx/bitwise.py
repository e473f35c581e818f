"""Bitwise logic and shifts on MLX."""

from __future__ import annotations

import mlx.core as mx
from mlx.core import bitwise_invert

from ember_ml.backend import takes_numbers
from ember_ml.backend.mlx.mapping import map_both, mapped


@takes_numbers
def bitwise_and(x: mx.array, y: mx.array, /) -> mx.array:
    return mx.bitwise_and(*map_both(x, y)) if mapped else mx.bitwise_and(x, y)


@takes_numbers
def bitwise_or(x: mx.array, y: mx.array, /) -> mx.array:
    return mx.bitwise_or(*map_both(x, y)) if mapped else mx.bitwise_or(x, y)


@takes_numbers
def bitwise_xor(x: mx.array, y: mx.array, /) -> mx.array:
    return mx.bitwise_xor(*map_both(x, y)) if mapped else mx.bitwise_xor(x, y)


def bitwise_left_shift(x: mx.array, y: mx.array, /) -> mx.array:
    x, y = map_both(x, y) if mapped else (x, y)
    return mx.where(_is_inside(x, y), mx.left_shift(x, y), mx.array(0, x.dtype))


def bitwise_right_shift(x: mx.array, y: mx.array, /) -> mx.array:
    x, y = map_both(x, y) if mapped else (x, y)
    width = x.itemsize * 8
    if mx.issubdtype(x.dtype, mx.unsignedinteger):
        return mx.where(_is_inside(x, y), mx.right_shift(x, y), mx.array(0, x.dtype))
    return mx.right_shift(x, mx.where(_is_inside(x, y), y, mx.array(width - 1, x.dtype)))


_UNSIGNED = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}


def _is_inside(x: mx.array, y: mx.array) -> mx.array:
    """Mask of the shift counts that are less than the width; the CPU's shift uses only their low bits."""
    # As unsigned integers, negative counts are large.
    return y.view(_UNSIGNED[y.itemsize]) < x.itemsize * 8
