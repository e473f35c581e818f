"""Dtypes of tensors: casting, promotion, limits and names."""

from __future__ import annotations

from typing import Any

import numpy as np


def cast(x: Any, dtype: np.dtype[Any], /, *, copy: object = True, device: str | None = None) -> Any:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"cannot cast {x.dtype} to {dtype}: take the real part first")
    return np.asarray(x).astype(dtype, copy=bool(copy))
