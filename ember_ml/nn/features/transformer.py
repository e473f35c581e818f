"""Base class of fitted transformations: scikit-learn's interface, and a state that moves between engines."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar, Self

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.dtypes import written
from ember_ml.errors import EmberError, UnsupportedError
from ember_ml.extend import activate, backend_of, backend_of_wrapped, current_backend, holds_wrapped, unwrap, wrap
from ember_ml.frames import as_array, column_names
from ember_ml.types import DeviceLike, Tensor, TensorLike


class NotFittedError(EmberError, ValueError, AttributeError):
    """A transformation was used before it was fitted."""


def _on_own_engine(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """``method``, run with native rows on their engine; the result is an ``EmberTensor`` if the rows are."""

    @wraps(method)
    def called(self: Transformer, x: Any, *args: Any, **options: Any) -> Any:
        names = None if name == "inverse_transform" else column_names(x)
        if names is not None and name in ("transform", "partial_fit"):
            self._check_names(names)
        try:
            rows = ops.atleast_1d(as_array(x))
        except TypeError as error:
            error.add_note(
                f"{type(self).__name__} takes numbers: write codes for what is text, and NaN for what is missing"
            )
            raise
        wrapped = holds_wrapped((rows,))
        backend = backend_of_wrapped(name, (rows,)) if wrapped else backend_of(rows) or current_backend()
        with activate(backend):
            result = method(self, unwrap(rows), *args, **options)
        if names is not None and name != "transform":
            self.feature_names_in_ = names
        return wrap(result, backend) if wrapped else result

    return called


class Transformer:
    """Transformation of rows of features, fitted to data.

    A subclass stores the settings of ``__init__`` under their own names. ``fit`` stores the fitted state in attributes
    whose names end with an underscore, ``n_features_in_`` last; the state can be saved and moved between engines. The
    methods of a subclass receive native tensors and run on the engine of these, whichever is active. Callers may pass
    an ``EmberTensor``, and then receive one.

    If the input has column names, as data frames do, ``fit`` stores them in ``feature_names_in_``.
    """

    n_features_in_: int
    feature_names_in_: list[str]
    _classes: ClassVar[dict[str, type[Transformer]]] = {}

    def __init_subclass__(cls) -> None:
        Transformer._classes[cls.__name__] = cls
        for name in ("fit", "partial_fit", "fit_transform", "transform", "inverse_transform"):
            if name in vars(cls):
                setattr(cls, name, _on_own_engine(name, vars(cls)[name]))

    def fit(self, x: TensorLike, y: object = None) -> Self:
        """Fit the transformation to the rows of ``x``, and return it; ``y`` is ignored."""
        raise NotImplementedError

    def transform(self, x: TensorLike) -> Tensor:
        """Transformed rows of ``x``."""
        raise NotImplementedError

    def fit_transform(self, x: TensorLike, y: object = None) -> Tensor:
        """Fit the transformation to the rows of ``x``, and return the transformed rows."""
        return self.fit(x, y).transform(x)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> list[str]:
        """Names of the features that ``transform`` returns.

        Args:
            input_features: names of the input features; by default the column names of the fitted data or, if it had
                none, x0, x1 and so on.

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
        return self._names_out(names)

    def _names_out(self, names: list[str]) -> list[str]:
        """Output names for these input names: the same names, if features are transformed separately."""
        return names

    @classmethod
    def _settings(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name; ``deep`` is ignored."""
        return {name: getattr(self, name) for name in self._settings()}

    def set_params(self, **settings: Any) -> Self:
        """Change settings, and return the transformation; the fitted state is kept until the next ``fit``."""
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
        """Tags that scikit-learn's pipelines read."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(allow_nan=True),
            array_api_support=True,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Fitted tensors by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and ops.is_tensor(value)}

    def assign(self, values: Mapping[str, Tensor]) -> None:
        """Replace fitted tensors by name."""
        vars(self).update(values)

    def state_dict(self) -> dict[str, Any]:
        """Fitted state, tensors and numbers, by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_")}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Replace the fitted state, with tensors moved to the active engine, and return the transformation."""
        wrong = [name for name in state if not name.endswith("_")]
        if wrong:
            raise ValueError(
                f"{type(self).__name__}: the names of a fitted state must end in '_', got {', '.join(map(repr, wrong))}"
            )
        self._reset()
        for name, value in state.items():
            setattr(self, name, ops.convert_to_tensor(value) if ops.is_tensor(value) else value)
        return self

    def _reset(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def to_backend(self, name: str) -> Self:
        """Move the fitted tensors to another engine, and return the transformation."""
        with use_backend(name):
            self.assign({key: ops.convert_to_tensor(value) for key, value in self.tensors().items()})
        return self

    def to(self, device: DeviceLike) -> Self:
        """Move the fitted tensors to another device, and return the transformation."""
        self.assign({key: ops.to_device(value, device) for key, value in self.tensors().items()})
        return self

    def save(self, path: object) -> None:
        """Write settings and fitted state to a ``.safetensors`` or ``.npz`` file; ``load`` reads it on any engine."""
        self._check_fitted()
        # JSON does not support NumPy numbers.
        settings = json.dumps(self.get_params(), default=lambda value: value.item())
        about = {"transformer": type(self).__name__, "settings": settings}
        ops.save(path, self.state_dict(), metadata=about)

    def __getstate__(self) -> dict[str, Any]:
        from ember_ml.nn.tensor import wrap as wrap_tree

        # Stored as EmberTensor, because engines may lose digits when they pickle their own tensors.
        return {**vars(self), **wrap_tree(self.tensors())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from ember_ml.nn.tensor import unwrap

        vars(self).update(unwrap(state))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"{type(self).__name__}: it must be fitted before use, got one that is not fitted; call fit first"
            )

    def _check_names(self, names: list[str]) -> None:
        """Raise an error if the column names differ from those of the fitted data."""
        fitted = getattr(self, "feature_names_in_", names)
        if names != fitted:
            raise ValueError(
                f"{type(self).__name__}: x must have the columns that were fitted to, {', '.join(fitted)}, got "
                f"{', '.join(names)}"
            )

    def _rows(self, x: TensorLike, *, fitting: bool = False) -> Tensor:
        """``x`` as a floating-point matrix, with one column for each feature."""
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


def load(path: object) -> Any:
    """Transformation from a file that ``Transformer.save`` wrote, on the active engine.

    >>> import tempfile
    >>> from ember_ml.nn.features import StandardScaler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     StandardScaler().fit([[0.0], [2.0]]).save(f"{folder}/scaler.safetensors")
    ...     load(f"{folder}/scaler.safetensors").transform([[4.0]]).tolist()
    [[3.0]]
    """
    state, about = ops.load(path, with_metadata=True)
    cls = Transformer._classes.get(about.get("transformer", ""))
    if cls is None:
        raise ValueError(f"load: path must hold a fitted transformation of features, got {str(path)!r}")
    defaults = inspect.signature(cls).parameters
    settings = {
        # JSON has no tuples.
        name: tuple(value) if isinstance(defaults[name].default, tuple) else value
        for name, value in json.loads(about["settings"]).items()
    }
    return cls(**settings).load_state_dict(state)


def check_no_rows(function: str, needed: str, value: Any) -> None:
    """Raise an error if rows are given as the first option of a function that creates an unfitted transformation."""
    # Numbers of NumPy have the attribute too, and no axes.
    has_axes = getattr(value, "ndim", 0) != 0
    if isinstance(value, (list, tuple)) or has_axes:
        raise TypeError(
            f"{function}: {needed}, got {written(value)}; {function}() is not fitted yet: write "
            f"{function}().fit_transform(rows)"
        )


def check_numbers(is_wrong: Tensor, needed: str, had: str) -> None:
    """Raise an error that names the features where ``is_wrong``, what they need and what they have."""
    flags: list[bool] = is_wrong.tolist()  # emberlint: ignore[EMB202] it decides on an error
    wrong = [str(i) for i, flag in enumerate(flags) if flag]
    if wrong:
        raise ValueError(f"{needed}, got {had} in the features {', '.join(wrong)}")


def in_single(rows: Tensor) -> Tensor:
    """Rows in float32 if they are float16 or bfloat16, whose products are imprecise and overflow."""
    return ops.cast(rows, "float32") if ops.dtype(rows) in ("float16", "bfloat16") else rows


def wide_dtype(x: Tensor) -> str:
    """Dtype for sums over ``x``: float64 if its device supports it, else float32."""
    try:
        ops.zeros((), dtype="float64", device=ops.get_device(x))  # emberlint: ignore[EMB313] it is tried here
    except (UnsupportedError, TypeError):
        return "float32"
    return "float64"
