"""Gradients of reductions."""

from __future__ import annotations

import math as _math
from typing import Any

from ember_ml.gradients import indexing as indexing_rules
from ember_ml.gradients.math import _axes, _restore_axes
from ember_ml.ops import comparison, creation, dtypes, manipulation, math
from ember_ml.ops.stats import cummax, cumprod, cumsum, mean, prod, sum


def _count(x: Any, axis: Any) -> int:
    return _math.prod(x.shape[i] for i in _axes(x, axis))


def _spread(g: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    return manipulation.broadcast_to(_restore_axes(g, x, axis, keepdims), x.shape)


def _sum(g: Any, out: Any, x: Any, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _spread(g, x, axis, keepdims)


def _mean(g: Any, out: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _spread(math.divide(g, _count(x, axis) or 1), x, axis, keepdims)


def _prod(g: Any, out: Any, x: Any, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product of all other elements, without division, so that zeros are exact."""
    ndim, axes = len(x.shape), _axes(x, axis)
    kept = [i for i in range(ndim) if i not in axes]
    order = kept + axes
    front = tuple(x.shape[i] for i in kept)
    rows = manipulation.reshape(manipulation.permute_dims(x, order), (*front, _count(x, axes)))
    without = manipulation.reshape(product_of_others(rows), [x.shape[i] for i in order])
    back = manipulation.permute_dims(without, [order.index(i) for i in range(ndim)])
    return math.multiply(_restore_axes(g, x, axis, keepdims), back)


def product_of_others(x: Any) -> Any:
    """Product of all other elements along the last axis, for each element."""
    count = x.shape[-1]
    if count < 2:
        return creation.ones_like(x)
    first = creation.ones_like(x[..., :1])
    before = manipulation.concat([first, cumprod(x[..., :-1], axis=-1)], axis=-1)
    back = manipulation.flip(x, axis=-1)
    after = manipulation.flip(manipulation.concat([first, cumprod(back[..., :-1], axis=-1)], axis=-1), axis=-1)
    return math.multiply(before, after)


def _extreme(g: Any, out: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    chosen = dtypes.cast(comparison.equal(x, _restore_axes(out, x, axis, keepdims)), x.dtype)
    shares = math.divide(chosen, sum(chosen, axis=axis, keepdims=True, dtype=x.dtype))
    return math.multiply(_restore_axes(g, x, axis, keepdims), shares)


def _centered(x: Any, axis: Any) -> Any:
    return math.subtract(x, mean(x, axis=axis, keepdims=True))


def _var(g: Any, out: Any, x: Any, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    scale = 2 / (_count(x, axis) - correction) if _count(x, axis) != correction else float("nan")
    return math.multiply(
        _restore_axes(g, x, axis, keepdims),
        math.multiply(math.conj(_centered(x, axis)) if dtypes.is_complex(x) else _centered(x, axis), scale),
    )


def _std(g: Any, out: Any, x: Any, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    # The gradient at zero deviation is defined as 0, not NaN.
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
    """Cumulative products as ``prod`` of masked rows: more work, but differentiable by the rule of ``prod``."""
    if axis is None:
        x, axis = manipulation.ravel(x), 0
    if not x.shape:
        return x
    rows = manipulation.moveaxis(x, axis, -1)
    count = rows.shape[-1]
    included = creation.tril(creation.ones((count + 1, count), dtype="bool"), k=-1)
    if not include_initial:
        included = included[1:]
    return manipulation.moveaxis(prod(comparison.where(included, rows[..., None, :], 1), axis=-1), -1, axis)


def _running_extreme(g: Any, out: Any, x: Any, *, axis: int) -> Any:
    """Each running extreme gets its value from the latest element equal to it."""
    if not x.shape:
        return g
    rows = manipulation.moveaxis(x, axis, -1)
    count = rows.shape[-1]
    is_extreme = comparison.equal(rows, manipulation.moveaxis(out, axis, -1))
    places = cummax(comparison.where(is_extreme, creation.arange(count), 0), axis=-1)
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
