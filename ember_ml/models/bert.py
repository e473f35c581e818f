"""BERT (Devlin et al., 2018) and RoBERTa (Liu et al., 2019): encoders of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.models.encoder import EncoderConfig, encoder_layers, prefixed, run_layers, text_inputs, with_states
from ember_ml.models.pretrained import PretrainedModel, StoredName, activation
from ember_ml.nn.initializers import initialized
from ember_ml.nn.modules import Dropout, Embedding, LayerNorm, Linear, Module, Parameter
from ember_ml.types import DTypeLike


@dataclass(frozen=True, kw_only=True)
class BertConfig(EncoderConfig):
    """Configuration of BERT."""

    model_type: str = "bert"
    vocab_size: int = 30522
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    pad_token_id: int | None = 0
    classifier_dropout: float | None = None
    is_decoder: bool = False
    add_cross_attention: bool = False
    tie_word_embeddings: bool = True
    position_embedding_type: str = "absolute"

    # Whether positions are counted from the padding index, over the tokens that are not padding.
    is_roberta: ClassVar[bool] = False

    def check(self) -> None:
        super().check()
        if self.is_decoder or self.add_cross_attention:
            raise ValueError("is_decoder and add_cross_attention must be false, got true")
        if self.position_embedding_type != "absolute":
            raise ValueError(f"position_embedding_type must be 'absolute', got {self.position_embedding_type!r}")
        if self.is_roberta and self.pad_token_id is None:
            raise ValueError("pad_token_id must be an integer, got null")

    @property
    def classifier_rate(self) -> float:
        """Rate of dropout before the classifier."""
        return self.hidden_dropout_prob if self.classifier_dropout is None else self.classifier_dropout


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(BertConfig):
    """Configuration of RoBERTa."""

    model_type: str = "roberta"
    vocab_size: int = 50265
    pad_token_id: int | None = 1

    is_roberta = True


_NAMES = {
    "tokens": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
    "layers.{}.attention.query": "encoder.layer.{}.attention.self.query",
    "layers.{}.attention.key": "encoder.layer.{}.attention.self.key",
    "layers.{}.attention.value": "encoder.layer.{}.attention.self.value",
    "layers.{}.attention.out": "encoder.layer.{}.attention.output.dense",
    "layers.{}.norm1": "encoder.layer.{}.attention.output.LayerNorm",
    "layers.{}.feed_forward.linear1": "encoder.layer.{}.intermediate.dense",
    "layers.{}.feed_forward.linear2": "encoder.layer.{}.output.dense",
    "layers.{}.norm2": "encoder.layer.{}.output.LayerNorm",
    "pooler": "pooler.dense",
}

# Names that early files have for the tensors of normalizations.
_FILE_RENAMES = {r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"}


class Bert(PretrainedModel):
    """BERT without a head: a vector for each token, and one for the sequence.

    A call returns both as a pair; the second is ``None`` if the files had no pooler.
    """

    config_class: ClassVar[type[BertConfig]] = BertConfig
    names: ClassVar[Mapping[str, str | StoredName]] = _NAMES
    base: ClassVar[str] = "bert."
    file_renames = _FILE_RENAMES
    optional = ("pooler",)
    ignored = (r"embeddings\.position_ids", r"cls\..*", r"lm_head\..*", r"classifier\..*")

    def __init__(self, config: BertConfig, *, pooler: bool = True, dtype: DTypeLike | None = None) -> None:
        self.config = config
        size = config.hidden_size
        self.tokens = Embedding(config.vocab_size, size, weight_init="normal", dtype=dtype)
        self.positions = Embedding(config.max_position_embeddings, size, weight_init="normal", dtype=dtype)
        self.token_types = Embedding(config.type_vocab_size, size, weight_init="normal", dtype=dtype)
        self.norm = LayerNorm(size, config.layer_norm_eps, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.layers = encoder_layers(config, dtype=dtype)
        self.pooler = Linear(size, size, dtype=dtype) if pooler else None

    def forward(
        self, tokens: Any, *, mask: Any = None, token_types: Any = None, hidden_states: bool = False
    ) -> tuple[Any, Any]:
        """Vectors of the tokens, and the vector of each sequence.

        Args:
            tokens: indices with the axes (batch, length), or a dictionary that a tokenizer returned, with
                ``input_ids``, and optionally ``attention_mask`` and ``token_type_ids``.
            mask: true or 1 where a token is no padding, with the axes (batch, length).
            token_types: which part of the sequence a token is in, from 0; by default 0.
            hidden_states: whether to return a pair of that result and the list of the outputs of the embedding and of
                each layer.
        """
        tokens, mask, token_types = text_inputs(tokens, mask, token_types, self.tokens.weight)
        x = self._embed(tokens, token_types)
        if mask is not None:
            mask = ops.expand_dims(ops.not_equal(mask, 0), axis=1)
        states = run_layers(self.layers, x, mask=mask, hidden_states=hidden_states)
        x = states[-1]
        result = x, None if self.pooler is None else ops.tanh(self.pooler(x[:, 0]))
        return (result, states) if hidden_states else result

    def _embed(self, tokens: Any, token_types: Any) -> Any:
        if len(ops.shape(tokens)) != 2:
            raise ValueError(
                f"{type(self).__name__}: tokens must have shape (batch, length), got {list(ops.shape(tokens))}"
            )
        length = ops.shape(tokens)[1]
        offset = self.config.pad_token_id + 1 if self.config.is_roberta else 0
        if length > self.config.max_position_embeddings - offset:
            raise ValueError(
                f"{type(self).__name__}: tokens must have a length of at most "
                f"{self.config.max_position_embeddings - offset}, the number of positions, got {length}"
            )
        indices: Any = list(range(length))
        if self.config.is_roberta:
            is_token = ops.cast(ops.not_equal(tokens, offset - 1), "int64")
            indices = ops.add(ops.multiply(ops.cumsum(is_token, axis=1), is_token), offset - 1)
        types = [0] if token_types is None else token_types
        x = ops.add(ops.add(self.tokens(tokens), self.token_types(types)), self.positions(indices))
        return self.dropout(self.norm(x))


class TokenHead(Module):
    """Scores of each token of the vocabulary: a linear layer, a normalization, and a product with the embedding.

    Args:
        is_tied: whether the product is with the embedding of the model, given in a call.
    """

    def __init__(self, config: BertConfig, *, dtype: DTypeLike | None = None) -> None:
        size, vocabulary = config.hidden_size, config.vocab_size
        self.dense = Linear(size, size, dtype=dtype)
        self.norm = LayerNorm(size, config.layer_norm_eps, dtype=dtype)
        # RoBERTa's activation does not depend on its configuration.
        self._function = ops.gelu if config.is_roberta else activation(config.hidden_act)
        if config.tie_word_embeddings:
            self.bias: Any = Parameter(initialized("zeros", (vocabulary,), dtype, "TokenHead: bias"))
        else:
            self.decoder = Linear(size, vocabulary, dtype=dtype)

    def forward(self, x: Any, embedding: Embedding) -> Any:
        x = self.norm(self._function(self.dense(x)))
        return ops.add(embedding.attend(x), self.bias) if "bias" in self._roles else self.decoder(x)


class BertMaskedLM(PretrainedModel):
    """BERT with a head that scores each token of the vocabulary at each position."""

    config_class: ClassVar[type[BertConfig]] = BertConfig
    names: ClassVar[Mapping[str, str | StoredName]] = {
        **prefixed("encoder", "bert", _NAMES),
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head": "cls.predictions",
    }
    base: ClassVar[str] = "bert."
    file_renames = _FILE_RENAMES
    ignored: ClassVar[tuple[str, ...]] = (r"embeddings\.position_ids", r"pooler\..*", r"cls\.seq_relationship\..*")
    heads = ("head",)

    def __init__(self, config: BertConfig, *, dtype: DTypeLike | None = None) -> None:
        self.config = config
        self.encoder = Bert(config, pooler=False, dtype=dtype)
        self.add_head(dtype=dtype)

    def add_head(self, *, dtype: DTypeLike | None = None) -> None:
        self.head = TokenHead(self.config, dtype=dtype)

    def forward(self, tokens: Any, *, mask: Any = None, token_types: Any = None, hidden_states: bool = False) -> Any:
        """Scores with the axes (batch, length, vocabulary); the arguments are those of ``Bert``."""
        (x, _), states = with_states(
            self.encoder(tokens, mask=mask, token_types=token_types, hidden_states=hidden_states), hidden_states
        )
        scores = self.head(x, self.encoder.tokens)
        return (scores, states) if hidden_states else scores

    def duplicates(self) -> dict[str, str]:
        if not self.config.tie_word_embeddings:
            return {}
        head, embedding = self.names["head"], self.names["encoder.tokens"]
        return {f"{head}.decoder.weight": f"{embedding}.weight", f"{head}.decoder.bias": f"{head}.bias"}

    def is_ignored(self, name: str) -> bool:
        # Without ties, this bias is not used.
        is_unused = name == f"{self.names['head']}.bias" and not self.config.tie_word_embeddings
        return super().is_ignored(name) or is_unused


class BertClassifier(PretrainedModel):
    """BERT with a head that scores each class for a sequence."""

    config_class: ClassVar[type[BertConfig]] = BertConfig
    names: ClassVar[Mapping[str, str | StoredName]] = {
        **prefixed("encoder", "bert", _NAMES),
        "classifier": "classifier",
    }
    base = "bert."
    file_renames = _FILE_RENAMES
    ignored: ClassVar[tuple[str, ...]] = (r"embeddings\.position_ids",)
    # Files of a model without a classifier may lack the pooler, which is used by the classifier alone.
    heads = ("encoder.pooler", "classifier")

    def __init__(self, config: BertConfig, *, dtype: DTypeLike | None = None) -> None:
        self.config = config
        self.encoder = Bert(config, pooler=False, dtype=dtype)
        self.dropout = Dropout(config.classifier_rate)
        self.add_head(dtype=dtype)

    def add_head(self, *, dtype: DTypeLike | None = None) -> None:
        size = self.config.hidden_size
        self.encoder.pooler = Linear(size, size, dtype=dtype)
        self.classifier = Linear(size, self.config.labels, dtype=dtype)

    def forward(self, tokens: Any, *, mask: Any = None, token_types: Any = None, hidden_states: bool = False) -> Any:
        """Scores with the axes (batch, classes); the arguments are those of ``Bert``."""
        (_, pooled), states = with_states(
            self.encoder(tokens, mask=mask, token_types=token_types, hidden_states=hidden_states), hidden_states
        )
        scores = self.classifier(self.dropout(pooled))
        return (scores, states) if hidden_states else scores


class Roberta(Bert):
    """RoBERTa without a head; see ``Bert``."""

    config_class = RobertaConfig
    base = "roberta."


class RobertaMaskedLM(BertMaskedLM):
    """RoBERTa with a head that scores each token of the vocabulary at each position."""

    config_class = RobertaConfig
    base = "roberta."
    names: ClassVar[Mapping[str, str | StoredName]] = {
        **prefixed("encoder", "roberta", _NAMES),
        "head.norm": "lm_head.layer_norm",
        "head": "lm_head",
    }
    ignored: ClassVar[tuple[str, ...]] = (r"embeddings\.position_ids", r"pooler\..*")


class RobertaClassifier(PretrainedModel):
    """RoBERTa with a head that scores each class for a sequence."""

    config_class: ClassVar[type[BertConfig]] = RobertaConfig
    names: ClassVar[Mapping[str, str | StoredName]] = {
        **prefixed("encoder", "roberta", _NAMES),
        "dense": "classifier.dense",
        "classifier": "classifier.out_proj",
    }
    base = "roberta."
    ignored: ClassVar[tuple[str, ...]] = (r"embeddings\.position_ids", r"pooler\..*")
    heads = ("dense", "classifier")

    def __init__(self, config: RobertaConfig, *, dtype: DTypeLike | None = None) -> None:
        self.config = config
        self.encoder = Bert(config, pooler=False, dtype=dtype)
        self.dropout = Dropout(config.classifier_rate)
        self.add_head(dtype=dtype)

    def add_head(self, *, dtype: DTypeLike | None = None) -> None:
        size = self.config.hidden_size
        self.dense = Linear(size, size, dtype=dtype)
        self.classifier = Linear(size, self.config.labels, dtype=dtype)

    def forward(self, tokens: Any, *, mask: Any = None, token_types: Any = None, hidden_states: bool = False) -> Any:
        """Scores with the axes (batch, classes); the arguments are those of ``Bert``."""
        (x, _), states = with_states(
            self.encoder(tokens, mask=mask, token_types=token_types, hidden_states=hidden_states), hidden_states
        )
        scores = self.classifier(self.dropout(ops.tanh(self.dense(self.dropout(x[:, 0])))))
        return (scores, states) if hidden_states else scores
