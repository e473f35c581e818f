"""Random numbers: made on the host for the CPU, and in MLX's own integers on a GPU and for keys not known yet."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
from mlx.core import floor, sort, sqrt, where

from ember_ml.backend.mlx.core import DTYPES, from_host, to_host
from ember_ml.random import threefry

HOST = False


def is_host(device: mx.Device | None) -> bool:
    """Whether draws for this device are made in host memory."""
    return (device or mx.default_device()) == mx.Device(mx.cpu)


def is_traced() -> bool:
    """Whether a compiler is known to trace."""
    return False


def has_double(device: mx.Device | None) -> bool:
    """Whether the device computes in float64."""
    return (device or mx.default_device()) == mx.Device(mx.cpu)


def known(x: mx.array) -> Any:
    """The values of ``x`` as a host array, or ``None`` where a compiler or ``vmap`` traces, and there are none."""
    try:
        return to_host(x)
    except ValueError:
        return None


def adopt(array: np.ndarray[Any, Any], device: mx.Device | None) -> mx.array:
    """A fresh host array as a tensor, without a copy where the engine allows it."""
    return from_host(array)


def cast(x: mx.array, dtype: str) -> mx.array:
    """``x`` in the dtype of that name."""
    return x.astype(DTYPES[dtype])


def view(x: mx.array, dtype: str) -> mx.array:
    """The bits of ``x`` as another dtype of the same size."""
    return x.view(DTYPES[dtype])


def tensor(value: Any, dtype: str, device: mx.Device | None) -> mx.array:
    """A number or a nested list of them as a tensor."""
    return mx.array(value, DTYPES[dtype])


def positions(start: int, count: int, device: mx.Device | None) -> mx.array:
    """The integers from ``start`` on, in int64."""
    return mx.arange(count, dtype=mx.int64, stream=device) + start


def largest(x: mx.array) -> mx.array:
    """The largest value in each row, as a column."""
    return x.max(-1, keepdims=True)


def cumsum(x: mx.array, axis: int = -1) -> mx.array:
    """Sums of each row up to every column, or the other way."""
    return mx.cumsum(x, axis)


def cumprod(x: mx.array) -> mx.array:
    """Products of each column up to every row."""
    return mx.cumprod(x, 0)


def argsort(x: mx.array) -> mx.array:
    """The places of the values from the smallest to the largest, equal ones in order."""
    return mx.argsort(x)


def located(sums: mx.array, aims: mx.array) -> mx.array:
    """How many of the sums in a row are not larger than each of the row's aims; the last one is not counted."""
    return mx.less_equal(sums[:, None, :-1], aims[:, :, None]).astype(mx.int64).sum(-1)


def single(x: mx.array) -> mx.array:
    """``x`` in float32, unless it is in float64."""
    return x if x.dtype in (mx.float32, mx.float64) else x.astype(mx.float32)


def keys(first: mx.array, second: mx.array) -> mx.array:
    """Keys of these words, along a last axis of two."""
    return mx.stack([first, second], -1).astype(mx.uint32)


def spread(x: mx.array, shape: tuple[int, ...]) -> mx.array:
    """The values of ``x``, one for each element of that shape."""
    return mx.broadcast_to(x, shape).reshape(-1)


def pair_of(key: mx.array) -> tuple[mx.array, mx.array]:
    """The two words of a key that no host integers are known of."""
    words = key.astype(mx.uint32)
    return words[0], words[1]


def word(x: mx.array) -> mx.array:
    """Integers below 2**32 in the dtype that words are held in."""
    return x.astype(mx.uint32)


def words(key: tuple[Any, Any], start: int, count: int, device: mx.Device | None = None) -> mx.array:
    """``count`` words from number ``start`` on: word ``i`` is one of the two of block ``i // 2``."""
    skipped = start & 1
    first, second = pairs(key, start >> 1, (count + skipped + 1) // 2, device)
    return mx.stack([first, second], -1).reshape(-1)[skipped : skipped + count]


def pairs(key: tuple[Any, Any], start: int, count: int, device: mx.Device | None = None) -> tuple[mx.array, mx.array]:
    """Both words of ``count`` blocks from number ``start`` on."""
    counters = positions(start, count, device)
    high, low = (counters >> 32).astype(mx.uint32), (counters & threefry.MASK).astype(mx.uint32)
    first, second = threefry.block(key, high, low)
    return first, second


def native_words(shape: tuple[int, ...], device: mx.Device | None) -> mx.array:
    """Words of MLX's own generator."""
    halves = [mx.random.randint(0, 1 << 16, shape, mx.uint32, stream=device) for _ in range(2)]
    return mx.left_shift(halves[0], 16) + halves[1]


def native_fractions(count: int, dtype: str, device: mx.Device | None) -> mx.array | None:
    """Numbers in [0, 1) of MLX's own generator, or ``None`` for a dtype that it does not make."""
    return None if dtype == "float64" else mx.random.uniform(shape=(count,), dtype=DTYPES[dtype], stream=device)


def native_normals(count: int, dtype: str, device: mx.Device | None) -> mx.array | None:
    """Standard normal numbers of MLX's own generator, or ``None`` for a dtype that it does not make."""
    return None if dtype == "float64" else mx.random.normal((count,), dtype=DTYPES[dtype], stream=device)
