"""Activations on torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, celu, relu, selu, sigmoid
from torch import hardshrink as hard_shrink
from torch.nn import functional
from torch.nn.functional import elu, leaky_relu, mish, relu6, silu, softsign
from torch.nn.functional import hardtanh as hard_tanh
from torch.nn.functional import logsigmoid as log_sigmoid
from torch.nn.functional import tanhshrink as tanh_shrink

from ember_ml.backend.numpy.activations import _LINEAR_FROM
from ember_ml.dispatch import definition_of
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis


def gelu(x: Tensor, /, approximate: bool = False) -> Tensor:
    return functional.gelu(x, approximate="tanh" if approximate else "none")


def hard_sigmoid(x: Tensor, /) -> Tensor:
    # torch 2.13: 1/6 is rounded to float32 for float64: in the gradient, and on CUDA in the result too.
    return relu6(x + 3) / 6 if x.dtype is torch.float64 else functional.hardsigmoid(x)


def hard_silu(x: Tensor, /) -> Tensor:
    # torch 2.13: on CUDA, hardswish has the same error.
    return x * hard_sigmoid(x) if x.is_cuda and x.dtype is torch.float64 else functional.hardswish(x)


_LARGEST_HALF = torch.finfo(torch.float16).max


def soft_shrink(x: Tensor, /, threshold: float = 0.5) -> Tensor:
    if threshold < 0:
        raise ValueError(f"threshold must be >= 0, got {threshold}")
    if threshold > _LARGEST_HALF:
        # torch raises for a threshold that the dtype cannot hold.
        return definition_of("soft_shrink")(x, threshold)
    return functional.softshrink(x, threshold)


def softplus(x: Tensor, /, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    if beta == 0:
        raise ValueError("beta must not be 0, got 0")
    return functional.softplus(x, beta, min(threshold, _LINEAR_FROM))


def softmax(x: Tensor, /, axis: Any = -1) -> Tensor:
    return _along(torch.softmax, x, axis)


def log_softmax(x: Tensor, /, axis: Any = -1) -> Tensor:
    return _along(torch.log_softmax, x, axis)


def _along(function: Any, x: Tensor, axis: Any) -> Tensor:
    """``function`` along one axis, or along several, flattened into one at the end."""
    if isinstance(axis, int):
        return function(x, _axis(axis, x.ndim))
    axes = _axes(axis, x.ndim)
    kept = x.ndim - len(axes)
    ends = list(range(kept, x.ndim))
    moved = x.movedim(axes, ends)
    joined = function(moved.reshape(*moved.shape[:kept], -1 if moved.numel() else 0), -1)
    return joined.reshape(moved.shape).movedim(ends, axes)


def glu(x: Tensor, /, axis: int = -1) -> Tensor:
    return functional.glu(x, _axis(axis, x.ndim))


threshold = torch.threshold
