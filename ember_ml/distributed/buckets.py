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

# Size from which the first bucket is reduced while a backward pass runs: small, so that the transport begins early.
_FIRST_BYTES = 1_000_000


def average_gradients(gradients: Tree, bucket_bytes: int | None = None) -> Tree:
    """Mean of each tensor of a tree over all ranks.

    Tensors of one dtype and device are joined into buckets, and each bucket is reduced at once. ``None``, the gradient
    of what is not trained, stays ``None``. No gradient flows through the result.

    Args:
        gradients: tree of floating tensors, with the same shapes on every rank.
        bucket_bytes: size from which a bucket is reduced, by default what suits the transport.

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
        others: further tensors to average, which that function has computed.
    """

    def __init__(self, parameters: dict[str, Any], others: dict[str, Any]) -> None:
        self._others = dict(others)
        # The gradients of the last parameters are computed first.
        names = [(0, name) for name in others] + [(1, path) for path in reversed(parameters)]
        leaves = [unwrap((others, parameters)[kind][name]) for kind, name in names]
        self._backend = backend = _common_backend(leaves)
        # Not every transport has what is used here.
        self._transport: Any = backend.transport()
        limit = self._transport.BUCKET_BYTES
        buckets = list(_buckets(backend, leaves, list(range(len(leaves))), limit, min(_FIRST_BYTES, limit)))
        self._text = f"average_gradients({_summary(leaves)})"
        self._is_begun = False
        # Bucket and place in it of what has not been put there yet.
        self._places = {names[i]: (b, place) for b, bucket in enumerate(buckets) for place, i in enumerate(bucket)}
        transport: Any = self._transport
        self._reduction = transport.Reduction([[leaves[i] for i in bucket] for bucket in buckets])
        for path, x in parameters.items():
            transport.watch(x, partial(self._put, path))

    @staticmethod
    def is_available() -> bool:
        """Whether the active backend computes gradients one after the other, and reduces them meanwhile."""
        return hasattr(backends.current().transport(), "Reduction")

    def finish(self, gradients: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Means of the gradients and of the other tensors."""
        # The value does not depend on the parameters that are left.
        left = {path: self._put(path, gradients[path]) for kind, path in list(self._places) if kind}
        self._begin()
        calls.run(self._transport, self._text, self._reduction.wait, is_compared=False)
        return {**gradients, **left}, self._others

    def _put(self, path: str, gradient: Any) -> Any:
        """Tensor that will be the mean of a gradient."""
        self._begin()
        return self._reduction.put(*self._places.pop((1, path)), gradient)

    def _begin(self) -> None:
        """Put the other tensors into their buckets, once all ranks take part."""
        if not self._is_begun:
            calls.run(self._transport, self._text, lambda: None)
            self._is_begun = True
            for name, x in self._others.items():
                mean = self._reduction.put(*self._places.pop((0, name)), unwrap(x))
                self._others[name] = wrap(mean, self._backend) if holds_wrapped([x]) else mean


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


def _buckets(
    backend: Backend, leaves: list[Any], places: list[int], limit: int, first: int | None = None
) -> Iterator[list[int]]:
    """Places of the tensors of each bucket, in order. A bucket ends with the tensor that fills it to its limit."""
    end = first or limit
    kinds: dict[tuple[str, str], list[int]] = {}
    for i in places:
        kinds.setdefault((backend.dtype_of(leaves[i]).name, backend.device_of(leaves[i])), []).append(i)
    for (name, _), members in kinds.items():
        bucket: list[int] = []
        used, width = 0, backends.DTYPES[name].bits // 8
        for i in members:
            bucket.append(i)
            used += math.prod(leaves[i].shape) * width
            if used >= end:
                yield bucket
                bucket, used, end = [], 0, limit
        if bucket:
            yield bucket


def _summary(tensors: Iterable[Any]) -> str:
    """Number of tensors and elements, and a checksum of dtypes and shapes, which are equal on all ranks."""
    shapes = list(map(describe, tensors))
    return f"{len(shapes)} tensors, {', '.join(shapes[:3])} ..., checksum {zlib.crc32(' '.join(shapes).encode()):08x}"
