"""Gradients of collective operations: those of the sum of the losses of all ranks."""

from __future__ import annotations

from typing import Any

from ember_ml.distributed.launch import LAUNCH
from ember_ml.ops.collectives import all_gather, all_mean, all_sum, reduce_scatter
from ember_ml.ops.comparison import equal
from ember_ml.ops.creation import zeros_like
from ember_ml.ops.dtypes import cast, dtype
from ember_ml.ops.manipulation import reshape
from ember_ml.ops.math import divide, multiply


def _max_gradient(g: Any, out: Any, x: Any) -> Any:
    """The gradient, shared equally by the ranks that have the largest value."""
    largest = cast(equal(x, out), dtype(g))
    return multiply(all_sum(g), divide(largest, all_sum(largest)))


def _broadcast_gradient(g: Any, out: Any, x: Any, root: int = 0) -> Any:
    return _at_root(all_sum(g), root)


def _scatter_gradient(g: Any, out: Any, x: Any, root: int = 0) -> Any:
    return _at_root(all_gather(g), root)


def _at_root(g: Any, root: int) -> Any:
    return g if LAUNCH.rank == root else zeros_like(g)


RULES = {
    "all_sum": (lambda g, out, x: all_sum(g),),
    "all_mean": (lambda g, out, x: all_mean(g),),
    "all_max": (_max_gradient,),
    "all_gather": (lambda g, out, x: reshape(reduce_scatter(g), x.shape),),
    "broadcast": (_broadcast_gradient,),
    "scatter": (_scatter_gradient,),
    "reduce_scatter": (lambda g, out, x: all_gather(g),),
}
