"""A source file: its bytes, how they are encoded, where lines begin, and how to write it back as it was."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import accumulate

BOM = b"\xef\xbb\xbf"

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_IMPORT = re.compile(rb"[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n\r#]*)|import[ \t]+([^\n\r#]+))")
LETTERS = frozenset(bytes([i]) for i in range(128) if chr(i).isalnum() or chr(i) == "_")
INSIDE = LETTERS | {b"."}
_SPACED = bytes(i if bytes([i]) in LETTERS else 32 for i in range(256))
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
        """The offset of each line's first byte."""
        return [0, *accumulate(map(len, self.data.splitlines(keepends=True)))]

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
        """The text with a space for whatever is no part of a word; places stay what they are."""
        return self.data.translate(_SPACED)

    def uses(self, name: str) -> Iterator[int]:
        """The offsets at which a name stands, as a word and not as an attribute; in comments and strings too."""
        data = self.data
        for place in self._places(name.encode()):
            if data[place - 1 : place] not in INSIDE:
                yield place

    def words(self, names: Iterable[bytes]) -> list[int]:
        """The offsets at which any of some names stands as a word, in order."""
        found: list[int] = []
        for name in names:
            found += self._places(name)
        found.sort()
        return found

    def _places(self, name: bytes) -> Iterator[int]:
        """The offsets of a word, found by hand: a pattern that looks back tries every byte of the file."""
        data = self.data
        length = len(name)
        if length < 4:
            # A short name is a part of many words, and a pattern passes those by faster.
            for match in _ended(name).finditer(data):
                place = match.start()
                if data[place - 1 : place] not in LETTERS:
                    yield place
            return
        if name.startswith(b"import"):
            for place in self._imports:
                after = data[place + length : place + length + 1]
                if data.startswith(name, place) and data[place - 1 : place] not in LETTERS and after not in LETTERS:
                    yield place
            return
        place = data.find(name)
        while place >= 0:
            if data[place - 1 : place] not in LETTERS and data[place + length : place + length + 1] not in LETTERS:
                yield place
            place = data.find(name, place + length)

    def imports(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """The text of each import: the module and the names of ``from``, or the names alone; in strings too."""
        data = self.data
        end = 0
        for place in self._imports:
            start = data.rfind(b"\n", 0, place) + 1
            match = _IMPORT.match(data, start) if start >= end else None
            if match is not None:
                end = match.end()
                yield match.groups()  # type: ignore[misc]

    @cached_property
    def _imports(self) -> list[int]:
        """The offsets of ``import``, as a word or a part of one."""
        found = []
        place = self.data.find(b"import")
        while place >= 0:
            found.append(place)
            place = self.data.find(b"import", place + 6)
        return found

    def encode(self, data: bytes) -> bytes:
        """The bytes that a file of this encoding holds for a text in UTF-8."""
        if self.encoding != "utf-8":
            data = data.decode().encode(self.encoding)
        return BOM + data if self.bom else data


@cache
def _ended(name: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(name) + rb"(?!\w)")


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
