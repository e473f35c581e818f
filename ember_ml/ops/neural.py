"""Primitives of neural networks: convolutions, pools, normalisations, attention, recurrence, embeddings, resizing."""

from __future__ import annotations

import functools as _functools
import math as _math
from collections.abc import Callable as _Callable
from collections.abc import Sequence
from typing import Any

from ember_ml import windows as _windows
from ember_ml.dispatch import op
from ember_ml.dtypes import floating, kept, promoted
from ember_ml.ops import (
    activations,
    comparison,
    control,
    creation,
    device,
    dtypes,
    indexing,
    linearalg,
    manipulation,
    math,
    stats,
)
from ember_ml.ops import random as _random
from ember_ml.shapes import axes_of as _axes
from ember_ml.shapes import check_recurrent as _check_recurrent
from ember_ml.types import Axis, Indices, Mask, Shape, Tensor, TensorLike


@op(floating, kinds="real")
def conv(
    x: TensorLike,
    kernel: TensorLike,
    /,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over one to three spatial axes: products of the kernel with every window of ``x``, summed.

    ``x`` has the axes (batch, spatial..., channels), or (batch, channels, spatial...) if channels are first. The
    kernel has the axes (spatial..., channels / groups, filters) in either case, and is not flipped. On CUDA, torch may
    compute float32 convolutions in TF32, as its ``torch.backends.cudnn.allow_tf32`` says.

    Args:
        padding: zeros around ``x``: "valid" for none, "same" for as many as make the output ``ceil(size / stride)``
            long (an odd one goes to the end), or the number, for all axes, for each axis, or for both ends of each.
        dilation_rate: distance between the elements of ``x`` that a window looks at.
        groups: the channels and the filters are cut into so many groups, each convolved on its own.

    >>> conv([[[1.0], [2.0], [4.0]]], [[[1.0]], [[-1.0]]]).tolist()
    [[[-1.0], [-2.0]]]
    """
    ...


@op(floating, kinds="real")
def conv_transpose(
    x: TensorLike,
    kernel: TensorLike,
    /,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    output_padding: int | Sequence[int] | None = None,
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Transposed convolution, the gradient of a convolution: every element of ``x`` spreads the kernel over the output.

    The kernel has the axes (spatial..., filters / groups, channels). An axis becomes
    ``(size - 1) * stride + dilation * (kernel - 1) + 1`` long, less the padding, plus the output padding.

    Args:
        padding: what is cut off the ends: "valid" for nothing, "same" for what leaves ``size * stride``, or a number,
            for all axes, for each axis, or for both ends of each.
        output_padding: what is added to the end of each axis.

    >>> conv_transpose([[[1.0], [2.0]]], [[[1.0]], [[10.0]]], strides=2).tolist()
    [[[1.0], [10.0], [2.0], [20.0]]]
    """
    ...


@op(floating, kinds="real")
def depthwise_conv(
    x: TensorLike,
    kernel: TensorLike,
    /,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """Convolution of each channel with filters of its own; the kernel's axes are (spatial..., channels, multiplier).

    The filters of the first channel come first in the output, then those of the second. The options are those of
    ``conv``.

    >>> depthwise_conv([[[1.0, 2.0], [3.0, 4.0]]], [[[1.0], [10.0]]]).tolist()
    [[[1.0, 20.0], [3.0, 40.0]]]
    """
    shape = _shape(kernel)
    if len(shape) < 3:
        raise ValueError(f"kernel must have spatial axes and two of channels, got shape {list(shape)}")
    flat = manipulation.reshape(kernel, (*shape[:-2], 1, shape[-2] * shape[-1]))
    return conv(x, flat, strides, padding, data_format, dilation_rate, shape[-2])


@op(floating, kinds="real")
def separable_conv(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    /,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """``depthwise_conv`` followed by a convolution with windows of one element, which mixes the channels.

    The pointwise kernel has the axes (1..., channels * multiplier, filters).

    >>> separable_conv([[[1.0, 2.0], [3.0, 4.0]]], [[[1.0], [10.0]]], [[[1.0], [1.0]]]).tolist()
    [[[21.0], [43.0]]]
    """
    deep = depthwise_conv(x, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(deep, pointwise_kernel, 1, "valid", data_format)


@op(promoted, kinds="real numeric")
def max_pool(
    x: TensorLike,
    /,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str = "channels_last",
) -> Tensor:
    """Maximum of every window over one to three spatial axes; padding is never the maximum.

    Args:
        strides: distance between windows; their size, if not given.
        padding: as in ``conv``.

    >>> max_pool([[[1.0], [3.0], [2.0], [5.0]]], 2).tolist()
    [[[3.0], [5.0]]]
    """
    ...


@op(floating, kinds="real")
def average_pool(
    x: TensorLike,
    /,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str = "channels_last",
) -> Tensor:
    """Mean of every window over one to three spatial axes; padding does not count.

    Args:
        strides: distance between windows; their size, if not given.
        padding: as in ``conv``.

    >>> average_pool([[[1.0], [3.0], [2.0]]], 2, padding="same").tolist()
    [[[2.0], [2.0]]]
    """
    ...


@op(floating, kinds="real")
def adaptive_average_pool(
    x: TensorLike, /, output_size: int | Sequence[int], data_format: str = "channels_last"
) -> Tensor:
    """Means of ``output_size`` windows that cover each spatial axis evenly.

    Window ``i`` of ``n`` reaches from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``, so that windows overlap
    where ``n`` does not divide the size.

    >>> adaptive_average_pool([[[1.0], [2.0], [6.0]]], 2).tolist()
    [[[1.5], [4.0]]]
    """
    return math._in_single(_adaptive, x, output_size=output_size, data_format=data_format, reduce=_mean_of_windows)


@op(promoted, kinds="real numeric")
def adaptive_max_pool(x: TensorLike, /, output_size: int | Sequence[int], data_format: str = "channels_last") -> Tensor:
    """Maxima of ``output_size`` windows that cover each spatial axis evenly, as in ``adaptive_average_pool``.

    >>> adaptive_max_pool([[[1.0], [2.0], [6.0]]], 2).tolist()
    [[[2.0], [6.0]]]
    """
    return _adaptive(x, output_size=output_size, data_format=data_format, reduce=_maximum_of_windows)


@op(floating, kinds="real")
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    /,
    axis: int = -1,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset``, with one of each for every place along ``axis``.

    >>> batch_normalization([[1.0, 2.0], [3.0, 6.0]], [2.0, 4.0], [1.0, 4.0], epsilon=0.0).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    return math._in_single(_batch_normalization, x, mean, variance, offset, scale, axis=axis, epsilon=epsilon)


@op(floating, kinds="real")
def batch_standardization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    /,
    axis: int = -1,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
) -> tuple[Tensor, Tensor, Tensor]:
    """``x`` normalised by its own statistics, and the running ``mean`` and ``variance`` moved towards these.

    It is what ``batch_normalization`` answers for the mean and the variance of ``x`` at every place along ``axis``,
    over all other axes. The running variance moves towards the variance without bias. No gradient flows through the
    running statistics, and no elements leave them where they are.

    Args:
        momentum: how far the running statistics move; 1 is all the way.

    >>> x = [[1.0, 2.0], [3.0, 6.0]]
    >>> answer, mean, variance = batch_standardization(x, [0.0, 0.0], [1.0, 1.0], epsilon=0.0, momentum=0.5)
    >>> answer.tolist(), mean.tolist(), variance.tolist()
    ([[-1.0, -1.0], [1.0, 1.0]], [1.0, 2.0], [1.5, 4.5])
    """
    tensors = (x, mean, variance, offset, scale)
    return math._in_single(_batch_standardization, *tensors, axis=axis, epsilon=epsilon, momentum=momentum)


@op(floating, kinds="real")
def layer_normalization(
    x: TensorLike,
    /,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: Axis = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """``x`` with mean 0 and variance 1 along ``axis``, times ``scale``, plus ``offset``.

    Args:
        scale: one factor for every place along ``axis``; for several axes, in their order in ``x``.
        epsilon: added to the variance.

    >>> layer_normalization([[1.0, 3.0], [2.0, 6.0]], epsilon=0.0).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    return math._in_single(_layer_normalization, x, scale, offset, axis=axis, epsilon=epsilon)


@op(floating, kinds="real")
def rms_normalization(
    x: TensorLike, /, scale: TensorLike | None = None, axis: Axis = -1, epsilon: float = 1e-5
) -> Tensor:
    """``x / sqrt(mean(x ** 2) + epsilon)`` along ``axis``, times ``scale``.

    >>> rms_normalization([[2.0, 2.0], [-4.0, 4.0]], epsilon=0.0).tolist()
    [[1.0, 1.0], [-1.0, 1.0]]
    """
    return math._in_single(_rms_normalization, x, scale, axis=axis, epsilon=epsilon)


@op(floating, kinds="real")
def group_normalization(
    x: TensorLike,
    /,
    groups: int,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """``x`` with mean 0 and variance 1 over each group of channels of each example, times ``scale``, plus ``offset``.

    Args:
        groups: number of groups that the channels are cut into.
        axis: the axis of the channels; the first axis is that of the examples.
        scale: one factor for every channel.

    >>> group_normalization([[1.0, 3.0, 2.0, 6.0]], 2, epsilon=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    return math._in_single(_group_normalization, x, scale, offset, groups=groups, axis=axis, epsilon=epsilon)


@op(floating, kinds="real")
def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    /,
    mask: Mask | None = None,
    bias: TensorLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
) -> Tensor:
    """``softmax(query @ key.T * scale + bias) @ value`` for every head.

    The axes are (batch, length, heads, size). Keys and values may have fewer heads than queries, if their number
    divides that of the queries: each then serves a run of query heads.

    Args:
        mask: true where a query may see a key; broadcast to (batch, heads, queries, keys). A query that may see none
            answers zero.
        bias: added to the scores; broadcast as the mask. Minus infinity hides a key as the mask does.
        scale: ``1 / sqrt(size)``, if not given.
        is_causal: query ``i`` sees the keys up to ``i`` only.

    >>> query, key = [[[[0.0]], [[0.0]]]], [[[[1.0]], [[2.0]]]]
    >>> dot_product_attention(query, key, [[[[4.0]], [[8.0]]]], is_causal=True).tolist()
    [[[[4.0]], [[6.0]]]]
    """
    ...


@op(floating, kinds="real")
def lstm(
    x: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    /,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
    h: TensorLike | None = None,
    c: TensorLike | None = None,
    axis: int = 1,
    reverse: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs of long short-term memory for all steps of sequences, and its state ``h`` and ``c`` after the last.

    The axes of ``x`` are (batch, time, features). The weights have the shapes (features, 4 * size) and
    (size, 4 * size), the biases (4 * size), states (batch, size); by default, those before the first step are zero. A
    step adds up ``x @ weight_ih + bias_ih + h @ weight_hh + bias_hh``, cut into ``i, f, g, o``; then
    ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)``, and ``h = sigmoid(o) * tanh(c)`` is the output.

    Args:
        axis: that of time; 0 for (time, batch, features).
        reverse: go through the sequences from their end; outputs keep the order of ``x``.

    >>> outputs, h, c = lstm([[[1.0], [2.0]]], [[0.0] * 4], [[0.0] * 4], [0.0, 0.0, 1.0, 0.0])
    >>> tuple(outputs.shape), tuple(h.shape), f"{c.tolist()[0][0]:.3f}"
    ((1, 2, 1), (1, 1), '0.571')
    """
    tensors = (x, weight_ih, weight_hh, bias_ih, bias_hh, h, c)
    return math._in_single(_lstm, *tensors, axis=axis, reverse=reverse)


@op(floating, kinds="real")
def gru(
    x: TensorLike,
    weight_ih: TensorLike,
    weight_hh: TensorLike,
    /,
    bias_ih: TensorLike | None = None,
    bias_hh: TensorLike | None = None,
    h: TensorLike | None = None,
    axis: int = 1,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Outputs of a gated recurrent unit for all steps of sequences, and its state ``h`` after the last.

    The axes of ``x`` are (batch, time, features). The weights have the shapes (features, 3 * size) and
    (size, 3 * size), the biases (3 * size), the state (batch, size); by default, that before the first step is zero.
    A step cuts ``x @ weight_ih + bias_ih`` and ``h @ weight_hh + bias_hh`` into ``r, z, n``; then
    ``r = sigmoid(r_x + r_h)``, ``z = sigmoid(z_x + z_h)``, ``n = tanh(n_x + r * n_h)``, and ``(1 - z) * n + z * h`` is
    the next state and the output.

    Args:
        axis: that of time; 0 for (time, batch, features).
        reverse: go through the sequences from their end; outputs keep the order of ``x``.

    >>> outputs, h = gru([[[1.0], [2.0]]], [[0.0] * 3], [[0.0] * 3], [0.0, 0.0, 1.0])
    >>> tuple(outputs.shape), f"{h.tolist()[0][0]:.3f}"
    ((1, 2, 1), '0.571')
    """
    return math._in_single(_gru, x, weight_ih, weight_hh, bias_ih, bias_hh, h, axis=axis, reverse=reverse)


@op(kept)
def embedding_lookup(table: TensorLike, indices: Indices, /) -> Tensor:
    """Rows of ``table``, one for every index.

    >>> embedding_lookup([[1.0, 2.0], [3.0, 4.0]], [1, 0, 1]).tolist()
    [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    """
    return indexing.take(table, indices, axis=0)


@op(floating)
def dropout(x: TensorLike, /, rate: float, *, training: bool = True, key: object = None) -> Tensor:
    """``x`` with a random part of its elements zero and the rest divided by ``1 - rate``.

    Args:
        rate: the probability that an element becomes zero.
        training: if false, ``x`` itself.
        key: decides which elements, the same on every engine; by default the next of the current stream. Code
            compiled by the engine itself, which would keep that one, should be given a key.

    >>> dropout([1.0, 2.0, 3.0, 4.0], 0.5, key=3).tolist()
    [2.0, 4.0, 0.0, 8.0]
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, got {rate!r}")
    if not training or rate == 0:
        return x  # type: ignore[return-value]
    if rate == 1:
        return creation.zeros_like(x)
    stays = _random.keep_mask(_shape(x), rate, device=device.get_device(x), key=key)
    return comparison.where(stays, math.multiply(x, 1 / (1 - rate)), 0)


@op(floating)
def normalize(x: TensorLike, /, axis: Axis = -1, order: float = 2, epsilon: float = 1e-12) -> Tensor:
    """``x`` divided by its norm along ``axis``, or by ``epsilon`` if that is larger.

    Args:
        order: ``sum(abs(x) ** order) ** (1 / order)`` is the norm; ``inf`` for the largest absolute value.

    >>> normalize([[3.0, 4.0], [0.0, 0.0]]).tolist()[1]
    [0.0, 0.0]
    >>> normalize([[2.0, -6.0]], order=1).tolist()
    [[0.25, -0.75]]
    """
    return math._in_single(_normalize, x, axis=axis, order=order, epsilon=epsilon)


@op(floating, kinds="real")
def rotary_embedding(
    x: TensorLike,
    /,
    positions: Indices | None = None,
    *,
    offset: int = 0,
    base: float = 10000.0,
    interleaved: bool = False,
    axis: int = 1,
) -> Tensor:
    """``x`` with pairs of its last axis turned by angles proportional to their position along ``axis``.

    Pair ``i`` of ``n`` at position ``p`` is turned by ``p * base ** (-i / n)``. The pairs are made of the two halves of
    the last axis.

    Args:
        positions: those of the places along ``axis``, one row for all or one for each place on the first axis; 0, 1,
            2 and so on, if not given.
        offset: added to the positions.
        interleaved: pairs are made of neighbours instead.

    >>> rotary_embedding([[[1.0, 2.0], [1.0, 0.0]]]).tolist()[0][0]
    [1.0, 2.0]
    """
    return math._in_single(
        _rotary_embedding, x, positions=positions, offset=offset, base=base, interleaved=interleaved, axis=axis
    )


@op(floating, kinds="real")
def resize(
    images: TensorLike,
    size: Sequence[int],
    /,
    interpolation: str = "bilinear",
    antialias: bool = False,
    data_format: str = "channels_last",
) -> Tensor:
    """Images of another height and width; the corners of the outermost pixels stay where they are.

    The axes are (batch, height, width, channels), or (batch, channels, height, width) if channels are first; there may
    be no batch.

    Args:
        size: the new height and width.
        interpolation: "nearest" (the pixel that the new pixel's centre is in), "bilinear" or "bicubic" (Keys' cubic
            with -0.75, and with -0.5 if antialiased).
        antialias: widen the filter where the image becomes smaller, so that every pixel counts.

    >>> resize([[[1.0], [3.0]]], (1, 4)).tolist()
    [[[1.0], [1.5], [2.5], [3.0]]]
    """
    _windows.check_resize(_shape(images), size, interpolation, antialias, data_format)
    return math._in_single(
        _resize, images, size=size, interpolation=interpolation, antialias=antialias, data_format=data_format
    )


@op(floating, kinds="real")
def fold(
    x: TensorLike,
    /,
    output_size: Shape,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Images put together from windows, the elements that windows share being sums; undoes what ``unfold`` does.

    ``x`` has the axes (batch, channels * window, windows), the images (batch, channels, height, width).

    >>> fold([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]], (1, 4), (1, 2)).tolist()
    [[[[1.0, 6.0, 8.0, 6.0]]]]
    """
    ...


@op(floating, kinds="real")
def unfold(
    x: TensorLike,
    /,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Every window of images (batch, channels, height, width), as columns: (batch, channels * window, windows).

    >>> unfold([[[[1.0, 2.0, 3.0, 4.0]]]], (1, 2)).tolist()
    [[[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]]
    """
    shape = _shape(x)
    if len(shape) != 4:
        raise ValueError(f"x must have axes (batch, channels, height, width), got shape {list(shape)}")
    found = _windows.windows(shape[2:], kernel_size, stride, padding, dilation)
    padded: Any = manipulation.pad(x, ((0, 0), (0, 0), *found.pads)) if any(map(any, found.pads)) else x
    parts = [padded[(..., *cut)] for cut in _windows.cuts(found)]
    return manipulation.reshape(
        manipulation.stack(parts, axis=2), (shape[0], shape[1] * len(parts), _math.prod(found.counts))
    )


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _adaptive(x: Any, *, output_size: Any, data_format: str, reduce: _Callable[..., Tensor]) -> Tensor:
    rank = len(_windows.spatial(x.shape, data_format))
    first = 1 if _windows.is_last(data_format) else 2
    for axis, count in enumerate(_windows.several(output_size, rank, "output_size"), first):
        shape = _shape(x)
        size = shape[axis]
        starts = [i * size // count for i in range(count)]
        lengths = [-(-(i + 1) * size // count) - start for i, start in enumerate(starts)]
        longest = max(lengths)
        if size % count:
            places = [start + min(i, n - 1) for start, n in zip(starts, lengths, strict=True) for i in range(longest)]
            x = indexing.take(x, places, axis=axis)
        x = reduce(manipulation.reshape(x, (*shape[:axis], count, longest, *shape[axis + 1 :])), axis + 1, lengths)
    return x  # type: ignore[no-any-return]


def _maximum_of_windows(x: Any, axis: int, lengths: list[int]) -> Tensor:
    return stats.max(x, axis=axis)


def _mean_of_windows(x: Any, axis: int, lengths: list[int]) -> Tensor:
    longest = x.shape[axis]
    if min(lengths) == longest:
        return stats.mean(x, axis=axis)
    counted = [[i < length for i in range(longest)] for length in lengths]
    shape = (len(lengths), longest) + (1,) * (x.ndim - axis - 1)
    home = device.get_device(x)
    within = manipulation.reshape(creation.asarray(counted, device=home), shape)
    divisors = manipulation.reshape(creation.asarray(lengths, dtype=x.dtype, device=home), (shape[0], *shape[2:]))
    return math.divide(stats.sum(comparison.where(within, x, 0), axis=axis), divisors)


def _batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, *, axis: int, epsilon: float
) -> Tensor:
    axes = _axes(axis, x.ndim)
    factor = math.rsqrt(math.add(variance, epsilon))
    if scale is not None:
        factor = math.multiply(factor, scale)
    shift = math.negative(math.multiply(mean, factor))
    return _scaled(x, factor, shift if offset is None else math.add(shift, offset), axes)


def _batch_standardization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, *, axis: int, epsilon: float, momentum: float
) -> tuple[Tensor, Tensor, Tensor]:
    axes = _axes(axis, x.ndim)
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    count = _math.prod([x.shape[i] for i in rest])
    if not count:
        for one in (mean, variance, offset, scale):
            if one is not None:
                _along(one, x, axes)  # which looks at the shape
        return x, control.stop_gradient(mean), control.stop_gradient(variance)
    own_mean = stats.mean(x, axis=rest, keepdims=True)
    centred = math.subtract(x, own_mean)
    # Not var, which is ten times as slow on torch along the first axes of a tensor.
    own_variance = stats.mean(math.square(centred), axis=rest, keepdims=True)
    factor = math.rsqrt(math.add(own_variance, epsilon))
    # First with the factor, which is the smaller.
    answer = math.multiply(centred, factor if scale is None else math.multiply(factor, _along(scale, x, axes)))
    own_variance = math.multiply(own_variance, count / max(count - 1, 1))
    mean, variance = (
        control.stop_gradient(manipulation.reshape(math.lerp(_along(old, x, axes), new, momentum), (-1,)))
        for old, new in ((mean, own_mean), (variance, own_variance))
    )
    return _scaled(answer, None, offset, axes), mean, variance


def _layer_normalization(x: Any, scale: Any, offset: Any, *, axis: Axis, epsilon: float) -> Tensor:
    axes = _axes(axis, x.ndim)
    return _scaled(_standard(x, axes, epsilon), scale, offset, axes)


def _rms_normalization(x: Any, scale: Any, *, axis: Axis, epsilon: float) -> Tensor:
    axes = _axes(axis, x.ndim)
    power = stats.mean(math.square(x), axis=axes, keepdims=True)
    return _scaled(math.multiply(x, math.rsqrt(math.add(power, epsilon))), scale, None, axes)


def _group_normalization(x: Any, scale: Any, offset: Any, *, groups: int, axis: int, epsilon: float) -> Tensor:
    (place,) = _axes(axis, x.ndim)
    shape = _shape(x)
    if place == 0 or groups < 1 or shape[place] % groups:
        raise ValueError(f"axis {axis} must have a length that groups={groups} divides, got shape {list(shape)}")
    rest = tuple(i for i in range(1, len(shape)) if i != place)
    sizes = tuple(1 if i in rest else n for i, n in enumerate(shape))

    def mean(values: Any) -> Any:
        """The mean of each group, for each of its channels; channels first, since that is along whole axes."""
        parts = manipulation.reshape(stats.mean(values, axis=rest), (shape[0], groups, shape[place] // groups))
        means = stats.mean(parts, axis=-1, keepdims=True)
        return manipulation.reshape(manipulation.broadcast_to(means, parts.shape), sizes)

    centred = math.subtract(x, mean(x))
    standard = math.multiply(centred, math.rsqrt(math.add(mean(math.square(centred)), epsilon)))
    return _scaled(standard, scale, offset, (place,))


def _standard(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    """``x`` with mean 0 and variance 1 along the axes."""
    centred = math.subtract(x, stats.mean(x, axis=axes, keepdims=True))
    variance = stats.mean(math.square(centred), axis=axes, keepdims=True)
    return math.multiply(centred, math.rsqrt(math.add(variance, epsilon)))


def _scaled(x: Any, scale: Any, offset: Any, axes: tuple[int, ...]) -> Tensor:
    if scale is not None:
        x = math.multiply(x, _along(scale, x, axes))
    return x if offset is None else math.add(x, _along(offset, x, axes))


def _along(values: Any, x: Any, axes: tuple[int, ...]) -> Tensor:
    """One value for every place along the axes of ``x``, ready to be broadcast with it."""
    wanted = tuple(x.shape[axis] for axis in sorted(axes))
    if _shape(values) != wanted:
        raise ValueError(f"values along the axes {list(axes)} must have shape {list(wanted)}, got {list(values.shape)}")
    return manipulation.reshape(values, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


def _lstm(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, h: Any, c: Any, *, axis: int, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    axis = _check_recurrent(4, x, weight_ih, weight_hh, (bias_ih, bias_hh), (h, c), axis)
    # Both biases where it is once for all steps.
    bias = bias_ih if bias_hh is None else bias_hh if bias_ih is None else math.add(bias_ih, bias_hh)
    steps = _steps(x, weight_ih, bias, axis, reverse)
    zero = creation.zeros_like(steps[0][..., : weight_hh.shape[0]])
    h, c = (zero if one is None else one for one in (h, c))
    outputs = []
    for step in steps:
        i, f, g, o = manipulation.split(math.add(step, linearalg.matmul(h, weight_hh)), 4, axis=-1)
        c = math.add(math.multiply(activations.sigmoid(f), c), math.multiply(activations.sigmoid(i), math.tanh(g)))
        h = math.multiply(activations.sigmoid(o), math.tanh(c))
        outputs.append(h)
    return manipulation.stack(outputs[::-1] if reverse else outputs, axis=axis), h, c


def _gru(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, h: Any, *, axis: int, reverse: bool
) -> tuple[Tensor, Tensor]:
    axis = _check_recurrent(3, x, weight_ih, weight_hh, (bias_ih, bias_hh), (h,), axis)
    steps = _steps(x, weight_ih, bias_ih, axis, reverse)
    h = creation.zeros_like(steps[0][..., : weight_hh.shape[0]]) if h is None else h
    outputs = []
    for step in steps:
        recurrent = linearalg.matmul(h, weight_hh)
        recurrent = recurrent if bias_hh is None else math.add(recurrent, bias_hh)
        r_x, z_x, n_x = manipulation.split(step, 3, axis=-1)
        r_h, z_h, n_h = manipulation.split(recurrent, 3, axis=-1)
        n = math.tanh(math.add(n_x, math.multiply(activations.sigmoid(math.add(r_x, r_h)), n_h)))
        h = math.add(n, math.multiply(activations.sigmoid(math.add(z_x, z_h)), math.subtract(h, n)))
        outputs.append(h)
    return manipulation.stack(outputs[::-1] if reverse else outputs, axis=axis), h


def _steps(x: Any, weight: Any, bias: Any, axis: int, reverse: bool) -> list[Any]:
    """The part of every step that depends on the input alone, in the order of the steps; computed for all at once."""
    projected = linearalg.matmul(x, weight)
    steps = list(manipulation.unstack(projected if bias is None else math.add(projected, bias), axis=axis))
    return steps[::-1] if reverse else steps


def _normalize(x: Any, *, axis: Axis, order: float, epsilon: float) -> Tensor:
    # A number of NumPy's would make float64 of float32.
    order, epsilon = float(order), float(epsilon)
    if order <= 0:
        raise ValueError(f"order must be > 0, got {order!r}")
    axes = _axes(axis, x.ndim)
    size = math.abs(x)
    if order == _math.inf:
        norm = stats.max(size, axis=axes, keepdims=True)
    elif order == 1:
        norm = stats.sum(size, axis=axes, keepdims=True)
    else:
        powers = math.square(size) if order == 2 else math.power(size, order)
        # The root has no slope at zero, so zero does not get there.
        total = math.maximum(stats.sum(powers, axis=axes, keepdims=True), epsilon**order)
        norm = math.sqrt(total) if order == 2 else math.power(total, 1 / order)
    return math.divide(x, math.maximum(norm, epsilon))


def _rotary_embedding(x: Any, *, positions: Any, offset: int, base: float, interleaved: bool, axis: int) -> Tensor:
    (place,) = _axes(axis, x.ndim)
    shape = _shape(x)
    half = shape[-1] // 2
    if shape[-1] % 2 or place == len(shape) - 1:
        raise ValueError(
            f"x must have pairs along its last axis, which must not be axis, got shape {list(shape)} and axis={axis}"
        )
    home = device.get_device(x)
    if positions is None:
        positions = creation.arange(shape[place], dtype="int64", device=home)
    if _shape(positions) not in ((shape[place],), (shape[0], shape[place])):
        raise ValueError(
            f"positions must have shape [{shape[axis]}] or a batch of such rows, got {list(positions.shape)}"
        )
    spread = [1] * len(shape)
    spread[place] = shape[place]
    if positions.ndim == 2:
        spread[0] = shape[0]
    steps = dtypes.cast(math.add(positions, offset), x.dtype)
    speeds = creation.asarray([base ** (-i / half) for i in range(half)], dtype=x.dtype, device=home)
    angles = math.multiply(manipulation.reshape(steps, spread), speeds)
    cosine, sine = math.cos(angles), math.sin(angles)
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = [
        math.subtract(math.multiply(first, cosine), math.multiply(second, sine)),
        math.add(math.multiply(second, cosine), math.multiply(first, sine)),
    ]
    if interleaved:
        return manipulation.reshape(manipulation.stack(turned, axis=-1), shape)
    return manipulation.concat(turned, axis=-1)


def _resize(images: Any, *, size: Any, interpolation: str, antialias: bool, data_format: str) -> Tensor:
    first = images.ndim - (3 if _windows.is_last(data_format) else 2)
    for axis, count in enumerate(size, first):
        taps = _taps(images.shape[axis], count, interpolation, antialias)
        total: Any = None
        for places, weights in taps:
            part = indexing.take(images, places, axis=axis)
            if len(taps) > 1:
                factors = creation.asarray(weights, dtype=images.dtype, device=device.get_device(images))
                part = math.multiply(part, manipulation.reshape(factors, (-1, *(1,) * (images.ndim - axis - 1))))
            total = part if total is None else math.add(total, part)
        images = total
    return images  # type: ignore[no-any-return]


_Taps = tuple[tuple[list[int], list[float]], ...]


@_functools.lru_cache(maxsize=64)
def _taps(size: int, count: int, interpolation: str, antialias: bool) -> _Taps:
    """For each term of an interpolation along an axis, the pixels that it takes and their weights."""
    if interpolation == "nearest":
        return ((_nearest(size, count), []),)
    find = _wide_taps if antialias else _cubic_taps if interpolation == "bicubic" else _linear_taps
    rows = [find(i, size, count, interpolation) for i in range(count)]
    longest = max(len(row) for row in rows)
    for row in rows:
        row += [(row[0][0], 0.0)] * (longest - len(row))
    return tuple(([row[k][0] for row in rows], [row[k][1] for row in rows]) for k in range(longest))


def _nearest(size: int, count: int) -> list[int]:
    """The pixels that the centres of the new pixels are in."""
    return [(2 * i + 1) * size // (2 * count) for i in range(count)]


def _linear_taps(i: int, size: int, count: int, _: str) -> list[tuple[int, float]]:
    place = max((i + 0.5) * size / count - 0.5, 0.0)
    low = min(int(place), size - 1)
    return [(low, 1 - (place - low)), (min(low + 1, size - 1), place - low)]


def _cubic_taps(i: int, size: int, count: int, _: str) -> list[tuple[int, float]]:
    place = (i + 0.5) * size / count - 0.5
    low = _math.floor(place)
    return [(min(max(low + k, 0), size - 1), _cubic(place - low - k, -0.75)) for k in (-1, 0, 1, 2)]


def _wide_taps(i: int, size: int, count: int, interpolation: str) -> list[tuple[int, float]]:
    scale = max(size / count, 1.0)
    reach = scale * (2 if interpolation == "bicubic" else 1)
    centre = (i + 0.5) * size / count
    places = range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), size))
    distances = [(place - centre + 0.5) / scale for place in places]
    weights = [_cubic(d, -0.5) if interpolation == "bicubic" else max(1 - abs(d), 0.0) for d in distances]
    return [(place, weight / sum(weights)) for place, weight in zip(places, weights, strict=True)]


def _cubic(distance: float, a: float) -> float:
    """Keys' piecewise cubic."""
    d = abs(distance)
    if d < 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((d - 5) * d + 8) * d * a - 4 * a if d < 2 else 0.0
