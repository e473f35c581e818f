"""Elementwise operations on JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from ember_ml.backend import takes_numbers
from ember_ml.backend.jax.core import jitted, static, static_lists
from ember_ml.backend.jax.stats import axis_in
from ember_ml.dispatch import definition_of
from ember_ml.shapes.windows import sliding_pads

# JAX 0.10: these have no types. The second one keeps XLA from simplifying across it.
_finfo: Any = jnp.finfo
_exact: Any = lax.optimization_barrier


def _is(kind: Any, x: Array) -> bool:
    return jnp.issubdtype(x.dtype, kind)


def _is_complex(x: Array) -> bool:
    return _is(jnp.complexfloating, x)


def in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, computed in float32 for 16-bit floats, which lose too much in several steps."""

    @wraps(function)
    def run(x: Array, *args: Any, **options: Any) -> Any:
        if x.dtype.itemsize > 2:
            return function(x, *args, **options)
        wide = [y.astype(jnp.float32) if isinstance(y, Array) else y for y in (x, *args)]
        return function(*wide, **options).astype(x.dtype)

    return run


def _with_derivatives(function: Callable[..., Array], *derivatives: Callable[..., Array] | None) -> Callable[..., Any]:
    """``function`` with derivatives of its own: one for each argument, of the tangent, the result and the arguments."""
    custom = jax.custom_jvp(function)

    def rule(primals: Any, tangents: Any) -> Any:
        # Derivatives that are not asked for are not computed: zero times one of them may be NaN.
        result, pairs = custom(*primals), zip(derivatives, tangents, strict=True)
        parts = [d(t, result, *primals) for d, t in pairs if d is not None and not isinstance(t, SymbolicZero)]
        return result, sum(parts[1:], parts[0]) if parts else jnp.zeros_like(result)

    custom.defjvp(rule, symbolic_zeros=True)
    return lambda *args: custom(*jnp.broadcast_arrays(*args))


def _symmetric(function: Callable[..., Any], part: Any = jnp.imag, turn: Any = jnp.conj) -> Callable[..., Any]:
    """``function`` with its symmetry. JAX 0.10: on branch cuts of complex functions, the sign of a zero is lost."""

    def run(x: Array) -> Any:
        if not _is_complex(x):
            return function(x)
        mirrored = jnp.signbit(part(x))
        result = function(jnp.where(mirrored, turn(x), x))
        return jnp.where(mirrored, turn(result), result)

    return jitted(run)


def _limited(function: Callable[..., Any], limits: Callable[[Array, Array], list[tuple[Any, Any, Any]]]) -> Any:
    """``function`` with limits of its own for complex numbers: where they hold, and both parts of the result.

    JAX 0.10: complex functions return NaN for both parts where one is known and the other is not.
    """

    def run(x: Array) -> Any:
        result = function(x)
        for where, real, imaginary in limits(x.real, x.imag) if _is_complex(x) else ():
            result = lax.complex(jnp.where(where, real, result.real), jnp.where(where, imaginary, result.imag))
        return result

    return jitted(run)


def _unknown(x: Array) -> Array:
    """Where a function with a period has no limit."""
    return ~jnp.isfinite(x)


add, subtract, multiply, divide = jitted(jnp.add), jitted(jnp.subtract), jitted(jnp.multiply), jitted(jnp.divide)


@jitted
def floor_divide(x: Array, y: Array, /) -> Array:
    if not _is(jnp.integer, x):
        # XLA would divide by a number with a product, and not round quotients of 16 bits. Both change what is whole.
        x, y = _exact(jnp.broadcast_arrays(x, y))
        return jnp.floor(_exact(x / y))
    return jnp.where(y == 0, 0, jnp.floor_divide(x, jnp.where(y == 0, 1, y)))


@jitted
def remainder(x: Array, y: Array, /) -> Array:
    return jnp.remainder(x, jnp.where(y == 0, 1, y)) if _is(jnp.integer, x) else _real_remainder(x, y)


def _remainder(x: Array, y: Array) -> Array:
    rest = jnp.remainder(x, y)
    # A zero remainder has the sign of the divisor too.
    return jnp.where(rest == 0, jnp.copysign(rest, y), rest)


_real_remainder = _with_derivatives(_remainder, lambda t, out, x, y: t, lambda t, out, x, y: -t * jnp.floor(x / y))
fmod = jitted(jnp.fmod)


@takes_numbers
def power(x: Array, y: Array | float, /) -> Array:
    # Squares and cubes are compiled as products, which take a third of the time.
    return _whole_power(x, y=int(y)) if type(y) in (int, float) and y in (2, 3) else _power(x, y)


_whole_power = jitted(lax.integer_pow, "y")


@jitted
def _power(x: Array, y: Array) -> Array:
    x, y = jnp.broadcast_arrays(x, y.astype(x.dtype))
    if not _is(jnp.integer, x):
        return _floating_power(x, y)
    # JAX 0.10: powers of integers use the lowest six bits of the exponent.
    _, whole, _ = lax.while_loop(
        lambda state: jnp.any(state[2] != 0),
        lambda state: (state[0] * state[0], jnp.where(state[2] & 1, state[1] * state[0], state[1]), state[2] >> 1),
        (x, jnp.ones_like(x), jnp.where(y < 0, y & 1, y)),
    )
    return jnp.where((y < 0) & (jnp.abs(x) != 1), 0, whole)


# JAX has the gradient NaN at 0 ** 0.
_floating_power: Callable[..., Any] = _with_derivatives(
    jnp.power,
    lambda t, out, x, y: t * y * _floating_power(x, jnp.where(y == 0, 1, y - 1)),
    lambda t, out, x, y: t * out * jnp.log(jnp.where(x == 0, 1, x)),
)
negative, positive = map(jitted, (jnp.negative, jnp.positive))
_real_abs = _with_derivatives(jnp.abs, lambda t, out, x: t * jnp.sign(x))  # JAX has the gradient 1 at zero
abs = jitted(lambda x: jnp.abs(x) if _is_complex(x) else _real_abs(x))


@jitted
def sign(x: Array, /) -> Array:
    if not _is_complex(x):
        # JAX 0.10: the sign of -0.0 is -0.0.
        return jnp.where(x == 0, 0, jnp.sign(x))
    # JAX 0.10: the gradient of complex signs is zero.
    size = jnp.abs(x)
    return jnp.where(size == 0, 0, _ratio(x, size))


def _ratio(x: Array, y: Array) -> Array:
    """``x / y``, or ``x`` where ``y`` is zero."""
    return x / jnp.where(y == 0, 1, y)


signbit = jitted(lambda x: jnp.signbit(x) if _is(jnp.floating, x) else x < jnp.zeros_like(x))


@jitted
def copysign(x: Array, y: Array, /) -> Array:
    return jnp.where(jnp.signbit(y), -_real_abs(x), _real_abs(x))


@jitted
def nextafter(x: Array, y: Array, /) -> Array:
    # XLA's CPU backend takes subnormal numbers for zeros, so these are integers in the order of the floats.
    bits, other = _bits(x), _bits(y)
    lowest = np.iinfo(bits.dtype).min
    start, end = (jnp.where(b < 0, lowest - b, b) for b in (bits, other))
    moved = jnp.where(start < end, start + 1, start - 1)
    below = (moved < 0) | ((moved == 0) & (bits < 0))
    bits = jnp.where(start == end, other, jnp.where(below, lowest - moved, moved))
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), jnp.nan, lax.bitcast_convert_type(bits, x.dtype))


def _bits(x: Array) -> Array:
    """Bits of floats as signed integers of the same size."""
    return lax.bitcast_convert_type(lax.stop_gradient(x), f"int{8 * x.dtype.itemsize}")


def _sqrt_limits(a: Array, b: Array) -> list[tuple[Any, Any, Any]]:
    endless = jnp.isinf(a) & jnp.isnan(b)
    return [(endless & (a > 0), jnp.inf, jnp.nan), (endless & (a < 0), jnp.nan, jnp.inf)]


square, sqrt = jitted(jnp.square), _symmetric(_limited(jnp.sqrt, _sqrt_limits))
rsqrt, cbrt, reciprocal = map(jitted, (lax.rsqrt, jnp.cbrt, jnp.reciprocal))


def _exp_limits(a: Array, b: Array) -> list[tuple[Any, Any, Any]]:
    return [((a == jnp.inf) & _unknown(b), jnp.inf, jnp.nan)]


exp = _limited(jnp.exp, lambda a, b: [(a == -jnp.inf, 0, 0), *_exp_limits(a, b)])
expm1 = _limited(jnp.expm1, lambda a, b: [(a == -jnp.inf, -1, 0), *_exp_limits(a, b)])
log, log1p, log2, log10 = (
    _limited(f, lambda a, b: [((jnp.isinf(a) | jnp.isinf(b)) & (jnp.isnan(a) | jnp.isnan(b)), jnp.inf, jnp.nan)])
    for f in (jnp.log, jnp.log1p, jnp.log2, jnp.log10)
)
logaddexp, logaddexp2 = jitted(in_single(jnp.logaddexp)), jitted(in_single(jnp.logaddexp2))


@static_lists("axis", "keepdims")
@in_single
def logsumexp(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    axis = axis_in(x, axis)
    top = lax.stop_gradient(jnp.max(x, axis, keepdims=True, initial=-jnp.inf))
    top = jnp.where(jnp.isfinite(top), top, 0)
    total = jnp.sum(jnp.exp(x - top), axis, keepdims=True)
    # The gradient is zero where all elements are -inf.
    result = jnp.where(total == 0, -jnp.inf, jnp.log(jnp.where(total == 0, 1, total)) + top)
    return result if keepdims else jnp.squeeze(result, axis)


# JAX has the gradient NaN at the origin, of hypot and of atan2.
_hypot = _with_derivatives(jnp.hypot, lambda t, out, x, y: t * _ratio(x, out), lambda t, out, x, y: t * _ratio(y, out))
_atan2 = _with_derivatives(
    jnp.atan2,
    lambda t, out, x, y: t * _ratio(y, x * x + y * y),
    lambda t, out, x, y: -t * _ratio(x, x * x + y * y),
)
hypot, atan2 = jitted(in_single(_hypot)), jitted(_atan2)
sin, cos, tan, atan = map(jitted, (jnp.sin, jnp.cos, jnp.tan, jnp.atan))
_HALF_PI = math.pi / 2
asin = _symmetric(jnp.asin)
acos = _symmetric(_limited(jnp.acos, lambda a, b: [((a == 0) & jnp.isnan(b), _HALF_PI, jnp.nan)]))


def _large(x: Array) -> Array:
    """Hyperbolic cosine of large numbers. JAX 0.10: adds log(1/2) to them, which rounds their last digits."""
    half = jnp.exp(jnp.abs(x) / 2)
    return half / 2 * half


_sinh: Callable[..., Any] = _with_derivatives(
    lambda x: jnp.where(jnp.abs(x) > 20, jnp.copysign(_large(x), x), jnp.sinh(x)), lambda t, out, x: t * _cosh(x)
)
_cosh: Callable[..., Any] = _with_derivatives(
    lambda x: jnp.where(jnp.abs(x) > 20, _large(x), jnp.cosh(x)), lambda t, out, x: t * _sinh(x)
)
sinh = _limited(
    lambda x: _sinh(x) if x.dtype == jnp.float64 else jnp.sinh(x),
    lambda a, b: [(jnp.isinf(a) & _unknown(b), a, jnp.nan), ((a == 0) & _unknown(b), a, jnp.nan)],
)
cosh = _limited(
    lambda x: _cosh(x) if x.dtype == jnp.float64 else jnp.cosh(x),
    lambda a, b: [(jnp.isinf(a) & _unknown(b), jnp.inf, jnp.nan), ((a == 0) & _unknown(b), jnp.nan, a)],
)
tanh = _limited(
    jnp.tanh,
    lambda a, b: [((a == 0) & _unknown(b), a, jnp.nan), (jnp.isinf(a), jnp.sign(a), jnp.copysign(0, b))],
)
asinh = _symmetric(_limited(jnp.asinh, lambda a, b: [(jnp.isnan(a) & (b == 0), jnp.nan, b)]), jnp.real, jnp.negative)
# JAX has the gradient of the other branch for complex numbers with a negative real part.
_acosh = _with_derivatives(jnp.acosh, lambda t, out, x: t / (jnp.sqrt(x - 1) * jnp.sqrt(x + 1)))
acosh = _symmetric(_limited(_acosh, lambda a, b: [((a == 0) & jnp.isnan(b), jnp.nan, _HALF_PI)]))


def _atanh_limits(a: Array, b: Array) -> list[tuple[Any, Any, Any]]:
    real = jnp.where((a == 0) | jnp.isinf(a), jnp.copysign(0, a), jnp.nan)
    return [(jnp.isnan(b), real, jnp.nan), (jnp.isnan(a) & ~jnp.isinf(b), jnp.nan, jnp.nan)]


atanh = _limited(jnp.atanh, _atanh_limits)
deg2rad, rad2deg = map(jitted, (jnp.deg2rad, jnp.rad2deg))
floor, ceil, trunc = map(jitted, (jnp.floor, jnp.ceil, jnp.trunc))


@static("decimals")
def round(x: Array, /, decimals: int = 0) -> Array:
    if decimals == 0 or _is(jnp.integer, x):
        return definition_of("round")(x, decimals)
    if _is_complex(x):
        return lax.complex(_round(x.real, decimals), _round(x.imag, decimals))
    return _round(x, decimals)


@in_single
def _round(x: Array, decimals: int) -> Array:
    # As in the definition, but XLA would replace divisions by two constants, or by one, by products.
    x, limits = lax.stop_gradient(x), _finfo(x.dtype)
    largest = int(math.log10(limits.max))
    places = min(decimals if decimals > 0 else -decimals, largest + 16)
    powers = [10.0 ** min(places, largest), 10.0 ** max(places - largest, 0)]
    first, second = _exact([jnp.full_like(x, power) for power in powers])
    if decimals < 0:
        return _exact(jnp.rint(_exact(x / first) / second) * second) * first
    has_fraction = jnp.abs(x) < 1 / limits.eps / powers[0] / powers[1]
    whole = jnp.rint(_exact(jnp.where(has_fraction, x, 0) * first) * second)
    return jnp.where(has_fraction, _exact(whole / second) / first, x)


@jitted
def rint(x: Array, /) -> Array:
    return lax.complex(jnp.rint(x.real), jnp.rint(x.imag)) if _is_complex(x) else jnp.rint(x)


@jitted
def clip(x: Array, /, min: Array | None = None, max: Array | None = None) -> Array:
    # The gradient of ties is that of x, here and in fmax and fmin.
    if min is not None:
        x = jnp.where((x >= min) | jnp.isnan(x), x, min)
    return x if max is None else jnp.where((x <= max) | jnp.isnan(x), x, max)


maximum, minimum = map(jitted, (jnp.maximum, jnp.minimum))
fmax = jitted(lambda x, y: jnp.where((x >= y) | jnp.isnan(y), x, y))
fmin = jitted(lambda x, y: jnp.where((x <= y) | jnp.isnan(y), x, y))


@jitted
def nan_to_num(x: Array, /, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    if _is_complex(x):
        return lax.complex(*(nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (x.real, x.imag)))
    if not _is(jnp.floating, x):
        return x
    limits = _finfo(x.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    nan, high, low = (jnp.asarray(value, x.dtype) for value in (nan, high, low))
    return jnp.where(jnp.isnan(x), nan, jnp.where(x == jnp.inf, high, jnp.where(x == -jnp.inf, low, x)))


def _magnitude(x: Array) -> Array:
    """Magnitude of integers in their unsigned dtype, the only one that holds that of the lowest integer."""
    return jnp.abs(x).astype(f"uint{8 * x.dtype.itemsize}")


gcd = jitted(lambda x, y: jnp.gcd(_magnitude(x), _magnitude(y)).astype(x.dtype))


@jitted
def lcm(x: Array, y: Array, /) -> Array:
    a, b = _magnitude(x), _magnitude(y)
    return (a // jnp.maximum(jnp.gcd(a, b), 1) * b).astype(x.dtype)


def _scale(x: Array, y: Array) -> Array:
    # As integers, because XLA's CPU backend rounds subnormal numbers to zero.
    digits, limit, sign, exponent, mantissa = _fields(x)
    exponent = exponent + jnp.clip(y, -4 * limit, 4 * limit).astype(jnp.int32)
    shift = jnp.clip(1 - exponent, 0, digits + 2).astype(mantissa.dtype)
    up = jnp.where(shift > 0, (1 << shift >> 1) - 1 + ((mantissa >> shift) & 1), 0)
    bits = (jnp.clip(exponent - 1, 0, limit).astype(mantissa.dtype) << digits) + ((mantissa + up) >> shift)
    bits = jnp.where(mantissa == 0, 0, jnp.where(exponent >= limit, limit << digits, bits))
    return jnp.where(jnp.isfinite(x), lax.bitcast_convert_type(sign | bits, x.dtype), x)


# The tangent is multiplied by two powers, because one overflows where the product does not.
ldexp = jitted(
    _with_derivatives(
        _scale, lambda t, out, x, y: t * _scale(jnp.ones_like(x), y // 2) * _scale(jnp.ones_like(x), y - y // 2), None
    )
)


def _fields(x: Array) -> tuple[int, int, Array, Array, Array]:
    """Number of digits, exponent of infinity; sign bit, exponent, and mantissa with leading bit, subnormals too."""
    bits, digits = _bits(x), _finfo(x.dtype).nmant
    width = 8 * x.dtype.itemsize - 1 - digits
    limit = (1 << width) - 1
    exponent, mantissa = (bits >> digits) & limit, bits & ((1 << digits) - 1)
    shift = lax.clz(mantissa) - width
    mantissa = jnp.where(exponent == 0, mantissa << shift, mantissa | (1 << digits))
    exponent = jnp.where(exponent == 0, 1 - shift, exponent).astype(jnp.int32)
    return digits, limit, bits & np.iinfo(bits.dtype).min, exponent, mantissa


@jitted
def frexp(x: Array, /) -> tuple[Array, Array]:
    digits, limit, sign, exponent, mantissa = _fields(x)
    regular, half = jnp.isfinite(x) & (mantissa != 0), limit // 2 - 1
    unit = lax.bitcast_convert_type(sign | (half << digits) | (mantissa & ((1 << digits) - 1)), x.dtype)
    return jnp.where(regular, unit, x), jnp.where(regular, exponent - half, 0)


real, imag, conj = map(jitted, (jnp.real, jnp.imag, jnp.conj))


@jitted
def angle(x: Array, /) -> Array:
    return _atan2(x.imag, x.real) if _is_complex(x) else jnp.atan2(jnp.zeros_like(x), lax.stop_gradient(x))


erf, erfc = map(jitted, (lax.erf, lax.erfc))
# JAX 0.10: erf_inv of float64 has 12 digits.
erfinv = jitted(lambda x: definition_of("erfinv")(x) if x.dtype == jnp.float64 else lax.erf_inv(x))


@static("mode")
def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    a, v = (a, v) if a.shape[:1] >= v.shape[:1] else (v, a)
    pads = sliding_pads(a, v, mode)
    return _slide(a, v[::-1], pads)


@static("mode")
def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    v = jnp.conj(v)
    if a.shape[:1] >= v.shape[:1]:
        return _slide(a, v, sliding_pads(a, v, mode))
    return _slide(v, a, sliding_pads(v, a, mode))[::-1]


def _slide(a: Array, v: Array, pads: tuple[int, int]) -> Array:
    """Products of ``v`` with every window of ``a``, which is the longer one."""
    padded = jnp.pad(a, pads)
    if _is(jnp.inexact, a):
        return lax.conv_general_dilated(padded[None, None], v[None, None], (1,), "VALID", precision="highest")[0, 0]
    places = jnp.arange(len(padded) - len(v) + 1)[:, None] + jnp.arange(len(v))
    return jnp.sum(padded[places] * v, axis=1, dtype=a.dtype)
