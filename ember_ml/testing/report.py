"""The report of ``check_backend``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.dtypes import default_float
from ember_ml.errors import MissingOperationError
from ember_ml.testing import contract, gradients
from ember_ml.testing.comparison import assertions_made
from ember_ml.testing.pairing import CHECKS, Check, full_name, missing_operations

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Outcome(NamedTuple):
    """Outcome of one check of one operation; ``skipped`` if it needs an operation that the engine does not support."""

    operation: str
    check: str
    status: str
    message: str = ""

    def __str__(self) -> str:
        lines = self.message.splitlines() or [""]
        return "\n    ".join([f"{self.operation}: {self.check}", *lines])


class Report:
    """Outcomes of the checks of an engine. Operations are named with their category, as in ``math.add``.

    ``passed`` and ``failed`` are lists of operations; an operation passes if none of its checks fails. ``failures`` is
    the list of failed checks. ``missing`` has the operations that the engine does not support, with the reason.
    """

    def __init__(self, backend: str, outcomes: Sequence[Outcome], missing: dict[str, str]) -> None:
        self.backend = backend
        self.outcomes = list(outcomes)
        self.missing = missing
        self.failures = [outcome for outcome in self.outcomes if outcome.status == FAILED]
        self.failed = list(dict.fromkeys(outcome.operation for outcome in self.failures))
        self.passed = [
            name
            for name in dict.fromkeys(outcome.operation for outcome in self.outcomes if outcome.status == PASSED)
            if name not in self.failed
        ]

    def raise_for_failures(self) -> None:
        """Raise an ``AssertionError`` with all failures, if there are any."""
        if self.failures:
            raise AssertionError(f"the {self.backend} backend fails {len(self.failures)} checks:\n{self._failures()}")

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        counts = f"{len(self.passed)} operations passed, {len(self.failed)} failed, {len(self.missing)} missing"
        lines = [f"{self.backend}: {counts}", *self._by_category(), *self._by_aspect(), *self._missing()]
        return "\n".join([*lines, *(["failures:", self._failures()] if self.failures else [])])

    def _by_category(self) -> Iterator[str]:
        yield f"{'category':14}{'passed':>8}{'failed':>8}{'missing':>8}"
        for category in dict.fromkeys(operation.category for operation in REGISTRY.values()):
            counts = [_in_category(category, names) for names in (self.passed, self.failed, self.missing)]
            if any(counts):
                yield f"{category:14}" + "".join(f"{len(names):>8}" for names in counts)

    def _by_aspect(self) -> Iterator[str]:
        yield f"{'checks':14}{'passed':>8}{'failed':>8}{'skipped':>8}"
        for aspect in dict.fromkeys(check.aspect for check in CHECKS.values()):
            found = [o.status for o in self.outcomes if CHECKS[o.check].aspect == aspect]
            yield f"{aspect:14}" + "".join(f"{found.count(status):>8}" for status in (PASSED, FAILED, SKIPPED))

    def _missing(self) -> Iterator[str]:
        for category in dict.fromkeys(name.partition(".")[0] for name in self.missing):
            yield f"missing in {category}: {', '.join(_in_category(category, self.missing))}"

    def _failures(self) -> str:
        return "\n".join(f"  {outcome}" for outcome in self.failures)


def _in_category(category: str, names: Iterable[str]) -> list[str]:
    return [name.partition(".")[2] for name in names if name.partition(".")[0] == category]


def run_checks(name: str, operations: Iterable[str] | None = None) -> Report:
    """Run the checks of an engine and return the report."""
    backend = backends.load(name, "check_backend")
    chosen = _select(operations)
    outcomes: list[Outcome] = []
    with _restore_settings(backend), warnings.catch_warnings(action="ignore"), ember_ml.use_backend(name):
        missing = {lacked: why for lacked, why in missing_operations(name).items() if lacked in chosen}
        for module in (contract, gradients):
            for function in map(vars(module).__getitem__, module.__all__):
                check: Check = function.__check__
                for operation, _ in check.pairs([name]):
                    if full_name(operation) in chosen:
                        outcomes += _run_check(check, operation, backend)
    return Report(name, outcomes, missing)


def _select(operations: Iterable[str] | None) -> set[str]:
    if operations is None:
        return {full_name(operation) for operation in REGISTRY.values()}
    names = set(operations)
    found = {o.name: full_name(o) for o in REGISTRY.values()} | {full_name(o): full_name(o) for o in REGISTRY.values()}
    unknown = sorted(names - set(found))
    if unknown:
        raise ValueError(f"check_backend: operations must be names of operations, got {', '.join(unknown)}")
    return {found[name] for name in names}


def _run_check(check: Check, operation: Operation, backend: Backend) -> list[Outcome]:
    """Outcome of a check; none if it makes no assertion."""
    before = assertions_made()
    name = full_name(operation), check.function.__name__
    try:
        check.function(operation, backend)
    except MissingOperationError as error:
        return [Outcome(*name, SKIPPED, str(error))]
    except Exception as error:
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        return [Outcome(*name, FAILED, "\n".join([f"{kind}{error}", *getattr(error, "__notes__", ())]))]
    return [Outcome(*name, PASSED)] if assertions_made() > before else []


@contextmanager
def _restore_settings(backend: Backend) -> Iterator[None]:
    """Restore the settings that operations change, at the end of the ``with`` block."""
    floating, device, stream = default_float(), backend.chosen_device, ops.random.get_state()
    try:
        yield
    finally:
        ops.set_default_dtype(floating)
        backend.choose_device(device)
        ops.random.set_state(stream)
