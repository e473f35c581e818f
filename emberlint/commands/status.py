"""Exit statuses, and messages that several commands print."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from emberlint.lint.listing import Unread

CLEAN, FOUND, ERROR, INTERRUPTED, PIPE_BROKEN = 0, 1, 2, 130, 141


def warn(unread: Iterable[Unread]) -> bool:
    """Print a warning for each path that was not checked; return whether there are any."""
    lines = [one.warning() for one in unread]
    sys.stderr.write("".join(lines))
    return bool(lines)


def count_files(number: int) -> str:
    """``1 file`` or ``N files``."""
    return f"{number} file" if number == 1 else f"{number} files"
