"""Keys that every engine reads alike, so that indexing with them needs no operation."""

from __future__ import annotations

from typing import Any


def is_plain(key: Any, shape: Any) -> bool:
    """Whether ``key`` is made of integers in range, slices that rise, ``None`` and an ellipsis alone.

    MLX takes integers out of range, and 32 bits in slices; torch slices that rise alone, and far steps end the process.
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
    start, stop, step = part.start, part.stop, part.step
    return (
        (step is None or (type(step) is int and 0 < step < _FAR))
        and (stop is None or (type(stop) is int and -_FAR < stop < _FAR))
        and (start is None or (type(start) is int and -_FAR < start < _FAR))
    )


_FAR = 1 << 31
