"""Python files under some paths, and the paths that cannot be read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from emberlint import config as configuration
from emberlint.config import Config
from emberlint.source.files import require_regular

_SKIPPED = frozenset({"__pycache__", "node_modules", "venv", "build", "dist", "site-packages"})


class Unread(NamedTuple):
    """A path that cannot be read, and the reason."""

    path: str
    reason: str

    def warning(self) -> str:
        """Line that is printed for the path."""
        return f"emberlint: warning: {self.path}: {self.reason}; not checked\n"


def files(paths: Iterable[str], config: Config, unread: list[Unread]) -> Iterator[str]:
    """Python files under some paths, in order; a path that is a file is included whatever its name.

    Paths that cannot be read are added to ``unread``: a folder without permission, a broken link, a FIFO.
    """
    for path in paths:
        if os.path.isdir(path):
            yield from _under(path, config, unread)
        elif not os.path.lexists(path):
            raise FileNotFoundError(f"no such file or folder: {path}")
        elif _is_file(path, unread):
            yield path


def _under(folder: str, config: Config, unread: list[Unread]) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        unread.append(Unread(folder, str(error.strerror)))
        return
    for entry in found:
        name = entry.name
        if name.startswith("."):
            continue
        path = entry.path[2:] if entry.path.startswith("./") else entry.path
        if config.exclude and any(
            configuration.matches(configuration.relative(path, config), p) for p in config.exclude
        ):
            continue
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_file = entry.is_file(follow_symlinks=False)
        except OSError as error:
            unread.append(Unread(path, str(error.strerror)))
            continue
        if is_folder:
            if name not in _SKIPPED:
                yield from _under(path, config, unread)
        elif name.endswith(".py") and (is_file or _is_file(path, unread)):
            yield path


def _is_file(path: str, unread: list[Unread]) -> bool:
    """Whether a path leads to a regular file. Links to folders are not followed."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return False
        require_regular(path, status)
    except OSError as error:
        unread.append(Unread(path, str(error.strerror)))
        return False
    return True
