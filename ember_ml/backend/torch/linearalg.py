"""Linear algebra on PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, linalg

from ember_ml.backend import native_for
from ember_ml.backend.torch.core import is_pushed
from ember_ml.backend.torch.indexing import _is_true
from ember_ml.backend.torch.transform import is_bent
from ember_ml.dispatch import definition_of
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
from ember_ml.shapes import check_square, is_by_product
from ember_ml.unchecked import is_checked


@native_for(torch.matmul, "floating")
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    if x1.is_cpu or x1.is_floating_point() or x1.is_complex():
        return torch.matmul(x1, x2)
    return _whole(x1, x2)


def _whole(x1: Tensor, x2: Tensor) -> Tensor:
    """The product of integers by sums, where there is no kernel for it."""
    rows = x1[None, :] if x1.ndim == 1 else x1
    columns = x2[:, None] if x2.ndim == 1 else x2
    if rows.shape[-1] != columns.shape[-2]:
        raise ValueError(
            f"the shapes of x1 and x2 must fit for a matrix product, got {list(x1.shape)} and {list(x2.shape)}"
        )
    answer = torch.sum(rows[..., :, :, None] * columns[..., None, :, :], -2, dtype=x1.dtype)
    answer = answer.squeeze(-1) if x2.ndim == 1 else answer
    return answer.squeeze(-1 if x2.ndim == 1 else -2) if x1.ndim == 1 else answer


def einsum(equation: str, /, *operands: Tensor) -> Tensor:
    if len(operands) != _count(equation):
        raise TypeError(
            f"operands must be as many as equation names, {_count(equation)} in {equation!r}, got {len(operands)}"
        )
    if not operands[0].is_cpu and not (operands[0].is_floating_point() or operands[0].is_complex()):
        raise NotImplementedError("operands must not be integers on this device")
    answer = torch.einsum(equation, *operands)
    # torch widens the sum of a single operand of integers.
    return answer if answer.dtype is operands[0].dtype else answer.to(operands[0].dtype)


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
        # torch takes this to mean all axes.
        return (x != 0).to(x.abs().dtype) if ord == 0 else x.abs()
    if ord < 0 and not x.numel():
        # torch refuses the norm of no elements.
        return definition_of("vector_norm")(x, axis=axis, keepdims=keepdims, ord=ord)
    return _narrow(linalg.vector_norm(_wide(x), ord, axis, keepdims), x)


def det(x: Tensor, /) -> Tensor:
    a = _wide(x)
    answer = linalg.det(a)
    if (x.requires_grad or is_pushed(x)) and _may_look() and _is_true(answer.all()) is False:
        # torch's own slope of a determinant of zero is zero more often than not.
        lost = answer.detach() == 0
        matrices = lost[..., None, None]
        still = torch.where(matrices, a.detach(), 0)
        slope = (_cofactors(still) * (torch.where(matrices, a, 0) - still)).sum((-2, -1))
        regular = linalg.det(torch.where(matrices, torch.eye(a.shape[-1], dtype=a.dtype, device=a.device), a))
        answer = torch.where(lost, slope, regular)
    return answer.to(x.dtype)


def _cofactors(a: Tensor) -> Tensor:
    """The slopes of determinants, from singular values and vectors."""
    u, s, vh = linalg.svd(a, full_matrices=False)
    ones = torch.ones_like(s[..., :1])
    before = torch.cat([ones, s[..., :-1]], -1).cumprod(-1)
    after = torch.cat([s[..., 1:], ones], -1).flip(-1).cumprod(-1).flip(-1)
    others = before * after * linalg.det(u @ vh)[..., None]
    return (u.conj() * others[..., None, :]) @ vh.conj()


def slogdet(x: Tensor, /) -> SlogdetResult:
    sign, size = linalg.slogdet(_wide(x))
    if x.is_cuda:
        # There the size of a determinant with NaN in it is that of a singular one.
        size = size.where(~x.isnan().any(-1).any(-1), torch.nan)
    return SlogdetResult(_narrow(sign, x), _narrow(size, x))


def inv(x: Tensor, /) -> Tensor:
    return linalg.inv(_wide(x)).to(x.dtype)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    a, b = _wide(x1), _wide(x2)
    if x2.ndim == 1:
        return linalg.solve(a, b[:, None]).squeeze(-1).to(x1.dtype)
    if x1.ndim - 1 == x2.ndim and x1.shape[:-1] == x2.shape:
        # torch would take this for a batch of vectors.
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
    if not unit_diagonal and _may_look() and bool((torch.diagonal(triangle, 0, -2, -1) == 0).any()):
        raise LinAlgError("the matrix must be invertible, got a singular one with a zero on its diagonal")
    if adjoint:
        triangle, lower = triangle.mH, not lower
    columns = right[:, None] if b.ndim == 1 else right
    answer = linalg.solve_triangular(triangle, columns, upper=not lower, unitriangular=unit_diagonal).to(a.dtype)
    return answer.squeeze(-1) if b.ndim == 1 else answer


def _may_look() -> bool:
    """Whether values may be looked at: not in compiled code."""
    return not torch.compiler.is_compiling() and is_checked()


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    factor = linalg.cholesky(_wide(x)).to(x.dtype)
    return factor.mH if upper else factor


def lu(x: Tensor, /) -> LUResult:
    return LUResult(*(part.to(x.dtype) for part in linalg.lu(_wide(x))))


def lu_factor(x: Tensor, /) -> LUFactorResult:
    # The plain function refuses singular matrices.
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
        q = torch.cat([q[..., :, :k] * phase[..., None, :].conj(), _fixed(q[..., :, k:])], -1)
        r = torch.cat([r[..., :k, :] * phase[..., :, None], r[..., k:, :]], -2)
    # A phase has made some zeros below the diagonal negative.
    return QRResult(q.to(x.dtype), r.triu().to(x.dtype))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    u, s, vh = linalg.svd(_wide(x), full_matrices)
    _check_numbers(s)
    if x.numel():
        k = s.shape[-1]
        phase = _phases(u)
        u = u * phase
        rest = vh[..., k:, :]
        vh = vh[..., :k, :] * phase[..., 0, :k, None].conj()
        vh = torch.cat([vh, _fixed(rest.mT).mT], -2) if rest.shape[-2] else vh
    return SVDResult(_narrow(u, x), _narrow(s, x), _narrow(vh, x))


def svdvals(x: Tensor, /) -> Tensor:
    values = linalg.svdvals(_wide(x))
    _check_numbers(values)
    return _narrow(values, x)


def _check_numbers(values: Tensor) -> None:
    """Raise if the decomposition failed, which torch does not always say; on CUDA infinities come through."""
    if _may_look() and _is_true((~values.isfinite() if values.is_cuda else values.isnan()).any()):
        raise LinAlgError("x must be finite, got NaN or infinities, for which the singular values did not converge")


def eig(x: Tensor, /) -> EigResult:
    values, vectors = linalg.eig(_finite(x))
    order = _order(values)
    vectors = torch.take_along_dim(vectors, order[..., None, :].expand(vectors.shape), -1)
    return EigResult(torch.take_along_dim(values, order, -1), _fixed(vectors))


def eigvals(x: Tensor, /) -> Tensor:
    # Given values that are not finite, torch's own ends the process; compiled code cannot look at them first.
    values = linalg.eigvals(_finite(x)) if _may_look() else linalg.eig(_wide(x)).eigenvalues
    return torch.take_along_dim(values, _order(values), -1)


def _finite(x: Tensor) -> Tensor:
    if _may_look() and not bool(torch.isfinite(x).all()):
        raise LinAlgError("x must be finite, got NaN or infinities, for which the eigenvalues did not converge")
    return _wide(x)


def _order(values: Tensor) -> Tensor:
    """The order by real part, then by imaginary part; real parts that differ by rounding are taken as equal."""
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
    if (x.requires_grad or is_pushed(x)) and _may_look() and _is_true((values[..., 1:] == values[..., :-1]).any()):
        values, vectors = _tied(a, values.detach(), vectors.detach())
    return EigResult(_narrow(values, x), _narrow(_fixed(vectors), x))


def _tied(a: Tensor, values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, some of them equal, and vectors with slopes: none where equal values turn vectors, not NaN."""
    change = vectors.mH @ (a - a.detach()) @ vectors
    gaps = values[..., None, :] - values[..., :, None]
    turns = change * torch.where(gaps == 0, 0, 1 / torch.where(gaps == 0, 1, gaps))
    return values + torch.diagonal(change, 0, -2, -1).real, vectors + vectors @ turns


def eigvalsh(x: Tensor, /) -> Tensor:
    values = linalg.eigvalsh(_wide(x))
    _check_lower(x)
    return _narrow(values, x)


def _check_lower(x: Tensor) -> None:
    """Raise unless the lower half is finite: LAPACK may answer with numbers all the same."""
    # A sum is finite only if everything is, and quicker to look at.
    if _may_look() and _is_true(x.sum().isfinite()) is False and _is_true(x.tril().isfinite().all()) is False:
        raise LinAlgError("x must be finite, got NaN or infinities, for which the eigenvalues did not converge")


def expm(x: Tensor, /) -> Tensor:
    return torch.matrix_exp(_wide(x)).to(x.dtype)


def cdist(x: Tensor, y: Tensor, /, p: float = 2.0) -> Tensor:
    if x.ndim >= 2 and y.ndim >= 2 and x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x and y must have points of as many coordinates, got {x.shape[-1]} and {y.shape[-1]}")
    if is_bent():
        # torch's own has one derivative, on the way back.
        distances: Tensor = definition_of("cdist")(x, y, p)
        return distances
    a, b = _wide(x), _wide(y)
    if not is_by_product(x, y, p):
        return torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist").to(x.dtype)
    # Around a common centre the squares are small, and so is the error of their difference.
    centre = a.detach().mean(0).nan_to_num(0.0, 0.0, 0.0)
    return torch.cdist(a - centre, b - centre).to(x.dtype)


def _fixed(vectors: Tensor) -> Tensor:
    """Columns whose leading component is real and positive."""
    return vectors * _phases(vectors) if vectors.numel() else vectors


def _phases(vectors: Tensor) -> Tensor:
    """For each column, the factor of modulus one that makes its leading component real and positive."""
    size = vectors.abs()
    lead = torch.argmax((size >= 0.99 * size.amax(-2, keepdim=True)).to(torch.uint8), -2, keepdim=True)
    return vectors.gather(-2, lead).sgn().conj()


def _unit(x: Tensor) -> Tensor:
    """The sign of each number, or its phase; one for zero."""
    if not x.is_complex():
        return torch.where(x < 0, -1, 1).to(x.dtype)
    size = x.abs()
    return torch.where(size > 0, x, 1) / torch.where(size > 0, size, 1)


def _wide(x: Tensor) -> Tensor:
    """Halves as float32, which LAPACK knows."""
    return x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x


def _narrow(answer: Tensor, x: Tensor) -> Tensor:
    """What was computed in float32 for halves, as halves again."""
    return answer.to(x.dtype) if x.dtype in (torch.float16, torch.bfloat16) else answer
