"""Gradients of Fourier transforms. They are linear, with symmetric matrices up to padding and truncation."""

from __future__ import annotations

from typing import Any

from ember_ml.ops import creation, dtypes, manipulation, math
from ember_ml.ops.fft import fft, fftn, ifft, ifftn, irfft, rfft


def _resize(g: Any, x: Any) -> Any:
    """``g`` truncated or zero-padded to the shape of ``x``."""
    g = g[tuple(slice(0, n) for n in x.shape)]
    missing = [(0, n - m) for n, m in zip(x.shape, g.shape, strict=True)]
    return manipulation.pad(g, missing) if any(high for _, high in missing) else g


def _linear(transform: Any) -> Any:
    def rule(g: Any, out: Any, x: Any, **options: Any) -> Any:
        options.pop("n", None)
        if "s" in options:
            options["axes"] = _axes(x, options.pop("s"), options["axes"])
        return _resize(transform(g, **options), x)

    return (rule,)


def _rfft(g: Any, out: Any, x: Any, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    length = x.shape[axis] if n is None else n
    return _resize(math.real(fft(g, n=length, axis=axis, norm=norm)), x)


def _irfft(g: Any, out: Any, x: Any, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    length = g.shape[axis]
    half = length // 2 + 1
    axis = axis % len(g.shape)
    spectrum = ifft(g, axis=axis, norm=norm)[(slice(None),) * axis + (slice(0, half),)]
    # All frequencies except the first, and the last of an even length, represent two.
    twice = [1.0 if k == 0 or 2 * k == length else 2.0 for k in range(half)]
    factors = dtypes.cast(creation.asarray(twice), math.real(spectrum).dtype)
    shape = (half,) + (1,) * (len(g.shape) - axis - 1)
    return _resize(math.multiply(spectrum, manipulation.reshape(factors, shape)), x)


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
    "fft": _linear(fft),
    "ifft": _linear(ifft),
    "fftn": _linear(fftn),
    "ifftn": _linear(ifftn),
    "rfft": (_rfft,),
    "irfft": (_irfft,),
}

FORMULAS = {"rfftn": _rfftn, "irfftn": _irfftn}
