"""Formats for people: one line per finding, or the source line with carets and the proposed change."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import groupby

from emberlint.findings import SAFE, SUGGESTION, UNSAFE, Edit, Finding, Fix, by_path
from emberlint.report.columns import characters, in_characters
from emberlint.source.sources import Sources
from emberlint.source.text import Source


def _mark(fix: Fix | None) -> str:
    return "" if fix is None else _MARKS[fix.safety]


def concise(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """One line per finding: location, code, message."""
    lines = []
    for path, group in groupby(findings, by_path):
        source = sources[path]
        for finding in group:
            code, message, _, line, column, _, _, fix, why = finding
            column = in_characters(code, line, column, source)
            lines.append(f"{path}:{line}:{column}: {code}{_mark(fix)} {message}\n")
            if verbose:
                lines += [f"    {reason}\n" for reason in why]
    return "".join(lines)


def full(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """The message, the source line with carets, and the proposed change."""
    shown: dict[tuple[str, Edit], list[str]] = {}
    return "\n".join([*(_full(finding, sources[finding.path], verbose, shown) for finding in findings), ""])


def _full(finding: Finding, source: Source, verbose: bool, shown: dict[tuple[str, Edit], list[str]]) -> str:
    column = characters(source, finding.line, finding.column)
    lines = [f"{finding.code}{_mark(finding.fix)} {finding.message}"]
    last = min(finding.end_line, finding.line + 3)
    width = len(str(last + 1))
    bar = " " * width + " |"
    lines += [f"{' ' * width}--> {finding.path}:{finding.line}:{column}", bar]
    if finding.end_line == finding.line and "\t" not in source.line(last):
        lines += _marked_line(source, finding, column, width)
    else:
        lines += _marked_lines(source, finding, column, width, last)
    if finding.end_line > last:
        lines.append(f"{' ' * width} | ...")
    lines.append(bar)
    if finding.fix is not None:
        lines.append(f"{' ' * width} = {_FIXES[finding.fix.safety]}: {finding.fix.title}")
        indent = " " * (width + 3)
        lines += [indent + line for line in change(source, finding.fix.edits, shown)]
    if verbose:
        lines += [f"{' ' * width} = why: {reason}" for reason in finding.why]
    return "\n".join(lines) + "\n"


def _marked_line(source: Source, finding: Finding, column: int, width: int) -> list[str]:
    """Source line of a finding on one line without tabs, with carets."""
    text = source.line(finding.line)
    shown = f"{finding.line:>{width}} | {text}".rstrip()
    if not text.strip():
        return [shown]
    carets = max(1, characters(source, finding.line, finding.end_column) - column)
    return [shown, f"{' ' * width} | {' ' * (column - 1)}{'^' * carets}"]


def _marked_lines(source: Source, finding: Finding, column: int, width: int, last: int) -> list[str]:
    """Source lines of a finding on several lines or with tabs, with carets."""
    lines = []
    for number in range(finding.line, last + 1):
        text = source.line(number)
        lines.append(f"{number:>{width}} | {_tabless(text)}".rstrip())
        start = len(_tabless(text[: column - 1])) if number == finding.line else len(text) - len(text.lstrip())
        if number == finding.end_line:
            end = len(_tabless(text[: characters(source, number, finding.end_column) - 1]))
        else:
            end = len(_tabless(text))
        if text.strip():
            lines.append(f"{' ' * width} | {' ' * start}{'^' * max(1, end - start)}")
    return lines


_MARKS = {SAFE: " [*]", UNSAFE: " [unsafe fix]", SUGGESTION: ""}
_FIXES = {SAFE: "fix", UNSAFE: "unsafe fix", SUGGESTION: "suggestion"}


def _tabless(text: str) -> str:
    return text.replace("\t", "    ")


def change(source: Source, edits: Iterable[Edit], shown: dict[tuple[str, Edit], list[str]] | None = None) -> list[str]:
    """Lines that edits remove and add, marked ``-`` and ``+``.

    ``shown`` caches them for single edits, because many fixes add the same import.
    """
    starts = source.starts
    groups: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits):
        first = bisect_right(starts, edit.start)
        last = first if edit.end <= edit.start + 1 else bisect_right(starts, edit.end - 1, first - 1)
        if groups and first <= groups[-1][1]:
            groups[-1] = (groups[-1][0], max(last, groups[-1][1]), [*groups[-1][2], edit])
        else:
            groups.append((first, last, [edit]))
    lines: list[str] = []
    for first, last, group in groups:
        if shown is None or len(group) > 1:
            lines += _changed(source, first, last, group)
            continue
        key = (source.path, group[0])
        if key not in shown:
            shown[key] = _changed(source, first, last, group)
        lines += shown[key]
    return lines


def _changed(source: Source, first: int, last: int, group: list[Edit]) -> list[str]:
    """Removed and added lines of a group of edits."""
    start = source.starts[first - 1]
    end = source.starts[last] if last < len(source.starts) else len(source.data)
    pieces, place = [], start
    for edit in group:
        pieces += [source.data[place : edit.start], edit.text.encode()]
        place = edit.end
    after = b"".join([*pieces, source.data[place:end]])
    old = source.data[start:end].decode(errors="replace").splitlines()
    new = after.decode(errors="replace").splitlines()
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    while old and new and old[0] == new[0]:
        old.pop(0)
        new.pop(0)
    return [f"- {line}" for line in old] + [f"+ {line}" for line in new]
