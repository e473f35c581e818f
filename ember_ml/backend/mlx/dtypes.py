"""Casting on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml import backend as _backends
from ember_ml.backend.mlx.core import DTYPES as _DTYPES
from ember_ml.backend.mlx.core import cast as _cast


def cast(x: mx.array, dtype: object, /, *, copy: bool = True, device: mx.Device | None = None) -> mx.array:
    native = _DTYPES.get(dtype) if type(dtype) is str else None
    if native is None:
        native = _backends.load("mlx").dtype(dtype)
    given = x.dtype
    if given == mx.complex64 and native not in (mx.complex64, mx.bool_):
        raise TypeError(
            f"dtype must be complex for {str(given).removeprefix('mlx.core.')} values, got "
            f"{str(native).removeprefix('mlx.core.')}; take the real part first"
        )
    return x if given == native and not copy else _cast(x, native)
