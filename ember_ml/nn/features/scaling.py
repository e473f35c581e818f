"""Feature scaling: to unit variance, to a range, by quantiles, and of rows to unit norm."""

from __future__ import annotations

from typing import Any, Self

from ember_ml import ops
from ember_ml.nn.features.transformer import Transformer, check_no_rows, check_numbers, in_single, wide_dtype
from ember_ml.types import Tensor, TensorLike


class _Scaler(Transformer):
    """Transformation of each feature separately: ``(x - center) / scale``. NaN is ignored in fitting, and kept."""

    def _offsets(self) -> tuple[Any, Any]:
        """Center to subtract and scale to divide by, each of which may be ``None``."""
        raise NotImplementedError

    def transform(self, x: TensorLike) -> Tensor:
        rows = self._rows(x)
        center, scale = (_cast_like(value, rows) for value in self._offsets())
        if center is not None:
            rows = ops.subtract(rows, center)
        return rows if scale is None else ops.divide(rows, scale)

    def inverse_transform(self, x: TensorLike) -> Tensor:
        """Rows of which ``x`` is the transform."""
        rows = self._rows(x)
        center, scale = (_cast_like(value, rows) for value in self._offsets())
        if scale is not None:
            rows = ops.multiply(rows, scale)
        return rows if center is None else ops.add(rows, center)


class StandardScaler(_Scaler):
    """Features with mean 0 and variance 1.

    Means and variances are computed in float64 if the device supports it. Constant features are not scaled.
    ``partial_fit`` fits the model to one batch of rows at a time, with the same result.

    Args:
        with_mean: subtract the mean.
        with_std: divide by the standard deviation.

    >>> StandardScaler().fit_transform([[1.0, 5.0], [3.0, 5.0]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """

    mean_: Tensor
    var_: Tensor
    scale_: Tensor | None
    n_samples_seen_: Tensor

    def __init__(self, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean = with_mean
        self.with_std = with_std

    def fit(self, x: TensorLike, y: object = None) -> Self:
        self._reset()
        return self.partial_fit(x)

    def partial_fit(self, x: TensorLike, y: object = None) -> Self:
        """Update the scaler with the rows of ``x``, in addition to earlier ones, and return it."""
        first = not self.__sklearn_is_fitted__()
        rows = self._rows(x, fitting=first)
        count, mean, var = _moments(rows)
        if not first:
            count, mean, var = _pooled((self.n_samples_seen_, self.mean_, self.var_), (count, mean, var))
        self.n_samples_seen_, self.mean_, self.var_ = count, mean, var
        self.scale_ = _without_zeros(ops.sqrt(var), _is_constant(count, mean, var)) if self.with_std else None
        self.n_features_in_ = int(rows.shape[1])
        return self

    def _offsets(self) -> tuple[Any, Any]:
        return (self.mean_ if self.with_mean else None), self.scale_


class MinMaxScaler(_Scaler):
    """Features scaled to a range.

    Args:
        feature_range: minimum and maximum of the scaled features.
        clip: clip transformed values to the range.

    >>> MinMaxScaler().fit_transform([[1.0], [2.0], [5.0]]).tolist()
    [[0.0], [0.25], [1.0]]
    """

    data_min_: Tensor
    data_max_: Tensor

    def __init__(self, feature_range: tuple[float, float] = (0.0, 1.0), clip: bool = False) -> None:
        self.feature_range = feature_range
        self.clip = clip

    def fit(self, x: TensorLike, y: object = None) -> Self:
        self._reset()
        return self.partial_fit(x)

    def partial_fit(self, x: TensorLike, y: object = None) -> Self:
        """Update the scaler with the rows of ``x``, in addition to earlier ones, and return it."""
        low, high = self.feature_range
        if not low < high:
            raise ValueError(f"MinMaxScaler: feature_range must increase, got {tuple(self.feature_range)}")
        first = not self.__sklearn_is_fitted__()
        rows = self._rows(x, fitting=first)
        least, most = ops.min(rows, axis=0), ops.max(rows, axis=0)
        is_whole = ops.all(ops.isfinite(ops.add(least, most)))
        if not bool(is_whole):  # emberlint: ignore[EMB201] it decides on the method
            _check_no_infinities(rows)
            least, most = ops.nanmin(rows, axis=0), ops.nanmax(rows, axis=0)
        if not first:
            least, most = ops.fmin(self.data_min_, least), ops.fmax(self.data_max_, most)
        self.data_min_, self.data_max_ = least, most
        self.n_features_in_ = int(rows.shape[1])
        return self

    @property
    def data_range_(self) -> Tensor:
        """Maximum minus minimum of each feature."""
        return ops.subtract(self.data_max_, self.data_min_)

    @property
    def scale_(self) -> Tensor:
        """Factor of each feature."""
        low, high = self.feature_range
        return ops.divide(high - low, _without_zeros(self.data_range_))

    @property
    def min_(self) -> Tensor:
        """Offset that is added to each feature after scaling."""
        return ops.subtract(self.feature_range[0], ops.multiply(self.data_min_, self.scale_))

    def _offsets(self) -> tuple[Any, Any]:
        scale = ops.divide(1.0, self.scale_)
        return ops.multiply(ops.negative(self.min_), scale), scale

    def transform(self, x: TensorLike) -> Tensor:
        rows = self._rows(x)
        result = ops.add(ops.multiply(rows, _cast_like(self.scale_, rows)), _cast_like(self.min_, rows))
        return ops.clip(result, *self.feature_range) if self.clip else result


class RobustScaler(_Scaler):
    """Features with median 0 and quantile range 1, which is robust to outliers.

    Args:
        with_centering: subtract the median.
        with_scaling: divide by the distance between the quantiles.
        quantile_range: lower and upper quantile in percent.
        unit_variance: scale so that normally distributed features have variance 1.

    >>> RobustScaler().fit_transform([[1.0], [2.0], [3.0], [4.0], [100.0]]).tolist()
    [[-1.0], [-0.5], [0.0], [0.5], [48.5]]
    """

    center_: Tensor | None
    scale_: Tensor | None

    def __init__(
        self,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        unit_variance: bool = False,
    ) -> None:
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.unit_variance = unit_variance

    def fit(self, x: TensorLike, y: object = None) -> Self:
        low, high = self.quantile_range
        if not 0 <= low <= high <= 100:
            raise ValueError(
                f"RobustScaler: quantile_range must increase within 0 and 100, got {tuple(self.quantile_range)}"
            )
        self._reset()
        rows = self._rows(x, fitting=True)
        parts = [0.5, low / 100, high / 100]
        has_nan = not bool(ops.all(ops.isfinite(rows)))  # emberlint: ignore[EMB201] it decides on the method
        if has_nan:
            _check_no_infinities(rows)
        quantile = ops.nanquantile if has_nan else ops.quantile
        middle, lower, upper = ops.unstack(quantile(rows, parts, axis=0))
        self.center_ = middle if self.with_centering else None
        self.scale_ = None
        if self.with_scaling:
            # The quantiles of a constant feature are exactly equal, so no tolerance is needed.
            spread = ops.subtract(upper, lower)
            scale = _without_zeros(spread, ops.equal(spread, 0))
            self.scale_ = ops.divide(scale, _normal_distance(low, high)) if self.unit_variance else scale
        self.n_features_in_ = int(rows.shape[1])
        return self

    def _offsets(self) -> tuple[Any, Any]:
        return self.center_, self.scale_


class Normalizer(Transformer):
    """Rows scaled to norm 1. Rows of zeros are unchanged.

    Args:
        norm: ``"l2"``, ``"l1"`` or ``"max"``.

    >>> [[round(float(v), 4) for v in row] for row in Normalizer().fit_transform([[3.0, 4.0]])]
    [[0.6, 0.8]]
    """

    def __init__(self, norm: str = "l2") -> None:
        self.norm = norm

    def fit(self, x: TensorLike, y: object = None) -> Self:
        self._reset()
        self.n_features_in_ = int(self._rows(x, fitting=True).shape[1])
        return self

    def transform(self, x: TensorLike) -> Tensor:
        orders = {"l1": 1, "l2": 2, "max": float("inf")}
        if self.norm not in orders:
            raise ValueError(f"Normalizer: norm must be one of {', '.join(map(repr, orders))}, got {self.norm!r}")
        rows = self._rows(x)
        lengths = ops.vector_norm(rows, axis=1, keepdims=True, ord=orders[self.norm])
        return ops.divide(rows, _without_zeros(lengths))


def standardize_features(with_mean: bool = True, with_std: bool = True) -> StandardScaler:
    """Unfitted ``StandardScaler``; the options are those of the class. Rows are an argument of its methods.

    >>> standardize_features(with_std=False).fit_transform([[1.0], [3.0]]).tolist()
    [[-1.0], [1.0]]
    """
    check_no_rows("standardize_features", "with_mean must be a bool", with_mean)
    return StandardScaler(with_mean, with_std)


def normalize_features(norm: str = "l2") -> Normalizer:
    """Unfitted ``Normalizer``; the options are those of the class. Rows are an argument of its methods.

    >>> normalize_features("max").fit_transform([[1.0, 4.0]]).tolist()
    [[0.25, 1.0]]
    """
    check_no_rows("normalize_features", "norm must be a string", norm)
    return Normalizer(norm)


def _cast_like(value: Any, rows: Tensor) -> Any:
    """``value``, unless it is ``None``, in the dtype of the rows."""
    return None if value is None else ops.cast(value, ops.dtype(rows))


def _check_no_infinities(rows: Tensor) -> None:
    """Raise an error if a feature has an infinity, by which nothing can be scaled."""
    check_numbers(ops.any(ops.isinf(rows), axis=0), "x must be finite or NaN", "infinities")


def _moments(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Count, mean and variance of each feature, without NaN."""
    wide = wide_dtype(rows)
    rows = in_single(rows)
    total = ops.sum(rows, axis=0, dtype=wide)
    count: Any = rows.shape[0]
    has_nan = not bool(ops.all(ops.isfinite(total)))  # emberlint: ignore[EMB201] it decides on the method
    if has_nan:
        _check_no_infinities(rows)
        is_number = ops.logical_not(ops.isnan(rows))
        count = ops.sum(is_number, axis=0, dtype=wide)
        total = ops.sum(ops.where(is_number, rows, 0.0), axis=0, dtype=wide)
    mean = ops.divide(total, count)
    apart = ops.subtract(rows, ops.cast(mean, ops.dtype(rows)))
    if has_nan:
        apart = ops.where(is_number, apart, 0.0)
    # The mean is rounded before it is subtracted; this corrects the rounding error.
    error = ops.divide(ops.sum(apart, axis=0, dtype=wide), count)
    squares = ops.divide(ops.sum(ops.square(apart), axis=0, dtype=wide), count)
    var = ops.subtract(squares, ops.square(error))
    mean = ops.add(ops.cast(ops.cast(mean, ops.dtype(rows)), wide), error)
    return count if has_nan else ops.full_like(mean, count), mean, ops.maximum(var, 0.0)


def _pooled(one: tuple[Tensor, Tensor, Tensor], other: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Count, mean and variance of two samples combined."""
    (n, mean, var), (m, mean_m, var_m) = one, other
    # A feature with only NaN in one sample has the mean and variance of the other.
    mean, var = (ops.where(ops.equal(n, 0), new, old) for old, new in ((mean, mean_m), (var, var_m)))
    mean_m, var_m = (ops.where(ops.equal(m, 0), old, new) for old, new in ((mean, mean_m), (var, var_m)))
    count = ops.add(n, m)
    part, rest = ops.divide(m, count), ops.divide(n, count)
    shift = ops.subtract(mean_m, mean)
    within = ops.add(ops.multiply(var, rest), ops.multiply(var_m, part))
    between = ops.multiply(ops.square(shift), ops.multiply(part, rest))
    return count, ops.add(mean, ops.multiply(shift, part)), ops.add(within, between)


def _is_constant(count: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    """Whether a variance is within the rounding error of a constant feature."""
    eps = ops.finfo(ops.dtype(var)).eps
    noise = ops.square(ops.multiply(ops.multiply(count, mean), eps))
    return ops.less_equal(var, ops.add(ops.multiply(ops.multiply(count, var), eps), noise))


def _without_zeros(scale: Tensor, is_zero: Tensor | None = None) -> Tensor:
    """``scale`` with 1 in place of zeros, so that it can be divided by."""
    eps = ops.finfo(ops.dtype(scale)).eps
    return ops.where(ops.less(scale, 10 * eps) if is_zero is None else is_zero, 1.0, scale)


def _normal_distance(low: float, high: float) -> float:
    """Distance between two quantiles, given in percent, of the standard normal distribution."""
    from statistics import NormalDist

    normal = NormalDist()
    return normal.inv_cdf(high / 100) - normal.inv_cdf(low / 100)
