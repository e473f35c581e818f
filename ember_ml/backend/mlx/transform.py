"""Transforms of functions of flat lists of arrays, by those of MLX.

A function takes arrays and returns two tuples of them: its outputs, and auxiliary outputs without gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import mlx.core as mx

from ember_ml.backend.mlx import mapping
from ember_ml.errors import read_error

Tensors: TypeAlias = tuple[mx.array, ...]
Flat: TypeAlias = Callable[..., tuple[Tensors, Tensors]]


def value_and_grad(f: Flat, tensors: Sequence[mx.array]) -> tuple[Tensors, Tensors, Sequence[mx.array]]:
    """Single output of ``f``, its auxiliary outputs, and the gradient for each tensor."""
    if not tensors:
        return *f(), ()

    def value_and_aux(tensors: list[mx.array]) -> tuple[mx.array, Tensors]:
        (value,), aux = f(*tensors)
        return value, aux

    (value, aux), gradients = mx.value_and_grad(value_and_aux)(list(tensors))
    return (value,), aux, gradients


def vjp(f: Flat, tensors: Sequence[mx.array]) -> tuple[Tensors, Tensors, Callable[..., Sequence[mx.array]]]:
    """Outputs of ``f``, its auxiliary outputs, and the function from cotangents to gradients, which reruns ``f``."""
    outputs, aux = f(*tensors)

    def pulled(cotangents: Sequence[mx.array]) -> Sequence[mx.array]:
        if not tensors or not cotangents:
            return [mx.zeros_like(x) for x in tensors]
        return mx.vjp(lambda *xs: _distinct(f(*xs)[0]), list(tensors), list(cotangents))[1]

    return outputs, aux, pulled


def _distinct(outputs: Sequence[mx.array]) -> Sequence[mx.array]:
    """Outputs as distinct arrays. MLX 0.32: if two outputs are one array, a cotangent is lost."""
    return [mx.contiguous(x) for x in outputs] if len(outputs) > 1 else outputs


def jvp(f: Flat, tensors: Sequence[mx.array], tangents: Sequence[mx.array]) -> tuple[Tensors, Tensors, Tensors]:
    """Outputs of ``f``, their tangents, and its auxiliary outputs.

    Computed as the vjp of the vjp: ``mx.jvp`` of MLX 0.32 supports neither assignment, decompositions nor custom
    gradients, and computes derivatives of float64 in float32.
    """
    outputs, aux, pull = vjp(f, tensors)
    if not tensors or not outputs:
        return outputs, tuple(mx.zeros_like(x) for x in outputs), aux
    start = [mx.zeros_like(x) for x in outputs]
    pushed = mx.vjp(lambda *cotangents: _distinct(pull(cotangents)), start, list(tangents))[1]
    return outputs, tuple(pushed), aux


def vectorized(f: Callable[..., Tensors], axes: Sequence[int | None], tensors: Sequence[mx.array]) -> Tensors:
    """Outputs of ``f`` for each slice of the tensors along their axes, stacked along the first axis."""
    return tuple(mapping.vectorized(f, tuple(axes))(*tensors))


def remembered(f: Callable[..., Tensors], tensors: Sequence[mx.array]) -> Tensors:
    """Outputs of ``f``, whose intermediate values are recomputed for the gradient."""
    if not tensors:
        return f()
    counts: list[int] = []

    def nonempty(*xs: mx.array) -> Tensors:
        outputs = f(*xs)
        counts.append(len(outputs))
        # MLX 0.32: mx.checkpoint ends the process if there are no outputs.
        return tuple(_distinct(outputs)) or (mx.zeros(()),)

    found: Any = mx.checkpoint(nonempty)(*tensors)
    return tuple(found[: counts[0]])


def ruled(f: Callable[..., tuple[Tensors, Any]], tensors: Sequence[mx.array]) -> Tensors:
    """Outputs of ``f``, which also returns the function from their cotangents to the gradients."""
    if not tensors:
        return f()[0]

    def pulled(primals: Any, cotangents: Any, _: Any) -> Any:
        # Run f again on these primals, so that higher-order gradients see them.
        return f(*primals)[1](cotangents)

    return tuple(mapping.custom(lambda *xs: tuple(_distinct(f(*xs)[0])), pulled)(*tensors))


def compiled_flat(f: Callable[..., Any], replaced: Callable[[], list[int]] | None) -> Callable[..., Any]:
    """``f``, from arrays to a tuple of arrays, traced once for each set of shapes and dtypes."""

    def annotated(*xs: mx.array) -> Any:
        try:
            return f(*xs)
        except ValueError as error:
            if "[eval]" in str(error):
                raise read_error(error) from error
            raise

    compiled, are_distinct = mx.compile(annotated), False

    def run(*xs: mx.array) -> Any:
        nonlocal compiled, are_distinct
        if not are_distinct:
            try:
                return compiled(*xs)
            except ValueError as error:
                # MLX 0.32: a function that also captures one of its inputs raises; ml-explore/mlx#1401.
                if "uncaptured inputs" not in str(error):
                    raise
                # The failed trace cannot be reused.
                compiled, are_distinct = mx.compile(annotated), True
        return compiled(*map(mx.contiguous, xs))

    return run


def whole(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as one graph; an error where MLX's compiler cannot trace all of it."""
    return mx.compile(f)
