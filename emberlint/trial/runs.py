"""Runs of a test command in a copy of a project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from emberlint.trial.commands import PLUGIN, SETTINGS, Command
from emberlint.trial.errors import TrialError
from emberlint.trial.projects import Project

_TAIL = 12
_INTERVAL = 0.2
# The time that a test may take after the port, given the time before it: calls of operations cost more than NumPy's.
_LIMIT, _FACTOR = 60.0, 30.0

Record = dict[str, Any]


class Copy(NamedTuple):
    """A copy of a project, and the engine that its tests run on; empty for the original."""

    root: str
    engine: str

    def title(self) -> str:
        return f"the port on {self.engine}" if self.engine else "the original"


class Outcomes(NamedTuple):
    """What a run found: the record of each test, the errors of files that could not be imported, installed engines."""

    tests: dict[str, Record]
    collection: list[Record]
    engines: list[str] | None

    def passed(self) -> set[str]:
        return {test for test, record in self.tests.items() if record["outcome"] == "passed"}


class Runner(NamedTuple):
    """What the runs of a trial share.

    ``scratch`` is a folder for files, ``dtype`` the default dtype of the port, ``limits`` are seconds by test.
    """

    command: Command
    project: Project
    scratch: str
    dtype: str
    limits: dict[str, float]

    def limit(self, before: Outcomes) -> Runner:
        """The same, with limits for the tests of another run."""
        seconds = {test: _LIMIT + _FACTOR * record.get("seconds", 0.0) for test, record in before.tests.items()}
        return self._replace(limits=seconds)

    def outcomes(self, copy: Copy, total: int = 0) -> Outcomes:
        """Outcomes of all tests."""
        records, output = self._run(copy, "", None, total)
        tests: dict[str, Record] = {}
        collection = []
        end: Record = {}
        for record in records:
            if "collection" in record:
                collection.append(record)
            elif "test" in record:
                known = tests.get(record["test"])
                if known is None or (record["outcome"] == "failed" and known["outcome"] != "failed"):
                    tests[record["test"]] = record
            else:
                end = record
        if not end and not copy.engine:
            raise TrialError(_unfinished(copy, output))
        if not end:
            # The port may crash the interpreter, or fail in conftest.py.
            collection.append({"collection": "", "error": "", "message": f"pytest ended: {output}", "frames": []})
            return Outcomes(tests, collection, None)
        found = Outcomes(tests, collection, end["engines"])
        self._check_modules(copy, end["modules"], bool(found.passed()))
        return found

    def recorded(self, copy: Copy, kind: str, tests: Mapping[str, list[Any]]) -> dict[str, list[Record]]:
        """What functions did in some tests: ``calls``, or the ``lines`` of the calls that ``tests`` names."""
        records, _ = self._run(copy, kind, tests, len(tests))
        return {record["test"]: record[kind] for record in records if kind in record}

    def _check_modules(self, copy: Copy, modules: dict[str, str], passed: bool) -> None:
        """Raise an error if the tests imported the package from elsewhere, or did not import it."""
        inside = os.path.realpath(copy.root) + os.sep
        for name, file in modules.items():
            if not os.path.realpath(file).startswith(inside):
                raise TrialError(
                    f"the tests import {name} from {file}, not from the copy that is tested; uninstall it, or run them "
                    "in another environment"
                )
        if passed and not modules:
            raise TrialError("the tests import none of the files that are ported, so they cannot check the port")

    def _run(
        self, copy: Copy, kind: str, tests: Mapping[str, list[Any]] | None, total: int
    ) -> tuple[list[Record], str]:
        """Records that the plugin wrote, and the last lines that pytest printed."""
        settings = os.path.join(self.scratch, "settings.json")
        records = os.path.join(self.scratch, "records.jsonl")
        log = os.path.join(self.scratch, "output.txt")
        with open(settings, "w", encoding="utf-8") as file:
            json.dump(
                {
                    "root": copy.root,
                    "files": list(self.project.modules),
                    "modules": list(self.project.modules.values()),
                    "engine": copy.engine,
                    "dtype": self.dtype,
                    "recorded": kind,
                    "tests": tests,
                    "limits": self.limits,
                    "output": records,
                },
                file,
            )
        open(records, "w", encoding="utf-8").close()
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(
                self.command.line(),
                cwd=os.path.join(copy.root, self.project.relative(os.getcwd())),
                env=self._environment(copy, settings),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
            try:
                _follow(process, records, f"{_WORK[kind]} {copy.title()}", total)
            finally:
                process.kill()
                process.wait()
        with open(records, encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        with open(log, encoding="utf-8", errors="replace") as file:
            return found, "".join(file.readlines()[-_TAIL:])

    def _environment(self, copy: Copy, settings: str) -> dict[str, str]:
        """Environment of a run, in which the copy is imported before any other version of the package."""
        given = {**os.environ, **self.command.variables}
        paths = [os.path.join(copy.root, root) for root in self.project.roots()]
        for path in given.get("PYTHONPATH", "").split(os.pathsep):
            inner = self.project.relative(path) if path else ".."
            paths += [os.path.join(copy.root, inner)] if not inner.startswith("..") else [path] if path else []
        changes = {"PYTHONPATH": os.pathsep.join(paths), SETTINGS: settings}
        if copy.engine:
            # The original of NumPy computes on the CPU, where every engine has float64.
            changes |= {"EMBER_ML_BACKEND": copy.engine, "EMBER_ML_DEVICE": "cpu"}
        return {**given, **changes}


_WORK = {"": "running the tests of", "calls": "recording calls of", "lines": "recording lines of"}


def _follow(process: subprocess.Popen[bytes], records: str, title: str, total: int) -> None:
    """Wait for a run, and show on standard error what it does."""
    shown = sys.stderr.isatty()
    of = f" of {total}" if total else ""
    if not shown:
        sys.stderr.write(f"{title} ({total} test{'s' * (total > 1)})\n" if total else f"{title}\n")
    sys.stderr.flush()
    start = time.monotonic()
    done = 0
    with open(records, encoding="utf-8") as file:
        while process.poll() is None:
            done += sum(line.startswith('{"test"') for line in file)
            if shown:
                sys.stderr.write(f"\r{title}: {done}{of} tests, {time.monotonic() - start:.0f} s")
                sys.stderr.flush()
            try:
                process.wait(_INTERVAL)
            except subprocess.TimeoutExpired:
                continue
    if shown:
        sys.stderr.write("\n")


def _unfinished(copy: Copy, output: str) -> str:
    """Message for a run in which pytest ended without running the session."""
    if "No module named pytest" in output:
        return "--check: pytest is not installed for the Python of the command"
    if PLUGIN in output or "No module named 'emberlint" in output:
        return f"--check: ember_ml must be installed for the Python of the command\n{output}"
    return f"--check: pytest did not run the tests of {copy.title()}; it printed:\n{output}"
