"""Neural network primitives on JAX: each is one compiled program."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ember_ml.backend.jax.core import precision, static, static_lists
from ember_ml.backend.jax.stats import wide
from ember_ml.dispatch import definition_of, within
from ember_ml.shapes import windows as shapes
from ember_ml.shapes.neural import causal_offset, check_attention, check_linear
from ember_ml.shapes.windows import Windows

# Longer windows, and kernels of more positions, are too many terms for one expression.
_LONG, _MANY = 8, 64


@jax.jit
def linear(x: Array, weight: Array, /, bias: Array | None = None) -> Array:
    check_linear(x, weight, bias)
    product = jnp.matmul(x, weight, precision=precision(x))
    return product if bias is None else product + bias


@static_lists("strides", "padding", "data_format", "dilation_rate", "groups")
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
    shapes.check_kernel(x.shape, kernel.shape, data_format, groups)
    window = shapes.windows(shapes.spatial(x.shape, data_format), kernel.shape[:-2], strides, padding, dilation_rate)
    options = {"window_strides": window.strides, "padding": window.pads}
    run = partial(_convolve, window=window, data_format=data_format, groups=groups, options=options)
    if kernel.shape[-2] != 1 or groups == 1 or math.prod(window.kernel) >= _MANY:
        return run(x, kernel)
    by_position = partial(_convolve_by_position, window=window, data_format=data_format)
    return lax.platform_dependent(x, kernel, cpu=by_position, default=run)


def _convolve(
    x: Array, filters: Array, window: Windows, data_format: str, groups: int, options: dict[str, Any]
) -> Array:
    """Convolution with filters that have the axes (shapes.spatial..., channels / groups, filters)."""
    axes = "DHW"[-len(window.kernel) :]
    data = f"N{axes}C" if shapes.is_last(data_format) else f"NC{axes}"
    return lax.conv_general_dilated(
        x,
        filters,
        rhs_dilation=window.dilation,
        dimension_numbers=(data, f"{axes}IO", data),
        feature_group_count=groups,
        precision=precision(x),
        **options,
    )


def _convolve_by_position(x: Array, kernel: Array, window: Windows, data_format: str) -> Array:
    """Depthwise convolution as a sum over the kernel's positions. JAX 0.10: that of XLA is slow on CPUs."""
    place = x.ndim - 1 if shapes.is_last(data_format) else 1
    padded = jnp.pad(jnp.moveaxis(wide(x), place, -1), [(0, 0), *window.pads, (0, 0)])
    filters = wide(kernel).reshape(math.prod(window.kernel), padded.shape[-1], kernel.shape[-1] // padded.shape[-1])
    parts = (padded[(slice(None), *cut)][..., None] * filters[i] for i, cut in enumerate(shapes.kernel_slices(window)))
    total = reduce(jnp.add, parts)
    return jnp.moveaxis(total.reshape(*total.shape[:-2], kernel.shape[-1]), -1, place).astype(x.dtype)


@static_lists("strides", "padding", "output_padding", "data_format", "dilation_rate", "groups")
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
    shapes.check_kernel(x.shape, kernel.shape, data_format, groups, transposed=True)
    sizes = shapes.spatial(x.shape, data_format)
    window = shapes.transposed_windows(sizes, kernel.shape[:-2], strides, padding, output_padding, dilation_rate)
    *rest, outer, channels = kernel.shape
    filters = jnp.moveaxis(kernel.reshape(*rest, outer, groups, channels // groups), -1, -3)
    filters = jnp.swapaxes(filters, -1, -2).reshape(*rest, channels // groups, groups * outer)
    filters = lax.rev(filters, range(len(rest)))
    pads = [(span - 1 - low, span - 1 - high) for span, (low, high) in zip(window.spans, window.pads, strict=True)]
    options = {"window_strides": (1,) * len(rest), "padding": pads, "lhs_dilation": window.strides}
    return _convolve(x, filters, window, data_format, groups, options)


@static_lists("pool_size", "strides", "padding", "data_format")
def max_pool(
    x: Array, /, pool_size: Any, strides: Any = None, padding: Any = "valid", data_format: str = "channels_last"
) -> Array:
    window = shapes.pool_windows(shapes.spatial(x.shape, data_format), pool_size, strides, padding)
    least = -math.inf if jnp.issubdtype(x.dtype, jnp.floating) else np.iinfo(x.dtype).min
    return _pool(x, window, data_format, least, _first_largest, lax.max)


def _first_largest(x: Array, y: Array) -> Array:
    """Maximum whose gradient goes to ``x`` for ties; JAX divides it."""
    return jnp.where((y > x) | (y != y), y, x)


@static_lists("pool_size", "strides", "padding", "data_format")
def average_pool(
    x: Array, /, pool_size: Any, strides: Any = None, padding: Any = "valid", data_format: str = "channels_last"
) -> Array:
    window = shapes.pool_windows(shapes.spatial(x.shape, data_format), pool_size, strides, padding)
    counts = np.ones((), int)
    for axis in range(len(window.sizes)):
        counts = np.multiply.outer(counts, shapes.valid_counts(window, axis))
    if shapes.is_last(data_format):
        counts = counts[..., None]
    total = _pool(wide(x), window, data_format, 0.0, jnp.add, lax.add)
    # XLA multiplies by the reciprocals of constants, which are not exact.
    divisors = lax.optimization_barrier(jnp.asarray(counts, total.dtype))
    return (total / divisors).astype(x.dtype)


def _pool(
    x: Array, window: Windows, data_format: str, blank: Any, join: Callable[..., Array], whole: Callable[..., Array]
) -> Array:
    """Windows reduced one axis at a time, the last first, so that the first of equal elements has the gradient."""
    first = 1 if shapes.is_last(data_format) else 2
    around = [(0, 0)] * x.ndim
    around[first : first + len(window.pads)] = window.pads
    x = jnp.pad(x, around, constant_values=blank)
    for axis, size in reversed(list(enumerate(window.kernel))):
        place = first + axis
        if size < _LONG:
            cuts = (shapes.kernel_slice(window, axis, i) for i in range(size))
            x = reduce(join, (lax.slice_in_dim(x, cut.start, cut.stop, cut.step, axis=place) for cut in cuts))
        else:
            sizes, strides = ([n if i == place else 1 for i in range(x.ndim)] for n in (size, window.strides[axis]))
            x = lax.reduce_window(x, np.asarray(blank, x.dtype), whole, sizes, strides, "VALID")
    return x


@static("scale", "is_causal", "causal_alignment")
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
    check_attention(query.shape, key.shape, value.shape, mask, bias)
    factor = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
    rows, columns = query.shape[1], key.shape[1]
    offset = causal_offset(rows, columns, causal_alignment)
    # The last query attends to all keys; alone, as in decoding, it needs no mask.
    is_causal = is_causal and not (rows == 1 and offset > 0)
    only_causal = is_causal and not offset and mask is None and bias is None
    visible = mask
    if bias is not None:
        visible = bias != -math.inf if mask is None else jnp.logical_and(mask, bias != -math.inf)
    if is_causal and not only_causal:
        causal = jnp.tri(rows, columns, offset, dtype=bool)
        visible = causal if visible is None else jnp.logical_and(visible, causal)
    if visible is not None:
        visible = visible.reshape((1,) * (4 - visible.ndim) + visible.shape)
        visible = jnp.broadcast_to(visible, (*visible.shape[:2], rows, columns))
    by_formula = partial(_attention, factor=factor, is_causal=only_causal)
    fused = partial(_fused_attention, factor=factor, is_causal=only_causal)
    if bias is not None or not _is_supported(fused, query, key, value, visible):
        result = by_formula(query, key, value, visible, bias)
    else:
        # The branch that is not taken would leave its weights, which are zeros, to the gradient.
        default = jax.checkpoint(by_formula)
        result = lax.platform_dependent(query, key, value, visible, cuda=fused, default=default)
    if visible is None:
        return result
    # A query without visible keys returns zero, also if there are NaN among the values.
    return jnp.where(jnp.swapaxes(jnp.any(visible, -1, keepdims=True), 1, 2), result, 0)


def _attention(
    query: Array,
    key: Array,
    value: Array,
    visible: Array | None,
    bias: Array | None = None,
    *,
    factor: float,
    is_causal: bool,
) -> Array:
    """Attention by its formula, in float32 or wider."""
    (batch, rows, heads, size), (columns, shared) = query.shape, key.shape[1:3]
    # Query heads that share a key head are rows of one product.
    q = jnp.swapaxes(wide(query), 1, 2).reshape(batch, shared, heads // shared * rows, size)
    k, v = (jnp.swapaxes(wide(one), 1, 2) for one in (key, value))
    scores = jnp.matmul(q * factor, jnp.swapaxes(k, 2, 3), precision=precision(q))
    scores = scores.reshape(batch, heads, rows, columns)
    if bias is not None:
        scores = scores + wide(bias)
    if is_causal:
        visible = jnp.tri(rows, columns, dtype=bool)
    weights = _softmax(scores, visible)
    result = jnp.matmul(weights.reshape(*q.shape[:3], columns), v, precision=precision(q))
    return jnp.swapaxes(result.reshape(batch, heads, rows, value.shape[-1]), 1, 2).astype(query.dtype)


@jax.custom_jvp
def _softmax(scores: Array, visible: Array | None) -> Array:
    """Softmax of the visible scores, zero for the others. JAX 0.10: its own keeps seven arrays for the gradient."""
    weights = jnp.exp(scores - jnp.max(scores, -1, keepdims=True, initial=-math.inf, where=visible))
    weights = weights if visible is None else jnp.where(visible, weights, 0)
    # A sum is at least 1, that of the largest score, unless no score is visible.
    return weights / jnp.maximum(jnp.sum(weights, -1, keepdims=True), 1)


@_softmax.defjvp
def _softmax_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    weights = _softmax(*primals)
    change = weights * tangents[0]
    return weights, change - weights * jnp.sum(change, -1, keepdims=True)


def _fused_attention(
    query: Array, key: Array, value: Array, visible: Array | None, *, factor: float, is_causal: bool
) -> Array:
    """Attention by cuDNN, whose gradient keeps no weights.

    JAX 0.10: it has no second derivative, and is mapped over all arguments or none.
    """
    options: Any = {"scale": factor, "is_causal": is_causal, "implementation": "cudnn"}
    return jax.nn.dot_product_attention(query, key, value, mask=visible, **options)


def _is_supported(fused: Callable[..., Array], query: Array, key: Array, *rest: Array | None) -> bool:
    """Whether JAX traces the fused attention of these arrays and its gradient: it raises for what cuDNN lacks."""
    if query.dtype.itemsize > 2 or not (query.size and key.size):
        return False
    try:
        jax.eval_shape(lambda *arrays: jax.vjp(fused, *arrays)[0], query, key, *rest)
    except Exception:
        return False
    return True


@static_lists("output_size", "kernel_size", "dilation", "padding", "stride")
def fold(
    x: Array, /, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Array:
    window = shapes.fold_windows(x.shape, output_size, kernel_size, dilation, padding, stride)
    sizes, inside = shapes.padded_sizes(window)
    taps = math.prod(window.kernel)
    parts = wide(x).reshape(x.shape[0], x.shape[1] // taps, taps, *window.counts)
    total = jnp.zeros((*parts.shape[:2], *sizes), parts.dtype)
    for i, cuts in enumerate(shapes.kernel_slices(window)):
        spread = [(cut.start, size - cut.stop, cut.step - 1) for cut, size in zip(cuts, sizes, strict=True)]
        total = total + lax.pad(parts[:, :, i], np.zeros((), parts.dtype), [(0, 0, 0), (0, 0, 0), *spread])
    return total[(..., *inside)].astype(x.dtype)
