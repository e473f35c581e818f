"""Every operation on empty operands: each engine returns what the reference returns, or raises an error of its class.

The cases come from the samples of the registry. One operand, or all of them, become empty along one axis, along every
axis, or as a vector ``(0,)``; a 0-d tensor replaces them too. This file names no operation.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from ember_ml import backend as backends
from ember_ml.backend import Backend
from ember_ml.dispatch import Operation
from ember_ml.errors import AxisError, UnsupportedError
from ember_ml.testing.comparison import assert_same, dtype_name, dtypes_of_device, expect
from ember_ml.testing.contract import dtypes_of, is_steady, run, storable, tolerance
from ember_ml.testing.pairing import pairs, run_all
from ember_ml.testing.programs import Attempt
from ember_ml.testing.samples import Call, calls

pytestmark = pytest.mark.contract

Shape = tuple[int, ...]

# More often than a function of any sample is called.
MANY = 1000


class EndlessError(Exception):
    """A function was called so often that the operation would never end."""


# No LinAlgError: an empty matrix can be factored, and one of the wrong shape is a ValueError.
AGREED = (ValueError, TypeError, IndexError, AxisError, EndlessError)


def shapes(call: Call) -> list[Shape]:
    """The shapes of a call's arrays, in order."""
    found: list[Shape] = []
    call.map(lambda array: found.append(array.shape))
    return found


def smaller(shape: Shape) -> list[Shape]:
    """What replaces a shape: one axis empty, all axes empty, an empty vector, no axis."""
    one = [(*shape[:axis], 0, *shape[axis + 1 :]) for axis in range(len(shape))]
    return [*one, (0,) * len(shape), (0,), ()]


def variations(original: list[Shape]) -> list[tuple[Shape, ...]]:
    """The shapes with one replaced, and with all replaced alike, axes counted from the front and from the back."""
    one = [(*original[:i], new, *original[i + 1 :]) for i, old in enumerate(original) for new in smaller(old)]
    several = [smaller(old) for old in original]
    fronts = zip(*several, strict=False)
    backs = zip(*(reversed(new) for new in several), strict=False)
    return [*one, *fronts, *backs]


@functools.cache
def emptied(operation: Operation) -> list[Call]:
    """The calls of the operation's samples with their arrays in smaller shapes, each only once."""
    found: dict[str, Call] = {}
    for call in calls(operation):
        for new in variations(shapes(call)):
            case = call.map(partial(resized, iter(new)))
            found.setdefault(signature(case), case)
    return list(found.values())


def resized(new: Any, array: np.ndarray) -> np.ndarray:
    """The array in the next of the new shapes: itself, or its first elements; one that has none does not get any."""
    shape = next(new)
    return array if shape == array.shape or (array.size == 0 and shape == ()) else np.resize(array, shape)


def signature(call: Call) -> str:
    """What makes one case differ from another: shapes, dtypes and options, but not the values of arrays."""
    return repr(call.map(lambda array: (array.shape, dtype_name(array))))


def bounded(call: Call) -> Call:
    """The call with its functions ended after many calls: a loop on the sum of an empty tensor has no end."""

    def limit(value: Any) -> Any:
        if not inspect.isfunction(value):
            return value
        left = itertools.count(MANY, -1)

        @functools.wraps(value)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not next(left):
                raise EndlessError
            return value(*args, **kwargs)

        return run

    return Call(tuple(map(limit, call.args)), {name: limit(value) for name, value in call.kwargs.items()})


def outcome(attempt: Attempt) -> Any:
    """The result on an engine, or the class of its error."""
    try:
        return attempt()
    except Exception as error:
        return type(error)


@functools.lru_cache(maxsize=2)
def references(operation: Operation) -> list[Any]:
    """The outcomes of these calls on NumPy, kept for the engines that follow."""
    return [outcome(partial(run, operation, backends.load("numpy"), bounded(case))) for case in emptied(operation)]


@pairs(lambda operation, backend: any(map(shapes, calls(operation))))
def test_empty_operands(operation: Operation, backend: Backend) -> None:
    judged = zip(emptied(operation), references(operation), strict=True)
    chosen = [(case, wanted) for case, wanted in judged if storable(backend, case, operation)]
    cases, reference = [case for case, _ in chosen], [wanted for _, wanted in chosen]
    # Compiled code raises no error that depends on values: what NumPy rejects is run alone.
    accepted = [bounded(case) for case, wanted in zip(cases, reference, strict=True) if not isinstance(wanted, type)]
    computed = iter(run_all(operation, backend, accepted))
    for case, wanted in zip(cases, reference, strict=True):
        rejected = isinstance(wanted, type)
        found = outcome(partial(run, operation, backend, bounded(case)) if rejected else next(computed))
        try:
            if isinstance(wanted, type):
                expect(wanted in AGREED, f"{wanted}")
                expect(found is wanted, f"{found}, not {wanted}")
            elif not dtypes_of_device(backend).issuperset(dtypes_of(wanted)):
                expect(found is UnsupportedError, f"{found}")
            elif not is_steady(operation):
                expect(not isinstance(found, type), f"{found}")
            else:
                assert_same(found, wanted, tolerance(operation))
        except AssertionError as error:
            error.add_note(f"with {signature(case)}")
            raise
