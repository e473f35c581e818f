"""Gradients of reductions."""

from __future__ import annotations

import math as _math
from typing import Any

from ember_ml.gradients import indexing as indexing_rules
from ember_ml.gradients.math import _axes, _reduced
from ember_ml.ops import comparison, creation, dtypes, manipulation, math
from ember_ml.ops.stats import cummax, cumprod, cumsum, mean, prod, sum


def _count(x: Any, axis: Any) -> int:
    return _math.prod(x.shape[i] for i in _axes(x, axis))


def _spread(g: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    return manipulation.broadcast_to(_reduced(g, x, axis, keepdims), x.shape)


def _sum(g: Any, out: Any, x: Any, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _spread(g, x, axis, keepdims)


def _mean(g: Any, out: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _spread(math.divide(g, _count(x, axis) or 1), x, axis, keepdims)


def _prod(g: Any, out: Any, x: Any, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product of all other elements, with no division, so that zeros do no harm."""
    ndim, axes = len(x.shape), _axes(x, axis)
    others = [i for i in range(ndim) if i not in axes]
    order = others + axes
    front = tuple(x.shape[i] for i in others)
    rows = manipulation.reshape(manipulation.permute_dims(x, order), (*front, _count(x, axes)))
    without = manipulation.reshape(left_out(rows), [x.shape[i] for i in order])
    back = manipulation.permute_dims(without, [order.index(i) for i in range(ndim)])
    return math.multiply(_reduced(g, x, axis, keepdims), back)


def left_out(x: Any) -> Any:
    """The product of all others than each element along the last axis."""
    count = x.shape[-1]
    if count < 2:
        return creation.ones_like(x)
    first = creation.ones_like(x[..., :1])
    before = manipulation.concat([first, cumprod(x[..., :-1], axis=-1)], axis=-1)
    back = manipulation.flip(x, axis=-1)
    after = manipulation.flip(manipulation.concat([first, cumprod(back[..., :-1], axis=-1)], axis=-1), axis=-1)
    return math.multiply(before, after)


def _extreme(g: Any, out: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    chosen = dtypes.cast(comparison.equal(x, _reduced(out, x, axis, keepdims)), x.dtype)
    shares = math.divide(chosen, sum(chosen, axis=axis, keepdims=True, dtype=x.dtype))
    return math.multiply(_reduced(g, x, axis, keepdims), shares)


def _centred(x: Any, axis: Any) -> Any:
    return math.subtract(x, mean(x, axis=axis, keepdims=True))


def _var(g: Any, out: Any, x: Any, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    scale = 2 / (_count(x, axis) - correction) if _count(x, axis) != correction else float("nan")
    return math.multiply(
        _reduced(g, x, axis, keepdims),
        math.multiply(math.conj(_centred(x, axis)) if dtypes.is_complex(x) else _centred(x, axis), scale),
    )


def _std(g: Any, out: Any, x: Any, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    # Where nothing differs there is no direction in which the deviation would fall.
    inverse = comparison.where(
        comparison.equal(out, 0), 0, math.reciprocal(comparison.where(comparison.equal(out, 0), 1, out))
    )
    return _var(
        math.multiply(math.multiply(g, 0.5), inverse), out, x, axis=axis, correction=correction, keepdims=keepdims
    )


def _cumsum(g: Any, out: Any, x: Any, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    if axis is not None and not x.shape:
        return g
    along = 0 if axis is None else axis % len(g.shape)
    if include_initial:
        g = g[(slice(None),) * along + (slice(1, None),)]
    back = manipulation.flip(cumsum(manipulation.flip(g, axis=along), axis=along), axis=along)
    return manipulation.reshape(back, x.shape)


def _cumprod(x: Any, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Products of rows that are one beyond each place: more work than running products, but in terms of ``prod``."""
    if axis is None:
        x, axis = manipulation.ravel(x), 0
    if not x.shape:
        return x
    rows = manipulation.moveaxis(x, axis, -1)
    count = rows.shape[-1]
    reached = creation.tril(creation.ones((count + 1, count), dtype="bool"), k=-1)
    if not include_initial:
        reached = reached[1:]
    return manipulation.moveaxis(prod(comparison.where(reached, rows[..., None, :], 1), axis=-1), -1, axis)


def _running_extreme(g: Any, out: Any, x: Any, *, axis: int) -> Any:
    """Each running extreme came from the latest element that is equal to the one so far."""
    if not x.shape:
        return g
    rows = manipulation.moveaxis(x, axis, -1)
    count = rows.shape[-1]
    met = comparison.equal(rows, manipulation.moveaxis(out, axis, -1))
    places = cummax(comparison.where(met, creation.arange(count), 0), axis=-1)
    return indexing_rules.put_back(g, x, manipulation.moveaxis(places, -1, axis), axis)


RULES = {
    "sum": (_sum,),
    "mean": (_mean,),
    "prod": (_prod,),
    "max": (_extreme,),
    "min": (_extreme,),
    "var": (_var,),
    "std": (_std,),
    "cumsum": (_cumsum,),
    "cummax": (_running_extreme,),
    "cummin": (_running_extreme,),
}

FORMULAS = {"cumprod": _cumprod}
