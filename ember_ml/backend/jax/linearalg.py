"""Linear algebra on JAX, whose decompositions give NaN where they fail.

Their gradients are defined here where those of JAX are missing, or not finite for equal eigenvalues or singular values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ember_ml.backend.jax.core import is_traced, jitted, precision, static, static_lists
from ember_ml.backend.jax.gradients import with_rule
from ember_ml.backend.jax.stats import axis_in, root, squares, wide
from ember_ml.dispatch import definition_of
from ember_ml.dispatch.checks import is_checked
from ember_ml.errors import LinAlgError
from ember_ml.ops.linearalg import EigResult, LUFactorResult, LUResult, QRResult, SlogdetResult, SVDResult
from ember_ml.shapes.linearalg import check_matrix, check_right_side, check_square, paired_axes, sizes_of, terms_of

F = TypeVar("F", bound=Callable[..., Any])

_SINGULAR = "the matrix is singular"
_NOT_FINITE = "x must be finite, got NaN or infinities, for which the {} did not converge"


def _product(*matrices: Array) -> Array:
    first, *rest = matrices
    for other in rest:
        first = jnp.matmul(first, other, precision=precision(first))
    return first


matmul = jitted(lambda x1, x2: _product(x1, x2))
dot = jitted(lambda x, y: jnp.dot(x, y, precision=precision(x)))
vdot = jitted(lambda x, y: jnp.vdot(x, y, precision=precision(x)))
inner = jitted(lambda x, y: jnp.inner(x, y, precision=precision(x)))
outer = jitted(jnp.outer)
vecdot = jitted(definition_of("vecdot"), "axis")


@static_lists("axes")
def tensordot(x1: Array, x2: Array, /, axes: Any = 2) -> Array:
    return jnp.tensordot(x1, x2, paired_axes(x1, x2, axes), precision=precision(x1))


def einsum(equation: str, /, *operands: Array) -> Array:
    return _einsum(equation if type(equation) is str else terms_of(equation, operands), *operands)


@static("equation")
def _einsum(equation: Any, *operands: Array) -> Array:
    sizes_of(terms_of(equation, operands)[0], operands)
    return jnp.einsum(equation, *operands, precision=precision(operands[0]))


kron = jitted(definition_of("kron"))
cross = jitted(definition_of("cross"), "axis", "axisa", "axisb", "axisc")
trace = jitted(definition_of("trace"), "offset", "axis1", "axis2", "dtype")


@static("offset")
def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    check_matrix(x)
    return jnp.diagonal(x, offset, -2, -1)


@static_lists("axis", "keepdims", "ord")
def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: int | float = 2) -> Array:
    if ord != 2:
        result: Array = definition_of("vector_norm")(x, axis=axis, keepdims=keepdims, ord=ord)
        return result
    return _narrow(root(jnp.sum(squares(wide(x)), axis_in(x, axis), keepdims=keepdims)), x)


@jitted
def det(x: Array, /) -> Array:
    return _narrow(jnp.linalg.det(_square(x)), x)


@jitted
def slogdet(x: Array, /) -> SlogdetResult:
    sign, size = jnp.linalg.slogdet(_square(x))
    return SlogdetResult(_narrow(jnp.where(jnp.isnan(size), 0, sign), x), _narrow(size, x))


def _raising(message: str, *names: str) -> Callable[[F], F]:
    """Decorator for a function that also returns for which matrices it succeeded. The others get NaN.

    Where that can be seen, they raise an error with this message instead. ``names`` are those of the options.
    """

    def decorate(function: F) -> F:
        def masked(x: Array, *rest: Any, **options: Any) -> Any:
            results, sound = function(x, *rest, **options)
            spread = (jnp.expand_dims(sound, tuple(range(sound.ndim, part.ndim))) for part in jax.tree.leaves(results))
            return jax.tree.map(lambda r: _narrow(jnp.where(next(spread), r, jnp.nan), x), results), sound.all()

        compiled = jitted(masked, *names)

        @wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            result, sound = compiled(*args, **options)
            if is_checked() and not is_traced(sound) and not sound:
                raise LinAlgError(message)
            return result

        return run  # type: ignore[return-value]

    return decorate


@_raising(_SINGULAR)
def inv(x: Array, /) -> Any:
    a, sound = _regular(_square(x))
    return jnp.linalg.inv(a), sound


def _regular(a: Array) -> tuple[Array, Array]:
    """Matrices, with NaN everywhere if anywhere, and which have no zero pivot."""
    a = jnp.where(jnp.isnan(a).any((-2, -1), keepdims=True), jnp.nan, a)
    # The compiler joins this factorization with that of the solution.
    return a, (jnp.diagonal(lax.linalg.lu(lax.stop_gradient(a))[0], 0, -2, -1) != 0).all(-1)


def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    check_matrix(x)
    # JAX 0.10: the gradient needs a tolerance that is not traced.
    run: Any = definition_of("pinv") if isinstance(rtol, Array) else _pinv
    tolerance = max(x.shape[-2:]) * float(jnp.finfo(wide(x).dtype).eps)
    return run(x, rtol=tolerance if rtol is None else rtol)


@_raising(_NOT_FINITE.format("singular values"), "rtol")
def _pinv(x: Array, *, rtol: float) -> Any:
    a, sound = _finite(wide(x))
    return jnp.linalg.pinv(a, rtol=rtol), sound


@_raising(_SINGULAR)
def solve(x1: Array, x2: Array, /) -> Any:
    matrix, right = _pair(x1, x2)
    a, sound = _regular(matrix)
    result = jnp.linalg.solve(a, right)
    return result[..., 0] if x2.ndim == 1 else result, sound


def _pair(x1: Array, x2: Array) -> tuple[Array, Array]:
    """Square matrix and right-hand side with columns, broadcast to one batch shape."""
    a, b = _square(x1), wide(x2[:, None] if x2.ndim == 1 else x2)
    check_right_side(x1, x2)
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return jnp.broadcast_to(a, (*batch, *a.shape[-2:])), jnp.broadcast_to(b, (*batch, *b.shape[-2:]))


@_raising(_SINGULAR, "lower", "adjoint", "unit_diagonal")
def solve_triangular(
    a: Array, b: Array, /, *, lower: bool = False, adjoint: bool = False, unit_diagonal: bool = False
) -> Any:
    matrix, right = _pair(a, b)
    sound = (jnp.diagonal(matrix, 0, -2, -1) != 0).all(-1) | unit_diagonal
    options = {"lower": lower, "transpose_a": adjoint, "conjugate_a": adjoint, "unit_diagonal": unit_diagonal}
    result = lax.linalg.triangular_solve(matrix, right, left_side=True, **options)
    return result[..., 0] if b.ndim == 1 else result, sound


@_raising("the matrix is not positive definite", "upper")
def cholesky(x: Array, /, *, upper: bool = False) -> Any:
    factor = lax.linalg.cholesky(_from_lower(_square(x)))
    return _adjoint(factor) if upper else factor, jnp.isfinite(jnp.diagonal(factor, 0, -2, -1)).all(-1)


@jax.custom_jvp
def _from_lower(x: Array) -> Array:
    """Hermitian matrix with the lower triangle of ``x``. The gradient is that of ``x``, as if that were Hermitian."""
    below = jnp.tril(x, -1)
    return below + _adjoint(below) + jnp.eye(x.shape[-1], dtype=x.dtype) * jnp.tril(x).real


@_from_lower.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return _from_lower(*primals), tangents[0]


@jitted
def lu(x: Array, /) -> LUResult:
    check_matrix(x)
    factors, _, order = lax.linalg.lu(wide(x))
    m, k = x.shape[-2], min(x.shape[-2:])
    lower = jnp.tril(factors[..., :, :k], -1) + jnp.eye(m, k, dtype=factors.dtype)
    permutation = jnp.arange(m)[:, None] == order[..., None, :]
    return LUResult(permutation.astype(x.dtype), _narrow(lower, x), _narrow(jnp.triu(factors[..., :k, :]), x))


@jitted
def lu_factor(x: Array, /) -> LUFactorResult:
    check_matrix(x)
    factors, pivots, _ = lax.linalg.lu(wide(x))
    return LUFactorResult(_narrow(factors, x), pivots.astype(jnp.int64))


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', got {mode!r}")
    check_matrix(x)
    # JAX has no gradient for a basis that is completed, and the rule says so.
    run: Any = with_rule(_qr, "qr") if mode == "complete" and x.shape[-2] > x.shape[-1] else _qr
    return run(x, mode=mode)


@static("mode")
def _qr(x: Array, *, mode: str) -> QRResult:
    # The columns of a wide matrix beyond its square part follow from that: JAX has a gradient for tall matrices only.
    a, m, k = wide(x), x.shape[-2], min(x.shape[-2:])
    q, r = jnp.linalg.qr(a[..., :, :m], mode)
    unit = _unit(lax.stop_gradient(jnp.diagonal(r, 0, -2, -1)))
    q = jnp.concatenate([q[..., :, :k] * unit[..., None, :], _with_fixed_phase(q[..., :, k:])], -1)
    r = jnp.concatenate([r[..., :k, :] * unit[..., :, None].conj(), r[..., k:, :]], -2)
    # Multiplication by a sign leaves negative zeros below the diagonal.
    r = jnp.concatenate([jnp.triu(r), _product(_adjoint(q), a[..., :, m:])], -1)
    return QRResult(_narrow(q, x), _narrow(r, x))


@_raising(_NOT_FINITE.format("singular values"), "full_matrices")
def svd(x: Array, /, *, full_matrices: bool = True) -> Any:
    check_matrix(x)
    a, sound = _finite(wide(x))
    u, s, vh = _singular(a, full_matrices)
    k = s.shape[-1]
    phase = _phases(u)
    vectors = vh[..., :k, :] * phase[..., 0, :k, None].conj()
    vectors = jnp.concatenate([vectors, _with_fixed_phase(vh[..., k:, :].mT).mT], -2)
    return SVDResult(u * phase, s, vectors), sound


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _singular(a: Array, full: bool) -> tuple[Array, Array, Array]:
    u, s, vh = jnp.linalg.svd(a, full_matrices=full)
    return u, s, vh


@_singular.defjvp
def _(full: bool, primals: Any, tangents: Any) -> Any:
    """As JAX's rule, but zero instead of infinite for equal values, and for the vectors that complete a basis."""
    (a,), (change,) = primals, tangents
    outputs = all_u, s, all_vh = _singular(a, full)
    k = s.shape[-1]
    u, v = all_u[..., :, :k], _adjoint(all_vh[..., :k, :])
    right, left = _product(change, v), _product(_adjoint(change), u)
    turned = _product(_adjoint(u), right)
    # Factored, as fused squares would not cancel.
    gaps, inverse = _inverse_gaps(s) * _reciprocal(s[..., None, :] + s[..., :, None]), _reciprocal(s)[..., None, :]
    after, before = turned * s[..., None, :], turned * s[..., :, None]
    phases = (turned - _adjoint(turned)) / 2 * (jnp.eye(k, dtype=s.dtype) * inverse)
    du = _product(u, gaps * (after + _adjoint(after)) + phases)
    dv = _product(v, gaps * (before + _adjoint(before)))
    du += (right - _product(u, turned)) * inverse if u.shape[-2] > k else 0
    dv += (left - _product(v, _adjoint(turned))) * inverse if v.shape[-2] > k else 0
    still = [(0, 0)] * (a.ndim - 1)
    du, dv = (jnp.pad(d, [*still, (0, n - k)]) for d, n in ((du, all_u.shape[-1]), (dv, all_vh.shape[-2])))
    return outputs, (du, jnp.diagonal(turned, 0, -2, -1).real, _adjoint(dv))


def _inverse_gaps(values: Array) -> Array:
    """``1 / (values[j] - values[i])``, or zero where that is infinite."""
    return _reciprocal(values[..., None, :] - values[..., :, None])


def _reciprocal(x: Array) -> Array:
    return jnp.where(x == 0, 0, 1 / jnp.where(x == 0, 1, x))


@_raising(_NOT_FINITE.format("singular values"))
def svdvals(x: Array, /) -> Any:
    check_matrix(x)
    a, sound = _finite(wide(x))
    return _singular_values(a), sound


def _alone(values: Callable[[Array], Array], among: Callable[[Array], Array]) -> Any:
    """``values``, with the gradient of ``among``, which computes vectors too."""
    function = jax.custom_jvp(values)
    function.defjvp(lambda primals, tangents: jax.jvp(among, primals, tangents))
    return function


_singular_values = _alone(lambda a: jnp.linalg.svd(a, compute_uv=False), lambda a: _singular(a, False)[1])


@_raising(_NOT_FINITE.format("eigenvalues"))
def eig(x: Array, /) -> Any:
    a, sound = _finite(_square(x))
    values, vectors = _eigen(a)
    order = _order(values)
    vectors = jnp.take_along_axis(vectors, order[..., None, :], -1)
    return EigResult(jnp.take_along_axis(values, order, -1), _with_fixed_phase(vectors)), sound


@jax.custom_jvp
def _eigen(a: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eig(a)
    return values, vectors


@_eigen.defjvp
def _(primals: Any, tangents: Any) -> Any:
    values, vectors = _eigen(*primals)
    turned = jnp.linalg.solve(vectors, _product(tangents[0].astype(vectors.dtype), vectors))
    moved = _product(vectors, turned * _inverse_gaps(values))
    # Eigenvectors keep their length.
    moved -= vectors * jnp.sum(vectors.conj() * moved, -2, keepdims=True).real
    return (values, vectors), (jnp.diagonal(turned, 0, -2, -1), moved)


@_raising(_NOT_FINITE.format("eigenvalues"))
def eigvals(x: Array, /) -> Any:
    a, sound = _finite(_square(x))
    values = _eigenvalues(a)
    return jnp.take_along_axis(values, _order(values), -1), sound


_eigenvalues = _alone(jnp.linalg.eigvals, lambda a: _eigen(a)[0])


def _order(values: Array) -> Array:
    """Order by real part, then by imaginary part. Real parts that differ only by rounding count as equal."""
    step = jnp.max(jnp.abs(values), -1, keepdims=True, initial=0) * float(np.finfo(values.dtype).eps) ** 0.5
    return jnp.lexsort((values.imag, jnp.round(values.real / jnp.where(step == 0, 1, step))), -1)


@_raising(_NOT_FINITE.format("eigenvalues"))
def eigh(x: Array, /) -> Any:
    a, sound = _finite(_from_lower(_square(x)))
    values, vectors = _hermitian(a)
    return EigResult(values, _with_fixed_phase(vectors)), sound


@jax.custom_jvp
def _hermitian(a: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(a, symmetrize_input=False)
    return values, vectors


@_hermitian.defjvp
def _(primals: Any, tangents: Any) -> Any:
    values, vectors = _hermitian(*primals)
    turned = _product(_adjoint(vectors), tangents[0], vectors)
    moved = _product(vectors, turned * _inverse_gaps(values))
    return (values, vectors), (jnp.diagonal(turned, 0, -2, -1).real, moved)


@_raising(_NOT_FINITE.format("eigenvalues"))
def eigvalsh(x: Array, /) -> Any:
    a, sound = _finite(_from_lower(_square(x)))
    return _hermitian(a)[0], sound


@jitted
def expm(x: Array, /) -> Array:
    # JAX 0.10: halves one time too few, so that the result has two digits.
    a = _square(x)
    size = jnp.max(jnp.sum(jnp.abs(a), -2), -1, initial=0)
    halvings = jnp.ceil(jnp.log2(jnp.maximum(size / _PADE_NORM, 1)))[..., None, None]

    def square(i: Any, e: Array) -> Array:
        squared = jnp.where(i < halvings, jnp.matmul(e, e, precision=precision(e)), e)
        return lax.cond(jnp.any(i < halvings), lambda: squared, lambda: e)

    root = jax.scipy.linalg.expm(a * jnp.exp2(-halvings))
    return _narrow(lax.fori_loop(0, _SQUARINGS, square, root), x)


# Norm up to which JAX's approximation is accurate, and squarings that are enough for any norm.
_PADE_NORM, _SQUARINGS = 3.9, 128


cdist = jitted(definition_of("cdist"), "p")


def _square(x: Array) -> Array:
    check_square(x)
    return wide(x)


def _finite(a: Array) -> tuple[Array, Array]:
    """Matrices with zeros in place of those that are not finite, for which LAPACK may not end, and which are."""
    sound = jnp.isfinite(a).all((-2, -1))
    return jnp.where(sound[..., None, None], a, 0), sound


def _with_fixed_phase(vectors: Array) -> Array:
    """Columns scaled so that their leading component is real and positive."""
    return vectors * _phases(vectors)


def _phases(vectors: Array) -> Array:
    """Factor of modulus one, for each column, that makes its leading component real and positive."""
    if not vectors.size:
        return jnp.ones_like(vectors, shape=(*vectors.shape[:-2], 1, vectors.shape[-1]))
    size = jnp.abs(lax.stop_gradient(vectors))
    lead = jnp.argmax(size >= 0.99 * size.max(-2, keepdims=True), -2, keepdims=True)
    return _unit(jnp.take_along_axis(vectors, lead, -2)).conj()


def _unit(x: Array) -> Array:
    """Sign or complex phase of each number; one for zero."""
    safe = jnp.where(x == 0, 1, x)
    return safe / jnp.abs(safe)


def _adjoint(x: Array) -> Array:
    return x.mT.conj()


def _narrow(result: Array, x: Array) -> Array:
    """``result`` cast back to the dtype of ``x``, if that is a half-precision dtype."""
    return result.astype(x.dtype) if wide(x) is not x and result.dtype == jnp.float32 else result
