"""Casting on JAX."""

from __future__ import annotations

import jax
from jax import Array

from ember_ml import backend as _backends
from ember_ml.backend.jax.core import DTYPES as _DTYPES
from ember_ml.backend.jax.core import cast as _cast
from ember_ml.backend.jax.device import to_device as _to_device
from ember_ml.backend.numpy.core import check_cast as _check_cast


def cast(x: Array, dtype: object, /, *, copy: bool = True, device: jax.Device | None = None) -> Array:
    native = _DTYPES.get(dtype) if type(dtype) is str else None
    if native is None:
        native = _backends.load("jax").dtype(dtype)
    _check_cast(x.dtype, native)
    x = x if x.dtype == native and not copy else _cast(x, native)
    return x if device is None else _to_device(x, device)
