"""Damaged Python files for the fuzz test: seeded mutations of real ones."""

from __future__ import annotations

import io
import random
import sysconfig
import tokenize
from collections.abc import Iterator
from pathlib import Path

_UNICODE = [
    "\u00e9",
    "\u4e2d",
    "\U0001f525",
    "\u202e",
    "\ufeff",
    "\u00a0",
    "\u2028",
    "e\u0301",
    "\ud7ff",
    "\x0c",
    "\x1a",
]
_KEYWORDS = [
    "if",
    "def",
    "class",
    "return",
    "yield",
    "await",
    "async",
    "lambda",
    "match",
    "case",
    "with",
    "*",
    "**",
    ":=",
    "->",
]
_HEADERS = [
    b"# -*- coding: latin-1 -*-\n",
    b"# coding: utf-16\n",
    b"# coding: no-such-codec\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
]
_DEEP = [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("f(", ")"), ("x if x else ", ""), ("lambda: ", "")]


def sources(roots: list[Path] | None = None) -> list[Path]:
    """Files to damage: small files of the standard library, in a fixed order."""
    roots = roots or [Path(sysconfig.get_path("stdlib"))]
    files = [file for root in roots for file in root.rglob("*.py") if "site-packages" not in file.parts]
    return sorted(file for file in files if 200 < file.stat().st_size < 20_000)


def mutants(count: int, seed: int = 0, roots: list[Path] | None = None) -> Iterator[tuple[str, bytes]]:
    """``count`` damaged files, each with a name that says where it comes from."""
    files = sources(roots)
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        file = draw.choice(files)
        data = file.read_bytes()
        names = []
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            mutate = draw.choice(MUTATIONS)
            data = mutate(data, draw)
            names.append(mutate.__name__)
        yield f"{number}: {file.name}: {', '.join(names)}", data


def truncated(data: bytes, draw: random.Random) -> bytes:
    """The file up to a random byte."""
    return data[: draw.randrange(len(data) + 1)]


def without_tokens(data: bytes, draw: random.Random) -> bytes:
    """The file without a few of its tokens."""
    spans = _tokens(data)
    for start, end in sorted(draw.sample(spans, min(len(spans), draw.randint(1, 6))), reverse=True):
        data = data[:start] + data[end:]
    return data


def with_swapped_tokens(data: bytes, draw: random.Random) -> bytes:
    """The file with pairs of tokens swapped."""
    spans = _tokens(data)
    for _ in range(draw.randint(1, 3)):
        if len(spans) < 2:
            break
        i, j = sorted(draw.sample(range(len(spans)), 2))
        (a, b), (c, d) = spans[i], spans[j]
        data = data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]
        spans = _tokens(data)
    return data


def with_keywords(data: bytes, draw: random.Random) -> bytes:
    """The file with keywords at random places."""
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        data = data[:at] + f" {draw.choice(_KEYWORDS)} ".encode() + data[at:]
    return data


def with_unicode(data: bytes, draw: random.Random) -> bytes:
    """The file with characters that are wide, invisible or not allowed."""
    for _ in range(draw.randint(1, 5)):
        at = draw.randrange(len(data) + 1)
        data = data[:at] + draw.choice(_UNICODE).encode("utf-8", "surrogatepass") + data[at:]
    return data


def with_bytes(data: bytes, draw: random.Random) -> bytes:
    """The file with null bytes and invalid UTF-8."""
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        data = data[:at] + bytes([draw.choice([0, 0, 0x80, 0xC3, 0xFF, draw.randrange(256)])]) + data[at:]
    return data


def with_depth(data: bytes, draw: random.Random) -> bytes:
    """The file with a very deeply nested expression."""
    before, after = draw.choice(_DEEP)
    depth = draw.choice([50, 90, 150, 1000, 20_000])
    return data + b"\nx = " + before.encode() * depth + b"1" + after.encode() * depth + b"\n"


def with_operators(data: bytes, draw: random.Random) -> bytes:
    """The file with a very long sum or chain of attributes."""
    link = draw.choice([b" + 1", b".T", b"[0]", b"()", b" and y", b" < 2"])
    return data + b"\nx = y" + link * draw.choice([100, 1000, 20_000]) + b"\n"


def with_blocks(data: bytes, draw: random.Random) -> bytes:
    """The file with nested blocks."""
    head = draw.choice(["if x:", "for i in x:", "while x:", "def f():", "class C:", "with x:", "try:"])
    lines = [" " * i + head for i in range(draw.choice([10, 30, 98, 150]))]
    return data + b"\n" + "\n".join([*lines, " " * len(lines) + "pass"]).encode() + b"\n"


def with_header(data: bytes, draw: random.Random) -> bytes:
    """The file with a first line that declares an encoding, right or wrong."""
    return draw.choice(_HEADERS) + data


def with_lines(data: bytes, draw: random.Random) -> bytes:
    """The file with lines dropped, doubled, indented or with other line endings."""
    lines = data.split(b"\n")
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(lines))
        lines[at : at + 1] = draw.choice(
            [[], [lines[at]] * 2, [b" " + lines[at]], [b"\t" + lines[at]], [lines[at] + b"\\"], [lines[at] + b"\r"]]
        )
        if not lines:
            return b""
    return draw.choice([b"\n", b"\n", b"\r\n", b"\r"]).join(lines)


MUTATIONS = [
    truncated,
    without_tokens,
    with_swapped_tokens,
    with_keywords,
    with_unicode,
    with_bytes,
    with_depth,
    with_operators,
    with_blocks,
    with_header,
    with_lines,
]


def _tokens(data: bytes) -> list[tuple[int, int]]:
    """Byte spans of the tokens; of words and punctuation if the file cannot be tokenized."""
    try:
        tokens = list(tokenize.tokenize(io.BytesIO(data).readline))
        text = data.decode()
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError, ValueError, SystemError):
        # Python 3.12 and 3.13: a null byte after a dedent is a SystemError; python/cpython#140576
        return _words(data)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    lines = text.splitlines(keepends=True)
    spans = []
    for token in tokens[1:]:
        (a, b), (c, d) = token.start, token.end
        if token.string and max(a, c) <= len(lines):
            spans.append(
                (starts[a - 1] + len(lines[a - 1][:b].encode()), starts[c - 1] + len(lines[c - 1][:d].encode()))
            )
    return [span for span in spans if span[0] < span[1] <= len(data)] or _words(data)


def _words(data: bytes) -> list[tuple[int, int]]:
    import re

    return [match.span() for match in re.finditer(rb"\w+|[^\w\s]", data)]
