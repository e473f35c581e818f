"""Shapes of the arguments of indexing, counting and segment reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml.shapes.axes import axis_of


def scattered_shape(x: Any, indices: Any, axis: int) -> tuple[int, tuple[int, ...]]:
    """Axis that the ``scatter`` functions write along, counted from the front, and the shape of their updates."""
    if indices.ndim != 1:
        raise ValueError(f"indices must have 1 axis, got {indices.ndim}")
    axis = axis_of(axis, x.ndim)
    return axis, (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])


def top_k_axis(shape: tuple[int, ...], k: int, axis: int) -> int:
    """Axis of ``top_k``, counted from the front.

    >>> top_k_axis((2, 3), 3, -1)
    1
    """
    axis = axis_of(axis, len(shape))
    if not 0 <= k <= shape[axis]:
        raise ValueError(f"k must be from 0 to {shape[axis]}, the length of axis {axis}, got {k}")
    return axis


def check_bincount(x: Any, weights: Any, minlength: int) -> None:
    """Raise an error unless the arguments of ``bincount`` match."""
    if x.ndim != 1 or minlength < 0 or (weights is not None and weights.shape != x.shape):
        raise ValueError(
            f"x must have 1 axis and weights the same shape, and minlength must be >= 0, got shapes {list(x.shape)} "
            f"and {None if weights is None else list(weights.shape)} and minlength={minlength}"
        )


def segment_count(data: Any, segment_ids: Any, count: int | None, largest: Callable[[], int]) -> int:
    """Number of segments: ``count``, or one more than the largest id."""
    if segment_ids.ndim != 1 or data.ndim == 0 or segment_ids.shape[0] != data.shape[0]:
        raise ValueError(
            f"segment_ids must have 1 axis, as long as the first of data, got shapes {list(segment_ids.shape)} and "
            f"{list(data.shape)}"
        )
    count = largest() + 1 if count is None else count
    if count < 0:
        raise ValueError(f"num_segments must be >= 0, got {count}")
    return count
