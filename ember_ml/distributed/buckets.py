"""Averages of many tensors, joined into few large ones."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
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


class Overlap:
    """Means of gradients over all ranks, of which each bucket is reduced while the backward pass computes the others.

    Create it in the function that is differentiated; the gradients then are the means once ``finish`` has returned.

    Args:
        parameters: the tensors whose gradients are averaged, as that function sees them, with the same shapes on every
            rank.
    """

    def __init__(self, parameters: dict[str, Any]) -> None:
        # The gradients of the last ones are computed first.
        paths, leaves = list(reversed(parameters)), list(reversed(parameters.values()))
        backend = _common_backend(leaves)
        self._transport: Any = backend.transport()
        buckets = list(_buckets(backend, leaves, list(range(len(leaves))), self._transport.BUCKET_BYTES))
        self._text = f"average_gradients({_summary(leaves)})"
        self._is_begun = False
        self._places = {paths[i]: (b, place) for b, bucket in enumerate(buckets) for place, i in enumerate(bucket)}
        self._reduction = self._transport.Reduction([[leaves[i] for i in bucket] for bucket in buckets])
        for path, x in parameters.items():
            self._transport.watch(x, partial(self._put, path))

    @staticmethod
    def is_available() -> bool:
        """Whether the active backend computes gradients one after the other, and reduces them meanwhile."""
        return hasattr(backends.current().transport(), "Reduction")

    def finish(self, gradients: dict[str, Any]) -> dict[str, Any]:
        """Gradients, once all of them are means."""
        # The value does not depend on the parameters that are left.
        left = {path: self._put(path, gradients[path]) for path in list(self._places)}
        calls.run(self._transport, self._text, self._reduction.wait, is_compared=False)
        return {**gradients, **left}

    def _put(self, path: str, gradient: Any) -> Any:
        """Tensor that will be the mean of a gradient."""
        if not self._is_begun:
            # The other ranks must take part before anything is sent to them.
            calls.run(self._transport, self._text, lambda: None)
            self._is_begun = True
        return self._reduction.put(*self._places.pop(path), gradient)


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
