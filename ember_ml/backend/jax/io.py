"""Tensor files, which the host reads and writes for every engine, and views of safetensors files."""

from __future__ import annotations

from typing import Any

import jax

from ember_ml.backend import load
from ember_ml.backend.jax.core import named


def map_tensors(path: Any, device: jax.Device | None = None) -> dict[str, jax.Array]:
    """Tensors of a valid safetensors file: views of the file in memory where JAX supports it, else copies."""
    found = load("numpy").module.io.map_tensors(path)
    for array in found.values():
        named(array.dtype.name)
    return {name: jax.device_put(array, device) for name, array in found.items()}
