"""What dispatch needs of MLX: its tensor types, dtypes, conversions, devices and errors."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml import backend as backends
from ember_ml.backend.numpy.core import DTYPES as HOST_DTYPES
from ember_ml.backend.numpy.core import parse
from ember_ml.backend.numpy.sequences import assembled, held
from ember_ml.dtypes import default_dtype
from ember_ml.errors import AxisError, PrecisionWarning, warn

# Memory of the constants that loading this backend creates.
_CONSTANT_BYTES = 4

_is_used = False


def _record_use() -> None:
    global _is_used
    made = max(mx.get_peak_memory(), mx.get_active_memory() + mx.get_cache_memory())
    _is_used = _is_used or made > _CONSTANT_BYTES


def _close_if_used() -> None:
    if _is_used:
        backends.close_forked("mlx")


# MLX 0.32: computation runs in threads that a forked process does not have, so it would wait for them forever. For GPUs
# see ml-explore/mlx#2457.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_record_use, after_in_child=_close_if_used)

TENSORS = (mx.array,)
STABLE_DTYPES = False
LAZY = True
VIEWS = True

DTYPES = {name: getattr(mx, "bool_" if name == "bool" else name) for name in HOST_DTYPES if name != "complex128"}

_HOST_OF = {DTYPES[name]: dtype for name, dtype in HOST_DTYPES.items() if name in DTYPES}
_OF_HOST = {host: native for native, host in _HOST_OF.items()}


def convert(value: Any, dtype: mx.Dtype | None, device: mx.Device | None) -> mx.array:
    """``value`` as an array of ``dtype``, or of the dtype that Python numbers and host arrays have by default."""
    if type(value) in (bool, int, float, complex):
        return _number(value, dtype or named(default_dtype(type(value)).name))
    if isinstance(value, mx.array):
        return value if dtype is None else value.astype(dtype)
    has_tensors, has_arrays = held(value)
    if has_tensors:
        return assembled(value, dtype, named, lambda leaf, native: convert(leaf, native, device), mx.stack)
    return from_host(parse(value, None if dtype is None else _HOST_OF[dtype], has_arrays))


def named(name: str) -> mx.Dtype:
    """Dtype of the engine with that name; an ``UnsupportedError`` if there is none."""
    return DTYPES[name] if name in DTYPES else backends.load("mlx").dtype(name)


def _number(value: Any, dtype: mx.Dtype) -> mx.array:
    if type(value) is int and not -1 << 63 <= value < 1 << 63:
        return from_host(parse(value, _HOST_OF[dtype]))
    return mx.array(value, dtype)


def from_host(array: np.ndarray[Any, Any]) -> mx.array:
    """Host array as an MLX array; dtypes that the device does not support are narrowed, with one warning."""
    if array.dtype == np.complex128:
        _warn_narrowed("complex128", "complex64")
        array = array.astype(np.complex64)
    elif array.dtype == np.float64 and not has_float64():
        _warn_narrowed("float64", "float32")
        array = array.astype(np.float32)
    array = np.asarray(array, order="C")
    if array.strides and min(array.strides) < 0:
        # MLX 0.32: negative strides raise, even those of axes of length one, which order="C" keeps.
        array = array.copy()
    dtype = _OF_HOST[array.dtype]
    if array.size == 0:
        # MLX 0.32: reductions of empty arrays that came from NumPy read out of bounds.
        return _evaluate(mx.zeros(array.shape, dtype))
    if dtype == mx.bfloat16:
        return _evaluate(mx.array(array.view(np.uint16)).view(mx.bfloat16))
    if dtype == mx.float64:
        return mx.array(array, dtype=mx.float64)
    return mx.array(array)


def _evaluate(x: mx.array) -> mx.array:
    """Evaluate ``x``: only the thread that created a computation can run it, and data must be usable in any."""
    mx.eval(x)
    return x


def has_float64() -> bool:
    """Whether the default device supports float64, which only the CPU does."""
    return mx.default_device() == mx.Device(mx.cpu)


_narrowed: set[str] = set()


def _warn_narrowed(wide: str, narrow: str) -> None:
    if wide not in _narrowed:
        _narrowed.add(wide)
        warn(f"MLX has no {wide} on this device: host data in {wide} becomes {narrow}", PrecisionWarning)


def scalar_like(number: float, like: mx.array) -> mx.array:
    """A Python number as a 0-d array of the dtype of ``like``."""
    return mx.array(number, like.dtype)


def cast(x: mx.array, dtype: mx.Dtype) -> mx.array:
    """``x`` in another dtype."""
    return x.astype(dtype)


def stream_for(dtype: mx.Dtype) -> AbstractContextManager[Any]:
    """Stream context for values of that dtype: the CPU, if MLX's GPU has no kernel to scatter 8-byte elements."""
    return mx.stream(mx.cpu) if dtype.size == 8 and not has_float64() else nullcontext()


# Smaller arrays are not checked. Builds with a GPU report failed allocations, and GPU memory may be the larger.
_CHECKED_BYTES = 1 << (40 if mx.is_available(mx.gpu) else 32)


def check_memory(shape: Sequence[int], dtype: mx.Dtype) -> None:
    """Raise NumPy's error for an array of this shape if memory cannot hold it."""
    # MLX 0.32: a failed allocation on the CPU writes to a null pointer, which ends the process.
    if math.prod(shape) * dtype.size > _CHECKED_BYTES:
        np.empty(shape, _HOST_OF[dtype])


def start(x: mx.array) -> None:
    check_memory(x.shape, x.dtype)
    mx.async_eval(x)  # type: ignore[no-untyped-call]


def to_host(x: mx.array) -> np.ndarray[Any, Any]:
    """Values of ``x``, which is evaluated, as a host array."""
    check_memory(x.shape, x.dtype)
    if not x.size:
        # Empty GPU arrays have a null pointer; NumPy would dereference it.
        return np.zeros(x.shape, _HOST_OF[x.dtype])
    if x.dtype == mx.bfloat16:
        return np.array(x.view(mx.uint16)).view(HOST_DTYPES["bfloat16"])
    return np.array(x)


def forwards(x: mx.array) -> mx.array:
    """``x``, or a copy if its strides are negative. torch 2.13: negative strides from DLPack end the process."""
    if not x.size:
        return x
    buffer: Any = x.view(mx.uint16) if x.dtype == mx.bfloat16 else x
    return mx.contiguous(x) if min((0, *(memoryview(buffer).strides or ()))) < 0 else x


def opaque(operation: Any, run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """Result of ``run``, which MLX cannot differentiate, with the gradient given by the operation's rule."""
    from ember_ml.backend.mlx import gradients

    return gradients.run_on_host(operation, run, values)


def device_like(x: mx.array) -> mx.Device | None:
    """``None``: MLX arrays are not tied to a device."""
    return None


def device_of(x: mx.array) -> str:
    """Name of the default device: MLX arrays are in memory that all devices share."""
    return "cpu" if mx.default_device() == mx.Device(mx.cpu) else "gpu"


def devices() -> list[str]:
    """Names of the available devices, the fastest last."""
    return ["cpu", "gpu"] if mx.is_available(mx.gpu) else ["cpu"]


def find_device(name: Any) -> mx.Device:
    """Device object of the engine for a device name; ``metal`` is the GPU."""
    if isinstance(name, mx.Device):
        return name
    found = devices()
    if ("gpu" if name == "metal" else name) not in found:
        raise ValueError(f"device must be one of {', '.join(found)} on the mlx backend, got {str(name)!r}")
    return mx.Device(mx.cpu if name == "cpu" else mx.gpu)


def compute_on(device: mx.Device) -> None:
    """Make a device MLX's own default, which determines where every array is computed."""
    mx.set_default_device(device)


_MEMORY_MESSAGES = re.compile(r"Unable to allocate|Attempting to allocate|out of memory")


def error_class(error: Exception) -> type[Exception] | None:
    """Error class of this mistake on every engine, or ``None`` if it is the error's own."""
    if isinstance(error, IndexError):
        return AxisError if re.search(r"\baxis\b", str(error), re.IGNORECASE) else None
    if isinstance(error, ValueError) and "non-empty axes for array with 0" in str(error):
        return AxisError
    if isinstance(error, RuntimeError) and _MEMORY_MESSAGES.search(str(error)):
        return MemoryError
    if isinstance(error, RuntimeError) and not isinstance(error, NotImplementedError):
        return ValueError
    return None
