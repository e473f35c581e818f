"""Collective operations on torch: gloo on the CPU, NCCL on CUDA."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist

from ember_ml.backend.protocol import Collectives
from ember_ml.backend.torch.optim import SPARE_BYTES, owns_memory
from ember_ml.dispatch import REGISTRY
from ember_ml.distributed import calls
from ember_ml.distributed.launch import LAUNCH
from ember_ml.dtypes import describe
from ember_ml.gradients import rule_of
from ember_ml.shapes.collectives import check_root, part_length

RANK, SIZE = LAUNCH.rank, LAUNCH.size

TIMES_OUT = True

# gloo reduces two buckets at a time, while the next one is joined; smaller ones take longer in all.
BUCKET_BYTES = 24_000_000

_TRANSPORT = cast(Collectives, sys.modules[__name__])

# The group for tensors in host memory, if that is not the default group; a list, as it is created later.
_host_groups: list[Any] = []

# torch 2.13: gloo has no 16-bit integers and no unsigned integers of more than 8 bits.
_WIDER = {torch.int16: torch.int32, torch.uint16: torch.int32}
_SIGNED = {torch.uint32: torch.int32, torch.uint64: torch.int64}


def start(timeout: float) -> None:
    """Create the process group, unless the program has created it."""
    if not dist.is_initialized():
        has_cuda = torch.cuda.is_available()
        if has_cuda:
            torch.cuda.set_device(LAUNCH.local_rank % torch.cuda.device_count())
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if has_cuda else "gloo",
            init_method=f"tcp://{LAUNCH.meeting_point()}",
            rank=RANK,
            world_size=SIZE,
            timeout=timedelta(seconds=timeout),
        )
        # torch 2.13: a process that exits with a group of gloo may be aborted by its threads.
        atexit.register(dist.destroy_process_group)
    elif "gloo" not in str(dist.get_backend_config()):
        _host_groups.append(dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout)))


def exchange(header: bytes) -> list[bytes]:
    """Headers of all ranks, over host memory, so that no accelerator has to wait."""
    found = _gather(torch.frombuffer(bytearray(header), dtype=torch.uint8))
    return [bytes(part.tolist()) for part in found.chunk(SIZE)]


class Reduction:
    """Means over all ranks of the tensors of buckets. A complete bucket is reduced while others are filled.

    Buckets are reduced in their order, which is the same on all ranks, in whatever order they become complete.
    """

    def __init__(self, buckets: Sequence[Sequence[torch.Tensor]]) -> None:
        self.flats = _buffers([(sum([x.numel() for x in tensors]), tensors[0]) for tensors in buckets])
        self.parts = [
            [part.view(x.shape) for part, x in zip(flat.split([x.numel() for x in tensors]), tensors, strict=True)]
            for flat, tensors in zip(self.flats, buckets, strict=True)
        ]
        self.missing = [len(tensors) for tensors in buckets]
        self.begun: list[Any] = []

    def put(self, bucket: int, place: int, x: torch.Tensor) -> torch.Tensor:
        """Tensor in which the mean of ``x`` will be after ``wait``."""
        part = self.parts[bucket][place]
        # Division here costs no pass over memory, and sums of float16 do not overflow.
        torch.div(x.detach(), SIZE, out=part)
        self.missing[bucket] -= 1
        while len(self.begun) < len(self.flats) and not self.missing[len(self.begun)]:
            flat = self.flats[len(self.begun)]
            self.begun.append(dist.all_reduce(flat, group=_group(flat), async_op=True) if flat.numel() else None)
        return part

    def wait(self) -> None:
        """Wait for the means of all tensors."""
        for work in self.begun:
            if work is not None:
                work.wait()


def watch(x: torch.Tensor, hook: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Replace the gradient of ``x`` by what ``hook`` returns for it, as soon as it is computed."""
    if x.requires_grad:
        x.register_hook(hook)


# Memory of means with the number of the reduction that used it last. New memory of this size costs page faults, which
# take half as long as gloo does.
_kept: list[tuple[int, torch.Tensor]] = []
_KEPT_FOR = 4


def _buffers(sizes: Sequence[tuple[int, torch.Tensor]]) -> list[torch.Tensor]:
    """Vectors of these lengths, of the dtype and on the device of a tensor, to whose memory nothing else refers."""
    found: list[torch.Tensor] = []
    number = _kept[-1][0] + 1 if _kept else 0
    for length, like in sizes:
        if not like.is_cpu or length * like.element_size() < SPARE_BYTES:
            found.append(like.new_empty(length))
            continue
        for i, (last, flat) in enumerate(_kept):
            if last < number and flat.shape == (length,) and flat.dtype is like.dtype and owns_memory(flat):
                del _kept[i]
                break
        else:
            flat = like.new_empty(length)
        _kept.append((number, flat))
        found.append(flat)
    if _kept and _kept[-1][0] == number:
        _kept[:] = [(last, flat) for last, flat in _kept if last > number - _KEPT_FOR]
    return found


def average(buckets: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
    """Means over all ranks; a bucket is reduced while the next one is joined."""
    reduction = Reduction(buckets)
    for i, tensors in enumerate(buckets):
        for place, x in enumerate(tensors):
            reduction.put(i, place, x)
    reduction.wait()
    return reduction.parts


def all_sum(x: torch.Tensor, /) -> torch.Tensor:
    return x if SIZE == 1 else _all_sum(x)


def all_mean(x: torch.Tensor, /) -> torch.Tensor:
    return x if SIZE == 1 else _all_mean(x)


def all_max(x: torch.Tensor, /) -> torch.Tensor:
    return x if SIZE == 1 else _all_max(x)


def all_gather(x: torch.Tensor, /) -> torch.Tensor:
    return torch.atleast_1d(x) if SIZE == 1 else _all_gather(x)


def broadcast(x: torch.Tensor, /, root: int = 0) -> torch.Tensor:
    check_root(root, SIZE)
    return x if SIZE == 1 else _broadcast(x, root)


def scatter(x: torch.Tensor, /, root: int = 0) -> torch.Tensor:
    check_root(root, SIZE)
    part_length(x.shape, SIZE)
    return x if SIZE == 1 else _scatter(x, root)


def reduce_scatter(x: torch.Tensor, /) -> torch.Tensor:
    part_length(x.shape, SIZE)
    return x if SIZE == 1 else _reduce_scatter(x)


def _operator(
    shape: Callable[..., Sequence[int]], schema: str = "(Tensor x) -> Tensor"
) -> Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]:
    """Decorator for an operator that compilers of torch do not look into, with the gradient rule of the operation.

    Args:
        shape: function from the arguments to the shape of the result.
        schema: the signature in torch's notation.
    """

    def decorate(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        name = function.__name__.removeprefix("_")
        operation = REGISTRY.get(f"collectives.{name}", REGISTRY[name])

        def run(x: torch.Tensor, *args: int) -> torch.Tensor:
            text = f"{name}({', '.join([describe(x), *(f'root={root}' for root in args)])})"
            return calls.run(_TRANSPORT, text, lambda: function(x, *args))

        def save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
            x, *ctx.rest = inputs
            ctx.save_for_backward(x, output if name == "all_max" else None)

        def pull(ctx: Any, g: torch.Tensor) -> tuple[Any, ...]:
            x, output = ctx.saved_tensors
            (found,) = cast(Any, rule_of(operation))([0], g, output, [x, *ctx.rest], {})
            return (found, *(None for _ in ctx.rest))

        operator = torch.library.custom_op(f"ember_ml::{name}", run, mutates_args=(), schema=schema)
        operator.register_fake(lambda x, *args: x.new_empty(shape(x, *args)))
        operator.register_autograd(pull, setup_context=save)
        return operator

    return decorate


def _same(x: torch.Tensor, *args: int) -> Sequence[int]:
    return x.shape


def _part(x: torch.Tensor, *args: int) -> Sequence[int]:
    return (x.shape[0] // SIZE, *x.shape[1:])


_ROOTED = "(Tensor x, int root) -> Tensor"


@_operator(_same)
def _all_sum(x: torch.Tensor) -> torch.Tensor:
    out = _summable(x)
    if out.numel():
        dist.all_reduce(out, group=_group(out))
    return _summed(out, x.dtype)


@_operator(_same)
def _all_mean(x: torch.Tensor) -> torch.Tensor:
    ((out,),) = average([[x]])
    return out


@_operator(_same)
def _all_max(x: torch.Tensor) -> torch.Tensor:
    found = _gather(x).view(SIZE, *x.shape)
    # torch 2.13: no maximum of unsigned integers of more than 8 bits.
    wide = {torch.uint16: torch.int32, torch.uint32: torch.int64}.get(x.dtype)
    if x.dtype is torch.uint64:
        least = torch.iinfo(torch.int64).min
        return ((found.view(torch.int64) ^ least).amax(0) ^ least).view(torch.uint64)
    return found.amax(0) if wide is None else found.to(wide).amax(0).to(x.dtype)


@_operator(lambda x: (SIZE * x.shape[0], *x.shape[1:]) if x.ndim else (SIZE,))
def _all_gather(x: torch.Tensor) -> torch.Tensor:
    return _gather(x)


@_operator(_same, _ROOTED)
def _broadcast(x: torch.Tensor, root: int) -> torch.Tensor:
    out = x.clone(memory_format=torch.contiguous_format)
    if out.numel():
        dist.broadcast(_bytes(out), root, group=_group(out))
    return out


@_operator(_part, _ROOTED)
def _scatter(x: torch.Tensor, root: int) -> torch.Tensor:
    out = x.new_empty(_part(x))
    if out.numel():
        parts = list(_bytes(x).chunk(SIZE)) if root == RANK else None
        dist.scatter(_bytes(out), parts, root, group=_group(out))
    return out


@_operator(_part)
def _reduce_scatter(x: torch.Tensor) -> torch.Tensor:
    terms = _summable(x)
    out = terms.new_empty(_part(x))
    if out.numel():
        dist.reduce_scatter(out, list(terms.chunk(SIZE)), group=_group(out))
    return _summed(out, x.dtype)


def _group(x: torch.Tensor) -> Any:
    return _host_groups[0] if _host_groups and x.is_cpu else None


def _bytes(x: torch.Tensor) -> torch.Tensor:
    """Bytes of ``x`` as a vector, of which any transport has the dtype; no copy if ``x`` is contiguous."""
    flat = x.detach().reshape(-1)
    # One element may have any stride, and bytes need a stride of 1.
    return (flat if flat.stride() == (1,) else flat.clone(memory_format=torch.contiguous_format)).view(torch.uint8)


def _gather(x: torch.Tensor) -> torch.Tensor:
    """Tensors of all ranks, concatenated along the first axis."""
    out = x.new_empty((SIZE * x.shape[0], *x.shape[1:]) if x.ndim else (SIZE,))
    if out.numel():
        dist.all_gather(list(_bytes(out).chunk(SIZE)), _bytes(x), group=_group(x))
    return out


def _summable(x: torch.Tensor) -> torch.Tensor:
    """Contiguous copy of ``x`` in a dtype that the transport sums, with the same sums to the last bit."""
    if x.dtype in _SIGNED:
        x = x.view(_SIGNED[x.dtype])
    return x.detach().to(_WIDER.get(x.dtype, x.dtype), copy=True, memory_format=torch.contiguous_format)


def _summed(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``x``, a sum of what ``_summable`` returned, in the dtype of the terms."""
    return x.view(dtype) if dtype in _SIGNED else x.to(dtype)
