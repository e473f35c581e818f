"""Statistics: reductions, running reductions, order statistics and moments."""

from __future__ import annotations

from ember_ml.contract import op
from ember_ml.dtypes import accumulated, floating, promoted
from ember_ml.types import Axis, DTypeLike, Tensor, TensorLike


@op(accumulated)
def sum(x: TensorLike, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """Sum of the elements along ``axis``; of no elements, zero.

    >>> sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]
    """
    ...


@op(accumulated)
def prod(x: TensorLike, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """Product of the elements along ``axis``; of no elements, one.

    >>> prod([[1, 2], [3, 4]], axis=0).tolist()
    [3, 8]
    """
    ...


@op(floating)
def mean(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Arithmetic mean of the elements along ``axis``; of no elements, NaN.

    >>> mean([[1, 2], [3, 4]], axis=0).tolist()
    [2.0, 3.0]
    """
    ...


@op(promoted, kinds="real")
def max(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest element along ``axis``; NaN if any is NaN. Of no elements, a ``ValueError``.

    >>> max([[1, 5], [3, 4]], axis=0).tolist()
    [3, 5]
    """
    ...


amax = max


@op(promoted, kinds="real")
def min(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest element along ``axis``; NaN if any is NaN. Of no elements, a ``ValueError``.

    >>> min([[1, 5], [3, 4]], axis=0).tolist()
    [1, 4]
    """
    ...


amin = min


@op(accumulated)
def cumsum(
    x: TensorLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Running sum along ``axis``, or of the flattened tensor.

    Args:
        include_initial: begin with a zero, so that the axis grows by one.

    >>> cumsum([1, 2, 3]).tolist(), cumsum([1, 2, 3], include_initial=True).tolist()
    ([1, 3, 6], [0, 1, 3, 6])
    """
    ...


cumulative_sum = cumsum


@op(accumulated)
def cumprod(
    x: TensorLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Running product along ``axis``, or of the flattened tensor.

    Args:
        include_initial: begin with a one, so that the axis grows by one.

    >>> cumprod([1, 2, 3]).tolist(), cumprod([1, 2, 3], include_initial=True).tolist()
    ([1, 2, 6], [1, 1, 2, 6])
    """
    ...


cumulative_prod = cumprod
