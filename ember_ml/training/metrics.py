"""Metrics: the quality of predictions, accumulated over batches.

``update`` adds a batch, ``compute`` returns the value over all batches, and ``reset`` discards them.
The value is the same as for a single batch of all examples. ``update`` does not read numbers, so a lazy engine does
not wait there; ``compute`` does. Weights are given per example or, for sequences, per step, with 0 for padding.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from ember_ml import ops
from ember_ml.dtypes import KINDS, written
from ember_ml.extend import rename_error
from ember_ml.spellings import value_hint, value_named

Rows = list[list[float]]


def _measure(self: Metric, y_true: Any, y_pred: Any) -> Any:
    """Measurements of a batch: a tensor of one axis, or a tuple of tensors."""
    raise NotImplementedError(f"{type(self).__name__}: a subclass of Metric must define measure, got none")


class Metric:
    """Base class of metrics.

    A subclass defines ``measure``, which returns a vector for each batch, and ``score``, which computes the value from
    the vectors of all batches. If ``measure`` has a third parameter, it receives the weights of the batch if there are
    any. Predictions and targets that are dictionaries or tuples are passed to ``measure`` as such.

    >>> class Largest(Metric):
    ...     name = "largest"
    ...     def measure(self, y_true, y_pred):
    ...         return ops.stack([ops.max(ops.abs(ops.subtract(y_true, y_pred)))])
    ...     def score(self, rows):
    ...         return max(row[0] for row in rows)
    >>> metric = Largest()
    >>> metric.update([1.0, 2.0], [1.5, 2.0])
    >>> metric.update([0.0], [2.0])
    >>> metric.compute()
    2.0
    """

    name = "metric"

    # Whether the metric is cheap enough to compute during an epoch, for the progress bar.
    is_quick = True

    # Each instance creates its list with its first batch, so that subclasses need not call ``super().__init__()``.
    _measured: Any = ()

    # Typed as an attribute, so that subclasses may define it with or without weights.
    measure: Callable[..., Any] = _measure

    def score(self, rows: Rows) -> float:
        """Value of the metric from the measurements of all batches."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Metric must define score, got none")

    def update(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch.

        Args:
            y_true: targets.
            y_pred: predictions.
            sample_weight: weight of each example, 1 by default.
        """
        given = () if sample_weight is None else (ops.asarray(sample_weight),)
        if given and len(inspect.signature(self.measure).parameters) < 3:
            raise TypeError(f"{type(self).__name__}: sample_weight must be None, as measure has no argument for it")
        true, found = _as_tensors(y_true), _as_tensors(y_pred)
        try:
            measured = self.measure(true, found, *given)
        except Exception as error:
            several = next((type(one).__name__ for one in (true, found) if isinstance(one, (dict, tuple))), None)
            if several is not None and isinstance(error, (AttributeError, TypeError)):
                error = TypeError(f"{error}; it was given a {several} of tensors, among which its measure must choose")
            if type(self).__module__ == __name__:
                rename_error(error, type(self).__name__)
            error.add_note(f"in the metric {self.name!r}")
            raise error
        self._measured = self._measured or []
        self._measured.append(measured)

    def compute(self) -> float:
        """Value over all batches since the last ``reset``; NaN if there are none."""
        if not self._measured:
            return math.nan
        # Each tensor is read only once, so that computing the metric often is cheap.
        self._measured = [row if type(row) is list else row.tolist() for row in self._measured]
        return float(self.score(self._measured))

    def reset(self) -> None:
        """Discard all batches."""
        self._measured = []

    def state(self) -> list[Any]:
        """Measurements so far, for a checkpoint."""
        return list(self._measured)

    def restore(self, state: list[Any]) -> None:
        """Replace the measurements with those that ``state`` returned."""
        self._measured = list(state)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """Value for a single batch, without changing the state."""
        alone = object.__new__(type(self))
        alone.__dict__.update(self.__dict__)
        alone.reset()
        alone.update(y_true, y_pred, sample_weight)
        return alone.compute()

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k[0] != "_" and k != "name")
        return f"{type(self).__name__}({options})"


class _RatioOfSums(Metric):
    """Metric that is the ratio of two sums."""

    def score(self, rows: Rows) -> float:
        part, whole = _totals(rows)
        return part / whole if whole else math.nan


class Accuracy(_RatioOfSums):
    """Fraction of correct predictions. The shapes determine how classes are predicted.

    - Scores with one more axis than the targets, or with several columns where the targets have one: the predicted
      class is the argmax along the last axis.
    - Scores of the same shape as one-hot targets with more than one column: the argmax of both.
    - Integers: the classes themselves.
    - Other scores of the same shape as the targets: class 1 above ``threshold``, otherwise class 0.

    Args:
        threshold: score above which class 1 is predicted.

    >>> Accuracy()([1, 0], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "accuracy"

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        true, found = _true_and_predicted(y_true, y_pred, self.threshold)
        if _is_scored(y_true, y_pred) or _is_integral(y_pred):
            return _hits(true, found, weight)
        return _binary_hits(true, found, weight)

    def score(self, rows: Rows) -> float:
        if any(beyond for row in rows for beyond in row[2:]):
            raise ValueError(f"{type(self).__name__}: classes must be 0 or 1 for one score each, got others")
        return super().score([row[:2] for row in rows])


class BinaryAccuracy(Accuracy):
    """Fraction of correct predictions of two classes. Scores have the shape of the targets.

    Args:
        threshold: score above which class 1 is predicted.

    >>> BinaryAccuracy()([1, 0, 1], [0.7, 0.6, 0.9]) == 2 / 3
    True
    """

    name = "binary_accuracy"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        _check_same_shape(y_true, y_pred)
        return _binary_hits(_binary_classes(y_true), ops.greater(y_pred, self.threshold), weight)


class CategoricalAccuracy(_RatioOfSums):
    """Fraction of correct predictions for one-hot targets: the argmax of the scores is that of the target.

    >>> CategoricalAccuracy()([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "categorical_accuracy"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        _check_same_shape(y_true, y_pred)
        return _hits(ops.argmax(y_true, axis=-1), ops.argmax(y_pred, axis=-1), weight)


class SparseCategoricalAccuracy(_RatioOfSums):
    """Fraction of correct predictions for integer targets: the argmax of the scores is the target.

    >>> SparseCategoricalAccuracy()([1, 0], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "sparse_categorical_accuracy"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        y_true = _squeeze_targets(y_true, y_pred)
        _check_one_axis_more(y_true, y_pred)
        return _hits(y_true, ops.argmax(y_pred, axis=-1), weight)


class TopKAccuracy(_RatioOfSums):
    """Fraction of examples whose true class is among the ``k`` largest scores.

    Targets are classes or one-hot rows. Among equal scores, the later class ranks first.

    Args:
        k: number of classes that count as predicted.

    >>> TopKAccuracy(k=2)([0, 1], [[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]])
    0.5
    """

    def __init__(self, k: int = 5) -> None:
        if k < 1:
            raise ValueError(f"{type(self).__name__}: k must be >= 1, got {k}")
        self.k = k

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"top_{self.k}_accuracy"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        y_true = _squeeze_targets(y_true, y_pred)
        if y_true.ndim == y_pred.ndim:
            _check_same_shape(y_true, y_pred)
            y_true = ops.argmax(y_true, axis=-1)
        _check_one_axis_more(y_true, y_pred)
        places = ops.expand_dims(ops.cast(y_true, "int64"), axis=-1)
        numbers = ops.arange(y_pred.shape[-1], device=ops.get_device(y_pred))
        # Indexing would check the classes, which waits for the computation.
        own = ops.max(ops.where(ops.equal(numbers, places), y_pred, -math.inf), axis=-1, keepdims=True)
        # Counting the larger scores directly would rank NaN first, as no comparison with NaN is true.
        behind = ops.logical_or(
            ops.less(y_pred, own), ops.logical_and(ops.equal(y_pred, own), ops.less_equal(numbers, places))
        )
        ahead = ops.sum(ops.cast(ops.logical_not(behind), "int64"), axis=-1)
        return _count_true(ops.less(ahead, self.k), weight)


class _Classes(Metric):
    """Metric computed from the confusion of classes."""

    def __init__(self, average: str = "binary", classes: int | None = None, threshold: float = 0.5) -> None:
        if average not in ("binary", "macro", "weighted", "micro"):
            raise ValueError(
                f"{type(self).__name__}: average must be 'binary', 'macro', 'weighted' or 'micro', got {average!r}"
            )
        self.average = average
        self.classes = classes
        self.threshold = threshold

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        scored = _is_scored(y_true, y_pred)
        count = self.classes or (y_pred.shape[-1] if scored else 2)
        if self.average == "binary" and count != 2:
            raise ValueError(
                f"{type(self).__name__}: average must be 'macro', 'weighted' or 'micro' for {count} classes, got "
                "'binary'"
            )
        true, found = _true_and_predicted(y_true, y_pred, self.threshold)
        weights = None if weight is None else ops.reshape(spread_weights(weight, found), (-1, 1))
        # The default float dtype may be too narrow for large counts.
        true, found = (ops.one_hot(ops.reshape(x, (-1,)), count, dtype="float32") for x in (true, found))
        # The one-hot row of a class out of range is zero; examples of weight 0 may have any class.
        lacking = ops.subtract(2, ops.sum(ops.add(true, found), axis=1, keepdims=True))
        lacking = lacking if weights is None else ops.where(ops.equal(weights, 0), 0, lacking)
        true = true if weights is None else ops.multiply(true, weights)
        both = ops.sum(ops.multiply(true, found), axis=0)
        found = found if weights is None else ops.multiply(found, weights)
        return ops.concatenate([both, ops.sum(true, axis=0), ops.sum(found, axis=0), ops.sum(lacking, axis=0)])

    def score(self, rows: Rows) -> float:
        *totals, beyond = _totals(rows)
        third = len(totals) // 3
        if beyond:
            raise ValueError(
                f"{type(self).__name__}: classes must be below {third}, got others; say how many there are with "
                "classes="
            )
        classes = list(zip(totals[:third], totals[third : 2 * third], totals[2 * third :], strict=True))
        if self.average == "binary":
            return self.of_class(*classes[1])
        if self.average == "micro":
            return self.of_class(*(sum(column) for column in zip(*classes, strict=True)))
        present = [(hits, true, found) for hits, true, found in classes if true or found]
        scores = [self.of_class(*one) for one in present]
        weights = [one[1] if self.average == "weighted" else 1.0 for one in present]
        return _ratio(sum(w * s for w, s in zip(weights, scores, strict=True)), sum(weights))

    def of_class(self, hits: float, true: float, found: float) -> float:
        """Value for one class, from the counts of its correct predictions, targets and predictions."""
        raise NotImplementedError


class Precision(_Classes):
    """Precision: the fraction of the predictions of a class that are correct; 0 if it is never predicted.

    Args:
        average: ``"binary"``, the value for class 1; ``"macro"``, the mean over the classes that occur;
            ``"weighted"``, the mean weighted by the number of targets of each class; ``"micro"``, the value of the
            counts of all classes together.
        classes: number of classes. Required if predictions are classes, not scores, and there are more than two.
        threshold: score above which class 1 is predicted, if there is one score per example.

    >>> Precision()([1, 0, 1, 1], [0.9, 0.8, 0.1, 0.7]) == 2 / 3
    True
    """

    name = "precision"

    def of_class(self, hits: float, true: float, found: float) -> float:
        return _ratio(hits, found)


class Recall(_Classes):
    """Recall: the fraction of the targets of a class that are predicted; 0 if there are none.

    The options are those of ``Precision``.

    >>> Recall()([1, 0, 1, 1], [0.9, 0.8, 0.1, 0.7]) == 2 / 3
    True
    """

    name = "recall"

    def of_class(self, hits: float, true: float, found: float) -> float:
        return _ratio(hits, true)


class F1(_Classes):
    """F1 score: the harmonic mean of precision and recall.

    The options are those of ``Precision``.

    >>> F1()([1, 0, 1, 1], [0.9, 0.8, 0.1, 0.1])
    0.4
    """

    name = "f1"

    def of_class(self, hits: float, true: float, found: float) -> float:
        return _ratio(2 * hits, true + found)


class AUC(Metric):
    """Area under the ROC curve: the probability that a positive example scores above a negative one.

    The value is exact, and ties count one half; the scores of all batches are kept until ``reset``. With one score per
    class, it is the mean over the classes, each against the rest. NaN if there are no positive or no negative examples.

    >>> AUC()([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """

    name = "auc"
    is_quick = False

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        if y_pred.ndim > 1 and y_pred.shape[-1] == 1:
            y_pred = ops.squeeze(y_pred, axis=-1)
        if y_true.ndim == y_pred.ndim + 1 and y_true.shape[-1] == 1:
            y_true = ops.squeeze(y_true, axis=-1)
        columns = y_pred.shape[-1] if y_pred.ndim > 1 else 1
        if columns > 1:
            y_true = _squeeze_targets(y_true, y_pred)
            if tuple(y_true.shape) == tuple(y_pred.shape)[:-1]:
                rows = ops.one_hot(ops.cast(y_true, "int64"), columns)
                y_true = ops.where(ops.any(rows, axis=-1, keepdims=True), rows, 2)
        _check_same_shape(y_true, y_pred)
        cases = ops.reshape(_binary_classes(y_true), (-1, columns)), ops.reshape(y_pred, (-1, columns))
        if weight is None:
            return cases
        return *cases, ops.reshape(spread_weights(weight, y_pred[..., 0] if columns > 1 else y_pred), (-1,))

    def compute(self) -> float:
        """Value over all batches since the last ``reset``; NaN if there are none."""
        if not self._measured:
            return math.nan
        true, scores = (ops.concatenate([batch[i] for batch in self._measured]) for i in range(2))
        beyond = ops.greater(true, 1)
        weights = None
        if any(len(batch) > 2 for batch in self._measured):
            weights = ops.concatenate([_row_weights(*batch) for batch in self._measured])
            beyond = ops.logical_and(beyond, ops.not_equal(ops.expand_dims(weights, axis=1), 0))
        if _read(ops.any(beyond)):
            columns = scores.shape[1]
            known = "0 or 1 for one score each" if columns == 1 else f"below {columns}, the number of scores"
            raise ValueError(f"{type(self).__name__}: classes must be {known}, got others")
        if _read(ops.any(ops.isnan(scores))):
            return math.nan
        true = ops.equal(true, 1)
        areas: list[float] = [self._area(true[:, i], scores[:, i], weights) for i in range(scores.shape[1])]
        return math.fsum(areas) / len(areas)

    @staticmethod
    def _area(true: Any, scores: Any, weights: Any) -> float:
        parts = [scores] if weights is None else [scores, weights]
        yes, *yes_weights = _select(parts, true)
        no, *no_weights = _select(parts, ops.logical_not(true))
        if not yes.shape[0] * no.shape[0]:
            return math.nan
        if weights is None:
            no = ops.sort(no)
            below = ops.add(ops.searchsorted(no, yes, side="left"), ops.searchsorted(no, yes, side="right"))
            return float(_read(ops.sum(below)) / (2 * yes.shape[0] * no.shape[0]))
        order = ops.argsort(no)
        no = ops.take(no, order)
        # Python floats are more precise than the floats of some devices.
        sums = list(accumulate(_read(ops.take(no_weights[0], order)), initial=0.0))
        ends = (_read(ops.searchsorted(no, yes, side=side)) for side in ("left", "right"))
        own = _read(yes_weights[0])
        pairs = 2 * math.fsum(own) * sums[-1]
        won = math.fsum(w * (sums[i] + sums[j]) for w, i, j in zip(own, *ends, strict=True))
        return won / pairs if pairs else math.nan


class MeanSquaredError(_RatioOfSums):
    """Mean of ``(y_true - y_pred) ** 2`` over all elements.

    >>> MeanSquaredError()([1.0, 2.0], [2.0, 4.0])
    2.5
    """

    name = "mse"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        return _sum_and_total(ops.square(_error(y_true, y_pred)), weight)


class MeanAbsoluteError(_RatioOfSums):
    """Mean of ``abs(y_true - y_pred)`` over all elements.

    >>> MeanAbsoluteError()([1.0, 2.0], [2.0, 4.0])
    1.5
    """

    name = "mae"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        return _sum_and_total(ops.abs(_error(y_true, y_pred)), weight)


class R2(Metric):
    """Coefficient of determination: 1 minus the squared error divided by the total squares of the targets.

    The total squares are those of the deviations from the mean. With several columns, the value is the mean over them.
    If all targets are equal, the value is 1 for predictions without error and 0 otherwise.

    >>> R2()([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """

    name = "r2"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        error = _error(y_true, y_pred)
        columns = error.shape[-1] if error.ndim > 1 else 1
        weights = ops.reshape(ops.ones_like(error) if weight is None else spread_weights(weight, error), (-1, columns))
        error, true = ops.reshape(error, (-1, columns)), ops.reshape(ops.cast(y_true, ops.dtype(error)), (-1, columns))
        count = ops.sum(weights, axis=0)
        # The mean of a batch of weight 0 is not used, so any divisor but 0 will do.
        mean = ops.divide(ops.sum(_weighted(true, weights), axis=0), ops.where(ops.equal(count, 0), 1, count))
        deviation = ops.subtract(true, mean)
        # Rounding error of the mean.
        rest = ops.sum(_weighted(deviation, weights), axis=0)
        spread = ops.sum(_weighted(ops.square(deviation), weights), axis=0)
        return ops.concatenate([count, mean, rest, spread, ops.sum(_weighted(ops.square(error), weights), axis=0)])

    def score(self, rows: Rows) -> float:
        width = len(rows[0]) // 5
        scores = []
        for i in range(width):
            parts = [row[i::width] for row in rows if row[i]]
            count = math.fsum(part[0] for part in parts)
            if not count:
                return math.nan
            mean = math.fsum(part[0] * part[1] + part[2] for part in parts) / count
            # The squares of each batch are those of the deviations from its own mean.
            spread = math.fsum(
                part[3] + (part[1] - mean) * (2 * part[2] + part[0] * (part[1] - mean)) for part in parts
            )
            error = math.fsum(part[4] for part in parts)
            scores.append(1 - error / spread if spread else float(error == 0))
        return math.fsum(scores) / width


_NAMES: dict[str, Callable[[], Metric]] = {
    "accuracy": Accuracy,
    "binary_accuracy": BinaryAccuracy,
    "categorical_accuracy": CategoricalAccuracy,
    "sparse_categorical_accuracy": SparseCategoricalAccuracy,
    "top_k_accuracy": TopKAccuracy,
    "precision": Precision,
    "recall": Recall,
    "f1": F1,
    "auc": AUC,
    "mse": MeanSquaredError,
    "mae": MeanAbsoluteError,
    "r2": R2,
}


def get_metric(metric: str | Metric) -> Metric:
    """Metric from its name; an instance of ``Metric`` is returned unchanged.

    >>> get_metric("mae")
    MeanAbsoluteError()
    """
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        is_class = isinstance(metric, type) and issubclass(metric, Metric)
        hint = f"write {metric.__name__}()" if is_class else "a metric of your own is a subclass of Metric"
        raise TypeError(f"Trainer: metrics must be Metric instances or names of metrics, got {written(metric)}; {hint}")
    name = value_named(metric, _NAMES)
    if name is None:
        hint = value_hint(metric, _NAMES)
        raise ValueError(f"Trainer: metrics must be among {', '.join(_NAMES)}, got {metric!r}{hint}")
    return _NAMES[name]()


def _as_tensors(values: Any) -> Any:
    """Tensor from an array; for a dictionary or tuple of arrays, one of tensors."""
    if isinstance(values, dict):
        return {key: _as_tensors(value) for key, value in values.items()}
    if isinstance(values, tuple) and any(isinstance(one, dict) or getattr(one, "shape", ()) for one in values):
        return tuple(_as_tensors(value) for value in values)
    return ops.asarray(values)


def _is_integral(x: Any) -> bool:
    kind = ops.dtype(x).kind
    return kind in KINDS["integral"] or kind in KINDS["bool"]


def _is_scored(y_true: Any, y_pred: Any) -> bool:
    """Whether the last axis of the predictions holds one score per class."""
    has_columns = bool(y_pred.ndim > 1 and y_pred.shape[-1] > 1)
    return has_columns and (y_pred.ndim == y_true.ndim + 1 or not _is_integral(y_pred))


def _true_and_predicted(y_true: Any, y_pred: Any, threshold: float) -> tuple[Any, Any]:
    """True and predicted classes, from classes, scores or one-hot rows."""
    if _is_scored(y_true, y_pred):
        found = ops.argmax(y_pred, axis=-1)
        true = _squeeze_targets(y_true, y_pred)
        if true.ndim == y_pred.ndim:
            _check_same_shape(true, y_pred)
            true = ops.argmax(true, axis=-1)
    else:
        true = y_true
        found = y_pred if _is_integral(y_pred) else ops.greater(y_pred, threshold)
        if not _is_integral(y_pred) and not _is_integral(y_true):
            true = _binary_classes(y_true)
        if found.ndim == true.ndim + 1 and found.shape[-1] == 1:
            found = ops.squeeze(found, axis=-1)
        elif true.ndim == found.ndim + 1 and true.shape[-1] == 1:
            true = ops.squeeze(true, axis=-1)
    _check_same_shape(true, found)
    return ops.cast(true, "int64"), ops.cast(found, "int64")


def _squeeze_targets(y_true: Any, y_pred: Any) -> Any:
    """Targets without their last axis, if it has length 1 and that of the scores has one element per class."""
    is_column = y_true.ndim == y_pred.ndim and y_true.ndim > 1 and y_true.shape[-1] == 1 != y_pred.shape[-1]
    return ops.squeeze(y_true, axis=-1) if is_column else y_true


def _hits(true: Any, found: Any, weight: Any) -> Any:
    return _count_true(ops.equal(true, found), weight)


def _binary_hits(true: Any, found: Any, weight: Any) -> Any:
    """Hits and total of predictions of two classes, and the number of targets that are neither 0 nor 1."""
    beyond = ops.logical_or(ops.less(true, 0), ops.greater(true, 1))
    return ops.concatenate([_hits(true, found, weight), _count_true(beyond, weight)[:1]])


def _binary_classes(y_true: Any) -> Any:
    """Targets as classes: 0 up to 0.5, 1 up to 1, and 2 for larger values and NaN."""
    return ops.cast(ops.where(ops.less_equal(y_true, 1), ops.greater(y_true, 0.5), 2), "int8")


def _count_true(right: Any, weight: Any) -> Any:
    """Number of true elements and of all elements, or the sums of their weights."""
    return _sum_and_total(ops.cast(right, "int64"), weight)


def _sum_and_total(x: Any, weight: Any) -> Any:
    """Sum of ``x`` and number of elements; with weights, the weighted sum and the sum of weights."""
    if weight is None:
        total = ops.sum(x)
        return ops.stack([total, ops.full_like(total, math.prod(x.shape))])
    weights = spread_weights(weight, x)
    return ops.stack([ops.sum(_weighted(x, weights)), ops.sum(weights)])


def _weighted(x: Any, weights: Any) -> Any:
    """``x`` times its weights; 0 where the weight is 0, even for NaN."""
    return ops.where(ops.equal(weights, 0), 0, ops.multiply(x, weights))


def spread_weights(weight: Any, like: Any) -> Any:
    """Weights of the leading axes of ``like``, broadcast to its shape."""
    shape, sizes = tuple(like.shape), tuple(weight.shape)
    if not sizes or sizes != shape[: len(sizes)]:
        raise ValueError(f"weights must have the first axes of {list(shape)}, got shape {list(sizes)}")
    dtype = "float64" if "float64" in (ops.dtype(weight).name, ops.dtype(like).name) else "float32"
    weight = ops.reshape(ops.cast(weight, dtype), (*sizes, *(1,) * (len(shape) - len(sizes))))
    return ops.broadcast_to(weight, shape)


def _row_weights(true: Any, scores: Any, weights: Any = None) -> Any:
    """Weights of a batch; 1 if it has none."""
    return ops.cast(ops.ones_like(scores[:, 0]), "float32") if weights is None else weights


def _error(y_true: Any, y_pred: Any) -> Any:
    if tuple(y_true.shape) != tuple(y_pred.shape):
        # Predictions often have a trailing axis of length 1 that targets lack.
        if y_pred.ndim == y_true.ndim + 1 and y_pred.shape[-1] == 1:
            y_pred = ops.squeeze(y_pred, axis=-1)
        _check_same_shape(y_true, y_pred)
    dtype = "float64" if ops.dtype(y_pred).name == "float64" else "float32"
    return ops.subtract(ops.cast(y_true, dtype), ops.cast(y_pred, dtype))


def _select(parts: list[Any], mask: Any) -> list[Any]:
    return [ops.masked_select(part, mask) for part in parts]  # emberlint: ignore[EMB309] results are not compiled


def _read(x: Any) -> Any:
    """Value of a tensor as a number or a list; used only where a result is reported."""
    return x.tolist()


def _totals(rows: Rows) -> list[float]:
    return [math.fsum(column) for column in zip(*rows, strict=True)]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _check_same_shape(y_true: Any, y_pred: Any) -> None:
    if tuple(y_true.shape) != tuple(y_pred.shape):
        raise ValueError(f"y_true and y_pred must have one shape, got {list(y_true.shape)} and {list(y_pred.shape)}")


def _check_one_axis_more(y_true: Any, y_pred: Any) -> None:
    if tuple(y_true.shape) != tuple(y_pred.shape)[:-1]:
        raise ValueError(
            f"y_pred must have one axis more than y_true, got {list(y_pred.shape)} and {list(y_true.shape)}"
        )
