"""What the contract cannot say of linear algebra: other libraries agree, failures are one class, signs have a rule."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial.distance
from hypothesis import given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import operation_of
from ember_ml.errors import LinAlgError, UnsupportedError
from ember_ml.testing.comparison import assert_close, host, is_on_cpu

RNG = np.random.default_rng(5)
GENERAL = RNG.normal(size=(3, 5, 5))
TALL = RNG.normal(size=(2, 6, 4))
PHASED = GENERAL + 1j * RNG.normal(size=GENERAL.shape)
DEFINITE = GENERAL @ GENERAL.swapaxes(-2, -1) + np.eye(5)
HERMITIAN = PHASED @ PHASED.conj().swapaxes(-2, -1) + np.eye(5)
SINGULAR = np.asarray([[1.0, 2.0], [2.0, 4.0]], np.float32)


def in_each(backend: Backend, *arrays: np.ndarray) -> list[tuple[float, list[np.ndarray]]]:
    """The arrays in single and in double precision, each with a tolerance, where the engine has the dtype."""
    cases = []
    for tolerance, dtypes in ((2e-4, ("float32", "complex64")), (1e-9, ("float64", "complex128"))):
        cast = [a.astype(dtypes[a.dtype.kind == "c"]) for a in arrays]
        if all(a.dtype.name in backend.dtypes for a in cast):
            cases.append((tolerance, cast))
    return cases


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-2, -1)


@pytest.mark.parametrize("x", [GENERAL, PHASED], ids=["real", "complex"])
@pytest.mark.parametrize("name", ["inv", "det", "pinv", "matrix_rank"])
def test_functions_of_one_matrix_are_numpy(backend: Backend, name: str, x: np.ndarray) -> None:
    for tolerance, (a,) in in_each(backend, x):
        assert_close(host(getattr(ops, name)(a)), getattr(np.linalg, name)(x), tolerance * 10)


@pytest.mark.parametrize("x", [TALL, GENERAL, PHASED, TALL.swapaxes(-2, -1)], ids=["tall", "square", "complex", "wide"])
def test_factors_multiply_to_the_matrix(backend: Backend, x: np.ndarray) -> None:
    m, n = x.shape[-2:]
    k = min(m, n)
    for tolerance, (a,) in in_each(backend, x):
        p, lower, upper = map(host, ops.linearalg.lu(a))
        assert_close(p @ lower @ upper, x, tolerance)
        for mode, width in (("reduced", k), ("complete", m)):
            q, r = map(host, ops.linearalg.qr(a, mode=mode))
            assert q.shape[-1] == width
            assert_close(q @ r, x, tolerance)
            assert_close(
                adjoint(q) @ q, np.broadcast_to(np.eye(width, dtype=q.dtype), (len(x), width, width)), tolerance
            )
            assert (np.diagonal(r, 0, -2, -1).real >= 0).all()
        for full in (True, False):
            u, s, vh = map(host, ops.linearalg.svd(a, full_matrices=full))
            assert u.shape[-1] == (m if full else k)
            assert vh.shape[-2] == (n if full else k)
            assert_close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, tolerance)
            assert_close(s, np.linalg.svdvals(x), tolerance)


@pytest.mark.parametrize("x", [GENERAL, PHASED], ids=["real", "complex"])
def test_eigenvectors_are_eigenvectors(backend: Backend, x: np.ndarray) -> None:
    for a in (x.astype("float32" if x.dtype.kind == "f" else "complex64"),):
        values, vectors = map(host, ops.eig(a))
        assert values.dtype == vectors.dtype == np.complex64
        assert_close(a @ vectors, vectors * values[..., None, :], 2e-4)
        assert_close(host(ops.eigvals(a)), values, 2e-4)
        assert_close(np.sort_complex(values[0]), np.sort_complex(np.linalg.eigvals(x[0])), 2e-4)


@pytest.mark.parametrize("x", [DEFINITE, HERMITIAN], ids=["real", "complex"])
def test_symmetric_matrices(backend: Backend, x: np.ndarray) -> None:
    for tolerance, (a,) in in_each(backend, x):
        values, vectors = map(host, ops.eigh(a))
        assert_close(values, np.linalg.eigvalsh(x), tolerance)
        assert_close(x @ vectors, vectors * values[..., None, :], tolerance * 10)
        factor = host(ops.cholesky(a))
        assert_close(factor, np.linalg.cholesky(x), tolerance * 10)
        assert_close(host(ops.cholesky(a, upper=True)), adjoint(factor), tolerance)
        assert_close(host(ops.cholesky_inverse(ops.cholesky(a))), np.linalg.inv(x), tolerance * 10)
        assert_close(host(ops.sqrtm_spd(a))[0], scipy.linalg.sqrtm(x[0]), tolerance * 10)
        assert_close(host(ops.logm_spd(a))[0], scipy.linalg.logm(x[0]), tolerance * 10)


@pytest.mark.parametrize("name", ["eigh", "eig", "svd", "complex eigh"])
def test_vectors_follow_the_sign_rule(backend: Backend, name: str) -> None:
    a = (HERMITIAN if "complex" in name else DEFINITE + GENERAL * (name != "eigh")).astype(
        "complex64" if "complex" in name else "float32"
    )
    found = getattr(ops, name.split()[-1])(a)
    vectors = host(found[0] if name == "svd" else found[1])
    size = np.abs(vectors)
    lead = np.argmax(size >= 0.99 * size.max(-2, keepdims=True), -2)
    components = np.take_along_axis(vectors, lead[..., None, :], -2)
    assert (components.real > 0).all()
    assert np.abs(components.imag).max() < 1e-6


def test_equal_components_leave_no_doubt(backend: Backend) -> None:
    vectors = host(ops.eigh(np.ones((2, 2), np.float32) + np.eye(2, dtype=np.float32)).eigenvectors)
    assert_close(vectors, np.asarray([[1, 1], [-1, 1]]) / np.sqrt(2), 1e-6)


def test_eigenvalues_rise_by_real_then_by_imaginary_part(backend: Backend) -> None:
    turns = np.zeros((5, 5), np.float32)
    turns[0, 1], turns[1, 0], turns[2, 3], turns[3, 2], turns[4, 4] = 1, -1, 2, -2, -3
    assert_close(host(ops.eigvals(turns)), np.asarray([-3, -2j, -1j, 1j, 2j]), 1e-6)


@pytest.mark.parametrize("options", [{}, {"lower": True}, {"adjoint": True}, {"lower": True, "adjoint": True}])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles_are_solved_as_by_scipy(backend: Backend, options: dict[str, bool], unit: bool) -> None:
    x = RNG.normal(size=(150, 150)) / 150 + np.eye(150)
    b = RNG.normal(size=(150, 3))
    trans = "C" if options.get("adjoint") else "N"
    expected = scipy.linalg.solve_triangular(x, b, trans=trans, lower=options.get("lower", False), unit_diagonal=unit)
    for tolerance, (a, right) in in_each(backend, x, b):
        assert_close(host(ops.solve_triangular(a, right, unit_diagonal=unit, **options)), expected, tolerance)


def test_large_factorisations_are_scipy(backend: Backend) -> None:
    x = RNG.normal(size=(70, 70))
    factors, pivots = ops.lu_factor(x)
    expected, rows = scipy.linalg.lu_factor(x)
    assert_close(host(factors), expected, 1e-8)
    assert host(pivots).tolist() == rows.tolist()


def test_least_squares_are_numpy(backend: Backend) -> None:
    b = RNG.normal(size=(6, 3))
    expected = np.linalg.lstsq(TALL[0], b, rcond=None)
    for tolerance, (a, right) in in_each(backend, TALL[0], b):
        found = ops.lstsq(a, right)
        for mine, theirs in zip(found, expected, strict=True):
            assert_close(host(mine), theirs, tolerance)
        assert found.rank.tolist() == 4


@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 30.0])
def test_exponentials_are_scipy(backend: Backend, size: float) -> None:
    x = (GENERAL - GENERAL.swapaxes(-2, -1)) * size
    for tolerance, (a,) in in_each(backend, x):
        assert_close(host(ops.expm(a)), scipy.linalg.expm(x), tolerance * 5)
    assert_close(host(ops.expm(ops.logm_spd(DEFINITE))), DEFINITE, 1e-8)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0, float("inf")])
def test_distances_are_scipy(backend: Backend, p: float) -> None:
    metric = {"metric": "chebyshev"} if p == float("inf") else {"metric": "minkowski", "p": p}
    expected = scipy.spatial.distance.cdist(TALL[0], TALL[1], **metric)
    assert_close(host(ops.cdist(TALL[0], TALL[1], p)), expected, 1e-9)


def test_close_points_keep_their_distance(backend: Backend) -> None:
    points = np.asarray([[1000.0, 1000.0]] * 40, np.float32)
    assert_close(host(ops.cdist(points, points + np.float32(0.25))), np.full((40, 40), 0.25 * np.sqrt(2)), 1e-5)


def test_numpy_has_its_own_distances_of_many_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are several times faster than the definition."""
    x = RNG.normal(size=(40, 3))
    monkeypatch.setattr(operation_of(ops.cdist), "definition", lambda *args: pytest.fail("the definition is called"))
    with ember_ml.use_backend("numpy"):
        assert_close(host(ops.cdist(x, x[:5])), scipy.spatial.distance.cdist(x, x[:5]), 1e-6)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_and_conditions_are_numpy(backend: Backend, order: Any) -> None:
    for tolerance, (a,) in in_each(backend, GENERAL):
        assert_close(host(ops.norm(a[0], order)), np.linalg.norm(GENERAL[0], order), tolerance)
        assert_close(host(ops.norm(a, order, (0, 2))), np.linalg.norm(GENERAL, order, (0, 2)), tolerance)
        assert_close(host(ops.linearalg.cond(a, order)), np.linalg.cond(GENERAL, order), tolerance * 10)


EQUATIONS = {
    "ab,bc,cd,de->ae": [(4, 5), (5, 2), (2, 6), (6, 3)],
    "ab,ac,ad->bcd": [(3, 2), (3, 4), (3, 5)],
    "...ab,...bc,...cd->...ad": [(2, 3, 4), (4, 5), (2, 5, 2)],
    "abc,bcd,d": [(2, 3, 4), (3, 4, 5), (5,)],
    "aab,bc->ac": [(3, 3, 4), (4, 2)],
    "a...,...->a...": [(3, 2, 2), (2, 2)],
    "abab->ab": [(2, 3, 2, 3)],
    "ab,cd,ef->": [(2, 3), (4, 5), (2, 2)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_is_numpy(backend: Backend, equation: str) -> None:
    operands = [RNG.normal(size=shape) for shape in EQUATIONS[equation]]
    whole = [np.round(x * 3).astype(np.int64) for x in operands]
    assert_close(host(ops.einsum(equation, *operands)), np.einsum(equation, *operands), 1e-9)
    assert host(ops.einsum(equation, *whole)).tolist() == np.einsum(equation, *whole).tolist()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_einsum_of_any_equation_is_numpy(data: st.DataObject) -> None:
    sizes = {"a": 2, "b": 3, "c": 1, "d": 4}
    label = st.sampled_from("abcd")
    terms = data.draw(st.lists(st.lists(label, max_size=3, unique=True).map("".join), min_size=1, max_size=4))
    used = sorted(set("".join(terms)))
    output = "".join(data.draw(st.permutations(used)))[: data.draw(st.integers(0, len(used)))]
    operands = [np.arange(np.prod([sizes[x] for x in t], dtype=int)).reshape([sizes[x] for x in t]) - 2 for t in terms]
    equation = f"{','.join(terms)}->{output}"
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            assert host(ops.einsum(equation, *operands)).tolist() == np.einsum(equation, *operands).tolist()


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["int8", "uint8", "int32", "int64", "uint32"]), st.integers(0, 3), st.integers(0, 3))
def test_integer_products_wrap_as_numpy_does(dtype: str, rows: int, columns: int) -> None:
    limits = np.iinfo(dtype)
    a = RNG.integers(limits.min, limits.max, (rows, 3), dtype, endpoint=True)
    b = RNG.integers(limits.min, limits.max, (3, columns), dtype, endpoint=True)
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            assert host(ops.matmul(a, b)).tolist() == (a @ b).tolist()


NAN = np.asarray([[np.nan, 1.0], [1.0, 1.0]], np.float32)
ENDLESS = np.asarray([[np.inf, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]], np.float32)

FAILURES: dict[str, Callable[[], Any]] = {
    "inv": lambda: ops.inv(SINGULAR * 0),
    "inv in a batch": lambda: ops.inv(np.stack([np.eye(2, dtype=np.float32), SINGULAR])),
    "solve": lambda: ops.solve(SINGULAR, SINGULAR),
    "solve in a batch": lambda: ops.solve(np.stack([np.eye(2, dtype=np.float32), SINGULAR]), SINGULAR),
    "complex solve": lambda: ops.solve(SINGULAR.astype(np.complex64), SINGULAR),
    "matrix_power": lambda: ops.matrix_power(SINGULAR, -1),
    "cholesky": lambda: ops.cholesky(-np.eye(2, dtype=np.float32)),
    "cholesky of a large matrix": lambda: ops.cholesky(np.diag(np.r_[np.ones(149), -1e-3]).astype(np.float32)),
    "cholesky in a batch": lambda: ops.cholesky(np.stack([np.eye(2), [[1, 2], [2, 1]]]).astype(np.float32)),
    "cholesky of nan": lambda: ops.cholesky(NAN),
    "cholesky of infinity": lambda: ops.cholesky(ENDLESS),
    "complex cholesky": lambda: ops.cholesky(np.asarray([[1, 2j], [-2j, 1]], np.complex64)),
    "solve_triangular": lambda: ops.solve_triangular(SINGULAR * 0, SINGULAR),
    "logm_spd": lambda: ops.logm_spd(-np.eye(2, dtype=np.float32)),
    "sqrtm_spd": lambda: ops.sqrtm_spd(-np.eye(2, dtype=np.float32)),
    "svd": lambda: ops.svd(NAN),
    "svd of infinity": lambda: ops.svd(ENDLESS),
    "svdvals": lambda: ops.svdvals(NAN),
    "svdvals of infinity": lambda: ops.svdvals(ENDLESS),
    "svdvals of infinities": lambda: ops.svdvals(np.full((3, 3), np.inf, np.float32)),
    "eigvalsh": lambda: ops.eigvalsh(NAN),
    "eigvalsh of infinity": lambda: ops.eigvalsh(ENDLESS),
    "eigvalsh in a batch": lambda: ops.eigvalsh(np.stack([SINGULAR, NAN])),
    "eigh of a single infinity": lambda: ops.eigh(np.full((1, 1), np.inf, np.float32)),
    "sqrtm_spd of infinity": lambda: ops.sqrtm_spd(np.diag([4.0, np.inf])),
    "eigh": lambda: ops.eigh(NAN),
    "eigh of infinity": lambda: ops.eigh(ENDLESS),
    "eig": lambda: ops.eig(NAN),
    "eigvals": lambda: ops.eigvals(NAN),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_one_class(backend: Backend, name: str) -> None:
    if name == "cholesky of infinity" and backend.name == "torch" and not is_on_cpu(backend):
        pytest.skip("the GPU's own takes infinity for a number, and a look at every matrix would cost every call")
    with pytest.raises(LinAlgError):
        FAILURES[name]()


def test_a_matrix_with_nan_has_an_inverse_of_nan(backend: Backend) -> None:
    result = host(ops.inv(np.stack([NAN, np.diag([2.0, 4.0])])))
    np.testing.assert_array_equal(result, [np.full((2, 2), np.nan), np.diag([0.5, 0.25])])


def test_a_determinant_of_nan_has_the_sign_zero(backend: Backend) -> None:
    sign, size = (host(part) for part in ops.slogdet(np.diag([np.nan, 1.0])))
    assert sign == 0
    assert np.isnan(size)


LOST: dict[str, tuple[np.ndarray, ...]] = {
    "inv": (SINGULAR,),
    "cholesky": (-np.eye(2, dtype=np.float32),),
    "solve": (SINGULAR, np.eye(2, dtype=np.float32)),
    "solve_triangular": (np.diag([1.0, 0.0]).astype(np.float32), np.eye(2, dtype=np.float32)),
    "svd": (ENDLESS,),
    "svdvals": (np.full((3, 3), np.inf, np.float32),),
    "eigh": (ENDLESS,),
    "eigvalsh": (NAN,),
    "eig": (NAN,),
    "eigvals": (NAN,),
}


@pytest.mark.parametrize("backend", [b for b in ember_ml.get_available_backends() if b == "mlx"], indirect=True)
@pytest.mark.parametrize("name", LOST)
def test_a_failure_that_nobody_looks_for_is_nan(backend: Backend, name: str) -> None:
    """MLX may wait for ever for the thread in which LAPACK failed, and LAPACK end the process: neither is asked."""
    single = getattr(ops.linearalg, name)
    arrays = [ops.asarray(x) for x in LOST[name]]
    batch = [ops.stack([x, ops.eye(x.shape[-1])]) for x in arrays]
    with ember_ml.unchecked():
        found = [single(*arrays), single(*batch)]
    found += [ember_ml.compile(single)(*arrays), ember_ml.compile(single)(*batch)]
    for i, result in enumerate(found):
        for part in result if isinstance(result, tuple) else (result,):
            values = host(part)
            assert np.isnan(values[0] if i % 2 else values).any()
            assert not i % 2 or np.isfinite(values[1]).all()


def test_what_is_above_the_diagonal_does_not_count(backend: Backend) -> None:
    x = np.asarray([[2.0, np.nan], [1.0, 2.0]], np.float32)
    assert_close(host(ops.eigvalsh(x)), np.asarray([1.0, 3.0]), 1e-6)
    assert_close(host(ops.eigh(x).eigenvalues), np.asarray([1.0, 3.0]), 1e-6)


def test_triangles_keep_their_digits(backend: Backend) -> None:
    """Rows of very different sizes: exchanging them, as for other matrices, would leave no digit."""
    rng = np.random.default_rng(7)
    x = np.tril(rng.normal(size=(40, 40))) * 10.0 ** rng.uniform(-4, 4, (40, 1))
    b = rng.normal(size=40)
    exact = np.zeros(40, np.longdouble)
    for i in range(40):
        exact[i] = (b[i] - x[i, :i].astype(np.longdouble) @ exact[:i]) / x[i, i]
    for a, lower in ((x, True), (x[::-1, ::-1], False)):
        found = host(ops.solve_triangular(a, b[:: 1 if lower else -1], lower=lower))[:: 1 if lower else -1]
        assert np.max(np.abs(found / exact - 1)) < 1e-9
    phased = (x[:12, :12] * (1 + 0.5j)).astype(np.complex64)
    found = host(ops.solve_triangular(phased, b[:12].astype(np.complex64), lower=True))
    assert np.max(np.abs(found * (1 + 0.5j) / exact[:12] - 1)) < 1e-2


@pytest.mark.parametrize("lower", [True, False])
def test_a_diagonal_of_ones_is_not_looked_at(backend: Backend, lower: bool) -> None:
    x = np.asarray([[np.nan, 2.0], [3.0, np.inf]])
    expected = [1.0, -2.0] if lower else [-1.0, 1.0]
    found = ops.solve_triangular(x, np.ones(2), lower=lower, unit_diagonal=True)
    assert host(found).tolist() == expected


def test_roots_of_large_matrices(backend: Backend) -> None:
    assert_close(host(ops.sqrtm_spd(np.diag([4e30, 9e30]).astype(np.float32))), np.diag([2e15, 3e15]), 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sqrtm_spd", "logm_spd"])
def test_equal_eigenvalues_have_gradients(backend: Backend, name: str, dtype: str) -> None:
    """At four times the identity both gradients are a quarter, also where rounding separates the eigenvalues."""
    turn = np.linalg.qr(np.random.default_rng(7).normal(size=(4, 4)))[0]
    weights = np.arange(16.0).reshape(4, 4).astype(dtype)
    for x in (np.eye(4) * 4, turn @ turn.T * 4):
        gradient = ember_ml.grad(lambda a: ops.sum(ops.multiply(getattr(ops.linearalg, name)(a), ops.asarray(weights))))
        np.testing.assert_allclose(host(gradient(ops.asarray(x.astype(dtype)))), weights / 4, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 4), (6, 4), (4, 6)])
def test_equal_singular_values_have_gradients(backend: Backend, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    turned = np.linalg.qr(rng.normal(size=(max(shape), 4)))[0]
    right, weights = rng.normal(size=(shape[0], 2)), rng.normal(size=(shape[1], 2))

    def total(inverse: Callable[..., Any], x: Any) -> Any:
        return ops.sum(ops.multiply(inverse(x, ops.asarray(right)), ops.asarray(weights)))

    calls: tuple[Callable[..., Any], ...] = (
        lambda x, b: ops.lstsq(x, b).solution,
        lambda x, b: ops.matmul(ops.pinv(x), b),
    )
    for x in (np.eye(*shape), turned if shape[0] >= shape[1] else turned.T):
        inverse = np.linalg.pinv(x)
        # What Golub and Pereyra found, for the cotangent of the pseudo-inverse.
        g = weights @ right.T
        left, across = np.eye(shape[0]) - x @ inverse, np.eye(shape[1]) - inverse @ x
        expected = -inverse.T @ g @ inverse.T + left @ g.T @ inverse @ inverse.T + inverse.T @ inverse @ g.T @ across
        for call in calls:
            gradient = ember_ml.grad(lambda a, call=call: total(call, a))(ops.asarray(x))
            np.testing.assert_allclose(host(gradient), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["sqrtm_spd", "logm_spd", "pinv"])
def test_functions_of_matrices_have_second_derivatives(backend: Backend, name: str) -> None:
    def total(x: Any) -> Any:
        symmetric = ops.multiply(ops.add(x, ops.matrix_transpose(x)), 0.5)
        return ops.sum(ops.square(getattr(ops.linearalg, name)(symmetric)))

    x, step = DEFINITE[0, :2, :2], 1e-5
    found = host(ember_ml.hessian(total)(ops.asarray(x)))
    for i in np.ndindex(2, 2):
        off = np.zeros((2, 2))
        off[i] = step
        sides = [host(ember_ml.grad(total)(ops.asarray(x + sign * off))) for sign in (1, -1)]
        np.testing.assert_allclose(found[i], (sides[0] - sides[1]) / (2 * step), atol=1e-6)


def test_vectors_of_equal_eigenvalues_have_no_gradient(backend: Backend) -> None:
    def total(x: Any) -> Any:
        values, vectors = ops.eigh(x)
        return ops.add(ops.sum(ops.multiply(values, ops.asarray(np.arange(3.0)))), ops.sum(vectors[0]))

    gradient = host(ember_ml.grad(total)(ops.asarray(np.diag([1.0, 1.0, 2.0]))))
    np.testing.assert_allclose(gradient, [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]], atol=1e-12)


def test_the_gradient_of_a_singular_determinant_is_its_cofactors(backend: Backend) -> None:
    x = np.asarray([[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]], np.eye(3), np.zeros((3, 3))])
    expected = np.asarray([[[4.0, 4.0, -4.0], [-2.0, -2.0, 2.0], [0.0, 0.0, 0.0]], np.eye(3), np.zeros((3, 3))])
    gradient = ember_ml.grad(lambda a: ops.sum(ops.det(a)))(ops.asarray(x))
    np.testing.assert_allclose(host(gradient), expected, atol=1e-9)
    _, moved = ember_ml.jvp(ops.det, (ops.asarray(x),), (ops.asarray(np.broadcast_to(np.eye(3), x.shape).copy()),))
    np.testing.assert_allclose(host(moved), [2.0, 3.0, 0.0], atol=1e-9)
    assert host(ember_ml.grad(lambda a: ops.det(a))(ops.zeros((1, 1)))).tolist() == [[1.0]]


MISTAKES: dict[str, Callable[[], Any]] = {
    "inv of no square": lambda: ops.inv(np.ones((2, 3), np.float32)),
    "det of a vector": lambda: ops.det(np.ones(3, np.float32)),
    "cholesky of no square": lambda: ops.cholesky(np.ones((2, 3), np.float32)),
    "eigh of no square": lambda: ops.eigh(np.ones((2, 3), np.float32)),
    "eig of no square": lambda: ops.eig(np.ones((2, 3), np.float32)),
    "solve of other rows": lambda: ops.solve(np.eye(2, dtype=np.float32), np.ones((3, 1), np.float32)),
    "matmul of other lengths": lambda: ops.matmul(np.ones((2, 3)), np.ones((2, 3))),
    "matmul of other integer lengths": lambda: ops.matmul(np.ones((2, 3), int), np.ones((2, 3), int)),
    "matmul of a number": lambda: ops.matmul(np.ones((2, 3)), 2.0),
    "svd of a vector": lambda: ops.svd(np.ones(3, np.float32)),
    "qr of an unknown mode": lambda: ops.qr(np.eye(2), mode="raw"),
    "lu of a vector": lambda: ops.linearalg.lu(np.ones(3, np.float32)),
    "norm of an unknown order": lambda: ops.norm(np.eye(2), "max"),
    "norm of three axes": lambda: ops.norm(np.ones((2, 2, 2)), 1),
    "cross of four components": lambda: ops.cross(np.ones(4), np.ones(4)),
    "vecdot of other lengths": lambda: ops.vecdot(np.ones(2), np.ones(3)),
    "tensordot of other lengths": lambda: ops.tensordot(np.ones((2, 3)), np.ones((2, 3)), axes=1),
    "einsum of other lengths": lambda: ops.einsum("ij,jk", np.ones((2, 3)), np.ones((2, 3))),
    "einsum of too few axes": lambda: ops.einsum("ijk", np.ones((2, 3))),
    "einsum into an unknown axis": lambda: ops.einsum("ij->k", np.ones((2, 3))),
    "multi_dot of one": lambda: ops.multi_dot([np.eye(2)]),
    "cdist of other lengths": lambda: ops.cdist(np.ones((2, 3)), np.ones((2, 2))),
    "cdist of many points of other lengths": lambda: ops.cdist(np.ones((40, 3)), np.ones((40, 1))),
    "lstsq of other rows": lambda: ops.lstsq(np.ones((3, 2)), np.ones(2)),
    "orthogonal of a vector": lambda: ops.orthogonal((3,)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_value_errors(backend: Backend, name: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
        MISTAKES[name]()


def test_an_equation_for_another_number_of_operands_is_a_type_error(backend: Backend) -> None:
    with pytest.raises(TypeError):
        ops.einsum("ij,jk", np.eye(2))


def test_integers_have_no_negative_powers(backend: Backend) -> None:
    with pytest.raises(TypeError):
        ops.matrix_power(np.eye(2, dtype=np.int64), -1)


def test_complex_results_that_mlx_cannot_hold(backend: Backend) -> None:
    if backend.name == "mlx":
        with pytest.raises(UnsupportedError):
            ops.eig(np.eye(2))


def test_multi_dot_multiplies_in_the_cheapest_order(backend: Backend) -> None:
    # The other way round, the product in the middle would not fit into memory.
    tall, flat = np.ones((200_000, 1), np.float32), np.ones((1, 200_000), np.float32)
    assert host(ops.multi_dot([flat, tall, flat, tall])).tolist() == [[4e10]]


@pytest.mark.parametrize("shape", [(5, 5), (6, 3), (3, 6), (2, 4, 4)])
def test_orthogonal_matrices_are_orthogonal(backend: Backend, shape: tuple[int, ...]) -> None:
    q = host(ops.orthogonal(shape, 2.0, dtype="float64", key=3)) / 2
    product = q @ q.swapaxes(-2, -1) if shape[-2] < shape[-1] else q.swapaxes(-2, -1) @ q
    assert_close(product, np.broadcast_to(np.eye(min(shape[-2:])), product.shape), 1e-9)
    assert host(ops.orthogonal(shape)).tolist() != host(ops.orthogonal(shape)).tolist()


def test_conjugate_gradients_take_a_function(backend: Backend) -> None:
    a, b = DEFINITE[0], TALL[0, :5, 0]
    matrix = ops.asarray(a)
    x, info = ops.conjugate_gradient(lambda v: ops.matmul(matrix, v), ops.asarray(b), tol=1e-12)
    assert info == 0
    assert_close(host(x), np.linalg.solve(a, b), 1e-8)
    _, info = ops.conjugate_gradient(matrix, ops.asarray(b), tol=1e-12, maxiter=2)
    assert info == 2


def test_conjugate_gradients_go_on_from_a_start(backend: Backend) -> None:
    a, b = DEFINITE[0], TALL[0, :5, 0]
    start = np.linspace(-1.0, 1.0, 5)
    x, info = ops.conjugate_gradient(ops.asarray(a), ops.asarray(b), start, tol=1e-12)
    assert info == 0
    assert_close(host(x), np.linalg.solve(a, b), 1e-8)
    x, info = ops.conjugate_gradient(ops.asarray(a), ops.asarray(b), np.linalg.solve(a, b), tol=1e-8, maxiter=0)
    assert info == 0
    assert_close(host(x), np.linalg.solve(a, b), 1e-8)


@pytest.mark.parametrize("keepdims", [False, True])
def test_negative_norms_of_nothing_are_infinite(backend: Backend, keepdims: bool) -> None:
    for order in (-1, -2.5):
        found = ops.vector_norm(ops.zeros((2, 0)), axis=1, keepdims=keepdims, ord=order)
        np.testing.assert_array_equal(host(found), np.full((2, 1) if keepdims else (2,), np.inf))


def test_results_have_names(backend: Backend) -> None:
    a = np.eye(2, dtype=np.float32)
    assert ops.eigh(a)._fields == ops.eig(a)._fields == ("eigenvalues", "eigenvectors")
    assert ops.svd(a)._fields == ("U", "S", "Vh")
    assert ops.qr(a)._fields == ("Q", "R")
    assert ops.slogdet(a)._fields == ("sign", "logabsdet")
    assert ops.linalg is ops.linearalg
    assert ops.matrix_inv is ops.inv


@pytest.mark.skipif("torch" not in ember_ml.get_available_backends(), reason="torch is not installed")
@pytest.mark.parametrize(
    "name",
    ["matmul", "solve", "inv", "det", "cholesky", "eigh", "svd", "qr", "solve_triangular", "einsum", "expm", "norm"],
)
def test_gradients_flow_through_torch(name: str) -> None:
    torch = backends.load("torch")
    x = torch.convert(DEFINITE[0], None, None).requires_grad_()
    calls: dict[str, Callable[[], Any]] = {
        "matmul": lambda: ops.matmul(x, x),
        "solve": lambda: ops.solve(x, ops.ones_like(x)),
        "solve_triangular": lambda: ops.solve_triangular(x, ops.ones_like(x)),
        "einsum": lambda: ops.einsum("ij,jk,kl->il", x, x, x),
    }
    result = calls.get(name, lambda: getattr(ops, name)(x))()
    parts = result if isinstance(result, tuple) else (result,)
    sum(ops.sum(part) for part in parts).backward()
    assert np.isfinite(host(x.grad)).all()
    assert np.abs(host(x.grad)).max() > 0


def test_what_is_below_the_diagonal_of_a_triangle_is_a_positive_zero(backend: Backend) -> None:
    for mode in ("reduced", "complete"):
        r = host(ops.qr(np.array([[-1.0, 2.0], [-3.0, 1.0], [1.0, -1.0]], np.float32), mode=mode).R)
        assert not np.signbit(np.tril(r, -1)).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_orthogonal_matrix_has_the_dtype_asked_for(dtype: str, backend: Backend) -> None:
    assert ops.dtype(ops.orthogonal((3, 2), dtype=dtype, key=1)) == dtype


def test_the_rank_of_a_half_is_that_of_its_values_in_float32(backend: Backend) -> None:
    x = ops.asarray([[1.0, 0.0], [0.0, 1e-3]], dtype="float16")
    assert ops.matrix_rank(x).tolist() == ops.matrix_rank(ops.cast(x, "float32")).tolist() == 2


def test_the_exponential_of_bools_is_a_type_error(backend: Backend) -> None:
    with pytest.raises(TypeError, match="expm: the dtype must be numeric, not bool, got bool"):
        ops.expm(ops.asarray([[True, False], [False, True]]))


@pytest.mark.parametrize("name", ["svd", "svdvals", "eig", "eigvals"])
def test_what_is_above_the_diagonal_must_be_finite_too(name: str, backend: Backend) -> None:
    for wrong in (np.nan, np.inf):
        with pytest.raises(LinAlgError):
            getattr(ops, name)(ops.asarray([[1.0, wrong], [0.0, 2.0]]))


def test_the_logarithm_of_a_matrix_reads_its_lower_triangle(backend: Backend) -> None:
    if backend.name == "torch":
        pytest.skip("torch also computes the terms that carry gradients, which read the whole matrix")
    whole = ops.asarray([[2.0, 1.0], [1.0, 2.0]])
    assert ops.logm_spd(ops.asarray([[2.0, np.nan], [1.0, 2.0]])).tolist() == ops.logm_spd(whole).tolist()


def test_distances_of_float32_take_no_memory_in_float64() -> None:
    x = np.eye(600, 8, dtype=np.float32)
    y = x + 100  # far away, so that float32 is exact enough
    with ember_ml.use_backend("numpy"):
        tracemalloc.start()
        try:
            distances = ops.cdist(x, y)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert distances.dtype == np.float32
    assert most < 1.5 * distances.nbytes


def test_the_gradient_of_a_singular_root_is_zero_where_it_would_be_infinite(backend: Backend) -> None:
    weights = ops.asarray(np.arange(1.0, 5.0).reshape(2, 2))
    gradient = ember_ml.grad(lambda x: ops.sum(ops.multiply(ops.sqrtm_spd(x), weights)))
    np.testing.assert_allclose(host(gradient(ops.asarray(np.diag([4.0, 0.0]))))[0, 0], 0.25)
    assert host(gradient(ops.asarray(np.diag([4.0, 0.0]))))[1, 1] == 0.0
    assert not host(gradient(ops.asarray(np.zeros((2, 2))))).any()
