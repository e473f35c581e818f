"""Shape manipulation on JAX."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import index
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ember_ml.backend.jax.core import jitted, static
from ember_ml.backend.numpy.manipulation import (
    _check_lengths,
    _check_parts,
    _check_same_shape,
    _constants,
    _counts,
    _parts,
    _widths,
    _windows,
)
from ember_ml.errors import AxisError
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis


def _shape(lengths: Any) -> tuple[int, ...]:
    """Shape from one length or several, as Python integers, which are hashable."""
    return tuple(map(index, (lengths,) if hasattr(lengths, "__index__") else lengths))


_reshape = jitted(lambda x, shape: jnp.reshape(x, shape), "shape")
_transpose = jitted(lambda x, axes: lax.transpose(x, axes), "axes")
_expand_dims = jitted(lambda x, axes: lax.expand_dims(x, axes), "axes")
_squeeze = jitted(lambda x, axes: lax.squeeze(x, axes), "axes")
_broadcast_to = jitted(lambda x, shape: jnp.broadcast_to(x, shape), "shape")
_concat = jitted(lambda arrays, axis: jnp.concatenate(arrays, axis), "axis")
_stack = jitted(lambda arrays, axis: jnp.stack(arrays, axis), "axis")
_unstack = jitted(lambda x, axis: tuple(jnp.unstack(x, axis=axis)), "axis")
_tile = jitted(lambda x, repetitions: jnp.tile(x, repetitions), "repetitions")
_repeat = jitted(lambda x, count, axis: jnp.repeat(x, count, axis), "count", "axis")
_take = jitted(lambda x, places, axis: jnp.take(x, places, axis, mode="clip"), "axis")
_flip = jitted(lambda x, axes: lax.rev(x, axes), "axes")
_roll = jitted(lambda x, shifts, axes: jnp.roll(x, shifts, axes), "axes")


def shape(x: Array, /) -> tuple[int, ...]:
    return x.shape


def ndim(x: Array, /) -> int:
    return x.ndim


def size(x: Array, /) -> int:
    return x.size


def reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Array:
    lengths = _shape(shape)
    _check_lengths(lengths)
    return _reshape(x, lengths)


def ravel(x: Array, /) -> Array:
    return _reshape(x, (-1,))


def transpose(x: Array, /, axes: Sequence[int] | None = None) -> Array:
    return permute_dims(x, range(x.ndim - 1, -1, -1) if axes is None else axes)


def permute_dims(x: Array, /, axes: Sequence[int]) -> Array:
    if len(axes) != x.ndim:
        raise ValueError(f"axes must name each of the {x.ndim} axes once, got {len(axes)} axes")
    return _transpose(x, _axes(_shape(axes), x.ndim))


matrix_transpose = jitted(lambda x, /: jnp.matrix_transpose(x))


def swapaxes(x: Array, /, axis1: int, axis2: int) -> Array:
    first, second = _axis(axis1, x.ndim), _axis(axis2, x.ndim)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return _transpose(x, tuple(order))


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    sources, destinations = _axes(_shape(source), x.ndim), _axes(_shape(destination), x.ndim)
    if len(sources) != len(destinations):
        raise ValueError(
            f"source and destination must have the same length, got {len(sources)} and {len(destinations)}"
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return _transpose(x, tuple(order))


def expand_dims(x: Array, /, axis: int | Sequence[int] = 0) -> Array:
    places = _shape(axis)
    return _expand_dims(x, _axes(places, x.ndim + len(places)))


def squeeze(x: Array, /, axis: Any = None) -> Array:
    axes = tuple(i for i, n in enumerate(x.shape) if n == 1) if axis is None else _axes(_shape(axis), x.ndim)
    return _squeeze(x, axes)


def broadcast_to(x: Array, /, shape: Any) -> Array:
    return _broadcast_to(x, _shape(shape))


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    if axis is not None and arrays:
        axis = _axis(axis, arrays[0].ndim)
    return _concat(list(arrays), axis)


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    if arrays:
        try:
            axis = _axis(axis, arrays[0].ndim + 1)
        except AxisError:
            _check_same_shape(arrays)
            raise
    return _stack(list(arrays), axis)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    found: tuple[Array, ...] = _unstack(x, _axis(axis, x.ndim))
    return found


def array_split(x: Array, /, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    axis, parts = _axis(axis, x.ndim), _parts(indices_or_sections)
    length = x.shape[axis]
    if isinstance(parts, list):
        ends = [max(-length, min(index(part), length)) for part in parts]
    elif parts < 1:
        raise ValueError(f"indices_or_sections must be >= 1, got {parts}")
    else:
        size, more = divmod(length, parts)
        ends = [size * i + min(i, more) for i in range(1, parts)]
    found: list[Array] = _split(x, (0, *ends, length), axis)
    return found


@static("ends", "axis")
def _split(x: Array, ends: tuple[int, ...], axis: int) -> list[Array]:
    return [x[(slice(None),) * axis + (slice(*pair),)] for pair in pairwise(ends)]


def tile(x: Array, repetitions: Any, /) -> Array:
    counts = _shape(repetitions)
    if min((0, *counts)) < 0:
        raise ValueError(f"repetitions must be >= 0, got {repetitions}")
    return _tile(x, counts)


def repeat(x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
    if axis is None:
        x, axis = ravel(x), 0
    axis = _axis(axis, x.ndim)
    if isinstance(repeats, int):
        if repeats < 0:
            raise ValueError(f"repeats must be >= 0, got {repeats}")
        return _repeat(x, repeats, axis)
    return _take(x, np.repeat(np.arange(x.shape[axis]), _counts(repeats)), axis)


def flip(x: Array, /, *, axis: Any = None) -> Array:
    return _flip(x, _axes(axis, x.ndim))


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    shifts = _shape(shift)
    if axis is None:
        return _roll(x, sum(shifts) % max(x.size, 1), None)
    axes = tuple(_axis(a, x.ndim) for a in _shape(axis))
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"shift and axis must have the same length, got {len(shifts)} and {len(axes)}")
    totals = dict.fromkeys(axes, 0)
    for place, one in np.broadcast(np.array(axes, np.int64), np.array(shifts, object)):
        totals[int(place)] += one
    return _roll(x, np.array([n % max(x.shape[a], 1) for a, n in totals.items()], np.int64), tuple(totals))


def pad(x: Array, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    widths, values = tuple(_widths(pad_width, x.shape, mode)), _constants(constant_values, x)
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
    _check_parts(x)
    x = x if x.dtype.itemsize == 8 else x.astype(jnp.float32)
    return lax.complex(x[..., 0], x[..., 1])


def sliding_window(x: Array, /, window_shape: Any, axis: Any = None) -> Array:
    return _sliding_window(x, *_windows(_shape(window_shape), axis, x.shape))


@static("window", "axes")
def _sliding_window(x: Array, window: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    for length, axis in zip(window, axes, strict=True):
        places = jnp.arange(x.shape[axis] - length + 1)[:, None] + jnp.arange(length)
        x = jnp.moveaxis(jnp.take(x, places, axis, mode="clip"), axis + 1, -1)
    return x
