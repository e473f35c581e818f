"""Indexing, searching, sorting, counting and segment reductions on torch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, argwhere, masked_select

from ember_ml.backend.numpy.indexing import Part, check_search, parts_of
from ember_ml.backend.torch.compiler import mark_constant
from ember_ml.backend.torch.core import DTYPES, convert, is_forward_mode
from ember_ml.backend.torch.transform import is_differentiated, is_traced
from ember_ml.dispatch.checks import is_checked, shift
from ember_ml.dtypes import default_float
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.indexing import check_bincount, scattered_shape, segment_count, top_k_axis

# torch 2.13: torch.compile cannot trace a ContextVar. Compiled code is never checked, so the value does not matter.
mark_constant(shift)

# For more indices than this, checking for negative ones takes longer than letting torch raise.
_FEW_TO_CHECK = 5000


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _axis(axis, x.ndim)
    found = _index_select(x, axis, indices.reshape(-1))
    return found.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _index_select(x: Tensor, axis: int, indices: Tensor) -> Tensor:
    if (
        indices.numel() > _FEW_TO_CHECK
        and type(indices) is Tensor
        and indices.is_cpu
        and not torch.compiler.is_compiling()
    ):
        try:
            return torch.index_select(x, axis, indices)
        except (IndexError, RuntimeError):
            # An index is negative, or there is another error, which the general path raises again.
            pass
    return torch.index_select(x, axis, _nonnegative(indices, x.shape[axis]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    if indices.ndim != x.ndim:
        raise ValueError(f"indices must have {x.ndim} axes, as x has, got {indices.ndim}")
    axis = _axis(axis, x.ndim)
    ones = [(*shape[:axis], 1, *shape[axis + 1 :]) for shape in (x.shape, indices.shape)]
    shape = torch.broadcast_shapes(*ones)
    places = _nonnegative(indices, x.shape[axis]).expand(*shape[:axis], indices.shape[axis], *shape[axis + 1 :])
    return x.expand(*shape[:axis], x.shape[axis], *shape[axis + 1 :]).gather(axis, places)


def scatter_add(x: Tensor, indices: Tensor, updates: Tensor, /, *, axis: int = 0) -> Tensor:
    axis, places, updates = _align_updates(x, indices, updates, axis)
    return torch.index_add(x, axis, places, updates)


def scatter_max(x: Tensor, indices: Tensor, updates: Tensor, /, *, axis: int = 0) -> Tensor:
    axis, places, updates = _align_updates(x, indices, updates, axis)
    return _scatter_reduce(x, axis, places, updates, "amax")


def scatter_min(x: Tensor, indices: Tensor, updates: Tensor, /, *, axis: int = 0) -> Tensor:
    axis, places, updates = _align_updates(x, indices, updates, axis)
    return _scatter_reduce(x, axis, places, updates, "amin")


def index_get(x: Tensor, index: object, /) -> Tensor:
    x, parts, _ = _with_positive_steps(x, _parts(index, x))
    for value, axis in parts:
        if _is_places(value):
            _check_where_torch_does_not(value, -x.shape[axis], x.shape[axis], x)
    return x[_key(parts)]


def index_update(x: Tensor, index: object, values: Tensor, /) -> Tensor:
    x, parts, flipped = _with_positive_steps(x, _parts(index, x))
    if any(_is_places(part.value) for part in parts):
        axis, rows, places, values = _by_rows(x, parts, values)
        result = _assign(rows, axis, places, values).reshape(x.shape)
    else:
        result = x.clone()
        result[_key(parts)] = values
    return result.flip(flipped) if flipped else result


def index_add(x: Tensor, index: object, values: Tensor, /) -> Tensor:
    parts = _parts(index, x)
    if not any(_is_places(part.value) for part in parts):
        return x + index_update(torch.zeros_like(x), index, values)
    x, parts, flipped = _with_positive_steps(x, parts)
    axis, rows, places, values = _by_rows(x, parts, values)
    result = rows.index_add(axis, places, values).reshape(x.shape)
    return result.flip(flipped) if flipped else result


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
    # NaN sorts last. The first element is checked as well because it costs no extra pass.
    if _is_true(x1[:: max(1, x1.shape[0] - 1)].isnan().any()) is False:
        return torch.searchsorted(x1.contiguous(), x2.contiguous(), side=side)
    return _search_before_nan(x1, x2, side)


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    if weights is None:
        return torch.bincount(x, minlength=minlength)
    check_bincount(x, weights, minlength)
    least, most = _extremes(x)
    if least < 0:
        raise ValueError("x must be >= 0, got negative integers")
    return segment_sum(weights, x, max(most + 1, minlength))


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    return torch.argmax(_to_search(x, axis), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    return torch.argmin(_to_search(x, axis), axis, keepdims)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    # Equal values are indistinguishable, and a stable sort is slower.
    return torch.sort(x, dim=_axis(axis, x.ndim), descending=descending).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    return torch.sort(x, dim=_axis(axis, x.ndim), descending=descending, stable=True).indices


def top_k(x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    axis = top_k_axis(x.shape, k, axis)
    if not 0 < k < x.shape[axis] or x.dtype is torch.bool:
        return _first_of_sorted(x, k, axis, largest)
    # torch breaks ties arbitrarily; one element more than requested shows whether there are ties.
    values, places = torch.topk(x, k + 1, axis, largest)
    before, after = values.narrow(axis, 0, k), values.narrow(axis, 1, k)
    distinct = before > after if largest else before < after
    if _is_true(distinct.all()):
        return before, places.narrow(axis, 0, k)
    if not _is_true(distinct.narrow(axis, k - 1, 1).all()):
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
    result = [values[first]]
    if return_index:
        result.append(order[first])
    if return_inverse:
        result.append(torch.empty_like(order).index_copy(0, order, new.cumsum(0) - 1).reshape(x.shape))
    if return_counts:
        result.append(torch.diff(first, append=first.new_tensor([x.numel()])))
    return tuple(result) if len(result) > 1 else result[0]


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
    result: Any = 0
    for indices, size in zip(multi_index, sizes, strict=True):
        _check(indices, 0, size)
        result = result * size + indices
    return result


def one_hot(x: Tensor, num_classes: int, axis: int = -1, dtype: torch.dtype | None = None) -> Tensor:
    axis = _axis(axis, x.ndim + 1)
    count = max(math.ceil(num_classes), 0)
    kind = DTYPES[default_float().name] if dtype is None else dtype
    shape = (*x.shape[:axis], count, *x.shape[axis:])
    result = torch.zeros(shape, dtype=kind, device=x.device)
    if not count:
        return result
    if x.is_cpu and not torch.compiler.is_compiling():
        try:
            return result.scatter_(axis, x.unsqueeze(axis), 1)
        except RuntimeError:
            # An index is out of range, or a transform traces the call.
            result = torch.zeros(shape, dtype=kind, device=x.device)
    hits = ((x >= 0) & (x < count)).to(kind)
    return result.scatter(axis, x.clamp(0, count - 1).unsqueeze(axis), hits.unsqueeze(axis))


def segment_sum(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    return _segments(0, data, segment_ids, num_segments).index_add(0, segment_ids, data)


def segment_max(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    return _scatter_reduce(_segments(-math.inf, data, segment_ids, num_segments), 0, segment_ids, data, "amax")


def segment_min(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    return _scatter_reduce(_segments(math.inf, data, segment_ids, num_segments), 0, segment_ids, data, "amin")


def segment_prod(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    return _scatter_reduce(_segments(1, data, segment_ids, num_segments), 0, segment_ids, data, "prod")


def _extremes(indices: Tensor) -> tuple[int, int]:
    """Smallest and largest index, or 0 and -1 if there are none."""
    if not indices.numel():
        return 0, -1
    least, most = torch.aminmax(indices)
    return int(least), int(most)


def _check(indices: Tensor, low: int, high: int, name: str = "indices") -> None:
    """Raise unless all indices are in range. Compiled code cannot check."""
    if torch.compiler.is_compiling() or not is_checked():
        return
    least, most = _extremes(indices)
    if least < low or most >= high:
        raise IndexError(f"{name} must be from {low} to {high - 1}, got {least if least < low else most}")


def _check_where_torch_does_not(
    indices: Tensor, low: int, high: int, x: Tensor | None = None, name: str = "indices"
) -> None:
    """Raise unless all indices are in range, in the cases that torch itself does not check.

    Out-of-range indices are ignored if ``x`` is empty. On a GPU, the kernels stop the process with an assertion, so
    indices are checked here, but not for a gradient: every step of a training would wait for the device.
    """
    is_empty = x is not None and not x.numel()
    is_recorded = is_differentiated() or (x is not None and is_traced(x))
    if is_empty or not (indices.is_cpu or is_recorded):
        _check(indices, low, high, name)


def _nonnegative(indices: Tensor, size: int, x: Tensor | None = None) -> Tensor:
    """Nonnegative indices; most of torch's functions do not support negative ones."""
    _check_where_torch_does_not(indices, -size, size, x)
    return indices if _is_within(indices, size) else torch.where(indices < 0, indices + size, indices)


def _is_within(indices: Tensor, size: int) -> bool:
    """Whether all indices are known to be in ``[0, size)``; False in compiled code and on a GPU, which do not check."""
    if not indices.is_cpu or torch.compiler.is_compiling():
        return False
    try:
        least, most = _extremes(indices)
    except RuntimeError:
        return False
    return least >= 0 and most < size


def _align_updates(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> tuple[int, Tensor, Tensor]:
    axis, shape = scattered_shape(x, indices, axis)
    updates = updates.broadcast_to(shape)
    return axis, _nonnegative(indices, x.shape[axis], x), updates


def _scatter_reduce(x: Tensor, axis: int, places: Tensor, updates: Tensor, how: str) -> Tensor:
    spread = places.reshape(-1, *(1,) * (x.ndim - axis - 1)).expand(updates.shape)
    if how == "prod" and is_forward_mode():
        raise NotImplementedError("products must not be differentiated forward")
    return x.scatter_reduce(axis, spread, updates, how)


def _segments(empty: float, data: Tensor, ids: Tensor, count: int | None) -> Tensor:
    """Result for segments without rows."""
    count = segment_count(data, ids, count, lambda: _extremes(ids)[1])
    _check_where_torch_does_not(ids, 0, count, data if count else ids[:0])
    if math.isinf(empty) and not data.is_floating_point():
        limits = torch.iinfo(data.dtype)
        empty = limits.max if empty > 0 else limits.min
    return torch.full((count, *data.shape[1:]), empty, dtype=data.dtype, device=data.device)


def _search_before_nan(x1: Tensor, x2: Tensor, side: str) -> Tensor:
    """Positions in a sequence that ends with NaN. torch 2.13: searchsorted treats NaN as smaller than any number."""
    size = x1.shape[0]
    ordered = size - x1.isnan().sum()
    found = torch.searchsorted(torch.where(x1.isnan(), math.inf, x1), x2.contiguous(), side=side)
    found = torch.where(x2 == math.inf, torch.minimum(found, ordered), found)
    return torch.where(x2.isnan(), ordered if side == "left" else size, found)


def _to_search(x: Tensor, axis: int | None) -> Tensor:
    """``x`` in a dtype that torch's argmax supports, or an error if there are no elements."""
    if not (x.numel() if axis is None or not x.ndim else x.shape[_axis(axis, x.ndim)]):
        raise ValueError("x must have at least 1 element, got none")
    return x.to(torch.uint8) if x.dtype is torch.bool else x


def _is_true(flag: Tensor) -> bool | None:
    """Value of a flag, or ``None`` if a compiler or ``vmap`` traces it."""
    if torch.compiler.is_compiling():
        return None
    try:
        return bool(flag)
    except RuntimeError:
        return None


def _first_of_sorted(x: Tensor, k: int, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Result of ``top_k`` by a stable sort, for ties at the edge, which torch breaks arbitrarily."""
    values, places = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k), places.narrow(axis, 0, k)


def _parts(index: object, x: Tensor) -> list[Part]:
    parts = parts_of(index, tuple(x.shape), lambda value: _index_tensor(value, x.device), _is_mask)
    if not any(isinstance(value, Tensor) and (value.ndim or _is_mask(value)) for value, _ in parts):
        return parts
    return [Part(_alongside_tensor(value, x.device), axis) for value, axis in parts]


def _index_tensor(value: Any, device: torch.device) -> Tensor:
    found = convert(value, None, device)
    if found.dtype is torch.bool:
        return found
    if found.numel() and (found.is_floating_point() or found.is_complex()):
        raise TypeError(f"an index must be made of integers, slices and masks, got {str(found.dtype)[6:]} values")
    return found.long()


def _alongside_tensor(value: Any, device: torch.device) -> Any:
    """Part of an index that also holds a tensor. Integers become tensors, because torch would treat them separately."""
    if isinstance(value, int):
        return torch.full((1,), value, device=device)
    return value.reshape(1) if isinstance(value, Tensor) and not value.ndim and not _is_mask(value) else value


def _is_mask(value: Tensor) -> bool:
    return value.dtype is torch.bool


def _is_places(value: Any) -> bool:
    return isinstance(value, Tensor) and not _is_mask(value)


def _key(parts: list[Part]) -> tuple[Any, ...]:
    return tuple(part.value for part in parts)


def _with_positive_steps(x: Tensor, parts: list[Part]) -> tuple[Tensor, list[Part], list[int]]:
    """Equivalent index with positive steps only, and the flipped tensor: torch does not support negative steps."""
    flipped = [axis for value, axis in parts if isinstance(value, slice) and value.step is not None and value.step < 0]
    if not flipped:
        return x, parts, flipped
    forward = [
        Part(_reverse(value, x.shape[axis]), axis)
        if isinstance(value, slice) and axis in flipped
        else Part(value, axis)
        for value, axis in parts
    ]
    return x.flip(flipped), forward, flipped


def _reverse(part: slice, size: int) -> slice:
    start, stop, step = part.indices(size)
    return slice(size - 1 - start, size - 1 - stop, -step)


def _by_rows(x: Tensor, parts: list[Part], values: Tensor) -> tuple[int, Tensor, Tensor, Tensor]:
    """Axis, tensor, positions along that axis and values for them, equivalent to ``x[parts] = values``."""
    tensors = [part for part in parts if isinstance(part.value, Tensor)]
    for part in tensors:
        if _is_places(part.value):
            _check_where_torch_does_not(part.value, -x.shape[part.axis], x.shape[part.axis], x)
    plain = all(part.value == slice(None) for part in parts if not isinstance(part.value, Tensor))
    if len(tensors) == 1 and plain:
        (places, axis), shape = tensors[0], tuple(x.shape)
        try:
            values = _spread(values, shape[:axis] + tuple(places.shape) + shape[axis + 1 :])
        except RuntimeError:
            # If the index is wrong too, report that error instead.
            _check(places, -shape[axis], shape[axis])
            raise
        values = values.reshape((*shape[:axis], places.numel(), *shape[axis + 1 :]))
        return axis, x, _nonnegative(places, shape[axis]).reshape(-1), values
    places = torch.arange(x.numel(), device=x.device).reshape(x.shape)[_key(parts)]
    return 0, x.reshape(-1), places.reshape(-1), _spread(values, tuple(places.shape)).reshape(-1)


def _spread(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]
    return values.broadcast_to(shape)


def _assign(rows: Tensor, axis: int, places: Tensor, values: Tensor) -> Tensor:
    """Rows after assignment. If several values are written to one element, the last one wins and gets the gradient."""
    order = torch.arange(places.shape[0], device=places.device)
    last = torch.full((rows.shape[axis],), -1, device=places.device).scatter_reduce(0, places, order, "amax")[places]
    is_last = (last == order).reshape(-1, *(1,) * (values.ndim - axis - 1))
    if is_forward_mode() and (values.is_floating_point() or values.is_complex()):
        # GPUs write in any order, and tangents of one element differ; adding negative zeros changes no value.
        return rows.index_fill(axis, places, -0.0).index_add(axis, places, torch.where(is_last, values, -0.0))
    # All values for one element equal the last one, so that the order of writes does not matter.
    return rows.index_copy(axis, places, torch.where(is_last, values, values.detach().index_select(axis, last)))
