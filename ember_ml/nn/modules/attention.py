"""Attention, and transformer layers, encoders and decoders."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ember_ml import ops, transform
from ember_ml.extend import causal_offset
from ember_ml.nn.modules.checks import check_sizes, find_activation
from ember_ml.nn.modules.containers import ModuleList
from ember_ml.nn.modules.linear import Linear
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.normalization import LayerNorm
from ember_ml.nn.modules.shape import Dropout, check_rate
from ember_ml.types import DTypeLike, Tensor


class MultiHeadAttention(Module):
    """Multi-head attention, with learned projections of queries, keys, values and output.

    Queries, keys and values have the axes (batch, length, features). Keys default to the queries, values to the keys.

    Args:
        embed_dim: number of features of the queries and of the output.
        num_heads: number of heads of the queries; divides ``embed_dim``.
        dropout: rate of dropout of the attention weights, in training.
        bias: whether the projections have biases.
        num_kv_heads: number of heads of keys and values, if fewer than ``num_heads``, which it divides.
        kdim: number of features of the keys; by default ``embed_dim``.
        vdim: number of features of the values; by default that of the keys.

    >>> layer = MultiHeadAttention(8, 2)
    >>> tuple(layer(ops.ones((3, 5, 8)), ops.ones((3, 7, 8))).shape)
    (3, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        num_kv_heads: int | None = None,
        kdim: int | None = None,
        vdim: int | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, embed_dim=embed_dim, num_heads=num_heads)
        kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads < 1 or kv_heads < 1 or embed_dim % num_heads or num_heads % kv_heads:
            raise ValueError(
                f"{type(self).__name__}: num_heads must divide embed_dim, and num_kv_heads num_heads, got "
                f"embed_dim={embed_dim}, num_heads={num_heads}, num_kv_heads={kv_heads}"
            )
        check_rate(self, dropout, "dropout")
        self.embed_dim, self.num_heads, self.num_kv_heads = embed_dim, num_heads, num_kv_heads
        self.dropout, self.kdim, self.vdim = dropout, kdim, vdim
        self._kv_heads = kv_heads
        size = embed_dim // num_heads
        self.query = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        self.key = Linear(kdim or embed_dim, size * kv_heads, bias, dtype=dtype)
        self.value = Linear(vdim or kdim or embed_dim, size * kv_heads, bias, dtype=dtype)
        self.out = Linear(embed_dim, embed_dim, bias, dtype=dtype)

    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        mask: Any = None,
        is_causal: bool = False,
        causal_alignment: str = "top_left",
    ) -> Tensor:
        """Attention of ``query`` over ``key`` and ``value``.

        Args:
            mask: true where a query may attend to a key, with the axes (queries, keys), (batch, queries, keys) or
                (batch, heads, queries, keys). A mask of shape (batch, 1, keys) hides padding.
            is_causal: whether query ``i`` attends only to keys up to ``i``.
            causal_alignment: ``"bottom_right"`` if the queries are the last of the positions of the keys, as in
                decoding with a cache: the last query then attends to all keys. See ``ops.dot_product_attention``.
        """
        key = query if key is None else key
        value = key if value is None else value
        for x in (query, key, value):
            if len(ops.shape(x)) != 3:
                raise ValueError(
                    f"{type(self).__name__}: query, key and value must have shape (batch, length, features), got "
                    f"{list(ops.shape(x))}"
                )
        if mask is not None and ops.is_float(mask):
            raise TypeError(
                f"{type(self).__name__}: mask must be bool or integers, true where a query may attend to a key, "
                f"got {ops.dtype(mask).name}"
            )
        q = self._heads(self.query(query), self.num_heads)
        k = self._heads(self.key(key), self._kv_heads)
        v = self._heads(self.value(value), self._kv_heads)
        if mask is not None and len(ops.shape(mask)) == 3:
            mask = ops.expand_dims(mask, axis=1)
        if self.dropout and self.training:
            mixed = attend(q, k, v, mask, self.dropout, is_causal=is_causal, causal_alignment=causal_alignment)
        else:
            mixed = ops.dot_product_attention(q, k, v, mask, is_causal=is_causal, causal_alignment=causal_alignment)
        batch, length = mixed.shape[:2]
        return self.out(ops.reshape(mixed, (batch, length, self.embed_dim)))

    def _heads(self, x: Any, count: int) -> Any:
        batch, length, features = x.shape
        return ops.reshape(x, (batch, length, count, features // count))


def attend(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    dropout: float = 0.0,
    *,
    is_causal: bool = False,
    causal_alignment: str = "top_left",
    scale: float | None = None,
    softcap: float | None = None,
) -> Any:
    """``ops.dot_product_attention`` by its formula, with what fused kernels do not have.

    Args:
        dropout: rate of dropout of the attention weights.
        softcap: scores ``s`` become ``softcap * tanh(s / softcap)``.

    >>> ones = ops.ones((1, 2, 1, 4))
    >>> attend(ones, ones, ones, None).tolist() == ones.tolist()
    True
    """
    runs = q.shape[2] // k.shape[2]
    if runs > 1:
        k, v = ops.repeat(k, runs, axis=2), ops.repeat(v, runs, axis=2)
    q, k, v = (ops.swapaxes(x, 1, 2) for x in (q, k, v))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores: Any = ops.multiply(ops.matmul(q, ops.matrix_transpose(k)), factor)
    if softcap is not None:
        scores = ops.multiply(ops.tanh(ops.multiply(scores, 1 / softcap)), softcap)
    if is_causal:
        offset = causal_offset(scores.shape[-2], scores.shape[-1], causal_alignment)
        visible = ops.tril(ops.ones(tuple(scores.shape[-2:]), device=ops.get_device(scores)), k=offset)
        scores = ops.where(ops.greater(visible, 0), scores, -math.inf)
    if mask is not None:
        scores = ops.where(ops.broadcast_to(mask, tuple(scores.shape)), scores, -math.inf)
    if mask is not None or (is_causal and offset < 0):
        # Softmax is NaN for a query without visible keys; its result is zero.
        blind = ops.logical_not(ops.any(ops.greater(scores, -math.inf), axis=-1, keepdims=True))
        weights = ops.where(blind, 0, ops.softmax(ops.where(blind, 0, scores)))
    else:
        weights = ops.softmax(scores)
    return ops.swapaxes(ops.matmul(ops.dropout(weights, dropout) if dropout else weights, v), 1, 2)


class FeedForward(Module):
    """Two linear layers with an activation and dropout between them, as in each transformer layer.

    Args:
        d_model: number of features of input and output.
        dim_feedforward: number of features between the two layers.
        dropout: rate of dropout after the activation, in training.
        activation: name of an activation, or a function.
        bias: whether the layers have biases.

    >>> tuple(FeedForward(4, 16)(ops.ones((2, 3, 4))).shape)
    (2, 3, 4)
    """

    def __init__(
        self,
        d_model: int,
        dim_feedforward: int,
        dropout: float = 0.0,
        activation: str | Callable[..., Any] = "relu",
        bias: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, d_model=d_model, dim_feedforward=dim_feedforward)
        self.d_model, self.dim_feedforward, self.activation = d_model, dim_feedforward, activation
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self._function = find_activation(self, activation)

    def forward(self, x: Any) -> Tensor:
        return self.linear2(self.dropout(self._function(self.linear1(x))))


class TransformerLayer(Module):
    """Base class of encoder and decoder layers, whose parts each have a residual connection and a normalization."""

    has_memory = False

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[..., Any] = "relu",
        *,
        norm_first: bool = False,
        bias: bool = True,
        epsilon: float = 1e-5,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, d_model=d_model, num_heads=num_heads, dim_feedforward=dim_feedforward)
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(
                f"{type(self).__name__}: num_heads must divide d_model, got num_heads={num_heads}, d_model={d_model}"
            )
        check_rate(self, dropout, "dropout")
        self.d_model, self.num_heads, self.dim_feedforward = d_model, num_heads, dim_feedforward
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads, dropout, bias, dtype=dtype)
        self.feed_forward = FeedForward(d_model, dim_feedforward, dropout, activation, bias, dtype=dtype)
        self.norm1 = LayerNorm(d_model, epsilon, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, epsilon, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        if self.has_memory:
            self.cross_attention = MultiHeadAttention(d_model, num_heads, dropout, bias, dtype=dtype)
            self.norm3 = LayerNorm(d_model, epsilon, bias=bias, dtype=dtype)

    def residual(self, x: Any, norm: LayerNorm, part: Module, *args: Any, **options: Any) -> Any:
        """``x`` plus the output of ``part``, normalized before or after."""
        if self.norm_first:
            return ops.add(x, self.dropout(part(norm(x), *args, **options)))
        return norm(ops.add(x, self.dropout(part(x, *args, **options))))


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then a feed-forward part, each with a residual connection and a normalization.

    Args:
        d_model: number of features.
        num_heads: number of attention heads.
        dim_feedforward: number of hidden features of the feed-forward part.
        dropout: rate of dropout, in training.
        activation: activation of the feed-forward part, a name or a function.
        norm_first: normalize before each part instead of after its residual connection.
        bias: whether projections and normalizations have biases.
        epsilon: as in ``LayerNorm``.

    >>> tuple(TransformerEncoderLayer(8, 2, 16)(ops.ones((3, 5, 8))).shape)
    (3, 5, 8)
    """

    def forward(self, x: Any, *, mask: Any = None, is_causal: bool = False) -> Any:
        """Output of the layer; ``mask`` and ``is_causal`` are those of ``MultiHeadAttention``."""
        x = self.residual(x, self.norm1, self.attention, mask=mask, is_causal=is_causal)
        return self.residual(x, self.norm2, self.feed_forward)


class TransformerDecoderLayer(TransformerLayer):
    """Causal self-attention, attention to a memory, then a feed-forward part.

    Each part has a residual connection and a normalization. The arguments are those of ``TransformerEncoderLayer``.

    >>> tuple(TransformerDecoderLayer(8, 2, 16)(ops.ones((3, 5, 8)), ops.ones((3, 7, 8))).shape)
    (3, 5, 8)
    """

    has_memory = True

    def forward(self, x: Any, memory: Any, *, mask: Any = None, memory_mask: Any = None, is_causal: bool = True) -> Any:
        """Output of the layer; the masks are those of ``MultiHeadAttention``, ``memory_mask`` for the memory."""
        x = self.residual(x, self.norm1, self.attention, mask=mask, is_causal=is_causal)
        x = self.residual(x, self.norm2, self.cross_attention, memory, mask=memory_mask)
        return self.residual(x, self.norm3, self.feed_forward)


class TransformerStack(Module):
    """Base class of encoders and decoders: layers, and with ``norm_first`` a normalization after the last."""

    layer: type[TransformerLayer]

    def __init__(
        self, num_layers: int, d_model: int, num_heads: int, *args: Any, checkpoint: bool = False, **options: Any
    ) -> None:
        if num_layers < 0:
            raise ValueError(f"{type(self).__name__}: num_layers must be >= 0, got {num_layers}")
        self.num_layers, self.d_model, self.num_heads = num_layers, d_model, num_heads
        self.checkpoint = checkpoint
        self.layers = ModuleList(self.layer(d_model, num_heads, *args, **options) for _ in range(num_layers))
        kept = {name: options[name] for name in ("epsilon", "bias", "dtype") if name in options}
        self.norm = LayerNorm(d_model, **kept) if options.get("norm_first") else None

    def forward(self, x: Any, *args: Any, **options: Any) -> Any:
        for layer in self.layers:
            x = (transform.checkpoint(layer) if self.checkpoint else layer)(x, *args, **options)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(TransformerStack):
    """Stack of ``num_layers`` encoder layers; with ``norm_first``, a normalization follows.

    The other arguments, and those of a call, are those of ``TransformerEncoderLayer``.

    Args:
        checkpoint: recompute the intermediate values of each layer for the gradient, in place of storing them. This
            takes the memory of one layer and a third more time.

    >>> tuple(TransformerEncoder(2, 8, 2, 16)(ops.ones((3, 5, 8)), is_causal=True).shape)
    (3, 5, 8)
    """

    layer = TransformerEncoderLayer


class TransformerDecoder(TransformerStack):
    """Stack of ``num_layers`` decoder layers; with ``norm_first``, a normalization follows.

    The other arguments, and those of a call, are those of ``TransformerDecoderLayer``.

    Args:
        checkpoint: recompute the intermediate values of each layer for the gradient, in place of storing them. This
            takes the memory of one layer and a third more time.

    >>> tuple(TransformerDecoder(2, 8, 2, 16)(ops.ones((3, 5, 8)), ops.ones((3, 7, 8))).shape)
    (3, 5, 8)
    """

    layer = TransformerDecoderLayer
