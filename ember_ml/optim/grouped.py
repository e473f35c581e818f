"""Different optimizers for different parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ember_ml import tree
from ember_ml.optim.optimizer import Optimizer, Plan, Tensors, clipped, detach, parameters_by_path, positive

Choice = Callable[[str, Any], bool]


class Grouped:
    """Optimizer that combines several, each for some of the parameters.

    Args:
        groups: pairs ``(predicate, optimizer)``. A parameter is updated by the first optimizer whose
            ``predicate(path, parameter)`` is true.
        clip_value: largest absolute value of an element of a gradient, for all optimizers.
        clip_norm: largest global norm of all gradients together; larger gradients are all scaled by the same factor.
            The ``clip_norm`` of an optimizer in ``groups`` limits the norm of its own gradients, after that.

    >>> from ember_ml import ops
    >>> from ember_ml.optim import SGD
    >>> both = Grouped([(lambda path, p: path == "slow", SGD(0.25)), (lambda path, p: True, SGD(0.5))])
    >>> ones = {"slow": ops.ones(1), "fast": ops.ones(1)}
    >>> {path: p.tolist() for path, p in both.update(ones, ones).items()}
    {'slow': [0.75], 'fast': [0.5]}
    """

    # As in ``Optimizer``.
    _is_divided = False

    def __init__(
        self,
        groups: Iterable[tuple[Choice, Optimizer]],
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
    ) -> None:
        self.clip_value = positive(self, "clip_value", clip_value)
        self.clip_norm = positive(self, "clip_norm", clip_norm)
        self.groups = list(groups)
        if not self.groups:
            raise ValueError("Grouped: optimizers must hold at least 1 pair, got none")

    if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any attribute name

        def __getattr__(self, name: str) -> Any:
            from ember_ml.spellings import OF_OPTIMIZERS, unknown_attribute  # rarely needed

            raise unknown_attribute(self, name, OF_OPTIMIZERS)

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step of the first optimizer."""
        return self.groups[0][1].learning_rate

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return max(optimizer.step for _, optimizer in self.groups)

    def init(self, model: Any) -> Grouped:
        """Create the state of every parameter and return this optimizer."""
        for optimizer, part in zip(self._optimizers(), self._split(parameters_by_path(model)), strict=True):
            optimizer.init(part)
        return self

    def update(self, model: Any, grads: Any) -> Any:
        """Update the parameters of a model in place; for a tree of parameters, return the new tree."""
        parameters, gradients = parameters_by_path(model), parameters_by_path(grads)
        is_tree = isinstance(model, (dict, list, tuple))
        if not is_tree:
            parameters, gradients, record = detach(parameters, gradients)
        gradients = clipped(self, gradients)
        plans: list[tuple[Optimizer, Plan]] = []
        for optimizer, part in zip(self._optimizers(), self._split(parameters), strict=True):
            grads_of_part = {path: gradients.pop(path) for path in part if path in gradients}
            # The model and two dictionaries hold the parameters of a model.
            plan = optimizer._plan(part, grads_of_part, 0 if is_tree else 3)
            plans += [] if plan is None else [(optimizer, plan)]
        if gradients:
            raise ValueError(f"Grouped: grads must be of parameters, got one of {', '.join(gradients)}")
        new = dict(parameters)
        if plans:
            with plans[0][1].section():
                for optimizer, plan in plans:
                    new.update(optimizer._commit(plan))
                if not is_tree:
                    record(new)
                    model.assign(new)
        return tree.unflatten(model, list(new.values())) if is_tree else None

    def tensors(self) -> Tensors:
        """State tensors of all optimizers, by number of the optimizer and path."""
        return {
            f"{i}.{key}": value
            for i, optimizer in enumerate(self._optimizers())
            for key, value in optimizer.tensors().items()
        }

    def assign(self, values: Mapping[str, Any], /) -> None:
        """Replace the state tensors at these paths, which are those of ``tensors``."""
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

    def copy_shared_state(self) -> None:
        """Copy state tensors that may be referenced elsewhere, in every optimizer."""
        for optimizer in self._optimizers():
            optimizer.copy_shared_state()

    def convert_state(self, convert: Callable[[str, Any], Any], is_divided: bool) -> None:
        """Replace the state tensors of every optimizer, as ``Optimizer.convert_state`` does."""
        self._is_divided = is_divided
        for optimizer in self._optimizers():
            optimizer.convert_state(convert, is_divided)

    def to_backend(self, name: str) -> Grouped:
        """Move the state to another engine and return this optimizer.

        Args:
            name: name of the backend.
        """
        for optimizer in self._optimizers():
            optimizer.to_backend(name)
        return self

    def __repr__(self) -> str:
        clips = (f"{name}={getattr(self, name)}" for name in ("clip_value", "clip_norm") if getattr(self, name))
        return f"Grouped({', '.join([*map(repr, self._optimizers()), *clips])})"

    def _optimizers(self) -> list[Optimizer]:
        return [optimizer for _, optimizer in self.groups]

    def choose(self, parameters: Tensors) -> list[list[str]]:
        """Paths of the parameters of each optimizer."""
        return [list(part) for part in self._split(parameters)]

    def _split(self, parameters: Tensors) -> list[Tensors]:
        """Parameters of each optimizer."""
        parts: list[Tensors] = [{} for _ in self.groups]
        for path, parameter in parameters.items():
            number = next((i for i, (choice, _) in enumerate(self.groups) if choice(path, parameter)), None)
            if number is None:
                raise ValueError(f"Grouped: an optimizer must take every parameter, got none for {path}")
            parts[number][path] = parameter
        return parts
