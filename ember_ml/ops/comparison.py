"""Comparison and logic: operations that return bool, and selection by a condition."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml.dispatch import op
from ember_ml.dtypes import compared, promoted
from ember_ml.ops import _forms, creation, device, indexing, manipulation, math
from ember_ml.types import Axis, Mask, Tensor, TensorLike


@op(compared, differentiable=False)
def equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise ``x == y``, with broadcasting.

    >>> equal([1, 2], 2).tolist()
    [False, True]
    """
    ...


@op(compared, differentiable=False)
def not_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise ``x != y``, with broadcasting.

    >>> not_equal([1, 2], 2).tolist()
    [True, False]
    """
    ...


@op(compared, kinds="real", differentiable=False)
def less(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise ``x < y``, with broadcasting.

    >>> less([1, 2, 3], 2).tolist()
    [True, False, False]
    """
    ...


@op(compared, kinds="real", differentiable=False)
def less_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise ``x <= y``, with broadcasting.

    >>> less_equal([1, 2, 3], 2).tolist()
    [True, True, False]
    """
    ...


@op(compared, kinds="real", differentiable=False)
def greater(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise ``x > y``, with broadcasting.

    >>> greater([1, 2, 3], 2).tolist()
    [False, False, True]
    """
    ...


@op(compared, kinds="real", differentiable=False)
def greater_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elementwise ``x >= y``, with broadcasting.

    >>> greater_equal([1, 2, 3], 2).tolist()
    [False, True, True]
    """
    ...


@op(compared, differentiable=False)
def isclose(x: TensorLike, y: TensorLike, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Elementwise ``|x - y| <= atol + rtol * |y|``, with broadcasting.

    The tolerance is relative to ``y``. An infinity is close only to itself.

    Args:
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    >>> isclose([1.0, 2.0], [1.000001, 2.1]).tolist()
    [True, False]
    """
    ...


@op(compared, differentiable=False)
def allclose(
    x: TensorLike, y: TensorLike, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether all elements of ``x`` and ``y`` are close, as ``isclose`` defines it.

    The result is a zero-dimensional tensor, not a Python ``bool``: lazy engines need not evaluate it, and compilers can
    trace it.

    Args:
        rtol, atol, equal_nan: as in ``isclose``.

    >>> bool(allclose([1.0, 2.0], [1.000001, 2.0]))
    True
    """
    return all(isclose(x, y, rtol, atol, equal_nan))


@op(compared, differentiable=False)
def array_equal(x: TensorLike, y: TensorLike, /, equal_nan: bool = False) -> Tensor:
    """Whether ``x`` and ``y`` have the same shape and the same elements.

    The result is a zero-dimensional tensor, not a Python ``bool``: lazy engines need not evaluate it, and compilers can
    trace it.

    Args:
        equal_nan: whether NaN equals NaN.

    >>> bool(array_equal([1, 2], [1, 2])), bool(array_equal([1, 2], [[1, 2]]))
    (True, False)
    """
    if tuple(manipulation.shape(x)) != tuple(manipulation.shape(y)):
        return creation.zeros((), dtype="bool", device=device.get_device(x))
    same = equal(x, y)
    if equal_nan:
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return all(same)


@op(compared, differentiable=False)
def isnan(x: TensorLike, /) -> Tensor:
    """Whether each element is NaN; a complex number is if either part is.

    >>> isnan([1.0, float("nan")]).tolist()
    [False, True]
    """
    ...


@op(compared, differentiable=False)
def isinf(x: TensorLike, /) -> Tensor:
    """Whether each element is infinite, of either sign; a complex number is if either part is.

    >>> isinf([1.0, float("-inf")]).tolist()
    [False, True]
    """
    ...


@op(compared, differentiable=False)
def isfinite(x: TensorLike, /) -> Tensor:
    """Whether each element is neither infinite nor NaN; a complex number is if both parts are.

    >>> isfinite([1.0, float("inf"), float("nan")]).tolist()
    [True, False, False]
    """
    ...


@op(compared, kinds="real", differentiable=False)
def isposinf(x: TensorLike, /) -> Tensor:
    """Whether each element is positive infinity.

    >>> isposinf([float("inf"), float("-inf")]).tolist()
    [True, False]
    """
    ...


@op(compared, kinds="real", differentiable=False)
def isneginf(x: TensorLike, /) -> Tensor:
    """Whether each element is negative infinity.

    >>> isneginf([float("inf"), float("-inf")]).tolist()
    [False, True]
    """
    ...


@op(compared, differentiable=False)
def isreal(x: TensorLike, /) -> Tensor:
    """Whether each element has a zero imaginary part.

    >>> isreal([1 + 0j, 1 + 1j]).tolist()
    [True, False]
    """
    return equal(math.imag(x), 0)


@op(compared, differentiable=False)
def logical_and(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether both ``x`` and ``y`` are nonzero, with broadcasting.

    >>> logical_and([0, 1, 2], [1, 0, 3]).tolist()
    [False, False, True]
    """
    ...


@op(compared, differentiable=False)
def logical_or(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether ``x`` or ``y`` or both are nonzero, with broadcasting.

    >>> logical_or([0, 1, 2], [0, 0, 3]).tolist()
    [False, True, True]
    """
    ...


@op(compared, differentiable=False)
def logical_not(x: TensorLike, /) -> Tensor:
    """Whether each element is zero.

    >>> logical_not([0, 1, 2]).tolist()
    [True, False, False]
    """
    ...


@op(compared, differentiable=False)
def logical_xor(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether exactly one of ``x`` and ``y`` is nonzero, with broadcasting.

    >>> logical_xor([0, 1, 2], [0, 0, 3]).tolist()
    [False, True, False]
    """
    return not_equal(logical_not(x), logical_not(y))


@op(compared, differentiable=False, engine="x, *, axis, keepdims", form=_forms.all)
def all(x: TensorLike, /, axis: Axis = None, *, keepdims: bool = False, where: Mask | None = None) -> Tensor:
    """Whether all elements along ``axis`` are nonzero.

    True for no elements. NaN is nonzero.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        where: which elements are looked at, a mask that broadcasts with ``x``; by default all.

    >>> all([[1, 2], [0, 3]], axis=1).tolist()
    [True, False]
    """
    ...


@op(compared, differentiable=False, engine="x, *, axis, keepdims", form=_forms.any)
def any(x: TensorLike, /, axis: Axis = None, *, keepdims: bool = False, where: Mask | None = None) -> Tensor:
    """Whether any element along ``axis`` is nonzero.

    False for no elements. NaN is nonzero.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        where: which elements are looked at, a mask that broadcasts with ``x``; by default all.

    >>> any([[0, 0], [0, 3]], axis=1).tolist()
    [False, True]
    """
    ...


@op(promoted, form=_forms.where)
def where(condition: Mask, x: TensorLike, y: TensorLike, /) -> Tensor:
    """Elements of ``x`` where ``condition`` is true and of ``y`` elsewhere, with broadcasting.

    ``where(condition)`` is ``nonzero(condition)``, as in NumPy.

    >>> where([True, False], [1, 2], 0).tolist()
    [1, 0]
    """
    ...


@op(promoted)
def select(condlist: Sequence[Mask], choicelist: Sequence[TensorLike], default: TensorLike = 0) -> Tensor:
    """Elements of the first of ``choicelist`` whose condition is true, or of ``default`` where none is.

    >>> x = [0, 1, 2, 3]
    >>> select([less(x, 1), greater(x, 2)], [[10, 10, 10, 10], x], -1).tolist()
    [10, -1, -1, 3]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"condlist and choicelist must have the same length, got {len(condlist)} and {len(choicelist)}"
        )
    chosen = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        chosen = where(condition, choice, chosen)
    return chosen  # type: ignore[return-value]


@op(compared, kinds="real", differentiable=False)
def isin(x: TensorLike, test_elements: TensorLike, /, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element of ``x`` is one of ``test_elements``; NaN never is.

    Args:
        assume_unique: promise that neither tensor contains a value twice, which some engines use.
        invert: return the negation.

    >>> isin([1, 2, 3], [2, 5]).tolist()
    [False, True, False]
    """
    candidates = indexing.sort(manipulation.reshape(test_elements, (-1,)))
    count = manipulation.shape(candidates)[0]
    if count == 0:
        return creation.full_like(x, invert, dtype="bool")
    nearest = indexing.take(candidates, math.minimum(indexing.searchsorted(candidates, x), count - 1))
    return not_equal(nearest, x) if invert else equal(nearest, x)
