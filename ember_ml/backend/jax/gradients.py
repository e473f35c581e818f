"""Gradients by the engine-independent rules, where JAX has none or others than ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp

from ember_ml import gradients, tree
from ember_ml.backend.jax.core import TENSORS, is_traced
from ember_ml.dispatch import REGISTRY
from ember_ml.errors import UnsupportedError

if TYPE_CHECKING:
    from ember_ml.dispatch import Operation

F = TypeVar("F", bound=Callable[..., Any])


def with_rule(function: F, name: str = "") -> F:
    """``function`` with the gradient rule of the operation ``name``, by default the function's name."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return _run_with_rule(REGISTRY[name or function.__name__], function, args, kwargs)

    return run  # type: ignore[return-value]


def run_on_host(operation: Operation, run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """Result of ``run(*values)``, computed on the host, with the gradient given by the operation's rule."""
    general = operation.general
    if not operation.differentiable:
        return run(*values)
    if general.variadic is not None or any(isinstance(value, (list, tuple)) for value in values):
        return _run_with_rule(operation, lambda *_, **__: run(*values), tuple(_arrays(values)), {}, refused=True)
    args, kwargs = general.arguments(values)
    return _run_with_rule(operation, lambda *args, **kwargs: run(*args, *kwargs.values()), args, kwargs)


def _arrays(values: Any) -> list[jax.Array]:
    return [x for x in tree.leaves(values) if isinstance(x, TENSORS)]


def is_floating(x: Any) -> bool:
    """Whether ``x`` is a real or complex floating array."""
    return isinstance(x, TENSORS) and jnp.issubdtype(x.dtype, jnp.inexact)


def _run_with_rule(
    operation: Operation,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    refused: bool = False,
) -> Any:
    """Result of ``function`` with the rule's gradient; arrays among the positional arguments may be traced."""
    places = [i for i, x in enumerate(args) if is_floating(x)]
    if not any(is_traced(args[i]) for i in places):
        return function(*args, **kwargs)
    structure: Any = None

    def flat(*tensors: jax.Array) -> tuple[jax.Array, ...]:
        nonlocal structure
        structure = function(*_replace(args, places, tensors), **kwargs)
        return tuple(_arrays(structure))

    def forward(*tensors: jax.Array) -> Any:
        outputs = flat(*tensors)
        return outputs, (tensors, outputs)

    def backward(saved: Any, cotangents: Any) -> Any:
        primals, outputs = saved
        rule = None if refused else _rule(operation)
        if rule is None:
            raise UnsupportedError(
                f"an operation must have a gradient on the jax backend to be differentiated, got {operation.name} of "
                f"{args[places[0]].dtype}"
            )
        g, result = [_cotangent(one) for one in cotangents], outputs
        if isinstance(structure, TENSORS):
            (g,), (result,) = g, outputs
        return tuple(rule(places, g, result, _replace(args, places, primals), kwargs))

    custom = jax.custom_vjp(flat)
    custom.defvjp(forward, backward)
    found = iter(custom(*(args[i] for i in places)))
    return tree.map(lambda leaf: next(found) if isinstance(leaf, TENSORS) else leaf, structure)


def _replace(args: Sequence[Any], places: list[int], tensors: Any) -> list[Any]:
    values = list(args)
    for i, x in zip(places, tensors, strict=True):
        values[i] = x
    return values


def _cotangent(g: Any) -> Any:
    """Cotangent as the rules expect it: ``None`` for integers, whose cotangents JAX represents by ``float0``."""
    return None if g.dtype == jax.dtypes.float0 else g


def _rule(operation: Operation) -> gradients.Rule | None:
    found = gradients.rule_of(operation)
    if found is None and operation.definition is not None:
        return gradients.by_formula(operation.definition)
    return found
