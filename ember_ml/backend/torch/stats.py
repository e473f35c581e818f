"""Statistics on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import native_for
from ember_ml.backend.torch.dtypes import cast
from ember_ml.shapes import axes_of, axis_of


@native_for(torch.sum, "floating", "int64", bare=True)
def sum(
    x: torch.Tensor, /, *, axis: Any = None, dtype: torch.dtype | None = None, keepdims: bool = False
) -> torch.Tensor:
    if axis is None and dtype is None and not keepdims and x.dtype is not torch.uint64:
        return torch.sum(x)
    x = _uncut(x, dtype)
    if dtype is torch.uint64 or x.dtype is torch.uint64:
        return _unsigned(sum, x, dtype, axis=axis, keepdims=keepdims)
    if _is_nothing(x, axis):
        return x if dtype is None else x.to(dtype)
    return torch.sum(x, axis, keepdims, dtype=dtype)


def _uncut(x: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """``x``, cast if it is complex: ``cast`` does not let imaginary parts get lost, as torch would."""
    return cast(x, dtype) if dtype is not None and x.is_complex() else x


def _is_nothing(x: torch.Tensor, axis: Any) -> bool:
    """Whether ``axis`` names no axis: torch takes that to mean all of them."""
    if not isinstance(axis, (tuple, list)):
        return False
    check_axes(x, axis)
    return not axis


def check_axes(x: torch.Tensor, axis: Any) -> None:
    """Refuse several axes of a 0-d tensor: torch takes 0 and -1 there, NumPy only as one integer."""
    if not x.ndim and isinstance(axis, (tuple, list)):
        axes_of(axis, 0)


def _unsigned(run: Any, x: torch.Tensor, dtype: torch.dtype | None, **options: Any) -> torch.Tensor:
    """Sums and products modulo 2**64 have the same bits with and without sign, and torch has kernels for int64 only."""
    return run(_signed(x), dtype=torch.int64, **options).view(torch.uint64).to(dtype or torch.uint64)


def _signed(x: torch.Tensor) -> torch.Tensor:
    return x.view(torch.int64) if x.dtype is torch.uint64 else x.to(torch.int64)


def prod(
    x: torch.Tensor, /, *, axis: Any = None, dtype: torch.dtype | None = None, keepdims: bool = False
) -> torch.Tensor:
    x = _uncut(x, dtype)
    if dtype is torch.uint64 or x.dtype is torch.uint64:
        return _unsigned(prod, x, dtype, axis=axis, keepdims=keepdims)
    if _is_nothing(x, axis):
        return x if dtype is None else x.to(dtype)
    if (dtype or x.dtype) in (torch.float16, torch.bfloat16):
        # Unlike sums, products are not accumulated in float32.
        return prod(x, axis=axis, dtype=torch.float32, keepdims=keepdims).to(dtype or x.dtype)
    if isinstance(axis, int):
        return torch.prod(x, axis, keepdims, dtype=dtype)
    flat, shape = _flattened(x, axis, keepdims)
    return torch.prod(flat, -1, dtype=dtype).reshape(shape)


def _flattened(x: torch.Tensor, axis: Any, keepdims: bool) -> tuple[torch.Tensor, list[int]]:
    """``x`` with the axes to be reduced joined into one at the end, and the shape of the answer."""
    wanted = axes_of(axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in wanted]
    shape = [1 if i in wanted else n for i, n in enumerate(x.shape)] if keepdims else [x.shape[i] for i in kept]
    flat = x.permute((*kept, *wanted)).reshape([x.shape[i] for i in kept] + [_product([x.shape[i] for i in wanted])])
    return flat, shape


def _product(numbers: Any) -> int:
    total = 1
    for n in numbers:
        total *= n
    return total


@native_for(torch.mean, "floating", bare=True)
def mean(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    return x if _is_nothing(x, axis) else torch.mean(x, axis, keepdims)


def var(x: torch.Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> torch.Tensor:
    return _spread(torch.var, x, axis, correction, keepdims)


def std(x: torch.Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> torch.Tensor:
    return _spread(torch.std, x, axis, correction, keepdims)


def _spread(run: Any, x: torch.Tensor, axis: Any, correction: float, keepdims: bool) -> torch.Tensor:
    freedom = _count(x, axis) - correction
    if freedom > 0 and x.numel() and not _is_nothing(x, axis):
        return run(x, axis, correction=correction, keepdim=keepdims)
    # torch warns where nothing is left to divide by, or there is no answer to give.
    deviation = sum((x - mean(x, axis=axis, keepdims=True)).abs(), axis=axis, keepdims=keepdims)
    return deviation if freedom > 0 else torch.where(deviation > 0, torch.inf, torch.nan).to(deviation.dtype)


def _count(x: torch.Tensor, axis: Any) -> int:
    """How many elements each answer of a reduction is made of."""
    if axis is None or not x.ndim:
        return x.numel()
    return x.size(axis) if isinstance(axis, int) else _product([x.size(i) for i in axis])


def max(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    if x.numel() == 0:
        _refuse_nothing(x, axis)
    if axis is None and not keepdims:
        return torch.amax(x)
    return x if _is_nothing(x, axis) else torch.amax(x, () if axis is None else axis, keepdims)


def min(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False) -> torch.Tensor:
    if x.numel() == 0:
        _refuse_nothing(x, axis)
    if axis is None and not keepdims:
        return torch.amin(x)
    return x if _is_nothing(x, axis) else torch.amin(x, () if axis is None else axis, keepdims)


def _refuse_nothing(x: torch.Tensor, axis: Any) -> None:
    if _count(x, axis) == 0:
        raise ValueError(f"x must have elements along axis {axis}, got shape {list(x.shape)}")


def cumsum(
    x: torch.Tensor, /, *, axis: Any = None, dtype: torch.dtype | None = None, include_initial: bool = False
) -> torch.Tensor:
    return _accumulated(torch.cumsum, 0, x, axis, dtype, include_initial)


def cumprod(
    x: torch.Tensor, /, *, axis: Any = None, dtype: torch.dtype | None = None, include_initial: bool = False
) -> torch.Tensor:
    return _accumulated(torch.cumprod, 1, x, axis, dtype, include_initial)


def _accumulated(
    run: Any, first: int, x: torch.Tensor, axis: int | None, dtype: torch.dtype | None, include_initial: bool
) -> torch.Tensor:
    x = _uncut(x, dtype)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if dtype is torch.uint64 or x.dtype is torch.uint64:
        signed = _accumulated(run, first, _signed(x), axis, torch.int64, include_initial)
        return signed.view(torch.uint64).to(dtype or torch.uint64)
    target = dtype or x.dtype
    if x.is_cuda and target in (torch.float16, torch.bfloat16):
        # On the CPU, torch carries these sums in float32 by itself.
        return _accumulated(run, first, x, axis, torch.float32, include_initial).to(target)
    running = run(x, axis, dtype=dtype)
    if not include_initial:
        return running
    shape = list(running.shape)
    shape[axis] = 1
    return torch.cat([running.new_full(shape, first), running], axis)


def cummax(x: torch.Tensor, /, *, axis: int) -> torch.Tensor:
    return _running(torch.cummax, x, axis)


def cummin(x: torch.Tensor, /, *, axis: int) -> torch.Tensor:
    return _running(torch.cummin, x, axis)


def _running(run: Any, x: torch.Tensor, axis: int) -> torch.Tensor:
    """``run`` along an axis, which torch 2.13 does not look at where there are no elements."""
    return run(x, axis).values if x.numel() else run(x, axis_of(axis, x.ndim)).values
