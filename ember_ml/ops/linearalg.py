"""Linear algebra: products, norms, decompositions, solvers and matrix functions.

Matrices are in the last two axes; the axes before them are a batch. 16-bit floats are decomposed in float32, and the
result is cast back. A matrix that is singular or not positive definite, or whose decomposition does not converge,
raises ``LinAlgError`` on every engine. MLX must wait for the result to raise it, so it does not in compiled code and
under ``unchecked()``.

Eigenvectors and singular vectors are unique only up to a factor of modulus 1, which is the same on every engine: in
each column, the first component whose magnitude is (within one percent) the largest is real and positive. For ``svd``
this holds for ``U``, and ``Vh`` follows. In ``qr`` the diagonal of ``R`` is real and nonnegative.
"""

from __future__ import annotations

import functools as _functools
import math as _math
import threading as _threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager as _contextmanager
from typing import Any, NamedTuple

from ember_ml.dispatch import op
from ember_ml.dtypes import accumulated, floating, free, indexed, kept, measured, promoted
from ember_ml.ops import _forms, comparison, control, creation, device, dtypes, manipulation, math, stats
from ember_ml.ops import random as _random
from ember_ml.ops._halves import dtype_of as _dtype
from ember_ml.ops._halves import narrow_like as _like
from ember_ml.ops._halves import widen as _wide
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.linearalg import check_matrix as _check_matrix
from ember_ml.shapes.linearalg import check_square as _check_square
from ember_ml.shapes.linearalg import paired_axes as _paired_axes
from ember_ml.shapes.linearalg import sizes_of as _sizes_of
from ember_ml.shapes.linearalg import terms_of as _terms_of
from ember_ml.shapes.linearalg import uses_matmul
from ember_ml.types import Axis, DTypeLike, Shape, Tensor, TensorLike

# Like ``floating``, for operations with several results, whose dtypes differ for complex tensors.
_several = floating._replace(result=None)


class SlogdetResult(NamedTuple):
    """Sign (or phase) of a determinant, and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class LstsqResult(NamedTuple):
    """Least-squares solution, sums of squared residuals, rank and singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class LUResult(NamedTuple):
    """Permutation matrix, unit lower triangular and upper triangular matrix with ``x = P @ L @ U``."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactorResult(NamedTuple):
    """Both triangular matrices in one, and for each row the row that it was swapped with."""

    lu: Tensor
    pivots: Tensor


class QRResult(NamedTuple):
    """Matrix with orthonormal columns and upper triangular matrix with ``x = Q @ R``."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """Singular vectors and singular values with ``x = U @ diag(S) @ Vh``."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors of unit length as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@op(promoted, kinds="numeric")
def matmul(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Matrix product over the last two axes; a vector is a row on the left and a column on the right.

    >>> matmul([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    ...


@op(promoted, kinds="numeric")
def dot(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Sum of products over the last axis of ``x`` and the second-to-last (or only) axis of ``y``.

    >>> dot([1, 2, 3], [4, 5, 6]).tolist()
    32
    """
    if not _rank(x) or not _rank(y):
        return math.multiply(x, y)
    if _rank(y) <= 2:
        return matmul(x, y)
    return tensordot(x, y, axes=((-1,), (-2,)))


@op(promoted, kinds="numeric")
def vdot(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Sum of products of all elements, with ``x`` conjugated.

    >>> vdot([[1, 2], [3, 4]], [[1, 1], [2, 2]]).tolist()
    17
    """
    return matmul(_conjugate(manipulation.ravel(x)), manipulation.ravel(y))


@op(promoted, kinds="numeric")
def inner(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Sum of products over the last axes of ``x`` and ``y``.

    >>> inner([[1, 2], [3, 4]], [1, 10]).tolist()
    [21, 43]
    """
    if not _rank(x) or not _rank(y):
        return math.multiply(x, y)
    return tensordot(x, y, axes=((-1,), (-1,)))


@op(promoted, kinds="numeric")
def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Matrix of the products of each element of ``x1`` with each element of ``x2``.

    >>> outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    return math.multiply(manipulation.reshape(x1, (-1, 1)), manipulation.reshape(x2, (1, -1)))


@op(promoted, kinds="numeric")
def vecdot(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """Sum of products along ``axis``, with ``x1`` conjugated.

    >>> vecdot([[1, 2], [3, 4]], [1, 10]).tolist()
    [21, 43]
    """
    _axis(axis, _rank(x1))
    _axis(axis, _rank(x2))
    if _shape(x1)[axis] != _shape(x2)[axis]:
        raise ValueError(
            f"both vectors must have the same number of components along axis {axis}, got {_shape(x1)[axis]} and "
            f"{_shape(x2)[axis]}"
        )
    if axis >= 0 and _rank(x1) != _rank(x2):
        x1, x2 = manipulation.broadcast_arrays(x1, x2)
    return stats.sum(math.multiply(_conjugate(x1), x2), axis=axis, dtype=_dtype(x1))


@op(promoted, kinds="numeric")
def tensordot(
    x1: TensorLike, x2: TensorLike, /, axes: int | tuple[int | Sequence[int], int | Sequence[int]] = 2
) -> Tensor:
    """Sum of products over several axes of ``x1`` and ``x2``.

    Args:
        axes: a number ``n`` for the last ``n`` axes of ``x1`` and the first ``n`` of ``x2``, or a pair of the axes of
            ``x1`` and those of ``x2``.

    >>> tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]]).tolist()
    5
    """
    left, right = _paired_axes(x1, x2, axes)
    if [_shape(x1)[i] for i in left] != [_shape(x2)[i] for i in right]:
        raise ValueError(
            f"axes must name axes of one length in both tensors, got {axes} for shapes {list(_shape(x1))} and "
            f"{list(_shape(x2))}"
        )
    rows = [i for i in range(_rank(x1)) if i not in left]
    columns = [i for i in range(_rank(x2)) if i not in right]
    shape = [_shape(x1)[i] for i in rows] + [_shape(x2)[i] for i in columns]
    count = _math.prod([_shape(x1)[i] for i in left])
    a = manipulation.reshape(manipulation.permute_dims(x1, rows + left), (_math.prod(shape[: len(rows)]), count))
    b = manipulation.reshape(manipulation.permute_dims(x2, right + columns), (count, _math.prod(shape[len(rows) :])))
    return manipulation.reshape(matmul(a, b), shape)


@op(promoted, kinds="numeric", engine="equation, operands", form=_forms.einsum)
def einsum(equation: str, /, *operands: TensorLike, optimize: object = None) -> Tensor:
    """Sum of products in Einstein notation.

    The axes of each operand are named by letters, and by ``...`` for those that broadcast. Axes that are not named
    after ``->`` are summed over. Three or more operands are multiplied pairwise, in the cheapest order.

    Args:
        optimize: accepted for compatibility; the order of products is always chosen.

    >>> einsum("ij,jk->ik", [[1, 2], [3, 4]], [[1, 0], [1, 1]]).tolist()
    [[3, 2], [7, 4]]
    >>> einsum("ii", [[1, 2], [3, 4]]).tolist()
    5
    """
    terms, output = _terms_of(equation, operands)
    sizes = _sizes_of(terms, operands)
    parts = [_unstretched(labels, x, sizes) for labels, x in zip(terms, operands, strict=True)]
    for places in _order(tuple(labels for labels, _ in parts), output, tuple(sizes.items())):
        chosen = [parts[i] for i in places]
        parts = [part for i, part in enumerate(parts) if i not in places]
        needed = set(output).union(*(labels for labels, _ in parts))
        merged = _summed(*chosen[0], needed.union(*(labels for labels, _ in chosen[1:])))
        for i, other in enumerate(chosen[1:], 2):
            kept_labels = needed.union(*(labels for labels, _ in chosen[i:]))
            merged = _contracted(merged, _summed(*other, kept_labels | set(merged[0])), kept_labels)
        parts.append(merged)
    labels, x = _summed(*parts[0], set(output))
    return manipulation.permute_dims(x, [labels.index(one) for one in output]) if labels != output else x


def _unstretched(labels: str, x: Any, sizes: dict[str, int]) -> tuple[str, Any]:
    """An operand without axes of length 1 that broadcast, and with each label once."""
    thin = [i for i, label in enumerate(labels) if x.shape[i] == 1 != sizes[label]]
    if thin:
        x = manipulation.reshape(x, [n for i, n in enumerate(x.shape) if i not in thin])
        labels = "".join(label for i, label in enumerate(labels) if i not in thin)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = diagonal(manipulation.moveaxis(x, (first, second), (-2, -1)))
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return labels, x


@_functools.lru_cache(maxsize=256)
def _order(terms: tuple[str, ...], output: str, sizes: tuple[tuple[str, int], ...]) -> list[tuple[int, ...]]:
    """Operands to multiply at each step; the product is appended to the list of operands."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    import opt_einsum  # type: ignore[import-untyped] # slow to import, and needed only here

    lengths = dict(sizes)
    shapes = [tuple(lengths[label] for label in term) for term in terms]
    path, _ = opt_einsum.contract_path(f"{','.join(terms)}->{output}", *shapes, shapes=True)
    return [tuple(sorted(step)) for step in path]


def _summed(labels: str, x: Any, needed: set[str]) -> tuple[str, Any]:
    """An operand summed over the axes that are no longer needed."""
    axes = tuple(i for i, label in enumerate(labels) if label not in needed)
    if not axes:
        return labels, x
    return "".join(label for label in labels if label in needed), stats.sum(x, axis=axes, dtype=_dtype(x))


def _contracted(one: tuple[str, Any], other: tuple[str, Any], needed: set[str]) -> tuple[str, Any]:
    """Product of two operands, by one (batched) matrix product if an axis is summed over."""
    (a, x), (b, y) = one, other
    batch = [label for label in a if label in b and label in needed]
    shared = [label for label in a if label in b and label not in needed]
    rows, columns = [label for label in a if label not in b], [label for label in b if label not in a]
    x = manipulation.permute_dims(x, [a.index(label) for label in batch + rows + shared])
    y = manipulation.permute_dims(y, [b.index(label) for label in batch + shared + columns])
    front = list(x.shape[: len(batch)])
    down, across = list(x.shape[len(batch) : len(batch) + len(rows)]), list(y.shape[len(batch) + len(shared) :])
    labels = "".join(batch + rows + columns)
    if not shared:
        x = manipulation.reshape(x, front + down + [1] * len(columns))
        return labels, math.multiply(x, manipulation.reshape(y, front + [1] * len(rows) + across))
    count = _math.prod(y.shape[len(batch) : len(batch) + len(shared)])
    x = manipulation.reshape(x, [*front, _math.prod(down), count])
    y = manipulation.reshape(y, [*front, count, _math.prod(across)])
    return labels, manipulation.reshape(matmul(x, y), front + down + across)


@op(promoted, kinds="numeric")
def multi_dot(arrays: Sequence[TensorLike], /) -> Tensor:
    """Product of several matrices, in the cheapest order; the first and the last may be vectors.

    >>> multi_dot([[[1, 2]], [[3], [4]], [[5, 6]]]).tolist()
    [[55, 66]]
    """
    if len(arrays) < 2:
        raise ValueError(f"arrays must be at least 2, got {len(arrays)}")
    ranks = [_rank(x) for x in arrays]
    if set(ranks[1:-1]) - {2} or {ranks[0], ranks[-1]} - {1, 2}:
        raise ValueError("arrays must have 2 axes, or 1 if first or last")
    matrices: list[Any] = list(arrays)
    if ranks[0] == 1:
        matrices[0] = manipulation.reshape(arrays[0], (1, -1))
    if ranks[-1] == 1:
        matrices[-1] = manipulation.reshape(arrays[-1], (-1, 1))
    ends = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    product = _chain(matrices, 0, len(matrices) - 1, _cuts(ends))
    return manipulation.reshape(product, _shape(product)[2 - ranks[0] : ranks[-1]])


def _cuts(ends: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices with these side lengths so that the products cost least."""
    count = len(ends) - 1
    cost = {(i, i): 0 for i in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            prices = {k: cost[i, k] + cost[k + 1, j] + ends[i] * ends[k + 1] * ends[j + 1] for k in range(i, j)}
            cuts[i, j] = min(prices, key=prices.__getitem__)
            cost[i, j] = prices[cuts[i, j]]
    return cuts


def _chain(matrices: list[Any], first: int, last: int, cuts: dict[tuple[int, int], int]) -> Any:
    if first == last:
        return matrices[first]
    cut = cuts[first, last]
    return matmul(_chain(matrices, first, cut, cuts), _chain(matrices, cut + 1, last, cuts))


@op(promoted, kinds="numeric")
def kron(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Kronecker product: ``x`` with each element replaced by its product with ``y``.

    >>> kron([1, 10], [1, 2]).tolist()
    [1, 2, 10, 20]
    """
    rank = max(_rank(x), _rank(y))
    a = [1] * (rank - _rank(x)) + list(_shape(x))
    b = [1] * (rank - _rank(y)) + list(_shape(y))
    left = manipulation.reshape(x, [n for size in a for n in (size, 1)])
    right = manipulation.reshape(y, [n for size in b for n in (1, size)])
    return manipulation.reshape(math.multiply(left, right), [m * n for m, n in zip(a, b, strict=True)])


@op(promoted, kinds="numeric")
def cross(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    axis: int = -1,
    axisa: int | None = None,
    axisb: int | None = None,
    axisc: int | None = None,
) -> Tensor:
    """Cross product of the vectors of 3 components along ``axis``.

    The third component of vectors of 2 is 0; of two such vectors, the result is the third component alone.

    Args:
        axis: the axis of the components in both tensors and in the result.
        axisa, axisb, axisc: that axis in ``x1``, in ``x2`` and in the result, if they differ.

    >>> cross([1, 0, 0], [0, 1, 0]).tolist()
    [0, 0, 1]
    """
    if not axisa is axisb is axisc is None:
        moved = (manipulation.moveaxis(x, axis if own is None else own, -1) for x, own in ((x1, axisa), (x2, axisb)))
        product: Any = cross(*moved)
        result = axis if axisc is None else axisc
        return product if _rank(product) < max(_rank(x1), _rank(x2)) else manipulation.moveaxis(product, -1, result)
    _axis(axis, _rank(x1))
    _axis(axis, _rank(x2))
    lengths = _shape(x1)[axis], _shape(x2)[axis]
    if not {2, 3}.issuperset(lengths):
        raise ValueError(
            f"both vectors must have 3 components along axis {axis}, or 2 for 0 as the third, got {lengths[0]} and "
            f"{lengths[1]}"
        )
    if 2 in lengths:
        both = (_with_third(x, axis) for x in (x1, x2))
        product = cross(*both, axis=axis)
        return product if 3 in lengths else _component(product, 2, axis)  # type: ignore[no-any-return]
    if _rank(x1) != _rank(x2) and axis >= 0:
        x1, x2 = manipulation.broadcast_arrays(x1, x2)
    ahead, behind = (manipulation.roll(x1, -step, axis=axis) for step in (1, 2))
    after, before = (manipulation.roll(x2, -step, axis=axis) for step in (1, 2))
    return math.subtract(math.multiply(ahead, before), math.multiply(behind, after))


def _with_third(x: Any, axis: int) -> Any:
    """``x`` with 0 as the third component of vectors that have two."""
    if _shape(x)[axis] == 3:
        return x
    return manipulation.concat(
        [x, creation.zeros_like(manipulation.expand_dims(_component(x, 0, axis), axis=axis))], axis=axis
    )


def _component(x: Any, index: int, axis: int) -> Any:
    return manipulation.unstack(x, axis=axis)[index]


@op(accumulated, kinds="numeric")
def trace(
    x: TensorLike, /, offset: int = 0, axis1: int = -2, axis2: int = -1, dtype: DTypeLike | None = None
) -> Tensor:
    """Sum of the diagonal of each matrix.

    Args:
        offset: the diagonal; positive is above the main diagonal, negative below it.
        dtype: as in ``sum``.
        axis1, axis2: the axes of the matrices, by default the last two.

    >>> trace([[1, 2], [3, 4]]).tolist()
    5
    """
    return stats.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


@op(kept, engine="x, *, offset", form=_forms.diagonal)
def diagonal(x: TensorLike, /, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """Diagonal of each matrix.

    Args:
        offset: the diagonal; positive is above the main diagonal, negative below it.
        axis1, axis2: the axes of the matrices, by default the last two.

    >>> diagonal([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    ...


@op(promoted, kinds="numeric")
def matrix_power(x: TensorLike, n: int, /) -> Tensor:
    """Each matrix to the power ``n``; of its inverse if ``n`` is negative.

    >>> matrix_power([[1, 1], [0, 1]], 5).tolist()
    [[1, 5], [0, 1]]
    """
    _check_square(x)
    if n < 0:
        if not dtypes.isdtype(_dtype(x), ("real floating", "complex floating")):
            raise TypeError(f"n must be >= 0 for {_dtype(x).name} matrices, got {n}; cast them to a floating dtype")
        return matrix_power(inv(x), -n)
    if n == 0:
        return _identity(x)
    if n == 1:
        return creation.copy(x)
    half = matrix_power(x, n // 2)
    even = matmul(half, half)
    return matmul(even, x) if n % 2 else even


@op(measured, kinds="numeric")
def norm(x: TensorLike, /, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Norm of vectors or of matrices.

    Args:
        ord: the order, as in ``vector_norm`` or ``matrix_norm``; by default the square root of the sum of squares.
        axis: one axis for vector norms, two for matrix norms. By default all elements are one vector; if ``ord`` is
            given, ``x`` must be a vector or a matrix.
        keepdims: keep reduced axes with length 1.

    >>> norm([[3.0, 0.0], [0.0, 4.0]]).tolist()
    5.0
    """
    if axis is None:
        if ord is None:
            return vector_norm(x, keepdims=keepdims)
        if _rank(x) not in (1, 2):
            raise ValueError(f"axis must be given for a tensor with {_rank(x)} axes, got None")
        axis = tuple(range(_rank(x)))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], ord=2 if ord is None else _number(ord), keepdims=keepdims)
    if len(axes) != 2:
        raise ValueError(f"axis must name 1 or 2 axes, got {len(axes)}")
    places = _axes(axes, _rank(x))
    result = matrix_norm(manipulation.moveaxis(x, places, (-2, -1)), ord="fro" if ord is None else ord)
    return manipulation.expand_dims(result, axis=sorted(places)) if keepdims else result


def _number(ord: Any) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"ord must be a number, inf or -inf for vectors, got {ord!r}")
    return ord


@op(measured, kinds="numeric")
def vector_norm(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False, ord: int | float = 2) -> Tensor:
    """Norm of the vectors along ``axis``: ``sum(|x| ** ord) ** (1 / ord)``.

    Args:
        axis: one axis, several, or ``None`` to treat all elements as one vector.
        keepdims: keep reduced axes with length 1.
        ord: infinity for the largest magnitude, negative infinity for the smallest, 0 for the number of nonzero
            elements.

    >>> vector_norm([3.0, 4.0]).tolist(), vector_norm([3.0, -4.0], ord=1).tolist()
    (5.0, 7.0)
    """
    wide = _wide(x)
    size = wide if ord == 2 and _dtype(wide).kind == "real floating" else math.abs(wide)
    if ord == _math.inf:
        result = stats.max(size, axis=axis, keepdims=keepdims)
    elif ord == -_math.inf:
        result = stats.min(size, axis=axis, keepdims=keepdims)
    elif ord == 0:
        count = comparison.not_equal(size, 0)
        result = stats.sum(dtypes.cast(count, _dtype(size)), axis=axis, keepdims=keepdims)
    elif ord == 1:
        result = stats.sum(size, axis=axis, keepdims=keepdims)
    elif ord == 2:
        result = math.sqrt(stats.sum(math.square(size), axis=axis, keepdims=keepdims))
    else:
        total = stats.sum(math.power(size, ord), axis=axis, keepdims=keepdims)
        result = math.power(total, 1 / ord)
    return _like(x, result)


@op(measured, kinds="numeric")
def matrix_norm(x: TensorLike, /, *, keepdims: bool = False, ord: int | float | str = "fro") -> Tensor:
    """Norm of each matrix.

    Args:
        keepdims: keep reduced axes with length 1.
        ord: ``"fro"`` (square root of the sum of squares), ``"nuc"`` (sum of the singular values), 2 and -2 (largest
            and smallest singular value), 1 and -1 (largest and smallest absolute column sum), infinity and negative
            infinity (largest and smallest absolute row sum).

    >>> matrix_norm([[3.0, 0.0], [0.0, 4.0]], ord=1).tolist()
    4.0
    """
    _check_matrix(x)
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    wide = _wide(x)
    if ord in ("nuc", 2, -2):
        reduce: Callable[..., Any] = {"nuc": stats.sum, 2: stats.max, -2: stats.min}[ord]
        result = reduce(svdvals(wide), axis=-1)
    elif ord in (1, -1, _math.inf, -_math.inf):
        along = stats.sum(math.abs(wide), axis=-2 if ord in (1, -1) else -1)
        result = stats.max(along, axis=-1) if ord > 0 else stats.min(along, axis=-1)
    else:
        raise ValueError(f"ord must be one of 'fro', 'nuc', inf, -inf, 1, -1, 2, -2 for matrices, got {ord!r}")
    return _like(x, manipulation.expand_dims(result, axis=(-2, -1)) if keepdims else result)


@op(measured, kinds="numeric")
def cond(x: TensorLike, /, p: int | float | str | None = None) -> Tensor:
    """Condition number of each matrix: its norm times that of its inverse; infinite if it is singular.

    Args:
        p: the norm, as in ``matrix_norm``; by default 2: the ratio of the largest to the smallest singular value.

    >>> cond([[2.0, 0.0], [0.0, 4.0]]).tolist()
    2.0
    """
    _check_matrix(x)
    wide = _wide(x)
    if p in (None, 2, -2):
        values = svdvals(wide)
        if not _shape(values)[-1]:
            raise ValueError(f"x must have elements, got shape {list(_shape(x))}")
        most, least = values[..., 0], values[..., -1]
        result = math.divide(least, most) if p == -2 else math.divide(most, least)
        return _like(x, comparison.where(comparison.isnan(result), _math.inf, result))
    singular = comparison.equal(det(wide), 0)
    safe = comparison.where(singular[..., None, None], _identity(wide), wide)
    result = math.multiply(matrix_norm(wide, ord=p), matrix_norm(inv(safe), ord=p))
    return _like(x, comparison.where(singular, _math.inf, result))


@op(floating, kinds="numeric")
def det(x: TensorLike, /) -> Tensor:
    """Determinant of each matrix.

    >>> det([[2.0, 0.0], [0.0, 4.0]]).tolist()
    8.0
    """
    ...


@op(_several, kinds="numeric")
def slogdet(x: TensorLike, /) -> SlogdetResult:
    """Sign (or phase, if complex) of the determinant of each matrix, and the logarithm of its magnitude.

    If the determinant is NaN, the sign is 0.

    >>> sign, logabsdet = slogdet([[-1.0, 0.0], [0.0, 1.0]])
    >>> sign.tolist(), logabsdet.tolist()
    (-1.0, 0.0)
    """
    ...


@op(floating, kinds="numeric")
def logdet(x: TensorLike, /) -> Tensor:
    """Logarithm of the determinant of each matrix; NaN if the determinant is real and negative.

    >>> logdet([[1.0, 5.0], [0.0, 1.0]]).tolist()
    0.0
    """
    sign, magnitude = slogdet(_wide(x))
    return _like(x, math.add(math.log(sign), magnitude))


@op(indexed, kinds="numeric", differentiable=False)
def matrix_rank(x: TensorLike, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Rank of each matrix: the number of its singular values above a tolerance.

    Args:
        rtol: the tolerance relative to the largest singular value, for all matrices or for each; by default the dtype's
            ``eps`` times the longer side of the matrix.

    >>> matrix_rank([[1.0, 2.0], [2.0, 4.0]]).tolist()
    1
    """
    _check_matrix(x)
    values = svdvals(x)
    if 0 in _shape(x)[-2:]:
        return creation.zeros(tuple(_shape(x)[:-2]), dtype="int64", device=device.get_device(x))
    least = math.multiply(values[..., :1], _tolerance(x, rtol))
    return stats.sum(comparison.greater(values, least), axis=-1)


@op(floating, kinds="numeric")
def inv(x: TensorLike, /) -> Tensor:
    """Inverse of each matrix.

    The inverse of a matrix with NaN contains NaN; where depends on the engine.

    >>> inv([[2.0, 1.0], [1.0, 1.0]]).tolist()
    [[1.0, -1.0], [-1.0, 2.0]]
    """
    ...


matrix_inv = inv


@op(floating, kinds="numeric")
def pinv(x: TensorLike, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Moore-Penrose pseudo-inverse of each matrix.

    Args:
        rtol: as in ``matrix_rank``.

    >>> pinv([[2.0, 0.0], [0.0, 0.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    _check_matrix(x)
    if 0 in _shape(x):
        return creation.zeros_like(manipulation.matrix_transpose(x))
    wide = _wide(x)
    u, s, vh = map(control.stop_gradient, svd(wide, full_matrices=False))
    inverse = _pseudo_inverse(u, s, vh, _tolerance(x, rtol))
    correction = _gradient_of_inverse(wide, inverse)
    return _like(x, inverse if correction is None else math.add(inverse, correction))


def _pseudo_inverse(u: Any, s: Any, vh: Any, rtol: float | Tensor) -> Any:
    return matmul(math.multiply(_adjoint(vh), _inverted(s, rtol)[..., None, :]), _adjoint(u))


class _GradientTerms(_threading.local):
    """Whether definitions add terms that are zero but carry gradients which those of their decompositions lack."""

    enabled = True


_gradient_terms = _GradientTerms()


@_contextmanager
def _without_gradient_terms() -> Iterator[None]:
    """Disable these terms, for an engine that computes the gradient of a definition separately."""
    before, _gradient_terms.enabled = _gradient_terms.enabled, False
    try:
        yield
    finally:
        _gradient_terms.enabled = before


def _zero_with_gradient(x: Any) -> Any:
    """``x - stop_gradient(x)``: zero, with the gradient of ``x``. ``None`` if no gradient is recorded."""
    still = control.stop_gradient(x) if _gradient_terms.enabled else x
    return None if still is x else math.subtract(x, still)


def _gradient_of_inverse(a: Any, inverse: Any) -> Any:
    """Zeros with the first and second derivatives of the pseudo-inverse of ``a``; ``None`` if no gradient is recorded.

    Singular vectors of equal singular values are not differentiable, but the pseudo-inverse is.
    """
    change = _zero_with_gradient(a)
    if change is None:
        return None
    still = control.stop_gradient(a)
    first = _change_of_inverse(still, inverse, change)
    second = _change_of_inverse(a, math.add(inverse, first), change)
    return math.multiply(math.add(first, second), 0.5)


def _change_of_inverse(a: Any, inverse: Any, change: Any) -> Any:
    """Change of the pseudo-inverse for a ``change`` of ``a`` (Golub and Pereyra 1973), smaller products first."""
    straight = matmul(matmul(inverse, change), inverse)
    before = matmul(inverse, matmul(_adjoint(inverse), _adjoint(change)))
    after = matmul(matmul(_adjoint(change), _adjoint(inverse)), inverse)
    outside = math.subtract(before, matmul(matmul(before, a), inverse))
    inside = math.subtract(after, matmul(inverse, matmul(a, after)))
    return math.subtract(math.add(outside, inside), straight)


def _inverted(s: Any, rtol: float | Tensor) -> Any:
    """Reciprocals of singular values; zero for those below the tolerance relative to the largest."""
    small = comparison.less_equal(s, math.multiply(s[..., :1], rtol))
    return comparison.where(small, 0.0, math.reciprocal(comparison.where(small, 1.0, s)))


@op(floating, kinds="numeric")
def solve(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Solution ``x`` of ``x1 @ x = x2``.

    With NaN or infinities in ``x1`` or ``x2`` it contains NaN; where depends on the engine.

    Args:
        x2: matrices, or one vector if it has one axis.

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [1.0, 1.0]).tolist()
    [0.5, 0.25]
    """
    ...


@op(floating, kinds="numeric")
def solve_triangular(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    lower: bool = False,
    adjoint: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:
    """Solution ``x`` of ``a @ x = b`` for triangular ``a``; the other triangle of ``a`` is ignored.

    Args:
        lower: whether ``a`` is lower triangular.
        adjoint: whether to solve with the conjugate transpose of ``a`` instead.
        unit_diagonal: whether to treat the diagonal of ``a`` as ones.

    >>> solve_triangular([[2.0, 9.0], [1.0, 4.0]], [2.0, 5.0], lower=True).tolist()
    [1.0, 1.0]
    """
    _check_square(a)
    if not _rank(b):
        raise ValueError("b must have at least 1 axis, got a 0-d tensor")
    wide, right = _wide(a), _wide(b)
    if _rank(b) == 1:
        return _like(
            a,
            solve_triangular(wide, right[:, None], lower=lower, adjoint=adjoint, unit_diagonal=unit_diagonal)[..., 0],
        )
    triangle = creation.tril(wide) if lower else creation.triu(wide)
    if unit_diagonal:
        eye = _identity(wide)
        triangle = comparison.where(comparison.equal(eye, 0), triangle, eye)
    if adjoint:
        triangle, lower = _adjoint(triangle), not lower
    return _like(a, _substituted(triangle, right, lower))


def _substituted(a: Any, b: Any, lower: bool) -> Any:
    """Substitution by halves: all but small blocks on the diagonal are matrix products."""
    n = a.shape[-1]
    if n <= 64:
        if not lower:
            return solve(a, b)
        # Reversed, it is upper triangular: ``solve`` then swaps no rows, which would lose accuracy.
        return manipulation.flip(solve(manipulation.flip(a, axis=(-2, -1)), manipulation.flip(b, axis=-2)), axis=-2)
    half = n // 2
    top, bottom = a[..., :half, :half], a[..., half:, half:]
    if lower:
        first = _substituted(top, b[..., :half, :], lower)
        rest = math.subtract(b[..., half:, :], matmul(a[..., half:, :half], first))
        parts = [first, _substituted(bottom, rest, lower)]
    else:
        last = _substituted(bottom, b[..., half:, :], lower)
        rest = math.subtract(b[..., :half, :], matmul(a[..., :half, half:], last))
        parts = [_substituted(top, rest, lower), last]
    return manipulation.concat(parts, axis=-2)


@op(_several, kinds="numeric")
def lstsq(a: TensorLike, b: TensorLike, /, rcond: float | None = None) -> LstsqResult:
    """Least-squares solution ``x`` of ``a @ x = b``, of minimum norm, with residuals, rank and singular values.

    The residuals are sums of squares, one per column of ``b``, and empty if ``a`` does not have more rows than columns.
    The rank is an int64 tensor.

    Args:
        rcond: as ``rtol`` in ``matrix_rank``.

    >>> solution, residuals, rank, values = lstsq([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], [1.0, 1.0, 2.0])
    >>> [f"{v:.2f}" for v in solution.tolist()], f"{float(residuals[0]):.2f}", int(rank)
    (['1.00', '0.50'], '4.00', 2)
    """
    _check_matrix(a)
    wide, right = _wide(a), _wide(b)
    columns = right[:, None] if _rank(b) == 1 else right
    if columns.shape[-2] != _shape(a)[-2]:
        raise ValueError(
            f"a and b must have the same number of rows, got shapes {list(_shape(a))} and {list(_shape(b))}"
        )
    parts = svd(wide, full_matrices=False)
    rtol = _tolerance(a, rcond)
    u, s, vh = map(control.stop_gradient, parts)
    share = math.multiply(_inverted(s, rtol)[..., :, None], matmul(_adjoint(u), columns))
    solution = matmul(_adjoint(vh), share)
    correction = (
        None if _zero_with_gradient(wide) is None else _gradient_of_inverse(wide, _pseudo_inverse(u, s, vh, rtol))
    )
    solution = solution if correction is None else math.add(solution, matmul(correction, columns))
    left = math.square(math.abs(math.subtract(columns, matmul(wide, solution))))
    residuals = stats.sum(left, axis=-2) if _shape(a)[-2] > _shape(a)[-1] else stats.sum(left, axis=-2)[..., :0]
    rank = stats.sum(comparison.greater(s, math.multiply(s[..., :1], rtol)), axis=-1)
    result = solution[..., 0] if _rank(b) == 1 else solution
    return LstsqResult(_like(a, result), _like(a, residuals), rank, _like(a, parts.S))


@op(floating, kinds="numeric")
def cholesky(x: TensorLike, /, *, upper: bool = False) -> Tensor:
    """Cholesky factor ``L`` of each symmetric (Hermitian) positive definite matrix, with ``x = L @ L^H``.

    Only the lower triangle of ``x`` is read.

    Args:
        upper: whether to return the upper triangular factor ``L^H`` instead.

    >>> cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    ...


@op(floating, kinds="numeric")
def cholesky_solve(b: TensorLike, l: TensorLike, /, *, upper: bool = False) -> Tensor:  # noqa: E741 - the factor's name
    """Solution ``x`` of ``l @ l^H @ x = b`` for a Cholesky factor ``l``.

    Args:
        upper: whether ``l`` is upper triangular.

    >>> cholesky_solve([[4.0], [5.0]], [[2.0, 0.0], [0.0, 1.0]]).tolist()
    [[1.0], [5.0]]
    """
    first = solve_triangular(_wide(l), _wide(b), lower=not upper, adjoint=upper)
    return _like(b, solve_triangular(_wide(l), first, lower=not upper, adjoint=not upper))


@op(floating, kinds="numeric")
def cholesky_inverse(l: TensorLike, /, *, upper: bool = False) -> Tensor:  # noqa: E741 - the factor's name
    """Inverse of ``l @ l^H`` for a Cholesky factor ``l``.

    Args:
        upper: whether ``l`` is upper triangular.

    >>> cholesky_inverse([[2.0, 0.0], [0.0, 1.0]]).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    _check_square(l)
    wide = _wide(l)
    return _like(l, cholesky_solve(_identity(wide), wide, upper=upper))


@op(floating, kinds="numeric")
def lu(x: TensorLike, /) -> LUResult:
    """Permutation ``P``, unit lower triangular ``L`` and upper triangular ``U`` with ``x = P @ L @ U``.

    >>> p, l, u = lu([[0.0, 2.0], [4.0, 1.0]])
    >>> p.tolist(), l.tolist(), u.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[4.0, 1.0], [0.0, 2.0]])
    """
    ...


@op(_several, kinds="numeric")
def lu_factor(x: TensorLike, /) -> LUFactorResult:
    """Both triangular matrices of ``lu`` in one, and for each row the row (int64) that it was swapped with.

    >>> factors, pivots = lu_factor([[0.0, 2.0], [4.0, 1.0]])
    >>> factors.tolist(), pivots.tolist()
    ([[4.0, 1.0], [0.0, 2.0]], [1, 1])
    """
    ...


@op(floating, kinds="numeric", engine="x, *, mode", form=_forms.qr)
def qr(x: TensorLike, /, mode: str = "reduced") -> QRResult:
    """QR decomposition ``x = Q @ R``: orthonormal columns and an upper triangular matrix.

    The diagonal of ``R`` is nonnegative. If ``x`` contains NaN or infinities, the factors contain NaN; where depends
    on the engine.

    Args:
        mode: ``"reduced"`` for as many columns of ``Q`` as the shorter side of ``x``, ``"complete"`` for a square
            ``Q``.

    >>> q, r = qr([[0.0, -2.0], [1.0, 1.0]])
    >>> [[f"{v:z.2f}" for v in row] for row in r.tolist()]
    [['1.00', '1.00'], ['0.00', '2.00']]
    """
    ...


@op(_several, kinds="numeric", engine="x, *, full_matrices", form=_forms.svd)
def svd(x: TensorLike, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> SVDResult:
    """Singular value decomposition ``x = U @ diag(S) @ Vh`` of each matrix, with descending values.

    In each column of ``U``, the first component whose magnitude is (within one percent) the largest is real and
    positive. A matrix with NaN or infinities raises ``LinAlgError``.

    Args:
        full_matrices: whether ``U`` and ``Vh`` are square, or only have a vector for each singular value.
        compute_uv: if false, return the singular values alone.
        hermitian: accepted for compatibility.

    >>> u, s, vh = svd([[3.0, 0.0], [0.0, -4.0]])
    >>> [f"{v:.2f}" for v in s.tolist()], [[f"{v:z.2f}" for v in row] for row in vh.tolist()]
    (['4.00', '3.00'], [['0.00', '-1.00'], ['1.00', '0.00']])
    """
    ...


@op(measured, kinds="numeric")
def svdvals(x: TensorLike, /) -> Tensor:
    """Singular values of each matrix, in descending order.

    >>> [f"{v:.2f}" for v in svdvals([[3.0, 0.0], [0.0, -4.0]]).tolist()]
    ['4.00', '3.00']
    """
    ...


@op(_several, kinds="numeric")
def eig(x: TensorLike, /) -> EigResult:
    """Eigenvalues of each matrix and its eigenvectors of unit length, as columns; both complex.

    Eigenvalues are in ascending order of their real part and, where that is equal up to rounding, of their imaginary
    part. In each eigenvector, the first component whose magnitude is (within one percent) the largest is real and
    positive. Complex matrices of MLX are computed by NumPy.

    >>> values, vectors = eig([[2.0, 0.0], [0.0, 1.0]])
    >>> [f"{v.real:.2f}" for v in values.tolist()], [f"{v.real:z.2f}" for v in vectors[:, 0].tolist()]
    (['1.00', '2.00'], ['0.00', '1.00'])
    """
    ...


@op(_several, kinds="numeric")
def eigvals(x: TensorLike, /) -> Tensor:
    """Eigenvalues of each matrix, complex, in the order of ``eig``.

    >>> [f"{v.imag:.2f}" for v in eigvals([[0.0, 1.0], [-1.0, 0.0]]).tolist()]
    ['-1.00', '1.00']
    """
    ...


@op(_several, kinds="numeric")
def eigh(x: TensorLike, /) -> EigResult:
    """Eigenvalues (real, ascending) and orthonormal eigenvectors of each symmetric or Hermitian matrix.

    Only the lower triangle of ``x`` is read. In each eigenvector, the first component whose magnitude is (within one
    percent) the largest is real and positive. A matrix with NaN or infinities raises ``LinAlgError``.

    >>> values, vectors = eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> [f"{v:.2f}" for v in values.tolist()], [f"{v:.2f}" for v in vectors[:, 0].tolist()]
    (['1.00', '3.00'], ['0.71', '-0.71'])
    """
    ...


@op(measured, kinds="numeric")
def eigvalsh(x: TensorLike, /) -> Tensor:
    """Eigenvalues of each symmetric or Hermitian matrix, ascending; only the lower triangle is read.

    >>> [f"{v:.2f}" for v in eigvalsh([[2.0, 1.0], [1.0, 2.0]]).tolist()]
    ['1.00', '3.00']
    """
    ...


# Coefficients of the Padé approximant of exp of degree 13, and the norm up to which it is accurate to rounding (Higham
# 2005).
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_PADE_NORM = 5.371920351148152
_SQUARINGS = 24


@op(floating, kinds="numeric")
def expm(x: TensorLike, /) -> Tensor:
    """Exponential of each matrix: ``sum(x ** k / k!)``.

    Computed by scaling, a Padé approximant and squaring. In code compiled for MLX, it is accurate for norms up to 1e8.

    >>> expm([[0.0, 1.0], [0.0, 0.0]]).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    _check_square(x)
    if 0 in _shape(x):
        return creation.copy(x)
    wide = _wide(x)
    size = math.divide(matrix_norm(wide, ord=1), _PADE_NORM)
    halvings = math.ceil(math.log2(math.maximum(size, 1.0)))
    steps = _largest(halvings)
    halvings = math.minimum(halvings, steps)
    result = _pade(math.multiply(wide, math.exp2(math.negative(halvings))[..., None, None]))
    for i in range(steps):
        result = comparison.where(comparison.greater(halvings, i)[..., None, None], matmul(result, result), result)
    return _like(x, result)


def _largest(halvings: Any) -> int:
    """How often to halve the largest of the matrices; ``_SQUARINGS`` where a compiler traces."""
    try:
        return int(stats.max(halvings))  # emberlint: ignore[EMB201] it counts the squarings
    except (ValueError, OverflowError):
        return _SQUARINGS


def _pade(a: Any) -> Any:
    eye = _identity(a)
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    powers = (eye, a2, a4, matmul(a2, a4))
    # Scaled so that the largest coefficient is 1, as float32 requires.
    c = [value / _PADE[0] for value in _PADE]

    def of(first: int) -> Any:
        high = _mixed([c[8 + first], c[10 + first], c[12 + first]], powers[1:])
        return math.add(matmul(powers[3], high), _mixed([c[first + 2 * k] for k in range(4)], powers))

    odd, even = matmul(a, of(1)), of(0)
    return solve(math.subtract(even, odd), math.add(even, odd))


def _mixed(coefficients: Sequence[float], matrices: Sequence[Any]) -> Any:
    total = math.multiply(matrices[0], coefficients[0])
    for coefficient, matrix in zip(coefficients[1:], matrices[1:], strict=True):
        total = math.add(total, math.multiply(matrix, coefficient))
    return total


@op(floating, kinds="numeric")
def logm_spd(x: TensorLike, /) -> Tensor:
    """Logarithm of each symmetric (Hermitian) positive definite matrix: the inverse of ``expm``.

    >>> [f"{v:z.2f}" for v in logm_spd([[1.0, 0.0], [0.0, 2.0]])[1].tolist()]
    ['0.00', '0.69']
    """
    _check_square(x)
    wide = _wide(x)
    # Cholesky raises for a matrix that is not positive definite.
    cholesky(wide)
    return _like(x, _by_eigenvalues(wide, math.log, _log_difference_quotient))


@op(floating, kinds="numeric")
def sqrtm_spd(x: TensorLike, /) -> Tensor:
    """Positive semidefinite square root of each symmetric (Hermitian) positive semidefinite matrix.

    >>> [f"{v:z.2f}" for v in sqrtm_spd([[4.0, 0.0], [0.0, 9.0]])[1].tolist()]
    ['0.00', '3.00']
    """
    _check_square(x)
    wide = _wide(x)
    if 0 in _shape(x):
        return creation.copy(x)
    # Rounding makes zero eigenvalues slightly negative, so reject only matrices that rounding cannot explain.
    slack = math.multiply(matrix_norm(wide, ord=1, keepdims=True), 4 * _tolerance(x, None))
    slack = math.add(slack, dtypes.finfo(_dtype(wide)).smallest_normal)
    cholesky(math.add(wide, math.multiply(_identity(wide), slack)))
    return _like(x, _by_eigenvalues(wide, _root, _sqrt_difference_quotient))


def _by_eigenvalues(x: Any, function: Callable[[Any], Any], difference_quotient: Callable[[Any, Any], Any]) -> Any:
    """Matrix function from a function of the eigenvalues and its difference quotients.

    Eigenvectors of equal eigenvalues are not differentiable, but the result is (Daletskii and Krein). So
    ``x - stop_gradient(x)``, which is zero but carries the gradient, is multiplied by the difference quotients. Half of
    that uses eigenvectors that carry gradients, for the second derivative.
    """
    values, vectors = eigh(x)
    still, fixed = control.stop_gradient(values), control.stop_gradient(vectors)
    result = matmul(math.multiply(fixed, function(still)[..., None, :]), _adjoint(fixed))
    change = _zero_with_gradient(x)
    if change is None:
        return result
    change = math.multiply(change, 0.5)
    for numbers, columns in ((values, vectors), (still, fixed)):
        quotients = difference_quotient(numbers[..., :, None], numbers[..., None, :])
        inner = math.multiply(matmul(matmul(_adjoint(columns), change), columns), quotients)
        result = math.add(result, matmul(matmul(columns, inner), _adjoint(columns)))
    return result


def _root(x: Any) -> Any:
    return math.sqrt(math.maximum(x, 0.0))


def _sqrt_difference_quotient(x: Any, y: Any) -> Any:
    """``(sqrt(x) - sqrt(y)) / (x - y)``; zero where that is infinite."""
    positive = comparison.logical_and(comparison.greater(x, 0.0), comparison.greater(y, 0.0))
    roots = math.add(*(math.sqrt(comparison.where(comparison.greater(one, 0.0), one, 1.0)) for one in (x, y)))
    return comparison.where(positive, math.reciprocal(roots), 0.0)


def _log_difference_quotient(x: Any, y: Any) -> Any:
    """``(log(x) - log(y)) / (x - y)``, finite for all positive numbers."""
    large, small = math.maximum(x, y), math.minimum(x, y)
    large = math.maximum(large, dtypes.finfo(_dtype(x)).smallest_normal)
    part = math.divide(math.subtract(small, large), large)
    near = comparison.greater(part, -0.5)
    equal = comparison.equal(part, 0.0)
    safe = comparison.where(comparison.logical_and(near, comparison.logical_not(equal)), part, -0.25)
    close = math.divide(comparison.where(equal, 1.0, math.divide(math.log1p(safe), safe)), large)
    apart = comparison.where(near, 1.0, math.subtract(large, small))
    return comparison.where(near, close, math.divide(math.subtract(math.log(large), math.log(small)), apart))


@op(free, differentiable=False)
def orthogonal(shape: Shape, gain: float = 1.0, *, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Random matrix with orthonormal columns (or rows, if there are fewer), uniformly distributed.

    Args:
        shape: shape of the matrix, or of a batch of them.
        gain: factor of the result.
        dtype: a floating dtype, by default the default float.
        key: random key, with the same result on every engine; by default the next key of the current stream. Code
            compiled by the engine itself should be given a key, or it would reuse that one in every call.

    >>> q = orthogonal((3, 3), key=7)
    >>> bool(allclose(matmul(q, matrix_transpose(q)), eye(3), atol=1e-5))
    True
    """
    if isinstance(shape, int) or len(shape) < 2:
        raise ValueError(f"shape must have at least 2 axes, got {shape}")
    *batch, m, n = shape
    kind = None if dtype is None else dtypes.to_dtype_str(dtype)
    wide = "float32" if kind in ("float16", "bfloat16") else kind
    drawn = _random.normal((*batch, max(m, n), min(m, n)), dtype=wide, key=key)
    columns = math.multiply(orthogonalize(drawn), gain)
    result = manipulation.matrix_transpose(columns) if m < n else columns
    return result if wide == kind else dtypes.cast(result, kind)


@op(floating, kinds="numeric")
def orthogonalize(x: TensorLike, /) -> Tensor:
    """Orthonormal columns by the Gram-Schmidt process: the first ``k`` span the same space as those of ``x``.

    >>> [[f"{v:z.2f}" for v in row] for row in orthogonalize([[2.0, 3.0], [0.0, -4.0]]).tolist()]
    [['1.00', '0.00'], ['0.00', '-1.00']]
    """
    return qr(x).Q


@op(floating, kinds="real numeric")
def cdist(x: TensorLike, y: TensorLike, /, p: float = 2.0) -> Tensor:
    """Distance of each row of ``x`` from each row of ``y`` in the ``p``-norm.

    Euclidean distances of two matrices, if one has more than 25 rows, are computed by a matrix product, which is many
    times faster. It rounds by about the square root of the dtype's ``eps`` (0.0003 for float32) times the spread of the
    points, so equal points may have a distance of that size; infinite points give NaN. For smaller matrices, batches
    and other norms, the differences are computed.

    >>> cdist([[0.0, 0.0], [3.0, 0.0]], [[0.0, 4.0]]).tolist()
    [[4.0], [5.0]]
    """
    _check_matrix(x)
    _check_matrix(y)
    if _shape(x)[-1] != _shape(y)[-1]:
        raise ValueError(
            f"x and y must have points with the same number of coordinates, got {_shape(x)[-1]} and {_shape(y)[-1]}"
        )
    if p < 0:
        raise ValueError(f"p must be > 0, got {p}")
    if uses_matmul(x, y, p):
        return _like(x, _by_product(_wide(x), _wide(y)))
    apart = math.subtract(_wide(x)[..., :, None, :], _wide(y)[..., None, :, :])
    if not _shape(x)[-1]:
        return _like(x, stats.sum(apart, axis=-1))
    return _like(x, vector_norm(apart, axis=-1, ord=p))


def _by_product(x: Any, y: Any) -> Any:
    """Distances as the roots of ``x . x + y . y - 2 x . y``."""
    # Around a common center the squares are small, and so are their rounding errors.
    centre = stats.mean(x, axis=0)
    centre = comparison.where(comparison.isfinite(centre), centre, 0.0)
    x, y = math.subtract(x, centre), math.subtract(y, centre)
    product = matmul(x, manipulation.matrix_transpose(math.multiply(y, -2.0)))
    lengths = math.add(_squares(x)[:, None], _squares(y)[None, :])
    squares = math.add(product, lengths)
    # The square root is not differentiable at zero; the gradient there is defined as zero.
    is_zero = comparison.less_equal(squares, 0.0)
    roots = math.sqrt(comparison.where(is_zero, 1.0, squares))
    return comparison.where(is_zero, 0.0, roots)


def _squares(x: Any) -> Any:
    return stats.sum(math.multiply(x, x), axis=-1)


@op(_several, kinds="numeric", lazy=False)
def conjugate_gradient(
    a: object, b: TensorLike, /, x0: TensorLike | None = None, *, tol: float = 1e-5, maxiter: int | None = None
) -> tuple[Tensor, int]:
    """Solution ``x`` of ``a @ x = b`` for a symmetric (Hermitian) positive definite ``a``, by conjugate gradients.

    The second result is 0, or the number of steps taken if the tolerance was not reached.

    Args:
        a: a matrix, or a function that multiplies it with a vector; vectors are along the last axis.
        x0: initial guess, by default zero.
        tol: norm of the residual to stop at, relative to the norm of ``b``.
        maxiter: maximum number of steps, by default ten times the length of ``b``.

    >>> x, info = conjugate_gradient([[2.0, 0.0], [0.0, 4.0]], [1.0, 1.0])
    >>> [f"{v:.2f}" for v in x.tolist()], info
    (['0.50', '0.25'], 0)
    """
    right = _wide(b)
    multiplied = a if callable(a) else _multiplier(a, right)
    x = creation.zeros_like(right) if x0 is None else manipulation.broadcast_to(_wide(x0), tuple(right.shape))
    residual = math.subtract(right, multiplied(x)) if x0 is not None else right
    direction, size = residual, _squared(residual)
    enough = math.multiply(_squared(right), tol * tol)
    steps = 10 * _shape(b)[-1] if maxiter is None else maxiter
    for _ in range(steps):
        if bool(comparison.all(comparison.less_equal(size, enough))):  # emberlint: ignore[EMB209] it stops when done
            return _like(b, x), 0
        image = multiplied(direction)
        length = _ratio(size, _real(vecdot(direction, image)))
        x = math.add(x, math.multiply(length, direction))
        residual = math.subtract(residual, math.multiply(length, image))
        size, before = _squared(residual), size
        direction = math.add(residual, math.multiply(_ratio(size, before), direction))
    done = bool(comparison.all(comparison.less_equal(size, enough)))  # emberlint: ignore[EMB201] the result is an int
    return _like(b, x), 0 if done else steps


def _multiplier(a: Any, b: Any) -> Callable[[Any], Any]:
    matrix = dtypes.cast(creation.asarray(a, device=device.get_device(b)), _dtype(b))
    _check_square(matrix)
    return lambda x: matmul(matrix, x[..., None])[..., 0]


def _squared(x: Any) -> Any:
    return stats.sum(math.square(math.abs(x)), axis=-1)


def _ratio(x: Any, y: Any) -> Any:
    """``x / y`` for each vector of a batch; zero for those that have converged."""
    none = comparison.equal(y, 0)
    return comparison.where(none, 0.0, math.divide(x, comparison.where(none, 1.0, y)))[..., None]


def _real(x: Any) -> Any:
    return math.real(x) if _dtype(x).kind == "complex floating" else x


def _conjugate(x: Any) -> Any:
    return math.conj(x) if _dtype(x).kind == "complex floating" else x


def _adjoint(x: Any) -> Any:
    return _conjugate(manipulation.matrix_transpose(x))


def _identity(x: Any) -> Tensor:
    """Identity matrices with the shape, dtype and device of ``x``."""
    return creation.tril(creation.triu(creation.ones_like(x)))


def _tolerance(x: Any, rtol: float | Tensor | None) -> float | Tensor:
    """Tolerance for singular values, relative to the largest."""
    if rtol is not None:
        return rtol if isinstance(rtol, int | float) else manipulation.expand_dims(rtol, axis=-1)
    own = _dtype(x)
    precision = own if own.kind in ("real floating", "complex floating") and own.bits > 16 else "float32"
    return max(_shape(x)[-2:]) * float(dtypes.finfo(precision).eps)


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _rank(x: Any) -> int:
    rank: int = x.ndim
    return rank
