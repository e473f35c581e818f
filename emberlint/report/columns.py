"""Columns as editors count them: in characters, from 1."""

from __future__ import annotations

from emberlint.findings import Finding
from emberlint.source.sources import Sources
from emberlint.source.text import Source


def column(finding: Finding, sources: Sources) -> int:
    """Column of a finding, in characters from 1."""
    return in_characters(finding.code, finding.line, finding.column, sources[finding.path])


def in_characters(code: str, line: int, column: int, source: Source) -> int:
    if source.is_ascii and code != "EMB001":
        return column + 1  # bytes are characters; a parse error may be located past the end of the line
    return characters(source, line, column)


def end_column(finding: Finding, sources: Sources) -> int:
    return characters(sources[finding.path], finding.end_line, finding.end_column)


def characters(source: Source, line: int, column: int) -> int:
    text = source.line(line)
    if text.isascii():
        return min(column, len(text)) + 1
    return len(text.encode()[:column].decode(errors="replace")) + 1


def place(source: Source, offset: int) -> dict[str, int]:
    line, column = source.place(offset)
    text = source.line(line).encode()[:column].decode(errors="replace")
    return {"row": line, "column": len(text) + 1}
