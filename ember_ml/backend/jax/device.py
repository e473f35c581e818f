"""Devices and memory on JAX."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array

from ember_ml import backend as _backends
from ember_ml.backend.jax.core import is_traced as _is_traced
from ember_ml.backend.jax.core import jitted as _jitted
from ember_ml.backend.numpy.device import memory_info as _host_memory


def to_device(x: Array, device: jax.Device, /) -> Array:
    return x if not _is_traced(x) and x.devices() == {device} else jax.device_put(x, device)


def synchronize(device: jax.Device | None = None) -> None:
    # A device computes in the order of submission, while transfers to it do not wait for computations.
    for one in jax.local_devices() if device is None else (device,):
        _next(jax.device_put(np.zeros(()), one)).block_until_ready()


_next = _jitted(lambda x: x + 1)


def memory_info(device: jax.Device | None = None) -> dict[str, int | None]:
    stats = (device or _backends.load("jax").device).memory_stats()
    if not stats:
        return _host_memory()
    used, total = stats["bytes_in_use"], stats.get("bytes_limit")
    free = None if total is None else total - used
    return {"allocated": used, "peak": stats.get("peak_bytes_in_use"), "total": total, "free": free}
