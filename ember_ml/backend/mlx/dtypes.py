"""Dtypes of tensors: casting, promotion, limits and names."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.mlx import core


def cast(x: mx.array, dtype: mx.Dtype, /, *, copy: object = True, device: mx.Device | None = None) -> mx.array:
    if x.dtype == mx.complex64 and dtype not in (mx.complex64, mx.bool_):
        raise TypeError(f"cannot cast {x.dtype} to {dtype}: take the real part first")
    return core.cast(x, dtype)
