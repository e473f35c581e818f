"""Shape manipulation on NumPy."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import broadcast_to, matrix_transpose, moveaxis, ravel, swapaxes, transpose
from numpy import transpose as permute_dims

from ember_ml.backend.numpy.sequences import check_number
from ember_ml.dtypes import as_dtype
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis

Array = np.ndarray[Any, Any]


def _shape(lengths: Any) -> tuple[int, ...]:
    """Shape from one length or several."""
    return (lengths,) if hasattr(lengths, "__index__") else tuple(lengths)


def shape(x: Array, /) -> tuple[int, ...]:
    return x.shape


def ndim(x: Array, /) -> int:
    return x.ndim


def size(x: Array, /) -> int:
    return x.size


def reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Array:
    lengths = _shape(shape)
    _check_lengths(lengths)
    return np.reshape(x, lengths, copy=copy)


def _check_lengths(lengths: tuple[int, ...]) -> None:
    if min((0, *lengths)) < -1:
        raise ValueError(f"shape must have lengths >= 0, of which one may be -1, got {lengths}")


def expand_dims(x: Array, /, axis: int | Sequence[int] = 0) -> Array:
    return np.expand_dims(x, _shape(axis))


def squeeze(x: Array, /, axis: Any = None) -> Array:
    return np.squeeze(x, None if axis is None else _shape(axis))


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    return np.concatenate(arrays, axis)


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    return np.stack(arrays, axis)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    return np.unstack(x, axis=_axis(axis, x.ndim))


def array_split(x: Array, /, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    return np.array_split(x, _parts(indices_or_sections), _axis(axis, x.ndim))


def _parts(indices_or_sections: Any) -> Any:
    """Number of parts, or the list of indices between them."""
    parts = indices_or_sections.tolist() if hasattr(indices_or_sections, "tolist") else indices_or_sections
    if not hasattr(parts, "__index__"):
        return list(parts)
    if parts < 1:
        raise ValueError(f"indices_or_sections must be >= 1, got {parts}")
    return parts


def tile(x: Array, repetitions: Any, /) -> Array:
    return np.tile(x, repetitions)


def repeat(x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
    return np.repeat(x, _counts(repeats), None if axis is None else _axis(axis, x.ndim))


def _counts(repeats: Any) -> Array:
    """Repeat counts as a host array."""
    counts = np.asarray(repeats)
    if counts.size == 0:
        return counts.astype(np.int64)
    if counts.dtype.kind not in "iu":
        raise TypeError(f"repeats must be integers, got {counts.dtype} values")
    return counts.astype(np.int64)


def flip(x: Array, /, *, axis: Any = None) -> Array:
    return np.flip(x, _axes(axis, x.ndim))


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    # NumPy would truncate a fraction.
    shifts = tuple(map(operator.index, _shape(shift)))
    if not x.ndim and len(shifts) == 1 and axis in ((), []):
        return x  # np.roll does not accept an empty axis for a 0-d array
    return np.roll(x, shifts, axis)


def pad(x: Array, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    widths = _widths(pad_width, x.shape, mode)
    values = _constants(constant_values, x)
    if not widths:
        return x
    if mode == "constant":
        return np.pad(x, widths, constant_values=values)
    return np.pad(x, widths, mode)  # type: ignore[call-overload]


MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _widths(pad_width: Any, lengths: Sequence[int], mode: str) -> list[tuple[int, int]]:
    """Number of elements added before and after each axis."""
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    widths = _pairs(pad_width, len(lengths))
    for length, pair in zip(lengths, widths, strict=True):
        if not all(hasattr(width, "__index__") for width in pair):
            raise TypeError(f"pad_width must be integers, got {pair}")
        if min(pair) < 0:
            raise ValueError(f"pad_width must be >= 0, got {pair}")
        if mode != "constant" and length == 0 and max(pair) > 0:
            raise ValueError(f"x must have no axis of length 0 to be padded in mode {mode!r}")
    return widths


def _pairs(value: Any, rank: int) -> list[tuple[Any, Any]]:
    """One pair per axis, from one number, one pair or one pair per axis."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)):
        return [(value, value)] * rank
    rows = [tuple(row) if isinstance(row, (list, tuple)) else row for row in value]
    if not any(isinstance(row, tuple) for row in rows):
        rows = [tuple(rows)]
    pairs = [row * 2 if isinstance(row, tuple) and len(row) == 1 else row for row in rows]
    pairs = pairs * rank if len(pairs) == 1 else pairs
    if len(pairs) != rank or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(
            f"pad_width and constant_values must be a number, a pair, or one pair for each of {rank} axes, got {value}"
        )
    return pairs


def _constants(value: Any, x: Any) -> list[tuple[Any, Any]]:
    """Padding values before and after each axis of ``x``, which its dtype must be able to hold."""
    pairs = _pairs(value, x.ndim)
    dtype = as_dtype(x.dtype)
    for number in {number for pair in pairs for number in pair}:
        check_number(number, dtype)
    return pairs


def _source_positions(places: Any, before: int, length: int, mode: str) -> Any:
    """Source position in the axis for each position of the padded axis."""
    if mode == "wrap":
        return (places + (-before % length)) % length
    last = length - 1 if mode == "reflect" else 2 * length - 1
    if last == 0:
        return places * 0
    period = 2 * (length - 1) if mode == "reflect" else 2 * length
    phase = (places + (-before % period)) % period
    if mode == "reflect":
        return last - abs(phase - last)
    return (last - abs(2 * phase - last)) // 2


def view_as_real(x: Array, /) -> Array:
    return np.stack([x.real, x.imag], -1)


def view_as_complex(x: Array, /) -> Array:
    _check_parts(x)
    wide = x.dtype == np.float64
    result = np.empty(x.shape[:-1], np.complex128 if wide else np.complex64)
    result.real, result.imag = x[..., 0], x[..., 1]
    return result


def _check_parts(x: Any) -> None:
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ValueError(
            f"the last axis of x must have length 2, for real and imaginary parts, got shape {list(x.shape)}"
        )


def sliding_window(x: Array, /, window_shape: Any, axis: Any = None) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, *_windows(window_shape, axis, x.shape))


def _windows(window_shape: Any, axis: Any, lengths: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths of the window, and the axes that they apply to."""
    window = _shape(window_shape)
    axes = tuple(_axis(a, len(lengths)) for a in (range(len(lengths)) if axis is None else _shape(axis)))
    if len(window) != len(axes):
        raise ValueError(f"window_shape must have one length per axis, got {len(window)} for axes {tuple(axes)}")
    left = list(lengths)
    for length, place in zip(window, axes, strict=True):
        if length < 0 or length > left[place]:
            raise ValueError(
                f"window_shape must fit into the axes of x, got {length} for an axis of length {left[place]}"
            )
        left[place] -= length - 1
    return window, axes
