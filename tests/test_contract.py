"""What every operation promises on every engine. This file names no operation: the registry does.

Each check is collected over the (operation, engine) pairs that it applies to; see ``judging.py``.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_same, dtype_name, dtypes_of_device, expect, expect_error, host, leaves
from exceptions import EXCEPTIONS
from judging import OTHERS, pairs
from samples import Call, calls, given, usual_dtype, values

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, TENSOR, Operation
from ember_ml.dtypes import DTYPES, as_dtype, doubled, promote
from ember_ml.errors import AxisError, UnsupportedError

pytestmark = pytest.mark.contract

every_operation = pytest.mark.parametrize("operation", REGISTRY.values(), ids=lambda o: f"{o.category}.{o.name}")


@pytest.fixture(autouse=True)
def _known_exceptions(request: pytest.FixtureRequest) -> None:
    """Expect a check to fail where the list of exceptions says so, and say so if it does not."""
    if {"operation", "backend"} <= set(request.fixturenames):
        operation, backend = request.getfixturevalue("operation"), request.getfixturevalue("backend")
        reason = EXCEPTIONS.get((request.function.__name__, operation.name, backend.name))
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


def on(backend: Backend, call: Call) -> Call:
    """The call with its arrays as tensors of the engine."""
    return call.map(lambda array: backend.convert(array, None, backend.device))


def run(operation: Operation, backend: Backend, call: Call) -> Any:
    """The operation's result on an engine."""
    with ember_ml.use_backend(backend.name):
        native = on(backend, call)
        return operation.call(*native.args, **native.kwargs)


def reference(operation: Operation, call: Call) -> Any:
    """The result on NumPy, which the other engines are held to."""
    return run(operation, backends.load("numpy"), call)


def tolerance(operation: Operation) -> float | None:
    """The relative tolerance that the samples ask for, if they do."""
    return given(operation, "TOLERANCE")


def storable(backend: Backend, call: Call, operation: Operation | None = None) -> bool:
    """Whether the engine has every dtype that the call's arrays have, and those that it, or the operation, asks for."""
    if operation is not None and operation.rule is doubled and not backend.has_float64():
        return False
    found = [value for value in (*call.args, *call.kwargs.values()) if isinstance(value, str) and value in DTYPES]
    call.map(lambda array: found.append(dtype_name(array)))
    return dtypes_of_device(backend).issuperset(found)


def some_storable(operation: Operation, backend: Backend) -> bool:
    """Whether the engine has the dtypes of some sample call."""
    return any(storable(backend, call, operation) for call in calls(operation))


def is_steady(operation: Operation) -> bool:
    """Whether the result is the same on every engine and at every time."""
    return not given(operation, "VARIES")


@pairs()
def test_is_provided(operation: Operation, backend: Backend) -> None:
    expect(backend.provider(operation) in ("own", "defined"))


@every_operation
def test_is_exported(operation: Operation) -> None:
    module = inspect.getmodule(operation.call)
    expect(getattr(ops, operation.name) is REGISTRY[operation.name].call)
    expect(getattr(module, operation.name) is operation.call)


@every_operation
def test_is_documented(operation: Operation) -> None:
    text = inspect.getdoc(operation.call) or ""
    first = text.partition("\n")[0]
    expect(first.endswith("."), "the first line is a sentence")
    expect(">>>" in text, "there is an example")
    expect("Returns:" not in text, "the annotation says what is returned")


@pairs()
def test_example_runs(operation: Operation, backend: Backend) -> None:
    names = {name: value for name, value in vars(ops).items() if hasattr(value, "__operation__")}
    names |= {"ops": ops, "ember_ml": ember_ml, operation.name: operation.call}
    parsed = doctest.DocTestParser().get_doctest(operation.call.__doc__ or "", names, operation.name, None, 0)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(parsed, out=printed.append)
    expect(runner.tries > 0, "there is an example")
    expect(runner.failures == 0, "".join(printed))


def has_function_of_ours(operation: Operation, backend: Backend) -> bool:
    """Whether a function of this package computes the operation on the engine, not one of the engine's."""
    own = backend.own(operation)
    return inspect.isfunction(own) and own.__module__.startswith("ember_ml.")


@pairs(has_function_of_ours)
def test_signature_is_the_same_on_the_engine(operation: Operation, backend: Backend) -> None:
    here, there = inspect.signature(operation.call), inspect.signature(backend.own(operation))
    expect(
        [(p.name, p.kind, p.default) for p in there.parameters.values()]
        == [(p.name, p.kind, p.default) for p in here.parameters.values()]
    )


@pairs(lambda operation, backend: is_steady(operation) and some_storable(operation, backend), OTHERS)
def test_results_are_those_of_the_reference(operation: Operation, backend: Backend) -> None:
    for call in calls(operation):
        if storable(backend, call):
            expected = reference(operation, call)
            if dtypes_of_device(backend).issuperset(dtypes_of(expected)):
                assert_same(run(operation, backend, call), expected, tolerance(operation))
            else:
                with expect_error(UnsupportedError):
                    run(operation, backend, call)


def returns_tensors(operation: Operation) -> bool:
    """Whether the signature says that the result is made of tensors of the engine."""
    return "Tensor" in str(inspect.signature(operation.call).return_annotation)


@pairs(lambda operation, backend: returns_tensors(operation) and some_storable(operation, backend))
def test_results_are_tensors_of_the_engine(operation: Operation, backend: Backend) -> None:
    for call in calls(operation):
        if storable(backend, call, operation):
            for path, leaf in leaves(run(operation, backend, call)):
                if not isinstance(leaf, (bool, int)):
                    expect(isinstance(leaf, backend.tensors + backend.scalars), f"{path} is a {type(leaf)}")


def tensor_arguments(operation: Operation, call: Call) -> list[np.ndarray]:
    """The arrays of a call that take part in promotion, in order; empty if a sequence is among them."""
    positional = [p for p in operation.parameters if not p.keyword and not p.variadic]
    found = []
    for parameter, value in zip(positional, call.args, strict=False):
        if parameter.role == TENSOR and isinstance(value, np.ndarray):
            found.append(value)
    return found


def with_dtypes(operation: Operation, call: Call, dtypes: tuple[str, ...]) -> Call:
    """The call with its promoted arrays drawn anew in these dtypes."""
    replaced: dict[int, np.ndarray] = {
        id(array): values(operation, array.shape, dtype, seed=i)
        for i, (array, dtype) in enumerate(zip(tensor_arguments(operation, call), dtypes, strict=True))
    }
    return call.map(lambda array: replaced.get(id(array), array))


def dtype_cases(operation: Operation, count: int) -> list[tuple[str, ...]]:
    """Every dtype for one tensor, every pair for two, and for more: one for all, and one that differs."""
    if count <= 2:
        return list(itertools.product(DTYPES, repeat=count))
    same = [(name,) * count for name in DTYPES]
    mixed = [("float32", *("int32",) * (count - 1)), ("int32", *("float32",) * (count - 1))]
    return same + mixed


@functools.cache
def has_tensors(operation: Operation) -> bool:
    """Whether tensors take part in the operation's first sample call."""
    return bool(tensor_arguments(operation, calls(operation)[0]))


def has_dtype_rule(operation: Operation, backend: Backend) -> bool:
    """Whether there is a rule to hold: one for the result or the arguments, or else the reference's dtypes."""
    has_rule = operation.rule.result is not None or len(operation.dtypes) < len(DTYPES)
    return has_tensors(operation) and (has_rule or (backend.name != "numpy" and is_steady(operation)))


@pairs(has_dtype_rule)
def test_dtype_rule_holds(operation: Operation, backend: Backend) -> None:
    call = calls(operation)[0]
    count = len(tensor_arguments(operation, call))
    available = dtypes_of_device(backend)
    for dtypes in dtype_cases(operation, count):
        if not available.issuperset(dtypes):
            continue
        case = with_dtypes(operation, call, dtypes)
        expected = expected_dtype(operation, backend, dtypes)
        try:
            if isinstance(expected, type):
                with expect_error(expected):
                    run(operation, backend, case)
                continue
            wanted = reference(operation, case)
            if not available.issuperset(dtypes_of(wanted)):
                with expect_error(UnsupportedError):
                    run(operation, backend, case)
                continue
            result = run(operation, backend, case)
            if operation.rule.result is not None:
                for path, leaf in leaves(result):
                    if isinstance(leaf, backend.tensors):
                        expect(dtype_name(leaf) == expected, path)
            if is_steady(operation) and backend.name != "numpy":
                assert_same(result, wanted, tolerance(operation))
        except BaseException as error:
            error.add_note(f"with dtypes {dtypes}")
            raise


def dtypes_of(result: Any) -> list[str]:
    """The dtypes of the host arrays in a result."""
    return [dtype_name(leaf) for _, leaf in leaves(result) if isinstance(leaf, (np.ndarray, np.generic))]


def expected_dtype(operation: Operation, backend: Backend, dtypes: tuple[str, ...]) -> str | type[Exception]:
    """The dtype that the rule gives, or the class of error where the dtypes do not go together."""
    rule, given_dtypes = operation.rule, [as_dtype(name) for name in dtypes]
    if rule.mode == "separate":
        wrong = any(d.name not in operation.dtypes for d in given_dtypes)
        return TypeError if wrong else ""
    common = given_dtypes[0]
    rank = {"bool": 0, "unsigned integer": 1, "signed integer": 1, "real floating": 2, "complex floating": 3}
    for other in given_dtypes[1:]:
        if rule.mode == "first":
            if rank[other.kind] > rank[common.kind]:
                return TypeError
            continue
        try:
            common = promote(common, other)
        except TypeError:
            return TypeError
    if common.name not in operation.dtypes:
        return TypeError
    entered = rule.compute(common)
    if entered.name not in dtypes_of_device(backend):
        return UnsupportedError
    return rule.result(common).name if rule.result else ""


def takes_first_sample(operation: Operation, backend: Backend) -> bool:
    """Whether tensors take part in the operation's first sample call, in dtypes that the engine has."""
    return has_tensors(operation) and storable(backend, calls(operation)[0], operation)


@pairs(takes_first_sample)
def test_every_kind_of_input_is_accepted(operation: Operation, backend: Backend) -> None:
    call = calls(operation)[0]
    expected = run(operation, backend, call)
    kinds: dict[str, Callable[[np.ndarray], Any]] = {
        "host array": lambda array: array,
        "host array of the other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
        "read-only host array": read_only,
        "strided host array": lambda array: np.repeat(array[..., None], 2, axis=-1)[..., 0],
    }
    for name, change in kinds.items():
        changed = call.map(change)
        try:
            assert_same(operation.call(*changed.args, **changed.kwargs), expected, tolerance(operation))
        except BaseException as error:
            error.add_note(f"given a {name}")
            raise
    if usual_dtype(operation) in ("float32", "bool"):
        nested = call.map(lambda array: array.tolist())
        operation.call(*nested.args, **nested.kwargs)


def read_only(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS: dict[str, Callable[[Backend, np.ndarray], Any]] = {
    "every second element": lambda backend, x: on_engine(backend, np.repeat(x, 2, axis=-1))[..., ::2],
    "transposed": lambda backend, x: ops.transpose(on_engine(backend, np.ascontiguousarray(x.T))),
    "reversed": lambda backend, x: ops.flip(on_engine(backend, np.ascontiguousarray(np.flip(x)))),
    "one row, expanded": lambda backend, x: ops.broadcast_to(on_engine(backend, x[:1]), x.shape),
}


def on_engine(backend: Backend, array: np.ndarray) -> Any:
    """A tensor of the engine with its own copy of an array."""
    return backend.convert(array.copy(), None, backend.device)


def laid_out(layout: str, backend: Backend, array: np.ndarray) -> Any:
    """The array as a tensor of that layout; one without axes has only one."""
    return LAYOUTS[layout](backend, array) if array.ndim else on_engine(backend, array)


@pairs(lambda operation, backend: takes_first_sample(operation, backend) and is_steady(operation))
def test_any_memory_layout_gives_the_same_result(operation: Operation, backend: Backend) -> None:
    """Strides of two, of a transposed tensor, negative ones, and zeros."""
    for layout in LAYOUTS:
        call = calls(operation)[0]
        if layout == "one row, expanded":
            call = call.map(lambda array: np.broadcast_to(array[:1], array.shape).copy() if array.ndim else array)
        expected = outcome(operation, call.map(functools.partial(on_engine, backend)))
        result = outcome(operation, call.map(functools.partial(laid_out, layout, backend)))
        try:
            assert_same(result, expected, tolerance(operation))
        except AssertionError as error:
            error.add_note(f"given tensors that are laid out so: {layout}")
            raise


def outcome(operation: Operation, call: Call) -> Any:
    """The result of a call, or the class of its error."""
    try:
        return operation.call(*call.args, **call.kwargs)
    except Exception as error:
        return type(error)


def has_arrays(operation: Operation, backend: Backend) -> bool:
    """Whether some sample call with arrays has dtypes that the engine has."""
    return any(
        storable(backend, call, operation) and any(isinstance(leaf, np.ndarray) for _, leaf in leaves(list(call.args)))
        for call in calls(operation)
    )


@pairs(has_arrays)
def test_inputs_are_not_modified(operation: Operation, backend: Backend) -> None:
    for call in calls(operation):
        if not storable(backend, call, operation):
            continue
        native = on(backend, call)
        operation.call(*native.args, **native.kwargs)
        before, after = list(leaves(list(call.args))), list(leaves(list(native.args)))
        for (path, old), (_, new) in zip(before, after, strict=True):
            if isinstance(old, np.ndarray):
                expect(host(new).tobytes() == old.tobytes(), path)


def overrides(operation: Operation, backend: Backend) -> bool:
    """Whether the engine has a function of its own for an operation that has a body."""
    return operation.definition is not None and backend.own(operation) is not None


@pairs(lambda operation, backend: overrides(operation, backend) and some_storable(operation, backend))
def test_override_equals_definition(operation: Operation, backend: Backend) -> None:
    for call in calls(operation):
        if storable(backend, call):
            native = on(backend, call)
            try:
                defined = operation.definition(*native.args, **native.kwargs)
            except (TypeError, ValueError):
                continue
            assert_same(run(operation, backend, call), defined, tolerance(operation))


def is_traceable(operation: Operation, backend: Backend) -> bool:
    """Whether a compiler can trace the operation's first sample call on the engine."""
    return operation.lazy and storable(backend, calls(operation)[0])


@pairs(is_traceable, OTHERS)
def test_compilers_trace_it(operation: Operation, backend: Backend) -> None:
    call = calls(operation)[0]
    native = on(backend, call)
    places = [i for i, value in enumerate(native.args) if isinstance(value, backend.tensors)]
    expected = operation.call(*native.args, **native.kwargs)

    def traced(*tensors: Any) -> Any:
        args = list(native.args)
        for place, tensor in zip(places, tensors, strict=True):
            args[place] = tensor
        return operation.call(*args, **native.kwargs)

    compiled = compiler(backend)(traced)
    assert_same(compiled(*(native.args[i] for i in places)), expected, tolerance(operation))


def compiler(backend: Backend) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The engine's compiler, made to fail where it cannot trace the whole function."""
    if backend.name == "torch":
        import torch

        torch._dynamo.reset()
        return lambda f: torch.compile(f, fullgraph=True, backend="eager", dynamic=False)
    import mlx.core as mx

    return mx.compile


@pairs(lambda operation, backend: operation.tensors)
def test_something_that_is_no_tensor_is_a_type_error(operation: Operation, backend: Backend) -> None:
    call = calls(operation)[0]
    for wrong in ("a string", object(), {"a": 1}):
        with expect_error(TypeError):
            operation.call(*[wrong for _ in call.args[:1]], *call.args[1:], **call.kwargs)


def takes_axis(operation: Operation, backend: Backend) -> bool:
    """Whether some sample call gives tensors to an operation that takes an axis."""
    return "axis" in {p.name for p in operation.parameters} and any(
        tensor_arguments(operation, call) for call in calls(operation)
    )


@pairs(takes_axis)
def test_an_axis_out_of_range_is_an_axis_error(operation: Operation, backend: Backend) -> None:
    call = next(c for c in calls(operation) if tensor_arguments(operation, c))
    signature = inspect.signature(operation.call)
    bound = signature.bind(*call.args, **call.kwargs)
    takes_several = re.search("Axis|Sequence|tuple", str(signature.parameters["axis"].annotation))
    for axis in (17, -18, (0, 17)) if takes_several else (17, -18):
        bound.arguments["axis"] = axis
        wrong = on(backend, Call(bound.args, bound.kwargs))
        with expect_error(AxisError):
            operation.call(*wrong.args, **wrong.kwargs)


def goes_along(operation: Operation) -> bool:
    """Whether an operation takes one tensor and an axis, and needs nothing else."""
    if not operation.tensors:
        return False
    first, *others = inspect.signature(operation.call).parameters.values()
    named = any(p.name == "axis" for p in others) and [p.name for p in operation.tensors] == [first.name]
    return named and all(p.name == "axis" or p.default is not p.empty for p in others)


@pairs(lambda operation, backend: goes_along(operation) and is_steady(operation), OTHERS)
def test_a_tensor_without_axes_along_one(operation: Operation, backend: Backend) -> None:
    """The result is the reference's, or the error is."""
    x = values(operation, (), usual_dtype(operation))
    for axis in (0, -1, 1):
        with ember_ml.use_backend("numpy"):
            wanted = outcome(operation, Call((ops.asarray(x),), {"axis": axis}))
        assert_same(outcome(operation, Call((ops.asarray(x),), {"axis": axis})), wanted)
