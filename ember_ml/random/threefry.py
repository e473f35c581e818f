"""Random bits that depend on a key and a position alone, and the streams that hand out keys.

Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). A
counter of 64 bits is encrypted under a key of 64 bits to two words of 32 bits. Draws, splits and folds count
in quarters of their own, told apart by the two highest bits of the counter, threads and the further bits of a draw in
the halves of the last one, so that none of them meets another.

State is held in Python integers: a draw from a stream waits for no engine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

Words: TypeAlias = tuple[Any, Any]

MASK = 0xFFFFFFFF
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))

# The parts of the counters: the high word of the first one of each.
DRAWS, SPLITS, FOLDS, THREADS, TURNS = 0, 1 << 30, 2 << 30, 6 << 29, 7 << 29
LIMIT = 1 << 62


def parity(first: Any, second: Any) -> Any:
    """The third word of the key schedule."""
    return first ^ second ^ 0x1BD11BDA


def block(key: Words, high: Any, low: Any) -> Words:
    """The two words that the counters with these words are encrypted to: integers, or tensors of them.

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
    """The two 32-bit words of a key: given as such, or as one integer of 64 bits.

    >>> words(2**32 + 5)
    (1, 5)
    """
    pair = (value >> 32, value & MASK) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(word, int) and 0 <= word <= MASK for word in pair):
        raise ValueError(f"key must be an integer from 0 to 2**64 - 1, or two from 0 to 2**32 - 1, got {value!r}")
    return pair[0], pair[1]


def child(key: Words, quarter: int, number: int) -> Words:
    """Key ``number`` of those that ``quarter`` derives from ``key``."""
    if not 0 <= number < LIMIT:
        raise ValueError(f"keys must be numbered from 0 to 2**62 - 1, got {number}")
    return block(key, quarter | number >> 32, number & MASK)


def fresh_seed() -> int:
    """A seed from the operating system."""
    return int.from_bytes(os.urandom(8), "big")


class Stream:
    """Keys, one after the other: number ``n`` is folded into the stream's own key. Safe to share between threads."""

    def __init__(self, key: tuple[int, int], count: int = 0) -> None:
        self.key = key
        self.count = count
        self._lock = threading.Lock()

    def next(self) -> tuple[int, int]:
        """The next key."""
        with self._lock:
            number = self.count
            self.count += 1
        return child(self.key, FOLDS, number)

    def __getstate__(self) -> dict[str, Any]:
        return {"key": self.key, "count": self.count}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class Block:
    """An open ``stream`` block: its key, which may be a tensor that a compiler traces, and the number of draws."""

    def __init__(self, key: Any, outer: Block | None) -> None:
        self.key = key
        self.count = 0
        self.outer = outer


class Here(threading.local):
    """What differs between threads: the innermost block, the depth of ``native`` blocks, and the own stream."""

    def __init__(self) -> None:
        # On the instance from the start: code that a compiler traces would else find it changed by what it traced.
        self.block: Block | None = None
        self.native = 0
        self.stream: Stream | None = None
        self.epoch = -1
        self.number = 0


here = Here()


class _Process:
    """The seed of the process and the number of threads that have drawn since it was set."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seed = 0
        self.seeded = False
        self.epoch = 0
        self.threads = 0


_process = _Process()


def set_seed(seed: int) -> None:
    """Begin all threads' streams anew: this thread's is number 0, others count on as they draw."""
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
    """A stream for this thread, under the lock."""
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
    """The stream of this thread."""
    if here.stream is None or here.epoch != _process.epoch:
        with _process.lock:
            return _join()
    return here.stream


def seed() -> int:
    """The seed of the process; drawn from the operating system if none was set."""
    own_stream()
    return _process.seed


def draw() -> tuple[int, int]:
    """A key that this thread has not seen before."""
    return own_stream().next()


def position() -> tuple[Block | Stream | None, int]:
    """What this thread draws from next, and how much was drawn from it; ``repeated`` goes back to there."""
    source = here.block or (here.stream if here.epoch == _process.epoch else None)
    return source, 0 if source is None else source.count


def since(source: Block | Stream | None, start: int) -> tuple[Block | Stream | None, int]:
    """A position, also where this thread had drawn nothing then: what it has drawn since is from its own stream."""
    return position()[0] if source is None else source, start


@contextmanager
def repeated(source: Block | Stream | None, start: int) -> Iterator[None]:
    """A ``with`` block inside which draws are those that were made from a position on; then the stream goes on.

    It may stand in another thread, such as the one in which an engine computes gradients.
    """
    if source is None:
        yield  # nothing was drawn
        return
    block, stream, epoch, later = here.block, here.stream, here.epoch, source.count
    if isinstance(source, Block):
        here.block = source
    else:
        here.block, here.stream, here.epoch = None, source, _process.epoch
    source.count = start
    try:
        yield
    finally:
        # The first run may have ended sooner, by an error.
        source.count = max(source.count, later)
        here.block, here.stream, here.epoch = block, stream, epoch


def state() -> dict[str, int]:
    """What ``restore`` needs to go on exactly here."""
    stream = own_stream()
    return {"seed": _process.seed, "thread": here.number, "count": stream.count}


def restore(seed: int, thread: int, count: int) -> None:
    """Go on in this thread where ``state`` was asked for; other threads begin anew if the seed is another."""
    words(seed)
    with _process.lock:
        if seed != _process.seed or not _process.epoch:
            _reseed(seed)
        _process.seeded = True
        _process.threads = max(_process.threads, thread + 1)
        here.number, here.epoch = thread, _process.epoch
        here.stream = Stream(_thread_key(thread), count)


def _after_fork() -> None:
    """A child process draws other numbers than its parent, unless it was told which."""
    _process.lock = threading.Lock()
    if _process.epoch and not _process.seeded:
        _reseed(fresh_seed())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
