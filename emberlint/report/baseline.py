"""The baseline: accepted findings that are not reported.

Entries have no line numbers. A fingerprint is computed from a finding's code, file, message, the text of its line, and
a counter for repetitions. An entry that no finding matches is stale and is reported as EMB004, so a baseline can only
shrink.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from emberlint.config import Config, ConfigError
from emberlint.findings import Finding
from emberlint.source import files
from emberlint.source.schema import Each, Fields, fault
from emberlint.source.sources import Sources

VERSION = 1


def fingerprints(findings: list[Finding], sources: Sources, root: str) -> list[str]:
    """Fingerprint of each finding, which does not change when lines move.

    Equal findings on equal lines have different fingerprints.
    """
    seen: Counter[str] = Counter()
    names = []
    for finding in findings:
        text = base(finding, sources, root)
        seen[text] += 1
        names.append(_hash(f"{text}\0{seen[text]}"))
    return names


def base(finding: Finding, sources: Sources, root: str) -> str:
    """Text that a fingerprint is computed from."""
    path = os.path.relpath(finding.path, root).replace(os.sep, "/")
    line = " ".join(sources[finding.path].line(finding.line).split())
    return f"{finding.code}\0{path}\0{finding.message}\0{line}"


def _hash(text: str) -> str:
    # A path may contain bytes that do not decode.
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=16).hexdigest()


_ENTRIES = Each(Fields({"code": str, "path": str, "message": str}))


def read(path: str) -> dict[str, Any]:
    """Entries of a baseline file; ``ConfigError`` if it is missing or not a baseline."""
    try:
        table = files.read_json(path)
    except FileNotFoundError:
        raise ConfigError(f"no baseline at {path}; write one with `emberlint baseline update`") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the baseline {path}: {error}") from error
    if not isinstance(table, dict) or table.get("version") != VERSION:
        raise ConfigError(
            f"{path} must be a baseline of version {VERSION}; remove it and run `emberlint baseline update`"
        )
    wrong = fault(table.get("findings"), _ENTRIES, "findings")
    entries: dict[str, Any] = {} if wrong else table["findings"]
    wrong = wrong or _fault_of_paths(entries)
    if wrong:
        raise ConfigError(f"{path}: {wrong}")
    return entries


def _fault_of_paths(entries: dict[str, Any]) -> str:
    """Message about the first entry whose path is invalid; empty if there is none."""
    for name, entry in entries.items():
        try:
            encoded = os.fsencode(entry["path"])
        except UnicodeEncodeError:
            encoded = b"\0"
        if b"\0" in encoded:
            shown = json.dumps(entry["path"])
            return f'findings[{json.dumps(name)}]["path"] must be the path of a file, got {shown}'
    return ""


def entries_of(findings: list[Finding], sources: Sources, root: str) -> dict[str, Any]:
    """Entries of a baseline of these findings."""
    table = {}
    for finding, name in zip(findings, fingerprints(findings, sources, root), strict=True):
        path = os.path.relpath(finding.path, root).replace(os.sep, "/")
        table[name] = {"code": finding.code, "path": path, "message": finding.message}
    return dict(sorted(table.items(), key=lambda item: (item[1]["path"], item[1]["code"], item[0])))


def save(path: str, entries: dict[str, Any]) -> None:
    """Write a baseline file."""
    files.write(path, (json.dumps({"version": VERSION, "findings": entries}, indent=1) + "\n").encode())


def split(
    findings: list[Finding], entries: dict[str, Any], config: Config, files: list[str], codes: set[str]
) -> tuple[list[Finding], list[str]]:
    """Findings that are not in the baseline, and the names of its stale entries.

    An entry is checked only if its rule ran and its file was linted or no longer exists.
    """
    names = fingerprints(findings, Sources(), config.root)
    new = [finding for finding, name in zip(findings, names, strict=True) if name not in entries]
    present = set(names)
    linted = {os.path.realpath(name) for name in files}
    stale = []
    for name, entry in entries.items():
        path = os.path.join(config.root, entry["path"])
        checked = entry["code"] in codes and (os.path.realpath(path) in linted or not os.path.exists(path))
        if checked and name not in present:
            stale.append(name)
    return new, stale


def prune(path: str, stale: Iterable[str]) -> int:
    """Remove entries from a baseline file and return the number of remaining ones."""
    gone = set(stale)
    entries = {name: entry for name, entry in read(path).items() if name not in gone}
    if gone:
        save(path, entries)
    return len(entries)


def stale_findings(path: str, entries: dict[str, Any], stale: list[str]) -> list[Finding]:
    """Finding for each stale entry, at its line of the baseline file."""
    lines = files.read(path).decode().splitlines()
    found = []
    for name in stale:
        entry = entries[name]
        line = next((i for i, text in enumerate(lines, 1) if f'"{name}"' in text), 1)
        what = f"stale baseline entry: {entry['code']} is no longer reported in {entry['path']}"
        message = f"{what}; remove it with `emberlint baseline prune`"
        found.append(Finding("EMB004", message, path, line, 0, line, len(lines[line - 1])))
    return found
