"""Layers of decoders: rotary positions, causal attention with grouped heads and a cache, gated feed-forward parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from ember_ml import ops
from ember_ml.extend import activate, backend_of, current_backend, unwrap
from ember_ml.nn.modules.attention import attend
from ember_ml.nn.modules.checks import check_sizes, find_activation
from ember_ml.nn.modules.linear import Linear
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.normalization import RMSNorm
from ember_ml.nn.modules.shape import check_rate
from ember_ml.types import DTypeLike, Tensor


class RotaryEmbedding(Module):
    """Cosines and sines of the angles by which positions rotate pairs of features (Su et al., 2021).

    The result is for ``CausalSelfAttention``, whose layers all use the same. Pair ``i`` of ``n`` at position ``p`` is
    rotated by ``p * base ** (-i / n)``, or by what ``scaling`` makes of it for sequences that are longer than those of
    the training.

    Args:
        dim: number of features of a head.
        base: the greatest wavelength, divided by 2 pi.
        scaling: ``{"rope_type": name, ...}`` with the options of one of the types ``"default"``, ``"linear"``,
            ``"llama3"`` and ``"yarn"``, as in the ``config.json`` of published models.

    >>> cosine, sine = RotaryEmbedding(4)(ops.asarray([0, 1]))
    >>> tuple(cosine.shape), cosine.tolist()[0][0][0]
    ((1, 2, 1, 4), [1.0, 1.0, 1.0, 1.0])
    """

    def __init__(self, dim: int, base: float = 10000.0, scaling: Mapping[str, Any] | None = None) -> None:
        check_sizes(self, dim=dim)
        if dim % 2:
            raise ValueError(f"{type(self).__name__}: dim must be even, got {dim}")
        self.dim, self.base, self.scaling = dim, base, scaling
        kind, options = _scaling(self, scaling)
        # Numbers, so that a cast of the model to another dtype keeps their precision.
        self._frequencies, self._factor = _SCALINGS[kind](dim, base, options)

    def forward(self, positions: Any, dtype: DTypeLike = "float32") -> tuple[Any, Any]:
        """Cosines and signed sines of the shape (batch or 1, length, 1, dim).

        Args:
            positions: of the shape (length) or (batch, length).
            dtype: dtype of the result; the angles are computed in float32.
        """
        with _on_engine_of(positions):
            frequencies = ops.asarray(self._frequencies, dtype="float32", device=ops.get_device(positions))
        angles: Any = ops.multiply(ops.expand_dims(ops.cast(positions, "float32"), axis=-1), frequencies)
        cosine, sine = ops.cos(angles), ops.sin(angles)
        if self._factor != 1.0:
            cosine, sine = ops.multiply(cosine, self._factor), ops.multiply(sine, self._factor)
        pairs = ops.concat([cosine, cosine], axis=-1), ops.concat([ops.negative(sine), sine], axis=-1)
        batch = angles.shape[0] if len(angles.shape) == 3 else 1
        shape = (batch, angles.shape[-2], 1, self.dim)
        first, second = (ops.cast(ops.reshape(x, shape), dtype) for x in pairs)
        return first, second


def _on_engine_of(x: Any) -> AbstractContextManager[None]:
    """Context manager in which tensors are created on the engine of ``x``; on the active one for an array or a list."""
    return activate(backend_of(unwrap(x), host=False) or current_backend())


def _block(mask: Any, queries: slice, keys: slice) -> Any:
    """Part of a mask, whose axes may be 1, or absent, where it does not depend on the query or key."""
    if mask is None:
        return None
    shape = tuple(mask.shape)
    if shape[-1:] > (1,):
        mask = mask[..., keys]
    return mask[..., queries, :] if len(shape) > 1 and shape[-2] > 1 else mask


def _rotate(x: Any, rotation: tuple[Any, Any]) -> Any:
    """``x`` with its features rotated; feature ``i`` of the first half and of the second are a pair."""
    half = x.shape[-1] // 2
    swapped = ops.concat([x[..., half:], x[..., :half]], axis=-1)
    return ops.add(ops.multiply(x, rotation[0]), ops.multiply(swapped, rotation[1]))


def _scaling(layer: object, scaling: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any]]:
    """Type and options of a scaling, which must have those that the type needs."""
    if scaling is None:
        return "default", {}
    # The older name of the entry.
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    name = type(layer).__name__
    if kind not in _SCALINGS:
        raise ValueError(f"{name}: the rope_type of scaling must be one of {', '.join(_SCALINGS)}, got {kind!r}")
    for option in _NEEDED[kind]:
        value: Any = scaling.get(option)
        if type(value) not in (int, float) or value <= 0:
            raise ValueError(f"{name}: scaling of type {kind} must have a number {option} > 0, got {value!r}")
    if scaling.get("partial_rotary_factor", 1.0) != 1.0:
        raise ValueError(f"{name}: partial_rotary_factor must be 1, got {scaling['partial_rotary_factor']!r}")
    return kind, scaling


def _default(dim: int, base: float, options: Mapping[str, Any]) -> tuple[list[float], float]:
    return [base ** (-2 * i / dim) for i in range(dim // 2)], 1.0


def _linear(dim: int, base: float, options: Mapping[str, Any]) -> tuple[list[float], float]:
    return [speed / options["factor"] for speed in _default(dim, base, options)[0]], 1.0


def _llama3(dim: int, base: float, options: Mapping[str, Any]) -> tuple[list[float], float]:
    """Long wavelengths are scaled, short ones are kept, those between are interpolated."""
    factor, low, high = options["factor"], options["low_freq_factor"], options["high_freq_factor"]
    speeds = []
    for speed in _default(dim, base, options)[0]:
        turns = options["original_max_position_embeddings"] * speed / (2 * math.pi)
        kept = min(max((turns - low) / (high - low), 0.0), 1.0) if high != low else float(turns > low)
        speeds.append(kept * speed + (1 - kept) * speed / factor)
    return speeds, 1.0


def _yarn(dim: int, base: float, options: Mapping[str, Any]) -> tuple[list[float], float]:
    """Interpolation by the number of turns, and a factor of the cosines and sines (Peng et al., 2023)."""
    factor = options["factor"]

    def magnitude(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    def pair(turns: float) -> float:
        length = options["original_max_position_embeddings"]
        return dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    first, last = pair(options.get("beta_fast") or 32), pair(options.get("beta_slow") or 1)
    if options.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dim - 1)
    if first == last:
        last += 0.001
    speeds = []
    for i, speed in enumerate(_default(dim, base, options)[0]):
        scaled = min(max((i - first) / (last - first), 0.0), 1.0)
        speeds.append(scaled * speed / factor + (1 - scaled) * speed)
    scale = options.get("attention_factor")
    if scale is None:
        weight, of = options.get("mscale"), options.get("mscale_all_dim")
        scale = magnitude(weight) / magnitude(of) if weight and of else magnitude(1.0)
    return speeds, float(scale)


_SCALINGS = {"default": _default, "linear": _linear, "llama3": _llama3, "yarn": _yarn}
_NEEDED: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("factor", "original_max_position_embeddings"),
}


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy.

    >>> is_integer(8), is_integer([8])
    (True, False)
    """
    return hasattr(type(value), "__index__")


# Least number of queries that attend to the keys of their windows together.
_BLOCK = 1024


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
        window: number of positions that each attends to, the last of which is itself; by default all.
        scale: factor of the scores, by default ``1 / sqrt(head_dim)``.
        softcap: scores ``s`` become ``softcap * tanh(s / softcap)``; by default they are kept.
        norm_epsilon: normalize queries and keys with ``RMSNorm`` over the features of a head, with this epsilon.

    >>> layer = CausalSelfAttention(8, 4, num_kv_heads=2)
    >>> x = ops.ones((3, 5, 8))
    >>> tuple(layer(x).shape)
    (3, 5, 8)
    >>> y, cache = layer(x, cache=16)
    >>> y, cache = layer(x[:, :1], cache=cache, at=5)
    >>> tuple(y.shape), tuple(cache[0].shape)
    ((3, 1, 8), (3, 16, 2, 2))
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
        window: int | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        norm_epsilon: float | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, embed_dim=embed_dim, num_heads=num_heads)
        kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_sizes(self, num_kv_heads=kv_heads)
        if num_heads < 1 or kv_heads < 1 or num_heads % kv_heads or (head_dim is None and embed_dim % num_heads):
            raise ValueError(
                f"{type(self).__name__}: num_heads must divide embed_dim unless head_dim is given, and num_kv_heads "
                f"must divide num_heads, got embed_dim={embed_dim}, num_heads={num_heads}, num_kv_heads={kv_heads}"
            )
        check_rate(self, dropout, "dropout")
        size = embed_dim // num_heads if head_dim is None else head_dim
        check_sizes(self, head_dim=size)
        if window is not None and window < 1:
            raise ValueError(f"{type(self).__name__}: window must be >= 1, got {window}")
        if softcap is not None and softcap <= 0:
            raise ValueError(f"{type(self).__name__}: softcap must be > 0, got {softcap}")
        self.embed_dim, self.num_heads, self.num_kv_heads, self.head_dim = embed_dim, num_heads, num_kv_heads, head_dim
        self.dropout, self.window, self.scale, self.softcap = dropout, window, scale, softcap
        self.norm_epsilon = norm_epsilon
        self._kv_heads, self._size = kv_heads, size
        self.query = Linear(embed_dim, size * num_heads, bias, dtype=dtype)
        self.key = Linear(embed_dim, size * kv_heads, bias, dtype=dtype)
        self.value = Linear(embed_dim, size * kv_heads, bias, dtype=dtype)
        self.out = Linear(size * num_heads, embed_dim, bias if out_bias is None else out_bias, dtype=dtype)
        self.query_norm = None if norm_epsilon is None else RMSNorm(size, norm_epsilon, dtype=dtype)
        self.key_norm = None if norm_epsilon is None else RMSNorm(size, norm_epsilon, dtype=dtype)

    def forward(
        self,
        x: Any,
        *,
        mask: Any = None,
        rotation: tuple[Any, Any] | None = None,
        cache: Any = None,
        at: Any = None,
    ) -> Any:
        """Output of the layer; with ``cache``, also the keys and values for the next call.

        Args:
            mask: true where a query may attend to a key, besides being causal; broadcasts to (batch, heads, queries,
                keys). With a cache, the keys are its positions.
            rotation: result of ``RotaryEmbedding`` for the positions of ``x``.
            cache: the number of positions of a new cache, or the cache that the last call returned.
            at: position in the cache of ``x``, which then has the length 1. An integer is known when the
                program is compiled; an integer tensor is not, so that one program computes all positions.
        """
        if len(ops.shape(x)) != 3:
            raise ValueError(
                f"{type(self).__name__}: x must have shape (batch, length, features), got {list(ops.shape(x))}"
            )
        q = self._heads(self.query(x), self.num_heads)
        k = self._heads(self.key(x), self._kv_heads)
        v = self._heads(self.value(x), self._kv_heads)
        if self.query_norm is not None and self.key_norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        if rotation is not None:
            q, k = _rotate(q, rotation), _rotate(k, rotation)
        with _on_engine_of(q):
            if cache is None or is_integer(cache):
                mixed = self._attend_before(q, k, v, mask)
                stored = None if cache is None else tuple(self._padded(x, operator.index(cache)) for x in (k, v))
            else:
                mixed, stored = self._step(q, k, v, cache, at, mask)
        batch, length = mixed.shape[:2]
        y = self.out(ops.reshape(mixed, (batch, length, self.num_heads * self._size)))
        return y if cache is None else (y, stored)

    def _heads(self, x: Any, count: int) -> Any:
        batch, length, _ = x.shape
        return ops.reshape(x, (batch, length, count, self._size))

    def _attend(self, q: Any, k: Any, v: Any, mask: Any, *, is_causal: bool = False) -> Any:
        dropout = self.dropout if self.training else 0.0
        if dropout or self.softcap is not None:
            return attend(q, k, v, mask, dropout, is_causal=is_causal, scale=self.scale, softcap=self.softcap)
        return ops.dot_product_attention(q, k, v, mask, scale=self.scale, is_causal=is_causal)

    def _attend_before(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
        """Causal attention to the keys of the window, in blocks of queries, so that keys before it take no time."""
        length, window = q.shape[1], self.window
        if window is None or length <= window:
            return self._attend(q, k, v, mask, is_causal=True)
        mask = None if mask is None else ops.asarray(mask)
        blocks, size = [], max(window, _BLOCK)
        for start in range(0, length, size):
            end, first = min(start + size, length), max(0, start + 1 - window)
            part = q[:, start:end], k[:, first:end], v[:, first:end]
            visible = _block(mask, slice(start, end), slice(first, end))
            if end <= window:
                blocks.append(self._attend(*part, visible, is_causal=True))
                continue
            on = ops.get_device(q)
            keys = ops.arange(first, end, dtype="int32", device=on)
            queries = ops.expand_dims(ops.arange(start, end, dtype="int32", device=on), axis=-1)
            recent = ops.logical_and(ops.less_equal(keys, queries), ops.greater(keys, ops.subtract(queries, window)))
            blocks.append(self._attend(*part, recent if visible is None else ops.logical_and(visible, recent)))
        return blocks[0] if len(blocks) == 1 else ops.concat(blocks, axis=1)

    def _padded(self, x: Any, size: int) -> Any:
        if x.shape[1] > size:
            raise ValueError(f"{type(self).__name__}: cache must be >= the length of x, got {size} and {x.shape[1]}")
        return ops.pad(x, ((0, 0), (0, size - x.shape[1]), (0, 0), (0, 0)))

    def _step(self, q: Any, k: Any, v: Any, cache: Any, at: Any, mask: Any) -> tuple[Any, tuple[Any, Any]]:
        """Attention of one position, which is added to the cache."""
        keys, values = cache
        size = keys.shape[1]
        if at is None or q.shape[1] != 1:
            raise ValueError(
                f"{type(self).__name__}: x must have the length 1, and at must be given, for a cache with earlier "
                f"positions, got length {q.shape[1]} and at={at}"
            )
        if isinstance(at, int):
            if not 0 <= at < size:
                raise ValueError(f"{type(self).__name__}: at must be in the cache of {size} positions, got {at}")
            keys, values = (ops.slice_update(old, (0, at, 0, 0), new) for old, new in ((keys, k), (values, v)))
            first = 0 if self.window is None else max(0, at + 1 - self.window)
            visible = None if mask is None else mask[..., first : at + 1]
            return self._attend(q, keys[:, first : at + 1], values[:, first : at + 1], visible), (keys, values)
        places = ops.arange(size, dtype="int64", device=ops.get_device(keys))
        is_here = ops.reshape(ops.equal(places, at), (1, size, 1, 1))
        keys, values = ops.where(is_here, k, keys), ops.where(is_here, v, values)
        visible = ops.less_equal(places, at)
        if self.window is not None and self.window < size:
            visible = ops.logical_and(visible, ops.greater(places, ops.subtract(at, self.window)))
        visible = ops.reshape(visible, (1, 1, 1, size))
        if mask is not None:
            visible = ops.logical_and(visible, mask)
        return self._attend(q, keys, values, visible), (keys, values)


class GatedFeedForward(Module):
    """``down(activation(gate(x)) * up(x))``, the feed-forward part of most newer decoders (Shazeer, 2020).

    Args:
        d_model: number of features of input and output.
        dim_feedforward: number of features between.
        activation: name of an activation, or a function; ``"silu"`` makes it SwiGLU.
        bias: whether the layers have biases.

    >>> tuple(GatedFeedForward(4, 16)(ops.ones((2, 3, 4))).shape)
    (2, 3, 4)
    """

    def __init__(
        self,
        d_model: int,
        dim_feedforward: int,
        activation: str | Callable[..., Any] = "silu",
        bias: bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, d_model=d_model, dim_feedforward=dim_feedforward)
        self.d_model, self.dim_feedforward, self.activation = d_model, dim_feedforward, activation
        self.gate = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.up = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.down = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self._function = find_activation(self, activation)

    def forward(self, x: Any) -> Tensor:
        return self.down(ops.multiply(self._function(self.gate(x)), self.up(x)))
