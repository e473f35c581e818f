"""The cost of expensive operations: ``ember_ml.ops`` against the best hand-written call of each engine.

Forty-five operations at realistic sizes, in float32, on every installed engine, on one thread. The hand-written call is
the equivalent function of the engine if there is one, else the fastest few lines that a user of the engine would write;
the JSON report contains its source. On MLX the result is evaluated. On JAX the hand-written call is the quicker of the
statement as it is and of the same compiled by ``jax.jit`` beforehand; a few turns decide which of them is measured.

Calls take turns: native, ember_ml, native again. A figure is the median over all turns, a ratio the median of the
ratios in each round. On NumPy, ``conv`` and ``dot_product_attention`` are also measured against a naive version and
against torch.

The targets: per engine, a geometric mean of at most 1.03 times the hand-written call, and no operation over 1.15 times.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from operator import truediv
from typing import Any, NamedTuple

from measuring import (
    AGAIN,
    EMBER,
    NATIVE,
    Caller,
    Engine,
    SkippedError,
    Stage,
    add_options,
    agree,
    bars,
    finish_bars,
    parsed,
    quicker,
    save_figure,
    setting,
    skipped_lines,
    table,
    times,
    trust,
    turns,
    working,
    write,
)

TARGET_MEAN, TARGET_EACH = 1.03, 1.15

# Seconds in a turn.
TURN = 4e-3

REPEATS, QUICK = 21, 5

NAIVE, TORCH = "naive NumPy", "torch on the CPU"


class Case(NamedTuple):
    """Row of the panel: the operation, its size in words, its operands, the call, and a hand-written call per engine.

    ``look`` selects the part of the result to compare, if the sign or order of the rest is not unique.
    """

    name: str
    size: str
    operands: dict[str, Callable[[Any], Any]]
    ember: str
    numpy: str
    torch: str
    mlx: str
    jax: str
    look: Callable[[Any], Any] = lambda result: result
    tolerance: float = 1e-3
    naive: str = ""


def normal(*shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.standard_normal(shape, "float32")


def numbers(top: int, *shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.integers(0, top, shape)


def definite(size: int) -> Callable[[Any], Any]:
    """A symmetric matrix whose eigenvalues are positive."""

    def make(rng: Any) -> Any:
        half = rng.standard_normal((size, size), "float32")
        matrix = half @ half.T / size
        matrix.flat[:: size + 1] += 1
        return matrix

    return make


def rising(size: int) -> Callable[[Any], Any]:
    return lambda rng: abs(rng.standard_normal(size, "float32")).cumsum() / size


def signals(*shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.standard_normal(shape, "float32") + 1j * rng.standard_normal(shape, "float32")


def first(result: Any) -> Any:
    return result[0]


def second(result: Any) -> Any:
    return result[1]


def upper(result: Any) -> Any:
    """Absolute values of the triangular factor, since the signs of its rows are not unique."""
    return abs(result[1])


X = {"x": normal(1000, 1000)}
LINE = {"x": normal(1_000_000)}
LINES = {"x": normal(1_000_000), "y": normal(1_000_000)}
ROWS = {"x": normal(4096, 768), "scale": normal(768), "offset": normal(768)}
HEADS = {name: normal(4, 256, 8, 64) for name in "qkv"}
IMAGES = {"x": normal(8, 34, 34, 32), "kernel": normal(3, 3, 32, 64)}
BAGS = {"x": normal(10_000, 64), "ids": numbers(10_000, 30_000), "updates": normal(30_000, 64)}

PANEL = [
    Case(
        "matmul", "512 x 512", {"a": normal(512, 512), "b": normal(512, 512)},
        "ops.matmul(a, b)", "np.matmul(a, b)", "torch.matmul(a, b)", "mx.matmul(a, b)", "jnp.matmul(a, b)",
    ),
    Case(
        "matmul_batched", "32 of 128 x 128", {"a": normal(32, 128, 128), "b": normal(32, 128, 128)},
        "ops.matmul(a, b)", "np.matmul(a, b)", "torch.matmul(a, b)", "mx.matmul(a, b)", "jnp.matmul(a, b)",
    ),
    Case(
        "einsum", "bqhd,bkhd->bhqk", HEADS,
        'ops.einsum("bqhd,bkhd->bhqk", q, k)',
        "np.matmul(q.transpose(0, 2, 1, 3), k.transpose(0, 2, 3, 1))",
        'torch.einsum("bqhd,bkhd->bhqk", q, k)',
        'mx.einsum("bqhd,bkhd->bhqk", q, k)',
        'jnp.einsum("bqhd,bkhd->bhqk", q, k)',
    ),
    Case(
        "conv", "8 of 34 x 34 x 32, 3 x 3 to 64", IMAGES,
        "ops.conv(x, kernel)",
        "convolved(np, x, kernel)",
        "F.conv2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1)).permute(0, 2, 3, 1)",
        "mx.conv2d(x, kernel.transpose(3, 0, 1, 2))",
        'lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))',
        naive="naively_convolved(np, x, kernel)",
    ),
    Case(
        "dot_product_attention", "4 x 256 x 8 x 64", HEADS,
        "ops.dot_product_attention(q, k, v)",
        "attention(np, q, k, v)",
        "F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)",
        "mx.fast.scaled_dot_product_attention("
        "q.swapaxes(1, 2), k.swapaxes(1, 2), v.swapaxes(1, 2), scale=0.125).swapaxes(1, 2)",
        "jax.nn.dot_product_attention(q, k, v)",
        naive="naive_attention(np, q, k, v)",
    ),
    Case(
        "softmax", "1000 x 1000", X,
        "ops.softmax(x)", "softmax(np, x)", "torch.softmax(x, -1)", "mx.softmax(x, -1)", "jax.nn.softmax(x)",
    ),
    Case(
        "log_softmax", "1000 x 1000", X,
        "ops.log_softmax(x)", "log_softmax(np, x)", "torch.log_softmax(x, -1)",
        "x - mx.logsumexp(x, -1, keepdims=True)",
        "jax.nn.log_softmax(x)",
    ),
    Case(
        "gelu", "1,000,000", LINE,
        "ops.gelu(x)", "gelu(np, erf, x)", "F.gelu(x)", "nn.gelu(x)", "jax.nn.gelu(x, approximate=False)",
    ),
    Case(
        "layer_normalization", "4096 x 768", ROWS,
        "ops.layer_normalization(x, scale, offset)",
        "layer_normalized(np, x, scale, offset)",
        "F.layer_norm(x, (768,), scale, offset)",
        "mx.fast.layer_norm(x, scale, offset, 1e-5)",
        "jax.nn.standardize(x, epsilon=1e-5) * scale + offset",
    ),
    Case(
        "rms_normalization", "4096 x 768", ROWS,
        "ops.rms_normalization(x, scale)",
        "rms_normalized(np, x, scale)",
        "F.rms_norm(x, (768,), scale, 1e-5)",
        "mx.fast.rms_norm(x, scale, 1e-5)",
        "x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale",
    ),
    Case(
        "svd", "192 x 128", {"a": normal(192, 128)},
        "ops.svd(a, full_matrices=False)",
        "np.linalg.svd(a, full_matrices=False)",
        "torch.linalg.svd(a, full_matrices=False)",
        "mx.linalg.svd(a, stream=mx.cpu)",
        "jnp.linalg.svd(a, full_matrices=False)",
        look=second,
    ),
    Case(
        "eigh", "192 x 192", {"a": definite(192)},
        "ops.eigh(a)", "np.linalg.eigh(a)", "torch.linalg.eigh(a)", "mx.linalg.eigh(a, stream=mx.cpu)",
        "jnp.linalg.eigh(a)",
        look=first,
    ),
    Case(
        "cholesky", "512 x 512", {"a": definite(512)},
        "ops.cholesky(a)", "np.linalg.cholesky(a)", "torch.linalg.cholesky(a)",
        "mx.linalg.cholesky(a, stream=mx.cpu)",
        "jnp.linalg.cholesky(a)",
    ),
    Case(
        "solve", "512 x 512, 16 right sides", {"a": definite(512), "b": normal(512, 16)},
        "ops.solve(a, b)", "np.linalg.solve(a, b)", "torch.linalg.solve(a, b)",
        "mx.linalg.solve(a, b, stream=mx.cpu)",
        "jnp.linalg.solve(a, b)",
    ),
    Case(
        "qr", "256 x 256", {"a": normal(256, 256)},
        "ops.qr(a)", "np.linalg.qr(a)", "torch.linalg.qr(a)", "mx.linalg.qr(a, stream=mx.cpu)", "jnp.linalg.qr(a)",
        look=upper,
    ),
    Case(
        "fft", "64 of 4096, complex", {"x": signals(64, 4096)},
        "ops.fft.fft(x)", "np.fft.fft(x)", "torch.fft.fft(x)", "mx.fft.fft(x)", "jnp.fft.fft(x)",
    ),
    Case(
        "rfft", "64 of 8192", {"x": normal(64, 8192)},
        "ops.fft.rfft(x)", "np.fft.rfft(x)", "torch.fft.rfft(x)", "mx.fft.rfft(x)", "jnp.fft.rfft(x)",
    ),
    Case(
        "sort", "1000 x 1000", X,
        "ops.sort(x)", "np.sort(x)", "torch.sort(x).values", "mx.sort(x)", "jnp.sort(x)",
    ),
    Case(
        "argsort", "1000 x 1000, stable", X,
        "ops.argsort(x)", 'np.argsort(x, kind="stable")', "torch.argsort(x, stable=True)", "mx.argsort(x)",
        "jnp.argsort(x)",
    ),
    Case(
        "top_k", "10 of each 1000", X,
        "ops.top_k(x, 10)", "largest(np, x, 10)", "torch.topk(x, 10)", "largest(mx, x, 10)", "lax.top_k(x, 10)",
        look=first,
    ),
    Case(
        "percentile", "1000 x 1000, 90 %", X,
        "ops.percentile(x, 90, axis=-1)", "np.percentile(x, 90, axis=-1)", "torch.quantile(x, 0.9, dim=-1)",
        "quantile(mx.sort(x), 0.9)",
        "jnp.percentile(x, 90, axis=-1)",
    ),
    Case(
        "median", "1000 x 1000", X,
        "ops.median(x, axis=-1)", "np.median(x, axis=-1)", "quantile(torch.sort(x).values, 0.5)",
        "quantile(mx.sort(x), 0.5)",
        "jnp.median(x, axis=-1)",
    ),
    Case(
        "cumsum", "1000 x 1000", X,
        "ops.cumsum(x, axis=-1)", "np.cumsum(x, axis=-1)", "torch.cumsum(x, -1)", "mx.cumsum(x, -1)",
        "jnp.cumsum(x, -1)",
    ),
    Case(
        "sum", "1000 x 1000 over rows", X,
        "ops.sum(x, axis=-1)", "np.sum(x, axis=-1)", "torch.sum(x, -1)", "mx.sum(x, -1)", "jnp.sum(x, -1)",
    ),
    Case(
        "mean", "1000 x 1000 over columns", X,
        "ops.mean(x, axis=0)", "np.mean(x, axis=0)", "torch.mean(x, 0)", "mx.mean(x, 0)", "jnp.mean(x, 0)",
    ),
    Case(
        "var", "1000 x 1000 over rows", X,
        "ops.var(x, axis=-1)", "np.var(x, axis=-1)", "torch.var(x, -1, correction=0)", "mx.var(x, -1)",
        "jnp.var(x, -1)",
    ),
    Case(
        "max", "1000 x 1000 over rows", X,
        "ops.max(x, axis=-1)", "np.max(x, axis=-1)", "torch.amax(x, -1)", "mx.max(x, -1)", "jnp.max(x, -1)",
    ),
    Case(
        "where", "1,000,000", {**LINES, "mask": lambda rng: rng.random(1_000_000) < 0.5},
        "ops.where(mask, x, y)", "np.where(mask, x, y)", "torch.where(mask, x, y)", "mx.where(mask, x, y)",
        "jnp.where(mask, x, y)",
    ),
    Case(
        "take", "500,000 of 1,000,000", {**LINE, "ids": numbers(1_000_000, 500_000)},
        "ops.take(x, ids, axis=0)", "np.take(x, ids, axis=0)", "torch.index_select(x, 0, ids)",
        "mx.take(x, ids, 0)",
        "jnp.take(x, ids, 0)",
    ),
    Case(
        "scatter_add", "30,000 rows of 64 to 10,000", BAGS,
        "ops.scatter_add(x, ids, updates)", "scattered(np, x, ids, updates)", "torch.index_add(x, 0, ids, updates)",
        "x.at[ids].add(updates)",
        "x.at[ids].add(updates)",
    ),
    Case(
        "segment_sum", "30,000 rows of 64 to 10,000", BAGS,
        "ops.segment_sum(updates, ids, 10_000)",
        "scattered(np, np.zeros((10_000, 64), np.float32), ids, updates)",
        "torch.index_add(torch.zeros(10_000, 64), 0, ids, updates)",
        "mx.zeros((10_000, 64)).at[ids].add(updates)",
        "jax.ops.segment_sum(updates, ids, 10_000)",
    ),
    Case(
        "concatenate", "4 of 500 x 1000", {name: normal(500, 1000) for name in "abcd"},
        "ops.concatenate([a, b, c, d], axis=1)", "np.concatenate([a, b, c, d], axis=1)",
        "torch.cat([a, b, c, d], 1)", "mx.concatenate([a, b, c, d], 1)", "jnp.concatenate([a, b, c, d], 1)",
    ),
    Case(
        "transpose", "2000 x 1000, flattened", {"x": normal(2000, 1000)},
        "ops.reshape(ops.transpose(x), (-1,))", "x.T.reshape(-1)", "x.T.reshape(-1)", "x.T.reshape(-1)",
        "x.T.reshape(-1)",
    ),
    Case("exp", "1,000,000", LINE, "ops.exp(x)", "np.exp(x)", "torch.exp(x)", "mx.exp(x)", "jnp.exp(x)"),
    Case("tanh", "1,000,000", LINE, "ops.tanh(x)", "np.tanh(x)", "torch.tanh(x)", "mx.tanh(x)", "jnp.tanh(x)"),
    Case("erf", "1,000,000", LINE, "ops.erf(x)", "erf(x)", "torch.erf(x)", "mx.erf(x)", "lax.erf(x)"),
    Case(
        "add", "1,000,000", LINES,
        "ops.add(x, y)", "np.add(x, y)", "torch.add(x, y)", "mx.add(x, y)", "jnp.add(x, y)",
    ),
    Case(
        "multiply", "1,000,000", LINES,
        "ops.multiply(x, y)", "np.multiply(x, y)", "torch.mul(x, y)", "mx.multiply(x, y)", "jnp.multiply(x, y)",
    ),
    Case(
        "cdist", "1000 to 1000 points of 64", {"a": normal(1000, 64), "b": normal(1000, 64)},
        "ops.cdist(a, b)", "distances(np, a, b)", "torch.cdist(a, b)", "distances(mx, a, b)", "distances(jnp, a, b)",
    ),
    Case(
        "pad", "64 of 128 x 128 by 2", {"x": normal(64, 128, 128)},
        "ops.pad(x, ((0, 0), (2, 2), (2, 2)))", "np.pad(x, ((0, 0), (2, 2), (2, 2)))", "F.pad(x, (2, 2, 2, 2))",
        "mx.pad(x, ((0, 0), (2, 2), (2, 2)))",
        "jnp.pad(x, ((0, 0), (2, 2), (2, 2)))",
    ),
    Case(
        "one_hot", "20,000 of 100", {"ids": numbers(100, 20_000)},
        "ops.one_hot(ids, 100)", "ones_at(np, ids, 100)", "torch.zeros(len(ids), 100).scatter_(1, ids[:, None], 1.0)",
        "(ids[:, None] == mx.arange(100)).astype(mx.float32)",
        "jax.nn.one_hot(ids, 100, dtype=jnp.float32)",
    ),
    Case(
        "unique", "200,000 integers, 1000 of them", {"x": numbers(1000, 200_000)},
        "ops.unique(x)", "np.unique(x)", "torch.unique(x)", "mx.array(np.unique(np.array(x)))", "jnp.unique(x)",
    ),
    Case(
        "searchsorted", "100,000 among 100,000", {"a": rising(100_000), "x": rising(100_000)},
        "ops.searchsorted(a, x)", "np.searchsorted(a, x)", "torch.searchsorted(a, x)",
        "searched(mx, a, x)",
        "jnp.searchsorted(a, x)",
    ),
    Case(
        "embedding_lookup", "8192 of 30,000 rows of 256", {"x": normal(30_000, 256), "ids": numbers(30_000, 16, 512)},
        "ops.embedding_lookup(x, ids)", "np.take(x, ids, axis=0)", "F.embedding(ids, x)", "x[ids]", "x[ids]",
    ),
    Case(
        "max_pool", "16 of 64 x 64 x 32 by 2", {"x": normal(16, 64, 64, 32)},
        "ops.max_pool(x, 2)", "pooled(np, x)",
        "F.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)", "pooled(mx, x)",
        'lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")',
    ),
]  # fmt: skip


def softmax(np: Any, x: Any) -> Any:
    result = np.exp(x - x.max(-1, keepdims=True))
    result /= result.sum(-1, keepdims=True)
    return result


def log_softmax(np: Any, x: Any) -> Any:
    result = x - x.max(-1, keepdims=True)
    result -= np.log(np.exp(result).sum(-1, keepdims=True))
    return result


def gelu(np: Any, erf: Any, x: Any) -> Any:
    result = erf(x * np.float32(0.7071067811865476))
    result += 1
    result *= x
    result *= np.float32(0.5)
    return result


def layer_normalized(np: Any, x: Any, scale: Any, offset: Any) -> Any:
    result = x - x.mean(-1, keepdims=True)
    variance = np.vecdot(result, result) / np.float32(x.shape[-1])
    result *= (1 / np.sqrt(variance + np.float32(1e-5)))[:, None]
    result *= scale
    result += offset
    return result


def rms_normalized(np: Any, x: Any, scale: Any) -> Any:
    square = np.vecdot(x, x) / np.float32(x.shape[-1])
    result = x * (1 / np.sqrt(square + np.float32(1e-5)))[:, None]
    result *= scale
    return result


def convolved(np: Any, x: Any, kernel: Any) -> Any:
    """Every window as a row, times the kernel as a matrix."""
    high, wide = kernel.shape[:2]
    windows = np.lib.stride_tricks.sliding_window_view(x, (high, wide), (1, 2)).transpose(0, 1, 2, 4, 5, 3)
    rows = windows.reshape(-1, high * wide * x.shape[-1])
    return (rows @ kernel.reshape(-1, kernel.shape[-1])).reshape(*windows.shape[:3], -1)


def naively_convolved(np: Any, x: Any, kernel: Any) -> Any:
    """Window by window."""
    high, wide = kernel.shape[:2]
    rows, columns = x.shape[1] - high + 1, x.shape[2] - wide + 1
    result = np.empty((len(x), rows, columns, kernel.shape[-1]), x.dtype)
    for i in range(rows):
        for j in range(columns):
            result[:, i, j] = np.tensordot(x[:, i : i + high, j : j + wide], kernel, 3)
    return result


def attention(np: Any, q: Any, k: Any, v: Any) -> Any:
    scores = np.matmul(q.transpose(0, 2, 1, 3) * np.float32(0.125), k.transpose(0, 2, 3, 1))
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return np.matmul(scores, v.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)


def naive_attention(np: Any, q: Any, k: Any, v: Any) -> Any:
    """Head by head, query by query."""
    result = np.empty_like(q)
    for b in range(q.shape[0]):
        for h in range(q.shape[2]):
            for i in range(q.shape[1]):
                weights = np.exp(k[b, :, h] @ q[b, i, h] * np.float32(0.125))
                result[b, i, h] = weights / weights.sum() @ v[b, :, h]
    return result


def largest(np: Any, x: Any, count: int) -> Any:
    places = np.argpartition(-x, count - 1, axis=-1)[:, :count]
    values = np.take_along_axis(x, places, axis=-1)
    order = np.argsort(-values, axis=-1)
    return np.take_along_axis(values, order, axis=-1), np.take_along_axis(places, order, axis=-1)


def quantile(ordered: Any, part: float) -> Any:
    place = part * (ordered.shape[-1] - 1)
    low = int(place)
    return ordered[..., low] + (ordered[..., low + 1] - ordered[..., low]) * (place - low)


def scattered(np: Any, x: Any, ids: Any, updates: Any) -> Any:
    """Sort the updates by index, so that those of one index are one sum."""
    order = np.argsort(ids, kind="stable")
    places = ids[order]
    starts = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
    result = x.copy()
    result[places[starts]] += np.add.reduceat(updates[order], starts)
    return result


def searched(mx: Any, a: Any, x: Any) -> Any:
    """Binary search on the engine. A search on the host is faster, but cannot be lazy or compiled."""
    place = mx.zeros(x.shape, mx.uint32)
    for bit in reversed(range(a.size.bit_length())):
        further = place + (1 << bit)
        behind = mx.logical_and(further <= a.size, mx.take(a, mx.minimum(further, a.size) - 1) < x)
        place = mx.where(behind, further, place)
    return place.astype(mx.int64)


def distances(np: Any, a: Any, b: Any) -> Any:
    squares = (a * a).sum(-1)[:, None] + (b * b).sum(-1) - 2 * (a @ b.T)
    return np.sqrt(np.maximum(squares, 0))


def ones_at(np: Any, ids: Any, count: int) -> Any:
    result = np.zeros((len(ids), count), np.float32)
    result[np.arange(len(ids)), ids] = 1
    return result


def pooled(np: Any, x: Any) -> Any:
    pairs = np.maximum(x[:, ::2], x[:, 1::2])
    return np.maximum(pairs[:, :, ::2], pairs[:, :, 1::2])


BY_HAND = {
    made.__name__: made
    for made in (
        softmax, log_softmax, gelu, layer_normalized, rms_normalized, convolved, naively_convolved, attention,
        naive_attention, largest, quantile, scattered, searched, distances, ones_at, pooled,
    )
}  # fmt: skip


class Bench(Engine):
    """An engine with the names that its hand-written calls use."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.names: dict[str, Any] = {**BY_HAND, "np": import_module("numpy")}
        if name == "numpy" and find_spec("scipy"):
            # NumPy has no error function; SciPy has one.
            self.names["erf"] = import_module("scipy.special").erf
        if name == "torch":
            self.names |= {"torch": self.module, "F": import_module("torch.nn.functional")}
        if name == "mlx":
            self.names |= {"mx": self.module, "nn": import_module("mlx.nn")}
        if name == "jax":
            self.names |= {"jnp": self.module, "jax": import_module("jax"), "lax": import_module("jax.lax")}

    def operands(self, case: Case) -> dict[str, Any]:
        rng = import_module("numpy").random.default_rng(0)
        made = {name: make(rng) for name, make in case.operands.items()}
        if self.name == "torch":
            made = {name: self.module.from_numpy(value) for name, value in made.items()}
        if self.name == "mlx":
            made = {name: self.module.array(value) for name, value in made.items()}
            self.module.eval(list(made.values()))
        if self.name == "jax":
            made = {name: self.module.asarray(value) for name, value in made.items()}
        return made


def _native(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    statement = getattr(case, engine.name)
    if "erf(" in statement and engine.name == "numpy" and "erf" not in engine.names:
        raise SkippedError("NumPy has no error function, and scipy is not installed")
    caller = Caller(statement, engine.names)
    if engine.name == "jax":
        given = ", ".join(operands)
        compiled = engine.names["jax"].jit(eval(f"lambda {given}: {statement}", engine.names))
        caller = quicker([caller, Caller(f"compiled({given})", {"compiled": compiled})], operands, engine.finish, TURN)
    return caller


def _ember(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    import ember_ml

    name = case.name.partition("_batched")[0]
    if not hasattr(ember_ml.ops, name):
        raise SkippedError(f"ember_ml.ops has no {name}")
    ember_ml.set_backend(engine.name)
    return Caller(case.ember, {"ops": ember_ml.ops})


def _naive(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    return Caller(case.naive, engine.names)


def _torch(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    if find_spec("torch") is None:
        raise SkippedError("torch is not installed")
    there = Bench("torch")
    return Caller(case.torch, {**there.names, **there.operands(case)})


class Plan(NamedTuple):
    """What to measure, and how thoroughly."""

    engines: list[str]
    cases: list[Case]
    repeats: int
    turn: float


def rows(plan: Plan) -> Iterator[dict[str, Any]]:
    """One record per engine and case: the time of every way in microseconds, or why there is none."""
    for name in plan.engines:
        engine = Bench(name)
        for case in plan.cases:
            yield _row(engine, case, plan)


def _row(engine: Bench, case: Case, plan: Plan) -> dict[str, Any]:
    operands = engine.operands(case)
    ways = {NATIVE: _native, EMBER: _ember, AGAIN: _native}
    if case.naive and engine.name == "numpy":
        ways |= {NAIVE: _naive, TORCH: _torch}
    made = {way: partial(caller_of, engine, case, operands) for way, caller_of in ways.items()}
    # On JAX it is chosen by measuring, which is done once.
    made[NATIVE] = made[AGAIN] = cache(made[NATIVE])
    results: list[Any] = []

    def agrees(found: Any) -> bool:
        results.append(case.look(found))
        return _agree(results[-1], results[0], case.tolerance)

    callers, skipped = working(made, operands, agrees)
    timers = {way: caller.timer(operands, engine.finish) for way, caller in callers.items()}
    found = turns(timers, plan.repeats, plan.turn) if {NATIVE, EMBER} <= set(timers) else {}
    us = {way: statistics.median(some) * 1e6 for way, some in found.items()}
    ratios = {way: _ratio(some, found[NATIVE]) for way, some in found.items() if way != NATIVE}
    texts = {"native": getattr(case, engine.name), "ember_ml": case.ember}
    if NATIVE in callers and "compiled" in callers[NATIVE].names:
        texts["native"] = f"jax.jit(lambda {', '.join(operands)}: {texts['native']})"
    row = {"engine": engine.name, "case": case.name, "size": case.size, "calls": texts}
    return {**row, "us": us, "ratios": ratios, "skipped": skipped}


def _ratio(some: list[float], native: list[float]) -> float:
    """Median of the ratios of each round, because a slow period of the machine affects whole rounds."""
    return statistics.median(map(truediv, some, native))


def _agree(found: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, (tuple, list)):
        return len(found) == len(expected) and all(map(partial(_agree, tolerance=tolerance), found, expected))
    return agree(found, expected, tolerance, tolerance)


def summaries(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per engine: the geometric mean of the ratios, the worst of them, those over the target, and what is met."""
    result = []
    for engine in dict.fromkeys(row["engine"] for row in found):
        ratios = {row["case"]: row["ratios"][EMBER] for row in found if row["engine"] == engine and row["ratios"]}
        if not ratios:
            continue
        mean, worst = statistics.geometric_mean(ratios.values()), max(ratios, key=lambda case: ratios[case])
        result.append({
            "engine": engine,
            "operations": len(ratios),
            "geometric_mean": mean,
            "target_mean": TARGET_MEAN,
            "mean_met": mean <= TARGET_MEAN,
            "worst": {"case": worst, "ratio": ratios[worst]},
            "target_each": TARGET_EACH,
            "each_met": ratios[worst] <= TARGET_EACH,
            "over": {case: ratio for case, ratio in ratios.items() if ratio > TARGET_EACH},
        })  # fmt: skip
    return result


def show(found: list[dict[str, Any]], console: Any) -> None:
    """A table per engine, NumPy against a naive version and torch, what was skipped, whether the targets are met."""
    for summary in summaries(found):
        mine = [row for row in found if row["engine"] == summary["engine"] and row["ratios"]]
        console.print(_table(mine, summary))
        console.print(trust([row["ratios"][AGAIN] for row in mine]), style="dim")
        console.print()
    for line in (*_aside(found), *skipped_lines(found)):
        console.print(line, style="dim", highlight=False, soft_wrap=True)
    for summary in summaries(found):
        console.print(_verdict(summary), highlight=False, soft_wrap=True)


def _table(mine: list[dict[str, Any]], summary: dict[str, Any]) -> Any:
    made = table(f"{summary['engine']}, milliseconds")
    made.add_column("operation", no_wrap=True, min_width=max(len(row["case"]) for row in mine))
    made.add_column("size", no_wrap=True, max_width=20)
    for column, width in {"native": 6, "ember_ml": 8, "ratio": 5, "again": 5}.items():
        style = "bold" if column == "ratio" else ""
        made.add_column(column, justify="right", no_wrap=True, min_width=width, style=style)
    for row in mine:
        us, ratios = row["us"], row["ratios"]
        colour = "red" if ratios[EMBER] > TARGET_EACH else ""
        ratio = f"[{colour}]{times(ratios[EMBER])}[/]" if colour else times(ratios[EMBER])
        made.add_row(
            row["case"], row["size"], f"{us[NATIVE] / 1000:.2f}", f"{us[EMBER] / 1000:.2f}", ratio, times(ratios[AGAIN])
        )
    made.add_section()
    made.add_row("geometric mean", "", "", "", times(summary["geometric_mean"]), "")
    return made


def _aside(found: list[dict[str, Any]]) -> Iterator[str]:
    """Lines that compare NumPy with a naive version and with torch."""
    for row in found:
        others = {way: row["us"][way] for way in (NAIVE, TORCH) if way in row["us"]}
        if others:
            parts = ", ".join(f"{way} {us / 1000:.2f} ms ({us / row['us'][EMBER]:.2f}x)" for way, us in others.items())
            yield f"{row['case']} on NumPy: ember_ml {row['us'][EMBER] / 1000:.2f} ms; {parts}"


def _verdict(summary: dict[str, Any]) -> str:
    def word(met: bool) -> str:
        return "[green]met[/]" if met else "[red]missed[/]"

    worst, mean = summary["worst"], summary["geometric_mean"]
    over = ", ".join(f"{case} {times(ratio)}" for case, ratio in summary["over"].items())
    return (
        f"[bold]{summary['engine']}[/]: {summary['operations']} operations; geometric mean {mean:.3f}x "
        f"(target {TARGET_MEAN:.2f}x, {word(summary['mean_met'])}); worst {worst['case']} "
        f"{times(worst['ratio'])} (target {TARGET_EACH:.2f}x, {word(summary['each_met'])})"
        + (f"; over it: {over}" if over else "")
    )


def plot(found: list[dict[str, Any]], path: str) -> None:
    """Bars of the ratios: a panel per engine, with lines at 1 and at the target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    engines = list(dict.fromkeys(row["engine"] for row in found))
    wide = 1.6 + 0.3 * max(8, len({row["case"] for row in found}))
    figure, panels = pyplot.subplots(len(engines), 1, figsize=(wide, 0.8 + 3 * len(engines)), squeeze=False,
                                     layout="constrained")  # fmt: skip
    for (axes,), engine in zip(panels, engines, strict=True):
        mine = [row for row in found if row["engine"] == engine and row["ratios"]]
        heights = {way: [row["ratios"][way] for row in mine] for way in (EMBER, AGAIN)}
        bars(axes, heights, {EMBER: "#d1495b", AGAIN: "#9aa5b8"}, 2.0)
        axes.axhline(TARGET_EACH, color="#2a9d3a", linewidth=1.2, linestyle="--", label="target for each")
        finish_bars(axes, [row["case"] for row in mine], 2.0)
        axes.set_title(engine, loc="left", fontweight="bold", pad=18)
        axes.set_ylabel("time / hand-written")
    save_figure(figure, panels, path)


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python benchmarks/ops.py                                  all engines, two to three minutes\n"
        "  python benchmarks/ops.py --quick --engines torch          a first impression\n"
        "  python benchmarks/ops.py --ops conv softmax               two operations\n"
        "  python benchmarks/ops.py --json - > figures.json          for machines; tables go to stderr\n"
        "  python benchmarks/ops.py --plot ops.png                   bars of the ratios",
    )
    add_options(parser, [case.name for case in PANEL], REPEATS, QUICK)
    return parsed(parser, given)


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    stage = Stage.of(options)
    cases = [case for case in PANEL if case.name in options.ops]
    plan = Plan(options.engines, cases, options.repeats or (QUICK if options.quick else REPEATS), TURN)
    where = setting("scipy")
    stage.introduce(where)
    found = []
    with stage.show_progress(len(plan.engines) * len(cases)) as advance:
        for row in rows(plan):
            found.append(row)
            advance(f"{row['engine']}", 1)
    show(found, stage.results)
    write({**where, "repeats": plan.repeats, "rows": found, "engines": summaries(found)}, options.json)
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
