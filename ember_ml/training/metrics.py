"""Metrics: how good predictions are, over as many batches as there are.

A metric is given ``(y_true, y_pred)`` batch by batch with ``update``; ``compute`` answers its value over all of them,
equal to that of all at once, and ``reset`` starts anew. ``update`` only adds to what is to be computed, so that a lazy
engine need not wait; ``compute`` reads numbers. Weights say how much each example counts; of sequences, there may be
one for each example or one for each step, 0 where there is nothing but padding.
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

Rows = list[list[float]]


def _measure(self: Metric, y_true: Any, y_pred: Any) -> Any:
    """What is to be known of a batch: a tensor of one axis, or a tuple of tensors."""
    raise NotImplementedError(f"{type(self).__name__}: a subclass of Metric must define measure, got none")


class Metric:
    """The base of metrics. A new one gives ``measure``, a vector of each batch, and ``score``, a number from all.

    If ``measure`` takes a third argument, it is the weights of the batch, or ``None``. What a model answers in a
    dictionary or a tuple, and what is true of it, reach ``measure`` so.

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

    # Whether it is worth computing in the middle of an epoch, for a progress bar.
    is_quick = True

    # Nothing yet: a list of an instance's own comes with its first batch, so that there is no __init__ to remember.
    _measured: Any = ()

    # Typed as an attribute, so that subclasses may write one with weights or without.
    measure: Callable[..., Any] = _measure

    def score(self, rows: Rows) -> float:
        """The value, from what was measured of every batch."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Metric must define score, got none")

    def update(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Nothing; one more batch counts.

        Args:
            sample_weight: how much each example counts; by default, all count as 1.
        """
        given = () if sample_weight is None else (ops.asarray(sample_weight),)
        if given and len(inspect.signature(self.measure).parameters) < 3:
            raise TypeError(f"{type(self).__name__}: sample_weight must be None, as measure has no argument for it")
        true, found = _tensors(y_true), _tensors(y_pred)
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
        """The value over all batches since the last ``reset``; NaN if there was none."""
        if not self._measured:
            return math.nan
        # What was read stays numbers, so that looking often costs little.
        self._measured = [row if type(row) is list else row.tolist() for row in self._measured]
        return float(self.score(self._measured))

    def reset(self) -> None:
        """Nothing; the batches so far are forgotten."""
        self._measured = []

    def state(self) -> list[Any]:
        """What was measured so far, for a checkpoint."""
        return list(self._measured)

    def restore(self, state: list[Any]) -> None:
        """Nothing; what was measured is what another one's ``state`` says."""
        self._measured = list(state)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """The value for these alone."""
        alone = object.__new__(type(self))
        alone.__dict__.update(self.__dict__)
        alone.reset()
        alone.update(y_true, y_pred, sample_weight)
        return alone.compute()

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k[0] != "_" and k != "name")
        return f"{type(self).__name__}({options})"


class _Share(Metric):
    """The sum of something over the sum of something else."""

    def score(self, rows: Rows) -> float:
        part, whole = _totals(rows)
        return part / whole if whole else math.nan


class Accuracy(_Share):
    """The share of predictions that are right; what is predicted follows from the shapes.

    Scores with one more axis than the classes, or with more columns where these have one: the largest along the last
    axis is the prediction. Scores of the shape of one-hot rows (more than one column): the largest of both. Integers:
    themselves. Other numbers of the same shape: yes, which is class 1, above ``threshold``.

    >>> Accuracy()([1, 0], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "accuracy"

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        true, found = _labels(y_true, y_pred, self.threshold)
        if _is_scored(y_true, y_pred) or _is_integral(y_pred):
            return _hits(true, found, weight)
        return _decided(true, found, weight)

    def score(self, rows: Rows) -> float:
        if any(beyond for row in rows for beyond in row[2:]):
            raise ValueError(f"{type(self).__name__}: classes must be 0 or 1 for one score each, got others")
        return super().score([row[:2] for row in rows])


class BinaryAccuracy(Accuracy):
    """The share of scores on the right side of ``threshold``; scores and classes have one shape.

    >>> BinaryAccuracy()([1, 0, 1], [0.7, 0.6, 0.9]) == 2 / 3
    True
    """

    name = "binary_accuracy"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        _check_same_shape(y_true, y_pred)
        return _decided(_kinds(y_true), ops.greater(y_pred, self.threshold), weight)


class CategoricalAccuracy(_Share):
    """The share of rows whose largest score is where that of the one-hot row is.

    >>> CategoricalAccuracy()([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "categorical_accuracy"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        _check_same_shape(y_true, y_pred)
        return _hits(ops.argmax(y_true, axis=-1), ops.argmax(y_pred, axis=-1), weight)


class SparseCategoricalAccuracy(_Share):
    """The share of rows whose largest score is that of the true class.

    >>> SparseCategoricalAccuracy()([1, 0], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "sparse_categorical_accuracy"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        y_true = _classes(y_true, y_pred)
        _check_one_axis_more(y_true, y_pred)
        return _hits(y_true, ops.argmax(y_pred, axis=-1), weight)


class TopKAccuracy(_Share):
    """The share of rows whose true class is among the ``k`` with the largest scores.

    The truth is classes, or one-hot rows. Of equal scores, that of the later class counts as the larger.

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
        y_true = _classes(y_true, y_pred)
        if y_true.ndim == y_pred.ndim:
            _check_same_shape(y_true, y_pred)
            y_true = ops.argmax(y_true, axis=-1)
        _check_one_axis_more(y_true, y_pred)
        places = ops.expand_dims(ops.cast(y_true, "int64"), axis=-1)
        numbers = ops.arange(y_pred.shape[-1], device=ops.get_device(y_pred))
        # Not by an index, which would be checked, and so waited for.
        own = ops.max(ops.where(ops.equal(numbers, places), y_pred, -math.inf), axis=-1, keepdims=True)
        # Not those ahead of it, since no number is ahead of NaN.
        behind = ops.logical_or(
            ops.less(y_pred, own), ops.logical_and(ops.equal(y_pred, own), ops.less_equal(numbers, places))
        )
        ahead = ops.sum(ops.cast(ops.logical_not(behind), "int64"), axis=-1)
        return _counted(ops.less(ahead, self.k), weight)


class _Classes(Metric):
    """A metric of the confusion of classes."""

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
        true, found = _labels(y_true, y_pred, self.threshold)
        weights = None if weight is None else ops.reshape(spread_weights(weight, found), (-1, 1))
        # Not in the default float, in which large numbers may have no place.
        true, found = (ops.one_hot(ops.reshape(x, (-1,)), count, dtype="float32") for x in (true, found))
        # A class that is not expected has no place in its row; where there is no weight, nothing is expected.
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
        """The value for a class: how often it was found rightly, was true, and was found."""
        raise NotImplementedError


class Precision(_Classes):
    """The share of what was found that is true; 0 where nothing was found.

    Args:
        average: ``"binary"``, of class 1 alone; ``"macro"``, the mean over the classes that occur; ``"weighted"``, the
            same by how often each is true; ``"micro"``, of all decisions together.
        classes: how many there are; needed for predictions that are classes and not scores, if there are more than two.
        threshold: the score above which class 1 is predicted, where there is one score for each.

    >>> Precision()([1, 0, 1, 1], [0.9, 0.8, 0.1, 0.7]) == 2 / 3
    True
    """

    name = "precision"

    def of_class(self, hits: float, true: float, found: float) -> float:
        return _ratio(hits, found)


class Recall(_Classes):
    """The share of what is true that was found; 0 where nothing is true.

    The options are those of ``Precision``.

    >>> Recall()([1, 0, 1, 1], [0.9, 0.8, 0.1, 0.7]) == 2 / 3
    True
    """

    name = "recall"

    def of_class(self, hits: float, true: float, found: float) -> float:
        return _ratio(hits, true)


class F1(_Classes):
    """The harmonic mean of precision and recall.

    The options are those of ``Precision``.

    >>> F1()([1, 0, 1, 1], [0.9, 0.8, 0.1, 0.1])
    0.4
    """

    name = "f1"

    def of_class(self, hits: float, true: float, found: float) -> float:
        return _ratio(2 * hits, true + found)


class AUC(Metric):
    """The area under the receiver operating characteristic: the chance that a true case scores above a false one.

    Exact, ties counting a half; the scores of all batches are kept until ``reset``. One score for each case, or one for
    each case and class: then the mean over the classes, each against the rest. NaN where one kind of case is lacking.

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
            y_true = _classes(y_true, y_pred)
            if tuple(y_true.shape) == tuple(y_pred.shape)[:-1]:
                rows = ops.one_hot(ops.cast(y_true, "int64"), columns)
                y_true = ops.where(ops.any(rows, axis=-1, keepdims=True), rows, 2)
        _check_same_shape(y_true, y_pred)
        cases = ops.reshape(_kinds(y_true), (-1, columns)), ops.reshape(y_pred, (-1, columns))
        if weight is None:
            return cases
        return *cases, ops.reshape(spread_weights(weight, y_pred[..., 0] if columns > 1 else y_pred), (-1,))

    def compute(self) -> float:
        """The value over all batches since the last ``reset``; NaN if there was none."""
        if not self._measured:
            return math.nan
        true, scores = (ops.concatenate([batch[i] for batch in self._measured]) for i in range(2))
        beyond = ops.greater(true, 1)
        weights = None
        if any(len(batch) > 2 for batch in self._measured):
            weights = ops.concatenate([_row_weights(*batch) for batch in self._measured])
            beyond = ops.logical_and(beyond, ops.not_equal(ops.expand_dims(weights, axis=1), 0))
        if _number(ops.any(beyond)):
            columns = scores.shape[1]
            known = "0 or 1 for one score each" if columns == 1 else f"below {columns}, the number of scores"
            raise ValueError(f"{type(self).__name__}: classes must be {known}, got others")
        if _number(ops.any(ops.isnan(scores))):
            return math.nan
        true = ops.equal(true, 1)
        areas: list[float] = [self._area(true[:, i], scores[:, i], weights) for i in range(scores.shape[1])]
        return math.fsum(areas) / len(areas)

    @staticmethod
    def _area(true: Any, scores: Any, weights: Any) -> float:
        parts = [scores] if weights is None else [scores, weights]
        yes, *yes_weights = _chosen(parts, true)
        no, *no_weights = _chosen(parts, ops.logical_not(true))
        if not yes.shape[0] * no.shape[0]:
            return math.nan
        if weights is None:
            no = ops.sort(no)
            below = ops.add(ops.searchsorted(no, yes, side="left"), ops.searchsorted(no, yes, side="right"))
            return float(_number(ops.sum(below)) / (2 * yes.shape[0] * no.shape[0]))
        order = ops.argsort(no)
        no = ops.take(no, order)
        # Added up as Python's numbers, which have more digits than those of some devices.
        sums = list(accumulate(_number(ops.take(no_weights[0], order)), initial=0.0))
        ends = (_number(ops.searchsorted(no, yes, side=side)) for side in ("left", "right"))
        own = _number(yes_weights[0])
        pairs = 2 * math.fsum(own) * sums[-1]
        won = math.fsum(w * (sums[i] + sums[j]) for w, i, j in zip(own, *ends, strict=True))
        return won / pairs if pairs else math.nan


class MeanSquaredError(_Share):
    """The mean of ``(y_true - y_pred) ** 2`` over all numbers.

    >>> MeanSquaredError()([1.0, 2.0], [2.0, 4.0])
    2.5
    """

    name = "mse"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        return _summed(ops.square(_error(y_true, y_pred)), weight)


class MeanAbsoluteError(_Share):
    """The mean of ``abs(y_true - y_pred)`` over all numbers.

    >>> MeanAbsoluteError()([1.0, 2.0], [2.0, 4.0])
    1.5
    """

    name = "mae"

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        return _summed(ops.abs(_error(y_true, y_pred)), weight)


class R2(Metric):
    """The coefficient of determination: 1 less the squared error over that of the mean of what is true.

    The mean over the columns, if there are several. Where all that is true is one number: 1 for predictions without
    error, else 0.

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
        # A batch without weight does not count, whatever its mean.
        middle = ops.divide(ops.sum(_weighed(true, weights), axis=0), ops.where(ops.equal(count, 0), 1, count))
        apart = ops.subtract(true, middle)
        # What the middle lost when it was rounded.
        rest = ops.sum(_weighed(apart, weights), axis=0)
        spread = ops.sum(_weighed(ops.square(apart), weights), axis=0)
        return ops.concatenate([count, middle, rest, spread, ops.sum(_weighed(ops.square(error), weights), axis=0)])

    def score(self, rows: Rows) -> float:
        width = len(rows[0]) // 5
        scores = []
        for i in range(width):
            parts = [row[i::width] for row in rows if row[i]]
            count = math.fsum(part[0] for part in parts)
            if not count:
                return math.nan
            middle = math.fsum(part[0] * part[1] + part[2] for part in parts) / count
            # The spread of a batch is around a middle of its own.
            spread = math.fsum(
                part[3] + (part[1] - middle) * (2 * part[2] + part[0] * (part[1] - middle)) for part in parts
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
    """The metric of a name, or the metric itself.

    >>> get_metric("mae")
    MeanAbsoluteError()
    """
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        is_class = isinstance(metric, type) and issubclass(metric, Metric)
        hint = f"write {metric.__name__}()" if is_class else "a metric of your own is a subclass of Metric"
        raise TypeError(f"Trainer: metrics must be Metric instances or names of metrics, got {written(metric)}; {hint}")
    if metric not in _NAMES:
        raise ValueError(f"Trainer: metrics must be among {', '.join(_NAMES)}, got {metric!r}")
    return _NAMES[metric]()


def _tensors(values: Any) -> Any:
    """A tensor; of several, as a model may answer, the dictionary or the tuple of them."""
    if isinstance(values, dict):
        return {key: _tensors(value) for key, value in values.items()}
    if isinstance(values, tuple) and any(isinstance(one, dict) or getattr(one, "shape", ()) for one in values):
        return tuple(_tensors(value) for value in values)
    return ops.asarray(values)


def _is_integral(x: Any) -> bool:
    kind = ops.dtype(x).kind
    return kind in KINDS["integral"] or kind in KINDS["bool"]


def _is_scored(y_true: Any, y_pred: Any) -> bool:
    """Whether the last axis of predictions has a score for each class."""
    has_columns = bool(y_pred.ndim > 1 and y_pred.shape[-1] > 1)
    return has_columns and (y_pred.ndim == y_true.ndim + 1 or not _is_integral(y_pred))


def _labels(y_true: Any, y_pred: Any, threshold: float) -> tuple[Any, Any]:
    """Classes that are true, and classes that are predicted, from either, from scores and from one-hot rows."""
    if _is_scored(y_true, y_pred):
        found = ops.argmax(y_pred, axis=-1)
        true = _classes(y_true, y_pred)
        if true.ndim == y_pred.ndim:
            _check_same_shape(true, y_pred)
            true = ops.argmax(true, axis=-1)
    else:
        true = y_true
        found = y_pred if _is_integral(y_pred) else ops.greater(y_pred, threshold)
        if not _is_integral(y_pred) and not _is_integral(y_true):
            true = _kinds(y_true)
        if found.ndim == true.ndim + 1 and found.shape[-1] == 1:
            found = ops.squeeze(found, axis=-1)
        elif true.ndim == found.ndim + 1 and true.shape[-1] == 1:
            true = ops.squeeze(true, axis=-1)
    _check_same_shape(true, found)
    return ops.cast(true, "int64"), ops.cast(found, "int64")


def _classes(y_true: Any, y_pred: Any) -> Any:
    """What is true, without the one column that it may have where scores have one for each class."""
    is_column = y_true.ndim == y_pred.ndim and y_true.ndim > 1 and y_true.shape[-1] == 1 != y_pred.shape[-1]
    return ops.squeeze(y_true, axis=-1) if is_column else y_true


def _hits(true: Any, found: Any, weight: Any) -> Any:
    return _counted(ops.equal(true, found), weight)


def _decided(true: Any, found: Any, weight: Any) -> Any:
    """The hits of yes and no, and how much there is that is true of neither."""
    beyond = ops.logical_or(ops.less(true, 0), ops.greater(true, 1))
    return ops.concatenate([_hits(true, found, weight), _counted(beyond, weight)[:1]])


def _kinds(y_true: Any) -> Any:
    """1 for what is true, 0 for what is not, and 2 for another class, or none."""
    return ops.cast(ops.where(ops.less_equal(y_true, 1), ops.greater(y_true, 0.5), 2), "int8")


def _counted(right: Any, weight: Any) -> Any:
    """How many are right, and how many there are; or how much those weigh."""
    return _summed(ops.cast(right, "int64"), weight)


def _summed(x: Any, weight: Any) -> Any:
    """The sum of ``x``, and how many there are; or how much those weigh."""
    if weight is None:
        total = ops.sum(x)
        return ops.stack([total, ops.full_like(total, math.prod(x.shape))])
    weights = spread_weights(weight, x)
    return ops.stack([ops.sum(_weighed(x, weights)), ops.sum(weights)])


def _weighed(x: Any, weights: Any) -> Any:
    """``x`` times its weights, and 0 where there is none, whatever is there."""
    return ops.where(ops.equal(weights, 0), 0, ops.multiply(x, weights))


def spread_weights(weight: Any, like: Any) -> Any:
    """A weight for every element of a tensor, from those of its first axes."""
    shape, sizes = tuple(like.shape), tuple(weight.shape)
    if not sizes or sizes != shape[: len(sizes)]:
        raise ValueError(f"weights must have the first axes of {list(shape)}, got shape {list(sizes)}")
    dtype = "float64" if "float64" in (ops.dtype(weight).name, ops.dtype(like).name) else "float32"
    weight = ops.reshape(ops.cast(weight, dtype), (*sizes, *(1,) * (len(shape) - len(sizes))))
    return ops.broadcast_to(weight, shape)


def _row_weights(true: Any, scores: Any, weights: Any = None) -> Any:
    """The weights of a batch; those of one that has none are 1."""
    return ops.cast(ops.ones_like(scores[:, 0]), "float32") if weights is None else weights


def _error(y_true: Any, y_pred: Any) -> Any:
    if tuple(y_true.shape) != tuple(y_pred.shape):
        # One column or none is the same.
        if y_pred.ndim == y_true.ndim + 1 and y_pred.shape[-1] == 1:
            y_pred = ops.squeeze(y_pred, axis=-1)
        _check_same_shape(y_true, y_pred)
    dtype = "float64" if ops.dtype(y_pred).name == "float64" else "float32"
    return ops.subtract(ops.cast(y_true, dtype), ops.cast(y_pred, dtype))


def _chosen(parts: list[Any], mask: Any) -> list[Any]:
    return [ops.masked_select(part, mask) for part in parts]  # emberlint: ignore[EMB309] results are not compiled


def _number(x: Any) -> Any:
    """The number, or the list of numbers, that a tensor holds; read where a result is reported."""
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
