"""Range checks for the options of optimizers."""

from __future__ import annotations


def at_least_zero(name: str, value: float) -> float:
    if not value >= 0:
        raise ValueError(f"{name} is at least 0, not {value}")
    return value


def above_zero(name: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{name} is above 0, not {value}")
    return value


def fraction(name: str, value: float) -> float:
    if not 0 <= value < 1:
        raise ValueError(f"{name} is at least 0 and below 1, not {value}")
    return value
