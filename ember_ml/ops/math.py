"""Elementwise mathematics, and numerical operations along an axis."""

from __future__ import annotations

import builtins as _builtins
import math as _math
from collections.abc import Callable as _Callable
from typing import Any
from typing import TypeVar as _TypeVar

from ember_ml.dispatch import op
from ember_ml.dtypes import (
    EmberDType,
    as_dtype,
    compared,
    doubled,
    float32,
    floating,
    free,
    magnitude,
    measured,
    promoted,
)
from ember_ml.ops import _forms, comparison, control, creation, indexing, manipulation, stats
from ember_ml.ops import dtypes as _casts
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.types import Axis, Indices, Tensor, TensorLike

_Result = _TypeVar("_Result")


@op(promoted)
def add(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Sum of ``x`` and ``y``, with broadcasting.

    >>> add([1, 2], 3).tolist()
    [4, 5]
    """
    ...


@op(promoted, kinds="numeric")
def subtract(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Difference of ``x`` and ``y``, with broadcasting.

    >>> subtract([5, 7], 3).tolist()
    [2, 4]
    """
    ...


@op(promoted)
def multiply(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Product of ``x`` and ``y``, with broadcasting.

    >>> multiply([1, 2], 3).tolist()
    [3, 6]
    """
    ...


@op(floating)
def divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Quotient of ``x`` and ``y``, with broadcasting; a float even for integers.

    >>> divide([1, 3], 2).tolist()
    [0.5, 1.5]
    """
    ...


true_divide = divide


@op(promoted, kinds="real numeric", differentiable=False)
def floor_divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Quotient of ``x`` and ``y``, rounded down, with broadcasting.

    For floats it is ``floor(divide(x, y))``, as the array API standard recommends, infinities included. Python's
    ``//``, like ``divmod`` here, subtracts the remainder first, so its ``1.0 // 0.1`` is 9. Integers divided by zero
    give 0.

    >>> floor_divide([7, -7, 7], [2, 2, 0]).tolist()
    [3, -4, 0]
    >>> floor_divide([1.0, float("inf")], [0.1, -2.0]).tolist()
    [10.0, -inf]
    """
    ...


@op(promoted, kinds="real numeric")
def remainder(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Remainder of ``x / y`` with the sign of ``y``, with broadcasting.

    Integers modulo zero give 0.

    >>> remainder([7, -7, 7], [3, 3, 0]).tolist()
    [1, 2, 0]
    """
    ...


mod = remainder


@op(promoted, kinds="real numeric")
def fmod(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Remainder of ``x / y`` with the sign of ``x``, with broadcasting.

    The quotient is rounded towards zero. Integers modulo zero give 0.

    >>> fmod([7, -7, 7], [3, 3, 0]).tolist()
    [1, -1, 0]
    """
    ...


@op(promoted, kinds="real numeric", differentiable=False)
def divmod(x: TensorLike, y: TensorLike, /) -> tuple[Tensor, Tensor]:
    """Quotient and remainder of ``x / y``, with ``x == quotient * y + remainder``.

    The quotient differs from ``floor_divide`` where ``x / y`` is rounded up to a whole number: for 1.0 and 0.1 it is 9.

    >>> quotient, rest = divmod([7, -7], 3)
    >>> quotient.tolist(), rest.tolist()
    ([2, -3], [1, 2])
    >>> quotient, rest = divmod(1.0, 0.1)
    >>> int(quotient)
    9
    """
    return _divmod(x, y)


@op(promoted, kinds="numeric")
def power(x: TensorLike, y: TensorLike, /) -> Tensor:
    """``x`` to the power ``y``, with broadcasting.

    An integer to a negative integer power is rounded towards zero: 1 or -1 for those bases, and 0 for all others.
    ``float_power`` gives the fraction.

    >>> power([2, 3], 2).tolist()
    [4, 9]
    >>> power([1, 2], -1).tolist()
    [1, 0]
    """
    ...


pow = power


@op(doubled)
def float_power(x: TensorLike, y: TensorLike, /) -> Tensor:
    """``x`` to the power ``y`` in float64, or in complex128 if either is complex.

    >>> float_power([2, 4], -1).tolist()
    [0.5, 0.25]
    """
    return power(x, y)


@op(promoted, kinds="numeric")
def negative(x: TensorLike, /) -> Tensor:
    """``-x``.

    >>> negative([1, -2]).tolist()
    [-1, 2]
    """
    ...


@op(promoted, kinds="numeric")
def positive(x: TensorLike, /) -> Tensor:
    """``+x``: ``x`` unchanged.

    >>> positive([1, -2]).tolist()
    [1, -2]
    """
    ...


@op(magnitude, kinds="numeric")
def abs(x: TensorLike, /) -> Tensor:
    """Absolute value of ``x``; the modulus of complex numbers.

    >>> abs([-3, 4]).tolist()
    [3, 4]
    >>> abs([3 + 4j]).tolist()
    [5.0]
    """
    ...


absolute = abs


@op(floating, kinds="real")
def fabs(x: TensorLike, /) -> Tensor:
    """Absolute value of ``x``, as a float.

    >>> fabs([-3, 4]).tolist()
    [3.0, 4.0]
    """
    return abs(x)


@op(promoted, kinds="numeric")
def sign(x: TensorLike, /) -> Tensor:
    """Sign of ``x``: -1, 0 or 1; ``x / abs(x)`` for complex numbers and NaN for NaN.

    >>> sign([-3.0, 0.0, 5.0]).tolist()
    [-1.0, 0.0, 1.0]
    """
    ...


@op(compared, kinds="real", differentiable=False)
def signbit(x: TensorLike, /) -> Tensor:
    """Whether the sign bit of ``x`` is set, including that of -0.0 and NaN.

    >>> signbit([-1.0, -0.0, 0.0]).tolist()
    [True, True, False]
    """
    ...


@op(floating, kinds="real")
def copysign(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The magnitude of ``x`` with the sign of ``y``.

    >>> copysign([1.0, -2.0], [-0.0, 3.0]).tolist()
    [-1.0, 2.0]
    """
    ...


@op(floating, kinds="real", differentiable=False)
def nextafter(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Next representable number after ``x`` in the direction of ``y``.

    >>> nextafter([1.0], [2.0]).tolist() == [1 + 2**-23]
    True
    """
    ...


@op(promoted, kinds="numeric")
def square(x: TensorLike, /) -> Tensor:
    """``x * x``.

    >>> square([3]).tolist()
    [9]
    """
    return multiply(x, x)


@op(floating)
def sqrt(x: TensorLike, /) -> Tensor:
    """Square root of ``x``.

    >>> sqrt([4.0, 9.0]).tolist()
    [2.0, 3.0]
    """
    ...


@op(floating)
def rsqrt(x: TensorLike, /) -> Tensor:
    """``1 / sqrt(x)``.

    >>> rsqrt([4.0, 16.0]).tolist()
    [0.5, 0.25]
    """
    return reciprocal(sqrt(x))


@op(floating, kinds="real")
def cbrt(x: TensorLike, /) -> Tensor:
    """Real cube root of ``x``.

    >>> cbrt([-8.0, 1.0]).tolist()
    [-2.0, 1.0]
    """
    return _in_single(_cbrt, x)


@op(floating)
def reciprocal(x: TensorLike, /) -> Tensor:
    """``1 / x``.

    >>> reciprocal([2, 4]).tolist()
    [0.5, 0.25]
    """
    return divide(1, x)


@op(floating)
def exp(x: TensorLike, /) -> Tensor:
    """Exponential of ``x``: ``e**x``.

    >>> exp([0.0]).tolist()
    [1.0]
    """
    ...


@op(floating, kinds="real")
def exp2(x: TensorLike, /) -> Tensor:
    """``2**x``.

    >>> exp2([3.0, -1.0]).tolist()
    [8.0, 0.5]
    """
    return power(2, x)


@op(floating)
def expm1(x: TensorLike, /) -> Tensor:
    """``exp(x) - 1``, accurate near zero.

    >>> expm1([0.0]).tolist()
    [0.0]
    """
    ...


@op(floating)
def log(x: TensorLike, /) -> Tensor:
    """Natural logarithm of ``x``.

    >>> log([1.0]).tolist()
    [0.0]
    """
    ...


@op(floating)
def log1p(x: TensorLike, /) -> Tensor:
    """``log(1 + x)``, accurate near zero.

    >>> log1p([0.0]).tolist()
    [0.0]
    """
    ...


@op(floating)
def log2(x: TensorLike, /) -> Tensor:
    """Logarithm of ``x`` to base 2.

    >>> log2([8.0]).tolist()
    [3.0]
    """
    ...


@op(floating)
def log10(x: TensorLike, /) -> Tensor:
    """Logarithm of ``x`` to base 10.

    >>> log10([1.0]).tolist()
    [0.0]
    """
    ...


@op(floating, kinds="real")
def logaddexp(x: TensorLike, y: TensorLike, /) -> Tensor:
    """``log(exp(x) + exp(y))`` without overflow.

    >>> logaddexp([-1000.0], float("-inf")).tolist()
    [-1000.0]
    """
    return _in_single(_logaddexp, x, y)


@op(floating, kinds="real")
def logaddexp2(x: TensorLike, y: TensorLike, /) -> Tensor:
    """``log2(2**x + 2**y)`` without overflow.

    >>> logaddexp2([1000.0], [1000.0]).tolist()
    [1001.0]
    """
    return _in_single(_logaddexp2, x, y)


@op(floating, kinds="real", engine="x, *, axis, keepdims")
def logsumexp(x: TensorLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """``log(sum(exp(x)))`` along ``axis``, without overflow.

    Negative infinity for no elements, and where all elements are negative infinity.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.

    >>> logsumexp([-1000.0, float("-inf")]).tolist()
    -1000.0
    """
    ...


@op(floating, kinds="real")
def hypot(x: TensorLike, y: TensorLike, /) -> Tensor:
    """``sqrt(x**2 + y**2)`` without overflow.

    >>> hypot([3.0], [4.0]).tolist()
    [5.0]
    """
    return _in_single(_hypot, x, y)


@op(floating)
def sin(x: TensorLike, /) -> Tensor:
    """Sine of ``x`` in radians.

    >>> sin([0.0]).tolist()
    [0.0]
    """
    ...


@op(floating)
def cos(x: TensorLike, /) -> Tensor:
    """Cosine of ``x`` in radians.

    >>> cos([0.0]).tolist()
    [1.0]
    """
    ...


@op(floating)
def tan(x: TensorLike, /) -> Tensor:
    """Tangent of ``x`` in radians.

    >>> tan([0.0]).tolist()
    [0.0]
    """
    ...


@op(floating)
def asin(x: TensorLike, /) -> Tensor:
    """Inverse sine of ``x``, in radians.

    >>> asin([0.0]).tolist()
    [0.0]
    """
    ...


arcsin = asin


@op(floating)
def acos(x: TensorLike, /) -> Tensor:
    """Inverse cosine of ``x``, in radians.

    >>> acos([1.0]).tolist()
    [0.0]
    """
    ...


arccos = acos


@op(floating)
def atan(x: TensorLike, /) -> Tensor:
    """Inverse tangent of ``x``, in radians.

    >>> atan([0.0]).tolist()
    [0.0]
    """
    ...


arctan = atan


@op(floating, kinds="real")
def atan2(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Inverse tangent of ``x / y`` in the right quadrant, in radians from -pi to pi.

    ``x`` is the ordinate and ``y`` the abscissa of a point: the first argument is what other libraries call ``y``.

    >>> atan2([0.0], [1.0]).tolist()
    [0.0]
    """
    ...


arctan2 = atan2


@op(floating)
def sinh(x: TensorLike, /) -> Tensor:
    """Hyperbolic sine of ``x``.

    >>> sinh([0.0]).tolist()
    [0.0]
    """
    ...


@op(floating)
def cosh(x: TensorLike, /) -> Tensor:
    """Hyperbolic cosine of ``x``.

    >>> cosh([0.0]).tolist()
    [1.0]
    """
    ...


@op(floating)
def tanh(x: TensorLike, /) -> Tensor:
    """Hyperbolic tangent of ``x``.

    >>> tanh([0.0]).tolist()
    [0.0]
    """
    ...


@op(floating)
def asinh(x: TensorLike, /) -> Tensor:
    """Inverse hyperbolic sine of ``x``.

    >>> asinh([0.0]).tolist()
    [0.0]
    """
    ...


arcsinh = asinh


@op(floating)
def acosh(x: TensorLike, /) -> Tensor:
    """Inverse hyperbolic cosine of ``x``.

    >>> acosh([1.0]).tolist()
    [0.0]
    """
    ...


arccosh = acosh


@op(floating)
def atanh(x: TensorLike, /) -> Tensor:
    """Inverse hyperbolic tangent of ``x``.

    >>> atanh([0.0]).tolist()
    [0.0]
    """
    ...


arctanh = atanh


@op(floating, kinds="real")
def deg2rad(x: TensorLike, /) -> Tensor:
    """``x`` converted from degrees to radians.

    >>> f"{float(deg2rad(180.0)):.4f}"
    '3.1416'
    """
    ...


@op(floating, kinds="real")
def rad2deg(x: TensorLike, /) -> Tensor:
    """``x`` converted from radians to degrees.

    >>> rad2deg([0.0]).tolist()
    [0.0]
    """
    ...


@op(floating)
def sinc(x: TensorLike, /) -> Tensor:
    """``sin(pi * x) / (pi * x)``, with value 1 at zero.

    >>> sinc([0.0]).tolist()
    [1.0]
    """
    return _in_single(_sinc, x)


@op(floating, kinds="real", differentiable=False)
def heaviside(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Step function of ``x``: 0 where it is negative, 1 where it is positive, and ``y`` where it is zero.

    >>> heaviside([-2.0, 0.0, 3.0], 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    return _heaviside(x, y)


@op(promoted, kinds="real numeric")
def floor(x: TensorLike, /) -> Tensor:
    """``x`` rounded down to an integer, in the dtype of ``x``.

    >>> floor([-1.5, 1.5]).tolist()
    [-2.0, 1.0]
    """
    ...


@op(promoted, kinds="real numeric")
def ceil(x: TensorLike, /) -> Tensor:
    """``x`` rounded up to an integer, in the dtype of ``x``.

    >>> ceil([-1.5, 1.5]).tolist()
    [-1.0, 2.0]
    """
    ...


@op(promoted, kinds="real numeric")
def trunc(x: TensorLike, /) -> Tensor:
    """``x`` rounded towards zero to an integer, in the dtype of ``x``.

    >>> trunc([-1.5, 1.5]).tolist()
    [-1.0, 1.0]
    """
    ...


@op(promoted, kinds="numeric")
def round(x: TensorLike, /, decimals: int = 0) -> Tensor:
    """``x`` rounded to ``decimals`` places; halves are rounded to even.

    Args:
        decimals: number of decimal places. A negative number rounds to tens, hundreds and so on, integers as well.

    >>> round([0.5, 1.5, 2.5]).tolist()
    [0.0, 2.0, 2.0]
    >>> round([15, 25, -36], -1).tolist()
    [20, 20, -40]
    """
    return _round(x, decimals)


@op(floating)
def rint(x: TensorLike, /) -> Tensor:
    """``x`` rounded to the nearest integer, as a float; halves are rounded to even.

    >>> rint([0.5, 1.5, -1.75]).tolist()
    [0.0, 2.0, -2.0]
    """
    ...


@op(promoted, kinds="real numeric")
def clip(x: TensorLike, /, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """``x`` clipped to the range from ``min`` to ``max``.

    NaN stays NaN. Where ``min`` is above ``max``, the result is ``max``.

    Args:
        min: lower limits, by default none.
        max: upper limits, by default none.

    >>> clip([-2, 0, 7], -1, 5).tolist()
    [-1, 0, 5]
    """
    if min is not None:
        x = maximum(x, min)
    return positive(x) if max is None else minimum(x, max)


@op(promoted, kinds="real")
def maximum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise maximum of ``x`` and ``y``; NaN where either is NaN.

    >>> maximum([1, 5], 3).tolist()
    [3, 5]
    """
    ...


@op(promoted, kinds="real")
def minimum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise minimum of ``x`` and ``y``; NaN where either is NaN.

    >>> minimum([1, 5], 3).tolist()
    [1, 3]
    """
    ...


@op(promoted, kinds="real")
def fmax(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise maximum of ``x`` and ``y``, ignoring NaN where only one of them is NaN.

    >>> fmax([1.0, float("nan")], 3.0).tolist()
    [3.0, 3.0]
    """
    return comparison.where(comparison.isnan(x), y, comparison.where(comparison.isnan(y), x, maximum(x, y)))


@op(promoted, kinds="real")
def fmin(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise minimum of ``x`` and ``y``, ignoring NaN where only one of them is NaN.

    >>> fmin([1.0, float("nan")], 3.0).tolist()
    [1.0, 3.0]
    """
    return comparison.where(comparison.isnan(x), y, comparison.where(comparison.isnan(y), x, minimum(x, y)))


@op(promoted, engine="x, *, nan, posinf, neginf", form=_forms.nan_to_num)
def nan_to_num(
    x: TensorLike, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, copy: bool = True
) -> Tensor:
    """``x`` with NaN and infinities replaced by finite numbers.

    Both parts of complex numbers are replaced.

    Args:
        nan: replaces NaN.
        posinf: replaces positive infinity; the largest number of the dtype by default.
        neginf: replaces negative infinity; the smallest number of the dtype by default.
        copy: accepted for compatibility; ``x`` is never changed.

    >>> nan_to_num([1.0, float("nan"), float("inf")], posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    ...


@op(promoted, kinds="integral", differentiable=False)
def gcd(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Greatest common divisor of ``x`` and ``y``.

    >>> gcd([12, 18, 0], 8).tolist()
    [4, 2, 8]
    """
    ...


@op(promoted, kinds="integral", differentiable=False)
def lcm(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Least common multiple of ``x`` and ``y``.

    >>> lcm([4, 6, 0], 10).tolist()
    [20, 30, 0]
    """
    ...


@op(floating, kinds="real")
def ldexp(x: TensorLike, y: Indices, /) -> Tensor:
    """``x * 2**y`` for integers ``y``, rounded once.

    >>> ldexp([0.75, 1.0], [4, -1]).tolist()
    [12.0, 0.5]
    """
    ...


@op(free, kinds="real floating", differentiable=False)
def frexp(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """Mantissa and exponent of ``x``, with ``x == mantissa * 2**exponent``.

    The mantissa is a float with magnitude from 0.5 to 1, the exponent an int32.

    >>> mantissa, exponent = frexp([12.0, -0.5])
    >>> mantissa.tolist(), exponent.tolist()
    ([0.75, -0.5], [4, 0])
    """
    ...


@op(magnitude)
def real(x: TensorLike, /) -> Tensor:
    """Real part of ``x``.

    >>> real([3 + 4j]).tolist()
    [3.0]
    """
    ...


@op(magnitude)
def imag(x: TensorLike, /) -> Tensor:
    """Imaginary part of ``x``; zero for real numbers.

    >>> imag([3 + 4j]).tolist()
    [4.0]
    """
    ...


@op(promoted, kinds="numeric")
def conj(x: TensorLike, /) -> Tensor:
    """Complex conjugate of ``x``.

    >>> conj([3 + 4j]).tolist()
    [(3-4j)]
    """
    ...


conjugate = conj


@op(measured, engine="x", form=_forms.angle)
def angle(x: TensorLike, /, deg: bool = False) -> Tensor:
    """Argument of ``x`` as a complex number, in radians; 0 or pi for real numbers.

    Args:
        deg: return degrees.

    >>> angle([2.0, 1 + 0j]).tolist()
    [0.0, 0.0]
    """
    return atan2(imag(x), real(x))


@op(floating, kinds="real")
def erf(x: TensorLike, /) -> Tensor:
    """Error function of ``x``: ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``.

    >>> f"{float(erf(0.5)):.4f}"
    '0.5205'
    """
    return _in_single(_erf, x)


@op(floating, kinds="real")
def erfc(x: TensorLike, /) -> Tensor:
    """``1 - erf(x)``, accurate where it is tiny.

    >>> erfc([0.0]).tolist()
    [1.0]
    """
    return _in_single(_erfc, x)


@op(floating, kinds="real")
def erfinv(x: TensorLike, /) -> Tensor:
    """Inverse error function of ``x``; NaN outside -1 to 1.

    >>> erfinv([0.0, 1.0]).tolist()
    [0.0, inf]
    """
    return _in_single(_erfinv, x)


@op(floating, kinds="real")
def lgamma(x: TensorLike, /) -> Tensor:
    """Logarithm of the absolute value of the gamma function of ``x``.

    >>> lgamma([1.0, 2.0, 0.0]).tolist()
    [0.0, 0.0, inf]
    """
    return _in_single(_lgamma, x)


@op(floating, kinds="real")
def digamma(x: TensorLike, /) -> Tensor:
    """Derivative of ``lgamma`` at ``x``.

    >>> f"{float(digamma(1.0)):.4f}"
    '-0.5772'
    """
    return _in_single(_digamma, x)


@op(floating, kinds="real")
def i0(x: TensorLike, /) -> Tensor:
    """Modified Bessel function of the first kind of order 0 at ``x``.

    >>> f"{float(i0(1.0)):.4f}"
    '1.2661'
    """
    return _in_single(_i0, x)


@op(floating)
def divide_no_nan(x: TensorLike, y: TensorLike, /) -> Tensor:
    """``x / y``, or 0 where ``y`` is 0.

    >>> divide_no_nan([1.0, 2.0], [0.0, 4.0]).tolist()
    [0.0, 0.5]
    """
    zero = comparison.equal(y, 0)
    return comparison.where(zero, 0, divide(x, comparison.where(zero, 1, y)))


@op(floating)
def lerp(x: TensorLike, y: TensorLike, weight: TensorLike, /) -> Tensor:
    """The point between ``x`` and ``y`` at ``weight``: ``x + weight * (y - x)``.

    >>> lerp([0.0, 2.0], 4.0, 0.25).tolist()
    [1.0, 2.5]
    """
    return add(x, multiply(weight, subtract(y, x)))


@op(promoted, kinds="numeric")
def polyval(p: TensorLike, x: TensorLike, /) -> Tensor:
    """Value at ``x`` of the polynomial with coefficients ``p``, highest power first.

    >>> polyval([1, 0, -2], [3, 4]).tolist()
    [7, 14]
    """
    return _polyval(p, x)


@op(floating, kinds="real")
def interp(
    x: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> Tensor:
    """Linear interpolation at ``x`` between the points ``(xp, fp)``, with ``xp`` ascending.

    Args:
        left: value below the first point; by default that of the first point.
        right: value above the last point; by default that of the last point.
        period: period of the x-coordinates. If it is given, ``xp`` need not be ascending, and ``left`` and ``right``
            are ignored.

    >>> interp([0.5, 1.5, 9.0], [0.0, 1.0, 2.0], [0.0, 10.0, 30.0]).tolist()
    [5.0, 20.0, 30.0]
    """
    return _in_single(_interp, x, xp, fp, left=left, right=right, period=period)


@op(floating)
def gradient(
    f: TensorLike, /, *varargs: TensorLike, axis: Axis = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Derivative of ``f`` along each axis by finite differences: central inside, one-sided at the ends.

    One tensor for one axis, a tuple of tensors for several.

    Args:
        varargs: nothing for unit spacing, one number for all axes, or for each axis a number or its coordinates.
        axis: the axes to differentiate along, all by default.
        edge_order: order of accuracy at the ends, 1 or 2.

    >>> gradient([1.0, 2.0, 4.0, 7.0]).tolist()
    [1.0, 1.5, 2.5, 3.0]
    >>> gradient([0.0, 2.0, 4.0], 2.0).tolist()
    [1.0, 1.0, 1.0]
    """
    axes = _axes(axis, manipulation.ndim(f))
    spacings = _spacings(f, varargs, axes, edge_order)
    derivatives = tuple(
        _in_single(_derivative, f, spacing, axis=i, edge_order=edge_order)
        for i, spacing in zip(axes, spacings, strict=True)
    )
    return derivatives[0] if len(derivatives) == 1 else derivatives


@op(promoted)
def diff(
    x: TensorLike, /, n: int = 1, axis: int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None
) -> Tensor:
    """Difference of neighboring elements of ``x`` along ``axis``, taken ``n`` times.

    For bool, whether neighbors differ.

    Args:
        n: how many times to take the difference.
        prepend: values to put before ``x`` along ``axis`` first; a number is repeated as needed.
        append: values to put after ``x`` along ``axis`` first, likewise.

    >>> diff([1, 2, 4, 7]).tolist()
    [1, 2, 3]
    >>> diff([1, 2, 4, 7], n=2, prepend=0).tolist()
    [0, 1, 1]
    """
    return _diff(x, axis, n, prepend, append)


@op(floating)
def trapezoid(y: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Integral of ``y`` along ``axis`` by the trapezoidal rule.

    Args:
        x: sample points: one-dimensional, or of the shape of ``y``.
        dx: spacing of the sample points if ``x`` is not given.

    >>> trapezoid([1.0, 2.0, 3.0]).tolist()
    4.0
    >>> trapezoid([1.0, 2.0, 3.0], [4.0, 6.0, 8.0]).tolist()
    8.0
    """
    return _in_single(_trapezoid, y, x, dx=dx, axis=axis)


@op(promoted, kinds="numeric")
def convolve(a: TensorLike, v: TensorLike, mode: str = "full") -> Tensor:
    """Convolution of two one-dimensional tensors: ``sum(a[m] * v[n - m])`` for every ``n``.

    Args:
        mode: ``"full"`` for every overlap, ``"same"`` for the middle part as long as the longer input, ``"valid"`` for
            complete overlaps only.

    >>> convolve([1, 2, 3], [0, 1, 2]).tolist()
    [0, 1, 4, 7, 6]
    >>> convolve([1, 2, 3], [0, 1, 2], mode="same").tolist()
    [1, 4, 7]
    """
    ...


@op(promoted, kinds="numeric")
def correlate(a: TensorLike, v: TensorLike, mode: str = "valid") -> Tensor:
    """Cross-correlation of two one-dimensional tensors: ``sum(a[n + k] * conj(v[n]))`` for every ``k``.

    Args:
        mode: as in ``convolve``.

    >>> correlate([1, 2, 3], [0, 1, 2]).tolist()
    [8]
    >>> correlate([1, 2, 3], [0, 1, 2], mode="full").tolist()
    [2, 5, 8, 3, 0]
    """
    ...


def _in_single(function: _Callable[..., _Result], *tensors: Any, **options: Any) -> _Result:
    """``function`` of the tensors, computed in float32 for 16-bit floats, which lose too much in several steps."""
    dtype = as_dtype(tensors[0].dtype)
    if dtype.bits > 16:
        return function(*tensors, **options)
    wide = [x if x is None else _casts.cast(x, float32) for x in tensors]
    result: Any = function(*wide, **options)
    if isinstance(result, tuple):
        return tuple([_casts.cast(x, dtype) for x in result])  # type: ignore[return-value]
    return _casts.cast(result, dtype)  # type: ignore[return-value]


def _cbrt(x: Any) -> Tensor:
    size: Any = abs(x)
    plain = comparison.logical_and(size > 0, size < _math.inf)
    safe = comparison.where(plain, size, 1)
    root = power(safe, 1 / 3)
    root = root - (root - safe / (root * root)) / 3
    return copysign(comparison.where(plain, root, size), x)


def _logaddexp(x: Any, y: Any) -> Tensor:
    distance = comparison.where(comparison.equal(x, y), 0, x - y)
    return add(maximum(x, y), log1p(exp(-abs(distance))))


def _logaddexp2(x: Any, y: Any) -> Tensor:
    distance = comparison.where(comparison.equal(x, y), 0, x - y)
    return add(maximum(x, y), log1p(exp2(-abs(distance))) / _math.log(2))


def _hypot(x: Any, y: Any) -> Tensor:
    x, y = abs(x), abs(y)
    large: Any = maximum(x, y)
    small: Any = minimum(x, y)
    plain = comparison.logical_and(large > 0, large < _math.inf)
    ratio = comparison.where(plain, small, 0) / comparison.where(plain, large, 1)
    infinite = comparison.logical_or(x == _math.inf, y == _math.inf)
    return comparison.where(infinite, _math.inf, large * sqrt(1 + ratio * ratio))


def _sinc(x: Any) -> Tensor:
    # Near zero, the derivative of the quotient is a difference of nearly equal numbers over a tiny one; use the series.
    near = comparison.less(abs(x), 0.5 * _casts.finfo(x.dtype).eps ** 0.25)
    angle = comparison.where(near, 1, x) * _math.pi
    small = comparison.where(near, x, 0) * _math.pi
    return comparison.where(near, 1 - square(small) / 6, sin(angle) / angle)


def _heaviside(x: Any, y: Any) -> Tensor:
    step = comparison.where(comparison.isnan(x), x, comparison.where(x < 0, 0, 1))
    return comparison.where(x == 0, y, step)


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    rest, quotient = remainder(x, y), floor_divide(x, y)
    if "integer" in as_dtype(x.dtype).kind:
        return quotient, rest
    whole = rint(divide(subtract(x, rest), y))
    # For zeros and infinities ``whole`` is not defined, and the sign of a zero is that of the quotient.
    paired = comparison.logical_and(comparison.isfinite(whole), comparison.not_equal(whole, 0))
    # The remainder is infinite only for an infinite divisor of the other sign, where the quotient is -1.
    quotient = comparison.where(comparison.isinf(rest), -1, quotient)
    return comparison.where(paired, whole, quotient), rest


def _round(x: Any, decimals: int) -> Tensor:
    dtype = as_dtype(x.dtype)
    if "integer" in dtype.kind:
        # Every 64-bit integer is below 10**20.
        return positive(x) if decimals >= 0 else _round_integers(x, 10 ** _builtins.min(-decimals, 20), dtype)
    if decimals == 0:
        return rint(x)
    if dtype.kind == "complex floating":
        parts = [_round_decimals(part, decimals) for part in (real(x), imag(x))]
        return manipulation.view_as_complex(manipulation.stack(parts, axis=-1))
    return _in_single(_round_decimals, x, decimals=decimals)


def _round_decimals(x: Any, decimals: int) -> Tensor:
    limits = _casts.finfo(x.dtype)
    largest = int(_math.log10(limits.max))
    # Subnormal numbers have at most 16 more decimals than the largest power of ten has digits.
    places = _builtins.min(_builtins.abs(decimals), largest + 16)
    # Scale by two factors if the power of ten overflows the dtype.
    factors = [10.0**places] if places <= largest else [10.0**largest, 10.0 ** (places - largest)]
    if decimals < 0:
        whole: Tensor = _scaled(rint(_scaled(x, divide, factors)), multiply, factors[::-1])
        return whole
    # Above this limit numbers have no fraction, and scaling them might overflow.
    limit = 1 / limits.eps
    for factor in factors:
        limit /= factor
    has_fraction = comparison.less(abs(x), limit)
    rounded = rint(_scaled(comparison.where(has_fraction, x, 0), multiply, factors))
    return comparison.where(has_fraction, _scaled(rounded, divide, factors[::-1]), control.stop_gradient(x))


def _scaled(x: Any, how: _Callable[..., Any], factors: list[float]) -> Any:
    for factor in factors:
        x = how(x, factor)
    return x


def _round_integers(x: Any, unit: int, dtype: EmberDType) -> Tensor:
    """Integers rounded to multiples of ``unit``, computed in their own dtype."""
    if unit >= 1 << dtype.bits - (dtype.kind == "signed integer"):
        return creation.zeros_like(x)
    count, rest = divmod(x, unit)
    other = subtract(unit, rest)
    odd = comparison.equal(remainder(count, 2), 1)
    up = comparison.logical_or(
        comparison.greater(rest, other), comparison.logical_and(comparison.equal(rest, other), odd)
    )
    return multiply(comparison.where(up, add(count, 1), count), unit)


# Chebyshev coefficients in (x - 3.5) / (x + 2.5) of (1 + 2 x) exp(x**2) erfc(x), for x >= 0.5.
_TAIL_OF_ERF = (
    1.2158607077657972, -0.07003596062266325, -0.031212281863928836, 0.01784892022151553, -0.00474774386415735,
    0.0006979759512047146, -2.232265264165534e-05, -1.1884669525983327e-05, 1.6206456582690266e-06,
    1.9249260169829085e-07, -5.398930909450428e-08, -4.156515664988092e-09, 1.7566439369787191e-09,
    1.4501589262749804e-10, -5.930035129608768e-11, -7.17705006536562e-12, 1.975082319916055e-12,
    3.955946681344358e-13, -5.6266102888002935e-14, -2.1023183194301966e-14, 5.240252676230739e-16,
    1.0524914273446484e-15, -3.552713678800501e-16,
)  # fmt: skip

# Chebyshev coefficients in 2 z of lgamma(2 + z) / z, for z from -0.5 to 0.5.
_LGAMMA_AT_TWO = (
    0.41418612492156676, 0.16322170068760064, -0.008658972394126323, 0.0006727515726001343, -6.13955696363222e-05,
    6.110065797013675e-06, -6.410003033829881e-07, 6.962242693919762e-08, -7.747248754741421e-09,
    8.774074977679902e-10, -1.007026795285526e-10, 1.1678684685989538e-11, -1.36571531861307e-12,
    1.6076029396572267e-13, -1.9029222642075184e-14, 2.3359092438113293e-15, -2.964295475749168e-16,
)  # fmt: skip

# Taylor series of erf around zero, with enough terms for |x| <= 0.5.
_ERF_AT_ZERO = tuple(2 / _math.sqrt(_math.pi) * (-1) ** k / (_math.factorial(k) * (2 * k + 1)) for k in range(12))

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Polynomial with these coefficients, lowest power first, by Horner's method."""
    value = x * 0.0 + coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


def _chebyshev(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Sum of Chebyshev polynomials with these coefficients, by Clenshaw's algorithm."""
    one = two = x * 0.0
    for coefficient in coefficients[:0:-1]:
        one, two = 2 * x * one - two + coefficient, one
    return x * one - two + coefficients[0]


def _erf(x: Any) -> Tensor:
    size: Any = abs(x)
    small = size < 0.5
    near = comparison.where(small, x, 0)
    far = 1 - _erfc_tail(comparison.where(small, 0.5, size))
    return comparison.where(small, near * _horner(near * near, _ERF_AT_ZERO), copysign(far, x))


def _erfc(x: Any) -> Tensor:
    size: Any = abs(x)
    small = size < 0.5
    near = comparison.where(small, x, 0)
    tail = _erfc_tail(comparison.where(small, 0.5, size))
    return comparison.where(
        small, 1 - near * _horner(near * near, _ERF_AT_ZERO), comparison.where(x < 0, 2 - tail, tail)
    )


def _erfc_tail(x: Any) -> Any:
    """``erfc`` for ``x >= 0.5``. ``exp(-x**2)`` is split into two factors because the square is rounded."""
    x = minimum(x, 30)
    near = rint(x * 16) / 16
    bell = exp(-near * near) * exp((near - x) * (near + x))
    return bell * _chebyshev((x - 3.5) / (x + 2.5), _TAIL_OF_ERF) / (1 + 2 * x)


def _erfinv(x: Any) -> Tensor:
    """A rational estimate refined by two steps of Halley's method; near 1 they use the distance from 1."""
    size: Any = abs(x)
    inside = size < 1
    outer: Any = comparison.logical_and(inside, size > 0.7)
    central: Any = comparison.where(size <= 0.7, x, 0)
    square_ = central * central
    middle = central * _horner(square_, (0.886226899, -1.645349621, 0.914624893, -0.140543331))
    middle = middle / _horner(square_, (1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801))
    distance: Any = 1 - comparison.where(outer, size, 0.75)
    depth: Any = sqrt(-log(distance / 2))
    tail = _horner(depth, (-1.970840454, -1.624906493, 3.429567803, 1.641345311))
    tail = tail / _horner(depth, (1.0, 3.543889200, 1.637067800))
    for _ in range(2):
        step: Any = (_erf(middle) - central) / (2 / _math.sqrt(_math.pi) * exp(-middle * middle))
        middle = middle - step / (1 + middle * step)
        step = (distance - _erfc(tail)) / (2 / _math.sqrt(_math.pi) * exp(-tail * tail))
        tail = tail - step / (1 + tail * step)
    edge = comparison.where(comparison.equal(size, 1), copysign(_math.inf, x), _math.nan)
    return comparison.where(inside, comparison.where(outer, copysign(tail, x), middle), edge)


def _lgamma(x: Any) -> Tensor:
    """Reflection below zero, a series around 2, and from 2.5 Stirling's formula after eight steps of the recurrence."""
    negative_ = x < 0
    y: Any = comparison.where(negative_, 1 - x, x)
    small = y < 2.5
    low: Any = comparison.where(small, y, 2)
    raised = comparison.where(low < 0.5, low + 2, comparison.where(low < 1.5, low + 1, low))
    factor = comparison.where(low < 1.5, low, 1) * comparison.where(low < 0.5, low + 1, 1)
    z = raised - 2
    series = z * _chebyshev(2 * z, _LGAMMA_AT_TWO) - log(factor)
    value = comparison.where(small, series, _stirling(comparison.where(small, 3, y)))
    fraction: Any = comparison.where(negative_, x, -0.5)
    fraction = fraction - rint(fraction)
    # The product of pi and a subnormal number loses most of its digits.
    sine = comparison.where(abs(fraction) < 1e-9, fraction, sin(_math.pi * fraction) / _math.pi)
    reflected: Any = -log(abs(sine)) - value
    infinite = comparison.logical_or(comparison.isinf(x), comparison.equal(fraction, 0))
    return comparison.where(infinite, _math.inf, comparison.where(negative_, reflected, value))


def _stirling(x: Any) -> Tensor:
    near = x < 10
    steps = comparison.where(near, x, 1)
    product = steps
    for k in range(1, 8):
        product = product * (steps + k)
    z = comparison.where(near, x + 8, x)
    inverse = 1 / z
    terms = tuple(b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(_BERNOULLI))
    rest = inverse * _horner(inverse * inverse, terms) + (_math.log(2 * _math.pi) - 1) / 2
    value = (z - 0.5) * (log(z) - 1) + rest
    return subtract(value, comparison.where(near, log(product), 0))


def _digamma(x: Any) -> Tensor:
    """Reflection below zero, then the asymptotic series after ten steps of the recurrence."""
    negative_ = x < 0
    y: Any = comparison.where(negative_, 1 - x, x)
    total = 1 / y
    for k in range(1, 10):
        total = total + 1 / (y + k)
    z = y + 10
    inverse = 1 / z
    series = _horner(inverse * inverse, (0.0, *(b / (2 * k + 2) for k, b in enumerate(_BERNOULLI))))
    value = log(z) - inverse / 2 - series - total
    fraction: Any = comparison.where(negative_, x, -0.5)
    fraction = fraction - rint(fraction)
    pole = fraction == 0
    turned = value - _math.pi / tan(_math.pi * comparison.where(pole, 0.25, fraction))
    return comparison.where(negative_, comparison.where(pole, _math.nan, turned), value)


def _i0(x: Any) -> Tensor:
    """The power series up to 20 and the asymptotic series above: all terms are positive."""
    size: Any = abs(x)
    inside = size <= 20
    near: Any = comparison.where(inside, size, 20)
    far: Any = comparison.where(inside, 20, size)
    quarter = near * near / 4
    series = quarter * 0.0 + 1
    for k in range(45, 0, -1):
        series = series * quarter * (1 / (k * k)) + 1
    inverse = 1 / (8 * far)
    tail = inverse * 0.0 + 1
    for k in range(30, 0, -1):
        tail = tail * inverse * ((2 * k - 1) ** 2 / k) + 1
    half = exp(far / 2)
    return comparison.where(inside, series, half * (half * tail / (_math.sqrt(2 * _math.pi) * sqrt(far))))


def _polyval(p: Any, x: Any) -> Tensor:
    value = creation.zeros_like(x)
    for i in range(p.shape[0]):
        value = add(multiply(value, x), p[i])
    return value


def _interp(x: Any, xp: Any, fp: Any, *, left: float | None, right: float | None, period: float | None) -> Tensor:
    if xp.ndim != 1 or xp.shape != fp.shape or xp.shape[0] == 0:
        raise ValueError(f"xp and fp must have 1 axis and one length, got shapes {list(xp.shape)} and {list(fp.shape)}")
    if period is not None:
        x, xp, fp = _unrolled(x, xp, fp, _builtins.abs(period))
        left = right = None
    last = xp.shape[0] - 1
    i = minimum(maximum(subtract(indexing.searchsorted(xp, x, side="right"), 1), 0), _builtins.max(last - 1, 0))
    j = minimum(add(i, 1), last)
    gap = xp[j] - xp[i]
    step = comparison.where(comparison.equal(gap, 0), 0, (fp[j] - fp[i]) / comparison.where(gap == 0, 1, gap))
    value = step * (x - xp[i]) + fp[i]
    value = comparison.where(x == xp[last], fp[last], value)
    value = comparison.where(x > xp[last], fp[last] if right is None else right, value)
    return comparison.where(x < xp[0], fp[0] if left is None else left, value)


def _unrolled(x: Any, xp: Any, fp: Any, period: float) -> tuple[Any, Any, Any]:
    """Points within one period, sorted, with one neighbor from the period before and one from the period after."""
    if period == 0:
        raise ValueError("period must not be 0, got 0")
    xp = remainder(xp, period)
    order = indexing.argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = manipulation.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return remainder(x, period), xp, manipulation.concatenate([fp[-1:], fp, fp[:1]])


def _cut(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    """``x[start:stop]`` along an axis."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _along(row: Any, x: Any, axis: int) -> Any:
    """``row`` reshaped to lie along ``axis`` of ``x``."""
    return manipulation.reshape(row, (1,) * axis + (row.shape[0],) + (1,) * (x.ndim - axis - 1))


def _spacings(f: Any, given: tuple[Any, ...], axes: tuple[int, ...], edge_order: int) -> list[Any]:
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order must be 1 or 2, got {edge_order}")
    for axis in axes:
        if f.shape[axis] < edge_order + 1:
            raise ValueError(
                f"f must have at least {edge_order + 1} values along axis {axis} for edge_order={edge_order}, got "
                f"{f.shape[axis]}"
            )
    if not given:
        return [None] * len(axes)
    if len(given) == 1 and given[0].ndim == 0:
        return list(given) * len(axes)
    if len(given) != len(axes):
        raise TypeError(f"spacings must be none, one number, or one per axis, got {len(given)}")
    for axis, spacing in zip(axes, given, strict=True):
        if spacing.ndim > 1 or (spacing.ndim == 1 and spacing.shape[0] != f.shape[axis]):
            raise ValueError(f"the coordinates along axis {axis} must have shape [{f.shape[axis]}]")
    return list(given)


def _derivative(f: Any, spacing: Any, axis: int, edge_order: int) -> Tensor:
    lower, middle, upper = _cut(f, axis, None, -2), _cut(f, axis, 1, -1), _cut(f, axis, 2, None)
    if spacing is None or spacing.ndim == 0:
        step = 1.0 if spacing is None else spacing
        inner = (upper - lower) / (2 * step)
        first = last = (step, step)
    else:
        steps = _along(_diff(spacing, 0, 1, None, None), f, axis)
        before, after = _cut(steps, axis, None, -1), _cut(steps, axis, 1, None)
        both = before + after
        inner = (after - before) / (before * after) * middle
        inner = inner + before / (after * both) * upper - after / (before * both) * lower
        first = _cut(steps, axis, 0, 1), _cut(steps, axis, 1, 2)
        last = _cut(steps, axis, -1, None), _cut(steps, axis, -2, -1)
    opening = _edge([_cut(f, axis, k, k + 1) for k in range(edge_order + 1)], *first)
    closing = _edge([_cut(f, axis, -k - 1, -k or None) for k in range(edge_order + 1)], *last)
    return manipulation.concatenate([opening, inner, -closing], axis=axis)


def _edge(values: list[Any], near: Any, far: Any) -> Any:
    """Derivative at the first of two or three values, given the distances between them."""
    if len(values) == 2:
        return (values[1] - values[0]) / near
    both = near + far
    return (
        -(near + both) / (near * both) * values[0] + both / (near * far) * values[1] - near / (far * both) * values[2]
    )


def _diff(x: Any, axis: int, n: int, prepend: Any, append: Any) -> Tensor:
    axis = _axis(axis, x.ndim)
    if n < 0:
        raise ValueError(f"n must be >= 0, got {n}")
    pieces = [_piece(piece, x, axis) for piece in (prepend, x, append) if piece is not None]
    found: Tensor = manipulation.concatenate(pieces, axis=axis) if n and len(pieces) > 1 else x
    take = comparison.not_equal if as_dtype(x.dtype).kind == "bool" else subtract
    for _ in range(n):
        found = take(_cut(found, axis, 1, None), _cut(found, axis, None, -1))
    return found


def _piece(piece: Any, x: Any, axis: int) -> Any:
    if piece.ndim:
        return piece
    return manipulation.broadcast_to(piece, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def _trapezoid(y: Any, x: Any, dx: float, axis: int) -> Tensor:
    axis = _axis(axis, y.ndim)
    middle = (_cut(y, axis, 1, None) + _cut(y, axis, None, -1)) / 2
    steps: Any = dx
    if x is not None:
        steps = _along(_diff(x, 0, 1, None, None), y, axis) if x.ndim == 1 else _diff(x, axis, 1, None, None)
    return stats.sum(middle * steps, axis=axis)
