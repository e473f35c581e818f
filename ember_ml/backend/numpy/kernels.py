"""Loops over the blocks of Threefry, compiled by Numba: the words and numbers of ``random.py`` in a fraction of the time.

Every operation is rounded by itself, in the order in which ``ember_ml.sampling`` has them, so that not a bit differs.
Importing this module needs Numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numba
import numpy as np
from numpy import float32, float64, int32, int64, uint32, uint64

from ember_ml import sampling

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    """``function``, compiled when it is first called; kept on disk for the next process where that can be."""
    # The model of errors is NumPy's: a test for zero at each division would keep the loop from being vectorised.
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(function, cache=True, **options)  # type: ignore[no-any-return]
    except RuntimeError:
        # There is no directory that can be written to.
        return numba.njit(function, **options)  # type: ignore[no-any-return]


def _inlined(function: F) -> F:
    """``function`` for use in those that are compiled."""
    return numba.njit(function, error_model="numpy")  # type: ignore[no-any-return]


@_inlined
def _four_rounds(x: Any, y: Any, a: int, b: int, c: int, d: int) -> tuple[Any, Any]:
    x = uint32(x + y)
    y = uint32(y << uint32(a) | y >> uint32(32 - a)) ^ x
    x = uint32(x + y)
    y = uint32(y << uint32(b) | y >> uint32(32 - b)) ^ x
    x = uint32(x + y)
    y = uint32(y << uint32(c) | y >> uint32(32 - c)) ^ x
    x = uint32(x + y)
    y = uint32(y << uint32(d) | y >> uint32(32 - d)) ^ x
    return x, y


@_inlined
def _block(first: Any, second: Any, counter: Any) -> tuple[Any, Any]:
    """Both words of the block with that number: ``threefry.block``."""
    third = first ^ second ^ uint32(0x1BD11BDA)
    x, y = uint32(uint32(counter >> uint64(32)) + first), uint32(uint32(counter) + second)
    x, y = _four_rounds(x, y, 13, 15, 26, 6)
    x, y = uint32(x + second), uint32(y + third + uint32(1))
    x, y = _four_rounds(x, y, 17, 29, 16, 24)
    x, y = uint32(x + third), uint32(y + first + uint32(2))
    x, y = _four_rounds(x, y, 13, 15, 26, 6)
    x, y = uint32(x + first), uint32(y + second + uint32(3))
    x, y = _four_rounds(x, y, 17, 29, 16, 24)
    x, y = uint32(x + second), uint32(y + third + uint32(4))
    x, y = _four_rounds(x, y, 13, 15, 26, 6)
    return uint32(x + third), uint32(y + first + uint32(5))


@_compiled
def words(first: Any, second: Any, start: Any, out: Any) -> None:
    """Both words of the blocks from ``start`` on, one after the other."""
    for i in range(len(out) >> 1):
        out[2 * i], out[2 * i + 1] = _block(first, second, start + uint64(i))


@_compiled
def pairs(first: Any, second: Any, start: Any, high: Any, low: Any) -> None:
    """Both words of the blocks from ``start`` on, each in an array of its own."""
    for i in range(len(high)):
        high[i], low[i] = _block(first, second, start + uint64(i))


@_compiled
def below(first: Any, second: Any, start: Any, out: Any, limit: Any) -> None:
    """Whether each word is below ``limit``, an unsigned integer of 64 bits."""
    for i in range(len(out) >> 1):
        a, b = _block(first, second, start + uint64(i))
        out[2 * i], out[2 * i + 1] = uint64(a) < limit, uint64(b) < limit


@_inlined
def _single(word: Any) -> Any:
    return float32(int32(word >> uint32(8))) * float32(2.0**-24)


@_inlined
def _double(high: Any, low: Any) -> Any:
    return (float64(high >> uint32(5)) * 2.0**26 + float64(low >> uint32(6))) * 2.0**-53


@_compiled
def singles(first: Any, second: Any, start: Any, out: Any) -> None:
    """``sampling.fractions`` in float32."""
    for i in range(len(out) >> 1):
        a, b = _block(first, second, start + uint64(i))
        out[2 * i], out[2 * i + 1] = _single(a), _single(b)


@_compiled
def doubles(first: Any, second: Any, start: Any, out: Any) -> None:
    """``sampling.fractions`` in float64."""
    for i in range(len(out)):
        a, b = _block(first, second, start + uint64(i))
        out[i] = _double(a, b)


@_compiled
def singles_between(first: Any, second: Any, start: Any, out: Any, low: Any, high: Any, top: Any) -> None:
    """``sampling.fractions_between`` in float32, the bounds in float64."""
    span = high - low
    for i in range(len(out) >> 1):
        a, b = _block(first, second, start + uint64(i))
        a, b = float64(_single(a)) * span + low, float64(_single(b)) * span + low
        out[2 * i] = float32(a) if float32(a) < high else float32(top)
        out[2 * i + 1] = float32(b) if float32(b) < high else float32(top)


@_compiled
def doubles_between(first: Any, second: Any, start: Any, out: Any, low: Any, high: Any, top: Any) -> None:
    """``sampling.fractions_between`` in float64."""
    span = high - low
    for i in range(len(out)):
        a, b = _block(first, second, start + uint64(i))
        value = _double(a, b) * span + low
        out[i] = value if value < high else top


def _polynomial(*coefficients: Any) -> Callable[[Any], Any]:
    """``sampling.horner`` with these coefficients, without a loop."""
    *most, last = coefficients
    if len(most) == 1:
        (first,) = most
        return _inlined(lambda x: x * first + last)
    higher = _polynomial(*most)
    return _inlined(lambda x: higher(x) * x + last)


def _quantile(dtype: str, real: Any, integer: Any) -> Callable[[Any], Any]:
    """``sampling.normal_quantile`` of one number."""

    def polynomial(coefficients: Sequence[float]) -> Callable[[Any], Any]:
        return _polynomial(*map(real, coefficients))

    _, width, bias = sampling.LAYOUT[dtype]
    width, bias, carry = integer(width), integer(bias), integer(sampling.carry(dtype))
    series, (ln2_high, ln2_low) = polynomial(sampling.log_series(dtype)), map(real, sampling.LN2[dtype])
    middle_above, middle_below = map(polynomial, sampling.MIDDLE[dtype])
    tail_above, tail_below = map(polynomial, sampling.TAIL[dtype])
    far_above, far_below = map(polynomial, sampling.FAR_TAIL)
    has_far_tail = dtype == "float64"
    half, one, two, middle_end, near_end, tail_start, far_start = map(real, (0.5, 1, 2, 0.425, 0.180625, 1.6, 5))

    @_inlined
    def log(x: Any) -> Any:
        bits = real(x).view(integer)
        exponent = integer((integer(bits + carry) >> width) - bias)
        t = integer(bits - integer(exponent << width)).view(real) - one
        s = t / (t + two)
        return real(exponent) * ln2_high + (s * series(s * s) + real(exponent) * ln2_low)

    @_inlined
    def quantile(q: Any) -> Any:
        near = near_end - q * q
        middle = q * (middle_above(near) / middle_below(near))
        size = abs(q)
        r = math.sqrt(-log(half - size))
        tail = tail_above(r - tail_start) / tail_below(r - tail_start)
        if has_far_tail:
            far = far_above(r - far_start) / far_below(r - far_start)
            tail = tail if r <= far_start else far
        tail = -tail if q < 0 else tail
        return middle if size <= middle_end else tail

    return quantile


_quantile_single = _quantile("float32", float32, int32)
_quantile_double = _quantile("float64", float64, int64)


@_compiled
def normal_singles(first: Any, second: Any, start: Any, out: Any, location: Any, scale: Any) -> None:
    """``sampling.normals`` in float32, at a location and scale in float32."""
    for i in range(len(out) >> 1):
        a, b = _block(first, second, start + uint64(i))
        p = (float32(int32(a >> uint32(8))) - float32(2.0**23 - 0.5)) * float32(2.0**-24)
        q = (float32(int32(b >> uint32(8))) - float32(2.0**23 - 0.5)) * float32(2.0**-24)
        out[2 * i] = _quantile_single(p) * scale + location
        out[2 * i + 1] = _quantile_single(q) * scale + location


@_compiled
def normal_doubles(first: Any, second: Any, start: Any, out: Any, location: Any, scale: Any) -> None:
    """``sampling.normals`` in float64, at a location and scale in float64."""
    for i in range(len(out)):
        a, b = _block(first, second, start + uint64(i))
        whole = (float64(a >> uint32(5)) - 2.0**26) * 2.0**26
        q = (whole + (float64(b >> uint32(6)) + 0.5)) * 2.0**-53
        out[i] = _quantile_double(q) * scale + location
