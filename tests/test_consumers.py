"""Libraries that support the array API standard take an EmberTensor, and return one on the same engine.

SciPy reads its switch when it is imported, so each engine runs in a separate process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

import ember_ml

SCRIPT = '''
import json, sys, warnings
import array_api_extra as xpx
import einops.array_api
import numpy as np
import opt_einsum
import scipy.cluster.vq, scipy.differentiate, scipy.fft, scipy.integrate, scipy.ndimage, scipy.optimize.elementwise
import scipy.signal, scipy.spatial.distance, scipy.spatial.transform, scipy.special, scipy.stats
import sklearn
from sklearn import decomposition, discriminant_analysis, kernel_approximation, linear_model, metrics, mixture
from sklearn import model_selection, naive_bayes, pipeline, preprocessing

import ember_ml
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor

rng = np.random.default_rng(0)
ARRAYS = {
    "X": rng.normal(size=(40, 5)).astype(np.float32),
    "y": rng.integers(0, 2, 40),
    "p": rng.uniform(0.1, 0.9, 40).astype(np.float32),
}
special, stats, signal = scipy.special, scipy.stats, scipy.signal

CALLS = {
    "scipy.special.logsumexp": lambda X, y, p: special.logsumexp(X, axis=0),
    "scipy.special.softmax": lambda X, y, p: special.softmax(X, axis=1),
    "scipy.special.expit": lambda X, y, p: special.expit(X),
    "scipy.special.gammaln": lambda X, y, p: special.gammaln(p),
    "scipy.special.xlogy": lambda X, y, p: special.xlogy(p, p),
    "scipy.stats.zscore": lambda X, y, p: stats.zscore(X),
    "scipy.stats.gmean": lambda X, y, p: stats.gmean(p),
    "scipy.stats.skew": lambda X, y, p: stats.skew(X),
    "scipy.stats.pearsonr": lambda X, y, p: stats.pearsonr(X[:, 0], X[:, 1]).statistic,
    "scipy.stats.ttest_ind": lambda X, y, p: stats.ttest_ind(X[:20, :], X[20:, :]).pvalue,
    "scipy.stats.entropy": lambda X, y, p: stats.entropy(p),
    "scipy.signal.convolve": lambda X, y, p: signal.convolve(p, p[:5], mode="same"),
    "scipy.signal.detrend": lambda X, y, p: signal.detrend(X, axis=0),
    "scipy.signal.hilbert": lambda X, y, p: signal.hilbert(p),
    "scipy.signal.savgol_filter": lambda X, y, p: signal.savgol_filter(p, 7, 2),
    "scipy.fft.fft": lambda X, y, p: scipy.fft.fft(p),
    "scipy.ndimage.gaussian_filter": lambda X, y, p: scipy.ndimage.gaussian_filter(X, 1.0),
    "scipy.integrate.trapezoid": lambda X, y, p: scipy.integrate.trapezoid(p),
    "scipy.optimize.rosen": lambda X, y, p: scipy.optimize.rosen(p),
    "scipy.cluster.vq.whiten": lambda X, y, p: scipy.cluster.vq.whiten(X),
    "array_api_extra.cov": lambda X, y, p: xpx.cov(X.T),
    "array_api_extra.pad": lambda X, y, p: xpx.pad(p, 2),
    "array_api_extra.at": lambda X, y, p: xpx.at(p)[0].set(9.0, copy=True),
    "array_api_extra.one_hot": lambda X, y, p: xpx.one_hot(y, 2),
    "array_api_extra.kron": lambda X, y, p: xpx.kron(p[:3], p[:3]),
    "einops.array_api.rearrange": lambda X, y, p: einops.array_api.rearrange(X, "(a b) c -> a (b c)", a=8),
    "einops.array_api.reduce": lambda X, y, p: einops.array_api.reduce(X, "a b -> b", "max"),
    "sklearn PCA": lambda X, y, p: decomposition.PCA(2, svd_solver="full").fit_transform(X),
    "sklearn Ridge": lambda X, y, p: linear_model.Ridge(solver="svd").fit(X, p).predict(X),
    "sklearn LinearDiscriminantAnalysis": lambda X, y, p: (
        discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(X, y).predict(X)
    ),
    "sklearn GaussianMixture": lambda X, y, p: (
        mixture.GaussianMixture(2, init_params="random", random_state=0, tol=1e-2).fit(X).means_
    ),
    "sklearn StandardScaler": lambda X, y, p: preprocessing.StandardScaler().fit_transform(X),
    "sklearn MinMaxScaler": lambda X, y, p: preprocessing.MinMaxScaler().fit_transform(X),
    "sklearn PolynomialFeatures": lambda X, y, p: preprocessing.PolynomialFeatures().fit_transform(X),
    "sklearn train_test_split": lambda X, y, p: model_selection.train_test_split(X, random_state=0)[0],
    "sklearn rbf_kernel": lambda X, y, p: metrics.pairwise.rbf_kernel(X),
    "sklearn mean_squared_error": lambda X, y, p: metrics.mean_squared_error(X, X * 0.5, multioutput="raw_values"),
    "sklearn confusion_matrix": lambda X, y, p: metrics.confusion_matrix(y, y),
    "scipy.special.betainc": lambda X, y, p: special.betainc(p, p, p),
    "scipy.special.ndtri": lambda X, y, p: special.ndtri(p),
    "scipy.special.stdtr": lambda X, y, p: special.stdtr(p, p),
    "scipy.stats.kurtosistest": lambda X, y, p: stats.kurtosistest(X).pvalue,
    "scipy.stats.bartlett": lambda X, y, p: stats.bartlett(p[:20], p[20:]).pvalue,
    "scipy.stats.rankdata": lambda X, y, p: stats.rankdata(p),
    "scipy.stats.mannwhitneyu": lambda X, y, p: stats.mannwhitneyu(p[:20], p[20:]).pvalue,
    "scipy.stats.quantile": lambda X, y, p: stats.quantile(p, 0.3),
    "scipy.stats.directional_stats": lambda X, y, p: stats.directional_stats(X[:, :3]).mean_direction,
    "scipy.stats.circmean": lambda X, y, p: stats.circmean(p),
    "scipy.signal.fftconvolve": lambda X, y, p: signal.fftconvolve(p, p[:5]),
    "scipy.signal.resample_poly": lambda X, y, p: signal.resample_poly(p, 2, 1),
    "scipy.signal.lfilter": lambda X, y, p: signal.lfilter(p[:2], p[:1], p),
    "scipy.signal.medfilt": lambda X, y, p: signal.medfilt(p, 3),
    "scipy.ndimage.zoom": lambda X, y, p: scipy.ndimage.zoom(X, 2),
    "scipy.ndimage.maximum_filter": lambda X, y, p: scipy.ndimage.maximum_filter(X, 3),
    "scipy.fft.dct": lambda X, y, p: scipy.fft.dct(p),
    "scipy.integrate.cumulative_simpson": lambda X, y, p: scipy.integrate.cumulative_simpson(p),
    "scipy.integrate.tanhsinh": lambda X, y, p: scipy.integrate.tanhsinh(lambda x: x**2, p * 0, p).integral,
    "scipy.optimize.elementwise.find_root": lambda X, y, p: (
        scipy.optimize.elementwise.find_root(lambda x: x - 0.3, (p * 0, p * 0 + 1)).x
    ),
    "scipy.differentiate.derivative": lambda X, y, p: scipy.differentiate.derivative(lambda x: x * x, p).df,
    "scipy.spatial.distance.pdist": lambda X, y, p: scipy.spatial.distance.pdist(X),
    "scipy.spatial.transform.Rotation": lambda X, y, p: (
        scipy.spatial.transform.Rotation.from_quat(X[:, :4]).as_matrix()
    ),
    "array_api_extra.apply_where": lambda X, y, p: xpx.apply_where(p > 0.5, p, lambda x: x * 2, fill_value=0.0),
    "array_api_extra.setdiff1d": lambda X, y, p: xpx.setdiff1d(p, p[:5]),
    "einops.array_api.repeat": lambda X, y, p: einops.array_api.repeat(X, "a b -> a b c", c=2),
    "einops.array_api.pack": lambda X, y, p: einops.array_api.pack([X, X], "* b")[0],
    "opt_einsum.contract": lambda X, y, p: (
        opt_einsum.contract("ab,cb,c->a", X, X, p, backend="ember_ml.ops" if hasattr(X, "native") else "auto")
    ),
    "numpy.std": lambda X, y, p: np.std(X, axis=0, ddof=1),
    "sklearn PCA of a covariance": lambda X, y, p: (
        decomposition.PCA(2, svd_solver="covariance_eigh").fit(X).explained_variance_
    ),
    "sklearn Nystroem": lambda X, y, p: (
        kernel_approximation.Nystroem(n_components=5, random_state=0).fit_transform(X)
    ),
    "sklearn GaussianNB": lambda X, y, p: naive_bayes.GaussianNB().fit(X, y).predict_proba(X),
    "sklearn Pipeline": lambda X, y, p: (
        pipeline.make_pipeline(preprocessing.MaxAbsScaler(), linear_model.Ridge(solver="svd")).fit(X, p).predict(X)
    ),
    "sklearn cross_val_predict": lambda X, y, p: (
        model_selection.cross_val_predict(discriminant_analysis.LinearDiscriminantAnalysis(), X, y)
    ),
    "sklearn precision_recall_curve": lambda X, y, p: metrics.precision_recall_curve(y, p)[0],
    "sklearn cosine_similarity": lambda X, y, p: metrics.pairwise.cosine_similarity(X),
    "sklearn f1_score": lambda X, y, p: metrics.f1_score(y, 1 - y),
    "sklearn r2_score": lambda X, y, p: metrics.r2_score(p, p * 0.9),
    "sklearn log_loss": lambda X, y, p: metrics.log_loss(y, p),
    "sklearn roc_auc_score": lambda X, y, p: metrics.roc_auc_score(y, p),
    "sklearn roc_auc_score of weights": lambda X, y, p: metrics.roc_auc_score(y, p, sample_weight=p),
    "sklearn roc_auc_score of a part": lambda X, y, p: metrics.roc_auc_score(y, p, max_fpr=0.5),
    "sklearn roc_curve": lambda X, y, p: metrics.roc_curve(y, p)[0],
    "sklearn roc_curve of weights": lambda X, y, p: metrics.roc_curve(y, p, sample_weight=p)[1],
    "sklearn roc_curve of all thresholds": lambda X, y, p: metrics.roc_curve(y, p, drop_intermediate=False)[1],
}


def outcome(name, call, engine):
    """The type of the result, and how far it is from the result for NumPy arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = np.asarray(call(**ARRAYS))
        tensors = {key: EmberTensor(native[key]) for key in ARRAYS}
        # The engine of the tensors computes, though another one is active.
        result = call(**tensors)
    found = np.asarray(result)
    kind = f"EmberTensor on {result.backend}" if isinstance(result, EmberTensor) else type(result).__name__
    if found.shape != wanted.shape:
        return {"kind": kind, "off": f"shape {found.shape}, not {wanted.shape}"}
    # Vectors of a decomposition have either sign.
    sides = (abs(found), abs(wanted)) if name == "sklearn PCA" else (found, wanted)
    return {"kind": kind, "off": float(np.max(abs(sides[0] - sides[1]) / (1 + abs(sides[1]))))}


def main(engine, active):
    global native
    home = ember_ml.backend.load(engine)
    with ember_ml.use_backend(engine):
        # MLX would take the GPU of a Mac, which has no float64.
        ember_ml.ops.set_default_device("cpu")
    native = {key: home.convert(array, None, None) for key, array in ARRAYS.items()}
    ember_ml.set_backend(active)
    found = {}
    with sklearn.config_context(array_api_dispatch=True):
        for name, call in CALLS.items():
            try:
                found[name] = outcome(name, call, engine)
            except Exception as error:
                found[name] = {"kind": f"{type(error).__name__}: {error}", "off": 0}
    print(json.dumps(found))


main(*sys.argv[1:])
'''

ENGINES = ember_ml.get_available_backends()

# These return a Python float, as they do for any array.
NUMBERS = (
    "sklearn f1_score",
    "sklearn r2_score",
    "sklearn log_loss",
    "sklearn roc_auc_score",
    "sklearn roc_auc_score of weights",
    "sklearn roc_auc_score of a part",
)


@cache
def outcomes(engine: str, active: str) -> dict[str, dict[str, Any]]:
    """What every call came to, on one engine while another may be active."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, engine, active],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_consumers_return_ember_tensors(engine: str) -> None:
    found = outcomes(engine, engine)
    wanted = {name: "float" if name in NUMBERS else f"EmberTensor on {engine}" for name in found}
    assert {name: outcome["kind"] for name, outcome in found.items()} == wanted
    assert len(found) >= 75


@pytest.mark.parametrize("engine", ENGINES)
def test_consumers_compute_what_they_do_for_numpy(engine: str) -> None:
    far = {name: outcome["off"] for name, outcome in outcomes(engine, engine).items() if not within(outcome["off"])}
    assert far == {}


def within(off: Any) -> bool:
    return isinstance(off, float | int) and off < 2e-3


def test_consumers_create_on_the_engine_of_the_tensor() -> None:
    """A consumer asks a tensor for its namespace, and so makes others on its engine, not on the active one."""
    engine = "torch" if "torch" in ENGINES else ENGINES[-1]
    found = outcomes(engine, "numpy")
    wanted = {name: "float" if name in NUMBERS else f"EmberTensor on {engine}" for name in found}
    assert {name: outcome["kind"] for name, outcome in found.items()} == wanted
