"""Files that are replaced in one step: a reader finds the old content or the new one, never a part of it.

``ember_ml`` writes its files with this module too. It is part of the linter because that needs the standard library
alone, and importing ``ember_ml`` would take longer than linting.
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
    """A new file that takes the place of ``path`` at the end of the block, or is removed if the block fails.

    The file has the permissions that ``open(path, "w")`` would leave. A link is followed, not replaced. A terminal,
    pipe or device is written into. Temporary files of writers that were killed are removed from the folder.
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
                file.flush()
                os.fsync(file.fileno())
            os.replace(file.name, target)
        except BaseException:
            # An interrupt may come after the file has taken its place.
            with suppress(FileNotFoundError):
                os.unlink(file.name)
            raise
        _synchronize(os.path.dirname(target))


def write(path: StrPath, content: str | bytes, *, parents: bool = False) -> None:
    """Replace the content of a file in one step; a text is encoded in UTF-8.

    Args:
        parents: make the folders that are missing.
    """
    if parents:
        _make_parents(path)
    with replacing(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def check(path: StrPath, *, parents: bool = False) -> None:
    """Raise the ``OSError`` that ``write`` would raise for a path, before there is anything to write."""
    if parents:
        _make_parents(path)
    if _is_special(path):
        return
    with _naming(path):
        file = _create(os.path.realpath(path))
        file.close()
        os.unlink(file.name)


def _is_special(path: StrPath) -> bool:
    """Whether a path names what can be written into but not replaced: a terminal, a pipe, a device."""
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
    """Have errors of the system name ``path``, and not a temporary file that nobody asked for."""
    try:
        yield
    except OSError as error:
        name = error.filename
        if error.errno is not None and (name is None or _TEMPORARY.fullmatch(os.path.basename(name))):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def _create(target: str) -> BinaryIO:
    """A new file in the folder of ``target``, with its permissions, if it exists."""
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    # Before there is a new file, which may need the space.
    _remove_abandoned(folder)
    temporary = os.path.join(folder, f".ember-{_host()}-{os.getpid()}-{os.urandom(8).hex()}.tmp")
    file = open(temporary, "xb")  # noqa: SIM115 - the caller closes it
    try:
        # At once, so that nobody reads from the new file what they may not read from the old.
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
        # A folder may be writable but not readable; any other problem is reported when the new file is made.
        return
    for name in names:
        match = _TEMPORARY.fullmatch(name)
        if match is None:
            continue
        path = os.path.join(folder, name)
        # It may be removed by another writer first, or belong to another user.
        with suppress(OSError):
            if _is_abandoned(path, match[1], int(match[2])):
                os.unlink(path)


def _is_abandoned(path: str, host: str, process: int) -> bool:
    """Whether nobody writes a temporary file any more, as far as can be told."""
    if os.name == "posix" and host == _host():
        return not _is_running(process)
    # Nothing is known of processes of other machines, which may share the folder.
    return time.time() - os.stat(path).st_mtime > _DAY


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # It runs, for another user.
        return True
    # In a container whose first process reaps no others, killed processes stay listed; only Linux tells.
    with suppress(OSError), open(f"/proc/{process}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2][:1] != b"Z"
    return True


@cache
def _host() -> str:
    """A mark of where process ids are valid: this machine, until it is restarted, and this container."""
    import hashlib
    import platform

    parts = [platform.node()]
    # Only Linux has these.
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        parts.append(file.read())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _synchronize(folder: str) -> None:
    """Make sure that the new name survives a power cut."""
    # Not every file system lets a folder be synchronized; the file is complete in any case.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
