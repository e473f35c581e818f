"""What the architectures of encoders share: entries of their configurations, and their layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ember_ml import ops
from ember_ml.extend import activate, backend_of, unwrap
from ember_ml.models.pretrained import Config, activation
from ember_ml.nn.modules import Dropout, ModuleList, TransformerEncoderLayer
from ember_ml.types import DTypeLike


@dataclass(frozen=True, kw_only=True)
class LabeledConfig(Config):
    """Configuration of an architecture that may have a classifier; ``id2label`` names the classes.

    ``num_labels`` takes precedence over another number of names, as in transformers.
    """

    num_labels: int | None = None
    id2label: dict[str, Any] | None = None
    label2id: dict[str, Any] | None = None

    @property
    def labels(self) -> int:
        """Number of classes: 2 if the configuration does not say."""
        if self.num_labels is not None:
            return self.num_labels
        return 2 if self.id2label is None else len(self.id2label)

    def to_dict(self) -> dict[str, Any]:
        entries = super().to_dict()
        if self.id2label is not None and self.labels != len(self.id2label):
            # The names are those of another number of classes; without them, transformers numbers the classes.
            del entries["id2label"], entries["label2id"]
        names = ("num_labels", "id2label", "label2id")
        # transformers does not accept null for these.
        return {key: x for key, x in entries.items() if key not in names or x is not None}

    def check(self) -> None:
        if self.labels < 1:
            raise ValueError(f"the number of labels must be >= 1, got {self.labels}")


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(LabeledConfig):
    """Configuration of an encoder of transformer layers."""

    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-12


def encoder_layers(
    config: EncoderConfig, *, norm_first: bool = False, qkv_bias: bool = True, dtype: DTypeLike | None = None
) -> ModuleList:
    """Layers of an encoder.

    Args:
        norm_first: as in ``TransformerEncoderLayer``.
        qkv_bias: whether the projections of queries, keys and values have biases.
    """
    layers = ModuleList()
    for _ in range(config.num_hidden_layers):
        layer = TransformerEncoderLayer(
            config.hidden_size,
            config.num_attention_heads,
            config.intermediate_size,
            config.hidden_dropout_prob,
            activation(config.hidden_act),
            norm_first=norm_first,
            epsilon=config.layer_norm_eps,
            dtype=dtype,
        )
        layer.attention.dropout = config.attention_probs_dropout_prob
        # These architectures have no dropout between the two linear layers.
        layer.feed_forward.dropout = Dropout(0.0)
        for part in () if qkv_bias else (layer.attention.query, layer.attention.key, layer.attention.value):
            part.bias = None
        layers.append(layer)
    return layers


def run_layers(layers: ModuleList, x: Any, *, mask: Any = None, hidden_states: bool = False) -> list[Any]:
    """Output of the last layer; with ``hidden_states``, after ``x`` and the outputs of the others."""
    states = [x]
    for layer in layers:
        x = layer(x, mask=mask)
        states = [*states, x] if hidden_states else [x]
    return states


def with_states(result: Any, hidden_states: bool) -> tuple[Any, Any]:
    """Result of a model without a head, and its hidden states, which are ``None`` unless they were asked for."""
    return result if hidden_states else (result, None)


def text_inputs(tokens: Any, mask: Any, token_types: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Tokens, mask and token types for a model with ``weight``, also from a dictionary that a tokenizer returned."""
    if isinstance(tokens, Mapping):
        mask = tokens.get("attention_mask", mask)
        token_types = tokens.get("token_type_ids", token_types)
        tokens = tokens["input_ids"]
    first, second, third = (as_input(x, weight) for x in (tokens, mask, token_types))
    return first, second, third


def as_input(x: Any, weight: Any) -> Any:
    """``x`` on the device of ``weight``, as a tensor of its engine if it is an array or a list."""
    backend = backend_of(weight)
    if x is None or backend is None:
        return x
    on, own = backend.device_of(weight), backend_of(unwrap(x), host=False)
    if own is None:
        with activate(backend):
            return ops.asarray(x, device=on)
    return ops.to_device(x, on) if own is backend and backend.device_of(unwrap(x)) != on else x


def prefixed(ours: str, theirs: str, names: dict[str, Any]) -> dict[str, Any]:
    """Table of names of a model below the path ``ours``, whose names in files begin with ``theirs``."""
    return {f"{ours}.{path}": f"{theirs}.{name}" for path, name in names.items()}
