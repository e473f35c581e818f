"""RMSprop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.optim.adam import mean
from ember_ml.optim.checks import at_least_zero, fraction
from ember_ml.optim.optimizer import Optimizer, Schedule, Tensors


class RMSprop(Optimizer):
    """RMSprop: ``p - rate * g / (sqrt(v) + eps)``, where ``v`` is a running mean of the squared gradient.

    Args:
        learning_rate: a number or a schedule.
        rho: decay of ``v``: ``v = rho * v + (1 - rho) * g**2``.
        eps: added to the denominator.
        momentum: factor of the previous step that is added to this one.
        centered: subtract the square of the running mean of the gradient from ``v``.
        weight_decay: coefficient of the L2 penalty: ``weight_decay * p`` is added to the gradient.

    >>> w = RMSprop(0.125, rho=0.75, eps=0.0).update({"w": ops.asarray([1.0])}, {"w": ops.asarray([4.0])})
    >>> w["w"].tolist()
    [0.75]
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 1e-2,
        rho: float = 0.99,
        eps: float = 1e-8,
        momentum: float = 0.0,
        centered: bool = False,
        weight_decay: float = 0.0,
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        super().__init__(learning_rate, clip_value=clip_value, clip_norm=clip_norm, no_decay=no_decay)
        self.rho = fraction(self, "rho", rho)
        self.eps = at_least_zero(self, "eps", eps)
        self.momentum = at_least_zero(self, "momentum", momentum)
        self.centered = centered
        self.weight_decay = at_least_zero(self, "weight_decay", weight_decay)

    def state_names(self) -> tuple[str, ...]:
        required = {"variance": True, "mean": self.centered, "velocity": bool(self.momentum)}
        return tuple(name for name, is_required in required.items() if is_required)

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        rate, _ = common
        if self.weight_decay:
            gradient = ops.add(gradient, ops.multiply(parameter, self.weight_decay))
        variance = mean(state["variance"], ops.square(gradient), self.rho)
        new = {**state, "variance": variance}
        if self.centered:
            new["mean"] = mean(state["mean"], gradient, self.rho)
            # For a constant gradient, rounding may make the difference negative.
            variance = ops.maximum(ops.subtract(variance, ops.square(new["mean"])), 0.0)
        change = ops.divide(gradient, ops.add(ops.sqrt(variance), self.eps))
        if self.momentum:
            new["velocity"] = change = ops.add(ops.multiply(state["velocity"], self.momentum), change)
        return ops.subtract(parameter, ops.multiply(change, rate)), new
