"""Random numbers on NumPy: Threefry's random bits, computed within the CPU cache, and the primitives of samplers.

Random numbers in host memory are generated here for every engine, which takes them over with ``adopt``. With Numba
installed, the loops of ``kernels.py`` generate the same numbers faster.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy import floor, sort, sqrt, where

from ember_ml.backend.numpy.core import DTYPES
from ember_ml.random.sampling import Source, fractions, fractions_between, normals, standard, trials
from ember_ml.random.threefry import MASK, ROTATIONS, block, parity

_Array = np.ndarray[Any, Any]
HOST = True
_here = sys.modules[__name__]

# Number of blocks encrypted at once: three arrays of them fit in the L2 cache.
_AT_ONCE = 1 << 15

# Up to this many blocks, Python integers are faster.
_FEW = 4

# Draws of at least this many numbers are worth compiling a loop; smaller ones use it if it is compiled already.
_MANY = 1 << 16


def is_host(device: Any) -> bool:
    """Whether random numbers for this device are generated in host memory."""
    return True


def is_traced() -> bool:
    """Whether a compiler traces the caller."""
    return False


def has_double(device: Any) -> bool:
    """Whether the device supports float64."""
    return True


def known(x: Any) -> Any:
    """Values of ``x`` as a host array, or ``None`` if a compiler or ``vmap`` traces it."""
    while hasattr(x, "_value"):
        # A traced array.
        x = x._value
    return np.asarray(x)


def adopt(array: _Array, device: Any) -> _Array:
    """New host array as a tensor, without a copy if possible."""
    return array


def cast(x: Any, dtype: str) -> Any:
    """``x`` in the dtype of that name."""
    return x.astype(DTYPES[dtype], copy=False)


def view(x: Any, dtype: str) -> Any:
    """Bits of ``x`` as another dtype of the same size."""
    return x.view(DTYPES[dtype])


def tensor(value: Any, dtype: str, device: Any) -> Any:
    """Number or nested list of numbers as a tensor."""
    return np.asarray(value, DTYPES[dtype])


def positions(start: int, count: int, device: Any) -> _Array:
    """``count`` integers from ``start`` on, in int64."""
    return np.arange(start, start + count)


def largest(x: Any) -> Any:
    """Largest value of each row, as a column."""
    return x.max(-1, keepdims=True)


def cumsum(x: Any) -> Any:
    """Cumulative sums of each row."""
    return x.cumsum(-1)


def argsort(x: Any) -> Any:
    """Indices that sort the values, stably."""
    return np.argsort(x, kind="stable")


def located(sums: Any, aims: Any) -> Any:
    """Number of sums in a row that are <= each of the row's aims, not counting the last sum."""
    if len(sums) > sums.shape[1]:
        count = np.zeros(aims.shape, np.int64)
        for column in range(sums.shape[1] - 1):
            count += sums[:, column : column + 1] <= aims
        return count
    rows = [np.searchsorted(s[:-1], a, side="right") for s, a in zip(sums, aims, strict=True)]
    return np.stack(rows) if rows else np.zeros(aims.shape, np.int64)


def merged(condition: Any, first: Any, second: Any) -> Any:
    """Values of ``first`` where the condition holds and of ``second`` where it does not, in order."""
    out = np.empty(len(condition), first.dtype)
    out[condition] = first
    out[~condition] = second
    return out


def single(x: Any) -> Any:
    """``x`` in float32, or unchanged if it is in float64."""
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)


def keys(first: Any, second: Any) -> Any:
    """Keys from their two 32-bit halves, along a last axis of length two."""
    return np.stack((first, second), -1).astype(np.uint32)


def spread(x: Any, shape: tuple[int, ...]) -> _Array:
    """Values of ``x``, one for each element of that shape."""
    return np.broadcast_to(x, shape).reshape(-1)


def word(x: Any) -> Any:
    """Integers below 2**32 in the dtype that holds 32 random bits."""
    return np.asarray(x).astype(np.uint32)


def words(key: tuple[int, int], start: int, count: int, device: Any = None) -> _Array:
    """``count`` random 32-bit integers from number ``start`` on; block ``i`` holds numbers ``2i`` and ``2i + 1``."""
    skipped = start & 1
    out = np.empty(count + skipped + (count + skipped & 1), np.uint32)
    kernel = _kernel("words", count)
    if kernel is None:
        _encrypt(key, start >> 1, out[0::2], out[1::2])
    else:
        kernel(*_kernel_arguments(key, start >> 1), out)
    return out[skipped : skipped + count]


def below(key: tuple[int, int], start: int, count: int, limit: int, device: Any = None) -> _Array:
    """Whether each of the random 32-bit integers of ``words`` is below ``limit``."""
    return words(key, start, count) < np.uint64(limit)


def _singles(key: tuple[int, int], count: int) -> _Array:
    """Uniform numbers in [0, 1) in float32, as from ``fractions``, written over the random bits in place."""
    words = np.empty(count + (count & 1), np.uint32)
    made = words.view(np.float32)
    for start in range(0, len(words), 2 * _AT_ONCE):
        here = words[start : start + 2 * _AT_ONCE]
        _encrypt(key, start >> 1, here[0::2], here[1::2])
        np.right_shift(here, _SHIFTS[8], here)
        # The sign bit is clear, and converting signed integers is faster.
        buffer = _scratch.single[: len(here)]
        np.copyto(buffer, here.view(np.int32), casting="unsafe")
        np.multiply(buffer, _UNIT, made[start : start + 2 * _AT_ONCE])
    return made[:count]


def pairs(key: tuple[int, int], start: int, count: int, device: Any = None) -> tuple[_Array, _Array]:
    """Both random 32-bit integers of ``count`` blocks from number ``start`` on."""
    out = np.empty((2, count), np.uint32)
    kernel = _kernel("pairs", count)
    if kernel is None:
        _encrypt(key, start, out[0], out[1])
    else:
        kernel(*_kernel_arguments(key, start), out[0], out[1])
    return out[0], out[1]


_ready: dict[str, Any] = {}


def _kernel(name: str, count: int) -> Any:
    """Compiled loop of that name, or ``None`` if it is not compiled yet and the draw is small, or without Numba."""
    kernel = _ready.get(name)
    if kernel is None and count >= _MANY:
        kernel = _ready[name] = getattr(_kernels(), name, None)
    return kernel


@cache
def _kernels() -> Any:
    try:
        from ember_ml.backend.numpy import kernels
    except ImportError:
        return None
    return kernels


def _kernel_arguments(key: tuple[int, int], start: int) -> tuple[Any, ...]:
    """Key and number of the first block, as arguments of the compiled loops."""
    return np.uint32(key[0]), np.uint32(key[1]), np.uint64(start)


def _fused(sampler: Callable[..., Any], key: tuple[int, int], count: int, parameters: Sequence[Any]) -> _Array | None:
    """First ``count`` elements from a compiled loop for the sampler, or ``None`` if there is none."""
    name, dtype = "", ""
    rest: Sequence[Any] = ()
    if sampler is fractions:
        (dtype,) = parameters
        name = f"fractions_{dtype}"
    elif sampler is fractions_between:
        dtype, wide, *rest = parameters
        name = f"between_{dtype}" if wide == "float64" else ""
    elif sampler is standard and parameters[0] is normals:
        _, location, scale, dtype = parameters
        name, rest = f"normals_{dtype}", (DTYPES[dtype].type(location), DTYPES[dtype].type(scale))
    elif sampler is trials and isinstance(parameters[0], float | int):
        name, dtype, rest = "trials", "bool", (np.uint64(int(parameters[0] * 2.0**32)),)
    kernel = _kernel(name, count) if name else None
    if kernel is None:
        return None
    # A block makes two numbers of 32 bits.
    out = np.empty(count if dtype == "float64" else count + (count & 1), DTYPES[dtype])
    kernel(*_kernel_arguments(key, 0), out, *rest)
    return out[:count]


def _encrypt(key: tuple[int, int], start: int, first: _Array, second: _Array) -> None:
    """Write both random 32-bit integers of the blocks from number ``start`` on to two arrays."""
    count = len(first)
    if count <= _FEW:
        for i in range(count):
            first[i], second[i] = block(key, start + i >> 32, start + i & MASK)
        return
    done = 0
    while done < count:
        high = start + done >> 32
        # The low 32 bits of the counters do not wrap within one step.
        many = min(_AT_ONCE, count - done, (high + 1 << 32) - (start + done))
        _encrypt_some(key, high, start + done & MASK, first[done : done + many], second[done : done + many])
        done += many


class _Scratch(threading.local):
    """Work arrays of a thread, and the first counters."""

    def __init__(self) -> None:
        self.x, self.y, self.t, self.counters = (np.arange(_AT_ONCE, dtype=np.uint32) for _ in range(4))
        self.single = np.empty(2 * _AT_ONCE, np.float32)


_scratch = _Scratch()


def _encrypt_some(key: tuple[int, int], high: int, low: int, first: _Array, second: _Array) -> None:
    add, left, right, join, flip = np.add, np.left_shift, np.right_shift, np.bitwise_or, np.bitwise_xor
    count = len(first)
    x, y, t = _scratch.x[:count], _scratch.y[:count], _scratch.t[:count]
    keys = (*key, parity(*key))
    add(_scratch.counters[:count], _constant(low + key[1]), y)
    x.fill(high + key[0] & MASK)
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            add(x, y, x)
            left(y, _SHIFTS[rotation], t)
            right(y, _SHIFTS[32 - rotation], y)
            join(y, t, y)
            flip(y, x, y)
        last = group == 4
        add(x, _constant(keys[(group + 1) % 3]), first if last else x)
        add(y, _constant(keys[(group + 2) % 3] + group + 1), second if last else y)


def _constant(value: int) -> _Array:
    return np.asarray(value & MASK, np.uint32)


_SHIFTS = [_constant(i) for i in range(33)]
_UNIT = np.asarray(2.0**-24, np.float32)


def in_chunks(
    sampler: Callable[..., Any], key: tuple[int, int], count: int, parameters: Sequence[Any], first: int = 0
) -> _Array:
    """``count`` elements from a sampler from number ``first`` on, generated in parts that fit in the CPU cache.

    A parameter with a shape has one value for each element; others are passed unchanged.
    """
    # Compiled loops begin with element 0.
    out = None if first else _fused(sampler, key, count, parameters)
    if out is not None:
        return out
    if sampler is fractions and parameters[0] == "float32" and not first:
        return _singles(key, count)
    for start in range(0, count, 2 * _AT_ONCE):
        stop = min(count, start + 2 * _AT_ONCE)
        here = [p[start:stop] if getattr(p, "shape", ()) else p for p in parameters]
        part: _Array = sampler(Source(_here, key, first + start, stop - start, None), *here)
        if out is None:
            if stop == count:
                return part
            out = np.empty(count, part.dtype)
        out[start:stop] = part
    return at_once(sampler, key, 0, parameters) if out is None else out


def at_once(
    sampler: Callable[..., Any], key: tuple[int, int], count: int, parameters: Sequence[Any], first: int = 0
) -> _Array:
    """``count`` elements from a sampler from number ``first`` on, generated at once."""
    made: _Array = sampler(Source(_here, key, first, count, None), *parameters)
    return made


def native_words(shape: tuple[int, ...], device: Any) -> _Array:
    """Random 32-bit integers from NumPy's generator."""
    return _native().integers(0, 1 << 32, shape, np.uint32)


def native_fractions(count: int, dtype: str, device: Any) -> Any:
    """Uniform numbers in [0, 1) from NumPy's generator, or ``None`` for an unsupported dtype."""
    return _native().random(count, DTYPES[dtype]) if dtype in ("float32", "float64") else None


def native_normals(count: int, dtype: str, device: Any) -> Any:
    """Standard normal numbers from NumPy's generator, or ``None`` for an unsupported dtype."""
    return _native().standard_normal(count, DTYPES[dtype]) if dtype in ("float32", "float64") else None


def _native() -> np.random.Generator:
    global _generator
    if _generator is None:
        _generator = np.random.default_rng()
    return _generator


_generator: np.random.Generator | None = None
