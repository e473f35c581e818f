"""A source file: its bytes, how they are encoded, where lines begin, and how to write it back as it was."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

BOM = b"\xef\xbb\xbf"

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
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
        if not 1 <= number <= len(self.starts):
            return ""
        end = self.starts[number] if number < len(self.starts) else len(self.data)
        return self.data[self.starts[number - 1] : end].rstrip(b"\r\n").decode(errors="replace")

    def uses(self, name: str) -> Iterator[int]:
        """The offsets at which a name stands, as a word and not as an attribute; in comments and strings too.

        Found by hand: a pattern that looks around itself tries every byte of the file.
        """
        data, word = self.data, name.encode()
        place = data.find(word)
        while place >= 0:
            before, after = data[place - 1 : place], data[place + len(word) : place + len(word) + 1]
            if not (before.isalnum() or before in (b"_", b".") or after.isalnum() or after == b"_"):
                yield place
            place = data.find(word, place + 1)

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
