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


def _along_axis(run: Callable[..., Array], is_half: bool = False) -> Callable[..., Array]:
    """Transform along one axis of an array, or of half of a spectrum."""

    def transform(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
        place = axis_of(axis, x.ndim)
        length = 2 * (x.shape[place] - 1) if is_half else x.shape[place]
        return run(x, (length if n is None else n,), (place,), norm, _dtype(x))

    return transform


def _over_axes(run: Callable[..., Array], real: str = "") -> Callable[..., Array]:
    """Transform over several axes; ``real`` says which side of it is real, as in ``_lengths_and_axes``."""

    def transform(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
        return run(x, *_lengths_and_axes(x.shape, s, axes, real=real), norm, _dtype(x))

    return transform


fft, ifft, rfft, irfft = *map(_along_axis, (_fft, _ifft, _rfft)), _along_axis(_irfft, is_half=True)
fftn, ifftn, rfftn, irfftn = *map(_over_axes, (_fft, _ifft)), _over_axes(_rfft, "before"), _over_axes(_irfft, "after")
