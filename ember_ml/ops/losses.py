"""Loss functions.

The target comes first: ``(y_true, y_pred)``. Elementwise losses take tensors of the same shape, or one of them
zero-dimensional; they do not broadcast otherwise. ``reduction`` is ``"mean"`` or ``"sum"`` of all losses, or ``"none"``
for one loss per element, or per row for losses that reduce ``axis``.
"""

from __future__ import annotations

import math as _math
from typing import Any

from ember_ml.dispatch import op
from ember_ml.dtypes import floating
from ember_ml.ops import (
    activations,
    comparison,
    control,
    creation,
    device,
    dtypes,
    indexing,
    manipulation,
    math,
    neural,
    stats,
)
from ember_ml.ops._halves import narrow_like as _like
from ember_ml.ops._halves import widen as _wide
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.losses import check_label_shape, check_linear_crossentropy, check_sequences, label_error
from ember_ml.types import Indices, Tensor, TensorLike


@op(floating, kinds="real")
def mean_squared_error(y_true: TensorLike, y_pred: TensorLike, *, reduction: str = "mean") -> Tensor:
    """Mean of ``(y_true - y_pred) ** 2``.

    Args:
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per element.

    >>> mse([1.0, 2.0], [2.0, 4.0]).tolist(), mse([1.0, 2.0], [2.0, 4.0], reduction="none").tolist()
    (2.5, [1.0, 4.0])
    """
    return math._in_single(_mean_squared_error, y_true, y_pred, reduction=reduction)


def _mean_squared_error(y_true: Any, y_pred: Any, reduction: str) -> Tensor:
    return _reduced(math.square(_error(y_true, y_pred)), reduction)


mse = mean_squared_error


@op(floating, kinds="real")
def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike, *, reduction: str = "mean") -> Tensor:
    """Mean of ``abs(y_true - y_pred)``.

    Args:
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per element.

    >>> mae([1.0, 2.0], [2.0, 4.0]).tolist()
    1.5
    """
    return math._in_single(_mean_absolute_error, y_true, y_pred, reduction=reduction)


def _mean_absolute_error(y_true: Any, y_pred: Any, reduction: str) -> Tensor:
    return _reduced(math.abs(_error(y_true, y_pred)), reduction)


mae = mean_absolute_error


@op(floating, kinds="real")
def huber_loss(y_true: TensorLike, y_pred: TensorLike, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Mean Huber loss: half the squared error up to ``delta``, and linear beyond it.

    Args:
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per element.

    >>> huber_loss([0.0, 0.0], [1.0, 3.0], reduction="none").tolist()
    [0.5, 2.5]
    """
    if delta <= 0:
        raise ValueError(f"delta must be > 0, got {delta}")
    return math._in_single(_huber_loss, y_true, y_pred, delta=delta, reduction=reduction)


def _huber_loss(y_true: Any, y_pred: Any, delta: float, reduction: str) -> Tensor:
    size: Any = math.abs(_error(y_true, y_pred))
    curved: Any = math.square(math.minimum(size, delta))
    return _reduced(comparison.where(size >= delta, (size - delta / 2) * delta, curved / 2), reduction)


@op(floating, kinds="real")
def log_cosh_loss(y_true: TensorLike, y_pred: TensorLike, *, reduction: str = "mean") -> Tensor:
    """Mean of ``log(cosh(y_pred - y_true))``: half the squared error near zero, the absolute error far from it.

    Args:
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per element.

    >>> f"{float(log_cosh_loss(0.0, 1.0)):.4f}", f"{float(log_cosh_loss(0.0, 1e4)):.1f}"
    ('0.4338', '9999.3')
    """
    return math._in_single(_log_cosh_loss, y_true, y_pred, reduction=reduction)


def _log_cosh_loss(y_true: Any, y_pred: Any, reduction: str) -> Tensor:
    # cosh(x) - 1 == 2 * sinh(x / 2) ** 2 is accurate for small errors; for large ones it would overflow.
    size: Any = math.abs(_error(y_true, y_pred))
    near: Any = math.log1p(2 * math.square(math.sinh(math.minimum(size, 1) / 2)))
    far: Any = size + math.log1p(math.exp(-2 * size)) - _math.log(2)
    return _reduced(comparison.where(size < 1, near, far), reduction)


@op(floating, kinds="real")
def binary_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Mean of ``-(y_true * log(y_pred) + (1 - y_true) * log(1 - y_pred))``.

    Args:
        from_logits: whether ``y_pred`` are logits, the inputs of a sigmoid. They are accurate where probabilities would
            be rounded to 0 or 1; probabilities are kept away from these by the dtype's ``eps``.
        label_smoothing: how far labels are moved towards 1/2, from 0 (not at all) to 1.
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per element.

    >>> binary_crossentropy([1.0, 0.0], [-1e4, 1e4], from_logits=True).tolist()
    10000.0
    >>> f"{float(binary_crossentropy([1.0], [0.5])):.4f}"
    '0.6931'
    """
    return math._in_single(
        _binary_crossentropy, y_true, y_pred, logits=from_logits, smoothing=label_smoothing, reduction=reduction
    )


def _binary_crossentropy(y_true: Any, y_pred: Any, logits: bool, smoothing: float, reduction: str) -> Tensor:
    _check_shapes(y_true, y_pred)
    return _reduced(_binary(_smoothed(y_true, smoothing, 2), y_pred, logits), reduction)


def _binary(y_true: Any, y_pred: Any, logits: bool) -> Any:
    """Binary cross-entropy of each element."""
    if logits:
        return _binary_of_logits(y_true, y_pred)
    inside = _inside(y_pred)
    return math.add(y_true * -math.log(inside), (1 - y_true) * -math.log1p(-inside))


def _binary_of_logits(y_true: Any, y_pred: Any) -> Any:
    """A linear part for a logit of the wrong sign, plus ``log1p(exp(-|logit|))``."""
    is_yes = y_pred > 0
    # Not ``abs``, whose gradient at zero is zero.
    size = comparison.where(is_yes, y_pred, -y_pred)
    wrong = comparison.where(is_yes, 1 - y_true, y_true)
    # An infinite logit of the right sign costs nothing; 0 * inf would be NaN.
    known = comparison.logical_and(comparison.equal(wrong, 0), comparison.equal(size, _math.inf))
    return math.add(wrong * comparison.where(known, 0, size), math.log1p(math.exp(-size)))


@op(floating, kinds="real")
def categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
    reduction: str = "mean",
) -> Tensor:
    """Mean of ``-sum(y_true * log(y_pred))`` over the classes along ``axis``.

    Args:
        from_logits: whether ``y_pred`` are logits, the inputs of a softmax. They are accurate where probabilities would
            be rounded to 0. Probabilities are divided by their sum and kept away from 0 and 1 by the dtype's ``eps``.
        label_smoothing: how far labels are moved towards the uniform distribution, from 0 (not at all) to 1.
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per row.

    >>> categorical_crossentropy([[0.0, 1.0]], [[1e4, 0.0]], from_logits=True).tolist()
    10000.0
    """
    return math._in_single(
        _categorical_crossentropy,
        y_true,
        y_pred,
        logits=from_logits,
        smoothing=label_smoothing,
        axis=axis,
        reduction=reduction,
    )


def _categorical_crossentropy(
    y_true: Any, y_pred: Any, logits: bool, smoothing: float, axis: int, reduction: str
) -> Tensor:
    _check_shapes(y_true, y_pred)
    (axis,) = _axes(axis, y_pred.ndim)
    logs = _log_probabilities(y_pred, logits, axis)
    y_true = _smoothed(y_true, smoothing, y_pred.shape[axis])
    # A class of probability 0 that does not occur costs nothing; 0 * inf would be NaN.
    costs = comparison.where(comparison.equal(y_true, 0), 0, y_true * -logs)
    return _reduced(stats.sum(costs, axis=axis), reduction)


@op(floating, kinds="real")
def sparse_categorical_crossentropy(
    y_true: Indices,
    y_pred: TensorLike,
    *,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
    reduction: str = "mean",
) -> Tensor:
    """``categorical_crossentropy`` with ``y_true`` given as class indices.

    No index means that an element is ignored, as -100 does in torch. To ignore elements, such as padding, give them any
    class, and multiply the losses of ``reduction="none"`` by weights that are 0 there. ``Trainer.fit`` takes such
    weights as ``sample_weight``.

    Args:
        y_true: class indices, from 0 to the number of classes - 1.
        from_logits: as in ``categorical_crossentropy``.
        label_smoothing: as in ``categorical_crossentropy``.
        axis: the axis of the classes in ``y_pred``.
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per row.

    >>> sparse_categorical_crossentropy([1, 0], [[1e4, 0.0], [1e4, 0.0]], from_logits=True).tolist()
    5000.0
    """
    predictions: Any = y_pred
    (axis,) = _axes(axis, predictions.ndim)
    check_label_shape(y_true, predictions, axis)
    try:
        return math._in_single(
            _sparse_categorical_crossentropy,
            y_pred,
            y_true=y_true,
            logits=from_logits,
            smoothing=label_smoothing,
            axis=axis,
            reduction=reduction,
        )
    except IndexError as error:
        raise _label_error(y_true, predictions.shape[axis]) or error from error


def _label_error(y_true: Any, classes: int) -> IndexError | None:
    """Error for labels that are not classes, in the same words whatever the engine says; ``None`` if all are."""
    least, most = int(stats.min(y_true)), int(stats.max(y_true))  # emberlint: ignore[EMB201] the message has them
    return label_error(least, most, classes)


def _sparse_categorical_crossentropy(
    y_pred: Any, y_true: Any, logits: bool, smoothing: float, axis: int, reduction: str
) -> Tensor:
    classes = manipulation.expand_dims(y_true, axis=axis)
    losses: Any
    if logits and not smoothing:
        # Without the log-probabilities of all classes, which a gradient would keep.
        lowered = activations._subtract_max(y_pred, axis)
        losses = math.logsumexp(lowered, axis=axis, keepdims=True) - _picked(lowered, classes, axis)
        return _reduced(manipulation.squeeze(losses, axis), reduction)
    logs = _log_probabilities(y_pred, logits, axis)
    losses = manipulation.squeeze(-_picked(logs, classes, axis), axis)
    if smoothing:
        _check_smoothing(smoothing)
        losses = losses * (1 - smoothing) - stats.mean(logs, axis=axis) * smoothing
    return _reduced(losses, reduction)


def _picked(logs: Any, classes: Any, axis: int) -> Any:
    """Values of these classes. A negative index, which would count from the end, is replaced by one out of range."""
    return indexing.take_along_axis(logs, comparison.where(classes < 0, logs.shape[axis], classes), axis=axis)


@op(floating, kinds="real")
def linear_crossentropy(
    y_true: Indices,
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    chunk: int | None = 1024,
) -> Tensor:
    """``sparse_categorical_crossentropy`` of the logits ``linear(x, weight, bias)``, for a few rows at a time.

    The logits of many tokens and a large vocabulary need more memory than all else. Here, those of ``chunk`` rows exist
    at a time. The gradient computes them again, also for a few rows at a time.

    Args:
        y_true: class indices, from 0 to the number of classes - 1, of the shape of ``x`` without its last axis.
        x: inputs of the last layer, such as the hidden states of a language model.
        weight, bias: those of the last layer, as in ``linear``; ``weight`` has the shape (features, classes).
        label_smoothing: as in ``categorical_crossentropy``.
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per row.
        chunk: number of rows whose logits are computed at a time; ``None`` for all.

    >>> x, weight = [[1.0, 0.0], [0.0, 1.0]], [[1e4, 0.0, 0.0], [0.0, 0.0, 2e4]]
    >>> linear_crossentropy([0, 1], x, weight, chunk=1).tolist()
    10000.0
    """
    check_linear_crossentropy(y_true, x, weight, bias, chunk)
    _check_smoothing(label_smoothing)
    try:
        losses = [
            _sparse_categorical_crossentropy(
                _wide(neural.linear(rows, weight, bias)), labels, True, label_smoothing, 1, "none"
            )
            for rows, labels in _chunks(x, y_true, chunk)
        ]
    except IndexError as error:
        raise _label_error(y_true, _shape(weight)[1]) or error from error
    whole = losses[0] if len(losses) == 1 else manipulation.concat(losses)
    return _like(x, _reduced(manipulation.reshape(whole, _shape(y_true)), reduction))


def _chunks(x: Any, y_true: Any, chunk: int | None) -> list[tuple[Any, Any]]:
    """Rows of ``x`` and their labels, ``chunk`` at a time."""
    count = _math.prod(_shape(y_true))
    rows, labels = manipulation.reshape(x, (count, x.shape[-1])), manipulation.reshape(y_true, (count,))
    edges = list(range(chunk or count, count, chunk or count or 1))
    return list(zip(manipulation.split(rows, edges), manipulation.split(labels, edges), strict=True))


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


@op(floating, kinds="real")
def kl_divergence(y_true: TensorLike, y_pred: TensorLike, *, axis: int = -1, reduction: str = "mean") -> Tensor:
    """Mean of ``sum(y_true * log(y_true / y_pred))`` over the probabilities along ``axis``.

    Probabilities are clipped to the range from the dtype's ``eps`` to 1.

    Args:
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per row.

    >>> f"{float(kl_divergence([[0.5, 0.5]], [[0.25, 0.75]])):.4f}"
    '0.1438'
    """
    return math._in_single(_kl_divergence, y_true, y_pred, axis=axis, reduction=reduction)


def _kl_divergence(y_true: Any, y_pred: Any, axis: int, reduction: str) -> Tensor:
    _check_shapes(y_true, y_pred)
    low = _eps(y_pred)
    y_true, y_pred = math.clip(y_true, low, 1), math.clip(y_pred, low, 1)
    return _reduced(stats.sum(y_true * (math.log(y_true) - math.log(y_pred)), axis=axis), reduction)


@op(floating, kinds="real")
def hinge_loss(y_true: TensorLike, y_pred: TensorLike, *, reduction: str = "mean") -> Tensor:
    """Mean of ``maximum(1 - y_true * y_pred, 0)``; labels are -1 and 1, and 0 is taken as -1.

    Args:
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per element.

    >>> hinge_loss([-1.0, 1.0, 0.0], [-2.0, 0.25, 1.0], reduction="none").tolist()
    [0.0, 0.75, 2.0]
    """
    return math._in_single(_hinge_loss, y_true, y_pred, reduction=reduction)


def _hinge_loss(y_true: Any, y_pred: Any, reduction: str) -> Tensor:
    _check_shapes(y_true, y_pred)
    signs = comparison.where(comparison.equal(y_true, 0), -1, y_true)
    return _reduced(activations.relu(1 - signs * y_pred), reduction)


@op(floating, kinds="real")
def cosine_similarity_loss(
    y_true: TensorLike, y_pred: TensorLike, *, axis: int = -1, reduction: str = "mean"
) -> Tensor:
    """Mean of 1 minus the cosine similarity along ``axis``: from 0 (same direction) to 2 (opposite).

    The cosine similarity of a zero vector is 0.

    Args:
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per row.

    >>> loss = cosine_similarity_loss([[3.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, -1.0]])
    >>> f"{float(loss):.4f}"
    '1.0000'
    """
    return math._in_single(_cosine_similarity_loss, y_true, y_pred, axis=axis, reduction=reduction)


def _cosine_similarity_loss(y_true: Any, y_pred: Any, axis: int, reduction: str) -> Tensor:
    _check_shapes(y_true, y_pred)
    cosine: Any = stats.sum(_unit(y_true, axis) * _unit(y_pred, axis), axis=axis)
    return _reduced(1 - cosine, reduction)


def _unit(x: Any, axis: int) -> Any:
    """``x`` divided by its norm along ``axis``; the lower limit keeps the gradient of zeros finite."""
    squares = stats.sum(math.square(x), axis=axis, keepdims=True)
    return x * math.rsqrt(math.maximum(squares, 1e-16))


@op(floating, kinds="real")
def triplet_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    axis: int = -1,
    reduction: str = "mean",
) -> Tensor:
    """Mean of ``maximum(d(anchor, positive) - d(anchor, negative) + margin, 0)`` for vectors along ``axis``.

    Args:
        p: order of the norm that defines the distance ``d``. As in PyTorch, 1e-6 is added to each difference, so that
            the distance of equal vectors is differentiable.
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per row.

    >>> triplet_loss([[0.0, 0.0]], [[0.0, 1.0]], [[0.0, 4.0]], margin=5.0).tolist()
    2.0
    """
    if not p > 0:
        raise ValueError(f"p must be > 0, got {p}")
    return math._in_single(
        _triplet_loss, anchor, positive, negative, margin=margin, p=p, axis=axis, reduction=reduction
    )


def _triplet_loss(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, axis: int, reduction: str
) -> Tensor:
    _check_shapes(anchor, positive, "anchor and positive")
    _check_shapes(anchor, negative, "anchor and negative")
    near, far = _distance(anchor, positive, p, axis), _distance(anchor, negative, p, axis)
    return _reduced(activations.relu(near - far + margin), reduction)


def _distance(x: Any, y: Any, p: float, axis: int) -> Any:
    gap = x - y + 1e-6
    if p == 2:
        return math.sqrt(stats.sum(math.square(gap), axis=axis))
    size = math.abs(gap)
    if p == _math.inf:
        return stats.max(size, axis=axis)
    if p == 1:
        return stats.sum(size, axis=axis)
    return math.power(stats.sum(math.power(size, p), axis=axis), 1 / p)


@op(floating, kinds="real")
def focal_loss(
    y_true: TensorLike,
    y_pred: TensorLike,
    *,
    alpha: float | None = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Mean of ``binary_crossentropy`` times ``(1 - p) ** gamma``, with ``p`` the probability of the true label.

    Args:
        alpha: weight of label 1; label 0 has weight ``1 - alpha``. ``None`` for no weights.
        gamma: how strongly well-classified examples are down-weighted.
        from_logits: as in ``binary_crossentropy``.
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per element.

    >>> f"{float(focal_loss([1.0], [0.5])):.4f}", f"{float(focal_loss([1.0], [0.5], alpha=None, gamma=0.0)):.4f}"
    ('0.0433', '0.6931')
    """
    return math._in_single(
        _focal_loss, y_true, y_pred, alpha=alpha, gamma=gamma, logits=from_logits, reduction=reduction
    )


def _focal_loss(y_true: Any, y_pred: Any, alpha: float | None, gamma: float, logits: bool, reduction: str) -> Tensor:
    _check_shapes(y_true, y_pred)
    if logits:
        yes, no = activations._sigmoid(y_pred), activations._sigmoid(-y_pred)
    else:
        yes = _inside(y_pred)
        no = 1 - yes
    doubt = y_true * no + (1 - y_true) * yes
    if logits:
        # The derivative of a power below 1 is infinite at 0, which large logits reach.
        doubt = math.maximum(doubt, dtypes.finfo(y_pred.dtype).smallest_normal)
    losses = math.power(doubt, gamma) * _binary(y_true, y_pred, logits)
    if alpha is not None:
        losses = losses * (y_true * alpha + (1 - y_true) * (1 - alpha))
    return _reduced(losses, reduction)


@op(floating, kinds="real")
def ctc_loss(
    y_true: Indices,
    y_pred: TensorLike,
    target_length: Indices,
    output_length: Indices,
    *,
    mask_index: int = 0,
    reduction: str = "mean",
) -> Tensor:
    """Connectionist temporal classification loss: mean of the negative log-probability of the targets.

    The probability of a target is the sum over all paths that spell it. A path names a class or the blank at every
    time; it spells what remains when repetitions and blanks are removed. A target that no path of the given length can
    spell has an infinite loss. The mean is over the batch, with no weighting by the length of targets.

    Args:
        y_true: targets of shape ``(batch, longest target)``; entries beyond the length of a target are ignored.
        y_pred: logits or log-probabilities of shape ``(batch, time, classes)``.
        target_length: lengths of the targets, of shape ``(batch,)``.
        output_length: numbers of valid times, of shape ``(batch,)``.
        mask_index: the class that is the blank.
        reduction: ``"mean"`` or ``"sum"`` of all losses, or ``"none"`` for one loss per target.

    >>> even = [[[0.0, 0.0], [0.0, 0.0]]]
    >>> f"{float(ctc_loss([[1]], even, [1], [2])):.4f}"
    '0.2877'
    """
    lengths = (target_length, output_length)
    return math._in_single(_ctc_loss, y_pred, y_true=y_true, lengths=lengths, blank=mask_index, reduction=reduction)


def _ctc_loss(y_pred: Any, y_true: Any, lengths: tuple[Any, Any], blank: int, reduction: str) -> Tensor:
    check_sequences(y_true, y_pred, *lengths, blank)
    return _reduced(_path_losses(y_true, y_pred, *lengths, blank), reduction)


# Used for log(0): negative infinity would make gradients NaN.
_NEVER = -1e30


def _path_losses(y_true: Any, y_pred: Any, target_length: Any, output_length: Any, blank: int) -> Any:
    """Loss of each target, by the forward recursion over paths."""
    batch, times, _ = y_pred.shape
    target_length = _within(target_length, y_true.shape[1])
    output_length = _within(output_length, times)
    places = _count(y_true.shape[1], y_true)
    labels = comparison.where(places < manipulation.expand_dims(target_length, axis=1), y_true, blank)
    states = _interleaved(labels, blank)
    count = states.shape[1]
    index = manipulation.broadcast_to(manipulation.expand_dims(states, axis=1), (batch, times, count))
    logs = _picked(activations.log_softmax(y_pred), index, 2)
    # The blank between two different labels may be skipped.
    jumps = comparison.logical_and(states[:, 2:] != blank, states[:, 2:] != states[:, :-2])
    paths: Any = comparison.where(_count(count, y_true) == 0, creation.zeros_like(logs[:, 0]), _NEVER)

    def step(paths: Any, here: Any, is_going: Any) -> tuple[Any, None]:
        after = manipulation.pad(paths[:, :-1], ((0, 0), (1, 0)), constant_values=_NEVER)
        jump: Any = comparison.where(jumps, paths[:, :-2], _NEVER)
        jump = manipulation.pad(jump, ((0, 0), (count - jump.shape[1], 0)), constant_values=_NEVER)
        ways: Any = math.logsumexp(manipulation.stack([paths, after, jump]), axis=0)
        return comparison.where(is_going[:, None], math.maximum(ways + here, _NEVER), paths), None

    going = manipulation.expand_dims(output_length, axis=1) > _count(times, y_true)
    return _ending(control._run_steps(step, paths, (logs, going), axis=1)[0], target_length)


def _count(n: int, x: Any) -> Any:
    """Integers from 0 to ``n - 1`` on the device of ``x``."""
    return creation.arange(n, device=device.get_device(x))


def _within(lengths: Any, longest: int) -> Any:
    """Lengths looked up in a table of the possible ones, so that others are an index error."""
    return _picked(_count(longest + 1, lengths), lengths, 0)


def _interleaved(labels: Any, blank: int) -> Any:
    """Labels with a blank before, between and after them."""
    blanks = creation.full_like(labels, blank)
    pairs = manipulation.stack([blanks, labels], axis=-1)
    joined = manipulation.reshape(pairs, (labels.shape[0], 2 * labels.shape[1]))
    last = creation.full((labels.shape[0], 1), blank, dtype="int64", device=device.get_device(labels))
    return manipulation.concat([joined, last], axis=1)


def _ending(paths: Any, target_length: Any) -> Any:
    """Negative log-probability of the paths that end in the last label of a target, or in the blank after it."""
    last: Any = manipulation.expand_dims(target_length * 2, axis=1)
    in_blank: Any = indexing.take_along_axis(paths, last, axis=1)
    in_label = indexing.take_along_axis(paths, math.maximum(last - 1, 0), axis=1)
    in_label = comparison.where(last > 0, in_label, _NEVER)
    total: Any = math.logsumexp(manipulation.concat([in_blank, in_label], axis=1), axis=1)
    return comparison.where(total < _NEVER / 2, _math.inf, -total)


def _error(y_true: Any, y_pred: Any) -> Any:
    _check_shapes(y_true, y_pred)
    return math.subtract(y_true, y_pred)


def _check_shapes(x: Any, y: Any, names: str = "y_true and y_pred") -> None:
    """Raise unless the shapes are equal or one is zero-dimensional: broadcasting rows against columns is a mistake."""
    if tuple(x.shape) != tuple(y.shape) and x.ndim and y.ndim:
        raise ValueError(f"{names} must have one shape, got {list(x.shape)} and {list(y.shape)}")


def _reduced(losses: Any, reduction: str) -> Tensor:
    if reduction == "mean":
        return stats.mean(losses)
    if reduction == "sum":
        return stats.sum(losses)
    if reduction == "none":
        return losses  # type: ignore[no-any-return]
    raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")


def _smoothed(y_true: Any, smoothing: float, classes: int) -> Any:
    """Labels moved towards the uniform distribution."""
    if not smoothing:
        return y_true
    _check_smoothing(smoothing)
    return y_true * (1 - smoothing) + smoothing / max(classes, 1)


def _check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing <= 1:
        raise ValueError(f"label_smoothing must be from 0 to 1, got {smoothing}")


def _log_probabilities(y_pred: Any, logits: bool, axis: int) -> Any:
    if logits:
        return activations.log_softmax(y_pred, axis)
    return math.log(_inside(y_pred / stats.sum(y_pred, axis=axis, keepdims=True)))


def _inside(y_pred: Any) -> Any:
    """Probabilities clipped so that ``log(p)`` and ``log(1 - p)`` are finite."""
    low = _eps(y_pred)
    return math.clip(y_pred, low, 1 - low)


def _eps(x: Any) -> float:
    return dtypes.finfo(x.dtype).eps
