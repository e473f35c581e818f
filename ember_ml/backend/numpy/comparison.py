"""Comparison and logic on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)

from ember_ml.backend.numpy.core import DTYPES

_all_reduce: Any = np.logical_and.reduce
_any_reduce: Any = np.logical_or.reduce


def isclose(x: Any, y: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return np.isclose(_comparable(x), _comparable(y), rtol, atol, equal_nan)


def _comparable(x: Any) -> Any:
    """Half precision as float32, because its spacing is coarser than the tolerance; integers as float64."""
    if x.dtype in (DTYPES["float16"], DTYPES["bfloat16"]):
        return x.astype(np.float32)
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _all_reduce(x, _axes(axis), None, None, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _any_reduce(x, _axes(axis), None, None, keepdims)


def _axes(axis: Any) -> Any:
    return tuple(axis) if type(axis) is list else axis


def isin(x: Any, test_elements: Any, /, *, assume_unique: bool = False, invert: bool = False) -> Any:
    if x.dtype == DTYPES["bfloat16"]:
        # NumPy 2.4: isin sorts, and sorting bfloat16 does not put NaN last.
        x, test_elements = x.astype(np.float32), test_elements.astype(np.float32)
    return np.isin(x, test_elements, assume_unique, invert)
