"""Different optimisers for different parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ember_ml import tree
from ember_ml.optim.optimizer import Optimizer, Plan, Tensors, flat

Choice = Callable[[str, Any], bool]


class Grouped:
    """One optimiser made of several: a parameter goes to the first whose test says yes to its path and value.

    >>> from ember_ml import ops
    >>> from ember_ml.optim import SGD
    >>> both = Grouped([(lambda path, p: path == "slow", SGD(0.25)), (lambda path, p: True, SGD(0.5))])
    >>> ones = {"slow": ops.ones(1), "fast": ops.ones(1)}
    >>> {path: p.tolist() for path, p in both.update(ones, ones).items()}
    {'slow': [0.75], 'fast': [0.5]}
    """

    def __init__(self, groups: Iterable[tuple[Choice, Optimizer]]) -> None:
        self.groups = list(groups)
        if not self.groups:
            raise ValueError("Grouped: optimizers must hold at least 1 pair, got none")

    @property
    def learning_rate(self) -> float:
        """The rate of the next update of the first optimiser."""
        return self.groups[0][1].learning_rate

    @property
    def step(self) -> int:
        """How many updates there were."""
        return max(optimizer.step for _, optimizer in self.groups)

    def init(self, model: Any) -> Grouped:
        """These optimisers, each with its state for its parameters in place."""
        for optimizer, own in zip(self._optimizers(), self._shared_out(flat(model)), strict=True):
            optimizer.init(own)
        return self

    def update(self, model: Any, grads: Any) -> Any:
        """Nothing; the parameters of ``model`` are updated. For a tree of parameters, the tree of the new ones."""
        parameters, slopes = flat(model), flat(grads)
        plans: list[tuple[Optimizer, Plan]] = []
        for optimizer, own in zip(self._optimizers(), self._shared_out(parameters), strict=True):
            plan = optimizer._plan(own, {path: slopes.pop(path) for path in own if path in slopes})
            plans += [] if plan is None else [(optimizer, plan)]
        if slopes:
            raise ValueError(f"Grouped: grads must be of parameters, got one of {', '.join(slopes)}")
        new = dict(parameters)
        is_tree = isinstance(model, (dict, list, tuple))
        if plans:
            with plans[0][1].section():
                for optimizer, plan in plans:
                    new.update(optimizer._commit(plan))
                if not is_tree:
                    model.assign(new)
        return tree.unflatten(model, list(new.values())) if is_tree else None

    def tensors(self) -> Tensors:
        """The state of every optimiser, by its number and path."""
        return {
            f"{i}.{key}": value
            for i, optimizer in enumerate(self._optimizers())
            for key, value in optimizer.tensors().items()
        }

    def assign(self, values: Mapping[str, Any], /) -> None:
        """Put these tensors in place of those at the same paths, as ``tensors`` names them."""
        optimizers = self._optimizers()
        parts: list[Tensors] = [{} for _ in optimizers]
        for key, value in values.items():
            number, _, rest = key.partition(".")
            if not number.isdecimal() or int(number) >= len(parts):
                raise ValueError(
                    f"Grouped: a state key must begin with the number of an optimizer, from 0 to {len(parts) - 1}, "
                    f"got {key!r}"
                )
            parts[int(number)][rest] = value
        for optimizer, part in zip(optimizers, parts, strict=True):
            optimizer.assign(part)

    def own(self) -> None:
        """Nothing; no optimiser has a state that is in other hands."""
        for optimizer in self._optimizers():
            optimizer.own()

    def to_backend(self, name: str) -> Grouped:
        """These optimisers, with their state moved to another engine."""
        for optimizer in self._optimizers():
            optimizer.to_backend(name)
        return self

    def __repr__(self) -> str:
        return f"Grouped({', '.join(map(repr, self._optimizers()))})"

    def _optimizers(self) -> list[Optimizer]:
        return [optimizer for _, optimizer in self.groups]

    def _shared_out(self, parameters: Tensors) -> list[Tensors]:
        """The parameters of every optimiser."""
        parts: list[Tensors] = [{} for _ in self.groups]
        for path, parameter in parameters.items():
            number = next((i for i, (choice, _) in enumerate(self.groups) if choice(path, parameter)), None)
            if number is None:
                raise ValueError(f"Grouped: an optimizer must take every parameter, got none for {path}")
            parts[number][path] = parameter
        return parts
