"""Neural network primitives on MLX."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.linearalg import matmul
from ember_ml.backend.mlx.mapping import map_like, mapped
from ember_ml.backend.mlx.math import exp
from ember_ml.backend.mlx.stats import _wide
from ember_ml.dispatch import REGISTRY, definition_of
from ember_ml.dispatch.operation import within
from ember_ml.shapes.axes import axis_of
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

# Windows at least this long are faster to reduce with one call than to join position by position.
_LONG = 8


def linear(x: mx.array, weight: mx.array, /, bias: mx.array | None = None) -> mx.array:
    check_linear(x, weight, bias)
    # MLX 0.32: addmm raises for x without features, and if it is mapped over the bias alone.
    if bias is None or mapped or not x.size or not mx.issubdtype(x.dtype, mx.inexact):
        product = matmul(x, weight)
        return product if bias is None else product + bias
    return mx.addmm(bias, x, weight)


def conv(
    x: mx.array,
    kernel: mx.array,
    /,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    groups: int = 1,
) -> mx.array:
    check_kernel(x.shape, kernel.shape, data_format, groups)
    window = windows(spatial(x.shape, data_format), kernel.shape[:-2], strides, padding, dilation_rate)
    if not (x.size and kernel.size):
        return _to_data_format(_empty_sum(x, kernel, window.counts, kernel.shape[-1]), data_format)
    inner = _channels_last(x, data_format)
    if x.dtype == mx.float64:
        return _to_data_format(_conv_by_position(inner, kernel, window, groups), data_format)
    options = {"stride": window.strides, "kernel_dilation": window.dilation, "padding": _ends(window.pads)}
    return _to_data_format(_grouped_conv(inner, mx.moveaxis(kernel, -1, 0), groups, options), data_format)


def _empty_sum(x: mx.array, kernel: mx.array, sizes: tuple[int, ...], channels: int) -> mx.array:
    """Convolution of empty arrays: zeros. MLX 0.32 divides by their lengths, which ends the process."""
    return map_like(map_like(mx.zeros((x.shape[0], *sizes, channels), x.dtype), x), kernel)


def _grouped_conv(x: mx.array, filters: mx.array, groups: int, options: dict[str, Any]) -> mx.array:
    """Grouped convolution. MLX 0.32 does not support groups with three spatial axes, so those run one by one."""
    if groups == 1:
        return mx.conv_general(x, filters, **options)
    x = map_like(x, filters)
    if x.ndim < 5:
        return mx.conv_general(x, filters, groups=groups, **options)
    parts = zip(mx.split(x, groups, -1), mx.split(filters, groups, 0), strict=True)
    return mx.concatenate([mx.conv_general(part, own, **options) for part, own in parts], -1)


def _conv_by_position(x: mx.array, kernel: mx.array, window: Windows, groups: int) -> mx.array:
    """Convolution in float64 as a sum over the kernel's positions. MLX 0.32: conv_general does not support float64."""
    x = _padded(x, window, 0.0)
    inner, outer = kernel.shape[-2], kernel.shape[-1] // groups
    filters = mx.moveaxis(kernel.reshape(-1, inner, groups, outer), 2, 1)
    total = mx.zeros((x.shape[0], *window.counts, groups, 1, outer), x.dtype)
    for i, places in enumerate(kernel_slices(window)):
        part = x[(slice(None), *places)]
        total = total + part.reshape(*part.shape[:-1], groups, 1, inner) @ filters[i]
    return total.reshape(*total.shape[:-3], groups * outer)


def _ends(pads: Any) -> tuple[list[int], list[int]]:
    return [low for low, _ in pads], [high for _, high in pads]


def conv_transpose(
    x: mx.array,
    kernel: mx.array,
    /,
    strides: Any = 1,
    padding: Any = "valid",
    output_padding: Any = None,
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    groups: int = 1,
) -> mx.array:
    check_kernel(x.shape, kernel.shape, data_format, groups, transposed=True)
    sizes = spatial(x.shape, data_format)
    window = transposed_windows(sizes, kernel.shape[:-2], strides, padding, output_padding, dilation_rate)
    if not (x.size and kernel.size):
        return _to_data_format(_empty_sum(x, kernel, output_sizes(window), kernel.shape[-2] * groups), data_format)
    inner = _channels_last(x, data_format)
    if x.dtype == mx.float64:
        whole = _conv_transpose_by_position(inner, kernel, window, groups)
    else:
        channels = kernel.shape[-1] // groups
        filters = kernel.reshape(*window.kernel, kernel.shape[-2], groups, channels)
        filters = mx.moveaxis(mx.moveaxis(filters, -2, 0), -2, 1).reshape(-1, *window.kernel, channels)
        options = {
            "input_dilation": window.strides,
            "kernel_dilation": window.dilation,
            "padding": [span - 1 for span in window.spans],
            "flip": True,
        }
        whole = _grouped_conv(inner, filters, groups, options)
    ends = [(0, max(0, -high)) for _, high in window.pads]
    if any(map(any, ends)):
        whole = mx.pad(whole, [(0, 0), *ends, (0, 0)])
    kept = tuple(slice(low, n - max(high, 0)) for n, (low, high) in zip(whole.shape[1:], window.pads, strict=False))
    return _to_data_format(whole[(slice(None), *kept)], data_format)


def _conv_transpose_by_position(x: mx.array, kernel: mx.array, window: Windows, groups: int) -> mx.array:
    """Transposed convolution as a sum over the kernel's positions."""
    inner, outer = kernel.shape[-1] // groups, kernel.shape[-2]
    filters = mx.moveaxis(kernel.reshape(-1, outer, groups, inner), 1, -1)
    rows = x.reshape(*x.shape[:-1], groups, 1, inner)
    total = mx.zeros((x.shape[0], *window.sizes, groups * outer), x.dtype)
    for i, places in enumerate(kernel_slices(window)):
        part = (rows @ filters[i]).reshape(*x.shape[:-1], groups * outer)
        where = (slice(None), *places)
        total[where] = total[where] + part
    return total


def max_pool(
    x: mx.array, /, pool_size: Any, strides: Any = None, padding: Any = "valid", data_format: str = "channels_last"
) -> mx.array:
    window = pool_windows(spatial(x.shape, data_format), pool_size, strides, padding)
    least = -math.inf if mx.issubdtype(x.dtype, mx.floating) else mx.iinfo(x.dtype).min
    return _to_data_format(_pool(_channels_last(x, data_format), window, least, mx.max, _maximum), data_format)


def _maximum(x: mx.array, y: mx.array) -> mx.array:
    """Maximum whose gradient goes to ``x`` for ties. MLX 0.32 gives it to the second operand."""
    return mx.maximum(y, x)


def average_pool(
    x: mx.array, /, pool_size: Any, strides: Any = None, padding: Any = "valid", data_format: str = "channels_last"
) -> mx.array:
    window = pool_windows(spatial(x.shape, data_format), pool_size, strides, padding)
    total = _pool(_channels_last(_wide(x), data_format), window, 0.0, mx.sum, mx.add)
    for axis in range(len(window.sizes)):
        counts = mx.array(valid_counts(window, axis), total.dtype)
        total = total / counts.reshape(-1, *(1,) * (total.ndim - axis - 2))
    return _to_data_format(total.astype(x.dtype), data_format)


def _pool(
    x: mx.array, window: Windows, blank: Any, reduce: Callable[..., mx.array], join: Callable[..., mx.array]
) -> mx.array:
    """Windows reduced one axis at a time: MLX is slow to reduce several axes at once."""
    x = _padded(x, window, blank)
    for axis, (size, stride) in enumerate(zip(window.kernel, window.strides, strict=True), 1):
        before = (slice(None),) * axis
        if size == stride and size >= _LONG:
            count = window.counts[axis - 1]
            whole = x[(*before, slice(0, count * size))]
            x = reduce(whole.reshape(*x.shape[:axis], count, size, *x.shape[axis + 1 :]), axis + 1)
        else:
            x = functools.reduce(join, (x[(*before, kernel_slice(window, axis - 1, place))] for place in range(size)))
    return x


def layer_normalization(
    x: mx.array,
    /,
    scale: mx.array | None = None,
    offset: mx.array | None = None,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> mx.array:
    if not _is_fast(x, axis, scale, offset):
        return REGISTRY["layer_normalization"].definition(x, scale, offset, axis, epsilon)  # type: ignore[misc]
    return mx.fast.layer_norm(x, scale, offset, epsilon)


def rms_normalization(x: mx.array, /, scale: mx.array | None = None, axis: Any = -1, epsilon: float = 1e-5) -> mx.array:
    if not _is_fast(x, axis, scale):
        return REGISTRY["rms_normalization"].definition(x, scale, axis, epsilon)  # type: ignore[misc]
    return mx.fast.rms_norm(x, scale, epsilon)


def _is_fast(x: mx.array, axis: Any, *weights: mx.array | None) -> bool:
    """Whether MLX's fused kernel applies: over the last axis, and not for float64, which it computes in float32."""
    last = isinstance(axis, int) and x.ndim > 0 and x.size > 0 and axis in (-1, x.ndim - 1)
    fits = last and all(one is None or one.shape == x.shape[-1:] for one in weights)
    return fits and x.dtype != mx.float64


def dot_product_attention(
    query: mx.array,
    key: mx.array,
    value: mx.array,
    /,
    mask: mx.array | None = None,
    bias: mx.array | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    causal_alignment: str = "top_left",
) -> mx.array:
    repeats = check_attention(query.shape, key.shape, value.shape, mask, bias)
    factor = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
    q, k, v = (x.swapaxes(1, 2) for x in (query, key, value))
    rows, columns = q.shape[-2], k.shape[-2]
    offset = causal_offset(rows, columns, causal_alignment)
    # MLX aligns its causal mask bottom-right.
    only_causal = is_causal and mask is None and bias is None and rows + offset == columns and offset >= 0
    allowed, bias = (x if x is None or x.ndim > 1 else mx.broadcast_to(x, (rows, columns)) for x in (mask, bias))
    if is_causal and not only_causal:
        causal = mx.tri(rows, columns, offset, dtype=mx.bool_)
        allowed = causal if allowed is None else mx.logical_and(allowed, causal)
    # A causal mask alone hides all keys of a query only if there are more queries than keys.
    visible, any_visible = allowed if mask is not None or (is_causal and offset < 0) else None, None
    if bias is not None:
        visible = bias != -math.inf if allowed is None else mx.logical_and(allowed, bias != -math.inf)
    if visible is not None:
        # MLX 0.32: a query without visible keys returns the mean of all values, or NaN. Unmask such rows and zero them
        # below.
        any_visible = mx.any(visible, -1, keepdims=True)
        allowed = allowed if allowed is None else mx.logical_or(allowed, ~any_visible)
        bias = bias if bias is None else mx.where(any_visible, bias, 0)
    if query.dtype == mx.float64:
        allowed = mx.tri(rows, columns, offset, dtype=mx.bool_) if only_causal else allowed
        result = _attention(q, mx.repeat(k, repeats, 1), mx.repeat(v, repeats, 1), allowed, bias, factor)
    else:
        added = allowed if bias is None else bias if allowed is None else mx.where(allowed, bias, -math.inf)
        result = mx.fast.scaled_dot_product_attention(q, k, v, scale=factor, mask="causal" if only_causal else added)
    if any_visible is not None:
        result = mx.where(any_visible, result, 0)
    return result.swapaxes(1, 2)


def _attention(
    q: mx.array, k: mx.array, v: mx.array, allowed: mx.array | None, bias: mx.array | None, factor: float
) -> mx.array:
    """Attention in float64, which MLX's fused kernel computes in float32."""
    scores = (q * factor) @ k.swapaxes(-1, -2)
    if not k.shape[-2]:
        return scores @ v
    scores = scores if bias is None else scores + bias
    visible = scores if allowed is None else mx.where(allowed, scores, -math.inf)
    peak = mx.stop_gradient(mx.max(visible, -1, keepdims=True))
    weights = exp(scores - peak if allowed is None else mx.where(allowed, scores - peak, 0))
    # exp(-inf) is zero too, but its gradient here is NaN.
    weights = weights if allowed is None else mx.where(allowed, weights, 0)
    return (weights @ v) / mx.sum(weights, -1, keepdims=True)


# MLX 0.32 computes positions in 32 bits.
_LARGEST_OFFSET = 1 << 24


def rotary_embedding(
    x: mx.array,
    /,
    positions: mx.array | None = None,
    *,
    offset: int = 0,
    base: float = 10000.0,
    scale: float = 1.0,
    interleaved: bool = False,
    axis: int = 1,
) -> mx.array:
    place, size = axis_of(axis, x.ndim), x.shape[-1] if x.ndim else 0
    is_fast = positions is None and abs(offset) < _LARGEST_OFFSET and x.dtype != mx.float64 and not mapped
    if not is_fast or x.ndim < 3 or not x.size or size % 2 or place not in range(1, x.ndim - 1):
        options = {"offset": offset, "base": base, "scale": scale, "interleaved": interleaved, "axis": axis}
        return within("mlx", definition_of("rotary_embedding"))(x, positions, **options)
    inner = x.swapaxes(place, -2)
    turned = mx.fast.rope(inner, size, traditional=interleaved, base=base, scale=scale, offset=offset)
    return turned.swapaxes(place, -2)


def fold(
    x: mx.array, /, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> mx.array:
    window = fold_windows(x.shape, output_size, kernel_size, dilation, padding, stride)
    sizes, inside = padded_sizes(window)
    taps = math.prod(window.kernel)
    parts = _wide(x).reshape(x.shape[0], x.shape[1] // taps, taps, *window.counts)
    total = mx.zeros((*parts.shape[:2], *sizes), parts.dtype)
    for i, places in enumerate(kernel_slices(window)):
        where = (slice(None), slice(None), *places)
        total[where] = total[where] + parts[:, :, i]
    return total[(..., *inside)].astype(x.dtype)


def _channels_last(x: mx.array, data_format: str) -> mx.array:
    return x if is_last(data_format) else mx.moveaxis(x, 1, -1)


def _to_data_format(result: mx.array, data_format: str) -> mx.array:
    return result if is_last(data_format) else mx.moveaxis(result, -1, 1)


def _padded(x: mx.array, window: Windows, blank: Any) -> mx.array:
    if not any(map(any, window.pads)):
        return x
    return mx.pad(x, [(0, 0), *window.pads, (0, 0)], constant_values=mx.array(blank, x.dtype))
