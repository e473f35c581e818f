"""The sources that findings point into."""

from __future__ import annotations

from collections.abc import Mapping

from emberlint.source.files import read
from emberlint.source.text import Source


class Sources:
    """The sources that findings point into, read when first asked for; ``texts`` are the bytes of those that were.

    What can no longer be read is empty.
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
