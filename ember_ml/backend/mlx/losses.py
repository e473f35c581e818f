"""Losses on MLX, by their definitions."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.gradients import with_rule
from ember_ml.dispatch import definition_of


@with_rule
def linear_crossentropy(
    y_true: mx.array,
    x: mx.array,
    weight: mx.array,
    bias: mx.array | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    chunk: int | None = 1024,
) -> mx.array:
    # MLX would keep the logits of all chunks for the gradient; the rule computes them again.
    options: Any = {"label_smoothing": label_smoothing, "reduction": reduction, "chunk": chunk}
    return definition_of("linear_crossentropy")(y_true, x, weight, bias, **options)
