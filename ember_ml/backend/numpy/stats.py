"""Statistics on NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml.backend.numpy.core import DTYPES
from ember_ml.backend.numpy.dtypes import cast
from ember_ml.dispatch import definition_of

# np.sum and the like spend more time on their arguments than the ufuncs spend on small arrays.
_add_reduce: Any = np.add.reduce
_multiply_reduce: Any = np.multiply.reduce
_maximum_reduce: Any = np.maximum.reduce
_minimum_reduce: Any = np.minimum.reduce

# Accumulators for dtypes whose own precision is too low.
_WIDE = {DTYPES["float16"]: np.float32, DTYPES["bfloat16"]: np.float32}


def _reduce(reduce: Any, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    if type(axis) is list:
        axis = tuple(axis)
    x = _cast_complex(x, dtype)
    target = x.dtype if dtype is None else dtype
    wide = _WIDE.get(target)
    if wide is None:
        return reduce(x, axis, dtype, None, keepdims)
    return reduce(x, axis, wide, None, keepdims).astype(target)


def _cast_complex(x: Any, dtype: Any) -> Any:
    """``x``, cast if it is complex: ``cast`` rejects the loss of imaginary parts, which NumPy only warns about."""
    return cast(x, dtype) if dtype is not None and x.dtype.kind == "c" else x


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _reduce(_add_reduce, x, axis, dtype, keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _reduce(_multiply_reduce, x, axis, dtype, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    if type(axis) is list:
        axis = tuple(axis)
    wide = _WIDE.get(x.dtype)
    total = _add_reduce(x, axis, wide, None, keepdims)
    count = _count(x, axis)
    # NumPy warns about 0 / 0, but not about 0 * NaN.
    result = total / count if count else total * math.nan
    return result if wide is None else result.astype(x.dtype)


def _count(x: Any, axis: Any) -> int:
    """Number of elements reduced to each result."""
    if axis is None:
        return x.size
    if isinstance(axis, tuple):
        return math.prod(x.shape[i] for i in axis)
    # NumPy accepts axis 0 and -1 for a 0-d array.
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
    """Quantile by NumPy's partition, which needs no full sort, if ``q`` is one number in range and no result is NaN.

    Otherwise, including for NaN and infinities, by the definition.
    """
    is_supported = method in ("linear", "lower", "higher", "nearest", "midpoint")
    if is_supported and x.size and x.dtype in _QUANTILE_DTYPES and isinstance(q, (int, float)) and 0 <= q <= scale:
        rest = tuple(axis) if type(axis) is list else axis
        result = np.quantile(x, q / scale, axis=rest, keepdims=keepdims, method=method)
        if not np.isnan(result).any():
            return result.astype(x.dtype)
    levels = () if name == "median" else (q,)
    options = {} if name == "median" else {"method": method}
    return definition_of(name)(x, *levels, axis=axis, keepdims=keepdims, **options)


_QUANTILE_DTYPES = (DTYPES["float32"], DTYPES["float64"])


def _variance(x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    if type(axis) is list:
        axis = tuple(axis)
    x = x.astype(_WIDE.get(x.dtype, x.dtype), copy=False)
    centered = x - mean(x, axis=axis, keepdims=True)
    squares = centered.real**2 + centered.imag**2 if x.dtype.kind == "c" else centered * centered
    total = _add_reduce(squares, axis, None, None, keepdims)
    freedom = _count(x, axis) - correction
    return total / freedom if freedom > 0 else np.where(total > 0, math.inf, math.nan)


def _real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _maximum_reduce(x, tuple(axis) if type(axis) is list else axis, None, None, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _minimum_reduce(x, tuple(axis) if type(axis) is list else axis, None, None, keepdims)


def cumsum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    return _accumulate(np.add, 0, x, axis, dtype, include_initial)


def cumprod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    return _accumulate(np.multiply, 1, x, axis, dtype, include_initial)


def _accumulate(ufunc: np.ufunc, first: int, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
    if axis is None:
        x, axis = x.reshape(-1), 0
    x = _cast_complex(x, dtype)
    target = x.dtype if dtype is None else dtype
    running = _accumulate_along(ufunc, x, axis, _WIDE.get(target, target)).astype(target, copy=False)
    if not include_initial:
        return running
    shape = list(x.shape)
    shape[axis] = 1
    return np.concatenate([np.full(shape, first, target), running], axis)


def _accumulate_along(ufunc: np.ufunc, x: Any, axis: int, dtype: Any = None) -> Any:
    try:
        return ufunc.accumulate(x, axis, dtype)
    except TypeError:
        if x.ndim:
            raise
    # NumPy's ufunc.accumulate does not support 0-d arrays, unlike ufunc.reduce.
    return ufunc.reduce(x, axis, dtype)


def cummax(x: Any, /, *, axis: int) -> Any:
    return _accumulate_along(np.maximum, x, axis)


def cummin(x: Any, /, *, axis: int) -> Any:
    return _accumulate_along(np.minimum, x, axis)
