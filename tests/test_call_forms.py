"""Calls as NumPy and JAX write them: those in their docstrings, and each form that users commonly write."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docstring_calls as docstrings
import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.nn.tensor import EmberTensor
from ember_ml.testing.samples import calls

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "numpy.md"
LEAST = 0.95

# Functions that examples use to make their data, which would make the share look better than it is.
CREATION = {"array", "asarray", "arange", "empty", "eye", "full", "linspace", "ones", "zeros"}

recorded = functools.cache(docstrings.record)


@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_the_examples_of_numpy_agree(backend: str) -> None:
    recording = recorded("numpy")
    found = docstrings.figures(recording, ember_ml.get_backend())
    print(found)
    assert found.calls > 1200
    assert found.share >= LEAST, found.text()
    others = sum(call.name not in CREATION for call in recording)
    differing = sum(call.name not in CREATION for call, _ in found.reasons)
    assert 1 - differing / others >= LEAST, found.text()
    unlisted = [f"{call.key}\n  {why}" for call, why in found.reasons if call.name.rpartition(".")[2] not in listed()]
    assert not unlisted, f"{PAGE.name} has no reason for these:\n" + "\n".join(unlisted)


def test_what_is_listed_does_differ() -> None:
    # JAX, which would compile each call, has the differences of the others.
    engines = [name for name in ember_ml.get_available_backends() if name != "jax"]
    reasons = [call for name in engines for call, _ in docstrings.figures(recorded("numpy"), name).reasons]
    differing = {call.name.rpartition(".")[2] for call in reasons}
    assert differing, "some calls differ"
    if set(engines) == {"numpy", "torch", "mlx"} and np.__version__.startswith("2.4."):
        assert listed() == differing, "docs/numpy.md lists the functions whose calls differ"


@functools.cache
def listed() -> frozenset[str]:
    """Functions in the first column of the table of calls that differ."""
    table = PAGE.read_text().partition("<!-- calls that differ -->")[2]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return frozenset(name for row in rows for name in re.findall(r"`(\w+)`", row))


def test_the_examples_of_jax_agree(one_in: Callable[[int], int]) -> None:
    """One test for all engines, since JAX compiles each of its examples to record it."""
    pytest.importorskip("jax", reason="JAX, whose docstrings these are, is not installed")
    step = one_in(4)
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            found = docstrings.figures(recorded("jax", step), name)
        print(found)
        assert found.calls > 1000 // step
        assert found.share >= LEAST, found.text()


X = np.array([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]], np.float32)
Y = np.array([[1, 0, 2], [4, 4, 0]], np.int64)
V = np.array([5.0, 1.0, 4.0, 2.0, 3.0], np.float32)
MASK = np.array([[True, False, True], [False, True, True]])
CUBE = np.arange(24).reshape(2, 3, 4)

# Each form in NumPy's spelling: ``f(np)`` is what ``f(ops)`` has to return.
FORMS: dict[str, Callable[[Any], Any]] = {
    "mean(x, 0)": lambda f: f.mean(X, 0),
    "max(x, 0)": lambda f: f.max(X, 0),
    "min(x, 1)": lambda f: f.min(X, 1),
    "sum(x, 0)": lambda f: f.sum(X, 0),
    "sum(x, 0, dtype)": lambda f: f.sum(X, 0, "float64"),
    "prod(x, 1)": lambda f: f.prod(X, 1),
    "var(x, 0)": lambda f: f.var(X, 0),
    "std(x, 0)": lambda f: f.std(X, 0),
    "argmax(x, 1)": lambda f: f.argmax(X, 1),
    "argmin(x, 1)": lambda f: f.argmin(X, 1),
    "sort(x, 0)": lambda f: f.sort(X, 0),
    "argsort(x, 0)": lambda f: f.argsort(X, 0),
    "median(x, 0)": lambda f: f.median(X, 0),
    "quantile(x, q, 0)": lambda f: f.quantile(X, 0.25, 0),
    "cumsum(x, 1)": lambda f: f.cumsum(X, 1),
    "cumprod(x, 1)": lambda f: f.cumprod(X, 1),
    "all(x, 0)": lambda f: f.all(Y, 0),
    "any(x, 0)": lambda f: f.any(Y, 0),
    "flip(x, 0)": lambda f: f.flip(X, 0),
    "roll(x, 1, 0)": lambda f: f.roll(X, 1, 0),
    "repeat(x, 2, 0)": lambda f: f.repeat(X, 2, 0),
    "take(x, i, 1)": lambda f: f.take(X, [0, 2], 1),
    "concatenate((a, b), 1)": lambda f: f.concatenate((X, X), 1),
    "stack((a, b), 1)": lambda f: f.stack((X, X), 1),
    "append(a, b, 0)": lambda f: f.append(X, X, 0),
    "tensordot(a, b, 1)": lambda f: f.tensordot(X, X.T.copy(), 1),
    "tril(x, -1)": lambda f: f.tril(X, -1),
    "triu(x, 1)": lambda f: f.triu(X, 1),
    "eye(3, 4, 1)": lambda f: f.eye(3, 4, 1, "float32"),
    "diff(x, 1)": lambda f: f.diff(X, 1),
    "diff(x, 2, 0)": lambda f: f.diff(CUBE, 2, 1),
    "fft(x, n)": lambda f: getattr(f.fft, "fft", f.fft)(V, 4),
    "zeros(2, int)": lambda f: f.zeros(2, int),
    "zeros(n, np.int64)": lambda f: f.zeros(np.int64(2), np.int64),
    "zeros((2,), dtype)": lambda f: f.zeros((2,), "float32"),
    "ones((2,), dtype)": lambda f: f.ones((2,), "int32"),
    "full((2,), 7, dtype)": lambda f: f.full((2,), 7, "float32"),
    "asarray(x, dtype)": lambda f: f.asarray([1, 2], "float32"),
    "arange(0, 4, 2, dtype)": lambda f: f.arange(0, 4, 2, "float32"),
    "zeros_like(x, dtype)": lambda f: f.zeros_like(X, "int32"),
    "count_nonzero(x, 0)": lambda f: f.count_nonzero(Y, 0),
    "searchsorted(a, v, side)": lambda f: f.searchsorted(np.array([1, 2, 2, 3]), [2], "right"),
    "trace(x, 1)": lambda f: f.trace(X, 1),
    "sum(where=)": lambda f: f.sum(X, where=MASK, axis=1),
    "sum(initial=)": lambda f: f.sum(X, initial=10),
    "prod(where=, initial=)": lambda f: f.prod(X, where=MASK, initial=2, axis=0),
    "mean(where=)": lambda f: f.mean(X, where=MASK, axis=0),
    "mean(dtype=)": lambda f: f.mean(X, dtype="float64"),
    "var(where=)": lambda f: f.var(X, where=MASK, axis=1),
    "std(where=, keepdims)": lambda f: f.std(X, where=MASK, axis=1, keepdims=True),
    "var(ddof=)": lambda f: f.var(X, ddof=1),
    "std(ddof=)": lambda f: f.std(X, axis=1, ddof=1),
    "var(mean=)": lambda f: f.var(X, axis=1, mean=f.mean(X, axis=1, keepdims=True)),
    "nanvar(ddof=)": lambda f: f.nanvar(X, axis=1, ddof=1),
    "cov(ddof=)": lambda f: f.cov(X, ddof=0),
    "max(initial=, where=)": lambda f: f.max(X, axis=0, initial=-1, where=MASK),
    "min(initial=)": lambda f: f.min(X, initial=0),
    "max of nothing, initial=": lambda f: f.max(np.zeros((0, 2), np.float32), axis=0, initial=3),
    "all(where=)": lambda f: f.all(Y, where=MASK, axis=1),
    "any(where=)": lambda f: f.any(Y, where=~MASK, axis=1),
    "nansum(where=)": lambda f: f.nansum(np.array([1, np.nan, 3], np.float32), where=np.array([True, True, False])),
    "nanmean(where=)": lambda f: f.nanmean(np.array([1, np.nan, 3], np.float32), where=np.array([True, True, False])),
    "nanmax(initial=)": lambda f: f.nanmax(np.array([1, np.nan], np.float32), initial=2),
    "where(mask)": lambda f: f.where(MASK),
    "sort(axis=None)": lambda f: f.sort(X, axis=None),
    "sort(kind=)": lambda f: f.sort(X, kind="stable"),
    "argsort(axis=None)": lambda f: f.argsort(X, axis=None),
    "take_along_axis(axis=None)": lambda f: f.take_along_axis(X, np.array([0, 5]), axis=None),
    "argpartition(axis=None)": lambda f: f.take(f.ravel(X), f.argpartition(X, 2, axis=None)[2:3]),
    "partition(kth=)": lambda f: f.partition(V, kth=2)[2],
    "diagonal(axis1=, axis2=)": lambda f: f.diagonal(CUBE, axis1=0, axis2=1),
    "diagonal(offset, axis1, axis2)": lambda f: f.diagonal(CUBE, 1, 1, 2),
    "trace(axis1=, axis2=)": lambda f: f.trace(CUBE, axis1=0, axis2=1),
    "linspace of arrays": lambda f: f.linspace(V[:2], V[2:4], 4),
    "linspace of arrays, axis=": lambda f: f.linspace(V[:2], V[2:4], 4, axis=-1),
    "linspace without the end": lambda f: f.linspace(V[:2], V[2:4], 4, False),
    "logspace of arrays": lambda f: f.logspace(V[:2], V[2:4], 3, base=2.0),
    "logspace, several bases": lambda f: f.logspace(1, 3, 3, base=V[:2]),
    "geomspace of arrays": lambda f: f.geomspace(V[:2], V[2:4], 3),
    "linspace(retstep=)": lambda f: f.linspace(2.0, 3.0, 5, retstep=True),
    "linspace(endpoint, retstep)": lambda f: f.linspace(2.0, 3.0, 5, False, True),
    "linspace by name": lambda f: f.linspace(start=0, stop=1, num=3),
    "meshgrid(sparse=)": lambda f: f.meshgrid(V[:2], V[2:], sparse=True),
    "meshgrid(sparse=, ij)": lambda f: f.meshgrid(V[:2], V[2:], sparse=True, indexing="ij"),
    "angle(deg=)": lambda f: f.angle(np.array([1 + 1j, -1], np.complex64), deg=True),
    "array(ndmin=)": lambda f: f.array([1, 2], ndmin=2),
    "vander(N=)": lambda f: f.vander(V, N=3),
    "einsum(optimize=)": lambda f: f.einsum("ij,kj->ik", X, X, optimize=True),
    "einsum of sublists": lambda f: f.einsum(X, [0, 1], X, [2, 1], [0, 2]),
    "einsum of sublists, implicit": lambda f: f.einsum(X, [1, 0]),
    "einsum of sublists, ellipsis": lambda f: f.einsum(CUBE, [..., 0], [...]),
    "take(mode=clip)": lambda f: f.take(X, [0, 9], axis=1, mode="clip"),
    "take(mode=wrap)": lambda f: f.take(X, [-4, 3], axis=1, mode="wrap"),
    "ravel_multi_index(mode=)": lambda f: f.ravel_multi_index(([5, 1], [1, 7]), (4, 6), mode=("clip", "wrap")),
    "cross(axisa=, axisb=)": lambda f: f.cross(np.eye(3)[:, :2], np.ones((3, 2)), axisa=0, axisb=0),
    "weighted quantile": lambda f: f.quantile(V, [0.2, 0.5, 1.0], weights=[1, 2, 3, 0, 1], method="inverted_cdf"),
    "weighted percentile, axis": lambda f: f.percentile(X, 40, axis=1, weights=[1, 2, 1], method="inverted_cdf"),
    "size(x, axis)": lambda f: f.size(X, 1),
    "size(axis=)": lambda f: f.size(X, axis=(0, 1)),
    "zeros_like(shape=)": lambda f: f.zeros_like(X, shape=(2, 2)),
    "ones_like(shape=)": lambda f: f.ones_like(Y, shape=(3,)),
    "full_like(shape=)": lambda f: f.full_like(X, 7, shape=()),
    "dtype code f4": lambda f: f.zeros(2, dtype="f4"),
    "dtype code i8": lambda f: f.ones(2, dtype="i8"),
    "dtype code <f8": lambda f: f.asarray([1.5], dtype="<f8"),
    "reshape with -1": lambda f: f.reshape(X, (3, -1)),
    "pad(mode=mean)": lambda f: f.pad(X, 1, "mean"),
    "pad(mode=median) of integers": lambda f: f.pad(Y, ((1, 0), (2, 1)), "median"),
    "pad(mode=maximum, stat_length=)": lambda f: f.pad(V, (2, 1), "maximum", stat_length=2),
    "pad(mode=minimum)": lambda f: f.pad(X, (1, 2), "minimum"),
    "pad(mode=linear_ramp)": lambda f: f.pad(V, (2, 3), "linear_ramp", end_values=(9, -4)),
    "pad(mode=linear_ramp) of integers": lambda f: f.pad(Y, 2, "linear_ramp", end_values=7),
    "pad(reflect, odd)": lambda f: f.pad(V, (3, 2), "reflect", reflect_type="odd"),
    "pad(symmetric, odd)": lambda f: f.pad(X, (2, 2), "symmetric", reflect_type="odd"),
    "pad by a dictionary": lambda f: f.pad(X, {-1: (1, 2)}),
    "svd(compute_uv=)": lambda f: f.linalg.svd(X, compute_uv=False),
    "qr(mode=r)": lambda f: f.abs(f.linalg.qr(X, mode="r")),
    "nan_to_num(copy=)": lambda f: f.nan_to_num(np.array([np.nan], np.float32), copy=True),
    "nextafter of integers": lambda f: f.nextafter(1, 2) > 1,
    "unravel_index(shape=)": lambda f: f.unravel_index([1, 5], shape=(2, 3)),
    "moveaxis by name": lambda f: f.moveaxis(CUBE, source=0, destination=-1),
}

# Forms of other libraries than NumPy, and what they mean in its terms.
OTHERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "ones(2, 3)": (lambda: ops.ones(2, 3), np.ones((2, 3), np.float32)),
    "zeros(2, 3, dtype=)": (lambda: ops.zeros(2, 3, dtype="int32"), np.zeros((2, 3), np.int32)),
    "ones(n, n)": (lambda: ops.ones(np.int64(2), 3), np.ones((2, 3), np.float32)),
    "empty(2, 3)": (lambda: ops.shape(ops.empty(2, 3)), (2, 3)),
    "reshape(x, 3, 2)": (lambda: ops.reshape(X, 3, 2), X.reshape(3, 2)),
    "reshape(x, 3, -1)": (lambda: ops.reshape(X, 3, -1), X.reshape(3, 2)),
    "transpose(x, 1, 0)": (lambda: ops.transpose(X, 1, 0), X.T),
    "transpose(x, 0) of a vector": (lambda: ops.transpose(V, 0), V),
    "transpose(x, 2, 0, 1)": (lambda: ops.transpose(CUBE, 2, 0, 1), CUBE.transpose(2, 0, 1)),
    # NumPy 2.5 takes vectors of three components alone.
    "cross of two components": (
        lambda: ops.cross(np.array([1.0, 2.0, 0.0]), np.array([4.0, 5.0])),
        np.array([0.0, 0.0, -3.0]),
    ),
    "cross of two and two components": (lambda: ops.cross(V[:2], V[2:4]), V[0] * V[3] - V[1] * V[2]),
    "logsumexp(x, 0)": (lambda: ops.logsumexp(X, 0), np.log(np.exp(X).sum(0))),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_a_form_of_numpy(backend: str, name: str) -> None:
    why = docstrings.disagreement(FORMS[name](ops), FORMS[name](np), compare_values=True)
    assert why is None, why


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_a_form_of_others(backend: str, name: str) -> None:
    call, expected = OTHERS[name]
    why = docstrings.disagreement(call(), expected, compare_values=True)
    assert why is None, why


@pytest.mark.parametrize("method", ops.stats._METHODS)
@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_quantiles_round_as_numpy_does(backend: str, method: str) -> None:
    rng = np.random.default_rng(0)
    levels = [0, 0.1, 0.125, 0.25, 1 / 3, 0.5, 0.6, 0.75, 0.9, 1]
    for count in range(1, 12):
        x = rng.permutation(count * 3).astype("float64")[:count]
        expected = np.quantile(x, levels, method=method)
        assert np.allclose(ops.to_numpy(ops.quantile(x, levels, method=method)), expected, rtol=1e-6), count
        expected = np.percentile(x, [level * 100 for level in levels], method=method)
        found = ops.percentile(x, [level * 100 for level in levels], method=method)
        assert np.allclose(ops.to_numpy(found), expected, rtol=1e-6), count
        with_nan = ops.nanquantile(np.append(x, np.nan), levels, method=method)
        assert np.allclose(ops.to_numpy(with_nan), np.nanquantile(np.append(x, np.nan), levels, method=method)), count


@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_a_form_computes_on_the_engine_of_its_tensors(backend: str) -> None:
    here = ember_ml.get_backend()
    x = ops.asarray([1.0, 2.0])
    for other in ember_ml.get_available_backends():
        # NumPy arrays are of no engine but that which is active.
        if here != "numpy":
            with ember_ml.use_backend(other):
                for result in (ops.linspace(x, 5, 3), ops.sum(x, where=[True, False]), ops.ones_like(x, shape=(3,))):
                    assert type(result) is type(x)
    wrapped = ops.sum(EmberTensor([1.0, 2.0]), initial=3)
    assert isinstance(wrapped, EmberTensor)
    assert wrapped.tolist() == 6.0


@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_a_form_has_gradients(backend: str) -> None:
    x = ops.asarray([1.0, 2.0, 3.0])
    mask = [True, False, True]
    assert ember_ml.grad(lambda x: ops.sum(x, where=mask))(x).tolist() == [1.0, 0.0, 1.0]
    assert ember_ml.grad(lambda x: ops.sum(ops.square(ops.reshape(x, 3, 1))))(x).tolist() == [2.0, 4.0, 6.0]
    assert ember_ml.grad(lambda x: ops.var(x, 0, ddof=1))(x).tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_a_form_is_compiled(backend: str) -> None:
    x = ops.asarray([[1.0, 2.0], [3.0, 4.0]])
    compiled = ember_ml.compile(lambda x: ops.sum(ops.reshape(x, 4, 1), 0, where=[[True], [False], [True], [True]]))
    assert compiled(x).tolist() == [8.0]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: ops.sum([1.0], absent=1), TypeError, r"^sum: unknown option 'absent'"),
        (lambda: ops.quantile([1.0], 0.5, dim=0), TypeError, r"^quantile: unknown option 'dim'; did you mean axis="),
        (lambda: ops.sum([1.0], 0, None, True), TypeError, r"^sum\(\) too many positional arguments"),
        (lambda: ops.max([1.0], where=[True]), ValueError, r"^max: initial must be given with where"),
        (lambda: ops.var([1.0], correction=1, ddof=1), ValueError, r"^var: correction and ddof must not both"),
        (lambda: ops.zeros((2,), 3), TypeError, r"^zeros: the arguments must be a shape and a dtype, or lengths"),
        (lambda: ops.zeros(), TypeError, r"^zeros\(\) missing a required argument: 'shape'"),
        (lambda: ops.reshape([1.0], 1, "x"), TypeError, r"^reshape: shape must be integers"),
        (lambda: ops.reshape([1.0]), TypeError, r"^reshape\(\) missing a required argument: 'shape'"),
        (lambda: ops.take([1.0], [0], mode="x"), ValueError, r"^take: mode must be 'raise', 'wrap' or 'clip'"),
        (lambda: ops.quantile([1.0], 0.5, weights=[1]), ValueError, r"^quantile: method must be 'inverted_cdf'"),
        (lambda: ops.vander([1.0], 2, N=2), ValueError, r"^vander: n and N must not both be given"),
        (lambda: ops.pad([1.0], 1, "reflect", reflect_type="x"), ValueError, r"^pad: reflect_type must be"),
        (lambda: ops.transpose(X, 0, 1), TypeError, r"^transpose: two axes must be 1, 0 .* swapaxes\(x, 0, 1\)"),
        (lambda: ops.transpose(CUBE, 1, 0), TypeError, r"^transpose: two axes must be 1, 0 .* swapaxes\(x, 1, 0\)"),
        (lambda: ops.einsum([1.0], 3), TypeError, r"^einsum: equation must be a string"),
    ],
)
@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_what_fits_no_form_raises(backend: str, wrong: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        wrong()
    assert caught.value.__context__ is None or caught.value.__suppress_context__


WITH_FORMS = [operation for operation in REGISTRY.values() if operation.form is not None]


@pytest.mark.parametrize("operation", WITH_FORMS, ids=lambda operation: operation.name)
def test_a_form_accepts_what_is_documented(operation: Operation) -> None:
    form = inspect.signature(operation.form)
    documented = [p for p in inspect.signature(operation.function).parameters.values() if p.kind != p.VAR_POSITIONAL]
    if operation.name == "where":
        documented = documented[:1]
    takes_rest = any(p.kind == p.VAR_POSITIONAL for p in form.parameters.values())
    missing = [p.name for p in documented if p.name not in form.parameters and not (takes_rest and p.default is None)]
    assert missing == []


@pytest.mark.parametrize("operation", WITH_FORMS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("backend", ember_ml.get_available_backends(), indirect=True)
def test_an_option_that_no_form_has_is_named(backend: str, operation: Operation) -> None:
    call = calls(operation)[0]
    with pytest.raises(TypeError, match=rf"^{operation.name}: unknown option 'absent_option'"):
        operation.call(*call.args, **call.kwargs, absent_option=1)
