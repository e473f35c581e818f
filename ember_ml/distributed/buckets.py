"""Averages of many tensors, joined into few large ones."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from ember_ml import backend as backends
from ember_ml import tree as trees
from ember_ml.backend import Backend
from ember_ml.dispatch import backend_of, holds_wrapped, unwrap, wrap
from ember_ml.distributed import calls
from ember_ml.distributed.launch import LAUNCH
from ember_ml.dtypes import describe
from ember_ml.tree import Tree


def average_gradients(gradients: Tree, bucket_bytes: int | None = None) -> Tree:
    """Mean of each tensor of a tree over all ranks.

    Tensors of one dtype and device are joined into buckets, and each bucket is reduced at once. ``None``, the gradient
    of what is not trained, stays ``None``. No gradient flows through the result.

    Args:
        gradients: tree of floating tensors, with the same shapes on every rank.
        bucket_bytes: size of a bucket, by default what suits the transport. A larger tensor is a bucket of its own.

    >>> average_gradients({"weight": None})
    {'weight': None}
    """
    if bucket_bytes is not None and bucket_bytes < 1:
        raise ValueError(f"average_gradients: bucket_bytes must be >= 1, got {bucket_bytes}")
    leaves = trees.leaves(unwrap(gradients))
    places = [i for i, x in enumerate(leaves) if x is not None]
    backend = _common_backend([leaves[i] for i in places])
    if LAUNCH.size == 1 or not places:
        return gradients
    transport = backend.transport()

    buckets = list(_buckets(backend, leaves, places, bucket_bytes or transport.BUCKET_BYTES))
    text = f"average_gradients({_summary(leaves[i] for i in places)})"
    means = calls.run(transport, text, lambda: transport.average([[leaves[i] for i in bucket] for bucket in buckets]))
    for bucket, found_means in zip(buckets, means, strict=True):
        for i, mean in zip(bucket, found_means, strict=True):
            leaves[i] = mean
    found = wrap(leaves, backend) if holds_wrapped([gradients]) else leaves
    return trees.unflatten(gradients, found)


def _common_backend(tensors: list[Any]) -> Backend:
    """Backend of the tensors; an error unless all are floating tensors of one engine."""
    found = backends.current()
    for i, x in enumerate(tensors):
        backend = backend_of(x)
        if backend is None or not backend.dtype_of(x).kind.endswith("floating"):
            raise TypeError(f"average_gradients: leaves must be floating tensors, got {describe(x)}")
        if i and backend is not found:
            raise TypeError(
                f"average_gradients: tensors must be of one engine, got {found.chosen_as} and {backend.chosen_as}"
            )
        found = backend
    return found


def _buckets(backend: Backend, leaves: list[Any], places: list[int], limit: int) -> Iterator[list[int]]:
    """Places of the tensors of each bucket, in order."""
    kinds: dict[tuple[str, str], list[int]] = {}
    for i in places:
        kinds.setdefault((backend.dtype_of(leaves[i]).name, backend.device_of(leaves[i])), []).append(i)
    for (name, _), members in kinds.items():
        bucket: list[int] = []
        used, width = 0, backends.DTYPES[name].bits // 8
        for i in members:
            size = math.prod(leaves[i].shape) * width
            if bucket and used + size > limit:
                yield bucket
                bucket, used = [], 0
            bucket.append(i)
            used += size
        yield bucket


def _summary(tensors: Iterable[Any]) -> str:
    """Number of tensors and elements, and a checksum of dtypes and shapes, which are equal on all ranks."""
    shapes = list(map(describe, tensors))
    return f"{len(shapes)} tensors, {', '.join(shapes[:3])} ..., checksum {zlib.crc32(' '.join(shapes).encode()):08x}"
