"""Random numbers on torch: from the host for the CPU, in 64-bit integers on a GPU and in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import floor, where

from ember_ml.backend.torch.core import DTYPES, to_host
from ember_ml.random import threefry

HOST = False

# A key drawn while a graph is traced is a constant of that graph.
torch.compiler.assume_constant_result(threefry.draw)


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
    first, second = pairs(key, start >> 1, (count + skipped + 1) // 2, device)
    return torch.stack((first, second), -1).reshape(-1)[skipped : skipped + count]


def pairs(
    key: tuple[Any, Any], start: int, count: int, device: torch.device | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both random 32-bit integers of ``count`` blocks from number ``start`` on."""
    counters = positions(start, count, device)
    first, second = threefry.block(key, counters >> 32, counters & threefry.MASK)
    return first, second


def native_words(shape: tuple[int, ...], device: torch.device | None) -> torch.Tensor:
    """Random 32-bit integers from torch's generator."""
    return torch.randint(0, 1 << 32, shape, device=device)


def native_fractions(count: int, dtype: str, device: torch.device | None) -> torch.Tensor | None:
    """Uniform numbers in [0, 1) from torch's generator."""
    return torch.rand(count, dtype=DTYPES[dtype], device=device)


def native_normals(count: int, dtype: str, device: torch.device | None) -> torch.Tensor | None:
    """Standard normal numbers from torch's generator."""
    return torch.randn(count, dtype=DTYPES[dtype], device=device)
