"""Fourier transforms on MLX, whose only complex dtype is complex64."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend import use_backend
from ember_ml.backend.numpy.fft import _lengths_and_axes
from ember_ml.dispatch import definition_of
from ember_ml.dtypes import default_float
from ember_ml.errors import UnsupportedError
from ember_ml.shapes.axes import axis_of as _axis

_SINGLE = (mx.float32, mx.complex64, mx.float16, mx.bfloat16)


def _is_double(x: mx.array) -> bool:
    """Whether the transform is in double precision: for float64, and for integers if that is the default float."""
    return x.dtype not in _SINGLE and (x.dtype == mx.float64 or default_float().bits == 64)


def _to_complex(x: mx.array) -> mx.array:
    if _is_double(x):
        raise UnsupportedError(
            "x must not be float64 or complex128 on the mlx backend, whose transforms are in single precision"
        )
    return x


def _to_real(x: mx.array) -> mx.array:
    if _is_double(x):
        # MLX 0.32 computes it in single precision; NumPy computes it on the host instead.
        raise NotImplementedError("x must be in single precision")
    return x


def fft(x: mx.array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> mx.array:
    return mx.fft.fft(_to_complex(x), n, _axis(axis, x.ndim), norm)


def ifft(x: mx.array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> mx.array:
    return mx.fft.ifft(_to_complex(x), n, _axis(axis, x.ndim), norm)


def fftn(x: mx.array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> mx.array:
    sizes, places = _lengths_and_axes(x.shape, s, axes)
    return mx.fft.fftn(_to_complex(x), sizes, places, norm) if places else _to_complex(x).astype(mx.complex64)


def ifftn(x: mx.array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> mx.array:
    sizes, places = _lengths_and_axes(x.shape, s, axes)
    return mx.fft.ifftn(_to_complex(x), sizes, places, norm) if places else _to_complex(x).astype(mx.complex64)


def rfft(x: mx.array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> mx.array:
    return mx.fft.rfft(_to_complex(x), n, _axis(axis, x.ndim), norm)


def irfft(x: mx.array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> mx.array:
    return mx.fft.irfft(_to_real(x), n, _axis(axis, x.ndim), norm)


def rfftn(x: mx.array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> mx.array:
    return mx.fft.rfftn(_to_complex(x), *_lengths_and_axes(x.shape, s, axes, real="before"), norm)


def irfftn(x: mx.array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> mx.array:
    return mx.fft.irfftn(_to_real(x), *_lengths_and_axes(x.shape, s, axes, real="after"), norm)


def dct(x: mx.array, /, kind: int = 2, *, n: int | None = None, axis: int = -1, norm: str | None = None) -> mx.array:
    x = _to_real(x)
    with use_backend("mlx"):
        return definition_of("dct")(x, kind, n=n, axis=axis, norm=norm)


def idct(x: mx.array, /, kind: int = 2, *, n: int | None = None, axis: int = -1, norm: str | None = None) -> mx.array:
    x = _to_real(x)
    with use_backend("mlx"):
        return definition_of("idct")(x, kind, n=n, axis=axis, norm=norm)
