"""Gradients of Fourier transforms, which are linear: the transposed matrix is, up to what is cut off, the same."""

from __future__ import annotations

from typing import Any

from ember_ml.ops import creation, dtypes, manipulation, math
from ember_ml.ops.fft import fft, fftn, ifft, ifftn, irfft, rfft


def _resized(g: Any, x: Any) -> Any:
    """``g`` cut off, or continued with zeros, to the shape of ``x``."""
    g = g[tuple(slice(0, n) for n in x.shape)]
    missing = [(0, n - m) for n, m in zip(x.shape, g.shape, strict=True)]
    return manipulation.pad(g, missing) if any(high for _, high in missing) else g


def _same(transform: Any) -> Any:
    def rule(g: Any, out: Any, x: Any, **options: Any) -> Any:
        options.pop("n", None)
        if "s" in options:
            options["axes"] = _axes(x, options.pop("s"), options["axes"])
        return _resized(transform(g, **options), x)

    return (rule,)


def _rfft(g: Any, out: Any, x: Any, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    length = x.shape[axis] if n is None else n
    return _resized(math.real(fft(g, n=length, axis=axis, norm=norm)), x)


def _irfft(g: Any, out: Any, x: Any, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    length = g.shape[axis]
    half = length // 2 + 1
    axis = axis % len(g.shape)
    spectrum = ifft(g, axis=axis, norm=norm)[(slice(None),) * axis + (slice(0, half),)]
    # All frequencies but the first, and the last of an even number, stand for two.
    twice = [1.0 if k == 0 or 2 * k == length else 2.0 for k in range(half)]
    factors = dtypes.cast(creation.asarray(twice), math.real(spectrum).dtype)
    shape = (half,) + (1,) * (len(g.shape) - axis - 1)
    return _resized(math.multiply(spectrum, manipulation.reshape(factors, shape)), x)


def _axes(x: Any, s: Any, axes: Any) -> list[int]:
    ndim = len(x.shape)
    if axes is None:
        return list(range(ndim)) if s is None else list(range(ndim - len(s), ndim))
    return [axis % ndim for axis in axes]


def _rfftn(x: Any, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    found = _axes(x, s, axes)
    result = rfft(x, n=None if s is None or s[-1] == -1 else s[-1], axis=found[-1], norm=norm)
    return fftn(result, s=None if s is None else s[:-1], axes=found[:-1], norm=norm) if found[:-1] else result


def _irfftn(x: Any, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
    found = _axes(x, s, axes)
    inner = ifftn(x, s=None if s is None else s[:-1], axes=found[:-1], norm=norm) if found[:-1] else x
    return irfft(inner, n=None if s is None or s[-1] == -1 else s[-1], axis=found[-1], norm=norm)


RULES = {
    "fft": _same(fft),
    "ifft": _same(ifft),
    "fftn": _same(fftn),
    "ifftn": _same(ifftn),
    "rfft": (_rfft,),
    "irfft": (_irfft,),
}

FORMULAS = {"rfftn": _rfftn, "irfftn": _irfftn}
