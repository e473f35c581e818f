"""Odd but legal arguments and results of transformed functions: the same on every engine, or the same error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.testing.comparison import host
from ember_ml.transform import checkpoint, custom_gradient, grad, hessian, jacobian, value_and_grad, vmap

X = np.array([[1.5, -0.5, 3.0], [2.0, 1.0, 0.25]], np.float32)


def product(x: Any, y: Any) -> Any:
    return ops.sum(ops.multiply(x, ops.square(y)))


def test_positions_and_axes_are_numbers_of_numpy(backend: Backend) -> None:
    x = ops.asarray(X)
    np.testing.assert_allclose(host(grad(product, np.int64(1))(x, x)), 2 * X * X, rtol=1e-6)
    first, second = value_and_grad(product, (np.int64(0), -1))(x, x)[1]
    np.testing.assert_allclose([host(first), host(second)], [X * X, 2 * X * X], rtol=1e-6)
    assert jacobian(product, np.int32(1))(x, x).shape == hessian(product, np.int64(0))(x, x).shape[:2] == (2, 3)
    np.testing.assert_allclose(host(vmap(ops.sum, np.int64(1))(x)), X.sum(0))
    np.testing.assert_allclose(host(vmap(ops.add, (np.int64(0), None), np.int64(1))(x, 1.0)), X.T + 1)
    np.testing.assert_allclose(host(vmap(lambda d: d["a"][0], ({"a": (np.int64(1),)},))({"a": (x,)})), X.T)


@pytest.mark.parametrize("transform", [grad, jacobian, hessian])
def test_errors_name_the_transform_that_was_asked_for(backend: Backend, transform: Any) -> None:
    with pytest.raises(TypeError, match=f"{transform.__name__}: argument 0 must hold floating tensors"):
        transform(ops.sum)(ops.asarray([1]))
    with pytest.raises(TypeError, match=f"{transform.__name__}: the function must return"):
        transform(lambda x: "no tensor")(ops.asarray(X))


@pytest.mark.parametrize("axis", [True, 1.0, np.float32(0), "0"])
def test_other_numbers_are_no_axes(backend: Backend, axis: Any) -> None:
    x = ops.asarray(X)
    for mapped in (
        lambda: vmap(ops.sin, axis)(x),
        lambda: vmap(ops.sin, (axis,))(x),
        lambda: vmap(ops.sin, 0, axis)(x),
    ):
        with pytest.raises((TypeError, ValueError), match=r"axis|axes"):
            mapped()
    with pytest.raises(TypeError, match="argnums"):
        grad(product, axis)


def test_results_of_mapped_functions_that_are_no_tensors(backend: Backend) -> None:
    x = ops.asarray(X)
    assert vmap(lambda row: None)(x) is None
    assert vmap(lambda row: "name")(x) == "name"
    out_axes = {"rows": 1, "name": 0, "one": 0}
    result = vmap(lambda row: {"rows": (row, None), "name": "name", "one": 1.0}, out_axes=out_axes)(x)
    assert (result["rows"][1], result["name"]) == (None, "name")
    np.testing.assert_allclose(host(result["rows"][0]), X.T)
    np.testing.assert_allclose(host(result["one"]), [1, 1])


def test_checkpoints_take_what_plain_functions_take(backend: Backend) -> None:
    def f(x: Any, axis: Any, flag: Any, places: Any) -> Any:
        return ops.sum(ops.take(ops.max(x, axis=axis, keepdims=flag), places, axis=0))

    x, options = ops.asarray(X), (np.int64(1), np.bool_(True), ops.asarray([1, 1]))
    expected = host(grad(f)(x, *options))
    np.testing.assert_allclose(expected, [[0, 0, 0], [2, 0, 0]])
    np.testing.assert_allclose(host(grad(checkpoint(f))(x, *options)), expected)
    np.testing.assert_allclose(host(grad(lambda x: grad_sum(checkpoint(f), x, options))(x)), 0 * X)


def grad_sum(f: Any, x: Any, options: Any) -> Any:
    return ops.sum(grad(f)(x, *options))


def test_checkpoints_of_functions_that_return_no_tensor(backend: Backend) -> None:
    """MLX would end the process."""
    x, seen = ops.asarray(X), []
    assert checkpoint(lambda x: seen.append(x.shape))(x) is None
    assert checkpoint(lambda: None)() is None
    assert checkpoint(lambda x: ("name", 2))(x) == ("name", 2)
    assert list(map(tuple, seen)) == [(2, 3)]
    np.testing.assert_allclose(host(grad(lambda x: ops.sum(x) if checkpoint(lambda x: None)(x) is None else x)(x)), 1)


def test_rules_that_are_none(backend: Backend) -> None:
    x = ops.asarray(X)
    with pytest.raises(TypeError, match="pair of value and gradient f"):
        custom_gradient(ops.sin)(x)
    with pytest.raises(TypeError, match="custom_gradient: the function must return a pair of value and gradient f"):
        custom_gradient(lambda x: (x, x, x))(x)
    with pytest.raises(TypeError, match=r"custom_gradient: .* function from cotangents to gradients, got None"):
        custom_gradient(lambda x: (x, None))(x)


ALONG = (
    *(ops.max, ops.sum, ops.mean, ops.prod, ops.std, ops.zscore, ops.logsumexp, ops.cumsum, ops.softmax, ops.sort),
    *(ops.layer_normalization, ops.rms_normalization, lambda x, axis: ops.roll(x, axis, axis=axis)),
)


@pytest.mark.parametrize("f", ALONG)
def test_gradients_along_axes_of_numpy(backend: Backend, f: Any) -> None:
    def value(x: Any, axis: Any) -> Any:
        return ops.sum(ops.multiply(ops.square(f(x, axis=axis)), f(x, axis=axis)))

    wanted = host(grad(value)(ops.asarray(X), 1))
    np.testing.assert_allclose(host(grad(value)(ops.asarray(X), np.int64(1))), wanted, rtol=1e-6)
