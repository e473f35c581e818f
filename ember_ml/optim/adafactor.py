"""Adafactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.optim.checks import above_zero, at_least_zero
from ember_ml.optim.optimizer import Optimizer, Schedule, Tensors, state_like, wide


class Adafactor(Optimizer):
    """Adafactor: Adam without momentum, with the variance of a matrix factored into a row and a column.

    The state of an ``n`` by ``m`` matrix is ``n + m`` numbers. Steps are relative to the root mean square of the
    parameter, with a rate of at most ``1 / sqrt(n)`` at step ``n``. Parameters of three or more axes are stacks of
    matrices.

    Args:
        learning_rate: a number or a schedule.
        beta_2_decay: the weight of the new gradient in the variance of step ``n`` is ``n ** beta_2_decay``.
        eps_1: the variance is at least ``eps_1**2``; by default ``eps_1`` is the precision of the dtype.
        eps_2: lower limit of the root mean square that steps are relative to.
        clip_threshold: largest root mean square of a step, before it is multiplied by the rate.
        weight_decay: coefficient of the decoupled weight decay: parameters are multiplied by
            ``1 - rate * weight_decay``.

    >>> Adafactor(0.125).update({"w": ops.asarray([1.0, 1.0])}, {"w": ops.asarray([4.0, 4.0])})["w"].tolist()
    [0.875, 0.875]
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 1e-2,
        beta_2_decay: float = -0.8,
        eps_1: float | None = None,
        eps_2: float = 1e-3,
        clip_threshold: float = 1.0,
        weight_decay: float = 0.0,
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        super().__init__(learning_rate, clip_value=clip_value, clip_norm=clip_norm, no_decay=no_decay)
        if not beta_2_decay <= 0:
            raise ValueError(f"{type(self).__name__}: beta_2_decay must be <= 0, got {beta_2_decay}")
        self.beta_2_decay = beta_2_decay
        self.eps_1 = None if eps_1 is None else at_least_zero(self, "eps_1", eps_1)
        self.eps_2 = at_least_zero(self, "eps_2", eps_2)
        self.clip_threshold = above_zero(self, "clip_threshold", clip_threshold)
        self.weight_decay = at_least_zero(self, "weight_decay", weight_decay)

    is_elementwise = False

    def start(self, parameter: Any) -> Tensors:
        if parameter.ndim < 2:
            return {"variance": state_like(parameter)}
        shape = tuple(parameter.shape)
        place = {"dtype": wide(parameter), "device": ops.get_device(parameter)}
        return {
            "rows": ops.zeros((*shape[:-1], 1), **place),
            "columns": ops.zeros((*shape[:-2], 1, shape[-1]), **place),
        }

    def common(self, step: Any, rate: Any) -> Any:
        kept = ops.subtract(1.0, ops.multiply(rate, self.weight_decay)) if self.weight_decay else None
        return ops.minimum(rate, ops.rsqrt(step)), ops.power(step, self.beta_2_decay), kept

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        rate, share, kept = common
        eps = ops.finfo(ops.dtype(parameter)).eps if self.eps_1 is None else self.eps_1
        size = ops.maximum(_root_mean_square(parameter), self.eps_2)
        if kept is not None:
            parameter = ops.multiply(parameter, kept)
        squares = ops.square(gradient)
        if parameter.ndim < 2:
            new = {"variance": _interpolate(state["variance"], squares, share)}
            variance = new["variance"]
        else:
            rows = _interpolate(state["rows"], ops.mean(squares, axis=-1, keepdims=True), share)
            columns = _interpolate(state["columns"], ops.mean(squares, axis=-2, keepdims=True), share)
            new = {"rows": rows, "columns": columns}
            scale = ops.maximum(ops.mean(rows, axis=-2, keepdims=True), eps)
            variance = ops.divide(ops.multiply(rows, columns), scale)
        change = ops.multiply(ops.rsqrt(ops.maximum(variance, eps * eps)), gradient)
        excess = ops.maximum(ops.divide(_root_mean_square(change), self.clip_threshold), 1.0)
        return ops.subtract(parameter, ops.multiply(change, ops.divide(ops.multiply(size, rate), excess))), new


def _root_mean_square(x: Any) -> Any:
    return ops.sqrt(ops.mean(ops.square(x)))


def _interpolate(old: Any, new: Any, share: Any) -> Any:
    """``old + share * (new - old)``."""
    return ops.add(old, ops.multiply(ops.subtract(new, old), share))
