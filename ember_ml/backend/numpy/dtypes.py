"""Dtypes of tensors: casting, promotion, limits and names."""

from __future__ import annotations

from typing import Any

import numpy as np


def cast(x: Any, dtype: np.dtype[Any], /, *, copy: bool = True, device: str | None = None) -> Any:
    if dtype is None:
        raise TypeError("cast takes a dtype, not None")
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"cannot cast {x.dtype} to {dtype}: take the real part first")
    return x if x.dtype is dtype and not copy else x.astype(dtype)
