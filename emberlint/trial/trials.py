"""A trial: the tests of a project before a port and after it, on each engine, and the cause of each failure."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from emberlint.trial import causes
from emberlint.trial.causes import Divergence
from emberlint.trial.commands import Command
from emberlint.trial.errors import TrialError
from emberlint.trial.projects import Project, copied
from emberlint.trial.runs import Copy, Outcomes, Record, Runner

# Number of tests that raise at one line whose calls are recorded.
ALIKE = 4


class Cause(NamedTuple):
    """The cause of a failure: a place, what happens there, and further facts.

    ``file`` is empty if no place is known. ``test`` is the place where the test fails, if that is another one.
    """

    file: str
    line: int
    text: str
    facts: tuple[str, ...] = ()
    test: str = ""


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


def trial(
    project: Project,
    command: Command,
    original: Mapping[str, bytes],
    ported: Mapping[str, bytes],
    engines: list[str] | None = None,
) -> Result:
    """Run a test command on the original and on the port; the contents of files are by path in the project.

    The default of ``engines`` is every installed one.
    """
    with tempfile.TemporaryDirectory(prefix="emberlint-") as folder:
        runner = Runner(command, project, folder, {})
        first = Copy(copied(project, os.path.join(folder, "original"), original), "")
        before = runner.outcomes(first)
        chosen = _engines(before, engines)
        good = before.passed()
        _check_passed(before, good)
        runner = runner.limit(before)
        root = copied(project, os.path.join(folder, "port"), ported)
        after = {engine: runner.outcomes(Copy(root, engine), len(before.tests)) for engine in chosen}
        failing = {engine: sorted(good - outcomes.passed()) for engine, outcomes in after.items()}
        recorded = {engine: _recorded(tests, after[engine], project) for engine, tests in failing.items()}
        found = _divergences(runner, first, root, recorded)
        failures = [
            Failure(test, engine, _cause(test, after[engine], found.get((test, engine)), project, ported))
            for engine in chosen
            for test in failing[engine]
        ]
        passed = {engine: len(good) - len(tests) for engine, tests in failing.items()}
        return Result(len(good), len(before.tests) - len(good), passed, failures)


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
        f"--check: no test passes before the port, so none can be compared; {name} fails with {_error(one)}"
    )


class Found(NamedTuple):
    """What the records of a test show: its divergence and the line of it, or how its results differ in type."""

    divergence: Divergence | None
    step: causes.Step | None
    arguments: Divergence | None
    types: Divergence | None


def _recorded(tests: list[str], outcomes: Outcomes, project: Project) -> list[str]:
    """Tests to record: those that ran, but only some of those that fail at the same line of the package."""
    counts: Counter[tuple[str, int]] = Counter()
    found = []
    for test in tests:
        record = outcomes.tests.get(test)
        if record is None or record["outcome"] != "failed":
            continue
        frame = _deepest(record, project, inside=True)
        if frame is not None:
            counts[frame[:2]] += 1
        if frame is None or counts[frame[:2]] <= ALIKE:
            found.append(test)
    return found


def _divergences(runner: Runner, first: Copy, root: str, failing: dict[str, list[str]]) -> dict[tuple[str, str], Found]:
    """What the functions of the package did differently, by test and engine."""
    tests: dict[str, list[Any]] = {test: [] for names in failing.values() for test in names}
    if not tests:
        return {}
    calls = runner.recorded(first, "calls", tests)
    again = runner.recorded(first, "calls", tests)
    calls = {test: causes.stable(records, again.get(test, [])) for test, records in calls.items()}
    found: dict[tuple[str, str], Found] = {}
    for engine, names in failing.items():
        after = runner.recorded(Copy(root, engine), "calls", {test: [] for test in names}) if names else {}
        for test in after.keys() & calls.keys():
            pair = calls[test], after[test]
            known = causes.divergence(*pair)
            found[test, engine] = Found(known, None, causes.other_arguments(*pair), causes.other_types(*pair))
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
            found[test, engine] = one._replace(step=causes.step(left, right, known.tolerance))
    return found


def _steps(records: list[Record], call: tuple[str, str, int]) -> list[Any]:
    """Recorded steps of a call; empty if it was not made again."""
    for record in records:
        if (record["file"], record["function"], record["index"]) == call:
            return list(record["steps"])
    return []


def _cause(test: str, outcomes: Outcomes, found: Found | None, project: Project, ported: Mapping[str, bytes]) -> Cause:
    record = outcomes.tests.get(test)
    if record is None:
        return _uncollected(test, outcomes, project)
    if record["outcome"] != "failed":
        return Cause("", 0, f"it is {record['outcome']} now")
    inside = _deepest(record, project, inside=True)
    known = found.divergence if found else None
    facts = []
    if known is not None and found is not None:
        place = _place(known, found.step, ported)
        if inside is None:
            return Cause(*place, (), _failed(record, project))
        if not known.raises():
            facts.append(f"first difference: {place[0]}:{place[1]}: {place[2]}")
    if inside is not None:
        file, line, _, text = inside
        return Cause(file, line, f"`{text}` raises {_error(record)}", tuple(facts), _failed(record, project))
    return _in_test(record, found, project)


def _place(known: Divergence, step: causes.Step | None, ported: Mapping[str, bytes]) -> tuple[str, int, str]:
    """File, line and text of a divergence."""
    after = known.after
    line = after["start"] + step.line if step else after["line"]
    source = _source(ported, after["file"], line)
    function = after["function"]
    digits = " in the last digits" if known.tolerance < 1e-8 else ""
    if step and step.difference:
        part, before, now = step.difference
        text = (
            f"`{step.variable}{part}` differs{digits} in `{function}` after `{source}`: {now}, before the port {before}"
        )
    elif step:
        text = f"`{function}` continues with another line after `{source}`"
    else:
        part, before, now = known.difference
        what = f"the result{part}" if known.what == "result" else f"the argument `{known.what}{part}` after the call"
        text = f"{what} of `{function}` differs{digits} (`{source}`): {now}, before the port {before}"
    return after["file"], line, text


def _source(contents: Mapping[str, bytes], file: str, line: int) -> str:
    lines = contents.get(file, b"").decode(errors="replace").splitlines()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return text if len(text) <= 100 else text[:96] + " ..."


def _failed(record: Record, project: Project) -> str:
    """The place in the test where it failed."""
    frame = _deepest(record, project, inside=False)
    return f"{frame[0]}:{frame[1]}" if frame else ""


def _in_test(record: Record, found: Found | None, project: Project) -> Cause:
    """Cause of a failure that no function of the package explains by its values."""
    frame = _deepest(record, project, inside=False)
    file, line, _, text = frame or ("", 0, "", "")
    facts = []
    context = record["context"]
    origin = _deepest(context, project, inside=True) if context else None
    if origin is not None:
        facts.append(f"it checks an error that {origin[0]}:{origin[1]} raises: {_error(context)}")
    if found is not None and found.arguments is not None:
        known = found.arguments
        part, before, now = known.difference
        name = f"{known.what}{part}"
        facts.append(f"`{known.after['function']}` gets another `{name}`: {now}, before the port {before}")
    if found is not None and found.types is not None:
        known = found.types
        part, before, now = known.difference
        place = f"{known.after['file']}:{known.after['start']}"
        facts.append(f"`{known.after['function']}` ({place}) returns {now}{part and f' in {part}'}, not {before}")
    if not facts:
        facts.append("no function of the package has another result or type than before")
    return Cause(file, line, f"the test, `{text}`: {_error(record)}", tuple(facts))


def _uncollected(test: str, outcomes: Outcomes, project: Project) -> Cause:
    """Cause of a test that did not run."""
    for record in outcomes.collection:
        name = record["collection"]
        if test.startswith(name) or name == "":
            frame = _deepest(record, project, inside=True) or _deepest(record, project, inside=False)
            if frame is None:
                return Cause("", 0, f"the test did not run: {_error(record)}")
            return Cause(frame[0], frame[1], f"`{frame[3]}` raises {_error(record)}, so the tests cannot be imported")
    return Cause("", 0, "the test did not run: pytest did not collect it, or stopped before")


def _deepest(record: Record, project: Project, *, inside: bool) -> tuple[str, int, str, str] | None:
    """Last frame of a failure that is inside of the package, or outside of it."""
    for file, line, name, text in reversed(record["frames"]):
        if (file in project.modules) == inside:
            return file, line, name, text
    return None


def _error(record: Record) -> str:
    message = " ".join(record["message"].split())
    message = message if len(message) <= 200 else message[:196] + " ..."
    return f"{record['error']}: {message}" if record["error"] else message
