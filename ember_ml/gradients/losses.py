"""Gradients of losses."""

from __future__ import annotations

import math as _math
from collections.abc import Sequence
from typing import Any

from ember_ml.ops import activations, creation, dtypes, indexing, linearalg, manipulation, math, stats
from ember_ml.ops._halves import narrow_like, widen
from ember_ml.ops.losses import _chunks
from ember_ml.ops.neural import linear


def _linear_crossentropy(
    places: Sequence[Any], g: Any, out: Any, y_true: Any, x: Any, weight: Any, bias: Any = None, *,
    label_smoothing: float, reduction: str, chunk: int | None,
) -> list[Any]:  # fmt: skip
    """Gradients from the logits of a few rows at a time, summed in float32 or wider."""
    count, classes = _math.prod(y_true.shape), weight.shape[1]
    g = widen(g)
    costs = manipulation.reshape(g, (count,)) if reduction == "none" else manipulation.broadcast_to(g, (count,))
    if reduction == "mean":
        costs = math.divide(costs, max(count, 1))
    inner, of_weight, of_bias, start = [], creation.zeros_like(widen(weight)), 0, 0
    for rows, labels in _chunks(x, y_true, chunk):
        shares = activations.softmax(widen(linear(rows, weight, bias)))
        hits = indexing.one_hot(labels, classes, dtype=dtypes.dtype(shares))
        wanted = math.add(math.multiply(hits, 1 - label_smoothing), label_smoothing / max(classes, 1))
        part = costs[start : start + labels.shape[0], None]
        start += labels.shape[0]
        back = math.multiply(math.subtract(shares, wanted), part)
        of_bias = math.add(of_bias, stats.sum(back, axis=0))
        back = narrow_like(x, back)
        inner.append(linear(back, manipulation.matrix_transpose(weight)))
        of_weight = math.add(of_weight, linearalg.matmul(manipulation.matrix_transpose(rows), back))
    found = {1: manipulation.reshape(manipulation.concat(inner), x.shape), 2: of_weight, 3: of_bias}
    return [narrow_like(x, found[place]) for place in places]


JOINT = {"linear_crossentropy": _linear_crossentropy}
