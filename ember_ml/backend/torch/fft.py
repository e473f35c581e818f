"""Fourier transforms on torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ember_ml.backend.numpy.fft import _lengths_and_axes
from ember_ml.dtypes import default_float
from ember_ml.shapes.axes import axis_of as _axis

_READY = frozenset({torch.float32, torch.float64, torch.complex64, torch.complex128})


def _to_float(x: Tensor) -> Tensor:
    """``x`` in the dtype of the transform: half precision in float32, integers in the default float."""
    if x.dtype in _READY:
        return x
    return x.to(torch.float64 if not x.is_floating_point() and default_float().bits == 64 else torch.float32)


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    return _along(torch.fft.fft, x, n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    return _along(torch.fft.ifft, x, n, axis, norm)


def _along(run: Callable[..., Tensor], x: Tensor, n: int | None, axis: int, norm: str) -> Tensor:
    x = x if x.dtype in _READY else _to_float(x)
    return run(x, n, axis, norm) if x.numel() else _transform_empty(run, x, n, _axis(axis, x.ndim), norm)


def _transform_empty(run: Callable[..., Tensor], x: Tensor, sizes: Any, axes: Any, norm: str) -> Tensor:
    """Transform of an empty tensor: an empty slice of the transform of one row, because MKL rejects empty batches."""
    places = (axes,) if isinstance(axes, int) else axes
    lengths = [length or int(place not in places) for place, length in enumerate(x.shape)]
    taken = [slice(0) if length > own else slice(None) for length, own in zip(lengths, x.shape, strict=True)]
    return run(x.new_zeros(lengths), sizes, axes, norm)[tuple(taken)]


def fftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    return _over_axes(torch.fft.fftn, x, *_lengths_and_axes(x.shape, s, axes), norm)


def ifftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    return _over_axes(torch.fft.ifftn, x, *_lengths_and_axes(x.shape, s, axes), norm)


def _over_axes(run: Callable[..., Tensor], x: Tensor, s: Sequence[int], axes: Sequence[int], norm: str) -> Tensor:
    x = _to_float(x)
    if not axes:
        return x.to(torch.promote_types(x.dtype, torch.complex64))
    return run(x, s, axes, norm) if x.numel() else _transform_empty(run, x, s, axes, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    return _along(torch.fft.rfft, x, n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    return _along(torch.fft.irfft, x, n, axis, norm)


def rfftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    return _over_axes(torch.fft.rfftn, x, *_lengths_and_axes(x.shape, s, axes, real="before"), norm)


def irfftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    return _over_axes(torch.fft.irfftn, x, *_lengths_and_axes(x.shape, s, axes, real="after"), norm)
