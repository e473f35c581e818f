"""Initialisers: their moments and limits, and one seed for every engine."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import Backend
from ember_ml.nn import initializers
from ember_ml.testing.comparison import host

NAMES = list(initializers.INITIALIZERS)

every_name = pytest.mark.parametrize("name", NAMES)


def drawn(name: str, shape: Any, **options: Any) -> Any:
    ops.set_seed(1)
    return host(initializers.INITIALIZERS[name](shape, **options)).astype(np.float64)


@every_name
def test_one_seed_on_every_engine(name: str) -> None:
    found = []
    for engine in ember_ml.get_available_backends():
        with ember_ml.use_backend(engine):
            found.append(drawn(name, (20, 30)))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-6)


@every_name
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(name: str, dtype: str, backend: Backend) -> None:
    x = initializers.INITIALIZERS[name]((4, 3), dtype)
    assert ops.to_dtype_str(x.dtype) == dtype
    assert tuple(x.shape) == (4, 3)


@every_name
def test_keys_decide(name: str, backend: Backend) -> None:
    make = initializers.INITIALIZERS[name]
    state = ops.random.get_state()
    first, second = make((5, 4), None, 11), make((5, 4), key=11)
    np.testing.assert_array_equal(host(first), host(second))
    assert ops.random.get_state() == state


@pytest.mark.parametrize(
    ("name", "variance", "edge"),
    [
        ("glorot_uniform", 2 / 300, math.sqrt(6 / 300)),
        ("glorot_normal", 2 / 300, None),
        ("he_uniform", 2 / 200, math.sqrt(6 / 200)),
        ("he_normal", 2 / 200, None),
        ("lecun_uniform", 1 / 200, math.sqrt(3 / 200)),
        ("lecun_normal", 1 / 200, None),
        ("fan_in_uniform", 1 / 600, math.sqrt(1 / 200)),
        ("standard_normal", 1.0, None),
        ("normal", 0.0025, None),
        ("uniform", 0.01 / 12, 0.05),
    ],
)
def test_moments(name: str, variance: float, edge: float | None) -> None:
    x = drawn(name, (200, 100))
    assert abs(x.mean()) < 4 * math.sqrt(variance / x.size)
    assert abs(x.var() / variance - 1) < 0.05
    if edge is not None:
        assert edge * 0.99 < np.abs(x).max() <= edge * (1 + 1e-6)
    elif name not in ("standard_normal", "normal"):
        assert np.abs(x).max() <= 2 * math.sqrt(variance) / 0.8796 * (1 + 1e-5)


def test_truncation() -> None:
    x = drawn("truncated_normal", (20000,), mean=1.0, stddev=0.5)
    assert np.abs(x - 1).max() <= 1.0
    assert abs(x.std() - 0.5 * 0.8796) < 0.01


def test_fans() -> None:
    assert initializers.fans((3, 5, 4, 8)) == (60, 120)
    assert initializers.fans((7,)) == initializers.fans(7) == (7, 7)
    assert initializers.fans(()) == (1, 1)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 3, 4)])
def test_orthogonal(shape: Any, backend: Backend) -> None:
    x = host(initializers.orthogonal(shape, gain=2.0)).astype(np.float64).reshape(-1, shape[-1])
    x = x if x.shape[0] >= x.shape[1] else x.T
    np.testing.assert_allclose(x.T @ x, 4 * np.eye(x.shape[1]), atol=1e-5)


def test_sparse() -> None:
    x = drawn("sparse", (100, 100), sparsity=0.8, stddev=2.0)
    assert abs((x == 0).mean() - 0.8) < 0.02
    assert abs(x[x != 0].std() - 2.0) < 0.1


def test_identity(backend: Backend) -> None:
    assert host(initializers.identity((2, 3), gain=2.0)).tolist() == [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]


@pytest.mark.parametrize("value", ["ones", 1, 1.0, partial(initializers.constant, value=1.0), initializers.ones])
def test_what_names_an_initializer(value: Any, backend: Backend) -> None:
    layer = nn.Linear(2, 3, weight_init=value, bias_init=0.5)
    assert host(layer.weight).tolist() == [[1.0] * 3] * 2
    assert host(layer.bias).tolist() == [0.5] * 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: initializers.get_initializer("best"), "get_initializer: value must be one of zeros, ones, consta"),
        (lambda: initializers.variance_scaling((2, 2), mode="fan"), "variance_scaling: mode must be one of 'fan_i"),
        (lambda: initializers.variance_scaling((2, 2), distribution="cauchy"), "variance_scaling: distribution mu"),
        (lambda: initializers.orthogonal((3,)), "shape must have "),
        (lambda: initializers.identity((3, 3, 3)), "shape must have "),
    ],
)
def test_mistakes(call: Any, message: str, backend: Backend) -> None:
    with pytest.raises(ValueError, match=message):
        call()
