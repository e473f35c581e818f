"""Element by element."""

from __future__ import annotations

from ember_ml.contract import op
from ember_ml.dtypes import floating, promoted
from ember_ml.types import Tensor, TensorLike


@op(promoted)
def add(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Sum of ``x`` and ``y``, with broadcasting.

    >>> add([1, 2], 3).tolist()
    [4, 5]
    """
    ...


@op(promoted, kinds="numeric")
def subtract(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Difference of ``x`` and ``y``, with broadcasting.

    >>> subtract([5, 7], 3).tolist()
    [2, 4]
    """
    ...


@op(promoted)
def multiply(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Product of ``x`` and ``y``, with broadcasting.

    >>> multiply([1, 2], 3).tolist()
    [3, 6]
    """
    ...


@op(floating)
def sqrt(x: TensorLike, /) -> Tensor:
    """Square root of ``x``.

    >>> sqrt([4.0, 9.0]).tolist()
    [2.0, 3.0]
    """
    ...


@op(floating)
def exp(x: TensorLike, /) -> Tensor:
    """``e`` to the power of ``x``.

    >>> exp([0.0]).tolist()
    [1.0]
    """
    ...
    

@op(promoted, kinds="numeric")
def negative(x: TensorLike, /) -> Tensor:
    """``x`` with the sign turned.

    >>> negative([1, -2]).tolist()
    [-1, 2]
    """
    ...


@op(promoted)
def square(x: TensorLike, /) -> Tensor:
    """``x`` times itself.

    >>> square([3]).tolist()
    [9]
    """
    return multiply(x, x)
