"""Linear algebra on torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, linalg

from ember_ml.backend import native_for
from ember_ml.backend.torch.core import has_tangent
from ember_ml.backend.torch.indexing import _is_true
from ember_ml.backend.torch.transform import needs_more_than_backward
from ember_ml.dispatch import definition_of
from ember_ml.dispatch.checks import is_checked
from ember_ml.dtypes import written
from ember_ml.errors import LinAlgError
from ember_ml.ops.linearalg import (
    EigResult,
    LUFactorResult,
    LUResult,
    QRResult,
    SlogdetResult,
    SVDResult,
)
from ember_ml.shapes.linearalg import check_square, uses_matmul


@native_for(torch.matmul, "floating")
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    if x1.is_cpu or x1.is_floating_point() or x1.is_complex():
        return torch.matmul(x1, x2)
    return _integer_matmul(x1, x2)


def _integer_matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """Matrix product of integers as a sum of products, for devices without a kernel for it."""
    rows = x1[None, :] if x1.ndim == 1 else x1
    columns = x2[:, None] if x2.ndim == 1 else x2
    if not (x1.ndim and x2.ndim) or rows.shape[-1] != columns.shape[-2]:
        raise ValueError(
            f"the shapes of x1 and x2 must fit for a matrix product, got {list(x1.shape)} and {list(x2.shape)}"
        )
    result = torch.sum(rows[..., :, :, None] * columns[..., None, :, :], -2, dtype=x1.dtype)
    result = result.squeeze(-1) if x2.ndim == 1 else result
    return result.squeeze(-1 if x2.ndim == 1 else -2) if x1.ndim == 1 else result


def einsum(equation: str, /, *operands: Tensor) -> Tensor:
    if len(operands) != _count(equation):
        raise TypeError(
            f"operands must be as many as equation names, {_count(equation)} in {equation!r}, got {len(operands)}"
        )
    if not operands[0].is_cpu and not (operands[0].is_floating_point() or operands[0].is_complex()):
        raise NotImplementedError("operands must not be integers on this device")
    result = torch.einsum(equation, *operands)
    # torch 2.13: the sum of a single integer operand is widened.
    return result if result.dtype is operands[0].dtype else result.to(operands[0].dtype)


def _count(equation: str) -> int:
    if not isinstance(equation, str):
        raise TypeError(f"equation must be a string like 'ij,jk->ik', got {written(equation)}")
    return equation.partition("->")[0].count(",") + 1


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")
    m, n = x.shape[-2:]
    if not -m <= offset <= n:
        return x.new_zeros((*x.shape[:-2], 0))
    return torch.diagonal(x, offset, -2, -1)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: int | float = 2) -> Tensor:
    if axis == () or axis == []:
        # torch 2.13: an empty tuple means all axes.
        return (x != 0).to(x.abs().dtype) if ord == 0 else x.abs()
    if ord < 0 and not x.numel():
        # torch 2.13: negative orders raise for empty tensors.
        return definition_of("vector_norm")(x, axis=axis, keepdims=keepdims, ord=ord)
    return _narrow(linalg.vector_norm(_wide(x), ord, axis, keepdims), x)


def det(x: Tensor, /) -> Tensor:
    a = _wide(x)
    result = linalg.det(a)
    if (x.requires_grad or has_tangent(x)) and _can_read_values() and _is_true(result.all()) is False:
        # torch 2.13: the gradient of a zero determinant is usually zero, which is wrong for matrices of rank n - 1.
        singular = result.detach() == 0
        matrices = singular[..., None, None]
        constant = torch.where(matrices, a.detach(), 0)
        value = (_cofactors(constant) * (torch.where(matrices, a, 0) - constant)).sum((-2, -1))
        regular = linalg.det(torch.where(matrices, torch.eye(a.shape[-1], dtype=a.dtype, device=a.device), a))
        result = torch.where(singular, value, regular)
    return result.to(x.dtype)


def _cofactors(a: Tensor) -> Tensor:
    """Gradients of the determinants, from singular values and vectors."""
    u, s, vh = linalg.svd(a, full_matrices=False)
    ones = torch.ones_like(s[..., :1])
    before = torch.cat([ones, s[..., :-1]], -1).cumprod(-1)
    after = torch.cat([s[..., 1:], ones], -1).flip(-1).cumprod(-1).flip(-1)
    minors = before * after * linalg.det(u @ vh)[..., None]
    return (u.conj() * minors[..., None, :]) @ vh.conj()


def slogdet(x: Tensor, /) -> SlogdetResult:
    sign, size = linalg.slogdet(_wide(x))
    if x.is_cuda:
        # torch 2.13: on CUDA, logabsdet of a matrix that holds NaN is -inf.
        size = size.where(~x.isnan().any(-1).any(-1), torch.nan)
    return SlogdetResult(_narrow(sign, x), _narrow(size, x))


def inv(x: Tensor, /) -> Tensor:
    return linalg.inv(_wide(x)).to(x.dtype)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    a, b = _wide(x1), _wide(x2)
    if x2.ndim == 1:
        return linalg.solve(a, b[:, None]).squeeze(-1).to(x1.dtype)
    if x1.ndim - 1 == x2.ndim and x1.shape[:-1] == x2.shape:
        # torch would treat ``x2`` as a batch of vectors.
        b = b[None]
    return linalg.solve(a, b).to(x1.dtype)


def solve_triangular(
    a: Tensor,
    b: Tensor,
    /,
    *,
    lower: bool = False,
    adjoint: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:
    check_square(a)
    triangle, right = _wide(a), _wide(b)
    if not unit_diagonal and _can_read_values() and bool((torch.diagonal(triangle, 0, -2, -1) == 0).any()):
        raise LinAlgError("the matrix must be invertible, got a singular one with a zero on its diagonal")
    if adjoint:
        triangle, lower = triangle.mH, not lower
    columns = right[:, None] if b.ndim == 1 else right
    result = linalg.solve_triangular(triangle, columns, upper=not lower, unitriangular=unit_diagonal).to(a.dtype)
    return result.squeeze(-1) if b.ndim == 1 else result


def _can_read_values() -> bool:
    """Whether values can be read, which compiled code does not allow."""
    return not torch.compiler.is_compiling() and is_checked()


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    factor = linalg.cholesky(_wide(x)).to(x.dtype)
    return factor.mH if upper else factor


def lu(x: Tensor, /) -> LUResult:
    return LUResult(*(part.to(x.dtype) for part in linalg.lu(_wide(x))))


def lu_factor(x: Tensor, /) -> LUFactorResult:
    # ``linalg.lu_factor`` raises for singular matrices.
    factors, pivots, _ = linalg.lu_factor_ex(_wide(x))
    return LUFactorResult(factors.to(x.dtype), pivots.to(torch.int64) - 1)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', got {mode!r}")
    q, r = linalg.qr(_wide(x), mode)
    phase = _unit(torch.diagonal(r, 0, -2, -1)).conj()
    k = phase.shape[-1]
    if not r.numel():
        return QRResult(q.to(x.dtype), r.to(x.dtype))
    if q.shape[-1] == k:
        q, r = q * phase[..., None, :].conj(), r * phase[..., :, None]
    else:
        q = torch.cat([q[..., :, :k] * phase[..., None, :].conj(), _with_fixed_phase(q[..., :, k:])], -1)
        r = torch.cat([r[..., :k, :] * phase[..., :, None], r[..., k:, :]], -2)
    # Multiplication by a phase leaves negative zeros below the diagonal.
    return QRResult(q.to(x.dtype), r.triu().to(x.dtype))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    u, s, vh = linalg.svd(_wide(x), full_matrices)
    _check_converged(x, s)
    if x.numel():
        k = s.shape[-1]
        phase = _phases(u)
        u = u * phase
        rest = vh[..., k:, :]
        vh = vh[..., :k, :] * phase[..., 0, :k, None].conj()
        vh = torch.cat([vh, _with_fixed_phase(rest.mT).mT], -2) if rest.shape[-2] else vh
    return SVDResult(_narrow(u, x), _narrow(s, x), _narrow(vh, x))


def svdvals(x: Tensor, /) -> Tensor:
    values = linalg.svdvals(_wide(x))
    _check_converged(x, values)
    return _narrow(values, x)


def _check_converged(x: Tensor, values: Tensor) -> None:
    """Raise if the decomposition failed.

    torch 2.13 does not always report it, and on CUDA infinities reach the singular values. On CUDA, PyTorch 2.11
    computes finite ones for some matrices that hold NaN or infinities.
    """
    if not _can_read_values():
        return
    failed = ~(values.isfinite().all() & x.isfinite().all()) if values.is_cuda else values.isnan().any()
    if _is_true(failed):
        raise LinAlgError("x must be finite, got NaN or infinities, for which the singular values did not converge")


def eig(x: Tensor, /) -> EigResult:
    values, vectors = linalg.eig(_check_finite(x))
    order = _order(values)
    vectors = torch.take_along_dim(vectors, order[..., None, :].expand(vectors.shape), -1)
    return EigResult(torch.take_along_dim(values, order, -1), _with_fixed_phase(vectors))


def eigvals(x: Tensor, /) -> Tensor:
    # torch 2.13: eigvals ends the process on NaN or infinities, which compiled code cannot check for.
    values = linalg.eigvals(_check_finite(x)) if _can_read_values() else linalg.eig(_wide(x)).eigenvalues
    return torch.take_along_dim(values, _order(values), -1)


def _check_finite(x: Tensor) -> Tensor:
    if _can_read_values() and not bool(torch.isfinite(x).all()):
        raise LinAlgError("x must be finite, got NaN or infinities, for which the eigenvalues did not converge")
    return _wide(x)


def _order(values: Tensor) -> Tensor:
    """Order by real part, then by imaginary part. Real parts that differ only by rounding count as equal."""
    if not values.numel():
        return torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    step = values.abs().amax(-1, keepdim=True) * torch.finfo(values.dtype).eps ** 0.5
    real = torch.round(values.real / torch.where(step == 0, 1, step))
    first = torch.argsort(values.imag, dim=-1, stable=True)
    second = torch.argsort(torch.take_along_dim(real, first, -1), dim=-1, stable=True)
    return torch.take_along_dim(first, second, -1)


def eigh(x: Tensor, /) -> EigResult:
    a = _wide(x)
    values, vectors = linalg.eigh(a)
    _check_lower(x)
    if (
        (x.requires_grad or has_tangent(x))
        and _can_read_values()
        and _is_true((values[..., 1:] == values[..., :-1]).any())
    ):
        values, vectors = _eigh_of_ties(a, values.detach(), vectors.detach())
    return EigResult(_narrow(values, x), _narrow(_with_fixed_phase(vectors), x))


def _eigh_of_ties(a: Tensor, values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of matrices with repeated eigenvalues, with gradients.

    Between equal eigenvalues the eigenvectors get a gradient of zero instead of NaN.
    """
    change = vectors.mH @ (a - a.detach()) @ vectors
    gaps = values[..., None, :] - values[..., :, None]
    rotation = change * torch.where(gaps == 0, 0, 1 / torch.where(gaps == 0, 1, gaps))
    return values + torch.diagonal(change, 0, -2, -1).real, vectors + vectors @ rotation


def eigvalsh(x: Tensor, /) -> Tensor:
    values = linalg.eigvalsh(_wide(x))
    _check_lower(x)
    return _narrow(values, x)


def _check_lower(x: Tensor) -> None:
    """Raise unless the lower triangle is finite; LAPACK may return finite values otherwise."""
    # The sum is finite only if all elements are, and is cheaper to check.
    if _can_read_values() and _is_true(x.sum().isfinite()) is False and _is_true(x.tril().isfinite().all()) is False:
        raise LinAlgError("x must be finite, got NaN or infinities, for which the eigenvalues did not converge")


def expm(x: Tensor, /) -> Tensor:
    return torch.matrix_exp(_wide(x)).to(x.dtype)


def cdist(x: Tensor, y: Tensor, /, p: float = 2.0) -> Tensor:
    if x.ndim >= 2 and y.ndim >= 2 and x.shape[-1] != y.shape[-1]:
        raise ValueError(
            f"x and y must have points with the same number of coordinates, got {x.shape[-1]} and {y.shape[-1]}"
        )
    if needs_more_than_backward():
        # torch 2.13: cdist supports neither forward mode nor second derivatives.
        distances: Tensor = definition_of("cdist")(x, y, p)
        return distances
    a, b = _wide(x), _wide(y)
    if not uses_matmul(x, y, p):
        return torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist").to(x.dtype)
    # Around a common center the squares are small, and so is the rounding error of their difference.
    centre = a.detach().mean(0).nan_to_num(0.0, 0.0, 0.0)
    return torch.cdist(a - centre, b - centre).to(x.dtype)


def _with_fixed_phase(vectors: Tensor) -> Tensor:
    """Columns scaled so that their leading component is real and positive."""
    return vectors * _phases(vectors) if vectors.numel() else vectors


def _phases(vectors: Tensor) -> Tensor:
    """Factor of modulus one, for each column, that makes its leading component real and positive."""
    size = vectors.abs()
    lead = torch.argmax((size >= 0.99 * size.amax(-2, keepdim=True)).to(torch.uint8), -2, keepdim=True)
    return vectors.gather(-2, lead).sgn().conj()


def _unit(x: Tensor) -> Tensor:
    """Sign or complex phase of each number; one for zero."""
    if not x.is_complex():
        return torch.where(x < 0, -1, 1).to(x.dtype)
    size = x.abs()
    return torch.where(size > 0, x, 1) / torch.where(size > 0, size, 1)


def _wide(x: Tensor) -> Tensor:
    """Halves as float32, which LAPACK knows."""
    return x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x


def _narrow(result: Tensor, x: Tensor) -> Tensor:
    """``result`` cast back to the dtype of ``x``, if that is a half-precision dtype."""
    return result.to(x.dtype) if x.dtype in (torch.float16, torch.bfloat16) else result
