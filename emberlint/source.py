"""A source file: its bytes, how they are encoded, where lines begin, and how to write it back as it was."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_IMPORT = re.compile(rb"[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n\r#]*)|import[ \t]+([^\n\r#]+))")
_SPACED = bytes(i if i >= 128 or chr(i).isalnum() or chr(i) == "_" else 32 for i in range(256))
_LINE = re.compile(rb"\r\n|\r|\n")


class Word(NamedTuple):
    """A name in bytes, and as ``Source.spaced`` holds it."""

    name: bytes
    padded: bytes


def word(name: bytes) -> Word:
    """A name that is to be found as a word."""
    return Word(name, b" %b " % name)


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
        return [0, *accumulate(map(len, self.data.splitlines(keepends=True)))]

    @cached_property
    def is_ascii(self) -> bool:
        """Whether a byte is a character."""
        return self.data.isascii()

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

    @cached_property
    def spaced(self) -> bytes:
        """The text with a space for whatever is no part of a word, one before it and one after it.

        So a name between spaces is found where it stands as a word, and nowhere else. A place in the text
        is the one of the space before it here.
        """
        return b" %b " % self.data.translate(_SPACED)

    def uses(self, name: str, start: int = 0, end: int | None = None) -> Iterator[int]:
        """The offsets at which a name stands, as a word and not as an attribute; in comments and strings too."""
        data = self.data
        for place in self.places(word(name.encode()), start, len(data) if end is None else end):
            if data[place - 1 : place] != b".":
                yield place

    def places(self, word: Word, start: int, end: int) -> Iterator[int]:
        """The offsets at which a name stands as a word between two others."""
        spaced = self.spaced
        end += 2
        place = spaced.find(word.padded, start, end)
        while place >= 0:
            yield place
            place = spaced.find(word.padded, place + 1, end)

    def holds(self, words: Iterable[Word], start: int, end: int) -> bool:
        """Whether one of some names stands as a word between two offsets."""
        find = self.data.find
        for name, word in words:  # noqa: SIM110 - a loop is faster here, and this is asked for every function
            # Spaces are everywhere, so the bare name is passed by faster where it is not.
            if find(name, start, end) >= 0 and self.spaced.find(word, start, end + 2) >= 0:
                return True
        return False

    def imports(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """The text of each import: the module and the names of ``from``, or the names alone; in strings too."""
        data = self.data
        end = 0
        place = data.find(b"import")
        while place >= 0:
            start = data.rfind(b"\n", 0, place) + 1
            match = _IMPORT.match(data, start) if start >= end else None
            if match is not None:
                end = match.end()
                yield match.groups()  # type: ignore[misc]
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


def write(path: str, data: bytes) -> None:
    """Replace a file's content in one step, keeping its mode; a link is followed, not replaced."""
    import tempfile

    path = os.path.realpath(path)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".emberlint-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        else:
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
