"""``mx.vmap``, what has to be known where it runs, and functions with a gradient of their own, which it would drop.

Of two operands, it may run over one. MLX then stretches the other for most operations, but forgets it for those of
bits, which read beyond its end, for assignments, and for convolutions in groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.dispatch.checks import unchecked

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


def custom(f: Callable[..., Any], pull: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, from arrays to a tuple of arrays, whose gradients ``pull`` finds, also when it is mapped.

    Args:
        pull: from the arguments, the cotangents and the answers of ``f``, a tuple of each, to a gradient for each
            argument.
    """
    function = mx.custom_function(f)

    @function.vjp
    def pulled(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return tuple(pull(_several(primals), _several(cotangents), _several(outputs)))

    @function.vmap
    def spread(inputs: Any, axes: Any) -> Any:
        axes = _several(axes)
        # What is looked at here would be cut off from the gradients of functions around this one.
        with unchecked():
            outputs = custom(vectorized(f, axes), _mapped(pull, axes))(*_several(inputs))
        return outputs, (0,) * len(outputs)

    return function


def _mapped(pull: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """What ``pull`` finds for all slices: the gradient of an argument that all of them share is the sum."""

    def run(primals: Any, cotangents: Any, outputs: Any) -> list[mx.array]:
        count, middle = len(primals), len(primals) + len(cotangents)
        tensors = (*primals, *cotangents, *outputs)
        along = (*axes, *(0,) * (len(tensors) - count))

        def one(*xs: mx.array) -> Any:
            found = pull(xs[:count], xs[count:middle], xs[middle:])
            # A gradient that does not depend on what is mapped over must be mapped over nonetheless.
            return tuple(following(g, xs[count]) for g in found)

        try:
            found = vectorized(one, along)(*tensors)
        except (ValueError, RuntimeError):
            # What MLX cannot map goes slice by slice.
            found = _stacked(one, along, tensors)
        return [mx.sum(g, axis=0) if a is None else mx.moveaxis(g, 0, a) for g, a in zip(found, axes, strict=True)]

    return run


def _stacked(f: Callable[..., Any], axes: tuple[int | None, ...], tensors: tuple[mx.array, ...]) -> list[mx.array]:
    """As ``vectorized`` answers, one slice after the other."""
    columns = [x if axis is None else mx.moveaxis(x, axis, 0) for x, axis in zip(tensors, axes, strict=True)]
    size = next(x.shape[0] for x, axis in zip(columns, axes, strict=True) if axis is not None)
    rows = [f(*(x if axis is None else x[i] for x, axis in zip(columns, axes, strict=True))) for i in range(size)]
    return [mx.stack(list(column)) for column in zip(*rows, strict=True)]


def _several(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (list, tuple)) else (values,)


def alike(x: mx.array, y: Any) -> tuple[mx.array, Any]:
    """Two operands in one shape, mapped over both if over either; a number is as it was."""
    if not isinstance(y, mx.array):
        return x, y
    return mx.where(mx.equal(y, y), x, x), mx.where(mx.equal(x, x), y, y)


def following(x: mx.array, leader: mx.array) -> mx.array:
    """``x``, mapped over if ``leader`` is."""
    return mx.where(mx.any(mx.equal(leader, leader)), x, x) if mapped else x
