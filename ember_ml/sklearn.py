"""Estimators of scikit-learn around ``Trainer``: ``NeuralClassifier`` and ``NeuralRegressor``."""

from __future__ import annotations

import copy
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Real
from types import FunctionType
from typing import Any, Self

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import LabelEncoder
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("ember_ml.sklearn requires scikit-learn 1.6 or newer: pip install 'ember-ml[sklearn]'") from error

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.dtypes import written
from ember_ml.extend import activate, current_backend, load_backend
from ember_ml.nn import modules
from ember_ml.nn.modules.checks import find_activation
from ember_ml.optim import get_optimizer
from ember_ml.training import Callback, Trainer
from ember_ml.training.trainer import get_loss

__all__ = ["NeuralClassifier", "NeuralRegressor"]


class _Neural(BaseEstimator):  # type: ignore[misc]
    """What both estimators have: the parameters, the module and its training."""

    module_: modules.Module
    optimizer_: Any
    history_: Any
    n_iter_: int
    # Generator of the seed of each call.
    _random_state: Any
    # Seed of the examples that are held out, the same in all calls after ``fit``.
    _split_seed: int
    # Default loss.
    _loss: Callable[..., Any]
    # What the module must return for a row, for messages.
    _output: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        given: Any = cls.__init__
        if getattr(given, "__code__", None) is _Neural.__init__.__code__:
            # A copy with the name of the class, which errors of a wrong argument show.
            own = FunctionType(given.__code__, given.__globals__, given.__name__, given.__defaults__, given.__closure__)
            own.__kwdefaults__, own.__annotations__ = given.__kwdefaults__, given.__annotations__
            own.__qualname__, own.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
            cls.__init__ = own  # type: ignore[method-assign]

    def __init__(
        self,
        module: modules.Module | Callable[..., modules.Module] | None = None,
        *,
        hidden_sizes: int | Sequence[int] = (64,),
        activation: str = "relu",
        dropout: float = 0.0,
        loss: str | Callable[..., Any] | None = None,
        optimizer: Any = "adam",
        learning_rate: float | None = 0.005,
        epochs: int = 100,
        batch_size: int = 32,
        shuffle: bool = True,
        validation_fraction: float = 0.0,
        callbacks: Sequence[Callback] = (),
        compile: bool = False,
        precision: Any = None,
        backend: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.module = module
        self.hidden_sizes = hidden_sizes
        self.activation = activation
        self.dropout = dropout
        self.loss = loss
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks
        self.compile = compile
        self.precision = precision
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803 - as in scikit-learn
        """Train a new module on the rows of ``X``, and return the estimator.

        Args:
            X: matrix of features, with one row for each example: an array or a data frame.
            y: targets.
            sample_weight: weight of each example in the loss.
        """
        return self._train(*self._check(X, y, is_first=True), sample_weight, self.epochs, is_new=True)

    def _train(self, x: Any, y: Any, sample_weight: Any, epochs: int, is_new: bool) -> Self:
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, x, dtype="float32", ensure_non_negative=True)
        # Later calls draw other numbers, as with a generator that the user gives; pickles of 0.2 have none.
        is_seeded = not is_new and hasattr(self, "_random_state")
        if not is_seeded:
            self._random_state = check_random_state(self.random_state)
        seed = int(self._random_state.randint(2**31 - 1))
        if not is_seeded:
            self._split_seed = seed
        validation_data = None
        if self.validation_fraction != 0:
            # Examples that were held out in an earlier call remain so.
            rows, held = self._split(y, self._split_seed)
            validation_data = (x[held], y[held]) if weights is None else (x[held], y[held], weights[held])
            x, y, weights = x[rows], y[rows], None if weights is None else weights[rows]
        # A block is for this thread alone: searches may train in several.
        with self._on_engine(), ops.random.stream(seed):
            if is_new:
                module, optimizer = self._new_module(x.shape[1], self._outputs()), self._new_optimizer()
                if self.module is not None:
                    self._check_outputs(self._trainer(module, optimizer).predict(x[:1]))
                self.module_, self.optimizer_ = module, optimizer
            trainer = self._trainer(self.module_, self.optimizer_)
            trainer.fit(
                x,
                y,
                epochs,
                self.batch_size,
                shuffle=self.shuffle,
                validation_data=validation_data,
                sample_weight=weights,
                verbose=self.verbose,
            )
        self.history_ = trainer.history
        self.n_iter_ = (0 if is_new else self.n_iter_) + len(trainer.history.epochs)
        return self

    def _split(self, y: Any, seed: int) -> tuple[list[int], list[int]]:
        """Numbers of the examples to train on and to validate with, drawn with ``seed``."""
        name, fraction = type(self).__name__, self.validation_fraction
        if isinstance(fraction, bool) or not isinstance(fraction, Real):
            raise TypeError(f"{name}: validation_fraction must be a number, got {written(fraction)}")
        if not 0 <= fraction < 1:
            raise ValueError(f"{name}: validation_fraction must be >= 0 and < 1, got {fraction!r}")
        held = math.ceil(len(y) * fraction)
        rest = len(y) - held
        if not rest:
            raise ValueError(
                f"{name}: validation_fraction must leave at least 1 example to train on and 1 to validate with, got "
                f"{fraction} of {len(y)} examples"
            )
        classes = Counter(y.tolist()) if is_classifier(self) else {}
        # Both parts have each class, if there are enough examples for that.
        is_stratified = bool(classes) and min(classes.values()) > 1 and len(classes) <= min(held, rest)
        parts = train_test_split(
            range(len(y)), test_size=held, random_state=seed, stratify=y if is_stratified else None
        )
        # In order, which shuffle=False keeps.
        return sorted(parts[0]), sorted(parts[1])

    def _check_outputs(self, found: Any) -> None:
        """Raise an error unless the module returned what it must for one row."""
        expected, shape = [1, self._outputs()], getattr(found, "shape", None)
        if shape is None or list(shape) != expected:
            got = written(found) if shape is None else f"shape {list(shape)}"
            raise ValueError(
                f"{type(self).__name__}: module must return {self._output}, shape {expected} for one row, got {got}"
            )

    def _check(self, x: Any, y: Any, is_first: bool) -> tuple[Any, Any]:
        raise NotImplementedError

    def _outputs(self) -> int:
        """Number of outputs of the module."""
        raise NotImplementedError

    def _new_module(self, features: int, outputs: int) -> modules.Module:
        given = self.module
        if isinstance(given, modules.Module):
            return copy.deepcopy(given).to_backend(current_backend().chosen_as)
        if given is not None:
            if not callable(given):
                raise TypeError(
                    f"{type(self).__name__}: module must be a Module, a function of the numbers of features and "
                    f"outputs that returns one, or None, got {written(given)}"
                )
            made = given(features, outputs)
            if not isinstance(made, modules.Module):
                raise TypeError(f"{type(self).__name__}: module must return a Module, got {written(made)}")
            return made
        activation = find_activation(self, self.activation)
        layers: list[Any] = []
        for size in self._sizes():
            # The slope of PReLU is a parameter of each layer.
            layers += [modules.Linear(features, size), modules.PReLU() if activation is ops.prelu else activation]
            layers += [modules.Dropout(self.dropout)] if self.dropout else []
            features = size
        return modules.Sequential(*layers, modules.Linear(features, outputs))

    def _sizes(self) -> Sequence[int]:
        """Numbers of features of the hidden layers."""
        given: Any = self.hidden_sizes
        sizes = [given] if hasattr(type(given), "__index__") else given
        is_known = isinstance(sizes, Iterable) and not isinstance(sizes, str)
        if not is_known or not all(hasattr(type(size), "__index__") and size > 0 for size in sizes):
            raise ValueError(f"{type(self).__name__}: hidden_sizes must be integers >= 1, got {written(given)}")
        return sizes

    def _new_optimizer(self) -> Any:
        optimizer = get_optimizer(copy.deepcopy(self.optimizer))
        if isinstance(self.optimizer, str) and self.learning_rate is not None:
            optimizer.learning_rate = self.learning_rate
        return optimizer

    def _chosen_loss(self) -> str | Callable[..., Any]:
        return type(self)._loss if self.loss is None else self.loss

    def _trainer(self, module: modules.Module, optimizer: Any) -> Trainer:
        return Trainer(
            module,
            self._chosen_loss(),
            optimizer,
            callbacks=list(self.callbacks),
            compile=self.compile,
            precision=self.precision,
        )

    def _predict(self, x: Any) -> Any:
        """Outputs of the module for the rows of ``x``, on its engine."""
        check_is_fitted(self, "module_")
        x = validate_data(self, x, dtype="float32", reset=False)
        with activate(load_backend(self.module_.backend)):
            return self._trainer(self.module_, self.optimizer_).predict(x, self.batch_size)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "module_")

    @contextmanager
    def _on_engine(self) -> Iterator[None]:
        """Context manager in which the engine that ``backend`` names is active."""
        if self.backend is None:
            yield
        else:
            with use_backend(self.backend):
                yield


class NeuralClassifier(ClassifierMixin, _Neural):  # type: ignore[misc]
    """Classifier of scikit-learn that trains a module.

    The module returns a logit for each class; labels of any kind are accepted. Predictions are NumPy arrays.

    Args:
        module: a ``Module``, of which a copy is trained; or a function of the numbers of features and outputs that
            returns one; by default linear layers of ``hidden_sizes``.
        hidden_sizes: numbers of features of the hidden layers of the default module, or one number for one layer.
        activation: activation after each hidden layer of the default module.
        dropout: rate of dropout after each hidden layer of the default module.
        loss: loss as for ``Trainer``; by default the cross-entropy of logits. A loss that is given by name gets
            ``from_logits=True`` if it has this option.
        optimizer: an optimizer, of which a copy is used, or its name.
        learning_rate: learning rate, if the optimizer is given by name; ``None`` for the default of the optimizer.
        epochs: number of passes over the data.
        batch_size: number of examples per step.
        shuffle: draw a new order of the examples for every epoch.
        validation_fraction: fraction of the examples to evaluate after every epoch and not to train on. They are drawn
            with ``random_state``, with the proportions of the classes if each has enough examples.
        callbacks: callbacks of ``Trainer``.
        compile: compile the training step.
        precision: precision as for ``Trainer``.
        backend: engine to train on; by default the active one. Worker processes of ``n_jobs`` do not inherit
            ``set_backend`` and ``use_backend``, so pass this, or set ``EMBER_ML_BACKEND``.
        random_state: seed of the initial weights, the order of the examples and dropout, as in scikit-learn. A seed
            gives the same estimator on every engine, up to rounding.
        verbose: output of ``Trainer.fit``.

    Attributes:
        classes_: labels, in the order of the columns of ``predict_proba``.
        module_: the trained module.
        optimizer_: the optimizer with its state, which ``partial_fit`` continues with.
        history_: ``History`` of the last call: the loss and the metrics of every epoch.
        n_iter_: number of epochs, those of ``partial_fit`` included.
        n_features_in_: number of features.
        feature_names_in_: names of the columns, if ``X`` is a data frame.

    >>> rows, labels = [[0.0], [0.2], [0.8], [1.0]], ["low", "low", "high", "high"]
    >>> NeuralClassifier(epochs=60, random_state=0).fit(rows, labels).predict([[0.1], [0.9]]).tolist()
    ['low', 'high']
    """

    _loss = partial(ops.sparse_categorical_crossentropy, from_logits=True)
    _output = "a logit for each class"

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Train for one epoch, with the module and the optimizer of earlier calls, and return the estimator.

        Args:
            classes: all labels; required in the first call, and the same in later ones.
        """
        is_first, name = not self.__sklearn_is_fitted__(), type(self).__name__
        if is_first and classes is None:
            raise ValueError(f"{name}: classes must be given in the first call of partial_fit, got None")
        if not is_first and classes is not None:
            given = LabelEncoder().fit(classes).classes_.tolist()
            if given != self.classes_.tolist():
                raise ValueError(
                    f"{name}: classes must be those of the first call, {self.classes_.tolist()}, got {given}"
                )
        return self._train(*self._check(X, y, is_first, classes), sample_weight, 1, is_first)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Most probable label of each row."""
        logits = self._predict(X)
        return self.classes_[ops.to_numpy(ops.argmax(logits, axis=-1))]

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Probability of each label, for each row, in float32, or in float64 if the module computes in that."""
        logits = self._predict(X)
        # In half precision, rows would sum to 1 only to 3 digits, which functions of scikit-learn reject.
        dtype = "float64" if ops.dtype(logits) == "float64" else "float32"
        return ops.to_numpy(ops.softmax(ops.cast(logits, dtype), axis=-1))

    def _check(self, x: Any, y: Any, is_first: bool, classes: Any = None) -> tuple[Any, Any]:
        x, y = validate_data(self, x, y, dtype="float32", reset=is_first)
        check_classification_targets(y)
        if is_first:
            self.classes_ = LabelEncoder().fit(y if classes is None else classes).classes_
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__}: y must have at least 2 classes, got one class, {self.classes_.tolist()[0]!r}"
            )
        encoder = LabelEncoder()
        encoder.classes_ = self.classes_
        return x, encoder.transform(y)

    def _outputs(self) -> int:
        return len(self.classes_)

    def _chosen_loss(self) -> str | Callable[..., Any]:
        loss = super()._chosen_loss()
        if not isinstance(loss, str):
            return loss
        operation: Any = get_loss(loss).operation  # type: ignore[attr-defined]
        has_option = "from_logits" in inspect.signature(operation).parameters
        return partial(operation, from_logits=True) if has_option else loss


class NeuralRegressor(RegressorMixin, _Neural):  # type: ignore[misc]
    """Regressor of scikit-learn that trains a module, for one target or several.

    Arguments and attributes are those of ``NeuralClassifier``, except that there are no classes, and that the loss is
    by default the mean squared error. Predictions are NumPy arrays.

    >>> model = NeuralRegressor(hidden_sizes=(), learning_rate=0.1, epochs=200, random_state=0)
    >>> model.fit([[0.0], [1.0]], [1.0, 3.0]).predict([[2.0]]).round(1).tolist()
    [5.0]
    """

    _loss = ops.mean_squared_error
    _output = "a number for each target"

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Train for one epoch, with the module and the optimizer of earlier calls, and return the estimator."""
        is_first = not self.__sklearn_is_fitted__()
        return self._train(*self._check(X, y, is_first), sample_weight, 1, is_first)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Predicted target, or targets, of each row."""
        # scikit-learn's regressors return float64.
        found = ops.to_numpy(self._predict(X)).astype("float64")  # emberlint: ignore[EMB313, EMB315] a NumPy array
        return found[:, 0] if self._is_single else found

    def _check(self, x: Any, y: Any, is_first: bool) -> tuple[Any, Any]:
        x, y = validate_data(self, x, y, dtype="float32", multi_output=True, y_numeric=True, reset=is_first)
        largest = ops.finfo("float32").max
        if abs(y).max() > largest:
            raise ValueError(
                f"{type(self).__name__}: y must be from -{largest:.4g} to {largest:.4g}, as it is cast to float32, got "
                f"{y.flat[abs(y).argmax()]}"
            )
        y = y.astype("float32")
        if is_first:
            self._is_single, self._count = y.ndim == 1, 1 if y.ndim == 1 else y.shape[1]
        rows = y[:, None] if y.ndim == 1 else y
        if rows.shape[1] != self._count or (y.ndim == 1) != self._is_single:
            raise ValueError(f"{type(self).__name__}: y must have {self._count} targets, got {rows.shape[1]}")
        return x, rows

    def _outputs(self) -> int:
        return int(self._count)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
