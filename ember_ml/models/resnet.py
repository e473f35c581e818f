"""ResNet (He et al., 2015), version 1.5: a convolutional network with residual connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.models.encoder import LabeledConfig, prefixed, with_states
from ember_ml.models.pretrained import PretrainedModel, StoredName, activation
from ember_ml.nn.modules import BatchNorm, Buffer, Conv2d, Linear, MaxPool2d, Module, ModuleList
from ember_ml.types import DTypeLike


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(LabeledConfig):
    """Configuration of ResNet."""

    model_type: str = "resnet"
    num_channels: int = 3
    embedding_size: int = 64
    hidden_sizes: list[int] | tuple[int, ...] = (256, 512, 1024, 2048)
    depths: list[int] | tuple[int, ...] = (3, 4, 6, 3)
    layer_type: str = "bottleneck"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False

    def check(self) -> None:
        super().check()
        if self.layer_type not in ("basic", "bottleneck"):
            raise ValueError(f"layer_type must be 'basic' or 'bottleneck', got {self.layer_type!r}")
        for name, sizes in (("hidden_sizes", self.hidden_sizes), ("depths", self.depths)):
            if not sizes or not all(type(size) is int and size > 0 for size in sizes):
                raise ValueError(f"{name} must be a list of positive integers, got {list(sizes)}")
        if len(self.hidden_sizes) != len(self.depths):
            raise ValueError(
                f"hidden_sizes and depths must have one entry per stage, got {len(self.hidden_sizes)} and "
                f"{len(self.depths)}"
            )


class CountedBatchNorm(BatchNorm):
    """``BatchNorm`` that counts its batches in training, as torch does, since files have the count."""

    def __init__(self, num_features: int, *, dtype: DTypeLike | None = None) -> None:
        super().__init__(num_features, dtype=dtype)
        self.num_batches_tracked: Any = Buffer(ops.zeros((), dtype="int64"))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.num_batches_tracked = ops.add(self.num_batches_tracked, 1)
        return super().forward(x)


class ConvNorm(Module):
    """Convolution and normalization, with an activation or without."""

    def __init__(
        self, inputs: int, outputs: int, size: int, stride: int, act: str | None, *, dtype: DTypeLike | None = None
    ) -> None:
        self.convolution = Conv2d(inputs, outputs, size, stride, size // 2, bias=False, dtype=dtype)
        self.normalization = CountedBatchNorm(outputs, dtype=dtype)
        self._function = None if act is None else activation(act)

    def forward(self, x: Any) -> Any:
        x = self.normalization(self.convolution(x))
        return x if self._function is None else self._function(x)


class ResNetLayer(Module):
    """Two convolutions, or three with fewer channels between them, and a residual connection."""

    def __init__(
        self, config: ResNetConfig, inputs: int, outputs: int, stride: int, *, dtype: DTypeLike | None = None
    ) -> None:
        if config.layer_type == "basic":
            sizes = [(inputs, outputs, 3, stride), (outputs, outputs, 3, 1)]
        else:
            inner = outputs // 4
            first, second = (stride, 1) if config.downsample_in_bottleneck else (1, stride)
            sizes = [(inputs, inner, 1, first), (inner, inner, 3, second), (inner, outputs, 1, 1)]
        # Activations between the convolutions do not depend on the configuration.
        self.parts = ModuleList(
            ConvNorm(*size, None if i == len(sizes) - 1 else "relu", dtype=dtype) for i, size in enumerate(sizes)
        )
        is_changed = inputs != outputs or stride != 1
        self.shortcut = ConvNorm(inputs, outputs, 1, stride, None, dtype=dtype) if is_changed else None
        self._function = activation(config.hidden_act)

    def forward(self, x: Any) -> Any:
        residual = x if self.shortcut is None else self.shortcut(x)
        for part in self.parts:
            x = part(x)
        return self._function(ops.add(x, residual))


_NAMES = {
    "stem": "embedder.embedder",
    "stages.{}.{}.parts.{}": "encoder.stages.{}.layers.{}.layer.{}",
    "stages.{}.{}.shortcut": "encoder.stages.{}.layers.{}.shortcut",
}

# Files of other libraries, and of early versions of torch, do not count the batches of the training.
_DEFAULTED = (r".*\.num_batches_tracked",)


class ResNet(PretrainedModel):
    """ResNet without a head: a vector for each position of the last stage, and their mean.

    A call returns both as a pair.
    """

    config_class: ClassVar[type[ResNetConfig]] = ResNetConfig
    names: ClassVar[Mapping[str, str | StoredName]] = _NAMES
    base = "resnet."
    ignored = (r"classifier\..*",)
    defaulted = _DEFAULTED

    def __init__(self, config: ResNetConfig, *, dtype: DTypeLike | None = None) -> None:
        self.config = config
        self.stem = ConvNorm(config.num_channels, config.embedding_size, 7, 2, config.hidden_act, dtype=dtype)
        self.pool = MaxPool2d(3, 2, 1)
        self.stages = ModuleList()
        sizes = (config.embedding_size, *config.hidden_sizes)
        for i, ((inputs, outputs), depth) in enumerate(zip(pairwise(sizes), config.depths, strict=True)):
            stride = 2 if i or config.downsample_in_first_stage else 1
            first = ResNetLayer(config, inputs, outputs, stride, dtype=dtype)
            rest = [ResNetLayer(config, outputs, outputs, 1, dtype=dtype) for _ in range(depth - 1)]
            self.stages.append(ModuleList([first, *rest]))

    def forward(self, images: Any, *, hidden_states: bool = False) -> Any:
        """Output of the last stage, with the axes (batch, height, width, channels), and its mean over height and width.

        Args:
            images: normalized pixels with the axes (batch, height, width, channels).
            hidden_states: whether to return a pair of that result and the list of the outputs of the stem and of each
                stage.
        """
        x = self.pool(self.stem(images))
        states = [x] if hidden_states else []
        for stage in self.stages:
            for layer in stage:
                x = layer(x)
            if hidden_states:
                states.append(x)
        result = x, ops.mean(x, axis=(1, 2))
        return (result, states) if hidden_states else result


class ResNetClassifier(PretrainedModel):
    """ResNet with a head that scores each class for an image."""

    config_class: ClassVar[type[ResNetConfig]] = ResNetConfig
    names: ClassVar[Mapping[str, str | StoredName]] = {
        **prefixed("encoder", "resnet", _NAMES),
        "classifier": "classifier.1",
    }
    base = "resnet."
    defaulted = _DEFAULTED
    heads = ("classifier",)

    def __init__(self, config: ResNetConfig, *, dtype: DTypeLike | None = None) -> None:
        self.config = config
        self.encoder = ResNet(config, dtype=dtype)
        self.add_head(dtype=dtype)

    def add_head(self, *, dtype: DTypeLike | None = None) -> None:
        self.classifier = Linear(self.config.hidden_sizes[-1], self.config.labels, dtype=dtype)

    def forward(self, images: Any, *, hidden_states: bool = False) -> Any:
        """Scores with the axes (batch, classes); the arguments are those of ``ResNet``."""
        (_, pooled), states = with_states(self.encoder(images, hidden_states=hidden_states), hidden_states)
        scores = self.classifier(pooled)
        return (scores, states) if hidden_states else scores
