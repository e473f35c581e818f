"""What a transformed function captures, and what it draws when it runs again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import nn, ops, optim, transform
from ember_ml.backend import Backend
from ember_ml.nn.tensor import EmberTensor
from ember_ml.testing.comparison import assert_same, host
from ember_ml.transform import checkpoint, grad, hessian, value_and_grad, vjp, vmap
from ember_ml.transform.captures import captures_of

X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)


def test_checkpoint_draws_the_same_numbers_again(backend: Backend) -> None:
    """What is computed again for the gradient drops the same elements, and the stream goes on as without it."""
    x = ops.ones((400,))

    def f(x: Any) -> Any:
        return ops.sum(ops.multiply(x, ops.dropout(x, 0.5)))

    found = []
    for function in (f, transform.checkpoint(f)):
        ops.random.set_seed(1)
        alone = value_and_grad(function)(x)
        after = ops.random.uniform(())
        with ops.random.stream(5):
            within = value_and_grad(function)(x), ops.random.uniform(())
        found.append((alone, after, within))
        value, gradients = alone
        assert float(ops.sum(gradients)) == 2 * float(value)
    assert_same(found[1], found[0], tolerance=0.0)


@pytest.mark.parametrize("drawn", [True, False])
def test_gradients_are_computed_in_another_thread(backend: Backend, drawn: bool) -> None:
    """As torch does on a GPU: the backend and the random numbers are those of the thread that asked for them."""
    if backend.name == "mlx":
        return  # whose tensors belong to the thread that made them

    @transform.custom_gradient
    def tripled(x: Any) -> Any:
        return ops.multiply(x, 3.0), lambda gradient: ops.multiply(gradient, 3.0)

    def asked() -> None:
        with ember_ml.use_backend(backend.name):
            if drawn:
                ops.random.uniform(())
            x = ops.ones((400,))
            value, pull = vjp(lambda x: tripled(checkpoint(lambda x: ops.dropout(x, 0.5))(x)), x)
            with ThreadPoolExecutor(1) as other:
                (gradients,) = other.submit(pull, x).result()
            assert_same(gradients, value, tolerance=0.0)

    ember_ml.set_backend("numpy")
    ops.random.set_seed(1)
    with ThreadPoolExecutor(1) as fresh:
        fresh.submit(asked).result()


@pytest.mark.parametrize("style", ["module", "method", "partial", "closure"])
def test_checkpoint_sees_what_a_function_captures(style: str, backend: Backend) -> None:
    """Models and tensors that a function closes over have their gradients, as without the checkpoint."""
    x = ops.asarray(X)
    others = [name for name in ember_ml.get_available_backends() if name not in ("numpy", backend.name)]
    with ember_ml.use_backend((others or ["numpy"])[0]):
        elsewhere, other = ops.ones((1,)), nn.Linear(2, 2)

    class Network(nn.Module):
        def __init__(self) -> None:
            self.body = nn.Sequential(nn.Linear(X.shape[-1], 4), nn.BatchNorm(4), nn.Dropout(0.5))

        def forward(self, x: Any, scale: Any, style: str) -> Any:
            if style == "plain":
                return ops.multiply(self.body(x), scale)
            function = {
                "module": self.body,
                "method": self.body.forward,
                "partial": partial(lambda model, x: model(x), self.body),
                # What it captures of another engine is no matter.
                "closure": lambda x: (elsewhere, other) and ops.multiply(self.body(x), scale),
            }[style]
            seen = checkpoint(function)(x)
            return seen if style == "closure" else ops.multiply(seen, scale)

    found = []
    for way in ("plain", style):
        ops.random.set_seed(3)
        model = Network()
        loss = lambda model, scale: ops.sum(ops.exp(model(x, scale, way)))  # noqa: B023, E731 - called at once
        value, gradients = value_and_grad(loss, argnums=(0, 1))(model, ops.asarray([2.0]))
        found.append((value, gradients, model.tensors()))
    assert_same(found[1], found[0], tolerance=1e-5)


@pytest.mark.parametrize("style", ["module", "method", "closure", "global"])
def test_compiled_code_sees_what_a_function_captures(style: str, backend: Backend) -> None:
    """Models and tensors that a function closes over are inputs of its program, not what they were when it was made."""
    # torch takes long, and sees them without help.
    is_compiled = backend.name != "torch" or style == "module"
    model, factor = nn.Linear(2, 1, weight_init=1.0), ops.asarray(1.0)
    functions = {
        "module": model,
        "method": model.forward,
        "closure": lambda x: ops.multiply(model(x), factor),
        "global": eval("lambda x: model(x)", {"model": model}),
    }
    run = transform.compile(functions[style]) if is_compiled else functions[style]
    x = ops.ones((1, 2))
    assert run(x).tolist() == [[2.0]]
    model.weight = ops.multiply(model.weight, 10.0)
    assert run(x).tolist() == [[20.0]]
    if style == "closure":
        factor = ops.asarray(3.0)
        assert run(x).tolist() == [[60.0]]
    if backend.name != "torch":
        gradients = grad(lambda model: ops.sum(transform.compile(lambda x: model(x))(x)))(model)
        assert gradients["weight"].tolist() == [[1.0], [1.0]]


def test_a_function_that_runs_again_draws_the_same_numbers(backend: Backend) -> None:
    """Engines that run a function more than once, for a gradient or for slices, are no different from others."""
    x = ops.ones((30,))

    def f(x: Any) -> Any:
        return ops.multiply(x, ops.dropout(x, 0.5))

    def total(x: Any) -> Any:
        return ops.sum(f(x))

    ops.random.set_seed(1)
    expected, after = host(f(x)), float(ops.random.uniform(()))

    def pulled() -> Any:
        value, pull = vjp(total, x)
        return float(value), host(pull(ops.ones(()))[0]), host(pull(ops.ones(()))[0])

    def check(name: str, found: Any, wanted: Any) -> None:
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=name)
        assert float(ops.random.uniform(())) == after, name

    ops.random.set_seed(1)
    value, *gradients = pulled()
    check("vjp", [value, *(gradient.sum() for gradient in gradients)], [expected.sum()] + [2 * expected.sum()] * 2)
    ops.random.set_seed(1)
    check("jacobian", host(transform.jacobian(f)(x)), np.diag(2 * expected))
    ops.random.set_seed(1)
    check("hessian", host(hessian(total)(x)), np.diag(2 * expected))
    ops.random.set_seed(1)
    check("vmap", host(vmap(f)(ops.ones((4, 30)))), [expected] * 4)
    ops.random.set_seed(1)
    check("vmap of grad", host(vmap(grad(total))(ops.ones((4, 30)))), [2 * expected] * 4)
    with ops.random.stream(7):
        value, pull = vjp(total, x)
        drawn = float(ops.random.uniform(()))
    assert float(ops.sum(pull(ops.ones(()))[0])) == 2 * float(value)
    with ops.random.stream(7):
        total(x)
        assert float(ops.random.uniform(())) == drawn


class Agent:
    """An object that is no model and has one, with an optimiser, options and tensors besides."""

    def __init__(self) -> None:
        self.model, self.optimizer = nn.Linear(3, 1, weight_init=1.0), optim.SGD(0.1)
        self.scale, self.factor, self.calls = 1.0, ops.asarray(2.0), 0

    def loss(self, x: Any) -> Any:
        return ops.mean(ops.square(ops.multiply(self.model(x), ops.multiply(self.factor, self.scale))))

    def step(self, x: Any) -> Any:
        value, gradients = value_and_grad(lambda _: self.loss(x))(self.model)
        self.optimizer.update(self.model, gradients)
        return value

    def __call__(self, x: Any) -> Any:
        return self.step(x)


@pytest.mark.parametrize("style", ["method", "object"])
def test_compiled_methods_see_what_their_object_has(style: str, backend: Backend) -> None:
    found = []
    for is_compiled in (False, True):
        agent = Agent()
        function = agent.step if style == "method" else agent
        # torch takes long, and sees them without help.
        run = transform.compile(function) if is_compiled and backend.name != "torch" else function
        losses = []
        for number in range(4):
            if number == 2:
                agent.scale, agent.factor = 0.5, ops.asarray(3.0)
            agent.calls += 1
            losses.append(run(ops.asarray(X)))
        found.append((losses, agent.model.tensors(), agent.optimizer.tensors()))
    assert_same(found[1], found[0], tolerance=1e-5)


def test_a_number_that_a_method_does_not_name_compiles_nothing() -> None:
    for engine in ember_ml.get_available_backends():
        with ember_ml.use_backend(engine):
            agent = Agent()
            before = captures_of(agent.loss, (), backends.load(engine))
            assert before.models == [agent.model]
            assert before.values.count(1.0) == 1
            agent.calls += 1
            assert captures_of(agent.loss, (), backends.load(engine)).values == before.values
            agent.scale = 4.0
            assert captures_of(agent.loss, (), backends.load(engine)).values != before.values


@pytest.mark.parametrize("style", ["method", "list", "dictionary", "tuple", "attribute", "default"])
def test_checkpoint_sees_what_is_further_away(style: str, backend: Backend) -> None:
    """Or its gradient would be zero on some engines, without a word."""
    x = ops.asarray(X)

    class Holder:
        def __init__(self, model: Any, factor: Any) -> None:
            self.model, self.factor = model, factor

        def run(self, x: Any) -> Any:
            return ops.multiply(self.model(x), self.factor)

    def loss(model: Any, factor: Any, is_plain: bool) -> Any:
        holder, items, names, pair = Holder(model, factor), [factor], {"f": factor}, (factor, 2)

        def default(x: Any, model: Any = model) -> Any:
            return ops.multiply(model(x), factor)

        function = {
            "method": holder.run,
            "list": lambda x: ops.multiply(model(x), items[0]),
            "dictionary": lambda x: ops.multiply(model(x), names["f"]),
            "tuple": lambda x: ops.multiply(model(x), pair[0]),
            "attribute": lambda x: holder.run(x),
            "default": default,
        }[style]
        return ops.sum(ops.exp((function if is_plain else checkpoint(function))(x)))

    found = []
    for is_plain in (True, False):
        ops.random.set_seed(0)
        found.append(value_and_grad(partial(loss, is_plain=is_plain), (0, 1))(nn.Linear(3, 2), ops.asarray(0.5)))
    assert_same(found[1], found[0], tolerance=1e-5)


GLOBAL: Any = None


@pytest.mark.parametrize("style", ["tensor", "list", "model", "function"])
def test_compiled_code_sees_what_has_a_global_name(style: str, backend: Backend, monkeypatch: Any) -> None:
    kinds: dict[str, Any] = {
        "tensor": (lambda n: ops.asarray(n), lambda x: ops.multiply(x, GLOBAL)),
        "list": (lambda n: [ops.asarray(n), 1], lambda x: ops.multiply(x, GLOBAL[0])),
        "model": (lambda n: [nn.Linear(3, 3, weight_init=n)], lambda x: GLOBAL[0](x)),
        "function": (lambda n: lambda x: ops.multiply(x, n), lambda x: GLOBAL(x)),
    }
    make, f = kinds[style]
    run = transform.compile(f) if backend.name != "torch" else f
    for number in (2.0, 3.0):
        monkeypatch.setitem(globals(), "GLOBAL", make(number))
        expected = number * X if style != "model" else number * X.sum(-1, keepdims=True) * np.ones((1, 3))
        np.testing.assert_allclose(host(run(ops.asarray(X))), expected, rtol=1e-5, atol=1e-6)


def test_long_lists_are_data(backend: Backend) -> None:
    numbers = [float(n) for n in range(100_000)]
    found = captures_of(lambda: numbers, (), backends.load(backend.name))
    assert found == ([], [], [])


def test_a_model_on_numpy_computes_on_the_active_engine(backend: Backend) -> None:
    with ember_ml.use_backend("numpy"):
        ops.random.set_seed(2)
        model = nn.Linear(3, 1)
    loss = lambda model, x: ops.sum(ops.square(model(x)))  # noqa: E731
    x = ops.asarray(X)
    with ember_ml.use_backend("numpy"):
        wanted = grad(loss)(model, X)
    for found in (grad(loss)(model, x), grad(transform.compile(loss))(model, x), grad(checkpoint(loss))(model, x)):
        assert {type(gradient) for gradient in found.values()} == {backend.tensors[0]}
        assert_same(found, wanted, tolerance=1e-5)
    optim.SGD(0.1).update(model, grad(loss)(model, x))
    assert model.backend == backend.name


HELD: Any = None


def from_a_global(z: Any) -> Any:
    return ops.sum(ops.multiply(z, HELD))


class Holding:
    """An object that has a tensor, and a function of it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def run(self, z: Any) -> Any:
        return ops.sum(ops.multiply(z, self.tensor))

    __call__ = run


def _product(z: Any, w: Any) -> Any:
    return ops.sum(ops.multiply(z, w))


def holders(w: Any) -> dict[str, Any]:
    """Functions of one argument that have ``w`` already, each from somewhere else: their product, summed."""
    items, names = [w], {"w": (w,)}
    holding = Holding(w)

    def default(z: Any, w: Any = w) -> Any:
        return _product(z, w)

    def keyword(z: Any, *, w: Any = w) -> Any:
        return _product(z, w)

    return {
        "closure": lambda z: _product(z, w),
        "list": lambda z: _product(z, items[0]),
        "dictionary": lambda z: _product(z, names["w"][0]),
        "default": default,
        "default in a list": lambda z, held=[w]: _product(z, held[0]),
        "keyword default": keyword,
        "function with a default": lambda z: default(z),
        "default function": lambda z, f=default: f(z),
        "partial": partial(lambda w, z: _product(z, w), w),
        "partial keyword": partial(_product, w=w),
        "attribute": lambda z: holding.run(z),
        "method": holding.run,
        "object": holding,
        "global": lambda z: _product(z, HELD),
        "global of a function": lambda z: from_a_global(z),
    }


STYLES = list(holders(None))
both_kinds = pytest.mark.parametrize("kind", [lambda x: x, EmberTensor], ids=["native", "portable"])


@both_kinds
@pytest.mark.parametrize("style", STYLES)
def test_an_input_that_the_function_also_has(
    style: str, kind: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler must not take the one for the other: in the next call they are two."""
    if backend.name == "torch" and style not in ("default", "global"):
        return  # it takes long
    w = kind(ops.asarray([2.0, 3.0]))
    monkeypatch.setitem(globals(), "HELD", w)
    f = transform.compile(holders(w)[style])
    for z, expected in ((w, 13.0), (w, 13.0), (kind(ops.asarray([1.0, 1.0])), 5.0), (w, 13.0), (ops.ones(1), 5.0)):
        assert f(z).item() == expected


def test_an_input_that_a_model_with_a_global_name_has(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Linear(2, 1, weight_init=3.0)
    monkeypatch.setitem(globals(), "HELD", model)
    f = transform.compile(lambda z: _product(z, HELD.weight))
    weight = model.weight
    assert [f(weight).item(), f(ops.ones((2, 1))).item(), f(weight).item()] == [18.0, 6.0, 18.0]


@both_kinds
@pytest.mark.parametrize("way", ["grad", "value_and_grad", "checkpoint", "vmap", "vjp", "compiled gradient"])
@pytest.mark.parametrize("style", STYLES)
def test_transforms_of_a_function_that_also_has_its_input(
    style: str, way: str, kind: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend.name == "torch" and way == "compiled gradient":
        return  # it takes long
    w = kind(ops.asarray([2.0, 3.0]))
    monkeypatch.setitem(globals(), "HELD", w)
    f = holders(w)[style]
    transformed: dict[str, Any] = {
        "grad": grad(f),
        "value_and_grad": lambda z: value_and_grad(f)(z)[1],
        "checkpoint": grad(checkpoint(f)),
        "vmap": vmap(f),
        "vjp": lambda z: vjp(f, z)[1](ops.ones(()))[0],
        "compiled gradient": transform.compile(grad(f)),
    }
    expected = [10.0, 15.0] if way == "vmap" else [2.0, 3.0]
    for _ in range(2):
        assert transformed[way](w).tolist() == expected


@both_kinds
def test_one_tensor_given_twice(kind: Any, backend: Backend) -> None:
    w = kind(ops.asarray([2.0, 3.0]))
    other = kind(ops.asarray([1.0, 1.0]))
    f = transform.compile(_product)
    assert [f(w, w).item(), f(w, other).item(), f(other, w).item(), f(w, w).item()] == [13.0, 5.0, 5.0, 13.0]
    assert grad(_product)(w, w).tolist() == [2.0, 3.0]
    assert [x.tolist() for x in grad(_product, (0, 1))(w, w)] == [[2.0, 3.0], [2.0, 3.0]]
    assert grad(checkpoint(_product))(w, w).tolist() == [2.0, 3.0]
    assert vmap(_product)(w, w).tolist() == [4.0, 9.0]


@both_kinds
@pytest.mark.parametrize("style", STYLES)
def test_checkpoint_has_the_gradient_of_what_a_function_has(
    style: str, kind: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if style == "global of a function":
        return  # of functions with a global name, only that they are the same is known
    z = kind(ops.asarray([5.0, 7.0]))

    def loss(w: Any) -> Any:
        monkeypatch.setitem(globals(), "HELD", w)
        return checkpoint(holders(w)[style])(z)

    assert grad(loss)(kind(ops.asarray([2.0, 3.0]))).tolist() == [5.0, 7.0]


@pytest.mark.parametrize("style", STYLES)
def test_compiled_code_sees_a_portable_tensor_that_was_assigned_to(
    style: str, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if style == "global of a function" or (backend.name == "torch" and style != "closure"):
        return  # of functions with a global name, only that they are the same is known; torch takes long
    w, z = EmberTensor([2.0, 3.0]), EmberTensor([1.0, 1.0])
    monkeypatch.setitem(globals(), "HELD", w)
    f = transform.compile(holders(w)[style])
    for number in (2.0, 4.0, 6.0):
        w[0] = number
        assert f(z).item() == number + 3.0


@both_kinds
@pytest.mark.parametrize("style", STYLES)
def test_a_gradient_rule_has_none_for_what_a_function_has(
    style: str, kind: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if style == "global of a function":
        return  # of functions with a global name, only that they are the same is known
    z = kind(ops.asarray([5.0, 7.0]))

    def loss(w: Any) -> Any:
        monkeypatch.setitem(globals(), "HELD", w)
        function = holders(w)[style]
        return transform.custom_gradient(lambda z: (function(z), lambda g: [g, g]))(z)

    with pytest.raises(ValueError, match="must not close over a tensor that a gradient is being taken of"):
        grad(loss)(kind(ops.asarray([2.0, 3.0])))


def test_what_a_function_does_to_a_model_it_does_once(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though MLX traces it again when it finds an input that the function has from elsewhere."""
    if backend.name == "torch":
        return  # it takes long

    class Counting(nn.Module):
        def __init__(self) -> None:
            self.calls = 0

        def forward(self, z: Any) -> Any:
            self.calls += 1
            return from_a_global(z)

    model, w = Counting(), ops.asarray([2.0, 3.0])
    monkeypatch.setitem(globals(), "HELD", w)
    f = transform.compile(lambda model, z: model(z))
    for count in (1, 2, 3):
        assert f(model, w).item() == 13.0
        assert model.calls == count


def test_the_longest_container_that_is_searched(backend: Backend) -> None:
    items = [float(n) for n in range(64)]
    home = backends.load(backend.name)
    assert captures_of(lambda: items, (), home).values == items
    items.append(64.0)
    assert captures_of(lambda: items, (), home).values == []


def test_a_compiled_function_belongs_to_the_engine_of_its_arguments(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which need not be the active one: a tensor that is an argument and a global must not be taken for one input."""
    if backend.name == "torch":
        import torch

        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))  # which is quicker
    w, z = ops.asarray([2.0, 3.0]), ops.ones(2)
    monkeypatch.setitem(globals(), "HELD", w)
    f = transform.compile(lambda z: _product(z, HELD))
    with ember_ml.use_backend("numpy"):
        assert [f(w).item(), f(z).item(), f(w).item()] == [13.0, 5.0, 13.0]
