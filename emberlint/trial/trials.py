"""A trial: the tests of a project before a port and after it, on each engine, and the cause of each failure."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from emberlint.trial import divergences
from emberlint.trial.commands import Command
from emberlint.trial.errors import TrialError
from emberlint.trial.explanations import Cause, Found, cause, deepest_frame, error_text
from emberlint.trial.projects import Project, copied
from emberlint.trial.runs import Copy, Outcomes, Record, Runner

# Number of tests that fail at one line whose calls are recorded.
ALIKE = 4


class Failure(NamedTuple):
    """A test that passed before the port and fails after it."""

    test: str
    engine: str
    cause: Cause


class Result(NamedTuple):
    """Result of a trial: numbers of tests that passed and did not pass before, and that pass after, by engine."""

    before: int
    others: int
    passed: dict[str, int]
    failures: list[Failure]
    dtype: str


def trial(
    project: Project,
    command: Command,
    original: Mapping[str, bytes],
    ported: Mapping[str, bytes],
    engines: list[str] | None = None,
    dtype: str = "float64",
) -> Result:
    """Run a test command on the original and on the port; the contents of files are by path in the project.

    The default of ``engines`` is every installed one. ``dtype`` is the default dtype of the port.
    """
    with tempfile.TemporaryDirectory(prefix="emberlint-") as folder:
        runner = Runner(command, project, folder, dtype, {})
        first = Copy(copied(project, os.path.join(folder, "original"), original), "")
        before = runner.outcomes(first)
        chosen = _engines(before, engines)
        good = before.passed()
        _check_passed(before, good)
        runner = runner.limit(before)
        root = copied(project, os.path.join(folder, "port"), ported)
        after = {engine: runner.outcomes(Copy(root, engine), len(before.tests)) for engine in chosen}
        failing = {engine: sorted(good - outcomes.passed()) for engine, outcomes in after.items()}
        models = {engine: _models(tests, after[engine], project) for engine, tests in failing.items()}
        recorded = {engine: sorted(set(model.values())) for engine, model in models.items()}
        found = _divergences(runner, first, root, recorded)
        failures = [
            Failure(
                test,
                engine,
                cause(test, after[engine], found.get((models[engine].get(test, test), engine)), project, ported),
            )
            for engine in chosen
            for test in failing[engine]
        ]
        passed = {engine: len(good) - len(tests) for engine, tests in failing.items()}
        return Result(len(good), len(before.tests) - len(good), passed, failures, dtype)


def _engines(before: Outcomes, engines: list[str] | None) -> list[str]:
    """Engines to run on; an error if one of them is not installed."""
    if before.engines is None:
        raise TrialError("--check: ember_ml must be installed for the Python of the command")
    missing = [engine for engine in engines or [] if engine not in before.engines]
    if missing:
        names = " and ".join(missing)
        raise TrialError(
            f"--engines: {names} cannot be imported by the Python of the command; it has {', '.join(before.engines)}"
        )
    return engines or before.engines


def _check_passed(before: Outcomes, good: set[str]) -> None:
    if good:
        return
    failed = [record for record in (*before.tests.values(), *before.collection) if "message" in record]
    if not failed:
        raise TrialError("--check: pytest found no tests; the command must name them")
    one = failed[0]
    name = one.get("test") or one.get("collection")
    raise TrialError(
        f"--check: no test passes before the port, so none can be compared; {name} fails with {error_text(one)}"
    )


def _models(tests: list[str], outcomes: Outcomes, project: Project) -> dict[str, str]:
    """The tests to record, as values: of each test that ran, itself or an earlier one that fails at the same line.

    Parametrized tests often fail at one line, and recording takes long. Each of the first ``ALIKE`` is recorded.
    """
    known: dict[object, list[str]] = {}
    found = {}
    for test in tests:
        record = outcomes.tests.get(test)
        if record is None or record["outcome"] != "failed":
            continue
        frame = deepest_frame(record, project, inside=True) or deepest_frame(record, project, inside=False)
        alike = known.setdefault((frame[:2] if frame else test, record["error"]), [])
        if len(alike) < ALIKE:
            alike.append(test)
        found[test] = alike[0] if test not in alike else test
    return found


def _divergences(runner: Runner, first: Copy, root: str, failing: dict[str, list[str]]) -> dict[tuple[str, str], Found]:
    """What the functions of the package did differently, by test and engine."""
    tests: dict[str, list[Any]] = {test: [] for names in failing.values() for test in names}
    if not tests:
        return {}
    calls = runner.recorded(first, "calls", tests)
    again = runner.recorded(first, "calls", tests)
    calls = {test: divergences.stable(records, again.get(test, [])) for test, records in calls.items()}
    found: dict[tuple[str, str], Found] = {}
    for engine, names in failing.items():
        after = runner.recorded(Copy(root, engine), "calls", {test: [] for test in names}) if names else {}
        for test in after.keys() & calls.keys():
            pair = calls[test], after[test]
            known = divergences.divergence(*pair)
            found[test, engine] = Found(known, None, divergences.other_arguments(*pair), divergences.other_types(*pair))
    chosen: dict[str, list[Any]] = {}
    for (test, _), one in found.items():
        if one.divergence and not one.divergence.raises():
            chosen.setdefault(test, []).append(one.divergence.call(0))
    if not chosen:
        return found
    lines = runner.recorded(first, "lines", chosen)
    for engine in failing:
        wanted = {
            test: [one.divergence.call(1)]
            for (test, name), one in found.items()
            if name == engine and one.divergence and test in chosen
        }
        after = runner.recorded(Copy(root, engine), "lines", wanted) if wanted else {}
        for test in wanted:
            one = found[test, engine]
            known = one.divergence
            assert known is not None
            left, right = _steps(lines.get(test, []), known.call(0)), _steps(after.get(test, []), known.call(1))
            found[test, engine] = one._replace(step=divergences.step(left, right, known.tolerance))
    return found


def _steps(records: list[Record], call: tuple[str, str, int]) -> list[Any]:
    """Recorded steps of a call; empty if it was not made again."""
    for record in records:
        if (record["file"], record["function"], record["index"]) == call:
            return list(record["steps"])
    return []
