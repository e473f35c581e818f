"""The fast path: its two speeds behave alike, what users call is a function in every respect, and nothing leaks."""

from __future__ import annotations

import copy
import doctest
import functools
import gc
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import typing
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend, native_for
from ember_ml.dispatch import REGISTRY, Operation, fast, op, operation_of
from ember_ml.dispatch.general import GeneralPath
from ember_ml.dtypes import floating, promoted
from ember_ml.nn.tensor import EmberTensor
from ember_ml.types import Tensor, TensorLike

Array: typing.TypeAlias = TensorLike

extension = pytest.mark.skipif(fast._c is None, reason="the C extension is not built, or EMBER_ML_PURE_PYTHON is set")


class Recorder:
    """Stands in for what an operation calls; remembers which it was, and with which arguments."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def function(self, name: str) -> Callable[..., Any]:
        def record(*args: Any, **kwargs: Any) -> Any:
            self.seen.append((name, [id(x) for x in args], {key: id(value) for key, value in kwargs.items()}))
            return name

        return record

    def failing(self, *args: Any, **kwargs: Any) -> Any:
        self.seen.append("run")
        raise ValueError("no")


def speeds(operation: Operation, recorder: Recorder, fails: bool = False) -> list[Callable[..., Any]]:
    """The closure and, if it is built, the extension's function of an operation, whose engines only record calls."""
    general, retry = recorder.function("general"), recorder.function("retry")
    table: fast.Table = {}
    python = fast.python_call(operation, table, general, retry, recorder.function("form"))
    native = fast._c and fast._c.function(
        python, general, retry, tuple(p.name for p in operation.parameters), operation.defaults, fast.REQUIRED,
        sum(not p.keyword for p in operation.parameters), operation.positional_only,
        tuple((i, fast._CODES[p.role], p.many, p.optional) for i, p in enumerate(operation.parameters)
              if p.role in fast._CODES),
        operation.accepted,
    )  # fmt: skip
    for backend in backends.loaded():
        row = fast.row_of(operation, backend, operation.runs[backend.name])
        names = {id(run): recorder.function(f"{backend.name} {i}") for i, run in enumerate(row.runs.values())}
        runs = {dtype: recorder.failing if fails else names[id(run)] for dtype, run in row.runs.items()}
        any_run = None if row.any_run is None else recorder.failing if fails else names[id(row.any_run)]
        bare = {dtype: recorder.function(f"{backend.name} bare") for dtype in row.bare_runs}
        row = row._replace(runs=runs, any_run=any_run, bare_runs=bare)
        table.update(dict.fromkeys(row.engine.types, tuple(row)))
        if native:
            native.bind(fast._numbers[backend.name], backend.dtypes["float32"], runs, any_run, row.width, row.raw, bare)
    return [python, native] if native else [python]


def outcome(call: Callable[..., Any], recorder: Recorder, args: Any, kwargs: Any) -> Any:
    recorder.seen.clear()
    try:
        return call(*args, **kwargs), [*recorder.seen]
    except TypeError as error:
        return str(error)


def operands() -> dict[str, Any]:
    """Values of every kind, on every engine."""
    found: dict[str, Any] = {
        "float": 2.0, "int": 3, "large": 300, "negative": -1, "flag": True, "complex": 1j, "list": [1.0, 2.0],
        "none": None, "text": "x", "scalar": np.float32(2), "swapped": np.ones(2, np.dtype(">f4")),
        "longlong": np.ones(2, np.longlong), "matrix": np.ones((2, 2)).view(np.matrix),
    }  # fmt: skip
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            for dtype in ("float32", "float16", "int32", "int64", "bool", "complex64"):
                found[f"{name} {dtype}"] = ops.ones((2, 2), dtype=dtype)
            found[f"{name} several"] = [ops.ones(2), ops.ones(2)]
            found[f"{name} mixed"] = (ops.ones(2), ops.ones(2, dtype="int64"))
    backends.load_hidden(backends.DIFFERENTIATION)
    from ember_ml.backend.numpy.differentiation.core import Traced, _node

    found["traced"] = Traced(np.ones((2, 2), np.float32), 0, _node((), lambda g: ()))
    return found


OPTIONS = [
    {}, {"axis": 0}, {"axis": None, "keepdims": True}, {"keepdims": 1}, {"dtype": "float64"}, {"dtype": None},
    {"absent": 1}, {"x": 1},
]  # fmt: skip


@extension
@pytest.mark.parametrize("active", ember_ml.get_available_backends())
@pytest.mark.parametrize(
    "name", ["add", "exp", "where", "sum", "concat", "take", "reshape", "clip", "softmax", "one_hot", "power",
             "remainder", "layer_normalization", "select", "isclose", "matmul"],
)  # fmt: skip
def test_both_speeds_make_the_same_calls(name: str, active: str) -> None:
    recorder = Recorder()
    values = operands()
    given = {id(value): label for label, value in values.items()}
    foreign = values.get("torch int64", values["numpy int64"])
    for fails in (False, True):
        python, native = speeds(REGISTRY[name], recorder, fails)
        for make in (lambda f: (f,), lambda f: (f, f), lambda f: (f, values["float"]), lambda f: (f, values["int"]),
                     lambda f: (values["numpy bool"], f, f), lambda f: (f, values["numpy float32"]),
                     lambda f: (f, foreign), lambda f: (f, values["traced"]),
                     lambda f: (f, [0], f), lambda f: (f, f, f, f), lambda f: ()):  # fmt: skip
            for first in values.values():
                args = make(first)
                for kwargs in OPTIONS:
                    with ember_ml.use_backend(active):
                        within = [outcome(call, recorder, args, kwargs) for call in (python, native)]
                    ember_ml.set_backend(active)
                    outside = [outcome(call, recorder, args, kwargs) for call in (python, native)]
                    ember_ml.set_backend("numpy")
                    labels = [given.get(id(x), type(x).__name__) for x in args]
                    for one, other in (within, outside):
                        assert _comparable(one) == _comparable(other), (labels, kwargs)


def _comparable(found: Any) -> Any:
    """Calls by name and number of arguments: scalars and errors are made anew in each."""
    if isinstance(found, str):
        return found
    result, seen = found
    return result, [one if isinstance(one, str) else (one[0], len(one[1]), sorted(one[2])) for one in seen]


def test_the_environment_chooses_the_speed() -> None:
    code = "from ember_ml import ops; print(type(ops.add).__name__)"
    for value, expected in (("1", {"function"}), ("", {"function", "Function"})):
        environment = {**os.environ, "EMBER_ML_PURE_PYTHON": value}
        found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert found.stdout.strip() in expected, found.stderr


def test_operations_are_functions_in_every_respect() -> None:
    for function in (ops.add, ops.sum, ops.concatenate, ops.zeros):
        operation = operation_of(function)
        assert function.__name__ == function.__qualname__ == operation.name
        assert function.__module__ == operation.module
        assert function.__doc__ == operation.function.__doc__
        assert function.__wrapped__ is operation.function
        assert inspect.signature(function) == inspect.signature(operation.function)
        assert function.__annotations__ == operation.function.__annotations__
        assert typing.get_type_hints(function)["return"] == typing.get_type_hints(operation.function)["return"]
        assert inspect.getsource(function).startswith("@op(")
        assert inspect.isroutine(function)
        assert f"{operation.name}(" in pydoc.render_doc(function, renderer=pydoc.plaintext)
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.copy(function) is copy.deepcopy(function) is function
        assert weakref.ref(function)() is function
        assert repr(function).startswith(f"<function {operation.name} at 0x")
        assert function == function
        assert len({function, ops.exp}) == 2
        assert function != ops.exp


def test_operations_can_be_wrapped_bound_and_marked() -> None:
    @functools.wraps(ops.exp)
    def wrapped(*args: Any) -> Any:
        return ops.exp(*args)

    assert wrapped.__doc__ == ops.exp.__doc__
    assert inspect.signature(wrapped) == inspect.signature(ops.exp)

    class Holder:
        exp = ops.exp

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.zeros(2, np.float32)

    assert Holder.exp is ops.exp
    with ember_ml.use_backend("numpy"):
        assert Holder().exp().tolist() == [1.0, 1.0]
        assert functools.partial(ops.add, 1)(2).tolist() == 3

    @op(promoted)
    def marked(x: TensorLike, /) -> Tensor:
        """``x``."""
        return x

    marked.mark = 1  # type: ignore[attr-defined]
    assert marked.mark == 1  # type: ignore[attr-defined]


def test_examples_are_found() -> None:
    found = {test.name for test in doctest.DocTestFinder().find(ops.math) if test.examples}
    assert {"ember_ml.ops.math.add", "ember_ml.ops.math.exp"} <= found


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: ops.add(x), r"^add\(\) missing .*y"),
        (lambda x: ops.add(x, x, x), r"^add\(\) t.*positional argument"),
        (lambda x: ops.add(x, y=x), r"^add\(\) .*positional.only.*'y'|^add\(\) .*'y'.*positional.only"),
        (lambda x: ops.sum(), r"^sum\(\) missing .*x"),
        (lambda x: ops.sum(x, 0, None, True), r"^sum\(\) too many positional arguments"),
        (lambda x: ops.sum(x, other=1), r"^sum: unknown option 'other'; the options are "),
        (lambda x: ops.softmax(x, 0, axis=0), r"^softmax\(\) .*multiple values for argument 'axis'"),
        (lambda x: ops.zeros(), r"^zeros\(\) missing .*shape"),
    ],
)
def test_arguments_that_do_not_fit(wrong: Callable[[Any], Any], message: str, backend: Backend) -> None:
    with pytest.raises(TypeError, match=message):
        wrong(ops.ones(2))


def test_keywords_that_are_made_at_run_time(backend: Backend) -> None:
    x = ops.ones((2, 3))
    assert tuple(ops.sum(x, **{"".join(["ax", "is"]): 0}).shape) == (3,)


def test_usual_calls_do_not_take_the_general_path(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    x, i, mask = ops.ones((2, 3)), ops.asarray([1, 0]), ops.ones((2, 3), dtype="bool")
    ember_ml.set_backend(backend.name)
    calls = (
        lambda: ops.add(x, x), lambda: ops.add(x, 2.0), lambda: ops.power(x, 2), lambda: ops.exp(x),
        lambda: ops.sum(x), lambda: ops.sum(x, axis=0, keepdims=True), lambda: ops.concatenate([x, x]),
        lambda: ops.take(x, i, axis=0), lambda: ops.where(mask, x, x), lambda: ops.where(mask, x, 0.0),
        lambda: ops.reshape(x, (3, 2)), lambda: ops.softmax(x), lambda: ops.layer_normalization(x),
    )  # fmt: skip
    for call in calls:
        call()  # JAX traces a body in its first call, and tracers take the general path
    try:
        monkeypatch.setattr(GeneralPath, "__call__", lambda self, *values: pytest.fail(self.operation.name))
        for call in calls:
            assert call() is not None
        with ember_ml.use_backend(backend.name):
            assert ops.add(x, x).shape == (2, 3)
    finally:
        ember_ml.set_backend("numpy")


def test_workarounds_are_bound_to_their_dtypes(backend: Backend) -> None:
    if backend.name == "jax":
        pytest.skip("one compiled function serves all dtypes")
    for name in ("tanh", "matmul"):
        operation = REGISTRY[name]
        run = operation.runs[backend.name]
        native, names, _ = run.native_for  # type: ignore[attr-defined]
        runs = fast.row_of(operation, backend, run).runs
        assert runs[backend.dtypes["float32"]] is native
        assert "float32" in names
        others = [own for dtype, own in backend.dtypes.items() if dtype not in names and own in runs]
        assert all(runs[own] is run for own in others)


def test_bare_functions_are_called_without_options(backend: Backend) -> None:
    """``torch.sum(x)`` is faster than ``torch.sum(x, None, False, dtype=None)``."""
    x, recorder = ops.ones((2, 3)), Recorder()
    bare = f"{backend.name} bare"
    for call in speeds(REGISTRY["sum"], recorder):
        assert (call(x) == bare) is (backend.name != "numpy"), "NumPy has none"
        assert call(x, axis=0).startswith(backend.name)
        assert call(x, axis=0) != bare


def test_native_for_takes_dtypes_and_kinds() -> None:
    @native_for(abs, "float32", "integral")
    def function(x: Any) -> Any:
        return x

    native, names, bare = function.native_for  # type: ignore[attr-defined]
    assert native is abs
    assert {"float32", "int8", "uint64"} <= names
    assert "float64" not in names
    assert not bare


def test_roles_come_from_types(backend: Backend) -> None:
    @op(floating)
    def halved(x: Array, y: Array | None = None, /, *, axis: int | None = None) -> Tensor:
        """Half of ``x``."""
        return ops.divide(x, 2)

    assert [(p.role, p.optional) for p in operation_of(halved).parameters] == [
        ("tensor", False), ("tensor", True), ("count", True),
    ]  # fmt: skip
    assert isinstance(halved([1, 2]), backend.tensors)

    def evaluated(x: TensorLike, flag: bool | None = None) -> Tensor:
        return x  # type: ignore[return-value]

    evaluated.__annotations__ = {"x": TensorLike, "flag": bool | None}
    assert [p.role for p in operation_of(op(promoted)(evaluated)).parameters] == ["tensor", "flag"]


def test_an_annotation_that_cannot_be_resolved() -> None:
    with pytest.raises(TypeError, match=r"lost: the annotation of x must be a type .* got 'Nowhere'"):

        @op(promoted)
        def lost(x: Nowhere, /) -> Tensor:  # type: ignore[name-defined]  # noqa: F821
            """Nothing."""
            return x


def test_calls_do_not_leak(backend: Backend) -> None:
    x, y, mask = ops.ones((2, 3)), ops.ones((2, 3)), ops.ones((2, 3), dtype="bool")
    several = [x, y]
    calls: list[Callable[[], Any]] = [
        lambda: ops.add(x, y), lambda: ops.add(x, 2.0), lambda: ops.exp(x), lambda: ops.sum(x, axis=0),
        lambda: ops.sum(x), lambda: ops.where(mask, x, 0.0), lambda: ops.concatenate(several),
        lambda: ops.add(mask, y), lambda: ops.add(x, y, x),  # type: ignore[call-arg]
        lambda: ops.add(x, several[:0]), lambda: ops.sum(x, axis=7), lambda: ops.softmax(x, axis=-1),
    ]  # fmt: skip
    watched = [x, y, mask, several, backend.dtypes["float32"], ops.add, operation_of(ops.add).runs[backend.name]]

    def repeat(times: int) -> None:
        for call in calls:
            for _ in range(times):
                try:
                    call()
                except (TypeError, ValueError):
                    continue

    repeat(20)
    gc.collect()
    before = [sys.getrefcount(value) for value in watched]
    repeat(500)
    gc.collect()
    after = [sys.getrefcount(value) for value in watched]
    assert all(new - old < 100 for new, old in zip(after, before, strict=True)), (before, after)


@extension
def test_functions_of_the_extension_are_collected() -> None:
    recorder = Recorder()
    function = speeds(REGISTRY["add"], recorder)[1]
    function.itself = function  # type: ignore[attr-defined]
    alive = weakref.ref(function)
    del function
    gc.collect()
    assert alive() is None


@op(promoted)
def _with_block(x: TensorLike, /) -> Tensor:
    """``x``; remembers whether a block of a backend was open."""
    OPEN.append(backends.process_backend() is None)
    return x  # type: ignore[return-value]


OPEN: list[bool] = []


def test_wrapped_tensors_of_the_active_engine_open_no_block(backend: Backend) -> None:
    """An open block takes calls in every thread off the fast path."""
    OPEN.clear()
    x = EmberTensor(ops.asarray([1.0]))
    _with_block(x)
    _with_block([x])
    assert OPEN == [False, False]
