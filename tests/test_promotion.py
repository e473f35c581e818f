"""Promotion by table returns what the general path returns: same dtype, same values, same errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.dispatch.general import GeneralPath
from ember_ml.dispatch.promotion import Binary, Promotion, Unary

NUMBERS = (2, 2.5, -3, 300, 1 << 40, True, 1j)


def promoting(kind: type[Promotion]) -> dict[str, Operation]:
    """The operations that have a promotion of that kind."""
    return {name: one for name, one in REGISTRY.items() if isinstance(one.general.promotion, kind)}


def without_table(operation: Operation) -> GeneralPath:
    """The general path of an operation that works out every common dtype."""
    path = GeneralPath(operation)
    path.promotion = None
    return path


def outcome(call: Any, *values: Any) -> tuple[Any, ...]:
    """What a call returns, as plain values with dtypes, or the class of its error."""
    try:
        result = call(*values)
    except Exception as error:
        return (type(error),)
    several = result if isinstance(result, tuple) else (result,)
    return tuple((str(ops.dtype(one)), str(ops.to_numpy(one).tolist())) for one in several)


def tensors() -> list[Any]:
    """A tensor of every dtype of the active engine."""
    return [ops.cast([1, 3], name) for name in backends.current().dtypes]


@pytest.mark.filterwarnings("ignore")
def test_pairs(backend: str) -> None:
    some = tensors()
    for name, operation in promoting(Binary).items():
        plain = without_table(operation)
        for values in itertools.chain(
            itertools.product(some, some), itertools.product(some, NUMBERS), itertools.product(NUMBERS, some)
        ):
            assert outcome(operation.general, *values) == outcome(plain, *values), (name, *values)


def test_tensors_alone(backend: str) -> None:
    for name, operation in promoting(Unary).items():
        plain = without_table(operation)
        for x in tensors():
            assert outcome(operation.general, x) == outcome(plain, x), (name, x)


def test_most_of_the_elementwise_operations_have_one() -> None:
    names = {name for kind in (Unary, Binary) for name in promoting(kind)}
    assert {"add", "divide", "multiply", "greater", "maximum", "power", "sqrt", "exp", "logaddexp"} <= names
