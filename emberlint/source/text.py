"""Text of a source file: its bytes, encoding, lines and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from itertools import accumulate
from typing import Any

BOM = b"\xef\xbb\xbf"

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_IMPORT = re.compile(rb"[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n\r#]*)|import[ \t]+([^\n\r#]+))")
_DOT = ord(".")
# Bytes that may follow a searched text: the end of a word, the same without a dot, and any byte.
ENDS = frozenset(i for i in range(128) if not chr(i).isalnum() and chr(i) != "_")
UNDOTTED = ENDS - {_DOT}
ANY = frozenset(range(256))
_SPACED = bytes(32 if i in ENDS else i for i in range(256))
_LINE = re.compile(rb"\r\n|\r|\n")


class Source:
    """Text of a file as UTF-8 without a byte order mark, in which ``ast`` counts columns.

    ``encoding`` and ``bom`` describe the file itself; ``encode`` converts text back to the file's bytes.
    """

    def __init__(self, data: bytes, path: str = "<string>") -> None:
        self.path = path
        self.bom = data.startswith(BOM)
        if self.bom:
            data = data[3:]
        self.encoding = "utf-8" if self.bom else _encoding(data)
        self.data = data if self.encoding == "utf-8" else data.decode(self.encoding).encode()
        self._lines: dict[int, str] = {}

    @cached_property
    def starts(self) -> list[int]:
        """Offset of the first byte of each line, and of the end of the text."""
        data = self.data
        # A stream splits lines faster, but only at ``\n``.
        lines = data.splitlines(keepends=True) if b"\r" in data else BytesIO(data)
        return [0, *accumulate(map(len, lines))]

    @cached_property
    def is_ascii(self) -> bool:
        """Whether the text is ASCII, so that each byte is a character."""
        return self.data.isascii()

    @cached_property
    def has_walrus(self) -> bool:
        """Whether the text contains ``:=``."""
        return b":=" in self.data

    @cached_property
    def newline(self) -> str:
        """Line ending of the first line, which insertions use."""
        match = _LINE.search(self.data)
        return match[0].decode() if match else "\n"

    def offset(self, line: int, column: int) -> int:
        """Offset of a line (from 1) and column in bytes (from 0)."""
        return self.starts[line - 1] + column

    def place(self, offset: int) -> tuple[int, int]:
        """Line (from 1) and column in bytes (from 0) of an offset."""
        from bisect import bisect_right

        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1]

    def line(self, number: int) -> str:
        """Text of a line without its ending; empty outside of the file."""
        known = self._lines
        if number not in known:
            starts = self.starts
            if not 1 <= number <= len(starts):
                return ""
            end = starts[number] if number < len(starts) else len(self.data)
            known[number] = self.data[starts[number - 1] : end].rstrip(b"\r\n").decode(errors="replace")
        return known[number]

    def words(self, start: int, end: int) -> list[bytes]:
        """Words between two offsets, including those in comments and strings."""
        return self.data[start:end].translate(_SPACED).split()

    def places(
        self,
        text: bytes,
        start: int = 0,
        end: int | None = None,
        after: frozenset[int] = ENDS,
        before: frozenset[int] = ENDS,
    ) -> Iterator[int]:
        """Offsets at which a text is a whole word, including those in comments and strings.

        The byte before it must be in ``before``, and the byte after it in ``after``.
        """
        data, length = self.data, len(self.data)
        place = data.find(text, start, end)
        while place >= 0:
            next = place + len(text)
            if (not place or data[place - 1] in before) and (next == length or data[next] in after):
                yield place
            place = data.find(text, next, end)

    def uses(self, text: bytes, start: int = 0, end: int | None = None, after: frozenset[int] = ENDS) -> Iterator[int]:
        """Offsets at which a text is a whole word and not an attribute."""
        return self.places(text, start, end, after, UNDOTTED)

    def imports(self) -> Iterator[tuple[bytes | Any, ...]]:
        """Parts of each import: module and names of a ``from`` import, and names of a plain one.

        The parts of the other form are ``None``. Imports in strings are included.
        """
        data = self.data
        end = 0
        place = data.find(b"import")
        while place >= 0:
            start = data.rfind(b"\n", 0, place) + 1
            match = _IMPORT.match(data, start) if start >= end else None
            if match is not None:
                end = match.end()
                yield match.groups()
            place = data.find(b"import", place + 6)

    def encode(self, data: bytes) -> bytes:
        """Encode UTF-8 text with the encoding of the file."""
        if self.encoding != "utf-8":
            data = data.decode().encode(self.encoding)
        return BOM + data if self.bom else data


def _encoding(data: bytes) -> str:
    """Encoding that a comment in the first two lines declares (PEP 263)."""
    for line in data.split(b"\n", 2)[:2]:
        match = _COOKIE.match(line)
        if match:
            import codecs

            name = codecs.lookup(match[1].decode("ascii")).name
            return "utf-8" if name == "utf-8" else name
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
    return "utf-8"
