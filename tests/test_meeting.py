"""The middle way into operations gives what the door gives: same dtype, same values, same errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.contract import REGISTRY, Operation
from ember_ml.meeting import Alone, Meeting, Pair

NUMBERS = (2, 2.5, -3, 300, 1 << 40, True, 1j)


def ways(kind: type[Meeting]) -> list[tuple[str, Operation, Any]]:
    """The operations that have a middle way of that kind, each with it."""
    found = [(name, one, one.short.meeting) for name, one in REGISTRY.items()]
    return [(name, operation, way) for name, operation, way in found if isinstance(way, kind)]


def outcome(call: Any, *values: Any) -> tuple[Any, ...]:
    """What a call answers, as plain values with dtypes, or the class of its error."""
    try:
        answer = call(*values)
    except Exception as error:
        return (type(error),)
    several = answer if isinstance(answer, tuple) else (answer,)
    return tuple((str(ops.dtype(one)), str(ops.to_numpy(one).tolist())) for one in several)


def tensors() -> list[Any]:
    """A tensor of every dtype of the active engine."""
    return [ops.cast([1, 3], name) for name in backends.current().dtypes]


@pytest.mark.filterwarnings("ignore")
def test_pairs(backend: str) -> None:
    some = tensors()
    for name, operation, way in ways(Pair):
        for values in itertools.chain(
            itertools.product(some, some), itertools.product(some, NUMBERS), itertools.product(NUMBERS, some)
        ):
            assert outcome(way, *values) == outcome(operation.door, *values), (name, *values)


def test_tensors_alone(backend: str) -> None:
    for name, operation, way in ways(Alone):
        for x in tensors():
            assert outcome(way, x) == outcome(operation.door, x), (name, x)


def test_most_of_the_elementwise_operations_have_one() -> None:
    names = {name for kind in (Alone, Pair) for name, _, _ in ways(kind)}
    assert {"add", "divide", "multiply", "greater", "maximum", "power", "sqrt", "exp", "logaddexp"} <= names
