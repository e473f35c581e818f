"""Layers of decoders: rotary positions, and causal attention with grouped heads and a cache of keys and values."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn.modules.attention import attend_with_dropout
from ember_ml.nn.modules.checks import check_sizes
from ember_ml.nn.modules.linear import Linear
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.shape import check_rate
from ember_ml.types import DTypeLike, Tensor


class CausalSelfAttention(Module):
    """Attention of each position to itself and those before it, with grouped heads, rotary positions and a cache.

    Args:
        embed_dim: number of features of input and output.
        num_heads: number of heads of the queries.
        num_kv_heads: number of heads of keys and values, which divides ``num_heads``; by default the same.
        head_dim: number of features of a head, by default ``embed_dim // num_heads``.
        dropout: rate of dropout of the attention weights, in training.
        bias: whether the projections of queries, keys and values have biases.
        out_bias: whether the projection of the output has a bias, by default as ``bias``.
        scale: factor of the scores, by default ``1 / sqrt(head_dim)``.

    >>> layer = CausalSelfAttention(8, 4, num_kv_heads=2)
    >>> tuple(layer(ops.ones((3, 5, 8))).shape)
    (3, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        out_bias: bool | None = None,
        scale: float | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, embed_dim=embed_dim, num_heads=num_heads)
        kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads < 1 or kv_heads < 1 or num_heads % kv_heads or (head_dim is None and embed_dim % num_heads):
            raise ValueError(
                f"{type(self).__name__}: num_heads must divide embed_dim unless head_dim is given, and num_kv_heads "
                f"must divide num_heads, got embed_dim={embed_dim}, num_heads={num_heads}, num_kv_heads={kv_heads}"
            )
        check_rate(self, dropout, "dropout")
        size = embed_dim // num_heads if head_dim is None else head_dim
        check_sizes(self, head_dim=size)
        self.embed_dim, self.num_heads, self.num_kv_heads, self.head_dim = embed_dim, num_heads, num_kv_heads, head_dim
        self.dropout, self.scale = dropout, scale
        self._kv_heads, self._size = kv_heads, size
        self.query = Linear(embed_dim, size * num_heads, bias, dtype=dtype)
        self.key = Linear(embed_dim, size * kv_heads, bias, dtype=dtype)
        self.value = Linear(embed_dim, size * kv_heads, bias, dtype=dtype)
        self.out = Linear(size * num_heads, embed_dim, bias if out_bias is None else out_bias, dtype=dtype)

    def forward(self, x: Any, *, mask: Any = None) -> Tensor:
        """Output of the layer.

        Args:
            mask: true where a query may attend to a key; broadcasts to (batch, heads, queries, keys).
        """
        if len(ops.shape(x)) != 3:
            raise ValueError(
                f"{type(self).__name__}: x must have shape (batch, length, features), got {list(ops.shape(x))}"
            )
        q = self._heads(self.query(x), self.num_heads)
        k = self._heads(self.key(x), self._kv_heads)
        v = self._heads(self.value(x), self._kv_heads)
        if self.dropout and self.training:
            mixed = attend_with_dropout(q, k, v, mask, self.dropout, is_causal=True, scale=self.scale)
        else:
            mixed = ops.dot_product_attention(q, k, v, mask, scale=self.scale, is_causal=True)
        batch, length = mixed.shape[:2]
        return self.out(ops.reshape(mixed, (batch, length, self.num_heads * self._size)))  # type: ignore[no-any-return]

    def _heads(self, x: Any, count: int) -> Any:
        batch, length, _ = x.shape
        return ops.reshape(x, (batch, length, count, self._size))
