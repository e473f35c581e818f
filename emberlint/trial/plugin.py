"""Plugin of pytest that writes the outcome of each test, and what the functions of a package did in it.

It runs in the environment of the user's tests, and reads its settings from the JSON file that the environment variable
``EMBERLINT_TRIAL`` names. Each line of the file that it writes is a JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

import pytest

from emberlint.trial.commands import SETTINGS
from emberlint.trial.recorder import Calls, Files, Lines

_MESSAGE = 600

Record = dict[str, Any]


class Trial:
    """The plugin; ``runs.Runner`` writes its settings."""

    def __init__(self, settings: Record) -> None:
        self._settings = settings
        self._files = Files(settings["root"], settings["files"])
        self._written: set[str] = set()

    def write(self, record: Record) -> None:
        with open(self._settings["output"], "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen = self._settings["tests"]
        if chosen is not None:
            left = [item for item in items if item.nodeid not in chosen]
            items[:] = [item for item in items if item.nodeid in chosen]
            config.hook.pytest_deselected(items=left)

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any], report: object
    ) -> None:
        if isinstance(report, pytest.CollectReport) and call.excinfo is not None:
            self.write({"collection": node.nodeid, **self.failure(call.excinfo.value, report.longreprtext)})

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        outcome: Any = yield
        report = outcome.get_result()
        if report.failed:
            self._written.add(item.nodeid)
            failure = self.failure(call.excinfo.value if call.excinfo else None, report.longreprtext)
            self.write({"test": item.nodeid, "outcome": "failed", "seconds": call.duration, **failure})
        elif call.when == "call" or report.skipped:
            self.write({"test": item.nodeid, "outcome": report.outcome, "seconds": call.duration})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # Subtests have reports of their own.
        if report.failed and report.nodeid not in self._written:
            self.write({"test": report.nodeid, "outcome": "failed", **self.failure(None, report.longreprtext)})

    def failure(self, error: BaseException | None, text: str) -> Record:
        """Description of a failure, with the frames that are files of the project.

        ``context`` is the error that was being handled: one whose message a test rejects, for example.
        """
        if error is None:
            return {"error": "", "message": _last_line(text)[:_MESSAGE], "frames": [], "context": None}
        context = error.__cause__ or error.__context__
        frames = [
            [name, frame.lineno, frame.name, frame.line or ""]
            for frame in traceback.extract_tb(error.__traceback__)
            if (name := self._files.relative(frame.filename))
        ]
        return {
            "error": type(error).__name__,
            "message": (str(error) or _last_line(text))[:_MESSAGE],
            "frames": frames,
            "context": self.failure(context, "") if context is not None else None,
        }

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        recorder = self._recorder(item.nodeid)
        if recorder is None:
            yield
            return
        _seed()
        recorder.start()
        try:
            yield
        finally:
            records = recorder.stop()
            self.write({"test": item.nodeid, self._settings["recorded"]: records})

    def _recorder(self, test: str) -> Calls | Lines | None:
        if self._settings["recorded"] == "calls":
            return Calls(self._files)
        if self._settings["recorded"] == "lines":
            chosen: dict[tuple[str, str], set[int]] = {}
            for file, function, index in self._settings["tests"][test]:
                chosen.setdefault((file, function), set()).add(index)
            return Lines(self._files, chosen)
        return None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        limit = self._settings["limits"].get(item.nodeid, 0.0)
        if not limit or not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> NoReturn:
            raise TimeoutError(f"the test did not end within {limit:.0f} s")

        handler = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)

    def pytest_sessionfinish(self) -> None:
        modules = {}
        for name in self._settings["modules"]:
            file = getattr(sys.modules.get(name), "__file__", None)
            if file:
                modules[name] = file
        self.write({"modules": modules, "engines": _engines(), "time": time.time()})


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return errors[-1] if errors else lines[-1] if lines else ""


def _seed() -> None:
    """Seed the global generators, so that tests without a seed get the same numbers in both runs."""
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)


def _engines() -> list[str] | None:
    """Installed engines; ``None`` if ember is not installed."""
    try:
        import ember_ml
    except ImportError:
        return None
    return list(ember_ml.get_available_backends())


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    # A conftest.py may import the package, whose constants have the engine and the dtype of that moment.
    path = os.environ.get(SETTINGS)
    if not path:
        yield
        return
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    if settings["engine"]:
        import ember_ml

        ember_ml.set_backend(settings["engine"])
        ember_ml.ops.set_default_dtype(settings["dtype"])
    trial = Trial(settings)
    early_config.pluginmanager.register(trial, "emberlint-trial")
    outcome: Any = yield
    if outcome.excinfo is not None:
        error = outcome.excinfo[1]
        trial.write({"collection": "", **trial.failure(getattr(error, "cause", error), "")})
