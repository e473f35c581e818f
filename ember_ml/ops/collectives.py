"""Collective operations: what the ranks of a launch compute of the tensors of all of them.

Each rank calls them with tensors of one shape and dtype. Outside of a launch there is one rank. A gradient is that of
the sum of the losses of all ranks.
"""

from __future__ import annotations

from ember_ml.dispatch import op
from ember_ml.dtypes import floating, free
from ember_ml.types import Tensor, TensorLike


@op(free, kinds="numeric")
def all_sum(x: TensorLike, /) -> Tensor:
    """Sum of ``x`` over all ranks, in the dtype of ``x``.

    >>> all_sum([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    ...


@op(floating)
def all_mean(x: TensorLike, /) -> Tensor:
    """Mean of ``x`` over all ranks.

    >>> all_mean([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    ...


@op(free, kinds="real")
def all_max(x: TensorLike, /) -> Tensor:
    """Largest value of each element of ``x`` over all ranks; NaN if one is NaN.

    The tensors of all ranks are gathered, so it is for small ones.

    >>> all_max([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    ...


@op(free)
def all_gather(x: TensorLike, /) -> Tensor:
    """Tensors of all ranks, concatenated along the first axis in the order of ranks.

    A 0-d tensor counts as one with an axis of length 1.

    >>> all_gather([[1.0, 2.0]]).tolist()
    [[1.0, 2.0]]
    >>> all_gather(3.0).tolist()
    [3.0]
    """
    ...


@op(free)
def broadcast(x: TensorLike, /, root: int = 0) -> Tensor:
    """``x`` of the rank ``root``, on every rank.

    >>> broadcast([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    ...


@op(free)
def scatter(x: TensorLike, /, root: int = 0) -> Tensor:
    """This rank's part of ``x`` of the rank ``root``.

    The first axis is divided into equal parts, one for each rank. The values of ``x`` on other ranks do not matter.

    >>> scatter([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    ...


@op(free, kinds="numeric")
def reduce_scatter(x: TensorLike, /) -> Tensor:
    """This rank's part of the sum of ``x`` over all ranks.

    The first axis is divided into equal parts, one for each rank.

    >>> reduce_scatter([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    ...
