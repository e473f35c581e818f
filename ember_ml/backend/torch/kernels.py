"""Threefry's random bits on CUDA: one Triton kernel per draw, with the bits of ``threefry.block``.

Importing this module requires Triton, which comes with torch for CUDA. A kernel is compiled when it is first called.
"""

from __future__ import annotations

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
    out = torch.empty((*_shape(first), count), dtype=torch.int64, device=device)
    _launch(out, first, second, start, offset, None)
    return out


def trials(first: Any, second: Any, count: int, limit: int, device: torch.device) -> torch.Tensor:
    """Whether each of ``count`` random 32-bit integers for each key is below ``limit``."""
    out = torch.empty((*_shape(first), count), dtype=torch.bool, device=device)
    _launch(out.view(torch.uint8), first, second, 0, None, limit)
    return out


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
