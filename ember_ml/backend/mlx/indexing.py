"""Elements picked, placed, searched, sorted and counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend.mlx.core import convert, from_host, placing, to_host
from ember_ml.backend.mlx.mapping import following
from ember_ml.backend.numpy import indexing as host
from ember_ml.backend.numpy.indexing import Part, parts_of
from ember_ml.shapes import axis_of as _axis
from ember_ml.unchecked import is_checked


def take(x: mx.array, indices: mx.array, /, *, axis: int | None = None) -> mx.array:
    size = x.size if axis is None else x.shape[_axis(axis, x.ndim)]
    indices = _checked(indices, -size, size)
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
    indices = _checked(indices, -x.shape[axis], x.shape[axis])
    if not indices.size:
        return mx.zeros((*shape[:axis], indices.shape[axis], *shape[axis:]), x.dtype)
    return mx.take_along_axis(x, indices, axis)


def scatter_add(x: mx.array, indices: mx.array, updates: mx.array, /, *, axis: int = 0) -> mx.array:
    key, updates = _aligned(x, indices, updates, axis)
    with placing(x.dtype):
        return x.at[key].add(updates) if updates.size else x


def scatter_max(x: mx.array, indices: mx.array, updates: mx.array, /, *, axis: int = 0) -> mx.array:
    key, updates = _aligned(x, indices, updates, axis)
    return _extreme(x, key, updates, "maximum") if updates.size else x


def scatter_min(x: mx.array, indices: mx.array, updates: mx.array, /, *, axis: int = 0) -> mx.array:
    key, updates = _aligned(x, indices, updates, axis)
    return _extreme(x, key, updates, "minimum") if updates.size else x


def index_get(x: mx.array, index: object, /) -> mx.array:
    x, parts = _unmasked(x, _parts(index, x))
    return x[_key(parts)]


def index_update(x: mx.array, index: object, values: mx.array, /) -> mx.array:
    values = following(values, x)
    parts = _parts(index, x)
    tensors = [part for part in parts if isinstance(part.value, mx.array)]
    if len(tensors) == 1 and _is_mask(tensors[0].value) and _is_whole(parts):
        return _masked(x, tensors[0], values)
    answer = mx.array(x)
    if not tensors:
        values = _spread(values, answer[_key(parts)].shape)
        # MLX's gradient of nothing, taken backwards from before the start, is one of something.
        if values.size:
            answer[_key(parts)] = values
        return answer
    axis, rows, places, values = _by_rows(*_unmasked(answer, parts), values)
    if not values.size:
        return answer
    rows, values = mx.array(rows), _settled(places, rows.shape[axis], values, axis)
    with placing(x.dtype):
        rows[(slice(None),) * axis + (places,)] = values
    return rows.reshape(x.shape)


def index_add(x: mx.array, index: object, values: mx.array, /) -> mx.array:
    parts = _parts(index, x)
    tensors = [part for part in parts if isinstance(part.value, mx.array)]
    if not any(not _is_mask(part.value) for part in tensors):
        return x + index_update(mx.zeros_like(x), index, values)
    axis, rows, places, values = _by_rows(*_unmasked(x, parts), values)
    if not values.size:
        return x
    with placing(x.dtype):
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
    # MLX does not know by itself that places do not change with the elements.
    x1, x2 = mx.stop_gradient(x1), mx.stop_gradient(x2)
    if sorter is not None:
        x1 = take(x1, sorter)
    # Halving, with the sorted elements made up to a power of two by some that nothing is put behind.
    size, steps = x1.size, x1.size.bit_length()
    last = _last(x1.dtype)
    filled = mx.concatenate([x1, mx.full(((1 << steps) - 1 - size,), convert(last, x1.dtype, None))])
    place = mx.zeros(x2.shape, mx.uint32)
    for step in (1 << bit for bit in reversed(range(steps))):
        seen = mx.take(filled, place + (step - 1))
        place = place + (seen < x2 if side == "left" else seen <= x2).astype(mx.uint32) * step
    if isinstance(last, float):
        numbers = size if side == "right" else mx.sum(x1 == x1).astype(mx.uint32)
        place = mx.where(mx.isnan(x2), numbers, place)
    return mx.minimum(place, size).astype(mx.int64)


def bincount(x: mx.array, weights: mx.array | None = None, minlength: int = 0) -> mx.array:
    if x.ndim != 1 or minlength < 0 or (weights is not None and weights.shape != x.shape):
        raise ValueError(
            f"x must have 1 axis and weights the same shape, and minlength must be >= 0, got shapes {list(x.shape)} "
            f"and {None if weights is None else list(weights.shape)} and minlength={minlength}"
        )
    ids = to_host(x)
    if ids.min(initial=0) < 0:
        raise ValueError("x must be >= 0, got negative integers")
    if weights is None:
        return from_host(np.bincount(ids, minlength=minlength))
    return segment_sum(weights, x, max(int(ids.max(initial=-1)) + 1, minlength))


def argmax(x: mx.array, /, *, axis: int | None = None, keepdims: bool = False) -> mx.array:
    return _found(mx.argmax, x, axis, keepdims)


def argmin(x: mx.array, /, *, axis: int | None = None, keepdims: bool = False) -> mx.array:
    return _found(mx.argmin, x, axis, keepdims)


def _found(find: Any, x: mx.array, axis: int | None, keepdims: bool) -> mx.array:
    if not x.ndim and axis in (None, 0, -1):
        # MLX fails here where axes are kept.
        return mx.zeros((), mx.int64)
    if axis is None:
        return find(x, None, keepdims).astype(mx.int64)
    axis = _axis(axis, x.ndim)
    if x.size == 0 and x.shape[axis]:
        # MLX refuses to look along an axis with elements where another has none.
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
    axis = _axis(axis, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"k must be from 0 to {x.shape[axis]}, the length of axis {axis}, got {k}")
    first = (slice(None),) * axis + (slice(0, k),)
    if x.dtype.size > 4 or not 0 < k < x.shape[axis]:
        places = argsort(x, axis=axis, descending=largest)[first]
    else:
        # Value and position in one key: so a partition suffices, and of equal elements the first ones are taken.
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
    indices = _checked(indices, 0, math.prod(sizes))
    found = []
    for size in reversed(sizes):
        found.append(indices % max(size, 1))
        indices = indices // max(size, 1)
    return tuple(reversed(found))


def ravel_multi_index(multi_index: Any, shape: Any, /) -> mx.array:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    answer: Any = 0
    for indices, size in zip(multi_index, sizes, strict=True):
        answer = answer * size + _checked(indices, 0, size)
    return answer


def segment_sum(data: mx.array, segment_ids: mx.array, num_segments: int | None = None) -> mx.array:
    rows, ids = _segments(0, data, segment_ids, num_segments)
    with placing(data.dtype):
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


def _seen(x: mx.array) -> np.ndarray[Any, Any] | None:
    """The values of ``x``, or ``None`` where a compiler or ``vmap`` traces, and there are none."""
    try:
        return np.asarray(x)
    except ValueError:
        return None


def _checked(indices: mx.array, low: int, high: int) -> mx.array:
    """Indices that are in range, or an error: MLX reads and writes wherever they point, and asks for their gradient."""
    if not indices.size or not is_checked():
        return mx.stop_gradient(indices)
    seen = _seen(indices)
    if seen is None and high > 0:
        # Compiled code cannot raise an error; it must not read or write where it should not.
        indices = mx.clip(indices, mx.array(low, indices.dtype), mx.array(high - 1, indices.dtype))
    if seen is not None and (seen.min() < low or seen.max() >= high):
        wrong = seen.min() if seen.min() < low else seen.max()
        raise IndexError(f"indices must be from {low} to {high - 1}, got {wrong}")
    return mx.stop_gradient(indices)


def _aligned(x: mx.array, indices: mx.array, updates: mx.array, axis: int) -> tuple[tuple[Any, ...], mx.array]:
    if indices.ndim != 1:
        raise ValueError(f"indices must have 1 axis, got {indices.ndim}")
    axis = _axis(axis, x.ndim)
    updates = mx.broadcast_to(updates, (*x.shape[:axis], indices.size, *x.shape[axis + 1 :]))
    return (slice(None),) * axis + (_checked(indices, -x.shape[axis], x.shape[axis]),), updates


def _extreme(x: mx.array, key: Any, updates: mx.array, how: str) -> mx.array:
    """The ``how`` of ``x`` and updates. NaN wins, which MLX forgets; equals share the gradient, which MLX repeats."""

    @mx.custom_function
    def extreme(x: mx.array, updates: mx.array) -> mx.array:
        with placing(x.dtype):
            answer = getattr(x.at[key], how)(updates)
        if not mx.issubdtype(x.dtype, mx.floating):
            return answer
        return mx.where(mx.isnan(x).at[key].maximum(mx.isnan(updates)), mx.array(math.nan, x.dtype), answer)

    @extreme.vjp
    def shares(inputs: Any, cotangent: mx.array, answer: mx.array) -> tuple[mx.array, mx.array]:
        x, updates = inputs
        own, theirs = x == answer, updates == answer[key]
        count = own.astype(x.dtype).at[key].add(theirs.astype(x.dtype))
        share = cotangent / mx.maximum(count, 1)
        return mx.where(own, share, 0), mx.where(theirs, share[key], 0)

    return extreme(x, updates)  # type: ignore[return-value]


def _product(rows: mx.array, ids: mx.array, data: mx.array) -> mx.array:
    """``rows`` times the data of each id, with the gradient that MLX lacks."""

    @mx.custom_function
    def product(data: mx.array) -> mx.array:
        with placing(data.dtype):
            return rows.at[ids].multiply(data)

    @product.vjp
    def shares(data: mx.array, cotangent: mx.array, answer: mx.array) -> mx.array:
        is_zero = data == 0
        others = rows.at[ids].multiply(mx.where(is_zero, 1, data))[ids] / mx.where(is_zero, 1, data)
        zeros = mx.zeros(rows.shape, mx.int32).at[ids].add(is_zero.astype(mx.int32))[ids]
        return cotangent[ids] * mx.where(zeros == is_zero.astype(mx.int32), others, 0)

    return product(data)  # type: ignore[return-value]


def _segments(empty: float, data: mx.array, ids: mx.array, count: int | None) -> tuple[mx.array, mx.array]:
    """The answer for segments without rows, and the ids."""
    if ids.ndim != 1 or data.ndim == 0 or ids.size != data.shape[0]:
        raise ValueError(
            f"segment_ids must have 1 axis, as long as the first of data, got shapes {list(ids.shape)} and "
            f"{list(data.shape)}"
        )
    count = int(to_host(ids).max(initial=-1)) + 1 if count is None else count
    if count < 0:
        raise ValueError(f"num_segments must be >= 0, got {count}")
    ids = _checked(ids, 0, count)
    if math.isinf(empty) and not mx.issubdtype(data.dtype, mx.floating):
        limits = mx.iinfo(data.dtype)
        empty = limits.max if empty > 0 else limits.min
    return mx.full((count, *data.shape[1:]), convert(empty, data.dtype, None), data.dtype), ids


def _last(dtype: mx.Dtype) -> float | int | bool:
    """What sorts behind every other element of the dtype."""
    if mx.issubdtype(dtype, mx.floating):
        return math.nan
    return True if dtype == mx.bool_ else mx.iinfo(dtype).max


def _rank(x: mx.array) -> mx.array:
    """Integers of 32 bits, as int64, in the order of ``x``, NaN being the last and both zeros one."""
    if not mx.issubdtype(x.dtype, mx.floating):
        return x.astype(mx.int64) - (1 << 31) if x.dtype == mx.uint32 else x.astype(mx.int64)
    x = mx.where(mx.isnan(x), math.nan, x.astype(mx.float32) + 0.0)
    bits = x.view(mx.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(mx.int64)


def _flipped(x: mx.array, axis: int, descending: bool) -> mx.array:
    """``x`` turned round, before and after sorting: so equal elements keep their order in a falling sequence."""
    return x[(slice(None),) * axis + (slice(None, None, -1),)] if descending else x


def _parts(index: object, x: mx.array) -> list[Part]:
    parts = parts_of(index, x.shape, _index_tensor, _is_mask)
    return [
        Part(_checked(value, -x.shape[axis], x.shape[axis]), axis)
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
    """Whether all parts but the tensors are whole axes."""
    return all(isinstance(part.value, mx.array) or part.value == slice(None) for part in parts)


def _key(parts: list[Part]) -> tuple[Any, ...]:
    return tuple(part.value for part in parts)


def _unmasked(x: mx.array, parts: list[Part]) -> tuple[mx.array, list[Part]]:
    """The parts with masks written as positions, which evaluates them, and the tensor that they are positions in.

    A single bool is a mask of no axes: it takes all or nothing of an axis of length one, which the tensor has for it.
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
    _check_company([part.value.shape for part in found if isinstance(part.value, mx.array)])
    return mx.expand_dims(x, single) if single else x, found


def _check_company(shapes: list[tuple[int, ...]]) -> None:
    """Tensors in one index have shapes that fit each other; an IndexError, as on the other engines, where not."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise IndexError(f"indices must have shapes that broadcast, got {', '.join(map(str, shapes))}") from error


def _masked(x: mx.array, part: Part, values: mx.array) -> mx.array:
    """``x`` with values where a mask is true, found by counting: a mask's positions would have to be evaluated."""
    mask, axis = part
    behind = x.shape[axis + mask.ndim :]
    values = _leading(values, axis + 1 + len(behind))
    count, shape = values.shape[axis], (1,) * mask.ndim
    if count != 1:
        seen = _seen(mask) if is_checked() else None
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
    """``values`` with ones before its shape, or without, so that it has ``ndim`` axes."""
    while values.ndim > ndim and values.shape[0] == 1:
        values = values[0]
    return values.reshape((1,) * (ndim - values.ndim) + values.shape)


def _spread(values: mx.array, shape: tuple[int, ...]) -> mx.array:
    return mx.broadcast_to(_leading(values, len(shape)), shape)


def _by_rows(x: mx.array, parts: list[Part], values: mx.array) -> tuple[int, mx.array, mx.array, mx.array]:
    """An axis, a tensor, positions along that axis and values for them: the same as ``x[parts] = values``."""
    tensors = [part for part in parts if isinstance(part.value, mx.array)]
    if len(tensors) == 1 and _is_whole(parts):
        (places, axis), shape = tensors[0], x.shape
        values = _spread(values, shape[:axis] + places.shape + shape[axis + 1 :])
        places = mx.where(places < 0, places + shape[axis], places)
        return axis, x, places.reshape(-1), values.reshape((*shape[:axis], places.size, *shape[axis + 1 :]))
    places = mx.arange(x.size, dtype=mx.int64).reshape(x.shape)[_key(parts)]
    return 0, x.reshape(-1), places.reshape(-1), _spread(values, places.shape).reshape(-1)


def _settled(places: mx.array, size: int, values: mx.array, axis: int) -> mx.array:
    """The values in which all for one place are its last one, so that the order of writing does not matter.

    Only the last one itself carries a gradient.
    """
    order = mx.arange(places.size, dtype=mx.int32)
    last = mx.full((size,), -1, mx.int32).at[places].maximum(order)[places]
    is_last = (last == order).reshape(-1, *(1,) * (values.ndim - axis - 1))
    return mx.where(is_last, values, mx.take(mx.stop_gradient(values), last, axis))
