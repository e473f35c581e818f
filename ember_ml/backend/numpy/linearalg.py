"""Linear algebra on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend import native_for
from ember_ml.backend.numpy.core import DTYPES
from ember_ml.dispatch import REGISTRY
from ember_ml.errors import LinAlgError
from ember_ml.ops.linearalg import (
    EigResult,
    LUFactorResult,
    LUResult,
    QRResult,
    SlogdetResult,
    SVDResult,
)
from ember_ml.shapes.linearalg import uses_matmul

Array = np.ndarray[Any, Any]

_HALVES = (DTYPES["float16"], DTYPES["bfloat16"])


@native_for(np.matmul, "float32", "float64", "complex floating", "bits")
def matmul(x1: Array, x2: Array, /) -> Array:
    if x1.dtype in _HALVES:
        # NumPy 2.4: half precision has no BLAS, and bfloat16 rounds every partial sum.
        return np.matmul(_wide(x1), _wide(x2)).astype(x1.dtype)
    return np.matmul(x1, x2)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    return np.diagonal(x, offset, -2, -1)


def det(x: Array, /) -> Array:
    return _narrow(np.linalg.det(_wide(x)), x)


def slogdet(x: Array, /) -> SlogdetResult:
    sign, size = np.linalg.slogdet(_wide(x))
    return SlogdetResult(_narrow(sign * (size == size), x), _narrow(size, x))


def inv(x: Array, /) -> Array:
    try:
        return _narrow(np.linalg.inv(_wide(x)), x)
    except np.linalg.LinAlgError:
        has_nan = np.isnan(x).any((-2, -1), keepdims=True) if x.ndim > 1 else np.False_
        if not has_nan.any():
            raise
    # NumPy 2.4: inv may report a matrix that holds NaN as singular.
    inverse = inv(np.where(has_nan, np.eye(x.shape[-1], dtype=x.dtype), x))
    return np.where(has_nan, np.asarray(np.nan, x.dtype), inverse)


def solve(x1: Array, x2: Array, /) -> Array:
    return _narrow(np.linalg.solve(_wide(x1), _wide(x2)), x1)


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    factor = np.linalg.cholesky(_wide(x))
    if not np.isfinite(np.diagonal(factor, 0, -2, -1)).all():
        raise LinAlgError("x must be positive definite, got NaN or infinities")
    return _narrow(factor.swapaxes(-2, -1).conj() if upper else factor, x)


def lu(x: Array, /) -> LUResult:
    factors, _, order = _lu_factors(x)
    m, n = x.shape[-2:]
    lower = np.tril(factors[..., :, : min(m, n)], -1) + np.eye(m, min(m, n), dtype=factors.dtype)
    permutation = np.arange(m)[:, None] == order[..., None, :]
    return LUResult(permutation.astype(x.dtype), _narrow(lower, x), _narrow(np.triu(factors[..., : min(m, n), :]), x))


def lu_factor(x: Array, /) -> LUFactorResult:
    factors, pivots, _ = _lu_factors(x)
    return LUFactorResult(_narrow(factors, x), pivots)


_BLOCK = 32


def _lu_factors(x: Array) -> tuple[Array, Array, Array]:
    """LU factors in one matrix, the row pivots, and the row order that they result in.

    NumPy 2.4 has no LU factorization. This one is blocked by columns, so that most of the work is matrix products.
    """
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")
    m, n = x.shape[-2:]
    a = np.array(_wide(x)).reshape((-1, m, n)) if x.size else np.zeros((0, m, n), _wide(x).dtype)
    count, batch = min(m, n), np.arange(len(a))
    order = np.tile(np.arange(m), (len(a), 1))
    pivots = np.zeros((len(a), count), np.int64)
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        for j in range(start, stop):
            pivots[:, j] = chosen = j + np.argmax(_pivot_size(a[:, j:, j]), axis=1)
            for rows in (a, order):
                rows[batch, chosen], rows[:, j] = rows[:, j].copy(), rows[batch, chosen]
            pivot = a[:, j, j]
            a[:, j + 1 :, j] /= np.where(pivot == 0, 1, pivot)[:, None]
            a[:, j + 1 :, j + 1 : stop] -= a[:, j + 1 :, j, None] * a[:, None, j, j + 1 : stop]
        if stop < n:
            corner = np.tril(a[:, start:stop, start:stop], -1) + np.eye(stop - start, dtype=a.dtype)
            a[:, start:stop, stop:] = np.linalg.solve(corner, a[:, start:stop, stop:])
            a[:, stop:, stop:] -= a[:, stop:, start:stop] @ a[:, start:stop, stop:]
    shape = x.shape[:-2]
    if not x.size:
        empty = np.tile(np.arange(m), (*shape, 1))
        return np.zeros(x.shape, a.dtype), np.zeros((*shape, count), np.int64), empty
    return a.reshape(x.shape), pivots.reshape((*shape, count)), order.reshape((*shape, m))


def _pivot_size(x: Array) -> Array:
    """Magnitude by which LAPACK compares pivots."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', got {mode!r}")
    q, r = np.linalg.qr(_wide(x), "complete" if mode == "complete" else "reduced")
    phase = _unit(np.diagonal(r, 0, -2, -1))
    k = phase.shape[-1]
    r[..., :k, :] *= phase[..., :, None].conj()
    q[..., :, :k] *= phase[..., None, :]
    q[..., :, k:] = _with_fixed_phase(q[..., :, k:])
    # Multiplication by a phase leaves negative zeros below the diagonal.
    return QRResult(_narrow(q, x), _narrow(np.triu(r), x))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    if not np.isfinite(x).all():
        # LAPACK may not terminate on infinities.
        raise LinAlgError("x must be finite, got NaN or infinities, for which the singular values did not converge")
    u, s, vh = np.linalg.svd(_wide(x), full_matrices)
    if x.size:
        k = s.shape[-1]
        phase = _phases(u)
        u *= phase
        vh[..., :k, :] *= phase[..., 0, :k, None].conj()
        vh[..., k:, :] = _with_fixed_phase(vh[..., k:, :].swapaxes(-2, -1)).swapaxes(-2, -1)
    return SVDResult(_narrow(u, x), _narrow(s, x), _narrow(vh, x))


def svdvals(x: Array, /) -> Array:
    values = np.linalg.svd(_wide(x), compute_uv=False)
    if np.isnan(values).any():
        raise LinAlgError("x must be finite, got NaN or infinities, for which the singular values did not converge")
    return _narrow(values, x)


def eig(x: Array, /) -> EigResult:
    values, vectors = np.linalg.eig(_wide(x))
    values, vectors = _complex(values), _complex(vectors)
    order = _order(values)
    return EigResult(
        np.take_along_axis(values, order, -1), _with_fixed_phase(np.take_along_axis(vectors, order[..., None, :], -1))
    )


def eigvals(x: Array, /) -> Array:
    values = _complex(np.linalg.eigvals(_wide(x)))
    return np.take_along_axis(values, _order(values), -1)


def _complex(x: Array) -> Array:
    return x if x.dtype.kind == "c" else x.astype(np.complex64 if x.dtype == np.float32 else np.complex128)


def _order(values: Array) -> Array:
    """Order by real part, then by imaginary part. Real parts that differ only by rounding count as equal."""
    if not values.size:
        return np.zeros(values.shape, np.int64)
    step = np.abs(values).max(-1, keepdims=True) * np.sqrt(np.finfo(values.dtype).eps)
    real = np.round(values.real / np.where(step == 0, 1, step))
    return np.lexsort((values.imag, real), -1)


def eigh(x: Array, /) -> EigResult:
    values, vectors = np.linalg.eigh(_wide(x))
    _check_lower(x)
    return EigResult(_narrow(values, x), _narrow(_with_fixed_phase(vectors), x))


def eigvalsh(x: Array, /) -> Array:
    values = np.linalg.eigvalsh(_wide(x))
    _check_lower(x)
    return _narrow(values, x)


def _check_lower(x: Array) -> None:
    """Raise unless the lower triangle is finite; LAPACK may return finite values otherwise."""
    if not np.isfinite(x).all() and not np.isfinite(np.tril(x)).all():
        raise LinAlgError("x must be finite, got NaN or infinities, for which the eigenvalues did not converge")


def cdist(x: Array, y: Array, /, p: float = 2.0) -> Array:
    if x.shape[-1:] != y.shape[-1:] or not uses_matmul(x, y, p):
        return REGISTRY["cdist"].definition(x, y, p)  # type: ignore[misc]
    centre = np.mean(x, 0, dtype=np.float64)
    centre = np.where(np.isfinite(centre), centre, 0)
    a, b = x - centre, y - centre
    result = (
        _fast_squared_distances(a.astype(x.dtype, copy=False), b.astype(x.dtype, copy=False))
        if x.dtype == np.float32
        else None
    )
    if result is None:
        result = _squared_distances(a, b).astype(x.dtype, copy=False)
    return np.sqrt(np.maximum(result, 0, out=result), out=result)


def _fast_squared_distances(a: Array, b: Array) -> Array | None:
    """Squared distances in float32, or None if two points are so close that the subtraction cancels."""
    result = _squared_distances(a, b)
    scale = np.max(_squares(a), initial=0) + np.max(_squares(b), initial=0)
    return result if np.min(result, initial=np.inf) >= 0.1 * scale else None


def _squared_distances(a: Array, b: Array) -> Array:
    result = a @ (b * -2).T
    result += _squares(a)
    result += _squares(b).T
    return result


def _squares(x: Array) -> Array:
    """Squared length of each row, as a column."""
    return np.einsum("ij,ij->i", x, x)[:, None]


def _with_fixed_phase(vectors: Array) -> Array:
    """Columns scaled so that their leading component is real and positive."""
    return vectors * _phases(vectors) if vectors.size else vectors


def _phases(vectors: Array) -> Array:
    """Factor of modulus one, for each column, that makes its leading component real and positive."""
    size = np.abs(vectors)
    lead = np.argmax(size >= 0.99 * size.max(-2, keepdims=True), -2)
    return _unit(np.take_along_axis(vectors, lead[..., None, :], -2)).conj()


def _unit(x: Array) -> Array:
    """Sign or complex phase of each number; one for zero."""
    size = np.abs(x)
    return np.where(size > 0, x, 1) / np.where(size > 0, size, 1).astype(x.dtype)


def _wide(x: Array) -> Array:
    """Halves as float32, which LAPACK knows."""
    return x.astype(np.float32) if x.dtype in _HALVES else x


def _narrow(result: Array, x: Array) -> Array:
    """``result`` cast back to the dtype of ``x``, if that is a half-precision dtype."""
    return result.astype(x.dtype) if x.dtype in _HALVES else result
