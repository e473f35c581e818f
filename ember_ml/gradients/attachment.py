"""Gradient rules for functions of an engine with gradients of its own, where it has none, or others than ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from ember_ml import tree
from ember_ml.dispatch import REGISTRY
from ember_ml.errors import UnsupportedError
from ember_ml.gradients import Rule, by_formula, rule_of

if TYPE_CHECKING:
    from ember_ml.dispatch import Operation

F = TypeVar("F", bound=Callable[..., Any])


class Attachment:
    """The means of an engine to give the gradient of a rule to a function.

    Args:
        name: name of the backend, for errors.
        kinds: the types of its tensors.
        is_floating: whether a tensor has a dtype with gradients.
        custom: function from a function of tensors and its pullback to a function with that gradient. A pullback takes
            the tensors, the cotangents (``None`` for those of integers) and the outputs.
    """

    def __init__(
        self, name: str, kinds: Any, is_floating: Callable[[Any], bool], custom: Callable[..., Callable[..., Any]]
    ) -> None:
        self.name, self.kinds, self.is_floating, self.custom = name, kinds, is_floating, custom

    def with_rule(self, function: F, name: str = "") -> F:
        """``function`` with the gradient rule of the operation ``name``, by default the function's name."""

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return self._run(REGISTRY[name or function.__name__], function, args, kwargs)

        return run  # type: ignore[return-value]

    def run_on_host(self, operation: Operation, run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        """Result of ``run(*values)``, computed on the host, with the gradient given by the operation's rule."""
        general = operation.general
        if not operation.differentiable:
            return run(*values)
        if general.variadic is not None or any(isinstance(value, (list, tuple)) for value in values):
            return self._run(operation, lambda *_, **__: run(*values), self._tensors(values), {}, refused=True)
        args, kwargs = general.arguments(values)
        return self._run(operation, lambda *args, **kwargs: run(*args, *kwargs.values()), args, kwargs)

    def _tensors(self, values: Any) -> tuple[Any, ...]:
        return tuple(x for x in tree.leaves(values) if isinstance(x, self.kinds))

    def _run(
        self,
        operation: Operation,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        refused: bool = False,
    ) -> Any:
        """Result of ``function`` with the rule's gradient; tensors among the positional arguments may be traced."""
        places = [i for i, x in enumerate(args) if isinstance(x, self.kinds) and self.is_floating(x)]
        structure: Any = None

        def flat(*tensors: Any) -> tuple[Any, ...]:
            nonlocal structure
            structure = function(*_replace(args, places, tensors), **kwargs)
            return self._tensors(structure)

        def pull(primals: Sequence[Any], cotangents: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
            rule = None if refused else _rule(operation)
            if rule is None:
                raise UnsupportedError(
                    f"an operation must have a gradient on the {self.name} backend to be differentiated, got "
                    f"{operation.name} of {args[places[0]].dtype}"
                )
            g, result = (x[0] if isinstance(structure, self.kinds) else x for x in (cotangents, outputs))
            return rule(places, g, result, _replace(args, places, primals), kwargs)

        found = iter(self.custom(flat, pull)(*(args[i] for i in places)))
        return tree.map(lambda leaf: next(found) if isinstance(leaf, self.kinds) else leaf, structure)


def _replace(args: Sequence[Any], places: list[int], tensors: Sequence[Any]) -> list[Any]:
    values = list(args)
    for i, x in zip(places, tensors, strict=True):
        values[i] = x
    return values


def _rule(operation: Operation) -> Rule | None:
    found = rule_of(operation)
    if found is None and operation.definition is not None:
        return by_formula(operation.definition)
    return found
