"""The text of a source file: its bytes, how they are encoded, where lines begin, and which words it has."""

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
# The bytes that may come after a text that is looked for: what ends a word, the same but for a dot, and any.
ENDS = frozenset(i for i in range(128) if not chr(i).isalnum() and chr(i) != "_")
UNDOTTED = ENDS - {_DOT}
ANY = frozenset(range(256))
_SPACED = bytes(32 if i in ENDS else i for i in range(256))
_LINE = re.compile(rb"\r\n|\r|\n")


class Source:
    """The text of a file as UTF-8, without a byte order mark: what ``ast`` counts columns in.

    ``encoding`` and ``bom`` say how the file itself holds it; ``encode`` turns the text back into the file's bytes.
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
        """The offset of each line's first byte, and that of the text's end."""
        data = self.data
        # A stream gives lines faster, but knows one of the three line endings only.
        lines = data.splitlines(keepends=True) if b"\r" in data else BytesIO(data)
        return [0, *accumulate(map(len, lines))]

    @cached_property
    def is_ascii(self) -> bool:
        """Whether a byte is a character."""
        return self.data.isascii()

    @cached_property
    def has_walrus(self) -> bool:
        """Whether ``:=`` is in the text."""
        return b":=" in self.data

    @cached_property
    def newline(self) -> str:
        """The line ending of the first line, which insertions follow."""
        match = _LINE.search(self.data)
        return match[0].decode() if match else "\n"

    def offset(self, line: int, column: int) -> int:
        """The offset of a place given by its line (from 1) and its column in bytes (from 0)."""
        return self.starts[line - 1] + column

    def place(self, offset: int) -> tuple[int, int]:
        """The line (from 1) and column in bytes (from 0) of an offset."""
        from bisect import bisect_right

        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1]

    def line(self, number: int) -> str:
        """The text of a line, without its ending; empty outside of the file."""
        known = self._lines
        if number not in known:
            starts = self.starts
            if not 1 <= number <= len(starts):
                return ""
            end = starts[number] if number < len(starts) else len(self.data)
            known[number] = self.data[starts[number - 1] : end].rstrip(b"\r\n").decode(errors="replace")
        return known[number]

    def words(self, start: int, end: int) -> list[bytes]:
        """The words between two offsets, in comments and strings too."""
        return self.data[start:end].translate(_SPACED).split()

    def places(
        self,
        text: bytes,
        start: int = 0,
        end: int | None = None,
        after: frozenset[int] = ENDS,
        before: frozenset[int] = ENDS,
    ) -> Iterator[int]:
        """The offsets between two others at which a text is a word, in comments and strings too.

        It is no word where anything but ``before`` comes before it, or anything but ``after`` after it.
        """
        data, length = self.data, len(self.data)
        place = data.find(text, start, end)
        while place >= 0:
            next = place + len(text)
            if (not place or data[place - 1] in before) and (next == length or data[next] in after):
                yield place
            place = data.find(text, next, end)

    def uses(self, text: bytes, start: int = 0, end: int | None = None, after: frozenset[int] = ENDS) -> Iterator[int]:
        """The offsets at which a text is a word and not an attribute."""
        return self.places(text, start, end, after, UNDOTTED)

    def imports(self) -> Iterator[tuple[bytes | Any, ...]]:
        """The text of each import: the module and the names of ``from``, or the names alone; in strings too.

        Three each, ``None`` for those of the other kind.
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
        """The bytes that a file of this encoding holds for a text in UTF-8."""
        if self.encoding != "utf-8":
            data = data.decode().encode(self.encoding)
        return BOM + data if self.bom else data


def _encoding(data: bytes) -> str:
    """The encoding that a comment in the first two lines names, as PEP 263 has it."""
    for line in data.split(b"\n", 2)[:2]:
        match = _COOKIE.match(line)
        if match:
            import codecs

            name = codecs.lookup(match[1].decode("ascii")).name
            return "utf-8" if name == "utf-8" else name
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
    return "utf-8"
