"""Neural network primitives: linear maps, convolution, pooling, normalization, attention, recurrence, embedding."""

from __future__ import annotations

import functools as _functools
import math as _math
from collections.abc import Callable as _Callable
from collections.abc import Sequence
from typing import Any

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
from ember_ml.shapes import windows as _windows
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.neural import check_linear as _check_linear
from ember_ml.shapes.neural import check_recurrent as _check_recurrent
from ember_ml.shapes.neural import check_resize as _check_resize
from ember_ml.types import Axis, BoolMask, Indices, Shape, Tensor, TensorLike


@op(promoted, kinds="numeric")
def linear(x: TensorLike, weight: TensorLike, /, bias: TensorLike | None = None) -> Tensor:
    """``x @ weight + bias`` along the last axis of ``x``, in one kernel where the engine has one.

    The weight has the shape (in_features, out_features), the transpose of the one that torch's function takes; the bias
    has the shape (out_features).

    >>> linear([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], [10.0, 20.0, 30.0]).tolist()
    [[11.0, 22.0, 33.0], [13.0, 24.0, 37.0]]
    """
    _check_linear(x, weight, bias)
    product = linearalg.matmul(x, weight)
    return product if bias is None else math.add(product, bias)


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
    """Convolution over one to three spatial axes.

    ``x`` has the axes (batch, spatial..., channels), or (batch, channels, spatial...) with ``"channels_first"``. The
    kernel has the axes (spatial..., channels / groups, filters) in both cases, and is not flipped. On CUDA, torch may
    compute float32 convolutions in TF32, depending on ``torch.backends.cudnn.allow_tf32``.

    Args:
        strides: distance between windows, for all axes or for each.
        padding: zeros added around ``x``: ``"valid"`` for none; ``"same"`` for as many as make the output
            ``ceil(size / stride)`` long, with an odd one at the end; or their number for all axes, for each axis, or
            for both ends of each.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        dilation_rate: distance between the elements of ``x`` that a window covers.
        groups: number of groups that channels and filters are split into, each convolved separately.

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
    """Transposed convolution: the gradient of a convolution with respect to its input.

    The kernel has the axes (spatial..., filters / groups, channels). The length of an axis becomes
    ``(size - 1) * stride + dilation * (kernel - 1) + 1``, minus the padding, plus the output padding.

    Args:
        strides, data_format, dilation_rate, groups: as in ``conv``.
        padding: elements removed from the ends of the output: ``"valid"`` for none; ``"same"`` for those that leave
            ``size * stride``; or their number for all axes, for each axis, or for both ends of each.
        output_padding: number of elements added to the end of each axis.

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
    """Convolution of each channel with its own filters.

    The kernel has the axes (spatial..., channels, multiplier). In the output, the filters of the first channel come
    first, then those of the second. The options are those of ``conv``.

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
    """``depthwise_conv`` followed by a pointwise convolution, which mixes the channels.

    The pointwise kernel has the axes (1..., channels * multiplier, filters). The options are those of ``conv``.

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
    """Maximum of each window over one to three spatial axes; padding is ignored.

    Args:
        strides: distance between windows, by default ``pool_size``.
        padding: as in ``conv``.
        data_format: as in ``conv``.

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
    """Mean of each window over one to three spatial axes; padding is ignored.

    Args:
        strides: distance between windows, by default ``pool_size``.
        padding: as in ``conv``.
        data_format: as in ``conv``.

    >>> average_pool([[[1.0], [3.0], [2.0]]], 2, padding="same").tolist()
    [[[2.0], [2.0]]]
    """
    ...


@op(floating, kinds="real")
def adaptive_average_pool(
    x: TensorLike, /, output_size: int | Sequence[int], data_format: str = "channels_last"
) -> Tensor:
    """Means of ``output_size`` windows that cover each spatial axis evenly.

    Window ``i`` of ``n`` extends from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``, so windows overlap if
    ``n`` does not divide the size.

    Args:
        data_format: as in ``conv``.

    >>> adaptive_average_pool([[[1.0], [2.0], [6.0]]], 2).tolist()
    [[[1.5], [4.0]]]
    """
    return math._in_single(_adaptive, x, output_size=output_size, data_format=data_format, reduce=_mean_of_windows)


@op(promoted, kinds="real numeric")
def adaptive_max_pool(x: TensorLike, /, output_size: int | Sequence[int], data_format: str = "channels_last") -> Tensor:
    """Maxima of ``output_size`` windows that cover each spatial axis evenly, as in ``adaptive_average_pool``.

    Args:
        data_format: as in ``conv``.

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
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset``, with one value of each per index along ``axis``.

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
    """``x`` normalized by its own statistics, and updated running ``mean`` and ``variance``.

    The first result is ``batch_normalization`` of ``x`` with the mean and variance over all axes except ``axis``. The
    running variance is updated with the unbiased variance. Running statistics carry no gradient and do not change if
    ``x`` has no elements.

    Args:
        offset, scale, epsilon: as in ``batch_normalization``.
        momentum: weight of the new statistics in the running ones, from 0 to 1.

    >>> x = [[1.0, 2.0], [3.0, 6.0]]
    >>> result, mean, variance = batch_standardization(x, [0.0, 0.0], [1.0, 1.0], epsilon=0.0, momentum=0.5)
    >>> result.tolist(), mean.tolist(), variance.tolist()
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
        scale, offset: one value per index along ``axis``; for several axes, in their order in ``x``.
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

    Args:
        scale: one factor per index along ``axis``.
        epsilon: added to the mean square.

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
    """``x`` with mean 0 and variance 1 in each group of channels of each example, times ``scale``, plus ``offset``.

    Args:
        groups: number of groups that the channels are split into.
        scale, offset: one value per channel.
        axis: the axis of the channels; the first axis is the batch.
        epsilon: added to the variance.

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
    mask: BoolMask | None = None,
    bias: TensorLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    causal_alignment: str = "top_left",
) -> Tensor:
    """``softmax(query @ key.T * scale + bias) @ value`` for each head.

    The axes are (batch, length, heads, size). Keys and values may have fewer heads than queries if their number divides
    that of the queries; each is then shared by consecutive query heads.

    Args:
        mask: true where a query may attend to a key, or an integer other than 0; broadcasts to (batch, heads, queries,
            keys). The result is zero for a query that may attend to none. Floats raise a ``TypeError``: a mask that
            other libraries add to the scores is ``bias``.
        bias: added to the scores; broadcasts like ``mask``. Negative infinity masks a key.
        scale: factor of the scores, by default ``1 / sqrt(size)``.
        is_causal: whether query ``i`` attends only to keys up to ``i``.
        causal_alignment: ``"top_left"``, as in torch, or ``"bottom_right"``: the last query attends to all keys, the
            one before to all but the last, as decoding with a cache of keys requires. Both are the same if there are
            as many queries as keys.

    >>> query, key = [[[[0.0]], [[0.0]]]], [[[[1.0]], [[2.0]]]]
    >>> dot_product_attention(query, key, [[[[4.0]], [[8.0]]]], is_causal=True).tolist()
    [[[[4.0]], [[6.0]]]]
    >>> last = [[[[0.0]]]]
    >>> dot_product_attention(last, key, [[[[4.0]], [[8.0]]]], is_causal=True, causal_alignment="bottom_right").tolist()
    [[[[6.0]]]]
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
    """Outputs of a long short-term memory for all steps of sequences, and its final states ``h`` and ``c``.

    The axes of ``x`` are (batch, time, features). The weights have the shapes (features, 4 * size) and
    (size, 4 * size), biases (4 * size), states (batch, size). A step splits
    ``x @ weight_ih + bias_ih + h @ weight_hh + bias_hh`` into ``i, f, g, o``; then
    ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)``, and the output is ``h = sigmoid(o) * tanh(c)``.

    Args:
        h, c: initial states, by default zero.
        axis: the axis of time; 0 for (time, batch, features).
        reverse: process the sequences from their end; outputs keep the order of ``x``.

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
    """Outputs of a gated recurrent unit for all steps of sequences, and its final state ``h``.

    The axes of ``x`` are (batch, time, features). The weights have the shapes (features, 3 * size) and
    (size, 3 * size), biases (3 * size), the state (batch, size). A step splits ``x @ weight_ih + bias_ih`` and
    ``h @ weight_hh + bias_hh`` into ``r, z, n``; then ``r = sigmoid(r_x + r_h)``, ``z = sigmoid(z_x + z_h)``,
    ``n = tanh(n_x + r * n_h)``, and the next state and output is ``(1 - z) * n + z * h``.

    Args:
        h: initial state, by default zero.
        axis: the axis of time; 0 for (time, batch, features).
        reverse: process the sequences from their end; outputs keep the order of ``x``.

    >>> outputs, h = gru([[[1.0], [2.0]]], [[0.0] * 3], [[0.0] * 3], [0.0, 0.0, 1.0])
    >>> tuple(outputs.shape), f"{h.tolist()[0][0]:.3f}"
    ((1, 2, 1), '0.571')
    """
    return math._in_single(_gru, x, weight_ih, weight_hh, bias_ih, bias_hh, h, axis=axis, reverse=reverse)


@op(kept)
def embedding_lookup(table: TensorLike, indices: Indices, /) -> Tensor:
    """Rows of ``table`` at ``indices``.

    >>> embedding_lookup([[1.0, 2.0], [3.0, 4.0]], [1, 0, 1]).tolist()
    [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    """
    return indexing.take(table, indices, axis=0)


@op(floating)
def dropout(x: TensorLike, /, rate: float, *, training: bool = True, key: object = None) -> Tensor:
    """``x`` with elements set to zero at random and the others divided by ``1 - rate``.

    Args:
        rate: the probability that an element becomes zero.
        training: if false, return ``x`` unchanged.
        key: random key, with the same result on every engine; by default the next key of the current stream. Code
            compiled by the engine itself should be given a key, or it would reuse that one in every call.

    >>> dropout([1.0, 2.0, 3.0, 4.0], 0.5, key=3).tolist()
    [2.0, 4.0, 0.0, 8.0]
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, got {rate!r}")
    if not training or rate == 0:
        return x  # type: ignore[return-value]
    if rate == 1:
        return creation.zeros_like(x)
    dropped = _random.bernoulli(_shape(x), rate, device=device.get_device(x), key=key)
    return comparison.where(dropped, 0, math.multiply(x, 1 / (1 - rate)))


@op(floating)
def normalize(x: TensorLike, /, axis: Axis = -1, order: float = 2, epsilon: float = 1e-12) -> Tensor:
    """``x`` divided by its norm along ``axis``, or by ``epsilon`` if that is larger.

    Args:
        order: order of the norm ``sum(abs(x) ** order) ** (1 / order)``; ``inf`` for the largest absolute value.

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
    scale: float = 1.0,
    interleaved: bool = False,
    axis: int = 1,
) -> Tensor:
    """``x`` with pairs along its last axis rotated by angles proportional to their position along ``axis``.

    Pair ``i`` of ``n`` at position ``p`` is rotated by ``p * scale * base ** (-i / n)``. An element of the first half
    of the last axis is paired with the corresponding one of the second half.

    Args:
        positions: positions of the indices along ``axis``, one row for all or one for each index of the first axis; by
            default 0, 1, 2 and so on.
        offset: added to the positions.
        scale: factor of the positions; less than 1 for sequences longer than those that a model was trained with.
        interleaved: pair neighboring elements instead.

    >>> rotary_embedding([[[1.0, 2.0], [1.0, 0.0]]]).tolist()[0][0]
    [1.0, 2.0]
    """
    options = {"offset": offset, "base": base, "scale": scale, "interleaved": interleaved, "axis": axis}
    return math._in_single(_rotary_embedding, x, positions=positions, **options)


@op(floating, kinds="real")
def resize(
    images: TensorLike,
    size: Sequence[int],
    /,
    interpolation: str = "bilinear",
    antialias: bool = False,
    data_format: str = "channels_last",
) -> Tensor:
    """Images resized to another height and width, with aligned outer edges.

    The axes are (batch, height, width, channels), or (batch, channels, height, width) with ``"channels_first"``; the
    batch may be absent.

    Args:
        size: the new height and width.
        interpolation: ``"nearest"`` (the pixel that contains the center of the new one), ``"bilinear"`` or
            ``"bicubic"`` (Keys' cubic with -0.75, or -0.5 if antialiased).
        antialias: widen the filter where the image shrinks, so that every pixel contributes.
        data_format: ``"channels_last"`` or ``"channels_first"``.

    >>> resize([[[1.0], [3.0]]], (1, 4)).tolist()
    [[[1.0], [1.5], [2.5], [3.0]]]
    """
    _check_resize(_shape(images), size, interpolation, antialias, data_format)
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
    """Images assembled from windows, with overlapping elements summed: the transpose of ``unfold``.

    ``x`` has the axes (batch, channels * window, windows), the images (batch, channels, height, width).

    Args:
        output_size: height and width of the images.
        kernel_size, dilation, padding, stride: as in ``unfold``.

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
    """Windows of images (batch, channels, height, width) as columns (batch, channels * window, windows).

    Args:
        kernel_size: height and width of a window.
        dilation: distance between the elements of a window.
        padding: number of zeros around the images.
        stride: distance between windows.

    >>> unfold([[[[1.0, 2.0, 3.0, 4.0]]]], (1, 2)).tolist()
    [[[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]]
    """
    shape = _shape(x)
    if len(shape) != 4:
        raise ValueError(f"x must have axes (batch, channels, height, width), got shape {list(shape)}")
    found = _windows.windows(shape[2:], kernel_size, stride, padding, dilation)
    padded: Any = manipulation.pad(x, ((0, 0), (0, 0), *found.pads)) if any(map(any, found.pads)) else x
    parts = [padded[(..., *cut)] for cut in _windows.kernel_slices(found)]
    return manipulation.reshape(
        manipulation.stack(parts, axis=2), (shape[0], shape[1] * len(parts), _math.prod(found.counts))
    )


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _adaptive(x: Any, *, output_size: Any, data_format: str, reduce: _Callable[..., Tensor]) -> Tensor:
    rank = len(_windows.spatial(x.shape, data_format))
    first = 1 if _windows.is_last(data_format) else 2
    for axis, count in enumerate(_windows.per_axis(output_size, rank, "output_size"), first):
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
    on = device.get_device(x)
    within = manipulation.reshape(creation.asarray(counted, device=on), shape)
    divisors = manipulation.reshape(creation.asarray(lengths, dtype=x.dtype, device=on), (shape[0], *shape[2:]))
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
                _along(one, x, axes)  # checks the shape
        return x, control.stop_gradient(mean), control.stop_gradient(variance)
    own_mean = stats.mean(x, axis=rest, keepdims=True)
    centred = math.subtract(x, own_mean)
    # torch 2.13: var is ten times slower than this along the first axes of a tensor.
    own_variance = stats.mean(math.square(centred), axis=rest, keepdims=True)
    factor = math.rsqrt(math.add(own_variance, epsilon))
    # Multiply the scale with the factor first, which is smaller than ``x``.
    normalized = math.multiply(centred, factor if scale is None else math.multiply(factor, _along(scale, x, axes)))
    own_variance = math.multiply(own_variance, count / max(count - 1, 1))
    mean, variance = (
        control.stop_gradient(manipulation.reshape(math.lerp(_along(old, x, axes), new, momentum), (-1,)))
        for old, new in ((mean, own_mean), (variance, own_variance))
    )
    return _scaled(normalized, None, offset, axes), mean, variance


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
        """Mean of each group, repeated for its channels; first per channel, which reduces whole axes."""
        parts = manipulation.reshape(stats.mean(values, axis=rest), (shape[0], groups, shape[place] // groups))
        means = stats.mean(parts, axis=-1, keepdims=True)
        return manipulation.reshape(manipulation.broadcast_to(means, parts.shape), sizes)

    centred = math.subtract(x, mean(x))
    standard = math.multiply(centred, math.rsqrt(math.add(mean(math.square(centred)), epsilon)))
    return _scaled(standard, scale, offset, (place,))


def _standard(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    """``x`` with mean 0 and variance 1 along ``axes``."""
    centred = math.subtract(x, stats.mean(x, axis=axes, keepdims=True))
    variance = stats.mean(math.square(centred), axis=axes, keepdims=True)
    return math.multiply(centred, math.rsqrt(math.add(variance, epsilon)))


def _scaled(x: Any, scale: Any, offset: Any, axes: tuple[int, ...]) -> Tensor:
    if scale is not None:
        x = math.multiply(x, _along(scale, x, axes))
    return x if offset is None else math.add(x, _along(offset, x, axes))


def _along(values: Any, x: Any, axes: tuple[int, ...]) -> Tensor:
    """One value per index along the axes of ``x``, reshaped to broadcast with it."""
    wanted = tuple(x.shape[axis] for axis in sorted(axes))
    if _shape(values) != wanted:
        raise ValueError(f"values along the axes {list(axes)} must have shape {list(wanted)}, got {list(values.shape)}")
    return manipulation.reshape(values, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


def _lstm(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, h: Any, c: Any, *, axis: int, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    axis = _check_recurrent(4, x, weight_ih, weight_hh, (bias_ih, bias_hh), (h, c), axis)
    # Both biases are added once for all steps.
    bias = bias_ih if bias_hh is None else bias_hh if bias_ih is None else math.add(bias_ih, bias_hh)
    parts = linear(x, weight_ih, bias)
    states = _initial(x, weight_hh, axis, h, c)

    def step(state: tuple[Any, Any], part: Any) -> tuple[Any, Any]:
        h, c = state
        i, f, g, o = manipulation.split(math.add(part, linearalg.matmul(h, weight_hh)), 4, axis=-1)
        c = math.add(math.multiply(activations.sigmoid(f), c), math.multiply(activations.sigmoid(i), math.tanh(g)))
        h = math.multiply(activations.sigmoid(o), math.tanh(c))
        return (h, c), h

    (h, c), outputs = control._run_steps(step, states, (parts,), axis, reverse)
    return outputs, h, c


def _gru(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, h: Any, *, axis: int, reverse: bool
) -> tuple[Tensor, Tensor]:
    axis = _check_recurrent(3, x, weight_ih, weight_hh, (bias_ih, bias_hh), (h,), axis)
    parts = linear(x, weight_ih, bias_ih)
    states = _initial(x, weight_hh, axis, h)

    def step(state: tuple[Any], part: Any) -> tuple[Any, Any]:
        (h,) = state
        r_x, z_x, n_x = manipulation.split(part, 3, axis=-1)
        r_h, z_h, n_h = manipulation.split(linear(h, weight_hh, bias_hh), 3, axis=-1)
        n = math.tanh(math.add(n_x, math.multiply(activations.sigmoid(math.add(r_x, r_h)), n_h)))
        h = math.add(n, math.multiply(activations.sigmoid(math.add(z_x, z_h)), math.subtract(h, n)))
        return (h,), h

    (h,), outputs = control._run_steps(step, states, (parts,), axis, reverse)
    return outputs, h


def _initial(x: Any, weight_hh: Any, axis: int, *states: Any) -> tuple[Any, ...]:
    """Initial states of a recurrent layer, which are zero by default."""
    shape = (x.shape[1 - axis], weight_hh.shape[0])
    zero = creation.zeros(shape, dtype=x.dtype, device=device.get_device(x))
    return tuple(zero if one is None else one for one in states)


def _normalize(x: Any, *, axis: Axis, order: float, epsilon: float) -> Tensor:
    # NumPy scalars would promote float32 to float64.
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
        # The root is not differentiable at zero, so zero is replaced first.
        total = math.maximum(stats.sum(powers, axis=axes, keepdims=True), epsilon**order)
        norm = math.sqrt(total) if order == 2 else math.power(total, 1 / order)
    return math.divide(x, math.maximum(norm, epsilon))


def _rotary_embedding(
    x: Any, *, positions: Any, offset: int, base: float, scale: float, interleaved: bool, axis: int
) -> Tensor:
    (place,) = _axes(axis, x.ndim)
    shape = _shape(x)
    half = shape[-1] // 2
    if shape[-1] % 2 or place == len(shape) - 1:
        raise ValueError(
            f"x must have pairs along its last axis, which must not be axis, got shape {list(shape)} and axis={axis}"
        )
    on = device.get_device(x)
    if positions is None:
        positions = creation.arange(shape[place], dtype="int64", device=on)
    if _shape(positions) not in ((shape[place],), (shape[0], shape[place])):
        raise ValueError(
            f"positions must have shape [{shape[axis]}] or a batch of such rows, got {list(positions.shape)}"
        )
    spread = [1] * len(shape)
    spread[place] = shape[place]
    if positions.ndim == 2:
        spread[0] = shape[0]
    steps = dtypes.cast(math.add(positions, offset), x.dtype)
    speeds = creation.asarray([scale * base ** (-i / half) for i in range(half)], dtype=x.dtype, device=on)
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
    """Source pixels and weights for each term of an interpolation along an axis."""
    if interpolation == "nearest":
        return ((_nearest(size, count), []),)
    find = _wide_taps if antialias else _cubic_taps if interpolation == "bicubic" else _linear_taps
    rows = [find(i, size, count, interpolation) for i in range(count)]
    longest = max(len(row) for row in rows)
    for row in rows:
        row += [(row[0][0], 0.0)] * (longest - len(row))
    return tuple(([row[k][0] for row in rows], [row[k][1] for row in rows]) for k in range(longest))


def _nearest(size: int, count: int) -> list[int]:
    """Pixels that contain the centers of the new pixels."""
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
    """Keys' piecewise cubic kernel."""
    d = abs(distance)
    if d < 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((d - 5) * d + 8) * d * a - 4 * a if d < 2 else 0.0
