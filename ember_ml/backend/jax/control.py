"""Control flow on JAX: Python branches on available values, ``jax.lax`` in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ember_ml import tree as _tree
from ember_ml.backend.jax.core import TENSORS as _TENSORS
from ember_ml.backend.jax.core import convert as _convert
from ember_ml.backend.jax.core import is_compiling as is_traced
from ember_ml.backend.jax.transform import vectorized as _vectorized


def branch(pred: Array, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Result of one of two functions, chosen when compiled code runs."""
    results: list[Any] = []

    def leaves(f: Callable[[], Any]) -> list[Any]:
        results.append(_tensors(f()))
        # JAX sorts the keys of dictionaries; here they are in the order of the first result.
        return _tree.leaves(_tree.map(lambda _, leaf: leaf, results[0], results[-1]))

    found = lax.cond(pred.astype(bool), lambda: leaves(yes), lambda: leaves(no))
    return _tree.unflatten(results[0], found)


def loop(test: Callable[..., Any], step: Callable[..., Any], state: tuple[Array, ...]) -> Any:
    """First state that fails ``test``, found when compiled code runs."""
    return lax.while_loop(
        lambda now: jnp.asarray(test(*now)).astype(bool), lambda now: tuple(_tensors(list(step(*now)))), state
    )


def steps(step: Callable[..., Any], carry: Any, xs: tuple[Array, ...], reverse: bool) -> Any:
    """Last carry and stacked outputs of ``step`` over the first axis of ``xs``, in a loop that has gradients."""
    return lax.scan(lambda carry, row: step(carry, *row), carry, xs, reverse=reverse)


def vectorized(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` for all slices of a tree along the first axis at once."""
    return lambda xs: _vectorized(f, (0,), (xs,))


def stop_gradient(x: Array, /) -> Array:
    return lax.stop_gradient(x)


def eval(*trees: Any) -> Any:
    jax.block_until_ready([leaf for leaf in _tree.leaves(trees) if isinstance(leaf, _TENSORS)])
    return trees[0] if len(trees) == 1 else trees


def _tensors(result: Any) -> Any:
    def tensor(leaf: Any) -> Any:
        return leaf if leaf is None or isinstance(leaf, _TENSORS) else _convert(leaf, None, None)

    return _tree.map(tensor, result)
