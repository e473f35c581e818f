"""Gradients of shape manipulation."""

from __future__ import annotations

import math as _math
from collections.abc import Sequence
from typing import Any

from ember_ml.gradients import moved_back
from ember_ml.ops import creation, math
from ember_ml.ops.manipulation import (
    array_split,
    concat,
    flip,
    matrix_transpose,
    moveaxis,
    pad,
    permute_dims,
    reshape,
    roll,
    stack,
    swapaxes,
    unstack,
)


def _reshaped(g: Any, out: Any, x: Any, *_: Any, **__: Any) -> Any:
    return reshape(g, x.shape)


def _transposed(g: Any, out: Any, x: Any, axes: Any = None) -> Any:
    if axes is None:
        return permute_dims(g, tuple(reversed(range(len(g.shape)))))
    ndim = len(g.shape)
    order = [axis % ndim for axis in axes]
    return permute_dims(g, tuple(order.index(i) for i in range(ndim)))


def _concat(places: Sequence[Any], g: Any, out: Any, arrays: Sequence[Any], *, axis: Any = 0) -> list[Any]:
    if axis is None:
        sizes, axis = [_math.prod(x.shape) for x in arrays], 0
    else:
        sizes = [x.shape[axis] for x in arrays]
    before = (slice(None),) * (axis % len(g.shape))
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [reshape(g[(*before, slice(ends[i] - sizes[i], ends[i]))], arrays[i].shape) for _, i in places]


def _stack(places: Sequence[Any], g: Any, out: Any, arrays: Sequence[Any], *, axis: int = 0) -> list[Any]:
    parts = unstack(g, axis=axis)
    return [parts[i] for _, i in places]


def _fill_missing(g: Sequence[Any], out: Sequence[Any]) -> list[Any]:
    return [creation.zeros_like(x) if one is None else one for one, x in zip(g, out, strict=True)]


def _array_split(g: Sequence[Any], out: Sequence[Any], x: Any, sections: Any, axis: int = 0) -> Any:
    if sum(part.shape[axis] for part in out) == x.shape[axis]:
        return concat(_fill_missing(g, out), axis=axis)
    # Sections overlap if their indices are not sorted.
    return moved_back(array_split, g, x, sections, axis)


def _rolled(g: Any, out: Any, x: Any, shift: Any, *, axis: Any = None) -> Any:
    back = -shift if hasattr(shift, "__index__") else [-one for one in shift]
    return roll(g, back, axis=axis)


def _pad(g: Any, out: Any, x: Any, width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    if mode != "constant":
        return moved_back(pad, g, x, width, mode)
    lows = _lows(width, len(x.shape))
    return g[tuple(slice(low, low + n) for low, n in zip(lows, x.shape, strict=True))]


def _lows(width: Any, ndim: int) -> list[int]:
    """Padding before each axis, from a number, a pair for all axes, or pairs."""
    if not hasattr(width, "__len__"):
        return [int(width)] * ndim
    each = [int(one[0] if hasattr(one, "__len__") else one) for one in width]
    return each if len(width) == ndim and hasattr(width[0], "__len__") else each[:1] * ndim


RULES = {
    "reshape": (_reshaped,),
    "ravel": (_reshaped,),
    "expand_dims": (_reshaped,),
    "squeeze": (_reshaped,),
    "transpose": (_transposed,),
    "permute_dims": (_transposed,),
    "matrix_transpose": (lambda g, out, x: matrix_transpose(g),),
    "swapaxes": (lambda g, out, x, one, other: swapaxes(g, one, other),),
    "moveaxis": (lambda g, out, x, source, destination: moveaxis(g, destination, source),),
    "broadcast_to": (lambda g, out, x, shape: g,),
    "unstack": (lambda g, out, x, *, axis=0: stack(_fill_missing(g, out), axis=axis),),
    "array_split": (_array_split,),
    "pad": (_pad,),
    "roll": (_rolled,),
    "flip": (lambda g, out, x, *, axis=None: flip(g, axis=axis),),
    "view_as_real": (lambda g, out, x: math.subtract(g[..., 0], math.multiply(g[..., 1], 1j)),),
    "view_as_complex": (lambda g, out, x: stack([math.real(g), math.negative(math.imag(g))], axis=-1),),
}

JOINT = {"concat": _concat, "stack": _stack}

MOVES = {"tile", "repeat", "sliding_window"}
