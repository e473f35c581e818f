"""What shapes alone decide, alike for an operation's definition and for the engines' own versions; numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.errors import axis_error

# NumPy's limit, which holds on every engine for tensors made of nested sequences.
MAX_AXES = 64


def axis_of(axis: int, ndim: int) -> int:
    """``axis`` counted from the front.

    >>> axis_of(-1, 3)
    2
    """
    if not -ndim <= axis < ndim:
        raise axis_error(axis, ndim)
    return axis % ndim


def check_matrix(x: Any) -> None:
    """Reject a tensor with fewer than two axes."""
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")


def check_square(x: Any) -> None:
    """Reject a tensor whose last two axes do not have one length."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"x must be square in its last two axes, got shape {list(x.shape)}")


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes that ``axis`` names, counted from the front; all of them for ``None``.

    >>> axes_of((0, -1), 3)
    (0, 2)
    """
    named: Any = range(ndim) if axis is None else (axis,) if hasattr(axis, "__index__") else axis
    axes = tuple(axis_of(one, ndim) for one in named)
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis must name each axis once, got {axis}")
    return axes


def is_by_product(x: Any, y: Any, p: float) -> bool:
    """Whether the distances between the points of ``x`` and ``y`` come from a matrix product."""
    rows = (x.shape[0], y.shape[0]) if len(x.shape) == len(y.shape) == 2 else (0, 0)
    return p == 2 and min(rows) > 0 and max(rows) > 25


def check_recurrent(
    gates: int, x: Any, weight_ih: Any, weight_hh: Any, biases: Sequence[Any], states: Sequence[Any], axis: int
) -> int:
    """The axis of time, if these can be the sequences, weights, biases and first states of a recurrent layer."""
    if len(x.shape) != 3:
        raise ValueError(
            f"x must have 3 axes, (batch, time, features) or (time, batch, features), got shape {list(x.shape)}"
        )
    axis = axis_of(axis, 3)
    if axis == 2:
        raise ValueError("axis must be 0 or 1, as the last axis has the features, got 2")
    if not x.shape[axis]:
        raise ValueError(f"x must have at least 1 step along axis {axis}, got shape {list(x.shape)}")
    batch, features, size = x.shape[1 - axis], x.shape[2], weight_hh.shape[0] if len(weight_hh.shape) else 0
    width = gates * size
    if tuple(weight_ih.shape) != (features, width) or tuple(weight_hh.shape) != (size, width):
        raise ValueError(
            f"weight_ih and weight_hh must have shapes (features, {gates} * size) and (size, {gates} * size), got "
            f"{list(weight_ih.shape)} and {list(weight_hh.shape)} for x of shape {list(x.shape)}"
        )
    for values, wanted in ((biases, (width,)), (states, (batch, size))):
        for one in values:
            if one is not None and tuple(one.shape) != wanted:
                what = "bias" if values is biases else "the state"
                raise ValueError(f"{what} must have shape {list(wanted)}, got {list(one.shape)}")
    return axis


def check_sequences(y_true: Any, y_pred: Any, target_length: Any, output_length: Any, mask_index: int) -> None:
    """Raise unless these can be the targets, predictions, lengths and blank of ``ctc_loss``."""
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
