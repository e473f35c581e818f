"""Indexing, searching, sorting, counting and segment reductions on NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy import argwhere

from ember_ml.backend.numpy.core import DTYPES, parse
from ember_ml.dtypes import default_float
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.indexing import check_bincount, scattered_shape, segment_count, top_k_axis

_Array = np.ndarray[Any, Any]


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    if axis is not None and x.ndim == 0:
        raise np.exceptions.AxisError(axis, 0)
    if not x.size:
        # NumPy does not check indices if the result is empty.
        size = 0 if axis is None else x.shape[_axis(axis, x.ndim)]
        _check(indices, -size, size)
    return np.take(x, indices, axis=axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    if indices.ndim != x.ndim:
        raise ValueError(f"indices must have {x.ndim} axes, as x has, got {indices.ndim}")
    try:
        return np.take_along_axis(x, indices, axis)
    except IndexError:
        # NumPy raises IndexError for mismatched shapes as well as for indices out of range.
        axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
        np.broadcast_shapes(*((*shape[:axis], *shape[axis + 1 :]) for shape in (x.shape, indices.shape)))
        raise


def scatter_add(x: Any, indices: Any, updates: Any, /, *, axis: int = 0) -> Any:
    return _scatter(np.add, x, indices, updates, axis)


def scatter_max(x: Any, indices: Any, updates: Any, /, *, axis: int = 0) -> Any:
    return _scatter(np.maximum, x, indices, updates, axis)


def scatter_min(x: Any, indices: Any, updates: Any, /, *, axis: int = 0) -> Any:
    return _scatter(np.minimum, x, indices, updates, axis)


def index_get(x: _Array, index: object, /) -> _Array:
    return x[_key(_parts(index, x.shape))]


def index_update(x: Any, index: object, values: Any, /) -> Any:
    result = np.array(x)
    parts = _parts(index, result.shape)
    try:
        # With the ellipsis, a single element also accepts values with leading axes of length 1.
        result[(*_key(parts), ...)] = values
    except ValueError:
        # If the index is wrong too, report that error instead.
        for value, axis in parts:
            if isinstance(value, np.ndarray) and not _is_mask(value):
                _check(value, -result.shape[axis], result.shape[axis])
        raise
    return result


def index_add(x: Any, index: object, values: Any, /) -> Any:
    result = np.array(x)
    key = _key(_parts(index, result.shape))
    if result.ndim == values.ndim == 1 and any(np.ndim(part) > 1 for part in key):
        # NumPy 2.4: add.at reads out of bounds if a 1-d array of values is broadcast over an index with more axes.
        values = np.broadcast_to(values, result[key].shape)
    try:
        np.add.at(result, key, values)
    except ValueError:
        # Unlike assignment, add.at does not accept values with leading axes of length 1.
        more = values.ndim - result[key].ndim
        if more <= 0 or values.shape[:more] != (1,) * more:
            raise
        np.add.at(result, key, values.reshape(values.shape[more:]))
    return result


def masked_select(x: Any, mask: Any, /) -> Any:
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


def nonzero(x: Any, /) -> tuple[Any, ...]:
    if x.ndim == 0:
        raise ValueError("x must have at least 1 axis, got a 0-d tensor")
    return np.nonzero(x)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return np.asarray(np.count_nonzero(x, axis=axis, keepdims=keepdims), np.int64)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    check_search(x1, side, sorter)
    if sorter is not None:
        x1 = np.take(x1, sorter)
    return np.searchsorted(_ordered(x1), _ordered(x2), side=side)  # type: ignore[call-overload]


def check_search(x1: Any, side: str, sorter: Any) -> None:
    """Raise unless the arguments are valid for ``searchsorted``, on any engine."""
    for name, one in (("x1", x1), ("sorter", sorter)):
        if one is not None and one.ndim != 1:
            raise ValueError(f"searchsorted: {name} must have one axis, got {one.ndim}")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    check_bincount(x, weights, minlength)
    if x.min(initial=0) < 0:
        raise ValueError("x must be >= 0, got negative integers")
    counts = np.bincount(x, weights, minlength)
    return counts if weights is None else counts.astype(weights.dtype)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    return np.argmax(x, axis=axis, keepdims=keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    return np.argmin(x, axis=axis, keepdims=keepdims)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    # Equal values are indistinguishable, so any sort will do; NumPy's stable one is faster only where it is a radix
    # sort.
    digits = x.dtype.kind in "iub" and x.dtype.itemsize <= 2
    found = np.sort(_ordered(x), axis=axis, stable=digits)
    return _flipped(found, axis, descending).astype(x.dtype, copy=False)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    if x.ndim == 0:
        raise np.exceptions.AxisError(axis, 0)
    found = np.argsort(_flipped(_ordered(x), axis, descending), axis=axis, stable=True)
    return x.shape[axis] - 1 - _flipped(found, axis, True) if descending else found


def top_k(x: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    axis = top_k_axis(x.shape, k, axis)
    rows = np.moveaxis(x, axis, -1)
    size = rows.shape[-1]
    if 0 < k < size:
        places = _top_k_positions(_ordered(rows).reshape(-1, size), k, largest).reshape(*rows.shape[:-1], k)
    else:
        places = argsort(rows, descending=largest)[..., :k]
    return np.moveaxis(np.take_along_axis(rows, places, -1), -1, axis), np.moveaxis(places, -1, axis)


def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    options: Any = (return_index, return_inverse, return_counts, axis)
    found: Any = np.unique(_ordered(x), *options, equal_nan=equal_nan)
    if not isinstance(found, tuple):
        return found.astype(x.dtype, copy=False)
    return (found[0].astype(x.dtype, copy=False), *found[1:])


def intersect1d(x1: Any, x2: Any, /, assume_unique: bool = False, return_indices: bool = False) -> Any:
    if not return_indices:
        return np.intersect1d(_ordered(x1), _ordered(x2), assume_unique).astype(x1.dtype)
    common, *places = np.intersect1d(_ordered(x1), _ordered(x2), assume_unique, return_indices=True)
    return common.astype(x1.dtype), *places


def union1d(x1: Any, x2: Any, /) -> Any:
    return np.union1d(_ordered(x1), _ordered(x2)).astype(x1.dtype)


def setdiff1d(x1: Any, x2: Any, /, assume_unique: bool = False) -> Any:
    return np.setdiff1d(_ordered(x1), _ordered(x2), assume_unique).astype(x1.dtype)


def unravel_index(indices: Any, shape: Any, /) -> tuple[Any, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    _check(indices, 0, math.prod(sizes))
    return np.unravel_index(indices, sizes)


def ravel_multi_index(multi_index: Any, shape: Any, /) -> Any:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for indices, size in zip(multi_index, sizes, strict=True):
        _check(indices, 0, size)
    return np.asarray(np.ravel_multi_index(tuple(multi_index), sizes), np.int64)


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None) -> Any:
    axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim + 1)
    shape = (*x.shape[:axis], max(0, num_classes), *x.shape[axis:])
    result = np.zeros(shape, DTYPES[default_float().name] if dtype is None else dtype)
    if not result.size:
        return result
    after = math.prod(x.shape[axis:])
    classes = x.reshape(-1, after)
    # Positions in the flattened result take a third less time than indices along each axis.
    places = np.arange(0, result.size, num_classes * after)[:, None] + (classes * after + np.arange(after))
    inside = (classes >= 0) & (classes < num_classes)
    result.reshape(-1)[places.reshape(-1) if inside.all() else places[inside]] = 1
    return result


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    return _segments(np.add, 0, data, segment_ids, num_segments)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    return _segments(np.maximum, -np.inf, data, segment_ids, num_segments)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    return _segments(np.minimum, np.inf, data, segment_ids, num_segments)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    return _segments(np.multiply, 1, data, segment_ids, num_segments)


def _check(indices: _Array, low: int, high: int) -> None:
    if indices.size and (indices.min() < low or indices.max() >= high):
        wrong = indices.min() if indices.min() < low else indices.max()
        raise IndexError(f"indices must be from {low} to {high - 1}, got {wrong}")


def _ordered(x: Any) -> Any:
    """``x`` in a dtype that NumPy sorts correctly. NumPy 2.4: sorting bfloat16 does not put NaN last."""
    return x.astype(np.float32) if x.dtype == DTYPES["bfloat16"] else x


def _top_k_positions(rows: _Array, k: int, largest: bool) -> _Array:
    """Positions of the ``k`` largest or smallest elements of each row, in order, found by a partition."""
    size = rows.shape[-1]
    last = size - k if largest else k - 1
    edge = np.partition(rows, last)[:, last : last + 1]
    # NaN counts as largest, and compares as not less than the edge.
    taken = ~(rows < edge) if largest else rows <= edge
    ambiguous = np.count_nonzero(taken, axis=-1) != k
    if ambiguous.any():
        taken[ambiguous] = _resolve_ties(rows[ambiguous], edge[ambiguous], k, largest)
    found = np.flatnonzero(taken).reshape(-1, k)
    values = np.take(rows, found)
    if values.dtype.itemsize > 4:
        return np.take_along_axis(found % size, argsort(values, descending=largest), -1)
    # With value and position in one key, the fastest sort keeps the order of equal elements.
    rank = ~_rank(values) if largest else _rank(values)
    return np.sort((rank << 32) | (found % size)) & 0xFFFFFFFF


def _resolve_ties(rows: _Array, edge: _Array, k: int, largest: bool) -> _Array:
    """Mask of the elements to take where too many equal the last one or some are NaN, which counts as largest."""
    is_nan, edge_is_nan = np.isnan(rows), np.isnan(edge)
    within = (rows > edge) | (is_nan & ~edge_is_nan) if largest else (rows < edge) | (edge_is_nan & ~is_nan)
    level = (rows == edge) | (is_nan & edge_is_nan)
    remaining = k - np.count_nonzero(within, axis=-1, keepdims=True)
    return within | (level & (np.cumsum(level, axis=-1) <= remaining))


def _rank(x: _Array) -> _Array:
    """32-bit integers, as int64, in the order of ``x``, with NaN last and both zeros equal."""
    if x.dtype.kind in "iub":
        return x.astype(np.int64) - (1 << 31 if x.dtype == np.uint32 else 0)
    x = np.where(np.isnan(x), np.float32(np.nan), x.astype(np.float32) + np.float32(0))
    bits = x.view(np.int32).astype(np.int64)
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def _flipped(x: _Array, axis: int, descending: bool) -> _Array:
    """``x``, flipped if ``descending``; flipping before and after a sort keeps the order of equal elements."""
    return np.flip(x, axis) if descending else x


def _reduce_by_id(ufunc: np.ufunc, data: _Array, ids: _Array) -> tuple[_Array, _Array]:
    """Distinct ids, and the reduction of the rows of each; much faster than ``ufunc.at``."""
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    return ids[first], ufunc.reduceat(data[order], first, axis=0, dtype=data.dtype)


def _scatter(ufunc: np.ufunc, x: Any, indices: _Array, updates: _Array, axis: int) -> _Array:
    axis, shape = scattered_shape(x, indices, axis)
    result = np.array(x)
    rows = np.moveaxis(result, axis, 0)
    updates = np.moveaxis(np.broadcast_to(updates, shape), axis, 0)
    size = len(rows)
    _check(indices, -size, size)
    if len(indices):
        places, found = _reduce_by_id(ufunc, updates, np.where(indices < 0, indices + size, indices))
        rows[places] = ufunc(rows[places], found)
    return result


def _segments(ufunc: np.ufunc, empty: float, data: Any, ids: _Array, count: int | None) -> _Array:
    count = segment_count(data, ids, count, lambda: int(ids.max(initial=-1)))
    _check(ids, 0, count)
    result = np.full((count, *data.shape[1:]), _limit(empty, data.dtype), data.dtype)
    if len(ids):
        places, found = _reduce_by_id(ufunc, data, ids)
        result[places] = found
    return result


def _limit(value: float, dtype: np.dtype[Any]) -> float:
    """``value``, or the limit of an integer dtype if it is infinite."""
    if dtype.kind not in "iu" or not math.isinf(value):
        return value
    return np.iinfo(dtype).max if value > 0 else np.iinfo(dtype).min


class Part(NamedTuple):
    """Part of an index (an integer, a slice, ``None`` or a tensor) and the first axis that it addresses."""

    value: Any
    axis: int


def parts_of(
    index: Any, shape: tuple[int, ...], tensor: Callable[[Any], Any], is_mask: Callable[[Any], bool]
) -> list[Part]:
    """Parts of a NumPy-style index, with the ellipsis replaced by slices; everything but tensor values is checked.

    Args:
        tensor: converts an array-like part to the engine's int64 or bool tensor.
        is_mask: whether that tensor is bool.
    """
    listed = list(index) if isinstance(index, tuple) else [index]
    values = [part if _is_plain(part) else tensor(part) for part in listed]
    if sum(value is ... for value in values) > 1:
        raise IndexError("an index must have at most one ellipsis, got several")
    widths = [_width(value, is_mask) for value in values]
    left = len(shape) - sum(widths)
    if left < 0:
        most = "1 part" if len(shape) == 1 else f"{len(shape)} parts"
        raise IndexError(f"an index must have at most {most}, one per dimension, got {sum(widths)}")
    if not any(value is ... for value in values):
        values.append(...)
        widths.append(0)
    found: list[Part] = []
    axis = 0
    for value, width in zip(values, widths, strict=True):
        if value is ...:
            found += [Part(slice(None), axis + i) for i in range(left)]
            axis += left
            continue
        sizes = shape[axis : axis + width]
        if isinstance(value, slice) and not _is_usual(value):
            value = _within(value, sizes[0])
        if _is_void(value, sizes, is_mask):
            value = tensor(np.zeros(sizes, bool))
        _check_part(value, sizes, is_mask)
        found.append(Part(value, axis))
        axis += width
    return found


def _is_plain(part: Any) -> bool:
    return (
        part is None or part is ... or isinstance(part, slice) or (isinstance(part, int) and not isinstance(part, bool))
    )


def _is_usual(part: slice) -> bool:
    """Whether all engines treat a slice alike. MLX 0.32: bounds are 32-bit, and a step of 0 ends the process."""
    bounds = (part.start, part.stop, part.step)
    return part.step != 0 and all(n is None or (type(n) is int and -1 << 31 < n < 1 << 31) for n in bounds)


def _within(part: slice, size: int) -> slice:
    """Slice of the same elements with bounds no larger than the axis; a ValueError for a step of 0."""
    start, stop, step = part.indices(size)
    if not len(range(start, stop, step)):
        return slice(0, 0)
    return slice(start, stop if stop >= 0 else None, max(-size, min(step, size)))


def _width(value: Any, is_mask: Callable[[Any], bool]) -> int:
    """Number of axes that a part addresses."""
    if value is None or value is ...:
        return 0
    return value.ndim if not isinstance(value, (int, slice)) and is_mask(value) else 1


def _is_void(value: Any, sizes: tuple[int, ...], is_mask: Callable[[Any], bool]) -> bool:
    """Whether a part is an empty mask whose nonzero lengths match: it fits axes of any length where its own is 0."""
    if value is None or isinstance(value, (int, slice)) or 0 not in value.shape or not is_mask(value):
        return False
    lengths = tuple(value.shape)
    return lengths != sizes and all(a in (0, b) for a, b in zip(lengths, sizes, strict=True))


def _check_part(value: Any, sizes: tuple[int, ...], is_mask: Callable[[Any], bool]) -> None:
    if isinstance(value, int):
        if not -sizes[0] <= value < sizes[0]:
            raise IndexError(f"an index must be from {-sizes[0]} to {sizes[0] - 1}, got {value}")
    elif value is not None and not isinstance(value, slice) and is_mask(value) and tuple(value.shape) != sizes:
        raise IndexError(
            f"a mask must have the shape of the axes that it selects from, {list(sizes)}, got {list(value.shape)}"
        )


def _parts(index: Any, shape: tuple[int, ...]) -> list[Part]:
    return parts_of(index, shape, _index_tensor, _is_mask)


def _key(parts: list[Part]) -> tuple[Any, ...]:
    return tuple(part.value for part in parts)


def _index_tensor(value: Any) -> _Array:
    array = parse(value, None)
    if array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise TypeError(f"an index must be made of integers, slices and masks, got {array.dtype} values")
    return array if array.dtype == bool else array.astype(np.int64)


def _is_mask(value: _Array) -> bool:
    return value.dtype == bool
