"""``mx.vmap``, and what has to be known where it runs.

Of two operands, it may run over one. MLX then stretches the other for most operations, but forgets it for those of
bits, which read beyond its end, for assignments, and for convolutions in groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

# The functions that are being mapped now, the innermost last.
mapped: list[Callable[..., Any]] = []


def vectorized(f: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    """``f`` for each slice of its arguments along their axes, the answers stacked along the first."""
    over = mx.vmap(f, in_axes=in_axes)

    def run(*args: Any) -> Any:
        mapped.append(f)
        try:
            return over(*args)
        finally:
            mapped.pop()

    return run


def alike(x: mx.array, y: Any) -> tuple[mx.array, Any]:
    """Two operands in one shape, mapped over both if over either; a number is as it was."""
    if not isinstance(y, mx.array):
        return x, y
    return mx.where(mx.equal(y, y), x, x), mx.where(mx.equal(x, x), y, y)


def following(x: mx.array, leader: mx.array) -> mx.array:
    """``x``, mapped over if ``leader`` is."""
    return mx.where(mx.any(mx.equal(leader, leader)), x, x) if mapped else x
