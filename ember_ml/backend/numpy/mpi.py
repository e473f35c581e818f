"""Collective operations of NumPy arrays over MPI, for programs that ``mpirun`` starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from mpi4py import MPI

from ember_ml.backend.protocol import Collectives
from ember_ml.distributed import calls
from ember_ml.distributed.launch import LAUNCH
from ember_ml.dtypes import describe
from ember_ml.errors import DistributedError

SIZE = LAUNCH.size

# MPI waits for ever.
TIMES_OUT = False

BUCKET_BYTES = calls.BUCKET_BYTES

_TRANSPORT = cast(Collectives, sys.modules[__name__])


def start(timeout: float) -> None:
    """Check that MPI has the ranks of the launch, which importing mpi4py has connected."""
    found = MPI.COMM_WORLD.Get_size()
    if found != SIZE:
        raise DistributedError(
            f"mpi4py must use the MPI of the mpirun that started the {SIZE} ranks, got one that has {found}: install "
            "mpi4py for that MPI, uninstall it to use gloo, or start the ranks with ember-ml launch"
        )


def exchange(header: bytes) -> list[bytes]:
    """Headers of all ranks."""
    return [part.tobytes() for part in _gather(np.frombuffer(header, np.uint8)).reshape(SIZE, -1)]


def average(buckets: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Means over all ranks of the arrays of each bucket."""
    return [_average(tensors) for tensors in buckets]


def _average(tensors: Sequence[Any]) -> list[Any]:
    flat = _sum(np.concatenate([np.ravel(x) for x in tensors])) / np.asarray(SIZE, tensors[0].dtype)
    ends = np.cumsum([np.size(x) for x in tensors])[:-1]
    return [part.reshape(np.shape(x)) for part, x in zip(np.split(flat, ends), tensors, strict=True)]


def _collective(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as one call that all ranks make."""

    def run(x: Any, *args: int) -> Any:
        text = f"{function.__name__}({', '.join([describe(x), *(f'root={root}' for root in args)])})"
        return calls.run(_TRANSPORT, text, lambda: function(np.ascontiguousarray(x).reshape(np.shape(x)), *args))

    return run


@_collective
def all_sum(x: Any) -> Any:
    return _sum(x)


@_collective
def all_mean(x: Any) -> Any:
    return _average([x])[0]


@_collective
def all_max(x: Any) -> Any:
    return _gather(x).reshape(SIZE, *x.shape).max(0)


@_collective
def all_gather(x: Any) -> Any:
    return _gather(x)


@_collective
def broadcast(x: Any, root: int) -> Any:
    out = x.copy()
    MPI.COMM_WORLD.Bcast(_bytes(out), root)
    return out


@_collective
def scatter(x: Any, root: int) -> Any:
    out = np.empty((x.shape[0] // SIZE, *x.shape[1:]), x.dtype)
    MPI.COMM_WORLD.Scatter(_bytes(x), _bytes(out), root)
    return out


@_collective
def reduce_scatter(x: Any) -> Any:
    length = x.shape[0] // SIZE
    return _sum(x)[LAUNCH.rank * length : (LAUNCH.rank + 1) * length]


def _bytes(x: Any) -> Any:
    """Bytes of a contiguous array, whose dtype MPI need not have."""
    return x.reshape(-1).view(np.uint8)


def _gather(x: Any) -> Any:
    out = np.empty((SIZE * x.shape[0], *x.shape[1:]) if x.ndim else (SIZE,), x.dtype)
    MPI.COMM_WORLD.Allgather(_bytes(x), _bytes(out))
    return out


def _sum(x: Any) -> Any:
    # MPI has no floats of 16 bits.
    out = x.astype(np.float32 if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x.dtype)
    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, out, MPI.SUM)
    return out.astype(x.dtype, copy=False)
