"""Dtypes of tensors: casting, promotion, limits and names."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.mlx.core import cast as _cast


def cast(x: mx.array, dtype: mx.Dtype, /, *, copy: bool = True, device: mx.Device | None = None) -> mx.array:
    if dtype is None:
        raise TypeError("cast takes a dtype, not None")
    if x.dtype == mx.complex64 and dtype not in (mx.complex64, mx.bool_):
        raise TypeError(f"cannot cast {x.dtype} to {dtype}: take the real part first")
    return x if x.dtype == dtype and not copy else _cast(x, dtype)
