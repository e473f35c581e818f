"""Kernels for CUDA, in Triton: Threefry's random bits, and the step of Adam for parameters in half precision.

Importing this module requires Triton, which comes with torch for CUDA. A kernel is compiled when it is first called.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

# Number of blocks per program.
_SIZE = 512


@triton.jit
def _four_rounds(x, y, a: tl.constexpr, b: tl.constexpr, c: tl.constexpr, d: tl.constexpr):
    x += y
    y = (y << a | y >> (32 - a)) ^ x
    x += y
    y = (y << b | y >> (32 - b)) ^ x
    x += y
    y = (y << c | y >> (32 - c)) ^ x
    x += y
    y = (y << d | y >> (32 - d)) ^ x
    return x, y


# Values of these arguments must not be constants of the kernel, which would be compiled again for others.
@triton.jit(do_not_specialize=["first", "second", "start", "limit"])
def _blocks(
    out, first, second, offset, start, limit, count, blocks, keys,
    has_tensors: tl.constexpr, has_offset: tl.constexpr, is_trial: tl.constexpr, size: tl.constexpr,
):  # fmt: skip
    """Write the random 32-bit integers of ``blocks`` blocks for each key, ``count`` of them, to a row of ``out``."""
    begin = tl.program_id(0).to(tl.int64) * size
    place = begin + tl.arange(0, size)
    row = place // blocks
    counter = place - row * blocks + start
    if has_tensors:
        a = tl.load(first + row, row < keys, 0).to(tl.uint32)
        b = tl.load(second + row, row < keys, 0).to(tl.uint32)
    else:
        a = tl.full((size,), 0, tl.uint32) + first.to(tl.uint32)
        b = tl.full((size,), 0, tl.uint32) + second.to(tl.uint32)
    if has_offset:
        counter += tl.load(offset + row, row < keys, 0)
    c = a ^ b ^ 0x1BD11BDA
    x, y = (counter >> 32).to(tl.uint32), counter.to(tl.uint32)
    x, y = _four_rounds(x + a, y + b, 13, 15, 26, 6)
    x, y = _four_rounds(x + b, y + c + 1, 17, 29, 16, 24)
    x, y = _four_rounds(x + c, y + a + 2, 13, 15, 26, 6)
    x, y = _four_rounds(x + a, y + b + 3, 17, 29, 16, 24)
    x, y = _four_rounds(x + b, y + c + 4, 13, 15, 26, 6)
    word = tl.interleave(x + c, y + a + 5).to(tl.int64)
    place = 2 * begin + tl.arange(0, 2 * size)
    row = place // (2 * blocks)
    column = place - row * (2 * blocks)
    is_inside = (row < keys) & (column < count)
    if is_trial:
        tl.store(out + row * count + column, (word < limit).to(tl.uint8), is_inside)
    else:
        tl.store(out + row * count + column, word, is_inside)


def words(
    first: Any, second: Any, start: int, count: int, offset: torch.Tensor | None, device: torch.device
) -> torch.Tensor:
    """``count`` random 32-bit integers for each key from block ``start + offset`` on, as int64."""
    with _outside_transforms():
        out = torch.empty((*_shape(first), count), dtype=torch.int64, device=device)
        _launch(out, first, second, start, offset, None)
    return out


def trials(first: Any, second: Any, count: int, limit: int, device: torch.device) -> torch.Tensor:
    """Whether each of ``count`` random 32-bit integers for each key is below ``limit``."""
    with _outside_transforms():
        out = torch.empty((*_shape(first), count), dtype=torch.bool, device=device)
        _launch(out.view(torch.uint8), first, second, 0, None, limit)
    return out


# Transforms of torch.func wrap new tensors, whose memory a kernel cannot find.
_outside_transforms = torch._C._DisableFuncTorch


def _shape(first: Any) -> tuple[int, ...]:
    return () if isinstance(first, int) else tuple(first.shape)


def _launch(
    out: torch.Tensor, first: Any, second: Any, start: int, offset: torch.Tensor | None, limit: int | None
) -> None:
    if not out.numel():
        return
    count = out.shape[-1]
    blocks, keys = (count + 1) // 2, out.numel() // count
    has_tensors = not isinstance(first, int)
    if has_tensors:
        first, second = first.contiguous(), second.contiguous()
    # Triton launches kernels on the current device.
    with torch.cuda.device_of(out):
        _blocks[(triton.cdiv(keys * blocks, _SIZE),)](
            out, first, second, out if offset is None else offset.contiguous(), start, limit or 0, count, blocks, keys,
            has_tensors=has_tensors, has_offset=offset is not None, is_trial=limit is not None, size=_SIZE,
        )  # fmt: skip


# Elements per program of a step of Adam, and columns of its table.
_PART, _COLUMNS = 2048, 7


@triton.jit
def _adam_parts(
    table, parts, steps, rate, log_beta_1, log_beta_2, beta_1, beta_2, new_1, new_2, eps, weight_decay,
    decoupled: tl.constexpr, dtype: tl.constexpr, part: tl.constexpr, columns: tl.constexpr,
):  # fmt: skip
    """Update a part of a parameter, whose row of the table has the addresses, the length and the place of the count."""
    row = table + tl.load(parts + 2 * tl.program_id(0)) * columns
    offset = tl.load(parts + 2 * tl.program_id(0) + 1) * part + tl.arange(0, part)
    new = tl.load(row).to(tl.pointer_type(dtype)) + offset
    old = tl.load(row + 1).to(tl.pointer_type(dtype)) + offset
    gradient = tl.load(row + 2).to(tl.pointer_type(dtype)) + offset
    momentum = tl.load(row + 3).to(tl.pointer_type(tl.float32)) + offset
    variance = tl.load(row + 4).to(tl.pointer_type(tl.float32)) + offset
    is_inside = offset < tl.load(row + 5)
    step = tl.load(steps + tl.load(row + 6)).to(tl.float64)
    correction_1 = (1 - tl.exp(step * log_beta_1)).to(tl.float32)
    correction_2 = tl.sqrt(1 - tl.exp(step * log_beta_2)).to(tl.float32)
    lr = tl.load(rate)
    p = tl.load(old, is_inside).to(tl.float32)
    g = tl.load(gradient, is_inside).to(tl.float32)
    if decoupled:
        p *= 1 - lr * weight_decay
    else:
        g += weight_decay * p
    m = beta_1 * tl.load(momentum, is_inside) + new_1 * g
    v = beta_2 * tl.load(variance, is_inside) + new_2 * g * g
    p -= lr / correction_1 * m / (tl.sqrt(v) / correction_2 + eps)
    tl.store(new, p.to(dtype), is_inside)
    tl.store(momentum, m, is_inside)
    tl.store(variance, v, is_inside)


_DTYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


def adam(
    new: list[torch.Tensor], old: list[torch.Tensor], gradients: list[torch.Tensor], momenta: list[torch.Tensor],
    variances: list[torch.Tensor], steps: torch.Tensor, places: list[int], rate: torch.Tensor, beta_1: float,
    beta_2: float, eps: float, weight_decay: float, decoupled: bool,
) -> None:  # fmt: skip
    """Step of Adam for contiguous parameters of one half-precision dtype, with state in float32.

    Args:
        steps: float32 numbers of steps, of which ``places`` has the index for each parameter.
        rate: the learning rate in float32, 0-d.
    """
    device = new[0].device
    sizes = tuple([x.numel() for x in new])
    lists = (new, old, gradients, momenta, variances)
    addresses = zip(*([x.data_ptr() for x in tensors] for tensors in lists), sizes, places, strict=True)
    # Pinned memory is copied without waiting for the device.
    table = torch.tensor(list(addresses), dtype=torch.int64).pin_memory().to(device, non_blocking=True)
    parts = _parts(sizes, device)
    logs = [math.log(beta) if beta else -math.inf for beta in (beta_1, beta_2)]
    with torch.cuda.device_of(new[0]):
        _adam_parts[(len(parts),)](
            table, parts, steps, rate, *logs, beta_1, beta_2, 1 - beta_1, 1 - beta_2, eps, weight_decay,
            decoupled=decoupled, dtype=_DTYPES[new[0].dtype], part=_PART, columns=_COLUMNS,
        )  # fmt: skip


@cache
def _parts(sizes: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """For each program, the place of its parameter and the number of its part."""
    counts = torch.tensor([-(-size // _PART) for size in sizes])
    rows = torch.repeat_interleave(torch.arange(len(sizes)), counts)
    starts = counts.cumsum(0) - counts
    return torch.stack((rows, torch.arange(len(rows)) - starts[rows]), -1).contiguous().to(device)
