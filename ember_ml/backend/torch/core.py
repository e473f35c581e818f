"""What dispatch needs of PyTorch: its tensor types, dtypes, conversions, devices and errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from ember_ml import backend as backends
from ember_ml import dtypes, tree
from ember_ml.backend.numpy.core import DTYPES as HOST_DTYPES
from ember_ml.backend.numpy.core import parse
from ember_ml.backend.numpy.sequences import assembled, held
from ember_ml.dtypes import default_dtype
from ember_ml.errors import AxisError, LinAlgError, UnsupportedError

# torch.compile cannot trace the reading of a ContextVar, nor the hash of another engine's dtype; what these answer is
# fixed while a graph is traced.
torch.compiler.assume_constant_result(backends.block_backend)
torch.compiler.assume_constant_result(dtypes.name_of)

TENSORS = (torch.Tensor, torch.nn.Parameter)

# A 0-d tensor costs torch less than a number, except here, where it knows short cuts for common exponents.
RAW_NUMBERS = frozenset({"power"})

DTYPES = {name: getattr(torch, name) for name in HOST_DTYPES}

_HOST_OF = {DTYPES[name]: dtype for name, dtype in HOST_DTYPES.items()}
_OF_HOST = {host: own for own, host in _HOST_OF.items()}


def convert(value: Any, dtype: torch.dtype | None, device: torch.device | None) -> torch.Tensor:
    """``value`` as a tensor of ``dtype``, or of the dtype that Python numbers and arrays have by default."""
    if type(value) in (bool, int, float, complex):
        return _number(value, dtype or DTYPES[default_dtype(type(value)).name], device)
    if isinstance(value, torch.Tensor):
        return value.to(device=device, dtype=dtype)
    has_tensors, has_arrays = held(value)
    if has_tensors:
        beside = device or device_in(value)
        return assembled(value, dtype, DTYPES.__getitem__, lambda leaf, own: convert(leaf, own, beside), torch.stack)
    if torch.compiler.is_compiling() and isinstance(value, (list, tuple, range)):
        return _traced(value, dtype, device)
    if hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        return _from_dlpack(value).to(device=device, dtype=dtype)
    return from_host(parse(value, None if dtype is None else _HOST_OF[dtype], has_arrays), device)


def _number(value: Any, dtype: torch.dtype, device: torch.device | None) -> torch.Tensor:
    try:
        return torch.scalar_tensor(value, dtype=dtype, device=device)
    except (RuntimeError, OverflowError):
        # torch refuses a float beyond the range of the dtype, which IEEE 754 rounds to infinity, and an integer of more
        # than 64 bits.
        wide = torch.complex128 if dtype.is_complex else torch.float64
        return torch.scalar_tensor(complex(value) if dtype.is_complex else float(value), dtype=wide).to(device, dtype)


def _from_dlpack(value: Any) -> torch.Tensor:
    """A foreign tensor; one in host memory through NumPy, since negative strides end the process in torch's reader."""
    in_host_memory = value.__dlpack_device__()[0] == 1
    return from_host(np.from_dlpack(value), None) if in_host_memory else torch.from_dlpack(value)


def _traced(value: Any, dtype: torch.dtype | None, device: torch.device | None) -> torch.Tensor:
    """A sequence in compiled code, which cannot be read through NumPy."""
    x = torch.tensor(value, dtype=dtype, device=device)
    if dtype is None and x.is_floating_point():
        return x.to(DTYPES[default_dtype(float).name])
    return x


def device_in(value: Any) -> torch.device | None:
    """The device of the first of this engine's tensors in a nested sequence."""
    return next((leaf.device for leaf in tree.leaves(value) if isinstance(leaf, torch.Tensor)), None)


def from_host(array: np.ndarray[Any, Any], device: torch.device | None) -> torch.Tensor:
    """A copy of a host array as a tensor: torch would share its memory, and writing to one would change the other."""
    dtype = _OF_HOST[array.dtype]
    if dtype is torch.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).to(device)
    return torch.from_numpy(array.copy()).to(device)


_CPU = torch.device("cpu")


def scalar_like(number: float, like: torch.Tensor) -> torch.Tensor:
    """A Python number as a 0-d tensor of the dtype and device of ``like``."""
    return _number(number, like.dtype, _CPU if like.is_cpu else like.device)


def cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``x`` in another dtype."""
    return x.to(dtype)


def to_host(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """The values of ``x`` as a host array."""
    if x.dtype is torch.bfloat16:
        return x.detach().view(torch.int16).numpy(force=True).view(HOST_DTYPES["bfloat16"])
    return x.numpy(force=True)


def opaque(operation: Any, run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """What ``run`` computes out of torch's sight: asking for its gradient is an error, not zero."""
    back = torch.is_grad_enabled()
    tensors = [x for x in tree.leaves(values) if isinstance(x, torch.Tensor)]
    traced = [x for x in tensors if (back and x.requires_grad) or is_pushed(x)]
    if is_pushing() and operation.definition is not None:
        # The definition is made of what torch can differentiate forward.
        args, kwargs = operation.general.arguments(values)
        with backends.active(backends.load("torch")):
            return operation.definition(*args, **kwargs)
    if traced and operation.differentiable:
        raise UnsupportedError(
            f"an operation must have a gradient on the torch backend to be differentiated, got {operation.name} of "
            f"{str(traced[0].dtype)[6:]}"
        )
    return run(*values)


def is_pushed(x: torch.Tensor) -> bool:
    """Whether a tangent of ``x`` goes forward with it."""
    return is_pushing() and forward_ad.unpack_dual(x).tangent is not None


def is_pushing() -> bool:
    """Whether torch differentiates forward."""
    return forward_ad._current_level >= 0


def device_like(x: torch.Tensor) -> torch.device:
    """The engine's own object for the device that ``x`` is on."""
    return x.device


def device_of(x: torch.Tensor) -> str:
    """The name of the device that ``x`` is on."""
    return str(x.device)


def devices() -> list[str]:
    """The devices of this engine, the best last."""
    found = ["cpu"]
    if torch.backends.mps.is_available():
        found.append("mps")
    if torch.cuda.is_available():
        found += ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    return found


def find_device(name: Any) -> torch.device:
    """The engine's own object for a device name."""
    if isinstance(name, torch.device):
        name = str(name)
    if name == "cpu" or (torch.compiler.is_compiling() and name != "gpu"):
        return torch.device(name)
    found = devices()
    if name == "gpu":
        name = next((d for d in ("cuda", "mps") if d in found), "gpu")
    if name not in found:
        raise ValueError(f"device must be one of {', '.join(found)} on the torch backend, got {str(name)!r}")
    return torch.device(name)


_KIND_MESSAGES = re.compile(
    r"not implemented for|not supported|dtype|expected scalar type|can't be cast|bool tensor|result type|must be real"
    r"|only supported for|does not support|Boolean|complex"
)
# Only CUDA has a class for it. These are the words of the CPU on Linux and macOS, of the CPU on Windows, and of MPS.
_MEMORY_MESSAGES = re.compile(r"can't allocate memory|not enough memory|backend out of memory")


def error_class(error: Exception) -> type[Exception] | None:
    """The class that this mistake has on every engine, if it is not the error's own."""
    message = str(error)
    if isinstance(error, torch.linalg.LinAlgError):
        return LinAlgError
    if isinstance(error, IndexError):
        is_of_axis = re.search("Dimension out of range|has no dimensions|Expected reduction dim", message)
        return AxisError if is_of_axis else None
    if isinstance(error, NotImplementedError):
        return TypeError
    if isinstance(error, TypeError):
        return ValueError if "Overflow when unpacking long" in message else None
    if isinstance(error, RuntimeError):
        if isinstance(error, torch.OutOfMemoryError) or _MEMORY_MESSAGES.search(message):
            return MemoryError
        if "zero-dimensional tensor" in message:
            return AxisError
        if re.search(
            r"index \S+ is out of bounds|out of bounds for dimension|out of DATA bounds|axis dim should be positive",
            message,
        ):
            return IndexError
        return TypeError if _KIND_MESSAGES.search(message) else ValueError
    return None


def substitute(call: Callable[..., Any], traceable: Callable[..., Any]) -> None:
    """Make torch's compiler trace ``traceable`` wherever ``call`` is called."""
    torch.compiler.substitute_in_graph(call, skip_signature_check=True)(traceable)
