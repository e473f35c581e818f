"""Transforms: the contract that they share on every engine."""

from __future__ import annotations

import doctest
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import ember_ml
from ember_ml import nn, ops, optim, transform
from ember_ml.backend import DIFFERENTIATION, Backend
from ember_ml.nn.tensor import EmberTensor
from ember_ml.testing.comparison import assert_same, host, is_on_cpu
from ember_ml.transform import (
    checkpoint,
    compile,
    custom_gradient,
    grad,
    hessian,
    jacobian,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], np.float32)
W = np.array([[0.5, -0.25], [1.0, 0.75], [-0.5, 0.125]], np.float32)


def total(x: Any) -> Any:
    return ops.sum(ops.multiply(ops.sin(x), x))


def total_gradient(x: np.ndarray) -> np.ndarray:
    return np.sin(x) + x * np.cos(x)


def close(result: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(host(result), expected, rtol=tolerance, atol=tolerance)


class Affine:
    """A model with two parameters, and a count of its calls that is no parameter."""

    def __init__(self) -> None:
        self.weight = ops.asarray(W)
        self.bias = ops.asarray([0.5, -0.5])
        self.calls = ops.asarray(0.0)

    def parameters(self) -> dict[str, Any]:
        return {"weight": self.weight, "bias": self.bias}

    def tensors(self) -> dict[str, Any]:
        return {**self.parameters(), "calls": self.calls}

    def assign(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def __call__(self, x: Any) -> Any:
        self.calls = ops.add(self.calls, ops.divide(ops.sum(self.bias), ops.sum(self.bias) + 1.0) + 1.0)
        return ops.tanh(ops.add(ops.matmul(x, self.weight), self.bias))


class Momentum:
    """An optimiser that makes its tensors when it first needs them."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def tensors(self) -> dict[str, Any]:
        return dict(self.state)

    def assign(self, values: Mapping[str, Any]) -> None:
        self.state.update(values)

    def update(self, model: Affine, gradients: Mapping[str, Any]) -> None:
        new = {}
        for path, x in model.parameters().items():
            last = self.state.get(path)
            self.state[path] = gradients[path] if last is None else ops.add(ops.multiply(last, 0.5), gradients[path])
            new[path] = ops.subtract(x, ops.multiply(self.state[path], 0.1))
        model.assign(new)


def loss(model: Affine, x: Any) -> Any:
    return ops.mean(ops.square(model(x)))


def step(model: Affine, optimizer: Momentum, x: Any) -> Any:
    value, gradients = value_and_grad(loss)(model, x)
    optimizer.update(model, gradients)
    return value


def affine_loss(weight: np.ndarray, bias: np.ndarray) -> float:
    return float(np.mean(np.tanh(X @ weight + bias) ** 2))


class TestGradients:
    def test_value_and_gradient(self, backend: Backend) -> None:
        value, gradient = value_and_grad(total)(ops.asarray(X))
        close(value, (np.sin(X) * X).sum())
        close(gradient, total_gradient(X))
        assert isinstance(gradient, backend.tensors)
        assert not hasattr(gradient, "_trace")

    def test_containers(self, backend: Backend) -> None:
        tree = {"a": ops.asarray(X), "b": [ops.asarray(2.0), (ops.asarray(3.0), None)]}
        found = grad(lambda t: ops.sum(ops.multiply(ops.multiply(t["a"], t["b"][0]), t["b"][1][0])))(tree)
        assert list(found) == ["a", "b"]
        assert isinstance(found["b"][1], tuple)
        assert found["b"][1][1] is None
        close(found["a"], np.full(X.shape, 6.0))
        close(found["b"][0], 3 * X.sum())
        close(found["b"][1][0], 2 * X.sum())

    def test_argnums(self, backend: Backend) -> None:
        def f(x: Any, y: Any, z: Any) -> Any:
            return ops.sum(ops.multiply(x, ops.multiply(y, z)))

        x, y, z = (ops.asarray(v) for v in (2.0, 3.0, 5.0))
        close(grad(f, 1)(x, y, z), 10.0)
        close(grad(f, -1)(x, y, z), 6.0)
        first, last = grad(f, (0, 2))(x, y, z)
        close(first, 15.0)
        close(last, 6.0)
        assert isinstance(grad(f, (1,))(x, y, z), tuple)

    def test_aux(self, backend: Backend) -> None:
        def f(x: Any) -> Any:
            return total(x), {"twice": ops.multiply(x, 2), "name": "f", "none": None}

        (value, aux), gradient = value_and_grad(f, has_aux=True)(ops.asarray(X))
        close(value, (np.sin(X) * X).sum())
        close(gradient, total_gradient(X))
        close(aux["twice"], 2 * X)
        assert aux["name"] == "f"
        assert aux["none"] is None
        assert isinstance(aux["twice"], backend.tensors)
        assert not getattr(aux["twice"], "requires_grad", False)
        gradient, aux = grad(f, has_aux=True)(ops.asarray(X))
        close(aux["twice"], 2 * X)

    def test_keyword_arguments_pass(self, backend: Backend) -> None:
        close(grad(lambda x, power: ops.sum(ops.power(x, power)))(ops.asarray(X), power=2.0), 2 * X)

    def test_python_floats_are_tensors(self, backend: Backend) -> None:
        close(grad(lambda x: ops.multiply(x, x))(3.0), 6.0)

    def test_unused_arguments_have_zero_gradients(self, backend: Backend) -> None:
        close(grad(lambda x, y: ops.sum(y))(ops.asarray(X), ops.asarray(X)), np.zeros(X.shape))
        close(grad(lambda x: ops.asarray(3.0))(ops.asarray(X)), np.zeros(X.shape))

    def test_dtypes_are_kept(self, backend: Backend) -> None:
        for dtype in ("float16", "bfloat16", "float32", "float64"):
            x = ops.cast(ops.asarray(X), dtype)
            value, gradient = value_and_grad(lambda x: ops.sum(ops.square(ops.cast(x, "float32"))))(x)
            assert ops.dtype(gradient) == dtype
            assert ops.dtype(value) == "float32"
            close(ops.cast(gradient, "float32"), 2 * X)

    def test_promotion_in_traced_code_is_the_law(self, backend: Backend) -> None:
        def f(x: Any) -> Any:
            y = ops.multiply(x, ops.asarray([1, 2, 3]))
            assert ops.dtype(y) == "float32"
            return ops.sum(y)

        close(grad(f)(ops.asarray(X)), np.broadcast_to([1.0, 2.0, 3.0], X.shape))

    def test_native_operators_and_indices(self, backend: Backend) -> None:
        def f(x: Any) -> Any:
            y = (2 * x + 1) / (x * x + 3) - x**3
            return (y[0] @ y[1]) + (-y)[:, 1].sum()

        def g(x: np.ndarray) -> float:
            y = (2 * x + 1) / (x * x + 3) - x**3
            return float((y[0] @ y[1]) + (-y)[:, 1].sum())

        wide = X.astype(np.float64)
        gradients = np.zeros(X.shape)
        for i in np.ndindex(*X.shape):
            move = np.zeros(X.shape)
            move[i] = 1e-6
            gradients[i] = (g(wide + move) - g(wide - move)) / 2e-6
        close(grad(f)(ops.asarray(X)), gradients, 1e-3)

    def test_complex_gradients_ascend(self, backend: Backend) -> None:
        z = np.array([1 + 2j, -0.5 + 0.25j], np.complex64)
        close(grad(lambda z: ops.sum(ops.square(ops.abs(z))))(ops.asarray(z)), 2 * z)
        close(grad(lambda z: ops.sum(ops.imag(ops.multiply(z, z))))(ops.asarray(z)), np.conj(-2j * z))

    def test_stop_gradient(self, backend: Backend) -> None:
        close(grad(lambda x: ops.sum(ops.multiply(stop_gradient(x), x)))(ops.asarray(X)), X)

    def test_operations_without_gradient_take_traced_tensors(self, backend: Backend) -> None:
        def f(x: Any) -> Any:
            places = ops.argsort(x, axis=-1)
            mask = ops.greater(x, 0)
            assert ops.shape(x) == (2, 3)
            return ops.sum(ops.where(mask, ops.take_along_axis(x, places, axis=-1), 0))

        order = np.argsort(X, -1)
        expected = np.zeros(X.shape)
        for i in range(2):
            for j in range(3):
                expected[i, order[i, j]] += X[i, j] > 0
        close(grad(f)(ops.asarray(X)), expected)

    def test_names_at_the_top(self) -> None:
        for name in ("grad", "value_and_grad", "vjp", "jvp", "vmap", "custom_gradient", "compile"):
            assert getattr(ops, name) is getattr(transform, name)


class TestExamples:
    @pytest.mark.parametrize("name", [name for name in transform.__all__ if name not in ("compile", "stop_gradient")])
    def test_example_runs(self, name: str, backend: Backend) -> None:
        """Those of ``compile`` are left to its own tests: compiling takes seconds."""
        found = doctest.DocTestFinder().find(getattr(transform, name), name, globs=dict(vars(transform)))
        assert sum(len(example.examples) for example in found)
        for example in found:
            runner = doctest.DocTestRunner()
            said: list[str] = []
            runner.run(example, out=said.append)
            assert runner.failures == 0, "".join(said)


class TestErrors:
    def test_integers(self, backend: Backend) -> None:
        for value in (3, True, ops.asarray([1, 2]), "text", {"a": ops.asarray(1.0), "b": ops.asarray([True])}):
            with pytest.raises(TypeError, match="floating"):
                grad(lambda x: 1.0)(value)

    def test_values_that_are_no_numbers(self, backend: Backend) -> None:
        x = ops.asarray(X)
        for f in (lambda x: x, lambda x: ops.argmax(x), lambda x: (ops.sum(x), 1), lambda x: None, lambda x: {"a": x}):
            with pytest.raises(TypeError, match="grad: the function must return"):
                grad(f)(x)
        with pytest.raises(TypeError, match="real"):
            grad(lambda z: ops.sum(z))(ops.asarray([1j]))

    def test_argnums(self, backend: Backend) -> None:
        with pytest.raises(TypeError, match="positional"):
            grad(total, 1)(ops.asarray(X))
        with pytest.raises(TypeError, match="argnums"):
            grad(total, "x")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="argnums"):
            grad(total, ())
        with pytest.raises(ValueError, match=r"grad: argnums must name each argument once, got \(0, -2\)"):
            grad(lambda x, y: 1.0, (0, -2))(ops.asarray(X), ops.asarray(X))

    @pytest.mark.parametrize("left", [float, lambda x: x.item(), lambda x: x.tolist(), lambda x: 2.0, lambda x: True])
    def test_results_that_left_the_engine(self, backend: Backend, left: Any) -> None:
        """Their derivative would be zero, whatever they were made of."""

        def outside(x: Any) -> Any:
            return left(stop_gradient(total(x)))

        x = ops.asarray(X)
        for derive in (grad, value_and_grad, jacobian, hessian):
            with pytest.raises(TypeError, match=r"no gradient flows.*ops\.asarray"):
                derive(outside)(x)
        with pytest.raises(TypeError, match="no gradient flows"):
            vjp(lambda x: {"a": outside(x), "b": x}, x)
        with pytest.raises(TypeError, match="no gradient flows"):
            jvp(outside, (x,), (x,))
        gradient, aux = grad(lambda x: (total(x), outside(x)), has_aux=True)(x)
        close(gradient, total_gradient(X))
        assert aux == left(total(x))

    def test_host_arrays_are_no_results_of_another_engine(self, backend: Backend) -> None:
        for x in (ops.asarray(X), EmberTensor(ops.asarray(X))):
            if backend.name == "numpy":
                close(ops.asarray(grad(lambda x: np.float32(2.0))(x)), 0 * X)
                continue
            with pytest.raises(TypeError, match="no gradient flows"):
                grad(lambda x: ops.to_numpy(total(x)))(x)

    def test_a_constant_tensor_has_no_gradient(self, backend: Backend) -> None:
        close(grad(lambda x: ops.asarray(2.0))(ops.asarray(X)), 0 * X)

    def test_models_that_share_a_tensor(self, backend: Backend) -> None:
        """It has one gradient, and would have none as a tensor of the first."""
        model = nn.modules.Sequential(nn.modules.Linear(3, 3))
        for other in (model, model[0]):
            for derive in (grad, value_and_grad):
                with pytest.raises(ValueError, match="weight' of a Sequential twice"):
                    derive(lambda one, other, x: total(one(other(x))), (0, 1))(model, other, ops.asarray(X))
            found = grad(lambda one, other, x: total(one(other(x))))(model, other, ops.asarray(X))
            expected = grad(lambda one, x: total(one(one(x))))(model, ops.asarray(X))
            assert_same(found, expected)

    def test_aux_is_a_pair(self, backend: Backend) -> None:
        with pytest.raises(TypeError, match="pair"):
            grad(total, has_aux=True)(ops.asarray(X))

    def test_mistakes_in_the_function_show(self, backend: Backend) -> None:
        with pytest.raises(ValueError, match=r"(?s).") as caught:
            grad(lambda x: ops.sum(ops.matmul(x, x)))(ops.asarray(X))
        assert any("matmul" in note for note in caught.value.__notes__)
        close(grad(total)(ops.asarray(X)), total_gradient(X))

    def test_two_engines(self) -> None:
        names = [name for name in ember_ml.get_available_backends() if name != "numpy"]
        if len(names) < 2:
            return
        tensors = []
        for name in names[:2]:
            with ember_ml.use_backend(name):
                tensors.append(ops.asarray([1.0]))
        with pytest.raises(TypeError, match=r"grad: tensors must be of one engine, got torch and mlx; ember_ml\.o"):
            grad(lambda t: 1.0)(tensors)

    def test_cotangents_that_do_not_fit(self, backend: Backend) -> None:
        _, pull = vjp(ops.square, ops.asarray(X))
        with pytest.raises(ValueError, match="shape"):
            pull(ops.asarray([1.0]))
        with pytest.raises(TypeError, match="cotangent"):
            pull(ops.cast(ops.asarray(X), "float64"))
        with pytest.raises(ValueError, match="structure"):
            pull([ops.asarray(X)])


class TestForwardAndReverse:
    def test_vjp(self, backend: Backend) -> None:
        (result, _), pull = vjp(lambda x, w: (ops.matmul(x, w), ops.sum(x)), ops.asarray(X), ops.asarray(W))
        close(result, X @ W)
        first, second = pull((ops.asarray(np.ones((2, 2), np.float32)), ops.asarray(2.0)))
        close(first, np.ones((2, 2)) @ W.T + 2)
        close(second, X.T @ np.ones((2, 2)))
        again, _ = pull((ops.asarray(np.zeros((2, 2), np.float32)), ops.asarray(1.0)))
        close(again, np.ones(X.shape))

    def test_vjp_of_integers_is_none(self, backend: Backend) -> None:
        _, pull = vjp(lambda x, i: ops.take(x, i, axis=0), ops.asarray(X), ops.asarray([1]))
        found, none = pull(ops.asarray([[1.0, 2.0, 3.0]]))
        assert none is None
        close(found, [[0, 0, 0], [1, 2, 3]])

    def test_vjp_aux(self, backend: Backend) -> None:
        _, pull, aux = vjp(lambda x: (ops.square(x), "aux"), ops.asarray(X), has_aux=True)
        assert aux == "aux"
        close(pull(ops.asarray(X))[0], 2 * X * X)

    def test_jvp(self, backend: Backend) -> None:
        result, tangent = jvp(lambda x, w: ops.tanh(ops.matmul(x, w)), (ops.asarray(X), ops.asarray(W)),
                              (ops.asarray(X), ops.asarray(np.zeros_like(W))))  # fmt: skip
        close(result, np.tanh(X @ W))
        close(tangent, (1 - np.tanh(X @ W) ** 2) * (X @ W))

    def test_jvp_is_vjp_transposed(self, backend: Backend) -> None:
        rng = np.random.default_rng(0)
        along, against = rng.normal(size=X.shape).astype(np.float32), rng.normal(size=(2, 2)).astype(np.float32)

        def f(x: Any) -> Any:
            return ops.softmax(ops.matmul(ops.layer_normalization(x), ops.asarray(W)))

        _, moved = jvp(f, (ops.asarray(X),), (ops.asarray(along),))
        _, pull = vjp(f, ops.asarray(X))
        (pulled,) = pull(ops.asarray(against))
        close((host(moved) * against).sum(), (host(pulled) * along).sum(), 1e-4)

    def test_one_tensor_that_is_returned_twice(self, backend: Backend) -> None:
        def twice(x: Any) -> Any:
            y = ops.square(x)
            return y, y

        def weighed(pair: Any) -> Any:
            return ops.add(ops.sum(pair[0]), ops.multiply(ops.sum(pair[1]), 3.0))

        x, gradients = ops.asarray(X), 8 * X
        ones = np.ones_like(X)
        close(vjp(twice, x)[1]((ops.asarray(ones), ops.asarray(3 * ones)))[0], gradients)
        close(vjp(lambda x: (x, x), x)[1]((ops.asarray(ones), ops.asarray(3 * ones)))[0], 4 * ones)
        blocks = [host(block) for block in jacobian(twice)(x)]
        np.testing.assert_array_equal(blocks[0], blocks[1])
        close(grad(lambda x: weighed(checkpoint(twice)(x)))(x), gradients)
        ruled = custom_gradient(lambda x: (twice(x), lambda a, b: ops.multiply(ops.add(a, b), ops.multiply(x, 2.0))))
        close(grad(lambda x: weighed(ruled(x)))(x), gradients)
        close(jvp(ops.add, (x, x), (x, x))[1], 2 * X)

    def test_the_derivative_of_a_sign_is_a_tensor_like_others(self, backend: Backend) -> None:
        x = ops.asarray(X)
        second = grad(lambda x: ops.sum(grad(lambda x: ops.sum(ops.abs(x)))(x)))(x)
        np.testing.assert_array_equal(host(second), np.zeros_like(X))
        assert ops.add(second, x).tolist() == X.tolist()
        if is_on_cpu(backend):
            assert np.asarray(second).tolist() == np.zeros_like(X).tolist()

    def test_jvp_of_constants_is_zero(self, backend: Backend) -> None:
        _, tangent = jvp(lambda x: (ops.asarray(1.0), x), (ops.asarray(X),), (ops.asarray(X),))
        close(tangent[0], 0.0)
        close(tangent[1], X)

    def test_jvp_arguments(self, backend: Backend) -> None:
        with pytest.raises(TypeError, match="tuples or lists"):
            jvp(ops.square, ops.asarray(X), ops.asarray(X))
        with pytest.raises(ValueError, match="tangent"):
            jvp(ops.square, (ops.asarray(X),), ())


class TestNesting:
    def test_gradients_of_gradients(self, backend: Backend) -> None:
        third = grad(grad(grad(lambda x: ops.power(x, 4.0))))
        close(third(2.0), 48.0)

    def test_closed_over_tensors(self, backend: Backend) -> None:
        def outer(y: Any) -> Any:
            return grad(lambda x: ops.multiply(ops.multiply(x, x), y))(ops.asarray(3.0))

        close(grad(outer)(ops.asarray(5.0)), 6.0)

    def test_hessian_of_a_network(self, backend: Backend) -> None:
        rng = np.random.default_rng(1)
        sizes = [(3, 4), (4,), (4, 1)]
        flat = [rng.normal(size=size) for size in sizes]
        data = rng.normal(size=(5, 3))

        def f(p: Any) -> Any:
            hidden = ops.tanh(ops.add(ops.matmul(ops.asarray(data), p[0]), p[1]))
            return ops.mean(ops.square(ops.matmul(hidden, p[2])))

        blocks = hessian(f)([ops.asarray(x) for x in flat])
        gradient = grad(f)
        for j, x in enumerate(flat):
            entry = tuple(0 for _ in x.shape)
            moved = []
            for h in (1e-5, -1e-5):
                other = [y.copy() for y in flat]
                other[j][entry] += h
                moved.append([host(g) for g in gradient([ops.asarray(y) for y in other])])
            for i, (up, down) in enumerate(zip(*moved, strict=True)):
                block = host(blocks[i][j])
                assert block.shape == flat[i].shape + x.shape
                close(block[(..., *entry)], (up - down) / 2e-5, 1e-6)
                close(block, np.moveaxis(host(blocks[j][i]), range(x.ndim), range(-x.ndim, 0)), 1e-8)

    def test_hessians_agree(self) -> None:
        found = []
        for name in ember_ml.get_available_backends():
            with ember_ml.use_backend(name):
                x = ops.asarray(X.astype(np.float64))
                found.append(host(hessian(lambda x: ops.logsumexp(ops.matmul(x, ops.matrix_transpose(x))))(x)))
        for other in found[1:]:
            close(other, found[0], 1e-10)

    def test_vmap_of_grad_is_the_loop(self, backend: Backend) -> None:
        w = ops.asarray(W)

        def f(w: Any, x: Any) -> Any:
            return ops.sum(ops.square(ops.tanh(ops.matmul(x, w))))

        found = vmap(grad(f), in_axes=(None, 0))(w, ops.asarray(X))
        for i in range(2):
            close(found[i], host(grad(f)(w, ops.asarray(X[i]))))

    def test_grad_of_vmap(self, backend: Backend) -> None:
        close(grad(lambda x: ops.sum(vmap(lambda row: ops.sum(ops.square(row)))(x)))(ops.asarray(X)), 2 * X)

    def test_forward_over_reverse(self, backend: Backend) -> None:
        _, moved = jvp(grad(total), (ops.asarray(X),), (ops.asarray(np.ones_like(X)),))
        close(moved, 2 * np.cos(X) - X * np.sin(X))

    def test_reverse_over_forward(self, backend: Backend) -> None:
        ones = ops.asarray(np.ones_like(X))
        found = grad(lambda x: ops.sum(jvp(ops.sin, (x,), (ones,))[1]))(ops.asarray(X))
        close(found, -np.sin(X))

    def test_jacobian(self, backend: Backend) -> None:
        found = jacobian(lambda x: {"square": ops.square(x), "sum": ops.sum(x)})(ops.asarray(X[0]))
        close(found["square"], np.diag(2 * X[0]))
        close(found["sum"], np.ones(3))
        first, second = jacobian(ops.multiply, (0, 1))(ops.asarray(X[0]), ops.asarray(X[1]))
        close(first, np.diag(X[1]))
        close(second, np.diag(X[0]))


class TestVmap:
    def test_axes(self, backend: Backend) -> None:
        x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
        close(vmap(ops.sum, in_axes=1)(ops.asarray(x)), x.sum((0, 2)))
        close(vmap(lambda a: ops.multiply(a, 2), in_axes=-1, out_axes=-1)(ops.asarray(x)), 2 * x)
        close(
            vmap(ops.matmul, in_axes=(0, None))(ops.asarray(x), ops.asarray(np.ones((4, 2), np.float32))),
            x @ np.ones((4, 2)),
        )

        def both(d: Any) -> Any:
            return {"s": ops.sum(d["a"]), "p": ops.multiply(d["a"], d["b"])}

        mapped = vmap(both, in_axes=({"a": 0, "b": None},), out_axes={"s": 0, "p": 1})
        found = mapped({"a": ops.asarray(x[0]), "b": ops.asarray(2.0)})
        close(found["s"], x[0].sum(1))
        close(found["p"], 2 * x[0].T)
        close(vmap(lambda a, b: ops.add(a, b))(ops.asarray(x[0]), b=ops.asarray(x[1])), x[0] + x[1])

    def test_results_that_do_not_depend_on_the_argument(self, backend: Backend) -> None:
        close(vmap(lambda a: ops.asarray(3.0))(ops.asarray(X)), [3.0, 3.0])
        close(vmap(lambda a, b: b, in_axes=(0, None), out_axes=None)(ops.asarray(X), ops.asarray(2.0)), 2.0)
        close(vmap(lambda a: 1.0)(ops.asarray(X)), [1.0, 1.0])

    def test_what_cannot_be_vectorised_is_looped(self, backend: Backend) -> None:
        def f(row: Any) -> Any:
            return ops.sum(row) if float(ops.sum(row)) > 1.2 else ops.negative(ops.sum(row))

        sums = X.sum(1)
        close(vmap(f)(ops.asarray(X)), np.where(sums > 1.2, sums, -sums))

    def test_no_slices(self, backend: Backend) -> None:
        assert tuple(vmap(lambda row: ops.outer(row, row))(ops.asarray(X[:0])).shape) == (0, 3, 3)

    def test_errors(self, backend: Backend) -> None:
        x = ops.asarray(X)
        with pytest.raises(ValueError, match="one length"):
            vmap(ops.add)(x, ops.asarray([1.0, 2.0, 3.0]))
        with pytest.raises(ValueError, match="vmap: in_axes must have one entry for each of 2 positional argument"):
            vmap(ops.add, in_axes=(0,))(x, x)
        with pytest.raises(ValueError, match="axis 2"):
            vmap(ops.sum, in_axes=2)(x)
        with pytest.raises(ValueError, match="vmap: in_axes must map at least 1 argument, got none"):
            vmap(ops.sum, in_axes=None)(x)
        with pytest.raises(ValueError, match="tree of axes"):
            vmap(ops.add, in_axes=(0, (0, 0)))(x, x)


class TestModelsOfRepeatedFunctions:
    """What a function does to a model happens once, however often an engine runs it."""

    @staticmethod
    def model() -> Any:
        ops.random.set_seed(0)
        return nn.modules.Sequential(nn.modules.Linear(3, 2), nn.modules.BatchNorm(2))

    @pytest.mark.parametrize("name", ["vjp", "jacobian", "hessian", "jvp", "grad"])
    def test_statistics_move_once(self, backend: Backend, name: str) -> None:
        x, expected = ops.asarray(X), self.model()
        expected(x)
        model = self.model()

        def f(x: Any) -> Any:
            return total(model(x))

        if name == "vjp":
            _, pull = vjp(f, x)
            pull(1.0), pull(2.0)
        elif name == "jvp":
            jvp(f, (x,), (x,))
        else:
            getattr(transform, name)(f)(x)
        close(model[1].running_mean, host(expected[1].running_mean))
        close(model[1].running_var, host(expected[1].running_var))
        assert not getattr(model[1].running_mean, "requires_grad", False)

    @pytest.mark.parametrize("is_given", [False, True])
    def test_slices_cannot_share_statistics(self, backend: Backend, is_given: bool) -> None:
        model = self.model()
        x = ops.asarray(np.stack([X, X + 1, 2 * X]))
        before = host(model[1].running_mean)

        def run() -> Any:
            return vmap(lambda m, x: m(x), (None, 0))(model, x) if is_given else vmap(lambda x: model(x))(x)

        with pytest.raises(ValueError, match=r"vmap: the function must not assign to a model, got 1\.running_mean"):
            run()
        close(model[1].running_mean, before)
        model.eval()
        close(run(), host(model(x)))

    def test_gradients_of_each_example(self, backend: Backend) -> None:
        model, x = self.model().eval(), ops.asarray(X)

        def loss(model: Any, row: Any) -> Any:
            return total(model(ops.expand_dims(row, axis=0)))

        found = vmap(grad(loss), (None, 0))(model, x)
        for number, row in enumerate(X):
            for path, gradient in grad(loss)(model, ops.asarray(row)).items():
                close(found[path][number], host(gradient))


class TestStateful:
    def test_gradient_is_by_path(self, backend: Backend) -> None:
        model = Affine()
        before = model.parameters()
        value, gradients = value_and_grad(loss)(model, ops.asarray(X))
        assert list(gradients) == ["weight", "bias"]
        close(value, affine_loss(W, np.array([0.5, -0.5])))
        results = np.tanh(X @ W + np.array([0.5, -0.5]))
        inner = 2 * results * (1 - results**2) / results.size
        close(gradients["weight"], X.T @ inner)
        close(gradients["bias"], inner.sum(0))
        assert all(x is before[path] for path, x in model.parameters().items())

    def test_assignments_come_out(self, backend: Backend) -> None:
        model = Affine()
        value_and_grad(loss)(model, ops.asarray(X))
        close(model.calls, 1.0)
        assert isinstance(model.calls, backend.tensors)
        assert not getattr(model.calls, "requires_grad", False)

    def test_a_model_next_to_what_is_differentiated(self, backend: Backend) -> None:
        model = Affine()
        close(grad(lambda x, model: ops.sum(model(x)))(ops.asarray(X), model).shape, X.shape)
        close(model.calls, 1.0)

    def test_models_in_containers(self, backend: Backend) -> None:
        models = [Affine(), Affine()]
        found = grad(lambda ms, x: ops.add(loss(ms[0], x), loss(ms[1], x)))(models, ops.asarray(X))
        assert_same(found[0], found[1])

    def test_an_optimiser_has_no_gradient(self, backend: Backend) -> None:
        with pytest.raises(TypeError, match="parameters"):
            grad(lambda o: 1.0)(Momentum())

    def test_a_failure_leaves_the_model_as_it_was(self, backend: Backend) -> None:
        model = Affine()
        before = model.tensors()

        def fails(model: Affine, x: Any) -> Any:
            model(x)
            raise KeyError("on purpose")

        with pytest.raises(KeyError):
            grad(fails)(model, ops.asarray(X))
        assert all(x is before[path] for path, x in model.tensors().items())

    def test_forward_mode(self, backend: Backend) -> None:
        model = Affine()
        _, moved = jvp(loss, (model, ops.asarray(X)), (model.parameters(), ops.asarray(np.zeros_like(X))))
        _, gradients = value_and_grad(loss)(model, ops.asarray(X))
        expected = sum((host(gradients[p]) * host(x)).sum() for p, x in model.parameters().items())
        close(moved, expected)


class TestCustomGradient:
    def test_rule_is_used(self, backend: Backend) -> None:
        @custom_gradient
        def f(x: Any, y: Any) -> Any:
            return ops.multiply(x, y), lambda g: (ops.multiply(g, 10.0), None)

        first, second = grad(lambda x, y: ops.sum(f(x, y)), (0, 1))(ops.asarray(X), ops.asarray(X))
        close(f(ops.asarray(X), ops.asarray(X)), X * X)
        close(first, np.full(X.shape, 10.0))
        close(second, np.zeros(X.shape))

    def test_several_results_and_second_gradients(self, backend: Backend) -> None:
        @custom_gradient
        def f(x: Any) -> Any:
            def rule(first: Any, second: Any) -> Any:
                return ops.add(ops.multiply(first, ops.square(x)), second)

            return (ops.sin(x), ops.cos(x)), rule

        def value(x: Any) -> Any:
            first, second = f(x)
            return ops.add(ops.sum(first), ops.multiply(ops.sum(second), 3.0))

        close(grad(value)(ops.asarray(X)), X * X + 3)
        close(grad(lambda x: ops.sum(grad(value)(x)))(ops.asarray(X)), 2 * X)
        close(vmap(grad(value))(ops.asarray(X)), X * X + 3)

    def test_wrong_number_of_gradients(self, backend: Backend) -> None:
        f = custom_gradient(lambda x: (ops.sin(x), lambda g: (g, g)))
        with pytest.raises(ValueError, match="custom_gradient: the gradient function of <lambda> must return 1 gr"):
            grad(lambda x: ops.sum(f(x)))(ops.asarray(X))

    @pytest.mark.parametrize("what", ["tensor", "model"])
    def test_what_a_function_closes_over_has_no_rule(self, backend: Backend, what: str) -> None:
        """Its gradient would be zero without a word."""
        model = nn.modules.Linear(3, 2)

        def outer(held: Any, x: Any) -> Any:
            @custom_gradient
            def scaled(x: Any) -> Any:
                y = held(x) if what == "model" else ops.multiply(x, held)
                return y, lambda cotangent: ops.zeros_like(x)

            return total(scaled(x))

        held = model if what == "model" else ops.asarray(2.0)
        with pytest.raises(ValueError, match="scaled must not close over a "):
            grad(outer)(held, ops.asarray(X))
        close(grad(outer, 1)(held, ops.asarray(X)), 0 * X)

        def stopped(held: Any, x: Any) -> Any:
            return outer(stop_gradient(held), x)

        if what == "tensor":
            close(grad(stopped)(held, ops.asarray(X)), 0.0)


class TestCheckpoint:
    def test_gradients_are_the_same(self, backend: Backend) -> None:
        close(grad(checkpoint(total))(ops.asarray(X)), total_gradient(X))
        close(grad(lambda x: ops.sum(grad(checkpoint(total))(x)))(ops.asarray(X)), 2 * np.cos(X) - X * np.sin(X))

    def test_the_function_runs_again(self, backend: Backend) -> None:
        count = 0

        def f(x: Any) -> Any:
            nonlocal count
            count += 1
            return total(x)

        checkpoint(f)(ops.asarray(X))
        assert count == 1
        grad(checkpoint(f))(ops.asarray(X))
        # JAX traces the function once, and repeats what it traced.
        assert count > (1 if backend.name == "jax" else 2)

    def test_models(self, backend: Backend) -> None:
        expected = value_and_grad(loss)(Affine(), ops.asarray(X))
        model = Affine()
        assert_same(value_and_grad(checkpoint(loss))(model, ops.asarray(X)), expected)
        close(model.calls, 1.0)

    def test_an_error_of_the_function_does_not_affect_later_gradients(self, backend: Backend) -> None:
        def wrong(x: Any) -> Any:
            raise KeyError(ops.sum(ops.sin(x)).shape)

        x = ops.asarray(X)
        with pytest.raises(KeyError) as caught:
            grad(checkpoint(wrong))(x)
        close(grad(total)(x), total_gradient(X))
        assert caught.value.__traceback__ is not None


class TestEmberTensors:
    def test_ember_tensors_give_ember_tensors(self, backend: Backend) -> None:
        x = EmberTensor(ops.asarray(X))
        value, gradient = value_and_grad(lambda x: (x * x).sum())(x)
        assert isinstance(value, EmberTensor)
        assert isinstance(gradient, EmberTensor)
        close(gradient.native, 2 * X)
        assert isinstance(hessian(lambda x: (x * x).sum())(x), EmberTensor)
        assert isinstance(vmap(lambda x: x.sum())(x), EmberTensor)
        (pulled,) = vjp(ops.square, x)[1](x)
        assert isinstance(pulled, EmberTensor)
        (_, aux), _ = value_and_grad(lambda x: (x.sum(), x * 2), has_aux=True)(x)
        assert isinstance(aux, EmberTensor)
        close(aux.native, 2 * X)

    def test_numpy_while_another_engine_is_active(self, backend: Backend) -> None:
        with ember_ml.use_backend("numpy"):
            x = EmberTensor(ops.asarray(X))
        gradient = grad(lambda x: (x * x).sum())(x)
        assert gradient.backend == "numpy"
        close(gradient.native, 2 * X)


class TestNative:
    def test_torch_tensors_that_require_gradients(self) -> None:
        torch = pytest.importorskip("torch")
        with ember_ml.use_backend("torch"):
            x = torch.tensor(X, requires_grad=True)
            total(x).backward()
            close(x.grad, total_gradient(X))
            parameter = torch.nn.Parameter(torch.tensor(X))
            total(parameter).backward()
            close(parameter.grad, total_gradient(X))

    def test_gradients_within_native_ones(self) -> None:
        torch = pytest.importorskip("torch")
        with ember_ml.use_backend("torch"):
            x = torch.tensor(X, requires_grad=True)
            ops.sum(grad(total)(x)).backward()
            close(x.grad, 2 * np.cos(X) - X * np.sin(X))

    def test_numpy_functions_are_traced(self) -> None:
        with ember_ml.use_backend("numpy"):
            close(grad(lambda x: np.exp(x).sum() + np.sum(x * x) + ops.sum(x))(X), np.exp(X) + 2 * X + 1)

    def test_threads_do_not_meet(self, backend: Backend) -> None:
        def work(_: int) -> Any:
            return host(grad(lambda x: ops.sum(grad(total)(x)))(ops.asarray(X)))

        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(work, range(16)):
                close(found, 2 * np.cos(X) - X * np.sin(X))

    def test_the_tracing_engine_is_hidden(self) -> None:
        grad(total)(ops.asarray(X))
        assert DIFFERENTIATION not in ember_ml.get_available_backends()


class TestCompile:
    def test_functions(self, backend: Backend) -> None:
        calls = 0

        @compile
        def f(tree: Any, scale: float, name: str = "a") -> Any:
            nonlocal calls
            calls += 1
            return {"x": ops.multiply(tree["x"], scale), "y": (tree["y"][0], name)}

        tree = {"x": ops.asarray(X), "y": [ops.asarray(1.0)]}
        found = f(tree, 2.0)
        close(found["x"], 2 * X)
        assert found["y"][1] == "a"
        close(f(tree, 3.0, name="b")["x"], 3 * X)
        assert f(tree, 3.0, name="b")["y"][1] == "b"

    def test_gradients(self, backend: Backend) -> None:
        model = Affine()
        assert_same(
            compile(value_and_grad(loss))(model, ops.asarray(X)), value_and_grad(loss)(Affine(), ops.asarray(X))
        )
        close(model.calls, 1.0)

    def test_a_whole_training_step(self, backend: Backend) -> None:
        one, other = Affine(), Affine()
        first, second = Momentum(), Momentum()
        compiled = compile(step)
        for _ in range(4):
            expected = step(one, first, ops.asarray(X))
            close(compiled(other, second, ops.asarray(X)), host(expected))
        for path, x in one.tensors().items():
            close(other.tensors()[path], host(x), 1e-4)
        for path, x in first.tensors().items():
            close(second.tensors()[path], host(x), 1e-4)

    def test_random_numbers(self, backend: Backend) -> None:
        ops.random.set_seed(3)
        f = compile(lambda x: ops.add(x, ops.random.uniform((2,))))
        found = [host(f(ops.asarray(0.0))).tolist() for _ in range(2)]
        assert found[0] != found[1]
        ops.random.set_seed(3)
        with ember_ml.use_backend("numpy"):
            again = compile(lambda x: ops.add(x, ops.random.uniform((2,))))
            close(again(ops.asarray(0.0)), found[0])
            close(again(ops.asarray(0.0)), found[1])

    @pytest.mark.usefixtures("traced_only")
    @pytest.mark.skipif("torch" not in ember_ml.get_available_backends(), reason="torch has a limit, and is not here")
    def test_more_functions_than_torch_compiles_of_one(self) -> None:
        with ember_ml.use_backend("torch"):
            scope = {"ops": ops, "is_compiled": torch.compiler.is_compiling}
            for number in range(torch._dynamo.config.recompile_limit + 2):
                f = compile(eval(f"lambda x: (ops.multiply(x, {number}), is_compiled())", scope))
                assert f(ops.asarray(X))[1]

    def test_custom_gradients(self, backend: Backend) -> None:
        """torch's compiler would differentiate what the function does, and leave out its rule."""

        @custom_gradient
        def doubled(x: Any) -> Any:
            return ops.multiply(x, 2.0), lambda cotangent: ops.clip(cotangent, -0.25, 0.25)

        value, gradient = compile(value_and_grad(lambda x: ops.sum(doubled(x))))(ops.asarray(X))
        close(value, 2 * X.sum())
        close(gradient, np.full(X.shape, 0.25))

    def test_an_error_in_the_function(self, backend: Backend) -> None:
        with pytest.raises(ValueError, match=r"(?s).") as caught:
            compile(lambda x: ops.matmul(x, x))(ops.asarray(X))
        assert any("matmul" in note for note in caught.value.__notes__)

    def test_an_error_in_a_layer_names_it(self, backend: Backend) -> None:
        model = nn.modules.Sequential(nn.modules.Linear(2, 3), nn.modules.Linear(3, 2))
        optimizer = optim.Adam(0.1).init(model)

        def step(model: Any, optimizer: Any, x: Any) -> Any:
            optimizer.update(model, grad(lambda model: ops.sum(model[0](x)))(model))
            return model(ops.concat([x, x], axis=-1))

        before = {**model.tensors(), **{f"state {path}": x for path, x in optimizer.tensors().items()}}
        values = {path: host(x).copy() for path, x in before.items()}
        with pytest.raises(ValueError, match=r"(?s).") as caught:
            compile(step)(model, optimizer, ops.asarray(X[:, :2]))
        notes = "\n".join(caught.value.__notes__)
        assert "Linear '0' of Sequential (weight float32[2, 3], bias float32[3]) given float32[" in notes
        if backend.name == "numpy" or (backend.name == "torch" and ops.get_device() != "cpu"):
            # The function runs as Python, up to where it fails; torch compiles what it differentiates on a GPU.
            return
        after = {**model.tensors(), **{f"state {path}": x for path, x in optimizer.tensors().items()}}
        for path, x in after.items():
            np.testing.assert_array_equal(host(x), values[path], path)


class TestNestedCustomGradient:
    def test_arguments_of_an_inner_and_an_outer_transformation(self, backend: Backend) -> None:
        @custom_gradient
        def product(x: Any, y: Any) -> Any:
            return ops.multiply(x, y), lambda g: (ops.multiply(g, y), ops.multiply(g, x))

        def inner(x: Any) -> Any:
            return ops.sum(grad(lambda y: ops.sum(ops.square(product(x, y))))(ops.asarray(X)))

        close(grad(inner)(ops.asarray(X)), 4 * X * X)

    def test_numpy_runs_the_function_once_for_a_gradient(self) -> None:
        """Other engines run it again for the rule."""
        runs = []

        @custom_gradient
        def sine(x: Any) -> Any:
            runs.append(x)
            return ops.sin(x), lambda g: ops.multiply(g, ops.cos(x))

        with ember_ml.use_backend("numpy"):
            close(grad(lambda x: ops.sum(sine(x)))(ops.asarray(X)), np.cos(X))
        assert len(runs) == 1
