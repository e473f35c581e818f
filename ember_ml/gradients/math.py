"""Gradients of elementwise operations."""

from __future__ import annotations

import math as _math
from typing import Any

from ember_ml.ops import comparison, creation, dtypes, linearalg, manipulation
from ember_ml.ops.math import (
    abs,
    add,
    conj,
    cos,
    cosh,
    divide,
    exp,
    exp2,
    floor,
    ldexp,
    log,
    maximum,
    multiply,
    negative,
    power,
    real,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    trunc,
)


def _is_complex(x: Any) -> bool:
    return dtypes.is_complex(x)


def _power_of_base(g: Any, out: Any, x: Any, y: Any) -> Any:
    if type(y) in (int, float):
        return multiply(g, multiply(power(x, y - 1), y)) if y else creation.zeros_like(x)
    # At 0 ** 0 the plain formula is 0 * inf.
    return multiply(g, multiply(y, power(x, comparison.where(comparison.equal(y, 0), 1, subtract(y, 1)))))


def _power_of_exponent(g: Any, out: Any, x: Any, y: Any) -> Any:
    return multiply(g, multiply(out, log(comparison.where(comparison.equal(x, 0), 1, x))))


def _abs(g: Any, out: Any, x: Any) -> Any:
    if not _is_complex(x):
        return multiply(g, sign(x))
    return multiply(g, divide(conj(x), comparison.where(comparison.equal(out, 0), 1, out)))


def _sign(g: Any, out: Any, x: Any) -> Any:
    if not _is_complex(x):
        return creation.zeros_like(x)
    # z / |z| depends on the angle alone, which zero does not have.
    size = abs(x)
    is_zero = comparison.equal(size, 0)
    along = multiply(real(multiply(g, out)), conj(out))
    return comparison.where(is_zero, 0, divide(subtract(g, along), comparison.where(is_zero, 1, size)))


def _split_ties(better: Any) -> Any:
    """Rules for the better of two values: the better one gets the gradient, ties get one half each."""

    def share(g: Any, one: Any, other: Any) -> Any:
        chosen = better(one, other)
        tied = comparison.equal(one, other)
        return comparison.where(chosen, g, comparison.where(tied, multiply(g, 0.5), 0))

    return lambda g, out, x, y: share(g, x, y), lambda g, out, x, y: share(g, y, x)


def _prefer_first(better: Any) -> Any:
    """Rules that give the gradient to ``x`` if it is better or ``y`` is NaN, else to ``y``."""

    def chosen(x: Any, y: Any) -> Any:
        return comparison.logical_or(better(x, y), comparison.isnan(y))

    return (
        lambda g, out, x, y: comparison.where(chosen(x, y), g, 0),
        lambda g, out, x, y: comparison.where(chosen(x, y), 0, g),
    )


def _clip(g: Any, out: Any, x: Any, low: Any, high: Any) -> Any:
    return comparison.where(comparison.equal(out, x), g, 0)


def _clip_of_low(g: Any, out: Any, x: Any, low: Any, high: Any) -> Any:
    raised = comparison.less(x, low)
    return comparison.where(
        raised if high is None else comparison.logical_and(raised, comparison.less(low, high)), g, 0
    )


def _clip_of_high(g: Any, out: Any, x: Any, low: Any, high: Any) -> Any:
    return comparison.where(comparison.greater(x if low is None else maximum(x, low), high), g, 0)


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    if a.shape[0] < v.shape[0]:
        return manipulation.flip(conj(_correlate(v, a, mode)))
    return _convolve(a, manipulation.flip(conj(v)), mode)


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """Product of the windows of the longer array with the shorter one."""
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    count, width = a.shape[0], v.shape[0]
    spread = manipulation.pad(a, (width - 1, width - 1))
    whole = linearalg.matmul(manipulation.sliding_window(spread, width), manipulation.flip(v))
    if mode == "full":
        return whole
    length = count if mode == "same" else count - width + 1
    start = (count + width - 1 - length) // 2
    return whole[start : start + length]


def _axes(x: Any, axis: Any) -> list[int]:
    """Nonnegative axes of a reduction; all of them by default."""
    ndim = len(x.shape)
    if axis is None or not ndim:
        return list(range(ndim))
    return [one % ndim for one in ((axis,) if hasattr(axis, "__index__") else axis)]


def _restore_axes(g: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Cotangent of a reduction, with the reduced axes as axes of length one."""
    if keepdims or not x.shape:
        return g
    axes = _axes(x, axis)
    return manipulation.reshape(g, tuple(1 if i in axes else n for i, n in enumerate(x.shape)))


def _logsumexp(g: Any, out: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    top = _restore_axes(out, x, axis, keepdims)
    # The gradient is zero where all elements are -inf; infinities and NaN propagate.
    level = comparison.where(comparison.isneginf(top), 0, top)
    return multiply(_restore_axes(g, x, axis, keepdims), exp(subtract(x, level)))


def _nan_to_num(g: Any, out: Any, x: Any, **_: Any) -> Any:
    return comparison.where(comparison.isfinite(x), g, 0)


def _angle(g: Any, out: Any, x: Any) -> Any:
    if not _is_complex(x):
        return creation.zeros_like(x)
    size = square(abs(x))
    return divide(multiply(conj(multiply(x, 1j)), g), comparison.where(comparison.equal(size, 0), 1, size))


def _ratio(x: Any, y: Any) -> Any:
    """``x / y``, or zero where both are zero."""
    return divide(x, comparison.where(comparison.equal(y, 0), 1, y))


def _zero(g: Any, out: Any, x: Any, *rest: Any) -> Any:
    return creation.zeros_like(x)


RULES = {
    "add": (lambda g, out, x, y: g, lambda g, out, x, y: g),
    "subtract": (lambda g, out, x, y: g, lambda g, out, x, y: negative(g)),
    "multiply": (lambda g, out, x, y: multiply(g, y), lambda g, out, x, y: multiply(g, x)),
    "divide": (lambda g, out, x, y: divide(g, y), lambda g, out, x, y: negative(divide(multiply(g, out), y))),
    "remainder": (lambda g, out, x, y: g, lambda g, out, x, y: negative(multiply(g, floor(divide(x, y))))),
    "fmod": (lambda g, out, x, y: g, lambda g, out, x, y: negative(multiply(g, trunc(divide(x, y))))),
    "power": (_power_of_base, _power_of_exponent),
    "negative": (lambda g, out, x: negative(g),),
    "positive": (lambda g, out, x: g,),
    "abs": (_abs,),
    "fabs": (lambda g, out, x: multiply(g, sign(x)),),
    "sign": (_sign,),
    "copysign": (lambda g, out, x, y: multiply(g, multiply(sign(x), sign(out))), None),
    "square": (lambda g, out, x: multiply(multiply(g, x), 2),),
    "sqrt": (lambda g, out, x: divide(multiply(g, 0.5), out),),
    "rsqrt": (lambda g, out, x: multiply(multiply(g, -0.5), divide(out, x)),),
    "cbrt": (lambda g, out, x: divide(g, multiply(square(out), 3)),),
    "reciprocal": (lambda g, out, x: negative(multiply(g, square(out))),),
    "exp": (lambda g, out, x: multiply(g, out),),
    "exp2": (lambda g, out, x: multiply(g, multiply(out, _math.log(2))),),
    "expm1": (lambda g, out, x: multiply(g, add(out, 1)),),
    "log": (lambda g, out, x: divide(g, x),),
    "log1p": (lambda g, out, x: divide(g, add(x, 1)),),
    "log2": (lambda g, out, x: divide(g, multiply(x, _math.log(2))),),
    "log10": (lambda g, out, x: divide(g, multiply(x, _math.log(10))),),
    "logaddexp": (
        lambda g, out, x, y: multiply(g, exp(subtract(x, out))),
        lambda g, out, x, y: multiply(g, exp(subtract(y, out))),
    ),
    "logaddexp2": (
        lambda g, out, x, y: multiply(g, exp2(subtract(x, out))),
        lambda g, out, x, y: multiply(g, exp2(subtract(y, out))),
    ),
    "logsumexp": (_logsumexp,),
    "hypot": (lambda g, out, x, y: multiply(g, _ratio(x, out)), lambda g, out, x, y: multiply(g, _ratio(y, out))),
    "sin": (lambda g, out, x: multiply(g, cos(x)),),
    "cos": (lambda g, out, x: negative(multiply(g, sin(x))),),
    "tan": (lambda g, out, x: multiply(g, add(square(out), 1)),),
    "asin": (lambda g, out, x: divide(g, sqrt(subtract(1, square(x)))),),
    "acos": (lambda g, out, x: negative(divide(g, sqrt(subtract(1, square(x))))),),
    "atan": (lambda g, out, x: divide(g, add(square(x), 1)),),
    "atan2": (
        lambda g, out, x, y: divide(multiply(g, y), add(square(x), square(y))),
        lambda g, out, x, y: negative(divide(multiply(g, x), add(square(x), square(y)))),
    ),
    "sinh": (lambda g, out, x: multiply(g, cosh(x)),),
    "cosh": (lambda g, out, x: multiply(g, sinh(x)),),
    "tanh": (lambda g, out, x: subtract(g, multiply(g, square(out))),),
    "asinh": (lambda g, out, x: divide(g, sqrt(add(square(x), 1))),),
    "acosh": (lambda g, out, x: divide(g, multiply(sqrt(subtract(x, 1)), sqrt(add(x, 1)))),),
    "atanh": (lambda g, out, x: divide(g, subtract(1, square(x))),),
    "deg2rad": (lambda g, out, x: multiply(g, _math.pi / 180),),
    "rad2deg": (lambda g, out, x: multiply(g, 180 / _math.pi),),
    "floor": (_zero,),
    "ceil": (_zero,),
    "trunc": (_zero,),
    "rint": (_zero,),
    "maximum": _split_ties(comparison.greater),
    "minimum": _split_ties(comparison.less),
    "fmax": _prefer_first(comparison.greater_equal),
    "fmin": _prefer_first(comparison.less_equal),
    "clip": (_clip, _clip_of_low, _clip_of_high),
    "nan_to_num": (_nan_to_num,),
    "ldexp": (lambda g, out, x, y: ldexp(g, y), None),
    "real": (lambda g, out, x: g,),
    "imag": (lambda g, out, x: multiply(g, -1j) if _is_complex(x) else creation.zeros_like(x),),
    "conj": (lambda g, out, x: conj(g),),
    "angle": (_angle,),
    "erf": (lambda g, out, x: multiply(g, multiply(exp(negative(square(x))), 2 / _math.sqrt(_math.pi))),),
}

FORMULAS = {"convolve": _convolve, "correlate": _correlate}
