"""Draws in NumPy's order of arguments, which has the shape last, as ``size``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.backend import Backend

# Type checkers know the order with the shape first alone.
random: Any = ops.random

# A call in NumPy's order, and the same one with the shape first.
SAME: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "size of normal": (lambda: random.normal(0, 1, size=5), lambda: random.normal((5,), 0, 1)),
    "size alone": (lambda: random.normal(size=(2, 3)), lambda: random.normal((2, 3))),
    "size None": (lambda: random.normal(2, 0.5, size=None), lambda: random.normal((), 2, 0.5)),
    "size and names": (
        lambda: random.normal(stddev=2.0, mean=1.0, size=4),
        lambda: random.normal((4,), mean=1.0, stddev=2.0),
    ),
    "floats": (lambda: random.normal(0.0, 1.0, 5), lambda: random.normal((5,), 0.0, 1.0)),
    "a tuple": (lambda: random.normal(0, 1, (2, 3)), lambda: random.normal((2, 3), 0, 1)),
    "no size": (lambda: random.normal(0.5, 2.0), lambda: random.normal((), 0.5, 2.0)),
    "negative bound": (lambda: random.uniform(-1, 1, 5), lambda: random.uniform((5,), -1, 1)),
    "size of uniform": (lambda: random.uniform(0, 1, size=5), lambda: random.uniform((5,), 0, 1)),
    "size of randint": (lambda: random.randint(0, 10, size=5), lambda: random.randint((5,), 0, 10)),
    "size of gamma": (lambda: random.gamma(2.0, size=5), lambda: random.gamma((5,), 2.0)),
    "poisson": (lambda: random.poisson(3.0, 5), lambda: random.poisson((5,), 3.0)),
    "exponential": (lambda: random.exponential(2.0, (2, 2)), lambda: random.exponential((2, 2), 2.0)),
    "beta": (lambda: random.beta(2.0, 3.0, 5), lambda: random.beta((5,), 2.0, 3.0)),
    "laplace": (lambda: random.laplace(0.0, 2.0, 5), lambda: random.laplace((5,), 0.0, 2.0)),
    "gumbel": (lambda: random.gumbel(0.0, 2.0, size=5), lambda: random.gumbel((5,), 0.0, 2.0)),
    "binomial": (lambda: random.binomial(10, 0.5, size=5), lambda: random.binomial((5,), 10, 0.5)),
    "a shape in an array": (lambda: random.randint(np.array([2, 3]), -5, 10), lambda: random.randint((2, 3), -5, 10)),
    "an array of bounds": (
        lambda: random.randint(np.array([1, 2]), 9, (3, 2)),
        lambda: random.randint((3, 2), ops.asarray([1, 2]), 9),
    ),
    "tensors": (
        lambda: random.normal(ops.asarray([1.0, 2.0]), 0.5),
        lambda: random.normal((2,), ops.asarray([1.0, 2.0]), 0.5),
    ),
    "bounds that are not NumPy's": (lambda: random.randint(5, 0, 3), lambda: random.randint((5,), 0, 3)),
}


@pytest.mark.parametrize("name", SAME)
def test_numpy_order_gives_the_same_draw(name: str, backend: Backend) -> None:
    numpy_order, ours = SAME[name]
    random.set_seed(7)
    found = ops.to_numpy(numpy_order())
    random.set_seed(7)
    expected = ops.to_numpy(ours())
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_a_generator_takes_either_order(backend: Backend) -> None:
    found, expected = random.Generator(7).normal(0, 1, size=5), random.Generator(7).normal((5,), 0, 1)
    np.testing.assert_array_equal(ops.to_numpy(found), ops.to_numpy(expected))


# Calls that could be meant in either order, and what each of the two forms in the message must contain.
UNCLEAR: dict[str, tuple[Callable[[], Any], str, str]] = {
    "normal": (lambda: random.normal(0, 1, 100), "shape=0, mean=1, stddev=100", "mean=0, stddev=1, size=100"),
    "normal of two": (lambda: random.normal(0, 1), "shape=0, mean=1", "mean=0, stddev=1"),
    "uniform": (lambda: random.uniform(0, 1, 100), "shape=0, low=1, high=100", "low=0, high=1, size=100"),
    "randint": (lambda: random.randint(0, 10, 5), "shape=0, low=10, high=5", "low=0, high=10, size=5"),
    "poisson": (lambda: random.poisson(3, 5), "shape=3, lam=5", "lam=3, size=5"),
    "a list": (lambda: random.poisson(3, [2, 2]), "shape=3, lam=[2, 2]", "lam=3, size=[2, 2]"),
    "gamma": (lambda: random.gamma(2, 1, 100), "shape=2, alpha=1, beta=100", "alpha=2, beta=1, size=100"),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_an_unclear_order_raises_and_shows_both_forms(name: str, backend: Backend) -> None:
    call, first, second = UNCLEAR[name]
    with pytest.raises(TypeError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(
        f"{name.split()[0] if name != 'a list' else 'poisson'}: the shape must be a tuple or named"
    )
    assert first in message
    assert second in message


def test_a_shape_and_a_size_raise(backend: Backend) -> None:
    with pytest.raises(TypeError, match="normal: shape must be given once, got shape=3 and size=4"):
        random.normal(shape=3, size=4)


def test_numpy_scale_of_gamma_raises(backend: Backend) -> None:
    """NumPy's second parameter is a scale, ours a rate: the same call would give other numbers."""
    with pytest.raises(TypeError, match="gamma: beta must be named, since it is the inverse of NumPy's scale"):
        random.gamma(2.0, 3.0, size=5)
    with pytest.raises(TypeError, match="gamma: beta must be named"):
        random.gamma(2.0, 3.0, 5)
