"""Output formats by name."""

from __future__ import annotations

from collections.abc import Callable

from emberlint.findings import Finding
from emberlint.report.console import concise, full
from emberlint.report.documents import as_json, github, gitlab, junit, sarif
from emberlint.source.sources import Sources

_WRITERS: dict[str, Callable[[list[Finding], Sources, bool], str]] = {
    "full": full,
    "concise": concise,
    "json": as_json,
    "github": github,
    "gitlab": gitlab,
    "sarif": sarif,
    "junit": junit,
}
FORMATS = tuple(_WRITERS)


def rendered(findings: list[Finding], style: str, *, verbose: bool = False, sources: Sources | None = None) -> str:
    """Findings as text in one of ``FORMATS``."""
    writer = _WRITERS[style]
    return writer(findings, sources or Sources(), verbose)
