"""Random numbers on torch: from the host for the CPU, from one kernel on CUDA, in 64-bit integers on other devices.

In compiled code, a draw is one call of an operator defined here, which the compiler does not look into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import floor, where

from ember_ml.backend.numpy import random as host
from ember_ml.backend.torch.compiler import mark_constant
from ember_ml.backend.torch.core import DTYPES, kernels_for, to_host
from ember_ml.random import sampling, threefry

HOST = False

# A key drawn while a graph is traced is a constant of that graph.
mark_constant(threefry.draw)


def is_host(device: torch.device | None) -> bool:
    """Whether random numbers for this device are generated in host memory."""
    return (device is None or device.type == "cpu") and not torch.compiler.is_compiling()


def is_traced() -> bool:
    """Whether a compiler traces the caller."""
    return torch.compiler.is_compiling()


def has_double(device: torch.device | None) -> bool:
    """Whether the device supports float64."""
    return device is None or device.type != "mps"


def known(x: torch.Tensor) -> Any:
    """Values of ``x`` as a host array, or ``None`` if a compiler or ``vmap`` traces it."""
    if torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(x):
        return None
    return to_host(x.to(torch.float32) if x.dtype is torch.bfloat16 else x)


def adopt(array: np.ndarray[Any, Any], device: torch.device | None) -> torch.Tensor:
    """New host array as a tensor, without a copy if possible."""
    if array.dtype.kind == "V" or array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(device)
    return torch.from_numpy(array).to(device)


def cast(x: torch.Tensor, dtype: str) -> torch.Tensor:
    """``x`` in the dtype of that name."""
    return x.to(DTYPES[dtype])


def view(x: torch.Tensor, dtype: str) -> torch.Tensor:
    """Bits of ``x`` as another dtype of the same size."""
    if torch._C._functorch.is_batchedtensor(x):
        return _View.apply(x, DTYPES[dtype])
    return x.view(DTYPES[dtype])


class _View(torch.autograd.Function):
    """View of the bits of a tensor under ``vmap``, which older torch releases do not support."""

    @staticmethod
    def forward(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return x.view(dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return None, None

    @staticmethod
    def vmap(info: Any, places: Any, x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, int]:
        return _View.apply(x, dtype), places[0]


def tensor(value: Any, dtype: str, device: torch.device | None) -> torch.Tensor:
    """Number or nested list of numbers as a tensor."""
    return torch.tensor(value, dtype=DTYPES[dtype], device=device)


def positions(start: int, count: int, device: torch.device | None) -> torch.Tensor:
    """``count`` integers from ``start`` on, in int64."""
    return torch.arange(start, start + count, device=device)


def sqrt(x: torch.Tensor) -> torch.Tensor:
    """Correctly rounded square root. torch 2.13: torch.sqrt is not correctly rounded on the CPU."""
    return torch.sqrt(x.to(torch.float64)).to(x.dtype) if has_double(x.device) else torch.sqrt(x)


def sort(x: torch.Tensor) -> torch.Tensor:
    """Values of ``x`` in ascending order."""
    return torch.sort(x).values


def largest(x: torch.Tensor) -> torch.Tensor:
    """Largest value of each row, as a column."""
    return x.amax(-1, keepdim=True)


def cumsum(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    """Cumulative sums along an axis, by default of each row."""
    return x.cumsum(axis)


def cumprod(x: torch.Tensor) -> torch.Tensor:
    """Cumulative products of each column."""
    return x.cumprod(0)


def argsort(x: torch.Tensor) -> torch.Tensor:
    """Indices that sort the values, stably."""
    return torch.argsort(x, stable=True)


def located(sums: torch.Tensor, aims: torch.Tensor) -> torch.Tensor:
    """Number of sums in a row that are <= each of the row's aims, not counting the last sum."""
    return torch.searchsorted(sums[:, :-1].contiguous(), aims.contiguous(), side="right")


def single(x: torch.Tensor) -> torch.Tensor:
    """``x`` in float32, or unchanged if it is in float64."""
    return x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)


def keys(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Keys from their two 32-bit halves, along a last axis of length two."""
    return torch.stack((first, second), -1).to(torch.uint32)


def spread(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Values of ``x``, one for each element of that shape."""
    return torch.broadcast_to(x, shape).reshape(-1)


def pair_of(key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both 32-bit halves of a key whose values cannot be read on the host."""
    wide = key.to(torch.int64)
    return wide[0], wide[1]


def word(x: torch.Tensor) -> torch.Tensor:
    """Integers below 2**32 in the dtype that holds 32 random bits."""
    return x.to(torch.int64)


def words(key: tuple[Any, Any], start: int, count: int, device: torch.device | None = None) -> torch.Tensor:
    """``count`` random 32-bit integers from number ``start`` on; block ``i`` holds numbers ``2i`` and ``2i + 1``."""
    skipped = start & 1
    return _run("threefry", key, device, _signed(start >> 1), count + skipped, None)[..., skipped:]


def below(key: tuple[Any, Any], start: int, count: int, limit: int, device: torch.device | None = None) -> torch.Tensor:
    """Whether each of the random 32-bit integers of ``words`` is below ``limit``."""
    return words(key, start, count, device) < limit if start else _run("trials", key, device, count, limit)


def pairs(
    key: tuple[Any, Any], start: int, count: int, device: torch.device | None = None, offset: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both random 32-bit integers of ``count`` blocks from number ``start + offset`` on."""
    made = _run("threefry", key, device, _signed(start), 2 * count, offset)
    return made[..., 0::2], made[..., 1::2]


def _run(name: str, key: tuple[Any, Any], device: torch.device | None, *args: Any) -> torch.Tensor:
    """Result of an operator below; keys are integers, zero-dimensional tensors, or columns."""
    first, second = key
    if not isinstance(first, int):
        # The numbers of a key are along the last axis.
        first, second = (x.squeeze(-1) if x.ndim else x for x in key)
    elif torch.compiler.is_compiling() or isinstance(args[-1], torch.Tensor):
        # The offset, which is the last argument, may be traced.
        device = args[-1].device if isinstance(args[-1], torch.Tensor) else device
        first, second = (torch.full((), half, dtype=torch.int64, device=device) for half in (first, second))
    else:
        return _IMPLEMENTATIONS[name](first, second, *args, device=device)
    made: torch.Tensor = getattr(torch.ops.ember_ml, name)(first, second, *args)
    return made


def _signed(number: int) -> int:
    """Signed 64-bit integer with the bits of an unsigned one."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _threefry(
    first: Any,
    second: Any,
    start: int,
    count: int,
    offset: torch.Tensor | None = None,
    device: torch.device | None = None,
) -> torch.Tensor:
    """``count`` random 32-bit integers from block ``start + offset`` on, as int64, along a new last axis.

    Args:
        first, second: halves of the key, integers or int64 tensors of one shape.
        offset: an int64 tensor of that shape.
    """
    device = device if isinstance(first, int) else first.device
    if offset is not None and offset.shape != first.shape:
        first, second, offset = torch.broadcast_tensors(first, second, offset)
    if _is_known(first, device):
        number = start if offset is None else start + int(offset)
        made = host.words((int(first), int(second)), number % (1 << 64) * 2, count)
        return torch.from_numpy(made).to(torch.int64)
    kernels = kernels_for(device)
    if kernels is not None:
        return kernels.words(first, second, start, count, offset, device)
    # Sums of int64 wrap around, as those of counters do.
    counters = torch.arange((count + 1) // 2, device=device) + start
    if not isinstance(first, int):
        first, second = first[..., None], second[..., None]
    if offset is not None:
        counters = counters + offset[..., None]
    both = threefry.block((first, second), counters >> 32 & threefry.MASK, counters & threefry.MASK)
    return torch.stack(both, -1).flatten(-2)[..., :count].contiguous()


def _trials(first: Any, second: Any, count: int, limit: int, device: torch.device | None = None) -> torch.Tensor:
    """Whether each of ``count`` random 32-bit integers is below ``limit``, along a new last axis."""
    device = device if isinstance(first, int) else first.device
    if _is_known(first, device):
        key = int(first), int(second)
        return torch.from_numpy(host.in_chunks(sampling.trials, key, count, [limit / 2.0**32]))
    kernels = kernels_for(device)
    if kernels is not None:
        return kernels.trials(first, second, count, limit, device)
    return _threefry(first, second, 0, count, None, device) < limit


def _is_known(half: Any, device: torch.device | None) -> bool:
    """Whether the host generates the random numbers: for one key on the CPU."""
    return (device is None or device.type == "cpu") and (isinstance(half, int) or (half.numel() == 1 and not half.ndim))


_IMPLEMENTATIONS: dict[str, Callable[..., torch.Tensor]] = {"threefry": _threefry, "trials": _trials}


def _fake_threefry(
    first: torch.Tensor, second: torch.Tensor, start: int, count: int, offset: torch.Tensor | None = None
) -> torch.Tensor:
    shape = first.shape if offset is None else torch.broadcast_shapes(first.shape, offset.shape)
    return first.new_empty((*shape, count))


def _fake_trials(first: torch.Tensor, second: torch.Tensor, count: int, limit: int) -> torch.Tensor:
    return first.new_empty((*first.shape, count), dtype=torch.bool)


def _mapped(name: str) -> Callable[..., Any]:
    """Rule of ``vmap`` for an operator: keys are independent of each other."""

    def run(info: Any, places: Any, *args: Any) -> tuple[torch.Tensor, int]:
        moved = [
            x
            if not isinstance(x, torch.Tensor)
            else x.expand(info.batch_size, *x.shape)
            if place is None
            else x.movedim(place, 0)
            for x, place in zip(args, places, strict=True)
        ]
        return getattr(torch.ops.ember_ml, name)(*moved), 0

    return run


if not hasattr(torch.ops.ember_ml, "threefry"):  # an earlier import of this module may have defined it
    # torch.library.custom_op adds 0.1 ms to every call.
    _library = torch.library.Library("ember_ml", "FRAGMENT")
    _library.define("threefry(Tensor first, Tensor second, int start, SymInt count, Tensor? offset=None) -> Tensor")
    _library.define("trials(Tensor first, Tensor second, SymInt count, int limit) -> Tensor")
    for _name, _fake in (("threefry", _fake_threefry), ("trials", _fake_trials)):
        _library.impl(_name, _IMPLEMENTATIONS[_name], "CompositeExplicitAutograd")
        torch.library.register_fake(f"ember_ml::{_name}", _fake, lib=_library)
        torch.library.register_vmap(f"ember_ml::{_name}", _mapped(_name), lib=_library)


def native_words(shape: tuple[int, ...], device: torch.device | None) -> torch.Tensor:
    """Random 32-bit integers from torch's generator."""
    return torch.randint(0, 1 << 32, shape, device=device)


def native_fractions(count: int, dtype: str, device: torch.device | None) -> torch.Tensor | None:
    """Uniform numbers in [0, 1) from torch's generator."""
    return torch.rand(count, dtype=DTYPES[dtype], device=device)


def native_normals(count: int, dtype: str, device: torch.device | None) -> torch.Tensor | None:
    """Standard normal numbers from torch's generator."""
    return torch.randn(count, dtype=DTYPES[dtype], device=device)
