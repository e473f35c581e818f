"""Shape manipulation on torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import ravel

from ember_ml.backend.numpy.manipulation import (
    _check_parts,
    _constants,
    _counts,
    _parts,
    _shape,
    _source_positions,
    _widths,
    _windows,
)
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.manipulation import stacked_axis

Tensor = torch.Tensor


def shape(x: Tensor, /) -> tuple[int, ...]:
    return tuple(x.shape)


def ndim(x: Tensor, /) -> int:
    return x.ndim


def size(x: Tensor, /) -> int:
    return x.numel()


def reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    lengths = _shape(shape)
    if copy is not None and not copy:
        return x.view(lengths)
    return x.reshape(lengths).clone() if copy else x.reshape(lengths)


def transpose(x: Tensor, /, axes: Sequence[int] | None = None) -> Tensor:
    return x.permute(tuple(range(x.ndim - 1, -1, -1)) if axes is None else tuple(axes))


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    return x.permute(tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")
    return x.mT


def swapaxes(x: Tensor, /, axis1: int, axis2: int) -> Tensor:
    if not x.ndim:
        _axes((axis1, axis2), 0)  # torch accepts 0 and -1
    return torch.swapaxes(x, axis1, axis2)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    if not x.ndim:
        _axes(source, 0)  # torch accepts 0 and -1
    if isinstance(source, int) and isinstance(destination, int):
        return torch.movedim(x, source, destination)
    return torch.movedim(x, _shape(source), _shape(destination))


def expand_dims(x: Tensor, /, axis: int | Sequence[int] = 0) -> Tensor:
    if isinstance(axis, int):
        return x.unsqueeze(axis)
    for place in sorted(_axes(axis, x.ndim + len(_shape(axis)))):
        x = x.unsqueeze(place)
    return x


def squeeze(x: Tensor, /, axis: Any = None) -> Tensor:
    if axis is None:
        return x.squeeze()
    axes = _axes(axis, x.ndim)
    for place in axes:
        if x.shape[place] != 1:
            raise ValueError(f"axis must name axes of length 1, got axis {place} of length {x.shape[place]}")
    return x.squeeze(axes)


def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    lengths = _shape(shape)
    if min((0, *lengths)) < 0:
        raise ValueError(f"shape must have lengths >= 0, got {lengths}")
    return x.expand(lengths)


def concat(arrays: list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    if axis is None:
        return torch.cat([x.reshape(-1) for x in arrays])
    ranks = {x.ndim for x in arrays}
    if ranks == {1}:
        axis = _axis(axis, 1)  # torch skips tensors of shape (0,), and accepts any axis if all have it
    if len(ranks) > 1:
        _axis(axis, arrays[0].ndim)
        raise ValueError("arrays must have the same number of axes")
    return torch.cat(arrays, axis)


def stack(arrays: list[Tensor], /, *, axis: int = 0) -> Tensor:
    try:
        return torch.stack(arrays, axis)
    except IndexError:
        stacked_axis(arrays, axis)
        raise


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    return x.unbind(_axis(axis, x.ndim))


def array_split(x: Tensor, /, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    axis, parts = _axis(axis, x.ndim), _parts(indices_or_sections)
    sizes = _sizes(parts, x.shape[axis])
    # The gradient of split is one concatenation; that of tensor_split is a padded copy for each part.
    return list(torch.tensor_split(x, parts, axis) if sizes is None else torch.split(x, sizes, axis))


def _sizes(parts: Any, length: int) -> list[int] | None:
    """Lengths of the parts of an axis, or ``None`` if the indices are not in increasing order."""
    if isinstance(parts, int):
        if parts < 1:
            return None
        size, longer = divmod(length, parts)
        return [size + 1] * longer + [size] * (parts - longer)
    edges = [0, *parts, length]
    sizes = [end - start for start, end in pairwise(edges)]
    return sizes if min(sizes) >= 0 else None


def tile(x: Tensor, repetitions: Any, /) -> Tensor:
    return torch.tile(x, _shape(repetitions))


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis, total = _axis(axis, x.ndim), None
    if isinstance(repeats, (list, tuple)) and all(isinstance(count, int) for count in repeats):
        if min((0, *repeats)) < 0:
            raise ValueError("repeats must be >= 0, got negative integers")
        # With the total given, a compiler can trace the counts, but torch no longer checks them.
        total = sum(repeats) if len(repeats) == x.shape[axis] else None
        repeats = torch.tensor(repeats, dtype=torch.int64, device=x.device)
    elif not isinstance(repeats, (int, Tensor)):
        repeats = torch.from_numpy(_counts(repeats))
    if isinstance(repeats, Tensor):
        if repeats.is_floating_point() or repeats.is_complex():
            raise TypeError(f"repeats must be integers, got {str(repeats.dtype)[6:]} values")
        repeats = repeats.to(x.device, torch.int64)
    return torch.repeat_interleave(x, repeats, axis, output_size=total)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    return x.flip(_axes(axis, x.ndim))


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    if axis is None:
        return torch.roll(x, sum(_shape(shift)))
    shifts, axes = _shape(shift), _shape(axis)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if not x.numel():
        # torch 2.13: the axes of empty tensors are not checked.
        axes = tuple(_axis(one, x.ndim) for one in axes)
    if not shifts and not axes:
        return x
    return torch.roll(x, shifts, axes * len(shifts) if len(axes) == 1 else axes)


def pad(x: Tensor, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    widths = _widths(pad_width, x.shape, mode)
    values = _constants(constant_values, x)
    if mode == "constant" and isinstance(constant_values, (int, float, complex)):
        return torch.constant_pad_nd(x, [width for pair in reversed(widths) for width in pair], constant_values)
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, values, strict=True)):
        if before == after == 0:
            continue
        if mode == "constant":
            x = torch.cat([_block(x, axis, before, first), x, _block(x, axis, after, last)], axis)
        else:
            x = x.index_select(axis, _sources(x, axis, before, after, mode))
    return x


def _block(x: Tensor, axis: int, length: int, value: Any) -> Tensor:
    lengths = list(x.shape)
    lengths[axis] = length
    return torch.full(lengths, value, dtype=x.dtype, device=x.device)


def _sources(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """Source position in ``x`` for each position of the padded axis."""
    length = x.shape[axis]
    places = torch.arange(before + length + after, device=x.device)
    if mode == "edge":
        return (places - before).clamp(0, length - 1)
    return _source_positions(places, before, length, mode)


def view_as_real(x: Tensor, /) -> Tensor:
    return torch.view_as_real(x.resolve_conj())


def view_as_complex(x: Tensor, /) -> Tensor:
    _check_parts(x)
    x = x if x.dtype is torch.float64 else x.to(torch.float32)
    return torch.complex(x[..., 0], x[..., 1])


def sliding_window(x: Tensor, /, window_shape: Any, axis: Any = None) -> Tensor:
    for length, place in zip(*_windows(window_shape, axis, x.shape), strict=True):
        x = x.unfold(place, length, 1)
    return x
