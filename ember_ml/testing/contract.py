"""Checks that every operation must pass on every engine. The operations come from the registry.

Each check applies to the (operation, engine) pairs that its decorator selects; see ``pairing.py``.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import TENSOR, Operation, definition_of
from ember_ml.dispatch.fast import REQUIRED
from ember_ml.dtypes import DTYPES, KIND_RANK, as_dtype, promote
from ember_ml.errors import AxisError, MissingOperationError, UnsupportedError
from ember_ml.testing.comparison import (
    assert_same,
    dtype_name,
    dtypes_of_device,
    expect,
    expect_error,
    host,
    leaves,
)
from ember_ml.testing.pairing import REFERENCE, on, pairs, run, run_all, storable
from ember_ml.testing.programs import transforms
from ember_ml.testing.samples import Call, calls, given, usual_dtype, values


@contextmanager
def add_note(note: str) -> Iterator[None]:
    """Add a note to errors that the ``with`` block raises."""
    try:
        yield
    except BaseException as error:
        error.add_note(note)
        raise


def reference(operation: Operation, call: Call) -> Any:
    """Result on NumPy, which the results of other engines are compared with."""
    return run(operation, backends.load(REFERENCE), call)


@functools.lru_cache(maxsize=64)
def reference_of_sample(operation: Operation, number: int) -> Any:
    """Result of a sample call on NumPy, kept for the engines that follow."""
    return reference(operation, calls(operation)[number])


def tolerance(operation: Operation) -> float | None:
    """Relative tolerance from the samples; ``None`` for the default."""
    asked: float | None = given(operation, "TOLERANCE")
    return asked


def some_storable(operation: Operation, backend: Backend) -> bool:
    """Whether the engine supports the dtypes of any sample call."""
    return any(storable(backend, call, operation) for call in calls(operation))


def is_steady(operation: Operation) -> bool:
    """Whether the result is the same on every engine and in every call."""
    return not given(operation, "VARIES")


class _Runner(doctest.DocTestRunner):
    """Runner of examples that reports unsupported operations and dtypes as missing, not as failed."""

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        error = exc_info[1]
        if isinstance(error, (MissingOperationError, UnsupportedError)):
            raise MissingOperationError(f"the example of {test.name} is not supported: {error}") from error
        super().report_unexpected_exception(out, test, example, exc_info)


@pairs()
def test_example_runs(operation: Operation, backend: Backend) -> None:
    names = {name: value for name, value in vars(ops).items() if hasattr(value, "__operation__")}
    names |= {"ops": ops, "ember_ml": ember_ml, operation.name: operation.call}
    parsed = doctest.DocTestParser().get_doctest(operation.call.__doc__ or "", names, operation.name, None, 0)
    printed: list[str] = []
    runner = _Runner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(parsed, out=printed.append)
    expect(runner.tries > 0, "there is an example")
    expect(runner.failures == 0, "".join(printed))


def is_implemented(operation: Operation, backend: Backend) -> bool:
    """Whether the backend implements the operation with a Python function, not with a native function of the engine."""
    function = backend.implementation(operation)
    package = backend.module.__name__
    return inspect.isfunction(function) and f"{function.__module__}.".startswith(("ember_ml.", f"{package}."))


@pairs(is_implemented, aspect="signatures")
def test_signature_is_the_same_on_the_engine(operation: Operation, backend: Backend) -> None:
    function: Any = backend.implementation(operation)
    there = inspect.signature(function)
    found = [
        (p.name, p.kind is p.KEYWORD_ONLY, REQUIRED if p.default is p.empty else p.default)
        for p in there.parameters.values()
    ]
    received = [
        (p.name, p.keyword, REQUIRED if p.variadic else default)
        for p, default in zip(operation.parameters, operation.defaults, strict=True)
    ]
    expect(found == received, f"got {there}, expected {received}")


@pairs(lambda operation, backend: is_steady(operation) and some_storable(operation, backend), reference=False)
def test_results_are_those_of_the_reference(operation: Operation, backend: Backend) -> None:
    chosen = [(number, call) for number, call in enumerate(calls(operation)) if storable(backend, call)]
    attempts = run_all(operation, backend, [call for _, call in chosen])
    for (number, call), attempt in zip(chosen, attempts, strict=True):
        expected = reference_of_sample(operation, number)
        with add_note(f"in {call.text(operation.name)}"):
            if dtypes_of_device(backend).issuperset(dtypes_of(expected)):
                assert_same(attempt(), expected, tolerance(operation))
            else:
                with expect_error(UnsupportedError):
                    attempt()


def returns_tensors(operation: Operation) -> bool:
    """Whether the return annotation of the operation contains tensors."""
    return "Tensor" in str(inspect.signature(operation.call).return_annotation)


@pairs(lambda operation, backend: returns_tensors(operation) and some_storable(operation, backend))
def test_results_are_tensors_of_the_engine(operation: Operation, backend: Backend) -> None:
    cases = [call for call in calls(operation) if storable(backend, call, operation)]
    for attempt in run_all(operation, backend, cases):
        for path, leaf in leaves(attempt()):
            if not isinstance(leaf, (bool, int)):
                expect(isinstance(leaf, backend.tensors + backend.scalars), f"{path} is a {type(leaf)}")


def tensor_arguments(operation: Operation, call: Call) -> list[np.ndarray]:
    """Arrays of a call that take part in promotion, in order."""
    positional = [p for p in operation.parameters if not p.keyword and not p.variadic]
    found = []
    for parameter, value in zip(positional, call.args, strict=False):
        if parameter.role == TENSOR and isinstance(value, np.ndarray):
            found.append(value)
    return found


def with_dtypes(operation: Operation, call: Call, dtypes: tuple[str, ...]) -> Call:
    """Call with new random values in these dtypes for the arrays that take part in promotion."""
    replaced: dict[int, np.ndarray] = {
        id(array): values(operation, array.shape, dtype, seed=i)
        for i, (array, dtype) in enumerate(zip(tensor_arguments(operation, call), dtypes, strict=True))
    }
    return call.map(lambda array: replaced.get(id(array), array))


# As many as there are pairs of dtypes, and more.
@functools.lru_cache(maxsize=256)
def case_of_dtypes(operation: Operation, dtypes: tuple[str, ...]) -> Call:
    """First sample call with values in these dtypes, kept for the engines that follow."""
    return with_dtypes(operation, calls(operation)[0], dtypes)


@functools.lru_cache(maxsize=256)
def reference_of_dtypes(operation: Operation, dtypes: tuple[str, ...]) -> Any:
    """Result of that call on NumPy."""
    return reference(operation, case_of_dtypes(operation, dtypes))


def dtype_cases(operation: Operation, count: int, backend: Backend) -> list[tuple[str, ...]]:
    """Every dtype for one tensor, every pair for two; for more, one dtype for all, and one that differs.

    Dispatch promotes before it calls the engine, so an engine that compiles every pair has those with float32 alone.
    """
    if count == 2 and backend.compiles_operations:
        return [pair for pair in itertools.product(DTYPES, repeat=2) if pair[0] == pair[1] or "float32" in pair]
    if count <= 2:
        return list(itertools.product(DTYPES, repeat=count))
    same = [(name,) * count for name in DTYPES]
    mixed = [("float32", *("int32",) * (count - 1)), ("int32", *("float32",) * (count - 1))]
    return same + mixed


@functools.cache
def has_tensors(operation: Operation) -> bool:
    """Whether the first sample call of the operation has tensors that take part in promotion."""
    return bool(tensor_arguments(operation, calls(operation)[0]))


def has_dtype_rule(operation: Operation, backend: Backend) -> bool:
    """Whether there is a dtype rule to check: for the result, the arguments, or by comparison with the reference."""
    has_rule = operation.rule.result is not None or len(operation.dtypes) < len(DTYPES)
    return has_tensors(operation) and (has_rule or (backend.name != REFERENCE and is_steady(operation)))


@pairs(has_dtype_rule, aspect="dtypes")
def test_dtype_rule_holds(operation: Operation, backend: Backend) -> None:
    call = calls(operation)[0]
    count = len(tensor_arguments(operation, call))
    available = dtypes_of_device(backend)
    chosen = [dtypes for dtypes in dtype_cases(operation, count, backend) if available.issuperset(dtypes)]
    cases = [case_of_dtypes(operation, dtypes) for dtypes in chosen]
    for dtypes, case, attempt in zip(chosen, cases, run_all(operation, backend, cases), strict=True):
        expected = expected_dtype(operation, backend, dtypes)
        with add_note(f"in {case.text(operation.name)}"):
            if isinstance(expected, type):
                with expect_error(expected):
                    attempt()
                continue
            expected_result = reference_of_dtypes(operation, dtypes)
            if not available.issuperset(dtypes_of(expected_result)):
                with expect_error(UnsupportedError):
                    attempt()
                continue
            result = attempt()
            if operation.rule.result is not None:
                for path, leaf in leaves(result):
                    if isinstance(leaf, backend.tensors):
                        found = dtype_name(leaf)
                        expect(found == expected, f"{path}: dtype differs: got {found}, expected {expected}")
            if is_steady(operation) and backend.name != REFERENCE:
                assert_same(result, expected_result, tolerance(operation))


def dtypes_of(result: Any) -> list[str]:
    """Dtypes of the host arrays in a result."""
    return [dtype_name(leaf) for _, leaf in leaves(result) if isinstance(leaf, (np.ndarray, np.generic))]


def expected_dtype(operation: Operation, backend: Backend, dtypes: tuple[str, ...]) -> str | type[Exception]:
    """Dtype of the result by the rule, or the error class if the dtypes cannot be promoted."""
    rule, given_dtypes = operation.rule, [as_dtype(name) for name in dtypes]
    if rule.mode == "separate":
        wrong = any(d.name not in operation.dtypes for d in given_dtypes)
        return TypeError if wrong else ""
    common = given_dtypes[0]
    for other in given_dtypes[1:]:
        if rule.mode == "first":
            if KIND_RANK[other.kind] > KIND_RANK[common.kind]:
                return TypeError
            continue
        try:
            common = promote(common, other)
        except TypeError:
            return TypeError
    if common.name not in operation.dtypes:
        return TypeError
    computed = rule.compute(common)
    if computed.name not in dtypes_of_device(backend):
        return UnsupportedError
    return rule.result(common).name if rule.result else ""


def takes_first_sample(operation: Operation, backend: Backend) -> bool:
    """Whether the first sample call of the operation has tensors, in dtypes that the engine supports."""
    return has_tensors(operation) and storable(backend, calls(operation)[0], operation)


@pairs(takes_first_sample, aspect="inputs")
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
        with add_note(f"given a {name}"):
            assert_same(operation.call(*changed.args, **changed.kwargs), expected, tolerance(operation))
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


@functools.cache
def layouts(backend: Backend) -> list[str]:
    """Memory layouts that the engine supports."""
    found = []
    for layout in LAYOUTS:
        try:
            with_layout(layout, backend, np.ones((2, 3), np.float32))
        except (MissingOperationError, TypeError):  # a TypeError if tensors cannot be indexed
            continue
        found.append(layout)
    return found


def on_engine(backend: Backend, array: np.ndarray) -> Any:
    """Tensor of the engine with a copy of an array."""
    return backend.convert(array.copy(), None, backend.device)


def with_layout(layout: str, backend: Backend, array: np.ndarray) -> Any:
    """Array as a tensor of that layout; the layout of 0-d arrays is always the same."""
    return LAYOUTS[layout](backend, array) if array.ndim else on_engine(backend, array)


@pairs(lambda operation, backend: takes_first_sample(operation, backend) and is_steady(operation), aspect="inputs")
def test_any_memory_layout_gives_the_same_result(operation: Operation, backend: Backend) -> None:
    """Layouts with strides of two, transposed, negative and zero strides."""
    for layout in layouts(backend):
        call = calls(operation)[0]
        if layout == "one row, expanded":
            call = call.map(lambda array: np.broadcast_to(array[:1], array.shape).copy() if array.ndim else array)
        expected = outcome(operation, call.map(functools.partial(on_engine, backend)))
        result = outcome(operation, call.map(functools.partial(with_layout, layout, backend)))
        with add_note(f"given tensors in the memory layout: {layout}"):
            assert_same(result, expected, tolerance(operation))


def outcome(operation: Operation, call: Call) -> Any:
    """Result of a call, or the class of its error."""
    try:
        return operation.call(*call.args, **call.kwargs)
    except Exception as error:
        return type(error)


def has_arrays(operation: Operation, backend: Backend) -> bool:
    """Whether any sample call with arrays has dtypes that the engine supports."""
    return any(
        storable(backend, call, operation) and any(isinstance(leaf, np.ndarray) for _, leaf in leaves(list(call.args)))
        for call in calls(operation)
    )


@pairs(has_arrays, aspect="inputs")
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
    """Whether the engine implements an operation that also has a definition."""
    return operation.definition is not None and backend.implementation(operation) is not None


@pairs(lambda operation, backend: overrides(operation, backend) and some_storable(operation, backend))
def test_override_equals_definition(operation: Operation, backend: Backend) -> None:
    for call in calls(operation):
        if storable(backend, call):
            native, definition = on(backend, call), definition_of(operation.name)
            try:
                defined = definition(*native.args, **native.kwargs)
            except (TypeError, ValueError):
                continue
            assert_same(run(operation, backend, call), defined, tolerance(operation))


def is_traceable(operation: Operation, backend: Backend) -> bool:
    """Whether the compiler of the engine can trace the first sample call of the operation."""
    return operation.lazy and hasattr(transforms(backend), "whole") and storable(backend, calls(operation)[0])


@pairs(is_traceable, aspect="compilation", reference=False)
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

    compiled = transforms(backend).whole(traced)
    assert_same(compiled(*(native.args[i] for i in places)), expected, tolerance(operation))


@pairs(lambda operation, backend: operation.tensors, aspect="errors")
def test_something_that_is_no_tensor_is_a_type_error(operation: Operation, backend: Backend) -> None:
    call = calls(operation)[0]
    for wrong in ("a string", object(), {"a": 1}):
        with expect_error(TypeError):
            operation.call(*[wrong for _ in call.args[:1]], *call.args[1:], **call.kwargs)


def takes_axis(operation: Operation, backend: Backend) -> bool:
    """Whether the operation has a parameter ``axis`` and a sample call with tensors."""
    return "axis" in {p.name for p in operation.parameters} and any(
        tensor_arguments(operation, call) for call in calls(operation)
    )


@pairs(takes_axis, aspect="errors")
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


def needs_only_axis(operation: Operation) -> bool:
    """Whether one tensor and an axis are the only required arguments."""
    if not operation.tensors:
        return False
    first, *others = inspect.signature(operation.call).parameters.values()
    named = any(p.name == "axis" for p in others) and [p.name for p in operation.tensors] == [first.name]
    return named and all(p.name == "axis" or p.default is not p.empty for p in others)


@pairs(lambda operation, backend: needs_only_axis(operation) and is_steady(operation), reference=False)
def test_a_tensor_without_axes_along_one(operation: Operation, backend: Backend) -> None:
    """A 0-d tensor gives the result or the error class of the reference."""
    x = values(operation, (), usual_dtype(operation))
    for axis in (0, -1, 1):
        with ember_ml.use_backend(REFERENCE):
            expected_result = outcome(operation, Call((ops.asarray(x),), {"axis": axis}))
        assert_same(outcome(operation, Call((ops.asarray(x),), {"axis": axis})), expected_result)


__all__ = sorted(name for name in globals() if name.startswith("test_"))  # for test modules, which import *
