"""Shapes of the arguments of ``ctc_loss``."""

from __future__ import annotations

from typing import Any


def check_sequences(y_true: Any, y_pred: Any, target_length: Any, output_length: Any, mask_index: int) -> None:
    """Raise unless these can be the targets, predictions, lengths and blank of ``ctc_loss``."""
    if y_pred.ndim != 3 or y_true.ndim != 2:
        raise ValueError(
            "ctc_loss takes targets with axes (batch, length) and predictions with axes (batch, time, classes), "
            f"not shapes {list(y_true.shape)} and {list(y_pred.shape)}"
        )
    batch, times, classes = y_pred.shape
    if y_true.shape[0] != batch or tuple(target_length.shape) != (batch,) or tuple(output_length.shape) != (batch,):
        raise ValueError(f"ctc_loss takes {batch} targets and lengths for {batch} predictions")
    if not 0 <= mask_index < classes:
        raise ValueError(f"mask_index {mask_index} is none of {classes} classes")
    if times == 0:
        raise ValueError("ctc_loss takes predictions for at least one time")
