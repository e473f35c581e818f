"""``mx.vmap``, workarounds for operations that it maps wrongly, and functions with a custom gradient that survives it.

If only one of two operands is mapped, MLX broadcasts the other for most operations. MLX 0.32 does not for bitwise
operations, which read out of bounds, for assignments, and for grouped convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from ember_ml.dispatch.checks import unchecked

# Functions being mapped now, the innermost last.
mapped: list[Callable[..., Any]] = []


def vectorized(f: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    """``f`` for each slice of its arguments along their axes, with the results stacked along the first axis."""
    over = mx.vmap(f, in_axes=in_axes)

    def run(*args: Any) -> Any:
        mapped.append(f)
        try:
            return over(*args)
        finally:
            mapped.pop()

    return run


def custom(f: Callable[..., Any], pull: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, from arrays to a tuple of arrays, with gradients computed by ``pull``, also when it is mapped.

    Args:
        pull: from tuples of the arguments, the cotangents and the results of ``f`` to a gradient for each argument.
    """
    function = mx.custom_function(f)

    @function.vjp
    def pulled(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return tuple(pull(_as_tuple(primals), _as_tuple(cotangents), _as_tuple(outputs)))

    @function.vmap
    def spread(inputs: Any, axes: Any) -> Any:
        axes = _as_tuple(axes)
        # Reading values here would cut them off from the gradients of enclosing functions.
        with unchecked():
            outputs = custom(vectorized(f, axes), _map_pull(pull, axes))(*_as_tuple(inputs))
        return outputs, (0,) * len(outputs)

    return function


def recomputed(f: Callable[[mx.array], mx.array]) -> Callable[[mx.array], mx.array]:
    """``f``, whose gradient keeps its argument alone and computes the rest again."""

    def pull(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return mx.vjp(f, [after(primals[0], cotangents)], list(cotangents))[1]

    run = custom(lambda x: (f(x),), pull)
    return lambda x: run(x)[0]


def after(x: mx.array, others: Sequence[mx.array]) -> mx.array:
    """``x``, computed after the others. MLX 0.32: vmap does not support ``depends``."""
    return x if mapped else mx.depends([x], list(others))[0]


def _map_pull(pull: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """``pull`` for all slices; the gradient of an argument that all slices share is the sum."""

    def run(primals: Any, cotangents: Any, outputs: Any) -> list[mx.array]:
        count, middle = len(primals), len(primals) + len(cotangents)
        tensors = (*primals, *cotangents, *outputs)
        along = (*axes, *(0,) * (len(tensors) - count))

        def one(*xs: mx.array) -> Any:
            found = pull(xs[:count], xs[count:middle], xs[middle:])
            # vmap requires every output to be mapped, even one that does not depend on a mapped input.
            return tuple(map_like(g, xs[count]) for g in found)

        try:
            found = vectorized(one, along)(*tensors)
        except (ValueError, RuntimeError):
            # MLX cannot map every operation.
            found = _map_by_slice(one, along, tensors)
        return [mx.sum(g, axis=0) if a is None else mx.moveaxis(g, 0, a) for g, a in zip(found, axes, strict=True)]

    return run


def _map_by_slice(f: Callable[..., Any], axes: tuple[int | None, ...], tensors: tuple[mx.array, ...]) -> list[mx.array]:
    """Same result as ``vectorized``, computed one slice at a time."""
    columns = [x if axis is None else mx.moveaxis(x, axis, 0) for x, axis in zip(tensors, axes, strict=True)]
    size = next(x.shape[0] for x, axis in zip(columns, axes, strict=True) if axis is not None)
    rows = [f(*(x if axis is None else x[i] for x, axis in zip(columns, axes, strict=True))) for i in range(size)]
    return [mx.stack(list(column)) for column in zip(*rows, strict=True)]


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (list, tuple)) else (values,)


def map_both(x: mx.array, y: Any) -> tuple[mx.array, Any]:
    """Two operands, both mapped if either is; a number is unchanged."""
    if not isinstance(y, mx.array):
        return x, y
    return mx.where(mx.equal(y, y), x, x), mx.where(mx.equal(x, x), y, y)


def map_like(x: mx.array, leader: mx.array) -> mx.array:
    """``x``, mapped if ``leader`` is."""
    return mx.where(mx.any(mx.equal(leader, leader)), x, x) if mapped else x
