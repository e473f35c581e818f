"""Values of the options of an operation: numbers and lengths of any type. The registry names the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import COUNT, COUNTS, FLAG, REGISTRY, SCALAR, Operation, Parameter
from ember_ml.testing.comparison import assert_same
from ember_ml.testing.samples import Call, calls, given


def options(role: str, fits: Callable[[Any], bool]) -> list[Any]:
    """The operations and names of their options of a role, whose value in the first sample or by default fits."""
    found = []
    for operation in REGISTRY.values():
        call = calls(operation)[0]
        bound = inspect.signature(operation.call).bind(*call.args, **call.kwargs)
        bound.apply_defaults()
        names = [p.name for p in operation.parameters if p.role == role and fits(bound.arguments[p.name])]
        found += [pytest.param(operation, name, id=f"{operation.name}-{name}") for name in names]
    return found


def bound_on(operation: Operation, change: Callable[[np.ndarray], Any]) -> inspect.BoundArguments:
    """The first sample with its arrays changed."""
    call = calls(operation)[0].map(change)
    arguments = inspect.signature(operation.call).bind(*call.args, **call.kwargs)
    arguments.apply_defaults()
    return arguments


def result_with(operation: Operation, arguments: inspect.BoundArguments, name: str, value: Any) -> Any:
    """What the operation returns with that value for an option."""
    ops.set_seed(0)
    arguments.arguments[name] = value
    return operation.call(*arguments.args, **arguments.kwargs)


def are_lengths(value: Any) -> bool:
    """Whether an option holds several integers."""
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(type(n) is int for n in value)


@pytest.mark.parametrize(("operation", "name"), options(COUNTS, are_lengths))
def test_lengths_and_axes_come_in_any_sequence(operation: Operation, name: str, backend: Backend) -> None:
    arguments = bound_on(operation, lambda array: backend.convert(array, None, backend.device))
    value = arguments.arguments[name]
    expected = result_with(operation, arguments, name, value)
    several = [list(value), np.array(value), tuple(map(np.int64, value)), backend.convert(value, None, backend.device)]
    if list(value) == list(range(value[0], value[0] + len(value))):
        several.append(range(value[0], value[0] + len(value)))
    for other in several:
        found = result_with(operation, arguments, name, other)
        if not given(operation, "VARIES"):
            assert_same(found, expected)


@pytest.mark.parametrize(("operation", "name"), options(SCALAR, lambda value: isinstance(value, float)))
def test_a_number_of_numpy_is_no_tensor_where_it_is_an_option(
    operation: Operation, name: str, backend: Backend
) -> None:
    def on_engine(array: np.ndarray) -> Any:
        return backend.convert(array, None, backend.device)

    for change in (on_engine, lambda array: array.tolist() if array.dtype == np.float32 else array):
        arguments = bound_on(operation, change)
        value = arguments.arguments[name]
        expected = result_with(operation, arguments, name, value)
        for other in (np.float64(value), np.array(value)):
            found = result_with(operation, arguments, name, other)
            if not given(operation, "VARIES"):
                assert_same(found, expected)


def test_a_mask_of_bool_is_no_list_of_lengths(backend: Backend) -> None:
    for wrong in (np.array([True, False]), np.array([0.5, 1.5])):
        with pytest.raises((TypeError, ValueError)):
            ops.sum(ops.ones((2, 2)), axis=wrong)


def test_an_index_out_of_range_is_never_read_as_axes(backend: Backend) -> None:
    x = ops.ones((2, 5))
    for index in (np.array([1, 4]), backend.convert([1, 4], None, backend.device)):
        with pytest.raises(IndexError):
            ops.index_get(x, index)
        with pytest.raises(IndexError):
            ops.index_update(x, index, 0.0)


def single_integers() -> list[Any]:
    """The operations and the names of their parameters that are one integer, with a sample in which it is one."""
    found = []
    for operation in REGISTRY.values():
        signature = inspect.signature(operation.call)
        for parameter in operation.parameters:
            for call in calls(operation) if parameter.role == COUNT else ():
                bound = signature.bind(*call.args, **call.kwargs)
                bound.apply_defaults()
                if type(bound.arguments[parameter.name]) is int:
                    found.append(pytest.param(operation, parameter, call, id=f"{operation.name}-{parameter.name}"))
                    break
    return found


@pytest.mark.parametrize(("operation", "parameter", "call"), single_integers())
def test_one_integer_is_one(operation: Operation, parameter: Parameter, call: Call, backend: Backend) -> None:
    """Several axes, fractions and words are the same mistake on every engine."""
    call = call.map(lambda array: backend.convert(array, None, backend.device))
    bound = inspect.signature(operation.call).bind(*call.args, **call.kwargs)
    for wrong in ((0,), (0, 1), [0], 0.0, 0.5, np.float64(0), "0", "rows", 0j, *([] if parameter.optional else [None])):
        bound.arguments[parameter.name] = wrong
        with pytest.raises(TypeError):
            operation.call(*bound.args, **bound.kwargs)


WRONG = {SCALAR: ["two", [1, 2], {"a": 1}], FLAG: ["yes", [True], None], COUNTS: ["two", 1.5, (0, "one"), (0.5,)]}


def other_options() -> list[Any]:
    """The operations and their options that are numbers, flags, or several integers."""
    return [
        pytest.param(operation, parameter, id=f"{operation.name}-{parameter.name}")
        for operation in REGISTRY.values()
        for parameter in operation.parameters
        if parameter.role in WRONG and not parameter.variadic
    ]


@pytest.mark.parametrize(("operation", "parameter"), other_options())
def test_options_of_a_wrong_kind_are_named(operation: Operation, parameter: Parameter, backend: Backend) -> None:
    """The same mistake has the same class and words on every engine, not those of the function that noticed."""
    arguments = bound_on(operation, lambda array: backend.convert(array, None, backend.device))
    takes_arrays = parameter.role == SCALAR and hasattr(operation.form, "claims")
    for wrong in WRONG[parameter.role]:
        if (wrong is not None or not parameter.optional) and not (takes_arrays and isinstance(wrong, list)):
            with pytest.raises(TypeError, match=rf"{operation.name}: {parameter.name} must be .*, got "):
                result_with(operation, arguments, parameter.name, wrong)
