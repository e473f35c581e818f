"""Gradients of losses."""

from __future__ import annotations

import math as _math
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml.ops import activations, dtypes, indexing, linearalg, manipulation, math, stats
from ember_ml.ops._halves import narrow_like, widen
from ember_ml.ops.losses import _chunks
from ember_ml.ops.neural import linear


def linear_crossentropy(
    places: Sequence[Any], g: Any, out: Any, y_true: Any, x: Any, weight: Any, bias: Any = None, *,
    label_smoothing: float, reduction: str, chunk: int | None, after: Callable[[Any, list[Any]], Any] | None = None,
) -> list[Any]:  # fmt: skip
    """Gradients from the logits of a few rows at a time, summed in float32 or wider.

    Args:
        after: its first argument, for a lazy engine to compute after the others, so that one chunk follows another.
    """
    count, classes = _math.prod(y_true.shape), weight.shape[1]
    g = widen(g)
    costs = manipulation.reshape(g, (count,)) if reduction == "none" else manipulation.broadcast_to(g, (count,))
    if reduction == "mean":
        costs = math.divide(costs, max(count, 1))
    parts: list[Any] = []
    sums: dict[int, Any] = {}
    start = 0
    for rows, labels in _chunks(x, y_true, chunk):
        done = [*parts[-1:], *sums.values()]
        if after is not None and done:
            rows, labels = after(rows, done), after(labels, done)
        shares = activations.softmax(widen(linear(rows, weight, bias)))
        hits = indexing.one_hot(labels, classes, dtype=dtypes.dtype(shares))
        wanted = math.add(math.multiply(hits, 1 - label_smoothing), label_smoothing / max(classes, 1))
        back = math.multiply(math.subtract(shares, wanted), costs[start : start + labels.shape[0], None])
        start += labels.shape[0]
        narrow = narrow_like(x, back)
        if 1 in places:
            parts.append(linear(narrow, manipulation.matrix_transpose(weight)))
        if 2 in places:
            product = widen(linearalg.matmul(manipulation.matrix_transpose(rows), narrow))
            sums[2] = math.add(sums[2], product) if 2 in sums else product
        if 3 in places:
            total = stats.sum(back, axis=0)
            sums[3] = math.add(sums[3], total) if 3 in sums else total
    found = {place: narrow_like(x, one) for place, one in sums.items()}
    if 1 in places:
        found[1] = manipulation.reshape(manipulation.concat(parts), x.shape)
    return [found[place] for place in places]


JOINT = {"linear_crossentropy": linear_crossentropy}
