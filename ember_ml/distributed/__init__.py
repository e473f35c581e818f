"""Many processes: the ranks of a launch, and what they compute together.

``ember-ml launch -n 4 train.py`` starts a program on four ranks; torchrun, ``mlx.launch``, ``mpirun`` and ``srun`` do
as well. In a program that was started alone there is one rank, and collectives return what they were given.

>>> from ember_ml import distributed
>>> distributed.init()
>>> distributed.rank(), distributed.size()
(0, 1)
>>> distributed.all_sum({"loss": 2.0})["loss"].item()
2.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import backend as _backends
from ember_ml import tree as _tree
from ember_ml.distributed import calls as _calls
from ember_ml.distributed.buckets import average_gradients as average_gradients
from ember_ml.distributed.calls import BUCKET_BYTES as BUCKET_BYTES
from ember_ml.distributed.calls import set_step as set_step
from ember_ml.distributed.launch import LAUNCH as _LAUNCH
from ember_ml.ops import collectives as _collectives
from ember_ml.tree import Tree

__all__ = [
    "BUCKET_BYTES",
    "all_gather",
    "all_max",
    "all_mean",
    "all_sum",
    "average_gradients",
    "barrier",
    "broadcast",
    "init",
    "local_rank",
    "rank",
    "reduce_scatter",
    "scatter",
    "set_step",
    "size",
]


def init(timeout: float | None = None, checked: bool | None = None) -> None:
    """Connect the ranks of this launch over the transport of the active backend.

    The first collective does it as well; JAX must be connected before it computes anything. Further calls do nothing.

    Args:
        timeout: seconds that a collective may take before it is an error, by default 300.
        checked: whether ranks compare what they call before each collective, which names a rank that calls something
            else. True by default.
    """
    _calls.configure(timeout, checked)
    if _LAUNCH.size > 1:
        _calls.start(_backends.current().transport())


def rank() -> int:
    """Number of this process among ``size()``, from 0."""
    return _LAUNCH.rank


def size() -> int:
    """Number of ranks; 1 outside of a launch."""
    return _LAUNCH.size


def local_rank() -> int:
    """Number of this process among those of its host, from 0."""
    return _LAUNCH.local_rank


def barrier() -> None:
    """Wait until every rank has called this."""
    if _LAUNCH.size > 1:
        transport = _backends.current().transport()
        _calls.run(transport, "barrier()", lambda: transport.exchange(b"barrier"))


def all_sum(tree: Tree) -> Tree:
    """Sum over all ranks of each tensor of a tree."""
    return _map(_collectives.all_sum, tree)


def all_mean(tree: Tree) -> Tree:
    """Mean over all ranks of each tensor of a tree."""
    return _map(_collectives.all_mean, tree)


def all_max(tree: Tree) -> Tree:
    """Largest values over all ranks, element by element, of each tensor of a tree."""
    return _map(_collectives.all_max, tree)


def all_gather(tree: Tree) -> Tree:
    """Tensors of all ranks, concatenated along the first axis, for each tensor of a tree."""
    return _map(_collectives.all_gather, tree)


def broadcast(tree: Tree, root: int = 0) -> Tree:
    """Tree of the rank ``root``, on every rank. Each rank passes tensors of the same shapes and dtypes."""
    return _map(lambda x: _collectives.broadcast(x, root), tree)


def scatter(tree: Tree, root: int = 0) -> Tree:
    """This rank's part, along the first axis, of each tensor of the tree of the rank ``root``."""
    return _map(lambda x: _collectives.scatter(x, root), tree)


def reduce_scatter(tree: Tree) -> Tree:
    """This rank's part, along the first axis, of the sum over all ranks of each tensor of a tree."""
    return _map(_collectives.reduce_scatter, tree)


def _map(operation: Callable[[Any], Any], tree: Tree) -> Tree:
    """``operation`` of each leaf; ``None`` stays ``None``."""
    return _tree.map(lambda x: None if x is None else operation(x), tree)
