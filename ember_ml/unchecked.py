"""Indices taken on trust."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_checked: ContextVar[bool] = ContextVar("ember_ml_checked", default=True)


@contextmanager
def unchecked() -> Iterator[None]:
    """A ``with`` block, or decorator, inside which indices are not looked at before they are used.

    Some engines (MLX, PyTorch on a GPU) do not check indices themselves, so Ember ML does, which waits for their values.
    This lifts that check for this thread or task alone; what an index out of range then does is the engine's affair.

    >>> from ember_ml.ops import take
    >>> with unchecked():
    ...     take([1.0, 2.0], [1, 0]).tolist()
    [2.0, 1.0]
    """
    token = _checked.set(False)
    try:
        yield
    finally:
        _checked.reset(token)


def is_checked() -> bool:
    """Whether indices are to be checked here and now."""
    return _checked.get()
