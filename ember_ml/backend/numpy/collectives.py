"""Collective operations on NumPy: over MPI, or over gloo, the transport of torch, which shares the memory of arrays."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from ember_ml import backend as backends
from ember_ml.distributed.launch import LAUNCH
from ember_ml.errors import DistributedError
from ember_ml.shapes.collectives import check_root, part_length

SIZE = LAUNCH.size

_IS_MPI = LAUNCH.launcher == "mpirun" and importlib.util.find_spec("mpi4py") is not None

# MPI waits for ever, gloo does not.
TIMES_OUT = not _IS_MPI

BUCKET_BYTES = 24_000_000


def start(timeout: float) -> None:
    """Connect the ranks over the transport that NumPy uses here."""
    transport().start(timeout)


def exchange(header: bytes) -> list[bytes]:
    """Headers of all ranks."""
    found: list[bytes] = transport().exchange(header)
    return found


def transport() -> Any:
    """Module that connects the ranks: that of MPI, or that of torch."""
    if _IS_MPI:
        from ember_ml.backend.numpy import mpi

        return mpi
    if "torch" not in backends.get_available_backends():
        raise DistributedError(
            "NumPy must have a transport for several ranks, got neither torch (pip install 'ember-ml[torch]') "
            "nor mpi4py (pip install mpi4py) with mpirun"
        )
    return backends.submodule(backends.load("torch").module, "collectives")


def average(buckets: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Means over all ranks of the arrays of each bucket."""
    if _IS_MPI:
        found: list[list[Any]] = transport().average(buckets)
        return found
    means = transport().average([[_to_torch(x) for x in tensors] for tensors in buckets])
    return [[_from_torch(x) for x in tensors] for tensors in means]


def all_sum(x: Any, /) -> Any:
    return x if SIZE == 1 else _run("all_sum", x)


def all_mean(x: Any, /) -> Any:
    return x if SIZE == 1 else _run("all_mean", x)


def all_max(x: Any, /) -> Any:
    return x if SIZE == 1 else _run("all_max", x)


def all_gather(x: Any, /) -> Any:
    return np.atleast_1d(x) if SIZE == 1 else _run("all_gather", x)


def broadcast(x: Any, /, root: int = 0) -> Any:
    check_root(root, SIZE)
    return x if SIZE == 1 else _run("broadcast", x, root)


def scatter(x: Any, /, root: int = 0) -> Any:
    check_root(root, SIZE)
    part_length(x.shape, SIZE)
    return x if SIZE == 1 else _run("scatter", x, root)


def reduce_scatter(x: Any, /) -> Any:
    part_length(x.shape, SIZE)
    return x if SIZE == 1 else _run("reduce_scatter", x)


def _run(name: str, x: Any, *args: int) -> Any:
    function = getattr(transport(), name)
    return function(x, *args) if _IS_MPI else _from_torch(function(_to_torch(x), *args))


def _to_torch(x: Any) -> Any:
    """Tensor of torch in the memory of an array, if torch can share that."""
    return backends.load("torch").random.adopt(np.require(x, requirements=["C", "W"]), None)


def _from_torch(x: Any) -> Any:
    return backends.load("torch").to_host(x)
