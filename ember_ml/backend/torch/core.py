"""What dispatch needs of torch: its tensor types, dtypes, conversions, devices and errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.utils._device import DeviceContext

from ember_ml import backend as backends
from ember_ml import dtypes, tree
from ember_ml.backend.numpy.core import DTYPES as HOST_DTYPES
from ember_ml.backend.numpy.core import parse
from ember_ml.backend.numpy.sequences import assembled, held
from ember_ml.backend.torch import compiler
from ember_ml.dtypes import default_dtype
from ember_ml.errors import AxisError, LinAlgError, PrecisionWarning, UnsupportedError, warn

# torch 2.13: torch.compile cannot trace reading a ContextVar or hashing a foreign dtype; both are constant while
# tracing.
for _function in (backends.block_backend, backends.block_device, backends.usual_device, dtypes.name_of):
    compiler.mark_constant(_function)

_CPU = torch.device("cpu")

TENSORS = (torch.Tensor, torch.nn.Parameter)
VIEWS = True

# torch handles 0-d tensors faster than numbers, except here, where common exponents have fast paths.
RAW_NUMBERS = frozenset({"power"})

# Operations whose function receives floating tensors of different dtypes inside of torch.autocast.
AUTOCAST = frozenset(
    {
        "add",
        "conv",
        "conv_transpose",
        "divide",
        "dot_product_attention",
        "einsum",
        "linear",
        "matmul",
        "maximum",
        "minimum",
        "multiply",
        "subtract",
        "where",
    }
)

# The kinds of devices that torch.autocast knows; torch.compile cannot trace the question in every version.
_AUTOCAST_DEVICES = frozenset(filter(torch.amp.is_autocast_available, ("cpu", "cuda", "mps", "xpu", "xla", "hpu")))

DTYPES = {name: getattr(torch, name) for name in HOST_DTYPES}

_HOST_OF = {DTYPES[name]: dtype for name, dtype in HOST_DTYPES.items()}
_OF_HOST = {host: native for native, host in _HOST_OF.items()}


def convert(value: Any, dtype: torch.dtype | None, device: torch.device | None) -> torch.Tensor:
    """``value`` as a tensor of ``dtype``, or of the dtype that Python numbers and arrays have by default."""
    if type(value) in (bool, int, float, complex):
        return _number(value, dtype or DTYPES[default_dtype(type(value)).name], device)
    if isinstance(value, torch.Tensor):
        return value.to(device=device, dtype=dtype)
    has_tensors, has_arrays = held(value)
    if has_tensors:
        target = device or device_in(value)
        return assembled(
            value, dtype, DTYPES.__getitem__, lambda leaf, native: convert(leaf, native, target), torch.stack
        )
    if torch.compiler.is_compiling() and isinstance(value, (list, tuple, range)):
        return _from_traced_sequence(value, dtype, device)
    if hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        return _from_dlpack(value).to(device=device, dtype=dtype)
    if dtype is not None:
        return from_host(parse(value, _HOST_OF[dtype], has_arrays), device)
    array = parse(value, None, has_arrays)
    narrow = narrower(_OF_HOST[array.dtype], device)
    return from_host(array if narrow is None else array.astype(_HOST_OF[narrow]), device)


def _number(value: Any, dtype: torch.dtype, device: torch.device | None) -> torch.Tensor:
    try:
        return torch.scalar_tensor(value, dtype=dtype, device=device)
    except (RuntimeError, OverflowError):
        # torch raises for a float beyond the range of the dtype, which IEEE 754 rounds to infinity, and for an integer
        # of more than 64 bits.
        wide, number = (torch.complex128, complex(value)) if dtype.is_complex else (torch.float64, float(value))
        return torch.scalar_tensor(number, dtype=wide, device=_CPU).to(device, dtype)


def _from_dlpack(value: Any) -> torch.Tensor:
    """Foreign tensor, in host memory through NumPy. torch 2.13: negative strides from DLPack end the process."""
    in_host_memory = value.__dlpack_device__()[0] == 1
    return from_host(np.from_dlpack(value), None) if in_host_memory else torch.from_dlpack(value)


def _from_traced_sequence(value: Any, dtype: torch.dtype | None, device: torch.device | None) -> torch.Tensor:
    """Sequence in compiled code, which cannot go through NumPy."""
    x = torch.tensor(value, dtype=dtype, device=device)
    if dtype is None and x.is_floating_point():
        return x.to(DTYPES[default_dtype(float).name])
    return x


def device_in(value: Any) -> torch.device | None:
    """Device of the first torch tensor in a nested sequence."""
    return next((leaf.device for leaf in tree.leaves(value) if isinstance(leaf, torch.Tensor)), None)


def from_host(array: np.ndarray[Any, Any], device: torch.device | None) -> torch.Tensor:
    """Copy of a host array as a tensor: torch would share memory, so that writing to one would change the other."""
    dtype = _OF_HOST[array.dtype]
    if dtype is torch.bfloat16:
        return to_device(torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16), device)
    return to_device(torch.from_numpy(array.copy()), device)


def to_device(x: torch.Tensor, device: torch.device | None) -> torch.Tensor:
    """New tensor in host memory on a device, without waiting for what the device computes at the moment."""
    is_small_on_cuda = device is not None and device.type == "cuda" and x.numel() <= _LARGEST_PINNED
    # PyTorch 2.11: the compiler cannot trace pin_memory.
    if is_small_on_cuda and not torch.compiler.is_compiling():
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


# Number of elements up to which copying to pinned memory takes less time than waiting.
_LARGEST_PINNED = 1 << 12


def kernels_for(device: torch.device | None) -> Any:
    """Module of kernels in Triton for a device; ``None`` if it has none."""
    return _kernels() if device is not None and device.type == "cuda" else None


@cache
def _kernels() -> Any:
    try:
        from ember_ml.backend.torch import kernels
    except ImportError:
        return None
    return kernels


# What MPS, which has no float64, has in its place.
_NARROWER = {torch.float64: torch.float32, torch.complex128: torch.complex64}


def narrower(dtype: torch.dtype, device: torch.device | None) -> torch.dtype | None:
    """Dtype on a device of host data in a dtype that it lacks, with one warning; ``None`` if it has the dtype."""
    if dtype not in _NARROWER or device is None or device.type != "mps":
        return None
    if dtype not in _warned:
        _warned.add(dtype)
        wide, narrow = str(dtype)[6:], str(_NARROWER[dtype])[6:]
        warn(f"torch has no {wide} on this device: host data in {wide} becomes {narrow}", PrecisionWarning)
    return _NARROWER[dtype]


_warned: set[torch.dtype] = set()


def has_float64() -> bool:
    """Whether the default device supports float64, which MPS does not."""
    return backends.load("torch").device.type != "mps"


def scalar_like(number: float, like: torch.Tensor) -> torch.Tensor:
    """A Python number as a 0-d tensor of the dtype and device of ``like``."""
    return _number(number, like.dtype, _CPU if like.is_cpu else like.device)


def cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``x`` in another dtype."""
    return x.to(dtype)


def autocasts(x: torch.Tensor) -> bool:
    """Whether the caller is inside of ``torch.autocast`` for the device of ``x``."""
    kind = x.device.type
    return kind in _AUTOCAST_DEVICES and torch.is_autocast_enabled(kind)


class _CastAll(torch.autograd.Function):
    """Casts of many tensors in one call of torch, and of their gradients in another."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.dtypes = [x.dtype for x in tensors]
        new = [torch.empty_like(x, dtype=dtype) for x in tensors]
        torch._foreach_copy_(new, tensors)
        return tuple(new)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        found: list[torch.Tensor | None] = [None] * len(cotangents)
        for dtype in dict.fromkeys(ctx.dtypes):
            places = [i for i, x in enumerate(cotangents) if x is not None and ctx.dtypes[i] is dtype]
            for i, x in zip(places, cast_all([cotangents[i] for i in places], dtype), strict=True):
                found[i] = x
        return None, *found


def cast_all(tensors: Sequence[Any], dtype: torch.dtype) -> Sequence[torch.Tensor]:
    """Tensors in another dtype, with a few kernels for all of them where a kernel for each would cost more."""
    if not tensors or torch.compiler.is_compiling() or peek_interpreter_stack() is not None or is_forward_mode():
        return [x.to(dtype) for x in tensors]
    return _CastAll.apply(dtype, *tensors)


def to_host(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """Values of ``x`` as a host array."""
    if x.dtype is torch.bfloat16:
        return x.detach().view(torch.int16).numpy(force=True).view(HOST_DTYPES["bfloat16"])
    return x.numpy(force=True)


def opaque(operation: Any, run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """Result of ``run``, which torch cannot differentiate: requesting a gradient raises instead of giving zero."""
    back = torch.is_grad_enabled()
    tensors = [x for x in tree.leaves(values) if isinstance(x, torch.Tensor)]
    traced = [x for x in tensors if (back and x.requires_grad) or has_tangent(x)]
    if is_forward_mode() and operation.definition is not None:
        # The definition consists of operations that support forward mode.
        args, kwargs = operation.general.arguments(values)
        with backends.active(backends.load("torch")):
            return operation.definition(*args, **kwargs)
    if traced and operation.differentiable:
        raise UnsupportedError(
            f"an operation must have a gradient on the torch backend to be differentiated, got {operation.name} of "
            f"{str(traced[0].dtype)[6:]}"
        )
    return run(*values)


def has_tangent(x: torch.Tensor) -> bool:
    """Whether ``x`` has a tangent in forward mode."""
    return is_forward_mode() and forward_ad.unpack_dual(x).tangent is not None


def is_forward_mode() -> bool:
    """Whether forward-mode differentiation is active."""
    return forward_ad._current_level >= 0


def device_like(x: torch.Tensor) -> torch.device:
    """Device object of the engine for the device of ``x``."""
    return x.device


def device_of(x: torch.Tensor) -> str:
    """Name of the device of ``x``."""
    return str(x.device)


def devices() -> list[str]:
    """Names of the available devices, the fastest last."""
    found = ["cpu"]
    if torch.backends.mps.is_available():
        found += ["mps", "mps:0"]
    if torch.cuda.is_available():
        found += ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    return found


def own_device() -> torch.device | None:
    """Device of ``torch.set_default_device`` or of the innermost ``with torch.device(...)`` block, if any."""
    # torch.get_default_device() does not tell whether the CPU was asked for.
    if not torch._C._len_torch_function_stack():
        return None
    modes = reversed(torch.overrides._get_current_function_mode_stack())
    return next((mode.device for mode in modes if isinstance(mode, DeviceContext)), None)


compiler.mark_constant(own_device)


def find_device(name: Any) -> torch.device:
    """Device object of the engine for a device name."""
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
# Only CUDA has an error class for it. These are the messages of the CPU on Linux and macOS, on Windows, and of MPS.
_MEMORY_MESSAGES = re.compile(r"can't allocate memory|not enough memory|backend out of memory")


def error_class(error: Exception) -> type[Exception] | None:
    """Error class of this mistake on every engine, or ``None`` if it is the error's own."""
    message = str(error)
    if isinstance(error, torch.linalg.LinAlgError):
        return LinAlgError
    if isinstance(error, IndexError):
        is_of_axis = re.search("Dimension out of range|has no dimensions|Expected reduction dim", message)
        return AxisError if is_of_axis else None
    if isinstance(error, NotImplementedError):
        return TypeError
    if isinstance(error, TypeError):
        if "MPS framework doesn't support" in message:
            return UnsupportedError
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
    compiler.when_imported(lambda: torch.compiler.substitute_in_graph(call, skip_signature_check=True)(traceable))
