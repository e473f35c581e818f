"""Layers without weights: reshaping, upsampling, dropout and the identity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.nn.modules.module import Module
from ember_ml.types import Tensor


class Identity(Module):
    """The input, unchanged.

    >>> Identity()([1.0, 2.0])
    [1.0, 2.0]
    """

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """``x`` with the axes from ``start`` on flattened into one.

    >>> tuple(Flatten()(ops.ones((2, 3, 4))).shape)
    (2, 12)
    """

    def __init__(self, start: int = 1) -> None:
        self.start = start

    def forward(self, x: Any) -> Tensor:
        shape = ops.shape(x)
        if not -len(shape) <= self.start <= len(shape):
            raise ValueError(
                f"{type(self).__name__}: start must be an axis of x, got {self.start} for shape {list(shape)}"
            )
        kept = tuple(shape[: self.start])
        # The length is computed, because -1 is ambiguous for an empty batch.
        return ops.reshape(x, (*kept, math.prod(shape[self.start :])))


class Reshape(Module):
    """``x`` with all axes after the first reshaped to ``shape``.

    Args:
        shape: the new lengths without the first axis; one of them may be -1, which is inferred.

    >>> tuple(Reshape((2, -1))(ops.ones((5, 6))).shape)
    (5, 2, 3)
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)

    def forward(self, x: Any) -> Tensor:
        return ops.reshape(x, (ops.shape(x)[0], *self.shape))


class Upsample(Module):
    """Images resized to ``scale`` times their height and width.

    Args:
        scale: an integer factor, or a pair of factors for height and width.
        interpolation: as in ``ops.resize``.

    >>> Upsample(2)([[[[1.0], [2.0]]]]).tolist()
    [[[[1.0], [1.0], [2.0], [2.0]], [[1.0], [1.0], [2.0], [2.0]]]]
    """

    def __init__(
        self, scale: int | Sequence[int] = 2, interpolation: str = "nearest", *, data_format: str = "channels_last"
    ) -> None:
        rows, columns = (scale, scale) if isinstance(scale, int) else scale
        if min(rows, columns) < 1:
            raise ValueError(f"{type(self).__name__}: scale must be >= 1, got {scale}")
        self.scale, self.interpolation, self.data_format = scale, interpolation, data_format

    def forward(self, x: Any) -> Tensor:
        rows, columns = (self.scale, self.scale) if isinstance(self.scale, int) else self.scale
        height, width = ops.shape(x)[1:3] if self.data_format == "channels_last" else ops.shape(x)[2:4]
        size = (height * rows, width * columns)
        return ops.resize(x, size, self.interpolation, data_format=self.data_format)


def check_rate(layer: object, rate: float, name: str = "rate") -> float:
    """``rate`` itself, if it is a probability."""
    if not 0 <= rate <= 1:
        raise ValueError(f"{type(layer).__name__}: {name} must be from 0 to 1, got {rate!r}")
    return rate


class Dropout(Module):
    """``x`` with random elements set to zero and the rest divided by ``1 - rate``; in evaluation mode, ``x`` itself.

    The elements are chosen with the random stream, so a seed selects the same elements on every engine.

    Args:
        rate: probability that an element is set to zero.

    >>> layer = Dropout(0.5)
    >>> layer.eval()([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """

    def __init__(self, rate: float = 0.5) -> None:
        self.rate = check_rate(self, rate)

    def forward(self, x: Any) -> Tensor:
        return ops.dropout(x, self.rate, training=self.training)
