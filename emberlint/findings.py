"""What a rule reports: a place, a message, and perhaps a change that mends it."""

from __future__ import annotations

from typing import NamedTuple

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

    def moved(self, path: str) -> Finding:
        """The same finding in another file."""
        return self._replace(path=path)


def to_json(finding: Finding) -> list[object]:
    """The finding as nested lists of plain values."""
    fix = finding.fix
    return [*finding[:7], None if fix is None else [[list(e) for e in fix.edits], fix.safety, fix.title], list(finding.why)]


def from_json(value: list[object]) -> Finding:
    """The finding that ``to_json`` wrote."""
    *head, fix, why = value
    if fix is not None:
        edits, safety, title = fix  # type: ignore[misc]
        fix = Fix(tuple(Edit(*edit) for edit in edits), safety, title)
    return Finding(*head, fix, tuple(why))  # type: ignore[arg-type]
