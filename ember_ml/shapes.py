"""What shapes alone decide, alike for an operation's definition and for the engines' own versions; numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.errors import AxisError

# NumPy's limit, which holds on every engine for tensors made of nested sequences.
MAX_AXES = 64


def axis_of(axis: int, ndim: int) -> int:
    """``axis`` counted from the front.

    >>> axis_of(-1, 3)
    2
    """
    if not -ndim <= axis < ndim:
        raise AxisError(f"axis {axis} is out of range for a tensor with {ndim} axes")
    return axis % ndim


def check_matrix(x: Any) -> None:
    """Reject a tensor with fewer than two axes."""
    if x.ndim < 2:
        raise ValueError(f"a matrix has two axes, not {x.ndim}")


def check_square(x: Any) -> None:
    """Reject a tensor whose last two axes do not have one length."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"the matrix must be square, not of shape {list(x.shape[-2:])}")


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes that ``axis`` names, counted from the front; all of them for ``None``.

    >>> axes_of((0, -1), 3)
    (0, 2)
    """
    named: Any = range(ndim) if axis is None else (axis,) if hasattr(axis, "__index__") else axis
    axes = tuple(axis_of(one, ndim) for one in named)
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis {axis} names an axis twice")
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
        raise ValueError(f"a batch of sequences has three axes, and {list(x.shape)} are not those of one")
    axis = axis_of(axis, 3)
    if axis == 2:
        raise ValueError("the last axis of sequences is that of features, and not that of time")
    if not x.shape[axis]:
        raise ValueError(f"a sequence has at least one step: axis {axis} of {list(x.shape)} is empty")
    batch, features, size = x.shape[1 - axis], x.shape[2], weight_hh.shape[0] if len(weight_hh.shape) else 0
    width = gates * size
    if tuple(weight_ih.shape) != (features, width) or tuple(weight_hh.shape) != (size, width):
        raise ValueError(
            f"sequences {list(x.shape)} and weights {list(weight_ih.shape)} and {list(weight_hh.shape)} do not go "
            f"together: the weights have the shapes (features, {gates} * size) and (size, {gates} * size)"
        )
    for values, wanted in ((biases, (width,)), (states, (batch, size))):
        for one in values:
            if one is not None and tuple(one.shape) != wanted:
                what = "a bias" if values is biases else "a state"
                raise ValueError(f"{what} has the shape {list(wanted)}, not {list(one.shape)}")
    return axis


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
