"""GPT-2 (Radford et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.models.decoder import Decoder
from ember_ml.models.pretrained import Config, StoredName, activation
from ember_ml.nn.modules import (
    CausalSelfAttention,
    Dropout,
    Embedding,
    FeedForward,
    LayerNorm,
    Linear,
    Module,
    ModuleList,
)
from ember_ml.types import DTypeLike


@dataclass(frozen=True, kw_only=True)
class GPT2Config(Config):
    """Configuration of GPT-2."""

    model_type: str = "gpt2"
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    tie_word_embeddings: bool = True

    # Names that transformers takes too.
    aliases: ClassVar[dict[str, str]] = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }


class GPT2Layer(Module):
    """Causal attention, then a feed-forward part, each after a normalization and with a residual connection."""

    def __init__(self, config: GPT2Config, index: int, *, dtype: DTypeLike | None = None) -> None:
        size = config.n_embd
        scale = (size // config.n_head) ** -0.5 if config.scale_attn_weights else 1.0
        if config.scale_attn_by_inverse_layer_idx:
            scale /= index + 1
        self.norm1 = LayerNorm(size, config.layer_norm_epsilon, dtype=dtype)
        self.attention = CausalSelfAttention(size, config.n_head, dropout=config.attn_pdrop, scale=scale, dtype=dtype)
        self.norm2 = LayerNorm(size, config.layer_norm_epsilon, dtype=dtype)
        self.feed_forward = FeedForward(
            size, config.n_inner or 4 * size, 0.0, activation(config.activation_function), dtype=dtype
        )
        self.dropout = Dropout(config.resid_pdrop)

    def forward(self, x: Any, **options: Any) -> Any:
        """Output, and the cache if there is one; the options are those of ``CausalSelfAttention``."""
        y = self.attention(self.norm1(x), **options)
        y, cache = (y, None) if options.get("cache") is None else y
        x = ops.add(x, self.dropout(y))
        x = ops.add(x, self.dropout(self.feed_forward(self.norm2(x))))
        return x if cache is None else (x, cache)


class GPT2(Decoder):
    """GPT-2 with its output layer: scores of the next token for each position of sequences of tokens."""

    config_class = GPT2Config
    base = "transformer."
    names: ClassVar[dict[str, str | StoredName]] = {
        "embedding": "transformer.wte",
        "positions": "transformer.wpe",
        "layers.{}.norm1": "transformer.h.{}.ln_1",
        "layers.{}.attention.query": StoredName("transformer.h.{}.attn.c_attn", has_own_axes=True, part=(0, 3)),
        "layers.{}.attention.key": StoredName("transformer.h.{}.attn.c_attn", has_own_axes=True, part=(1, 3)),
        "layers.{}.attention.value": StoredName("transformer.h.{}.attn.c_attn", has_own_axes=True, part=(2, 3)),
        "layers.{}.attention.out": StoredName("transformer.h.{}.attn.c_proj", has_own_axes=True),
        "layers.{}.norm2": "transformer.h.{}.ln_2",
        "layers.{}.feed_forward.linear1": StoredName("transformer.h.{}.mlp.c_fc", has_own_axes=True),
        "layers.{}.feed_forward.linear2": StoredName("transformer.h.{}.mlp.c_proj", has_own_axes=True),
        "norm": "transformer.ln_f",
        "head": "lm_head",
    }
    # Earlier versions of transformers stored the causal mask.
    ignored = (r"h\.\d+\.attn\.(masked_)?bias",)

    def __init__(self, config: GPT2Config, *, dtype: DTypeLike | None = None) -> None:
        self.config = config
        self.embedding = Embedding(config.vocab_size, config.n_embd, dtype=dtype)
        self.positions = Embedding(config.n_positions, config.n_embd, dtype=dtype)
        self.dropout = Dropout(config.embd_pdrop)
        self.layers = ModuleList(GPT2Layer(config, index, dtype=dtype) for index in range(config.n_layer))
        self.norm = LayerNorm(config.n_embd, config.layer_norm_epsilon, dtype=dtype)
        self.head = None if config.tie_word_embeddings else Linear(config.n_embd, config.vocab_size, False, dtype=dtype)

    @property
    def max_positions(self) -> int:
        return int(self.config.n_positions)

    def embed(self, tokens: Any, positions: Any) -> tuple[Any, dict[str, Any]]:
        x = ops.add(self.embedding(tokens), self.positions(positions))
        return self.dropout(x), {}
