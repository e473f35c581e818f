"""Random words that depend on a key and a position alone: Threefry-2x32 with 20 rounds, on every engine.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). Element ``i`` is made of the block
whose counter is ``i`` itself, so that any part of a stream can be computed without the rest. Words are held in int64,
since not every engine can add in uint32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from ember_ml.dtypes import as_dtype, default_float
from ember_ml.ops import bitwise, creation, dtypes, manipulation
from ember_ml.ops import math as arithmetic
from ember_ml.types import DeviceLike, DTypeLike, Shape, Tensor

Key: TypeAlias = int | Sequence[int]

_MASK = 0xFFFFFFFF
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def bits(key: Key, count: int, *, device: DeviceLike | None = None) -> Tensor:
    """``count`` words of 32 random bits, as int64; the same on every engine.

    >>> [hex(word) for word in bits(7, 2).tolist()]
    ['0xac91290b', '0xf9807e00']
    """
    first, second = block(key, *_counters(count, device))
    return bitwise.bitwise_xor(first, second)


def uniform(key: Key, shape: Shape = (), dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """Numbers in [0, 1), all multiples of one power of two equally likely; the same on every engine.

    >>> uniform(7, 2, "float16").tolist()
    [0.673828125, 0.974609375]
    """
    digits, precision, kind = _digits(key, shape, dtype, device)
    return arithmetic.multiply(dtypes.cast(digits, kind), 2.0**-precision)


def normal(key: Key, shape: Shape = (), dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """Numbers from the standard normal distribution, by inversion; equal on all engines but for a few roundings.

    >>> [round(x, 3) for x in normal(7, 2).tolist()]
    [0.451, 1.953]
    """
    digits, precision, kind = _digits(key, shape, dtype, device)
    # Odd multiples of the unit: symmetric, exact, and never -1 or 1.
    odd = arithmetic.add(arithmetic.multiply(digits, 2), 1 - 2**precision)
    return arithmetic.multiply(
        arithmetic.erfinv(arithmetic.multiply(dtypes.cast(odd, kind), 2.0**-precision)), math.sqrt(2)
    )


def block(key: Key, high: Any, low: Any) -> tuple[Any, Any]:
    """The two words that the counters with these words are encrypted to."""
    first, second = words(key)
    keys = (first, second, 0x1BD11BDA ^ first ^ second)
    high, low = arithmetic.add(high, first), _low(arithmetic.add(low, second))
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            high = arithmetic.add(high, low)
            low = _low(bitwise.bitwise_xor(high, _rotated(low, rotation)))
        # The first word may carry: it takes part in no shift, and 20 sums do not reach the sign.
        high = arithmetic.add(high, keys[(group + 1) % 3])
        low = _low(arithmetic.add(low, keys[(group + 2) % 3] + group + 1))
    return _low(high), low


def words(key: Key) -> tuple[int, int]:
    """The two 32-bit words of a key: given as such, or as one integer of 64 bits."""
    pair = (key >> 32, key & _MASK) if isinstance(key, int) else tuple(key)
    if len(pair) != 2 or not all(isinstance(word, int) and 0 <= word <= _MASK for word in pair):
        raise ValueError(f"a key is an integer from 0 to 2**64 - 1, or two from 0 to 2**32 - 1, not {key!r}")
    return pair[0], pair[1]


def _low(x: Any) -> Any:
    return bitwise.bitwise_and(x, _MASK)


def _rotated(x: Any, count: int) -> Any:
    """A word rotated to the left, with bits above it that are yet to be cut off."""
    return bitwise.bitwise_or(bitwise.bitwise_left_shift(x, count), bitwise.bitwise_right_shift(x, 32 - count))


def _counters(count: int, device: DeviceLike | None) -> tuple[Any, Any]:
    places = creation.arange(count, dtype="int64", device=device)
    return bitwise.bitwise_right_shift(places, 32), bitwise.bitwise_and(places, _MASK)


def _digits(key: Key, shape: Shape, dtype: DTypeLike | None, device: DeviceLike | None) -> tuple[Any, int, Any]:
    """Random integers with as many bits as the dtype is exact to, that number of bits, and the dtype."""
    kind = default_float() if dtype is None else as_dtype(dtype)
    precision = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}.get(kind.name)
    if precision is None:
        raise TypeError(f"random fractions have a real floating dtype, not {kind.name}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = math.prod(shape)
    if precision <= 32:
        digits = bitwise.bitwise_right_shift(bits(key, count, device=device), 32 - precision)
    else:
        high, low = block(key, *_counters(count, device))
        digits = bitwise.bitwise_or(bitwise.bitwise_left_shift(high, 21), bitwise.bitwise_right_shift(low, 11))
    return manipulation.reshape(digits, shape), precision, kind
