"""Shapes of matrices, and of the points of pairwise distances."""

from __future__ import annotations

from typing import Any


def check_matrix(x: Any) -> None:
    """Raise an error if a tensor has fewer than two axes."""
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")


def check_square(x: Any) -> None:
    """Raise an error unless the last two axes of a tensor have the same length."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"x must be square in its last two axes, got shape {list(x.shape)}")


def uses_matmul(x: Any, y: Any, p: float) -> bool:
    """Whether the distances between the points of ``x`` and ``y`` are computed with a matrix product."""
    rows = (x.shape[0], y.shape[0]) if len(x.shape) == len(y.shape) == 2 else (0, 0)
    return p == 2 and min(rows) > 0 and max(rows) > 25
