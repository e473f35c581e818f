"""Whether indices are checked before an engine uses them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_depth: ContextVar[int] = ContextVar("ember_ml_unchecked", default=0)


@contextmanager
def unchecked() -> Iterator[None]:
    """A ``with`` block, or decorator, inside which indices are not looked at before they are used.

    Some engines (MLX, PyTorch on a GPU) do not check indices themselves, so Ember ML does, which waits for their
    values. This lifts that check for this thread or task alone; what an index out of range then does is the engine's
    affair.

    >>> from ember_ml.ops import take
    >>> with unchecked():
    ...     take([1.0, 2.0], [1, 0]).tolist()
    [2.0, 1.0]
    """
    shift(1)
    try:
        yield
    finally:
        shift(-1)


def shift(step: int) -> None:
    """Enter or leave a block. A function of its own, so that compilers can be told to run it while they trace."""
    _depth.set(_depth.get() + step)


def is_checked() -> bool:
    """Whether indices are to be checked here and now."""
    return not _depth.get()
