"""Losses on NumPy, computed in place where their definitions would create new arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.numpy.neural import linear
from ember_ml.shapes.losses import check_linear_crossentropy, label_error


def mean_squared_error(y_true: Any, y_pred: Any, *, reduction: str = "mean") -> Any:
    return _loss_of_errors(np.square, y_true, y_pred, reduction)


def mean_absolute_error(y_true: Any, y_pred: Any, *, reduction: str = "mean") -> Any:
    return _loss_of_errors(np.abs, y_true, y_pred, reduction)


def _loss_of_errors(size: Callable[..., Any], y_true: Any, y_pred: Any, reduction: str) -> Any:
    """Reduced size of the errors; 16-bit dtypes are computed in float32."""
    if y_true.shape != y_pred.shape and y_true.ndim and y_pred.ndim:
        raise ValueError(f"y_true and y_pred must have one shape, got {list(y_true.shape)} and {list(y_pred.shape)}")
    wide = np.float32 if y_pred.dtype.itemsize == 2 else y_pred.dtype
    errors = np.asarray(np.subtract(y_true, y_pred, dtype=wide))
    size(errors, out=errors)
    return _reduce(errors, reduction).astype(y_pred.dtype, copy=False)


def linear_crossentropy(
    y_true: Any,
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    chunk: int | None = 1024,
) -> Any:
    check_linear_crossentropy(y_true, x, weight, bias, chunk)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be from 0 to 1, got {label_smoothing}")
    classes = weight.shape[1]
    wrong = label_error(y_true.min(), y_true.max(), classes) if y_true.size else None
    if wrong is not None:
        raise wrong
    wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
    rows, labels, losses = x.reshape(y_true.size, x.shape[-1]), y_true.reshape(-1), np.empty(y_true.size, wide)
    step = chunk or max(y_true.size, 1)
    for start in range(0, y_true.size, step):
        part = slice(start, start + step)
        logits = linear(rows[part], weight, bias).astype(wide, copy=False)
        logits -= logits.max(-1, keepdims=True)
        own = np.take_along_axis(logits, labels[part, None], -1)[:, 0]
        mean = logits.mean(-1) if label_smoothing else 0
        total = np.log(np.exp(logits, out=logits).sum(-1))
        losses[part] = total - own * (1 - label_smoothing) - mean * label_smoothing
    return _reduce(losses.reshape(y_true.shape), reduction).astype(x.dtype, copy=False)


def _reduce(losses: Any, reduction: str) -> Any:
    if reduction == "mean":
        return losses.mean() if losses.size else losses.dtype.type(np.nan)
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
