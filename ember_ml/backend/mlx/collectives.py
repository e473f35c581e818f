"""Collective operations on MLX: the ring over TCP, or MPI, NCCL or JACCL if MLX is built with them and started so.

Collectives are evaluated when they are called, so that all ranks run them in one order, except in compiled code.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import mlx.core as mx

from ember_ml.backend.mlx.gradients import with_rule
from ember_ml.backend.protocol import Collectives
from ember_ml.dispatch import REGISTRY
from ember_ml.distributed import calls
from ember_ml.distributed.launch import LAUNCH
from ember_ml.dtypes import describe
from ember_ml.shapes.collectives import check_root, part_length

RANK, SIZE = LAUNCH.rank, LAUNCH.size

# MLX 0.32: the ring waits for ever.
TIMES_OUT = False

# MLX 0.32: the ring takes three times as long for arrays of half this size.
BUCKET_BYTES = 16_000_000

_TRANSPORT = cast(Collectives, sys.modules[__name__])

# Integers of the width of each dtype, in bytes, whose sums with zeros have the same bits.
_INTEGERS = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}


def start(timeout: float) -> None:
    """Create the group: as ``mlx.launch`` says, or a ring of the hosts of the ranks."""
    if LAUNCH.launcher == "mlx.launch":
        mx.distributed.init(strict=True)
        return
    ports = [f"{host}:{LAUNCH.port + 1 + rank}" for rank, host in enumerate(LAUNCH.hosts_of_ranks())]
    descriptor, path = tempfile.mkstemp(suffix=".json")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump([[port] for port in ports], file)
    os.environ.update(MLX_RANK=str(RANK), MLX_HOSTFILE=path)
    try:
        mx.distributed.init(strict=True, backend="ring")
    finally:
        Path(path).unlink()


def exchange(header: bytes) -> list[bytes]:
    """Headers of all ranks."""
    # Reading values holds the GIL until they are there, and evaluation does not.
    found = bytes(_evaluate(mx.distributed.all_gather(mx.array(list(header), mx.uint8))))
    return [found[i : i + len(header)] for i in range(0, len(found), len(header))]


def average(buckets: Sequence[Sequence[mx.array]]) -> list[list[mx.array]]:
    """Means over all ranks of the arrays of each bucket."""
    found = [_average(tensors) for tensors in buckets]
    if not _is_compiled(buckets[0][0]):
        mx.eval(found)
    return found


def _average(tensors: Sequence[mx.array]) -> list[mx.array]:
    flat = mx.distributed.all_sum(mx.concatenate([x.reshape(-1) for x in tensors]) / SIZE)
    ends = list(accumulate([x.size for x in tensors[:-1]]))
    return [part.reshape(x.shape) for part, x in zip(mx.split(flat, ends), tensors, strict=True)]


def all_sum(x: mx.array, /) -> mx.array:
    return x if SIZE == 1 else _all_sum(x)


def all_mean(x: mx.array, /) -> mx.array:
    return x if SIZE == 1 else _all_mean(x)


def all_max(x: mx.array, /) -> mx.array:
    return x if SIZE == 1 else _all_max(x)


def all_gather(x: mx.array, /) -> mx.array:
    return x.reshape(x.shape or (1,)) if SIZE == 1 else _all_gather(x)


def broadcast(x: mx.array, /, root: int = 0) -> mx.array:
    check_root(root, SIZE)
    return x if SIZE == 1 else _broadcast(x, root)


def scatter(x: mx.array, /, root: int = 0) -> mx.array:
    check_root(root, SIZE)
    part_length(x.shape, SIZE)
    return x if SIZE == 1 else _scatter(x, root)


def reduce_scatter(x: mx.array, /) -> mx.array:
    part_length(x.shape, SIZE)
    return x if SIZE == 1 else _reduce_scatter(x)


def _collective(function: Callable[..., mx.array]) -> Any:
    """Decorator for what all ranks compute: checked and evaluated at once, with the gradient rule of the operation."""
    name = function.__name__.removeprefix("_")

    def run(x: mx.array, *args: int) -> mx.array:
        if _is_compiled(x):
            return function(x, *args)
        text = f"{name}({', '.join([describe(x), *(f'root={root}' for root in args)])})"
        return calls.run(_TRANSPORT, text, lambda: _evaluate(function(x, *args)))

    return with_rule(run, f"collectives.{name}" if f"collectives.{name}" in REGISTRY else name)


def _is_compiled(x: mx.array) -> bool:
    """Whether a compiler or ``vmap`` traces ``x``, which then cannot be evaluated."""
    try:
        mx.eval(x)
    except ValueError:
        return True
    return False


def _evaluate(x: mx.array) -> mx.array:
    mx.eval(x)
    return x


@_collective
def _all_sum(x: mx.array) -> mx.array:
    return mx.distributed.all_sum(x)


@_collective
def _all_mean(x: mx.array) -> mx.array:
    return mx.distributed.all_sum(x) / SIZE


@_collective
def _all_max(x: mx.array) -> mx.array:
    return mx.max(mx.distributed.all_gather(x[None]), axis=0)


@_collective
def _all_gather(x: mx.array) -> mx.array:
    return mx.distributed.all_gather(x)


@_collective
def _broadcast(x: mx.array, root: int) -> mx.array:
    return _from_root(x, root)


@_collective
def _scatter(x: mx.array, root: int) -> mx.array:
    return _own_part(_from_root(x, root))


@_collective
def _reduce_scatter(x: mx.array) -> mx.array:
    # MLX 0.32: the ring has no sum_scatter.
    return _own_part(mx.distributed.all_sum(x))


def _own_part(x: mx.array) -> mx.array:
    length = x.shape[0] // SIZE
    return x[RANK * length : (RANK + 1) * length]


def _from_root(x: mx.array, root: int) -> mx.array:
    bits = x.reshape(-1).view(_INTEGERS[x.itemsize])
    # The sum with zeros takes the bytes of two copies, whereas gathering takes those of all ranks.
    return mx.distributed.all_sum(bits if root == RANK else mx.zeros_like(bits)).view(x.dtype).reshape(x.shape)
