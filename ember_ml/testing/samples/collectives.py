"""Calls of collective operations, of one rank: what several compute is in ``tests/test_distributed.py``."""

from __future__ import annotations

import numpy as np

from ember_ml.testing.samples import call

GRID = np.array([[0.5, 1.0, -2.5], [3.0, -1.5, 0.0]], np.float32)
EMPTY = np.zeros((0, 2), np.float32)

CALLS = {
    "all_sum": [call(GRID), call(1.0), call(EMPTY)],
    "all_mean": [call(GRID), call(1.0), call(EMPTY)],
    "all_max": [call(GRID), call(1.0), call(EMPTY)],
    "all_gather": [call(GRID), call(1.0), call(EMPTY)],
    "broadcast": [call(GRID), call(1.0), call(EMPTY), call(GRID, 0), call(GRID, root=0)],
    "scatter": [call(GRID), call(EMPTY), call(GRID, 0), call(GRID, root=0)],
    "reduce_scatter": [call(GRID), call(EMPTY)],
}
