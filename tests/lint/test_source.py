"""Sources: encodings, line endings, positions."""

from __future__ import annotations

import ast
import random
import re

import pytest

from emberlint.config import Config
from emberlint.inference.interest import Places
from emberlint.lint import linter
from emberlint.source.text import ANY, ENDS, UNDOTTED, Source
from emberlint.source.tree import parse


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"a\r\nbb\rc", b"a\n\n", "é = 1\nß = 2".encode()])
def test_places_and_offsets_agree(data: bytes) -> None:
    source = Source(data)
    for offset in range(len(data)):
        assert source.offset(*source.place(offset)) == offset


def test_lines() -> None:
    source = Source(b"a\r\nbb\rc\nd")
    assert [source.line(i) for i in range(6)] == ["", "a", "bb", "c", "d", ""]
    assert Source(b"a\r\nb\r\n").newline == "\r\n"


def test_only_whole_words_are_found() -> None:
    source = Source("np = inp + np.pi\nénp, np_, x.np, [np]".encode())
    data = source.data
    places = [0, data.index(b"np.pi"), data.index(b".np") + 1, data.index(b"[np") + 1]
    assert list(source.places(b"np")) == places
    assert list(source.uses(b"np")) == [*places[:2], places[3]]
    assert list(source.places(b"np", 1, after=UNDOTTED)) == places[2:]
    assert list(source.places(b"np.", after=ANY)) == [places[1]]
    assert list(source.places(b"np", 1, places[1])) == []
    assert source.words(0, 16) == [b"np", b"inp", b"np", b"pi"]


@pytest.mark.parametrize("seed", range(10))
def test_places_are_the_same_in_any_order(seed: int) -> None:
    draw = random.Random(seed)
    words = ["np", "inp", "x", "backend", "backend.f", "y.np", "_np", "('np\\\n')"]
    text = "\n".join(" + ".join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(40)) + "\n"
    places = Places(Source(text.encode()), [(b"np", ENDS), (b"backend", UNDOTTED)])
    pattern = re.compile(r"\b(?:np\b|backend\b(?!\.))")
    statements = ast.parse(text).body
    for node in statements + draw.choices(statements, k=40):
        lines = "".join(text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno])
        assert places.are_in(node) is (pattern.search(lines) is not None), lines


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
    parse(source)


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
def test_a_file_that_does_not_parse_is_one_finding(data: bytes) -> None:
    found = linter.lint(data, "bad.py", Config()).findings
    assert [finding.code for finding in found] == ["EMB001"]


def test_deep_nesting_does_not_crash() -> None:
    data = b"import numpy as np\nx = " + b" + ".join([b"np.pi"] * 2000) + b"\n"
    found = {finding.code for finding in linter.lint(data, "deep.py", Config()).findings}
    assert "EMB001" in found or "EMB103" in found
