"""What the contract cannot say of statistics: other libraries agree, halves keep their precision, errors are errors."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.testing.comparison import assert_close, host

NAN, INF = math.nan, math.inf
RNG = np.random.default_rng(7)
SAMPLE = RNG.normal(size=(5, 6, 7)).astype(np.float32)
HOLED = np.where(RNG.random(SAMPLE.shape) < 0.3, np.float32(NAN), SAMPLE)
HOLED[0], HOLED[:, 0], HOLED[:, :, 0] = SAMPLE[0], SAMPLE[:, 0], SAMPLE[:, :, 0]

AXES = [None, 0, -1, (0, 2), (2, 1), (0, 1, 2)]
NUMPY_REDUCTIONS = ["sum", "prod", "mean", "var", "std", "median", "max", "min", "ptp"]
NUMPY_NAN_REDUCTIONS = ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmedian", "nanmax", "nanmin"]
METHODS = ["linear", "lower", "higher", "nearest", "midpoint"]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", NUMPY_REDUCTIONS)
def test_reductions_are_numpy(backend: Backend, name: str, axis: int | tuple[int, ...] | None) -> None:
    for keepdims in (False, True):
        result = host(getattr(ops, name)(SAMPLE, axis=axis, keepdims=keepdims))
        expected = getattr(np, name)(SAMPLE, axis=axis, keepdims=keepdims)
        assert result.shape == expected.shape
        assert_close(result, expected, 1e-4)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", NUMPY_NAN_REDUCTIONS)
def test_nan_reductions_are_numpy(backend: Backend, name: str, axis: int | tuple[int, ...] | None) -> None:
    assert_close(host(getattr(ops, name)(HOLED, axis=axis)), getattr(np, name)(HOLED, axis=axis), 1e-4)


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_places_of_extremes_are_numpy(backend: Backend, name: str) -> None:
    for axis in (None, 0, 2):
        np.testing.assert_array_equal(host(getattr(ops, name)(HOLED, axis=axis)), getattr(np, name)(HOLED, axis=axis))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running_reductions_are_numpy(backend: Backend, name: str) -> None:
    for axis in (None, 0, 2):
        assert_close(host(getattr(ops, name)(HOLED, axis=axis)), getattr(np, name)(HOLED, axis=axis), 1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", AXES)
def test_quantiles_are_numpy(backend: Backend, axis: int | tuple[int, ...] | None, method: str) -> None:
    for q in (0.0, 0.37, 1, [0.25, 0.5], [[0.1], [0.9]]):
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims, "method": method}
            result = host(ops.quantile(SAMPLE, q, **options))
            expected = np.quantile(SAMPLE.astype(np.float64), q, **options)
            assert result.shape == expected.shape
            assert_close(result, expected, 1e-5)
    percent = [0, 12.5, 100]
    assert_close(
        host(ops.nanpercentile(HOLED, percent, axis=axis, method=method)),
        np.nanpercentile(HOLED.astype(np.float64), percent, axis=axis, method=method),
        1e-5,
    )


def test_quantiles_of_a_tensor_of_levels(backend: Backend) -> None:
    levels = np.asarray([0.0, 0.1, 0.5, 0.99], np.float32)
    native = ops.asarray(levels)
    assert_close(host(ops.quantile(SAMPLE, native, axis=1)), np.quantile(SAMPLE, levels, axis=1), 1e-5)
    assert_close(host(ops.percentile(SAMPLE, native * 100, axis=1)), np.quantile(SAMPLE, levels, axis=1), 1e-4)
    assert_close(host(ops.nanquantile(HOLED, native, axis=1)), np.nanquantile(HOLED, levels, axis=1), 1e-5)


def test_infinities_are_ordinary_values_of_order_statistics(backend: Backend) -> None:
    assert host(ops.median([1.0, INF])) == INF
    assert host(ops.median([INF, INF, INF, INF])) == INF
    assert host(ops.quantile([-INF, 0.0, 1.0], 0.25)) == -INF
    assert host(ops.quantile([1.0, INF], 0.0)) == 1.0


def test_levels_outside_of_their_range_are_value_errors(backend: Backend) -> None:
    for run, q in [(ops.quantile, 1.5), (ops.quantile, [0.5, -0.1]), (ops.quantile, NAN), (ops.percentile, 100.5)]:
        with pytest.raises(ValueError, match="q must be from 0 to 1"):
            run(SAMPLE, q)
    with pytest.raises(ValueError, match=r"method must be one of .* got 'hazel'"):
        ops.quantile(SAMPLE, 0.5, method="hazel")
    with pytest.raises(ValueError, match="different lengths"):
        ops.quantile(SAMPLE, [[0.5], [0.1, 0.2]])


@pytest.mark.parametrize("bias", [True, False])
def test_moments_are_scipy(backend: Backend, bias: bool) -> None:
    for axis in (0, 1, None):
        assert_close(host(ops.skew(SAMPLE, axis=axis, bias=bias)), scipy.stats.skew(SAMPLE, axis=axis, bias=bias), 2e-4)
        for fisher in (True, False):
            options = {"axis": axis, "bias": bias, "fisher": fisher}
            assert_close(host(ops.kurtosis(SAMPLE, **options)), scipy.stats.kurtosis(SAMPLE, **options), 5e-4)
        assert_close(host(ops.zscore(SAMPLE, axis=axis)), scipy.stats.zscore(SAMPLE, axis=axis), 2e-4)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_bias_of_small_samples_is_that_of_scipy(backend: Backend, count: int) -> None:
    """There is a correction for three values or more of ``skew``, and for four or more of ``kurtosis``."""
    values = np.asarray([1.0, 2.0, 4.0, 9.0, 7.0])[:count]
    for ours, theirs in [(ops.skew, scipy.stats.skew), (ops.kurtosis, scipy.stats.kurtosis)]:
        assert_close(host(ours(values, bias=False)), theirs(values, bias=False), 1e-5)


def test_constant_samples_have_no_shape(backend: Backend) -> None:
    constant = np.full((4,), 0.1, np.float32)
    for name in ("skew", "kurtosis"):
        assert math.isnan(host(getattr(ops, name)(constant)))
    assert np.isnan(host(ops.zscore(constant))).all()


def test_densities_are_scipy(backend: Backend) -> None:
    expected = scipy.stats.norm.pdf(SAMPLE, 0.5, 2.0)
    assert_close(host(ops.gaussian(SAMPLE, 0.5, 2.0)), expected, 1e-5)
    assert_close(host(ops.gaussian(SAMPLE, mu=0.5, sigma=2.0)), expected, 1e-5)


def test_covariances_are_numpy(backend: Backend) -> None:
    x, y = SAMPLE[0], SAMPLE[1]
    often, much = np.asarray([1, 2, 1, 3, 1, 1, 2]), np.abs(SAMPLE[2, 0])
    for result, expected in [
        (ops.cov(x), np.cov(x)),
        (ops.cov(x, y), np.cov(x, y)),
        (ops.cov(x[0], y[0]), np.cov(x[0], y[0])),
        (ops.cov(x, rowvar=False), np.cov(x, rowvar=False)),
        (ops.cov(x, y, rowvar=False), np.cov(x, y, rowvar=False)),
        (ops.cov(x, bias=True), np.cov(x, bias=True)),
        (ops.cov(x, correction=2), np.cov(x, ddof=2)),
        (ops.cov(x, fweights=often), np.cov(x, fweights=often)),
        (ops.cov(x, aweights=much), np.cov(x, aweights=much)),
        (ops.cov(x, fweights=often, aweights=much), np.cov(x, fweights=often, aweights=much)),
        (ops.corrcoef(x), np.corrcoef(x)),
        (ops.corrcoef(x, y, rowvar=False), np.corrcoef(x, y, rowvar=False)),
        (ops.corrcoef(x[0], y[0]), np.corrcoef(x[0], y[0])),
    ]:
        assert host(result).shape == expected.shape
        assert_close(host(result), expected, 1e-4)
    with pytest.raises(ValueError, match="axes"):
        ops.cov(SAMPLE)
    with pytest.raises(ValueError, match="weights"):
        ops.cov(x, fweights=[1, 2])
    with pytest.raises(TypeError):
        ops.cov(x, fweights=much)


def test_averages_are_numpy(backend: Backend) -> None:
    weights = np.abs(SAMPLE)
    for axis, given_weights in [(None, weights), (1, weights), (1, weights[0, :, 0]), ((0, 2), weights[:, 0, :])]:
        result, total = ops.average(SAMPLE, axis=axis, weights=given_weights, returned=True)
        expected, expected_total = np.average(SAMPLE, axis=axis, weights=given_weights, returned=True)
        assert_close(host(result), expected, 1e-4)
        assert_close(host(total), expected_total, 1e-4)
    with pytest.raises(ValueError, match="axis"):
        ops.average(SAMPLE, weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="average: weights must have one value per element along axis 0, got shap"):
        ops.average(SAMPLE, axis=0, weights=[1.0, 2.0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_accumulated_without_loss(backend: Backend, dtype: str) -> None:
    ones = ops.ones((4096, 2), dtype=dtype)
    assert host(ops.sum(ones, axis=0)).tolist() == [4096.0, 4096.0]
    assert host(ops.sum(ones)) == 8192.0
    assert host(ops.cumsum(ones, axis=0))[-1].tolist() == [4096.0, 4096.0]
    large = ops.full((1000,), 1000.0, dtype=dtype)
    assert host(ops.mean(large)) == 1000.0
    assert host(ops.nanmean(large)) == 1000.0
    assert host(ops.average(large, weights=ops.ones((1000,), dtype=dtype))) == 1000.0
    assert host(ops.std(ops.asarray([1024.0, -1024.0], dtype=dtype))) == 1024.0
    assert host(ops.prod(ops.asarray([512.0, 512.0, 2.0**-9], dtype=dtype))) == 512.0


def test_small_integers_do_not_wrap(backend: Backend) -> None:
    small = ops.asarray([100, 100, 100], dtype="int8")
    assert host(ops.sum(small)) == 300
    assert host(ops.cumsum(small)).tolist() == [100, 200, 300]
    assert host(ops.prod(ops.asarray([200, 200], dtype="uint8"))) == 40000
    assert ops.get_dtype(ops.sum(ops.asarray([200], dtype="uint8"))) == "uint64"
    large = np.asarray([2**63, 2**63 - 1], np.uint64)
    assert int(host(ops.sum(large))) == 2**64 - 1


def test_variance_survives_a_large_mean(backend: Backend) -> None:
    assert_close(host(ops.var(np.asarray([1e4, 1e4 + 1, 1e4 + 2], np.float32))), 2 / 3, 1e-4)


@pytest.mark.parametrize("name", ["max", "min", "ptp", "nanmax", "nanmin", "nanargmax", "nanargmin"])
def test_nothing_has_no_extremes(backend: Backend, name: str) -> None:
    run = getattr(ops, name)
    for options in ({}, {"axis": 0}):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
            run(ops.zeros((0, 3)), **options)


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_nan_alone_has_no_extremes(backend: Backend, name: str) -> None:
    with pytest.raises(ValueError, match="x must have a number that is not NaN along axis 1, got NaN only"):
        getattr(ops, name)([[1.0, NAN], [NAN, NAN]], axis=1)


def test_places_of_extremes_are_never_those_of_nan(backend: Backend) -> None:
    assert host(ops.nanargmax([NAN, -INF])) == 1
    assert host(ops.nanargmin([NAN, INF])) == 1


def test_empty_and_nan_give_no_warnings(backend: Backend) -> None:
    empty, missing = ops.zeros((0, 3)), ops.full((2, 3), NAN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("mean", "var", "std", "median", "nanmean", "nanvar", "nanstd", "nanmedian"):
            assert np.isnan(host(getattr(ops, name)(empty, axis=0))).all(), name
            assert np.isnan(host(getattr(ops, name)(missing, axis=0))).all(), name
        for name in ("nanmax", "nanmin"):
            assert np.isnan(host(getattr(ops, name)(missing, axis=0))).all(), name
        assert np.isnan(host(ops.var([1.0], correction=1)))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "median", "max", "nansum"])
def test_an_axis_named_twice_is_a_value_error(backend: Backend, name: str) -> None:
    for axes in ((0, 0), (0, -3)):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
            getattr(ops, name)(ops.asarray(SAMPLE), axis=axes)


def test_complex_numbers_have_no_order(backend: Backend) -> None:
    for name in ("max", "min", "ptp", "median", "nanmax"):
        with pytest.raises(TypeError):
            getattr(ops, name)([1j, 2.0])


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "nanprod", "cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_imaginary_parts_are_not_dropped(backend: Backend, name: str) -> None:
    run, x = getattr(ops, name), ops.asarray([1 + 2j, 2 - 1j])
    for dtype in ("float16", "float32", "float64", "int32", "int64", "uint64"):
        for axis in (None, 0):
            with pytest.raises(TypeError, match="real part"):
                run(x, axis=axis, dtype=dtype)
    assert host(run(x, dtype="complex64")).dtype == np.complex64
    assert host(run(x, dtype="bool")).all()


def test_stats_has_the_order_statistics_of_indexing() -> None:
    for name in ("argmax", "argmin", "sort", "argsort"):
        assert getattr(ops.stats, name) is getattr(ops, name)
    with pytest.raises(AttributeError, match="no attribute"):
        ops.stats.unknown  # noqa: B018 - the access is what fails


def test_other_names_are_the_same_functions() -> None:
    assert (ops.amax, ops.amin) == (ops.max, ops.min)
    assert (ops.cumulative_sum, ops.cumulative_prod) == (ops.cumsum, ops.cumprod)


MATRICES = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5),
    elements=st.floats(-100, 100, width=32),
)


@settings(max_examples=25, deadline=None)
@given(x=MATRICES, q=st.floats(0, 1))
def test_engines_agree(x: np.ndarray, q: float) -> None:
    for name, args in [("sum", ()), ("var", ()), ("median", ()), ("quantile", (q,)), ("cummax", ()), ("nanmean", ())]:
        results = []
        for engine in ember_ml.get_available_backends():
            with ember_ml.use_backend(engine):
                results.append(host(getattr(ops, name)(ops.asarray(x), *args, axis=-1)))
        for result in results[1:]:
            assert_close(result, results[0], 1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_an_average_of_halves_is_rounded_once(dtype: str, backend: Backend) -> None:
    x, weights = (ops.asarray(SAMPLE[i], dtype=dtype) for i in (0, 1))
    weights = ops.add(ops.abs(weights), 1)
    wide = ops.average(ops.cast(x, "float32"), axis=1, weights=ops.cast(weights, "float32"))
    assert ops.average(x, axis=1, weights=weights).tolist() == ops.cast(wide, dtype).tolist()


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_compilers_trace_running_totals_in_uint64(name: str, backend: Backend) -> None:
    """torch 2.13 has no kernel for them, and NumPy cannot compute a part of a compiled program."""
    whole = getattr(backends.submodule(backend.module, "transform"), "whole", None)
    run = lambda x: getattr(ops, name)(x, dtype="uint64")  # noqa: E731
    x = ops.asarray([3, 2, 1], dtype="int32")
    found = (whole(run) if whole else run)(x)
    assert ops.dtype(found) == "uint64"
    assert found.tolist() == getattr(np, name)([3, 2, 1]).tolist()
