"""Data: arrays of any kind cut into batches, or batches as somebody else makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

from ember_ml import ops, portable, tree
from ember_ml.unchecked import unchecked

Batch = tuple[Any, Any]


class Arrays:
    """Examples in memory: the first axis of every tensor counts them."""

    def __init__(self, x: Any, y: Any, batch_size: int, device: str | None = None) -> None:
        if batch_size < 1:
            raise ValueError(f"a batch has at least 1 example, not {batch_size}")
        self.x = _tensors(x, device)
        self.y = None if y is None else _tensors(y, device)
        self.batch_size = batch_size
        self.device = device
        self.count = _count(self.x, self.y)

    def __len__(self) -> int:
        return -(-self.count // self.batch_size)

    def batches(self, shuffle: bool, skip: int = 0) -> Iterator[Batch]:
        """The batches from number ``skip`` on, in order or, drawn from the portable stream, in a random one."""
        order = ops.random.permutation(self.count, device=self.device) if shuffle else None
        for begin in range(skip * self.batch_size, self.count, self.batch_size):
            end = begin + self.batch_size
            if order is None:
                yield _part(self.x, slice(begin, end)), _part(self.y, slice(begin, end))
            else:
                yield _chosen(self.x, order[begin:end]), _chosen(self.y, order[begin:end])


class Batches:
    """An iterable of batches ``(x, y)``; one that begins anew each time is needed for more than one epoch."""

    def __init__(self, batches: Iterable[Any], device: str | None = None) -> None:
        self.source = batches
        self.device = device

    def __len__(self) -> int:
        """How many batches there are; 0 if that is not known."""
        return len(self.source) if isinstance(self.source, Sized) else 0

    def batches(self, shuffle: bool, skip: int = 0) -> Iterator[Batch]:
        """The batches from number ``skip`` on, in the order of the iterable."""
        for number, batch in enumerate(self.source):
            if number >= skip:
                x, y = batch if type(batch) in (tuple, list) and len(batch) == 2 else (batch, None)
                yield _tensors(x, self.device), None if y is None else _tensors(y, self.device)


def as_data(x: Any, y: Any, batch_size: int, device: str | None = None) -> Arrays | Batches:
    """``x`` and ``y`` cut into batches, or ``x`` alone as an iterable of batches, on a device."""
    if y is None and not ops.is_tensor(x) and not hasattr(x, "__array__") and not isinstance(x, (dict, tuple)):
        if not isinstance(x, Iterable):
            raise TypeError(f"data are arrays or an iterable of batches, not a {type(x).__name__}")
        return Batches(x, device)
    return Arrays(x, y, batch_size, device)


def size_of(batch: Any) -> int:
    """How many examples are in a batch."""
    first = tree.leaves(batch)[0]
    return int(first.shape[0]) if first.ndim else 1


def _tensors(data: Any, device: str | None) -> Any:
    """Native tensors of the active engine, for arrays of any kind and for dictionaries and tuples of them."""
    if isinstance(data, dict):
        return {key: _tensors(value, device) for key, value in data.items()}
    if isinstance(data, tuple):
        return tuple(_tensors(value, device) for value in data)
    return ops.asarray(portable.opened(data), device=device)


def _count(x: Any, y: Any) -> int:
    leaves = [leaf for part in (x, y) if part is not None for leaf in tree.leaves(part)]
    counts = {int(leaf.shape[0]) if leaf.ndim else -1 for leaf in leaves}
    if len(counts) != 1 or -1 in counts:
        shapes = ", ".join(str(tuple(leaf.shape)) for leaf in leaves)
        raise ValueError(f"the first axis counts the examples and must be one number; the shapes are {shapes}")
    return counts.pop()


def _part(data: Any, part: slice) -> Any:
    return None if data is None else tree.map(lambda x: x[part], data)


def _chosen(data: Any, order: Any) -> Any:
    if data is None:
        return None
    # A permutation is in range.
    with unchecked():
        return tree.map(lambda x: ops.take(x, order, axis=0), data)
