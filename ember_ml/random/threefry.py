"""Counter-based random bits, and the streams that produce keys.

Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). A
64-bit counter is encrypted under a 64-bit key to two 32-bit words. Draws, splits and folds use separate quarters of the
counter range, distinguished by its two highest bits. Threads and the additional bits of a draw use the two halves of
the last quarter. So no two uses share a counter.

State is held in Python integers, so that drawing from a stream does not wait for an engine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

Words: TypeAlias = tuple[Any, Any]

MASK = 0xFFFFFFFF
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))

# High word of the first counter of each part of the range.
DRAWS, SPLITS, FOLDS, THREADS, TURNS = 0, 1 << 30, 2 << 30, 6 << 29, 7 << 29
LIMIT = 1 << 62


def parity(first: Any, second: Any) -> Any:
    """Third word of the key schedule."""
    return first ^ second ^ 0x1BD11BDA


def block(key: Words, high: Any, low: Any) -> Words:
    """Two random words from a key and the two words of a counter, as integers or tensors of integers.

    >>> [hex(word) for word in block((0, 0), 0, 0)]
    ['0x6b200159', '0x99ba4efe']
    """
    first, second = key
    keys = (first, second, parity(first, second))
    high, low = (high + first) & MASK, (low + second) & MASK
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            high = (high + low) & MASK
            low = ((low << rotation) & MASK | low >> (32 - rotation)) ^ high
        high = (high + keys[(group + 1) % 3]) & MASK
        low = (low + keys[(group + 2) % 3] + (group + 1)) & MASK
    return high, low


def words(value: int | Sequence[int]) -> tuple[int, int]:
    """The two 32-bit words of a key, given as such or as one 64-bit integer.

    >>> words(2**32 + 5)
    (1, 5)
    """
    pair = (value >> 32, value & MASK) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(word, int) and 0 <= word <= MASK for word in pair):
        raise ValueError(f"key must be an integer from 0 to 2**64 - 1, or two from 0 to 2**32 - 1, got {value!r}")
    return pair[0], pair[1]


def child(key: Words, quarter: int, number: int) -> Words:
    """Key number ``number`` derived from ``key`` in a quarter of the counter range."""
    checked(number)
    return block(key, quarter | number >> 32, number & MASK)


def checked(number: int) -> int:
    """``number``, if keys can have it."""
    if not 0 <= number < LIMIT:
        raise ValueError(f"keys must be numbered from 0 to 2**62 - 1, got {number}")
    return number


def fresh_seed() -> int:
    """Seed from the operating system."""
    return int.from_bytes(os.urandom(8), "big")


class Stream:
    """Sequence of keys: key ``n`` is ``n`` folded into the key of the stream. Safe to share between threads."""

    def __init__(self, key: tuple[int, int], count: int = 0) -> None:
        self.key = key
        self.count = count
        self._lock = threading.Lock()

    def next(self) -> tuple[int, int]:
        """Next key."""
        with self._lock:
            number = self.count
            self.count += 1
        return child(self.key, FOLDS, number)

    def __getstate__(self) -> dict[str, Any]:
        return {"key": self.key, "count": self.count}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class Rows(NamedTuple):
    """Rows of a larger draw: the number of the first, how many they are, and of how many, if that is known."""

    first: int
    length: int
    of: int | None


class Block:
    """Open ``stream`` block: its key, which may be traced tensors, and its number of draws.

    Args:
        children: the first keys of the block as two tensors, if the key is traced.
    """

    def __init__(self, key: Any, outer: Block | None, children: Words | None = None) -> None:
        self.key = key
        self.children = children
        self.count = 0
        self.outer = outer


class Here(threading.local):
    """State of a thread: the innermost ``stream`` and ``rows``, the depth of ``native`` blocks, and its own stream."""

    def __init__(self) -> None:
        # Set on the instance from the start: an attribute added while tracing would invalidate the traced program.
        self.block: Block | None = None
        self.rows: Rows | None = None
        self.native = 0
        self.stream: Stream | None = None
        self.epoch = -1
        self.number = 0


here = Here()


class _Process:
    """Seed of the process, and number of threads that have drawn since it was set."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seed = 0
        self.seeded = False
        self.epoch = 0
        self.threads = 0


_process = _Process()


def set_seed(seed: int) -> None:
    """Restart the streams of all threads. This thread becomes number 0; others are numbered when they first draw."""
    words(seed)
    with _process.lock:
        _reseed(seed)
        _process.seeded = True
        _join()


def _reseed(seed: int) -> None:
    _process.seed = seed
    _process.epoch += 1
    _process.threads = 0


def _join() -> Stream:
    """New stream of this thread. The caller holds the lock."""
    if not _process.epoch:
        _reseed(fresh_seed())
    here.number = _process.threads
    _process.threads += 1
    here.epoch = _process.epoch
    here.stream = Stream(_thread_key(here.number))
    return here.stream


def _thread_key(number: int) -> tuple[int, int]:
    key = words(_process.seed)
    return key if number == 0 else child(key, THREADS, number)


def own_stream() -> Stream:
    """Stream of this thread."""
    if here.stream is None or here.epoch != _process.epoch:
        with _process.lock:
            return _join()
    return here.stream


def seed() -> int:
    """Seed of the process; from the operating system if none was set."""
    own_stream()
    return _process.seed


def current_rows() -> Rows | None:
    """Rows of the innermost block of ``rows`` in this thread."""
    return here.rows


def draw() -> tuple[int, int]:
    """Next key of the stream of this thread."""
    return own_stream().next()


Position: TypeAlias = tuple[Block | Stream | None, int, Rows | None, int]


def position() -> Position:
    """Source of draws of this thread, its number of draws, its rows and depth of ``native``, for ``repeated``."""
    source = here.block or (here.stream if here.epoch == _process.epoch else None)
    return source, 0 if source is None else source.count, here.rows, here.native


def since(source: Block | Stream | None, start: int, rows: Rows | None, native: int) -> Position:
    """Position to repeat from. A thread without a source at the time has since drawn from its own stream."""
    return position()[0] if source is None else source, start, rows, native


@contextmanager
def repeated(source: Block | Stream | None, start: int, rows: Rows | None, native: int) -> Iterator[None]:
    """Context manager that repeats the draws made from a position on. Afterwards the stream continues.

    It may be used in another thread, such as one in which an engine computes gradients. The engine repeats the draws
    of its own generator itself.
    """
    block, stream, epoch, own, depth = here.block, here.stream, here.epoch, here.rows, here.native
    later = 0 if source is None else source.count
    if isinstance(source, Block):
        here.block = source
    elif source is not None:
        here.block, here.stream, here.epoch = None, source, _process.epoch
    if source is not None:
        source.count = start
    here.rows, here.native = rows, native
    try:
        yield
    finally:
        if source is not None:
            # The first run may have drawn less, if it ended with an error.
            source.count = max(source.count, later)
        here.block, here.stream, here.epoch, here.rows, here.native = block, stream, epoch, own, depth


@contextmanager
def without_native() -> Iterator[None]:
    """Context manager in which draws are those of the stream, also inside ``native``."""
    depth, here.native = here.native, 0
    try:
        yield
    finally:
        here.native = depth


def state() -> dict[str, int]:
    """State of the stream of this thread, for ``restore``."""
    stream = own_stream()
    return {"seed": _process.seed, "thread": here.number, "count": stream.count}


def restore(seed: int, thread: int, count: int) -> None:
    """Restore a ``state`` in this thread. If the seed differs, the streams of other threads restart."""
    words(seed)
    with _process.lock:
        if seed != _process.seed or not _process.epoch:
            _reseed(seed)
        _process.seeded = True
        _process.threads = max(_process.threads, thread + 1)
        here.number, here.epoch = thread, _process.epoch
        here.stream = Stream(_thread_key(thread), count)


def _after_fork() -> None:
    """Draw a new seed in a child process, unless one was set."""
    _process.lock = threading.Lock()
    if _process.epoch and not _process.seeded:
        _reseed(fresh_seed())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
