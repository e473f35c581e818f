"""Bits: logic, shifts and rotations of integers, packing, and waves made of bits."""

from __future__ import annotations

import mlx.core as mx
from mlx.core import bitwise_and, bitwise_invert, bitwise_or, bitwise_xor


def bitwise_left_shift(x: mx.array, y: mx.array, /) -> mx.array:
    return mx.where(_is_inside(x, y), mx.left_shift(x, y), mx.array(0, x.dtype))


def bitwise_right_shift(x: mx.array, y: mx.array, /) -> mx.array:
    width = x.itemsize * 8
    if mx.issubdtype(x.dtype, mx.unsignedinteger):
        return mx.where(_is_inside(x, y), mx.right_shift(x, y), mx.array(0, x.dtype))
    return mx.right_shift(x, mx.where(_is_inside(x, y), y, mx.array(width - 1, x.dtype)))


def _is_inside(x: mx.array, y: mx.array) -> mx.array:
    """Where ``y`` is a count that the processor's own shift, which looks at a few bits of it only, takes right."""
    below = y < x.itemsize * 8
    return below if mx.issubdtype(y.dtype, mx.unsignedinteger) else mx.logical_and(below, y >= 0)
