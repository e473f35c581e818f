"""What all fitted transformations share: scikit-learn's protocol, and a state that travels between engines."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar, Self

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.errors import EmberError, UnsupportedError
from ember_ml.extend import activate, backend_of, backend_of_wrapped, current_backend, holds_wrapped, unwrap, wrap
from ember_ml.types import DeviceLike, Tensor, TensorLike


class NotFittedError(EmberError, ValueError, AttributeError):
    """A transformation was used before it was fitted."""


def _at_home(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method ``name`` of a transformation, given native rows and run on their engine; the answer is in kind."""

    @wraps(method)
    def called(self: Transformer, x: Any, *args: Any, **options: Any) -> Any:
        names = None if name == "inverse_transform" else _column_names(x)
        if names is not None and name in ("transform", "partial_fit"):
            self._check_names(names)
        try:
            rows = ops.atleast_1d(x)
        except TypeError as error:
            error.add_note(
                f"{type(self).__name__} takes numbers: write codes for what is text, and NaN for what is missing"
            )
            raise
        wrapped = holds_wrapped((rows,))
        home = backend_of_wrapped(name, (rows,)) if wrapped else backend_of(rows) or current_backend()
        with activate(home):
            answer = method(self, unwrap(rows), *args, **options)
        if names is not None and name != "transform":
            self.feature_names_in_ = names
        return wrap(answer, home) if wrapped else answer

    return called


class Transformer:
    """A transformation of rows of features, fitted to data.

    A subclass takes its settings in ``__init__`` and stores them under their own names; ``fit`` stores what it learns
    in attributes whose names end with an underscore, ``n_features_in_`` last. They are the fitted state, which moves
    between engines and goes into files. Its methods are given native tensors and run on the engine of these, whichever
    is active; those who call them may give portable tensors, and are answered in kind.

    Columns that have names, as those of data frames do, are known by these from then on: ``feature_names_in_``.
    """

    n_features_in_: int
    feature_names_in_: list[str]
    _kinds: ClassVar[dict[str, type[Transformer]]] = {}

    def __init_subclass__(cls) -> None:
        Transformer._kinds[cls.__name__] = cls
        for name in ("fit", "partial_fit", "fit_transform", "transform", "inverse_transform"):
            if name in vars(cls):
                setattr(cls, name, _at_home(name, vars(cls)[name]))

    def fit(self, x: TensorLike, y: object = None) -> Self:
        """This transformation, fitted to the rows of ``x``."""
        raise NotImplementedError

    def transform(self, x: TensorLike) -> Tensor:
        """The rows of ``x``, transformed."""
        raise NotImplementedError

    def fit_transform(self, x: TensorLike, y: object = None) -> Tensor:
        """The rows of ``x``, transformed by what was fitted to them."""
        return self.fit(x, y).transform(x)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> list[str]:
        """The names of the features that ``transform`` answers.

        Args:
            input_features: the names of those that it is given; by default those of the columns that it was fitted to,
                or, if they had none, x0, x1 and so on.

        >>> from ember_ml.nn.features import PCA, StandardScaler
        >>> rows = [[0.0, 1.0], [2.0, 3.0]]
        >>> StandardScaler().fit(rows).get_feature_names_out(["width", "height"])
        ['width', 'height']
        >>> PCA(1).fit(rows).get_feature_names_out()
        ['pca0']
        """
        self._check_fitted()
        own = getattr(self, "feature_names_in_", None) or [f"x{i}" for i in range(self.n_features_in_)]
        names = own if input_features is None else list(input_features)
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"{type(self).__name__}: input_features must be {self.n_features_in_} names, as many as were fitted "
                f"to, got {len(names)}"
            )
        return self._named(names)

    def _named(self, names: list[str]) -> list[str]:
        """The names of what becomes of features with these names: the same, where each stays by itself."""
        return names

    @classmethod
    def _settings(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        return {name: getattr(self, name) for name in self._settings()}

    def set_params(self, **settings: Any) -> Self:
        """This transformation with other settings; what was fitted stays until the next ``fit``."""
        known = self._settings()
        for name, value in settings.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__}: a setting must be one of {', '.join(known) or 'none'}, got {name!r}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        shown = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name].default]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn's pipelines ask for."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(allow_nan=True),
            array_api_support=True,
        )

    def tensors(self) -> dict[str, Tensor]:
        """The fitted tensors by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and ops.is_tensor(value)}

    def assign(self, values: Mapping[str, Tensor]) -> None:
        """Put other tensors in place of the fitted ones."""
        vars(self).update(values)

    def state_dict(self) -> dict[str, Any]:
        """Everything that was fitted, tensors and numbers, by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_")}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """This transformation with a fitted state from elsewhere, its tensors moved to the active engine."""
        wrong = [name for name in state if not name.endswith("_")]
        if wrong:
            raise ValueError(
                f"{type(self).__name__}: the names of a fitted state must end in '_', got {', '.join(map(repr, wrong))}"
            )
        self._forget()
        for name, value in state.items():
            setattr(self, name, ops.convert_to_tensor(value) if ops.is_tensor(value) else value)
        return self

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def to_backend(self, name: str) -> Self:
        """This transformation with its fitted tensors on another engine."""
        with use_backend(name):
            self.assign({key: ops.convert_to_tensor(value) for key, value in self.tensors().items()})
        return self

    def to(self, device: DeviceLike) -> Self:
        """This transformation with its fitted tensors on another device."""
        self.assign({key: ops.to_device(value, device) for key, value in self.tensors().items()})
        return self

    def save(self, path: object) -> None:
        """Write settings and fitted state to a ``.safetensors`` or ``.npz`` file; ``load`` reads it on any engine."""
        self._check_fitted()
        # Numbers of NumPy become Python's.
        settings = json.dumps(self.get_params(), default=lambda value: value.item())
        about = {"transformer": type(self).__name__, "settings": settings}
        ops.save(path, self.state_dict(), metadata=about)

    def __getstate__(self) -> dict[str, Any]:
        from ember_ml.nn.tensor import EmberTensor

        # As portable tensors: an engine may lose digits when it pickles its own.
        return {**vars(self), **{name: EmberTensor(value) for name, value in self.tensors().items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from ember_ml.nn.tensor import unwrap

        vars(self).update(unwrap(state))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"{type(self).__name__}: it must be fitted before use, got one that is not fitted; call fit first"
            )

    def _check_names(self, names: list[str]) -> None:
        """Raise an error if columns are not those of the data that this was fitted to: numbers would change places."""
        fitted = getattr(self, "feature_names_in_", names)
        if names != fitted:
            raise ValueError(
                f"{type(self).__name__}: x must have the columns that were fitted to, {', '.join(fitted)}, got "
                f"{', '.join(names)}"
            )

    def _rows(self, x: TensorLike, *, fitting: bool = False) -> Tensor:
        """``x`` as a matrix of floats, with as many columns as there are features."""
        rows: Tensor = ops.atleast_1d(x)
        if rows.ndim != 2:
            raise ValueError(
                f"{type(self).__name__}: x must be a matrix with a row for each sample, got shape {list(rows.shape)}; "
                "ops.reshape(x, (-1, 1)) makes one of a single feature"
            )
        if ops.is_complex(rows):
            raise TypeError(f"{type(self).__name__}: x must be real, got {ops.dtype(rows)}")
        if not ops.is_float(rows):
            rows = ops.cast(rows, ops.get_default_dtype())
        if fitting:
            if not rows.shape[0]:
                raise ValueError(f"{type(self).__name__}: x must have at least 1 row to be fitted to, got none")
        else:
            self._check_fitted()
            if rows.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"{type(self).__name__}: x must have {self.n_features_in_} columns, as many as were fitted to, "
                    f"got {rows.shape[1]}"
                )
        return rows


def _column_names(x: Any) -> list[str] | None:
    """The names of columns, if all of them are strings, as a data frame has them."""
    columns = getattr(x, "columns", None)
    names = None if columns is None or callable(columns) else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def load(path: object) -> Any:
    """The transformation that ``Transformer.save`` wrote, on the active engine.

    >>> import tempfile
    >>> from ember_ml.nn.features import StandardScaler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     StandardScaler().fit([[0.0], [2.0]]).save(f"{folder}/scaler.safetensors")
    ...     load(f"{folder}/scaler.safetensors").transform([[4.0]]).tolist()
    [[3.0]]
    """
    state, about = ops.load(path, with_metadata=True)
    kind = Transformer._kinds.get(about.get("transformer", ""))
    if kind is None:
        raise ValueError(f"load: path must hold a fitted transformation of features, got {str(path)!r}")
    defaults = inspect.signature(kind).parameters
    settings = {
        # JSON has no tuples.
        name: tuple(value) if isinstance(defaults[name].default, tuple) else value
        for name, value in json.loads(about["settings"]).items()
    }
    return kind(**settings).load_state_dict(state)


def check_numbers(is_wrong: Tensor, needed: str, had: str) -> None:
    """Raise an error that names the features for which ``is_wrong`` is true, of what they need and what they have."""
    flags: list[bool] = is_wrong.tolist()  # emberlint: ignore[EMB202] it decides on an error
    wrong = [str(i) for i, flag in enumerate(flags) if flag]
    if wrong:
        raise ValueError(f"{needed}, got {had} in the features {', '.join(wrong)}")


def in_single(rows: Tensor) -> Tensor:
    """Rows of a half type in float32: squares and products of those have too few digits, and overflow."""
    return ops.cast(rows, "float32") if ops.dtype(rows) in ("float16", "bfloat16") else rows


def wide_dtype(x: Tensor) -> str:
    """The dtype to add up many elements of ``x`` in: float64 where its device has that."""
    try:
        ops.zeros((), dtype="float64", device=ops.get_device(x))  # emberlint: ignore[EMB313] it is tried here
    except (UnsupportedError, TypeError):
        return "float32"
    return "float64"
