"""How many (operation, dtype, engine) triples were compared, counted over all processes of a test run.

A test records the triples that it compared; its report carries them, also from another process.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

KEY = "compared"


def record(request: pytest.FixtureRequest, operation: str, dtypes: Iterable[str], engine: str) -> None:
    """Note that the operation's results in these dtypes were compared on an engine."""
    request.node.user_properties.append((KEY, [operation, engine, sorted(dtypes)]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many triples were compared, if any were."""
    found = {
        (operation, dtype, engine)
        for reports in terminalreporter.stats.values()
        for report in reports
        for key, (operation, engine, dtypes) in _recorded(report)
        for dtype in dtypes
    }
    if found:
        operations, _, engines = (len(set(kind)) for kind in zip(*found, strict=True))
        terminalreporter.write_line(
            f"differential: {len(found)} (operation, dtype, engine) triples compared with NumPy: "
            f"{operations} operations, {engines} other engines"
        )


def _recorded(report: object) -> list[tuple[str, list]]:
    if getattr(report, "when", None) != "call":
        return []
    return [pair for pair in getattr(report, "user_properties", []) if pair[0] == KEY]
