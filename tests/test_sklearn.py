"""Estimators of scikit-learn: its own checks, pipelines, searches and pickles."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops, optim, training
from ember_ml.backend import Backend

sklearn = pytest.importorskip("sklearn", reason="the estimators are its own")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

from ember_ml.sklearn import NeuralClassifier, NeuralRegressor  # noqa: E402

# The check compares results to 1e-7, less than float32 rounds; its 30 examples are one batch.
EXACT = "check_sample_weight_equivalence_on_dense_data"
# SciPy reads its switch for array API input when it is imported, and without it this check does nothing.
CHECKS = [
    (type(estimator), check)
    for estimator in (NeuralClassifier(), NeuralRegressor())
    for _, check in estimator_checks_generator(estimator)
    if check.func.__name__ != "check_array_api_input"
]


def label(value: Any) -> str:
    return str(value.__name__ if isinstance(value, type) else value.func.__name__)


def assert_accepted(check: Any, estimator: Any) -> None:
    """Run a check of scikit-learn, which raises an error if it fails."""
    check(estimator)


@pytest.mark.parametrize(("kind", "check"), CHECKS, ids=label)
def test_scikit_learn_accepts_them(kind: Any, check: Any) -> None:
    before = ops.get_default_dtype()
    with ember_ml.use_backend("numpy"), warnings.catch_warnings():
        # The checks give deprecated and degenerate input on purpose.
        warnings.simplefilter("ignore")
        ops.set_default_dtype("float64" if check.func.__name__ == EXACT else before)
        try:
            assert_accepted(check, kind(epochs=30))
        finally:
            ops.set_default_dtype(before)


X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
LABELS = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")


def test_a_classifier_learns_on_every_engine(backend: Backend) -> None:
    stream = ops.random.get_state()
    model = NeuralClassifier(hidden_sizes=(8,), epochs=15, learning_rate=0.05, batch_size=40, random_state=3)
    model.fit(X, LABELS)
    assert ops.random.get_state() == stream
    assert model.module_.backend == backend.name
    assert model.score(X, LABELS) > 0.9
    assert model.classes_.tolist() == ["down", "up"]
    assert (model.n_features_in_, model.n_iter_, len(model.history_.epochs)) == (3, 15, 15)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), probabilities)
    # The same seed on NumPy gives the same model, to rounding.
    with ember_ml.use_backend("numpy"):
        np.testing.assert_allclose(clone(model).fit(X, LABELS).predict_proba(X), probabilities, atol=1e-3)
    again.partial_fit(X, LABELS)
    assert again.n_iter_ == 16
    assert again.optimizer_.step == 16


def test_regressors_take_one_target_or_several() -> None:
    with ember_ml.use_backend("numpy"):
        y = X @ np.array([1.0, -2.0, 0.5])
        model = NeuralRegressor(hidden_sizes=(), learning_rate=0.1, epochs=60, random_state=0).fit(X, y)
        assert model.predict(X).shape == (40,)
        assert model.score(X, y) > 0.99
        both = NeuralRegressor(hidden_sizes=(), epochs=2, random_state=0).fit(X, np.stack([y, -y], axis=1))
        assert both.predict(X).shape == (40, 2)
        with pytest.raises(ValueError, match="NeuralRegressor: y must have 2 targets, got 1"):
            both.partial_fit(X, y)


def test_weights_are_equivalent_to_repeated_examples_in_one_batch(backend: Backend) -> None:
    counts = np.arange(40) % 4
    y, repeated = X @ np.array([1.0, -2.0, 0.5], np.float32), np.repeat(np.arange(40), counts)
    for kind, targets in ((NeuralClassifier, LABELS), (NeuralRegressor, y)):
        one, other = (kind(epochs=30, batch_size=60, random_state=0) for _ in range(2))
        found, expected = one.fit(X, targets, counts), other.fit(X[repeated], targets[repeated])
        for a, b in zip(found.module_.parameters().values(), expected.module_.parameters().values(), strict=True):
            np.testing.assert_allclose(ops.to_numpy(a), ops.to_numpy(b), atol=1e-4)


def test_pipelines_and_searches() -> None:
    with ember_ml.use_backend("numpy"):
        model = NeuralClassifier(epochs=5, learning_rate=0.05, random_state=0)
        pipeline = make_pipeline(StandardScaler(), nn.features.PCA(2), model)
        search = GridSearchCV(pipeline, {"neuralclassifier__hidden_sizes": [(), (8,)]}, cv=2)
        search.fit(X, LABELS)
        assert search.best_score_ > 0.6
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_modules_losses_and_optimizers_of_the_user() -> None:
    epochs: list[int] = []
    note = training.LambdaCallback(on_epoch_end=lambda trainer, record: epochs.append(trainer.epoch))
    with ember_ml.use_backend("numpy"):
        module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        before = ops.to_numpy(module[0].weight).copy()
        options: dict[str, Any] = {"epochs": 2, "random_state": 0, "optimizer": optim.SGD(0.1)}
        model = NeuralClassifier(module, callbacks=[note], validation_fraction=0.25, **options).fit(X, LABELS)
        np.testing.assert_array_equal(ops.to_numpy(module[0].weight), before)
        assert not np.array_equal(ops.to_numpy(model.module_[0].weight), before)
        assert epochs == [1, 2]
        assert "val_loss" in model.history_.epochs[0]
        made = NeuralRegressor(lambda features, outputs: nn.Linear(features, outputs), loss="huber_loss", **options)
        weights = np.where(LABELS == "up", 1.0, 0.0)
        assert made.fit(X, X[:, 0], weights).predict(X).shape == (40,)
        with pytest.raises(TypeError, match="NeuralClassifier: module must be a Module, a function of the numbers"):
            NeuralClassifier(3).fit(X, LABELS)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="NeuralClassifier: module must return a Module, got"):
            NeuralClassifier(lambda features, outputs: None).fit(X, LABELS)  # type: ignore[arg-type,return-value]
        with pytest.raises(ValueError, match="classes must be given in the first call of partial_fit"):
            NeuralClassifier().partial_fit(X, LABELS)
        assert NeuralClassifier(backend="numpy", epochs=1).fit(X, LABELS).module_.backend == "numpy"


def test_validation_examples_are_drawn_from_all_classes() -> None:
    with ember_ml.use_backend("numpy"):
        y = np.repeat(["a", "b", "c"], 20)
        x = np.eye(3, dtype=np.float32)[np.repeat([0, 1, 2], 20)]
        options: dict[str, Any] = {"hidden_sizes": (), "epochs": 20, "learning_rate": 0.1, "random_state": 0}
        model = NeuralClassifier(validation_fraction=0.3, **options).fit(x, y)
        assert model.score(x, y) == 1
        rows, held = model._split(np.repeat([0, 1, 2], 20), 0)
        assert sorted(rows + held) == list(range(60))
        assert rows == sorted(rows)
        assert Counter(y[held].tolist()) == {"a": 6, "b": 6, "c": 6}
        assert model._split(y, 0) == (rows, held) != model._split(y, 1)
        # Too few examples of a class to have it in both parts.
        assert len(model._split(np.array([0] * 9 + [1]), 0)[1]) == 3
        # Weights belong to their examples: those of the first class alone count.
        weights = np.where(y == "a", 1.0, 0.0)
        same = NeuralClassifier(validation_fraction=0.3, **options).fit(x, y, weights)
        assert set(same.predict(x)) == {"a"}
        assert same.history_.epochs[-1]["val_loss"] < 0.1
        NeuralRegressor(validation_fraction=0.5, epochs=1).fit(x, np.arange(60.0))
        with pytest.raises(ValueError, match=r"NeuralClassifier: validation_fraction must be >= 0 and < 1, got 1.0"):
            NeuralClassifier(validation_fraction=1.0).fit(x, y)
        with pytest.raises(TypeError, match="NeuralRegressor: validation_fraction must be a number, got 'a'"):
            NeuralRegressor(validation_fraction="a").fit(x, np.arange(60.0))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="validation_fraction must leave at least 1 example to train on and 1 to"):
            NeuralClassifier(validation_fraction=0.2).partial_fit(x[:1], y[:1], classes=["a", "b", "c"])


def test_classes_of_later_calls_are_those_of_the_first() -> None:
    with ember_ml.use_backend("numpy"):
        model = NeuralClassifier().partial_fit(X, LABELS, classes=["up", "down"])
        model.partial_fit(X, LABELS, classes=["down", "up"])
        with pytest.raises(
            ValueError, match=r"classes must be those of the first call, \['down', 'up'\], got \['down', 'q'"
        ):
            model.partial_fit(X, LABELS, classes=["up", "down", "q"])


class _Noted(nn.Module):
    """Keeps the order of the examples of each training step, and which of them dropout keeps."""

    def __init__(self, features: int, outputs: int) -> None:
        self.linear, self.dropout, self.steps = nn.Linear(features, outputs), nn.Dropout(0.5), []

    def forward(self, x: Any) -> Any:
        if self.training:
            kept = self.dropout(ops.ones_like(x))
            self.steps.append((ops.to_numpy(x)[:, 0].tolist(), ops.to_numpy(kept)[:, 0].tolist()))
        return self.linear(x)


def test_later_calls_of_partial_fit_draw_other_numbers(backend: Backend) -> None:
    x, y = np.arange(16, dtype=np.float32)[:, None], np.arange(16) % 2
    options: dict[str, Any] = {"batch_size": 16, "validation_fraction": 0.25}

    def noted(random_state: Any) -> Any:
        model = NeuralClassifier(_Noted, random_state=random_state, **options)
        for _ in range(4):
            model.partial_fit(x, y, classes=[0, 1])
        return model

    for random_state in (0, np.random.RandomState(0), None):
        steps = noted(random_state).module_.steps
        assert len({str(order) for order, _ in steps}) == 4
        assert len({str(mask) for _, mask in steps}) == 4
        # The examples that are held out stay so.
        assert len({str(sorted(order)) for order, _ in steps}) == 1
    model = noted(0)
    assert model.module_.steps == noted(0).module_.steps
    # A copy goes on as the model does, and a clone begins anew.
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(x, y)
    assert again.module_.steps == model.module_.steps
    assert clone(model).partial_fit(x, y, classes=[0, 1]).module_.steps == model.module_.steps[:1]
    # Estimators of earlier versions, read from a pickle, have no generator.
    del again._random_state, again._split_seed
    assert len(again.partial_fit(x, y).module_.steps) == 6
    # A new fit begins anew.
    first = model.set_params(epochs=1).fit(x, y).module_.steps
    assert model.fit(x, y).module_.steps == first == noted(0).module_.steps[:1]


class _Flat(nn.Module):
    def __init__(self) -> None:
        self.linear = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        return self.linear(x)[:, 0]


def test_outputs_of_the_module_are_checked() -> None:
    with ember_ml.use_backend("numpy"):
        for count in (1, 5):
            model = NeuralClassifier(nn.Linear(3, count))
            required = (
                r"NeuralClassifier: module must return a logit for each class, shape \[1, 2\] for one row, got shape"
            )
            with pytest.raises(ValueError, match=rf"{required} \[1, {count}\]"):
                model.partial_fit(X, LABELS, classes=["up", "down"])
            assert not hasattr(model, "module_")
        with pytest.raises(
            ValueError, match=r"return a number for each target, shape \[1, 1\] for one row, got shape \[1\]$"
        ):
            NeuralRegressor(_Flat()).fit(X, X[:, 0])
        with pytest.raises(ValueError, match=r"shape .* for one row, got a tuple"):
            NeuralRegressor(nn.Lambda(lambda x: (x, x))).fit(X, X[:, 0])


def test_parameters_are_checked() -> None:
    with ember_ml.use_backend("numpy"):
        assert NeuralClassifier(hidden_sizes=np.int64(8), epochs=1).fit(X, LABELS).module_[0].out_features == 8
        for sizes in ((8.5,), 8.5, "8", -1, [0]):
            with pytest.raises(ValueError, match="NeuralClassifier: hidden_sizes must be integers >= 1, got"):
                NeuralClassifier(hidden_sizes=sizes).fit(X, LABELS)  # type: ignore[arg-type]
        model = NeuralClassifier(activation="prelu", hidden_sizes=(4, 4), epochs=1).fit(X, LABELS)
        assert len(model.module_.parameters()) == 8
        with pytest.raises(ValueError, match=r"NeuralClassifier: activation must be one of .*, got 'swishy'"):
            NeuralClassifier(activation="swishy").fit(X, LABELS)
        for kind in (NeuralClassifier, NeuralRegressor):
            with pytest.raises(
                TypeError, match=rf"^{kind.__name__}.__init__\(\) got an unexpected keyword .*'class_weight'"
            ):
                kind(class_weight="balanced")
        with pytest.raises(ValueError, match=r"NeuralRegressor: y must be from -3.403e\+38 to .*, got -1e\+39"):
            NeuralRegressor().fit(X, np.full(40, -1e39))


@pytest.mark.parametrize("precision", ["bf16", "bf16-mixed"])
def test_probabilities_have_at_least_single_precision(precision: str, backend: Backend) -> None:
    labels = np.digitize(X[:, 0], [-0.4, 0.4])
    model = NeuralClassifier(precision=precision, epochs=2, random_state=0).fit(X, labels)
    probabilities = model.predict_proba(X)
    assert probabilities.dtype == "float32"
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    assert np.isfinite(cross_val_score(model, X, labels, cv=2, scoring="roc_auc_ovr", error_score="raise")).all()


def test_probabilities_of_modules_in_double_precision_keep_it() -> None:
    with ember_ml.use_backend("numpy"):
        wide = nn.Sequential(nn.Lambda(lambda x: ops.cast(x, "float64")), nn.Linear(3, 2))
        assert NeuralClassifier(wide, epochs=1).fit(X, LABELS).predict_proba(X).dtype == "float64"


def test_losses_by_name_take_logits() -> None:
    with ember_ml.use_backend("numpy"):
        options: dict[str, Any] = {"epochs": 2, "random_state": 0}
        expected = NeuralClassifier(**options).fit(X, LABELS).predict_proba(X)
        named = NeuralClassifier(loss="sparse_categorical_crossentropy", **options).fit(X, LABELS)
        np.testing.assert_array_equal(named.predict_proba(X), expected)


def test_names_of_columns() -> None:
    pandas = pytest.importorskip("pandas", reason="it has the frames")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    with ember_ml.use_backend("numpy"):
        model = NeuralClassifier(epochs=1).fit(frame, LABELS)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame[["b", "a", "c"]])
