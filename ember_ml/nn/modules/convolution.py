"""Convolutions, and transposed convolutions, over one to three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.extend import layout
from ember_ml.nn.initializers import Initializer, initialized
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.slots import Parameter
from ember_ml.types import DTypeLike


class Convolution(Module):
    """Base class of convolutions; ``rank`` is the number of spatial axes.

    The options are those of ``ops.conv``. Channels are the last axis of ``x`` or, with
    ``data_format="channels_first"``, the axis after the batch. The weight has the axes
    (spatial..., in_channels / groups, out_channels) in either case.

    Args:
        in_channels: number of channels of ``x``.
        out_channels: number of channels of the output.
        kernel_size: lengths of the window, or one for all spatial axes.
        strides: steps of the window, one per spatial axis or one for all.
        padding: ``"valid"``, ``"same"``, or numbers of zeros at the ends of the spatial axes.
        output_padding: number of elements that are added to the end of each spatial axis of a transposed convolution.
        groups: number of groups of channels that are convolved separately.
        bias: whether to learn a bias.
        dilation_rate: distances between the elements of the window.
        weight_init: initializer of the weight, by name, as a function or as a constant value.
        bias_init: the same for the bias.
    """

    rank: int
    is_transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str | int | Sequence[Any] = "valid",
        dilation_rate: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        data_format: str = "channels_last",
        weight_init: str | float | Initializer = "glorot_uniform",
        bias_init: str | float | Initializer = "zeros",
        dtype: DTypeLike | None = None,
    ) -> None:
        window = (kernel_size,) * self.rank if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(window) != self.rank:
            raise ValueError(
                f"{type(self).__name__}: kernel_size must be an integer or {self.rank} of them, got {kernel_size}"
            )
        if min(in_channels, out_channels, *window) < 1:
            raise ValueError(
                f"{type(self).__name__}: in_channels, out_channels and kernel_size must be >= 1, got {in_channels}, "
                f"{out_channels} and {kernel_size}"
            )
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{type(self).__name__}: groups must divide in_channels and out_channels, got groups={groups}, "
                f"in_channels={in_channels}, out_channels={out_channels}"
            )
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel_size
        self.strides, self.padding, self.dilation_rate = strides, padding, dilation_rate
        self.groups, self.data_format = groups, data_format
        channels = (
            (out_channels // groups, in_channels) if self.is_transposed else (in_channels // groups, out_channels)
        )
        self.weight: Any = Parameter(
            initialized(weight_init, (*window, *channels), dtype, f"{type(self).__name__}: weight_init")
        )
        self.bias: Any = (
            Parameter(initialized(bias_init, (out_channels,), dtype, f"{type(self).__name__}: bias_init"))
            if bias
            else None
        )

    def forward(self, x: Any) -> Any:
        self.check_rank(x)
        y = ops.conv(x, self.weight, self.strides, self.padding, self.data_format, self.dilation_rate, self.groups)
        return self.add_bias(y)

    def check_rank(self, x: Any) -> None:
        if len(ops.shape(x)) != self.rank + 2:
            axes = layout(self.rank, self.data_format)
            raise ValueError(
                f"{type(self).__name__}: x must have {self.rank + 2} axes, {axes}, got {len(ops.shape(x))}"
            )

    def add_bias(self, y: Any) -> Any:
        if self.bias is None:
            return y
        if self.data_format == "channels_last":
            return ops.add(y, self.bias)
        return ops.add(y, ops.reshape(self.bias, (-1, *(1,) * self.rank)))


class Conv1d(Convolution):
    """Convolution over the axes (batch, length, channels). The options are those of ``ops.conv``.

    >>> tuple(Conv1d(2, 4, 3, padding="same")(ops.ones((1, 8, 2))).shape)
    (1, 8, 4)
    """

    rank = 1


class Conv2d(Convolution):
    """Convolution over the axes (batch, height, width, channels). The options are those of ``ops.conv``.

    >>> tuple(Conv2d(3, 8, 3, strides=2)(ops.ones((1, 9, 9, 3))).shape)
    (1, 4, 4, 8)
    """

    rank = 2


class Conv3d(Convolution):
    """Convolution over the axes (batch, depth, height, width, channels). The options are those of ``ops.conv``.

    >>> tuple(Conv3d(1, 2, 2)(ops.ones((1, 3, 4, 5, 1))).shape)
    (1, 2, 3, 4, 2)
    """

    rank = 3


class TransposedConvolution(Convolution):
    """Base class of transposed convolutions. The options are those of ``ops.conv_transpose``.

    The weight has the axes (spatial..., out_channels / groups, in_channels).
    """

    is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str | int | Sequence[Any] = "valid",
        output_padding: int | Sequence[int] | None = None,
        groups: int = 1,
        bias: bool = True,
        dilation_rate: int | Sequence[int] = 1,
        **options: Any,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, strides, padding, dilation_rate, groups, bias, **options
        )
        self.output_padding = output_padding

    def forward(self, x: Any) -> Any:
        self.check_rank(x)
        y = ops.conv_transpose(
            x,
            self.weight,
            self.strides,
            self.padding,
            self.output_padding,
            self.data_format,
            self.dilation_rate,
            self.groups,
        )
        return self.add_bias(y)


class ConvTranspose1d(TransposedConvolution):
    """Transposed convolution over the axes (batch, length, channels).

    The options are those of ``ops.conv_transpose``.

    >>> tuple(ConvTranspose1d(2, 4, 2, strides=2)(ops.ones((1, 8, 2))).shape)
    (1, 16, 4)
    """

    rank = 1


class ConvTranspose2d(TransposedConvolution):
    """Transposed convolution over the axes (batch, height, width, channels).

    The options are those of ``ops.conv_transpose``.

    >>> tuple(ConvTranspose2d(2, 4, 2, strides=2)(ops.ones((1, 3, 3, 2))).shape)
    (1, 6, 6, 4)
    """

    rank = 2


class ConvTranspose3d(TransposedConvolution):
    """Transposed convolution over the axes (batch, depth, height, width, channels).

    The options are those of ``ops.conv_transpose``.

    >>> tuple(ConvTranspose3d(1, 2, 2)(ops.ones((1, 2, 2, 2, 1))).shape)
    (1, 3, 3, 3, 2)
    """

    rank = 3
