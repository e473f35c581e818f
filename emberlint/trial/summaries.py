"""The part of a port's report that a trial adds: the tests that fail after the port, by their cause."""

from __future__ import annotations

from collections.abc import Callable

from emberlint.trial.explanations import Cause
from emberlint.trial.trials import Result


def summary(result: Result, named: Callable[[str, int], tuple[str, str]]) -> list[str]:
    """Lines of the report. A fact that holds for several tests with one cause follows the first of them.

    ``named`` returns the path to print for a file and, if another part of the report has a line for the place, that
    line; else an empty text.
    """
    counts = ", ".join(
        f"{passed} of {result.before} on {engine} ({passed / result.before:.0%})"
        for engine, passed in result.passed.items()
    )
    lines = ["", f"Tests that passed before and pass after the port, with {result.dtype} as the default: {counts}."]
    if result.others:
        words = "other test was" if result.others == 1 else "other tests were"
        lines.append(f"{result.others} {words} skipped or failed before the port, and not compared.")
    if not result.failures:
        return lines
    groups: dict[tuple[str, int, str], list[tuple[Cause, str, list[str]]]] = {}
    tests: dict[str, dict[str, Cause]] = {}
    for failure in result.failures:
        tests.setdefault(failure.test, {})[failure.engine] = failure.cause
    for test, by_engine in tests.items():
        keys: dict[tuple[str, int, str], list[str]] = {}
        for engine, cause in by_engine.items():
            keys.setdefault(cause.key(), []).append(engine)
        for key, engines in keys.items():
            groups.setdefault(key, []).append((by_engine[engines[0]], test, engines))
    lines += ["", f"Tests that fail after the port ({len(tests)}), by cause:"]
    for (file, line, _), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        cause = group[0][0]
        path, static = named(file, line) if file else ("", "")
        lines.append(f"    {path}:{line}: {cause.text}" if file else f"    {cause.text}")
        if static:
            lines.append(f"        named above: {static}")
        said: set[str] = set()
        for other, test, engines in group:
            at = f", fails at {other.test}" if other.test else ""
            lines.append(f"        {test} ({', '.join(engines)}){at}")
            lines += [f"            {fact}" for fact in other.facts if fact not in said]
            said.update(other.facts)
    return lines
