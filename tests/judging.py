"""The contract's honesty: which (operation, engine) pairs each check judges, and that each of its cases asserts.

A check is a test of ``test_contract.py`` and its kin, marked ``contract`` and collected with ``pairs`` over the pairs
that it applies to. A case that makes no assertion fails. The terminal summary has the number of operations that each
check judged on each engine; ``FLOORS`` holds what those numbers may not fall below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from agreement import assertions_made

import ember_ml
from ember_ml import backend as backends
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, Operation

ENGINES = ember_ml.get_available_backends()
OTHERS = [name for name in ENGINES if name != "numpy"]

F = TypeVar("F", bound=Callable[..., Any])

# The pairs that each check is collected over.
CHECKS: dict[str, list[tuple[Operation, str]]] = {}

_JUDGED = "judged"


def pairs(applies: Callable[[Operation, Backend], object] | None = None, engines: list[str] = ENGINES) -> Callable:
    """A decorator that collects a check over the operations and engines for which ``applies`` is true."""

    def decorate(check: F) -> F:
        found = [
            (operation, name)
            for name in engines
            for operation in REGISTRY.values()
            if applies is None or applies(operation, backends.load(name))
        ]
        CHECKS[check.__name__] = found
        cases = [pytest.param(o, name, id=f"{name}-{o.category}.{o.name}") for o, name in found]
        return pytest.mark.parametrize(("operation", "backend"), cases, indirect=["backend"])(check)

    return decorate


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[Any]:
    """Fail a contract case that made no assertion; note what the others judged."""
    before = assertions_made()
    result = yield
    if pyfuncitem.get_closest_marker("contract") is not None and hasattr(pyfuncitem, "callspec"):
        if assertions_made() == before:
            pytest.fail("this case made no assertion: collect the check over pairs that it applies to", pytrace=False)
        given = pyfuncitem.callspec.params
        if "operation" in given:
            operation = given["operation"]
            judged = [
                pyfuncitem.originalname,
                f"{operation.category}.{operation.name}",
                given.get("backend", "any engine"),
            ]
            pyfuncitem.user_properties.append((_JUDGED, judged))
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A table of the operations that each check judged on each engine."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for report in terminalreporter.stats.get("passed", []):
        for key, value in report.user_properties if report.when == "call" else ():
            if key == _JUDGED:
                check, operation, engine = value
                found[check][engine].add(operation)
    if not found:
        return
    engines = [*ENGINES, "any engine"]
    title = "operations judged"
    width = max(map(len, [title, *found]))
    terminalreporter.write_line(" ".join([f"{title:{width}}", *(f"{engine:>10}" for engine in engines)]))
    for check, by_engine in sorted(found.items()):
        counts = [f"{len(by_engine[engine]) or '-':>10}" for engine in engines]
        terminalreporter.write_line(" ".join([f"{check:{width}}", *counts]))
