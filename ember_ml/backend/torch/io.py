"""Tensor files, which the host reads and writes for every engine, and views of safetensors files."""

from __future__ import annotations

from typing import Any

import torch
from safetensors import safe_open


def map_tensors(path: Any, device: torch.device | None = None) -> dict[str, torch.Tensor]:
    """Tensors of a valid safetensors file: views of the file in memory on the CPU, copies on other devices."""
    with safe_open(path, framework="pt", device=str(device or "cpu")) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 it is no dictionary
