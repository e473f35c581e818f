"""Losses on NumPy, computed in place where their definitions would create new arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


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


def _reduce(losses: Any, reduction: str) -> Any:
    if reduction == "mean":
        return losses.mean() if losses.size else losses.dtype.type(np.nan)
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
