"""Axes of the arguments of shape manipulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.errors import AxisError
from ember_ml.shapes.axes import axes_of, axis_of


def permuted_axes(axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes of ``permute_dims``, counted from the front.

    >>> permuted_axes((-1, 0), 2)
    (1, 0)
    """
    if len(axes) != ndim:
        raise ValueError(f"axes must name each of the {ndim} axes once, got {len(axes)} axes")
    return axes_of(axes, ndim)


def moved_axes(source: Any, destination: Any, ndim: int) -> tuple[int, ...]:
    """Order of the axes after ``moveaxis``.

    >>> moved_axes(0, -1, 3)
    (1, 2, 0)
    """
    sources, destinations = axes_of(source, ndim), axes_of(destination, ndim)
    if len(sources) != len(destinations):
        raise ValueError(
            f"source and destination must have the same length, got {len(sources)} and {len(destinations)}"
        )
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return tuple(order)


def stacked_axis(arrays: Sequence[Any], axis: int) -> int:
    """The new axis of ``stack``, counted from the front. That shapes differ is an error before a wrong axis is."""
    if not arrays:
        return axis
    try:
        return axis_of(axis, arrays[0].ndim + 1)
    except AxisError:
        shapes = [tuple(x.shape) for x in arrays]
        if len(set(shapes)) > 1:
            raise ValueError(f"arrays must have one shape, got {', '.join(map(str, shapes))}") from None
        raise
