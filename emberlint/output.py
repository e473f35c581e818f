"""Standard output as a program needs it: it takes any text, may be closed, and fails while the program still runs."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def standard_output() -> Iterator[None]:
    """Standard output that takes any text and is written out at the end.

    Source lines and paths may hold what its encoding does not have, which is escaped. An error of writing is raised
    here, and not when the interpreter ends.
    """
    stream: TextIO | None = sys.stdout
    if stream is None:
        # Whoever started this has closed it.
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            yield
        return
    try:
        with _lenient(stream):
            yield
    except OSError:
        if _is_stuck(stream):
            # The interpreter flushes once more at exit, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


@contextmanager
def _lenient(stream: TextIO) -> Iterator[None]:
    """A stream that escapes what it cannot encode, and is flushed at the end."""
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
    """Whether what was written cannot be put out: the pipe is broken, or the disk is full."""
    try:
        stream.flush()
    except OSError:
        return True
    return False
