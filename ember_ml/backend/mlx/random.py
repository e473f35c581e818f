"""Random numbers on MLX: from the host for the CPU, by MLX on a GPU and for keys whose values cannot be read."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
from mlx.core import floor, sort, sqrt, where

from ember_ml.backend.mlx.core import DTYPES, from_host, to_host
from ember_ml.random import threefry

HOST = False


def is_host(device: mx.Device | None) -> bool:
    """Whether random numbers for this device are generated in host memory."""
    return (device or mx.default_device()) == mx.Device(mx.cpu)


def is_traced() -> bool:
    """Whether a compiler traces the caller; MLX does not say."""
    return False


def has_double(device: mx.Device | None) -> bool:
    """Whether the device supports float64."""
    return (device or mx.default_device()) == mx.Device(mx.cpu)


def known(x: mx.array) -> Any:
    """Values of ``x`` as a host array, or ``None`` if a compiler or ``vmap`` traces it."""
    try:
        return to_host(x)
    except ValueError:
        return None


def adopt(array: np.ndarray[Any, Any], device: mx.Device | None) -> mx.array:
    """New host array as a tensor, without a copy if possible."""
    return from_host(array)


def cast(x: mx.array, dtype: str) -> mx.array:
    """``x`` in the dtype of that name."""
    return x.astype(DTYPES[dtype])


def view(x: mx.array, dtype: str) -> mx.array:
    """Bits of ``x`` as another dtype of the same size."""
    return x.view(DTYPES[dtype])


def tensor(value: Any, dtype: str, device: mx.Device | None) -> mx.array:
    """Number or nested list of numbers as a tensor."""
    return mx.array(value, DTYPES[dtype])


def positions(start: int, count: int, device: mx.Device | None) -> mx.array:
    """``count`` integers from ``start`` on, in int64."""
    return mx.arange(count, dtype=mx.int64, stream=device) + start


def largest(x: mx.array) -> mx.array:
    """Largest value of each row, as a column."""
    return x.max(-1, keepdims=True)


def cumsum(x: mx.array, axis: int = -1) -> mx.array:
    """Cumulative sums along an axis, by default of each row."""
    return mx.cumsum(x, axis)


def cumprod(x: mx.array) -> mx.array:
    """Cumulative products of each column."""
    return mx.cumprod(x, 0)


def argsort(x: mx.array) -> mx.array:
    """Indices that sort the values, stably."""
    return mx.argsort(x)


def located(sums: mx.array, aims: mx.array) -> mx.array:
    """Number of sums in a row that are <= each of the row's aims, not counting the last sum."""
    return mx.less_equal(sums[:, None, :-1], aims[:, :, None]).astype(mx.int64).sum(-1)


def single(x: mx.array) -> mx.array:
    """``x`` in float32, or unchanged if it is in float64."""
    return x if x.dtype in (mx.float32, mx.float64) else x.astype(mx.float32)


def keys(first: mx.array, second: mx.array) -> mx.array:
    """Keys from their two 32-bit halves, along a last axis of length two."""
    return mx.stack([first, second], -1).astype(mx.uint32)


def spread(x: mx.array, shape: tuple[int, ...]) -> mx.array:
    """Values of ``x``, one for each element of that shape."""
    return mx.broadcast_to(x, shape).reshape(-1)


def pair_of(key: mx.array) -> tuple[mx.array, mx.array]:
    """Both 32-bit halves of a key whose values cannot be read on the host."""
    words = key.astype(mx.uint32)
    return words[0], words[1]


def word(x: mx.array) -> mx.array:
    """Integers below 2**32 in the dtype that holds 32 random bits."""
    return x.astype(mx.uint32)


def words(key: tuple[Any, Any], start: int, count: int, device: mx.Device | None = None) -> mx.array:
    """``count`` random 32-bit integers from number ``start`` on; block ``i`` holds numbers ``2i`` and ``2i + 1``."""
    skipped = start & 1
    return _blocks(key, start >> 1, (count + skipped + 1) // 2, device).view(mx.uint32)[skipped : skipped + count]


def below(key: tuple[Any, Any], start: int, count: int, limit: int, device: mx.Device | None = None) -> mx.array:
    """Whether each of the random 32-bit integers of ``words`` is below ``limit``."""
    return words(key, start, count, device).astype(mx.int64) < limit


def pairs(
    key: tuple[Any, Any], start: int, count: int, device: mx.Device | None = None, offset: mx.array | None = None
) -> tuple[mx.array, mx.array]:
    """Both random 32-bit integers of ``count`` blocks from number ``start + offset`` on."""
    halves = _blocks(key, start, count, device, offset).view(mx.uint32)
    return halves[..., 0::2], halves[..., 1::2]


def _blocks(
    key: tuple[Any, Any], start: int, count: int, device: mx.Device | None, offset: mx.array | None = None
) -> mx.array:
    """Blocks as uint64, whose lower half is the first random integer.

    Compiled code fuses operations into kernels with one output, at most eleven operations deep. On the CPU a C++
    compiler makes each of them, and one that was made before is reused. So the two integers of a block are computed as
    one number, and ``mx.contiguous``, which is never fused, separates steps of two rounds: four different kernels.
    """
    first, second = (mx.array(half, mx.uint32) if isinstance(half, int) else half for half in key)
    keys = first, second, mx.contiguous(mx.contiguous(first ^ second) ^ threefry.parity(0, 0))
    low, high = positions(start & threefry.MASK, count, device), first + (start >> 32)
    if offset is not None:
        low, high = low + (offset & threefry.MASK), (offset >> 32).astype(mx.uint32) + high
    high = (low >> 32).astype(mx.uint32) + mx.contiguous(high)
    state = mx.contiguous(_joined(high, low.astype(mx.uint32) + second))
    for group in range(5):
        rotations = threefry.ROTATIONS[group % 2]
        added = keys[(group + 1) % 3], mx.contiguous(keys[(group + 2) % 3] + (group + 1))
        state = mx.contiguous(_two_rounds(state, *rotations[:2]))
        state = mx.contiguous(_two_rounds(state, *rotations[2:], *added))
    return state


@mx.compile
def _two_rounds(state: mx.array, a: int, b: int, first: Any = 0, second: Any = 0) -> mx.array:
    """Blocks after rounds with these two rotations, and after adding parts of the key to both halves."""
    high, low = state.astype(mx.uint32), (state >> 32).astype(mx.uint32)
    for rotation in (a, b):
        high = high + low
        low = (low << rotation | low >> (32 - rotation)) ^ high
    return _joined(high + first, low + second)


def _joined(first: mx.array, second: mx.array) -> mx.array:
    return second.astype(mx.uint64) << 32 | first.astype(mx.uint64)


def native_words(shape: tuple[int, ...], device: mx.Device | None) -> mx.array:
    """Random 32-bit integers from MLX's generator."""
    halves = [mx.random.randint(0, 1 << 16, shape, mx.uint32, stream=device) for _ in range(2)]
    return mx.left_shift(halves[0], 16) + halves[1]


def native_fractions(count: int, dtype: str, device: mx.Device | None) -> mx.array | None:
    """Uniform numbers in [0, 1) from MLX's generator, or ``None`` for an unsupported dtype."""
    return None if dtype == "float64" else mx.random.uniform(shape=(count,), dtype=DTYPES[dtype], stream=device)


def native_normals(count: int, dtype: str, device: mx.Device | None) -> mx.array | None:
    """Standard normal numbers from MLX's generator, or ``None`` for an unsupported dtype."""
    return None if dtype == "float64" else mx.random.normal((count,), dtype=DTYPES[dtype], stream=device)
