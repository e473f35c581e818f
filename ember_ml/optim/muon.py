"""Muon: orthogonalized momentum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.optim.checks import above_zero, at_least_zero
from ember_ml.optim.optimizer import Optimizer, Schedule, Tensors

_ADJUSTMENTS = {
    "original": lambda n, m: math.sqrt(max(1.0, n / m)),
    "match_rms_adamw": lambda n, m: 0.2 * math.sqrt(max(n, m)),
    "none": lambda n, m: 1.0,
}


class Muon(Optimizer):
    """Muon: ``p - rate * O``, where ``O`` is the momentum with all singular values set to approximately 1.

    ``O`` is computed by Newton-Schulz iterations, which only need matrix products. Only matrices are supported. Use
    ``Grouped`` to update the other parameters with AdamW, and also embeddings and the last layer, which train better
    with it.

    Args:
        learning_rate: a number or a schedule.
        momentum: decay of the momentum: ``v = momentum * v + (1 - momentum) * g``.
        nesterov: use Nesterov momentum: orthogonalize ``(1 - momentum) * g + momentum * v``.
        weight_decay: coefficient of the decoupled weight decay: parameters are multiplied by
            ``1 - rate * weight_decay``.
        coefficients: coefficients of degree 1, 3 and 5 of the polynomial that an iteration applies to the singular
            values.
        eps: lower limit of the norm that the momentum is divided by.
        steps: number of Newton-Schulz iterations.
        adjust: factor of the rate for an ``n`` by ``m`` matrix: ``"original"``, ``sqrt(max(1, n / m))``;
            ``"match_rms_adamw"``, ``0.2 * sqrt(max(n, m))``, which makes steps as large as those of AdamW; or
            ``"none"``.
        dtype: dtype of the matrix products. ``"bfloat16"`` is faster on accelerators, and less accurate.

    >>> w = Muon(0.5, weight_decay=0.0).update([ops.zeros((2, 2))], [ops.asarray([[8.0, 0.0], [0.0, 8.0]])])
    >>> ops.round(ops.multiply(w[0], 10)).tolist()
    [[-6.0, 0.0], [0.0, -6.0]]
    """

    def __init__(
        self,
        learning_rate: float | Schedule = 1e-3,
        momentum: float = 0.95,
        nesterov: bool = True,
        weight_decay: float = 0.1,
        coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        steps: int = 5,
        adjust: str = "original",
        dtype: str = "float32",
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        super().__init__(learning_rate, clip_value=clip_value, clip_norm=clip_norm, no_decay=no_decay)
        if adjust not in _ADJUSTMENTS:
            raise ValueError(
                f"{type(self).__name__}: adjust must be one of {', '.join(map(repr, _ADJUSTMENTS))}, got {adjust!r}"
            )
        self.momentum = at_least_zero(self, "momentum", momentum)
        self.nesterov = nesterov
        self.weight_decay = at_least_zero(self, "weight_decay", weight_decay)
        self.coefficients = coefficients
        self.eps = above_zero(self, "eps", eps)
        self.steps = int(at_least_zero(self, "steps", steps))
        self.adjust = adjust
        self.dtype = dtype

    is_elementwise = False

    def check(self, path: str, parameter: Any) -> None:
        super().check(path, parameter)
        if parameter.ndim != 2:
            raise ValueError(
                f"{type(self).__name__}: parameters must be matrices, got {path} of shape {list(parameter.shape)}. "
                "Grouped gives it to another: Grouped([(lambda path, p: p.ndim == 2, Muon()), (lambda path, p: True, "
                "AdamW())])"
            )

    def state_names(self) -> tuple[str, ...]:
        return ("velocity",)

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        rate, _ = common
        velocity = ops.add(ops.multiply(state["velocity"], self.momentum), ops.multiply(gradient, 1 - self.momentum))
        change = velocity
        if self.nesterov:
            change = ops.add(ops.multiply(gradient, 1 - self.momentum), ops.multiply(velocity, self.momentum))
        if self.weight_decay:
            parameter = ops.multiply(parameter, ops.subtract(1.0, ops.multiply(rate, self.weight_decay)))
        size = _ADJUSTMENTS[self.adjust](*parameter.shape)
        change = ops.cast(self._orthogonal(change), ops.dtype(parameter))
        return ops.subtract(parameter, ops.multiply(change, ops.multiply(rate, size))), {"velocity": velocity}

    def _orthogonal(self, matrix: Any) -> Any:
        """``matrix`` with singular values near 1."""
        a, b, c = self.coefficients
        is_tall = matrix.shape[0] > matrix.shape[1]
        x = ops.cast(matrix, self.dtype)
        if is_tall:
            x = ops.matrix_transpose(x)
        x = ops.divide(x, ops.maximum(ops.sqrt(ops.sum(ops.square(x))), self.eps))
        for _ in range(self.steps):
            gram = ops.matmul(x, ops.matrix_transpose(x))
            step = ops.add(ops.multiply(gram, b), ops.multiply(ops.matmul(gram, gram), c))
            x = ops.add(ops.multiply(x, a), ops.matmul(step, x))
        return ops.matrix_transpose(x) if is_tall else x
