"""Activations against PyTorch's own and SciPy's, where they overflow, and what they refuse."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.extra.numpy as extra
import numpy as np
import pytest
import scipy.special
import torch
from torch.nn import functional

import ember_ml
from ember_ml import ops, transform
from ember_ml.backend import Backend
from ember_ml.ops import activations

ORACLES: dict[str, Any] = {
    "relu": functional.relu,
    "relu6": functional.relu6,
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "selu": functional.selu,
    "celu": functional.celu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "mish": functional.mish,
    "sigmoid": torch.sigmoid,
    "hard_sigmoid": functional.hardsigmoid,
    "hard_silu": functional.hardswish,
    "hard_tanh": functional.hardtanh,
    "tanh": torch.tanh,
    "lecun_tanh": lambda x: 1.7159 * torch.tanh(2 * x / 3),
    "tanh_shrink": functional.tanhshrink,
    "soft_shrink": functional.softshrink,
    "hard_shrink": functional.hardshrink,
    "softplus": functional.softplus,
    "softsign": functional.softsign,
    "squareplus": lambda x: (x + torch.hypot(x, torch.tensor(2.0, dtype=x.dtype))) / 2,
    "softmax": lambda x: functional.softmax(x, -1),
    "log_softmax": lambda x: functional.log_softmax(x, -1),
    "log_sigmoid": functional.logsigmoid,
    "glu": functional.glu,
}
GRID = np.linspace(-12, 12, 2000).reshape(40, 50)
every_oracle = pytest.mark.parametrize("name", ORACLES)


def on_host(x: Any) -> np.ndarray:
    return np.asarray(ops.to_numpy(x))


@every_oracle
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-12)])
def test_values_are_those_of_pytorch(name: str, dtype: str, tolerance: float, backend: Backend) -> None:
    x = GRID.astype(dtype)
    result = on_host(ops.get_activation(name)(ops.asarray(x)))
    expected = ORACLES[name](torch.tensor(x)).numpy()
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@every_oracle
def test_large_and_special_values_are_those_of_pytorch(name: str, backend: Backend) -> None:
    if name in ("gelu", "squareplus", "glu"):
        # PyTorch's own gelu differs among dtypes, and the oracle of squareplus cancels.
        return
    x = np.asarray([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, 1.0], [1e4, -1e4], [-1e4, 5.0], [1e30, -1e30]], np.float32)
    result = on_host(ops.get_activation(name)(ops.asarray(x)))
    np.testing.assert_allclose(result, ORACLES[name](torch.tensor(x)).numpy(), rtol=1e-6, atol=1e-6)


def test_small_results_keep_their_precision(backend: Backend) -> None:
    x = np.asarray([-700.0, -40.0, -20.0, -1e-3], np.float64)
    expected = {"sigmoid": scipy.special.expit(x), "log_sigmoid": scipy.special.log_expit(x), "elu": np.expm1(x)}
    expected["softplus"] = np.logaddexp(x, 0)
    expected["squareplus"] = 2 / (np.hypot(x, 2) - x)
    for name, values in expected.items():
        np.testing.assert_allclose(on_host(ops.get_activation(name)(ops.asarray(x))), values, rtol=1e-12, err_msg=name)


@hypothesis.settings(max_examples=25, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(
    extra.arrays(np.float64, extra.array_shapes(max_dims=3, max_side=4), elements={"min_value": -1e6, "max_value": 1e6})
)
def test_softmax_and_sparsemax_are_probabilities(backend: Backend, x: np.ndarray) -> None:
    for function in (ops.softmax, ops.sparsemax):
        result = on_host(function(ops.asarray(x), axis=0))
        assert (result >= 0).all()
        np.testing.assert_allclose(result.sum(axis=0), 1, rtol=1e-9)
    exact = scipy.special.log_softmax(x, axis=0)
    np.testing.assert_allclose(on_host(ops.log_softmax(ops.asarray(x), axis=0)), exact, rtol=1e-9, atol=1e-9)


def test_sparsemax_is_the_nearest_distribution(backend: Backend) -> None:
    x = np.random.default_rng(3).normal(size=(50, 6))
    result = on_host(ops.sparsemax(ops.asarray(x)))
    # Where the nearest point is positive, what was taken away is the same; elsewhere, no more than that was there.
    for row, point in zip(x, result, strict=True):
        taken = row - point
        level = taken[point > 0].max()
        np.testing.assert_allclose(taken[point > 0], level, atol=1e-12)
        assert (row[point == 0] <= level + 1e-12).all()


def test_softmax_over_several_axes_is_that_of_the_axes_joined(backend: Backend) -> None:
    x = np.random.default_rng(4).normal(size=(2, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(on_host(ops.softmax(x, axis=(0, 2))), scipy.special.softmax(x, (0, 2)), rtol=1e-5)
    np.testing.assert_allclose(on_host(ops.softmax(x, axis=None)), scipy.special.softmax(x), rtol=1e-5)


def test_activations_are_found_by_name(backend: Backend) -> None:
    assert ops.get_activation("gelu") is ops.gelu
    assert ops.get_activation("swish") is ops.silu is ops.swish
    assert ops.get_activation("hard_swish") is ops.hard_silu
    assert ops.get_activation("tanh") is ops.tanh is activations.tanh
    assert ops.get_activation(len) is len
    x = ops.asarray([-1.0, 2.0])
    assert ops.get_activation(None)(x) is x
    with pytest.raises(ValueError, match="get_activation: name must be one of linear, tanh, relu, relu6, leaky_re"):
        ops.get_activation("rleu")


def test_they_are_importable_from_nn() -> None:
    from ember_ml.nn.modules import activations as functions

    assert functions.relu is ops.relu
    assert functions.tanh is ops.tanh
    assert functions.get_activation("mish") is functions.mish


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ops.celu([1.0], alpha=0.0),
        lambda: ops.softplus([1.0], beta=0.0),
        lambda: ops.soft_shrink([1.0], threshold=-1.0),
        lambda: ops.hard_tanh([1.0], 2.0, 1.0),
        lambda: ops.squareplus([1.0], b=-1.0),
        lambda: ops.glu([1.0, 2.0, 3.0]),
        lambda: ops.softmax([[1.0]], axis=(0, 0)),
        lambda: ops.softmax([[1.0]], axis=(0, 2)),
        lambda: ops.softmax(1.0),
        lambda: ops.log_softmax(1.0),
        lambda: ops.sparsemax(1.0),
        lambda: ops.prelu([[1.0, 2.0]], [1.0, 2.0, 3.0]),
    ],
)
def test_bad_options_are_value_errors(backend: Backend, wrong: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
        wrong()


def test_complex_numbers_are_type_errors(backend: Backend) -> None:
    for name in ORACLES:
        if name != "tanh":
            with pytest.raises(TypeError):
                ops.get_activation(name)(ops.asarray([1j]))


@pytest.mark.parametrize("name", ["gelu", "softmax", "elu", "softplus", "sparsemax", "glu", "squareplus"])
def test_gradients_flow(name: str) -> None:
    with ember_ml.use_backend("torch"):
        x = torch.tensor([[-1e4, -2.0, -0.5, 0.0], [0.5, 2.0, 20.0, 1e4]], dtype=torch.float64, requires_grad=True)
        (ops.get_activation(name)(x) * torch.arange(1.0, 1.0 + (4 if name != "glu" else 2))).sum().backward()
        assert torch.isfinite(x.grad).all()
        assert (x.grad != 0).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_largest_numbers_stay_as_they_are(backend: Backend, dtype: str) -> None:
    """An activation that is ``x`` far from zero is so up to the largest number, and does not overflow before it."""
    largest = ops.finfo(dtype).max
    for factor in (1.0, 0.5, 0.125):
        x = ops.full((3,), largest * factor, dtype=dtype)
        for function in (
            ops.relu, ops.elu, ops.silu, ops.mish, ops.leaky_relu, ops.celu, ops.softplus,
            lambda x: ops.gelu(x, approximate=True), lambda x: ops.softplus(x, beta=0.25, threshold=1e30),
        ):  # fmt: skip
            assert ops.all(ops.equal(function(x), x)), function


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_threshold_of_any_size(backend: Backend, dtype: str) -> None:
    """Exponentials do not overflow below the threshold, nor if it is greater than every number."""
    x = ops.asarray([-1e4, -100.0, 0.0, 30.0, 89.0, 800.0, 6e4], dtype=dtype)
    expected = on_host(ops.softplus(x))
    for threshold in (50.0, 1e4, float("inf")):
        np.testing.assert_allclose(on_host(ops.softplus(x, threshold=threshold)), expected, rtol=1e-7)
        gradient = on_host(transform.grad(lambda x, t=threshold: ops.sum(ops.softplus(x, threshold=t)))(x))
        np.testing.assert_allclose(gradient[3:].astype(float), 1, rtol=1e-6)
    for threshold in (7e4, 1e30, float("inf")):
        assert on_host(ops.soft_shrink(x, threshold=threshold)).tolist() == [0.0] * 7


def test_infinities_under_a_threshold(backend: Backend) -> None:
    x = ops.asarray([-np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(on_host(ops.soft_shrink(x, threshold=1e30)), [-np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(on_host(ops.soft_shrink(x, threshold=np.inf)), [0, 0, np.nan])
    np.testing.assert_array_equal(on_host(ops.softplus(x, threshold=np.inf)), [0, np.inf, np.nan])


def test_a_sixth_is_one_in_float64(backend: Backend) -> None:
    x = ops.asarray([-1.0, 0.0, 2.0], dtype="float64")
    for function, expected in ((ops.hard_sigmoid, [1 / 6] * 3), (ops.hard_silu, [1 / 6, 1 / 2, 7 / 6])):
        gradient = transform.grad(lambda x, f=function: ops.sum(f(x)))(x)
        np.testing.assert_allclose(on_host(gradient), expected, rtol=1e-15)


def test_the_linear_activation_returns_its_argument(backend: Backend) -> None:
    x = ops.asarray([-1.0, 2.0])
    assert activations.get_activation("linear")(x) is x
