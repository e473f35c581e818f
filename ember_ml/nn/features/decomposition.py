"""Principal component analysis and whitening."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Self

from ember_ml import ops
from ember_ml.errors import LinAlgError
from ember_ml.extend import activate, backend_of, current_backend
from ember_ml.nn.features.transformer import Transformer, check_no_rows, check_numbers, in_single, wide_dtype
from ember_ml.types import DTypeLike, Tensor, TensorLike

_SOLVERS = ("auto", "full", "covariance_eigh", "randomized", "incremental")


class PCA(Transformer):
    """Principal component analysis: projection onto the directions of greatest variance.

    The entry of largest magnitude of each component is positive. ``partial_fit`` fits the model to one batch of rows
    at a time; ``svd_solver="incremental"`` does the same within ``fit``.

    Args:
        n_components: number of components to keep, or if below 1, the fraction of the variance that they must explain;
            by default all components.
        whiten: scale the components to variance 1.
        svd_solver: ``"full"`` (singular values of the centered rows), ``"covariance_eigh"`` (eigenvalues of the
            covariance matrix, fast if there are many more rows than features), ``"randomized"`` (fast for few
            components of many features), ``"incremental"`` (batches of rows), or ``"auto"``, which chooses one of the
            first three by the shape of the data.
        iterated_power: number of power iterations of the randomized solver; by default 7 for few components, else 4.
        n_oversamples: number of random directions of the randomized solver in addition to the components.
        batch_size: number of rows in a batch of the incremental solver; by default five times the number of features.
        random_state: seed of the randomized solver; by default the current random stream.

    >>> rows = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    >>> model = PCA(n_components=1).fit(rows)
    >>> [round(float(v), 4) for v in model.explained_variance_ratio_]
    [1.0]
    >>> [round(float(v[0]), 4) for v in model.transform(rows)]
    [-1.4142, 0.0, 1.4142]
    """

    components_: Tensor
    explained_variance_: Tensor
    explained_variance_ratio_: Tensor
    singular_values_: Tensor
    mean_: Tensor
    var_: Tensor
    n_components_: int
    n_samples_: int
    noise_variance_: float

    def __init__(
        self,
        n_components: int | float | None = None,
        whiten: bool = False,
        svd_solver: str = "auto",
        iterated_power: int | None = None,
        n_oversamples: int = 10,
        batch_size: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(self, x: TensorLike, y: object = None) -> Self:
        self._reset()
        rows = self._rows(x, fitting=True)
        solver = self._solver(*rows.shape)
        if solver == "incremental":
            size = self.batch_size or 5 * rows.shape[1]
            for start, stop in _batches(rows.shape[0], size, self._smallest_batch(rows.shape[1])):
                self.partial_fit(rows[start:stop])
            return self
        self._fit_rows(rows, solver)
        return self

    def fit_transform(self, x: TensorLike, y: object = None) -> Tensor:
        rows = self._rows(x, fitting=True)
        solver = self._solver(*rows.shape)
        if solver == "incremental":
            return self.fit(rows).transform(rows)
        self._reset()
        moved, mean, scores = self._fit_rows(rows, solver)
        if scores is None:
            base = self._projection(ops.dtype(moved))
            result = ops.subtract(ops.matmul(moved, base), ops.matmul(mean, base))
        else:
            result = ops.divide(scores, self._deviations()) if self.whiten else scores
        return result if ops.dtype(rows) == ops.dtype(result) else ops.cast(result, ops.dtype(rows))

    def _fit_rows(self, rows: Tensor, solver: str) -> tuple[Tensor, Tensor, Tensor | None]:
        """Fit the model; return the rows, possibly centered, their mean, and their scores if the solver has them."""
        self._check_count(min(rows.shape))
        rows = in_single(rows)
        # A matrix product is faster than a sum; a second one corrects its rounding error.
        share = ops.full((rows.shape[0],), 1 / rows.shape[0], dtype=ops.dtype(rows), device=ops.get_device(rows))
        mean = ops.matmul(share, rows)
        _check_finite(mean)
        if solver == "covariance_eigh":
            scatter = _scatter(rows, mean)
            if scatter is not None:
                self._store(rows.shape, mean, *_svd_from_scatter(scatter))
                return rows, mean, None
        centered = ops.subtract(rows, mean)
        error = ops.matmul(share, centered)
        squares = scores = None
        if solver == "covariance_eigh":
            values, directions = _svd_from_scatter(ops.matmul(ops.matrix_transpose(centered), centered))
        elif solver == "full":
            values, directions = _exact_svd(centered)
        else:
            values, directions, scores = self._randomized_svd(centered)
            total = ops.sum(ops.matmul(centered[:, None, :], centered[:, :, None]), dtype=wide_dtype(rows))
            squares = float(total)  # emberlint: ignore[EMB201] the model keeps it as a number
        self._store(rows.shape, ops.add(mean, error), values, directions, squares)
        return centered, error, scores

    def _solver(self, samples: int, features: int) -> str:
        if self.svd_solver not in _SOLVERS:
            raise ValueError(
                f"PCA: svd_solver must be one of {', '.join(map(repr, _SOLVERS))}, got {self.svd_solver!r}"
            )
        if self.svd_solver != "auto":
            return self.svd_solver
        if features <= 1000 and samples >= 10 * features:
            return "covariance_eigh"
        count = self._component_count()
        few = isinstance(count, int) and 1 <= count < 0.8 * min(samples, features)
        return "randomized" if few and max(samples, features) > 500 else "full"

    def _component_count(self) -> int | float | None:
        """``n_components`` as a Python number."""
        wanted = self.n_components
        if isinstance(wanted, bool) or not isinstance(wanted, (Integral, Real, type(None))):
            raise TypeError(f"PCA: n_components must be an integer, a share of the variance or None, got {wanted!r}")
        return wanted if wanted is None else int(wanted) if isinstance(wanted, Integral) else float(wanted)

    def _check_count(self, most: int) -> None:
        wanted = self._component_count()
        if isinstance(wanted, float):
            if not 0 < wanted < 1:
                raise ValueError(
                    f"PCA: n_components must be > 0 and < 1 if it is a share of the variance, got {wanted}"
                )
            if self.svd_solver in ("randomized", "incremental"):
                raise ValueError(
                    f"PCA: n_components must be an integer for svd_solver={self.svd_solver!r}, got {wanted}"
                )
        elif wanted is not None and not 1 <= wanted <= most:
            raise ValueError(f"PCA: n_components must be from 1 to {most}, the smaller side of the data, got {wanted}")

    def _smallest_batch(self, features: int) -> int:
        """Smallest number of rows in a batch."""
        count = self._component_count()
        return count if isinstance(count, int) else features

    def _randomized_svd(self, centered: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Largest singular values, right singular vectors, and scores of the rows along these.

        They are computed in a random subspace that power iterations align with the directions of greatest variance
        (Halko, Martinsson and Tropp, 2011).
        """
        samples, features = centered.shape
        requested: Any = self._component_count()
        count = min(samples, features) if requested is None else requested
        iterations = self.iterated_power
        if iterations is None:
            iterations = 7 if count < 0.1 * min(samples, features) else 4
        size = min(count + self.n_oversamples, samples, features)
        key = None if self.random_state is None else ops.random.key(self.random_state)
        device = ops.get_device(centered)
        probe = ops.random.uniform((size, samples), -1.0, 1.0, dtype=ops.dtype(centered), device=device, key=key)
        directions = _orthonormal(ops.matmul(probe, centered))
        for _ in range(iterations):
            probe = _orthonormal(ops.matrix_transpose(ops.matmul(centered, ops.matrix_transpose(directions))))
            directions = _orthonormal(ops.matmul(probe, centered))
        scores = ops.matmul(centered, ops.matrix_transpose(directions))
        values, rotation = _exact_svd(scores)
        right = ops.matmul(rotation[:count], directions)
        signs = _signs(right)
        scores = ops.matmul(scores, ops.matrix_transpose(ops.multiply(rotation[:count], signs)))
        return values[:count], ops.multiply(right, signs), scores

    def partial_fit(self, x: TensorLike, y: object = None) -> Self:
        """Update the model with the rows of ``x``, in addition to earlier ones, and return it."""
        first = not hasattr(self, "components_")
        rows = in_single(self._rows(x, fitting=first))
        samples, features = rows.shape
        self._check_count(min(samples, features) if first else features)
        if isinstance(self._component_count(), float):
            raise ValueError(f"PCA: n_components must be an integer for partial_fit, got {self.n_components}")
        wide = wide_dtype(rows)
        mean = ops.divide(ops.sum(rows, axis=0, dtype=wide), samples)
        _check_finite(mean)
        centered = ops.subtract(rows, ops.cast(mean, ops.dtype(rows)))
        squares = ops.sum(ops.square(centered), axis=0, dtype=wide)
        before = 0 if first else self.n_samples_
        count = before + samples
        stacked = [centered]
        if not first:
            shift = ops.subtract(mean, self.mean_)
            weight = before * samples / count
            squares = ops.add(
                ops.multiply(self.var_, before), ops.add(squares, ops.multiply(ops.square(shift), weight))
            )
            old = ops.multiply(ops.expand_dims(self.singular_values_, axis=1), self.components_)
            step = ops.expand_dims(ops.cast(ops.multiply(shift, math.sqrt(weight)), ops.dtype(rows)), axis=0)
            stacked = [old, centered, step]
            mean = ops.add(self.mean_, ops.multiply(shift, samples / count))
        _, values, directions = ops.svd(ops.concatenate(stacked, axis=0), full_matrices=False)
        total = float(ops.sum(squares))  # emberlint: ignore[EMB201] the model keeps it as a number
        self._store((count, features), mean, values, directions, total)
        self.var_ = ops.divide(squares, count)
        return self

    def _store(
        self, shape: tuple[int, ...], mean: Tensor, values: Tensor, directions: Tensor, squares: float | None = None
    ) -> None:
        """Store the model; ``squares`` is the sum of all squared singular values, if ``values`` lacks some."""
        samples, features = shape
        variance = ops.divide(ops.square(values), max(samples - 1, 1))
        whole = ops.sum(variance) if squares is None else squares / max(samples - 1, 1)
        total = float(whole)
        ratio = ops.divide(variance, total) if total > 0 else ops.zeros_like(variance)
        requested = self._component_count()
        count = int(values.shape[0]) if requested is None else requested
        if isinstance(count, float):
            reached = ops.cumsum(ratio, axis=0)
            below = int(ops.sum(ops.less(reached, count)))  # emberlint: ignore[EMB201] it is part of a shape
            count = min(below + 1, int(values.shape[0]))
        count = min(count, int(values.shape[0]))
        rank = min(samples, features)
        rest = total - float(ops.sum(variance[:count]))  # emberlint: ignore[EMB201] the model keeps it as a number
        self.mean_ = mean
        self.components_ = ops.multiply(directions[:count], _signs(directions[:count]))
        self.explained_variance_ = variance[:count]
        self.explained_variance_ratio_ = ratio[:count]
        self.singular_values_ = values[:count]
        self.noise_variance_ = max(rest, 0.0) / (rank - count) if count < rank else 0.0
        self.n_components_, self.n_samples_ = count, samples
        self.n_features_in_ = features

    def transform(self, x: TensorLike) -> Tensor:
        given = self._rows(x)
        rows = in_single(given)
        dtype = ops.dtype(rows)
        result = ops.matmul(ops.subtract(rows, ops.cast(self.mean_, dtype)), self._projection(dtype))
        return ops.cast(result, ops.dtype(given))

    def _projection(self, dtype: DTypeLike) -> Tensor:
        """Matrix that maps centered rows to their scores."""
        base = ops.matrix_transpose(ops.cast(self.components_, dtype))
        return ops.divide(base, ops.cast(self._deviations(), dtype)) if self.whiten else base

    def inverse_transform(self, x: TensorLike) -> Tensor:
        """Rows with the scores ``x``: the input of ``transform``, without the components that were not kept."""
        self._check_fitted()
        scores = ops.atleast_1d(x)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(f"PCA: scores must have {self.n_components_} columns, got shape {list(scores.shape)}")
        dtype = ops.dtype(scores) if ops.is_float(scores) else ops.get_default_dtype()
        base = ops.cast(self.components_, dtype)
        if self.whiten:
            base = ops.multiply(base, ops.expand_dims(ops.cast(self._deviations(), dtype), axis=1))
        return ops.add(ops.matmul(scores, base), ops.cast(self.mean_, dtype))

    def _names_out(self, names: list[str]) -> list[str]:
        return [f"pca{i}" for i in range(self.n_components_)]

    def _deviations(self) -> Tensor:
        """Standard deviation along each component, at least the epsilon of the dtype."""
        deviations = ops.sqrt(self.explained_variance_)
        return ops.maximum(deviations, ops.finfo(ops.dtype(deviations)).eps)

    def get_covariance(self) -> Tensor:
        """Covariance matrix of the features, estimated from the components and the noise variance."""
        self._check_fitted()
        excess = ops.maximum(ops.subtract(self.explained_variance_, self.noise_variance_), 0.0)
        spread = ops.multiply(ops.matrix_transpose(self.components_), excess)
        with activate(backend_of(spread) or current_backend()):
            identity = ops.eye(self.n_features_in_, dtype=ops.dtype(spread), device=ops.get_device(spread))
        noise = ops.multiply(identity, self.noise_variance_)
        return ops.add(ops.matmul(spread, self.components_), noise)


class Whitening(Transformer):
    """Uncorrelated features with variance 1.

    Args:
        method: ``"zca"`` stays as close as possible to the original features, ``"pca"`` returns whitened principal
            components.
        epsilon: added to the variances, so that noise is not amplified.

    >>> rows = [[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [2.0, 4.0]]
    >>> [[round(float(v), 4) for v in row] for row in Whitening().fit_transform(rows)]
    [[-0.866, -0.866], [0.866, -0.866], [-0.866, 0.866], [0.866, 0.866]]
    """

    mean_: Tensor
    matrix_: Tensor
    inverse_: Tensor

    def __init__(self, method: str = "zca", epsilon: float = 0.0) -> None:
        self.method = method
        self.epsilon = epsilon

    def fit(self, x: TensorLike, y: object = None) -> Self:
        if self.method not in ("zca", "pca"):
            raise ValueError(f"Whitening: method must be 'zca' or 'pca', got {self.method!r}")
        self._reset()
        model = PCA().fit(x)
        rows = self._rows(x, fitting=True)
        base = ops.matrix_transpose(model.components_)
        least = ops.finfo(ops.dtype(rows)).eps
        deviations = ops.maximum(ops.sqrt(ops.add(model.explained_variance_, self.epsilon)), least)
        forth, back = ops.divide(base, deviations), ops.matrix_transpose(ops.multiply(base, deviations))
        if self.method == "zca":
            forth, back = ops.matmul(forth, model.components_), ops.matmul(base, back)
        self.mean_, self.matrix_, self.inverse_ = model.mean_, forth, back
        self.n_features_in_ = model.n_features_in_
        return self

    def transform(self, x: TensorLike) -> Tensor:
        given = self._rows(x)
        rows = in_single(given)
        mean, matrix = (ops.cast(value, ops.dtype(rows)) for value in (self.mean_, self.matrix_))
        return ops.cast(ops.matmul(ops.subtract(rows, mean), matrix), ops.dtype(given))

    def inverse_transform(self, x: TensorLike) -> Tensor:
        """Rows of which ``x`` is the transform."""
        self._check_fitted()
        return ops.add(ops.matmul(x, self.inverse_), self.mean_)

    def _names_out(self, names: list[str]) -> list[str]:
        return names if self.method == "zca" else [f"whitening{i}" for i in range(len(names))]


def pca(n_components: int | float | None = None, whiten: bool = False, svd_solver: str = "auto", **more: Any) -> PCA:
    """Unfitted ``PCA``; further options are those of the class. Rows are an argument of its methods.

    >>> pca(1)
    PCA(n_components=1)
    """
    check_no_rows("pca", "n_components must be a number or None", n_components)
    return PCA(n_components, whiten, svd_solver, **more)


def _check_finite(mean: Tensor) -> None:
    """Raise an error if the mean of the rows is not finite, since the components would not be either."""
    is_wrong = ops.logical_not(ops.isfinite(mean))
    check_numbers(is_wrong, "x must be finite", "NaN or infinities")


def _scatter(rows: Tensor, mean: Tensor) -> Tensor | None:
    """Scatter matrix of the centered rows, or ``None`` if subtracting the mean afterwards loses precision."""
    raw = ops.matmul(ops.matrix_transpose(rows), rows)
    offset = ops.multiply(ops.outer(mean, mean), rows.shape[0])
    scatter = ops.subtract(raw, offset)
    is_exact = ops.max(ops.diagonal(offset)) <= 10 * ops.max(ops.diagonal(scatter))
    return scatter if bool(is_exact) else None  # emberlint: ignore[EMB201] it decides on the method


def _svd_from_scatter(scatter: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values and right singular vectors of centered rows, from their scatter matrix."""
    values, vectors = ops.eigh(scatter)
    return ops.sqrt(ops.maximum(ops.flip(values, axis=0), 0.0)), ops.flip(ops.matrix_transpose(vectors), axis=0)


def _exact_svd(centered: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values and right singular vectors, to the full precision of the dtype."""
    samples, features = centered.shape
    dtype = ops.dtype(centered)
    if dtype == "float32" and samples >= features and wide_dtype(centered) == "float64":
        # float64 represents products of float32 exactly, and eigenvalues are faster than singular values.
        wide = ops.cast(centered, "float64")  # emberlint: ignore[EMB313] the device has it
        values, directions = _svd_from_scatter(ops.matmul(ops.matrix_transpose(wide), wide))
        return ops.cast(values, dtype), ops.cast(directions, dtype)
    _, values, directions = ops.svd(centered, full_matrices=False)
    return values, directions


def _orthonormal(rows: Tensor) -> Tensor:
    """Orthonormal rows that span the same space."""
    if ops.dtype(rows) == "float32" and wide_dtype(rows) == "float64":
        # float64 represents products of float32 exactly, and a Cholesky factor is faster than QR.
        wide = ops.cast(rows, "float64")  # emberlint: ignore[EMB313] only where the device has it
        try:
            root = ops.cholesky(ops.matmul(wide, ops.matrix_transpose(wide)))
        except LinAlgError:
            # The rows are linearly dependent.
            return ops.matrix_transpose(ops.qr(ops.matrix_transpose(rows)).Q)
        return ops.matmul(ops.cast(ops.inv(root), "float32"), rows)
    return ops.matrix_transpose(ops.qr(ops.matrix_transpose(rows)).Q)


def _signs(components: Tensor) -> Tensor:
    """Sign for each row that makes its entry of largest magnitude positive."""
    at = ops.argmax(ops.abs(components), axis=1, keepdims=True)
    lead = ops.take_along_axis(components, at, axis=1)
    return ops.where(ops.less(lead, 0), -1.0, 1.0)


def _batches(count: int, size: int, least: int) -> list[tuple[int, int]]:
    """Bounds of batches of ``size`` rows; a remainder of fewer than ``least`` rows is added to the last batch."""
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] < least:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=True))
