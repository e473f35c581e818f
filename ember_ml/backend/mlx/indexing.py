"""Indexing, searching, sorting, counting and segment reductions on MLX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend.mlx.core import convert, from_host, stream_for, to_host
from ember_ml.backend.mlx.mapping import map_like
from ember_ml.backend.numpy import indexing as host
from ember_ml.backend.numpy.indexing import Part, parts_of
from ember_ml.dispatch.checks import is_checked
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.indexing import check_bincount, scattered_shape, segment_count, top_k_axis


def take(x: mx.array, indices: mx.array, /, *, axis: int | None = None) -> mx.array:
    size = x.size if axis is None else x.shape[_axis(axis, x.ndim)]
    indices = _check_indices(indices, -size, size)
    if not x.size or not indices.size:
        shape = () if axis is None else x.shape
        axis = _axis(axis or 0, x.ndim) if shape else 0
        return mx.zeros(shape[:axis] + indices.shape + shape[axis + 1 :], x.dtype)
    return mx.take(x, indices, axis)


def take_along_axis(x: mx.array, indices: mx.array, /, *, axis: int = -1) -> mx.array:
    if indices.ndim != x.ndim:
        raise ValueError(f"indices must have {x.ndim} axes, as x has, got {indices.ndim}")
    axis = _axis(axis, x.ndim)
    shape = mx.broadcast_shapes(*((*shape[:axis], *shape[axis + 1 :]) for shape in (x.shape, indices.shape)))
    indices = _check_indices(indices, -x.shape[axis], x.shape[axis])
    if not indices.size:
        return mx.zeros((*shape[:axis], indices.shape[axis], *shape[axis:]), x.dtype)
    return mx.take_along_axis(x, indices, axis)


def scatter_add(x: mx.array, indices: mx.array, updates: mx.array, /, *, axis: int = 0) -> mx.array:
    key, updates = _align_updates(x, indices, updates, axis)
    with stream_for(x.dtype):
        return x.at[key].add(updates) if updates.size else x


def scatter_max(x: mx.array, indices: mx.array, updates: mx.array, /, *, axis: int = 0) -> mx.array:
    key, updates = _align_updates(x, indices, updates, axis)
    return _extreme(x, key, updates, "maximum") if updates.size else x


def scatter_min(x: mx.array, indices: mx.array, updates: mx.array, /, *, axis: int = 0) -> mx.array:
    key, updates = _align_updates(x, indices, updates, axis)
    return _extreme(x, key, updates, "minimum") if updates.size else x


def index_get(x: mx.array, index: object, /) -> mx.array:
    x, parts = _without_masks(x, _parts(index, x))
    return x[_key(parts)]


def index_update(x: mx.array, index: object, values: mx.array, /) -> mx.array:
    values = map_like(values, x)
    parts = _parts(index, x)
    tensors = [part for part in parts if isinstance(part.value, mx.array)]
    if len(tensors) == 1 and _is_mask(tensors[0].value) and _is_whole(parts):
        return _update_by_mask(x, tensors[0], values)
    result = mx.array(x)
    if not tensors:
        values = _spread(values, result[_key(parts)].shape)
        # MLX 0.32: the gradient of an empty slice with a negative step has the wrong shape.
        if values.size:
            result[_key(parts)] = values
        return result
    axis, rows, places, values = _by_rows(*_without_masks(result, parts), values)
    if not values.size:
        return result
    rows, values = mx.array(rows), _keep_last(places, rows.shape[axis], values, axis)
    with stream_for(x.dtype):
        rows[(slice(None),) * axis + (places,)] = values
    return rows.reshape(x.shape)


def index_add(x: mx.array, index: object, values: mx.array, /) -> mx.array:
    parts = _parts(index, x)
    tensors = [part for part in parts if isinstance(part.value, mx.array)]
    if not any(not _is_mask(part.value) for part in tensors):
        return x + index_update(mx.zeros_like(x), index, values)
    axis, rows, places, values = _by_rows(*_without_masks(x, parts), values)
    if not values.size:
        return x
    with stream_for(x.dtype):
        return rows.at[(slice(None),) * axis + (places,)].add(values).reshape(x.shape)


def masked_select(x: mx.array, mask: mx.array, /) -> mx.array:
    x, mask = mx.broadcast_arrays(x, mask)
    return mx.take(x.reshape(-1), from_host(np.flatnonzero(to_host(mask))), 0)


def nonzero(x: mx.array, /) -> tuple[mx.array, ...]:
    return tuple(from_host(places) for places in host.nonzero(to_host(x != 0)))


def argwhere(x: mx.array, /) -> mx.array:
    return from_host(np.argwhere(to_host(x != 0)))


def searchsorted(x1: mx.array, x2: mx.array, /, *, side: str = "left", sorter: mx.array | None = None) -> mx.array:
    host.check_search(x1, side, sorter)
    # MLX cannot infer that positions are constant with respect to the elements.
    x1, x2 = mx.stop_gradient(x1), mx.stop_gradient(x2)
    if sorter is not None:
        x1 = take(x1, sorter)
    # Binary search, with the sorted elements padded to a power of two by values that sort last.
    size, steps = x1.size, x1.size.bit_length()
    last = _last(x1.dtype)
    filled = mx.concatenate([x1, mx.full(((1 << steps) - 1 - size,), convert(last, x1.dtype, None))])
    place = mx.zeros(x2.shape, mx.uint32)
    for step in (1 << bit for bit in reversed(range(steps))):
        probed = mx.take(filled, place + (step - 1))
        place = place + (probed < x2 if side == "left" else probed <= x2).astype(mx.uint32) * step
    if isinstance(last, float):
        numbers = size if side == "right" else mx.sum(x1 == x1).astype(mx.uint32)
        place = mx.where(mx.isnan(x2), numbers, place)
    return mx.minimum(place, size).astype(mx.int64)


def bincount(x: mx.array, weights: mx.array | None = None, minlength: int = 0) -> mx.array:
    check_bincount(x, weights, minlength)
    counts = host.bincount(to_host(x), None, minlength)
    return from_host(counts) if weights is None else segment_sum(weights, x, counts.size)


def argmax(x: mx.array, /, *, axis: int | None = None, keepdims: bool = False) -> mx.array:
    return _find_extreme(mx.argmax, x, axis, keepdims)


def argmin(x: mx.array, /, *, axis: int | None = None, keepdims: bool = False) -> mx.array:
    return _find_extreme(mx.argmin, x, axis, keepdims)


def _find_extreme(find: Any, x: mx.array, axis: int | None, keepdims: bool) -> mx.array:
    if not x.ndim and axis in (None, 0, -1):
        # MLX 0.32: argmax of a 0-d array fails with keepdims=True.
        return mx.zeros((), mx.int64)
    if axis is None:
        return find(x, None, keepdims).astype(mx.int64)
    axis = _axis(axis, x.ndim)
    if x.size == 0 and x.shape[axis]:
        # MLX 0.32: argmax along a nonempty axis raises if another axis is empty.
        return mx.zeros([*x.shape[:axis], *([1] if keepdims else []), *x.shape[axis + 1 :]], mx.int64)
    return find(x, axis, keepdims).astype(mx.int64)


def sort(x: mx.array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> mx.array:
    axis = _axis(axis, x.ndim)
    return _flipped(mx.sort(_flipped(x, axis, descending), axis), axis, descending)


def argsort(x: mx.array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> mx.array:
    axis = _axis(axis, x.ndim)
    found = mx.argsort(mx.stop_gradient(_flipped(x, axis, descending)), axis).astype(mx.int64)
    return x.shape[axis] - 1 - _flipped(found, axis, True) if descending else found


def top_k(x: mx.array, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[mx.array, mx.array]:
    axis = top_k_axis(x.shape, k, axis)
    first = (slice(None),) * axis + (slice(0, k),)
    if x.dtype.size > 4 or not 0 < k < x.shape[axis]:
        places = argsort(x, axis=axis, descending=largest)[first]
    else:
        # With value and position in one key, a partition suffices, and the first of equal elements are taken.
        rank = ~_rank(x) if largest else _rank(x)
        place = mx.arange(x.shape[axis], dtype=mx.int64).reshape(-1, *(1,) * (x.ndim - axis - 1))
        keys = mx.partition((rank << 32) + place, k - 1, axis)[first]
        places = mx.sort(keys, axis) & 0xFFFFFFFF
    places = mx.stop_gradient(places)
    return mx.take_along_axis(x, places, axis), places


def unique(
    x: mx.array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    found = host.unique(to_host(x), return_index, return_inverse, return_counts, axis, equal_nan=equal_nan)
    return tuple(map(from_host, found)) if isinstance(found, tuple) else from_host(found)


def unravel_index(indices: mx.array, shape: Any, /) -> tuple[mx.array, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    indices = _check_indices(indices, 0, math.prod(sizes))
    found = []
    for size in reversed(sizes):
        found.append(indices % max(size, 1))
        indices = indices // max(size, 1)
    return tuple(reversed(found))


def ravel_multi_index(multi_index: Any, shape: Any, /) -> mx.array:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    result: Any = 0
    for indices, size in zip(multi_index, sizes, strict=True):
        result = result * size + _check_indices(indices, 0, size)
    return result


def segment_sum(data: mx.array, segment_ids: mx.array, num_segments: int | None = None) -> mx.array:
    rows, ids = _segments(0, data, segment_ids, num_segments)
    with stream_for(data.dtype):
        return rows.at[ids].add(data) if data.size else rows


def segment_max(data: mx.array, segment_ids: mx.array, num_segments: int | None = None) -> mx.array:
    rows, ids = _segments(-math.inf, data, segment_ids, num_segments)
    return _extreme(rows, ids, data, "maximum") if data.size else rows


def segment_min(data: mx.array, segment_ids: mx.array, num_segments: int | None = None) -> mx.array:
    rows, ids = _segments(math.inf, data, segment_ids, num_segments)
    return _extreme(rows, ids, data, "minimum") if data.size else rows


def segment_prod(data: mx.array, segment_ids: mx.array, num_segments: int | None = None) -> mx.array:
    rows, ids = _segments(1, data, segment_ids, num_segments)
    return _product(rows, ids, data) if data.size else rows


def _values_or_none(x: mx.array) -> np.ndarray[Any, Any] | None:
    """Values of ``x``, or ``None`` if a compiler or ``vmap`` traces it."""
    try:
        return np.asarray(x)
    except ValueError:
        return None


def _check_indices(indices: mx.array, low: int, high: int) -> mx.array:
    """Indices without gradient, or an error if one is out of range: MLX 0.32 does not check bounds."""
    if not indices.size or not is_checked():
        return mx.stop_gradient(indices)
    seen = _values_or_none(indices)
    if seen is None and high > 0:
        # Compiled code cannot raise, but it must not access memory out of bounds.
        indices = mx.clip(indices, mx.array(low, indices.dtype), mx.array(high - 1, indices.dtype))
    if seen is not None and (seen.min() < low or seen.max() >= high):
        wrong = seen.min() if seen.min() < low else seen.max()
        raise IndexError(f"indices must be from {low} to {high - 1}, got {wrong}")
    return mx.stop_gradient(indices)


def _align_updates(x: mx.array, indices: mx.array, updates: mx.array, axis: int) -> tuple[tuple[Any, ...], mx.array]:
    axis, shape = scattered_shape(x, indices, axis)
    updates = mx.broadcast_to(updates, shape)
    return (slice(None),) * axis + (_check_indices(indices, -x.shape[axis], x.shape[axis]),), updates


def _extreme(x: mx.array, key: Any, updates: mx.array, how: str) -> mx.array:
    """``how`` of ``x`` and updates. MLX 0.32: NaN is ignored, and every tie gets the whole gradient, not a share."""

    @mx.custom_function
    def extreme(x: mx.array, updates: mx.array) -> mx.array:
        with stream_for(x.dtype):
            result = getattr(x.at[key], how)(updates)
        if not mx.issubdtype(x.dtype, mx.floating):
            return result
        return mx.where(mx.isnan(x).at[key].maximum(mx.isnan(updates)), mx.array(math.nan, x.dtype), result)

    @extreme.vjp
    def shares(inputs: Any, cotangent: mx.array, result: mx.array) -> tuple[mx.array, mx.array]:
        x, updates = inputs
        own, theirs = x == result, updates == result[key]
        count = own.astype(x.dtype).at[key].add(theirs.astype(x.dtype))
        share = cotangent / mx.maximum(count, 1)
        return mx.where(own, share, 0), mx.where(theirs, share[key], 0)

    return extreme(x, updates)  # type: ignore[return-value]


def _product(rows: mx.array, ids: mx.array, data: mx.array) -> mx.array:
    """``rows`` times the data of each id. MLX 0.32: scatter-multiply has no gradient."""

    @mx.custom_function
    def product(data: mx.array) -> mx.array:
        with stream_for(data.dtype):
            return rows.at[ids].multiply(data)

    @product.vjp
    def shares(data: mx.array, cotangent: mx.array, result: mx.array) -> mx.array:
        is_zero = data == 0
        partial = rows.at[ids].multiply(mx.where(is_zero, 1, data))[ids] / mx.where(is_zero, 1, data)
        zeros = mx.zeros(rows.shape, mx.int32).at[ids].add(is_zero.astype(mx.int32))[ids]
        return cotangent[ids] * mx.where(zeros == is_zero.astype(mx.int32), partial, 0)

    return product(data)  # type: ignore[return-value]


def _segments(empty: float, data: mx.array, ids: mx.array, count: int | None) -> tuple[mx.array, mx.array]:
    """Result for segments without rows, and the ids."""
    count = segment_count(data, ids, count, lambda: int(to_host(ids).max(initial=-1)))
    ids = _check_indices(ids, 0, count)
    if math.isinf(empty) and not mx.issubdtype(data.dtype, mx.floating):
        limits = mx.iinfo(data.dtype)
        empty = limits.max if empty > 0 else limits.min
    return mx.full((count, *data.shape[1:]), convert(empty, data.dtype, None), data.dtype), ids


def _last(dtype: mx.Dtype) -> float | int | bool:
    """Value that sorts after all others of the dtype."""
    if mx.issubdtype(dtype, mx.floating):
        return math.nan
    return True if dtype == mx.bool_ else mx.iinfo(dtype).max


def _rank(x: mx.array) -> mx.array:
    """32-bit integers, as int64, in the order of ``x``, with NaN last and both zeros equal."""
    if not mx.issubdtype(x.dtype, mx.floating):
        return x.astype(mx.int64) - (1 << 31) if x.dtype == mx.uint32 else x.astype(mx.int64)
    x = mx.where(mx.isnan(x), math.nan, x.astype(mx.float32) + 0.0)
    bits = x.view(mx.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(mx.int64)


def _flipped(x: mx.array, axis: int, descending: bool) -> mx.array:
    """``x``, flipped if ``descending``; flipping before and after a sort keeps the order of equal elements."""
    return x[(slice(None),) * axis + (slice(None, None, -1),)] if descending else x


def _parts(index: object, x: mx.array) -> list[Part]:
    parts = parts_of(index, x.shape, _index_tensor, _is_mask)
    return [
        Part(_check_indices(value, -x.shape[axis], x.shape[axis]), axis)
        if isinstance(value, mx.array) and not _is_mask(value)
        else Part(value, axis)
        for value, axis in parts
    ]


def _index_tensor(value: Any) -> mx.array:
    found = convert(value, None, None)
    if _is_mask(found):
        return found
    if found.size and not mx.issubdtype(found.dtype, mx.integer):
        raise TypeError(
            f"an index must be made of integers, slices and masks, got {str(found.dtype).removeprefix('mlx.core.')} "
            "values"
        )
    return found.astype(mx.int64)


def _is_mask(value: mx.array) -> bool:
    return value.dtype == mx.bool_


def _is_whole(parts: list[Part]) -> bool:
    """Whether all parts except tensors are full slices."""
    return all(isinstance(part.value, mx.array) or part.value == slice(None) for part in parts)


def _key(parts: list[Part]) -> tuple[Any, ...]:
    return tuple(part.value for part in parts)


def _without_masks(x: mx.array, parts: list[Part]) -> tuple[mx.array, list[Part]]:
    """Tensor, and parts with masks converted to positions in it, which evaluates the masks.

    A single bool is a mask with no axes: it selects all or nothing of an axis of length one that is added for it.
    """
    found: list[Part] = []
    single: list[int] = []
    for value, axis in parts:
        axis += len(single)
        if not isinstance(value, mx.array) or not _is_mask(value):
            found.append(Part(value, axis))
        elif value.ndim:
            found += [Part(places, axis + i) for i, places in enumerate(nonzero(value))]
        else:
            found.append(Part(mx.zeros((1 if value.item() else 0,), mx.int64), axis))
            single.append(axis)
    _check_broadcast([part.value.shape for part in found if isinstance(part.value, mx.array)])
    return mx.expand_dims(x, single) if single else x, found


def _check_broadcast(shapes: list[tuple[int, ...]]) -> None:
    """Raise IndexError, as the other engines do, unless the tensors of an index broadcast together."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise IndexError(f"indices must have shapes that broadcast, got {', '.join(map(str, shapes))}") from error


def _update_by_mask(x: mx.array, part: Part, values: mx.array) -> mx.array:
    """``x`` with values where a mask is true, by cumulative count: positions would require evaluating the mask."""
    mask, axis = part
    behind = x.shape[axis + mask.ndim :]
    values = _leading(values, axis + 1 + len(behind))
    count, shape = values.shape[axis], (1,) * mask.ndim
    if count != 1:
        seen = _values_or_none(mask) if is_checked() else None
        if seen is not None and seen.sum() != count:
            raise ValueError(f"values must be as many as the mask selects, {seen.sum()}, got {count}")
        if count == 0:
            _spread(values, (*x.shape[:axis], 0, *behind))  # a ValueError if the other axes do not fit
            return mx.array(x)
        order = mx.cumsum(mask.reshape(-1).astype(mx.int64)) - 1
        values, shape = mx.take(values, mx.clip(order, 0, count - 1), axis), mask.shape
    spread = mx.broadcast_to(values.reshape(values.shape[:axis] + shape + values.shape[axis + 1 :]), x.shape)
    return mx.where(mask.reshape(mask.shape + (1,) * len(behind)), spread, x)


def _leading(values: mx.array, ndim: int) -> mx.array:
    """``values`` reshaped to ``ndim`` axes by adding or removing leading axes of length one."""
    while values.ndim > ndim and values.shape[0] == 1:
        values = values[0]
    return values.reshape((1,) * (ndim - values.ndim) + values.shape)


def _spread(values: mx.array, shape: tuple[int, ...]) -> mx.array:
    return mx.broadcast_to(_leading(values, len(shape)), shape)


def _by_rows(x: mx.array, parts: list[Part], values: mx.array) -> tuple[int, mx.array, mx.array, mx.array]:
    """Axis, tensor, positions along that axis and values for them, equivalent to ``x[parts] = values``."""
    tensors = [part for part in parts if isinstance(part.value, mx.array)]
    if len(tensors) == 1 and _is_whole(parts):
        (places, axis), shape = tensors[0], x.shape
        values = _spread(values, shape[:axis] + places.shape + shape[axis + 1 :])
        places = mx.where(places < 0, places + shape[axis], places)
        return axis, x, places.reshape(-1), values.reshape((*shape[:axis], places.size, *shape[axis + 1 :]))
    places = mx.arange(x.size, dtype=mx.int64).reshape(x.shape)[_key(parts)]
    return 0, x.reshape(-1), places.reshape(-1), _spread(values, places.shape).reshape(-1)


def _keep_last(places: mx.array, size: int, values: mx.array, axis: int) -> mx.array:
    """Values in which all for one element equal its last one, so that the order of writes does not matter.

    Only the last one gets a gradient.
    """
    order = mx.arange(places.size, dtype=mx.int32)
    last = mx.full((size,), -1, mx.int32).at[places].maximum(order)[places]
    is_last = (last == order).reshape(-1, *(1,) * (values.ndim - axis - 1))
    return mx.where(is_last, values, mx.take(mx.stop_gradient(values), last, axis))
