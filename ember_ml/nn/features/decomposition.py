"""Principal components, and features made uncorrelated with them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Self

from ember_ml import ops
from ember_ml.errors import LinAlgError
from ember_ml.extend import activate, backend_of, current_backend
from ember_ml.nn.features.transformer import Transformer, check_numbers, in_single, wide_dtype
from ember_ml.types import DTypeLike, Tensor, TensorLike

_SOLVERS = ("auto", "full", "covariance_eigh", "randomized", "incremental")


class PCA(Transformer):
    """Rows seen along the directions in which they vary most.

    The sign of a component is such that its largest entry is positive. ``partial_fit`` takes the rows in portions,
    as ``svd_solver="incremental"`` does by itself.

    Args:
        n_components: how many components to keep: a count, a share of the variance below 1, or all of them.
        whiten: components of variance 1.
        svd_solver: ``"full"`` (singular values of the centred rows), ``"covariance_eigh"`` (eigenvalues of the
            covariance matrix, quick where there are many more rows than features), ``"randomized"`` (quick where few
            components are asked of many features), ``"incremental"`` (rows in portions), or ``"auto"``, which is
            one of the first three by the shape of the data.
        iterated_power: the power iterations of the randomized solver; by default 7 for few components, else 4.
        n_oversamples: how many more random directions than components the randomized solver looks along.
        batch_size: the rows in a portion of the incremental solver; by default five times the number of features.
        random_state: the seed of the randomized solver; by default the current random stream.

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
        self._forget()
        rows = self._rows(x, fitting=True)
        solver = self._solver(*rows.shape)
        if solver == "incremental":
            size = self.batch_size or 5 * rows.shape[1]
            for start, stop in _portions(rows.shape[0], size, self._least(rows.shape[1])):
                self.partial_fit(rows[start:stop])
            return self
        self._fitted(rows, solver)
        return self

    def fit_transform(self, x: TensorLike, y: object = None) -> Tensor:
        rows = self._rows(x, fitting=True)
        solver = self._solver(*rows.shape)
        if solver == "incremental":
            return self.fit(rows).transform(rows)
        self._forget()
        moved, mean, scores = self._fitted(rows, solver)
        if scores is None:
            base = self._base(ops.dtype(moved))
            answer = ops.subtract(ops.matmul(moved, base), ops.matmul(mean, base))
        else:
            answer = ops.divide(scores, self._deviations()) if self.whiten else scores
        return answer if ops.dtype(rows) == ops.dtype(answer) else ops.cast(answer, ops.dtype(rows))

    def _fitted(self, rows: Tensor, solver: str) -> tuple[Tensor, Tensor, Tensor | None]:
        """The rows, perhaps moved, and the mean that they have there, once the model is fitted to them.

        The third is where the rows lie along the components, if that came up on the way.
        """
        self._check_count(min(rows.shape))
        rows = in_single(rows)
        # A product adds up faster than a sum; the error of its rounding is found in a second one.
        share = ops.full((rows.shape[0],), 1 / rows.shape[0], dtype=ops.dtype(rows), device=ops.get_device(rows))
        mean = ops.matmul(share, rows)
        _check_finite(mean)
        if solver == "covariance_eigh":
            scatter = _scatter(rows, mean)
            if scatter is not None:
                self._keep(rows.shape, mean, *_by_eigenvalues(scatter))
                return rows, mean, None
        centred = ops.subtract(rows, mean)
        error = ops.matmul(share, centred)
        squares = scores = None
        if solver == "covariance_eigh":
            values, directions = _by_eigenvalues(ops.matmul(ops.matrix_transpose(centred), centred))
        elif solver == "full":
            values, directions = _exactly(centred)
        else:
            values, directions, scores = self._by_random_directions(centred)
            total = ops.sum(ops.matmul(centred[:, None, :], centred[:, :, None]), dtype=wide_dtype(rows))
            squares = float(total)  # emberlint: ignore[EMB201] the model keeps it as a number
        self._keep(rows.shape, ops.add(mean, error), values, directions, squares)
        return centred, error, scores

    def _solver(self, samples: int, features: int) -> str:
        if self.svd_solver not in _SOLVERS:
            raise ValueError(
                f"PCA: svd_solver must be one of {', '.join(map(repr, _SOLVERS))}, got {self.svd_solver!r}"
            )
        if self.svd_solver != "auto":
            return self.svd_solver
        if features <= 1000 and samples >= 10 * features:
            return "covariance_eigh"
        wanted = self._wanted()
        few = isinstance(wanted, int) and 1 <= wanted < 0.8 * min(samples, features)
        return "randomized" if few and max(samples, features) > 500 else "full"

    def _wanted(self) -> int | float | None:
        """How many components to keep, as a number of Python's."""
        wanted = self.n_components
        if isinstance(wanted, bool) or not isinstance(wanted, (Integral, Real, type(None))):
            raise TypeError(f"PCA: n_components must be an integer, a share of the variance or None, got {wanted!r}")
        return wanted if wanted is None else int(wanted) if isinstance(wanted, Integral) else float(wanted)

    def _check_count(self, most: int) -> None:
        wanted = self._wanted()
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

    def _least(self, features: int) -> int:
        """The rows that a portion must have."""
        wanted = self._wanted()
        return wanted if isinstance(wanted, int) else features

    def _by_random_directions(self, centred: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The largest singular values and right vectors, and where the rows lie along these.

        They are sought in a random subspace (Halko, Martinsson, Tropp): one that the rows themselves are turned into,
        again and again, so that what varies most prevails.
        """
        samples, features = centred.shape
        count: Any = self._wanted()
        wanted = min(samples, features) if count is None else count
        turns = self.iterated_power
        if turns is None:
            turns = 7 if wanted < 0.1 * min(samples, features) else 4
        size = min(wanted + self.n_oversamples, samples, features)
        key = None if self.random_state is None else ops.random.key(self.random_state)
        device = ops.get_device(centred)
        probe = ops.random.uniform((size, samples), -1.0, 1.0, dtype=ops.dtype(centred), device=device, key=key)
        directions = _upright(ops.matmul(probe, centred))
        for _ in range(turns):
            probe = _upright(ops.matrix_transpose(ops.matmul(centred, ops.matrix_transpose(directions))))
            directions = _upright(ops.matmul(probe, centred))
        scores = ops.matmul(centred, ops.matrix_transpose(directions))
        values, turn = _exactly(scores)
        right = ops.matmul(turn[:wanted], directions)
        signs = _signs(right)
        scores = ops.matmul(scores, ops.matrix_transpose(ops.multiply(turn[:wanted], signs)))
        return values[:wanted], ops.multiply(right, signs), scores

    def partial_fit(self, x: TensorLike, y: object = None) -> Self:
        """This model, fitted to the rows of ``x`` and those that came before."""
        first = not hasattr(self, "components_")
        rows = in_single(self._rows(x, fitting=first))
        samples, features = rows.shape
        self._check_count(min(samples, features) if first else features)
        if isinstance(self._wanted(), float):
            raise ValueError(f"PCA: n_components must be an integer for partial_fit, got {self.n_components}")
        wide = wide_dtype(rows)
        mean = ops.divide(ops.sum(rows, axis=0, dtype=wide), samples)
        _check_finite(mean)
        centred = ops.subtract(rows, ops.cast(mean, ops.dtype(rows)))
        squares = ops.sum(ops.square(centred), axis=0, dtype=wide)
        before = 0 if first else self.n_samples_
        count = before + samples
        stacked = [centred]
        if not first:
            shift = ops.subtract(mean, self.mean_)
            weight = before * samples / count
            squares = ops.add(
                ops.multiply(self.var_, before), ops.add(squares, ops.multiply(ops.square(shift), weight))
            )
            old = ops.multiply(ops.expand_dims(self.singular_values_, axis=1), self.components_)
            step = ops.expand_dims(ops.cast(ops.multiply(shift, math.sqrt(weight)), ops.dtype(rows)), axis=0)
            stacked = [old, centred, step]
            mean = ops.add(self.mean_, ops.multiply(shift, samples / count))
        _, values, directions = ops.svd(ops.concatenate(stacked, axis=0), full_matrices=False)
        total = float(ops.sum(squares))  # emberlint: ignore[EMB201] the model keeps it as a number
        self._keep((count, features), mean, values, directions, total)
        self.var_ = ops.divide(squares, count)
        return self

    def _keep(
        self, shape: tuple[int, ...], mean: Tensor, values: Tensor, directions: Tensor, squares: float | None = None
    ) -> None:
        """Store the model; ``squares`` is the sum of all squared values, where some of them are not there."""
        samples, features = shape
        variance = ops.divide(ops.square(values), max(samples - 1, 1))
        whole = ops.sum(variance) if squares is None else squares / max(samples - 1, 1)
        total = float(whole)
        ratio = ops.divide(variance, total) if total > 0 else ops.zeros_like(variance)
        wanted = self._wanted()
        count = int(values.shape[0]) if wanted is None else wanted
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
        answer = ops.matmul(ops.subtract(rows, ops.cast(self.mean_, dtype)), self._base(dtype))
        return ops.cast(answer, ops.dtype(given))

    def _base(self, dtype: DTypeLike) -> Tensor:
        """The matrix that takes centred rows to their components."""
        base = ops.matrix_transpose(ops.cast(self.components_, dtype))
        return ops.divide(base, ops.cast(self._deviations(), dtype)) if self.whiten else base

    def inverse_transform(self, x: TensorLike) -> Tensor:
        """The rows that lie at ``x`` along the components: what ``transform`` was given, less what was left out."""
        self._check_fitted()
        scores = ops.atleast_1d(x)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(f"PCA: scores must have {self.n_components_} columns, got shape {list(scores.shape)}")
        dtype = ops.dtype(scores) if ops.is_float(scores) else ops.get_default_dtype()
        base = ops.cast(self.components_, dtype)
        if self.whiten:
            base = ops.multiply(base, ops.expand_dims(ops.cast(self._deviations(), dtype), axis=1))
        return ops.add(ops.matmul(scores, base), ops.cast(self.mean_, dtype))

    def _named(self, names: list[str]) -> list[str]:
        return [f"pca{i}" for i in range(self.n_components_)]

    def _deviations(self) -> Tensor:
        """The standard deviation along each component; a small number where there is none."""
        deviations = ops.sqrt(self.explained_variance_)
        return ops.maximum(deviations, ops.finfo(ops.dtype(deviations)).eps)

    def get_covariance(self) -> Tensor:
        """The covariance matrix of the features, as the components and the noise beside them give it."""
        self._check_fitted()
        excess = ops.maximum(ops.subtract(self.explained_variance_, self.noise_variance_), 0.0)
        spread = ops.multiply(ops.matrix_transpose(self.components_), excess)
        with activate(backend_of(spread) or current_backend()):
            identity = ops.eye(self.n_features_in_, dtype=ops.dtype(spread), device=ops.get_device(spread))
        noise = ops.multiply(identity, self.noise_variance_)
        return ops.add(ops.matmul(spread, self.components_), noise)


class Whitening(Transformer):
    """Features without correlation, each of variance 1.

    Args:
        method: ``"zca"`` stays as close to the features as can be, ``"pca"`` answers along the principal components.
        epsilon: what is added to the variances, so that noise is not blown up.

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
        self._forget()
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
        """The rows that ``transform`` makes ``x`` of."""
        self._check_fitted()
        return ops.add(ops.matmul(x, self.inverse_), self.mean_)

    def _named(self, names: list[str]) -> list[str]:
        return names if self.method == "zca" else [f"whitening{i}" for i in range(len(names))]


def pca(n_components: int | float | None = None, whiten: bool = False, svd_solver: str = "auto", **more: Any) -> PCA:
    """A ``PCA``, to be fitted; further settings are those of the class.

    >>> pca(1)
    PCA(n_components=1)
    """
    return PCA(n_components, whiten, svd_solver, **more)


def _check_finite(mean: Tensor) -> None:
    """Raise an error if the mean of the rows tells of numbers that are none: no component would be any either."""
    is_wrong = ops.logical_not(ops.isfinite(mean))
    check_numbers(is_wrong, "x must be finite", "NaN or infinities")


def _scatter(rows: Tensor, mean: Tensor) -> Tensor | None:
    """The products of features added up over the rows, less their mean; nothing if that would cost digits."""
    raw = ops.matmul(ops.matrix_transpose(rows), rows)
    offset = ops.multiply(ops.outer(mean, mean), rows.shape[0])
    scatter = ops.subtract(raw, offset)
    is_exact = ops.max(ops.diagonal(offset)) <= 10 * ops.max(ops.diagonal(scatter))
    return scatter if bool(is_exact) else None  # emberlint: ignore[EMB201] it decides on the method


def _by_eigenvalues(scatter: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values and right vectors of centred rows, from the products of their features."""
    values, vectors = ops.eigh(scatter)
    return ops.sqrt(ops.maximum(ops.flip(values, axis=0), 0.0)), ops.flip(ops.matrix_transpose(vectors), axis=0)


def _exactly(centred: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values and right vectors to all the digits of the dtype."""
    samples, features = centred.shape
    dtype = ops.dtype(centred)
    if dtype == "float32" and samples >= features and wide_dtype(centred) == "float64":
        # Squares of float32 keep all their digits in float64, and eigenvalues come sooner than singular values.
        wide = ops.cast(centred, "float64")  # emberlint: ignore[EMB313] the device has it
        values, directions = _by_eigenvalues(ops.matmul(ops.matrix_transpose(wide), wide))
        return ops.cast(values, dtype), ops.cast(directions, dtype)
    _, values, directions = ops.svd(centred, full_matrices=False)
    return values, directions


def _upright(rows: Tensor) -> Tensor:
    """Rows of length 1 that span what the given ones do, at right angles to each other."""
    if ops.dtype(rows) == "float32" and wide_dtype(rows) == "float64":
        # Products of float32 keep all their digits in float64, and their root comes sooner than the factors of QR.
        wide = ops.cast(rows, "float64")  # emberlint: ignore[EMB313] only where the device has it
        try:
            root = ops.cholesky(ops.matmul(wide, ops.matrix_transpose(wide)))
        except LinAlgError:
            # The rows depend on each other.
            return ops.matrix_transpose(ops.qr(ops.matrix_transpose(rows)).Q)
        return ops.matmul(ops.cast(ops.inv(root), "float32"), rows)
    return ops.matrix_transpose(ops.qr(ops.matrix_transpose(rows)).Q)


def _signs(components: Tensor) -> Tensor:
    """What each row is to be multiplied with so that its largest entry is positive."""
    at = ops.argmax(ops.abs(components), axis=1, keepdims=True)
    lead = ops.take_along_axis(components, at, axis=1)
    return ops.where(ops.less(lead, 0), -1.0, 1.0)


def _portions(count: int, size: int, least: int) -> list[tuple[int, int]]:
    """Where portions of rows start and stop; the last is made longer rather than left with too few rows."""
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] < least:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=True))
