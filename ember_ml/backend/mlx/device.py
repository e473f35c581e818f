"""Devices and memory on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.numpy.device import memory_info as _host_memory


def to_device(x: mx.array, device: mx.Device, /) -> mx.array:
    return x


def synchronize(device: mx.Device | None = None) -> None:
    mx.synchronize(mx.default_stream(device or mx.default_device()))


def memory_info(device: mx.Device | None = None) -> dict[str, int | None]:
    host, used, peak = _host_memory(), mx.get_active_memory(), mx.get_peak_memory()
    total = mx.device_info().get("memory_size")
    return {"allocated": used, "peak": peak, "total": int(total) if total else host["total"], "free": host["free"]}
