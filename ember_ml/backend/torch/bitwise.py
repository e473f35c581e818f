"""Bitwise logic and shifts on torch."""

from __future__ import annotations

import torch
from torch import bitwise_and, bitwise_or, bitwise_xor

# torch 2.13: no kernels for these dtypes, so they are computed in the signed dtype with the same bits.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def bitwise_invert(x: torch.Tensor, /) -> torch.Tensor:
    signed = _SIGNED.get(x.dtype)
    return torch.bitwise_not(x) if signed is None else torch.bitwise_not(x.view(signed)).view(x.dtype)


def bitwise_left_shift(x: torch.Tensor, y: torch.Tensor, /) -> torch.Tensor:
    signed = _SIGNED.get(x.dtype)
    if signed is None:
        return torch.bitwise_left_shift(x, y)
    return torch.bitwise_left_shift(x.view(signed), y.view(signed)).view(x.dtype)


def bitwise_right_shift(x: torch.Tensor, y: torch.Tensor, /) -> torch.Tensor:
    signed = _SIGNED.get(x.dtype)
    if signed is None:
        return torch.bitwise_right_shift(x, y)
    up, count = x.view(signed), y.view(signed)
    # A shift by one clears the sign bit, so that zeros are shifted in.
    once = (up >> 1) & torch.iinfo(signed).max
    return torch.where(count == 0, up, torch.bitwise_right_shift(once, count - 1)).view(x.dtype)
