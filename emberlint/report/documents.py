"""Formats for programs: JSON, GitHub, GitLab, SARIF and JUnit."""

from __future__ import annotations

import json
import os
from typing import Any

from emberlint import __version__, rules
from emberlint.findings import Edit, Finding
from emberlint.report.baseline import fingerprints
from emberlint.report.columns import column, end_column, place
from emberlint.source.sources import Sources
from emberlint.source.text import Source


def as_json(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """JSON list with an object for each finding."""
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
                "location": {"row": finding.line, "column": column(finding, sources)},
                "end_location": {"row": finding.end_line, "column": end_column(finding, sources)},
                "fix": None
                if fix is None
                else {
                    "applicability": fix.safety,
                    "message": fix.title,
                    "edits": [
                        {
                            "content": edit.text,
                            "location": place(source, edit.start),
                            "end_location": place(source, edit.end),
                        }
                        for edit in fix.edits
                    ],
                },
                "why": list(finding.why),
            }
        )
    return json.dumps(rows, indent=2) + "\n"


def github(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """GitHub workflow commands that annotate the lines of a pull request."""
    lines = []
    for finding in findings:
        where = {
            "title": f"emberlint ({finding.code})",
            "file": _posix(finding.path),
            "line": finding.line,
            "col": column(finding, sources),
            "endLine": finding.end_line,
            "endColumn": end_column(finding, sources),
        }
        text = ",".join(f"{key}={_escaped(str(value), property=True)}" for key, value in where.items())
        lines.append(f"::error {text}::{_escaped(f'{finding.code} {finding.message}')}\n")
    return "".join(lines)


def _escaped(text: str, property: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property else text


def gitlab(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """GitLab code quality report."""
    rows = [
        {
            "check_name": finding.code,
            "description": f"{finding.code}: {finding.message}",
            "fingerprint": fingerprint,
            "severity": "blocker" if finding.code == "EMB001" else "major",
            "location": {
                "path": _posix(finding.path),
                "positions": {
                    "begin": {"line": finding.line, "column": column(finding, sources)},
                    "end": {"line": finding.end_line, "column": end_column(finding, sources)},
                },
            },
        }
        for finding, fingerprint in zip(findings, fingerprints(findings, sources, os.getcwd()), strict=True)
    ]
    return json.dumps(rows, indent=2) + "\n"


def sarif(findings: list[Finding], sources: Sources, verbose: bool) -> str:
    """Log in the Static Analysis Results Interchange Format, version 2.1.0."""
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
                        "startColumn": column(finding, sources),
                        "endLine": finding.end_line,
                        "endColumn": max(end_column(finding, sources), 1),
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
    start, end = place(source, edit.start), place(source, edit.end)
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
    """JUnit report in which each file is a suite and each finding a failed test."""
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
            place = f"line {finding.line}, column {column(finding, sources)}"
            name = quoteattr(f"{finding.code} at {place}")
            lines.append(f'    <testcase name={name} classname={quoteattr(_xml(path))} line="{finding.line}">')
            lines.append(f"      <failure message={quoteattr(_xml(finding.message))} type={quoteattr(finding.code)}/>")
            lines.append("    </testcase>")
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    # Character references keep the declared encoding true, whatever the encoding of standard output.
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"


def _xml(text: str) -> str:
    """Text with a replacement for characters that XML does not allow: control characters and surrogates."""
    return "".join(
        c if c in "\t\n\r" or " " <= c < "\ud800" or "\udfff" < c < "\ufffe" or c > "\uffff" else "\ufffd" for c in text
    )
