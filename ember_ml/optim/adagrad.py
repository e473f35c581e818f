"""Adagrad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.optim.checks import at_least_zero
from ember_ml.optim.optimizer import Optimizer, Schedule, Tensors, state_like


class Adagrad(Optimizer):
    """Adagrad: ``p - rate * g / (sqrt(s) + eps)``, where ``s`` is the sum of the squares of all gradients so far.

    Args:
        learning_rate: a number or a schedule.
        rate_decay: the rate of step ``n`` (1, 2, ...) is ``rate / (1 + (n - 1) * rate_decay)``.
        initial_accumulator: initial value of ``s``.
        eps: added to the denominator.
        weight_decay: coefficient of the L2 penalty: ``weight_decay * p`` is added to the gradient.

    >>> Adagrad(0.125).update({"w": ops.asarray([1.0])}, {"w": ops.asarray([4.0])})["w"].tolist()
    [0.875]
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 1e-2,
        rate_decay: float = 0.0,
        initial_accumulator: float = 0.0,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        super().__init__(learning_rate, clip_value=clip_value, clip_norm=clip_norm, no_decay=no_decay)
        self.rate_decay = at_least_zero(self, "rate_decay", rate_decay)
        self.initial_accumulator = at_least_zero(self, "initial_accumulator", initial_accumulator)
        self.eps = at_least_zero(self, "eps", eps)
        self.weight_decay = at_least_zero(self, "weight_decay", weight_decay)

    def start(self, parameter: Any) -> Tensors:
        return {"squares": state_like(parameter, self.initial_accumulator)}

    def common(self, step: Any, rate: Any) -> Any:
        if not self.rate_decay:
            return rate
        return ops.divide(rate, ops.add(ops.multiply(ops.subtract(step, 1.0), self.rate_decay), 1.0))

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        if self.weight_decay:
            gradient = ops.add(gradient, ops.multiply(parameter, self.weight_decay))
        squares = ops.add(state["squares"], ops.square(gradient))
        change = ops.divide(gradient, ops.add(ops.sqrt(squares), self.eps))
        return ops.subtract(parameter, ops.multiply(change, common)), {"squares": squares}
