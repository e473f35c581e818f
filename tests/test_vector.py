"""What the contract cannot say of vectors and waves: the formulas, written plainly, agree; nothing is NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ember_ml
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.testing.comparison import assert_close, dtype_name, host

RNG = np.random.default_rng(11)
X, Y = RNG.normal(size=(2, 6, 5)).astype(np.float32)
TIMES = np.arange(60)
SINE = np.sin(TIMES * 2 * np.pi * 3 / 60).astype(np.float32)
WAVES = RNG.normal(size=(2, 40)).astype(np.float32)


def energy_stability(wave: np.ndarray, size: int) -> float:
    """The docstring's formula, window by window."""
    energies = [np.sum(wave[i : i + size] ** 2) for i in range(0, len(wave) - size + 1, size)]
    if len(energies) < 2 or np.mean(energies) == 0:
        return 1.0
    return float(np.clip(1 - np.var(energies) / np.mean(energies), 0, 1))


def interference_strength(a: np.ndarray, b: np.ndarray) -> float:
    """The docstring's formula."""
    a, b = a - a.mean(), b - b.mean()
    r = np.sum(a * b) / np.sqrt(np.sum(a**2) * np.sum(b**2))
    one, other = np.fft.rfft(a), np.fft.rfft(b)
    return float(r * abs(np.sum(one * other.conj())) / np.sum(abs(one) * abs(other)))


def phase_coherence(a: np.ndarray, b: np.ndarray, low: float = 0.0, high: float = 0.5) -> float:
    """The docstring's formula, for waves that have every frequency."""
    frequencies = np.fft.rfftfreq(len(a)).round(9)
    difference = np.angle(np.fft.rfft(a)) - np.angle(np.fft.rfft(b))
    return float(abs(np.mean(np.exp(1j * difference)[(frequencies >= low) & (frequencies <= high)])))


def test_distances_are_scipy(backend: Backend) -> None:
    for i in range(len(X)):
        assert_close(host(ops.euclidean_distance(X[i], Y[i])), scipy.spatial.distance.euclidean(X[i], Y[i]), 1e-6)
        expected = 1 - scipy.spatial.distance.cosine(X[i].astype(np.float64), Y[i])
        assert_close(host(ops.cosine_similarity(X[i], Y[i])), expected, 1e-6)
    for axis in (0, 1):
        expected = torch.nn.functional.normalize(torch.from_numpy(X), dim=axis).numpy()
        assert_close(host(ops.normalize_vector(X, axis=axis)), expected, 1e-6)
        expected = torch.nn.functional.cosine_similarity(torch.from_numpy(X), torch.from_numpy(Y), dim=axis).numpy()
        assert_close(host(ops.cosine_similarity(X, Y, axis=axis)), expected, 1e-6)
    between = host(ops.euclidean_distance(X[:, None], Y[None]))
    assert_close(between, scipy.spatial.distance.cdist(X, Y), 1e-5)


def test_halves_do_not_overflow(backend: Backend) -> None:
    x = ops.asarray([3000.0, 4000.0], dtype="float16")
    assert_close(host(ops.normalize_vector(x)), np.asarray([0.6, 0.8], np.float16), 1e-3)
    assert host(ops.euclidean_distance(x, [0.0, 0.0])) == 5000
    assert host(ops.cosine_similarity(x, x)) == 1
    assert dtype_name(ops.euclidean_distance(x, x)) == "float16"


def test_lengths_of_complex_vectors(backend: Backend) -> None:
    x = (X + 1j * Y).astype(np.complex64)
    assert_close(host(ops.normalize_vector(x)), x / np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)
    distance = ops.euclidean_distance(x, Y)
    assert dtype_name(distance) == "float32"
    assert_close(host(distance), np.linalg.norm(x - Y, axis=-1), 1e-5)


def test_decay(backend: Backend) -> None:
    result = host(ops.exponential_decay(X, 0.25, Y))
    assert_close(result, X * np.exp(-0.25 * Y), 1e-6)
    half = np.log(2).item()
    assert_close(host(ops.exponential_decay([8.0, 4.0], half, [3.0, 1.0])), np.asarray([1.0, 2.0]), 1e-6)


@pytest.mark.parametrize("size", [1, 3, 7, 20, 40, 41])
def test_energy_stability_is_the_formula(backend: Backend, size: int) -> None:
    waves = WAVES / 4
    result = host(ops.compute_energy_stability(waves, size))
    assert_close(result, np.asarray([energy_stability(w, size) for w in waves]), 1e-5)
    assert_close(host(ops.compute_energy_stability(waves.T, size, axis=0)), result, 1e-6)


def test_energy_stability_at_its_ends(backend: Backend) -> None:
    assert host(ops.compute_energy_stability(SINE, 20)) > 0.9999
    assert host(ops.compute_energy_stability([10.0, 0.0, 0.0, 0.0], 1)) == 0
    assert host(ops.compute_energy_stability([0.0] * 8, 2)) == 1
    assert host(ops.compute_energy_stability([1.0, 5.0])) == 1


def test_interference_strength_is_the_formula(backend: Backend) -> None:
    expected = interference_strength(*WAVES.astype(np.float64))
    assert_close(host(ops.compute_interference_strength(*WAVES)), expected, 1e-5)
    assert_close(host(ops.compute_interference_strength(*WAVES.astype(np.float64))), expected, 1e-12)
    rows = host(ops.compute_interference_strength(WAVES, WAVES[0]))
    assert_close(rows, np.asarray([1.0, expected]), 1e-5)


def test_waves_that_strengthen_and_that_cancel(backend: Backend) -> None:
    cosine = np.cos(TIMES * 2 * np.pi * 3 / 60).astype(np.float32)
    assert_close(host(ops.compute_interference_strength(SINE, 3 * SINE + 2)), 1.0, 1e-5)
    assert_close(host(ops.compute_interference_strength(SINE, -SINE)), -1.0, 1e-5)
    assert_close(host(ops.compute_interference_strength(SINE, cosine)), 0.0, 1e-5)
    assert_close(host(ops.compute_interference_strength(SINE * 1e25, SINE * 1e-25)), 1.0, 1e-5)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e30, 3e-20])
def test_constant_waves_have_finite_measures(backend: Backend, value: float) -> None:
    constant = np.full(60, value, np.float32)
    assert host(ops.compute_interference_strength(SINE, constant)) == 0
    assert host(ops.compute_interference_strength(constant, constant)) == 0
    assert (host(ops.partial_interference(constant, SINE, 7)) == 0).all()
    assert_close(host(ops.compute_phase_coherence(constant, constant)), float(value != 0), 1e-6)
    assert host(ops.compute_phase_coherence(constant, SINE)) == 0


@pytest.mark.parametrize("span", [None, (0.1, 0.3), (0.25, 0.25), (0.0, 0.5), (0.05, 0.3)])
def test_phase_coherence_is_the_formula(backend: Backend, span: tuple[float, float] | None) -> None:
    expected = phase_coherence(*WAVES.astype(np.float64), *(span or ()))
    assert_close(host(ops.compute_phase_coherence(*WAVES, span)), expected, 1e-5)
    assert_close(host(ops.compute_phase_coherence(*WAVES.astype(np.float64), freq_range=span)), expected, 1e-12)


def test_phase_coherence_of_one_tone(backend: Backend) -> None:
    # Rounding alone fills all other frequencies, with phases that say nothing.
    shifted = np.sin(TIMES * 2 * np.pi * 3 / 60 + 1.0).astype(np.float32)
    assert_close(host(ops.compute_phase_coherence(SINE, shifted)), 1.0, 1e-4)
    assert host(ops.compute_phase_coherence(SINE, shifted, (0.2, 0.1))) == 0


@pytest.mark.parametrize("size", [2, 7, 40])
def test_partial_interference_is_the_strength_of_windows(backend: Backend, size: int) -> None:
    result = host(ops.partial_interference(*WAVES, size))
    wide = WAVES.astype(np.float64)
    expected = [interference_strength(*wide[:, i : i + size]) for i in range(40 - size + 1)]
    assert_close(result, np.asarray(expected), 1e-4)
    assert_close(host(ops.partial_interference(*wide, size)), np.asarray(expected), 1e-10)


def test_nan_is_not_hidden(backend: Backend) -> None:
    holed = SINE.copy()
    holed[3] = np.nan
    for run in (ops.compute_interference_strength, ops.compute_phase_coherence):
        assert np.isnan(host(run(SINE, holed)))
    assert np.isnan(host(ops.compute_energy_stability(holed, 5)))
    assert np.isnan(host(ops.partial_interference(SINE, holed, 5))).sum() == 4


@settings(max_examples=30, deadline=None, database=None, derandomize=True)
@given(hnp.arrays(np.float32, (2, 9), elements=st.floats(-1e3, 1e3, width=32)))
def test_measures_stay_in_their_ranges(waves: np.ndarray) -> None:
    for engine in ember_ml.get_available_backends():
        with ember_ml.use_backend(engine):
            for low, result in measures(*waves):
                values = host(result)
                assert np.all((values >= low - 1e-5) & (values <= 1 + 1e-5)), (engine, values)


def measures(one: np.ndarray, other: np.ndarray) -> list[tuple[float, Any]]:
    """Each measure with the least value it may have; the greatest is 1."""
    return [
        (0.0, ops.compute_energy_stability(one, 2)),
        (-1.0, ops.compute_interference_strength(one, other)),
        (-1.0, ops.partial_interference(one, other, 4)),
        (0.0, ops.compute_phase_coherence(one, other)),
        (-1.0, ops.cosine_similarity(one, other)),
    ]


def test_gradients_at_zero_are_finite() -> None:
    with ember_ml.use_backend("torch"):
        zero = torch.zeros(3, requires_grad=True)
        for result in (
            ops.normalize_vector(zero),
            ops.euclidean_distance(zero, [0.0, 0.0, 0.0]),
            ops.cosine_similarity(zero, [1.0, 2.0, 3.0]),
            ops.compute_interference_strength(zero, [1.0, 2.0, 3.0]),
        ):
            (gradient,) = torch.autograd.grad(ops.sum(result), zero)
            assert torch.isfinite(gradient).all()


def test_bad_values_are_value_errors(backend: Backend) -> None:
    for run in (
        lambda: ops.compute_energy_stability(SINE, 0),
        lambda: ops.partial_interference(SINE, SINE, 0),
        lambda: ops.partial_interference(SINE, SINE, 61),
        lambda: ops.compute_interference_strength(SINE, SINE[:7]),
        lambda: ops.compute_phase_coherence(SINE, SINE[:7]),
        lambda: ops.euclidean_distance(X, X[:, :3]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
            run()
    for run in (ops.cosine_similarity, ops.compute_interference_strength, ops.compute_phase_coherence):
        with pytest.raises(TypeError):
            run(X + 1j, Y)


def test_waves_compute_where_they_live(backend: Backend) -> None:
    if backend.name == "numpy":
        return
    one, other = ops.asarray(SINE), ops.asarray(SINE[::-1].copy())
    with ember_ml.use_backend("numpy"):
        results = [ops.partial_interference(one, other, 8), ops.compute_phase_coherence(one, other, (0.0, 0.2))]
        results.append(ops.compute_energy_stability(one))
    assert all(isinstance(result, backend.tensors) for result in results)


@pytest.mark.parametrize("size", [0, -1])
def test_windows_have_at_least_one_sample(size: int, backend: Backend) -> None:
    with pytest.raises(ValueError, match=rf"^compute_energy_stability: window_size must be >= 1, got {size}\b"):
        ops.compute_energy_stability(SINE, size)
