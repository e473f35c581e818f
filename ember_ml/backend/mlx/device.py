"""Devices and memory on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml import backend as _backends
from ember_ml.backend.mlx.core import devices as _devices
from ember_ml.backend.numpy.device import memory_info as _host_memory
from ember_ml.dispatch import definition_of as _definition_of


def to_device(x: mx.array, device: mx.Device, /) -> mx.array:
    return x


def set_default_device(name: object, fallback: bool = False) -> None:
    """Set the default device by the definition, and MLX's own, which determines where every array is computed."""
    _definition_of("set_default_device")(name, fallback)
    best = mx.Device(mx.gpu if "gpu" in _devices() else mx.cpu)
    mx.set_default_device(_backends.load("mlx").device or best)


def synchronize(device: mx.Device | None = None) -> None:
    mx.synchronize(mx.default_stream(device or mx.default_device()))


def memory_info(device: mx.Device | None = None) -> dict[str, int | None]:
    host, used, peak = _host_memory(), mx.get_active_memory(), mx.get_peak_memory()
    total = mx.device_info().get("memory_size")
    return {"allocated": used, "peak": peak, "total": int(total) if total else host["total"], "free": host["free"]}
