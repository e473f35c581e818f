"""Metrics: how good predictions are, over as many batches as there are.

A metric is given ``(y_true, y_pred)`` batch by batch with ``update``; ``compute`` answers its value over all of them,
equal to that of all at once, and ``reset`` starts anew. ``update`` only adds to what is to be computed, so that a lazy
engine need not wait; ``compute`` reads numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.dtypes import KINDS

Rows = list[list[float]]


class Metric:
    """The base of metrics. A new one gives ``measure``, a vector of each batch, and ``score``, a number from all.

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

    def __init__(self) -> None:
        self._measured: list[Any] = []

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        """What is to be known of a batch: a tensor of one axis, or a tuple of tensors."""
        raise NotImplementedError(f"{type(self).__name__} has no measure")

    def score(self, rows: Rows) -> float:
        """The value, from what was measured of every batch."""
        raise NotImplementedError(f"{type(self).__name__} has no score")

    def update(self, y_true: Any, y_pred: Any) -> None:
        """Nothing; one more batch counts."""
        self._measured.append(self.measure(ops.asarray(y_true), ops.asarray(y_pred)))

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

    def __call__(self, y_true: Any, y_pred: Any) -> float:
        """The value for these alone."""
        alone = object.__new__(type(self))
        alone.__dict__.update(self.__dict__)
        alone.reset()
        alone.update(y_true, y_pred)
        return alone.compute()

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k[0] != "_" and k != "name")
        return f"{type(self).__name__}({options})"


class _Share(Metric):
    """The sum of something over the sum of something else."""

    def score(self, rows: Rows) -> float:
        return _ratio(*_totals(rows))


class Accuracy(_Share):
    """The share of predictions that are right; what is predicted follows from the shapes.

    Scores with one more axis than the classes: the largest along the last axis is the prediction. Scores of the shape
    of one-hot rows (more than one column): the largest of both. Integers: themselves. Other numbers of the same shape:
    yes above ``threshold``.

    >>> Accuracy()([1, 0], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "accuracy"

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__()
        self.threshold = threshold

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        return _hits(*_labels(y_true, y_pred, self.threshold))


class BinaryAccuracy(_Share):
    """The share of scores on the right side of ``threshold``; scores and classes have one shape.

    >>> BinaryAccuracy()([1, 0, 1], [0.7, 0.6, 0.9]) == 2 / 3
    True
    """

    name = "binary_accuracy"

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__()
        self.threshold = threshold

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        _check_same_shape(y_true, y_pred)
        return _hits(ops.greater(y_true, 0.5), ops.greater(y_pred, self.threshold))


class CategoricalAccuracy(_Share):
    """The share of rows whose largest score is where that of the one-hot row is.

    >>> CategoricalAccuracy()([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "categorical_accuracy"

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        _check_same_shape(y_true, y_pred)
        return _hits(ops.argmax(y_true, axis=-1), ops.argmax(y_pred, axis=-1))


class SparseCategoricalAccuracy(_Share):
    """The share of rows whose largest score is that of the true class.

    >>> SparseCategoricalAccuracy()([1, 0], [[0.1, 0.9], [0.2, 0.8]])
    0.5
    """

    name = "sparse_categorical_accuracy"

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        _check_one_axis_more(y_true, y_pred)
        return _hits(y_true, ops.argmax(y_pred, axis=-1))


class TopKAccuracy(_Share):
    """The share of rows whose true class is among the ``k`` with the largest scores.

    The truth is classes, or one-hot rows. Of equal scores, that of the later class counts as the larger.

    >>> TopKAccuracy(k=2)([0, 1], [[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]])
    0.5
    """

    def __init__(self, k: int = 5) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k is at least 1, not {k}")
        self.k = k

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"top_{self.k}_accuracy"

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        if y_true.ndim == y_pred.ndim:
            y_true = ops.argmax(y_true, axis=-1)
        _check_one_axis_more(y_true, y_pred)
        places = ops.expand_dims(ops.cast(y_true, "int64"), axis=-1)
        numbers = ops.arange(y_pred.shape[-1], device=ops.get_device(y_pred))
        # Not by an index, which would be checked, and so waited for.
        own = ops.max(ops.where(ops.equal(numbers, places), y_pred, -math.inf), axis=-1, keepdims=True)
        ahead = ops.logical_or(
            ops.greater(y_pred, own), ops.logical_and(ops.equal(y_pred, own), ops.greater(numbers, places))
        )
        return _counted(ops.less(ops.sum(ops.cast(ahead, "int64"), axis=-1), self.k))


class _Classes(Metric):
    """A metric of the confusion of classes."""

    def __init__(self, average: str = "binary", classes: int | None = None, threshold: float = 0.5) -> None:
        super().__init__()
        if average not in ("binary", "macro", "weighted", "micro"):
            raise ValueError(f"average is 'binary', 'macro', 'weighted' or 'micro', not {average!r}")
        self.average = average
        self.classes = classes
        self.threshold = threshold

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        scored = _is_scored(y_true, y_pred)
        count = self.classes or (y_pred.shape[-1] if scored else 2)
        if self.average == "binary" and count != 2:
            raise ValueError(f"there are {count} classes: average is 'macro', 'weighted' or 'micro' then")
        true, found = _labels(y_true, y_pred, self.threshold)
        true, found = (ops.one_hot(ops.reshape(ops.cast(x, "int64"), (-1,)), count) for x in (true, found))
        both = ops.sum(ops.multiply(true, found), axis=0)
        whole = ops.full_like(both[:1], true.shape[0])
        return ops.concatenate([both, ops.sum(true, axis=0), ops.sum(found, axis=0), whole])

    def score(self, rows: Rows) -> float:
        *totals, whole = _totals(rows)
        third = len(totals) // 3
        if not sum(totals[third : 2 * third]) == sum(totals[2 * third :]) == whole:
            raise ValueError(f"there are classes beyond the {third} that were expected; say how many with classes=")
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

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        if y_pred.ndim == y_true.ndim + 1 and y_pred.shape[-1] > 1:
            y_true = ops.one_hot(ops.cast(y_true, "int64"), y_pred.shape[-1])
        else:
            y_true = ops.reshape(y_true, tuple(y_pred.shape))
        columns = y_pred.shape[-1] if y_pred.ndim > 1 else 1
        return ops.reshape(ops.greater(y_true, 0.5), (-1, columns)), ops.reshape(y_pred, (-1, columns))

    def compute(self) -> float:
        """The value over all batches since the last ``reset``; NaN if there was none."""
        if not self._measured:
            return math.nan
        true, scores = (ops.concatenate(list(column)) for column in zip(*self._measured, strict=True))
        areas: list[float] = [self._area(true[:, i], scores[:, i]) for i in range(scores.shape[1])]
        return math.fsum(areas) / len(areas)

    @staticmethod
    def _area(true: Any, scores: Any) -> float:
        yes = ops.masked_select(scores, true)  # emberlint: ignore[EMB309] results are not compiled
        no = ops.masked_select(scores, ops.logical_not(true))  # emberlint: ignore[EMB309] results are not compiled
        no = ops.sort(no)
        pairs = yes.shape[0] * no.shape[0]
        if not pairs:
            return math.nan
        below = ops.add(ops.searchsorted(no, yes, side="left"), ops.searchsorted(no, yes, side="right"))
        return int(ops.sum(below)) / float(2 * pairs)  # emberlint: ignore[EMB201] the result is a number


class MeanSquaredError(_Share):
    """The mean of ``(y_true - y_pred) ** 2`` over all numbers.

    >>> MeanSquaredError()([1.0, 2.0], [2.0, 4.0])
    2.5
    """

    name = "mse"

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        return _summed(ops.square(_error(y_true, y_pred)))


class MeanAbsoluteError(_Share):
    """The mean of ``abs(y_true - y_pred)`` over all numbers.

    >>> MeanAbsoluteError()([1.0, 2.0], [2.0, 4.0])
    1.5
    """

    name = "mae"

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        return _summed(ops.abs(_error(y_true, y_pred)))


class R2(Metric):
    """The coefficient of determination: 1 less the squared error over that of the mean of what is true.

    The mean over the columns, if there are several. Where all that is true is one number: 1 for predictions without
    error, else 0.

    >>> R2()([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """

    name = "r2"

    def measure(self, y_true: Any, y_pred: Any) -> Any:
        error = _error(y_true, y_pred)
        columns = error.shape[-1] if error.ndim > 1 else 1
        error, true = ops.reshape(error, (-1, columns)), ops.reshape(ops.cast(y_true, ops.dtype(error)), (-1, columns))
        middle = ops.mean(true, axis=0)
        count = ops.full_like(middle, error.shape[0])
        spread = ops.sum(ops.square(ops.subtract(true, middle)), axis=0)
        return ops.concatenate([count, middle, spread, ops.sum(ops.square(error), axis=0)])

    def score(self, rows: Rows) -> float:
        width = len(rows[0]) // 4
        scores = []
        for i in range(width):
            parts = [row[i::width] for row in rows if row[i]]
            count = math.fsum(part[0] for part in parts)
            if not count:
                return math.nan
            middle = math.fsum(part[0] * part[1] for part in parts) / count
            # The spread of a batch is around its own mean.
            spread = math.fsum(part[2] + part[0] * (part[1] - middle) ** 2 for part in parts)
            error = math.fsum(part[3] for part in parts)
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
    if metric not in _NAMES:
        raise ValueError(f"no metric {metric!r}; there are: {', '.join(_NAMES)}")
    return _NAMES[metric]()


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
        true = y_true if y_pred.ndim == y_true.ndim + 1 else ops.argmax(y_true, axis=-1)
    else:
        true = y_true
        found = y_pred if _is_integral(y_pred) else ops.greater(y_pred, threshold)
        if not _is_integral(y_pred) and not _is_integral(y_true):
            true = ops.greater(y_true, 0.5)
        if found.ndim == true.ndim + 1:
            found = ops.squeeze(found, axis=-1)
    _check_same_shape(true, found)
    return ops.cast(true, "int64"), ops.cast(found, "int64")


def _hits(true: Any, found: Any) -> Any:
    return _counted(ops.equal(true, found))


def _counted(right: Any) -> Any:
    """How many are right, and how many there are."""
    hits = ops.sum(ops.cast(right, "int64"))
    return ops.stack([hits, ops.full_like(hits, math.prod(right.shape))])


def _summed(x: Any) -> Any:
    """The sum of ``x``, and how many there are."""
    total = ops.sum(x)
    return ops.stack([total, ops.full_like(total, math.prod(x.shape))])


def _error(y_true: Any, y_pred: Any) -> Any:
    if tuple(y_true.shape) != tuple(y_pred.shape):
        # One column or none is the same.
        if y_pred.ndim == y_true.ndim + 1 and y_pred.shape[-1] == 1:
            y_pred = ops.squeeze(y_pred, axis=-1)
        _check_same_shape(y_true, y_pred)
    dtype = "float64" if ops.dtype(y_pred).name == "float64" else "float32"
    return ops.subtract(ops.cast(y_true, dtype), ops.cast(y_pred, dtype))


def _totals(rows: Rows) -> list[float]:
    return [math.fsum(column) for column in zip(*rows, strict=True)]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _check_same_shape(y_true: Any, y_pred: Any) -> None:
    if tuple(y_true.shape) != tuple(y_pred.shape):
        raise ValueError(f"what is true has the shape {tuple(y_true.shape)}, predictions {tuple(y_pred.shape)}")


def _check_one_axis_more(y_true: Any, y_pred: Any) -> None:
    if tuple(y_true.shape) != tuple(y_pred.shape)[:-1]:
        raise ValueError(
            f"scores have one axis more than classes; theirs are {tuple(y_pred.shape)} and {tuple(y_true.shape)}"
        )
