"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def check(path: Path) -> None:
    """Raise the error that ``write`` would raise for a path that names no file, before the work is done."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        # It names the temporary file, which nobody asked for.
        raise type(error)(error.errno, error.strerror, str(path)) from error
    os.close(handle)
    os.unlink(temporary)


def write(path: Path, content: str | bytes) -> None:
    """Put a text, in UTF-8, or bytes into a file: at any moment the file is what it was or what it will be."""
    check(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        os.chmod(temporary, path.stat().st_mode if path.exists() else 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
