"""Shape manipulation on JAX."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ember_ml.backend.jax.core import jitted, static, static_lists
from ember_ml.backend.numpy import manipulation as host
from ember_ml.backend.numpy.manipulation import _shape, ndim, size
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.manipulation import moved_axes, permuted_axes, stacked_axis


def shape(x: Array, /) -> tuple[int, ...]:
    return x.shape


@static_lists("shape", "copy")
def reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Array:
    lengths = _shape(shape)
    host._check_lengths(lengths)
    return jnp.reshape(x, lengths)


ravel = jitted(lambda x, /: jnp.reshape(x, (-1,)))


@static_lists("axes")
def transpose(x: Array, /, axes: Sequence[int] | None = None) -> Array:
    return lax.transpose(x, range(x.ndim - 1, -1, -1) if axes is None else permuted_axes(axes, x.ndim))


@static_lists("axes")
def permute_dims(x: Array, /, axes: Sequence[int]) -> Array:
    return lax.transpose(x, permuted_axes(axes, x.ndim))


matrix_transpose = jitted(lambda x, /: jnp.matrix_transpose(x))


@static("axis1", "axis2")
def swapaxes(x: Array, /, axis1: int, axis2: int) -> Array:
    return jnp.swapaxes(x, _axis(axis1, x.ndim), _axis(axis2, x.ndim))


@static_lists("source", "destination")
def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    return lax.transpose(x, moved_axes(source, destination, x.ndim))


@static_lists("axis")
def expand_dims(x: Array, /, axis: int | Sequence[int] = 0) -> Array:
    return lax.expand_dims(x, _axes(axis, x.ndim + len(_shape(axis))))


@static_lists("axis")
def squeeze(x: Array, /, axis: Any = None) -> Array:
    return jnp.squeeze(x, axis if axis is None else _axes(axis, x.ndim))


@static_lists("shape")
def broadcast_to(x: Array, /, shape: Any) -> Array:
    return jnp.broadcast_to(x, _shape(shape))


@static("axis")
def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    return jnp.concatenate(arrays, axis if axis is None or not arrays else _axis(axis, arrays[0].ndim))


@static("axis")
def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    return jnp.stack(arrays, stacked_axis(arrays, axis))


@static("axis")
def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    return tuple(jnp.unstack(x, axis=_axis(axis, x.ndim)))


def array_split(x: Array, /, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    axis = _axis(axis, x.ndim)
    pieces = np.array_split(np.arange(x.shape[axis]), host._parts(indices_or_sections))
    return _split(x, tuple((int(piece[0]), int(piece[-1]) + 1) if piece.size else (0, 0) for piece in pieces), axis)


@static("ends", "axis")
def _split(x: Array, ends: tuple[tuple[int, int], ...], axis: int) -> list[Array]:
    return [lax.slice_in_dim(x, *pair, axis=axis) for pair in ends]


@static_lists("repetitions")
def tile(x: Array, repetitions: Any, /) -> Array:
    if min((0, *_shape(repetitions))) < 0:
        raise ValueError(f"repetitions must be >= 0, got {repetitions}")
    return jnp.tile(x, repetitions)


def repeat(x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
    if axis is None:
        x, axis = ravel(x), 0
    axis = _axis(axis, x.ndim)
    if isinstance(repeats, int):
        if repeats < 0:
            raise ValueError(f"repeats must be >= 0, got {repeats}")
        return _repeat(x, repeats, axis)
    return _take(x, np.repeat(np.arange(x.shape[axis]), host._counts(repeats)), axis)


_repeat = jitted(lambda x, count, axis: jnp.repeat(x, count, axis), "count", "axis")
_take = jitted(lambda x, places, axis: jnp.take(x, places, axis, mode="clip"), "axis")


@static_lists("axis")
def flip(x: Array, /, *, axis: Any = None) -> Array:
    return lax.rev(x, _axes(axis, x.ndim))


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    # The number of elements is a multiple of every length.
    shifts = [index(one) % max(x.size, 1) for one in _shape(shift)]
    if axis is None:
        return _roll(x, sum(shifts) % max(x.size, 1), None)
    axes = tuple(_axis(one, x.ndim) for one in _shape(axis))
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"shift and axis must have the same length, got {len(shifts)} and {len(axes)}")
    return _roll(x, np.array(shifts, np.int64), axes)


# Not compiled for each shift.
_roll = jitted(lambda x, shifts, axes: jnp.roll(x, shifts, axes), "axes")


def pad(x: Array, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    widths, values = tuple(host._widths(pad_width, x.shape, mode)), host._constants(constant_values, x)
    if mode != "constant":
        return _extend(x, widths, mode) if widths else x
    return _surround(x, np.array(values, x.dtype).reshape(-1, 2), widths, len(set(sum(values, ()))) == 1)


_extend = jitted(lambda x, widths, mode: jnp.pad(x, widths, mode), "widths", "mode")


@static("widths", "alike")
def _surround(x: Array, values: Any, widths: Any, alike: bool) -> Array:
    """``x`` with constants around it, all of them equal if ``alike``."""
    if alike:
        return lax.pad(x, values[0, 0], [(*pair, 0) for pair in widths])
    for axis, (before, after) in enumerate(widths):
        for side, width in enumerate(((before, 0, 0), (0, after, 0))):
            x = lax.pad(x, values[axis, side], [width if i == axis else (0, 0, 0) for i in range(x.ndim)])
    return x


view_as_real = jitted(lambda x, /: jnp.stack([x.real, x.imag], -1))


@static()
def view_as_complex(x: Array, /) -> Array:
    host._check_parts(x)
    x = x if x.dtype.itemsize == 8 else x.astype(jnp.float32)
    return lax.complex(x[..., 0], x[..., 1])


@static_lists("window_shape", "axis")
def sliding_window(x: Array, /, window_shape: Any, axis: Any = None) -> Array:
    for length, place in zip(*host._windows(window_shape, axis, x.shape), strict=True):
        starts = jnp.arange(x.shape[place] - length + 1)[:, None]
        x = jnp.moveaxis(x[(slice(None),) * place + (starts + jnp.arange(length),)], place + 1, -1)
    return x
