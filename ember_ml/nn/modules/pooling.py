"""Pooling layers: the maximum or the mean of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.extend import layout
from ember_ml.nn.modules.module import Module
from ember_ml.types import Tensor


class Pool(Module):
    """Base class of pools over windows; ``rank`` is the number of spatial axes, or 0 for any number.

    The options are those of ``ops.max_pool``.
    """

    rank = 0
    function: Callable[..., Any]

    def __init__(
        self,
        pool_size: int | Sequence[int],
        strides: int | Sequence[int] | None = None,
        padding: str | int | Sequence[Any] = "valid",
        *,
        data_format: str = "channels_last",
    ) -> None:
        self.pool_size, self.strides, self.padding, self.data_format = pool_size, strides, padding, data_format

    def forward(self, x: Any) -> Tensor:
        check_rank(self, x)
        return self.function(x, self.pool_size, self.strides, self.padding, self.data_format)  # type: ignore[no-any-return]


class AdaptivePool(Module):
    """Base class of pools with a given number of windows."""

    rank = 0
    function: Callable[..., Any]

    def __init__(self, output_size: int | Sequence[int], *, data_format: str = "channels_last") -> None:
        self.output_size, self.data_format = output_size, data_format

    def forward(self, x: Any) -> Tensor:
        check_rank(self, x)
        return self.function(x, self.output_size, self.data_format)  # type: ignore[no-any-return]


class GlobalPool(Module):
    """Base class of pools over all spatial axes."""

    function: Callable[..., Any]

    def __init__(self, *, keepdims: bool = False, data_format: str = "channels_last") -> None:
        if data_format not in ("channels_last", "channels_first"):
            raise ValueError(
                f"{type(self).__name__}: data_format must be 'channels_last' or 'channels_first', got {data_format!r}"
            )
        self.keepdims, self.data_format = keepdims, data_format

    def forward(self, x: Any) -> Tensor:
        if len(ops.shape(x)) < 3:
            raise ValueError(f"{type(self).__name__}: x must have at least 3 axes, got {len(ops.shape(x))}")
        first = 1 if self.data_format == "channels_last" else 2
        axes = tuple(range(first, first + len(ops.shape(x)) - 2))
        return self.function(x, axis=axes, keepdims=self.keepdims)  # type: ignore[no-any-return]


def check_rank(pool: Any, x: Any) -> None:
    """Check that ``x`` has the number of axes that ``pool`` requires."""
    if pool.rank and len(ops.shape(x)) != pool.rank + 2:
        axes = layout(pool.rank, pool.data_format)
        raise ValueError(f"{type(pool).__name__}: x must have {pool.rank + 2} axes, {axes}, got {len(ops.shape(x))}")


class MaxPool(Pool):
    """Maximum of every window over one to three spatial axes.

    The options are those of ``ops.max_pool``.

    >>> MaxPool(2)([[[1.0], [3.0], [2.0], [5.0]]]).tolist()
    [[[3.0], [5.0]]]
    """

    function = staticmethod(ops.max_pool)


class MaxPool1d(MaxPool):
    """Maximum of every window over the axes (batch, length, channels).

    The options are those of ``ops.max_pool``.

    >>> MaxPool1d(2)([[[1.0], [3.0]]]).tolist()
    [[[3.0]]]
    """

    rank = 1


class MaxPool2d(MaxPool):
    """Maximum of every window over the axes (batch, height, width, channels).

    The options are those of ``ops.max_pool``.

    >>> MaxPool2d(2)([[[[1.0], [3.0]], [[2.0], [5.0]]]]).tolist()
    [[[[5.0]]]]
    """

    rank = 2


class MaxPool3d(MaxPool):
    """Maximum of every window over the axes (batch, depth, height, width, channels).

    The options are those of ``ops.max_pool``.

    >>> tuple(MaxPool3d(2)(ops.ones((1, 4, 4, 4, 1))).shape)
    (1, 2, 2, 2, 1)
    """

    rank = 3


class AveragePool(Pool):
    """Mean of every window over one to three spatial axes; padding is excluded.

    The options are those of ``ops.average_pool``.

    >>> AveragePool(2)([[[1.0], [3.0], [2.0], [6.0]]]).tolist()
    [[[2.0], [4.0]]]
    """

    function = staticmethod(ops.average_pool)


class AveragePool1d(AveragePool):
    """Mean of every window over the axes (batch, length, channels).

    The options are those of ``ops.average_pool``.

    >>> AveragePool1d(2)([[[1.0], [3.0]]]).tolist()
    [[[2.0]]]
    """

    rank = 1


class AveragePool2d(AveragePool):
    """Mean of every window over the axes (batch, height, width, channels).

    The options are those of ``ops.average_pool``.

    >>> AveragePool2d(2)([[[[1.0], [3.0]], [[2.0], [6.0]]]]).tolist()
    [[[[3.0]]]]
    """

    rank = 2


class AveragePool3d(AveragePool):
    """Mean of every window over the axes (batch, depth, height, width, channels).

    The options are those of ``ops.average_pool``.

    >>> tuple(AveragePool3d(2)(ops.ones((1, 4, 4, 4, 1))).shape)
    (1, 2, 2, 2, 1)
    """

    rank = 3


class AdaptiveMaxPool(AdaptivePool):
    """Maxima of ``output_size`` windows that cover each spatial axis evenly.

    >>> AdaptiveMaxPool(2)([[[1.0], [2.0], [6.0]]]).tolist()
    [[[2.0], [6.0]]]
    """

    function = staticmethod(ops.adaptive_max_pool)


class AdaptiveAveragePool(AdaptivePool):
    """Means of ``output_size`` windows that cover each spatial axis evenly.

    >>> AdaptiveAveragePool(2)([[[1.0], [2.0], [6.0]]]).tolist()
    [[[1.5], [4.0]]]
    """

    function = staticmethod(ops.adaptive_average_pool)


class GlobalMaxPool(GlobalPool):
    """Maximum of each channel over all spatial axes.

    Args:
        keepdims: keep the spatial axes, with length 1.

    >>> GlobalMaxPool()([[[1.0, 2.0], [3.0, 0.0]]]).tolist()
    [[3.0, 2.0]]
    """

    function = staticmethod(ops.max)


class GlobalAveragePool(GlobalPool):
    """Mean of each channel over all spatial axes.

    Args:
        keepdims: keep the spatial axes, with length 1.

    >>> GlobalAveragePool()([[[1.0, 2.0], [3.0, 0.0]]]).tolist()
    [[2.0, 1.0]]
    """

    function = staticmethod(ops.mean)
