"""Robust standard output: it accepts any text, may be closed, and reports write errors before the program exits."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def standard_output() -> Iterator[None]:
    """Accept any text on standard output, and flush it at the end.

    Characters of source lines and paths that its encoding does not support are escaped. A write error is raised here,
    and not when the interpreter exits.
    """
    stream: TextIO | None = sys.stdout
    if stream is None:
        # The parent process has closed it.
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            yield
        return
    try:
        with _lenient(stream):
            yield
    except OSError:
        if _is_stuck(stream):
            # The interpreter flushes again at exit, and would print an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


@contextmanager
def _lenient(stream: TextIO) -> Iterator[None]:
    """Escape characters that a stream cannot encode, and flush it at the end."""
    strictness = stream.errors
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        stream.flush()
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=strictness)


def _is_stuck(stream: TextIO) -> bool:
    """Whether a stream cannot be flushed, because the pipe is broken or the disk is full."""
    try:
        stream.flush()
    except OSError:
        return True
    return False
