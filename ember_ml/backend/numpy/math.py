"""Elementwise operations on NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    copysign,
    cos,
    cosh,
    deg2rad,
    divide,
    exp,
    exp2,
    fabs,
    floor,
    fmax,
    fmin,
    fmod,
    frexp,
    gcd,
    heaviside,
    hypot,
    lcm,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    positive,
    rad2deg,
    real,
    reciprocal,
    remainder,
    rint,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    trunc,
)
from numpy import conjugate as conj

from ember_ml.backend import native_for, takes_numbers
from ember_ml.backend.numpy.core import DTYPES

_BFLOAT16 = DTYPES["bfloat16"]

_BLOCK = 1 << 17


def _real_floor_divide(x: Any, y: Any) -> Any:
    return floor(divide(x, y))


@takes_numbers
@native_for(_real_floor_divide, "real floating")
def floor_divide(x: Any, y: Any, /) -> Any:
    return np.floor_divide(x, y) if x.dtype.kind in "iu" else _real_floor_divide(x, y)


@takes_numbers
@native_for(np.power, "floating")
def power(x: Any, y: Any, /) -> Any:
    try:
        return np.power(x, y)
    except ValueError:
        if x.dtype.kind != "i":
            raise
    # NumPy raises for negative integer exponents. Only their parity matters, and only for bases 1 and -1.
    negatives = y < 0
    whole = np.power(x, np.where(negatives, y & 1, y))
    return np.where(negatives & (x != 1) & (x != -1), x.dtype.type(0), whole)


def rsqrt(x: Any, /) -> Any:
    return np.reciprocal(np.sqrt(x))


@native_for(np.expm1, "real floating")
def expm1(x: Any, /) -> Any:
    result = np.expm1(x)
    if x.dtype.kind != "c":
        return result
    result = np.asarray(result)
    result.real[...] += 0  # makes negative zeros positive
    return result if np.isfinite(x).all() else np.where(np.isfinite(x), result, np.exp(x) - 1)


def logsumexp(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    if x.dtype.itemsize == 2:
        return logsumexp(x.astype(np.float32), axis=axis, keepdims=keepdims).astype(x.dtype)
    axis = tuple(axis) if isinstance(axis, list) else axis
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), x.dtype.type(0), top)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis=axis)


@native_for(np.tanh, "real floating")
def tanh(x: Any, /) -> Any:
    result = np.tanh(x)
    if x.dtype.kind != "c" or np.isfinite(x).all():
        return result
    # For an infinite real part, the imaginary part is zero with the sign of its argument.
    limit = np.empty_like(result)
    limit.real, limit.imag = np.sign(x.real), np.copysign(0, x.imag)
    return np.where(np.isinf(x.real) & np.isfinite(x.imag), limit, result)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    return np.clip(x, min, max).astype(x.dtype, copy=False)


def nan_to_num(x: Any, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    if x.dtype != _BFLOAT16:
        return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    largest = float.fromhex("0x1.fep127")
    posinf, neginf = largest if posinf is None else posinf, -largest if neginf is None else neginf
    return np.nan_to_num(x.astype(np.float32), nan=nan, posinf=posinf, neginf=neginf).astype(x.dtype)


def ldexp(x: Any, y: Any, /) -> Any:
    y = np.clip(y, -5000, 5000).astype(np.int32)
    if x.dtype.itemsize == 2:
        return np.ldexp(x.astype(np.float32), y).astype(x.dtype)
    return np.ldexp(x, y)


def imag(x: Any, /) -> Any:
    return np.imag(x) if x.dtype.kind == "c" else np.zeros_like(x)


def angle(x: Any, /) -> Any:
    return np.arctan2(x.imag, x.real) if x.dtype.kind == "c" else np.arctan2(np.zeros_like(x), x)


def erf(x: Any, /) -> Any:
    return blockwise(erf_step, x)


def interp(
    x: Any, xp: Any, fp: Any, left: float | None = None, right: float | None = None, period: float | None = None
) -> Any:
    if not xp.size:
        # NumPy 2.5: interp of an empty x raises no error.
        raise ValueError("xp and fp must have at least 1 element, got 0")
    x64, xp64, fp64 = (a.astype(np.float64) for a in (x, xp, fp))
    return np.interp(x64, xp64, fp64, left, right, period).astype(x.dtype)


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    return _slide(np.convolve, a, v, mode)


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    return _slide(np.correlate, a, v, mode)


def _slide(function: Any, a: Any, v: Any, mode: str) -> Any:
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"a and v must have 1 axis, got {a.ndim} and {v.ndim}")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be 'full', 'same' or 'valid', got {mode!r}")
    if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":
        return function(a.astype(np.float32), v.astype(np.float32), mode).astype(a.dtype)
    return function(a, v, mode)


def blockwise(step: Callable[[Any, Any], None], x: Any) -> Any:
    """Result of ``step(x, out)``, run block by block; 16-bit dtypes are computed in float32."""
    result = np.empty(x.shape, np.float32 if x.dtype.itemsize == 2 else x.dtype)
    flat, out = np.asarray(x, result.dtype).reshape(-1), result.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            step(flat[start : start + _BLOCK], out[start : start + _BLOCK])
    return result.astype(x.dtype, copy=False)


class _Erf(NamedTuple):
    """Coefficients, the constant last, of the fraction in ``erf(x) = tanh(x * top(x * x) / bottom(x * x))``.

    It is accurate to the precision of the dtype up to ``end``; from there on the result rounds to 1.
    """

    end: float
    top: tuple[float, ...]
    bottom: tuple[float, ...]


_SINGLE = _Erf(
    4.2,
    (0.002178335817732939, 0.042647075156043907, 0.2798077157177317, 1.128379170840484),
    (0.0003249359675052015, 0.023690314928763927, 0.15689336369335471, 1.0),
)
_DOUBLE = _Erf(
    6.0,
    (
        2.701491043983718e-09, 4.342912910938113e-07, 1.4567719153970281e-05, 0.0002565254270718583,
        0.0030177798416776056, 0.023975286919534114, 0.1372436431485202, 0.4874419731033718, 1.1283791670955123,
    ),
    (
        1.4380843428486524e-10, 8.836591926705017e-08, 5.418577120518499e-06, 0.00011113333695552707,
        0.0015767051891499848, 0.01356687702257292, 0.09076488909916788, 0.34090435291495286, 1.0,
    ),
)  # fmt: skip


def erf_step(x: Any, out: Any) -> None:
    """Write ``erf(x)``, for float32 or float64, to ``out``."""
    fit = _DOUBLE if x.dtype == np.float64 else _SINGLE
    x = np.clip(x, -fit.end, fit.end)
    squares = x * x
    _horner(fit.top, squares, out)
    out *= x
    out /= _horner(fit.bottom, squares, np.empty_like(squares))
    np.tanh(out, out=out)


def _horner(coefficients: tuple[float, ...], x: Any, out: Any) -> Any:
    np.multiply(x, coefficients[0], out=out)
    for coefficient in coefficients[1:-1]:
        out += coefficient
        out *= x
    out += coefficients[-1]
    return out
