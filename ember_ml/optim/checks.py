"""Range checks for the options of optimizers."""

from __future__ import annotations


def at_least_zero(optimizer: object, name: str, value: float) -> float:
    if not value >= 0:
        raise ValueError(f"{type(optimizer).__name__}: {name} must be >= 0, got {value}")
    return value


def above_zero(optimizer: object, name: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{type(optimizer).__name__}: {name} must be > 0, got {value}")
    return value


def fraction(optimizer: object, name: str, value: float) -> float:
    if not 0 <= value < 1:
        raise ValueError(f"{type(optimizer).__name__}: {name} must be >= 0 and < 1, got {value}")
    return value
