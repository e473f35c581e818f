"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.optim.checks import at_least_zero, fraction
from ember_ml.optim.optimizer import Optimizer, Schedule, Tensors


class Adam(Optimizer):
    """Adam: ``p - rate * m / (sqrt(v) + eps)``, with bias-corrected running means ``m`` of ``g`` and ``v`` of ``g**2``.

    Args:
        learning_rate: a number or a schedule.
        beta_1: decay of ``m``: ``m = beta_1 * m + (1 - beta_1) * g``.
        beta_2: decay of ``v``.
        eps: added to the denominator.
        weight_decay: coefficient of the L2 penalty: ``weight_decay * p`` is added to the gradient.
        amsgrad: use the largest ``v`` so far in the denominator.

    >>> w = Adam(0.125, eps=0.0).update({"w": ops.asarray([1.0, 1.0])}, {"w": ops.asarray([4.0, -0.25])})
    >>> [round(x, 6) for x in w["w"].tolist()]
    [0.875, 1.125]
    """

    decoupled = False

    def __init__(
        self,
        learning_rate: float | Schedule = 1e-3,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        super().__init__(learning_rate, clip_value=clip_value, clip_norm=clip_norm, no_decay=no_decay)
        self.beta_1 = fraction(self, "beta_1", beta_1)
        self.beta_2 = fraction(self, "beta_2", beta_2)
        self.eps = at_least_zero(self, "eps", eps)
        self.weight_decay = at_least_zero(self, "weight_decay", weight_decay)
        self.amsgrad = amsgrad

    def state_names(self) -> tuple[str, ...]:
        return ("momentum", "variance", "largest") if self.amsgrad else ("momentum", "variance")

    def common(self, step: Any, rate: Any) -> Any:
        kept = (
            ops.subtract(1.0, ops.multiply(rate, self.weight_decay)) if self.decoupled and self.weight_decay else None
        )
        return ops.divide(rate, bias_correction(self.beta_1, step)), ops.sqrt(bias_correction(self.beta_2, step)), kept

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        rate, root, kept = common
        if kept is not None:
            parameter = ops.multiply(parameter, kept)
        elif self.weight_decay:
            gradient = ops.add(gradient, ops.multiply(parameter, self.weight_decay))
        momentum = mean(state["momentum"], gradient, self.beta_1)
        variance = mean(state["variance"], ops.square(gradient), self.beta_2)
        new = {**state, "momentum": momentum, "variance": variance}
        if self.amsgrad:
            new["largest"] = variance = ops.maximum(state["largest"], variance)
        size = ops.add(ops.divide(ops.sqrt(variance), root), self.eps)
        return ops.subtract(parameter, ops.divide(ops.multiply(momentum, rate), size)), new


class AdamW(Adam):
    """Adam with decoupled weight decay: parameters are multiplied by ``1 - rate * weight_decay`` before the step.

    The options are those of ``Adam``.

    >>> w = AdamW(0.125, eps=0.0, weight_decay=1.0).update({"w": ops.asarray([1.0])}, {"w": ops.asarray([4.0])})
    >>> [round(x, 6) for x in w["w"].tolist()]
    [0.75]
    """

    decoupled = True

    def __init__(
        self,
        learning_rate: float | Schedule = 1e-3,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            eps,
            weight_decay,
            amsgrad,
            clip_value=clip_value,
            clip_norm=clip_norm,
            no_decay=no_decay,
        )


def mean(old: Any, new: Any, kept: float) -> Any:
    """Running mean ``kept * old + (1 - kept) * new``."""
    return ops.add(ops.multiply(old, kept), ops.multiply(new, 1 - kept))


def bias_correction(kept: float, step: Any) -> Any:
    """``1 - kept ** step``, the divisor that corrects a running mean started at zero; accurate for ``kept`` near 1."""
    if not kept:
        return ops.ones_like(step)
    return ops.negative(ops.expm1(ops.multiply(step, math.log(kept))))
