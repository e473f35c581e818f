"""Elements picked, placed, searched, sorted and counted."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, argwhere, masked_select

from ember_ml.backend.numpy.indexing import Part, check_search, parts_of
from ember_ml.backend.torch.core import DTYPES, convert, is_pushing
from ember_ml.dtypes import default_float
from ember_ml.shapes import axis_of as _axis
from ember_ml.unchecked import is_checked, shift

# torch.compile cannot trace a ContextVar; in compiled code nothing is checked, with or without.
torch.compiler.assume_constant_result(shift)

# From so many indices on, to look whether any is negative takes longer than to let torch complain.
_MANY = 5000


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _axis(axis, x.ndim)
    found = _selected(x, axis, indices.reshape(-1))
    return found.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _selected(x: Tensor, axis: int, indices: Tensor) -> Tensor:
    if indices.numel() > _MANY and type(indices) is Tensor and indices.is_cpu and not torch.compiler.is_compiling():
        try:
            return torch.index_select(x, axis, indices)
        except (IndexError, RuntimeError):
            # There is a negative one, or another mistake, which comes up again.
            pass
    return torch.index_select(x, axis, _wrapped(indices, x.shape[axis]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    if indices.ndim != x.ndim:
        raise ValueError(f"indices must have {x.ndim} axes, as x has, got {indices.ndim}")
    axis = _axis(axis, x.ndim)
    ones = [(*shape[:axis], 1, *shape[axis + 1 :]) for shape in (x.shape, indices.shape)]
    shape = torch.broadcast_shapes(*ones)
    places = _wrapped(indices, x.shape[axis]).expand(*shape[:axis], indices.shape[axis], *shape[axis + 1 :])
    return x.expand(*shape[:axis], x.shape[axis], *shape[axis + 1 :]).gather(axis, places)


def scatter_add(x: Tensor, indices: Tensor, updates: Tensor, /, *, axis: int = 0) -> Tensor:
    axis, places, updates = _aligned(x, indices, updates, axis)
    return torch.index_add(x, axis, places, updates)


def scatter_max(x: Tensor, indices: Tensor, updates: Tensor, /, *, axis: int = 0) -> Tensor:
    axis, places, updates = _aligned(x, indices, updates, axis)
    return _reduced(x, axis, places, updates, "amax")


def scatter_min(x: Tensor, indices: Tensor, updates: Tensor, /, *, axis: int = 0) -> Tensor:
    axis, places, updates = _aligned(x, indices, updates, axis)
    return _reduced(x, axis, places, updates, "amin")


def index_get(x: Tensor, index: object, /) -> Tensor:
    x, parts, _ = _forward(x, _parts(index, x))
    for value, axis in parts:
        if _is_places(value):
            _check_unseen(value, -x.shape[axis], x.shape[axis], x)
    return x[_key(parts)]


def index_update(x: Tensor, index: object, values: Tensor, /) -> Tensor:
    x, parts, turned = _forward(x, _parts(index, x))
    if any(_is_places(part.value) for part in parts):
        axis, rows, places, values = _by_rows(x, parts, values)
        answer = _assigned(rows, axis, places, values).reshape(x.shape)
    else:
        answer = x.clone()
        answer[_key(parts)] = values
    return answer.flip(turned) if turned else answer


def index_add(x: Tensor, index: object, values: Tensor, /) -> Tensor:
    parts = _parts(index, x)
    if not any(_is_places(part.value) for part in parts):
        return x + index_update(torch.zeros_like(x), index, values)
    x, parts, turned = _forward(x, parts)
    axis, rows, places, values = _by_rows(x, parts, values)
    answer = rows.index_add(axis, places, values).reshape(x.shape)
    return answer.flip(turned) if turned else answer


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    if x.ndim == 0:
        raise ValueError("x must have at least 1 axis, got a 0-d tensor")
    return torch.nonzero(x, as_tuple=True)


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    check_search(x1, side, sorter)
    if sorter is not None:
        x1 = take(x1, sorter)
    if x1.dtype is torch.bool:
        x1, x2 = x1.to(torch.uint8), x2.to(torch.uint8)
    if not x1.is_floating_point() or not x1.shape[0]:
        return torch.searchsorted(x1.contiguous(), x2.contiguous(), side=side)
    # A sorted sequence has its NaNs at the end; one at the front is looked for because it costs no pass.
    if _is_true(x1[:: max(1, x1.shape[0] - 1)].isnan().any()) is False:
        return torch.searchsorted(x1.contiguous(), x2.contiguous(), side=side)
    return _search_before_nan(x1, x2, side)


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    if weights is None:
        return torch.bincount(x, minlength=minlength)
    if x.ndim != 1 or weights.shape != x.shape or minlength < 0:
        raise ValueError(
            f"x must have 1 axis and weights the same shape, and minlength must be >= 0, got shapes {list(x.shape)} "
            f"and {None if weights is None else list(weights.shape)} and minlength={minlength}"
        )
    least, most = _extremes(x)
    if least < 0:
        raise ValueError("x must be >= 0, got negative integers")
    return segment_sum(weights, x, max(most + 1, minlength))


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    return torch.argmax(_to_search(x, axis), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    return torch.argmin(_to_search(x, axis), axis, keepdims)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    # Equal values cannot be told apart, and keeping their order costs more.
    return torch.sort(x, dim=_axis(axis, x.ndim), descending=descending).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    return torch.sort(x, dim=_axis(axis, x.ndim), descending=descending, stable=True).indices


def top_k(x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    axis = _axis(axis, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"k must be from 0 to {x.shape[axis]}, the length of axis {axis}, got {k}")
    if not 0 < k < x.shape[axis] or x.dtype is torch.bool:
        return _first_of_sorted(x, k, axis, largest)
    # One more than asked for tells whether elements are equal, of which torch takes any.
    values, places = torch.topk(x, k + 1, axis, largest)
    before, after = values.narrow(axis, 0, k), values.narrow(axis, 1, k)
    apart = before > after if largest else before < after
    if _is_true(apart.all()):
        return before, places.narrow(axis, 0, k)
    if not _is_true(apart.narrow(axis, k - 1, 1).all()):
        return _first_of_sorted(x, k, axis, largest)
    places = places.narrow(axis, 0, k).sort(axis).values
    values, order = torch.sort(x.gather(axis, places), dim=axis, descending=largest, stable=True)
    return values, places.gather(axis, order)


def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    if axis is not None or x.is_complex():
        raise NotImplementedError("x must be real and axis None")
    if not (x.is_floating_point() or return_index or return_inverse or return_counts):
        return torch.unique(x)
    values, order = torch.sort(x.reshape(-1), stable=return_index)
    differs = values[1:] != values[:-1]
    if equal_nan and x.is_floating_point():
        differs &= ~(values[1:].isnan() & values[:-1].isnan())
    new = torch.cat([torch.ones_like(order[:1], dtype=torch.bool), differs])
    first = new.nonzero().reshape(-1)
    answer = [values[first]]
    if return_index:
        answer.append(order[first])
    if return_inverse:
        answer.append(torch.empty_like(order).index_copy(0, order, new.cumsum(0) - 1).reshape(x.shape))
    if return_counts:
        answer.append(torch.diff(first, append=first.new_tensor([x.numel()])))
    return tuple(answer) if len(answer) > 1 else answer[0]


def unravel_index(indices: Tensor, shape: Any, /) -> tuple[Tensor, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    _check(indices, 0, math.prod(sizes))
    found = []
    for size in reversed(sizes):
        found.append(indices % max(size, 1))
        indices = indices // max(size, 1)
    return tuple(reversed(found))


def ravel_multi_index(multi_index: Any, shape: Any, /) -> Tensor:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    answer: Any = 0
    for indices, size in zip(multi_index, sizes, strict=True):
        _check(indices, 0, size)
        answer = answer * size + indices
    return answer


def one_hot(x: Tensor, num_classes: int, axis: int = -1, dtype: torch.dtype | None = None) -> Tensor:
    axis = _axis(axis, x.ndim + 1)
    count = max(math.ceil(num_classes), 0)
    kind = DTYPES[default_float().name] if dtype is None else dtype
    shape = (*x.shape[:axis], count, *x.shape[axis:])
    answer = torch.zeros(shape, dtype=kind, device=x.device)
    if not count:
        return answer
    if x.is_cpu and not torch.compiler.is_compiling():
        try:
            return answer.scatter_(axis, x.unsqueeze(axis), 1)
        except RuntimeError:
            # Some are out of range, which torch looks for itself, or a transform traces.
            answer = torch.zeros(shape, dtype=kind, device=x.device)
    hits = ((x >= 0) & (x < count)).to(kind)
    return answer.scatter(axis, x.clamp(0, count - 1).unsqueeze(axis), hits.unsqueeze(axis))


def segment_sum(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    return _segments(0, data, segment_ids, num_segments).index_add(0, segment_ids, data)


def segment_max(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    return _reduced(_segments(-math.inf, data, segment_ids, num_segments), 0, segment_ids, data, "amax")


def segment_min(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    return _reduced(_segments(math.inf, data, segment_ids, num_segments), 0, segment_ids, data, "amin")


def segment_prod(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    return _reduced(_segments(1, data, segment_ids, num_segments), 0, segment_ids, data, "prod")


def _extremes(indices: Tensor) -> tuple[int, int]:
    """The smallest and largest index; 0 and -1 if there is none."""
    if not indices.numel():
        return 0, -1
    least, most = torch.aminmax(indices)
    return int(least), int(most)


def _check(indices: Tensor, low: int, high: int) -> None:
    """Raise unless all indices are in range. Compiled code cannot look at them."""
    if torch.compiler.is_compiling() or not is_checked():
        return
    least, most = _extremes(indices)
    if least < low or most >= high:
        raise IndexError(f"indices must be from {low} to {high - 1}, got {least if least < low else most}")


def _check_unseen(indices: Tensor, low: int, high: int, x: Tensor | None = None) -> None:
    """Raise unless all indices are in range, where torch's own functions do not look.

    On a GPU they end the process, and where ``x`` has no elements they let all indices pass.
    """
    if indices.device.type != "cpu" or (x is not None and not x.numel()):
        _check(indices, low, high)


def _wrapped(indices: Tensor, size: int, x: Tensor | None = None) -> Tensor:
    """Indices counted from the front, which is all that most of torch's functions know."""
    _check_unseen(indices, -size, size, x)
    return indices if _is_within(indices, size) else torch.where(indices < 0, indices + size, indices)


def _is_within(indices: Tensor, size: int) -> bool:
    """Whether all indices are surely from 0 to ``size - 1``: in compiled code and on a GPU, nobody looks."""
    if not indices.is_cpu or torch.compiler.is_compiling():
        return False
    try:
        least, most = _extremes(indices)
    except RuntimeError:
        return False
    return least >= 0 and most < size


def _aligned(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> tuple[int, Tensor, Tensor]:
    if indices.ndim != 1:
        raise ValueError(f"indices must have 1 axis, got {indices.ndim}")
    axis = _axis(axis, x.ndim)
    updates = updates.broadcast_to((*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]))
    return axis, _wrapped(indices, x.shape[axis], x), updates


def _reduced(x: Tensor, axis: int, places: Tensor, updates: Tensor, how: str) -> Tensor:
    spread = places.reshape(-1, *(1,) * (x.ndim - axis - 1)).expand(updates.shape)
    if how == "prod" and is_pushing():
        raise NotImplementedError("products must not be differentiated forward")
    return x.scatter_reduce(axis, spread, updates, how)


def _segments(empty: float, data: Tensor, ids: Tensor, count: int | None) -> Tensor:
    """The answer for segments without rows."""
    if ids.ndim != 1 or data.ndim == 0 or ids.shape[0] != data.shape[0]:
        raise ValueError(
            f"segment_ids must have 1 axis, as long as the first of data, got shapes {list(ids.shape)} and "
            f"{list(data.shape)}"
        )
    count = _extremes(ids)[1] + 1 if count is None else count
    if count < 0:
        raise ValueError(f"num_segments must be >= 0, got {count}")
    _check_unseen(ids, 0, count, data if count else ids[:0])
    if math.isinf(empty) and not data.is_floating_point():
        limits = torch.iinfo(data.dtype)
        empty = limits.max if empty > 0 else limits.min
    return torch.full((count, *data.shape[1:]), empty, dtype=data.dtype, device=data.device)


def _search_before_nan(x1: Tensor, x2: Tensor, side: str) -> Tensor:
    """Positions in a sequence that ends in NaNs, which torch takes for smaller than anything."""
    size = x1.shape[0]
    ordered = size - x1.isnan().sum()
    found = torch.searchsorted(torch.where(x1.isnan(), math.inf, x1), x2.contiguous(), side=side)
    found = torch.where(x2 == math.inf, torch.minimum(found, ordered), found)
    return torch.where(x2.isnan(), ordered if side == "left" else size, found)


def _to_search(x: Tensor, axis: int | None) -> Tensor:
    """``x`` in a form that torch finds extremes of, if there is anything to find."""
    if not (x.numel() if axis is None or not x.ndim else x.shape[_axis(axis, x.ndim)]):
        raise ValueError("x must have at least 1 element, got none")
    return x.to(torch.uint8) if x.dtype is torch.bool else x


def _is_true(flag: Tensor) -> bool | None:
    """The value of a flag, or ``None`` where a compiler or ``vmap`` traces, and there is none."""
    if torch.compiler.is_compiling():
        return None
    try:
        return bool(flag)
    except RuntimeError:
        return None


def _first_of_sorted(x: Tensor, k: int, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The answer of ``top_k`` where elements at its edge are equal: torch then takes any of them."""
    values, places = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k), places.narrow(axis, 0, k)


def _parts(index: object, x: Tensor) -> list[Part]:
    parts = parts_of(index, tuple(x.shape), lambda value: _index_tensor(value, x.device), _is_mask)
    if not any(isinstance(value, Tensor) and (value.ndim or _is_mask(value)) for value, _ in parts):
        return parts
    return [Part(_in_company(value, x.device), axis) for value, axis in parts]


def _index_tensor(value: Any, device: torch.device) -> Tensor:
    found = convert(value, None, device)
    if found.dtype is torch.bool:
        return found
    if found.numel() and (found.is_floating_point() or found.is_complex()):
        raise TypeError(f"an index must be made of integers, slices and masks, got {str(found.dtype)[6:]} values")
    return found.long()


def _in_company(value: Any, device: torch.device) -> Any:
    """A part beside a tensor. There, an integer is a tensor too: torch would take it apart from the others."""
    if isinstance(value, int):
        return torch.full((1,), value, device=device)
    return value.reshape(1) if isinstance(value, Tensor) and not value.ndim and not _is_mask(value) else value


def _is_mask(value: Tensor) -> bool:
    return value.dtype is torch.bool


def _is_places(value: Any) -> bool:
    return isinstance(value, Tensor) and not _is_mask(value)


def _key(parts: list[Part]) -> tuple[Any, ...]:
    return tuple(part.value for part in parts)


def _forward(x: Tensor, parts: list[Part]) -> tuple[Tensor, list[Part], list[int]]:
    """The same places with rising slices only, in a tensor that is flipped in some axes: torch has no others."""
    turned = [axis for value, axis in parts if isinstance(value, slice) and value.step is not None and value.step < 0]
    if not turned:
        return x, parts, turned
    forward = [
        Part(_turned(value, x.shape[axis]), axis) if isinstance(value, slice) and axis in turned else Part(value, axis)
        for value, axis in parts
    ]
    return x.flip(turned), forward, turned


def _turned(part: slice, size: int) -> slice:
    start, stop, step = part.indices(size)
    return slice(size - 1 - start, size - 1 - stop, -step)


def _by_rows(x: Tensor, parts: list[Part], values: Tensor) -> tuple[int, Tensor, Tensor, Tensor]:
    """An axis, a tensor, positions along that axis and values for them: the same as ``x[parts] = values``."""
    tensors = [part for part in parts if isinstance(part.value, Tensor)]
    for part in tensors:
        if _is_places(part.value):
            _check_unseen(part.value, -x.shape[part.axis], x.shape[part.axis], x)
    plain = all(part.value == slice(None) for part in parts if not isinstance(part.value, Tensor))
    if len(tensors) == 1 and plain:
        (places, axis), shape = tensors[0], tuple(x.shape)
        try:
            values = _spread(values, shape[:axis] + tuple(places.shape) + shape[axis + 1 :])
        except RuntimeError:
            # Of two mistakes, the one in the index is told.
            _check(places, -shape[axis], shape[axis])
            raise
        values = values.reshape((*shape[:axis], places.numel(), *shape[axis + 1 :]))
        return axis, x, _wrapped(places, shape[axis]).reshape(-1), values
    places = torch.arange(x.numel(), device=x.device).reshape(x.shape)[_key(parts)]
    return 0, x.reshape(-1), places.reshape(-1), _spread(values, tuple(places.shape)).reshape(-1)


def _spread(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]
    return values.broadcast_to(shape)


def _assigned(rows: Tensor, axis: int, places: Tensor, values: Tensor) -> Tensor:
    """The rows after the last of the values for each place was written there, which alone carries a gradient."""
    order = torch.arange(places.shape[0], device=places.device)
    last = torch.full((rows.shape[axis],), -1, device=places.device).scatter_reduce(0, places, order, "amax")[places]
    is_last = (last == order).reshape(-1, *(1,) * (values.ndim - axis - 1))
    if is_pushing() and (values.is_floating_point() or values.is_complex()):
        # A GPU writes in any order, and the tangents of one place are not alike. Negative zeros change no sum.
        return rows.index_fill(axis, places, -0.0).index_add(axis, places, torch.where(is_last, values, -0.0))
    # All values for one place are its last one, so that the order of writing does not matter.
    return rows.index_copy(axis, places, torch.where(is_last, values, values.detach().index_select(axis, last)))
