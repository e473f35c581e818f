"""The demonstration: the same data and the same answers on every engine."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import demo, ops
from ember_ml.backend import Backend


def host(x: object) -> np.ndarray:
    return np.asarray(ops.to_numpy(x))


def test_the_data_are_the_reference_data(backend: Backend) -> None:
    features, targets = (host(x) for x in demo.data(500, seed=1))
    with demo.use_backend("numpy"):
        expected, wanted = (host(x) for x in demo.data(500, seed=1))
    np.testing.assert_array_equal(features, expected)
    np.testing.assert_allclose(targets, wanted, rtol=0, atol=1e-6)
    assert features.dtype == targets.dtype == np.float32


def test_another_seed_gives_other_data(backend: Backend) -> None:
    first, second = (host(demo.data(100, seed)[0]) for seed in (0, -1))
    assert not np.isclose(first[1:], second[1:]).all()


def test_the_features_look_random(backend: Backend) -> None:
    features, targets = (host(x) for x in demo.data(20_000, seed=0))
    uniform = features[1:]
    assert (features[0] == 1).all()
    assert uniform.min() >= -1
    assert uniform.max() < 1
    np.testing.assert_allclose(uniform.mean(axis=1), 0, atol=0.02)
    np.testing.assert_allclose(np.cov(uniform), np.eye(len(uniform)) / 3, atol=0.01)
    noise = targets - np.asarray(demo.TRUE) @ features
    np.testing.assert_allclose(noise.std(), demo.NOISE, rtol=0.03)
    np.testing.assert_allclose(np.corrcoef(np.vstack([uniform, noise])), np.eye(len(uniform) + 1), atol=0.03)


def test_elimination_solves_a_positive_definite_system(backend: Backend) -> None:
    matrix = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], np.float32)
    column = np.array([[1.0], [2.0], [3.0]], np.float32)
    answer = demo.solved(ops.asarray(matrix), ops.asarray(column))
    np.testing.assert_allclose(host(answer), np.linalg.solve(matrix, column)[:, 0], rtol=1e-5)


def test_both_methods_find_the_least_squares_solution(backend: Backend) -> None:
    features, targets = demo.data(2000, seed=0)
    expected = np.linalg.lstsq(host(features).astype(float).T, host(targets).astype(float), rcond=None)[0]
    for fit in demo.METHODS.values():
        np.testing.assert_allclose(host(fit(features, targets)), expected, rtol=0, atol=2e-5)


def test_a_run_holds_one_fit_per_method(backend: Backend) -> None:
    fits = demo.run(backend.name, samples=1000, seed=0)
    assert [fit.method for fit in fits] == list(demo.METHODS)
    for fit in fits:
        np.testing.assert_allclose(fit.coefficients, demo.TRUE, atol=0.03)
        assert fit.loss == pytest.approx(demo.NOISE**2, rel=0.2)
        assert fit.seconds > 0


def test_disagreement_is_the_largest_difference_within_a_method() -> None:
    fits = [
        demo.Fit("a", "closed form", [1.0, 2.0], 0.0, 0.0),
        demo.Fit("b", "closed form", [1.0, 2.5], 0.0, 0.0),
        demo.Fit("a", "descent", [9.0, 9.0], 0.0, 0.0),
        demo.Fit("b", "descent", [9.0, 8.75], 0.0, 0.0),
    ]
    assert demo.disagreement(fits) == 0.5
    assert demo.disagreement(fits[:1]) == 0.0
