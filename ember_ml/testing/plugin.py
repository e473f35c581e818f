"""The pytest plugin: the fixtures ``backend`` and ``device``, the options of the same names, and the summary.

A check is parametrized with the pairs of operation and engine that it applies to. A case of a module with the marker
``contract`` fails if it makes no assertion. The terminal summary has the number of operations that passed each check on
each engine; with ``--backend``, it is the report of that engine.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.errors import MissingOperationError
from ember_ml.testing.comparison import assertions_made
from ember_ml.testing.pairing import CHECKS, ENGINES, Check, full_name, missing_operations
from ember_ml.testing.report import FAILED, PASSED, SKIPPED, Outcome, Report

_JUDGED = "judged"
_DESELECTED = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options ``--backend`` and ``--device``."""
    group = parser.getgroup("ember_ml.testing")
    group.addoption("--backend", help="backend to test (default: all installed backends)")
    default = os.environ.get("EMBER_ML_TEST_DEVICE", "cpu")
    group.addoption(
        "--device",
        default=default,
        help=f"default device of the engines; those that lack it are not tested (default: {default})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the backend and the device given as options."""
    config.addinivalue_line("markers", "contract: a check of the contract; each case must make an assertion")
    config.addinivalue_line("markers", "device: needs an accelerator; runs with --device")
    device, names = config.getoption("--device"), engines(config)
    try:
        found = {name: backends.load(name, "--backend").devices() for name in names if name not in ENGINES}
    except ember_ml.BackendNotFoundError as error:
        raise pytest.UsageError(str(error)) from error
    if device != "cpu":
        found = {name: backends.load(name).devices() for name in names}
        if not any(device in devices for devices in found.values()):
            raise pytest.UsageError(f"--device: no engine has {device!r}; available: {found}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of engines that lack the device."""
    device = config.getoption("--device")
    lacking = [name for name in engines(config) if device != "cpu" and device not in backends.load(name).devices()]
    left_out = [item for item in items if engine_of(item) in lacking]
    if left_out:
        config.stash[_DESELECTED] = f"--device {device}: {len(left_out)} tests of {', '.join(lacking)} are deselected"
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if engine_of(item) not in lacking]


def engine_of(item: pytest.Item) -> str | None:
    """Name of the engine that a test runs on, if it is of one engine."""
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("backend")


def pytest_report_collectionfinish(config: pytest.Config) -> str:
    """Say which engines are not tested because they lack the device."""
    return config.stash.get(_DESELECTED, "")


def engines(config: pytest.Config) -> list[str]:
    """Names of the backends to test."""
    chosen = config.getoption("--backend")
    return [chosen] if chosen else ENGINES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a check with its pairs, and any other test that has a fixture ``backend`` with the engines."""
    check: Check | None = getattr(metafunc.function, "__check__", None)
    names = engines(metafunc.config)
    if check is not None:
        cases = [pytest.param(o, name, id=f"{name}-{full_name(o)}") for o, name in check.pairs(names)]
        metafunc.parametrize(("operation", "backend"), cases, indirect=["backend"])
    elif "backend" in metafunc.fixturenames and "backend" not in _given(metafunc):
        metafunc.parametrize("backend", names, indirect=True)


def _given(metafunc: pytest.Metafunc) -> set[str]:
    """Names of the parameters that the markers of the test parametrize."""
    found: set[str] = set()
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0]
        found.update(map(str.strip, names.split(",")) if isinstance(names, str) else names)
    return found


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    """Device to test."""
    found: str = request.config.getoption("--device")
    return found


@pytest.fixture
def backend(request: pytest.FixtureRequest, device: str) -> Iterator[backends.Backend]:
    """Loaded engine, active during the test, with the device given by ``--device`` as its default."""
    loaded = backends.load(request.param)
    before = loaded.chosen_device
    ember_ml.set_backend(request.param)
    settle(loaded, device)
    yield loaded
    loaded.choose_device(before)
    ember_ml.set_backend("numpy")


def settle(loaded: backends.Backend, device: str) -> None:
    """Make ``device`` the default device of an engine that has it."""
    with ember_ml.use_backend(loaded.name):
        if device in loaded.devices() and ops.get_default_device() != device:
            ops.set_default_device(device)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with the marker ``device`` unless an accelerator is tested."""
    if item.config.getoption("--device") == "cpu" and item.get_closest_marker("device"):
        pytest.skip("needs an accelerator: run with --device, such as --device cuda")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[Any]:
    """Fail a contract case that makes no assertion; record the operation and engine of the others."""
    before = assertions_made()
    is_check = hasattr(pyfuncitem.obj, "__check__")
    is_contract = pyfuncitem.get_closest_marker("contract") is not None and hasattr(pyfuncitem, "callspec")
    given: dict[str, Any] = pyfuncitem.callspec.params if is_check or is_contract else {}
    if "operation" in given:
        judged = [pyfuncitem.originalname, full_name(given["operation"]), given.get("backend", "any engine")]
        pyfuncitem.user_properties.append((_JUDGED, judged))
    try:
        result = yield
    except MissingOperationError as error:
        # Operations may be missing only on an engine given with --backend.
        if is_check and pyfuncitem.config.getoption("--backend"):
            pytest.skip(str(error))
        raise
    if is_contract and assertions_made() == before:
        pytest.fail("this case made no assertion: select only pairs that the check applies to", pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the report of the engine given with ``--backend``, or a table of the operations that passed each check."""
    outcomes = [
        (status, *value)
        for status in (PASSED, FAILED, SKIPPED)
        for report in terminalreporter.stats.get(status, [])
        for key, value in (report.user_properties if report.when == "call" else ())
        if key == _JUDGED
    ]
    chosen = config.getoption("--backend")
    if chosen and outcomes:
        of_checks = [Outcome(operation, check, status) for status, check, operation, _ in outcomes if check in CHECKS]
        terminalreporter.write_line(str(Report(chosen, of_checks, missing_operations(chosen))))
        return
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for status, check, operation, engine in outcomes:
        if status == PASSED:
            found[check][engine].add(operation)
    if found:
        _write_judged(terminalreporter, found, [*engines(config), "any engine"])


def _write_judged(
    terminalreporter: pytest.TerminalReporter, found: dict[str, dict[str, set[str]]], columns: list[str]
) -> None:
    title = "operations judged"
    width = max(map(len, [title, *found]))
    terminalreporter.write_line(" ".join([f"{title:{width}}", *(f"{engine:>10}" for engine in columns)]))
    for check, by_engine in sorted(found.items()):
        counts = [f"{len(by_engine[engine]) or '-':>10}" for engine in columns]
        terminalreporter.write_line(" ".join([f"{check:{width}}", *counts]))
