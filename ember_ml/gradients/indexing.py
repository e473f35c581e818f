"""Gradients of indexing, sorting and segments."""

from __future__ import annotations

import math as _math
from collections.abc import Sequence
from typing import Any

from ember_ml.ops import comparison, creation, dtypes, manipulation, math, stats
from ember_ml.ops.indexing import (
    argsort,
    index_add,
    index_get,
    index_update,
    segment_sum,
    take,
)


def _take(g: Any, out: Any, x: Any, indices: Any, *, axis: Any = None) -> Any:
    if axis is None:
        summed = segment_sum(
            manipulation.ravel(g), manipulation.ravel(_positive(indices, _math.prod(x.shape))), _math.prod(x.shape)
        )
        return manipulation.reshape(summed, x.shape)
    axis = axis % len(x.shape)
    count = x.shape[axis]
    places = len(indices.shape)
    moved = manipulation.moveaxis(g, list(range(axis, axis + places)), list(range(places))) if axis else g
    rest = tuple(x.shape[:axis]) + tuple(x.shape[axis + 1 :])
    rows = manipulation.reshape(moved, (_math.prod(indices.shape), *rest))
    summed = segment_sum(rows, manipulation.ravel(_positive(indices, count)), count)
    return manipulation.moveaxis(summed, 0, axis) if axis else summed


def _positive(indices: Any, count: int) -> Any:
    return comparison.where(comparison.less(indices, 0), math.add(indices, count), indices)


def _take_along_axis(g: Any, out: Any, x: Any, indices: Any, *, axis: int = -1) -> Any:
    axis = axis % len(x.shape)
    shape = tuple(n if i == axis else max(m, n) for i, (m, n) in enumerate(zip(x.shape, indices.shape, strict=True)))
    whole = tuple(x.shape[axis] if i == axis else n for i, n in enumerate(shape))
    return put_back(g, manipulation.broadcast_to(x, whole), manipulation.broadcast_to(indices, shape), axis)


def put_back(g: Any, x: Any, indices: Any, axis: int) -> Any:
    """Zeros like ``x``, with every element of ``g`` added at the position along ``axis`` given by ``indices``."""
    count = x.shape[axis]
    rows, places = manipulation.moveaxis(g, axis, -1), manipulation.moveaxis(indices, axis, -1)
    front = tuple(rows.shape[:-1])
    number = _math.prod(front)
    starts = manipulation.reshape(math.multiply(creation.arange(number), count), (*front, 1))
    targets = manipulation.ravel(math.add(_positive(places, count), starts))
    summed = segment_sum(manipulation.ravel(rows), targets, number * count)
    return manipulation.moveaxis(manipulation.reshape(summed, (*front, count)), -1, axis)


def _index_get(g: Any, out: Any, x: Any, index: Any) -> Any:
    return index_add(creation.zeros_like(x), index, g)


def _last(x: Any, index: Any, values: Any) -> Any:
    """Mask of the values that are kept: of several writes to one element, the last one wins."""
    spread = index_get(creation.zeros(x.shape, dtype="int64"), index)
    numbers = manipulation.reshape(creation.arange(1, _math.prod(spread.shape) + 1), spread.shape)
    kept = index_update(creation.zeros(x.shape, dtype="int64"), index, numbers)
    return comparison.equal(index_get(kept, index), numbers)


def _updated_values(g: Any, out: Any, x: Any, index: Any, values: Any) -> Any:
    return comparison.where(_last(x, index, values), index_get(g, index), 0)


def _sorted(g: Any, out: Any, x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return put_back(g, x, argsort(x, axis=axis, descending=descending, stable=True), axis)


def _extreme_shares(g: Any, out: Any, x: Any, indices: Any, updates: Any, axis: int) -> tuple[Any, Any]:
    """Gradients of ``x`` and of the updates: all that equal the result share its gradient."""
    axis = axis % len(x.shape)
    count = x.shape[axis]
    ids = manipulation.ravel(_positive(indices, count))
    spread = manipulation.broadcast_to(updates, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    shape = tuple(ids.shape[0] if i == axis else n for i, n in enumerate(x.shape))
    rows = manipulation.moveaxis(manipulation.reshape(spread, shape), axis, 0)
    top = manipulation.moveaxis(out, axis, 0)
    own = dtypes.cast(comparison.equal(manipulation.moveaxis(x, axis, 0), top), x.dtype)
    tied = dtypes.cast(comparison.equal(rows, take(top, ids, axis=0)), x.dtype)
    number = math.add(own, segment_sum(tied, ids, count))
    share = math.divide(manipulation.moveaxis(g, axis, 0), number)
    of_updates = manipulation.moveaxis(math.multiply(tied, take(share, ids, axis=0)), 0, axis)
    return (
        manipulation.moveaxis(math.multiply(own, share), 0, axis),
        manipulation.reshape(of_updates, spread.shape),
    )


def _scatter_extreme(
    places: Sequence[Any], g: Any, out: Any, x: Any, indices: Any, updates: Any, *, axis: int = 0
) -> Any:
    found = _extreme_shares(g, out, x, indices, updates, axis)
    return [found[0 if place == 0 else 1] for place in places]


def _scatter_add_updates(g: Any, out: Any, x: Any, indices: Any, updates: Any, *, axis: int = 0) -> Any:
    return take(g, indices, axis=axis)


def _segment_extreme(g: Any, out: Any, data: Any, ids: Any, number: Any = None) -> Any:
    tied = dtypes.cast(comparison.equal(data, take(out, ids, axis=0)), data.dtype)
    shares = segment_sum(tied, ids, out.shape[0])
    return math.multiply(
        tied, take(math.divide(g, comparison.where(comparison.equal(shares, 0), 1, shares)), ids, axis=0)
    )


def _segment_prod(data: Any, ids: Any, number: Any = None) -> Any:
    count = number if number is not None else int(stats.max(ids)) + 1  # emberlint: ignore[EMB201] it is part of a shape
    is_member = comparison.equal(manipulation.expand_dims(creation.arange(count), axis=1), ids)
    is_member = manipulation.reshape(is_member, (*is_member.shape, *(1,) * (len(data.shape) - 1)))
    return stats.prod(comparison.where(is_member, data, 1), axis=1)


RULES = {
    "take": (_take, None),
    "take_along_axis": (_take_along_axis, None),
    "index_get": (_index_get,),
    "index_update": (
        lambda g, out, x, index, values: index_update(g, index, 0),
        None,
        _updated_values,
    ),
    "index_add": (lambda g, out, x, index, values: g, None, lambda g, out, x, index, values: index_get(g, index)),
    "sort": (_sorted,),
    "segment_sum": (lambda g, out, data, ids, number=None: take(g, ids, axis=0), None),
    "scatter_add": (lambda g, out, x, indices, updates, *, axis=0: g, None, _scatter_add_updates),
    "bincount": (None, lambda g, out, x, weights, least=0: take(g, x)),
    "segment_max": (_segment_extreme, None),
    "segment_min": (_segment_extreme, None),
}

JOINT = {"scatter_max": _scatter_extreme, "scatter_min": _scatter_extreme}

FORMULAS = {"segment_prod": _segment_prod}

MOVES = {"masked_select"}
