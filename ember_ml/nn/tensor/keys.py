"""Keys that all engines interpret in the same way, so that they can be passed to the engine directly."""

from __future__ import annotations

from typing import Any


def is_plain(key: Any, shape: Any) -> bool:
    """Whether ``key`` consists only of integers in range, slices with positive steps, ``None`` and an ellipsis.

    Other keys differ between engines. MLX 0.32 does not check that integers are in range and limits slices to 32 bits.
    torch 2.13 supports only positive steps, and a step beyond 32 bits ends the process.
    """
    key_type = type(key)
    if key_type is int:
        return len(shape) > 0 and -shape[0] <= key < shape[0]
    if key_type is slice:
        return len(shape) > 0 and _is_plain_slice(key)
    return key_type is tuple and _all_plain(key, shape)


def _all_plain(key: tuple[Any, ...], shape: Any) -> bool:
    axis = 0
    ended = False
    for i, part in enumerate(key):
        part_type = type(part)
        if part_type is int or part_type is slice:
            if axis >= len(shape):
                return False
            if not (_is_plain_slice(part) if part_type is slice else -shape[axis] <= part < shape[axis]):
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


def _is_plain_slice(part: slice) -> bool:
    start, stop, step = part.start, part.stop, part.step
    return (
        (step is None or (type(step) is int and 0 < step < _LIMIT))
        and (stop is None or (type(stop) is int and -_LIMIT < stop < _LIMIT))
        and (start is None or (type(start) is int and -_LIMIT < start < _LIMIT))
    )


_LIMIT = 1 << 31
