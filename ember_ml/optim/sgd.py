"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.optim.checks import at_least_zero, fraction
from ember_ml.optim.optimizer import Optimizer, Schedule, Tensors


class SGD(Optimizer):
    """Stochastic gradient descent: ``p - rate * g``; with momentum, ``v = momentum * v + g`` and ``p - rate * v``.

    Args:
        learning_rate: a number or a schedule.
        momentum: factor of ``v`` at each step.
        nesterov: use Nesterov momentum: the step is ``g + momentum * v``.
        dampening: every gradient but the first is multiplied by ``1 - dampening`` before it is added to ``v``.
        weight_decay: coefficient of the L2 penalty: ``weight_decay * p`` is added to the gradient.

    >>> optimizer = SGD(0.5, momentum=0.5)
    >>> w = optimizer.update({"w": ops.asarray([1.0])}, {"w": ops.asarray([1.0])})
    >>> optimizer.update(w, {"w": ops.asarray([1.0])})["w"].tolist()
    [-0.25]
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 1e-2,
        momentum: float = 0.0,
        nesterov: bool = False,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        super().__init__(learning_rate, clip_value=clip_value, clip_norm=clip_norm, no_decay=no_decay)
        self.momentum = at_least_zero(self, "momentum", momentum)
        self.nesterov = nesterov
        self.dampening = fraction(self, "dampening", dampening)
        self.weight_decay = at_least_zero(self, "weight_decay", weight_decay)
        if nesterov and (not momentum or dampening):
            raise ValueError(
                f"{type(self).__name__}: nesterov=True requires momentum > 0 and dampening == 0, got "
                f"momentum={momentum}, dampening={dampening}"
            )

    def state_names(self) -> tuple[str, ...]:
        return ("velocity",) if self.momentum else ()

    def common(self, step: Any, rate: Any) -> Any:
        if not self.dampening:
            return rate, None
        # Dampening does not apply to the first gradient.
        return rate, ops.where(ops.equal(step, 1), 1.0, 1 - self.dampening)

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        rate, share = common
        if self.weight_decay:
            gradient = ops.add(gradient, ops.multiply(parameter, self.weight_decay))
        if self.momentum:
            fresh = gradient if share is None else ops.multiply(gradient, share)
            velocity = ops.add(ops.multiply(state["velocity"], self.momentum), fresh)
            state = {"velocity": velocity}
            gradient = ops.add(gradient, ops.multiply(velocity, self.momentum)) if self.nesterov else velocity
        return ops.subtract(parameter, ops.multiply(gradient, rate)), state
