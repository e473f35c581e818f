"""Losses on PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ember_ml.backend.torch.indexing import _check, _check_unseen, _is_true
from ember_ml.backend.torch.transform import is_bent
from ember_ml.dispatch import REGISTRY
from ember_ml.shapes import check_sequences


def mean_squared_error(y_true: Tensor, y_pred: Tensor, *, reduction: str = "mean") -> Tensor:
    return _elementwise(functional.mse_loss, y_true, y_pred, reduction)


def mean_absolute_error(y_true: Tensor, y_pred: Tensor, *, reduction: str = "mean") -> Tensor:
    return _elementwise(functional.l1_loss, y_true, y_pred, reduction)


def huber_loss(y_true: Tensor, y_pred: Tensor, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    if delta <= 0:
        raise ValueError(f"delta must be > 0, got {delta}")
    return _elementwise(functional.huber_loss, y_true, y_pred, reduction, delta=delta)


def _elementwise(loss: Callable[..., Tensor], y_true: Tensor, y_pred: Tensor, reduction: str, **options: Any) -> Tensor:
    """PyTorch's loss of tensors of one shape, or one of them 0-d; of types of 16 bits, computed in float32."""
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
        # Of infinite logits, torch makes NaN. Elsewhere than on the CPU, to look would cost more than the loss.
        if not losses.is_cpu or _is_true(~(losses.sum() if losses.ndim else losses).isnan()):
            return losses
    return _defined(
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
    if not from_logits or label_smoothing or y_pred.ndim != 2 or axis not in (1, -1) or y_pred.dtype.itemsize == 2:
        return _defined(
            "sparse_categorical_crossentropy",
            y_true,
            y_pred,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
            reduction=reduction,
        )
    if y_true.shape != y_pred.shape[:1]:
        raise ValueError(
            f"y_true must have the shape of y_pred without its last axis, got {list(y_true.shape)} and "
            f"{list(y_pred.shape)}"
        )
    _check_unseen(y_true, 0, y_pred.shape[1])
    # No class is to be passed over; PyTorch insists on one that is.
    return functional.cross_entropy(y_pred, y_true, ignore_index=-(1 << 62), reduction=reduction)


def _defined(name: str, *args: Tensor, **options: Any) -> Tensor:
    """The operation by its definition."""
    definition = REGISTRY[name].definition
    assert definition is not None
    return definition(*args, **options)


# The logarithm of zero.
_NEVER = -1e30


def ctc_loss(
    y_true: Tensor,
    y_pred: Tensor,
    target_length: Tensor,
    output_length: Tensor,
    *,
    mask_index: int = 0,
    reduction: str = "mean",
) -> Tensor:
    if torch.compiler.is_compiling() or is_bent() or 0 in y_pred.shape[:1]:
        # It cannot trace PyTorch's own, which has one derivative and takes no empty batch.
        lengths = (target_length, output_length)
        return _defined("ctc_loss", y_true, y_pred, *lengths, mask_index=mask_index, reduction=reduction)
    check_sequences(y_true, y_pred, target_length, output_length, mask_index)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    batch, times, classes = y_pred.shape
    _check(target_length, 0, y_true.shape[1] + 1)
    _check(output_length, 0, times + 1)
    places = torch.arange(y_true.shape[1], device=y_true.device)
    labels = torch.where(places < target_length.reshape(batch, 1), y_true, mask_index)
    # PyTorch would read wherever they point.
    _check(labels, 0, classes)
    logs = torch.log_softmax(y_pred, -1, torch.float32 if y_pred.dtype.itemsize == 2 else None)
    # Infinity would make gradients NaN, here and, without zero_infinity, there.
    losses = functional.ctc_loss(
        logs.clamp_min(_NEVER).transpose(0, 1),
        labels,
        output_length,
        target_length,
        blank=mask_index,
        reduction="none",
        zero_infinity=True,
    )
    # Labels that are equal have a blank between them.
    blanks = (labels[:, 1:] == labels[:, :-1]) & (places[1:] < target_length.reshape(batch, 1))
    is_impossible = (target_length + blanks.sum(1) > output_length) | (losses > -_NEVER / 2)
    losses = torch.where(is_impossible, torch.inf, losses).to(y_pred.dtype)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()
