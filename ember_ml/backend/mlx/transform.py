"""Transforms of functions of flat lists of arrays, by MLX's own.

A function takes arrays and answers two tuples of them: its outputs, and what passes by untraced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import mlx.core as mx

from ember_ml.backend.mlx import mapping

Tensors: TypeAlias = tuple[mx.array, ...]
Flat: TypeAlias = Callable[..., tuple[Tensors, Tensors]]


def value_and_grad(f: Flat, tensors: Sequence[mx.array]) -> tuple[Tensors, Tensors, Sequence[mx.array]]:
    """The one output of ``f``, what passes by, and the gradient for each tensor."""
    if not tensors:
        return *f(), ()

    def valued(tensors: list[mx.array]) -> tuple[mx.array, Tensors]:
        (value,), aux = f(*tensors)
        return value, aux

    (value, aux), gradients = mx.value_and_grad(valued)(list(tensors))
    return (value,), aux, gradients


def vjp(f: Flat, tensors: Sequence[mx.array]) -> tuple[Tensors, Tensors, Callable[..., Sequence[mx.array]]]:
    """The outputs of ``f``, what passes by, and the function from cotangents to gradients, which runs ``f`` again."""
    outputs, aux = f(*tensors)

    def pulled(cotangents: Sequence[mx.array]) -> Sequence[mx.array]:
        if not tensors or not cotangents:
            return [mx.zeros_like(x) for x in tensors]
        return mx.vjp(lambda *xs: _apart(f(*xs)[0]), list(tensors), list(cotangents))[1]

    return outputs, aux, pulled


def _apart(outputs: Sequence[mx.array]) -> Sequence[mx.array]:
    """The outputs, each an array of its own: of two that are one, MLX forgets a cotangent."""
    return [mx.contiguous(x) for x in outputs] if len(outputs) > 1 else outputs


def jvp(f: Flat, tensors: Sequence[mx.array], tangents: Sequence[mx.array]) -> tuple[Tensors, Tensors, Tensors]:
    """The outputs of ``f``, how they move, and what passes by.

    It is the pullback of the pullback: MLX's own knows no assignments and no decompositions, none of our gradients, and
    only the slopes of float32 in float64.
    """
    outputs, aux, pull = vjp(f, tensors)
    if not tensors or not outputs:
        return outputs, tuple(mx.zeros_like(x) for x in outputs), aux
    start = [mx.zeros_like(x) for x in outputs]
    moved = mx.vjp(lambda *cotangents: _apart(pull(cotangents)), start, list(tangents))[1]
    return outputs, tuple(moved), aux


def vectorized(f: Callable[..., Tensors], axes: Sequence[int | None], tensors: Sequence[mx.array]) -> Tensors:
    """The outputs of ``f`` for each slice of the tensors along their axes, stacked along the first."""
    return tuple(mapping.vectorized(f, tuple(axes))(*tensors))


def remembered(f: Callable[..., Tensors], tensors: Sequence[mx.array]) -> Tensors:
    """The outputs of ``f``, whose intermediate values are computed again when the gradient asks for them."""
    if not tensors:
        return f()
    counts: list[int] = []

    def filled(*xs: mx.array) -> Tensors:
        outputs = f(*xs)
        counts.append(len(outputs))
        # MLX ends the process where there is none.
        return tuple(_apart(outputs)) or (mx.zeros(()),)

    found: Any = mx.checkpoint(filled)(*tensors)
    return tuple(found[: counts[0]])


def ruled(f: Callable[..., tuple[Tensors, Any]], tensors: Sequence[mx.array]) -> Tensors:
    """The outputs of ``f``, which also answers the function from their cotangents to the gradients."""
    if not tensors:
        return f()[0]

    def pulled(primals: Any, cotangents: Any, _: Any) -> Any:
        # Run again, so that the rule speaks of these primals: gradients of gradients then see them.
        return f(*primals)[1](cotangents)

    return tuple(mapping.custom(lambda *xs: tuple(_apart(f(*xs)[0])), pulled)(*tensors))


def compiled_flat(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, from arrays to a tuple of arrays, traced once for each set of shapes and dtypes."""

    def explained(*xs: mx.array) -> Any:
        try:
            return f(*xs)
        except ValueError as error:
            if "[eval]" in str(error):
                error.add_note(
                    "a function is compiled without the values of its tensors: ops.cond, ops.where and ops.while_loop "
                    "choose by them, and numbers that Python is to read are given as numbers"
                )
            raise

    compiled, are_apart = mx.compile(explained), False

    def run(*xs: mx.array) -> Any:
        nonlocal compiled, are_apart
        if not are_apart:
            try:
                return compiled(*xs)
            except ValueError as error:
                # MLX 0.32 refuses a function that has one of its inputs from elsewhere too; ml-explore/mlx#1401.
                if "uncaptured inputs" not in str(error):
                    raise
                # What it has traced by then is of no use.
                compiled, are_apart = mx.compile(explained), True
        return compiled(*map(mx.contiguous, xs))

    return run


def whole(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as one graph; an error where MLX's compiler cannot trace all of it."""
    return mx.compile(f)
