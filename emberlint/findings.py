"""What a rule reports: a place, a message, and perhaps a change that mends it."""

from __future__ import annotations

from itertools import starmap
from operator import itemgetter
from typing import Any, NamedTuple

SAFE = "safe"
UNSAFE = "unsafe"
SUGGESTION = "suggestion"


class Edit(NamedTuple):
    """A span of bytes of the source, and the text that takes its place; an empty span is an insertion."""

    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """A change that mends a finding.

    ``safe`` keeps values, dtypes, shapes and errors; ``unsafe`` may not, and is applied only when asked for;
    a ``suggestion`` is printed and never applied.
    """

    edits: tuple[Edit, ...]
    safety: str
    title: str


class Finding(NamedTuple):
    """One violation. Lines count from 1, columns from 0, in bytes of UTF-8; spans are offsets into the source."""

    code: str
    message: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    fix: Fix | None = None
    why: tuple[str, ...] = ()


# Keys of findings: the path, and their order in a file.
by_path = itemgetter(Finding._fields.index("path"))
by_place = itemgetter(*map(Finding._fields.index, ("line", "column", "code")))


def from_json(value: list[Any]) -> Finding:
    """The finding that JSON made nested lists of."""
    fix = value[7]
    mend = None if fix is None else Fix(tuple(starmap(Edit, fix[0])), fix[1], fix[2])
    return Finding._make((*value[:7], mend, tuple(value[8])))
