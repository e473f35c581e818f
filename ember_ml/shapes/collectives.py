"""Checks of the shapes and ranks of collective operations."""

from __future__ import annotations

from collections.abc import Sequence


def part_length(shape: Sequence[int], size: int) -> int:
    """Length of the first axis of each of ``size`` equal parts."""
    if not shape or shape[0] % size:
        given = f"the shape {tuple(shape)}" if not shape else f"the length {shape[0]}"
        raise ValueError(f"the first axis must be divisible by the {size} ranks, got {given}")
    return shape[0] // size


def check_root(root: int, size: int) -> None:
    """Raise an error unless ``root`` is a rank."""
    if not 0 <= root < size:
        raise ValueError(f"root must be a rank from 0 to {size - 1}, got {root}")
