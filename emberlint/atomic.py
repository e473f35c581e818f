"""Atomic replacement of files: a reader sees the old content or the new content, never a mixture.

``ember_ml`` writes its files with this module too. It is part of the linter because the linter depends on the standard
library only, and importing ``ember_ml`` would take longer than linting.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import BinaryIO

StrPath = str | os.PathLike[str]

_TEMPORARY = re.compile(r"\.ember-([0-9a-f]{16})-([0-9]{1,9})-[0-9a-f]{16}\.tmp")
_DAY = 24 * 60 * 60


@contextmanager
def replacing(path: StrPath) -> Iterator[BinaryIO]:
    """New file that replaces ``path`` at the end of the block, or is removed if the block fails.

    The block may close the file, after flushing it to disk, so that files that are replaced together take space first.
    The file gets the permissions that ``open(path, "w")`` would leave. A link is followed, not replaced. A terminal,
    pipe or device is written to directly. Temporary files of writers that were killed are removed from the folder.
    """
    target = os.path.realpath(path)
    with _naming(path):
        if _is_special(path):
            with open(path, "wb") as special:
                yield special
            return
        file = _create(target)
        try:
            with file:
                yield file
                if not file.closed:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(file.name, target)
        except BaseException:
            # An interrupt may arrive after the replacement.
            with suppress(FileNotFoundError):
                os.unlink(file.name)
            raise
        _synchronize(os.path.dirname(target))


def write(path: StrPath, content: str | bytes, *, parents: bool = False) -> None:
    """Replace the content of a file atomically; text is encoded in UTF-8.

    Args:
        parents: create missing folders.
    """
    if parents:
        _make_parents(path)
    with replacing(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def check(path: StrPath, *, parents: bool = False) -> None:
    """Raise the ``OSError`` that ``write`` would raise for a path, without writing."""
    if parents:
        _make_parents(path)
    if _is_special(path):
        return
    with _naming(path):
        file = _create(os.path.realpath(path))
        file.close()
        os.unlink(file.name)


def _is_special(path: StrPath) -> bool:
    """Whether a path is a terminal, a pipe or a device, which can be written to but not replaced."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _make_parents(path: StrPath) -> None:
    with _naming(path):
        try:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error


@contextmanager
def _naming(path: StrPath) -> Iterator[None]:
    """Report ``path`` in system errors instead of the name of a temporary file."""
    try:
        yield
    except OSError as error:
        name = error.filename
        if error.errno is not None and (name is None or _TEMPORARY.fullmatch(os.path.basename(name))):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def _create(target: str) -> BinaryIO:
    """New file in the folder of ``target``, with the permissions of ``target`` if it exists."""
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    # The new file may need the space.
    _remove_abandoned(folder)
    temporary = os.path.join(folder, f".ember-{_host()}-{os.getpid()}-{os.urandom(8).hex()}.tmp")
    file = open(temporary, "xb")  # noqa: SIM115 - the caller closes it
    try:
        # Set the permissions before writing, so that the new content is never readable to more users than the old.
        if os.path.exists(target):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
    except BaseException:
        file.close()
        os.unlink(temporary)
        raise
    return file


def _remove_abandoned(folder: str) -> None:
    """Remove the temporary files of writers that were killed."""
    try:
        names = os.listdir(folder)
    except OSError:
        # A folder may be writable but not readable; any other problem is reported when the new file is created.
        return
    for name in names:
        match = _TEMPORARY.fullmatch(name)
        if match is None:
            continue
        path = os.path.join(folder, name)
        # Another writer may remove it first, or it belongs to another user.
        with suppress(OSError):
            if _is_abandoned(path, match[1], int(match[2])):
                os.unlink(path)


def _is_abandoned(path: str, host: str, process: int) -> bool:
    """Whether the writer of a temporary file is gone. On another host, its age decides."""
    if os.name == "posix" and host == _host():
        return not _is_running(process)
    # Machines that share the folder cannot see each other's processes.
    return time.time() - os.stat(path).st_mtime > _DAY


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # The process belongs to another user.
        return True
    # In a container whose first process does not reap, killed processes remain as zombies; only Linux shows that.
    with suppress(OSError), open(f"/proc/{process}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2][:1] != b"Z"
    return True


@cache
def _host() -> str:
    """Identifier of the scope of process ids: this machine, since its last boot, and this container."""
    import hashlib
    import platform

    parts = [platform.node()]
    # These two exist only on Linux.
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        parts.append(file.read())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _synchronize(folder: str) -> None:
    """Flush a folder to disk, so that the new name survives a power failure."""
    # Not every file system supports fsync of a folder; the file is complete in any case.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
