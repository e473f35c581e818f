"""Indexing, scattering, searching, sorting, counting and segments."""

from __future__ import annotations

import builtins as _builtins
import math as _math
import operator as _operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from ember_ml.dispatch import op
from ember_ml.dtypes import (
    KINDS,
    as_dtype,
    compared,
    default_float,
    float_of,
    floating,
    free,
    indexed,
    int64,
    kept,
    promoted,
)
from ember_ml.ops import _forms, comparison, control, creation, device, dtypes, manipulation, math, stats
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.indexing import top_k_axis as _top_k_axis
from ember_ml.types import Axis, DTypeLike, Indices, Mask, Shape, Tensor, TensorLike


class UniqueAll(NamedTuple):
    """Result of ``unique_all``."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Result of ``unique_counts``."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Result of ``unique_inverse``."""

    values: Tensor
    inverse_indices: Tensor


@op(kept, engine="x, indices, *, axis", form=_forms.take)
def take(x: TensorLike, indices: Indices, /, axis: int | None = None, *, mode: str = "raise") -> Tensor:
    """Elements of ``x`` at ``indices`` along ``axis``.

    The shape is that of ``x`` with the axis replaced by the shape of ``indices``. Negative indices count from the end.

    Args:
        axis: an axis, or ``None`` to take from the flattened tensor.
        mode: ``"wrap"`` or ``"clip"`` bring indices that are out of range into it; by default they raise
            ``IndexError``.

    >>> take([[1, 2, 3], [4, 5, 6]], [2, 0], axis=1).tolist()
    [[3, 1], [6, 4]]
    """
    ...


@op(kept, engine="x, indices, *, axis", form=_forms.take_along_axis)
def take_along_axis(x: TensorLike, indices: Indices, /, axis: int | None = -1) -> Tensor:
    """Elements of ``x`` at ``indices`` along ``axis``, with separate indices for each row.

    ``indices``, such as the result of ``argsort``, has as many axes as ``x``; all but ``axis`` broadcast.

    Args:
        axis: an axis, or ``None`` to take from the flattened tensor.

    >>> take_along_axis([[10, 30, 20]], [[0, 2, 1]], axis=1).tolist()
    [[10, 20, 30]]
    """
    ...


@op(kept)
def put_along_axis(x: TensorLike, indices: Indices, values: TensorLike, /, axis: int | None = -1) -> Tensor:
    """``x`` with ``values`` at ``indices`` along ``axis``, with separate indices for each row.

    ``indices`` is as in ``take_along_axis``. If an index occurs more than once, the last value wins.

    Args:
        axis: an axis, or ``None`` for indices into the flattened tensor.

    >>> put_along_axis([[10, 30, 20]], [[1]], 99, axis=1).tolist()
    [[10, 99, 20]]
    """
    shape = _shape(x)
    if axis is None:
        return manipulation.reshape(put_along_axis(manipulation.ravel(x), indices, values, 0), shape)
    axis = _axis(axis, len(shape))
    if len(_shape(indices)) != len(shape):
        raise ValueError(f"indices must have {len(shape)} axes, as x has, got {len(_shape(indices))}")
    index = _grids(shape, x)
    index[axis] = indices
    return index_update(x, tuple(index), values)


@op(kept)
def gather(x: TensorLike, indices: Indices, /, axis: int = 0) -> Tensor:
    """Slices of ``x`` at ``indices`` along ``axis``.

    The shape is that of ``x`` with the axis replaced by the shape of ``indices``.

    >>> gather([[1, 2], [3, 4]], [1, 1]).tolist()
    [[3, 4], [3, 4]]
    """
    return take(x, indices, axis=axis)


@op(kept)
def gather_nd(x: TensorLike, indices: Indices, /, *, batch_dims: int = 0) -> Tensor:
    """Slices of ``x`` at the coordinates in the last axis of ``indices``.

    ``result[b, i] = x[b, indices[b, i, 0], ..., indices[b, i, k - 1]]``, where ``b`` are the batch axes. Negative
    coordinates are not supported.

    Args:
        batch_dims: number of leading axes that ``x`` and ``indices`` share.

    >>> gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]).tolist()
    [2, 3]
    """
    shape, places = _shape(x), _shape(indices)
    if not places or batch_dims + places[-1] > len(shape) or not 0 <= batch_dims < len(places):
        raise ValueError(
            f"indices must have coordinates of x along their last axis, got shapes {list(places)} and {list(shape)}"
        )
    batch, inner, rest = (
        shape[:batch_dims],
        shape[batch_dims : batch_dims + places[-1]],
        shape[batch_dims + places[-1] :],
    )
    if places[:batch_dims] != batch:
        raise ValueError(f"indices must have the batch axes of x, {list(batch)}, got {list(places[:batch_dims])}")
    place = _place(indices, inner)
    if batch_dims:
        first = math.multiply(_count(_math.prod(batch), x), _math.prod(inner))
        place = math.add(place, manipulation.reshape(first, batch + (1,) * (len(places) - 1 - batch_dims)))
    return take(manipulation.reshape(x, (_math.prod(batch + inner), *rest)), place, axis=0)


@op(kept)
def scatter(x: TensorLike, indices: Indices, updates: TensorLike, /, *, axis: int = 0, mode: str = "set") -> Tensor:
    """``x`` with ``updates`` combined into it at ``indices`` along ``axis``.

    With ``axis=0``: ``result[i] = combine(x[i], *(updates[j] for j where indices[j] == i))``. ``indices`` has one axis.
    ``updates`` has the shape of ``x`` with the axis as long as ``indices``, or broadcasts to it.

    Args:
        mode: ``"set"`` (the last update of an index wins), ``"add"``, ``"multiply"``, ``"max"``, ``"min"``, or
            ``"mean"`` (of the updates, without ``x``). Elements without updates keep their value.

    >>> scatter([1, 2, 3], [0, 2, 2], [10, 20, 30], mode="set").tolist()
    [10, 2, 30]
    >>> scatter([1, 2, 3], [0, 2, 2], [10, 20, 30], mode="add").tolist()
    [11, 2, 53]
    """
    if mode == "add":
        return scatter_add(x, indices, updates, axis=axis)
    if mode == "max":
        return scatter_max(x, indices, updates, axis=axis)
    if mode == "min":
        return scatter_min(x, indices, updates, axis=axis)
    if mode not in ("set", "multiply", "mean"):
        raise ValueError(f"mode must be 'set', 'add', 'multiply', 'max', 'min' or 'mean', got {mode!r}")
    shape = _shape(x)
    axis = _axis(axis, len(shape))
    if len(_shape(indices)) != 1:
        raise ValueError(f"indices must have 1 axis, got {len(_shape(indices))}")
    if mode == "set":
        return index_update(x, (_builtins.slice(None),) * axis + (indices,), updates)
    updates = manipulation.broadcast_to(updates, (*shape[:axis], _shape(indices)[0], *shape[axis + 1 :]))
    updates = manipulation.moveaxis(updates, axis, 0)
    indices = comparison.where(comparison.less(indices, 0), math.add(indices, shape[axis]), indices)
    if mode == "multiply":
        return math.multiply(x, manipulation.moveaxis(segment_prod(updates, indices, shape[axis]), 0, axis))
    if as_dtype(_of(x).dtype).kind not in KINDS["floating"]:
        raise TypeError(f"x must be floating for mode='mean', got {as_dtype(_of(x).dtype).name}")
    means = manipulation.moveaxis(segment_mean(updates, indices, shape[axis]), 0, axis)
    counts = segment_sum(creation.ones_like(indices), indices, shape[axis])
    counts = manipulation.reshape(counts, (-1, *(1,) * (len(shape) - axis - 1)))
    return comparison.where(comparison.greater(counts, 0), means, x)


@op(kept, kinds="numeric")
def scatter_add(x: TensorLike, indices: Indices, updates: TensorLike, /, *, axis: int = 0) -> Tensor:
    """``x`` with ``updates`` added at ``indices`` along ``axis``: ``scatter`` with ``mode="add"``.

    >>> scatter_add([1, 2, 3], [0, 2, 2], [10, 20, 30]).tolist()
    [11, 2, 53]
    """
    ...


@op(kept, kinds="real numeric")
def scatter_max(x: TensorLike, indices: Indices, updates: TensorLike, /, *, axis: int = 0) -> Tensor:
    """``x``, or the larger of ``x`` and ``updates`` at ``indices`` along ``axis``: ``scatter`` with ``mode="max"``.

    >>> scatter_max([1, 2, 3], [0, 2, 2], [10, 0, 30]).tolist()
    [10, 2, 30]
    """
    ...


@op(kept, kinds="real numeric")
def scatter_min(x: TensorLike, indices: Indices, updates: TensorLike, /, *, axis: int = 0) -> Tensor:
    """``x``, or the smaller of ``x`` and ``updates`` at ``indices`` along ``axis``: ``scatter`` with ``mode="min"``.

    >>> scatter_min([1, 2, 3], [0, 2, 2], [10, 0, 30]).tolist()
    [1, 2, 0]
    """
    ...


@op(kept)
def tensor_scatter_nd_update(x: TensorLike, indices: Indices, updates: TensorLike, /) -> Tensor:
    """``x`` with slices replaced at the coordinates in the last axis of ``indices``.

    ``result[indices[i, 0], ..., indices[i, k - 1]] = updates[i]``. Negative coordinates are not supported. If
    coordinates occur more than once, the last update wins.

    >>> tensor_scatter_nd_update([[1, 2], [3, 4]], [[0, 1], [1, 0]], [8, 9]).tolist()
    [[1, 8], [9, 4]]
    """
    shape, places = _shape(x), _shape(indices)
    if not places or places[-1] > len(shape):
        raise ValueError(
            f"indices must have coordinates of x along their last axis, got shapes {list(places)} and {list(shape)}"
        )
    inner, rest = shape[: places[-1]], shape[places[-1] :]
    if _shape(updates) != places[:-1] + rest:
        raise ValueError(f"updates must have shape {list(places[:-1] + rest)}, got {list(_shape(updates))}")
    place = manipulation.reshape(_place(indices, inner), (-1,))
    rows = manipulation.reshape(x, (_math.prod(inner), *rest))
    updates = manipulation.reshape(updates, (_math.prod(places[:-1]), *rest))
    return manipulation.reshape(index_update(rows, place, updates), shape)


@op(kept)
def index_get(x: TensorLike, index: object, /) -> Tensor:
    """``x[index]``, by NumPy's rules on every engine.

    Args:
        index: any NumPy index: integers, slices, ``...``, ``None``, tensors of integers or bool, or a tuple of these.

    >>> index_get([[1, 2], [3, 4]], (..., [1, 0, 1])).tolist()
    [[2, 1, 2], [4, 3, 4]]
    """
    ...


@op(kept)
def index_update(x: TensorLike, index: object, values: TensorLike, /) -> Tensor:
    """Copy of ``x`` with ``x[index]`` replaced by ``values``.

    If the index selects an element more than once, the last value wins.

    Args:
        index: as in ``index_get``.

    >>> index_update([[1, 2], [3, 4]], (..., 0), 9).tolist()
    [[9, 2], [9, 4]]
    """
    ...


@op(kept, kinds="numeric")
def index_add(x: TensorLike, index: object, values: TensorLike, /) -> Tensor:
    """Copy of ``x`` with ``values`` added to ``x[index]``.

    If the index selects an element more than once, all values are added.

    Args:
        index: as in ``index_get``.

    >>> index_add([1, 2, 3], [0, 0, 2], 10).tolist()
    [21, 2, 13]
    """
    ...


@op(kept)
def slice(x: TensorLike, start: object, shape: Shape, /) -> Tensor:
    """Block of ``x`` with the given start and shape.

    Args:
        start: one integer per axis, or a tensor of them, which compiled code can compute.

    >>> slice([[1, 2, 3], [4, 5, 6]], (0, 1), (2, 2)).tolist()
    [[2, 3], [5, 6]]
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    corner = _corner(x, start, sizes)
    if isinstance(corner, tuple):
        return _of(x)[corner]  # type: ignore[no-any-return]
    block: Any = x
    for axis, size in enumerate(sizes):
        block = take(block, math.add(corner[axis], _count(size, x)), axis=axis)
    return block  # type: ignore[no-any-return]


@op(kept)
def slice_update(x: TensorLike, start: object, updates: TensorLike, /) -> Tensor:
    """Copy of ``x`` with the block at ``start`` replaced by ``updates``.

    Args:
        start: as in ``slice``.

    >>> slice_update([[1, 2, 3], [4, 5, 6]], (0, 1), [[8, 9]]).tolist()
    [[1, 8, 9], [4, 5, 6]]
    """
    sizes = _shape(updates)
    corner = _corner(x, start, sizes)
    if isinstance(corner, tuple):
        return index_update(x, corner, updates)
    grids = _grids(sizes, x)
    return index_update(x, tuple(math.add(corner[i], grid) for i, grid in enumerate(grids)), updates)


@op(kept, lazy=False)
def masked_select(x: TensorLike, mask: Mask, /) -> Tensor:
    """Elements of ``x`` where ``mask`` is true, as a vector; the two broadcast.

    >>> masked_select([[1, 2], [3, 4]], [[True, False], [True, True]]).tolist()
    [1, 3, 4]
    """
    ...


@op(kept)
def masked_fill(x: TensorLike, mask: Mask, value: TensorLike, /) -> Tensor:
    """``x``, or ``value`` where ``mask`` is true; both broadcast to the shape of ``x``.

    >>> masked_fill([1, 2, 3], [True, False, True], 0).tolist()
    [0, 2, 0]
    """
    mask = manipulation.broadcast_to(mask, _shape(x))
    return comparison.where(mask, manipulation.broadcast_to(value, _shape(x)), x)


@op(indexed, lazy=False, differentiable=False)
def nonzero(x: TensorLike, /) -> tuple[Tensor, ...]:
    """Indices of the nonzero elements, one tensor per axis.

    >>> [p.tolist() for p in nonzero([[0, 5], [6, 0]])]
    [[0, 1], [1, 0]]
    """
    ...


@op(indexed, lazy=False, differentiable=False)
def argwhere(x: TensorLike, /) -> Tensor:
    """Indices of the nonzero elements, one row per element.

    >>> argwhere([[0, 5], [6, 0]]).tolist()
    [[0, 1], [1, 0]]
    """
    ...


@op(indexed, differentiable=False, engine="x, *, axis, keepdims")
def count_nonzero(x: TensorLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Number of nonzero elements along ``axis``.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.

    >>> count_nonzero([[0, 5], [6, 7]], axis=1).tolist()
    [1, 2]
    """
    return stats.sum(comparison.not_equal(x, 0), axis=axis, keepdims=keepdims)


@op(indexed, kinds="real", differentiable=False, engine="x1, x2, *, side, sorter")
def searchsorted(x1: TensorLike, x2: TensorLike, /, side: str = "left", sorter: Indices | None = None) -> Tensor:
    """Indices at which to insert the elements of ``x2`` into the sorted ``x1`` to keep it sorted.

    Args:
        side: ``"left"`` inserts before equal elements, ``"right"`` after them.
        sorter: indices that sort ``x1``, if it is not sorted.

    >>> searchsorted([1, 2, 2, 3], [2, 5]).tolist()
    [1, 4]
    """
    ...


@op(indexed, kinds="real", differentiable=False)
def digitize(x: TensorLike, bins: TensorLike, /, right: bool = False) -> Tensor:
    """Index of the bin that contains each element of ``x``.

    Bin ``i`` is ``bins[i - 1] <= x < bins[i]``, or ``bins[i - 1] > x >= bins[i]`` for descending bins. Elements before
    the first boundary are in bin 0, those after the last in bin ``len(bins)``.

    Args:
        bins: ascending or descending boundaries.
        right: whether a bin includes its upper boundary instead of its lower one.

    >>> digitize([0.5, 1.0, 9.0], [0.0, 1.0, 2.0]).tolist()
    [1, 2, 3]
    """
    (count,) = _shape(bins) if len(_shape(bins)) == 1 else (None,)
    if count is None:
        raise ValueError(f"bins must have 1 axis, got {len(_shape(bins))}")
    if count < 2:
        return searchsorted(bins, x, side="left" if right else "right")
    rising = comparison.all(comparison.less_equal(_of(bins)[:-1], _of(bins)[1:]))
    upward = comparison.where(rising, bins, manipulation.flip(bins))
    place = searchsorted(upward, x, side="left" if right else "right")
    return comparison.where(rising, place, math.subtract(count, place))


@op(floating, kinds="real", lazy=False)
def bincount(x: Indices, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """Number of occurrences in ``x`` of each integer from 0, as int64.

    Args:
        weights: weights of the elements; the result is then their sum per integer, as a float.
        minlength: the least length of the result, which otherwise ends at the largest element.

    >>> bincount([0, 2, 2]).tolist()
    [1, 0, 2]
    >>> bincount([0, 2, 2], [0.5, 1.0, 2.0]).tolist()
    [0.5, 0.0, 3.0]
    """
    ...


@op(free, kinds="real", lazy=False, differentiable=False)
def histogram(
    x: TensorLike,
    bins: object = 10,
    range: tuple[float, float] | None = None,
    weights: TensorLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Counts of the elements of ``x`` in each bin, and the edges of the bins.

    A bin includes its lower edge; the last one also includes its upper edge. Counts are int64, or floats with
    ``weights`` or ``density``. Edges have the dtype of ``x``, or the default float.

    Args:
        bins: the number of bins of equal width, or their edges.
        range: the outer edges, by default the smallest and the largest element.
        weights: weights of the elements, which are counted as 1 by default.
        density: whether to scale the counts so that the area of the bins is 1.

    >>> counts, edges = histogram([1, 2, 2, 5], bins=2)
    >>> counts.tolist(), edges.tolist()
    ([3, 1], [1.0, 3.0, 5.0])
    """
    flat = dtypes.cast(manipulation.ravel(control.stop_gradient(x)), float_of(as_dtype(_of(x).dtype)))
    edges = _edges(flat, bins, range)
    count = _shape(edges)[0] - 1
    within = comparison.logical_and(
        comparison.greater_equal(flat, _of(edges)[0]), comparison.less_equal(flat, _of(edges)[-1])
    )
    if weights is not None:
        if _shape(weights) != _shape(x):
            raise ValueError(f"weights must have the shape of x, {list(_shape(x))}, got {list(_shape(weights))}")
        weights = masked_select(manipulation.ravel(control.stop_gradient(weights)), within)
    place = math.subtract(searchsorted(edges, masked_select(flat, within), side="right"), 1)
    counts = bincount(math.minimum(place, count - 1), weights, minlength=count)
    if density:
        counts = dtypes.cast(counts, as_dtype(_of(edges).dtype))
        widths = math.subtract(_of(edges)[1:], _of(edges)[:-1])
        counts = math.divide(math.divide(counts, widths), stats.sum(counts))
    return counts, edges


@op(indexed, kinds="real", differentiable=False, engine="x, *, axis, keepdims")
def argmax(x: TensorLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Index of the largest element along ``axis``: the first one if several are equal, or the first NaN.

    Args:
        axis: an axis, or ``None`` for the index into the flattened tensor.
        keepdims: keep the reduced axis with length 1.

    >>> argmax([[1, 9, 3], [8, 5, 8]], axis=1).tolist()
    [1, 0]
    """
    ...


@op(indexed, kinds="real", differentiable=False, engine="x, *, axis, keepdims")
def argmin(x: TensorLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Index of the smallest element along ``axis``: the first one if several are equal, or the first NaN.

    Args:
        axis: an axis, or ``None`` for the index into the flattened tensor.
        keepdims: keep the reduced axis with length 1.

    >>> argmin([[1, 9, 3], [8, 5, 5]], axis=1).tolist()
    [0, 1]
    """
    ...


@op(kept, kinds="real", engine="x, *, axis, descending, stable", form=_forms.sort)
def sort(
    x: TensorLike, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True, kind: str | None = None
) -> Tensor:
    """``x`` sorted along ``axis``; NaN is larger than all numbers.

    Args:
        descending: sort from largest to smallest.
        stable: accepted for compatibility; sorting is always stable.
        axis: an axis, or ``None`` to sort the flattened tensor.
        kind: accepted for compatibility, as ``stable``.

    >>> sort([3, 1, 2]).tolist()
    [1, 2, 3]
    >>> sort([3, 1, 2], descending=True).tolist()
    [3, 2, 1]
    """
    ...


@op(indexed, kinds="real", differentiable=False, engine="x, *, axis, descending, stable", form=_forms.argsort)
def argsort(
    x: TensorLike, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True, kind: str | None = None
) -> Tensor:
    """Indices that sort ``x`` along ``axis``; NaN is larger than all numbers.

    Args:
        descending: sort from largest to smallest.
        stable: accepted for compatibility; sorting is always stable.
        axis: an axis, or ``None`` to sort the flattened tensor.
        kind: accepted for compatibility, as ``stable``.

    >>> argsort([3, 1, 2]).tolist()
    [1, 2, 0]
    """
    ...


@op(kept, kinds="real")
def partition(x: TensorLike, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """``x`` with its ``kth`` smallest elements in sorted position, smaller ones before and larger ones after them.

    The other elements are sorted too, so that the result is the same on every engine.

    Args:
        kth: one index into the sorted elements, or several.
        axis: the axis to partition along, or ``None`` for the flattened tensor.

    >>> partition([3, 1, 2], 1).tolist()
    [1, 2, 3]
    """
    if axis is None:
        x, axis = manipulation.ravel(x), 0
    _check_kth(x, kth, axis)
    return sort(x, axis=axis)


@op(indexed, kinds="real", differentiable=False)
def argpartition(x: TensorLike, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """Indices that partition ``x`` along ``axis``, as in ``partition``.

    Args:
        kth: one index into the sorted elements, or several.
        axis: the axis to partition along, or ``None`` for the flattened tensor.

    >>> argpartition([3, 1, 2], 1).tolist()
    [1, 2, 0]
    """
    if axis is None:
        x, axis = manipulation.ravel(x), 0
    _check_kth(x, kth, axis)
    return argsort(x, axis=axis)


@op(free, kinds="real")
def top_k(x: TensorLike, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along ``axis``, largest first, and their indices as int64.

    Of equal elements, the first ones are chosen.

    Args:
        largest: ``False`` for the ``k`` smallest, smallest first.
        sorted: ``False`` allows any order; engines on which that is no faster sort anyway.

    >>> values, places = top_k([1.0, 9.0, 3.0], 2)
    >>> values.tolist(), places.tolist()
    ([9.0, 3.0], [1, 2])
    """
    shape = _shape(x)
    axis = _top_k_axis(shape, k, axis)
    first = (_builtins.slice(None),) * axis + (_builtins.slice(0, k),)
    places = _of(argsort(x, axis=axis, descending=largest))[first]
    return take_along_axis(x, places, axis=axis), places


@op(compared, kinds="real numeric", differentiable=False)
def in_top_k(targets: Indices, predictions: TensorLike, k: int) -> Tensor:
    """Whether the prediction for each target class is among the ``k`` largest.

    True where fewer than ``k`` predictions are larger and that of the target is finite. ``predictions`` has the shape
    of ``targets`` with a last axis of classes.

    >>> in_top_k([1, 0], [[0.1, 0.7, 0.2], [0.2, 0.3, 0.5]], k=2).tolist()
    [True, False]
    """
    own = take_along_axis(predictions, manipulation.expand_dims(targets, axis=-1), axis=-1)
    larger = count_nonzero(comparison.greater(predictions, own), axis=-1)
    return comparison.logical_and(comparison.less(larger, k), manipulation.squeeze(comparison.isfinite(own), axis=-1))


@op(free, lazy=False, differentiable=False)
def unique(
    x: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Distinct elements of ``x``, sorted; a tuple if any of the ``return_`` options is true.

    Args:
        return_index: also return the index of the first occurrence of each element.
        return_inverse: also return the indices into the result that reconstruct ``x``.
        return_counts: also return the number of occurrences of each element.
        axis: compare slices along this axis instead of elements.
        equal_nan: whether all NaNs are one element.

    >>> unique([3, 1, 3]).tolist()
    [1, 3]
    >>> [t.tolist() for t in unique([3, 1, 3], return_index=True, return_counts=True)]
    [[1, 3], [1, 0], [1, 2]]
    """
    ...


@op(free, lazy=False, differentiable=False)
def unique_all(x: TensorLike, /) -> UniqueAll:
    """Distinct elements of ``x``, their first indices, the indices that reconstruct ``x``, and their counts.

    Each NaN is a distinct element.

    >>> unique_all([3, 1, 3]).counts.tolist()
    [1, 2]
    """
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


@op(free, lazy=False, differentiable=False)
def unique_counts(x: TensorLike, /) -> UniqueCounts:
    """Distinct elements of ``x``, and the number of occurrences of each.

    Each NaN is a distinct element.

    >>> unique_counts([3, 1, 3]).counts.tolist()
    [1, 2]
    """
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


@op(free, lazy=False, differentiable=False)
def unique_inverse(x: TensorLike, /) -> UniqueInverse:
    """Distinct elements of ``x``, and the indices into them that reconstruct ``x``.

    Each NaN is a distinct element.

    >>> unique_inverse([3, 1, 3]).inverse_indices.tolist()
    [1, 0, 1]
    """
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


@op(kept, lazy=False, differentiable=False)
def unique_values(x: TensorLike, /) -> Tensor:
    """Distinct elements of ``x``, sorted; each NaN is a distinct element.

    >>> unique_values([3, 1, 3]).tolist()
    [1, 3]
    """
    return unique(x, equal_nan=False)  # type: ignore[no-any-return]


@op(promoted, kinds="real", lazy=False, differentiable=False)
def intersect1d(x1: TensorLike, x2: TensorLike, /, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Distinct elements that ``x1`` and ``x2`` share, sorted.

    Args:
        assume_unique: promise that neither tensor contains an element twice.
        return_indices: return a tuple of the elements, their first indices in ``x1`` and those in ``x2``.

    >>> intersect1d([3, 1, 2, 1], [5, 1, 3]).tolist()
    [1, 3]
    """
    if assume_unique:
        both = manipulation.concatenate([manipulation.ravel(x1), manipulation.ravel(x2)])
        order = _of(argsort(both))
        elements = _of(take(both, order))
        paired = comparison.equal(elements[1:], elements[:-1])
        if not return_indices:
            return masked_select(elements[:-1], paired)
        second = math.subtract(masked_select(order[1:], paired), _math.prod(_shape(x1)))
        return masked_select(elements[:-1], paired), masked_select(order[:-1], paired), second
    ones, first = unique(x1, return_index=True)
    twos, second = unique(x2, return_index=True)
    shared = comparison.isin(ones, twos)
    if not return_indices:
        return masked_select(ones, shared)
    return masked_select(ones, shared), masked_select(first, shared), masked_select(second, comparison.isin(twos, ones))


@op(promoted, lazy=False, differentiable=False)
def union1d(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Distinct elements of ``x1`` and ``x2`` together, sorted.

    >>> union1d([3, 1], [2, 1]).tolist()
    [1, 2, 3]
    """
    return unique(manipulation.concatenate([manipulation.ravel(x1), manipulation.ravel(x2)]))  # type: ignore[no-any-return]


@op(promoted, kinds="real", lazy=False, differentiable=False)
def setdiff1d(x1: TensorLike, x2: TensorLike, /, assume_unique: bool = False) -> Tensor:
    """Distinct elements of ``x1`` that are not in ``x2``, sorted.

    Args:
        assume_unique: promise that neither tensor contains an element twice; the result then has the order of ``x1``.

    >>> setdiff1d([3, 1, 2, 1], [2]).tolist()
    [1, 3]
    """
    own = manipulation.ravel(x1) if assume_unique else unique(x1)
    return masked_select(own, comparison.logical_not(comparison.isin(own, x2)))


@op(indexed, differentiable=False, engine="indices, shape, /")
def unravel_index(indices: Indices, shape: Shape) -> tuple[Tensor, ...]:
    """Coordinates in a tensor of shape ``shape`` for indices into the flattened tensor, one tensor per axis.

    >>> [c.tolist() for c in unravel_index([1, 5], (2, 3))]
    [[0, 1], [1, 2]]
    """
    ...


@op(indexed, differentiable=False, engine="multi_index, shape, /", form=_forms.ravel_multi_index)
def ravel_multi_index(multi_index: Sequence[Indices], shape: Shape, *, mode: str | Sequence[str] = "raise") -> Tensor:
    """Indices into a flattened tensor of shape ``shape`` for coordinates, which broadcast.

    Args:
        mode: ``"wrap"`` or ``"clip"`` bring coordinates that are out of range into it, for all axes or one by one.

    >>> ravel_multi_index(([0, 1], [1, 2]), (2, 3)).tolist()
    [1, 5]
    """
    ...


@op(free, differentiable=False)
def one_hot(x: Indices, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """One-hot encoding of ``x`` along a new axis.

    Integers outside of ``0 .. num_classes - 1`` give only zeros.

    Args:
        dtype: the dtype of the result, by default the default float.

    >>> one_hot([2, 0], 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    axis = _axis(axis, len(_shape(x)) + 1)
    classes = manipulation.reshape(_count(num_classes, x), (-1,) + (1,) * (len(_shape(x)) - axis))
    hits = comparison.equal(manipulation.expand_dims(x, axis=axis), classes)
    return dtypes.cast(hits, default_float() if dtype is None else dtype)


@op(free, differentiable=False)
def multi_hot(x: Indices, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """Multi-hot encoding of the classes in the last axis of ``x``: 1 for each class that occurs there.

    The classes replace the last axis and are then moved to ``axis``.

    Args:
        dtype: the dtype of the result, by default the default float.

    >>> multi_hot([[0, 2], [1, 1]], 3).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if not _shape(x):
        raise ValueError("x must have at least 1 axis, got a 0-d tensor")
    axis = _axis(axis, len(_shape(x)))
    hits = comparison.equal(manipulation.expand_dims(x, axis=-1), _count(num_classes, x))
    found = manipulation.moveaxis(comparison.any(hits, axis=-2), -1, axis)
    return dtypes.cast(found, default_float() if dtype is None else dtype)


@op(kept, kinds="numeric")
def segment_sum(data: TensorLike, segment_ids: Indices, num_segments: int | None = None) -> Tensor:
    """Sum of the rows of ``data`` in each segment; 0 for an empty segment.

    Args:
        segment_ids: the segment of each row, a number from 0, in any order.
        num_segments: the number of segments, by default the largest id plus one. Compiled code requires it.

    >>> segment_sum([1, 2, 3], [0, 0, 2], 3).tolist()
    [3, 0, 3]
    """
    ...


@op(floating)
def segment_mean(data: TensorLike, segment_ids: Indices, num_segments: int | None = None) -> Tensor:
    """Mean of the rows of ``data`` in each segment; 0 for an empty segment.

    Args:
        segment_ids, num_segments: as in ``segment_sum``.

    >>> segment_mean([1, 2, 3], [0, 0, 2], 3).tolist()
    [1.5, 0.0, 3.0]
    """
    total = segment_sum(data, segment_ids, num_segments)
    counts = segment_sum(creation.ones_like(segment_ids), segment_ids, _shape(total)[0])
    counts = manipulation.reshape(math.maximum(counts, 1), (-1,) + (1,) * (len(_shape(total)) - 1))
    return math.divide(total, counts)


@op(kept, kinds="real numeric")
def segment_max(data: TensorLike, segment_ids: Indices, num_segments: int | None = None) -> Tensor:
    """Maximum of the rows of ``data`` in each segment; the lowest value of the dtype for an empty segment.

    Args:
        segment_ids, num_segments: as in ``segment_sum``.

    >>> segment_max([1.0, 2.0, 3.0], [0, 0, 2], 3).tolist()
    [2.0, -inf, 3.0]
    """
    ...


@op(kept, kinds="real numeric")
def segment_min(data: TensorLike, segment_ids: Indices, num_segments: int | None = None) -> Tensor:
    """Minimum of the rows of ``data`` in each segment; the highest value of the dtype for an empty segment.

    Args:
        segment_ids, num_segments: as in ``segment_sum``.

    >>> segment_min([1.0, 2.0, 3.0], [0, 0, 2], 3).tolist()
    [1.0, inf, 3.0]
    """
    ...


@op(kept, kinds="numeric")
def segment_prod(data: TensorLike, segment_ids: Indices, num_segments: int | None = None) -> Tensor:
    """Product of the rows of ``data`` in each segment; 1 for an empty segment.

    Args:
        segment_ids, num_segments: as in ``segment_sum``.

    >>> segment_prod([4, 2, 3], [0, 0, 2], 3).tolist()
    [8, 1, 3]
    """
    ...


def _of(x: Any) -> Any:
    """``x`` as ``Any``: inside an operation, a ``TensorLike`` is a tensor."""
    return x


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _count(n: int, like: Any) -> Tensor:
    """Integers from 0 to ``n - 1`` on the device of ``like``."""
    return creation.arange(n, dtype=int64, device=device.get_device(like))


def _grids(sizes: tuple[int, ...], like: Any) -> list[Any]:
    """Indices along each axis, shaped to broadcast with those along the others."""
    return [
        manipulation.reshape(_count(size, like), (size,) + (1,) * (len(sizes) - 1 - axis))
        for axis, size in enumerate(sizes)
    ]


def _place(indices: Any, dims: tuple[int, ...]) -> Tensor:
    """Indices into the flattened block of shape ``dims`` for the coordinates in the last axis of ``indices``."""
    if not dims:
        return creation.zeros(_shape(indices)[:-1], dtype=int64, device=device.get_device(indices))
    return ravel_multi_index([indices[..., i] for i in _builtins.range(len(dims))], dims)


def _corner(x: Any, start: Any, sizes: tuple[int, ...]) -> Any:
    """Slices that begin at ``start`` if it holds Python integers, else ``start`` as one tensor per axis."""
    shape = _shape(x)
    if isinstance(start, (int, range)):
        start = (start,) if isinstance(start, int) else tuple(start)
    ndim = len(start) if isinstance(start, (tuple, list)) else _math.prod(_shape(start))
    if not len(shape) == ndim == len(sizes):
        raise ValueError(
            f"start and sizes must have one entry for each of {len(shape)} axes, got {ndim} and {len(sizes)}"
        )
    if any(size > whole or size < 0 for size, whole in zip(sizes, shape, strict=True)):
        raise ValueError(f"the block must fit into x of shape {list(shape)}, got shape {list(sizes)}")
    if not isinstance(start, (tuple, list)) or not all(isinstance(i, int) for i in start):
        return _from_front(creation.asarray(start, dtype=int64, device=device.get_device(x)), shape)
    firsts = [i + whole if i < 0 else i for i, whole in zip(start, shape, strict=True)]
    for first, size, whole in zip(firsts, sizes, shape, strict=True):
        if not 0 <= first <= whole - size:
            raise IndexError(
                f"the block must lie within x of shape {list(shape)}, got shape {list(sizes)} at {list(start)}"
            )
    return tuple(_builtins.slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def _from_front(start: Any, shape: tuple[int, ...]) -> list[Tensor]:
    """Indices per axis with negative ones wrapped; those out of range stay out of range."""
    wrapped = (comparison.where(comparison.less(start[i], -n), n, math.add(start[i], n)) for i, n in enumerate(shape))
    return [comparison.where(comparison.less(start[i], 0), w, start[i]) for i, w in enumerate(wrapped)]


def _edges(flat: Any, bins: Any, ends: tuple[float, float] | None) -> Tensor:
    dtype = as_dtype(flat.dtype)
    try:
        count = _operator.index(bins)
    except TypeError:
        edges = creation.asarray(bins, dtype=dtype, device=device.get_device(flat))
        if _shape(edges) == (0,):
            raise ValueError("bins must have at least 1 edge, got none") from None
        falls = len(_shape(edges)) != 1 or comparison.any(comparison.less(_of(edges)[1:], _of(edges)[:-1]))
        if bool(falls):
            raise ValueError("bins must be edges that increase, along 1 axis") from None
        return edges
    if count < 1:
        raise ValueError(f"bins must be >= 1, got {count}")
    if ends is not None:
        low, high = map(float, ends)
    elif _shape(flat)[0]:
        low, high = float(stats.min(flat)), float(stats.max(flat))  # emberlint: ignore[EMB201] bins span them
    else:
        low, high = 0.0, 1.0
    if not (_math.isfinite(low) and _math.isfinite(high) and low <= high):
        raise ValueError(f"range must be finite and increase, got {low} to {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = (high - low) / count
    listed = [low + step * i for i in _builtins.range(count)] + [high]
    return creation.asarray(listed, dtype=dtype, device=device.get_device(flat))


def _check_kth(x: Any, kth: int | Sequence[int], axis: int) -> None:
    size = _shape(x)[_axis(axis, len(_shape(x)))]
    for k in map(_operator.index, (kth,) if isinstance(kth, int) else kth):
        if not -size <= k < size:
            raise ValueError(f"kth must be from {-size} to {size - 1} for an axis of length {size}, got {k}")
