"""The exit statuses, and what several commands say."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from emberlint.lint.listing import Unread

CLEAN, FOUND, ERROR, INTERRUPTED, PIPE_BROKEN = 0, 1, 2, 130, 141


def warn(unread: Iterable[Unread]) -> bool:
    """Say what was not checked; whether there is any."""
    lines = [one.warning() for one in unread]
    sys.stderr.write("".join(lines))
    return bool(lines)


def count_files(number: int) -> str:
    """A number of files in words."""
    return f"{number} file" if number == 1 else f"{number} files"
