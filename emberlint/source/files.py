"""Files on disk: nonblocking reads, atomic writes."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Any

# The syntax tree of a larger source may not fit into memory.
LARGEST = 1 << 26
_LEAST = 1 << 16
_SPECIAL = {
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def read(path: str, limit: int = LARGEST) -> bytes:
    """Bytes of a regular file; ``OSError`` for anything else, and for a file of more than ``limit`` bytes.

    It never blocks, because a file may have become a FIFO since it was listed. A growing file is read up to about its
    size when it was opened.
    """
    with open(path, "rb", opener=_open_nonblocking) as file:
        status = os.fstat(file.fileno())
        require_regular(path, status, limit)
        # Some file systems report size 0 for files that have content.
        return file.read(max(status.st_size, _LEAST))


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def require_regular(path: str, status: os.stat_result, limit: int = LARGEST) -> None:
    """Raise ``OSError`` unless ``status`` is that of a regular file of at most ``limit`` bytes."""
    if not stat.S_ISREG(status.st_mode):
        kind = _SPECIAL.get(stat.S_IFMT(status.st_mode), "unknown type")
        raise OSError(errno.EINVAL, f"Not a regular file ({kind})", path)
    if status.st_size > limit:
        raise OSError(errno.EFBIG, f"Larger than {limit >> 20} MiB", path)


def read_json(path: str) -> Any:
    """Value of a JSON file; ``OSError`` if it cannot be read, ``ValueError`` if it is not JSON."""
    import json

    try:
        return json.loads(read(path, sys.maxsize))
    except RecursionError as error:
        raise ValueError("too deeply nested") from error


def write(path: str, data: bytes) -> None:
    """Replace a file's content atomically; ``OSError`` if it cannot be written."""
    from emberlint import atomic

    try:
        atomic.write(path, data)
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", path) from error
