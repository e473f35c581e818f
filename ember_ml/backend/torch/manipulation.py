"""Tensors with their elements rearranged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import broadcast_to, moveaxis, ravel, swapaxes, tile

Tensor = torch.Tensor


def shape(x: Tensor, /) -> tuple[int, ...]:
    return tuple(x.shape)


def ndim(x: Tensor, /) -> int:
    return x.ndim


def size(x: Tensor, /) -> int:
    return x.numel()


def reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if copy is False:
        return x.view(shape)
    return x.reshape(shape).clone() if copy else x.reshape(shape)


def transpose(x: Tensor, /, axes: Sequence[int] | None = None) -> Tensor:
    return x.permute(tuple(range(x.ndim - 1, -1, -1)) if axes is None else tuple(axes))


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    return x.permute(tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    return x.mT


def expand_dims(x: Tensor, /, *, axis: int | Sequence[int] = 0) -> Tensor:
    if isinstance(axis, int):
        return x.unsqueeze(axis)
    for place in _placed(axis, x.ndim + len(axis)):
        x = x.unsqueeze(place)
    return x


def _placed(axes: Sequence[int], rank: int) -> list[int]:
    """The axes counted from the front, in order; each may be named once."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} is out of range for {rank} dimensions")
    placed = sorted({axis % rank for axis in axes})
    if len(placed) < len(axes):
        raise ValueError("an axis is named twice")
    return placed


def squeeze(x: Tensor, /, axis: Any = None) -> Tensor:
    if axis is None:
        return x.squeeze()
    axes = _placed((axis,) if isinstance(axis, int) else axis, x.ndim)
    for place in axes:
        if x.shape[place] != 1:
            raise ValueError(f"axis {place} has length {x.shape[place]}, and only axes of length one can go")
    return x.squeeze(axes)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    if axis is None:
        return torch.cat([x.reshape(-1) for x in arrays])
    return torch.cat(arrays, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    return torch.stack(arrays, axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    return x.unbind(axis)


def array_split(x: Tensor, /, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    return list(torch.tensor_split(x, indices_or_sections, axis))


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return x.flip(tuple(axes))


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    return torch.roll(x, shift, axis)


def sliding_window(x: Tensor, /, window_shape: Any, axis: Any = None) -> Tensor:
    window = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    rank = x.ndim
    for length, place in zip(window, axes, strict=True):
        x = x.unfold(place % rank, length, 1)
    return x
