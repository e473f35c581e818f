"""Linear algebra on MLX, whose decompositions run on the CPU and support float32 and float64.

A complex matrix is passed to them as a real one of twice the size, each number ``a + bi`` as ``[[a, -b], [b, a]]``:
products, inverses, Cholesky factors and triangles with a positive diagonal keep that form.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend import active, load, native_for
from ember_ml.backend.mlx.gradients import with_rule
from ember_ml.backend.mlx.indexing import _values_or_none
from ember_ml.backend.mlx.stats import _wide
from ember_ml.dispatch import definition_of
from ember_ml.dispatch.checks import is_checked
from ember_ml.errors import LinAlgError, UnsupportedError
from ember_ml.ops.linearalg import (
    EigResult,
    LstsqResult,
    LUFactorResult,
    LUResult,
    QRResult,
    SlogdetResult,
    SVDResult,
)
from ember_ml.shapes.linearalg import check_right_side

_SINGULAR = "the matrix is singular"


@native_for(mx.matmul, "floating")
def matmul(x1: mx.array, x2: mx.array, /) -> mx.array:
    return mx.matmul(x1, x2) if mx.issubdtype(x1.dtype, mx.inexact) else _integer_matmul(x1, x2)


def _integer_matmul(x1: mx.array, x2: mx.array) -> mx.array:
    """Matrix product of integers as a sum of products. MLX 0.32: matmul supports floating dtypes only."""
    if not x1.ndim or not x2.ndim:
        raise ValueError(f"x1 and x2 must have at least 1 axis, got shapes {list(x1.shape)} and {list(x2.shape)}")
    rows = x1[None, :] if x1.ndim == 1 else x1
    columns = x2[:, None] if x2.ndim == 1 else x2
    if rows.shape[-1] != columns.shape[-2]:
        raise ValueError(
            f"the shapes of x1 and x2 must fit for a matrix product, got {list(x1.shape)} and {list(x2.shape)}"
        )
    products = rows[..., :, :, None] * columns[..., None, :, :]
    shape = (*products.shape[:-2], products.shape[-1])
    result = products.sum(-2).astype(x1.dtype) if products.size else mx.zeros(shape, x1.dtype)
    result = result.squeeze(-1) if x2.ndim == 1 else result
    return result.squeeze(-1 if x2.ndim == 1 else -2) if x1.ndim == 1 else result


def diagonal(x: mx.array, /, *, offset: int = 0) -> mx.array:
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")
    m, n = x.shape[-2:]
    if not -m < offset < n:
        return mx.zeros((*x.shape[:-2], 0), x.dtype)
    return mx.diagonal(x, offset, -2, -1)


@with_rule
def det(x: mx.array, /) -> mx.array:
    # MLX 0.32: linalg.det goes through logarithms, which loses precision.
    factors, pivots = mx.linalg.lu_factor(_real(_square(x)), stream=mx.cpu)
    exchanges = mx.sum(pivots != mx.arange(x.shape[-1], dtype=pivots.dtype), -1)
    product = mx.prod(mx.diagonal(factors, 0, -2, -1), -1)
    return mx.where(exchanges % 2 == 1, -product, product).astype(x.dtype)


@with_rule
def slogdet(x: mx.array, /) -> SlogdetResult:
    a = _real(_square(x))
    return SlogdetResult(*(part.astype(x.dtype) for part in mx.linalg.slogdet(a, stream=mx.cpu)))


@with_rule
def inv(x: mx.array, /) -> mx.array:
    a = _square(x)
    doubled = _doubled(a)
    # LAPACK reads row-major memory as the transpose, so the pivots are those of the transpose.
    regular = _regular(doubled, _pivots(doubled.swapaxes(-2, -1)) != 0)
    return _halved(mx.linalg.inv(regular, stream=mx.cpu), a).astype(x.dtype)


@contextmanager
def _without_gradients() -> Iterator[None]:
    """Context for definitions whose gradient is computed by a rule, not by tracing their body."""
    from ember_ml.ops.linearalg import _without_gradient_terms

    with active(load("mlx")), _without_gradient_terms():
        yield


@with_rule
def pinv(x: mx.array, /, *, rtol: Any = None) -> mx.array:
    with _without_gradients():
        result: mx.array = definition_of("pinv")(x, rtol=rtol)
    return result


@with_rule
def solve(x1: mx.array, x2: mx.array, /) -> mx.array:
    a, b = _broadcast_pair(x1, x2)
    return _column(_halved(_solved(_doubled(a), _doubled(b)), a), x2).astype(x1.dtype)


def _solved(a: mx.array, b: mx.array) -> mx.array:
    rows, lower, upper = mx.linalg.lu(a, stream=mx.cpu)
    # MLX 0.32: float64 factors corrupt memory where U is computed before L, which a traced graph may do.
    if not is_checked() or _values_or_none(lower) is None:
        return mx.linalg.solve(_regular(a, _pivots(a) != 0), b, stream=mx.cpu)
    # As mx.linalg.solve, with a look at the pivots before anything is divided by them.
    if not np.asarray(upper).diagonal(0, -2, -1).all():
        raise LinAlgError(_SINGULAR)
    exchanged = mx.take_along_axis(b, mx.argsort(rows, -1)[..., None], -2)
    y = mx.linalg.solve_triangular(lower, exchanged, upper=False, stream=mx.cpu)
    return mx.linalg.solve_triangular(upper, y, upper=True, stream=mx.cpu)


def _pivots(a: mx.array) -> mx.array:
    """Pivots of the LU factorization."""
    return mx.diagonal(mx.linalg.lu_factor(a, stream=mx.cpu)[0], 0, -2, -1)


def _regular(a: mx.array, sound: mx.array, message: str = _SINGULAR) -> mx.array:
    """Matrix ``a`` if all of ``sound`` is true, else an error; NaN instead of an error where values cannot be read.

    MLX 0.32: errors are raised in another thread, which the caller may then wait for forever.
    """
    if not _check(sound, message):
        return mx.where(sound.all(-1)[..., None, None], a, mx.array(mx.nan, a.dtype))
    return a


@with_rule
def solve_triangular(
    a: mx.array,
    b: mx.array,
    /,
    *,
    lower: bool = False,
    adjoint: bool = False,
    unit_diagonal: bool = False,
) -> mx.array:
    triangle, right = _broadcast_pair(a, b)
    triangle = mx.tril(triangle) if lower else mx.triu(triangle)
    if unit_diagonal:
        triangle = mx.where(mx.eye(a.shape[-1]) > 0, mx.array(1, triangle.dtype), triangle)
    if adjoint:
        triangle, lower = _adjoint(triangle), not lower
    if triangle.dtype == mx.complex64:
        # Pivoting exchanges no rows of an upper triangle, which keeps precision, so a lower one is reversed.
        step = -1 if lower else 1
        result = _solved(_doubled(triangle[..., ::step, ::step]), _doubled(right[..., ::step, :]))
        result = _halved(result, triangle)[..., ::step, :]
    else:
        triangle = _regular(triangle, mx.diagonal(triangle, 0, -2, -1) != 0)
        result = mx.linalg.solve_triangular(triangle, right, upper=not lower, stream=mx.cpu)
    return _column(result, b).astype(a.dtype)


def _broadcast_pair(x1: mx.array, x2: mx.array) -> tuple[mx.array, mx.array]:
    """Square matrix and right-hand side with columns, broadcast to one batch shape."""
    a, b = _square(x1), _wide(x2[:, None] if x2.ndim == 1 else x2)
    if not b.size:
        raise NotImplementedError("matrices must have elements")
    check_right_side(x1, x2)
    batch = mx.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return mx.broadcast_to(a, (*batch, *a.shape[-2:])), mx.broadcast_to(b, (*batch, *b.shape[-2:]))


def _column(result: mx.array, right: mx.array) -> mx.array:
    return result.squeeze(-1) if right.ndim == 1 else result


@with_rule
def lstsq(a: mx.array, b: mx.array, /, rcond: Any = None) -> LstsqResult:
    with _without_gradients():
        result: LstsqResult = definition_of("lstsq")(a, b, rcond)
    return result


@with_rule
def cholesky(x: mx.array, /, *, upper: bool = False) -> mx.array:
    a = mx.tril(_square(x))
    if a.dtype == mx.complex64:
        below = mx.tril(a, -1)
        a = below + _adjoint(below) + mx.real(a * mx.eye(a.shape[-1]))
    else:
        a = a + mx.tril(a, -1).swapaxes(-2, -1)
    factor = mx.linalg.cholesky(_doubled(a), stream=mx.cpu)
    # MLX 0.32: failure is not reported, but leaves an invalid pivot on the diagonal.
    pivots = mx.diagonal(factor, 0, -2, -1)
    factor = _regular(factor, (pivots > 0) & (pivots < mx.inf), "the matrix is not positive definite")
    factor = _halved(factor, a).astype(x.dtype)
    return _adjoint(factor) if upper else factor


@with_rule
def lu(x: mx.array, /) -> LUResult:
    rows, lower, upper = mx.linalg.lu(_real(_matrix(x)), stream=mx.cpu)
    permutation = rows[..., :, None] == mx.arange(x.shape[-2])
    return LUResult(permutation.astype(x.dtype), lower.astype(x.dtype), upper.astype(x.dtype))


@with_rule
def lu_factor(x: mx.array, /) -> LUFactorResult:
    factors, pivots = mx.linalg.lu_factor(_real(_matrix(x)), stream=mx.cpu)
    return LUFactorResult(factors.astype(x.dtype), pivots.astype(mx.int64))


@with_rule
def qr(x: mx.array, /, *, mode: str = "reduced") -> QRResult:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', got {mode!r}")
    a = _matrix(x)
    m, n = a.shape[-2:]
    if mode == "complete" and m > n:
        # The basis is completed with columns of the identity, made orthogonal to the given columns.
        a = mx.concatenate([a, mx.broadcast_to(mx.eye(m).astype(a.dtype), (*a.shape[:-1], m))], -1)
    q, r = _evaluate(*mx.linalg.qr(_doubled(a), stream=mx.cpu))
    sign = _unit(mx.diagonal(r, 0, -2, -1))
    q, r = _halved(q * sign[..., None, :], a), _halved(r * sign[..., :, None], a)
    # Multiplication by a sign leaves negative zeros below the diagonal.
    r = mx.triu(r[..., :, :n])
    if mode == "complete" and m > n:
        q = mx.concatenate([q[..., :, :n], _with_fixed_phase(q[..., :, n:])], -1)
    return QRResult(q.astype(x.dtype), r.astype(x.dtype))


@with_rule
def svd(x: mx.array, /, *, full_matrices: bool = True) -> SVDResult:
    a, mask = _check_finite(_matrix(x), "singular values")
    results: Any = mx.linalg.svd(a, stream=mx.cpu)
    u, s, vh = _evaluate(*results)
    u, s, vh = _nan_where(u, mask), _nan_where(s, mask), _nan_where(vh, mask)
    k = s.shape[-1]
    if not full_matrices:
        u, vh = u[..., :, :k], vh[..., :k, :]
    phase = _phases(u)
    vectors = vh[..., :k, :] * mx.conj(phase[..., 0, :k, None])
    if vh.shape[-2] > k:
        rest = _with_fixed_phase(vh[..., k:, :].swapaxes(-2, -1)).swapaxes(-2, -1)
        vectors = mx.concatenate([vectors, rest], -2)
    return SVDResult(_narrow(u * phase, x), _narrow(s, x), _narrow(vectors, x))


@with_rule
def svdvals(x: mx.array, /) -> mx.array:
    a, mask = _check_finite(_matrix(x), "singular values")
    result: Any = mx.linalg.svd(a, compute_uv=False, stream=mx.cpu)
    return _narrow(_nan_where(_evaluate(result)[0], mask), x)


@with_rule
def eig(x: mx.array, /) -> EigResult:
    # MLX 0.32: eigenvectors of complex matrices are conjugated.
    a, mask = _eig_input(x)
    values, vectors = _evaluate(*mx.linalg.eig(_real(a), stream=mx.cpu))
    order = _order(values)
    vectors = mx.take_along_axis(vectors, mx.broadcast_to(order[..., None, :], vectors.shape), -1)
    values = mx.take_along_axis(values, order, -1)
    return EigResult(_nan_where(values, mask), _nan_where(_with_fixed_phase(vectors), mask))


@with_rule
def eigvals(x: mx.array, /) -> mx.array:
    a, mask = _eig_input(x)
    values = _evaluate(mx.linalg.eigvals(a, stream=mx.cpu))[0]
    return _nan_where(mx.take_along_axis(values, _order(values), -1), mask)


def _eig_input(x: mx.array) -> tuple[mx.array, mx.array | None]:
    if x.dtype == mx.float64:
        raise UnsupportedError("x must not be float64 on the mlx backend, which has no complex128 for its eigenvalues")
    return _check_finite(_square(x), "eigenvalues")


def _order(values: mx.array) -> mx.array:
    """Order by real part, then by imaginary part. Real parts that differ only by rounding count as equal."""
    step = mx.abs(values).max(-1, keepdims=True) * mx.finfo(mx.float32).eps ** 0.5
    real = mx.round(mx.real(values) / mx.where(step == 0, 1, step))
    first = mx.argsort(mx.imag(values), -1)
    return mx.take_along_axis(first, mx.argsort(mx.take_along_axis(real, first, -1), -1), -1)


@with_rule
def eigh(x: mx.array, /) -> EigResult:
    a, mask = _check_finite(_square(x), "eigenvalues", lower=True)
    values, vectors = _evaluate(*mx.linalg.eigh(a, stream=mx.cpu))
    values, vectors = _nan_where(values, mask), _nan_where(_with_fixed_phase(vectors), mask)
    return EigResult(_narrow(values, x), _narrow(vectors, x))


@with_rule
def eigvalsh(x: mx.array, /) -> mx.array:
    a, mask = _check_finite(_square(x), "eigenvalues", lower=True)
    values = _evaluate(mx.linalg.eigvalsh(a, stream=mx.cpu))[0]
    return _narrow(_nan_where(values, mask), x)


def _check_finite(x: mx.array, what: str, lower: bool = False) -> tuple[mx.array, mx.array | None]:
    """Matrix for LAPACK, which may hang or crash on NaN and infinities, or an error if it is not finite.

    Where values cannot be read, matrices that are not finite become zero, and the second result is their mask.
    """
    # NumPy checks computed values faster than MLX.
    seen = _values_or_none(x) if is_checked() else None
    if seen is None:
        sound = mx.isfinite(mx.tril(x) if lower else x).all((-2, -1), keepdims=True)
        return mx.where(sound, x, mx.zeros_like(x)), mx.logical_not(sound)
    if not np.isfinite(seen).all() and not (lower and np.isfinite(np.tril(seen)).all()):
        raise LinAlgError(f"x must be finite, got NaN or infinities, for which the {what} did not converge")
    return x, None


def _nan_where(result: mx.array, mask: mx.array | None) -> mx.array:
    """``result``, matrices or vectors, with NaN for the matrices where ``mask`` is true."""
    if mask is None:
        return result
    mask = mask if result.ndim == mask.ndim else mask[..., 0]
    # MLX 0.32: the compiler cannot generate code for a complex NaN constant.
    return result + mx.where(mask, mx.nan, 0.0).astype(result.dtype)


@with_rule
def logm_spd(x: mx.array, /) -> mx.array:
    with _without_gradients():
        result: mx.array = definition_of("logm_spd")(x)
    return result


@with_rule
def sqrtm_spd(x: mx.array, /) -> mx.array:
    with _without_gradients():
        result: mx.array = definition_of("sqrtm_spd")(x)
    return result


def _with_fixed_phase(vectors: mx.array) -> mx.array:
    """Columns scaled so that their leading component is real and positive."""
    return vectors * _phases(vectors)


def _phases(vectors: mx.array) -> mx.array:
    """Factor of modulus one, for each column, that makes its leading component real and positive."""
    size = mx.abs(vectors)
    lead = mx.argmax(size >= 0.99 * size.max(-2, keepdims=True), -2, keepdims=True)
    return mx.conj(_unit(mx.take_along_axis(vectors, mx.stop_gradient(lead), -2)))


def _unit(x: mx.array) -> mx.array:
    """Sign or complex phase of each number; one for zero."""
    size = mx.abs(x)
    return mx.where(size > 0, x, mx.ones_like(x)) / mx.where(size > 0, size, mx.ones_like(size))


def _adjoint(x: mx.array) -> mx.array:
    return mx.conj(x.swapaxes(-2, -1)) if x.dtype == mx.complex64 else x.swapaxes(-2, -1)


def _doubled(x: mx.array) -> mx.array:
    """Complex matrix as a real one of twice the size; a real matrix unchanged."""
    if x.dtype != mx.complex64:
        return x
    real, imaginary = mx.real(x), mx.imag(x)
    blocks = mx.stack([mx.stack([real, -imaginary], -1), mx.stack([imaginary, real], -1)], -3)
    return blocks.reshape((*x.shape[:-2], 2 * x.shape[-2], 2 * x.shape[-1]))


def _halved(result: mx.array, x: mx.array) -> mx.array:
    """Inverse of ``_doubled`` if ``x`` is complex, else ``result`` unchanged."""
    if x.dtype != mx.complex64:
        return result
    return result[..., ::2, ::2] + mx.array(1j, mx.complex64) * result[..., 1::2, ::2]


def _matrix(x: mx.array) -> mx.array:
    """Matrix that MLX can decompose: half precision as float32. Empty matrices are left to NumPy."""
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")
    if not x.size:
        raise NotImplementedError("matrices must have elements")
    return _wide(x)


def _square(x: mx.array) -> mx.array:
    if x.ndim >= 2 and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"x must be square in its last two axes, got shape {list(x.shape)}")
    return _matrix(x)


def _real(x: mx.array) -> mx.array:
    """``x``, which must be real; complex matrices are left to NumPy."""
    if x.dtype == mx.complex64:
        raise NotImplementedError("x must be real")
    return x


def _narrow(result: mx.array, x: mx.array) -> mx.array:
    """``result`` cast back to the dtype of ``x``, if that is a half-precision dtype."""
    return result.astype(x.dtype) if x.dtype in (mx.float16, mx.bfloat16) else result


def _evaluate(*results: mx.array) -> tuple[mx.array, ...]:
    """Evaluate results now, so that a failure is raised here as a ``LinAlgError``; not in compiled code."""
    if is_checked():
        try:
            mx.eval(*results)
        except RuntimeError as error:
            raise LinAlgError(
                f"x must be an invertible matrix, got a singular one, or the computation did not converge: {error}"
            ) from error
        except ValueError:
            # Traced arrays cannot be evaluated.
            pass
    return results


def _check(sound: mx.array, message: str) -> bool:
    """Raise unless all of ``sound`` is true; return whether that could be checked, which compiled code prevents."""
    values = _values_or_none(sound) if is_checked() else None
    if values is None:
        return False
    if not values.all():
        raise LinAlgError(message)
    return True
