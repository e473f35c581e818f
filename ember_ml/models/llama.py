"""Llama (Touvron et al., 2023), and the decoders that differ from it in a few layers: Mistral, Qwen2, Qwen3, Gemma."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.models.decoder import Decoder
from ember_ml.models.pretrained import Config, StoredName, activation
from ember_ml.nn.modules import (
    CausalSelfAttention,
    Embedding,
    GatedFeedForward,
    Linear,
    Module,
    ModuleList,
    RMSNorm,
    RotaryEmbedding,
)
from ember_ml.types import DTypeLike

_SLIDING, _FULL = "sliding_attention", "full_attention"


@dataclass(frozen=True, kw_only=True)
class LlamaConfig(Config):
    """Configuration of Llama; its subclasses are those of the decoders derived from it."""

    model_type: str = "llama"
    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    rope_parameters: dict[str, Any] | None = None
    # Entries of earlier versions of transformers, in place of rope_parameters.
    rope_theta: float | None = None
    rope_scaling: dict[str, Any] | None = None
    # Takes precedence over the entry of rope_parameters with this name.
    original_max_position_embeddings: int | None = None
    attention_bias: bool = False
    attention_dropout: float | None = 0.0
    mlp_bias: bool = False

    # What distinguishes the architectures.
    has_query_bias: ClassVar[bool] = False
    # Entries of biases that are used; transformers ignores them in files of the other architectures.
    bias_entries: ClassVar[tuple[str, ...]] = ("attention_bias", "mlp_bias")
    has_head_norms: ClassVar[bool] = False
    has_post_norms: ClassVar[bool] = False
    norm_offset: ClassVar[float] = 0.0
    default_theta: ClassVar[float] = 10000.0

    def to_dict(self) -> dict[str, Any]:
        entries = super().to_dict()
        if self.rope_scaling and self.rope_parameters:
            # Merge both, since transformers would ignore the base in rope_parameters.
            entries.update(rope_parameters=self.rope_options(), rope_scaling=None)
        # transformers does not take null for these; absent, they have their defaults.
        optional = (
            "rope_parameters", "rope_theta", "rope_scaling", "original_max_position_embeddings", "head_dim",
            "hidden_activation", "layer_types",
        )  # fmt: skip
        return {name: value for name, value in entries.items() if value is not None or name not in optional}

    def rope_options(self) -> dict[str, Any]:
        """Entries of ``rope_scaling`` if given, as in transformers, else of ``rope_parameters``, with the base."""
        newer = self.rope_parameters or {}
        if not self.rope_scaling:
            return dict(newer)
        return {**{name: x for name, x in newer.items() if name == "rope_theta"}, **self.rope_scaling}

    def rotation(self) -> tuple[float, Mapping[str, Any]]:
        """Base and options of the rotary positions."""
        options = self.rope_options()
        base = options.pop("rope_theta", self.rope_theta or self.default_theta)
        if type(base) not in (int, float) or base <= 0:
            raise ValueError(f"rope_theta must be a number > 0, got {base!r}")
        name = "original_max_position_embeddings"
        options[name] = self.original_max_position_embeddings or options.get(name) or self.max_position_embeddings
        return float(base), options

    @property
    def max_positions(self) -> int:
        """Greatest length of a sequence: ``max_position_embeddings``, or that times the factor of the positions."""
        length, (_, options) = self.max_position_embeddings, self.rotation()
        kind = options.get("rope_type", options.get("type"))
        # In other files, max_position_embeddings is already the length after scaling.
        is_scaled = kind == "linear" or (
            kind in ("yarn", "llama3") and options["original_max_position_embeddings"] == length
        )
        return int(length * options["factor"]) if is_scaled else length

    def has_bias(self, entry: str) -> bool:
        """Whether an entry such as ``attention_bias`` is true, and used."""
        return entry in self.bias_entries and bool(getattr(self, entry))

    def window(self, layer: int) -> int | None:
        """Number of positions that a layer attends to; ``None`` for all."""
        return None

    @property
    def activation(self) -> str:
        """Name of the activation of the feed-forward parts."""
        return self.hidden_act

    @property
    def scale(self) -> float | None:
        """Factor of the scores of attention; ``None`` for ``head_dim ** -0.5``."""
        return None

    @property
    def embedding_scale(self) -> float:
        """Factor of the embeddings."""
        return 1.0

    @property
    def score_caps(self) -> tuple[float | None, float | None]:
        """Soft caps of the scores of attention and of the output."""
        return None, None


@dataclass(frozen=True, kw_only=True)
class MistralConfig(LlamaConfig):
    """Configuration of Mistral: Llama with a window in all layers."""

    model_type: str = "mistral"
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    sliding_window: int | None = 4096

    bias_entries: ClassVar[tuple[str, ...]] = ()

    def window(self, layer: int) -> int | None:
        return self.sliding_window


@dataclass(frozen=True, kw_only=True)
class Qwen2Config(LlamaConfig):
    """Configuration of Qwen2: Llama with biases of queries, keys and values, and windows in some layers."""

    model_type: str = "qwen2"
    vocab_size: int = 151936
    intermediate_size: int = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28
    layer_types: list[str] | None = None

    has_query_bias: ClassVar[bool] = True
    bias_entries: ClassVar[tuple[str, ...]] = ()

    def window(self, layer: int) -> int | None:
        if not self.use_sliding_window:
            return None
        types = self.layer_types
        is_sliding = layer >= self.max_window_layers if types is None else types[layer] == _SLIDING
        return self.sliding_window if is_sliding else None

    def check(self) -> None:
        _check_layer_types(self.layer_types, self.num_hidden_layers)


@dataclass(frozen=True, kw_only=True)
class Qwen3Config(Qwen2Config):
    """Configuration of Qwen3: Qwen2 with normalized queries and keys in place of their biases."""

    model_type: str = "qwen3"
    head_dim: int | None = 128

    has_query_bias: ClassVar[bool] = False
    bias_entries: ClassVar[tuple[str, ...]] = ("attention_bias",)
    has_head_norms: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class GemmaConfig(LlamaConfig):
    """Configuration of Gemma: Llama with scaled embeddings, weights of norms stored minus 1, and a GELU gate."""

    model_type: str = "gemma"
    vocab_size: int = 256000
    hidden_size: int = 3072
    intermediate_size: int = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    hidden_activation: str | None = None
    max_position_embeddings: int = 8192
    tie_word_embeddings: bool = True
    use_bidirectional_attention: bool | None = None

    bias_entries: ClassVar[tuple[str, ...]] = ("attention_bias",)
    norm_offset: ClassVar[float] = 1.0

    def check(self) -> None:
        if self.use_bidirectional_attention:
            raise ValueError("use_bidirectional_attention must be false, got true")

    @property
    def activation(self) -> str:
        # The first releases say gelu, and mean its approximation.
        name = self.hidden_activation or self.hidden_act
        return "gelu_pytorch_tanh" if name == "gelu" else name

    @property
    def embedding_scale(self) -> float:
        return float(self.hidden_size**0.5)


@dataclass(frozen=True, kw_only=True)
class Gemma2Config(GemmaConfig):
    """Configuration of Gemma 2: Gemma with norms after each part, windows in every other layer, and soft caps."""

    model_type: str = "gemma2"
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    query_pre_attn_scalar: float = 256
    sliding_window: int | None = 4096
    layer_types: list[str] | None = None
    final_logit_softcapping: float | None = 30.0
    attn_logit_softcapping: float | None = 50.0

    has_post_norms: ClassVar[bool] = True

    def window(self, layer: int) -> int | None:
        is_sliding = layer % 2 == 0 if self.layer_types is None else self.layer_types[layer] == _SLIDING
        return self.sliding_window if is_sliding else None

    def check(self) -> None:
        super().check()
        _check_layer_types(self.layer_types, self.num_hidden_layers)

    @property
    def activation(self) -> str:
        return self.hidden_activation or "gelu_pytorch_tanh"

    @property
    def scale(self) -> float | None:
        return float(self.query_pre_attn_scalar**-0.5)

    @property
    def score_caps(self) -> tuple[float | None, float | None]:
        return self.attn_logit_softcapping, self.final_logit_softcapping


def _check_layer_types(types: list[str] | None, count: int) -> None:
    if types is not None and (len(types) != count or not set(types) <= {_SLIDING, _FULL}):
        raise ValueError(f"layer_types must be {count} times {_SLIDING} or {_FULL}, got {types!r}")


class LlamaLayer(Module):
    """Causal attention, then a gated feed-forward part, each after a norm and with a residual connection."""

    def __init__(self, config: LlamaConfig, index: int, *, dtype: DTypeLike | None = None) -> None:
        size, bias = config.hidden_size, config.has_bias("attention_bias")

        def norm() -> RMSNorm:
            return RMSNorm(size, config.rms_norm_eps, offset=config.norm_offset, dtype=dtype)

        self.norm1 = norm()
        self.attention = CausalSelfAttention(
            size,
            config.num_attention_heads,
            num_kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            dropout=config.attention_dropout or 0.0,
            bias=bias or config.has_query_bias,
            out_bias=bias,
            window=config.window(index),
            scale=config.scale,
            softcap=config.score_caps[0],
            norm_epsilon=config.rms_norm_eps if config.has_head_norms else None,
            dtype=dtype,
        )
        self.norm2 = norm()
        self.feed_forward = GatedFeedForward(
            size, config.intermediate_size, activation(config.activation), config.has_bias("mlp_bias"), dtype=dtype
        )
        self.post_norm1 = norm() if config.has_post_norms else None
        self.post_norm2 = norm() if config.has_post_norms else None

    def forward(self, x: Any, **options: Any) -> Any:
        """Output, and the cache if there is one; the options are those of ``CausalSelfAttention``."""
        y = self.attention(self.norm1(x), **options)
        y, cache = (y, None) if options.get("cache") is None else y
        x = ops.add(x, y if self.post_norm1 is None else self.post_norm1(y))
        y = self.feed_forward(self.norm2(x))
        x = ops.add(x, y if self.post_norm2 is None else self.post_norm2(y))
        return x if cache is None else (x, cache)


class Llama(Decoder):
    """Llama with its output layer: scores of the next token for each position of sequences of tokens."""

    config_class: ClassVar[type[Config]] = LlamaConfig
    base = "model."
    names: ClassVar[Mapping[str, str | StoredName]] = {
        "embedding": "model.embed_tokens",
        "layers.{}.norm1": "model.layers.{}.input_layernorm",
        "layers.{}.attention.query": "model.layers.{}.self_attn.q_proj",
        "layers.{}.attention.key": "model.layers.{}.self_attn.k_proj",
        "layers.{}.attention.value": "model.layers.{}.self_attn.v_proj",
        "layers.{}.attention.out": "model.layers.{}.self_attn.o_proj",
        "layers.{}.attention.query_norm": "model.layers.{}.self_attn.q_norm",
        "layers.{}.attention.key_norm": "model.layers.{}.self_attn.k_norm",
        "layers.{}.norm2": "model.layers.{}.post_attention_layernorm",
        "layers.{}.feed_forward.gate": "model.layers.{}.mlp.gate_proj",
        "layers.{}.feed_forward.up": "model.layers.{}.mlp.up_proj",
        "layers.{}.feed_forward.down": "model.layers.{}.mlp.down_proj",
        "norm": "model.norm",
        "head": "lm_head",
    }
    # Earlier versions of transformers stored the frequencies, their cosines and sines, and the causal mask.
    ignored = (r"(layers\.\d+\.self_attn\.)?rotary_emb\..*", r"causal_mask")

    def __init__(self, config: LlamaConfig, *, dtype: DTypeLike | None = None) -> None:
        self.config = config
        size = config.head_dim or config.hidden_size // max(config.num_attention_heads, 1)
        self.embedding = Embedding(config.vocab_size, config.hidden_size, dtype=dtype)
        self.rotary = RotaryEmbedding(size, *config.rotation())
        self.layers = ModuleList(LlamaLayer(config, index, dtype=dtype) for index in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, offset=config.norm_offset, dtype=dtype)
        self.head = (
            None if config.tie_word_embeddings else Linear(config.hidden_size, config.vocab_size, False, dtype=dtype)
        )

    @property
    def max_positions(self) -> int:
        return int(self.config.max_positions)

    def embed(self, tokens: Any, positions: Any) -> tuple[Any, dict[str, Any]]:
        x: Any = self.embedding(tokens)
        if self.config.embedding_scale != 1.0:
            # Rounded to the dtype of the embeddings first, as in training.
            x = ops.multiply(x, ops.asarray(self.config.embedding_scale, dtype=x.dtype, device=ops.get_device(x)))
        return x, {"rotation": self.rotary(positions, x.dtype)}

    def score(self, x: Any) -> Any:
        scores = super().score(x)
        cap = self.config.score_caps[1]
        return scores if cap is None else ops.multiply(ops.tanh(ops.multiply(scores, 1 / cap)), cap)


class Mistral(Llama):
    """Mistral with its output layer."""

    config_class = MistralConfig


class Qwen2(Llama):
    """Qwen2 with its output layer."""

    config_class = Qwen2Config


class Qwen3(Llama):
    """Qwen3 with its output layer."""

    config_class = Qwen3Config


class Gemma(Llama):
    """Gemma with its output layer."""

    config_class = GemmaConfig


class Gemma2(Llama):
    """Gemma 2 with its output layer."""

    config_class = Gemma2Config
    names: ClassVar[Mapping[str, str | StoredName]] = {
        **Llama.names,
        "layers.{}.post_norm1": "model.layers.{}.post_attention_layernorm",
        "layers.{}.norm2": "model.layers.{}.pre_feedforward_layernorm",
        "layers.{}.post_norm2": "model.layers.{}.post_feedforward_layernorm",
    }
