"""Statistics on torch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import native_for
from ember_ml.backend.torch.dtypes import cast
from ember_ml.shapes.axes import axes_of, axis_of


@native_for(torch.sum, "floating", "int64", bare=True)
def sum(
    x: torch.Tensor, /, *, axis: Any = None, dtype: torch.dtype | None = None, keepdims: bool = False
) -> torch.Tensor:
    if axis is None and dtype is None and not keepdims and x.dtype is not torch.uint64:
        return torch.sum(x)
    x = _cast_complex(x, dtype)
    if dtype is torch.uint64 or x.dtype is torch.uint64:
        return _via_int64(sum, x, dtype, axis=axis, keepdims=keepdims)
    if _has_no_axes(x, axis):
        return x if dtype is None else x.to(dtype)
    return torch.sum(x, axis, keepdims, dtype=dtype)


def _cast_complex(x: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """``x``, cast if it is complex: ``cast`` rejects the loss of imaginary parts, which torch only warns about."""
    return cast(x, dtype) if dtype is not None and x.is_complex() else x


def _has_no_axes(x: torch.Tensor, axis: Any) -> bool:
    """Whether ``axis`` is an empty sequence, which torch treats as all axes."""
    if not isinstance(axis, (tuple, list)):
        return False
    check_axes(x, axis)
    return not axis


def check_axes(x: torch.Tensor, axis: Any) -> None:
    """Raise for a sequence of axes of a 0-d tensor: torch accepts 0 and -1 there, NumPy only as an integer."""
    if not x.ndim and isinstance(axis, (tuple, list)):
        axes_of(axis, 0)


def _via_int64(run: Any, x: torch.Tensor, dtype: torch.dtype | None, **options: Any) -> torch.Tensor:
    """``run`` in int64, as torch has no uint64 kernels: sums and products modulo 2**64 have the same bits in both."""
    return run(_to_int64(x), dtype=torch.int64, **options).view(torch.uint64).to(dtype or torch.uint64)


def _to_int64(x: torch.Tensor) -> torch.Tensor:
    return x.view(torch.int64) if x.dtype is torch.uint64 else x.to(torch.int64)


def prod(
    x: torch.Tensor, /, *, axis: Any = None, dtype: torch.dtype | None = None, keepdims: bool = False
) -> torch.Tensor:
    x = _cast_complex(x, dtype)
    if dtype is torch.uint64 or x.dtype is torch.uint64:
        return _via_int64(prod, x, dtype, axis=axis, keepdims=keepdims)
    if _has_no_axes(x, axis):
        return x if dtype is None else x.to(dtype)
    if (dtype or x.dtype) in (torch.float16, torch.bfloat16):
        # torch 2.13: products, unlike sums, are not accumulated in float32.
        return prod(x, axis=axis, dtype=torch.float32, keepdims=keepdims).to(dtype or x.dtype)
    if isinstance(axis, int):
        return torch.prod(x, axis, keepdims, dtype=dtype)
    flat, shape = _flattened(x, axis, keepdims)
    return torch.prod(flat, -1, dtype=dtype).reshape(shape)


def _flattened(x: torch.Tensor, axis: Any, keepdims: bool) -> tuple[torch.Tensor, list[int]]:
    """``x`` with the reduced axes flattened into one at the end, and the shape of the result."""
    axes = axes_of(axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in axes]
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdims else [x.shape[i] for i in kept]
    flat = x.permute((*kept, *axes)).reshape([x.shape[i] for i in kept] + [_product([x.shape[i] for i in axes])])
    return flat, shape


def _product(numbers: Any) -> int:
    total = 1
    for n in numbers:
        total *= n
    return total


@native_for(torch.mean, "floating", bare=True)
def mean(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    return x if _has_no_axes(x, axis) else torch.mean(x, axis, keepdims)


def var(x: torch.Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> torch.Tensor:
    return _deviation(torch.var, x, axis, correction, keepdims)


def std(x: torch.Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> torch.Tensor:
    return _deviation(torch.std, x, axis, correction, keepdims)


def _deviation(run: Any, x: torch.Tensor, axis: Any, correction: float, keepdims: bool) -> torch.Tensor:
    freedom = _count(x, axis) - correction
    if freedom > 0 and x.numel() and not _has_no_axes(x, axis):
        return run(x, axis, correction=correction, keepdim=keepdims)
    # torch warns if there are no degrees of freedom or no elements.
    deviation = sum((x - mean(x, axis=axis, keepdims=True)).abs(), axis=axis, keepdims=keepdims)
    return deviation if freedom > 0 else torch.where(deviation > 0, torch.inf, torch.nan).to(deviation.dtype)


def _count(x: torch.Tensor, axis: Any) -> int:
    """Number of elements reduced to each result."""
    if axis is None or not x.ndim:
        return x.numel()
    return x.size(axis) if isinstance(axis, int) else _product([x.size(i) for i in axis])


def max(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    if x.numel() == 0:
        _check_nonempty(x, axis)
    if axis is None and not keepdims:
        return torch.amax(x)
    return x if _has_no_axes(x, axis) else torch.amax(x, () if axis is None else axis, keepdims)


def min(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    if x.numel() == 0:
        _check_nonempty(x, axis)
    if axis is None and not keepdims:
        return torch.amin(x)
    return x if _has_no_axes(x, axis) else torch.amin(x, () if axis is None else axis, keepdims)


def _check_nonempty(x: torch.Tensor, axis: Any) -> None:
    if _count(x, axis) == 0:
        raise ValueError(f"x must have elements along axis {axis}, got shape {list(x.shape)}")


def cumsum(
    x: torch.Tensor, /, *, axis: Any = None, dtype: torch.dtype | None = None, include_initial: bool = False
) -> torch.Tensor:
    return _accumulate(torch.cumsum, 0, x, axis, dtype, include_initial)


def cumprod(
    x: torch.Tensor, /, *, axis: Any = None, dtype: torch.dtype | None = None, include_initial: bool = False
) -> torch.Tensor:
    return _accumulate(torch.cumprod, 1, x, axis, dtype, include_initial)


def _accumulate(
    run: Any, first: int, x: torch.Tensor, axis: int | None, dtype: torch.dtype | None, include_initial: bool
) -> torch.Tensor:
    x = _cast_complex(x, dtype)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if dtype is torch.uint64 or x.dtype is torch.uint64:
        signed = _accumulate(run, first, _to_int64(x), axis, torch.int64, include_initial)
        return signed.view(torch.uint64).to(dtype or torch.uint64)
    target = dtype or x.dtype
    if x.is_cuda and target in (torch.float16, torch.bfloat16):
        # torch 2.13: cumulative sums accumulate in float32 on the CPU, but not on CUDA.
        return _accumulate(run, first, x, axis, torch.float32, include_initial).to(target)
    running = run(x, axis, dtype=dtype)
    if not include_initial:
        return running
    shape = list(running.shape)
    shape[axis] = 1
    return torch.cat([running.new_full(shape, first), running], axis)


def cummax(x: torch.Tensor, /, *, axis: int) -> torch.Tensor:
    return _accumulate_along(torch.cummax, x, axis)


def cummin(x: torch.Tensor, /, *, axis: int) -> torch.Tensor:
    return _accumulate_along(torch.cummin, x, axis)


def _accumulate_along(run: Any, x: torch.Tensor, axis: int) -> torch.Tensor:
    """``run`` along an axis. torch 2.13 does not check the axis of empty tensors."""
    return run(x, axis).values if x.numel() else run(x, axis_of(axis, x.ndim)).values
