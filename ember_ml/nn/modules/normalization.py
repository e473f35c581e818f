"""Normalization layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import distributed, ops
from ember_ml.dtypes import KINDS, as_dtype, promote
from ember_ml.extend import axis_of, current_rows
from ember_ml.nn.modules.checks import check_sizes
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.slots import Buffer, Parameter
from ember_ml.types import DTypeLike, Tensor


class BatchNorm(Module):
    """``x`` with mean 0 and variance 1 over all axes except the channels, times ``weight``, plus ``bias``.

    In training, the statistics of the batch are used, and the running statistics are updated:
    ``running_mean += momentum * (mean - running_mean)``, and likewise ``running_var`` with the unbiased variance. In
    evaluation mode, the running statistics are used. On several ranks, ``Trainer`` says whether the statistics are
    those of the whole batch or of the examples of each rank.

    Args:
        num_features: number of channels.
        axis: the axis of the channels; ``1`` if they follow the batch.
        momentum: weight of the batch in the running statistics.
        epsilon: added to the variance for numerical stability.
        affine: whether to learn a weight and a bias.

    >>> layer = BatchNorm(2, epsilon=0.0)
    >>> layer([[1.0, 2.0], [3.0, 6.0]]).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> layer.running_mean.tolist() == ops.multiply([2.0, 4.0], 0.1).tolist()
    True
    """

    # torch counts the batches, for an average with equal weights that this layer does not have.
    _ignored_in_states = frozenset({"num_batches_tracked"})

    def __init__(
        self,
        num_features: int,
        *,
        axis: int = -1,
        momentum: float = 0.1,
        epsilon: float = 1e-5,
        affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, num_features=num_features)
        self.num_features, self.axis, self.momentum = num_features, axis, momentum
        self.epsilon, self.affine = epsilon, affine
        self.weight: Any = Parameter(ops.ones((num_features,), dtype=dtype)) if affine else None
        self.bias: Any = Parameter(ops.zeros((num_features,), dtype=dtype)) if affine else None
        self.running_mean: Any = Buffer(ops.zeros((num_features,), dtype=dtype))
        self.running_var: Any = Buffer(ops.ones((num_features,), dtype=dtype))

    def forward(self, x: Any) -> Any:
        x = ops.asarray(x) if isinstance(x, (list, tuple)) else x
        given = as_dtype(x.dtype)
        # float16 and bfloat16 are too imprecise for sums and squares.
        is_narrow = given.kind in KINDS["floating"] and given.bits <= 16
        result = self._normalize(ops.cast(x, "float32") if is_narrow else x)
        if not is_narrow:
            return result
        # The statistics may be more precise than the activations, and do not change their dtype.
        return ops.cast(result, given if self.weight is None else promote(given, as_dtype(self.weight.dtype)))

    def _normalize(self, x: Any) -> Any:
        if self.training:
            return self._normalize_batch(x)
        return ops.batch_normalization(
            x, self.running_mean, self.running_var, self.axis, self.bias, self.weight, self.epsilon
        )

    def _normalize_batch(self, x: Any) -> Any:
        """Normalize ``x`` by the statistics of the batch, and update the running statistics."""
        if x.shape[axis_of(self.axis, x.ndim)] != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: axis {self.axis} of x must have length {self.num_features}, got shape "
                f"{list(x.shape)}"
            )
        mean, variance = self.running_mean, self.running_var
        dtype = mean.dtype
        rows = current_rows()
        if rows is None or rows.of in (None, rows.length):
            x, mean, variance = ops.batch_standardization(
                x, mean, variance, self.axis, self.bias, self.weight, self.epsilon, self.momentum
            )
        else:
            x, mean, variance = self._normalize_rows(x, rows.length, rows.of)
        if mean.dtype != dtype:
            mean, variance = ops.cast(mean, dtype), ops.cast(variance, dtype)
        self.running_mean, self.running_var = mean, variance
        return x

    def _normalize_rows(self, x: Any, rows: int, of: int) -> tuple[Any, Any, Any]:
        """``ops.batch_standardization`` of a batch of which this rank has ``rows`` of ``of`` examples."""
        channels = axis_of(self.axis, x.ndim)
        rest = tuple(axis for axis in range(x.ndim) if axis != channels)
        own_mean = ops.mean(x, axis=rest, keepdims=True)
        mean = distributed.all_sum(ops.multiply(own_mean, rows / of))
        # The deviations are from the common mean, so no precision is lost.
        centred = ops.subtract(x, mean)
        variance = distributed.all_sum(ops.multiply(ops.mean(ops.square(centred), axis=rest), rows / of))
        mean, zero = ops.reshape(mean, (-1,)), ops.zeros_like(variance)
        result = ops.batch_normalization(centred, zero, variance, self.axis, self.bias, self.weight, self.epsilon)
        count = math.prod([x.shape[axis] for axis in rest]) * of // rows
        unbiased = ops.multiply(variance, count / max(count - 1, 1))
        running_mean = ops.lerp(self.running_mean, mean, self.momentum)
        running_var = ops.lerp(self.running_var, unbiased, self.momentum)
        return result, ops.stop_gradient(running_mean), ops.stop_gradient(running_var)


class LayerNorm(Module):
    """``x`` with mean 0 and variance 1 over its last axes, times ``weight``, plus ``bias``.

    Args:
        normalized_shape: length of the last axis, or lengths of the last axes.
        epsilon: added to the variance for numerical stability.
        affine: whether to learn a weight and a bias.
        bias: if false, only a weight is learned.

    >>> LayerNorm(2, epsilon=0.0)([[1.0, 3.0], [2.0, 6.0]]).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-5,
        affine: bool = True,
        bias: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        shape = _sizes(self, normalized_shape)
        self.normalized_shape, self.epsilon, self.affine = normalized_shape, epsilon, affine
        self.weight: Any = Parameter(ops.ones(shape, dtype=dtype)) if affine else None
        self.bias: Any = Parameter(ops.zeros(shape, dtype=dtype)) if affine and bias else None
        self._axes = _last_axes(shape)

    def forward(self, x: Any) -> Tensor:
        return ops.layer_normalization(x, self.weight, self.bias, self._axes, self.epsilon)


class RMSNorm(Module):
    """``x / sqrt(mean(x ** 2) + epsilon)`` over its last axes, times ``offset + weight``.

    Args:
        normalized_shape: length of the last axis, or lengths of the last axes.
        affine: whether to learn a weight, which is ``1 - offset`` at first.
        offset: 1 for weights that are stored as differences from 1.

    >>> RMSNorm(2, epsilon=0.0)([[2.0, 2.0], [-4.0, 4.0]]).tolist()
    [[1.0, 1.0], [-1.0, 1.0]]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-5,
        affine: bool = True,
        *,
        offset: float = 0.0,
        dtype: DTypeLike | None = None,
    ) -> None:
        shape = _sizes(self, normalized_shape)
        self.normalized_shape, self.epsilon, self.affine = normalized_shape, epsilon, affine
        self.offset = offset
        self.weight: Any = Parameter(ops.full(shape, 1.0 - offset, dtype=dtype)) if affine else None
        self._axes = _last_axes(shape)

    def forward(self, x: Any) -> Tensor:
        if not self.offset or self.weight is None:
            return ops.rms_normalization(x, self.weight, self._axes, self.epsilon)
        # In float32, where the sum is exact for weights in float16 and bfloat16.
        is_narrow = ops.dtype(x).bits < 32 and ops.is_float(x)
        weight = ops.cast(self.weight, "float32") if ops.dtype(self.weight).bits < 32 else self.weight
        y = ops.rms_normalization(
            ops.cast(x, "float32") if is_narrow else x, ops.add(weight, self.offset), self._axes, self.epsilon
        )
        return ops.cast(y, ops.dtype(x)) if is_narrow else y


class GroupNorm(Module):
    """``x`` with mean 0 and variance 1 over each group of channels of each example, times ``weight``, plus ``bias``.

    Args:
        num_groups: number of groups; divides ``num_channels``.
        num_channels: number of channels.
        epsilon: added to the variance for numerical stability.
        affine: whether to learn a weight and a bias.
        axis: the axis of the channels; ``1`` if they follow the batch.

    >>> GroupNorm(2, 4, epsilon=0.0)([[1.0, 3.0, 2.0, 6.0]]).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        affine: bool = True,
        *,
        axis: int = -1,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, num_groups=num_groups, num_channels=num_channels)
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"{type(self).__name__}: num_groups must divide num_channels, got num_groups={num_groups}, "
                f"num_channels={num_channels}"
            )
        self.num_groups, self.num_channels, self.epsilon = num_groups, num_channels, epsilon
        self.affine, self.axis = affine, axis
        self.weight: Any = Parameter(ops.ones((num_channels,), dtype=dtype)) if affine else None
        self.bias: Any = Parameter(ops.zeros((num_channels,), dtype=dtype)) if affine else None

    def forward(self, x: Any) -> Tensor:
        return ops.group_normalization(x, self.num_groups, self.weight, self.bias, self.axis, self.epsilon)


def _sizes(layer: object, shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        check_sizes(layer, normalized_shape=size)
    return sizes


def _last_axes(shape: tuple[int, ...]) -> int | tuple[int, ...]:
    return -1 if len(shape) == 1 else tuple(range(-len(shape), 0))
