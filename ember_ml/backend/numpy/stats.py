"""Statistics on NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml.backend.numpy.core import DTYPES
from ember_ml.backend.numpy.dtypes import cast
from ember_ml.dispatch import definition_of

# Straight to the loops: np.sum and its like spend more time on their arguments than on small arrays.
_added: Any = np.add.reduce
_multiplied: Any = np.multiply.reduce
_largest: Any = np.maximum.reduce
_smallest: Any = np.minimum.reduce

# What a dtype is accumulated in where its own precision would be lost on the way.
_WIDE = {DTYPES["float16"]: np.float32, DTYPES["bfloat16"]: np.float32}


def _reduced(reduce: Any, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    if type(axis) is list:
        axis = tuple(axis)
    x = _uncut(x, dtype)
    answer = x.dtype if dtype is None else dtype
    wide = _WIDE.get(answer)
    if wide is None:
        return reduce(x, axis, dtype, None, keepdims)
    return reduce(x, axis, wide, None, keepdims).astype(answer)


def _uncut(x: Any, dtype: Any) -> Any:
    """``x``, cast if it is complex: ``cast`` does not let imaginary parts get lost, as NumPy would."""
    return cast(x, dtype) if dtype is not None and x.dtype.kind == "c" else x


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _reduced(_added, x, axis, dtype, keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _reduced(_multiplied, x, axis, dtype, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    if type(axis) is list:
        axis = tuple(axis)
    wide = _WIDE.get(x.dtype)
    total = _added(x, axis, wide, None, keepdims)
    count = _count(x, axis)
    # NumPy warns of 0 / 0, not of 0 * NaN.
    answer = total / count if count else total * math.nan
    return answer if wide is None else answer.astype(x.dtype)


def _count(x: Any, axis: Any) -> int:
    """How many elements each answer of a reduction is made of."""
    if axis is None:
        return x.size
    if isinstance(axis, tuple):
        return math.prod(x.shape[i] for i in axis)
    # NumPy takes the first and the last axis of an array that has none for no axis.
    return x.shape[axis] if x.ndim else 1


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    return _variance(x, axis, correction, keepdims).astype(_real_of(x.dtype))


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    return np.sqrt(_variance(x, axis, correction, keepdims)).astype(_real_of(x.dtype))


def median(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _quantile("median", x, 0.5, axis, keepdims, "linear", 1.0)


def percentile(x: Any, q: Any, /, *, axis: Any = None, keepdims: bool = False, method: str = "linear") -> Any:
    return _quantile("percentile", x, q, axis, keepdims, method, 100.0)


def quantile(x: Any, q: Any, /, *, axis: Any = None, keepdims: bool = False, method: str = "linear") -> Any:
    return _quantile("quantile", x, q, axis, keepdims, method, 1.0)


def _quantile(name: str, x: Any, q: Any, axis: Any, keepdims: bool, method: Any, scale: float) -> Any:
    """NumPy's answer, which needs no full sort, where it is good: numbers in range, and no NaN or infinity met."""
    known = method in ("linear", "lower", "higher", "nearest", "midpoint")
    if known and x.size and x.dtype in _QUANTILE_DTYPES and isinstance(q, (int, float)) and 0 <= q <= scale:
        rest = tuple(axis) if type(axis) is list else axis
        answer = np.quantile(x, q / scale, axis=rest, keepdims=keepdims, method=method)
        if not np.isnan(answer).any():
            return answer.astype(x.dtype)
    levels = () if name == "median" else (q,)
    options = {} if name == "median" else {"method": method}
    return definition_of(name)(x, *levels, axis=axis, keepdims=keepdims, **options)


_QUANTILE_DTYPES = (DTYPES["float32"], DTYPES["float64"])


def _variance(x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    if type(axis) is list:
        axis = tuple(axis)
    x = x.astype(_WIDE.get(x.dtype, x.dtype), copy=False)
    centred = x - mean(x, axis=axis, keepdims=True)
    squares = centred.real**2 + centred.imag**2 if x.dtype.kind == "c" else centred * centred
    total = _added(squares, axis, None, None, keepdims)
    freedom = _count(x, axis) - correction
    return total / freedom if freedom > 0 else np.where(total > 0, math.inf, math.nan)


def _real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _largest(x, tuple(axis) if type(axis) is list else axis, None, None, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _smallest(x, tuple(axis) if type(axis) is list else axis, None, None, keepdims)


def cumsum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    return _accumulated(np.add, 0, x, axis, dtype, include_initial)


def cumprod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    return _accumulated(np.multiply, 1, x, axis, dtype, include_initial)


def _accumulated(ufunc: np.ufunc, first: int, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
    if axis is None:
        x, axis = x.reshape(-1), 0
    x = _uncut(x, dtype)
    answer = x.dtype if dtype is None else dtype
    running = _running(ufunc, x, axis, _WIDE.get(answer, answer)).astype(answer, copy=False)
    if not include_initial:
        return running
    shape = list(x.shape)
    shape[axis] = 1
    return np.concatenate([np.full(shape, first, answer), running], axis)


def _running(ufunc: np.ufunc, x: Any, axis: int, dtype: Any = None) -> Any:
    try:
        return ufunc.accumulate(x, axis, dtype)
    except TypeError:
        if x.ndim:
            raise
    # What NumPy's reductions allow, and its accumulations do not.
    return ufunc.reduce(x, axis, dtype)


def cummax(x: Any, /, *, axis: int) -> Any:
    return _running(np.maximum, x, axis)


def cummin(x: Any, /, *, axis: int) -> Any:
    return _running(np.minimum, x, axis)
