"""Checks, which are functions of an operation and an engine, and the pairs that each applies to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import ember_ml
from ember_ml import backend as backends
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.dtypes import DTYPES, doubled
from ember_ml.errors import MissingOperationError
from ember_ml.testing.comparison import dtype_name, dtypes_of_device
from ember_ml.testing.programs import Attempt, Job, attempts
from ember_ml.testing.samples import Call, calls

ENGINES = ember_ml.get_available_backends()

REFERENCE = "numpy"
"""Engine that the others are compared with."""

F = TypeVar("F", bound=Callable[..., Any])


class Check(NamedTuple):
    """Function that asserts a property of an operation on an engine, and the pairs that it applies to."""

    function: Callable[..., None]
    applies: Callable[[Operation, Backend], object]
    aspect: str
    reference: bool
    missing: bool

    def pairs(self, engines: Iterable[str]) -> list[tuple[Operation, str]]:
        """Pairs of an operation and one of these engines that the check applies to.

        The engines of an operation follow each other, since they are compared with the same results of the reference.
        """
        judged = [name for name in engines if self.reference or name != REFERENCE]
        return [
            (operation, name)
            for operation in REGISTRY.values()
            for name in judged
            if (self.missing or full_name(operation) not in missing_operations(name))
            and self.applies(operation, backends.load(name))
        ]


CHECKS: dict[str, Check] = {}
"""Declared checks by name."""


def pairs(
    applies: Callable[[Operation, Backend], object] = lambda operation, backend: True,
    *,
    aspect: str = "values",
    reference: bool = True,
    missing: bool = False,
) -> Callable[[F], F]:
    """Decorator that declares a check, which applies to the operations and engines for which ``applies`` is true.

    Args:
        aspect: what the check is about: ``values``, ``dtypes``, ``errors``, ``gradients`` ...
        reference: whether it applies to NumPy, the reference.
        missing: whether it applies to operations that the engine does not support.
    """

    def declare(function: F) -> F:
        CHECKS[function.__name__] = function.__check__ = Check(  # type: ignore[attr-defined]
            function, applies, aspect, reference, missing
        )
        return function

    return declare


def full_name(operation: Operation) -> str:
    """Name of an operation with its category, as in test ids: ``math.add``."""
    return f"{operation.category}.{operation.name}"


def run(operation: Operation, backend: Backend, call: Call) -> Any:
    """Result of the operation on an engine."""
    with ember_ml.use_backend(backend.name):
        native = on(backend, call)
        return operation.call(*native.args, **native.kwargs)


def run_all(operation: Operation, backend: Backend, calls: Sequence[Call]) -> list[Attempt]:
    """An attempt for each call, which returns what ``run`` does."""
    return attempts(backend, [_job(operation, backend, call) for call in calls])


def _job(operation: Operation, backend: Backend, call: Call) -> Job:
    """Function of the tensors of a call that computes the operation, and those tensors."""
    tensors: list[Any] = []
    call.map(lambda array: tensors.append(backend.convert(array, None, backend.device)))

    def compute(*tensors: Any) -> Any:
        rest = iter(tensors)
        native = call.map(lambda array: next(rest))
        with ember_ml.use_backend(backend.name):
            return operation.call(*native.args, **native.kwargs)

    return compute, tensors


def on(backend: Backend, call: Call) -> Call:
    """Call with its arrays converted to tensors of the engine."""
    return call.map(lambda array: backend.convert(array, None, backend.device))


def storable(backend: Backend, call: Call, operation: Operation | None = None) -> bool:
    """Whether the engine supports the dtypes of a call: of arrays, in arguments, and in the rule of the operation."""
    if operation is not None and operation.rule is doubled and not backend.has_float64():
        return False
    found = [value for value in (*call.args, *call.kwargs.values()) if isinstance(value, str) and value in DTYPES]
    call.map(lambda array: found.append(dtype_name(array)))
    return dtypes_of_device(backend).issuperset(found)


@cache
def missing_operations(name: str) -> dict[str, str]:
    """Operations that the engine does not support, and those that need them: full name to error message."""
    backend = backends.load(name)
    draws = not isinstance(backend.random, backends.Refusal)
    if draws and all(backend.provider(operation) != "missing" for operation in REGISTRY.values()):
        return {}
    return {
        full_name(operation): lack for operation in REGISTRY.values() if (lack := _lack(operation, backend)) is not None
    }


def _lack(operation: Operation, backend: Backend) -> str | None:
    """Why the engine does not support the operation; ``None`` if it does."""
    possible = [call for call in calls(operation) if storable(backend, call, operation)]
    for call in possible:
        try:
            run(operation, backend, call)
        except MissingOperationError as error:
            return str(error)
        except Exception:
            continue
    return None if possible else f"the {backend.name} backend has no dtype that {operation.name} is tested with"
