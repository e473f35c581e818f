"""Elementwise operations on MLX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.core import (
    abs,
    acos,
    add,
    asin,
    atan,
    atan2,
    ceil,
    conj,
    cosh,
    divide,
    floor,
    log,
    log1p,
    maximum,
    minimum,
    multiply,
    negative,
    positive,
    reciprocal,
    rsqrt,
    sinh,
    sqrt,
    square,
    subtract,
    trunc,
)
from mlx.core import degrees as rad2deg
from mlx.core import radians as deg2rad

from ember_ml.backend import native_for, takes_numbers
from ember_ml.backend.mlx.comparison import _axis_of_scalar
from ember_ml.backend.mlx.gradients import with_rule
from ember_ml.backend.mlx.manipulation import view_as_complex
from ember_ml.dispatch import definition_of
from ember_ml.shapes.windows import sliding_pads

_ZERO = mx.array(0)
_CPU = mx.Device(mx.cpu)
_REAL = (mx.float32, mx.float16, mx.bfloat16, mx.float64)
_SIGNED = (mx.int64, mx.int32, mx.int16, mx.int8)
_NOT_FLOAT64 = ("float16", "bfloat16", "float32", "complex64")


def acosh(x: mx.array, /) -> mx.array:
    return mx.arccosh(x, stream=_stream_of(x))


def asinh(x: mx.array, /) -> mx.array:
    return mx.arcsinh(x, stream=_stream_of(x))


def atanh(x: mx.array, /) -> mx.array:
    return mx.arctanh(x, stream=_stream_of(x))


def _stream_of(x: mx.array) -> mx.Device | None:
    """CPU for complex numbers, for which MLX's GPU backend lacks functions; else the default."""
    return _CPU if x.itemsize == 8 and x.dtype == mx.complex64 else None


@takes_numbers
@native_for(mx.floor_divide, "real floating")
def floor_divide(x: mx.array, y: mx.array | float, /) -> mx.array:
    if x.dtype in _REAL:
        return mx.floor_divide(x, y)
    if not isinstance(y, mx.array):
        return mx.floor_divide(x, y) if y else mx.zeros_like(x)
    trap = _traps(y)
    return mx.floor_divide(x, mx.where(trap, 1, y)) * mx.where(trap, y, 1)


def _real_remainder(x: mx.array, y: mx.array) -> mx.array:
    # A zero remainder has the sign of the divisor too: multiplied by that sign, adding 0 makes zeros positive.
    sign = mx.sign(y)
    return sign * (sign * mx.remainder(x, y) + _ZERO)


@takes_numbers
@native_for(_real_remainder, "real floating")
def remainder(x: mx.array, y: mx.array | float, /) -> mx.array:
    if x.dtype in _REAL:
        return _real_remainder(x, y if isinstance(y, mx.array) else mx.array(y, x.dtype))
    return mx.remainder(x, mx.where(_traps(y), 1, y) if isinstance(y, mx.array) else y or 1)


def fmod(x: mx.array, y: mx.array, /) -> mx.array:
    if x.dtype not in _REAL:
        y = mx.where(_traps(y), 1, y)
        rest = mx.remainder(x, y)
        return mx.where(mx.logical_and(rest != 0, mx.equal(x < 0, y >= 0)), rest - y, rest)
    # The magnitude uses the sign bit, because mx.abs has zero gradient at zero.
    sign = 1 - 2 * signbit(x).astype(x.dtype)
    return sign * mx.remainder(sign * x, mx.abs(y))


def _traps(y: mx.array) -> mx.array:
    """Mask of the divisors that trap: zero, and -1 for the smallest integer. They are the y with ``y >> 1 == y``."""
    return mx.equal(y >> 1, y) if y.dtype in _SIGNED else y == 0


@takes_numbers
@native_for(mx.power, "real floating")
def power(x: mx.array, y: mx.array | float, /) -> mx.array:
    if x.dtype not in _SIGNED:
        return _complex_power(x, mx.array(y, x.dtype)) if x.dtype == mx.complex64 else mx.power(x, y)
    if not isinstance(y, mx.array):
        return mx.power(x, y)
    # MLX 0.32: negative integer exponents never return. Only their parity matters, and only for bases 1 and -1.
    negatives = y < 0
    whole = mx.power(x, mx.where(negatives, y & 1, y))
    return mx.where(mx.logical_and(negatives, mx.abs(x) != 1), 0, whole)


def sign(x: mx.array, /) -> mx.array:
    if x.dtype == mx.complex64:
        return _complex_sign(x)
    return mx.where(mx.isnan(x), x, mx.sign(x)) if x.dtype in _REAL else mx.sign(x)


# MLX 0.32: the gradients of power and sign are wrong for complex numbers.
_complex_power: Callable[..., mx.array] = with_rule(lambda x, y: mx.power(x, y), "power")
_complex_sign: Callable[..., mx.array] = with_rule(lambda x: mx.where(x == 0, mx.zeros_like(x), mx.sign(x)), "sign")


def signbit(x: mx.array, /) -> mx.array:
    if x.dtype in _SIGNED:
        return x < 0
    return _bits(x) < 0 if x.dtype in _REAL else mx.zeros(x.shape, mx.bool_)


def _bits(x: mx.array) -> mx.array:
    """Bits of floats as signed integers of the same size."""
    return mx.stop_gradient(x).view({2: mx.int16, 4: mx.int32, 8: mx.int64}[x.dtype.size])


def copysign(x: mx.array, y: mx.array, /) -> mx.array:
    size = mx.abs(x)
    return mx.where(signbit(y), -size, size)


def nextafter(x: mx.array, y: mx.array, /) -> mx.array:
    x, y = mx.stop_gradient(x), mx.stop_gradient(y)
    bits, other = _bits(x), _bits(y)
    lowest = mx.array(1, bits.dtype) << (8 * x.dtype.size - 1)
    away = mx.where((x < y) == (x > 0), bits + 1, bits - 1)
    moved = mx.where(x == 0, (other & lowest) | 1, away).view(x.dtype)
    return mx.where(mx.logical_or(mx.isnan(x), mx.isnan(y)), x + y, mx.where(x == y, y, moved))


@native_for(mx.exp, *_NOT_FLOAT64)
def exp(x: mx.array, /) -> mx.array:
    if x.itemsize < 8 or x.dtype != mx.float64:
        return mx.exp(x)
    # MLX 0.32: exp of float64 is computed in float32, but expm1 is not. The power of two is a constant in the gradient.
    whole = mx.clip(mx.round(mx.stop_gradient(x) * _double(1 / math.log(2))), -1074, 1023)
    rest = x - whole * _double(_LOG2) - whole * _double(_LOG2_REST)
    return (mx.expm1(rest) + 1) * mx.power(_double(2), whole)


# Logarithm of two in two parts: products of the first, which has 32 significant bits, with exponents are exact.
_LOG2, _LOG2_REST = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")


def _double(value: float) -> mx.array:
    """Number with full float64 precision: MLX rounds Python numbers to float32."""
    return mx.array(value, mx.float64)


def exp2(x: mx.array, /) -> mx.array:
    return mx.power(mx.array(2, x.dtype), x)


@native_for(mx.expm1, "real floating")
def expm1(x: mx.array, /) -> mx.array:
    if x.dtype != mx.complex64:
        return mx.expm1(x)
    a, b = mx.real(x), mx.imag(x)
    # The last term makes negative zeros positive.
    exact = _complex(mx.expm1(a) * mx.cos(b) - 2 * mx.square(mx.sin(b / 2)) + 0.0, mx.exp(a) * mx.sin(b))
    return mx.where(mx.isfinite(x), exact, mx.exp(x) - 1)


def _complex(a: mx.array, b: mx.array) -> mx.array:
    """``a + 1j * b``, which itself is NaN where ``b`` is infinite."""
    return view_as_complex(mx.stack([a, b], -1))


@native_for(mx.tanh, "real floating")
def tanh(x: mx.array, /) -> mx.array:
    if x.dtype != mx.complex64:
        return mx.tanh(x)
    # For an infinite real part, the imaginary part is zero with the sign of its argument.
    a, b = mx.real(x), mx.imag(x)
    limit = _complex(mx.sign(a), copysign(mx.zeros_like(b), b))
    return mx.where(mx.isinf(a) & mx.isfinite(b), limit, mx.tanh(x))


@native_for(mx.log2, *_NOT_FLOAT64)
def log2(x: mx.array, /) -> mx.array:
    return mx.log2(x) if x.itemsize < 8 or x.dtype != mx.float64 else _double_log2(x)


@native_for(mx.log10, *_NOT_FLOAT64)
def log10(x: mx.array, /) -> mx.array:
    return mx.log10(x) if x.itemsize < 8 or x.dtype != mx.float64 else _double_log10(x)


def logaddexp(x: mx.array, y: mx.array, /) -> mx.array:
    if x.dtype == mx.float32:
        return mx.logaddexp(x, y) + 0  # MLX 0.32: log(1) is a negative zero here
    if x.dtype.size == 2:
        return logaddexp(x.astype(mx.float32), y.astype(mx.float32)).astype(x.dtype)
    # MLX 0.32: logaddexp of float64 is computed in float32.
    large, rest = _powers(x, y, exp)
    return large + rest


def logaddexp2(x: mx.array, y: mx.array, /) -> mx.array:
    if x.dtype.size == 2:
        return logaddexp2(x.astype(mx.float32), y.astype(mx.float32)).astype(x.dtype)
    large, rest = _powers(x, y, exp2)
    return large + rest / mx.array(math.log(2), x.dtype)


def _powers(x: mx.array, y: mx.array, power: Callable[[mx.array], mx.array]) -> tuple[mx.array, mx.array]:
    """Larger of two exponents, and the natural logarithm of one plus the ratio of the smaller power to the larger."""
    large, small = _max_and_min(x, y)
    return large, mx.log1p(power(mx.where(mx.isinf(large), 0, small - large)))


def _max_and_min(x: mx.array, y: mx.array) -> tuple[mx.array, mx.array]:
    """Larger and smaller value, with one operand each for ties. MLX 0.32 gives the gradient to the second operand."""
    return mx.maximum(x, y), mx.minimum(y, x)


def logsumexp(x: mx.array, /, *, axis: Any = None, keepdims: bool = False) -> mx.array:
    if x.size == 0:
        return mx.sum(x, axis, keepdims=keepdims) - mx.inf
    if x.dtype != mx.float64:
        try:
            return mx.logsumexp(x, axis, keepdims=keepdims)
        except ValueError:
            return mx.logsumexp(x, _axis_of_scalar(x, axis), keepdims=keepdims)
    axis = None if not x.ndim and axis in (0, -1) else axis
    top = mx.max(x, axis, keepdims=True)
    top = mx.where(mx.isinf(top), 0, mx.stop_gradient(top))
    total = mx.log(mx.sum(exp(x - top), axis, keepdims=True)) + top
    return total if keepdims else mx.squeeze(total, axis)


def hypot(x: mx.array, y: mx.array, /) -> mx.array:
    if x.dtype.size == 2:
        return hypot(x.astype(mx.float32), y.astype(mx.float32)).astype(x.dtype)
    x, y = mx.abs(x), mx.abs(y)
    large = mx.stop_gradient(mx.maximum(x, y))
    regular = mx.logical_and(large > 0, large < mx.inf)
    # Scaled by the larger value, a constant in the gradient; zero and infinity are separate cases without gradient.
    unit = mx.where(regular, large, 1)
    squares = mx.where(regular, mx.square(x / unit) + mx.square(y / unit), 1)
    infinite = mx.logical_or(x == mx.inf, y == mx.inf)
    return mx.where(infinite, mx.inf, mx.where(regular, unit * mx.sqrt(squares), large))


def sin(x: mx.array, /) -> mx.array:
    if x.itemsize < 8 or x.dtype != mx.float64:
        # MLX 0.32: sin loses the sign of zero.
        return mx.where(x == 0, x, mx.sin(x))
    return _double_sin(x)


@native_for(mx.cos, *_NOT_FLOAT64)
def cos(x: mx.array, /) -> mx.array:
    return mx.cos(x) if x.itemsize < 8 or x.dtype != mx.float64 else _double_cos(x)


@native_for(mx.tan, *_NOT_FLOAT64)
def tan(x: mx.array, /) -> mx.array:
    return mx.tan(x) if x.itemsize < 8 or x.dtype != mx.float64 else _double_tan(x)


def _sin(x: mx.array) -> mx.array:
    # MLX 0.32: sin and cos of float64 are computed in float32, but tan is not.
    t = mx.tan(x * 0.5)
    return 2 * t / (1 + t * t)


def _cos(x: mx.array) -> mx.array:
    t = mx.tan(x * 0.5)
    return (1 - t) * (1 + t) / (1 + t * t)


# MLX 0.32: the gradients of these are computed in float32 for float64 too.
_double_sin: Callable[[mx.array], mx.array] = with_rule(_sin, "sin")
_double_cos: Callable[[mx.array], mx.array] = with_rule(_cos, "cos")
_double_tan: Callable[[mx.array], mx.array] = with_rule(lambda x: mx.tan(x), "tan")
_double_log2: Callable[[mx.array], mx.array] = with_rule(lambda x: mx.log2(x), "log2")
_double_log10: Callable[[mx.array], mx.array] = with_rule(lambda x: mx.log10(x), "log10")


def rint(x: mx.array, /) -> mx.array:
    return mx.round(x)


def clip(x: mx.array, /, min: mx.array | None = None, max: mx.array | None = None) -> mx.array:
    # MLX gives the gradient of ties to the second operand: here, in fmax and in fmin, that is x.
    if min is not None:
        x = mx.maximum(min, x)
    return mx.positive(x) if max is None else mx.minimum(max, x)


def fmax(x: mx.array, y: mx.array, /) -> mx.array:
    return mx.where(mx.isnan(x), y, mx.where(mx.isnan(y), x, mx.maximum(y, x)))


def fmin(x: mx.array, y: mx.array, /) -> mx.array:
    return mx.where(mx.isnan(x), y, mx.where(mx.isnan(y), x, mx.minimum(y, x)))


def nan_to_num(
    x: mx.array, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> mx.array:
    if x.dtype == mx.complex64:
        a, b = (nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (mx.real(x), mx.imag(x)))
        return _complex(a, b)
    if x.dtype not in _REAL:
        return x
    limits = mx.finfo(x.dtype)
    ends = (limits.max if posinf is None else posinf, limits.min if neginf is None else neginf)
    nan_value, high, low = (mx.array(value, x.dtype) for value in (nan, *ends))
    finite = mx.where(mx.isposinf(x), high, mx.where(mx.isneginf(x), low, x))
    return mx.where(mx.isnan(x), nan_value, finite)


_UNSIGNED = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}


def _magnitude(x: mx.array) -> mx.array:
    """Magnitude of integers in their unsigned dtype, the only one that holds that of the lowest integer."""
    return mx.abs(x).view(_UNSIGNED[x.dtype.size])


def gcd(x: mx.array, y: mx.array, /) -> mx.array:
    dtype = x.dtype
    x, y = _magnitude(x), _magnitude(y)
    # Euclid's algorithm takes the most steps for consecutive Fibonacci numbers.
    for _ in range(12 * dtype.size):
        x, y = mx.where(y == 0, x, y), mx.where(y == 0, 0, mx.remainder(x, mx.maximum(y, 1)))
    return x.view(dtype)


def lcm(x: mx.array, y: mx.array, /) -> mx.array:
    dtype = x.dtype
    x, y = _magnitude(x), _magnitude(y)
    return (mx.floor_divide(x, mx.maximum(gcd(x, y), 1)) * y).view(dtype)


def ldexp(x: mx.array, y: mx.array, /) -> mx.array:
    if x.dtype.size == 2:
        return ldexp(x.astype(mx.float32), y).astype(x.dtype)
    # Three factors cover every exponent, and the order keeps all products but the last exact (as in musl's scalbn).
    integer, digits, bias = (mx.int32, 23, 127) if x.dtype == mx.float32 else (mx.int64, 52, 1023)
    for _ in range(3):
        step = mx.where(y < 1 - bias, digits + 2 - bias, mx.clip(y, 1 - bias, bias))
        x = x * ((step + bias) << digits).astype(integer).view(x.dtype)
        y = y - step
    return x


def frexp(x: mx.array, /) -> tuple[mx.array, mx.array]:
    if x.dtype.size == 2:
        mantissa, exponent = frexp(x.astype(mx.float32))
        return mantissa.astype(x.dtype), exponent
    digits, bias = (23, 126) if x.dtype == mx.float32 else (52, 1022)
    field = (1 << (8 * x.dtype.size - 1 - digits)) - 1
    # Subnormal numbers are scaled up first.
    small = mx.abs(x) < 2.0 ** (1 - bias)
    bits = _bits(mx.where(small, x * 2.0**digits, x))
    exponent = ((bits >> digits) & field) - bias - mx.where(small, digits, 0)
    mantissa = ((bits & ~(field << digits)) | (bias << digits)).view(x.dtype)
    regular = mx.isfinite(x) & (x != 0)
    return mx.where(regular, mantissa, x), mx.where(regular, exponent, 0).astype(mx.int32)


def real(x: mx.array, /) -> mx.array:
    return mx.real(x) if x.dtype == mx.complex64 else x


def imag(x: mx.array, /) -> mx.array:
    return mx.imag(x) if x.dtype == mx.complex64 else mx.zeros_like(x)


def angle(x: mx.array, /) -> mx.array:
    if x.dtype == mx.complex64:
        return mx.arctan2(mx.imag(x), mx.real(x))
    # MLX 0.32: the gradient of arctan2 at zero is NaN.
    return mx.arctan2(mx.array(0, x.dtype), mx.stop_gradient(x))


@native_for(mx.erf, "float16", "bfloat16", "float32")
def erf(x: mx.array, /) -> mx.array:
    # MLX 0.32: erf and erfinv of float64 are computed in float32.
    return mx.erf(x) if x.dtype != mx.float64 else definition_of("erf")(x)


@native_for(mx.erfinv, "float16", "bfloat16", "float32")
def erfinv(x: mx.array, /) -> mx.array:
    return mx.erfinv(x) if x.dtype != mx.float64 else definition_of("erfinv")(x)


def convolve(a: mx.array, v: mx.array, mode: str = "full") -> mx.array:
    if a.shape[:1] < v.shape[:1]:
        a, v = v, a
    return _slide(a, v[::-1], mode)


def correlate(a: mx.array, v: mx.array, mode: str = "valid") -> mx.array:
    v = mx.conj(v)
    return _slide(a, v, mode) if a.shape[:1] >= v.shape[:1] else _slide(v, a, mode)[::-1]


def _slide(a: mx.array, v: mx.array, mode: str) -> mx.array:
    """Products of ``v`` with every window of ``a``, which is the longer one."""
    padded = mx.pad(a, sliding_pads(a, v, mode))
    if a.dtype in (mx.float32, mx.float16, mx.bfloat16):
        return mx.conv1d(padded[None, :, None], v[None, :, None])[0, :, 0]
    stretches = mx.as_strided(padded, (len(padded) - len(v) + 1, len(v)), (1, 1))
    return mx.sum(stretches * v, axis=1).astype(a.dtype)
