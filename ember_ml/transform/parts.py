"""Compiled functions that differentiate: what they differentiate is one program, and the rest runs as Python.

An engine whose compiler traces Python sees the forward pass of a program before its backward pass, and decides which
intermediate values to keep and which to recompute. It cannot decide that for a program with the gradient in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
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


def differentiated(f: Callable[..., Any], engine: Any) -> Callable[..., Any]:
    """``f``, which is to be differentiated: compiled, if it is a part of a compiled function."""
    if here.is_whole and engine.is_tracing():
        engine.stop_compiler()
    if here.compiled is None or engine.is_differentiated():
        return f
    return here.compiled(f)
