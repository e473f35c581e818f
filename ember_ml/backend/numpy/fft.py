"""Fourier transforms on NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ember_ml.backend.numpy.core import DTYPES
from ember_ml.dtypes import default_float
from ember_ml.shapes.axes import axis_of as _axis

Array = Any

_READY = frozenset(DTYPES[name] for name in ("float32", "float64", "complex64", "complex128"))


def _to_float(x: Array) -> Array:
    """``x`` in the dtype of the transform: half precision in float32, integers in the default float."""
    if x.dtype in _READY:
        return x
    return x.astype(np.float64 if x.dtype.kind in "biu" and default_float().bits == 64 else np.float32)


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    return np.fft.fft(_to_float(x), n, _axis(axis, x.ndim), norm)  # type: ignore[arg-type]


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    return np.fft.ifft(_to_float(x), n, _axis(axis, x.ndim), norm)  # type: ignore[arg-type]


def fftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    return _over_axes(np.fft.fftn, x, *_lengths_and_axes(x.shape, s, axes), norm)


def ifftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    return _over_axes(np.fft.ifftn, x, *_lengths_and_axes(x.shape, s, axes), norm)


def _over_axes(run: Callable[..., Array], x: Array, s: Sequence[int], axes: Sequence[int], norm: str) -> Array:
    x = _to_float(x)
    return run(x, s, axes, norm) if axes else x.astype(np.result_type(x.dtype, np.complex64))


def _lengths_and_axes(
    lengths: Sequence[int], s: Any, axes: Any, *, real: str = ""
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths and axes of a transform over several axes.

    ``real`` says which side of the transform is real, if any: ``"before"`` or ``"after"``. The last axis is halved.
    """
    rank = len(lengths)
    if axes is None:
        axes = range(rank) if s is None else range(-len(s), 0)
    places = tuple(_axis(a, rank) for a in axes)
    if len(set(places)) < len(places):
        raise ValueError(f"axes must name each axis once, got {tuple(axes)}")
    if real and not places:
        raise ValueError("axes must name at least 1 axis, got none")
    sizes = [lengths[place] for place in places]
    if real == "after":
        sizes[-1] = 2 * (sizes[-1] - 1)
    if s is None:
        return tuple(sizes), places
    if len(s) != len(places):
        raise ValueError(f"s must have one length per axis, got {len(s)} lengths for {len(places)} axes")
    return tuple(length if n == -1 else n for n, length in zip(s, sizes, strict=True)), places


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    return np.fft.rfft(_to_float(x), n, _axis(axis, x.ndim), norm)  # type: ignore[arg-type]


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    axis = _axis(axis, x.ndim)
    return np.fft.irfft(_nonempty(_to_float(x), axis), n, axis, norm)  # type: ignore[arg-type]


def _nonempty(x: Array, axis: int) -> Array:
    """``x``, with an empty axis replaced by one zero. NumPy 2.4: irfft of an empty axis reads out of bounds."""
    return x if x.shape[axis] else np.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)


def rfftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    return np.fft.rfftn(_to_float(x), *_lengths_and_axes(x.shape, s, axes, real="before"), norm)  # type: ignore[arg-type]


def irfftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    lengths, places = _lengths_and_axes(x.shape, s, axes, real="after")
    return np.fft.irfftn(_nonempty(_to_float(x), places[-1]), lengths, places, norm)  # type: ignore[arg-type]
