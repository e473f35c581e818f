"""Gradients of linear maps, convolution, pooling, normalization and attention."""

from __future__ import annotations

import math as _math
from collections.abc import Sequence
from typing import Any

from ember_ml.gradients.math import _axes
from ember_ml.ops import activations, comparison, creation, dtypes, indexing, linearalg, manipulation, math, stats
from ember_ml.ops.neural import conv, conv_transpose, linear, unfold
from ember_ml.shapes import windows as _windows
from ember_ml.shapes.neural import causal_offset


def _linear_of_x(g: Any, out: Any, x: Any, weight: Any, bias: Any) -> Any:
    return linear(g, manipulation.matrix_transpose(weight))


def _linear_of_weight(g: Any, out: Any, x: Any, weight: Any, bias: Any) -> Any:
    count = _math.prod(x.shape[:-1])
    rows, gradients = (manipulation.reshape(one, (count, one.shape[-1])) for one in (x, g))
    return linearalg.matmul(manipulation.matrix_transpose(rows), gradients)


def _linear_of_bias(g: Any, out: Any, x: Any, weight: Any, bias: Any) -> Any:
    return g


def _channels_last(x: Any, data_format: str) -> Any:
    return x if _windows.is_last(data_format) else manipulation.moveaxis(x, 1, -1)


def _to_data_format(x: Any, data_format: str) -> Any:
    return x if _windows.is_last(data_format) else manipulation.moveaxis(x, -1, 1)


def _padded(x: Any, window: _windows.Windows, blank: float = 0.0) -> Any:
    if not any(map(any, window.pads)):
        return x
    return manipulation.pad(x, ((0, 0), *window.pads, (0, 0)), constant_values=blank)


def _conv_windows(x: Any, kernel: Any, strides: Any, padding: Any, data_format: str, dilation: Any) -> _windows.Windows:
    return _windows.windows(_windows.spatial(x.shape, data_format), kernel.shape[:-2], strides, padding, dilation)


def _conv_of_x(
    g: Any, out: Any, x: Any, kernel: Any, strides: Any, padding: Any, data_format: str, dilation: Any, groups: int
) -> Any:
    """Transposed convolution of ``g``, padded at the end by what no window covered."""
    window = _conv_windows(x, kernel, strides, padding, data_format, dilation)
    ends = [
        size + low + high - ((count - 1) * stride + span)
        for size, (low, high), count, stride, span in zip(
            window.sizes, window.pads, window.counts, window.strides, window.spans, strict=True
        )
    ]
    return conv_transpose(g, kernel, window.strides, window.pads, ends, data_format, window.dilation, groups)


def _taps(x: Any, g: Any, window: _windows.Windows, groups: int) -> Any:
    """For each position of the kernel, the product of the elements of ``x`` there with ``g``, summed over windows."""
    inner, outer = x.shape[-1] // groups, g.shape[-1] // groups
    count = _math.prod(g.shape[:-1])
    gradients = manipulation.moveaxis(manipulation.reshape(g, (count, groups, outer)), 1, 0)
    parts = []
    for places in _windows.kernel_slices(window):
        covered = manipulation.reshape(x[(slice(None), *places)], (count, groups, inner))
        # (groups, inner, count) @ (groups, count, outer)
        parts.append(linearalg.matmul(manipulation.permute_dims(covered, (1, 2, 0)), gradients))
    whole = manipulation.stack(parts)
    return manipulation.reshape(manipulation.moveaxis(whole, 1, 2), (*window.kernel, inner, groups * outer))


def _conv_of_kernel(
    g: Any, out: Any, x: Any, kernel: Any, strides: Any, padding: Any, data_format: str, dilation: Any, groups: int
) -> Any:
    window = _conv_windows(x, kernel, strides, padding, data_format, dilation)
    wide = _padded(_channels_last(x, data_format), window)
    return _taps(wide, _channels_last(g, data_format), window, groups)


def _transposed_windows(
    x: Any, kernel: Any, strides: Any, padding: Any, extra: Any, data_format: str, dilation: Any
) -> _windows.Windows:
    sizes = _windows.spatial(x.shape, data_format)
    return _windows.transposed_windows(sizes, kernel.shape[:-2], strides, padding, extra, dilation)


def _uncrop(g: Any, window: _windows.Windows, data_format: str) -> Any:
    """Cotangent of the uncropped output: padding removed its ends, and ``output_padding`` has no gradient."""
    g = _channels_last(g, data_format)
    cut: tuple[Any, ...] = (slice(None),)
    for n, size, (low, _) in zip(g.shape[1:-1], window.sizes, window.pads, strict=True):
        cut += (slice(0, min(n, size - low)),)
    g = g[cut]
    missing = [
        (low, size - low - n) for n, size, (low, _) in zip(g.shape[1:-1], window.sizes, window.pads, strict=True)
    ]
    return manipulation.pad(g, ((0, 0), *missing, (0, 0)))


def _conv_transpose_of_x(
    g: Any, out: Any, x: Any, kernel: Any, strides: Any, padding: Any, extra: Any, data_format: str, dilation: Any,
    groups: int,
) -> Any:  # fmt: skip
    window = _transposed_windows(x, kernel, strides, padding, extra, data_format, dilation)
    spread = _uncrop(g, window, data_format)
    return _to_data_format(
        conv(spread, kernel, window.strides, "valid", "channels_last", window.dilation, groups), data_format
    )


def _conv_transpose_of_kernel(
    g: Any, out: Any, x: Any, kernel: Any, strides: Any, padding: Any, extra: Any, data_format: str, dilation: Any,
    groups: int,
) -> Any:  # fmt: skip
    window = _transposed_windows(x, kernel, strides, padding, extra, data_format, dilation)
    return _taps(_uncrop(g, window, data_format), _channels_last(x, data_format), window, groups)


def _spread_windows(parts: list[Any], x: Any, window: _windows.Windows, data_format: str) -> Any:
    """Sum of the parts, one for each position of the window, each scattered to the elements at that position."""
    sizes, inside = _windows.padded_sizes(window)
    shape = tuple(x.shape)
    batch, channels = shape[0], shape[-1] if _windows.is_last(data_format) else shape[1]
    if (
        window.strides == window.kernel
        and tuple(n * m for n, m in zip(window.counts, window.kernel, strict=True)) == sizes
    ):
        # The windows tile the input, so every element is in exactly one.
        rank = len(sizes)
        whole = manipulation.reshape(manipulation.stack(parts), (*window.kernel, batch, *window.counts, channels))
        pairs = [axis for i in range(rank) for axis in (rank + 1 + i, i)]
        whole = manipulation.permute_dims(whole, (rank, *pairs, 2 * rank + 1))
        whole = manipulation.reshape(whole, (batch, *sizes, channels))
        return _to_data_format(whole[(slice(None), *inside)], data_format)
    total = creation.zeros((batch, *sizes, channels), dtype=x.dtype)
    for part, places in zip(parts, _windows.kernel_slices(window), strict=True):
        total = indexing.index_add(total, (slice(None), *places), part)
    return _to_data_format(total[(slice(None), *inside)], data_format)


def _max_pool(g: Any, out: Any, x: Any, pool_size: Any, strides: Any, padding: Any, data_format: str) -> Any:
    """Each window's gradient goes to the first of its largest elements."""
    window = _windows.pool_windows(_windows.spatial(x.shape, data_format), pool_size, strides, padding)
    wide = _padded(_channels_last(x, data_format), window, float("-inf"))
    top, rest = _channels_last(out, data_format), _channels_last(g, data_format)
    parts = []
    for places in _windows.kernel_slices(window):
        hit = comparison.equal(wide[(slice(None), *places)], top)
        parts.append(comparison.where(hit, rest, 0))
        rest = comparison.where(hit, 0, rest)
    return _spread_windows(parts, x, window, data_format)


def _average_pool(g: Any, out: Any, x: Any, pool_size: Any, strides: Any, padding: Any, data_format: str) -> Any:
    window = _windows.pool_windows(_windows.spatial(x.shape, data_format), pool_size, strides, padding)
    share = _channels_last(g, data_format)
    rank = len(window.sizes)
    for axis in range(rank):
        counts = dtypes.cast(creation.asarray(_windows.valid_counts(window, axis)), g.dtype)
        share = math.divide(share, manipulation.reshape(counts, (-1, *(1,) * (rank - axis))))
    return _spread_windows([share] * _math.prod(window.kernel), x, window, data_format)


def _along(values: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return manipulation.reshape(values, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


def _across(x: Any, values: Any, axes: tuple[int, ...]) -> Any:
    """Sum over all axes except these, in the shape of ``values``."""
    rest = tuple(i for i in range(len(x.shape)) if i not in axes)
    return manipulation.reshape(stats.sum(x, axis=rest), values.shape)


def _layer_normalization(
    places: Sequence[Any], g: Any, out: Any, x: Any, scale: Any, offset: Any, axis: Any, epsilon: float
) -> list[Any]:
    axes = tuple(sorted(_axes(x, axis)))
    centered = math.subtract(x, stats.mean(x, axis=axes, keepdims=True))
    size = math.rsqrt(math.add(stats.mean(math.square(centered), axis=axes, keepdims=True), epsilon))
    normal = math.multiply(centered, size)
    gradients: dict[Any, Any] = {}
    if 2 in places:
        gradients[2] = _across(g, offset, axes)
    if 1 in places:
        gradients[1] = _across(math.multiply(g, normal), scale, axes)
    if 0 in places:
        inner = g if scale is None else math.multiply(g, _along(scale, x, axes))
        along = stats.mean(math.multiply(inner, normal), axis=axes, keepdims=True)
        level = stats.mean(inner, axis=axes, keepdims=True)
        gradients[0] = math.multiply(math.subtract(math.subtract(inner, level), math.multiply(normal, along)), size)
    return [gradients[place] for place in places]


def _rms_normalization(
    places: Sequence[Any], g: Any, out: Any, x: Any, scale: Any, axis: Any, epsilon: float
) -> list[Any]:
    axes = tuple(sorted(_axes(x, axis)))
    size = math.rsqrt(math.add(stats.mean(math.square(x), axis=axes, keepdims=True), epsilon))
    normal = math.multiply(x, size)
    gradients: dict[Any, Any] = {}
    if 1 in places:
        gradients[1] = _across(math.multiply(g, normal), scale, axes)
    if 0 in places:
        inner = g if scale is None else math.multiply(g, _along(scale, x, axes))
        along = stats.mean(math.multiply(inner, normal), axis=axes, keepdims=True)
        gradients[0] = math.multiply(math.subtract(inner, math.multiply(normal, along)), size)
    return [gradients[place] for place in places]


def _dot_product_attention(
    places: Sequence[Any], g: Any, out: Any, query: Any, key: Any, value: Any, mask: Any, bias: Any, scale: Any,
    is_causal: bool, causal_alignment: str,
) -> list[Any]:  # fmt: skip
    """Gradients of ``softmax(scores) @ value``, computed with the heads before the sequence axis."""
    repeats = query.shape[2] // key.shape[2]
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    q, k, v, h = (manipulation.swapaxes(x, 1, 2) for x in (query, key, value, g))
    if repeats > 1:
        k, v = (manipulation.repeat(x, repeats, axis=1) for x in (k, v))
    scores = math.multiply(linearalg.matmul(q, manipulation.matrix_transpose(k)), factor)
    if bias is not None:
        scores = math.add(scores, bias)
    visible = _visible(scores, mask, is_causal, causal_alignment)
    if visible is None:
        weights = activations.softmax(scores)
    else:
        # Queries without any visible key have zero weights.
        weights = comparison.where(visible, activations.softmax(comparison.where(visible, scores, -1e30)), 0)
    gradients: dict[Any, Any] = {}
    if 2 in places:
        gradients[2] = _sum_shared_heads(linearalg.matmul(manipulation.matrix_transpose(weights), h), repeats)
    if {0, 1, 4} & set(places):
        back = math.multiply(weights, linearalg.matmul(h, manipulation.matrix_transpose(v)))
        back = math.subtract(back, math.multiply(weights, stats.sum(back, axis=-1, keepdims=True)))
        if 4 in places:
            gradients[4] = back
        if 0 in places:
            gradients[0] = manipulation.swapaxes(math.multiply(linearalg.matmul(back, k), factor), 1, 2)
        if 1 in places:
            transposed = linearalg.matmul(manipulation.matrix_transpose(back), q)
            gradients[1] = _sum_shared_heads(math.multiply(transposed, factor), repeats)
    return [gradients[place] for place in places]


def _visible(scores: Any, mask: Any, is_causal: bool, causal_alignment: str) -> Any:
    visible = None if mask is None else manipulation.broadcast_to(mask, scores.shape)
    if is_causal:
        offset = causal_offset(scores.shape[-2], scores.shape[-1], causal_alignment)
        causal = creation.tril(creation.ones(tuple(scores.shape[-2:]), dtype="bool"), k=offset)
        visible = causal if visible is None else comparison.logical_and(visible, causal)
    return visible


def _sum_shared_heads(x: Any, repeats: int) -> Any:
    """Sum over the query heads that share a key head, with the heads moved back behind the sequence axis."""
    if repeats > 1:
        batch, heads, *rest = x.shape
        x = stats.sum(manipulation.reshape(x, (batch, heads // repeats, repeats, *rest)), axis=2)
    return manipulation.swapaxes(x, 1, 2)


def _fold(
    g: Any, out: Any, x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    return unfold(g, kernel_size, dilation, padding, stride)


RULES = {
    "linear": (_linear_of_x, _linear_of_weight, _linear_of_bias),
    "conv": (_conv_of_x, _conv_of_kernel),
    "conv_transpose": (_conv_transpose_of_x, _conv_transpose_of_kernel),
    "max_pool": (_max_pool,),
    "average_pool": (_average_pool,),
    "fold": (_fold,),
}

JOINT = {
    "layer_normalization": _layer_normalization,
    "rms_normalization": _rms_normalization,
    "dot_product_attention": _dot_product_attention,
}
