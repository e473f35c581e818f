"""Devices and memory on torch."""

from __future__ import annotations

import torch

from ember_ml.backend.numpy.device import memory_info as _host_memory


def to_device(x: torch.Tensor, device: torch.device, /) -> torch.Tensor:
    return x.to(device)


def synchronize(device: torch.device | None = None) -> None:
    kind = "any" if device is None else device.type
    if kind == "cuda" or (kind == "any" and torch.cuda.is_initialized()):
        torch.cuda.synchronize(device)
    elif kind == "mps" or (kind == "any" and torch.backends.mps.is_available()):
        torch.mps.synchronize()


def memory_info(device: torch.device | None = None) -> dict[str, int | None]:
    kind = (torch.get_default_device() if device is None else device).type
    if kind == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        used, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        return {"allocated": used, "peak": peak, "total": total, "free": free}
    if kind == "mps":
        used, total = torch.mps.current_allocated_memory(), torch.mps.recommended_max_memory()
        return {"allocated": used, "peak": None, "total": total, "free": total - torch.mps.driver_allocated_memory()}
    return _host_memory()
