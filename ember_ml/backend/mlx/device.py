"""Devices: where tensors live, which there are, and what memory they have."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.mlx.core import devices as _devices
from ember_ml.backend.numpy.device import memory_info as _host_memory
from ember_ml.contract import REGISTRY as _REGISTRY


def to_device(x: mx.array, device: mx.Device, /) -> mx.array:
    return x


def set_default_device(name: object, fallback: bool = False) -> None:
    """What the operation does everywhere, and the same for MLX's own default: it decides where every array is computed."""
    from ember_ml import backend as backends

    defined = _REGISTRY["set_default_device"].definition
    assert defined is not None
    defined(name, fallback)
    mx.set_default_device(backends.load("mlx").device or mx.Device(mx.gpu if "gpu" in _devices() else mx.cpu))


def synchronize(device: mx.Device | None = None) -> None:
    mx.synchronize(mx.default_stream(device or mx.default_device()))


def memory_info(device: mx.Device | None = None) -> dict[str, int | None]:
    host = _host_memory()
    total = mx.device_info().get("memory_size", host["total"]) 
    return {"allocated": mx.get_active_memory(), "peak": mx.get_peak_memory(), "total": int(total), "free": host["free"]}
