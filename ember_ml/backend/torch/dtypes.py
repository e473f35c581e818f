"""Casting on torch."""

from __future__ import annotations

import torch

from ember_ml import backend as _backends
from ember_ml.backend.torch.core import DTYPES as _DTYPES


def cast(x: torch.Tensor, dtype: object, /, *, copy: bool = True, device: torch.device | None = None) -> torch.Tensor:
    native = _DTYPES.get(dtype) if type(dtype) is str else None
    if native is None:
        native = _backends.load("torch").dtype(dtype)
    if x.is_complex() and not native.is_complex and native is not torch.bool:
        raise TypeError(
            f"dtype must be complex for {str(x.dtype)[6:]} values, got {str(native)[6:]}; take the real part first"
        )
    return x.to(native, copy=copy) if device is None else x.to(device, native, copy=copy)
