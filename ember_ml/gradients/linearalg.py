"""Gradients of products and decompositions of matrices.

The rules for decompositions use adjoints and expect conjugated cotangents; ``_conjugated`` converts them to the
convention of the other rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml.dispatch import definition_of
from ember_ml.errors import UnsupportedError
from ember_ml.gradients import by_formula
from ember_ml.gradients.math import _restore_axes
from ember_ml.gradients.stats import product_of_others
from ember_ml.ops import comparison, creation, dtypes, indexing, manipulation, math, stats
from ember_ml.ops.control import stop_gradient
from ember_ml.ops.linearalg import det, diagonal, eig, eigh, inv, lu, matmul, solve, svd
from ember_ml.transform import vjp


def _transposed(x: Any) -> Any:
    return manipulation.matrix_transpose(x)


def _conjugate(x: Any) -> Any:
    return math.conj(x) if dtypes.is_complex(x) else x


def _adjoint(x: Any) -> Any:
    return _conjugate(_transposed(x))


def _product(*factors: Any) -> Any:
    first, *rest = factors
    for other in rest:
        first = matmul(first, other)
    return first


def _matmul_of_first(g: Any, out: Any, x: Any, y: Any) -> Any:
    if len(y.shape) == 1:
        return math.multiply(g if len(x.shape) == 1 else g[..., None], y)
    if len(x.shape) == 1:
        return matmul(g[..., None, :], _transposed(y))[..., 0, :]
    return matmul(g, _transposed(y))


def _matmul_of_second(g: Any, out: Any, x: Any, y: Any) -> Any:
    if len(x.shape) == 1:
        return math.multiply(x, g) if len(y.shape) == 1 else math.multiply(x[:, None], g[..., None, :])
    if len(y.shape) == 1:
        return matmul(_transposed(x), g[..., None])[..., 0]
    if len(y.shape) == 2 and len(x.shape) > 2:
        # One product of two tall matrices is faster than the sum of many small ones.
        rows = manipulation.reshape(x, (-1, x.shape[-1]))
        return matmul(_transposed(rows), manipulation.reshape(g, (-1, g.shape[-1])))
    return matmul(_transposed(x), g)


def _of_diagonal(values: Any) -> Any:
    """Diagonal matrices with these values."""
    count = values.shape[-1]
    return math.multiply(values[..., None, :], creation.eye(count, dtype=values.dtype))


def _halved(x: Any) -> Any:
    """Triangle with its diagonal halved."""
    count = x.shape[-1]
    return math.multiply(x, math.subtract(1, math.multiply(creation.eye(count, dtype=x.dtype), 0.5)))


def _inverse_gaps(values: Any) -> Any:
    """``1 / (values[j] - values[i])``, or zero where that is infinite."""
    gaps = math.subtract(values[..., None, :], values[..., :, None])
    is_zero = comparison.equal(gaps, 0)
    return comparison.where(is_zero, 0, math.reciprocal(comparison.where(is_zero, 1, gaps)))


_norm = by_formula(definition_of("vector_norm"))


def _vector_norm(g: Any, out: Any, x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if ord != 2:
        return _norm([0], g, out, [x], {"axis": axis, "keepdims": keepdims, "ord": ord})[0]
    if dtypes.dtype(x).bits == 16:
        g, out, x = (dtypes.cast(one, "float32") for one in (g, out, x))
    # The gradient at zero is defined as zero, not NaN.
    scale = math.divide(g, comparison.where(comparison.equal(out, 0), 1, out))
    return math.multiply(_restore_axes(scale, x, axis, keepdims), _conjugate(x))


def _det(g: Any, out: Any, x: Any) -> Any:
    """Cofactors from singular values and vectors, which also hold for singular matrices."""

    u, s, vh = svd(x, full_matrices=False)
    minors = math.multiply(product_of_others(s), det(matmul(u, vh))[..., None])
    return math.multiply(g[..., None, None], matmul(math.multiply(_conjugate(u), minors[..., None, :]), _conjugate(vh)))


def _slogdet(g: Any, out: Any, x: Any) -> Any:
    inverse = _transposed(inv(x))
    sign, _ = out
    total = None
    if g[1] is not None:
        total = math.multiply(g[1][..., None, None], inverse)
    if g[0] is not None and dtypes.is_complex(x):
        rotated = math.multiply(math.imag(math.multiply(g[0], sign)), 1j)[..., None, None]
        phase = math.multiply(rotated, inverse)
        total = phase if total is None else math.add(total, phase)
    return creation.zeros_like(x) if total is None else total


def _inv(g: Any, out: Any, x: Any) -> Any:
    return math.negative(_product(_transposed(out), g, _transposed(out)))


def _solve_of_matrix(g: Any, out: Any, a: Any, b: Any) -> Any:
    right = _solve_of_right(g, out, a, b)
    if len(b.shape) == 1:
        return math.negative(math.multiply(right[..., :, None], out[..., None, :]))
    return math.negative(matmul(right, _transposed(out)))


def _solve_of_right(g: Any, out: Any, a: Any, b: Any) -> Any:
    return solve(_transposed(a), g[..., None])[..., 0] if len(b.shape) == 1 else solve(_transposed(a), g)


def _conjugated(rule: Callable[..., Any]) -> tuple[Callable[..., Any]]:
    """Rule for plain cotangents from one for conjugated cotangents."""

    def plain(g: Any, out: Any, x: Any, **options: Any) -> Any:
        if isinstance(g, (list, tuple)):
            return _conjugate(rule([None if one is None else _conjugate(one) for one in g], out, x, **options))
        return _conjugate(rule(_conjugate(g), out, x, **options))

    return (plain,)


def _cholesky(g: Any, out: Any, x: Any, *, upper: bool = False) -> Any:
    factor, gradient = (_adjoint(out), _adjoint(g)) if upper else (out, g)
    inner = _halved(creation.tril(matmul(_adjoint(factor), gradient)))
    inverse = inv(factor)
    whole = _product(_adjoint(inverse), inner, inverse)
    return math.multiply(math.add(whole, _adjoint(whole)), 0.5)


def _eigh(g: Sequence[Any], out: Any, x: Any) -> Any:
    values, vectors = out
    inner = creation.zeros_like(vectors) if g[0] is None else dtypes.cast(_of_diagonal(g[0]), vectors.dtype)
    if g[1] is not None:
        rotated = matmul(_adjoint(vectors), _of_raw(vectors, g[1]))
        inner = math.add(inner, math.multiply(rotated, _inverse_gaps(values)))
    return _product(vectors, inner, _adjoint(vectors))


def _eigvalsh(g: Any, out: Any, x: Any) -> Any:

    return _eigh([g, None], eigh(x), x)


def _eig(g: Sequence[Any], out: Any, x: Any) -> Any:
    values, vectors = out
    adjoint = _adjoint(vectors)
    inner = creation.zeros_like(vectors) if g[0] is None else _of_diagonal(g[0])
    if g[1] is not None:
        rotated = matmul(adjoint, _of_raw(vectors, g[1]))
        # Eigenvectors are normalized, so changes of their length are projected out.
        kept = math.multiply(
            matmul(adjoint, vectors), dtypes.cast(math.real(diagonal(rotated)), values.dtype)[..., None, :]
        )
        inner = math.add(inner, math.multiply(math.subtract(rotated, kept), _conjugate(_inverse_gaps(values))))
    return solve(adjoint, matmul(inner, adjoint))


def _eigvals(g: Any, out: Any, x: Any) -> Any:

    return _eig([g, None], eig(x), x)


def _of_raw(vectors: Any, g: Any) -> Any:
    """Cotangent of vectors with any phase, from that of vectors whose leading component is made real."""
    if not dtypes.is_complex(vectors):
        return g

    return vjp(lambda v: math.multiply(v, _phases(v)), vectors)[1](g)[0]


def _phases(vectors: Any) -> Any:
    """Factor of modulus one, for each column, that makes its leading component real and positive."""

    size = math.abs(stop_gradient(vectors))
    large = comparison.greater_equal(size, math.multiply(stats.max(size, axis=-2, keepdims=True), 0.99))
    lead = indexing.argmax(dtypes.cast(large, "int32"), axis=-2, keepdims=True)
    return math.conj(math.sign(indexing.take_along_axis(vectors, lead, axis=-2)))


def _svd(g: Sequence[Any], out: Any, x: Any, *, full_matrices: bool = True) -> Any:
    u, s, vh = out
    k = s.shape[-1]
    if u.shape[-1] != k or vh.shape[-2] != k:
        u, vh = u[..., :, :k], vh[..., :k, :]
        g = [None if g[0] is None else g[0][..., :, :k], g[1], None if g[2] is None else g[2][..., :k, :]]
    gu, gs, gvh = g
    v = _adjoint(vh)
    gv = None if gvh is None else _adjoint(gvh)
    gu, gv = _of_raw_pair(u, v, gu, gv)
    wide = x.dtype
    inner = creation.zeros_like(matmul(_adjoint(u), u)) if gs is None else dtypes.cast(_of_diagonal(gs), wide)
    gaps = _inverse_gaps(math.square(s))
    inverse = math.reciprocal(comparison.where(comparison.equal(s, 0), 1, s))
    result = None
    if gu is not None:
        rotated = matmul(_adjoint(u), gu)
        skew = math.multiply(math.subtract(rotated, _adjoint(rotated)), gaps)
        inner = math.add(inner, math.multiply(skew, s[..., None, :]))
        if dtypes.is_complex(x):
            # Only the sum of both phases matters, so all of it is assigned to one side.
            inner = math.add(inner, _imaginary(rotated, inverse))
        if u.shape[-2] > k:
            rest = math.subtract(gu, matmul(u, rotated))
            result = matmul(math.multiply(rest, inverse[..., None, :]), vh)
    if gv is not None:
        rotated = matmul(vh, gv)
        skew = math.multiply(math.subtract(rotated, _adjoint(rotated)), gaps)
        inner = math.add(inner, math.multiply(s[..., :, None], skew))
        if v.shape[-2] > k:
            rest = _adjoint(math.subtract(gv, matmul(v, rotated)))
            more = matmul(math.multiply(u, inverse[..., None, :]), rest)
            result = more if result is None else math.add(result, more)
    main = _product(u, inner, vh)
    return main if result is None else math.add(main, result)


def _of_raw_pair(u: Any, v: Any, gu: Any, gv: Any) -> tuple[Any, Any]:
    """Like ``_of_raw``, for two sets of vectors that share the phases of the first."""
    if not dtypes.is_complex(u) or (gu is None and gv is None):
        return gu, gv

    def fixed(one: Any, other: Any) -> Any:
        phases = _phases(one)
        return math.multiply(one, phases), math.multiply(other, phases)

    gu = creation.zeros_like(u) if gu is None else gu
    gv = creation.zeros_like(v) if gv is None else gv
    gu, gv = vjp(fixed, u, v)[1]((gu, gv))
    return gu, gv


def _imaginary(rotated: Any, inverse: Any) -> Any:
    phases = math.multiply(math.multiply(math.imag(diagonal(rotated)), inverse), 1j)
    return dtypes.cast(_of_diagonal(phases), rotated.dtype)


def _svdvals(g: Any, out: Any, x: Any) -> Any:
    u, _, vh = svd(x, full_matrices=False)
    return matmul(math.multiply(u, g[..., None, :]), vh)


def _qr(g: Sequence[Any], out: Any, x: Any, *, mode: str = "reduced") -> Any:
    q, r = out
    rows, columns = x.shape[-2:]
    if mode == "complete" and rows > columns:
        raise UnsupportedError(
            "qr: mode must not be 'complete' for the gradient of matrices with more rows than columns"
        )
    gq = creation.zeros_like(q) if g[0] is None else g[0]
    gr = creation.zeros_like(r) if g[1] is None else g[1]
    if rows >= columns:
        return _tall_qr(q, r, gq, gr)
    left, right = r[..., :, :rows], gr[..., :, rows:]
    right_of = x[..., :, rows:]
    first = _tall_qr(q, left, math.add(gq, matmul(right_of, _adjoint(right))), gr[..., :, :rows])
    return manipulation.concat([first, matmul(q, right)], axis=-1)


def _tall_qr(q: Any, r: Any, gq: Any, gr: Any) -> Any:
    inner = math.subtract(matmul(r, _adjoint(gr)), matmul(_adjoint(gq), q))
    lower = creation.tril(inner, k=-1)
    middle = dtypes.cast(_of_diagonal(math.real(diagonal(inner))), q.dtype)
    sides = math.add(math.add(lower, _adjoint(lower)), middle)
    return _adjoint(solve(r, _adjoint(math.add(gq, matmul(q, sides)))))


def _lu(g: Sequence[Any], out: Any, x: Any) -> Any:
    p, lower, upper = out
    gl = creation.zeros_like(lower) if g[1] is None else g[1]
    gu = creation.zeros_like(upper) if g[2] is None else g[2]
    return matmul(p, _triangles(lower, upper, gl, gu))


def _lu_factor(g: Sequence[Any], out: Any, x: Any) -> Any:

    p, lower, upper = lu(x)
    k = lower.shape[-1]
    if g[0] is None:
        return creation.zeros_like(x)
    return matmul(p, _triangles(lower, upper, creation.tril(g[0][..., :, :k], k=-1), creation.triu(g[0][..., :k, :])))


def _triangles(lower: Any, upper: Any, gl: Any, gu: Any) -> Any:
    """Gradient in the row order of the triangles: a square block, and the rows below it or the columns right of it."""
    k = lower.shape[-1]
    square, below = lower[..., :k, :], lower[..., k:, :]
    corner, right_of = upper[..., :, :k], upper[..., :, k:]
    gl, g_below = gl[..., :k, :], gl[..., k:, :]
    gu, g_right = gu[..., :, :k], gu[..., :, k:]
    parts_below = parts_right = None
    if below.shape[-2]:
        parts_below = _adjoint(solve(corner, _adjoint(g_below)))
        gu = math.subtract(gu, matmul(_adjoint(below), parts_below))
    if right_of.shape[-1]:
        parts_right = solve(_adjoint(square), g_right)
        gl = math.subtract(gl, matmul(parts_right, _adjoint(right_of)))
    inner = math.add(creation.tril(matmul(_adjoint(square), gl), k=-1), creation.triu(matmul(gu, _adjoint(corner))))
    main = solve(_adjoint(square), _adjoint(solve(corner, _adjoint(inner))))
    if parts_below is not None:
        main = manipulation.concat([main, parts_below], axis=-2)
    return main if parts_right is None else manipulation.concat([main, parts_right], axis=-1)


RULES = {
    "matmul": (_matmul_of_first, _matmul_of_second),
    "vector_norm": (_vector_norm,),
    "det": (_det,),
    "slogdet": (_slogdet,),
    "inv": (_inv,),
    "solve": (_solve_of_matrix, _solve_of_right),
    "cholesky": _conjugated(_cholesky),
    "lu": _conjugated(_lu),
    "lu_factor": _conjugated(_lu_factor),
    "qr": _conjugated(_qr),
    "svd": _conjugated(_svd),
    "svdvals": _conjugated(_svdvals),
    "eig": _conjugated(_eig),
    "eigvals": _conjugated(_eigvals),
    "eigh": _conjugated(_eigh),
    "eigvalsh": _conjugated(_eigvalsh),
}

MOVES = {"diagonal"}
