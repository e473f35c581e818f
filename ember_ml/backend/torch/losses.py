"""Losses on torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ember_ml.backend.torch.indexing import _check, _check_where_torch_does_not, _extremes, _is_true
from ember_ml.backend.torch.neural import linear
from ember_ml.backend.torch.transform import is_last, is_traced, needs_more_than_backward, remembered
from ember_ml.dispatch import REGISTRY
from ember_ml.shapes.axes import axis_of
from ember_ml.shapes.losses import check_label_shape, check_linear_crossentropy, check_sequences, label_error

# No class is ignored, but torch requires an ignore_index.
_NO_CLASS = -(1 << 62)


def mean_squared_error(y_true: Tensor, y_pred: Tensor, *, reduction: str = "mean") -> Tensor:
    return _elementwise(functional.mse_loss, y_true, y_pred, reduction)


def mean_absolute_error(y_true: Tensor, y_pred: Tensor, *, reduction: str = "mean") -> Tensor:
    return _elementwise(functional.l1_loss, y_true, y_pred, reduction)


def huber_loss(y_true: Tensor, y_pred: Tensor, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    if delta <= 0:
        raise ValueError(f"delta must be > 0, got {delta}")
    return _elementwise(functional.huber_loss, y_true, y_pred, reduction, delta=delta)


def _elementwise(loss: Callable[..., Tensor], y_true: Tensor, y_pred: Tensor, reduction: str, **options: Any) -> Tensor:
    """torch's loss of tensors of one shape, or one of them 0-d; 16-bit dtypes are computed in float32."""
    if y_true.shape != y_pred.shape:
        if y_true.ndim and y_pred.ndim:
            raise ValueError(
                f"y_true and y_pred must have one shape, got {list(y_true.shape)} and {list(y_pred.shape)}"
            )
        y_true, y_pred = torch.broadcast_tensors(y_true, y_pred)
    if y_pred.dtype.itemsize == 2:
        return loss(y_pred.float(), y_true.float(), reduction=reduction, **options).to(y_pred.dtype)
    return loss(y_pred, y_true, reduction=reduction, **options)


def binary_crossentropy(
    y_true: Tensor,
    y_pred: Tensor,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    if from_logits and not label_smoothing and not torch.compiler.is_compiling():
        losses = _elementwise(functional.binary_cross_entropy_with_logits, y_true, y_pred, reduction)
        # torch 2.13: infinite logits give NaN. Only on the CPU is checking cheaper than the loss itself.
        if not losses.is_cpu or _is_true(~(losses.sum() if losses.ndim else losses).isnan()):
            return losses
    return _by_definition(
        "binary_crossentropy",
        y_true,
        y_pred,
        from_logits=from_logits,
        label_smoothing=label_smoothing,
        reduction=reduction,
    )


def sparse_categorical_crossentropy(
    y_true: Tensor,
    y_pred: Tensor,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
    reduction: str = "mean",
) -> Tensor:
    place = axis_of(axis, y_pred.ndim)
    # torch divides the smoothing by the number of classes, also if there are none.
    is_fused = from_logits and 0 <= label_smoothing <= 1 and y_pred.shape[place] > 0
    if not is_fused or place not in (1, y_pred.ndim - 1):
        return _by_definition(
            "sparse_categorical_crossentropy",
            y_true,
            y_pred,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
            reduction=reduction,
        )
    check_label_shape(y_true, y_pred, place)
    classes = y_pred.shape[place]
    _check_where_torch_does_not(y_true, 0, classes, y_pred, "y_true")
    logits, labels = y_pred, y_true
    if place != 1:
        # torch has the classes along the second axis.
        logits, labels = y_pred.reshape(y_true.numel(), classes), y_true.reshape(-1)
    try:
        if logits.numel() >= _LARGE and logits.ndim == 2 and not label_smoothing and is_last() and is_traced(logits):
            losses = _Crossentropy.apply(logits, labels, reduction)
        else:
            options: Any = {"ignore_index": _NO_CLASS, "label_smoothing": label_smoothing, "reduction": reduction}
            losses = functional.cross_entropy(logits, labels, **options)
    except IndexError as error:
        raise label_error(*_extremes(y_true), classes) or error from error
    return losses.reshape(y_true.shape) if reduction == "none" else losses


# Number of logits from which on their memory matters more than the time of a Python function.
_LARGE = 1 << 22


class _Crossentropy(torch.autograd.Function):
    """Cross-entropy whose gradient is written over the log-probabilities, for a graph that is used once.

    torch's own holds three tensors of the size of the logits in its gradient: the log-probabilities, the gradient with
    respect to them, and the one with respect to the logits.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, reduction: str) -> Tensor:
        logs = torch.log_softmax(logits, -1)
        ctx.save_for_backward(logs, labels)
        ctx.reduction = reduction
        return functional.nll_loss(logs, labels, ignore_index=_NO_CLASS, reduction=reduction)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        (cotangent,) = cotangents
        logs, labels = ctx.saved_tensors
        gradient = logs.exp_()
        one = torch.ones((1, 1), dtype=logs.dtype, device=logs.device)
        gradient.scatter_add_(1, labels[:, None], -one.expand(len(labels), 1))
        if ctx.reduction == "none":
            cotangent = cotangent[:, None]
        elif ctx.reduction == "mean":
            cotangent = cotangent / len(labels)
        return gradient.mul_(cotangent), None, None


def linear_crossentropy(
    y_true: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    chunk: int | None = 1024,
) -> Tensor:
    check_linear_crossentropy(y_true, x, weight, bias, chunk)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be from 0 to 1, got {label_smoothing}")
    _check_where_torch_does_not(y_true, 0, weight.shape[1], x, "y_true")
    wide = torch.promote_types(x.dtype, torch.float32)

    def losses_of(rows: Tensor, labels: Tensor, weight: Tensor, *bias: Tensor) -> tuple[Tensor]:
        logits = linear(rows, weight.to(rows.dtype), *(one.to(rows.dtype) for one in bias))
        options: Any = {"label_smoothing": label_smoothing, "ignore_index": _NO_CLASS, "reduction": "none"}
        return (functional.cross_entropy(logits.to(wide), labels, **options),)

    # Gradients of the chunks are summed in the dtype of these.
    weights = [one.to(wide) for one in (weight, bias) if one is not None]
    count = y_true.numel()
    parts = (x.reshape(count, x.shape[-1]), y_true.reshape(count))
    try:
        losses = [
            remembered(losses_of, (rows, labels, *weights))[0]
            for rows, labels in zip(*(one.split(chunk or max(count, 1)) for one in parts), strict=True)
        ]
    except IndexError as error:
        raise label_error(*_extremes(y_true), weight.shape[1]) or error from error
    return _reduced(torch.cat(losses).reshape(y_true.shape), reduction).to(x.dtype)


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def _by_definition(name: str, *args: Tensor, **options: Any) -> Tensor:
    """Operation by its definition."""
    definition = REGISTRY[name].definition
    assert definition is not None
    return definition(*args, **options)


# Finite stand-in for log(0).
_LOG_ZERO = -1e30


def ctc_loss(
    y_true: Tensor,
    y_pred: Tensor,
    target_length: Tensor,
    output_length: Tensor,
    *,
    mask_index: int = 0,
    reduction: str = "mean",
) -> Tensor:
    if torch.compiler.is_compiling() or needs_more_than_backward() or 0 in y_pred.shape[:1]:
        # torch 2.13: ctc_loss cannot be compiled, has only a first derivative, and does not support empty batches.
        lengths = (target_length, output_length)
        return _by_definition("ctc_loss", y_true, y_pred, *lengths, mask_index=mask_index, reduction=reduction)
    check_sequences(y_true, y_pred, target_length, output_length, mask_index)
    batch, times, classes = y_pred.shape
    _check(target_length, 0, y_true.shape[1] + 1)
    _check(output_length, 0, times + 1)
    places = torch.arange(y_true.shape[1], device=y_true.device)
    labels = torch.where(places < target_length.reshape(batch, 1), y_true, mask_index)
    # torch 2.13: labels are not checked, and would be read out of bounds.
    _check(labels, 0, classes)
    logs = torch.log_softmax(y_pred, -1, torch.float32 if y_pred.dtype.itemsize == 2 else None)
    # Infinities would make gradients NaN, here and, without zero_infinity, in torch.
    losses = functional.ctc_loss(
        logs.clamp_min(_LOG_ZERO).transpose(0, 1),
        labels,
        output_length,
        target_length,
        blank=mask_index,
        reduction="none",
        zero_infinity=True,
    )
    # Equal consecutive labels require a blank between them.
    blanks = (labels[:, 1:] == labels[:, :-1]) & (places[1:] < target_length.reshape(batch, 1))
    is_impossible = (target_length + blanks.sum(1) > output_length) | (losses > -_LOG_ZERO / 2)
    return _reduced(torch.where(is_impossible, torch.inf, losses).to(y_pred.dtype), reduction)
