"""Compiled functions: what is changed between two calls holds in the second, as it does without the compiler."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from exceptions import HIDDEN_WARNING

import ember_ml
from ember_ml import ops, optim, transform
from ember_ml.backend import Backend
from ember_ml.nn import BatchNorm, Dropout, Linear, Module, Parameter, Sequential
from ember_ml.nn.tensor import EmberTensor
from ember_ml.optim import schedules
from ember_ml.testing.comparison import assert_same, host
from ember_ml.transform.cache_key import Keys

# An attribute that is a plain tensor is among what a compiled function captures.
pytestmark = pytest.mark.filterwarnings("ignore:Scale. a tensor in an attribute")

X = np.array([[1.5, -0.5, 3.0]], np.float32)


class Scale(Module):
    """A parameter, and options of every kind."""

    def __init__(self) -> None:
        self.factor = Parameter(ops.asarray([[1.0, 2.0, -1.0]]))
        self.power, self.function, self.shift = 2.0, ops.tanh, ops.asarray(0.5)
        self.shares, self.table = [1.0, 2.0], {"share": 1.0}
        self.inner = Dropout(0.0)

    def forward(self, x: Any) -> Any:
        x = self.function(ops.power(ops.multiply(x, self.factor), self.power))
        return self.inner(ops.add(ops.multiply(x, self.shares[1] * self.table["share"]), self.shift))


def update(model: Any, optimizer: Any, x: Any) -> Any:
    optimizer.update(model, {"factor": ops.multiply(x, model.factor)})
    return model(x)


def both(begin: Callable[[], Any], change: Callable[[Any, Any], Any]) -> list[list[np.ndarray]]:
    """What four calls leave behind, with a change after the second, run as it is and compiled."""
    runs = []
    for f in (update, transform.compile(update)):
        model, optimizer, x = Scale(), begin(), ops.asarray(X)
        optimizer.init(model)
        found = []
        for number in range(4):
            if number == 2:
                change(model, optimizer)
            found += [host(f(model, optimizer, x)), host(model.factor)]
        runs.append(found)
    return runs


def to(**options: Any) -> Callable[[Any, Any], None]:
    """A change of options of an optimiser."""
    return lambda model, optimizer: [setattr(optimizer, *option) for option in options.items()]  # type: ignore[return-value]


OPTIMISERS = {
    "rate": (lambda: optim.SGD(0.1), to(learning_rate=0.5)),
    "schedule": (lambda: optim.SGD(schedules.constant(0.5)), to(learning_rate=schedules.constant(0.1))),
    "options": (lambda: optim.Lion(0.1), to(weight_decay=2.0, beta_1=0.1, clip_norm=0.25)),
}


@pytest.mark.parametrize("case", OPTIMISERS)
def test_options_of_optimisers(backend: Backend, case: str) -> None:
    begin, change = OPTIMISERS[case]
    eager, compiled = both(begin, change)
    np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-6)
    unchanged, _ = both(begin, lambda model, optimizer: None)
    assert np.abs(np.subtract(eager[-1], unchanged[-1])).max() > 1e-3


def test_options_of_models(backend: Backend) -> None:
    def change(model: Any, optimizer: Any) -> None:
        model.power, model.function = 3.0, ops.relu
        model.shift = ops.asarray(2.0)
        model.shares[1], model.table["share"] = 5.0, 0.25

    eager, compiled = both(lambda: optim.SGD(0.1), change)
    np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-6)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "power": lambda model: setattr(model, "power", 3.0),
    "kind": lambda model: setattr(model, "power", 2),
    "function": lambda model: setattr(model, "function", ops.relu),
    "tensor": lambda model: setattr(model, "shift", ops.asarray(0.5)),
    "list": lambda model: model.shares.__setitem__(1, 5.0),
    "dictionary": lambda model: model.table.update(share=0.25),
    "rate": lambda model: setattr(model.inner, "rate", 0.5),
    "mode": lambda model: model.inner.eval(),
    "frozen": lambda model: model.freeze(),
    "layer": lambda model: setattr(model, "inner", Dropout(0.0)),
}


def _key(keys: Keys, *states: Any) -> Any:
    """Key of a call with these arguments, by keys that may remember an earlier one."""
    return keys.of_call(states, None, {id(state): list(state.tensors()) for state in states})


@pytest.mark.parametrize("name", CHANGES)
def test_a_program_depends_on_each_option(backend: Backend, name: str) -> None:
    model, optimizer = Scale(), optim.Adam().init({"factor": ops.ones(3)})
    keys = Keys()
    before = _key(keys, model, optimizer)
    model.assign({"factor": ops.ones((1, 3))})
    optimizer.learning_rate = 0.5
    optimizer.update({"factor": ops.ones(3)}, {"factor": ops.ones(3)})
    optimizer.tensors()
    assert _key(keys, model, optimizer) == before
    CHANGES[name](model)
    assert _key(keys, model, optimizer) != before


@pytest.mark.parametrize("option", ["weight_decay", "beta_1", "clip_value", "learning_rate"])
def test_a_program_depends_on_each_option_of_grouped_optimisers(backend: Backend, option: str) -> None:
    inner = optim.Adam(schedules.constant(0.1))
    both = optim.Grouped([(lambda path, x: x.ndim == 2, optim.SGD(0.1)), (lambda path, x: True, inner)])
    both.init({"w": ops.ones((2, 2)), "b": ops.ones(2)})
    keys = Keys()
    before = _key(keys, both)
    both.update({"w": ops.ones((2, 2)), "b": ops.ones(2)}, {"w": ops.ones((2, 2)), "b": ops.ones(2)})
    assert _key(keys, both) == before
    setattr(inner, option, schedules.constant(0.5) if option == "learning_rate" else 0.5)
    assert _key(keys, both) != before


def test_a_compiled_function_wraps_as_each_call_asks(backend: Backend) -> None:
    f = transform.compile(lambda x: ops.multiply(x, 2.0))
    native = ops.asarray([1.0])
    for x in (native, EmberTensor([1.0]), native, EmberTensor([1.0])):
        assert type(f(x)) is type(x)


def test_functions_of_other_sizes_are_compiled_for_their_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch takes a size for a symbol where an earlier call had another one: it must be a call of the same function."""
    torch = pytest.importorskip("torch")
    sizes: list[Any] = []

    def traced(program: Any, inputs: list[Any]) -> Any:
        sizes.append([x if isinstance(x, torch.SymInt) else tuple(x.shape) for x in inputs if x is not None])
        return program.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=traced))
    with ember_ml.use_backend("torch"):
        for length in (8, 16, 24):
            f = transform.compile(lambda x: ops.multiply(x, 2.0))
            assert ops.shape(f(ops.ones((length, 4)))) == (length, 4)
            assert [x for x in sizes.pop() if isinstance(x, torch.SymInt) or torch.SymInt in map(type, x)] == []


@pytest.mark.parametrize("read", [float, int, bool, lambda x: x.item(), lambda x: x.tolist()])
def test_values_are_read_in_compiled_code_or_the_error_says_what_to_write(
    backend: Backend, read: Callable[[Any], Any], traced_only: None
) -> None:
    f = transform.compile(lambda x: ops.multiply(x, 2.0) if read(x) else x)
    if backend.name in ("mlx", "jax"):
        with pytest.raises(TypeError, match=r"^compile: a function must not read the values .* ops\.cond") as caught:
            f(ops.asarray(3.0))
        assert caught.value.__cause__ is not None
    else:
        assert float(f(ops.asarray(3.0))) == 6.0


def test_changes_between_calls_that_bind_no_other_object(backend: Backend) -> None:
    class Rate:
        def value(self) -> float:
            return 2.0

    rate, table, shares = Rate(), {"share": 1.0}, ([1.0],)
    f = transform.compile(lambda x: ops.multiply(x, rate.value() * table["share"] * shares[0][0] * SHARES[0]))
    x = ops.asarray([1.0])
    changes = [
        lambda: None,
        lambda: setattr(rate, "value", lambda: 5.0),
        lambda: table.update(share=7.0),
        lambda: shares[0].__setitem__(0, 11.0),
        lambda: SHARES.__setitem__(0, 13.0),
    ]
    try:
        found = [(change(), float(host(f(x))[0]))[1] for change in changes]
    finally:
        SHARES[0] = 1.0
    assert found == [2.0, 5.0, 35.0, 385.0, 5005.0]


SHARES = [1.0]


def test_numbers_that_a_function_closes_over(backend: Backend) -> None:
    factor = 2.0
    f = transform.compile(lambda x: ops.multiply(x, factor))
    np.testing.assert_allclose(host(f(ops.asarray(X))), 2 * X)
    factor = 3.0
    np.testing.assert_allclose(host(f(ops.asarray(X))), 3 * X)


FACTOR = 2.0


def test_numbers_with_a_global_name(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    f = transform.compile(lambda x: ops.multiply(x, FACTOR))
    np.testing.assert_allclose(host(f(ops.asarray(X))), 2 * X)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    np.testing.assert_allclose(host(f(ops.asarray(X))), 3 * X)


def test_modes_set_inside_are_there_afterwards(backend: Backend) -> None:
    """In every call, not in those alone that are traced."""
    model = Sequential(BatchNorm(3), Dropout(0.5))

    def evaluated(model: Any, x: Any) -> Any:
        model.eval()
        result = model(x)
        model[0].train()
        return result

    f = transform.compile(evaluated)
    for _ in range(3):
        model.train()
        np.testing.assert_allclose(host(f(model, ops.asarray(X))), X, rtol=1e-4)
        assert [module.training for module in model.modules()] == [False, True, False]


def test_numbers_that_a_model_counts(backend: Backend) -> None:
    class Counter(Module):
        def __init__(self) -> None:
            self.calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return ops.multiply(x, self.calls)

    model = Counter()
    f = transform.compile(lambda model, x: model(x))
    for number in range(1, 4):
        np.testing.assert_allclose(host(f(model, ops.asarray(X))), number * X)
    assert model.calls == 3


def test_another_object_at_the_same_address(backend: Backend) -> None:
    """A value that cannot be hashed is known by its identity, which must not be taken over by another."""

    class Options:
        __hash__ = None  # type: ignore[assignment]

        def __init__(self, factor: float) -> None:
            self.factor = factor

    f = transform.compile(lambda x, options: ops.multiply(x, options.factor))
    for number in range(1, 4):
        np.testing.assert_allclose(host(f(ops.asarray(X), Options(float(number)))), number * X)


def test_many_programs_give_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform.compilation, "_PROGRAMS", 2)
    for engine in ember_ml.get_available_backends():
        if engine != "torch":
            with ember_ml.use_backend(engine), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                f = transform.compile(lambda x, number: ops.multiply(x, number))
                for number in (1.0, 2.0, 3.0, 1.0):
                    np.testing.assert_allclose(host(f(ops.asarray(X), number)), number * X)
                assert ["in a Buffer" in str(one.message) for one in caught] == [True] * (engine != "numpy")
                assert all(one.filename == __file__ for one in caught)


def test_linear_models_of_one_function_are_told_apart(backend: Backend) -> None:
    f = transform.compile(lambda model, x: model(x))
    for weight in (1.0, 2.0):
        model = Linear(3, 3, weight_init=weight)
        np.testing.assert_allclose(host(f(model, ops.asarray(X)))[0], [weight * X.sum()] * 3, rtol=1e-6)
        del model


def test_partials(backend: Backend) -> None:
    def scaled(x: Any, factor: float) -> Any:
        return ops.multiply(x, factor)

    for factor in (2.0, 3.0):
        f = transform.compile(partial(scaled, factor=factor))
        np.testing.assert_allclose(host(f(ops.asarray(X))), factor * X)


FLAGS: dict[str, Callable[[Any, Any], Any]] = {
    "keepdims": lambda x, flag: ops.sum(x, axis=0, keepdims=flag),
    "a definition's": lambda x, flag: ops.ptp(x, axis=1, keepdims=flag),
    "descending": lambda x, flag: ops.sort(x, descending=flag),
    "full_matrices": lambda x, flag: ops.svd(x, full_matrices=flag)[0],
    "equal_nan": lambda x, flag: ops.isclose(x, x, equal_nan=flag),
}


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("name", FLAGS)
def test_integers_are_flags_in_one_graph(name: str, flag: int) -> None:
    torch = pytest.importorskip("torch")
    with ember_ml.use_backend("torch"):
        x = ops.asarray(X)
        expected = host(FLAGS[name](x, bool(flag)))
        torch._dynamo.reset()
        traced = torch.compile(partial(FLAGS[name], flag=flag), backend="eager", fullgraph=True)
        np.testing.assert_allclose(host(traced(x)), expected, rtol=1e-6)


def uses(x: Any, axis: Any, length: Any, flag: Any, negative_slope: Any) -> Any:
    """Numbers in every place where plain code takes them."""
    shares = ops.leaky_relu(ops.reshape(x, (length, -1)), negative_slope)
    rows = [ops.multiply(shares, i) for i in range(length)]
    result = ops.sum(ops.concat(rows, axis=axis), axis=axis, keepdims=flag)
    return ops.negative(result) if flag else result


def test_numbers_of_numpy_are_arguments(backend: Backend) -> None:
    f = transform.compile(uses)
    x = ops.asarray(np.arange(6, dtype=np.float32) - 3)
    for make in (lambda n: n, np.asarray):
        for length, flag in ((2, True), (3, False)):
            given = [make(n) for n in (np.int64(1), np.int64(length), np.bool_(flag), np.float32(0.25))]
            expected = uses(x, *given)
            assert_same(f(x, *given), expected)


def test_integers_of_numpy_as_operands(backend: Backend) -> None:
    """They have a dtype, but where the compiler has to be given Python's."""
    found = transform.compile(ops.multiply)(ops.asarray([1, 2], dtype="int32"), np.int64(3))
    assert host(found).tolist() == [3, 6]
    assert ops.dtype(found) == ("int32" if backend.name == "torch" else "int64")
    assert ops.dtype(transform.compile(ops.multiply)(ops.asarray(X), np.float64(3))) == "float64"


def test_numbers_of_numpy_that_a_function_closes_over(backend: Backend) -> None:
    axis = np.int64(0)
    f = transform.compile(lambda x: ops.sum(x, axis=axis))
    np.testing.assert_allclose(host(f(ops.asarray(X))), X.sum(0))
    axis = np.int64(1)
    np.testing.assert_allclose(host(f(ops.asarray(X))), X.sum(1))


class Part(enum.IntEnum):
    FIRST, SECOND = 0, 1


def test_members_of_enumerations_are_arguments(backend: Backend) -> None:
    f = transform.compile(lambda x, part: ops.sum(x, axis=part) if part is Part.SECOND else ops.negative(x))
    np.testing.assert_allclose(host(f(ops.asarray(X), Part.SECOND)), X.sum(1))
    np.testing.assert_allclose(host(f(ops.asarray(X), Part.FIRST)), -X)


def test_zeros_have_signs(backend: Backend) -> None:
    """They are equal, and yet another number for a program."""
    f = transform.compile(lambda x, zero: ops.copysign(x, zero))
    for kind in (float, np.float32):
        for zero in (0.0, -0.0, 0.0):
            np.testing.assert_array_equal(host(f(ops.asarray(X), kind(zero))), np.copysign(X, zero))


def test_not_a_number_is_the_same_number_in_every_call(backend: Backend) -> None:
    calls = []

    def f(x: Any, number: Any) -> Any:
        calls.append(type(x))
        return ops.multiply(x, number)

    compiled = transform.compile(f)
    for _ in range(4):
        assert np.isnan(host(compiled(ops.asarray(X), float("nan")))).all()
    if backend.name == "mlx":
        assert len(calls) == 1


def test_threads_share_models_and_what_functions_close_over(backend: Backend) -> None:
    """A thread that traces replaces tensors by tracers, which another thread must not see."""
    model, factor = Linear(3, 3, weight_init=1.0), ops.asarray(2.0)
    inputs = [ops.asarray(X + number) for number in range(8)]
    # MLX computes nothing in one thread that was asked for in another.
    ops.eval(model.tensors(), factor, inputs)
    for _ in range(1 if backend.name == "torch" else 5):
        f = transform.compile(lambda model, x: ops.multiply(model(x), factor))
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda x, f=f: host(f(model, x)), inputs))
        for number, result in enumerate(found):
            np.testing.assert_allclose(result[0], [2 * (X + number).sum()] * 3, rtol=1e-6)


def test_arrays_of_the_host_that_a_function_closes_over(backend: Backend) -> None:
    rows = np.ones(3, np.float32)
    f = transform.compile(lambda x: ops.add(x, rows))
    np.testing.assert_allclose(host(f(ops.asarray(X))), X + 1)
    rows = np.full(3, 2, np.float32)
    np.testing.assert_allclose(host(f(ops.asarray(X))), X + 2)


@pytest.mark.filterwarnings(HIDDEN_WARNING)
def test_gradients_of_what_the_compiler_cannot_trace(backend: Backend) -> None:
    """torch's compiler leaves out what it cannot trace, which must not take part of a gradient with it."""

    def f(x: Any) -> Any:
        y = ops.sum(ops.multiply(x, x))
        if backend.name == "torch":
            import torch

            torch._dynamo.graph_break()
        return ops.multiply(y, 2.0)

    functions: dict[str, Callable[[Any], Any]] = {
        "grad": transform.grad(f),
        "value_and_grad": lambda x: transform.value_and_grad(f)(x)[1],
        "vjp": lambda x: transform.vjp(f, x)[1](ops.asarray(1.0))[0],
        "jacobian": transform.jacobian(f),
    }
    for name, function in functions.items():
        np.testing.assert_allclose(host(transform.compile(function)(ops.asarray(X))), 4 * X, err_msg=name)
    twice = transform.grad(lambda x: ops.sum(transform.grad(f)(x)))
    np.testing.assert_allclose(host(transform.compile(twice)(ops.asarray(X))), np.full_like(X, 4.0))


def test_portable_tensors_without_axes_are_inputs(backend: Backend) -> None:
    calls = []

    def f(x: Any, y: Any) -> Any:
        calls.append(type(y))
        return x * y

    compiled = transform.compile(f)
    for number in range(4):
        y = EmberTensor(ops.asarray(float(number)))
        found = compiled(EmberTensor(ops.asarray(X)), y)
        assert isinstance(found, EmberTensor)
        np.testing.assert_allclose(host(found.native), number * X)
        gradient = transform.grad(lambda y: transform.checkpoint(f)(y, y).sum())(y)
        np.testing.assert_allclose(host(gradient.native), 2 * number)
    if backend.name == "mlx":
        assert calls.count(EmberTensor) == len(calls) < 24
