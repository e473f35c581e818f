"""Statistics: reductions, cumulative reductions, order statistics and moments."""

from __future__ import annotations

import builtins as _builtins
import math as _math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import backend as _backends
from ember_ml.dispatch import op
from ember_ml.dtypes import accumulated, floating, indexed, measured, promoted, real_of
from ember_ml.ops import _forms, comparison, creation, device, dtypes, indexing, manipulation, math
from ember_ml.ops._halves import dtype_of as _dtype
from ember_ml.ops._halves import narrow_like as _like
from ember_ml.ops._halves import widen as _wide
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.types import Axis, DTypeLike, Indices, Mask, Number, Tensor, TensorLike


@op(accumulated, engine="x, *, axis, dtype, keepdims", form=_forms.sum)
def sum(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Sum of the elements along ``axis``; zero for no elements.

    Args:
        axis: one axis, several, or ``None`` for all.
        dtype: the dtype of the result; by default that of ``x``, but int64 or uint64 for bool and integers.
        keepdims: keep reduced axes with length 1.
        initial: the value to start from.
        where: which elements are counted, a mask that broadcasts with ``x``; by default all.

    >>> sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]
    """
    ...


@op(accumulated, engine="x, *, axis, dtype, keepdims", form=_forms.prod)
def prod(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Product of the elements along ``axis``; one for no elements.

    Args:
        axis, dtype, keepdims: as in ``sum``.
        initial: the value to start from.
        where: which elements are counted, a mask that broadcasts with ``x``; by default all.

    >>> prod([[1, 2], [3, 4]], axis=0).tolist()
    [3, 8]
    """
    ...


@op(floating, engine="x, *, axis, keepdims", form=_forms.mean)
def mean(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    where: Mask | None = None,
) -> Tensor:
    """Arithmetic mean of the elements along ``axis``; NaN for no elements.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        dtype: cast ``x`` to this dtype first.
        where: as in ``sum``.

    >>> mean([[1, 2], [3, 4]], axis=0).tolist()
    [2.0, 3.0]
    """
    ...


@op(floating)
def average(
    x: TensorLike,
    /,
    axis: Axis = None,
    weights: TensorLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Weighted mean of the elements along ``axis``.

    Weights that sum to zero give NaN or an infinity.

    Args:
        axis: one axis, several, or ``None`` for all.
        weights: weights of the shape of ``x``, or of its shape along ``axis``; by default all are equal.
        returned: return a pair of the average and the sum of the weights.
        keepdims: keep reduced axes with length 1.

    >>> average([1.0, 2.0, 6.0], weights=[1.0, 1.0, 2.0]).tolist()
    3.75
    """
    if weights is None:
        result = mean(x, axis=axis, keepdims=keepdims)
        total = creation.full_like(result, _count(x, axis))
        return (result, total) if returned else result
    wide, share = _wide(x), _spread(_wide(weights), x, axis)
    total = sum(share, axis=axis, keepdims=keepdims)
    result = _like(x, math.divide(sum(math.multiply(wide, share), axis=axis, keepdims=keepdims), total))
    if not returned:
        return result
    return result, _like(x, manipulation.broadcast_to(total, manipulation.shape(result)))


def _spread(weights: Any, x: Any, axis: Axis) -> Any:
    """Weights broadcast to the shape of ``x``, from weights that may have only the reduced axes."""
    if tuple(weights.shape) == tuple(x.shape):
        return weights
    if axis is None:
        raise ValueError("axis must be given where weights have another shape than x, got None")
    axes = _axes(axis, x.ndim)
    if tuple(weights.shape) != tuple(x.shape[i] for i in axes):
        raise ValueError(
            f"weights must have one value per element along axis {axis}, got shapes {list(weights.shape)} and "
            f"{list(x.shape)}"
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    shape = [n if i in axes else 1 for i, n in enumerate(x.shape)]
    spread = manipulation.reshape(manipulation.permute_dims(weights, order), shape)
    return manipulation.broadcast_to(spread, tuple(x.shape))


@op(measured, engine="x, *, axis, correction, keepdims", form=_forms.var)
def var(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    where: Mask | None = None,
    mean: TensorLike | None = None,
) -> Tensor:
    """Variance of the elements along ``axis``: the mean of ``|x - mean(x)| ** 2``.

    Args:
        axis: one axis, several, or ``None`` for all.
        correction: subtracted from the number of elements before the division by it; 1 for the unbiased estimate from a
            sample.
        keepdims: keep reduced axes with length 1.
        dtype: cast ``x`` to this dtype first.
        ddof: NumPy's name of ``correction``.
        where: as in ``sum``.
        mean: the mean along ``axis``, with ``keepdims=True``, if it is known already.

    >>> var([1.0, 3.0]).tolist(), var([1.0, 3.0], correction=1).tolist()
    (1.0, 2.0)
    """
    ...


@op(measured, engine="x, *, axis, correction, keepdims", form=_forms.std)
def std(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    where: Mask | None = None,
    mean: TensorLike | None = None,
) -> Tensor:
    """Standard deviation of the elements along ``axis``: the square root of ``var``.

    Args:
        axis: one axis, several, or ``None`` for all.
        correction: as in ``var``.
        keepdims: keep reduced axes with length 1.
        dtype: cast ``x`` to this dtype first.
        ddof: NumPy's name of ``correction``.
        where: as in ``sum``.
        mean: the mean along ``axis``, with ``keepdims=True``, if it is known already.

    >>> std([1.0, 3.0]).tolist()
    1.0
    """
    ...


@op(floating, kinds="real", engine="x, *, axis, keepdims", form=_forms.median)
def median(x: TensorLike, /, axis: Axis = None, *, keepdims: bool = False, overwrite_input: bool = False) -> Tensor:
    """Median of the elements along ``axis``: the mean of the middle two if their number is even.

    NaN if any element is NaN, or if there are none.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        overwrite_input: accepted for compatibility; ``x`` is never changed.

    >>> median([[1.0, 2.0, 9.0, 4.0]], axis=1).tolist()
    [3.0]
    """
    return _quantile(x, 0.5, axis, keepdims, "linear")


@op(floating, kinds="real", engine="x, q, *, axis, keepdims, method", form=_forms.percentile)
def percentile(
    x: TensorLike,
    q: Tensor | float | Sequence[Any],
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: TensorLike | None = None,
    overwrite_input: bool = False,
) -> Tensor:
    """Value below which ``q`` percent of the elements along ``axis`` lie.

    Args:
        q: percentages from 0 to 100.
        axis, keepdims, method: as in ``quantile``.
        weights, overwrite_input: as in ``quantile``.

    >>> percentile([1.0, 2.0, 3.0, 4.0, 5.0], [25, 50]).tolist()
    [2.0, 3.0]
    """
    return _quantile(x, q, axis, keepdims, method, scale=100)


@op(floating, kinds="real", engine="x, q, *, axis, keepdims, method", form=_forms.quantile)
def quantile(
    x: TensorLike,
    q: Tensor | float | Sequence[Any],
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: TensorLike | None = None,
    overwrite_input: bool = False,
) -> Tensor:
    """Value below which the fraction ``q`` of the elements along ``axis`` lies.

    NaN if any element is NaN, or if there are none. The axes of ``q`` come first in the result.

    Args:
        q: fractions between 0 and 1. Other values raise ``ValueError``; in a tensor that would have to be evaluated
            for that, they give NaN.
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        method: how to choose between two elements: ``"linear"`` (interpolate), ``"lower"``, ``"higher"``,
            ``"nearest"``, ``"midpoint"``, or one of NumPy's others, such as ``"inverted_cdf"`` and
            ``"median_unbiased"``.
        weights: weights of the shape of ``x``, or one for each element along the one axis; only with
            ``method="inverted_cdf"``.
        overwrite_input: accepted for compatibility; ``x`` is never changed.

    >>> quantile([1.0, 2.0, 3.0, 5.0], 0.5).tolist()
    2.5
    >>> quantile([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [0, 1], axis=1).tolist()
    [[1.0, 4.0], [3.0, 6.0]]
    """
    return _quantile(x, q, axis, keepdims, method)


def _quantile(
    x: Any, q: Any, axis: Axis, keepdims: bool, method: str, *, scale: float = 1.0, skip_nan: bool = False
) -> Tensor:
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    flat, shape = _joined(x, axis, keepdims)
    count = flat.shape[-1]
    traced = _is_traced(q)
    levels, outer = (manipulation.reshape(q, (-1,)), tuple(q.shape)) if traced else _levels(q, scale)
    if count == 0:
        return creation.full((*outer, *shape), _math.nan, dtype=_dtype(x), device=device.get_device(x))
    ordered = indexing.sort(flat, axis=-1, stable=False)
    if skip_nan or traced:
        result = _between_at(ordered, levels, scale, method, skip_nan)
    else:
        places = [_place(level / scale, count - 1, method, _NUMBERS) for level in levels]
        result = _between(ordered, [_builtins.min(_builtins.max(place, 0.0), count - 1.0) for place in places])
    if not skip_nan:
        result = comparison.where(comparison.isnan(ordered[..., -1:]), _math.nan, result)
    return manipulation.reshape(manipulation.moveaxis(_like(x, result), -1, 0), (*outer, *shape))


class _Rounding(NamedTuple):
    """What places of quantiles are computed with: the functions of Python's numbers, or those of tensors."""

    floor: Callable[[Any], Any]
    ceil: Callable[[Any], Any]
    round: Callable[[Any], Any]
    where: Callable[[Any, Any, Any], Any]


_NUMBERS = _Rounding(_math.floor, _math.ceil, round, lambda condition, x, y: x if condition else y)

# How much the continuous methods of Hyndman and Fan (1996) shift places: alpha and beta.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_METHODS = (
    "linear",
    "lower",
    "higher",
    "nearest",
    "midpoint",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    *_CONTINUOUS,
)


def _place(level: Any, last: Any, method: str, using: _Rounding) -> Any:
    """Place of a quantile among sorted elements, the last of which is at ``last``; between two, they are blended."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return (last + 1) * level + (alpha + level * (1 - alpha - beta)) - 1
    if method in ("inverted_cdf", "averaged_inverted_cdf"):
        place = (last + 1) * level - 1
        above = using.ceil(place)
        return above if method == "inverted_cdf" else using.where(above == place, place + 0.5, above)
    if method == "closest_observation":
        place = (last + 1) * level - 1.5
        below = using.floor(place)
        return using.where((below == place) & (below % 2 == 1), below, below + 1)
    place = level * last
    if method == "midpoint":
        return (using.floor(place) + using.ceil(place)) * 0.5
    return {"lower": using.floor, "higher": using.ceil, "nearest": using.round}.get(method, _unchanged)(place)


def _unchanged(place: Any) -> Any:
    return place


def _is_traced(q: Any) -> bool:
    """Whether ``q`` is a tensor whose values may not be available yet."""
    active = _backends.current()
    return not active.is_host and isinstance(q, active.tensors)


def _levels(q: Any, scale: float) -> tuple[list[float], tuple[int, ...]]:
    """The numbers in ``q`` as a flat list, and its shape."""
    if hasattr(q, "tolist"):
        return _levels(q.tolist(), scale)[0], tuple(q.shape)
    if not isinstance(q, list | tuple | range):
        if not 0 <= q <= scale:
            raise ValueError(f"q must be from 0 to {scale:g}, got {q}")
        return [float(q)], ()
    rows = [_levels(row, scale) for row in q]
    shapes = {shape for _, shape in rows}
    if len(shapes) > 1:
        raise ValueError("q must be a number or a sequence of numbers, got rows of different lengths")
    return [level for levels, _ in rows for level in levels], (len(rows), *(shapes.pop() if shapes else ()))


def _between(ordered: Any, places: list[float]) -> Any:
    """Values at these places of the sorted elements."""
    low, high = [_math.floor(place) for place in places], [_math.ceil(place) for place in places]
    below = _picked(ordered, low)
    if low == high:
        return below
    weights = [float(place - a) for place, a in zip(places, low, strict=True)]
    if len(weights) == 1:
        return _blend(below, _picked(ordered, high), weights[0])
    weight = creation.asarray(weights, dtype=_dtype(below), device=device.get_device(ordered))
    return _blend(below, _picked(ordered, high), weight)


def _picked(ordered: Any, places: list[int]) -> Any:
    """Elements at these positions of the last axis; for one position, a slice is cheaper."""
    if len(places) == 1:
        return _wide(ordered[..., places[0] : places[0] + 1])
    return _wide(indexing.take(ordered, places, axis=-1))


def _between_at(ordered: Any, levels: Any, scale: float, method: str, skip_nan: bool) -> Any:
    """Like ``_between``, for positions that depend on the values of tensors."""
    where = device.get_device(ordered)
    exact = "float32" if where.startswith(("mps", "gpu")) else "float64"
    levels = math.divide(creation.asarray(levels, dtype=exact, device=where), scale)
    last: Any = ordered.shape[-1] - 1
    pick: Any = indexing.take
    if skip_nan:
        valid = comparison.logical_not(comparison.isnan(ordered))
        last = dtypes.cast(math.subtract(sum(valid, axis=-1, keepdims=True), 1), exact)
        pick = indexing.take_along_axis
    inside = comparison.logical_and(comparison.greater_equal(levels, 0), comparison.less_equal(levels, 1))
    using = _Rounding(math.floor, math.ceil, math.round, comparison.where)
    place = _place(comparison.where(inside, levels, 0.0), last, method, using)
    place = math.maximum(math.minimum(place, last), 0.0)
    low, high = math.floor(place), math.ceil(place)
    below = _wide(pick(ordered, dtypes.cast(low, "int64"), axis=-1))
    above = _wide(pick(ordered, dtypes.cast(high, "int64"), axis=-1))
    result = _blend(below, above, dtypes.cast(math.subtract(place, low), _dtype(below)))
    return comparison.where(inside, result, _math.nan)


def _blend(below: Any, above: Any, weight: Any) -> Any:
    """Weighted mean of both ends. Equal ends are returned unchanged, which is exact and correct for infinities."""
    # A Python number stays one; as a tensor it would be float32 even for float64 elements.
    rest = 1.0 - weight if isinstance(weight, float) else math.subtract(1.0, weight)
    mixed = math.add(math.multiply(below, rest), math.multiply(above, weight))
    return comparison.where(comparison.equal(below, above), below, mixed)


@op(promoted, kinds="real", engine="x, *, axis, keepdims", form=_forms.max)
def max(
    x: TensorLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Maximum of the elements along ``axis``; NaN if any is NaN.

    Raises ``ValueError`` for no elements.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        initial: a value that takes part too, and is the result for no elements.
        where: as in ``sum``; requires ``initial``.

    >>> max([[1, 5], [3, 4]], axis=0).tolist()
    [3, 5]
    """
    ...


amax = max


@op(promoted, kinds="real", engine="x, *, axis, keepdims", form=_forms.min)
def min(
    x: TensorLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Minimum of the elements along ``axis``; NaN if any is NaN.

    Raises ``ValueError`` for no elements.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        initial: a value that takes part too, and is the result for no elements.
        where: as in ``sum``; requires ``initial``.

    >>> min([[1, 5], [3, 4]], axis=0).tolist()
    [1, 4]
    """
    ...


amin = min


@op(promoted, kinds="real numeric")
def ptp(x: TensorLike, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Range of the elements along ``axis``: the maximum minus the minimum ("peak to peak").

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.

    >>> ptp([[1, 5], [3, 4]], axis=0).tolist()
    [2, 1]
    """
    return math.subtract(max(x, axis=axis, keepdims=keepdims), min(x, axis=axis, keepdims=keepdims))


@op(accumulated, engine="x, *, axis, dtype, include_initial")
def cumsum(
    x: TensorLike, /, axis: int | None = None, dtype: DTypeLike | None = None, *, include_initial: bool = False
) -> Tensor:
    """Cumulative sum along ``axis``.

    Args:
        axis: an axis, or ``None`` for the flattened tensor.
        dtype: as in ``sum``.
        include_initial: whether to start with a zero, which makes the axis longer by one.

    >>> cumsum([1, 2, 3]).tolist(), cumsum([1, 2, 3], include_initial=True).tolist()
    ([1, 3, 6], [0, 1, 3, 6])
    """
    ...


cumulative_sum = cumsum


@op(accumulated, engine="x, *, axis, dtype, include_initial")
def cumprod(
    x: TensorLike, /, axis: int | None = None, dtype: DTypeLike | None = None, *, include_initial: bool = False
) -> Tensor:
    """Cumulative product along ``axis``.

    Args:
        axis: an axis, or ``None`` for the flattened tensor.
        dtype: as in ``sum``.
        include_initial: whether to start with a one, which makes the axis longer by one.

    >>> cumprod([1, 2, 3]).tolist(), cumprod([1, 2, 3], include_initial=True).tolist()
    ([1, 2, 6], [1, 1, 2, 6])
    """
    ...


cumulative_prod = cumprod


@op(promoted, kinds="real", engine="x, *, axis")
def cummax(x: TensorLike, /, axis: int) -> Tensor:
    """Cumulative maximum along ``axis``, without indices; NaN from the first NaN on.

    >>> cummax([1, 3, 2, 5], axis=0).tolist()
    [1, 3, 3, 5]
    """
    ...


@op(promoted, kinds="real", engine="x, *, axis")
def cummin(x: TensorLike, /, axis: int) -> Tensor:
    """Cumulative minimum along ``axis``, without indices; NaN from the first NaN on.

    >>> cummin([4, 3, 5, 1], axis=0).tolist()
    [4, 3, 3, 1]
    """
    ...


@op(floating, kinds="real")
def moments(x: TensorLike, /, axes: Axis = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and variance of the elements along ``axes``.

    Args:
        axes: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.

    >>> mean, variance = moments([1.0, 3.0], 0)
    >>> mean.tolist(), variance.tolist()
    (2.0, 1.0)
    """
    return mean(x, axis=axes, keepdims=keepdims), var(x, axis=axes, keepdims=keepdims)


@op(floating)
def cov(
    x: TensorLike,
    /,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    *,
    correction: float | None = None,
    fweights: Indices | None = None,
    aweights: TensorLike | None = None,
    ddof: float | None = None,
) -> Tensor:
    """Covariance matrix of the variables in the rows of ``x`` and ``y``; zero-dimensional for one variable.

    Args:
        y: further variables.
        rowvar: if false, the variables are in the columns.
        bias: divide by the number of observations instead of that number minus 1.
        correction: subtracted from the number of observations; overrides ``bias``.
        fweights: number of times each observation occurred.
        aweights: relative weight of each observation.
        ddof: NumPy's name of ``correction``.

    >>> cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    variables = _variables(x, "x", rowvar)
    if y is not None:
        others = _variables(y, "y", rowvar)
        if variables.shape[1] != others.shape[1]:
            raise ValueError(
                f"x and y must have the same number of observations, got {variables.shape[1]} and {others.shape[1]}"
            )
        variables = manipulation.concatenate([variables, others], axis=0)
    if correction is None:
        correction = ddof
    lost: Any = correction if correction is not None else 0 if bias else 1
    count = variables.shape[1]
    weights = _observations(fweights, aweights, variables)
    if weights is None:
        centred = math.subtract(variables, mean(variables, axis=1, keepdims=True))
        scaled, freedom = centred, _builtins.max(count - lost, 0)
    else:
        total = sum(weights)
        middle = math.divide(sum(math.multiply(variables, weights), axis=1, keepdims=True), total)
        centred = math.subtract(variables, middle)
        scaled = math.multiply(centred, weights)
        if aweights is not None:
            lost = math.multiply(math.divide(sum(math.multiply(weights, aweights)), total), lost)
        freedom = math.maximum(math.subtract(total, lost), 0)
    products = centred @ manipulation.permute_dims(math.conj(scaled), (1, 0))
    result = _like(x, math.divide(products, freedom))
    return manipulation.reshape(result, ()) if variables.shape[0] == 1 else result


def _variables(x: Any, name: str, rowvar: bool) -> Any:
    """Matrix with one variable per row."""
    if x.ndim > 2:
        raise ValueError(f"{name} must have at most 2 axes, got {x.ndim}")
    if x.ndim < 2:
        x = manipulation.reshape(x, (1, -1))
    elif not rowvar:
        x = manipulation.permute_dims(x, (1, 0))
    return _wide(x)


def _observations(fweights: Any, aweights: Any, variables: Any) -> Any:
    """Weight of each observation, or ``None`` if all are equal."""
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            if tuple(given.shape) != (variables.shape[1],):
                raise ValueError(
                    f"{name} must have one value for each of {variables.shape[1]} observations, got shape "
                    f"{list(given.shape)}"
                )
            given = dtypes.cast(given, real_of(_dtype(variables)))
            weights = given if weights is None else math.multiply(weights, given)
    return weights


@op(floating)
def corrcoef(x: TensorLike, /, y: TensorLike | None = None, rowvar: bool = True) -> Tensor:
    """Matrix of correlation coefficients of the variables in the rows of ``x`` and ``y``.

    Args:
        y: further variables.
        rowvar: if false, the variables are in the columns.

    >>> corrcoef([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    joint = cov(_wide(x), None if y is None else _wide(y), rowvar=rowvar)
    if not manipulation.shape(joint):
        return _like(x, math.divide(joint, joint))
    spread = math.sqrt(math.real(creation.diag(joint)))
    ratio = math.divide(math.divide(joint, spread[:, None]), spread[None, :])
    if _dtype(ratio).kind == "real floating":
        ratio = math.clip(ratio, -1.0, 1.0)
    return _like(x, ratio)


@op(floating, kinds="real")
def gaussian(x: TensorLike, /, mu: TensorLike = 0.0, sigma: TensorLike = 1.0) -> Tensor:
    """Density at ``x`` of the normal distribution with mean ``mu`` and standard deviation ``sigma``.

    ``exp(-((x - mu) / sigma) ** 2 / 2) / (sigma * sqrt(2 * pi))``

    >>> f"{float(gaussian(0.0)):.4f}"
    '0.3989'
    """
    scaled = math.divide(math.subtract(x, mu), sigma)
    return math.divide(
        math.exp(math.multiply(math.square(scaled), -0.5)), math.multiply(sigma, _math.sqrt(2 * _math.pi))
    )


@op(floating, kinds="real")
def zscore(x: TensorLike, /, axis: Axis = 0, *, correction: float = 0.0) -> Tensor:
    """Standard scores along ``axis``: ``(x - mean(x)) / std(x)``; NaN where all elements are equal.

    Args:
        axis: one axis, several, or ``None`` for all.
        correction: as in ``var``.

    >>> zscore([1.0, 3.0]).tolist()
    [-1.0, 1.0]
    """
    if _count(x, axis) == 0:
        return creation.full_like(x, _math.nan)
    wide = _wide(x)
    constant = comparison.equal(max(wide, axis=axis, keepdims=True), min(wide, axis=axis, keepdims=True))
    spread = comparison.where(constant, _math.nan, std(wide, axis=axis, correction=correction, keepdims=True))
    return _like(x, math.divide(math.subtract(wide, mean(wide, axis=axis, keepdims=True)), spread))


@op(floating, kinds="real")
def skew(x: TensorLike, /, axis: Axis = 0, *, bias: bool = True, keepdims: bool = False) -> Tensor:
    """Skewness of the elements along ``axis``: the third central moment over the variance to the power 3/2.

    NaN where all elements are equal.

    Args:
        axis: one axis, several, or ``None`` for all.
        bias: if false, correct the bias of an estimate from a sample of three or more.
        keepdims: keep reduced axes with length 1.

    >>> skew([1.0, 2.0, 3.0]).tolist()
    0.0
    """
    count = _count(x, axis)
    second, third = _central(x, axis, 3)
    ratio = math.divide(third, math.multiply(second, math.sqrt(second)))
    if not bias and count > 2:
        ratio = math.multiply(ratio, _math.sqrt((count - 1) * count) / (count - 2))
    return _like(x, _reduced(ratio, axis, keepdims))


@op(floating, kinds="real")
def kurtosis(
    x: TensorLike, /, axis: Axis = 0, *, fisher: bool = True, bias: bool = True, keepdims: bool = False
) -> Tensor:
    """Kurtosis of the elements along ``axis``: the fourth central moment over the squared variance, minus 3.

    NaN where all elements are equal.

    Args:
        axis: one axis, several, or ``None`` for all.
        fisher: if false, do not subtract 3: the kurtosis of a normal distribution is then 3, not 0.
        bias: if false, correct the bias of an estimate from a sample of four or more.
        keepdims: keep reduced axes with length 1.

    >>> kurtosis([1.0, 3.0]).tolist()
    -2.0
    """
    n = _count(x, axis)
    second, fourth = _central(x, axis, 4)
    ratio = math.divide(fourth, math.square(second))
    if not bias and n > 3:
        excess = math.subtract(math.multiply(ratio, n**2 - 1.0), 3.0 * (n - 1) ** 2)
        ratio = math.add(math.divide(excess, (n - 2.0) * (n - 3.0)), 3.0)
    return _like(x, _reduced(math.subtract(ratio, 3.0) if fisher else ratio, axis, keepdims))


def _central(x: Any, axis: Axis, power: int) -> tuple[Any, Any]:
    """The second and a higher central moment, keeping axes; the second is NaN where it is only rounding error."""
    wide = _wide(x)
    middle = mean(wide, axis=axis, keepdims=True)
    centred = math.subtract(wide, middle)
    squared = math.square(centred)
    second = mean(squared, axis=axis, keepdims=True)
    higher = mean(math.multiply(squared, centred if power == 3 else squared), axis=axis, keepdims=True)
    noise = math.square(math.multiply(middle, dtypes.finfo(_dtype(wide)).eps))
    return comparison.where(comparison.less_equal(second, noise), _math.nan, second), higher


def _reduced(x: Any, axis: Axis, keepdims: bool) -> Any:
    """``x`` without its reduced axes, which have length 1."""
    return x if keepdims else manipulation.squeeze(x, axis=_axes(axis, x.ndim))


@op(accumulated, engine="x, *, axis, dtype, keepdims", form=_forms.nansum)
def nansum(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Sum of the elements along ``axis``, ignoring NaN; zero if there are none.

    Args:
        axis, dtype, keepdims: as in ``sum``.
        initial, where: as in ``sum``.

    >>> nansum([1.0, float("nan"), 2.0]).tolist()
    3.0
    """
    return sum(_filled(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


@op(accumulated, engine="x, *, axis, dtype, keepdims", form=_forms.nanprod)
def nanprod(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Product of the elements along ``axis``, ignoring NaN; one if there are none.

    Args:
        axis, dtype, keepdims: as in ``sum``.
        initial, where: as in ``sum``.

    >>> nanprod([3.0, float("nan"), 2.0]).tolist()
    6.0
    """
    return prod(_filled(x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


@op(floating, engine="x, *, axis, keepdims", form=_forms.nanmean)
def nanmean(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    where: Mask | None = None,
) -> Tensor:
    """Mean of the elements along ``axis``, ignoring NaN; NaN if there are none.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        dtype: cast ``x`` to this dtype first.
        where: as in ``sum``.

    >>> nanmean([1.0, float("nan"), 3.0]).tolist()
    2.0
    """
    return _like(x, _nan_mean(_wide(x), axis, keepdims)[0])


def _nan_mean(x: Any, axis: Axis, keepdims: bool) -> tuple[Any, Any, Any]:
    """Mean ignoring NaN, the number of elements that it is taken over, and where ``x`` is NaN."""
    missing = comparison.isnan(x)
    total = sum(comparison.where(missing, 0, x), axis=axis, keepdims=keepdims)
    valid = sum(comparison.logical_not(missing), axis=axis, keepdims=keepdims)
    count = dtypes.cast(valid, real_of(_dtype(x)))
    return math.divide(total, _above_zero(count)), count, missing


def _above_zero(x: Any) -> Any:
    """``x``, or NaN where it is zero or less: division then gives NaN without a warning."""
    return comparison.where(comparison.greater(x, 0), x, _math.nan)


@op(measured, engine="x, *, axis, correction, keepdims", form=_forms.nanvar)
def nanvar(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Variance of the elements along ``axis``, ignoring NaN.

    Args:
        axis: one axis, several, or ``None`` for all.
        correction: as in ``var``; NaN where the divisor is not positive.
        keepdims: keep reduced axes with length 1.
        dtype, ddof, where: as in ``var``.

    >>> nanvar([1.0, float("nan"), 3.0]).tolist()
    1.0
    """
    return _like(x, _nan_variance(_wide(x), axis, correction, keepdims))


@op(measured, engine="x, *, axis, correction, keepdims", form=_forms.nanstd)
def nanstd(
    x: TensorLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Standard deviation of the elements along ``axis``, ignoring NaN.

    Args:
        axis: one axis, several, or ``None`` for all.
        correction: as in ``var``; NaN where the divisor is not positive.
        keepdims: keep reduced axes with length 1.
        dtype, ddof, where: as in ``var``.

    >>> nanstd([1.0, float("nan"), 3.0]).tolist()
    1.0
    """
    variance = _nan_variance(_wide(x), axis, correction, keepdims)
    # Where all elements are equal, the gradient is defined as 0 instead of NaN.
    none = comparison.equal(variance, 0)
    return _like(x, comparison.where(none, 0, math.sqrt(comparison.where(none, 1, variance))))


def _nan_variance(x: Any, axis: Axis, correction: float, keepdims: bool) -> Any:
    middle, count, missing = _nan_mean(x, axis, True)
    centred = comparison.where(missing, 0, math.subtract(x, middle))
    total = sum(math.square(math.abs(centred)), axis=axis, keepdims=True)
    result = math.divide(total, _above_zero(math.subtract(count, correction)))
    return _reduced(result, axis, keepdims)


@op(floating, kinds="real", engine="x, *, axis, keepdims", form=_forms.nanmedian)
def nanmedian(x: TensorLike, /, axis: Axis = None, *, keepdims: bool = False, overwrite_input: bool = False) -> Tensor:
    """Median of the elements along ``axis``, ignoring NaN; NaN if there are none.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        overwrite_input: accepted for compatibility; ``x`` is never changed.

    >>> nanmedian([1.0, float("nan"), 3.0]).tolist()
    2.0
    """
    return _quantile(x, 0.5, axis, keepdims, "linear", skip_nan=True)


@op(promoted, kinds="real", engine="x, *, axis, keepdims", form=_forms.nanmax)
def nanmax(
    x: TensorLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Maximum of the elements along ``axis``, ignoring NaN; NaN if all are NaN.

    Raises ``ValueError`` for no elements.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        initial, where: as in ``max``.

    >>> nanmax([1.0, float("nan"), 3.0]).tolist()
    3.0
    """
    if _dtype(x).kind != "real floating":
        return max(x, axis=axis, keepdims=keepdims)
    missing = comparison.all(comparison.isnan(x), axis=axis, keepdims=keepdims)
    return comparison.where(missing, _math.nan, max(_filled(x, -_math.inf), axis=axis, keepdims=keepdims))


@op(promoted, kinds="real", engine="x, *, axis, keepdims", form=_forms.nanmin)
def nanmin(
    x: TensorLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: Mask | None = None,
) -> Tensor:
    """Minimum of the elements along ``axis``, ignoring NaN; NaN if all are NaN.

    Raises ``ValueError`` for no elements.

    Args:
        axis: one axis, several, or ``None`` for all.
        keepdims: keep reduced axes with length 1.
        initial, where: as in ``max``.

    >>> nanmin([1.0, float("nan"), 3.0]).tolist()
    1.0
    """
    if _dtype(x).kind != "real floating":
        return min(x, axis=axis, keepdims=keepdims)
    missing = comparison.all(comparison.isnan(x), axis=axis, keepdims=keepdims)
    return comparison.where(missing, _math.nan, min(_filled(x, _math.inf), axis=axis, keepdims=keepdims))


@op(indexed, kinds="real", lazy=False, differentiable=False)
def nanargmax(x: TensorLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Index of the first largest element along ``axis``, ignoring NaN.

    Raises ``ValueError`` where all elements are NaN.

    Args:
        axis: an axis, or ``None`` for the index into the flattened tensor.
        keepdims: keep the reduced axis with length 1.

    >>> nanargmax([1.0, float("nan"), 3.0]).tolist()
    2
    """
    return _first(x, nanmax(x, axis=axis, keepdims=True), axis, keepdims)


@op(indexed, kinds="real", lazy=False, differentiable=False)
def nanargmin(x: TensorLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Index of the first smallest element along ``axis``, ignoring NaN.

    Raises ``ValueError`` where all elements are NaN.

    Args:
        axis: an axis, or ``None`` for the index into the flattened tensor.
        keepdims: keep the reduced axis with length 1.

    >>> nanargmin([1.0, float("nan"), 3.0]).tolist()
    0
    """
    return _first(x, nanmin(x, axis=axis, keepdims=True), axis, keepdims)


def _first(x: Any, extreme: Any, axis: int | None, keepdims: bool) -> Tensor:
    """Index along ``axis`` of the first element of ``x`` that equals ``extreme``."""
    if bool(comparison.any(comparison.isnan(extreme))):  # emberlint: ignore[EMB201] an error depends on it
        raise ValueError(f"x must have a number that is not NaN along axis {axis}, got NaN only")
    found = dtypes.cast(comparison.equal(x, extreme), "int8")
    return indexing.argmax(found, axis=axis, keepdims=keepdims)


@op(floating, kinds="real", engine="x, q, *, axis, keepdims, method", form=_forms.nanpercentile)
def nanpercentile(
    x: TensorLike,
    q: Tensor | float | Sequence[Any],
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: TensorLike | None = None,
    overwrite_input: bool = False,
) -> Tensor:
    """Percentile of the elements along ``axis``, ignoring NaN; NaN if there are none.

    The options are those of ``percentile``.

    >>> nanpercentile([1.0, float("nan"), 2.0, 3.0], 50).tolist()
    2.0
    """
    return _quantile(x, q, axis, keepdims, method, scale=100, skip_nan=True)


@op(floating, kinds="real", engine="x, q, *, axis, keepdims, method", form=_forms.nanquantile)
def nanquantile(
    x: TensorLike,
    q: Tensor | float | Sequence[Any],
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: TensorLike | None = None,
    overwrite_input: bool = False,
) -> Tensor:
    """Quantile of the elements along ``axis``, ignoring NaN; NaN if there are none.

    The options are those of ``quantile``.

    >>> nanquantile([1.0, float("nan"), 2.0, 3.0], 0.5).tolist()
    2.0
    """
    return _quantile(x, q, axis, keepdims, method, skip_nan=True)


@op(accumulated)
def nancumsum(x: TensorLike, /, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Cumulative sum along ``axis``, with NaN counted as zero.

    Args:
        axis: an axis, or ``None`` for the flattened tensor.
        dtype: as in ``sum``.

    >>> nancumsum([1.0, float("nan"), 2.0]).tolist()
    [1.0, 1.0, 3.0]
    """
    return cumsum(_filled(x, 0), axis=axis, dtype=dtype)


@op(accumulated)
def nancumprod(x: TensorLike, /, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Cumulative product along ``axis``, with NaN counted as one.

    Args:
        axis: an axis, or ``None`` for the flattened tensor.
        dtype: as in ``sum``.

    >>> nancumprod([3.0, float("nan"), 2.0]).tolist()
    [3.0, 3.0, 6.0]
    """
    return cumprod(_filled(x, 1), axis=axis, dtype=dtype)


def _filled(x: Any, value: float) -> Any:
    """``x`` with NaN replaced by ``value``."""
    return comparison.where(comparison.isnan(x), value, x) if _dtype(x).kind.endswith("floating") else x


def _count(x: Any, axis: Axis) -> int:
    """Number of elements that each result of a reduction is computed from."""
    return _math.prod([x.shape[i] for i in _axes(axis, x.ndim)])


def _joined(x: Any, axis: Axis, keepdims: bool) -> tuple[Any, tuple[int, ...]]:
    """``x`` with the reduced axes joined into one at the end, and the shape of the result."""
    axes = _axes(axis, x.ndim)
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    outer = tuple(x.shape[i] for i in kept)
    flat = manipulation.reshape(manipulation.permute_dims(x, (*kept, *axes)), (*outer, _count(x, axis)))
    return flat, tuple(1 if i in axes else n for i, n in enumerate(x.shape)) if keepdims else outer


if TYPE_CHECKING:
    from ember_ml.ops.indexing import argmax as argmax
    from ember_ml.ops.indexing import argmin as argmin
    from ember_ml.ops.indexing import argsort as argsort
    from ember_ml.ops.indexing import sort as sort
else:

    def __getattr__(name: str) -> Any:
        """Operations of ``indexing`` that are also statistics; looked up late, as that module imports this one."""
        if name in ("argmax", "argmin", "argsort", "sort"):
            return getattr(indexing, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
