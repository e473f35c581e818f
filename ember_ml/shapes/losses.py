"""Shapes of the arguments of losses, and the range of labels."""

from __future__ import annotations

from typing import Any

from ember_ml.shapes.neural import check_linear


def check_sequences(y_true: Any, y_pred: Any, target_length: Any, output_length: Any, mask_index: int) -> None:
    """Raise an error unless the arguments of ``ctc_loss`` match each other."""
    if y_pred.ndim != 3 or y_true.ndim != 2:
        raise ValueError(
            "y_true must have axes (batch, length) and y_pred axes (batch, time, classes), got shapes "
            f"{list(y_true.shape)} and {list(y_pred.shape)}"
        )
    batch, times, classes = y_pred.shape
    if y_true.shape[0] != batch or tuple(target_length.shape) != (batch,) or tuple(output_length.shape) != (batch,):
        raise ValueError(
            f"y_true, target_length and output_length must have one entry for each of {batch} predictions, got shapes "
            f"{list(y_true.shape)}, {list(target_length.shape)} and {list(output_length.shape)}"
        )
    if not 0 <= mask_index < classes:
        raise ValueError(f"mask_index must be from 0 to {classes - 1}, got {mask_index}")
    if times == 0:
        raise ValueError(f"y_pred must have at least 1 time, got shape {list(y_pred.shape)}")


def check_label_shape(y_true: Any, y_pred: Any, axis: int) -> None:
    """Raise an error unless there is one label for each row of ``y_pred``.

    Args:
        axis: axis of the classes, counted from the front.
    """
    if tuple(y_true.shape) != (*y_pred.shape[:axis], *y_pred.shape[axis + 1 :]):
        place = "its last axis" if axis == y_pred.ndim - 1 else f"axis {axis}"
        from ember_ml.spellings import argument_hint  # rarely needed

        is_one_hot = tuple(y_true.shape) == tuple(y_pred.shape)
        hint = argument_hint("sparse_categorical_crossentropy", "y_true") if is_one_hot else ""
        raise ValueError(
            f"y_true must have the shape of y_pred without {place}, got {list(y_true.shape)} and {list(y_pred.shape)}"
            f"{hint}"
        )


def label_error(least: int, most: int, classes: int) -> IndexError | None:
    """Error for labels that are not classes; ``None`` if all are.

    >>> label_error(-1, 2, 3)
    IndexError('y_true must be from 0 to 2, got -1')
    """
    if least >= 0 and most < classes:
        return None
    return IndexError(f"y_true must be from 0 to {classes - 1}, got {least if least < 0 else most}")


def check_linear_crossentropy(y_true: Any, x: Any, weight: Any, bias: Any, chunk: int | None) -> None:
    """Raise an error if the arguments of ``linear_crossentropy`` do not match."""
    check_linear(x, weight, bias)
    if tuple(y_true.shape) != tuple(x.shape[:-1]):
        raise ValueError(
            f"y_true must have the shape of x without its last axis, got {list(y_true.shape)} and {list(x.shape)}"
        )
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be >= 1 or None, got {chunk}")
