"""What every operation promises on every engine. This file names no operation: the registry does."""

from __future__ import annotations

import doctest
import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.extra.numpy as extra
import numpy as np
import pytest
from agreement import assert_same, dtype_name, dtypes_of_device, host, leaves
from exceptions import EXCEPTIONS
from samples import Call, calls, given, made, usual_dtype, values

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, TENSOR, Operation
from ember_ml.dtypes import DTYPES, as_dtype, doubled, promote
from ember_ml.errors import AxisError, UnsupportedError

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
    """The operation's answer on an engine."""
    with ember_ml.use_backend(backend.name):
        native = on(backend, call)
        return operation.call(*native.args, **native.kwargs)


def reference(operation: Operation, call: Call) -> Any:
    """The answer that the law prescribes: NumPy's."""
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


@every_operation
def test_is_provided(operation: Operation, backend: Backend) -> None:
    assert backend.provider(operation) in ("own", "defined")


@every_operation
def test_is_exported(operation: Operation) -> None:
    module = inspect.getmodule(operation.call)
    assert getattr(ops, operation.name) is REGISTRY[operation.name].call
    assert getattr(module, operation.name) is operation.call


@every_operation
def test_is_documented(operation: Operation) -> None:
    text = inspect.getdoc(operation.call) or ""
    first = text.partition("\n")[0]
    assert first.endswith("."), "the first line is a sentence"
    assert ">>>" in text, "there is an example"
    assert "Returns:" not in text, "the annotation says what is returned"


@every_operation
def test_example_runs(operation: Operation, backend: Backend) -> None:
    names = {name: value for name, value in vars(ops).items() if hasattr(value, "__operation__")}
    names |= {"ops": ops, "ember_ml": ember_ml, operation.name: operation.call}
    parsed = doctest.DocTestParser().get_doctest(operation.call.__doc__ or "", names, operation.name, None, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(parsed, out=said.append)
    assert runner.failures == 0, "".join(said)


@every_operation
def test_signature_is_the_same_on_the_engine(operation: Operation, backend: Backend) -> None:
    own = backend.own(operation)
    if own is None or not inspect.isfunction(own) or not own.__module__.startswith("ember_ml."):
        return
    here, there = inspect.signature(operation.call), inspect.signature(own)
    assert [(p.name, p.kind, p.default) for p in there.parameters.values()] == [
        (p.name, p.kind, p.default) for p in here.parameters.values()
    ]


@every_operation
def test_answers_are_the_reference(operation: Operation, backend: Backend) -> None:
    if given(operation, "VARIES"):
        return
    for call in calls(operation):
        if storable(backend, call):
            expected = reference(operation, call)
            if dtypes_of_device(backend).issuperset(dtypes_of(expected)):
                assert_same(run(operation, backend, call), expected, tolerance(operation))
            else:
                with pytest.raises(UnsupportedError):
                    run(operation, backend, call)


def is_elementwise(operation: Operation) -> bool:
    """Whether the signature alone made the samples, so that any shapes that broadcast will do."""
    by_hand = given(operation, "CALLS") or given(operation, "SHAPES")
    return bool(operation.tensors) and not by_hand and all(p.role == TENSOR for p in operation.tensors)


@every_operation
def test_any_shapes_answer_as_the_reference(operation: Operation, backend: Backend) -> None:
    if not is_elementwise(operation):
        return
    count = sum(1 for p in operation.tensors if not p.keyword)

    @hypothesis.settings(max_examples=8, deadline=None, database=None, derandomize=True)
    @hypothesis.given(extra.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=3))
    def compare(shapes: extra.BroadcastableShapes) -> None:
        call = made(operation, list(shapes.input_shapes))
        assert_same(run(operation, backend, call), reference(operation, call), tolerance(operation))

    compare()


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e30, -1e30, 1e-30], np.float32)


@every_operation
def test_special_values_answer_as_the_reference(operation: Operation, backend: Backend) -> None:
    if not is_elementwise(operation) or "float32" not in operation.dtypes:
        return
    count = sum(1 for p in operation.tensors if not p.keyword)
    columns = np.meshgrid(*[SPECIAL] * count, indexing="ij")
    call = Call(tuple(columns), {})
    assert_same(run(operation, backend, call), reference(operation, call), tolerance(operation))


@every_operation
def test_answers_are_tensors_of_the_engine(operation: Operation, backend: Backend) -> None:
    foreign = tuple(t for b in backends.loaded() if b is not backend for t in b.tensors)
    if operation.name in ("to_numpy",):
        return
    for call in calls(operation):
        if storable(backend, call, operation):
            for path, leaf in leaves(run(operation, backend, call)):
                assert not isinstance(leaf, foreign), f"{path} is a {type(leaf)}"


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


@every_operation
def test_dtype_law_holds(operation: Operation, backend: Backend) -> None:
    call = calls(operation)[0]
    count = len(tensor_arguments(operation, call))
    if count == 0:
        return
    available = dtypes_of_device(backend)
    for dtypes in dtype_cases(operation, count):
        if not available.issuperset(dtypes):
            continue
        case = with_dtypes(operation, call, dtypes)
        expected = expected_dtype(operation, backend, dtypes)
        try:
            if isinstance(expected, type):
                with pytest.raises(expected):
                    run(operation, backend, case)
                continue
            wanted = reference(operation, case)
            if not available.issuperset(dtypes_of(wanted)):
                with pytest.raises(UnsupportedError):
                    run(operation, backend, case)
                continue
            answer = run(operation, backend, case)
            if operation.rule.result is not None:
                for path, leaf in leaves(answer):
                    if isinstance(leaf, backend.tensors):
                        assert dtype_name(leaf) == expected, path
            if not given(operation, "VARIES"):
                assert_same(answer, wanted, tolerance(operation))
        except BaseException as error:
            error.add_note(f"with dtypes {dtypes}")
            raise


def dtypes_of(answer: Any) -> list[str]:
    """The dtypes of the host arrays in an answer."""
    return [dtype_name(leaf) for _, leaf in leaves(answer) if isinstance(leaf, (np.ndarray, np.generic))]


def expected_dtype(operation: Operation, backend: Backend, dtypes: tuple[str, ...]) -> str | type[Exception]:
    """The dtype that the law gives, or the class of error where the dtypes do not go together."""
    law, given_dtypes = operation.rule, [as_dtype(name) for name in dtypes]
    if law.mode == "separate":
        wrong = any(d.name not in operation.dtypes for d in given_dtypes)
        return TypeError if wrong else ""
    common = given_dtypes[0]
    rank = {"bool": 0, "unsigned integer": 1, "signed integer": 1, "real floating": 2, "complex floating": 3}
    for other in given_dtypes[1:]:
        if law.mode == "first":
            if rank[other.kind] > rank[common.kind]:
                return TypeError
            continue
        try:
            common = promote(common, other)
        except TypeError:
            return TypeError
    if common.name not in operation.dtypes:
        return TypeError
    entered = law.compute(common)
    if entered.name not in dtypes_of_device(backend):
        return UnsupportedError
    return law.result(common).name if law.result else ""


@every_operation
def test_every_kind_of_input_is_accepted(operation: Operation, backend: Backend) -> None:
    call = calls(operation)[0]
    if not tensor_arguments(operation, call) or not storable(backend, call, operation):
        return
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


@every_operation
def test_inputs_are_not_modified(operation: Operation, backend: Backend) -> None:
    for call in calls(operation):
        if not storable(backend, call, operation):
            continue
        native = on(backend, call)
        operation.call(*native.args, **native.kwargs)
        before, after = list(leaves(list(call.args))), list(leaves(list(native.args)))
        for (path, old), (_, new) in zip(before, after, strict=True):
            if isinstance(old, np.ndarray):
                assert host(new).tobytes() == old.tobytes(), path


@every_operation
def test_override_equals_definition(operation: Operation, backend: Backend) -> None:
    if operation.definition is None or backend.own(operation) is None:
        return
    for call in calls(operation):
        if storable(backend, call):
            native = on(backend, call)
            try:
                defined = operation.definition(*native.args, **native.kwargs)
            except (TypeError, ValueError):
                continue
            assert_same(run(operation, backend, call), defined, tolerance(operation))


@every_operation
def test_compilers_trace_it(operation: Operation, backend: Backend) -> None:
    if not operation.lazy:
        return
    call = calls(operation)[0]
    if not storable(backend, call):
        return
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
    if backend.name == "mlx":
        import mlx.core as mx

        return lambda f: mx.compile(f)
    return lambda f: f


@every_operation
def test_something_that_is_no_tensor_is_a_type_error(operation: Operation, backend: Backend) -> None:
    if not operation.tensors:
        return
    call = calls(operation)[0]
    for wrong in ("a string", object(), {"a": 1}):
        with pytest.raises(TypeError):
            operation.call(*[wrong for _ in call.args[:1]], *call.args[1:], **call.kwargs)


@every_operation
def test_an_axis_out_of_range_is_an_axis_error(operation: Operation, backend: Backend) -> None:
    if "axis" not in {p.name for p in operation.parameters} or not operation.tensors:
        return
    call = next((c for c in calls(operation) if tensor_arguments(operation, c)), None)
    if call is None:
        return
    signature = inspect.signature(operation.call)
    bound = signature.bind(*call.args, **call.kwargs)
    takes_several = re.search("Axis|Sequence|tuple", str(signature.parameters["axis"].annotation))
    for axis in (17, -18, (0, 17)) if takes_several else (17, -18):
        bound.arguments["axis"] = axis
        wrong = on(backend, Call(bound.args, bound.kwargs))
        with pytest.raises(AxisError):
            operation.call(*wrong.args, **wrong.kwargs)


def goes_along(operation: Operation) -> bool:
    """Whether an operation takes one tensor and an axis, and needs nothing else."""
    if not operation.tensors:
        return False
    first, *others = inspect.signature(operation.call).parameters.values()
    named = any(p.name == "axis" for p in others) and [p.name for p in operation.tensors] == [first.name]
    return named and all(p.name == "axis" or p.default is not p.empty for p in others)


@every_operation
def test_a_tensor_without_axes_along_one(operation: Operation, backend: Backend) -> None:
    """The answer is the reference's, or the error is."""
    if not goes_along(operation):
        return
    x = values(operation, (), usual_dtype(operation))

    def outcome(axis: int) -> Any:
        try:
            return operation.call(ops.asarray(x), axis=axis)
        except Exception as error:
            return type(error)

    for axis in (0, -1, 1):
        with ember_ml.use_backend("numpy"):
            wanted = outcome(axis)
        if isinstance(wanted, type):
            assert outcome(axis) is wanted
        elif not given(operation, "VARIES"):
            assert_same(outcome(axis), wanted)
