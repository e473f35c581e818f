"""Elementwise operations on torch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import (
    abs,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    conj,
    copysign,
    cos,
    cosh,
    deg2rad,
    digamma,
    erf,
    erfc,
    erfinv,
    exp,
    exp2,
    floor,
    fmax,
    fmin,
    i0,
    lgamma,
    log,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    maximum,
    minimum,
    nextafter,
    positive,
    rad2deg,
    real,
    reciprocal,
    rsqrt,
    signbit,
    sin,
    sinc,
    sinh,
    sqrt,
    square,
    tan,
    trunc,
)
from torch import abs as fabs
from torch import div as divide
from torch import mul as multiply
from torch import neg as negative
from torch import pow as power
from torch import sub as subtract

from ember_ml.backend import native_for, takes_numbers
from ember_ml.backend.torch.core import scalar_like
from ember_ml.backend.torch.stats import check_axes
from ember_ml.shapes.windows import sliding_pads


@takes_numbers
def floor_divide(x: torch.Tensor, y: torch.Tensor | float, /) -> torch.Tensor:
    if x.is_floating_point():
        return torch.div(x, y if isinstance(y, torch.Tensor) else scalar_like(y, x)).floor_()
    if not isinstance(y, torch.Tensor):
        return torch.floor_divide(x, y) if y else torch.zeros_like(x)
    trap = _traps(y)
    return torch.floor_divide(x, y.masked_fill(trap, 1)).mul_(torch.where(trap, y, 1))


@takes_numbers
def remainder(x: torch.Tensor, y: torch.Tensor | float, /) -> torch.Tensor:
    if not x.is_floating_point():
        return torch.remainder(x, y.masked_fill(_traps(y), 1) if isinstance(y, torch.Tensor) else y or 1)
    y = y if isinstance(y, torch.Tensor) else scalar_like(y, x)
    rest = torch.remainder(x, y)
    # A zero remainder has the sign of the divisor too.
    if not rest.requires_grad:
        return rest.copysign_(y)
    # The gradient of copysign is zero at zero, so multiply by the sign instead: adding 0 makes zeros positive.
    sign = torch.sign(y)
    return sign * (sign * rest + 0)


def fmod(x: torch.Tensor, y: torch.Tensor, /) -> torch.Tensor:
    return torch.fmod(x, y if x.is_floating_point() else y.masked_fill(_traps(y), 1))


@native_for(torch.hypot, "bfloat16", "float16", "float32")
def hypot(x: torch.Tensor, y: torch.Tensor, /) -> torch.Tensor:
    result = torch.hypot(x, y)
    if not result.is_cuda or result.dtype is not torch.float64:
        return result
    # PyTorch 2.11: the float64 kernel on CUDA rounds up, to infinity next to the largest number. Where the smaller
    # operand is below the rounding error, the result is the larger one.
    x, y = x.abs(), y.abs()
    larger = torch.maximum(x, y)
    return torch.where(result.isinf() & (torch.minimum(x, y) <= larger * 2.0**-27), larger, result)


def _traps(y: torch.Tensor) -> torch.Tensor:
    """Mask of the divisors that trap: zero, and -1 for the smallest integer. They are the y with ``y >> 1 == y``."""
    return torch.eq(y >> 1, y) if y.dtype.is_signed else y == 0


def sign(x: torch.Tensor, /) -> torch.Tensor:
    signs = torch.sgn(x)
    return torch.where(torch.isnan(x), x, signs) if x.is_floating_point() else signs


@native_for(torch.expm1, "real floating")
def expm1(x: torch.Tensor, /) -> torch.Tensor:
    if not x.is_complex():
        return torch.expm1(x)
    result = torch.expm1(x)
    result = torch.complex(result.real + 0, result.imag)  # makes negative zeros positive
    return torch.where(x.isfinite(), result, torch.exp(x) - 1)


@native_for(torch.log1p, "real floating")
def log1p(x: torch.Tensor, /) -> torch.Tensor:
    if not x.is_complex():
        return torch.log1p(x)
    return torch.where(x.isfinite(), torch.log1p(x), torch.log(x + 1))


def logsumexp(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    axis = tuple(range(x.ndim)) if axis is None else axis
    check_axes(x, axis)
    return torch.logsumexp(x, axis, keepdims) if isinstance(axis, int) or len(axis) or x.ndim == 0 else +x


@native_for(torch.acos, "real floating")
def acos(x: torch.Tensor, /) -> torch.Tensor:
    result = torch.acos(x)
    if not x.is_complex():
        return result
    # torch 2.13: the sign of a zero imaginary part is lost. copysign would lose the gradient there, so zeros are
    # negated as
    # constants, with the gradient unchanged.
    imaginary = result.imag
    constant = imaginary.detach()
    mirrored = torch.where(constant == 0, -constant - (constant - imaginary), -imaginary)
    return torch.complex(result.real, torch.where(imaginary.signbit() == x.imag.signbit(), mirrored, imaginary))


@native_for(torch.acosh, "real floating")
def acosh(x: torch.Tensor, /) -> torch.Tensor:
    if not x.is_complex():
        return torch.acosh(x)
    # PyTorch 2.11: on CUDA, acosh of zero with an imaginary NaN has no part that is known.
    limit = torch.complex(x.imag, torch.full_like(x.imag, math.pi / 2))
    return torch.where(_is_imaginary_nan(x), limit, torch.acosh(x))


def _is_imaginary_nan(x: torch.Tensor) -> torch.Tensor:
    """Mask of the complex numbers whose real part is zero and whose imaginary part is NaN."""
    return (x.real == 0) & x.imag.isnan()


@native_for(torch.tanh, "real floating")
def tanh(x: torch.Tensor, /) -> torch.Tensor:
    if not x.is_complex():
        return torch.tanh(x)
    # For an infinite real part, the imaginary part is zero with the sign of its argument.
    limit = torch.complex(torch.sign(x.real), torch.copysign(torch.zeros_like(x.imag), x.imag))
    result = torch.where(x.real.isinf() & x.imag.isfinite(), limit, torch.tanh(x))
    # PyTorch 2.11: on CUDA, tanh of zero with an imaginary NaN has no part that is zero.
    return torch.where(_is_imaginary_nan(x), x, result)


@native_for(torch.round, "real floating")
def rint(x: torch.Tensor, /) -> torch.Tensor:
    return torch.complex(torch.round(x.real), torch.round(x.imag)) if x.is_complex() else torch.round(x)


def clip(x: torch.Tensor, /, min: torch.Tensor | None = None, max: torch.Tensor | None = None) -> torch.Tensor:
    return +x if min is None and max is None else torch.clamp(x, min, max)


def nan_to_num(
    x: torch.Tensor, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> torch.Tensor:
    if x.is_complex() and x.requires_grad:
        # torch 2.13: complex nan_to_num has no gradient.
        return torch.complex(*(torch.nan_to_num(part, nan, posinf, neginf) for part in (x.real, x.imag)))
    return torch.nan_to_num(x, nan, posinf, neginf)


def gcd(x: torch.Tensor, y: torch.Tensor, /) -> torch.Tensor:
    # torch 2.13: gcd with the lowest integer, whose magnitude overflows the dtype, is negative.
    return torch.gcd(x, y).abs()


def lcm(x: torch.Tensor, y: torch.Tensor, /) -> torch.Tensor:
    # torch 2.13: lcm divides the lowest integer by -1, which ends the process.
    divisor = gcd(x, y)
    return torch.div(x.abs(), torch.where(divisor == 0, 1, divisor), rounding_mode="trunc") * y.abs()


def ldexp(x: torch.Tensor, y: torch.Tensor, /) -> torch.Tensor:
    if x.dtype.itemsize == 2:
        return ldexp(x.float(), y).to(x.dtype)
    # Three factors cover every exponent, and the order keeps all products but the last exact (as in musl's scalbn).
    integer, digits, bias = (torch.int32, 23, 127) if x.dtype is torch.float32 else (torch.int64, 52, 1023)
    for _ in range(3):
        step = torch.where(y < 1 - bias, digits + 2 - bias, y.clamp(1 - bias, bias))
        x = x * ((step + bias) << digits).to(integer).view(x.dtype)
        y = y - step
    return x


def frexp(x: torch.Tensor, /) -> tuple[torch.Tensor, torch.Tensor]:
    mantissa, exponent = torch.frexp(x)
    return mantissa, exponent


def imag(x: torch.Tensor, /) -> torch.Tensor:
    return torch.imag(x) if x.is_complex() else torch.zeros_like(x)


def convolve(a: torch.Tensor, v: torch.Tensor, mode: str = "full") -> torch.Tensor:
    if a.shape[:1] < v.shape[:1]:
        a, v = v, a
    return _slide(a, v.flip(0), mode)


def correlate(a: torch.Tensor, v: torch.Tensor, mode: str = "valid") -> torch.Tensor:
    v = v.conj()
    return _slide(a, v, mode) if a.shape[:1] >= v.shape[:1] else _slide(v, a, mode).flip(0)


def _slide(a: torch.Tensor, v: torch.Tensor, mode: str) -> torch.Tensor:
    """Products of ``v`` with every window of ``a``, which is the longer one."""
    padded = torch.nn.functional.pad(a, sliding_pads(a, v, mode))
    if not (a.is_floating_point() or a.is_complex()):
        return (padded.unfold(0, len(v), 1) * v).sum(1, dtype=a.dtype)
    # cuDNN would round float32 to TensorFloat32.
    wide = torch.float64 if a.is_cuda and a.dtype is torch.float32 else a.dtype
    return torch.conv1d(padded.to(wide)[None, None], v.to(wide)[None, None])[0, 0].to(a.dtype)
