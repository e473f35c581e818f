"""Arithmetic with NumPy."""

from __future__ import annotations

import numpy as np

from legacy.checks import axis_in

__all__ = ["add", "clip", "divide", "logsumexp"]

# The smallest divisor: what is nearer to zero counts as this.
_TINY = 1e-12


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sum of ``x`` and ``y``."""
    return np.add(x, y)


def divide(x: np.ndarray, y: np.ndarray, tiny: float = _TINY) -> np.ndarray:
    """``x / y``, with divisors kept away from zero."""
    return np.divide(x, np.where(np.abs(y) < tiny, tiny, y))


def clip(x: np.ndarray, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """``x`` within limits."""
    return np.clip(x, low, high)


def _largest(x: np.ndarray, axis: int) -> np.ndarray:
    return np.max(x, axis=axis, keepdims=True)


# Subtracting the largest value first keeps the exponentials finite.
def logsumexp(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """The logarithm of the sum of exponentials along an axis."""
    axis = axis_in(axis, x.ndim)
    top = _largest(x, axis)
    return np.squeeze(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))
