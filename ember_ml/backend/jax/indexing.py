"""Indexing, searching, sorting, counting and segment reductions on JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ember_ml.backend.jax.core import (
    DTYPES,
    TENSORS,
    cast,
    convert,
    device_like,
    from_host,
    is_traced,
    jitted,
    named,
    static,
    static_lists,
)
from ember_ml.backend.jax.creation import zeros_like
from ember_ml.backend.jax.manipulation import broadcast_to, expand_dims, ravel, reshape
from ember_ml.backend.jax.math import add
from ember_ml.backend.jax.stats import reduction
from ember_ml.backend.numpy import indexing as host
from ember_ml.backend.numpy.indexing import Part, _limit, parts_of
from ember_ml.backend.numpy.sequences import held
from ember_ml.dispatch.checks import is_checked
from ember_ml.dtypes import default_float
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.shapes.indexing import check_bincount, scattered_shape, segment_count, top_k_axis


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    x, axis = (x if x.ndim == 1 else ravel(x), 0) if axis is None else (x, _axis(axis, x.ndim))
    _check(indices, x.shape[axis])
    return _get(x, [indices], (_ALL,) * axis + (...,))


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    if indices.ndim != x.ndim:
        raise ValueError(f"indices must have {x.ndim} axes, as x has, got {indices.ndim}")
    axis = _axis(axis, x.ndim)
    np.broadcast_shapes(*((*shape[:axis], *shape[axis + 1 :]) for shape in (x.shape, indices.shape)))
    _check(indices, x.shape[axis])
    return _take_along_axis(x, indices, axis)


_take_along_axis = jitted(lambda x, places, axis: jnp.take_along_axis(x, places, axis, mode="clip"), "axis")


def _scatter(how: str) -> Callable[..., Array]:
    def run(x: Array, indices: Array, updates: Array, /, *, axis: int = 0) -> Array:
        axis, shape = scattered_shape(x, indices, axis)
        if np.broadcast_shapes(updates.shape, shape) != shape:
            raise ValueError(f"updates must broadcast to {list(shape)}, got {list(updates.shape)}")
        _check(indices, x.shape[axis])
        return _set(x, updates, [indices], (_ALL,) * axis + (...,), how)

    return run


scatter_add, scatter_max, scatter_min = map(_scatter, ("add", "max", "min"))


def index_get(x: Array, index: object, /) -> Array:
    parts = _parts(index, x)
    tensors = _tensors(parts)
    if not tensors:
        return _get_block(x, *_block(x, parts))
    if any(map(_is_mask, tensors)) and _is_on_host(x, tensors):
        # Every count of elements would need a program of its own.
        key = tuple(np.asarray(value) if isinstance(value, TENSORS) else value for value, _ in parts)
        return from_host(np.asarray(x)[key], device_like(x))
    return _get(*_key(x, parts))


def index_update(x: Array, index: object, values: Array, /) -> Array:
    parts = _parts(index, x)
    tensors = [part for part in parts if isinstance(part.value, _ARRAYS)]
    if not tensors:
        return _set_block(x, values, *_block(x, parts))
    is_whole = all(isinstance(value, _ARRAYS) or value == slice(None) for value, _ in parts)
    if len(tensors) == 1 and _is_mask(tensors[0].value) and is_whole:
        return _update_by_mask(x, *tensors[0], values)
    rows, arrays, rest = _key(x, parts)
    return reshape(_set(rows, values, arrays, rest, "set"), x.shape)


def index_add(x: Array, index: object, values: Array, /) -> Array:
    parts = _parts(index, x)
    if all(map(_is_mask, _tensors(parts))):
        return add(x, index_update(zeros_like(x), index, values))
    rows, arrays, rest = _key(x, parts)
    return reshape(_set(rows, values, arrays, rest, "add"), x.shape)


def masked_select(x: Array, mask: Array, /) -> Array:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return index_get(broadcast_to(x, shape), broadcast_to(mask, shape))


masked_fill = jitted(
    lambda x, mask, value, /: jnp.where(jnp.broadcast_to(mask, x.shape), jnp.broadcast_to(value, x.shape), x)
)


def _on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of NumPy's backend, with its results on the device of ``x``."""

    @wraps(function)
    def run(x: Array, *args: Any, **options: Any) -> Any:
        found, device = function(np.asarray(x), *args, **options), device_like(x)
        return tuple(from_host(one, device) for one in found) if isinstance(found, tuple) else from_host(found, device)

    return run


nonzero, argwhere, unique = map(_on_host, (host.nonzero, host.argwhere, host.unique))


count_nonzero = reduction(jnp.count_nonzero)


def searchsorted(x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    host.check_search(x1, side, sorter)
    return _searchsorted(x1 if sorter is None else take(x1, sorter), x2, side)


_searchsorted = jitted(lambda x1, x2, side: jnp.searchsorted(x1, x2, side=side).astype(np.int64), "side")


def bincount(x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    check_bincount(x, weights, minlength)
    counts = host.bincount(np.asarray(x), None, minlength)
    return from_host(counts, device_like(x)) if weights is None else segment_sum(weights, x, counts.size)


argmax, argmin = reduction(jnp.argmax), reduction(jnp.argmin)


@static("axis", "descending", "stable")
def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    axis = _axis(axis, x.ndim)
    # Flipped before and after, equal elements keep their order, and so their gradients.
    found = lax.sort(lax.rev(x, (axis,)) if descending else x, axis)
    return lax.rev(found, (axis,)) if descending else found


@static("axis", "descending", "stable")
def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    return jnp.argsort(x, _axis(axis, x.ndim), stable=True, descending=descending)


@static("k", "axis", "largest", "sorted")
def top_k(x: Array, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    axis = top_k_axis(x.shape, k, axis)
    if jax.default_backend() == "cpu":
        # Much faster than a sort there. JAX 0.10: a negative NaN is the least number, and 0 is larger than -0.
        rows = lax.stop_gradient(jnp.moveaxis(x, axis, -1))
        if jnp.issubdtype(x.dtype, jnp.floating):
            rows = jnp.where(rows == 0, 0, rows if largest else -rows)
            rows = jnp.where(jnp.isnan(rows), jnp.nan if largest else -jnp.nan, rows)
        else:
            rows = rows.astype(np.int8) if x.dtype == bool else rows
            rows = rows if largest else ~rows
        places = jnp.moveaxis(lax.top_k(rows, k)[1], -1, axis)
    else:
        places = lax.slice_in_dim(jnp.argsort(x, axis, descending=largest), 0, k, axis=axis)
    return jnp.take_along_axis(x, places, axis, mode="clip"), places.astype(np.int64)


def unravel_index(indices: Array, shape: Any, /) -> tuple[Array, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    _check(indices, math.prod(sizes), 0)
    return _unravel_index(indices, sizes)


_unravel_index = jitted(lambda indices, sizes: jnp.unravel_index(indices, sizes), "sizes")


def ravel_multi_index(multi_index: Any, shape: Any, /) -> Array:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for indices, size in zip(multi_index, sizes, strict=True):
        _check(indices, size, 0)
    return _ravel_multi_index(tuple(multi_index), sizes)


_ravel_multi_index = jitted(lambda places, sizes: jnp.ravel_multi_index(places, sizes, mode="clip"), "sizes")


def one_hot(x: Array, num_classes: int, axis: int = -1, dtype: np.dtype[Any] | None = None) -> Array:
    return _one_hot(x, max(num_classes, 0), _axis(axis, x.ndim + 1), dtype or named(default_float().name))


_one_hot = jitted(lambda x, n, axis, dtype: jax.nn.one_hot(x, n, axis=axis, dtype=dtype), "n", "axis", "dtype")


def _segments(how: str, empty: float) -> Callable[..., Array]:
    def run(data: Array, segment_ids: Array, num_segments: int | None = None) -> Array:
        count = segment_count(data, segment_ids, num_segments, lambda: int(np.asarray(segment_ids).max(initial=-1)))
        _check(segment_ids, count, 0)
        return _reduced(data, segment_ids, _limit(empty, data.dtype), count, how)

    return run


segment_sum, segment_max = _segments("add", 0), _segments("max", -math.inf)
segment_min, segment_prod = _segments("min", math.inf), _segments("multiply", 1)


@static("empty", "count", "how")
def _reduced(data: Array, ids: Array, empty: float, count: int, how: str) -> Array:
    rows = jnp.full((count, *data.shape[1:]), empty, data.dtype)
    return _product(data, ids, rows) if how == "multiply" else getattr(rows.at[ids], how)(data)


@jax.custom_jvp
def _product(data: Array, ids: Array, rows: Array) -> Array:
    """``rows``, which are ones, times the data of each id. JAX 0.10: scatter-multiply has no gradient."""
    return rows.at[ids].multiply(data)


@_product.defjvp
def _product_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    data, ids, rows = primals
    is_zero = data == 0
    factors = jnp.where(is_zero, 1, data)
    zeros = jnp.zeros(rows.shape, int).at[ids].add(is_zero)[ids]
    others = jnp.where(zeros == is_zero, _product(factors, ids, rows)[ids] / factors, 0)
    return _product(data, ids, rows), jnp.zeros_like(rows).at[ids].add(others * tangents[0])


def _check(indices: Any, high: int, low: int | None = None, name: str = "indices") -> None:
    """Raise unless all indices are in range, which JAX 0.10 does not check. Compiled code cannot."""
    if not indices.size or is_traced(indices) or not is_checked():
        return
    low = -high if low is None else low
    seen = np.asarray(indices if indices.size < _MANY else _ends(indices))
    least, most = seen.min(), seen.max()
    if least < low or most >= high:
        raise IndexError(f"{name} must be from {low} to {high - 1}, got {least if least < low else most}")


# An accelerator finds the extremes of more indices than this faster than it sends them to the host.
_MANY = 10000
_ends = jitted(lambda x: jnp.stack([x.min(), x.max()]))

# Parts of an index that are arrays; what is of the host stays there, so that compilers know its values.
_ARRAYS = (*TENSORS, np.ndarray)
_ALL = (None, None, None)


def _parts(index: object, x: Array) -> list[Part]:
    parts = parts_of(index, x.shape, _index_tensor, _is_mask)
    for value, axis in parts:
        if isinstance(value, _ARRAYS) and not _is_mask(value):
            _check(value, x.shape[axis])
    return parts


def _index_tensor(value: Any) -> Any:
    if not isinstance(value, TENSORS):
        return convert(value, None, None) if held(value)[0] else host._index_tensor(value)
    if value.size and value.dtype.kind not in "biu":
        raise TypeError(f"an index must be made of integers, slices and masks, got {value.dtype} values")
    return value if value.dtype in (bool, np.int64) else cast(value, DTYPES["int64"])


def _is_mask(value: Any) -> bool:
    return bool(value.dtype == bool)


def _tensors(parts: list[Part]) -> list[Any]:
    return [part.value for part in parts if isinstance(part.value, _ARRAYS)]


def _is_on_host(x: Array, tensors: list[Any]) -> bool:
    return not any(map(is_traced, (x, *tensors))) and {device.platform for device in x.devices()} == {"cpu"}


def _block(x: Array, parts: list[Part]) -> tuple[Any, ...]:
    """Start and shape of the block of ``x`` that a basic index selects from, and the index into the block.

    Programs depend on the shape and that index alone: ``x[0]``, ``x[1]`` ... run the same one. In the index, slices are
    given by their steps, and integers by 0.
    """
    starts, sizes, key = [], [], []
    for value, axis in parts:
        if value is not None:
            places = range(x.shape[axis])[value if isinstance(value, slice) else slice(value, value + 1 or None)]
            low, high = (min(places[0], places[-1]), max(places[0], places[-1]) + 1) if places else (0, 0)
            starts.append(low)
            sizes.append(high - low)
        key.append(value if value is None else value.step or 1 if isinstance(value, slice) else 0)
    return np.array(starts, np.int64), tuple(sizes), tuple(key)


def _within(key: Any) -> tuple[Any, ...]:
    return tuple(slice(None, None, step) if step else step for step in key)


@static("sizes", "key")
def _get_block(x: Array, starts: Array, sizes: Any, key: Any) -> Array:
    return lax.dynamic_slice(x, list(starts), sizes)[_within(key)]


@static("sizes", "key")
def _set_block(x: Array, values: Array, starts: Array, sizes: Any, key: Any) -> Array:
    old = lax.dynamic_slice(x, list(starts), sizes)
    values = _spread(values, old[_within(key)].shape)
    is_block = all(step in (None, 0, 1) for step in key)
    block = values.reshape(sizes) if is_block else old.at[_within(key)].set(values)
    return lax.dynamic_update_slice(x, block, list(starts)) if block.size else x


def _key(x: Array, parts: list[Part]) -> tuple[Array, list[Any], tuple[Any, ...]]:
    """Tensor, the arrays and integers of an index of it, and the rest of the index, with ``...`` in their places.

    Masks are converted to positions. A single bool is a mask with no axes: it selects all or nothing of an axis of
    length one that is added for it.
    """
    arrays: list[Any] = []
    rest: list[Any] = []
    single: list[int] = []
    for value, axis in parts:
        if isinstance(value, _ARRAYS) and _is_mask(value):
            known = np.asarray(value)
            arrays += np.nonzero(known if known.ndim else known[None])
            rest += [...] * max(known.ndim, 1)
            if not known.ndim:
                single.append(axis + len(single))
        elif value is None or isinstance(value, slice):
            rest.append(value and (value.start, value.stop, value.step))
        else:
            arrays.append(value)
            rest.append(...)
    try:
        np.broadcast_shapes(*map(np.shape, arrays))
    except ValueError as error:
        shapes = ", ".join(str(np.shape(one)) for one in arrays)
        raise IndexError(f"indices must have shapes that broadcast, got {shapes}") from error
    return expand_dims(x, single) if single else x, arrays, tuple(rest)


def _joined(arrays: list[Any], rest: tuple[Any, ...]) -> tuple[Any, ...]:
    left = iter(arrays)
    return tuple(next(left) if part is ... else part and slice(*part) for part in rest)


@static("rest")
def _get(x: Array, arrays: list[Any], rest: tuple[Any, ...]) -> Array:
    return x.at[_joined(arrays, rest)].get(mode="clip")


@static("rest", "how")
def _set(x: Array, values: Array, arrays: list[Any], rest: tuple[Any, ...], how: str) -> Array:
    shape = x.at[_joined(arrays, rest)].get(mode="clip").shape
    if how == "set" and jax.default_backend() != "cpu":
        arrays = _last_alone(x, arrays, rest)
    return getattr(x.at[_joined(arrays, rest)], how)(_spread(values, shape))


def _last_alone(x: Array, arrays: list[Any], rest: tuple[Any, ...]) -> list[Array]:
    """Indices with all but the last for an element out of range, where they write nothing: only CPUs write in order."""
    sizes = [x.shape[i] for i, part in enumerate(part for part in rest if part is not None) if part is ...]
    places = [jnp.where(i < 0, i + n, i) for i, n in zip(map(jnp.asarray, arrays), sizes, strict=True)]
    first, *others = jnp.broadcast_arrays(*places)
    place = _ravel_multi_index((first, *others), tuple(sizes))
    order = jnp.arange(place.size).reshape(place.shape)
    last = jnp.full(math.prod(sizes), -1).at[place].max(order)[place]
    return [jnp.where(last == order, first, sizes[0]), *others]


def _update_by_mask(x: Array, mask: Any, axis: int, values: Array) -> Array:
    behind = x.ndim - axis - mask.ndim
    count = values.shape[-1 - behind] if values.ndim > behind else 1
    if count != 1 and not is_traced(mask) and is_checked() and (chosen := np.count_nonzero(mask)) != count:
        raise ValueError(f"values must be as many as the mask selects, {chosen}, got {count}")
    return _set_by_mask(x, mask, values, axis)


@static("axis")
def _set_by_mask(x: Array, mask: Array, values: Array, axis: int) -> Array:
    """``x`` with values where a mask is true, by cumulative count, so that the mask may be traced."""
    before, behind = x.shape[:axis], x.shape[axis + mask.ndim :]
    count = values.shape[-1 - len(behind)] if values.ndim > len(behind) else 1
    values = _spread(values, (*before, count, *behind))
    if count == 0:
        return x
    if count != 1:
        values = jnp.take(values, jnp.cumsum(mask.reshape(-1)) - 1, axis, mode="clip")
    shape = mask.shape if count != 1 else (1,) * mask.ndim
    spread = jnp.broadcast_to(values.reshape(*before, *shape, *behind), x.shape)
    return jnp.where(mask.reshape(mask.shape + (1,) * len(behind)), spread, x)


def _spread(values: Array, shape: tuple[int, ...]) -> Array:
    """``values`` broadcast to a shape; further leading axes of length one are removed."""
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]
    return jnp.broadcast_to(values, shape)
