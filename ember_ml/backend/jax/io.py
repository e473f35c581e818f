"""Tensor files, which the host reads and writes for every engine, and copies of arrays that nothing else changes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ember_ml.backend.jax.core import named


def from_view(array: np.ndarray[Any, Any], device: jax.Device | None = None) -> jax.Array:
    """Array of a host array that nothing changes later, such as a view of a file in memory.

    JAX copies it once, in any order of axes, or shares its memory and keeps it alive.
    """
    named(array.dtype.name)
    return jax.device_put(array, device)
