"""Keys that every engine reads alike, so that indexing with them needs no operation."""

from __future__ import annotations

from typing import Any


def is_plain(key: Any, shape: Any) -> bool:
    """Whether ``key`` is made of integers in range, slices that rise, ``None`` and an ellipsis alone.

    MLX takes integers out of range, and torch no others among slices.
    """
    kind = type(key)
    if kind is int:
        return len(shape) > 0 and -shape[0] <= key < shape[0]
    if kind is slice:
        return len(shape) > 0 and _rises(key)
    return kind is tuple and _all_plain(key, shape)


def _all_plain(key: tuple[Any, ...], shape: Any) -> bool:
    axis = 0
    ended = False
    for i, part in enumerate(key):
        kind = type(part)
        if kind is int or kind is slice:
            if axis >= len(shape):
                return False
            if not (_rises(part) if kind is slice else -shape[axis] <= part < shape[axis]):
                return False
            axis += 1
        elif part is ...:
            if ended:
                return False
            ended = True
            axis = len(shape) - sum(type(later) is int or type(later) is slice for later in key[i + 1 :])
            if axis < 0:
                return False
        elif part is not None:
            return False
    return True


def _rises(part: slice) -> bool:
    return part.step is None or (type(part.step) is int and part.step > 0)
