"""Gradients of selection."""

from __future__ import annotations

from ember_ml.ops.comparison import where

RULES = {
    "where": (
        None,
        lambda g, out, condition, x, y: where(condition, g, 0),
        lambda g, out, condition, x, y: where(condition, 0, g),
    )
}
