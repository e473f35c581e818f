"""The formats that findings are written in."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from emberlint import __version__, rules
from emberlint.findings import SAFE, SUGGESTION, UNSAFE, Edit, Finding, Fix, by_path
from emberlint.source.files import read
from emberlint.source.text import Source

FORMATS = ("full", "concise", "json", "github", "gitlab", "sarif", "junit")


class Sources:
    """The sources that findings point into, read when first asked for; ``texts`` are the bytes of those that were.

    What can no longer be read is empty.
    """

    def __init__(self, texts: Mapping[str, bytes] | None = None) -> None:
        self.known: dict[str, Source] = {}
        self.texts = texts or {}

    def __getitem__(self, path: str) -> Source:
        found = self.known.get(path)
        if found is None:
            try:
                found = Source(self.texts[path] if path in self.texts else read(path), path)
            except (OSError, UnicodeError, LookupError):
                found = Source(b"", path)
            self.known[path] = found
        return found


def rendered(findings: list[Finding], style: str, *, verbose: bool = False, sources: Sources | None = None) -> str:
    """The findings as text in one of ``FORMATS``."""
    writer = _WRITERS[style]
    return writer(findings, sources or Sources(), verbose)


def _column(finding: Finding, sources: Sources) -> int:
    """The column in characters, from 1, as editors count."""
    return _in_characters(finding.code, finding.line, finding.column, sources[finding.path])


def _in_characters(code: str, line: int, column: int, source: Source) -> int:
    if source.is_ascii and code != "EMB001":
        return column + 1  # the same in bytes; what does not parse may have its fault behind the line's end
    return _characters(source, line, column)


def _end_column(finding: Finding, sources: Sources) -> int:
    return _characters(sources[finding.path], finding.end_line, finding.end_column)


def _characters(source: Source, line: int, column: int) -> int:
    text = source.line(line)
    if text.isascii():
        return min(column, len(text)) + 1
    return len(text.encode()[:column].decode(errors="replace")) + 1


def _mark(fix: Fix | None) -> str:
    return "" if fix is None else _MARKS[fix.safety]


def concise(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """One line each: place, code, message."""
    lines = []
    for path, group in groupby(findings, by_path):
        source = sources[path]
        for finding in group:
            code, message, _, line, column, _, _, fix, why = finding
            column = _in_characters(code, line, column, source)
            lines.append(f"{path}:{line}:{column}: {code}{_mark(fix)} {message}\n")
            if verbose:
                lines += [f"    {reason}\n" for reason in why]
    return "".join(lines)


def full(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """The message, the source line with a caret under the place, and the change that is proposed."""
    shown: dict[tuple[str, Edit], list[str]] = {}
    return "\n".join([*(_full(finding, sources[finding.path], verbose, shown) for finding in findings), ""])


def _full(finding: Finding, source: Source, verbose: bool, shown: dict[tuple[str, Edit], list[str]]) -> str:
    column = _characters(source, finding.line, finding.column)
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
    """The source line of most findings, with carets under the place."""
    text = source.line(finding.line)
    shown = f"{finding.line:>{width}} | {text}".rstrip()
    if not text.strip():
        return [shown]
    carets = max(1, _characters(source, finding.line, finding.end_column) - column)
    return [shown, f"{' ' * width} | {' ' * (column - 1)}{'^' * carets}"]


def _marked_lines(source: Source, finding: Finding, column: int, width: int, last: int) -> list[str]:
    """The same for several lines, and for tabs."""
    lines = []
    for number in range(finding.line, last + 1):
        text = source.line(number)
        lines.append(f"{number:>{width}} | {_tabless(text)}".rstrip())
        start = len(_tabless(text[: column - 1])) if number == finding.line else len(text) - len(text.lstrip())
        if number == finding.end_line:
            end = len(_tabless(text[: _characters(source, number, finding.end_column) - 1]))
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
    """The lines that edits take away and add, marked ``-`` and ``+``.

    ``shown`` remembers those of edits that stand alone: the import that many fixes need is the same for all of them.
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
    """The same for edits of some lines."""
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


def as_json(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """A list of objects, one for each finding."""
    rows = []
    for finding in findings:
        fix = finding.fix
        source = sources[finding.path]
        rows.append(
            {
                "code": finding.code,
                "name": rules.load(finding.code).name,
                "message": finding.message,
                "filename": finding.path,
                "location": {"row": finding.line, "column": _column(finding, sources)},
                "end_location": {"row": finding.end_line, "column": _end_column(finding, sources)},
                "fix": None
                if fix is None
                else {
                    "applicability": fix.safety,
                    "message": fix.title,
                    "edits": [
                        {
                            "content": edit.text,
                            "location": _place(source, edit.start),
                            "end_location": _place(source, edit.end),
                        }
                        for edit in fix.edits
                    ],
                },
                "why": list(finding.why),
            }
        )
    return json.dumps(rows, indent=2) + "\n"


def _place(source: Source, offset: int) -> dict[str, int]:
    line, column = source.place(offset)
    text = source.line(line).encode()[:column].decode(errors="replace")
    return {"row": line, "column": len(text) + 1}


def github(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """Workflow commands that annotate lines of a pull request."""
    lines = []
    for finding in findings:
        where = {
            "title": f"emberlint ({finding.code})",
            "file": _posix(finding.path),
            "line": finding.line,
            "col": _column(finding, sources),
            "endLine": finding.end_line,
            "endColumn": _end_column(finding, sources),
        }
        text = ",".join(f"{key}={_escaped(str(value), property=True)}" for key, value in where.items())
        lines.append(f"::error {text}::{_escaped(f'{finding.code} {finding.message}')}\n")
    return "".join(lines)


def _escaped(text: str, property: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property else text


def gitlab(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """A code quality report."""
    from emberlint.report.baseline import fingerprints

    rows = [
        {
            "check_name": finding.code,
            "description": f"{finding.code}: {finding.message}",
            "fingerprint": fingerprint,
            "severity": "blocker" if finding.code == "EMB001" else "major",
            "location": {
                "path": _posix(finding.path),
                "positions": {
                    "begin": {"line": finding.line, "column": _column(finding, sources)},
                    "end": {"line": finding.end_line, "column": _end_column(finding, sources)},
                },
            },
        }
        for finding, fingerprint in zip(findings, fingerprints(findings, sources, os.getcwd()), strict=True)
    ]
    return json.dumps(rows, indent=2) + "\n"


def sarif(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """A log in the Static Analysis Results Interchange Format, version 2.1.0."""
    from emberlint.report.baseline import fingerprints

    codes = sorted({finding.code for finding in findings})
    places = {code: i for i, code in enumerate(codes)}
    prints = fingerprints(findings, sources, os.getcwd())
    log = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "emberlint",
                        "version": __version__,
                        "rules": [_sarif_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    _sarif_result(finding, fingerprint, places[finding.code], sources)
                    for finding, fingerprint in zip(findings, prints, strict=True)
                ],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _sarif_rule(code: str) -> dict[str, Any]:
    rule = rules.load(code)
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.page.strip().partition("\n")[0] or rule.summary},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": "error"},
    }


def _sarif_result(finding: Finding, fingerprint: str, index: int, sources: Sources) -> dict[str, Any]:
    source = sources[finding.path]
    location = (
        {"uri": _uri(finding.path), "uriBaseId": "%SRCROOT%"}
        if not os.path.isabs(finding.path)
        else {"uri": _uri(finding.path)}
    )
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": location,
                    "region": {
                        "startLine": finding.line,
                        "startColumn": _column(finding, sources),
                        "endLine": finding.end_line,
                        "endColumn": max(_end_column(finding, sources), 1),
                    },
                }
            }
        ],
        "partialFingerprints": {"emberlint/v1": fingerprint},
    }
    if finding.fix is not None:
        result["fixes"] = [
            {
                "description": {"text": finding.fix.title},
                "artifactChanges": [
                    {
                        "artifactLocation": location,
                        "replacements": [_replacement(source, edit) for edit in finding.fix.edits],
                    }
                ],
            }
        ]
    return result


def _replacement(source: Source, edit: Edit) -> dict[str, Any]:
    start, end = _place(source, edit.start), _place(source, edit.end)
    return {
        "deletedRegion": {
            "startLine": start["row"],
            "startColumn": start["column"],
            "endLine": end["row"],
            "endColumn": end["column"],
        },
        "insertedContent": {"text": edit.text},
    }


def _posix(path: str) -> str:
    return path.replace(os.sep, "/")


def _uri(path: str) -> str:
    from urllib.parse import quote

    uri = quote(_posix(path), errors="surrogateescape")
    return f"file://{uri}" if os.path.isabs(path) else uri


def junit(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """A test report in which each file is a suite and each finding a failed test."""
    from xml.sax.saxutils import quoteattr

    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        by_path.setdefault(finding.path, []).append(finding)
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    count = len(findings)
    lines.append(f'<testsuites name="emberlint" tests="{max(count, 1)}" failures="{count}" errors="0">')
    if not findings:
        lines.append('  <testsuite name="emberlint" tests="1" failures="0" errors="0" skipped="0">')
        lines += ['    <testcase name="no findings" classname="emberlint"/>', "  </testsuite>"]
    for path, group in by_path.items():
        counts = f'tests="{len(group)}" failures="{len(group)}" errors="0" skipped="0"'
        lines.append(f"  <testsuite name={quoteattr(_xml(path))} {counts}>")
        for finding in group:
            place = f"line {finding.line}, column {_column(finding, sources)}"
            name = quoteattr(f"{finding.code} at {place}")
            lines.append(f'    <testcase name={name} classname={quoteattr(_xml(path))} line="{finding.line}">')
            lines.append(f"      <failure message={quoteattr(_xml(finding.message))} type={quoteattr(finding.code)}/>")
            lines.append("    </testcase>")
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    # References, so that it is what its first line says whatever standard output is encoded in.
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold: control characters, and bytes of a path that are no text."""
    return "".join(
        c if c in "\t\n\r" or " " <= c < "\ud800" or "\udfff" < c < "\ufffe" or c > "\uffff" else "\ufffd" for c in text
    )


_WRITERS: dict[str, Callable[[list[Finding], Sources, bool], str]] = {
    "full": full,
    "concise": concise,
    "json": as_json,
    "github": github,
    "gitlab": gitlab,
    "sarif": sarif,
    "junit": junit,
}
