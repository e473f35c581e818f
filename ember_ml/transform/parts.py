"""Compiled functions that differentiate on accelerators: what they differentiate is one program, the rest is Python.

The compiler of an engine that traces Python sees the forward pass of such a program before its backward pass, and
decides which intermediate values to keep and which to recompute. In a program with the gradient in it, all are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Compiled = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Here(threading.local):
    """State of a thread."""

    def __init__(self) -> None:
        # Set on the instance from the start: an attribute added while tracing would invalidate the traced program.
        # Whether a function is being compiled as one program, which must not differentiate.
        self.is_whole = False
        # Function that compiles the parts of the running function; ``None`` if it does not run in parts.
        self.compiled: Compiled | None = None


here = _Here()


@contextmanager
def whole() -> Iterator[None]:
    """Context manager in which a function is compiled as one program."""
    before, here.is_whole = here.is_whole, True
    try:
        yield
    finally:
        here.is_whole = before


@contextmanager
def compiled_by(compiled: Compiled | None) -> Iterator[None]:
    """Context manager in which functions that are differentiated are compiled with ``compiled``."""
    before = here.is_whole, here.compiled
    here.is_whole, here.compiled = False, compiled
    try:
        yield
    finally:
        here.is_whole, here.compiled = before


def differentiated(f: Callable[..., Any], engine: Any, tensors: Sequence[Any]) -> Callable[..., Any]:
    """``f``, which is to be differentiated with respect to ``tensors``: compiled, if it is a part of a function."""
    if here.is_whole and engine.is_tracing() and engine.is_better_in_parts(tensors):
        engine.stop_compiler()
    if here.compiled is None or engine.is_differentiated():
        return f
    return here.compiled(f)
