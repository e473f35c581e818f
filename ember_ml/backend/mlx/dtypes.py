"""Casting on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml import backend as _backends
from ember_ml.backend.mlx.core import DTYPES as _DTYPES
from ember_ml.backend.mlx.core import cast as _cast


def cast(x: mx.array, dtype: object, /, *, copy: bool = True, device: mx.Device | None = None) -> mx.array:
    own = _DTYPES.get(dtype) if type(dtype) is str else None
    if own is None:
        own = _backends.load("mlx").dtype(dtype)
    given = x.dtype
    if given == mx.complex64 and own not in (mx.complex64, mx.bool_):
        raise TypeError(
            f"dtype must be complex for {str(given).removeprefix('mlx.core.')} values, got "
            f"{str(own).removeprefix('mlx.core.')}; take the real part first"
        )
    return x if given == own and not copy else _cast(x, own)
