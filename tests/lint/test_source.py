"""Sources: encodings, line endings, places."""

from __future__ import annotations

import pytest

from emberlint import engine
from emberlint.config import Config
from emberlint.source import Source


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"a\r\nbb\rc", b"a\n\n", "é = 1\nß = 2".encode()])
def test_places_and_offsets_agree(data: bytes) -> None:
    source = Source(data)
    for offset in range(len(data)):
        assert source.offset(*source.place(offset)) == offset


def test_lines() -> None:
    source = Source(b"a\r\nbb\rc\nd")
    assert [source.line(i) for i in range(6)] == ["", "a", "bb", "c", "d", ""]
    assert Source(b"a\r\nb\r\n").newline == "\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\n",
        b"\xef\xbb\xbfx = 1\n",
        b"# coding: latin-1\nx = '\xe9'\n",
        b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
    ],
)
def test_encodings_round_trip(data: bytes) -> None:
    source = Source(data)
    assert source.encode(source.data) == data
    engine.parse(source)


@pytest.mark.parametrize(
    "data",
    [
        b"def f(:\n",
        b"x = '\xe9'\n",
        b"# coding: no-such-encoding\n",
        b"\0",
        b"x = " + b"(" * 300,
        b"x = " + b"-" * 100_000 + b"1",
        b"\xff\xfex",
        b"return\n  indented\n",
    ],
)
def test_what_does_not_parse_is_one_finding(data: bytes) -> None:
    found = engine.lint(data, "bad.py", Config()).findings
    assert [finding.code for finding in found] == ["EMB001"]


def test_deep_nesting_is_no_crash() -> None:
    data = b"import numpy as np\nx = " + b" + ".join([b"np.pi"] * 2000) + b"\n"
    found = {finding.code for finding in engine.lint(data, "deep.py", Config()).findings}
    assert "EMB001" in found or "EMB103" in found
