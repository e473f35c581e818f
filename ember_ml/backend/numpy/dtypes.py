"""Casting on NumPy."""

from __future__ import annotations

from typing import Any

from ember_ml import backend as _backends
from ember_ml.backend.numpy.core import DTYPES as _DTYPES
from ember_ml.backend.numpy.core import check_cast as _check_cast


def cast(x: Any, dtype: object, /, *, copy: bool = True, device: str | None = None) -> Any:
    native = _DTYPES.get(dtype) if type(dtype) is str else None
    if native is None:
        native = _backends.load("numpy").dtype(dtype)
    _check_cast(x.dtype, native)
    return x if x.dtype is native and not copy else x.astype(native)
