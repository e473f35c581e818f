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
    if _is_special(path):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except FileExistsError as error:
        # It stands where a folder would have to be made.
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from error
    except OSError as error:
        # It names the temporary file, which nobody asked for.
        raise type(error)(error.errno, error.strerror, str(path)) from error
    os.close(handle)
    os.unlink(temporary)


def write(path: Path, content: str | bytes) -> None:
    """Put a text, in UTF-8, or bytes into a file: at any moment the file is what it was or what it will be."""
    check(path)
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    if _is_special(path):
        path.write_bytes(data)
        return
    # A link stays one.
    path = path.resolve()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, path.stat().st_mode if path.exists() else 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _is_special(path: Path) -> bool:
    """Whether a path names something to write into that must not be replaced: a terminal, a pipe, a device."""
    return path.exists() and not path.is_file()
