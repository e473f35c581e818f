"""Transforms of functions of flat lists of arrays, by those of JAX.

A function takes arrays and returns two tuples of them: its outputs, and auxiliary outputs without gradient.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ember_ml import tree
from ember_ml.backend.jax.core import TENSORS, drop_note
from ember_ml.backend.jax.core import is_traced as _is_traced
from ember_ml.backend.jax.gradients import with_pullback
from ember_ml.errors import read_error

EXPIRES = True
REPEATS_DRAWS = True

Tensors: TypeAlias = tuple[Array, ...]
Flat: TypeAlias = Callable[..., tuple[Tensors, Tensors]]


def value_and_grad(f: Flat, tensors: Sequence[Array]) -> tuple[Tensors, Tensors, Sequence[Array]]:
    """Single output of ``f``, its auxiliary outputs, and the gradient for each tensor."""
    outputs, aux, pull = vjp(f, tensors)
    return outputs, aux, pull([jnp.ones_like(outputs[0])])


def vjp(f: Flat, tensors: Sequence[Array]) -> tuple[Tensors, Tensors, Callable[..., Sequence[Array]]]:
    """Outputs of ``f``, its auxiliary outputs, and the function from cotangents to gradients."""
    if not tensors:
        return *f(), lambda cotangents: []
    outputs, pull, aux = jax.vjp(f, *tensors, has_aux=True)

    def pulled(cotangents: Sequence[Array]) -> list[Array]:
        return [_conjugate(g) for g in pull(tuple(_to_jax(g) for g in cotangents))]

    return outputs, aux, pulled


def _conjugate(g: Any) -> Any:
    """``g``, conjugated if it is complex: JAX's gradients are the conjugates of ours."""
    return jnp.conj(g) if jnp.iscomplexobj(g) else g


def _to_jax(g: Any) -> Any:
    """Cotangent as JAX expects it; that of an integer output is of a dtype of its own."""
    return _conjugate(g) if jnp.issubdtype(g.dtype, jnp.inexact) else np.zeros(g.shape, jax.dtypes.float0)


def _from_jax(g: Any, x: Array) -> Array:
    """Tangent or cotangent of ``x``, where those of integers are zeros."""
    return jnp.zeros_like(x) if g.dtype == jax.dtypes.float0 else g


def jvp(f: Flat, tensors: Sequence[Array], tangents: Sequence[Array]) -> tuple[Tensors, Tensors, Tensors]:
    """Outputs of ``f``, their tangents, and its auxiliary outputs."""
    if not tensors:
        outputs, aux = f()
        return outputs, tuple(map(jnp.zeros_like, outputs)), aux
    try:
        outputs, pushed, aux = jax.jvp(f, tuple(tensors), tuple(tangents), has_aux=True)
    except TypeError as error:
        if "custom_vjp" not in str(error.__cause__ or error):
            raise
        # Functions with a rule support reverse mode only, so compute the vjp of the vjp.
        outputs, pull, aux = jax.vjp(f, *tensors, has_aux=True)
        floats = [i for i, x in enumerate(outputs) if jnp.issubdtype(x.dtype, jnp.inexact)]
        zeros = [jnp.zeros_like(outputs[i]) for i in floats]

        def pulled(*cotangents: Array) -> Any:
            full = [np.zeros(x.shape, jax.dtypes.float0) for x in outputs]
            for i, g in zip(floats, cotangents, strict=True):
                full[i] = g  # type: ignore[call-overload]
            return pull(tuple(full))

        found = iter(jax.vjp(pulled, *zeros)[1](tuple(tangents)))
        pushed = tuple(next(found) if i in floats else jnp.zeros_like(x) for i, x in enumerate(outputs))
    return outputs, tuple(_from_jax(g, x) for g, x in zip(pushed, outputs, strict=True)), aux


def vectorized(f: Callable[..., Tensors], axes: Sequence[int | None], tensors: Sequence[Array]) -> Tensors:
    """Outputs of ``f`` for each slice of the tensors along their axes, stacked along the first axis."""
    try:
        return jax.vmap(f, in_axes=tuple(axes))(*tensors)
    except TypeError as error:
        if not any(isinstance(one, jax.errors.JAXTypeError) for one in (error, error.__cause__)):
            raise
        # The function reads values, which a loop over the slices has.
        raise NotImplementedError(str(error)) from error


def remembered(f: Callable[..., Tensors], tensors: Sequence[Array]) -> Tensors:
    """Outputs of ``f``, whose intermediate values are recomputed for the gradient."""
    return jax.checkpoint(f)(*tensors) if any(_is_traced(x) for x in tensors) else f(*tensors)


def ruled(f: Callable[..., tuple[Tensors, Any]], tensors: Sequence[Array]) -> Tensors:
    """Outputs of ``f``, which also returns the function from their cotangents to the gradients."""

    def pull(xs: Tensors, cotangents: Sequence[Any], outputs: Tensors) -> list[Array]:
        # Run f again on these arrays, so that higher-order gradients see them.
        pairs = zip(cotangents, outputs, strict=True)
        given = [jnp.zeros_like(x) if g is None else _conjugate(g) for g, x in pairs]
        return [_conjugate(g) for g in f(*xs)[1](given)]

    return with_pullback(lambda *xs: f(*xs)[0], pull)(*tensors)


def compiled_flat(f: Callable[..., Any], replaced: Callable[[], list[int]] | None) -> Callable[..., Any]:
    """``f``, from arrays to a tuple of arrays, compiled once. It takes over the memory of the arrays it replaces."""
    program: Any = None
    places: list[int] = []

    def annotated(*xs: Array) -> Any:
        try:
            return f(*xs)
        except jax.errors.JAXTypeError as error:
            raise read_error(error) from error

    def prepare(*xs: Array) -> None:
        nonlocal program, places
        try:
            if replaced is not None:
                # A trace without compilation tells which arrays the function replaces.
                jax.eval_shape(annotated, *xs)
                places = replaced()
            program = jax.jit(annotated, donate_argnums=places)
            # The first call uses what this compiles.
            program.lower(*xs).compile()
        except Exception as error:
            drop_note(error)
            raise

    def run(*xs: Array) -> Any:
        if program is None:
            prepare(*xs)
        if places:
            xs = tuple(_exclusive(list(xs), places))
        try:
            return program(*xs)
        except Exception as error:
            drop_note(error)
            raise

    run.prepare = prepare
    return run


def key_tensor(key: Sequence[int]) -> Any:
    """Random key as a host array, which a program takes over in less time than device_put."""
    return np.array(key, np.uint32)


def _exclusive(xs: list[Array], places: list[int]) -> list[Array]:
    """Arrays, with copies in place of those that others than the caller of a compiled function hold."""
    counts = [sys.getrefcount(xs[i]) for i in places]
    for i, count in zip(places, counts, strict=True):
        if count > _REFERENCES:
            xs[i] = jnp.copy(xs[i])
    return xs


def whole(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as one graph; an error where JAX cannot trace all of it."""
    result: Any = None

    def arrays(*xs: Array) -> list[Array]:
        nonlocal result
        result = f(*xs)
        return [leaf for leaf in tree.leaves(result) if isinstance(leaf, TENSORS)]

    compiled = jax.jit(arrays)

    def run(*xs: Array) -> Any:
        found = iter(compiled(*xs))
        return tree.map(lambda leaf: next(found) if isinstance(leaf, TENSORS) else leaf, result)

    return run


def _count_references() -> int:
    """References to an array that a model and the caller of ``compiled_flat`` hold, and that ``_exclusive`` counts."""
    held = [object()]
    given = [held[0]]

    def run(*xs: object) -> int:
        several = list(xs)
        counts = [sys.getrefcount(several[i]) for i in (0,)]
        return counts[0]

    return run(*given)


_REFERENCES = _count_references()
