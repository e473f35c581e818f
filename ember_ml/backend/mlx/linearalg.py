"""Linear algebra on MLX, whose decompositions run on the CPU and know float32 and float64.

A complex matrix is given to them as a real one of twice the size, each number ``a + bi`` as ``[[a, -b], [b, a]]``:
products, inverses, Cholesky factors and triangles with a positive diagonal keep that form.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend import active, load, native_for
from ember_ml.backend.mlx.gradients import ruled
from ember_ml.backend.mlx.indexing import _seen
from ember_ml.dispatch import definition_of
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
from ember_ml.unchecked import is_checked


@native_for(mx.matmul, "floating")
def matmul(x1: mx.array, x2: mx.array, /) -> mx.array:
    return mx.matmul(x1, x2) if mx.issubdtype(x1.dtype, mx.inexact) else _whole(x1, x2)


def _whole(x1: mx.array, x2: mx.array) -> mx.array:
    """The product of integers by sums: MLX multiplies matrices of floats only."""
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
    answer = products.sum(-2).astype(x1.dtype) if products.size else mx.zeros(shape, x1.dtype)
    answer = answer.squeeze(-1) if x2.ndim == 1 else answer
    return answer.squeeze(-1 if x2.ndim == 1 else -2) if x1.ndim == 1 else answer


def diagonal(x: mx.array, /, *, offset: int = 0) -> mx.array:
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")
    m, n = x.shape[-2:]
    if not -m < offset < n:
        return mx.zeros((*x.shape[:-2], 0), x.dtype)
    return mx.diagonal(x, offset, -2, -1)


@ruled
def det(x: mx.array, /) -> mx.array:
    # MLX's own goes by logarithms, which costs digits.
    factors, pivots = mx.linalg.lu_factor(_real(_square(x)), stream=mx.cpu)
    exchanges = mx.sum(pivots != mx.arange(x.shape[-1], dtype=pivots.dtype), -1)
    product = mx.prod(mx.diagonal(factors, 0, -2, -1), -1)
    return mx.where(exchanges % 2 == 1, -product, product).astype(x.dtype)


@ruled
def slogdet(x: mx.array, /) -> SlogdetResult:
    a = _real(_square(x))
    return SlogdetResult(*(part.astype(x.dtype) for part in mx.linalg.slogdet(a, stream=mx.cpu)))


@ruled
def inv(x: mx.array, /) -> mx.array:
    a = _square(x)
    doubled = _doubled(a)
    # The inverse is that of the transpose, transposed: those pivots tell whether there is one.
    regular = _regular(doubled, _pivots(doubled.swapaxes(-2, -1)) != 0)
    return _halved(mx.linalg.inv(regular, stream=mx.cpu), a).astype(x.dtype)


@contextmanager
def _standing() -> Iterator[None]:
    """A block for definitions whose gradient is asked for apart."""
    from ember_ml.ops.linearalg import _without_slopes

    with active(load("mlx")), _without_slopes():
        yield


@ruled
def pinv(x: mx.array, /, *, rtol: Any = None) -> mx.array:
    with _standing():
        answer: mx.array = definition_of("pinv")(x, rtol=rtol)
    return answer


@ruled
def solve(x1: mx.array, x2: mx.array, /) -> mx.array:
    a, b = _together(x1, x2)
    return _column(_halved(_solved(_doubled(a), _doubled(b)), a), x2).astype(x1.dtype)


def _solved(a: mx.array, b: mx.array) -> mx.array:
    return mx.linalg.solve(_regular(a, _pivots(a) != 0), b, stream=mx.cpu)


def _pivots(a: mx.array) -> mx.array:
    """What elimination divides by."""
    return mx.diagonal(mx.linalg.lu_factor(a, stream=mx.cpu)[0], 0, -2, -1)


def _regular(a: mx.array, sound: mx.array, message: str = "the matrix is singular") -> mx.array:
    """A matrix whose pivots are all sound, else an error; NaN in its place where nobody may look.

    MLX itself raises an error in a thread of its own, and sometimes waits for that thread for ever.
    """
    if not _refuse(sound, message):
        return mx.where(sound.all(-1)[..., None, None], a, mx.array(mx.nan, a.dtype))
    return a


@ruled
def solve_triangular(
    a: mx.array,
    b: mx.array,
    /,
    *,
    lower: bool = False,
    adjoint: bool = False,
    unit_diagonal: bool = False,
) -> mx.array:
    triangle, right = _together(a, b)
    triangle = mx.tril(triangle) if lower else mx.triu(triangle)
    if unit_diagonal:
        triangle = mx.where(mx.eye(a.shape[-1]) > 0, mx.array(1, triangle.dtype), triangle)
    if adjoint:
        triangle, lower = _adjoint(triangle), not lower
    if triangle.dtype == mx.complex64:
        # Of an upper triangle no rows are exchanged, which would cost digits: a lower one is solved backwards.
        step = -1 if lower else 1
        answer = _solved(_doubled(triangle[..., ::step, ::step]), _doubled(right[..., ::step, :]))
        answer = _halved(answer, triangle)[..., ::step, :]
    else:
        triangle = _regular(triangle, mx.diagonal(triangle, 0, -2, -1) != 0)
        answer = mx.linalg.solve_triangular(triangle, right, upper=not lower, stream=mx.cpu)
    return _column(answer, b).astype(a.dtype)


def _together(x1: mx.array, x2: mx.array) -> tuple[mx.array, mx.array]:
    """A square matrix and a right side of columns, with one batch."""
    a, b = _square(x1), _wide(x2[:, None] if x2.ndim == 1 else x2)
    if not b.size:
        raise NotImplementedError("matrices must have elements")
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(
            f"the shapes of the matrix and the right side must fit, got {list(x1.shape)} and {list(x2.shape)}"
        )
    batch = mx.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return mx.broadcast_to(a, (*batch, *a.shape[-2:])), mx.broadcast_to(b, (*batch, *b.shape[-2:]))


def _column(answer: mx.array, right: mx.array) -> mx.array:
    return answer.squeeze(-1) if right.ndim == 1 else answer


@ruled
def lstsq(a: mx.array, b: mx.array, /, rcond: Any = None) -> LstsqResult:
    with _standing():
        answer: LstsqResult = definition_of("lstsq")(a, b, rcond)
    return answer


@ruled
def cholesky(x: mx.array, /, *, upper: bool = False) -> mx.array:
    a = mx.tril(_square(x))
    if a.dtype == mx.complex64:
        below = mx.tril(a, -1)
        a = below + _adjoint(below) + mx.real(a * mx.eye(a.shape[-1]))
    else:
        a = a + mx.tril(a, -1).swapaxes(-2, -1)
    factor = mx.linalg.cholesky(_doubled(a), stream=mx.cpu)
    # MLX does not say that it stopped, but leaves what it stopped at on the diagonal.
    pivots = mx.diagonal(factor, 0, -2, -1)
    factor = _regular(factor, (pivots > 0) & (pivots < mx.inf), "the matrix is not positive definite")
    factor = _halved(factor, a).astype(x.dtype)
    return _adjoint(factor) if upper else factor


@ruled
def lu(x: mx.array, /) -> LUResult:
    rows, lower, upper = mx.linalg.lu(_real(_matrix(x)), stream=mx.cpu)
    permutation = rows[..., :, None] == mx.arange(x.shape[-2])
    return LUResult(permutation.astype(x.dtype), lower.astype(x.dtype), upper.astype(x.dtype))


@ruled
def lu_factor(x: mx.array, /) -> LUFactorResult:
    factors, pivots = mx.linalg.lu_factor(_real(_matrix(x)), stream=mx.cpu)
    return LUFactorResult(factors.astype(x.dtype), pivots.astype(mx.int64))


@ruled
def qr(x: mx.array, /, *, mode: str = "reduced") -> QRResult:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', got {mode!r}")
    a = _matrix(x)
    m, n = a.shape[-2:]
    if mode == "complete" and m > n:
        # Columns that complete the basis: those of the identity, made orthogonal to what is there.
        a = mx.concatenate([a, mx.broadcast_to(mx.eye(m).astype(a.dtype), (*a.shape[:-1], m))], -1)
    q, r = _settled(*mx.linalg.qr(_doubled(a), stream=mx.cpu))
    sign = _unit(mx.diagonal(r, 0, -2, -1))
    q, r = _halved(q * sign[..., None, :], a), _halved(r * sign[..., :, None], a)
    # A sign has made some zeros below the diagonal negative.
    r = mx.triu(r[..., :, :n])
    if mode == "complete" and m > n:
        q = mx.concatenate([q[..., :, :n], _fixed(q[..., :, n:])], -1)
    return QRResult(q.astype(x.dtype), r.astype(x.dtype))


@ruled
def svd(x: mx.array, /, *, full_matrices: bool = True) -> SVDResult:
    a, lost = _finite(_matrix(x), "singular values")
    answers: Any = mx.linalg.svd(a, stream=mx.cpu)
    u, s, vh = _settled(*answers)
    u, s, vh = _marked(u, lost), _marked(s, lost), _marked(vh, lost)
    k = s.shape[-1]
    if not full_matrices:
        u, vh = u[..., :, :k], vh[..., :k, :]
    phase = _phases(u)
    vectors = vh[..., :k, :] * mx.conj(phase[..., 0, :k, None])
    if vh.shape[-2] > k:
        rest = _fixed(vh[..., k:, :].swapaxes(-2, -1)).swapaxes(-2, -1)
        vectors = mx.concatenate([vectors, rest], -2)
    return SVDResult(_narrow(u * phase, x), _narrow(s, x), _narrow(vectors, x))


@ruled
def svdvals(x: mx.array, /) -> mx.array:
    a, lost = _finite(_matrix(x), "singular values")
    answer: Any = mx.linalg.svd(a, compute_uv=False, stream=mx.cpu)
    return _narrow(_marked(_settled(answer)[0], lost), x)


@ruled
def eig(x: mx.array, /) -> EigResult:
    # MLX conjugates the eigenvectors of complex matrices.
    a, lost = _general(x)
    values, vectors = _settled(*mx.linalg.eig(_real(a), stream=mx.cpu))
    order = _order(values)
    vectors = mx.take_along_axis(vectors, mx.broadcast_to(order[..., None, :], vectors.shape), -1)
    values = mx.take_along_axis(values, order, -1)
    return EigResult(_marked(values, lost), _marked(_fixed(vectors), lost))


@ruled
def eigvals(x: mx.array, /) -> mx.array:
    a, lost = _general(x)
    values = _settled(mx.linalg.eigvals(a, stream=mx.cpu))[0]
    return _marked(mx.take_along_axis(values, _order(values), -1), lost)


def _general(x: mx.array) -> tuple[mx.array, mx.array | None]:
    if x.dtype == mx.float64:
        raise UnsupportedError("x must not be float64 on the mlx backend, which has no complex128 for its eigenvalues")
    return _finite(_square(x), "eigenvalues")


def _order(values: mx.array) -> mx.array:
    """The order by real part, then by imaginary part; real parts that differ by rounding are taken as equal."""
    step = mx.abs(values).max(-1, keepdims=True) * mx.finfo(mx.float32).eps ** 0.5
    real = mx.round(mx.real(values) / mx.where(step == 0, 1, step))
    first = mx.argsort(mx.imag(values), -1)
    return mx.take_along_axis(first, mx.argsort(mx.take_along_axis(real, first, -1), -1), -1)


@ruled
def eigh(x: mx.array, /) -> EigResult:
    a, lost = _finite(_square(x), "eigenvalues", lower=True)
    values, vectors = _settled(*mx.linalg.eigh(a, stream=mx.cpu))
    values, vectors = _marked(values, lost), _marked(_fixed(vectors), lost)
    return EigResult(_narrow(values, x), _narrow(vectors, x))


@ruled
def eigvalsh(x: mx.array, /) -> mx.array:
    a, lost = _finite(_square(x), "eigenvalues", lower=True)
    values = _settled(mx.linalg.eigvalsh(a, stream=mx.cpu))[0]
    return _narrow(_marked(values, lost), x)


def _finite(x: mx.array, what: str, lower: bool = False) -> tuple[mx.array, mx.array | None]:
    """A matrix for LAPACK, or an error; where nobody may look, zeros for one that is not finite, and which are such.

    Given NaN or infinities, LAPACK may never come to an end, or end the process.
    """
    # NumPy looks faster at what is there already.
    seen = _seen(x) if is_checked() else None
    if seen is None:
        sound = mx.isfinite(mx.tril(x) if lower else x).all((-2, -1), keepdims=True)
        return mx.where(sound, x, mx.zeros_like(x)), mx.logical_not(sound)
    if not np.isfinite(seen).all() and not (lower and np.isfinite(np.tril(seen)).all()):
        raise LinAlgError(f"x must be finite, got NaN or infinities, for which the {what} did not converge")
    return x, None


def _marked(answer: mx.array, lost: mx.array | None) -> mx.array:
    """The answer, matrices or vectors, with NaN for the matrices that are lost."""
    if lost is None:
        return answer
    lost = lost if answer.ndim == lost.ndim else lost[..., 0]
    # A complex NaN as a constant is more than MLX's compiler can write.
    return answer + mx.where(lost, mx.nan, 0.0).astype(answer.dtype)


@ruled
def logm_spd(x: mx.array, /) -> mx.array:
    with _standing():
        answer: mx.array = definition_of("logm_spd")(x)
    return answer


@ruled
def sqrtm_spd(x: mx.array, /) -> mx.array:
    with _standing():
        answer: mx.array = definition_of("sqrtm_spd")(x)
    return answer


def _fixed(vectors: mx.array) -> mx.array:
    """Columns whose leading component is real and positive."""
    return vectors * _phases(vectors)


def _phases(vectors: mx.array) -> mx.array:
    """For each column, the factor of modulus one that makes its leading component real and positive."""
    size = mx.abs(vectors)
    lead = mx.argmax(size >= 0.99 * size.max(-2, keepdims=True), -2, keepdims=True)
    return mx.conj(_unit(mx.take_along_axis(vectors, mx.stop_gradient(lead), -2)))


def _unit(x: mx.array) -> mx.array:
    """The sign of each number, or its phase; one for zero."""
    size = mx.abs(x)
    return mx.where(size > 0, x, mx.ones_like(x)) / mx.where(size > 0, size, mx.ones_like(size))


def _adjoint(x: mx.array) -> mx.array:
    return mx.conj(x.swapaxes(-2, -1)) if x.dtype == mx.complex64 else x.swapaxes(-2, -1)


def _doubled(x: mx.array) -> mx.array:
    """A complex matrix as a real one of twice the size; a real one as it is."""
    if x.dtype != mx.complex64:
        return x
    real, imaginary = mx.real(x), mx.imag(x)
    blocks = mx.stack([mx.stack([real, -imaginary], -1), mx.stack([imaginary, real], -1)], -3)
    return blocks.reshape((*x.shape[:-2], 2 * x.shape[-2], 2 * x.shape[-1]))


def _halved(answer: mx.array, x: mx.array) -> mx.array:
    """What ``_doubled`` was made of, where ``x`` was complex."""
    if x.dtype != mx.complex64:
        return answer
    return answer[..., ::2, ::2] + mx.array(1j, mx.complex64) * answer[..., 1::2, ::2]


def _matrix(x: mx.array) -> mx.array:
    """A matrix that MLX decomposes: halves as float32, and none without elements, which the reference takes."""
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
    """A real matrix; a complex one is left to the reference."""
    if x.dtype == mx.complex64:
        raise NotImplementedError("x must be real")
    return x


def _wide(x: mx.array) -> mx.array:
    return x.astype(mx.float32) if x.dtype in (mx.float16, mx.bfloat16) else x


def _narrow(answer: mx.array, x: mx.array) -> mx.array:
    """What was computed in float32 for halves, as halves again."""
    return answer.astype(x.dtype) if x.dtype in (mx.float16, mx.bfloat16) else answer


def _settled(*answers: mx.array) -> tuple[mx.array, ...]:
    """The answers, computed now, so that a failure is raised here and in its own class; compilers compute later."""
    if is_checked():
        try:
            mx.eval(*answers)
        except RuntimeError as error:
            raise LinAlgError(
                f"x must be an invertible matrix, got a singular one, or the computation did not converge: {error}"
            ) from error
        except ValueError:
            # Compiled code has no values yet.
            pass
    return answers


def _refuse(sound: mx.array, message: str) -> bool:
    """Raise unless all of ``sound`` is true, which compiled code has no values to tell; whether it was told."""
    if is_checked():
        try:
            fine = bool(mx.all(sound))
        except ValueError:
            return False
        if not fine:
            raise LinAlgError(message)
        return True
    return False
