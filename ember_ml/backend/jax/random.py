"""Random numbers on JAX: from the host for the CPU, by one compiled program elsewhere and for keys that are traced."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.numpy import argsort, floor, sort, sqrt, where

from ember_ml.backend.jax.core import DTYPES, from_host, is_compiling, static
from ember_ml.backend.jax.core import cast as _cast
from ember_ml.backend.jax.core import is_traced as _is_traced
from ember_ml.random import threefry

HOST = False


def is_host(device: jax.Device | None) -> bool:
    """Whether random numbers for this device are generated in host memory."""
    return (device is None or device.platform == "cpu") and not is_compiling()


def is_traced() -> bool:
    """Whether a compiler traces the caller."""
    return is_compiling()


def has_double(device: jax.Device | None) -> bool:
    """Whether the device supports float64."""
    return "float64" in DTYPES


def known(x: Array) -> Any:
    """Values of ``x`` as a host array, or ``None`` if a transform traces it."""
    return None if _is_traced(x) else np.asarray(x)


def adopt(array: np.ndarray[Any, Any], device: jax.Device | None) -> Array:
    """New host array as a tensor, without a copy if possible."""
    return jax.device_put(array, device)


def cast(x: Array, dtype: str) -> Array:
    """``x`` in the dtype of that name."""
    return _cast(x, DTYPES[dtype])


def view(x: Array, dtype: str) -> Array:
    """Bits of ``x`` as another dtype of the same size."""
    return lax.bitcast_convert_type(x, DTYPES[dtype])


def tensor(value: Any, dtype: str, device: jax.Device | None) -> Array:
    """Number or nested list of numbers as a tensor."""
    return from_host(np.asarray(value, DTYPES[dtype]), device)


def positions(start: int, count: int, device: jax.Device | None) -> Array:
    """``count`` integers from ``start`` on, in int64."""
    return jnp.arange(start, start + count, dtype=DTYPES["int64"], device=device)


def largest(x: Array) -> Array:
    """Largest value of each row, as a column."""
    return x.max(-1, keepdims=True)


def cumsum(x: Array, axis: int = -1) -> Array:
    """Cumulative sums along an axis, by default of each row."""
    return jnp.cumsum(x, axis, dtype=x.dtype)


def cumprod(x: Array) -> Array:
    """Cumulative products of each column."""
    return jnp.cumprod(x, 0, dtype=x.dtype)


def located(sums: Array, aims: Array) -> Array:
    """Number of sums in a row that are <= each of the row's aims, not counting the last sum."""
    return jnp.sum(sums[:, None, :-1] <= aims[:, :, None], axis=-1)


def single(x: Array) -> Array:
    """``x`` in float32, or unchanged if it is in float64."""
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)


def keys(first: Array, second: Array) -> Array:
    """Keys from their two 32-bit halves, along a last axis of length two."""
    return jnp.stack([first, second], -1).astype(np.uint32)


def spread(x: Array, shape: tuple[int, ...]) -> Array:
    """Values of ``x``, one for each element of that shape."""
    return jnp.broadcast_to(x, shape).reshape(-1)


def pair_of(key: Array) -> tuple[Array, Array]:
    """Both 32-bit halves of a key whose values cannot be read on the host."""
    halves = key.astype(np.uint32)
    return halves[0], halves[1]


def word(x: Array) -> Array:
    """Integers below 2**32 in the dtype that holds 32 random bits."""
    return x.astype(np.uint32)


def words(key: tuple[Any, Any], start: int, count: int, device: jax.Device | None = None) -> Array:
    """``count`` random 32-bit integers from number ``start`` on; block ``i`` holds numbers ``2i`` and ``2i + 1``."""
    skipped = start & 1
    pair = pairs(key, start >> 1, (count + skipped + 1) // 2, device)
    return jnp.stack(pair, -1).reshape(*pair[0].shape[:-1], -1)[..., skipped : skipped + count]


def below(key: tuple[Any, Any], start: int, count: int, limit: int, device: jax.Device | None = None) -> Array:
    """Whether each of the random 32-bit integers of ``words`` is below ``limit``."""
    return words(key, start, count, device).astype(np.int64) < limit


def pairs(
    key: tuple[Any, Any], start: int, count: int, device: jax.Device | None = None, offset: Array | None = None
) -> tuple[Array, Array]:
    """Both random 32-bit integers of ``count`` blocks from number ``start + offset`` on."""
    first, second = (jax.device_put(np.uint32(half), device) if isinstance(half, int) else half for half in key)
    return _blocks(first, second, np.uint64(start), np.int64(0) if offset is None else offset, count=count)


@static("count")
def _blocks(first: Array, second: Array, start: Any, offset: Any, count: int) -> tuple[Array, Array]:
    """Blocks of Threefry from number ``start + offset`` on."""
    first, second = first.astype(np.uint32), second.astype(np.uint32)
    places = jnp.arange(count, dtype=np.uint64) + start + lax.convert_element_type(offset, np.uint64)
    keys = first, second, first ^ second ^ np.uint32(threefry.parity(0, 0))
    high, low = (places >> 32).astype(np.uint32) + first, places.astype(np.uint32) + second
    for group in range(5):
        for rotation in threefry.ROTATIONS[group % 2]:
            high = high + low
            low = (low << rotation | low >> (32 - rotation)) ^ high
        high = high + keys[(group + 1) % 3]
        low = low + keys[(group + 2) % 3] + np.uint32(group + 1)
    return high, low


def native_words(shape: tuple[int, ...], device: jax.Device | None) -> Array:
    """Random 32-bit integers from JAX's generator."""
    return jax.device_put(jax.random.bits(_native_key(), shape, np.uint32), device)


def native_fractions(count: int, dtype: str, device: jax.Device | None) -> Array | None:
    """Uniform numbers in [0, 1) from JAX's generator."""
    return jax.device_put(jax.random.uniform(_native_key(), (count,), DTYPES[dtype]), device)


def native_normals(count: int, dtype: str, device: jax.Device | None) -> Array | None:
    """Standard normal numbers from JAX's generator."""
    return jax.device_put(jax.random.normal(_native_key(), (count,), DTYPES[dtype]), device)


def _native_key() -> Array:
    """New key for JAX's generator, which itself has no state; the first is from the operating system."""
    return jax.random.fold_in(jax.random.key(_SEED), next(_count))


_SEED = threefry.fresh_seed() >> 1
_count = itertools.count()
