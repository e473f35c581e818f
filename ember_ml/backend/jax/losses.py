"""Losses on JAX; most are compiled bodies."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from ember_ml.backend.jax.core import jitted, static
from ember_ml.backend.jax.indexing import _check
from ember_ml.backend.jax.neural import linear
from ember_ml.backend.jax.stats import wide
from ember_ml.dispatch import definition_of, within
from ember_ml.shapes.axes import axis_of
from ember_ml.shapes.losses import check_label_shape, check_linear_crossentropy, check_sequences


def categorical_crossentropy(
    y_true: Array,
    y_pred: Array,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
    reduction: str = "mean",
) -> Array:
    options = from_logits, label_smoothing, axis_of(axis, y_pred.ndim), reduction
    return _categorical("categorical_crossentropy", y_true, y_pred, *options)


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
    check_label_shape(y_true, y_pred, place)
    _check(y_true, y_pred.shape[place], 0, "y_true")
    options = from_logits, label_smoothing, place, reduction
    return _categorical("sparse_categorical_crossentropy", y_true, y_pred, *options)


@partial(jax.jit, static_argnums=(0, 3, 4, 5, 6))
def _categorical(
    name: str, y_true: Array, y_pred: Array, from_logits: bool, label_smoothing: float, axis: int, reduction: str
) -> Array:
    is_sparse, logits = name.startswith("sparse"), jnp.moveaxis(wide(y_pred), axis, -1)
    if not from_logits or y_true.shape != (logits.shape[:-1] if is_sparse else y_pred.shape):
        options: Any = {"label_smoothing": label_smoothing, "axis": axis, "reduction": reduction}
        return within("jax", definition_of(name))(y_true, y_pred, from_logits=from_logits, **options)
    targets = _hits(y_true, logits) if is_sparse else jnp.moveaxis(wide(y_true), axis, -1)
    losses = _crossentropy(logits, _smoothed(targets, label_smoothing))
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


def _reduced(losses: Array, reduction: str) -> Array:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return losses if reduction == "none" else jnp.mean(losses) if reduction == "mean" else jnp.sum(losses)


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
    _check(y_true, weight.shape[1], 0, "y_true")
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
    parts = (rows[:whole].reshape(count // size, size, x.shape[-1]), labels[:whole].reshape(count // size, size))
    losses = lax.map(lambda part: losses_of(*part), parts).reshape(whole)
    if whole < count:
        losses = jnp.concatenate([losses, losses_of(rows[whole:], labels[whole:])])
    return _reduced(losses.reshape(y_true.shape), reduction).astype(x.dtype)


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


_ctc_loss = jitted(within("jax", definition_of("ctc_loss")), "mask_index", "reduction")
