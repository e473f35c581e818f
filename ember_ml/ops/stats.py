"""Statistics: reductions, running reductions, order statistics and moments."""

from __future__ import annotations

import builtins as _builtins
import math as _math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ember_ml import backend as _backends
from ember_ml.dispatch import op
from ember_ml.dtypes import EmberDType, accumulated, floating, indexed, measured, promoted, real_of
from ember_ml.ops import comparison, creation, device, dtypes, indexing, manipulation, math
from ember_ml.shapes import axes_of as _axes
from ember_ml.types import Axis, DTypeLike, Indices, Tensor, TensorLike


@op(accumulated)
def sum(x: TensorLike, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """Sum of the elements along ``axis``; of no elements, zero.

    >>> sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]
    """
    ...


@op(accumulated)
def prod(x: TensorLike, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """Product of the elements along ``axis``; of no elements, one.

    >>> prod([[1, 2], [3, 4]], axis=0).tolist()
    [3, 8]
    """
    ...


@op(floating)
def mean(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Arithmetic mean of the elements along ``axis``; of no elements, NaN.

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
    """Mean of the elements along ``axis``, each counted as often as its weight says.

    Weights that sum to zero give NaN or an infinity.

    Args:
        weights: of the shape of ``x``, or of the shape that ``x`` has along ``axis``; all alike if not given.
        returned: answer with a pair: the average, and the sum of the weights.

    >>> average([1.0, 2.0, 6.0], weights=[1.0, 1.0, 2.0]).tolist()
    3.75
    """
    if weights is None:
        answer = mean(x, axis=axis, keepdims=keepdims)
        total = creation.full_like(answer, _count(x, axis))
        return (answer, total) if returned else answer
    wide, share = _wide(x), _spread(_wide(weights), x, axis)
    total = sum(share, axis=axis, keepdims=keepdims)
    answer = _like(x, math.divide(sum(math.multiply(wide, share), axis=axis, keepdims=keepdims), total))
    if not returned:
        return answer
    return answer, _like(x, manipulation.broadcast_to(total, manipulation.shape(answer)))


def _spread(weights: Any, x: Any, axis: Axis) -> Any:
    """Weights of the shape of ``x``, made from weights that may have only the reduced axes."""
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


@op(measured)
def var(x: TensorLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Variance of the elements along ``axis``: the mean of ``|x - mean(x)| ** 2``.

    Args:
        correction: what is subtracted from the number of elements before dividing by it; 1 for the unbiased estimate
            from a sample. Where nothing is left, the answer is NaN, or infinity if the elements differ.

    >>> var([1.0, 3.0]).tolist(), var([1.0, 3.0], correction=1).tolist()
    (1.0, 2.0)
    """
    ...


@op(measured)
def std(x: TensorLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Standard deviation of the elements along ``axis``: the square root of ``var``.

    Args:
        correction: as in ``var``.

    >>> std([1.0, 3.0]).tolist()
    1.0
    """
    ...


@op(floating, kinds="real")
def median(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Middle of the sorted elements along ``axis``, the mean of the middle two if their number is even.

    NaN if any element is NaN, or if there is none.

    >>> median([[1.0, 2.0, 9.0, 4.0]], axis=1).tolist()
    [3.0]
    """
    return _quantile(x, 0.5, axis, keepdims, "linear")


@op(floating, kinds="real")
def percentile(
    x: TensorLike,
    q: Tensor | float | Sequence[Any],
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """Value below which ``q`` percent of the elements along ``axis`` lie: ``quantile`` with ``q`` from 0 to 100.

    >>> percentile([1.0, 2.0, 3.0, 4.0, 5.0], [25, 50]).tolist()
    [2.0, 3.0]
    """
    return _quantile(x, q, axis, keepdims, method, scale=100)


@op(floating, kinds="real")
def quantile(
    x: TensorLike,
    q: Tensor | float | Sequence[Any],
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """Value below which the fraction ``q`` of the elements along ``axis`` lies; the axes of ``q`` come first.

    NaN if any element is NaN, or if there is none. The dtype is that of ``x``.

    Args:
        q: between 0 and 1. Other numbers are a ``ValueError``; in a tensor of an engine that would have to be evaluated
            for that, they give NaN.
        method: what to answer between two elements: ``"linear"`` (interpolate), ``"lower"``, ``"higher"``,
            ``"nearest"`` or ``"midpoint"``.

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
        answer = _between_at(ordered, levels, scale, method, skip_nan)
    else:
        answer = _between(ordered, [level / scale * (count - 1) for level in levels], method)
    if not skip_nan:
        answer = comparison.where(comparison.isnan(ordered[..., -1:]), _math.nan, answer)
    return manipulation.reshape(manipulation.moveaxis(_like(x, answer), -1, 0), (*outer, *shape))


_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def _is_traced(q: Any) -> bool:
    """Whether ``q`` is a tensor whose values may not be known yet."""
    active = _backends.current()
    return active.name != "numpy" and isinstance(q, active.tensors)


def _levels(q: Any, scale: float) -> tuple[list[float], tuple[int, ...]]:
    """The numbers in ``q``, one after the other, and its shape."""
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


def _between(ordered: Any, places: list[float], method: str) -> Any:
    """What lies at these places of the sorted elements; the places are known."""
    if method == "nearest":
        places = [round(place) for place in places]
    low, high = [_math.floor(place) for place in places], [_math.ceil(place) for place in places]
    if method == "lower":
        high = low
    elif method == "higher":
        low = high
    below = _picked(ordered, low)
    if low == high:
        return below
    half = method == "midpoint"
    weights = [0.5 if half and a < b else place - a for place, a, b in zip(places, low, high, strict=True)]
    if len(weights) == 1:
        return _blend(below, _picked(ordered, high), weights[0])
    weight = creation.asarray(weights, dtype=_dtype(below), device=device.get_device(ordered))
    return _blend(below, _picked(ordered, high), weight)


def _picked(ordered: Any, places: list[int]) -> Any:
    """The elements at these places of the last axis; a slice does for one, and costs less."""
    if len(places) == 1:
        return _wide(ordered[..., places[0] : places[0] + 1])
    return _wide(indexing.take(ordered, places, axis=-1))


def _between_at(ordered: Any, levels: Any, scale: float, method: str, skip_nan: bool) -> Any:
    """As ``_between``, for places that depend on the values of tensors."""
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
    place = math.maximum(math.multiply(comparison.where(inside, levels, 0.0), last), 0.0)
    if method == "nearest":
        place = math.round(place)
    low, high = math.floor(place), math.ceil(place)
    if method == "lower":
        high = low
    elif method == "higher":
        low = high
    below = _wide(pick(ordered, dtypes.cast(low, "int64"), axis=-1))
    above = _wide(pick(ordered, dtypes.cast(high, "int64"), axis=-1))
    weight = math.multiply(math.subtract(high, low), 0.5) if method == "midpoint" else math.subtract(place, low)
    answer = _blend(below, above, dtypes.cast(weight, _dtype(below)))
    return comparison.where(inside, answer, _math.nan)


def _blend(below: Any, above: Any, weight: Any) -> Any:
    """Both ends weighted. Equal ends are taken as they are: that is exact, and right for infinities."""
    # A number stays one: as a tensor of its own it would be float32, also beside float64.
    rest = 1.0 - weight if isinstance(weight, float) else math.subtract(1.0, weight)
    mixed = math.add(math.multiply(below, rest), math.multiply(above, weight))
    return comparison.where(comparison.equal(below, above), below, mixed)


@op(promoted, kinds="real")
def max(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest element along ``axis``; NaN if any is NaN. Of no elements, a ``ValueError``.

    >>> max([[1, 5], [3, 4]], axis=0).tolist()
    [3, 5]
    """
    ...


amax = max


@op(promoted, kinds="real")
def min(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest element along ``axis``; NaN if any is NaN. Of no elements, a ``ValueError``.

    >>> min([[1, 5], [3, 4]], axis=0).tolist()
    [1, 4]
    """
    ...


amin = min


@op(promoted, kinds="real numeric")
def ptp(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Range of the elements along ``axis``, from the smallest to the largest ("peak to peak").

    >>> ptp([[1, 5], [3, 4]], axis=0).tolist()
    [2, 1]
    """
    return math.subtract(max(x, axis=axis, keepdims=keepdims), min(x, axis=axis, keepdims=keepdims))


@op(accumulated)
def cumsum(
    x: TensorLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Running sum along ``axis``, or of the flattened tensor.

    Args:
        include_initial: begin with a zero, so that the axis grows by one.

    >>> cumsum([1, 2, 3]).tolist(), cumsum([1, 2, 3], include_initial=True).tolist()
    ([1, 3, 6], [0, 1, 3, 6])
    """
    ...


cumulative_sum = cumsum


@op(accumulated)
def cumprod(
    x: TensorLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Running product along ``axis``, or of the flattened tensor.

    Args:
        include_initial: begin with a one, so that the axis grows by one.

    >>> cumprod([1, 2, 3]).tolist(), cumprod([1, 2, 3], include_initial=True).tolist()
    ([1, 2, 6], [1, 1, 2, 6])
    """
    ...


cumulative_prod = cumprod


@op(promoted, kinds="real")
def cummax(x: TensorLike, /, *, axis: int) -> Tensor:
    """Running maximum along ``axis``: the values alone, without their places. NaN from the first NaN on.

    >>> cummax([1, 3, 2, 5], axis=0).tolist()
    [1, 3, 3, 5]
    """
    ...


@op(promoted, kinds="real")
def cummin(x: TensorLike, /, *, axis: int) -> Tensor:
    """Running minimum along ``axis``: the values alone, without their places. NaN from the first NaN on.

    >>> cummin([4, 3, 5, 1], axis=0).tolist()
    [4, 3, 3, 1]
    """
    ...


@op(floating, kinds="real")
def moments(x: TensorLike, /, axes: Axis = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and variance of the elements along ``axes``.

    >>> mean, variance = moments([1.0, 3.0], 0)
    >>> mean.tolist(), variance.tolist()
    (2.0, 1.0)
    """
    return mean(x, axis=axes, keepdims=keepdims), var(x, axis=axes, keepdims=keepdims)


@op(floating)
def cov(
    x: TensorLike,
    y: TensorLike | None = None,
    /,
    *,
    rowvar: bool = True,
    bias: bool = False,
    correction: float | None = None,
    fweights: Indices | None = None,
    aweights: TensorLike | None = None,
) -> Tensor:
    """Covariance matrix of the variables in the rows of ``x``, and of ``y``; a tensor without axes for one variable.

    Args:
        y: further variables.
        rowvar: if false, the variables are in the columns.
        bias: divide by the number of observations instead of one less.
        correction: what is subtracted from that number; overrides ``bias``.
        fweights: how often each observation was made.
        aweights: how much each observation counts.

    >>> cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    variables = _variables(x, rowvar)
    if y is not None:
        variables = manipulation.concatenate([variables, _variables(y, rowvar)], axis=0)
    lost = correction if correction is not None else 0 if bias else 1
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
        share = 1.0 if aweights is None else math.divide(sum(math.multiply(weights, aweights)), total)
        freedom = math.maximum(math.subtract(total, math.multiply(share, lost)), 0)
    products = centred @ manipulation.permute_dims(math.conj(scaled), (1, 0))
    answer = _like(x, math.divide(products, freedom))
    return manipulation.reshape(answer, ()) if variables.shape[0] == 1 else answer


def _variables(x: Any, rowvar: bool) -> Any:
    """A matrix with a variable in each row."""
    if x.ndim > 2:
        raise ValueError(f"x must have at most 2 axes, got {x.ndim}")
    if x.ndim < 2:
        x = manipulation.reshape(x, (1, -1))
    elif not rowvar:
        x = manipulation.permute_dims(x, (1, 0))
    return _wide(x)


def _observations(fweights: Any, aweights: Any, variables: Any) -> Any:
    """The weight of each observation, ``None`` if all are alike."""
    weights = None
    for given in (fweights, aweights):
        if given is not None:
            if tuple(given.shape) != (variables.shape[1],):
                raise ValueError(
                    f"weights must have one value for each of {variables.shape[1]} observations, got shape "
                    f"{list(given.shape)}"
                )
            given = dtypes.cast(given, real_of(_dtype(variables)))
            weights = given if weights is None else math.multiply(weights, given)
    return weights


@op(floating)
def corrcoef(x: TensorLike, y: TensorLike | None = None, /, *, rowvar: bool = True) -> Tensor:
    """Correlation matrix of the variables in the rows of ``x``, and of ``y``: covariance over standard deviations.

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
    """Density of the normal distribution with mean ``mu`` and standard deviation ``sigma`` at ``x``.

    ``exp(-((x - mu) / sigma) ** 2 / 2) / (sigma * sqrt(2 * pi))``

    >>> f"{float(gaussian(0.0)):.4f}"
    '0.3989'
    """
    scaled = math.divide(math.subtract(x, mu), sigma)
    return math.divide(
        math.exp(math.multiply(math.square(scaled), -0.5)), math.multiply(sigma, _math.sqrt(2 * _math.pi))
    )


@op(floating, kinds="real")
def zscore(x: TensorLike, /, *, axis: Axis = 0, correction: float = 0.0) -> Tensor:
    """Elements as multiples of the standard deviation along ``axis``, counted from the mean; NaN if all are equal.

    Args:
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
def skew(x: TensorLike, /, *, axis: Axis = 0, bias: bool = True, keepdims: bool = False) -> Tensor:
    """Skewness of the elements along ``axis``: the third central moment over the variance to the power 3/2.

    NaN where the elements do not differ.

    Args:
        bias: if false, correct for the bias of an estimate from a sample of three or more.

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
    x: TensorLike, /, *, axis: Axis = 0, fisher: bool = True, bias: bool = True, keepdims: bool = False
) -> Tensor:
    """Kurtosis of the elements along ``axis``: the fourth central moment over the squared variance, less 3.

    NaN where the elements do not differ.

    Args:
        fisher: if false, 3 is not subtracted: a normal distribution then has 3, not 0.
        bias: if false, correct for the bias of an estimate from a sample of four or more.

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
    """The second and a higher central moment, with the axes kept; the second is NaN where it is only rounding."""
    wide = _wide(x)
    middle = mean(wide, axis=axis, keepdims=True)
    centred = math.subtract(wide, middle)
    squared = math.square(centred)
    second = mean(squared, axis=axis, keepdims=True)
    higher = mean(math.multiply(squared, centred if power == 3 else squared), axis=axis, keepdims=True)
    noise = math.square(math.multiply(middle, dtypes.finfo(_dtype(wide)).eps))
    return comparison.where(comparison.less_equal(second, noise), _math.nan, second), higher


def _reduced(x: Any, axis: Axis, keepdims: bool) -> Any:
    """``x`` without its reduced axes, which have one element each."""
    return x if keepdims else manipulation.squeeze(x, axis=_axes(axis, x.ndim))


@op(accumulated)
def nansum(x: TensorLike, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """Sum of the elements along ``axis`` that are not NaN; of none, zero.

    >>> nansum([1.0, float("nan"), 2.0]).tolist()
    3.0
    """
    return sum(_filled(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


@op(accumulated)
def nanprod(x: TensorLike, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """Product of the elements along ``axis`` that are not NaN; of none, one.

    >>> nanprod([3.0, float("nan"), 2.0]).tolist()
    6.0
    """
    return prod(_filled(x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


@op(floating)
def nanmean(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Mean of the elements along ``axis`` that are not NaN; of none, NaN.

    >>> nanmean([1.0, float("nan"), 3.0]).tolist()
    2.0
    """
    return _like(x, _nan_mean(_wide(x), axis, keepdims)[0])


def _nan_mean(x: Any, axis: Axis, keepdims: bool) -> tuple[Any, Any, Any]:
    """The mean of what is not NaN, how much that is, and what is NaN."""
    missing = comparison.isnan(x)
    total = sum(comparison.where(missing, 0, x), axis=axis, keepdims=keepdims)
    valid = sum(comparison.logical_not(missing), axis=axis, keepdims=keepdims)
    count = dtypes.cast(valid, real_of(_dtype(x)))
    return math.divide(total, _above_zero(count)), count, missing


def _above_zero(x: Any) -> Any:
    """``x``, NaN where it is zero or less: dividing by that is NaN, without a warning."""
    return comparison.where(comparison.greater(x, 0), x, _math.nan)


@op(measured)
def nanvar(x: TensorLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Variance of the elements along ``axis`` that are not NaN.

    Args:
        correction: as in ``var``; NaN where it leaves nothing to divide by.

    >>> nanvar([1.0, float("nan"), 3.0]).tolist()
    1.0
    """
    return _like(x, _nan_variance(_wide(x), axis, correction, keepdims))


@op(measured)
def nanstd(x: TensorLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Standard deviation of the elements along ``axis`` that are not NaN.

    Args:
        correction: as in ``var``; NaN where it leaves nothing to divide by.

    >>> nanstd([1.0, float("nan"), 3.0]).tolist()
    1.0
    """
    variance = _nan_variance(_wide(x), axis, correction, keepdims)
    # Where nothing differs there is no direction in which the deviation would fall: its gradient is 0, not NaN.
    none = comparison.equal(variance, 0)
    return _like(x, comparison.where(none, 0, math.sqrt(comparison.where(none, 1, variance))))


def _nan_variance(x: Any, axis: Axis, correction: float, keepdims: bool) -> Any:
    middle, count, missing = _nan_mean(x, axis, True)
    centred = comparison.where(missing, 0, math.subtract(x, middle))
    total = sum(math.square(math.abs(centred)), axis=axis, keepdims=True)
    answer = math.divide(total, _above_zero(math.subtract(count, correction)))
    return _reduced(answer, axis, keepdims)


@op(floating, kinds="real")
def nanmedian(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Median of the elements along ``axis`` that are not NaN; of none, NaN.

    >>> nanmedian([1.0, float("nan"), 3.0]).tolist()
    2.0
    """
    return _quantile(x, 0.5, axis, keepdims, "linear", skip_nan=True)


@op(promoted, kinds="real")
def nanmax(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest of the elements along ``axis`` that are not NaN; NaN if all are. Of no elements, a ``ValueError``.

    >>> nanmax([1.0, float("nan"), 3.0]).tolist()
    3.0
    """
    if _dtype(x).kind != "real floating":
        return max(x, axis=axis, keepdims=keepdims)
    missing = comparison.all(comparison.isnan(x), axis=axis, keepdims=keepdims)
    return comparison.where(missing, _math.nan, max(_filled(x, -_math.inf), axis=axis, keepdims=keepdims))


@op(promoted, kinds="real")
def nanmin(x: TensorLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest of the elements along ``axis`` that are not NaN; NaN if all are. Of no elements, a ``ValueError``.

    >>> nanmin([1.0, float("nan"), 3.0]).tolist()
    1.0
    """
    if _dtype(x).kind != "real floating":
        return min(x, axis=axis, keepdims=keepdims)
    missing = comparison.all(comparison.isnan(x), axis=axis, keepdims=keepdims)
    return comparison.where(missing, _math.nan, min(_filled(x, _math.inf), axis=axis, keepdims=keepdims))


@op(indexed, kinds="real", lazy=False, differentiable=False)
def nanargmax(x: TensorLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Place of the first largest element along ``axis`` that is not NaN; a ``ValueError`` where there is none.

    >>> nanargmax([1.0, float("nan"), 3.0]).tolist()
    2
    """
    return _first(x, nanmax(x, axis=axis, keepdims=True), axis, keepdims)


@op(indexed, kinds="real", lazy=False, differentiable=False)
def nanargmin(x: TensorLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Place of the first smallest element along ``axis`` that is not NaN; a ``ValueError`` where there is none.

    >>> nanargmin([1.0, float("nan"), 3.0]).tolist()
    0
    """
    return _first(x, nanmin(x, axis=axis, keepdims=True), axis, keepdims)


def _first(x: Any, wanted: Any, axis: int | None, keepdims: bool) -> Tensor:
    """Where along ``axis`` ``wanted`` is first found in ``x``."""
    if bool(comparison.any(comparison.isnan(wanted))):  # emberlint: ignore[EMB201] an error depends on it
        raise ValueError(f"x must have a number that is not NaN along axis {axis}, got NaN only")
    found = dtypes.cast(comparison.equal(x, wanted), "int8")
    return indexing.argmax(found, axis=axis, keepdims=keepdims)


@op(floating, kinds="real")
def nanpercentile(
    x: TensorLike,
    q: Tensor | float | Sequence[Any],
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """Percentile of the elements along ``axis`` that are not NaN; of none, NaN. The arguments are ``percentile``'s.

    >>> nanpercentile([1.0, float("nan"), 2.0, 3.0], 50).tolist()
    2.0
    """
    return _quantile(x, q, axis, keepdims, method, scale=100, skip_nan=True)


@op(floating, kinds="real")
def nanquantile(
    x: TensorLike,
    q: Tensor | float | Sequence[Any],
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """Quantile of the elements along ``axis`` that are not NaN; of none, NaN. The arguments are ``quantile``'s.

    >>> nanquantile([1.0, float("nan"), 2.0, 3.0], 0.5).tolist()
    2.0
    """
    return _quantile(x, q, axis, keepdims, method, skip_nan=True)


@op(accumulated)
def nancumsum(x: TensorLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Running sum along ``axis``, or of the flattened tensor, in which NaN counts as zero.

    >>> nancumsum([1.0, float("nan"), 2.0]).tolist()
    [1.0, 1.0, 3.0]
    """
    return cumsum(_filled(x, 0), axis=axis, dtype=dtype)


@op(accumulated)
def nancumprod(x: TensorLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Running product along ``axis``, or of the flattened tensor, in which NaN counts as one.

    >>> nancumprod([3.0, float("nan"), 2.0]).tolist()
    [3.0, 3.0, 6.0]
    """
    return cumprod(_filled(x, 1), axis=axis, dtype=dtype)


def _filled(x: Any, value: float) -> Any:
    """``x`` with ``value`` in the place of NaN."""
    return comparison.where(comparison.isnan(x), value, x) if _dtype(x).kind.endswith("floating") else x


def _dtype(x: Any) -> EmberDType:
    return _backends.current().dtype_of(x)


def _wide(x: Any) -> Any:
    """Halves as float32: what is computed of them in several steps is rounded once, at the end."""
    return dtypes.cast(x, "float32") if _dtype(x).name in ("float16", "bfloat16") else x


def _like(x: Any, answer: Tensor) -> Tensor:
    """``answer`` in the dtype of ``x`` where that is a half."""
    own = _dtype(x)
    return dtypes.cast(answer, own) if own.name in ("float16", "bfloat16") else answer


def _count(x: Any, axis: Axis) -> int:
    """How many elements each answer of a reduction is made of."""
    return _math.prod([x.shape[i] for i in _axes(axis, x.ndim)])


def _joined(x: Any, axis: Axis, keepdims: bool) -> tuple[Any, tuple[int, ...]]:
    """``x`` with the axes to be reduced joined into one at the end, and the shape of the answer."""
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
        """Operations of ``indexing`` that are statistics too, looked up late: that module imports this one."""
        if name in ("argmax", "argmin", "argsort", "sort"):
            return getattr(indexing, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
