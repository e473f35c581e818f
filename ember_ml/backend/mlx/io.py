"""Tensor files, which the host reads and writes for every engine, and safetensors files that are read when needed."""

from __future__ import annotations

import os
from typing import Any

import mlx.core as mx

# MLX 0.32 refuses files with these dtypes, although its arrays may have them.
UNREAD = frozenset({"float64"})


def map_tensors(path: Any, device: mx.Device | None = None) -> dict[str, mx.array]:
    """Tensors of a valid safetensors file, which are read when they are evaluated."""
    # Files are read by the CPU alone, whatever the default stream.
    found: Any = mx.load(os.fspath(path), format="safetensors", stream=mx.cpu)
    return dict(found)
