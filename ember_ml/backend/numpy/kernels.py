"""Loops over Threefry blocks, compiled by Numba: the same random numbers as in ``random.py``, in less time.

Every operation is rounded separately, in the order of ``ember_ml.random.sampling``, so that all bits agree. Importing
this module requires Numba. A loop is compiled when it is first called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy import float32, float64, int32, int64, uint32, uint64

from ember_ml.random import sampling

if getattr(numba.config, "DISABLE_JIT", False):
    raise ImportError("Numba is told not to compile")

F = TypeVar("F", bound=Callable[..., Any])
_njit: Any = numba.njit


def _compile(function: F) -> F:
    """``function``, compiled when it is first called, and cached on disk if possible."""
    # With Python's error model, a check for zero at each division would prevent vectorization.
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, _njit(function, cache=True, **options))
    except RuntimeError:
        # No cache directory is writable.
        return cast(F, _njit(function, **options))


def _inline(function: F) -> F:
    """``function`` compiled for calls from compiled functions."""
    return cast(F, _njit(function, error_model="numpy"))


@_inline
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


@_inline
def _block(first: Any, second: Any, counter: Any) -> tuple[Any, Any]:
    """Both random 32-bit integers of the block with that number, as ``threefry.block`` computes them."""
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


@_compile
def words(first: Any, second: Any, start: Any, out: Any) -> None:
    """Write both random 32-bit integers of the blocks from ``start`` on to ``out``, in order."""
    for i in range(len(out) >> 1):
        out[2 * i], out[2 * i + 1] = _block(first, second, start + uint64(i))


@_compile
def pairs(first: Any, second: Any, start: Any, high: Any, low: Any) -> None:
    """Write both random 32-bit integers of the blocks from ``start`` on to two arrays."""
    for i in range(len(high)):
        high[i], low[i] = _block(first, second, start + uint64(i))


@_compile
def trials(first: Any, second: Any, start: Any, out: Any, limit: Any) -> None:
    """``sampling.trials``: whether each random 32-bit integer is below ``limit``, a uint64."""
    for i in range(len(out) >> 1):
        a, b = _block(first, second, start + uint64(i))
        out[2 * i], out[2 * i + 1] = uint64(a) < limit, uint64(b) < limit


@_inline
def _single(word: Any) -> Any:
    return float32(int32(word >> uint32(8))) * float32(2.0**-24)


@_inline
def _double(high: Any, low: Any) -> Any:
    return (float64(high >> uint32(5)) * 2.0**26 + float64(low >> uint32(6))) * 2.0**-53


@_compile
def fractions_float32(first: Any, second: Any, start: Any, out: Any) -> None:
    """``sampling.fractions`` in float32."""
    for i in range(len(out) >> 1):
        a, b = _block(first, second, start + uint64(i))
        out[2 * i], out[2 * i + 1] = _single(a), _single(b)


@_compile
def fractions_float64(first: Any, second: Any, start: Any, out: Any) -> None:
    """``sampling.fractions`` in float64."""
    for i in range(len(out)):
        a, b = _block(first, second, start + uint64(i))
        out[i] = _double(a, b)


@_compile
def between_float32(first: Any, second: Any, start: Any, out: Any, low: Any, high: Any, top: Any) -> None:
    """``sampling.fractions_between`` in float32, with bounds in float64."""
    span = high - low
    for i in range(len(out) >> 1):
        a, b = _block(first, second, start + uint64(i))
        x, y = float32(_single(a) * span + low), float32(_single(b) * span + low)
        out[2 * i] = x if x < high else float32(top)
        out[2 * i + 1] = y if y < high else float32(top)


@_compile
def between_float64(first: Any, second: Any, start: Any, out: Any, low: Any, high: Any, top: Any) -> None:
    """``sampling.fractions_between`` in float64."""
    span = high - low
    for i in range(len(out)):
        a, b = _block(first, second, start + uint64(i))
        value = _double(a, b) * span + low
        out[i] = value if value < high else top


# Chunk length where several loops are needed, each simple enough to be vectorized.
_PIECE = 1 << 9


_horner = _inline(sampling.horner)


def _quantiles(dtype: str, real: Any, integer: Any) -> Callable[[Any, Any, Any], None]:
    """Function that replaces an array by ``sampling.normal_quantile`` of it, scaled and shifted."""

    def constants(values: Sequence[float]) -> tuple[Any, ...]:
        return tuple(real(value) for value in values)

    _, digits, offset = sampling.LAYOUT[dtype]
    width, bias, carry = integer(digits), integer(offset), integer(sampling.carry(dtype))
    series, (ln2_high, ln2_low) = constants(sampling.log_series(dtype)), constants(sampling.LN2[dtype])
    middle_above, middle_below = map(constants, sampling.MIDDLE[dtype])
    tail_above, tail_below = map(constants, sampling.TAIL[dtype])
    far_above, far_below = map(constants, sampling.FAR_TAIL)
    has_far_tail = dtype == "float64"
    half, one, two, middle_end, near_end, tail_start, far_start = constants((0.5, 1, 2, 0.425, 0.180625, 1.6, 5))

    @_inline
    def log(x: Any) -> Any:
        bits = real(x).view(integer)
        exponent = integer((integer(bits + carry) >> width) - bias)
        t = integer(bits - integer(exponent << width)).view(real) - one
        s = t / (t + two)
        return real(exponent) * ln2_high + (s * _horner(s * s, series) + real(exponent) * ln2_low)

    @_inline
    def replace(q: Any, location: Any, scale: Any) -> None:
        count = len(q)
        middle, roots, tail = np.empty_like(q), np.empty_like(q), np.empty_like(q)
        for i in range(count):
            near = near_end - q[i] * q[i]
            middle[i] = q[i] * (_horner(near, middle_above) / _horner(near, middle_below))
        for i in range(count):
            roots[i] = math.sqrt(-log(half - abs(q[i])))
        for i in range(count):
            tail[i] = _horner(roots[i] - tail_start, tail_above) / _horner(roots[i] - tail_start, tail_below)
        if has_far_tail:
            for i in range(count):
                if roots[i] > far_start:
                    tail[i] = _horner(roots[i] - far_start, far_above) / _horner(roots[i] - far_start, far_below)
        for i in range(count):
            signed = -tail[i] if q[i] < 0 else tail[i]
            q[i] = (middle[i] if abs(q[i]) <= middle_end else signed) * scale + location

    return replace


_to_normals_float32 = _quantiles("float32", float32, int32)
_to_normals_float64 = _quantiles("float64", float64, int64)


@_inline
def _centered(word: Any) -> Any:
    return (float32(int32(word >> uint32(8))) - float32(2.0**23 - 0.5)) * float32(2.0**-24)


@_compile
def normals_float32(first: Any, second: Any, start: Any, out: Any, location: Any, scale: Any) -> None:
    """``sampling.normals`` in float32, at a location and scale in float32."""
    for begin in range(0, len(out), _PIECE):
        part = out[begin : begin + _PIECE]
        for i in range(len(part) >> 1):
            a, b = _block(first, second, start + uint64((begin >> 1) + i))
            part[2 * i], part[2 * i + 1] = _centered(a), _centered(b)
        _to_normals_float32(part, location, scale)


@_compile
def normals_float64(first: Any, second: Any, start: Any, out: Any, location: Any, scale: Any) -> None:
    """``sampling.normals`` in float64, at a location and scale in float64."""
    for begin in range(0, len(out), _PIECE):
        part = out[begin : begin + _PIECE]
        for i in range(len(part)):
            a, b = _block(first, second, start + uint64(begin + i))
            whole = (float64(a >> uint32(5)) - 2.0**26) * 2.0**26
            part[i] = (whole + (float64(b >> uint32(6)) + 0.5)) * 2.0**-53
        _to_normals_float64(part, location, scale)
