"""Arithmetic with torch."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ...checks import axis_in

_TINY = 1e-12


def _without_gradient(function):
    """The function run outside of automatic differentiation."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        with torch.no_grad():
            return function(*args, **kwargs)

    return run


@_without_gradient
def add(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(x, y)


def divide(x: torch.Tensor, y: torch.Tensor, tiny: float = 1e-12) -> torch.Tensor:
    return x / torch.where(y.abs() < tiny, torch.full_like(y, tiny), y)


def clip(x: torch.Tensor, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
    return x.clamp(low, high)  # clamp takes None for a limit too


# torch has its own, which is finite for large values.
def logsumexp(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    return torch.logsumexp(x, axis_in(dim, x.ndim))
