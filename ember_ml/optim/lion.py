"""Lion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.optim.adam import mean
from ember_ml.optim.checks import at_least_zero, fraction
from ember_ml.optim.optimizer import Optimizer, Schedule, Tensors


class Lion(Optimizer):
    """Lion: ``p - rate * (sign(c) + weight_decay * p)`` with ``c = beta_1 * m + (1 - beta_1) * g``.

    ``m`` is a running mean of the gradients. Compared with Adam, the learning rate is usually three to ten times
    smaller, and the weight decay larger by the same factor.

    Args:
        learning_rate: a number or a schedule.
        beta_1: weight of ``m`` in ``c``.
        beta_2: decay of ``m``: ``m = beta_2 * m + (1 - beta_2) * g``.
        weight_decay: coefficient of the decoupled weight decay.

    >>> Lion(0.125).update({"w": ops.asarray([1.0, 1.0])}, {"w": ops.asarray([4.0, -0.25])})["w"].tolist()
    [0.875, 1.125]
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 1e-4,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        weight_decay: float = 0.0,
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        super().__init__(learning_rate, clip_value=clip_value, clip_norm=clip_norm, no_decay=no_decay)
        self.beta_1 = fraction(self, "beta_1", beta_1)
        self.beta_2 = fraction(self, "beta_2", beta_2)
        self.weight_decay = at_least_zero(self, "weight_decay", weight_decay)

    def state_names(self) -> tuple[str, ...]:
        return ("momentum",)

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        rate, _ = common
        momentum = state["momentum"]
        change = ops.multiply(ops.sign(mean(momentum, gradient, self.beta_1)), rate)
        if self.weight_decay:
            parameter = ops.multiply(parameter, ops.subtract(1.0, ops.multiply(rate, self.weight_decay)))
        return ops.subtract(parameter, change), {"momentum": mean(momentum, gradient, self.beta_2)}
