"""ViT (Dosovitskiy et al., 2020): an encoder of images as sequences of patches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.models.encoder import EncoderConfig, encoder_layers, prefixed, run_layers, with_states
from ember_ml.models.pretrained import PretrainedModel, StoredName, activation
from ember_ml.nn.initializers import initialized
from ember_ml.nn.modules import Dropout, LayerNorm, Linear, Parameter, PatchEmbedding
from ember_ml.types import DTypeLike


@dataclass(frozen=True, kw_only=True)
class ViTConfig(EncoderConfig):
    """Configuration of ViT."""

    model_type: str = "vit"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    image_size: int | list[int] = 224
    patch_size: int | list[int] = 16
    num_channels: int = 3
    qkv_bias: bool = True
    pooler_output_size: int | None = None
    pooler_act: str = "tanh"

    @property
    def sizes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Height and width of an image, and of a patch."""
        image, patch = (
            (size, size) if isinstance(size, int) else tuple(size) for size in (self.image_size, self.patch_size)
        )
        return image, patch  # type: ignore[return-value]

    def check(self) -> None:
        super().check()
        for name, size in (("image_size", self.image_size), ("patch_size", self.patch_size)):
            pair = [size, size] if isinstance(size, int) else size
            if len(pair) != 2 or not all(type(length) is int and length > 0 for length in pair):
                raise ValueError(f"{name} must be a positive integer or two of them, got {size!r}")


_NAMES = {
    "cls_token": "embeddings.cls_token",
    "positions": "embeddings.position_embeddings",
    "patches": "embeddings.patch_embeddings",
    "layers.{}.norm1": "encoder.layer.{}.layernorm_before",
    "layers.{}.attention.query": "encoder.layer.{}.attention.attention.query",
    "layers.{}.attention.key": "encoder.layer.{}.attention.attention.key",
    "layers.{}.attention.value": "encoder.layer.{}.attention.attention.value",
    "layers.{}.attention.out": "encoder.layer.{}.attention.output.dense",
    "layers.{}.norm2": "encoder.layer.{}.layernorm_after",
    "layers.{}.feed_forward.linear1": "encoder.layer.{}.intermediate.dense",
    "layers.{}.feed_forward.linear2": "encoder.layer.{}.output.dense",
    "norm": "layernorm",
    "pooler": "pooler.dense",
}

# Parts of the names of layers in files, and in memory since transformers 5, which adapters have.
_IN_MEMORY = {
    "attention.attention.query": "attention.q_proj",
    "attention.attention.key": "attention.k_proj",
    "attention.attention.value": "attention.v_proj",
    "attention.output.dense": "attention.o_proj",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
    "layernorm": "layernorm",
}
_FILE_RENAMES = {
    rf"\blayers\.(\d+)\.{re.escape(memory)}": rf"encoder.layer.\1.{file}" for file, memory in _IN_MEMORY.items()
}
_ADAPTER_RENAMES = {
    rf"\bencoder\.layer\.(\d+)\.{re.escape(file)}": rf"layers.\1.{memory}" for file, memory in _IN_MEMORY.items()
}


class ViT(PretrainedModel):
    """ViT without a head: a vector for each patch, after that of the image, and the pooled vector of the image.

    A call returns both as a pair; the second is ``None`` if the files had no pooler.
    """

    config_class: ClassVar[type[ViTConfig]] = ViTConfig
    names: ClassVar[Mapping[str, str | StoredName]] = _NAMES
    file_renames = _FILE_RENAMES
    adapter_renames = _ADAPTER_RENAMES
    base = "vit."
    optional = ("pooler",)
    ignored = (r"embeddings\.mask_token", r"decoder\..*", r"classifier\..*")

    def __init__(self, config: ViTConfig, *, pooler: bool = True, dtype: DTypeLike | None = None) -> None:
        self.config = config
        size = config.hidden_size
        (height, width), patch = config.sizes
        count = (height // patch[0]) * (width // patch[1])
        self.patches = PatchEmbedding(config.num_channels, size, patch, dtype=dtype)
        self.cls_token: Any = Parameter(initialized("normal", (1, 1, size), dtype, "ViT: cls_token"))
        self.positions: Any = Parameter(initialized("normal", (1, count + 1, size), dtype, "ViT: positions"))
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.layers = encoder_layers(config, norm_first=True, qkv_bias=config.qkv_bias, dtype=dtype)
        self.norm = LayerNorm(size, config.layer_norm_eps, dtype=dtype)
        self.pooler = Linear(size, config.pooler_output_size or size, dtype=dtype) if pooler else None
        self._function = activation(config.pooler_act)

    def forward(self, images: Any, *, interpolate: bool = False, hidden_states: bool = False) -> tuple[Any, Any]:
        """Vectors of the image and its patches, and the pooled vector of the image.

        Args:
            images: normalized pixels with the axes (batch, height, width, channels).
            interpolate: resize the learned positions for images of another size than that of the configuration.
            hidden_states: whether to return a pair of that result and the list of the outputs of the embedding and of
                each layer.
        """
        x = self._embed(images, interpolate)
        states = run_layers(self.layers, x, hidden_states=hidden_states)
        x = self.norm(states[-1])
        result = x, None if self.pooler is None else self._function(self.pooler(x[:, 0]))
        return (result, states) if hidden_states else result

    def _embed(self, images: Any, interpolate: bool) -> Any:
        (height, width), patch = self.config.sizes
        patches = self.patches(images)
        given, positions = tuple(ops.shape(images)[1:3]), self.positions
        if given != (height, width):
            if not interpolate:
                raise ValueError(
                    f"{type(self).__name__}: images must have shape (batch, {height}, {width}, channels), got "
                    f"{list(ops.shape(images))}; interpolate=True takes other sizes"
                )
            grid = ops.reshape(positions[:, 1:], (1, height // patch[0], width // patch[1], -1))
            resized = ops.resize(grid, (given[0] // patch[0], given[1] // patch[1]), "bicubic")
            rest = ops.reshape(resized, (1, -1, self.config.hidden_size))
            positions = ops.concat([positions[:, :1], rest], axis=1)
        first = ops.broadcast_to(self.cls_token, (patches.shape[0], 1, self.config.hidden_size))
        return self.dropout(ops.add(ops.concat([first, patches], axis=1), positions))


class ViTClassifier(PretrainedModel):
    """ViT with a head that scores each class for an image."""

    config_class: ClassVar[type[ViTConfig]] = ViTConfig
    names: ClassVar[Mapping[str, str | StoredName]] = {**prefixed("encoder", "vit", _NAMES), "classifier": "classifier"}
    file_renames = _FILE_RENAMES
    adapter_renames = _ADAPTER_RENAMES
    base = "vit."
    ignored = (r"embeddings\.mask_token", r"pooler\..*")
    heads = ("classifier",)

    def __init__(self, config: ViTConfig, *, dtype: DTypeLike | None = None) -> None:
        self.config = config
        self.encoder = ViT(config, pooler=False, dtype=dtype)
        self.add_head(dtype=dtype)

    def add_head(self, *, dtype: DTypeLike | None = None) -> None:
        self.classifier = Linear(self.config.hidden_size, self.config.labels, dtype=dtype)

    def forward(self, images: Any, *, interpolate: bool = False, hidden_states: bool = False) -> Any:
        """Scores with the axes (batch, classes); the arguments are those of ``ViT``."""
        (x, _), states = with_states(
            self.encoder(images, interpolate=interpolate, hidden_states=hidden_states), hidden_states
        )
        scores = self.classifier(x[:, 0])
        return (scores, states) if hidden_states else scores
