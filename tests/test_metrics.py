"""Metrics: equal to scikit-learn's, whatever the batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.training import metrics

sk = pytest.importorskip("sklearn.metrics", reason="its metrics are what is expected")

RNG = np.random.default_rng(0)
N = 120
LABELS = RNG.integers(0, 4, N)
SCORES = RNG.random((N, 4)).astype("float32")
PROBABILITIES = SCORES / SCORES.sum(1, keepdims=True)
BINARY = RNG.integers(0, 2, N)
RATES = RNG.integers(0, 8, N).astype("float32") / 8
PREDICTED = SCORES.argmax(1)
REALS = (RNG.standard_normal((N, 3)) + 100).astype("float32")
GUESSES = (REALS + RNG.standard_normal((N, 3))).astype("float32")
HOT = np.eye(4, dtype="float32")[LABELS]

CASES: dict[str, tuple[Any, Any, Any, float]] = {
    "accuracy of scores": (metrics.Accuracy(), LABELS, SCORES, sk.accuracy_score(LABELS, PREDICTED)),
    "accuracy of one-hot rows": (metrics.Accuracy(), HOT, SCORES, sk.accuracy_score(LABELS, PREDICTED)),
    "accuracy of classes": (metrics.Accuracy(), LABELS, PREDICTED, sk.accuracy_score(LABELS, PREDICTED)),
    "accuracy of rates": (metrics.Accuracy(), BINARY, RATES, sk.accuracy_score(BINARY, RATES > 0.5)),
    "accuracy of a column": (metrics.Accuracy(), BINARY, RATES[:, None], sk.accuracy_score(BINARY, RATES > 0.5)),
    "binary accuracy": (metrics.BinaryAccuracy(0.3), BINARY, RATES, sk.accuracy_score(BINARY, RATES > 0.3)),
    "categorical accuracy": (metrics.CategoricalAccuracy(), HOT, SCORES, sk.accuracy_score(LABELS, PREDICTED)),
    "sparse accuracy": (metrics.SparseCategoricalAccuracy(), LABELS, SCORES, sk.accuracy_score(LABELS, PREDICTED)),
    "top 1": (metrics.TopKAccuracy(1), LABELS, SCORES, sk.top_k_accuracy_score(LABELS, SCORES, k=1)),
    "top 2": (metrics.TopKAccuracy(2), LABELS, SCORES, sk.top_k_accuracy_score(LABELS, SCORES, k=2)),
    "top 3 of one-hot rows": (metrics.TopKAccuracy(3), HOT, SCORES, sk.top_k_accuracy_score(LABELS, SCORES, k=3)),
    "top 2 with ties": (
        metrics.TopKAccuracy(2),
        LABELS,
        np.round(SCORES * 2),
        sk.top_k_accuracy_score(LABELS, np.round(SCORES * 2), k=2),
    ),
    "auc": (metrics.AUC(), BINARY, RATES, sk.roc_auc_score(BINARY, RATES)),
    "auc of a column": (metrics.AUC(), BINARY, RATES[:, None], sk.roc_auc_score(BINARY, RATES)),
    "auc of classes": (
        metrics.AUC(),
        LABELS,
        PROBABILITIES,
        sk.roc_auc_score(LABELS, PROBABILITIES, multi_class="ovr"),
    ),
    "mse": (metrics.MeanSquaredError(), REALS, GUESSES, sk.mean_squared_error(REALS, GUESSES)),
    "mae": (metrics.MeanAbsoluteError(), REALS, GUESSES, sk.mean_absolute_error(REALS, GUESSES)),
    "r2": (metrics.R2(), REALS, GUESSES, sk.r2_score(REALS, GUESSES)),
    "r2 of a line": (metrics.R2(), REALS[:, 0], GUESSES[:, 0], sk.r2_score(REALS[:, 0], GUESSES[:, 0])),
}
for _name, _ours, _theirs in (
    ("precision", metrics.Precision, sk.precision_score),
    ("recall", metrics.Recall, sk.recall_score),
    ("f1", metrics.F1, sk.f1_score),
):
    CASES[_name] = (_ours(), BINARY, RATES, _theirs(BINARY, RATES > 0.5))
    CASES[f"{_name} of classes"] = (_ours(), BINARY, (RATES > 0.5).astype(int), _theirs(BINARY, RATES > 0.5))
    CASES[f"{_name} of two scores"] = (
        _ours(),
        BINARY,
        np.stack([1 - RATES, RATES], 1),
        _theirs(BINARY, RATES > 0.5),
    )
    for _average in ("macro", "micro", "weighted"):
        CASES[f"{_name} {_average}"] = (
            _ours(_average),
            LABELS,
            SCORES,
            _theirs(LABELS, PREDICTED, average=_average),
        )
        CASES[f"{_name} {_average} with a class that never occurs"] = (
            _ours(_average, classes=9),
            LABELS,
            PREDICTED,
            _theirs(LABELS, PREDICTED, average=_average),
        )
    CASES[f"{_name} of nothing found"] = (
        _ours(),
        BINARY,
        np.zeros(N, "float32"),
        _theirs(BINARY, np.zeros(N), zero_division=0),
    )


@pytest.mark.parametrize("case", CASES)
def test_equal_to_scikit_learn(backend: Backend, case: str) -> None:
    metric, true, found, expected = CASES[case]
    true, found = ops.asarray(true), ops.asarray(found)
    assert metric(true, found) == pytest.approx(expected, abs=1e-6)
    assert math.isnan(metric.compute()), "a call leaves no trace"
    for begin, end in ((0, 50), (50, 51), (51, N)):
        metric.update(true[begin:end], found[begin:end])
    assert metric.compute() == pytest.approx(expected, abs=1e-6)
    kept = metric.state()
    metric.reset()
    assert math.isnan(metric.compute())
    metric.restore(kept)
    assert metric.compute() == pytest.approx(expected, abs=1e-6)
    metric.reset()


WEIGHTS = RNG.integers(0, 5, N).astype("float32") / 4 + 0.125


def weighted(function: Any, *args: Any, **options: Any) -> Any:
    return lambda weights: function(*args, sample_weight=weights, **options)


WEIGHTED: dict[str, tuple[Any, Any, Any, Any]] = {
    "accuracy of scores": (metrics.Accuracy(), LABELS, SCORES, weighted(sk.accuracy_score, LABELS, PREDICTED)),
    "accuracy of rates": (metrics.BinaryAccuracy(), BINARY, RATES, weighted(sk.accuracy_score, BINARY, RATES > 0.5)),
    "top 2": (metrics.TopKAccuracy(2), LABELS, SCORES, weighted(sk.top_k_accuracy_score, LABELS, SCORES, k=2)),
    "precision": (metrics.Precision(), BINARY, RATES, weighted(sk.precision_score, BINARY, RATES > 0.5)),
    "recall": (metrics.Recall("macro"), LABELS, SCORES, weighted(sk.recall_score, LABELS, PREDICTED, average="macro")),
    "f1": (metrics.F1("weighted"), LABELS, SCORES, weighted(sk.f1_score, LABELS, PREDICTED, average="weighted")),
    "auc": (metrics.AUC(), BINARY, RATES, weighted(sk.roc_auc_score, BINARY, RATES)),
    "auc of classes": (metrics.AUC(), LABELS, PROBABILITIES, weighted(sk.roc_auc_score, HOT, PROBABILITIES)),
    "mse": (metrics.MeanSquaredError(), REALS, GUESSES, weighted(sk.mean_squared_error, REALS, GUESSES)),
    "mae": (metrics.MeanAbsoluteError(), REALS, GUESSES, weighted(sk.mean_absolute_error, REALS, GUESSES)),
    "r2": (metrics.R2(), REALS, GUESSES, weighted(sk.r2_score, REALS, GUESSES)),
}  # fmt: skip


@pytest.mark.parametrize("case", WEIGHTED)
def test_weights_equal_to_scikit_learn(backend: Backend, case: str) -> None:
    metric, true, found, expected = WEIGHTED[case]
    true, found, weights = ops.asarray(true), ops.asarray(found), ops.asarray(WEIGHTS)
    assert metric(true, found, WEIGHTS) == pytest.approx(expected(WEIGHTS), abs=1e-6)
    assert metric(true, found, ops.ones(N, dtype="int64")) == pytest.approx(metric(true, found), abs=1e-6)
    for begin, end in ((0, 50), (50, 51)):
        metric.update(true[begin:end], found[begin:end], weights[begin:end])
    # Without weights, each counts as one.
    metric.update(true[51:], found[51:])
    mixed = np.concatenate([WEIGHTS[:51], np.ones(N - 51, "float32")])
    assert metric.compute() == pytest.approx(expected(mixed), abs=1e-6)
    metric.reset()


def test_weights_of_steps_hide_padding(backend: Backend) -> None:
    """A weight for every element of a sequence counts those that are there."""
    true, scores = LABELS.reshape(12, 10), SCORES.reshape(12, 10, 4)
    there = np.arange(10) < np.arange(1, 13)[:, None]
    expected = sk.accuracy_score(true[there], scores[there].argmax(-1))
    for metric in (metrics.Accuracy(), metrics.SparseCategoricalAccuracy(), metrics.TopKAccuracy(1)):
        assert metric(true, scores, there) == pytest.approx(expected)
    expected = sk.f1_score(true[there], scores[there].argmax(-1), average="macro")
    assert metrics.F1("macro")(true, scores, there) == pytest.approx(expected, abs=1e-6)
    assert math.isnan(metrics.Accuracy()([1, 1], [1, 0], [0.0, 0.0])), "nothing counts"


def test_weights_that_do_not_fit() -> None:
    for metric in (metrics.Accuracy(), metrics.F1(), metrics.AUC(), metrics.MeanSquaredError(), metrics.R2()):
        with pytest.raises(ValueError, match=r"weights must have the first axes of \[2\], got shape \[3"):
            metric([1, 0], [0.0, 1.0], [1.0, 1.0, 1.0])


def test_own_metrics_need_not_know_of_weights() -> None:
    class Count(metrics.Metric):
        def measure(self, y_true: Any, y_pred: Any) -> Any:
            return ops.stack([ops.sum(ops.ones_like(y_pred))])

        def score(self, rows: Any) -> float:
            return sum(row[0] for row in rows)

    assert Count()([1, 2], [1.0, 2.0]) == 2.0
    with pytest.raises(TypeError, match="Count: sample_weight must be None, as measure has no argument for it"):
        Count()([1, 2], [1.0, 2.0], [1.0, 1.0])


def test_own_metrics_have_no_init_to_remember(backend: Backend) -> None:
    class Far(metrics.Metric):
        name = "far"

        def __init__(self, limit: float) -> None:
            self.limit = limit

        def measure(self, y_true: Any, y_pred: Any) -> Any:
            return ops.stack([ops.sum(ops.greater(ops.abs(ops.subtract(y_true, y_pred)), self.limit))])

        def score(self, rows: Any) -> float:
            return sum(row[0] for row in rows)

    one, other = Far(1.0), Far(2.0)
    one.update([0.0, 0.0], [1.5, 3.0])
    other.update([0.0, 0.0], [1.5, 3.0])
    assert (one.compute(), other.compute(), other([5.0], [0.0]), other.compute()) == (2.0, 1.0, 1.0, 1.0)
    assert repr(one) == "Far(limit=1.0)"
    for kind in (metrics.Accuracy, metrics.MeanSquaredError):
        with pytest.raises(TypeError, match=r"argument|unknown option 'limit'"):
            kind(limit=1.0)


PAIRS = (LABELS, REALS), (SCORES, GUESSES)


class Chosen(metrics.Accuracy):
    """The accuracy of one of several predictions."""

    def __init__(self, key: Any) -> None:
        super().__init__()
        self.key = key

    def measure(self, y_true: Any, y_pred: Any, weight: Any = None) -> Any:
        return super().measure(y_true[self.key], y_pred[self.key], weight)


@pytest.mark.parametrize("made", [dict, tuple])
def test_own_metrics_choose_among_several_predictions(made: Any, backend: Backend) -> None:
    true, found = ((one, other) if made is tuple else {0: one, 1: other} for one, other in PAIRS)
    metric = Chosen(0)
    assert metric(true, found) == pytest.approx(sk.accuracy_score(LABELS, PREDICTED), abs=1e-9)
    assert metric(true, found, RATES) == pytest.approx(
        sk.accuracy_score(LABELS, PREDICTED, sample_weight=RATES), abs=1e-6
    )
    with pytest.raises(TypeError, match=f"a {made.__name__} of tensors, among which its measure must choose"):
        metrics.Accuracy().update(true, found)
    assert metrics.Accuracy()((1, 0), (np.int64(1), np.int64(1))) == 0.5, "numbers in a tuple are an array"


def test_a_column_of_classes_is_classes(backend: Backend) -> None:
    """Targets of shape (n, 1), as many data sets have them."""
    column = ops.asarray(LABELS[:, None])
    expected = sk.accuracy_score(LABELS, PREDICTED)
    for metric in (metrics.Accuracy(), metrics.SparseCategoricalAccuracy(), metrics.TopKAccuracy(1)):
        assert metric(column, SCORES) == pytest.approx(expected)
    f1 = sk.f1_score(LABELS, PREDICTED, average="macro")
    assert metrics.F1("macro")(column, SCORES) == pytest.approx(f1)
    area = sk.roc_auc_score(LABELS, PROBABILITIES, multi_class="ovr")
    assert metrics.AUC()(column, PROBABILITIES) == pytest.approx(area)
    assert metrics.AUC()(BINARY[:, None], RATES) == pytest.approx(sk.roc_auc_score(BINARY, RATES))
    assert metrics.Accuracy()(BINARY[:, None], RATES) == pytest.approx(sk.accuracy_score(BINARY, RATES > 0.5))


def test_rows_of_another_width_are_refused(backend: Backend) -> None:
    hot = np.eye(5, dtype="float32")[LABELS]
    for metric in (metrics.Accuracy(), metrics.TopKAccuracy(2), metrics.F1("macro"), metrics.AUC()):
        with pytest.raises(ValueError, match=r"y_true and y_pred must have one shape, got \[120, 5\] an"):
            metric(hot, SCORES)
    with pytest.raises(ValueError, match=r"\[3\].*\[2\]"):
        metrics.AUC()([1, 0, 1], [[0.1], [0.2]])


def test_sequences_of_classes_count_element_by_element(backend: Backend) -> None:
    true, scores = ops.asarray(LABELS.reshape(12, 10)), ops.asarray(SCORES.reshape(12, 10, 4))
    expected = sk.accuracy_score(LABELS, PREDICTED)
    for metric in (metrics.Accuracy(), metrics.SparseCategoricalAccuracy(), metrics.TopKAccuracy(1)):
        assert metric(true, scores) == pytest.approx(expected)
    assert metrics.F1("macro")(true, scores) == pytest.approx(sk.f1_score(LABELS, PREDICTED, average="macro"))


def test_one_score_tells_two_classes_apart(backend: Backend) -> None:
    hint = "classes must be 0 or 1 for one score each"
    for metric in (metrics.Accuracy(), metrics.BinaryAccuracy(), metrics.AUC()):
        for classes in ([0, 1, 2], [0.0, 1.0, 2.0], [0.0, 1.0, math.nan], [[0], [1], [2]]):
            scores = [0.1, 0.6, 0.7] if np.ndim(classes) == 1 else [[0.1], [0.6], [0.7]]
            metric.reset()
            metric.update([0, 1], [0.2, 0.7])
            metric.update(classes, scores)
            with pytest.raises(ValueError, match=hint):
                metric.compute()
            assert metric(classes, scores, [1.0, 2.0, 0.0]) == 1.0, "what has no weight may be anything"
    for metric in (metrics.F1(), metrics.Precision("macro"), metrics.Recall()):
        for wrong in (2, 2.0, math.nan):
            with pytest.raises(ValueError, match="classes must be below 2"):
                metric([0, 1, wrong], [0.1, 0.6, 0.7])
    with pytest.raises(ValueError, match=hint):
        metrics.Accuracy()([0, 1, -1], [0.1, 0.6, 0.7])
    for signs in ([-1.0, 1.0, -1.0], [-1, 1, -1]):
        assert metrics.BinaryAccuracy(0.0)(signs, [-0.1, 0.6, 0.7]) == pytest.approx(2 / 3)
    assert metrics.Accuracy(0.0)([-1.0, 1.0, -1.0], [-0.1, 0.6, 0.7]) == pytest.approx(2 / 3)
    assert metrics.AUC()([-1, 1, -1], [0.1, 0.6, 0.7]) == 0.5
    assert metrics.AUC()(BINARY.astype(bool), RATES) == pytest.approx(sk.roc_auc_score(BINARY, RATES))


def test_scores_that_are_no_numbers_are_not_the_largest(backend: Backend) -> None:
    nan = math.nan
    rows = [[nan, nan, nan], [0.1, nan, 0.7], [0.1, nan, 0.7]]
    assert metrics.TopKAccuracy(1)([0, 2, 0], rows) == 0.0
    assert metrics.TopKAccuracy(2)([0, 2, 0], rows) == pytest.approx(1 / 3)
    assert metrics.TopKAccuracy(3)([0, 2, 0], rows) == pytest.approx(2 / 3)


def test_classes_without_a_score(backend: Backend) -> None:
    scores = PROBABILITIES[:3]
    for wrong in (4, -1):
        for metric, hint in (
            (metrics.AUC(), "classes must be below 4, the number of scores"),
            (metrics.F1("macro"), "classes must be below 4, got others"),
        ):
            with pytest.raises(ValueError, match=hint):
                metric([0, 1, wrong], scores)
    padded, there = np.concatenate([LABELS, [-100, 7]]), np.arange(122) < 120
    longer = np.concatenate([PROBABILITIES, PROBABILITIES[:2]])
    assert metrics.AUC()(padded, longer, there) == pytest.approx(metrics.AUC()(LABELS, PROBABILITIES))
    assert metrics.F1("macro")(padded, longer, there) == pytest.approx(metrics.F1("macro")(LABELS, PROBABILITIES))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_counts_are_exact_whatever_the_default(dtype: str, backend: Backend) -> None:
    true, scores = np.arange(6001) % 3 > 0, (np.arange(6001) % 7 / 8).astype("float32")
    ops.set_default_dtype(dtype)
    try:
        for metric in (metrics.Precision(), metrics.Recall(), metrics.F1("macro"), metrics.Accuracy(), metrics.AUC()):
            found = metric(true, scores)
            ops.set_default_dtype("float32")
            assert found == metric(true, scores)
            ops.set_default_dtype(dtype)
    finally:
        ops.set_default_dtype("float32")


def test_edges(backend: Backend) -> None:
    assert math.isnan(metrics.AUC()([1, 1], [0.5, 0.7]))
    assert metrics.AUC()([0, 1], [0.5, 0.5]) == 0.5
    assert math.isnan(metrics.AUC()([0, 1], [math.nan, 0.5]))
    assert metrics.R2()([2.0, 2.0], [2.0, 2.0]) == 1.0
    assert metrics.R2()([2.0, 2.0], [2.0, 3.0]) == 0.0
    assert metrics.MeanSquaredError()([1.0, 2.0], [[1.0], [4.0]]) == 2.0
    assert math.isnan(metrics.MeanSquaredError()([1.0], [math.nan]))
    many = metrics.MeanSquaredError()
    for _ in range(200):
        many.update(ops.full((10,), 4096.0), ops.full((10,), 4096.1))
    assert many.compute() == pytest.approx((np.float32(4096.1) - 4096) ** 2, rel=1e-6)


def test_mistakes_are_explained() -> None:
    with pytest.raises(ValueError, match=r"BinaryAccuracy: y_true and y_pred must have one shape, got \[3\] and"):
        metrics.BinaryAccuracy()([1, 0, 1], [0.5, 0.5])
    with pytest.raises(TypeError) as caught:
        metrics.Accuracy()([1, 0], {"scores": [0.5, 0.5]})
    assert caught.value.__notes__[-1] == "in the metric 'accuracy'"
    with pytest.raises(ValueError, match="one axis more"):
        metrics.SparseCategoricalAccuracy()([1, 0], [0.5, 0.5])
    with pytest.raises(ValueError, match="4 classes"):
        metrics.Precision()(LABELS, SCORES)
    with pytest.raises(ValueError, match="Precision: classes must be below 2, got others; say how many there are"):
        metrics.Precision("macro")(LABELS, PREDICTED)
    with pytest.raises(ValueError, match="average"):
        metrics.F1("median")
    with pytest.raises(ValueError, match="k must be >= 1, got 0"):
        metrics.TopKAccuracy(0)
    with pytest.raises(ValueError, match="accuracy, binary_accuracy"):
        metrics.get_metric("charm")
    for wrong, hint in ((metrics.Accuracy, r"write Accuracy\(\)"), (max, "got a builtin"), (None, "got None")):
        with pytest.raises(TypeError, match=hint):
            metrics.get_metric(wrong)  # type: ignore[arg-type]
    assert repr(metrics.get_metric("top_k_accuracy")) == "TopKAccuracy(k=5)"


@pytest.mark.parametrize("classes", [[1, -1, 1, -1], [0, 2, 1, 2]])
def test_classes_beyond_yes_and_no_have_no_threshold(classes: list[int], backend: Backend) -> None:
    """One score for each cannot tell them apart, and a share of what it seems to say would be wrong."""
    scores = np.array([0.9, 0.1, 0.2, 0.8], "float32")
    metric = metrics.Accuracy()
    metric.update(classes, scores)
    with pytest.raises(ValueError, match="Accuracy: classes must be 0 or 1 for one score each, got others"):
        metric.compute()
    # Nothing but padding may be anything.
    weights = np.array([1.0, 0.0, 1.0, 0.0], "float32")
    truth = [1, classes[1], 1, classes[3]]
    assert metrics.Accuracy()(truth, scores, sample_weight=weights) == 0.5
    assert metrics.Accuracy()([[one] for one in truth], scores[:, None], sample_weight=weights) == 0.5
    assert metrics.Accuracy()(classes, classes) == 1.0
    assert metrics.Accuracy()([True, False, True, False], scores) == 0.5
