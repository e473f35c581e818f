"""Axes, which may be counted from either end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.errors import axis_error


def axis_of(axis: int, ndim: int) -> int:
    """``axis`` counted from the front.

    >>> axis_of(-1, 3)
    2
    """
    if not -ndim <= axis < ndim:
        raise axis_error(axis, ndim)
    return axis % ndim


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes in ``axis``, counted from the front; all axes if it is ``None``.

    >>> axes_of((0, -1), 3)
    (0, 2)
    """
    named: Any = range(ndim) if axis is None else (axis,) if hasattr(axis, "__index__") else axis
    axes = tuple(axis_of(one, ndim) for one in named)
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis must name each axis once, got {axis}")
    return axes
