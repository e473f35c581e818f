"""Gradient clipping. Gradients are trees of tensors, as returned by ``value_and_grad``."""

from __future__ import annotations

from typing import Any

from ember_ml import distributed, ops, tree
from ember_ml.tree import Tree


def global_norm(grads: Tree, *, over_ranks: bool = False) -> Any:
    """Euclidean norm of all tensors of a tree together, as if they were one vector.

    Args:
        over_ranks: whether the tensors of each rank of ``ember_ml.distributed`` are parts of the vector.

    >>> float(global_norm({"a": ops.asarray([3.0]), "b": ops.asarray([4.0])}))
    5.0
    """
    squares = [_squares(gradient) for gradient in _given(grads)]
    if not squares:
        return ops.zeros(())
    total = ops.sum(ops.stack(squares))
    return ops.sqrt(distributed.all_sum(total) if over_ranks else total)


def clip_by_global_norm(grads: Tree, limit: float, *, over_ranks: bool = False) -> Tree:
    """Gradients scaled by a common factor so that their ``global_norm`` is at most ``limit``.

    Args:
        over_ranks: as in ``global_norm``.

    >>> clip_by_global_norm([ops.asarray([30.0]), ops.asarray([40.0])], 5.0)[1].tolist()
    [4.0]
    """
    _check("clip_by_global_norm", limit)
    if not _given(grads):
        return grads
    factor = _factor(global_norm(grads, over_ranks=over_ranks), limit)
    return _map(lambda gradient: _scaled(gradient, factor), grads)


def clip_by_norm(grads: Tree, limit: float) -> Tree:
    """Gradients, each scaled so that its own Euclidean norm is at most ``limit``.

    >>> [g.tolist() for g in clip_by_norm([ops.asarray([0.5]), ops.asarray([-40.0])], 5.0)]
    [[0.5], [-5.0]]
    """
    _check("clip_by_norm", limit)
    return _map(lambda gradient: _scaled(gradient, _factor(ops.sqrt(_squares(gradient)), limit)), grads)


def clip_by_value(grads: Tree, limit: float) -> Tree:
    """Gradients with all elements clipped to ``[-limit, limit]``.

    >>> clip_by_value([ops.asarray([-7.0, 0.25])], 0.5)[0].tolist()
    [-0.5, 0.25]
    """
    _check("clip_by_value", limit)
    return _map(lambda gradient: ops.clip(gradient, -limit, limit), grads)


def _squares(gradient: Any) -> Any:
    """Sum of squares, in float32 or wider, since it soon overflows in half precision."""
    dtype = "float64" if ops.dtype(gradient).name == "float64" else "float32"
    return ops.sum(ops.square(ops.cast(gradient, dtype)))


def _factor(norm: Any, limit: float) -> Any:
    return ops.divide(ops.full_like(norm, limit), ops.maximum(norm, limit))


def _scaled(gradient: Any, factor: Any) -> Any:
    return ops.cast(ops.multiply(gradient, factor), ops.dtype(gradient))


def _given(grads: Tree) -> list[Any]:
    return [gradient for gradient in tree.leaves(grads) if gradient is not None]


def _map(f: Any, grads: Tree) -> Tree:
    return tree.map(lambda gradient: None if gradient is None else f(gradient), grads)


def _check(function: str, limit: float) -> None:
    if not limit > 0:
        raise ValueError(f"{function}: limit must be > 0, got {limit}")
