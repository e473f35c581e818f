"""Neural network primitives on torch: its fused kernels, with layout and padding adapted."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from ember_ml.backend.torch.indexing import _is_true, _nonnegative, take
from ember_ml.backend.torch.linearalg import matmul
from ember_ml.backend.torch.transform import is_last as _is_last_gradient
from ember_ml.backend.torch.transform import needs_more_than_backward
from ember_ml.dispatch import definition_of, within
from ember_ml.shapes.axes import axes_of, axis_of
from ember_ml.shapes.neural import causal_offset, check_attention, check_linear, check_recurrent, check_resize
from ember_ml.shapes.windows import (
    Windows,
    check_kernel,
    fold_windows,
    is_last,
    output_sizes,
    padded_sizes,
    per_axis,
    pool_windows,
    spatial,
    transposed_windows,
    valid_counts,
    windows,
)

_WIDE = (torch.float32, torch.float64)
_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
_MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE_POOL: dict[int, Any] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
_ADAPTIVE_AVERAGE: dict[int, Any] = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
_ADAPTIVE_MAX: dict[int, Any] = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}


def linear(x: torch.Tensor, weight: torch.Tensor, /, bias: torch.Tensor | None = None) -> torch.Tensor:
    check_linear(x, weight, bias)
    if bias is None or not (x.is_cpu or x.is_floating_point() or x.is_complex()):
        product = matmul(x, weight)
        return product if bias is None else product + bias
    if x.ndim == 2:
        return torch.addmm(bias, x, weight)
    # F.linear of a transposed weight calls the same kernel, but autocast does not cache its casts of views.
    rows = x.reshape(prod(x.shape[:-1]), x.shape[-1])
    return torch.addmm(bias, rows, weight).view(*x.shape[:-1], weight.shape[1])


def conv(
    x: torch.Tensor,
    kernel: torch.Tensor,
    /,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    groups: int = 1,
) -> torch.Tensor:
    check_kernel(x.shape, kernel.shape, data_format, groups)
    window = windows(spatial(x.shape, data_format), tuple(kernel.shape[:-2]), strides, padding, dilation_rate)
    if not (x.numel() and kernel.numel()):
        return _to_data_format(_empty_sum(x, kernel, kernel.shape[-1], window.counts), data_format)
    inner, pads = _padded(_channels_first(x, data_format), window, 0.0, even=True)
    filters = kernel.movedim((-1, -2), (0, 1))
    result = _CONV[len(pads)](inner, filters, None, window.strides, pads, window.dilation, groups)
    return _to_data_format(result, data_format)


def conv_transpose(
    x: torch.Tensor,
    kernel: torch.Tensor,
    /,
    strides: Any = 1,
    padding: Any = "valid",
    output_padding: Any = None,
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    groups: int = 1,
) -> torch.Tensor:
    check_kernel(x.shape, kernel.shape, data_format, groups, transposed=True)
    sizes = spatial(x.shape, data_format)
    window = transposed_windows(sizes, tuple(kernel.shape[:-2]), strides, padding, output_padding, dilation_rate)
    if not (x.numel() and kernel.numel()):
        return _to_data_format(_empty_sum(x, kernel, kernel.shape[-2] * groups, output_sizes(window)), data_format)
    inner = _channels_first(x, data_format)
    filters = kernel.movedim((-1, -2), (0, 1))
    shared = [max(min(pair), 0) for pair in window.pads]
    run = _CONV_TRANSPOSE[len(sizes)]
    result = run(inner, filters, None, window.strides, shared, 0, groups, window.dilation)
    rest = [(both - low, both - high) for both, (low, high) in zip(shared, window.pads, strict=True)]
    return _to_data_format(_pad_or_crop(result, rest, 0.0), data_format)


def _empty_sum(x: torch.Tensor, kernel: torch.Tensor, channels: int, sizes: tuple[int, ...]) -> torch.Tensor:
    """Convolution of empty tensors: zeros, with a gradient for both.

    torch 2.13 rejects most of these shapes, and treats an input without channels as one without a batch.
    """
    empty_sums = x.flatten()[:0].sum() + kernel.flatten()[:0].sum()
    return x.new_zeros((x.shape[0], channels, *sizes)) + empty_sums


def max_pool(
    x: torch.Tensor, /, pool_size: Any, strides: Any = None, padding: Any = "valid", data_format: str = "channels_last"
) -> torch.Tensor:
    window = pool_windows(spatial(x.shape, data_format), pool_size, strides, padding)
    least = -torch.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    inner, pads = _padded(_channels_first(x, data_format), window, least)
    if inner.is_cuda and inner.dtype is torch.float64:
        # torch 2.13: with few channels, the channels-last kernel makes misaligned float64 reads, a fatal CUDA error.
        inner = inner.clone(memory_format=torch.contiguous_format)
    result = _pool(_MAX_POOL[len(pads)], inner, window.kernel, window.strides, pads)
    return _to_data_format(result, data_format)


def average_pool(
    x: torch.Tensor, /, pool_size: Any, strides: Any = None, padding: Any = "valid", data_format: str = "channels_last"
) -> torch.Tensor:
    window = pool_windows(spatial(x.shape, data_format), pool_size, strides, padding)
    inner, pads = _padded(_channels_first(x, data_format), window, 0.0)
    padded_here = inner.shape[2:] != window.sizes
    if inner.is_cuda and any(pads):
        # torch 2.13: the gradient of the channels-last kernel counts the padding, unlike the forward pass.
        inner = inner.contiguous()
    run = partial(_AVERAGE_POOL[len(pads)], count_include_pad=False)
    result = _pool(run, inner, window.kernel, window.strides, pads)
    if padded_here:
        for axis, size in enumerate(window.kernel):
            factors = torch.tensor([size / n for n in valid_counts(window, axis)], dtype=x.dtype, device=x.device)
            result = result * factors.reshape(-1, *(1,) * (len(pads) - axis - 1))
    return _to_data_format(result, data_format)


def adaptive_average_pool(x: torch.Tensor, /, output_size: Any, data_format: str = "channels_last") -> torch.Tensor:
    return _adaptive(_ADAPTIVE_AVERAGE, x, output_size, data_format)


def adaptive_max_pool(x: torch.Tensor, /, output_size: Any, data_format: str = "channels_last") -> torch.Tensor:
    return _adaptive(_ADAPTIVE_MAX, x, output_size, data_format)


def _adaptive(run: dict[int, Any], x: torch.Tensor, output_size: Any, data_format: str) -> torch.Tensor:
    rank = len(spatial(x.shape, data_format))
    sizes = per_axis(output_size, rank, "output_size")
    result = _pool(run[rank], _channels_first(x, data_format), sizes[0] if rank == 1 else sizes)
    return _to_data_format(result, data_format)


def _pool(run: Any, inner: torch.Tensor, *options: Any) -> torch.Tensor:
    """``run`` of a tensor that may have no channels, which torch does not support."""
    if inner.shape[1]:
        return run(inner, *options)
    return run(inner.new_zeros((inner.shape[0], 1, *inner.shape[2:])), *options)[:, :0]


def batch_normalization(
    x: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    /,
    axis: int = -1,
    offset: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    epsilon: float = 1e-5,
) -> torch.Tensor:
    place = axis_of(axis, x.ndim)
    # F.batch_norm treats the mean and the variance as constants, without gradient.
    wide = torch.promote_types(x.dtype, torch.float32)
    factor = torch.rsqrt(variance.to(wide) + epsilon)
    factor = factor if scale is None else factor * scale
    shift = -mean * factor if offset is None else offset - mean * factor
    for one in (factor, shift):
        _check_along(one, (x.shape[place],), axis)
    sizes = (-1, *(1,) * (x.ndim - place - 1))
    return torch.addcmul(shift.reshape(sizes), x.to(wide), factor.reshape(sizes)).to(x.dtype)


def batch_standardization(
    x: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    /,
    axis: int = -1,
    offset: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    place = axis_of(axis, x.ndim)
    size = x.shape[place]
    for one in (mean, variance, offset, scale):
        _check_along(one, (size,), axis)
    if x.numel() <= size or epsilon <= 0 or not _is_plain(x, mean, variance, offset, scale):
        # torch's function differs where it divides by 0, and it writes to the running statistics.
        definition = definition_of("batch_standardization")
        return definition(x, mean, variance, axis, offset, scale, epsilon, momentum)
    mean, variance = mean.detach().clone(), variance.detach().clone()
    # Flatten to two axes where that is a view: torch is slow for three with channels last.
    inner = x.reshape(-1, size) if place == x.ndim - 1 else x.movedim(place, 1)
    if (scale is None) != (offset is None):
        # torch 2.13: on CUDA, the gradient fails unless both or neither are given.
        scale = x.new_ones(size) if scale is None else scale
        offset = x.new_zeros(size) if offset is None else offset
    options = (True, momentum, epsilon, torch.backends.cudnn.enabled)
    result = torch.batch_norm(inner, scale, offset, mean, variance, *options)
    return result.reshape(x.shape) if place == x.ndim - 1 else result.movedim(1, place), mean, variance


def layer_normalization(
    x: torch.Tensor,
    /,
    scale: torch.Tensor | None = None,
    offset: torch.Tensor | None = None,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> torch.Tensor:
    if axis == -1 and x.ndim:
        return F.layer_norm(x, x.shape[-1:], scale, offset, epsilon)
    return _over_last(F.layer_norm, x, (scale, offset), axis, epsilon)


def rms_normalization(
    x: torch.Tensor, /, scale: torch.Tensor | None = None, axis: Any = -1, epsilon: float = 1e-5
) -> torch.Tensor:
    if axis == -1 and x.ndim:
        return F.rms_norm(x, x.shape[-1:], scale, epsilon)
    return _over_last(F.rms_norm, x, (scale,), axis, epsilon)


def _over_last(run: Any, x: torch.Tensor, weights: tuple[Any, ...], axis: Any, epsilon: float) -> torch.Tensor:
    """Apply a torch normalization, which supports only the last axes, over any axes."""
    axes = tuple(sorted(axes_of(axis, x.ndim)))
    last = tuple(range(x.ndim - len(axes), x.ndim))
    shape = tuple(x.shape[i] for i in axes)
    for one in weights:
        _check_along(one, shape, axis)
    if not axes:
        shape, last, axes, x = (1,), (-1,), (-1,), x[..., None]
        return run(x, shape, *(one if one is None else one[None] for one in weights), eps=epsilon)[..., 0]
    if axes == last:
        return run(x, shape, *weights, eps=epsilon)
    return run(x.movedim(axes, last), shape, *weights, eps=epsilon).movedim(last, axes)


def _check_along(values: torch.Tensor | None, shape: tuple[int, ...], axis: Any) -> None:
    if values is not None and tuple(values.shape) != shape:
        raise ValueError(f"values along axis {axis} must have shape {list(shape)}, got {list(values.shape)}")


def group_normalization(
    x: torch.Tensor,
    /,
    groups: int,
    scale: torch.Tensor | None = None,
    offset: torch.Tensor | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> torch.Tensor:
    place = axis_of(axis, x.ndim)
    if place == 0 or groups < 1 or x.shape[place] % groups:
        raise ValueError(f"axis {axis} must have a length that groups={groups} divides, got shape {list(x.shape)}")
    if scale is None and offset is not None:
        # torch 2.13: the gradient fails for a bias without a weight.
        scale = torch.ones_like(offset)
    if x.is_cuda and not x.numel():
        # PyTorch 2.11: the CUDA kernel raises for empty tensors.
        scale, offset = (None if one is None else one.cpu() for one in (scale, offset))
        made = F.group_norm(x.movedim(place, 1).cpu(), groups, scale, offset, epsilon).to(x.device)
    elif x.dtype.itemsize == 2 and not x.is_cpu:
        # torch 2.13: the CUDA kernel rounds the factor and the summand of each channel to half precision.
        scale, offset = (None if one is None else one.float() for one in (scale, offset))
        made = F.group_norm(x.movedim(place, 1).float(), groups, scale, offset, epsilon).to(x.dtype)
    else:
        made = F.group_norm(x.movedim(place, 1), groups, scale, offset, epsilon)
    return made.movedim(1, place)


# torch 2.13: with fewer keys than this, the CPU kernel treats NaN scores as masked, and returns zero.
_ONE_VECTOR = 16


def dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    /,
    mask: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    causal_alignment: str = "top_left",
) -> torch.Tensor:
    repeats = check_attention(tuple(query.shape), tuple(key.shape), tuple(value.shape), mask, bias)
    offset = causal_offset(query.shape[1], key.shape[1], causal_alignment)
    # The last query attends to all keys; alone, as in decoding, it needs no mask.
    is_causal = is_causal and not (query.shape[1] == 1 and offset > 0)
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    # torch aligns its own causal mask top-left, and implements it as infinities that it scales too, so a scale <= 0
    # needs a mask.
    only_causal = is_causal and not offset and mask is None and bias is None and (scale is None or scale > 0)
    allowed = mask
    if is_causal and not only_causal:
        causal = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril(offset)
        allowed = causal if mask is None else mask & causal
    added = allowed if bias is None else bias if allowed is None else torch.where(allowed, bias, -torch.inf)
    if added is not None and added.ndim < 2:
        added = added.expand(q.shape[-2], k.shape[-2])
    if needs_more_than_backward():
        # torch 2.13: the fused kernels support first-order reverse mode only.
        return _attention(q, k, v, allowed, bias, scale, is_causal).transpose(1, 2)
    result = F.scaled_dot_product_attention(
        q, k, v, attn_mask=added, is_causal=only_causal, scale=scale, enable_gqa=repeats > 1
    )
    if added is not None and result.is_cuda:
        # torch 2.13: some fused kernels return nonzero values for queries without any visible key.
        visible = added if added.dtype is torch.bool else added != -torch.inf
        result = torch.where(visible.any(-1, keepdim=True), result, 0)
    elif result.is_cpu and (added is not None or _is_short(k.shape[-2])):
        # torch adds its masks, so NaN in masked keys propagates; and see _ONE_VECTOR.
        is_correct = _is_true(~(q.sum() * k.sum() if added is None else result.sum()).isnan())
        if is_correct is False:
            result = _attention(q, k, v, allowed, bias, scale, is_causal)
        elif is_correct is None and added is None:
            result = torch.where(q.isnan().any(-1, keepdim=True), torch.nan, result)
    return result.transpose(1, 2)


def _is_short(length: int) -> bool:
    """Whether there may be fewer keys than ``_ONE_VECTOR``."""
    if not torch.compiler.is_exporting():
        return length < _ONE_VECTOR
    # A comparison with a dynamic length would restrict the exported program to one side.
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return not statically_known_true(length >= _ONE_VECTOR)


def _attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, allowed: Any, bias: Any, scale: float | None, is_causal: bool
) -> torch.Tensor:
    """Attention by its formula, correct for NaN; about three times slower than the fused kernel."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q * (q.shape[-1] ** -0.5 if scale is None else scale) @ k.mT
    hidden = torch.zeros((), dtype=torch.bool, device=q.device) if allowed is None else ~allowed
    if is_causal and allowed is None:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    invisible = hidden
    if bias is not None:
        scores, invisible = scores + bias, hidden | (bias == -torch.inf)
    weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1)
    return torch.where(invisible.expand(scores.shape).all(-1, keepdim=True), 0, weights @ v)


def lstm(
    x: torch.Tensor,
    weight_ih: torch.Tensor,
    weight_hh: torch.Tensor,
    /,
    bias_ih: torch.Tensor | None = None,
    bias_hh: torch.Tensor | None = None,
    h: torch.Tensor | None = None,
    c: torch.Tensor | None = None,
    axis: int = 1,
    reverse: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tensors = (x, weight_ih, weight_hh, bias_ih, bias_hh, h, c)
    axis = check_recurrent(4, x, weight_ih, weight_hh, (bias_ih, bias_hh), (h, c), axis)
    definition = partial(within("torch", definition_of("lstm")), axis=axis, reverse=reverse)
    if not _is_fused(tensors):
        return definition(*tensors)
    fused = partial(_lstm, axis=axis, reverse=reverse)
    is_needed = torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in tensors)
    return _Recurrent.apply(fused, definition, *tensors) if is_needed and not _is_last_gradient() else fused(*tensors)


def _lstm(
    x: torch.Tensor, weight_ih: torch.Tensor, weight_hh: torch.Tensor, bias_ih: Any, bias_hh: Any, h: Any, c: Any,
    *, axis: int, reverse: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    weights = _weights(weight_ih, weight_hh, bias_ih, bias_hh)
    starts = [_start(one, x, weight_hh, axis) for one in (h, c)]
    options = (len(weights) == 4, 1, 0.0, True, False, axis == 1)
    outputs, h, c = torch.lstm(x.flip(axis) if reverse else x, starts, weights, *options)
    return outputs.flip(axis) if reverse else outputs, h[0], c[0]


class _Recurrent(torch.autograd.Function):
    """Fused recurrent layer. Where its gradient is differentiated or mapped, the gradient of the definition is used."""

    @staticmethod
    def forward(ctx: Any, fused: Any, definition: Any, *tensors: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
        inner = [x if x is None else x.detach().requires_grad_(x.requires_grad) for x in tensors]
        with torch.enable_grad():
            outputs = fused(*inner)
        ctx.definition, ctx.inner, ctx.outputs = definition, inner, outputs
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        return tuple(x.detach() for x in outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[Any, ...]:
        again = torch.is_grad_enabled()
        tensors, outputs = ctx.inner, ctx.outputs
        if again or not _is_plain(*cotangents):
            tensors = ctx.saved_tensors
            with torch.enable_grad():
                outputs = ctx.definition(*tensors)
        used = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None]
        inputs = [x for x in tensors if x is not None and x.requires_grad]
        ys, gs = zip(*used, strict=True) if used else ((), ())
        gradients = iter(torch.autograd.grad(ys, inputs, gs, retain_graph=True, create_graph=again, allow_unused=True))
        return None, None, *(next(gradients) if x is not None and x.requires_grad else None for x in tensors)


def gru(
    x: torch.Tensor,
    weight_ih: torch.Tensor,
    weight_hh: torch.Tensor,
    /,
    bias_ih: torch.Tensor | None = None,
    bias_hh: torch.Tensor | None = None,
    h: torch.Tensor | None = None,
    axis: int = 1,
    reverse: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    tensors = (x, weight_ih, weight_hh, bias_ih, bias_hh, h)
    axis = check_recurrent(3, x, weight_ih, weight_hh, (bias_ih, bias_hh), (h,), axis)
    if not _is_fused(tensors):
        return within("torch", definition_of("gru"))(*tensors, axis, reverse)
    weights = _weights(weight_ih, weight_hh, bias_ih, bias_hh)
    options = (len(weights) == 4, 1, 0.0, True, False, axis == 1)
    inner = x.flip(axis) if reverse else x
    outputs, last = torch.gru(inner, _start(h, x, weight_hh, axis), weights, *options)
    return outputs.flip(axis) if reverse else outputs, last[0]


def _is_fused(tensors: tuple[torch.Tensor | None, ...]) -> bool:
    """Whether torch's fused recurrent layers apply, which do not support empty tensors."""
    return _is_plain(*tensors) and all(one is None or (one.is_cpu and one.numel()) for one in tensors)


def _is_plain(*tensors: torch.Tensor | None) -> bool:
    """Whether all are float32 or float64 and no compiler or ``torch.func`` transform traces them."""
    if torch.compiler.is_compiling():
        return False
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return all(one is None or (one.dtype in _WIDE and not wrapped(one)) for one in tensors)


def _weights(
    weight_ih: torch.Tensor, weight_hh: torch.Tensor, bias_ih: torch.Tensor | None, bias_hh: torch.Tensor | None
) -> list[torch.Tensor]:
    """Weights in torch's layout: transposed, and with both biases or none."""
    weights = [weight_ih.t(), weight_hh.t()]
    if bias_ih is None and bias_hh is None:
        return weights
    zeros = weight_hh.new_zeros(weight_hh.shape[1])
    return [*weights, *(zeros if one is None else one for one in (bias_ih, bias_hh))]


def _start(state: torch.Tensor | None, x: torch.Tensor, weight_hh: torch.Tensor, axis: int) -> torch.Tensor:
    return x.new_zeros((1, x.shape[1 - axis], weight_hh.shape[0])) if state is None else state[None]


def embedding_lookup(table: torch.Tensor, indices: torch.Tensor, /) -> torch.Tensor:
    if table.ndim != 2 or not table.numel() or not table.is_floating_point():
        return take(table, indices, axis=0)
    if not indices.is_cpu or torch.compiler.is_compiling():
        return F.embedding(_nonnegative(indices, table.shape[0], table), table)
    try:
        return F.embedding(indices, table)
    except (IndexError, RuntimeError):
        # An index is negative, or there is another error, which is raised again.
        return take(table, indices, axis=0)


def resize(
    images: torch.Tensor,
    size: Any,
    /,
    interpolation: str = "bilinear",
    antialias: bool = False,
    data_format: str = "channels_last",
) -> torch.Tensor:
    check_resize(tuple(images.shape), size, interpolation, antialias, data_format)
    if interpolation == "nearest":
        return _nearest(images, size, images.ndim - (3 if is_last(data_format) else 2))
    inner = _channels_first(images if images.ndim == 4 else images[None], data_format)
    # PyTorch 2.11: the CUDA kernels raise for empty images.
    inner = inner.cpu() if inner.is_cuda and not inner.numel() else inner
    inner = F.interpolate(inner, tuple(size), mode=interpolation, align_corners=False, antialias=antialias)
    result = _to_data_format(inner.to(images.device), data_format)
    return result if images.ndim == 4 else result[0]


def _nearest(images: torch.Tensor, size: Any, first: int) -> torch.Tensor:
    """Nearest neighbors in integer arithmetic. torch 2.13 rounds, and may take the wrong pixel for a center halfway."""
    for axis, count in enumerate(size, first):
        centres = torch.arange(count, device=images.device) * 2 + 1
        images = images.index_select(axis, centres * images.shape[axis] // (2 * count))
    return images


def fold(
    x: torch.Tensor, /, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> torch.Tensor:
    window = fold_windows(tuple(x.shape), output_size, kernel_size, dilation, padding, stride)
    sizes, inside = padded_sizes(window)
    taps = prod(window.kernel)
    # torch 2.13: fold raises for columns without channels.
    columns = x if x.shape[1] else x.new_zeros((x.shape[0], taps, x.shape[2]))
    whole = F.fold(columns, sizes, window.kernel, window.dilation, 0, window.strides)
    return whole[(slice(None), slice(x.shape[1] // taps), *inside)]


def unfold(x: torch.Tensor, /, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> torch.Tensor:
    if x.ndim != 4:
        raise ValueError(f"x must have axes (batch, channels, height, width), got shape {list(x.shape)}")
    window = windows(tuple(x.shape[2:]), kernel_size, stride, padding, dilation)
    inner, pads = _padded(x, window, 0.0, even=True)
    return _pool(F.unfold, inner, window.kernel, window.dilation, pads, window.strides)


def _channels_first(x: torch.Tensor, data_format: str) -> torch.Tensor:
    return x.movedim(-1, 1) if is_last(data_format) else x


def _to_data_format(result: torch.Tensor, data_format: str) -> torch.Tensor:
    return result.movedim(1, -1) if is_last(data_format) else result


def _padded(x: torch.Tensor, window: Windows, blank: float, even: bool = False) -> tuple[torch.Tensor, tuple[int, ...]]:
    """``x`` with the padding that torch's function cannot add, and the padding left to that function.

    The function pads both ends equally, and for pooling (unless ``even``) by at most half a window.
    """
    whole = all(
        low == high and (even or 2 * low <= size) for (low, high), size in zip(window.pads, window.kernel, strict=True)
    )
    if whole:
        return x, tuple(low for low, _ in window.pads)
    return _pad_or_crop(x, list(window.pads), blank), (0,) * len(window.pads)


def _pad_or_crop(x: torch.Tensor, pads: list[tuple[int, int]], blank: float) -> torch.Tensor:
    """``x`` with its spatial axes padded, or cropped where a number is negative."""
    if not any(map(any, pads)):
        return x
    return F.pad(x, [n for pair in reversed(pads) for n in pair], value=blank)
