"""Sources of the files that findings refer to."""

from __future__ import annotations

from collections.abc import Mapping

from emberlint.source.files import read
from emberlint.source.text import Source


class Sources:
    """Sources by path, read on first use; ``texts`` holds the bytes of files that were read already.

    The source of a file that can no longer be read is empty.
    """

    def __init__(self, texts: Mapping[str, bytes] | None = None) -> None:
        self.known: dict[str, Source] = {}
        self.texts = texts or {}

    def __getitem__(self, path: str) -> Source:
        found = self.known.get(path)
        if found is None:
            try:
                found = Source(self.texts[path] if path in self.texts else read(path), path)
            except (OSError, UnicodeError, LookupError):
                found = Source(b"", path)
            self.known[path] = found
        return found
