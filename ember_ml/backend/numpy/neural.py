"""Neural network primitives on NumPy: convolution as a matrix product, pooling axis by axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.numpy.linearalg import _wide
from ember_ml.shapes.axes import axes_of
from ember_ml.shapes.neural import causal_offset, check_attention, check_linear
from ember_ml.shapes.windows import (
    Windows,
    check_kernel,
    fold_windows,
    is_last,
    kernel_slice,
    kernel_slices,
    output_sizes,
    padded_sizes,
    pool_windows,
    spatial,
    transposed_windows,
    valid_counts,
    windows,
)

Array = np.ndarray[Any, Any]

# Number of elements that fits easily in the CPU cache.
_CACHED = 1 << 16


def linear(x: Array, weight: Array, /, bias: Array | None = None) -> Array:
    check_linear(x, weight, bias)
    # One product of many rows is faster than many products of few.
    rows = _wide(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
    result = np.matmul(rows, _wide(weight))
    if bias is not None:
        np.add(result, _wide(bias), out=result)
    return result.reshape(*x.shape[:-1], weight.shape[1]).astype(x.dtype, copy=False)


def conv(
    x: Array,
    kernel: Array,
    /,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    groups: int = 1,
) -> Array:
    check_kernel(x.shape, kernel.shape, data_format, groups)
    window = windows(spatial(x.shape, data_format), kernel.shape[:-2], strides, padding, dilation_rate)
    if not (x.size and kernel.size):
        return _to_data_format(np.zeros((len(x), *window.counts, kernel.shape[-1]), x.dtype), x, data_format)
    wide, filters = _padded(_channels_last(_wide(x), data_format), window, 0), _wide(kernel)
    run = _depthwise_conv if groups > 1 and kernel.shape[-2] == 1 else _conv_by_product
    return _to_data_format(run(wide, filters, window, groups), x, data_format)


def _conv_by_product(x: Array, kernel: Array, window: Windows, groups: int) -> Array:
    """Convolution as a matrix product per group, with the windows as rows."""
    inner, outer, taps = kernel.shape[-2], kernel.shape[-1] // groups, math.prod(window.kernel)
    matrices = np.moveaxis(kernel.reshape(taps * inner, groups, outer), 1, 0)
    result = np.empty((len(x), *window.counts, groups, outer), x.dtype)
    # A few examples at a time, because the rows are many times larger than the examples.
    few = max(1, 16 * _CACHED // max(1, math.prod(window.counts) * taps * inner * groups))
    for start in range(0, len(x), few):
        part = x[start : start + few]
        rows = _windows_of(part.reshape(*part.shape[:-1], groups, inner), window)
        product = rows.reshape(groups, len(part) * math.prod(window.counts), taps * inner) @ matrices
        result[start : start + few] = np.moveaxis(product, 0, 1).reshape(len(part), *result.shape[1:])
    return result.reshape(len(x), *window.counts, groups * outer)


def _windows_of(x: Array, window: Windows) -> Array:
    """View of all windows with axes (groups, examples, *positions, *window, channels)."""
    rank = len(window.sizes)
    parts = np.moveaxis(x, -2, 0)
    view = np.lib.stride_tricks.sliding_window_view(parts, window.spans, tuple(range(2, rank + 2)))
    steps: tuple[Any, ...] = tuple(slice(None, None, s) for s in window.strides)
    holes: tuple[Any, ...] = tuple(slice(None, None, d) for d in window.dilation)
    return np.moveaxis(view[(slice(None), slice(None), *steps, slice(None), *holes)], rank + 2, -1)


def _depthwise_conv(x: Array, kernel: Array, window: Windows, groups: int) -> Array:
    """Depthwise convolution as a sum over the kernel's positions."""
    filters = kernel.reshape(-1, kernel.shape[-1])
    x = np.repeat(x, filters.shape[1] // groups, -1) if filters.shape[1] > groups else x
    total = np.zeros((len(x), *window.counts, filters.shape[1]), x.dtype)
    # A few examples at a time, so that their sums stay in the CPU cache.
    few = max(1, _CACHED // max(1, math.prod(total.shape[1:])))
    for start in range(0, len(x), few):
        part, sums = x[start : start + few], total[start : start + few]
        term = np.empty_like(sums)
        for weights, places in zip(filters, kernel_slices(window), strict=True):
            sums += np.multiply(part[(slice(None), *places)], weights, out=term)
    return total


def conv_transpose(
    x: Array,
    kernel: Array,
    /,
    strides: Any = 1,
    padding: Any = "valid",
    output_padding: Any = None,
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    groups: int = 1,
) -> Array:
    check_kernel(x.shape, kernel.shape, data_format, groups, transposed=True)
    sizes = spatial(x.shape, data_format)
    window = transposed_windows(sizes, kernel.shape[:-2], strides, padding, output_padding, dilation_rate)
    if not (x.size and kernel.size):
        return _to_data_format(
            np.zeros((len(x), *output_sizes(window), kernel.shape[-2] * groups), x.dtype), x, data_format
        )
    wide, filters = _channels_last(_wide(x), data_format), _wide(kernel)
    inner, outer, taps = kernel.shape[-1] // groups, kernel.shape[-2], math.prod(window.kernel)
    rows = np.moveaxis(wide.reshape(-1, groups, inner), 1, 0)
    columns = np.moveaxis(filters.reshape(taps * outer, groups, inner), 0, -1)
    spread = np.moveaxis((rows @ columns).reshape(groups, len(x), *sizes, taps, outer), 0, -2)
    ends = tuple(max(0, -high) for _, high in window.pads)
    total = np.zeros((len(x), *(n + end for n, end in zip(window.sizes, ends, strict=True)), groups, outer), wide.dtype)
    for i, places in enumerate(kernel_slices(window)):
        total[(slice(None), *places)] += spread[..., i, :, :]
    kept = tuple(slice(low, n - max(high, 0)) for n, (low, high) in zip(total.shape[1:], window.pads, strict=False))
    result = total[(slice(None), *kept)]
    return _to_data_format(result.reshape(*result.shape[:-2], groups * outer), x, data_format)


def max_pool(
    x: Array, /, pool_size: Any, strides: Any = None, padding: Any = "valid", data_format: str = "channels_last"
) -> Array:
    window = pool_windows(spatial(x.shape, data_format), pool_size, strides, padding)
    return _to_data_format(_pool(_channels_last(x, data_format), window, _least(x.dtype), np.maximum), x, data_format)


def average_pool(
    x: Array, /, pool_size: Any, strides: Any = None, padding: Any = "valid", data_format: str = "channels_last"
) -> Array:
    window = pool_windows(spatial(x.shape, data_format), pool_size, strides, padding)
    total = _pool(_channels_last(_wide(x), data_format), window, 0, np.add)
    for axis in range(len(window.sizes)):
        counts = np.asarray(valid_counts(window, axis), total.dtype)
        total = total / counts.reshape(-1, *(1,) * (total.ndim - axis - 2))
    return _to_data_format(total, x, data_format)


def _pool(x: Array, window: Windows, blank: Any, join: Callable[..., Array]) -> Array:
    """Windows reduced one axis at a time: the number of steps is the sum of the window's lengths, not their product."""
    x = _padded(x, window, blank)
    for axis, size in enumerate(window.kernel):
        before = (slice(None),) * (axis + 1)
        total = x[(*before, kernel_slice(window, axis, 0))]
        if size > 1:
            total = join(total, x[(*before, kernel_slice(window, axis, 1))])
        for place in range(2, size):
            join(total, x[(*before, kernel_slice(window, axis, place))], out=total)
        x = total
    return x


def _least(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def layer_normalization(
    x: Array, /, scale: Array | None = None, offset: Array | None = None, axis: Any = -1, epsilon: float = 1e-5
) -> Array:
    axes = axes_of(axis, x.ndim)
    wide = _wide(x)
    result = np.subtract(wide, _mean(wide, axes), out=np.empty_like(wide))
    np.multiply(result, _inverse_size(result, axes, epsilon), out=result)
    if scale is not None:
        result *= _along(scale, x, axes)
    if offset is not None:
        result += _along(offset, x, axes)
    return result.astype(x.dtype, copy=False)


def rms_normalization(x: Array, /, scale: Array | None = None, axis: Any = -1, epsilon: float = 1e-5) -> Array:
    axes = axes_of(axis, x.ndim)
    wide = _wide(x)
    result = np.multiply(wide, _inverse_size(wide, axes, epsilon), out=np.empty_like(wide))
    if scale is not None:
        result *= _along(scale, x, axes)
    return result.astype(x.dtype, copy=False)


def _mean(x: Array, axes: tuple[int, ...]) -> Any:
    """Mean along the axes, with keepdims; zero if they are empty."""
    return np.add.reduce(x, axes, keepdims=True) / max(1, math.prod([x.shape[axis] for axis in axes]))


def _inverse_size(x: Array, axes: tuple[int, ...], epsilon: float) -> Any:
    """``1 / sqrt(mean(x ** 2) + epsilon)`` along the axes, with keepdims."""
    first = x.ndim - len(axes)
    width = math.prod(x.shape[first:])
    if x.size > 0 and width <= _CACHED and x.flags.c_contiguous and min(axes, default=0) == first:
        # vecdot needs no array of squares. It sums sequentially, which loses precision for long rows.
        rows = x.reshape(-1, width)
        power = (np.vecdot(rows, rows) / width).reshape(x.shape[:first] + (1,) * len(axes))
    else:
        power = _mean(np.square(x), axes)
    return 1 / np.sqrt(power + epsilon)


def _along(values: Array, x: Array, axes: tuple[int, ...]) -> Array:
    """``values`` along the axes of ``x``, reshaped to broadcast with it."""
    wanted = tuple(x.shape[axis] for axis in sorted(axes))
    if values.shape != wanted:
        raise ValueError(f"values along the axes {list(axes)} must have shape {list(wanted)}, got {list(values.shape)}")
    return values.reshape([n if i in axes else 1 for i, n in enumerate(x.shape)])


def dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    /,
    mask: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    causal_alignment: str = "top_left",
) -> Array:
    repeats = check_attention(query.shape, key.shape, value.shape, mask, bias)
    offset = causal_offset(query.shape[1], key.shape[1], causal_alignment)
    factor = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
    q, k, v = (_wide(x).swapaxes(1, 2) for x in (query, key, value))
    if repeats > 1:
        k, v = np.repeat(k, repeats, 1), np.repeat(v, repeats, 1)
    scores = (q * np.asarray(factor, q.dtype)) @ k.swapaxes(-1, -2)
    if bias is not None:
        scores += _wide(bias)
    allowed = None if mask is None else np.broadcast_to(mask, scores.shape)
    if is_causal:
        causal = np.tri(scores.shape[-2], scores.shape[-1], offset, dtype=bool)
        allowed = causal if allowed is None else allowed & causal
    if allowed is not None:
        scores[~np.broadcast_to(allowed, scores.shape)] = -np.inf
    peak = scores.max(-1, keepdims=True, initial=-np.inf)
    scores -= np.where(np.isneginf(peak), 0, peak)
    np.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    result = scores @ v
    if np.all(total > 0):
        result /= total
    else:
        visible = np.broadcast_to(True if allowed is None else allowed, scores.shape)
        visible = visible if bias is None else visible & (_wide(bias) != -np.inf)
        # Rows without any visible key are zero, even if keys or values are NaN.
        result = np.where(visible.any(-1, keepdims=True), result / np.where(total == 0, np.nan, total), 0)
    return np.ascontiguousarray(result.swapaxes(1, 2)).astype(query.dtype, copy=False)


def fold(
    x: Array, /, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Array:
    window = fold_windows(x.shape, output_size, kernel_size, dilation, padding, stride)
    sizes, inside = padded_sizes(window)
    whole: tuple[Any, Any] = (slice(None), slice(None))
    taps = math.prod(window.kernel)
    parts = _wide(x).reshape(len(x), x.shape[1] // taps, taps, *window.counts)
    total = np.zeros((*parts.shape[:2], *sizes), parts.dtype)
    for i, places in enumerate(kernel_slices(window)):
        total[(*whole, *places)] += parts[:, :, i]
    return total[(*whole, *inside)].astype(x.dtype, copy=False)


def _channels_last(x: Array, data_format: str) -> Array:
    return x if is_last(data_format) else np.moveaxis(x, 1, -1)


def _to_data_format(result: Array, x: Array, data_format: str) -> Array:
    """``result``, which has channels last, in the layout and dtype of ``x``."""
    result = result.astype(x.dtype, copy=False)
    return result if is_last(data_format) else np.ascontiguousarray(np.moveaxis(result, -1, 1))


def _padded(x: Array, window: Windows, blank: Any) -> Array:
    if not any(map(any, window.pads)):
        return x
    return np.pad(x, ((0, 0), *window.pads, (0, 0)), constant_values=blank)
