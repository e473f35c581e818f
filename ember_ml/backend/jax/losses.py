"""Losses on JAX; most are compiled bodies."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from ember_ml.backend.jax.core import static
from ember_ml.backend.jax.indexing import _check
from ember_ml.backend.jax.neural import linear
from ember_ml.backend.jax.stats import wide
from ember_ml.dispatch import definition_of, within
from ember_ml.shapes.axes import axis_of
from ember_ml.shapes.losses import check_linear_crossentropy, check_sequences


@static("from_logits", "label_smoothing", "axis", "reduction")
def categorical_crossentropy(
    y_true: Array,
    y_pred: Array,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
    reduction: str = "mean",
) -> Array:
    if not from_logits or y_true.shape != y_pred.shape:
        options: Any = {"label_smoothing": label_smoothing, "axis": axis, "reduction": reduction}
        run = within("jax", definition_of("categorical_crossentropy"))
        return run(y_true, y_pred, from_logits=from_logits, **options)
    targets, logits = (jnp.moveaxis(wide(one), axis_of(axis, one.ndim), -1) for one in (y_true, y_pred))
    return _reduced(_crossentropy(logits, _smoothed(targets, label_smoothing)), reduction).astype(y_pred.dtype)


def sparse_categorical_crossentropy(
    y_true: Array,
    y_pred: Array,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
    reduction: str = "mean",
) -> Array:
    place = axis_of(axis, y_pred.ndim)
    if y_true.shape == y_pred.shape[:place] + y_pred.shape[place + 1 :]:
        _check(y_true, y_pred.shape[place], 0)
    return _sparse_categorical_crossentropy(y_true, y_pred, from_logits, label_smoothing, place, reduction)


@partial(jax.jit, static_argnums=(2, 3, 4, 5))
def _sparse_categorical_crossentropy(
    y_true: Array, y_pred: Array, from_logits: bool, label_smoothing: float, axis: int, reduction: str
) -> Array:
    logits = jnp.moveaxis(wide(y_pred), axis, -1)
    if not from_logits or y_true.shape != logits.shape[:-1]:
        options: Any = {"label_smoothing": label_smoothing, "axis": axis, "reduction": reduction}
        run = within("jax", definition_of("sparse_categorical_crossentropy"))
        return run(y_true, y_pred, from_logits=from_logits, **options)
    losses = _crossentropy(logits, _smoothed(_hits(y_true, logits), label_smoothing))
    return _reduced(losses, reduction).astype(y_pred.dtype)


def _hits(labels: Array, logits: Array) -> Array:
    """One-hot labels. Those out of range, which compiled code cannot check, are NaN."""
    count = logits.shape[-1]
    is_valid = (labels >= 0) & (labels < count)
    return jnp.where(is_valid[..., None], jax.nn.one_hot(labels, count, dtype=logits.dtype), math.nan)


def _smoothed(targets: Array, smoothing: float) -> Array:
    if not 0 <= smoothing <= 1:
        raise ValueError(f"label_smoothing must be from 0 to 1, got {smoothing}")
    return targets * (1 - smoothing) + smoothing / max(targets.shape[-1], 1) if smoothing else targets


@jax.custom_jvp
def _crossentropy(logits: Array, targets: Array) -> Array:
    """Cross-entropy of each row of logits. The gradient keeps one array of the size of the logits."""
    return jnp.sum(_costs(logits, targets)[0] * targets, -1)


def _crossentropy_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (logits, targets), (of_logits, of_targets) = primals, tangents
    costs, shares = _costs(logits, targets)
    result = jnp.sum(costs * targets, -1)
    tangent = jnp.zeros_like(result)
    if not isinstance(of_logits, SymbolicZero):
        tangent += jnp.sum((shares * jnp.sum(targets, -1, keepdims=True) - targets) * of_logits, -1)
    if not isinstance(of_targets, SymbolicZero):
        tangent += jnp.sum(costs * of_targets, -1)
    return result, tangent


_crossentropy.defjvp(_crossentropy_jvp, symbolic_zeros=True)


def _costs(logits: Array, targets: Array) -> tuple[Array, Array]:
    """Negative log-probabilities of classes that occur, of which others may be infinite, and all probabilities."""
    shifted = logits - lax.stop_gradient(jnp.max(logits, -1, keepdims=True, initial=-math.inf))
    total = jnp.sum(jnp.exp(shifted), -1, keepdims=True)
    return jnp.where(targets == 0, 0, jnp.log(total) - shifted), jnp.exp(shifted) / total


def linear_crossentropy(
    y_true: Array,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    chunk: int | None = 1024,
) -> Array:
    check_linear_crossentropy(y_true, x, weight, bias, chunk)
    _check(y_true, weight.shape[1], 0)
    return _linear_crossentropy(
        y_true, x, weight, bias, label_smoothing=label_smoothing, reduction=reduction, chunk=chunk
    )


@static("label_smoothing", "reduction", "chunk")
def _linear_crossentropy(
    y_true: Array, x: Array, weight: Array, bias: Array | None, *, label_smoothing: float, reduction: str,
    chunk: int | None,
) -> Array:  # fmt: skip
    # Gradients of the chunks are summed in the dtype of these.
    weights = [one if one is None else wide(one) for one in (weight, bias)]

    # Not kept for the gradient: logits.
    @jax.checkpoint
    def losses_of(rows: Array, labels: Array) -> Array:
        logits = linear(rows, *(one if one is None else one.astype(x.dtype) for one in weights))
        logits = wide(logits)
        return _crossentropy(logits, _smoothed(_hits(labels, logits), label_smoothing))

    count = y_true.size
    size = max(min(chunk or count, count), 1)
    whole = count // size * size
    rows, labels = x.reshape(count, x.shape[-1]), y_true.reshape(count)
    parts = (rows[:whole].reshape(-1, size, x.shape[-1]), labels[:whole].reshape(-1, size))
    losses = lax.map(lambda part: losses_of(*part), parts).reshape(whole)
    if whole < count:
        losses = jnp.concatenate([losses, losses_of(rows[whole:], labels[whole:])])
    return _reduced(losses.reshape(y_true.shape), reduction).astype(x.dtype)


# Finite stand-in for log(0), whose gradient would be NaN.
_NEVER = -1e30


def ctc_loss(
    y_true: Array,
    y_pred: Array,
    target_length: Array,
    output_length: Array,
    *,
    mask_index: int = 0,
    reduction: str = "mean",
) -> Array:
    check_sequences(y_true, y_pred, target_length, output_length, mask_index)
    _check(target_length, y_true.shape[1] + 1, 0)
    _check(output_length, y_pred.shape[1] + 1, 0)
    labels = _valid_labels(y_true, target_length, mask_index)
    _check(labels, y_pred.shape[2], 0)
    return _ctc_loss(labels, y_pred, target_length, output_length, mask_index=mask_index, reduction=reduction)


@jax.jit
def _valid_labels(y_true: Array, target_length: Array, blank: int) -> Array:
    return jnp.where(jnp.arange(y_true.shape[1]) < target_length[:, None], y_true, blank)


@static("mask_index", "reduction")
def _ctc_loss(
    labels: Array, y_pred: Array, target_length: Array, output_length: Array, *, mask_index: int, reduction: str
) -> Array:
    """Forward recursion over paths, whose states are the labels with a blank before, between and after them."""
    batch, times, _ = y_pred.shape
    count = 2 * labels.shape[1] + 1
    states = jnp.full((batch, count), mask_index, labels.dtype).at[:, 1::2].set(labels)
    logs = jnp.take_along_axis(jax.nn.log_softmax(wide(y_pred)), states[:, None], 2)
    # The blank between two different labels may be skipped.
    jumps = (states[:, 2:] != mask_index) & (states[:, 2:] != states[:, :-2])

    def shifted(paths: Array) -> Array:
        return jnp.pad(paths, ((0, 0), (count - paths.shape[1], 0)), constant_values=_NEVER)

    def step(paths: Array, now: tuple[Array, Array]) -> tuple[Array, None]:
        time, here = now
        jump = jnp.where(jumps, paths[:, :-2], _NEVER)
        ways = jax.scipy.special.logsumexp(jnp.stack([paths, shifted(paths[:, :-1]), shifted(jump)]), 0)
        return jnp.where((output_length > time)[:, None], jnp.maximum(ways + here, _NEVER), paths), None

    start = jnp.broadcast_to(jnp.where(jnp.arange(count) == 0, 0, _NEVER).astype(logs.dtype), (batch, count))
    paths, _ = lax.scan(step, start, (jnp.arange(times), jnp.moveaxis(logs, 1, 0)))
    # Paths end in the last label, or in the blank after it.
    last = 2 * target_length[:, None]
    ends = jnp.take_along_axis(paths, jnp.concatenate([last, jnp.maximum(last - 1, 0)], 1), 1)
    ends = jnp.where(jnp.concatenate([last >= 0, last > 0], 1), ends, _NEVER)
    total = jax.scipy.special.logsumexp(ends, 1)
    return _reduced(jnp.where(total < _NEVER / 2, math.inf, -total), reduction).astype(y_pred.dtype)


def _reduced(losses: Array, reduction: str) -> Array:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return losses if reduction == "none" else jnp.mean(losses) if reduction == "mean" else jnp.sum(losses)
