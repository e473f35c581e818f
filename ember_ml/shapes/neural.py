"""Shapes of the arguments of linear maps, recurrent layers, attention and resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.shapes.axes import axis_of
from ember_ml.shapes.windows import is_last


def check_linear(x: Any, weight: Any, bias: Any) -> None:
    """Raise an error if the shapes of the arguments of a linear map do not match."""
    if len(x.shape) and len(weight.shape) == 2 and x.shape[-1] == weight.shape[0]:
        if bias is None or tuple(bias.shape) == (weight.shape[1],):
            return
        raise ValueError(f"bias must have shape [{weight.shape[1]}], the columns of weight, got {list(bias.shape)}")
    raise ValueError(
        f"x and weight must have shapes (..., in_features) and (in_features, out_features), got {list(x.shape)} and "
        f"{list(weight.shape)}"
    )


def check_recurrent(
    gates: int, x: Any, weight_ih: Any, weight_hh: Any, biases: Sequence[Any], states: Sequence[Any], axis: int
) -> int:
    """Index of the time axis. Raises an error if the shapes of the arguments of a recurrent layer do not match."""
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
    for values, expected in ((biases, (width,)), (states, (batch, size))):
        for one in values:
            if one is not None and tuple(one.shape) != expected:
                what = "bias" if values is biases else "the state"
                raise ValueError(f"{what} must have shape {list(expected)}, got {list(one.shape)}")
    return axis


def check_attention(query: Any, key: Any, value: Any, mask: Any, bias: Any) -> int:
    """Number of query heads per head of keys and values. Raises an error if the shapes do not match.

    ``query``, ``key`` and ``value`` are shapes; ``mask`` and ``bias`` are tensors or ``None``.
    """
    shown = f"{list(query)}, {list(key)} and {list(value)}"
    if not len(query) == len(key) == len(value) == 4:
        raise ValueError(f"query, key and value must have axes (batch, length, heads, size), got shapes {shown}")
    heads, shared = query[2], key[2]
    if key[:3] != value[:3] or query[0] != key[0] or query[3] != key[3] or not heads or not shared or heads % shared:
        raise ValueError(f"query, key and value must have shapes that fit each other, got {shown}")
    scores = (query[0], heads, query[1], key[1])
    for name, one in (("mask", mask), ("bias", bias)):
        shape = () if one is None else tuple(one.shape)
        if len(shape) > 4 or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(scores), strict=False)):
            raise ValueError(f"{name} must broadcast to {list(scores)}, got {list(shape)}")
    return int(heads // shared)


def causal_offset(rows: int, columns: int, alignment: str) -> int:
    """Index of the last key that a query may attend to in causal attention, less the index of the query.

    >>> causal_offset(2, 5, "top_left"), causal_offset(2, 5, "bottom_right")
    (0, 3)
    """
    if alignment not in ("top_left", "bottom_right"):
        raise ValueError(f"causal_alignment must be 'top_left' or 'bottom_right', got {alignment!r}")
    return columns - rows if alignment == "bottom_right" else 0


def check_resize(shape: Any, size: Any, interpolation: str, antialias: bool, data_format: str) -> None:
    """Raise an error unless images of this shape can be resized with these options."""
    is_last(data_format)
    if len(shape) not in (3, 4) or 0 in tuple(shape)[-3:]:
        raise ValueError(
            f"images must have shape (batch, height, width, channels) or (height, width, channels), got {list(shape)}"
        )
    if interpolation not in ("nearest", "bilinear", "bicubic"):
        raise ValueError(f"interpolation must be 'nearest', 'bilinear' or 'bicubic', got {interpolation!r}")
    if antialias and interpolation == "nearest":
        raise ValueError("antialias must be False for interpolation='nearest', got True")
    if isinstance(size, int) or len(size) != 2 or min(size) < 1:
        raise ValueError(f"size must be a height and a width >= 1, got {size!r}")
