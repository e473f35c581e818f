"""Comparison and logic on torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import eq as equal
from torch import ge as greater_equal
from torch import gt as greater
from torch import (
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    where,
)
from torch import le as less_equal
from torch import lt as less
from torch import ne as not_equal

from ember_ml.backend.torch.stats import check_axes


def isclose(
    x: torch.Tensor, y: torch.Tensor, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> torch.Tensor:
    x, y = _comparable(x), _comparable(y)
    if rtol >= 0 and atol >= 0:
        if equal_nan and x.shape != y.shape:
            # Older torch releases write the broadcast result in place into the shape of the first operand.
            x, y = torch.broadcast_tensors(x, y)
        return torch.isclose(x, y, rtol, atol, equal_nan)
    # torch does not support a negative tolerance, with which only equal values are close.
    close = ((x - y).abs() <= atol + rtol * y.abs()) & y.isfinite() | (x == y)
    return close | (x.isnan() & y.isnan()) if equal_nan else close


def _comparable(x: torch.Tensor) -> torch.Tensor:
    """Half precision as float32, because its spacing is coarser than the tolerance; integers as float64."""
    if x.is_complex() or x.dtype in (torch.float32, torch.float64):
        return x
    return x.to(torch.float32 if x.is_floating_point() or x.device.type == "mps" else torch.float64)


def all(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    check_axes(x, axis)
    return torch.all(x if x.dtype is not torch.uint8 else x != 0, dim=axis, keepdim=keepdims)


def any(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    check_axes(x, axis)
    return torch.any(x if x.dtype is not torch.uint8 else x != 0, dim=axis, keepdim=keepdims)


def isin(
    x: torch.Tensor, test_elements: torch.Tensor, /, *, assume_unique: bool = False, invert: bool = False
) -> torch.Tensor:
    if x.dtype is torch.bool:
        x, test_elements = x.to(torch.uint8), test_elements.to(torch.uint8)
    # torch 2.13: isin does not support non-contiguous test elements.
    return torch.isin(x, test_elements.reshape(-1), assume_unique=assume_unique, invert=invert)
