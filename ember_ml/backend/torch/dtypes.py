"""Dtypes of tensors: casting, promotion, limits and names."""

from __future__ import annotations

import torch


def cast(
    x: torch.Tensor, dtype: torch.dtype, /, *, copy: bool = True, device: torch.device | None = None
) -> torch.Tensor:
    if dtype is None:
        raise TypeError("cast takes a dtype, not None")
    if x.is_complex() and not dtype.is_complex and dtype is not torch.bool:
        raise TypeError(f"cannot cast {x.dtype} to {dtype}: take the real part first")
    return x.to(dtype=dtype, device=device, copy=copy)
