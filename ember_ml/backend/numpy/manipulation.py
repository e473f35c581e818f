"""Tensors with their elements rearranged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import array_split, broadcast_to, matrix_transpose, moveaxis, ndim, ravel, rollaxis, shape, squeeze, swapaxes
from numpy import tile, transpose
from numpy import transpose as permute_dims

Array = np.ndarray[Any, Any]


def size(x: Array, /) -> int:
    return x.size


def reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Array:
    return np.reshape(x, shape, copy=copy)


def expand_dims(x: Array, /, *, axis: int | Sequence[int] = 0) -> Array:
    return np.expand_dims(x, axis if isinstance(axis, int) else tuple(axis))


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    return np.concatenate(arrays, axis)


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    return np.stack(arrays, axis)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    return np.unstack(x, axis=axis)


def repeat(x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
    return np.repeat(x, repeats, axis)


def flip(x: Array, /, *, axis: Any = None) -> Array:
    return np.flip(x, axis)


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    return np.roll(x, shift, axis)


def pad(x: Array, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    if mode == "constant":
        return np.pad(x, pad_width, constant_values=constant_values)
    return np.pad(x, pad_width, mode)  # type: ignore[call-overload]


def view_as_real(x: Array, /) -> Array:
    return np.stack([x.real, x.imag], -1)


def view_as_complex(x: Array, /) -> Array:
    x = x if x.dtype == np.float64 else x.astype(np.float32)
    return x[..., 0] + 1j * x[..., 1]


def sliding_window(x: Array, /, window_shape: Any, axis: Any = None) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, window_shape, axis)
