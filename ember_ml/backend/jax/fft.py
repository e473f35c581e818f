"""Fourier transforms on JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from ember_ml.backend.jax.core import jitted
from ember_ml.backend.numpy.fft import _lengths_and_axes
from ember_ml.dtypes import default_float
from ember_ml.shapes.axes import axis_of


def _program(run: Callable[..., Array]) -> Callable[..., Array]:
    """Compiled transform of ``x``, which is cast to ``dtype`` first."""

    def transform(x: Array, sizes: tuple[int, ...], axes: tuple[int, ...], norm: str, dtype: Any) -> Array:
        x = x.astype(dtype)
        if not axes:
            return x.astype(jnp.result_type(dtype, jnp.complex64))
        if not x.size:
            # JAX 0.10: transforms do not pad an empty axis.
            x = jnp.pad(x, [(0, int(i in axes and not n)) for i, n in enumerate(x.shape)])
        return run(x, sizes, axes, norm)

    return jitted(transform, "sizes", "axes", "norm", "dtype")


_fft, _ifft, _rfft, _irfft = map(_program, (jnp.fft.fftn, jnp.fft.ifftn, jnp.fft.rfftn, jnp.fft.irfftn))


def _dtype(x: Array) -> Any:
    """Dtype of the transform: half precision in float32, integers in the default float."""
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return x.dtype if x.dtype.itemsize > 2 else jnp.dtype("float32")
    return jnp.dtype("float64" if default_float().bits == 64 else "float32")


def _along(x: Array, n: int | None, axis: int, *, is_half: bool = False) -> tuple[tuple[int], tuple[int]]:
    """Length and axis of a transform; its argument may be half of a spectrum."""
    place = axis_of(axis, x.ndim)
    length: int = x.shape[place]
    return ((2 * (length - 1) if is_half else length) if n is None else n,), (place,)


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    return _fft(x, *_along(x, n, axis), norm, _dtype(x))


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    return _ifft(x, *_along(x, n, axis), norm, _dtype(x))


def fftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    return _fft(x, *_lengths_and_axes(x.shape, s, axes), norm, _dtype(x))


def ifftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    return _ifft(x, *_lengths_and_axes(x.shape, s, axes), norm, _dtype(x))


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    return _rfft(x, *_along(x, n, axis), norm, _dtype(x))


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    return _irfft(x, *_along(x, n, axis, is_half=True), norm, _dtype(x))


def rfftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    return _rfft(x, *_lengths_and_axes(x.shape, s, axes, real="before"), norm, _dtype(x))


def irfftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    return _irfft(x, *_lengths_and_axes(x.shape, s, axes, real="after"), norm, _dtype(x))
