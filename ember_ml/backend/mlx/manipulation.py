"""Shape manipulation on MLX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend.mlx.core import convert
from ember_ml.backend.numpy.manipulation import (
    _check_lengths,
    _check_parts,
    _constants,
    _counts,
    _parts,
    _shape,
    _source_positions,
    _widths,
    _windows,
    ndim,
    size,
)
from ember_ml.errors import UnsupportedError
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.manipulation import moved_axes, permuted_axes, stacked_axis


def shape(x: mx.array, /) -> tuple[int, ...]:
    return x.shape


def reshape(x: mx.array, /, shape: Any, *, copy: bool | None = None) -> mx.array:
    lengths = _shape(shape)
    _check_lengths(lengths)
    return mx.reshape(x, lengths)


def ravel(x: mx.array, /) -> mx.array:
    return mx.reshape(x, (-1,))


def transpose(x: mx.array, /, axes: Sequence[int] | None = None) -> mx.array:
    return mx.transpose(x) if axes is None else permute_dims(x, axes)


def permute_dims(x: mx.array, /, axes: Sequence[int]) -> mx.array:
    return mx.transpose(x, permuted_axes(axes, x.ndim))


def matrix_transpose(x: mx.array, /) -> mx.array:
    return mx.matrix_transpose(x)


def swapaxes(x: mx.array, /, axis1: int, axis2: int) -> mx.array:
    return mx.swapaxes(x, _axis(axis1, x.ndim), _axis(axis2, x.ndim))


def moveaxis(x: mx.array, source: Any, destination: Any, /) -> mx.array:
    return mx.transpose(x, moved_axes(source, destination, x.ndim))


def expand_dims(x: mx.array, /, axis: int | Sequence[int] = 0) -> mx.array:
    return mx.expand_dims(x, _axes(axis, x.ndim + len(_shape(axis))))


def squeeze(x: mx.array, /, axis: Any = None) -> mx.array:
    return mx.squeeze(x) if axis is None else mx.squeeze(x, _axes(axis, x.ndim))


def broadcast_to(x: mx.array, /, shape: Any) -> mx.array:
    return mx.broadcast_to(x, _shape(shape))


def concat(arrays: Sequence[mx.array], /, *, axis: int | None = 0) -> mx.array:
    if axis is not None and arrays:
        axis = _axis(axis, arrays[0].ndim)
    return mx.concatenate(list(arrays), axis)


def stack(arrays: Sequence[mx.array], /, *, axis: int = 0) -> mx.array:
    return mx.stack(list(arrays), stacked_axis(arrays, axis))


def unstack(x: mx.array, /, *, axis: int = 0) -> tuple[mx.array, ...]:
    return tuple(mx.unstack(x, axis=_axis(axis, x.ndim)))


def array_split(x: mx.array, /, indices_or_sections: Any, axis: int = 0) -> list[mx.array]:
    axis, parts = _axis(axis, x.ndim), _parts(indices_or_sections)
    if isinstance(parts, list):
        # MLX 0.32: indices are 32-bit integers, and larger ones end the process.
        ends = [max(-x.shape[axis], min(part, x.shape[axis])) for part in parts]
        return list(mx.split(x, ends, axis)) if ends else [x]
    length, more = divmod(x.shape[axis], parts)
    ends = [length * i + min(i, more) for i in range(1, parts)]
    return list(mx.split(x, ends, axis)) if ends else [x]


def tile(x: mx.array, repetitions: Any, /) -> mx.array:
    return mx.tile(x, _shape(repetitions))


def repeat(x: mx.array, repeats: Any, /, *, axis: int | None = None) -> mx.array:
    if axis is None:
        x, axis = mx.reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim)
    if isinstance(repeats, int):
        return mx.repeat(x, repeats, axis)
    places = np.repeat(np.arange(x.shape[axis]), _counts(repeats))
    return mx.take(x, mx.array(places), axis)


def flip(x: mx.array, /, *, axis: Any = None) -> mx.array:
    axes = _axes(axis, x.ndim)
    return mx.flip(x, axes) if axes else x


def roll(x: mx.array, /, shift: Any, *, axis: Any = None) -> mx.array:
    if axis is None:
        return mx.roll(x, sum(_shape(shift)))
    shifts, axes = _shape(shift), tuple(_axis(a, x.ndim) for a in _shape(axis))
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"shift and axis must have the same length, got {len(shifts)} and {len(axes)}")
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    return mx.roll(x, shifts, axes)  # type: ignore[arg-type]


def pad(x: mx.array, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> mx.array:
    widths = _widths(pad_width, x.shape, mode)
    values = _constants(constant_values, x)
    if mode == "edge":
        return mx.pad(x, widths, mode="edge") if widths else x
    if mode == "constant" and len(set(sum(values, ()))) == 1:
        return mx.pad(x, widths, constant_values=convert(values[0][0], x.dtype, None))
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, values, strict=True)):
        if before == after == 0:
            continue
        if mode == "constant":
            x = mx.concatenate([_block(x, axis, before, first), x, _block(x, axis, after, last)], axis)
        else:
            places = _source_positions(np.arange(before + x.shape[axis] + after), before, x.shape[axis], mode)
            x = mx.take(x, mx.array(places), axis)
    return x


def _block(x: mx.array, axis: int, length: int, value: Any) -> mx.array:
    lengths = list(x.shape)
    lengths[axis] = length
    return mx.full(lengths, convert(value, x.dtype, None))


def view_as_real(x: mx.array, /) -> mx.array:
    return mx.stack([mx.real(x), mx.imag(x)], -1)


def view_as_complex(x: mx.array, /) -> mx.array:
    _check_parts(x)
    if x.dtype == mx.float64:
        raise UnsupportedError("x must not be float64 on the mlx backend, which has no complex128")
    return _join_parts(x.astype(mx.float32))  # type: ignore[return-value]


@mx.custom_function
def _join_parts(parts: mx.array) -> mx.array:
    # real + 1j * imag is NaN for infinite parts, and a view has no gradient.
    return mx.squeeze(mx.view(mx.contiguous(parts), mx.complex64), -1)


@_join_parts.vjp
def _join_parts_vjp(parts: mx.array, cotangent: mx.array, result: mx.array) -> mx.array:
    return view_as_real(cotangent)


def sliding_window(x: mx.array, /, window_shape: Any, axis: Any = None) -> mx.array:
    window, axes = _windows(window_shape, axis, x.shape)
    lengths = list(x.shape)
    strides = [1] * x.ndim
    for i in range(x.ndim - 2, -1, -1):
        strides[i] = strides[i + 1] * lengths[i + 1]
    for length, place in zip(window, axes, strict=True):
        lengths[place] -= length - 1
    return mx.as_strided(mx.contiguous(x), (*lengths, *window), (*strides, *(strides[place] for place in axes)))
