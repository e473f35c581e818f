"""Shapes of matrices, and of the points that distances are between."""

from __future__ import annotations

from typing import Any


def check_matrix(x: Any) -> None:
    """Reject a tensor with fewer than two axes."""
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")


def check_square(x: Any) -> None:
    """Reject a tensor whose last two axes do not have one length."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"x must be square in its last two axes, got shape {list(x.shape)}")


def is_by_product(x: Any, y: Any, p: float) -> bool:
    """Whether the distances between the points of ``x`` and ``y`` come from a matrix product."""
    rows = (x.shape[0], y.shape[0]) if len(x.shape) == len(y.shape) == 2 else (0, 0)
    return p == 2 and min(rows) > 0 and max(rows) > 25
