"""Cache of findings and facts by file, valid for the same content, settings, linter and Python version."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from emberlint import __version__
from emberlint.config import Config
from emberlint.findings import from_json
from emberlint.lint.linter import Result
from emberlint.source import files

FOLDER = ".emberlint_cache"

_RECENT = 100_000_000  # nanoseconds; the clocks of file systems are coarse


def digest(data: bytes) -> str:
    """Digest of a file's content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def stamp(path: str) -> list[int] | None:
    """Size and modification time of a file; ``None`` if it is so recent that a later write could have the same."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    recent = time.time_ns() - stat.st_mtime_ns < _RECENT
    return None if recent else [stat.st_size, stat.st_mtime_ns]


@cache
def _linter() -> str:
    """Key of the linter itself, which changes with any of its files."""
    return "\n".join([__version__, sys.version, *_stamps(os.path.dirname(os.path.dirname(__file__)))])


def _stamps(folder: str) -> Iterator[str]:
    """Path, size and modification time of each file of the linter."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name.endswith((".py", ".json")):
            stat = entry.stat()
            yield f"{entry.path}:{stat.st_size}:{stat.st_mtime_ns}"
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _stamps(entry.path)


def _measured(config: Config) -> str:
    path = os.path.join(config.root, config.matrix) if config.matrix else ""
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{stat.st_size}:{stat.st_mtime_ns}"


def _pack(table: dict[str, Any]) -> bytes:
    """JSON of a table, preceded by its digest, so that damage and foreign changes are detected."""
    # The table has no reference cycles.
    text = json.dumps(table, separators=(",", ":"), check_circular=False).encode()
    return _head(text) + text + b"}"


def _head(text: bytes) -> bytes:
    return b'{"digest":"' + digest(text).encode() + b'","entries":'


_LENGTH = len(_head(b""))


def _unpack(data: bytes) -> dict[str, Any]:
    """Table from packed data; empty if the digest does not match."""
    text = data[_LENGTH:-1]
    if data[:_LENGTH] != _head(text):
        return {}
    # The garbage collector would traverse the growing table repeatedly.
    enabled = gc.isenabled()
    gc.disable()
    try:
        table: dict[str, Any] = json.loads(text)
        return table
    finally:
        if enabled:
            gc.enable()


class Cache:
    """Results for one configuration, in one file of the folder ``.emberlint_cache`` at the project's root."""

    def __init__(self, config: Config, enabled: bool = True) -> None:
        key = digest(f"{_linter()}\n{config!r}\n{_measured(config)}".encode())
        self.path = os.path.join(config.root, FOLDER, f"{key}.json")
        self.enabled = enabled
        self.entries: dict[str, Any] = self._read() if enabled else {}
        self.fresh: dict[str, Any] = {}

    def _read(self) -> dict[str, Any]:
        try:
            return _unpack(files.read(self.path, sys.maxsize))
        except OSError:
            return {}

    def untouched(self, path: str) -> Result | None:
        """Result for a file whose size and modification time have not changed."""
        entry = self.entries.get(path)
        if entry is None or entry[4] is None or entry[4] != stamp(path):
            return None
        return self._result(entry)

    def get(self, path: str, content: str) -> Result | None:
        """Result for a file with this content, if it is cached."""
        entry = self.entries.get(path)
        if entry is None or entry[0] != content:
            return None
        return self._result(entry)

    def put(self, path: str, content: str, result: Result, seen: list[int] | None) -> None:
        """Store the result for a file; ``seen`` is its stamp from before it was read."""
        self.fresh[path] = [content, result.suppressed, result.findings, result.facts, seen]

    def _result(self, entry: list[Any]) -> Result:
        return Result([from_json(row) for row in entry[2]], entry[1], entry[3])

    def write(self) -> None:
        """Save new results. A folder that cannot be written to is not an error."""
        if not self.enabled or not self.fresh:
            return
        folder = os.path.dirname(self.path)
        try:
            if not os.path.isdir(folder):
                os.makedirs(folder)
                with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
                    file.write("*\n")
            self._remove_old(folder)
            files.write(self.path, _pack({**self.entries, **self.fresh}))
        except OSError:
            return

    def _remove_old(self, folder: str) -> None:
        """Remove all but the newest few files of other configurations."""
        names = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json")]
        names.sort(key=os.path.getmtime, reverse=True)
        for name in names[8:]:
            os.unlink(name)
