"""Findings of rules, with their fixes."""

from __future__ import annotations

from itertools import starmap
from operator import itemgetter
from typing import Any, NamedTuple

SAFE = "safe"
UNSAFE = "unsafe"
SUGGESTION = "suggestion"


class Edit(NamedTuple):
    """Replacement of a byte span of the source by text; an empty span is an insertion."""

    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """A change that resolves a finding.

    ``safe`` keeps values, dtypes, shapes and errors. ``unsafe`` may not, and is applied only on request. A
    ``suggestion`` is printed and never applied.
    """

    edits: tuple[Edit, ...]
    safety: str
    title: str


class Finding(NamedTuple):
    """A violation of a rule. Lines count from 1, columns from 0, in bytes of UTF-8."""

    code: str
    message: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    fix: Fix | None = None
    why: tuple[str, ...] = ()


# Sort keys of findings: the path, and the position in a file.
by_path = itemgetter(Finding._fields.index("path"))
by_place = itemgetter(*map(Finding._fields.index, ("line", "column", "code")))


def from_json(value: list[Any]) -> Finding:
    """Finding from the nested lists of its JSON form."""
    fix = value[7]
    restored = None if fix is None else Fix(tuple(starmap(Edit, fix[0])), fix[1], fix[2])
    return Finding._make((*value[:7], restored, tuple(value[8])))
