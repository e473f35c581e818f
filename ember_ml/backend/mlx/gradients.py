"""Gradients by the engine-independent rules, where MLX has none or wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import mlx.core as mx

from ember_ml import gradients, tree
from ember_ml.backend.mlx import mapping
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


def _arrays(values: Any) -> list[mx.array]:
    return [x for x in tree.leaves(values) if isinstance(x, mx.array)]


def _run_with_rule(
    operation: Operation,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    refused: bool = False,
) -> Any:
    """Result of ``function`` with the rule's gradient; arrays among the positional arguments may be traced."""
    places = [i for i, x in enumerate(args) if isinstance(x, mx.array) and mx.issubdtype(x.dtype, mx.inexact)]
    results: list[Any] = []

    def flat(*tensors: mx.array) -> tuple[mx.array, ...]:
        results.append(function(*_replace(args, places, tensors), **kwargs))
        return tuple(_arrays(results[-1]))

    def pull(primals: Any, cotangents: Any, outputs: Any) -> Any:
        rule = None if refused else _rule(operation)
        if rule is None:
            raise UnsupportedError(
                f"an operation must have a gradient on the mlx backend to be differentiated, got {operation.name} of "
                f"{args[places[0]].dtype}"
            )
        g, result = [_cotangent(one) for one in cotangents], outputs
        if isinstance(results[-1], mx.array):
            (g,), (result,) = g, outputs
        found = rule(places, g, result, _replace(args, places, primals), kwargs)
        return tuple(gradients.conjugate(one) for one in found)

    outputs: Any = mapping.custom(flat, pull)(*(args[i] for i in places))
    found = iter(outputs)
    return tree.map(lambda leaf: next(found) if isinstance(leaf, mx.array) else leaf, results[-1])


def _replace(args: Sequence[Any], places: list[int], tensors: Any) -> list[Any]:
    values = list(args)
    for i, x in zip(places, tensors, strict=True):
        values[i] = x
    return values


def _cotangent(g: mx.array) -> Any:
    """Cotangent as the rules expect it: not conjugated, and ``None`` for integers."""
    return gradients.conjugate(g) if mx.issubdtype(g.dtype, mx.inexact) else None


def _rule(operation: Operation) -> gradients.Rule | None:
    found = gradients.rule_of(operation)
    if found is None and operation.definition is not None:
        return gradients.by_formula(operation.definition)
    return found
