"""Features: equal to scikit-learn on every engine, with its protocol, and a state that travels."""

from __future__ import annotations

import copy
import doctest
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import decomposition, preprocessing
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.nn import features
from ember_ml.nn.features import decomposition as our_decomposition
from ember_ml.nn.features import scaling, transformer
from ember_ml.nn.tensor import EmberTensor, wrap
from ember_ml.testing.comparison import host, is_on_cpu


def rows(dtype: str = "float64", samples: int = 200, size: int = 6, *, nan: bool = False) -> np.ndarray:
    """Correlated features of different sizes, the last of them constant."""
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((samples, size)) @ rng.standard_normal((size, size))
    made = mixed * [1.0, 5.0, 0.1, 2.0, 3.0, 0.0] + [0.0, 100.0, -3.0, 1.0, 2.0, 7.0]
    if nan:
        made[::7, 1] = np.nan
    return made.astype(dtype)


def close(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    """Equal to the tolerance, taken of the largest value."""
    scale = max(1.0, float(np.nanmax(np.abs(wanted))))
    np.testing.assert_allclose(host(found), wanted, rtol=0, atol=tolerance * scale)


SCALERS = [
    (features.StandardScaler(), preprocessing.StandardScaler()),
    (features.StandardScaler(with_mean=False), preprocessing.StandardScaler(with_mean=False)),
    (features.StandardScaler(with_std=False), preprocessing.StandardScaler(with_std=False)),
    (features.MinMaxScaler(), preprocessing.MinMaxScaler()),
    (features.MinMaxScaler((-1.0, 3.0), clip=True), preprocessing.MinMaxScaler(feature_range=(-1, 3), clip=True)),
    (features.RobustScaler(), preprocessing.RobustScaler()),
    (
        features.RobustScaler(quantile_range=(10.0, 80.0), unit_variance=True),
        preprocessing.RobustScaler(quantile_range=(10.0, 80.0), unit_variance=True),
    ),
    (features.Normalizer("l1"), preprocessing.Normalizer("l1")),
    (features.Normalizer("l2"), preprocessing.Normalizer("l2")),
    (features.Normalizer("max"), preprocessing.Normalizer("max")),
]
every_scaler = pytest.mark.parametrize(("ours", "theirs"), SCALERS, ids=[repr(s) for s, _ in SCALERS])


@every_scaler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalers_equal_scikit_learn(ours: Any, theirs: Any, dtype: str, backend: Backend) -> None:
    ours, data = clone(ours), rows(dtype)
    wanted = clone(theirs).fit(data.astype("float64"))
    found = ours.fit(ops.asarray(data))
    new = rows(dtype, samples=20) * 1.5
    result = found.transform(ops.asarray(new))
    assert ops.dtype(result) == dtype
    close(result, wanted.transform(new.astype("float64")), 1e-5 if dtype == "float32" else 1e-10)
    if hasattr(wanted, "inverse_transform") and not getattr(wanted, "clip", False):
        close(found.inverse_transform(result), new, 1e-5)


@every_scaler
def test_scalers_leave_nan_out_of_account(ours: Any, theirs: Any, backend: Backend) -> None:
    if isinstance(ours, features.Normalizer):
        return  # a row with NaN has no length
    data = rows(nan=True)
    close(clone(ours).fit_transform(ops.asarray(data)), clone(theirs).fit_transform(data))


@pytest.mark.parametrize("kind", [features.StandardScaler, features.MinMaxScaler, features.RobustScaler])
def test_scikit_learn_is_told_what_scalers_take(kind: Any) -> None:
    tags = get_tags(kind())
    assert tags.input_tags.allow_nan
    assert tags.array_api_support
    assert not tags.target_tags.required


@pytest.mark.parametrize("kind", ["StandardScaler", "MinMaxScaler"])
def test_portions_are_as_good_as_the_whole(kind: str, backend: Backend) -> None:
    data = rows(nan=True)
    whole, parts = getattr(features, kind)().fit(data), getattr(features, kind)()
    for start in (0, 50, 120):
        parts.partial_fit(data[start : {0: 50, 50: 120}.get(start, 200)])
    close(parts.transform(data), host(whole.transform(data)), 1e-10)


@pytest.mark.parametrize("kind", ["StandardScaler", "MinMaxScaler"])
@pytest.mark.parametrize("missing", [slice(None, 50), slice(50, 120), slice(120, None)], ids=str)
def test_a_feature_may_be_missing_from_a_portion(kind: str, missing: slice, backend: Backend) -> None:
    data = rows()
    data[missing, 1] = np.nan
    expected = getattr(preprocessing, kind)().fit_transform(data)
    parts = getattr(features, kind)()
    for portion in (data[:50], data[50:120], data[120:]):
        parts.partial_fit(ops.asarray(portion))
    close(parts.transform(ops.asarray(data)), expected, 1e-10)


def test_a_large_mean_does_not_spoil_the_variance(backend: Backend) -> None:
    data = (np.random.default_rng(1).standard_normal((5000, 2)) + 1000.0).astype("float32")
    fitted = features.StandardScaler().fit(ops.asarray(data))
    close(fitted.var_, data.astype("float64").var(0), 1e-6)
    close(fitted.mean_, data.astype("float64").mean(0), 1e-7)


SOLVERS = ["full", "covariance_eigh", "randomized", "auto"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pca_equals_scikit_learn(solver: str, whiten: bool, dtype: str, backend: Backend) -> None:
    data = rows(dtype)
    wanted = decomposition.PCA(3, whiten=whiten, svd_solver="full").fit(data.astype("float64"))
    ours = features.PCA(3, whiten, solver, random_state=0).fit(ops.asarray(data))
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"):
        close(getattr(ours, name), getattr(wanted, name))
    assert ours.noise_variance_ == pytest.approx(wanted.noise_variance_, rel=1e-4, abs=1e-4)
    close(ours.transform(ops.asarray(data)), wanted.transform(data.astype("float64")))
    back = ours.inverse_transform(ours.transform(ops.asarray(data)))
    close(back, wanted.inverse_transform(wanted.transform(data.astype("float64"))))
    if not whiten:  # scikit-learn scales the components of whitened data twice there
        close(ours.get_covariance(), wanted.get_covariance())


def test_pca_of_wide_data_by_random_directions(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    data = (rng.standard_normal((40, 5)) * [10, 7, 5, 3, 2]) @ rng.standard_normal((5, 700)) + 0.001
    wanted = decomposition.PCA(5, svd_solver="full").fit(data)
    ours = features.PCA(5, random_state=3).fit(data)
    assert ours._solver(*data.shape) == "randomized"
    close(ours.components_, wanted.components_)
    close(ours.singular_values_, wanted.singular_values_)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(300, 60), (60, 300)])
@pytest.mark.parametrize("whiten", [False, True])
def test_random_directions_place_rows_as_they_transform_them(
    whiten: bool, shape: tuple[int, int], dtype: str, backend: Backend
) -> None:
    data = ops.asarray(np.random.default_rng(0).standard_normal(shape).astype(dtype))
    model = features.PCA(5, whiten, "randomized", random_state=1)
    placed = model.fit_transform(data)
    close(placed, host(model.transform(data)))
    close(host(model.components_) @ host(model.components_).T, np.eye(5))


def test_features_have_names(backend: Backend) -> None:
    data = rows()
    given = [f"f{i}" for i in range(data.shape[1])]
    pipe = make_pipeline(features.StandardScaler(), features.PCA(2)).fit(data)
    assert list(pipe.get_feature_names_out(given)) == ["pca0", "pca1"]
    if is_on_cpu(backend):  # it joins columns by NumPy
        table = ColumnTransformer([("scaled", features.RobustScaler(), [0, 1]), ("rest", features.PCA(1), [2, 3])])
        assert list(table.fit(data).get_feature_names_out()) == ["scaled__x0", "scaled__x1", "rest__pca0"]
    assert features.Whitening("pca").fit(data).get_feature_names_out(given)[1] == "whitening1"
    assert features.Whitening().fit(data).get_feature_names_out(given) == given
    with pytest.raises(ValueError, match="MinMaxScaler: input_features must be 6 names, as many as were fitted to"):
        features.MinMaxScaler().fit(data).get_feature_names_out(["one"])
    with pytest.raises(features.NotFittedError):
        features.PCA(2).get_feature_names_out()


def test_random_directions_of_rows_that_depend_on_each_other(backend: Backend) -> None:
    data = np.zeros((80, 30), "float32")
    data[:, 3] = np.linspace(-1, 1, 80)
    model = features.PCA(4, svd_solver="randomized", random_state=1).fit(data)
    close(model.singular_values_, [np.linalg.norm(data[:, 3]), 0, 0, 0])
    close(host(model.components_)[0], np.eye(30)[3])
    close(host(model.components_) @ host(model.components_).T, np.eye(4))


def test_a_seed_gives_the_same_random_directions_on_every_engine(backend: Backend) -> None:
    data = rows()
    here = features.PCA(2, svd_solver="randomized", iterated_power=0, random_state=7).fit(data)
    with ember_ml.use_backend("numpy"):
        there = features.PCA(2, svd_solver="randomized", iterated_power=0, random_state=7).fit(data)
    close(here.components_, host(there.components_), 1e-8)


def test_incremental_pca_equals_scikit_learn(backend: Backend) -> None:
    data = rows()
    wanted = decomposition.IncrementalPCA(3, batch_size=30).fit(data)
    ours = features.PCA(3, svd_solver="incremental", batch_size=30).fit(data)
    for name in ("components_", "explained_variance_", "singular_values_", "mean_", "var_"):
        close(getattr(ours, name), getattr(wanted, name), 1e-5)
    assert ours.n_samples_ == 200


@pytest.mark.parametrize("count", [60, 62, 63])
def test_the_last_portion_has_as_many_rows_as_there_are_components(count: int, backend: Backend) -> None:
    """Two rows more than two portions of 30 belong to the second; three are a third one."""
    data = rows()[:count]
    wanted = decomposition.IncrementalPCA(3, batch_size=30).fit(data)
    ours = features.PCA(3, svd_solver="incremental", batch_size=30).fit(data)
    close(ours.components_, wanted.components_, 1e-5)
    close(ours.explained_variance_, wanted.explained_variance_, 1e-5)


@pytest.mark.parametrize(("share", "count"), [(0.5, None), (0.99, None), (0.9999999, None)])
def test_a_share_of_the_variance(share: float, count: None, backend: Backend) -> None:
    data = rows()
    wanted = decomposition.PCA(share, svd_solver="full").fit(data)
    assert features.PCA(share).fit(data).n_components_ == wanted.n_components_


@pytest.mark.parametrize("method", ["zca", "pca"])
def test_whitened_features_are_uncorrelated(method: str, backend: Backend) -> None:
    data = rows()[:, :5]
    fitted = features.Whitening(method).fit(data)
    white = host(fitted.transform(data))
    np.testing.assert_allclose(np.cov(white, rowvar=False), np.eye(5), atol=1e-6)
    close(fitted.inverse_transform(white), data)


EXAMPLES = [
    features.StandardScaler(),
    features.MinMaxScaler((-1.0, 1.0)),
    features.RobustScaler(with_centering=False),
    features.Normalizer("l1"),
    features.PCA(2, whiten=True),
    features.PCA(2, svd_solver="incremental"),
    features.Whitening("pca", epsilon=1e-3),
]
every_kind = pytest.mark.parametrize("model", EXAMPLES, ids=repr)


@every_kind
@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_fitted_state_saves_and_loads_on_any_engine(model: Any, suffix: str, backend: Backend, tmp_path: Path) -> None:
    data = rows()
    with ember_ml.use_backend("torch" if "torch" in ember_ml.get_available_backends() else "numpy"):
        fitted = clone(model).fit(data)
        wanted = host(fitted.transform(data))
        fitted.save(tmp_path / f"model{suffix}")
    loaded = features.load(tmp_path / f"model{suffix}")
    assert type(loaded) is type(model)
    result = loaded.transform(data)
    assert isinstance(result, backend.tensors)
    close(result, wanted, 1e-6)


@every_kind
def test_fitted_state_moves_between_engines(model: Any, backend: Backend) -> None:
    data = rows()
    fitted = clone(model).fit(data)
    wanted = host(fitted.transform(data))
    for copied in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        close(copied.transform(data), wanted, 1e-12)
    moved = fitted.to_backend("numpy")
    assert moved is fitted
    with ember_ml.use_backend("numpy"):
        close(moved.transform(data), wanted, 1e-6)
    moved.to_backend(backend.name).to(ops.get_default_device())
    close(moved.transform(data), wanted, 1e-6)


@every_kind
@pytest.mark.parametrize("home", ember_ml.get_available_backends())
def test_rows_are_computed_where_they_live(model: Any, home: str, backend: Backend) -> None:
    data = rows("float32")
    wanted = host(clone(model).fit(data).transform(data))
    with ember_ml.use_backend(home):
        native = ops.asarray(data)
    portable = wrap(native)
    # Arrays of NumPy are everybody's.
    engine = backend.name if home == "numpy" else home
    for given, expected in ((native, engine), (portable, home), ([native[0], *native[1:]], engine)):
        fitted = clone(model).fit(given)
        assert all(isinstance(x, backends.load(expected).tensors) for x in fitted.tensors().values())
        for result in (fitted.transform(given), clone(model).fit_transform(given)):
            assert wrap(result).backend == expected
            assert isinstance(result, EmberTensor) == (given is portable)
            close(result, wanted, 1e-3)
        if hasattr(fitted, "inverse_transform"):
            result = fitted.inverse_transform(fitted.transform(given))
            assert wrap(result).backend == expected
        if hasattr(fitted, "get_covariance"):
            assert isinstance(fitted.get_covariance(), backends.load(engine).tensors)
        if hasattr(fitted, "partial_fit"):
            clone(model).partial_fit(given).partial_fit(given)


class Frame:
    """A table with names, as data frames are."""

    def __init__(self, table: np.ndarray, columns: list[Any]) -> None:
        self.table, self.columns = table, columns

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.table


@every_kind
def test_names_of_columns_are_kept_and_compared(model: Any, backend: Backend, tmp_path: Path) -> None:
    data, names = rows("float32"), list("abcdef")
    for fitted in (clone(model).fit(Frame(data, names)), clone(model)):
        if not fitted.__sklearn_is_fitted__():
            fitted.fit_transform(Frame(data, names))
        assert fitted.feature_names_in_ == names
        fitted.save(tmp_path / "model.safetensors")
        for one in (fitted, features.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(fitted))):
            assert one.get_feature_names_out() == one.get_feature_names_out(names)
            close(one.transform(Frame(data, names)), host(one.transform(data)), 0)
            with pytest.raises(ValueError, match="x must have the columns that were fitted to, a, b, c, d, e, f,"):
                one.transform(Frame(data[:, ::-1], names[::-1]))
    # As in scikit-learn, columns with other names than strings have none.
    assert not hasattr(fitted.fit(Frame(data, list(range(6)))), "feature_names_in_")
    assert not hasattr(fitted.fit(data), "feature_names_in_")
    if hasattr(model, "partial_fit"):
        portions = clone(model).partial_fit(Frame(data[:100], names)).partial_fit(data[100:])
        assert portions.feature_names_in_ == names
        with pytest.raises(ValueError, match="a, b, c, d, e, f"):
            portions.partial_fit(Frame(data, names[::-1]))


@every_kind
def test_what_are_no_numbers_says_what_to_do(model: Any, backend: Backend) -> None:
    for wrong in ([["red", "blue"], ["blue", "red"]], Frame(np.array([["red", 1.0], [None, 2.0]], object), ["a", "b"])):
        with pytest.raises(TypeError) as caught:
            clone(model).fit(wrong)
        assert any("takes numbers" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "randomized", "incremental"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_principal_components_of_missing_values_are_refused(solver: str, value: float, backend: Backend) -> None:
    data = rows("float32")
    data[3, 1] = data[:, 4] = value
    for wrong in (features.PCA(2, svd_solver=solver), features.Whitening()):
        with pytest.raises(ValueError, match="x must be finite, got NaN or infinities in the features 1, 4"):
            wrong.fit(data)
        assert not wrong.__sklearn_is_fitted__()


@pytest.mark.parametrize("kind", [features.StandardScaler, features.MinMaxScaler, features.RobustScaler])
@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("values", [(np.inf,), (-np.inf,), (np.inf, -np.inf)])
def test_scalers_are_not_fitted_to_infinities(
    kind: Any, nan: bool, values: tuple[float, ...], backend: Backend
) -> None:
    data = rows("float32", nan=nan)
    for place, value in enumerate(values):
        data[place, 1] = data[place, 4] = value
    with pytest.raises(ValueError, match="x must be finite or NaN, got infinities in the features 1, 4"):
        kind().fit(data)
    fitted = kind().fit(rows("float32"))
    # What is transformed later may be anything.
    assert host(fitted.transform(data))[0, 1] == values[0]


def test_counts_may_be_numbers_of_numpy(backend: Backend, tmp_path: Path) -> None:
    data = rows("float32")
    for solver in ("full", "covariance_eigh", "randomized", "incremental"):
        model = features.PCA(np.int64(2), svd_solver=solver, random_state=1).fit(data)
        close(model.transform(data), host(features.PCA(2, svd_solver=solver, random_state=1).fit(data).transform(data)))
        model.save(tmp_path / "model.safetensors")
        assert features.load(tmp_path / "model.safetensors").n_components == 2
    share = features.PCA(np.float32(0.9)).fit(data)
    assert share.n_components_ == features.PCA(0.9).fit(data).n_components_
    with pytest.raises(TypeError, match="PCA: n_components must be an integer, a share of the variance or None, g"):
        features.PCA(True).fit(data)


@every_kind
def test_a_loaded_model_has_the_settings_it_was_saved_with(model: Any, backend: Backend, tmp_path: Path) -> None:
    clone(model).fit(rows()).save(tmp_path / "model.safetensors")
    assert repr(features.load(tmp_path / "model.safetensors")) == repr(model)


@every_kind
def test_scikit_learn_takes_them_for_its_own(model: Any, backend: Backend) -> None:
    data = rows("float32")
    assert clone(model).get_params() == model.get_params()
    chained = make_pipeline(clone(model), features.StandardScaler())
    assert host(chained.fit_transform(data)).shape[0] == len(data)
    assert model.get_params() == type(model)(**model.get_params()).get_params()


@every_kind
def test_what_is_not_fitted_says_so(model: Any, backend: Backend) -> None:
    fresh = clone(model)
    with pytest.raises(features.NotFittedError, match="it must be"):
        fresh.transform(rows())
    with pytest.raises(ValueError, match="row for each sample"):
        fresh.fit([1.0, 2.0])
    with pytest.raises(ValueError, match="at least 1 row"):
        fresh.fit(np.zeros((0, 3)))
    with pytest.raises(TypeError, match="x must be real"):
        fresh.fit(np.ones((4, 4), "complex64"))
    assert not fresh.__sklearn_is_fitted__()
    fresh.fit(rows())
    with pytest.raises(ValueError, match="x must have 6 columns, as many as were fitted to, got 5"):
        fresh.transform(rows()[:, :5])


def test_wrong_settings_are_value_errors(backend: Backend) -> None:
    data = rows()
    for wrong in (
        features.PCA(7),
        features.PCA(0),
        features.PCA(1.5),
        features.PCA(svd_solver="magic"),
        features.PCA(0.5, svd_solver="randomized"),
        features.Whitening("ica"),
        features.MinMaxScaler((1.0, 1.0)),
        features.RobustScaler(quantile_range=(80.0, 20.0)),
    ):
        with pytest.raises(ValueError, match=r".+"):
            wrong.fit(data)
        assert not wrong.__sklearn_is_fitted__()
    with pytest.raises(TypeError, match="PCA: n_components must be an integer, a share of the variance or None, g"):
        features.PCA("mle").fit(data)
    with pytest.raises(ValueError, match="Normalizer: norm must be one of 'l1', 'l2', 'max', got 'l3'"):
        features.Normalizer("l3").fit_transform(data)
    with pytest.raises(ValueError, match="got 'colour'"):
        features.PCA().set_params(colour="red")
    assert features.PCA().set_params(n_components=2).n_components == 2


def test_integers_become_the_default_float(backend: Backend) -> None:
    result = features.StandardScaler().fit_transform([[1], [3]])
    assert ops.dtype(result) == "float32"
    assert host(result).tolist() == [[-1.0], [1.0]]


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    ops.save(tmp_path / "x.safetensors", {"x": ops.asarray([1.0])})
    with pytest.raises(ValueError, match="load: path must hold a fitted transformation of features, got "):
        features.load(tmp_path / "x.safetensors")


@pytest.mark.parametrize("module", [our_decomposition, scaling, transformer], ids=lambda m: m.__name__)
def test_examples_run(module: Any, backend: Backend) -> None:
    assert doctest.testmod(module).failed == 0


def test_stateless_functions_are_the_operations() -> None:
    assert features.one_hot is ops.one_hot
    assert features.scatter is ops.scatter


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_summed_wide(dtype: str, backend: Backend) -> None:
    """Their squares overflow from 256 on."""
    made = np.random.default_rng(3).normal(size=(40, 3)) * [300.0, 900.0, 40.0]
    given = ops.asarray(made, dtype=dtype)
    rounded = host(ops.cast(given, "float64"))
    for ours, theirs in (
        (features.StandardScaler(), preprocessing.StandardScaler()),
        (features.PCA(2, whiten=True), decomposition.PCA(2, whiten=True)),
        (features.PCA(svd_solver="incremental", batch_size=20), decomposition.PCA()),
    ):
        expected = theirs.fit_transform(rounded)
        for result in (ours.fit(given).transform(given), ours.fit_transform(given)):
            assert ops.dtype(result).name == dtype
            found = host(ops.cast(result, "float64"))
            np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=0.02, atol=0.02 * np.abs(expected).max())


def test_half_types_without_variance_are_whitened_to_zero(backend: Backend) -> None:
    ones = ops.ones((10, 3), dtype="float16")
    for model in (features.PCA(2, whiten=True), features.Whitening(), features.Whitening("pca")):
        assert not host(model.fit(ones).transform(ones)).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_units_are_no_reason_not_to_scale(dtype: str, backend: Backend) -> None:
    made = (np.random.default_rng(4).normal(size=(50, 2)) * 1e-10).astype(dtype)
    found = host(features.RobustScaler().fit_transform(ops.asarray(made)))
    np.testing.assert_allclose(found, preprocessing.RobustScaler().fit_transform(made), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rows", "stops"), [(62, [30, 62]), (63, [30, 60, 63]), (2, [2])], ids=str)
def test_too_few_rows_join_the_batch_before(rows: int, stops: list[int]) -> None:
    starts = [0, *stops[:-1]]
    assert our_decomposition._batches(rows, 30, 3) == list(zip(starts, stops, strict=True))


def test_an_incremental_fit_takes_any_number_of_rows(backend: Backend) -> None:
    data = np.random.default_rng(2).normal(size=(62, 5)).astype("float32")
    whole = features.PCA(3, svd_solver="incremental", batch_size=30).fit(ops.asarray(data))
    parts = features.PCA(3, svd_solver="incremental")
    for portion in (data[:30], data[30:]):
        parts.partial_fit(ops.asarray(portion))
    np.testing.assert_array_equal(host(whole.components_), host(parts.components_))
