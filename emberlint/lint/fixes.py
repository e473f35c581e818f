"""Application of fixes: edits that do not overlap are applied together, repeatedly, until nothing changes.

A fix after which the file would not parse is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from emberlint.config import Config
from emberlint.findings import SAFE, UNSAFE, Edit, Finding
from emberlint.lint import linter
from emberlint.source.text import Source
from emberlint.source.tree import PARSE_ERRORS, parse

# Nested fixes wait for the next round: a chain of operators needs one round per operator.
ROUNDS = 100


class Fixed(NamedTuple):
    """A fixed file: its bytes, the remaining findings, and the number of fixed ones by code."""

    data: bytes
    result: linter.Result
    fixed: dict[str, int]


def fixed(
    data: bytes, path: str, config: Config, *, unsafe: bool = False, module: str = "", package: str = ""
) -> Fixed:
    """File with every applicable fix applied; a second call changes nothing."""
    allowed = (SAFE, UNSAFE) if unsafe else (SAFE,)
    fixed: dict[str, int] = {}
    seen = {data}
    result = linter.lint(data, path, config, module=module, package=package)
    for _ in range(ROUNDS):
        todo = [finding for finding in result.findings if finding.fix is not None and finding.fix.safety in allowed]
        if not todo:
            break
        source = Source(data, path)
        after, done = applied(source, todo)
        new = source.encode(after)
        if not done or new in seen:
            break
        seen.add(new)
        data = new
        for finding in done:
            fixed[finding.code] = fixed.get(finding.code, 0) + 1
        result = linter.lint(data, path, config, module=module, package=package)
    return Fixed(data, result, fixed)


def applied(source: Source, findings: Iterable[Finding]) -> tuple[bytes, list[Finding]]:
    """Text after the fixes that do not overlap, and the findings that were fixed."""
    chosen = _compatible(findings)
    after = edited(source.data, chosen)
    if _parses(after, source):
        return after, chosen
    kept: list[Finding] = []
    for finding in chosen:
        if _parses(edited(source.data, [*kept, finding]), source):
            kept.append(finding)
    return edited(source.data, kept), kept


def _compatible(findings: Iterable[Finding]) -> list[Finding]:
    chosen: list[Finding] = []
    taken: list[Edit] = []
    for finding in findings:
        assert finding.fix is not None
        edits = finding.fix.edits
        if edits and all(edit in taken or not any(_overlap(edit, other) for other in taken) for edit in edits):
            chosen.append(finding)
            taken += [edit for edit in edits if edit not in taken]
    return chosen


def _overlap(a: Edit, b: Edit) -> bool:
    if a.start == a.end and b.start == b.end:
        return False
    if a.start == a.end or b.start == b.end:
        point, span = (a, b) if a.start == a.end else (b, a)
        return span.start < point.start < span.end
    return a.start < b.end and b.start < a.end


def edited(data: bytes, findings: Iterable[Finding]) -> bytes:
    """Text after all edits of some findings; identical insertions are made once."""
    edits: dict[Edit, None] = {}
    for finding in findings:
        if finding.fix is not None:
            edits.update(dict.fromkeys(finding.fix.edits))
    ordered = sorted(enumerate(edits), key=lambda item: (item[1].start, item[1].end != item[1].start, item[0]))
    pieces, place = [], 0
    for _, edit in ordered:
        pieces += [data[place : edit.start], edit.text.encode()]
        place = max(place, edit.end)
    return b"".join([*pieces, data[place:]])


def _parses(data: bytes, source: Source) -> bool:
    try:
        parse(Source(source.encode(data), source.path))
    except PARSE_ERRORS:
        return False
    return True
