"""Random numbers: the same numbers on every engine for one seed.

Every function takes a ``key``. Without one it uses the current stream, which ``set_seed`` restarts. Element ``i`` of a
draw depends only on the key and on ``i``. ``ember_ml.ops.random`` has these functions without the prefix ``random_``,
and ``key``, ``split``, ``fold_in``, ``Generator``, ``stream``, ``rows``, ``native``, ``get_state`` and ``set_state``.
"""

from __future__ import annotations

import math as _math
import operator as _operator
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from ember_ml import backend as _backends
from ember_ml import dispatch as _dispatch
from ember_ml.dispatch import Arrangement as _Arrangement
from ember_ml.dispatch import op
from ember_ml.dispatch.checks import is_checked as _is_checked
from ember_ml.dispatch.tensor_types import REAL_NUMBERS as _NUMBERS
from ember_ml.dtypes import KINDS as _KINDS
from ember_ml.dtypes import as_dtype as _as_dtype
from ember_ml.dtypes import default_float as _default_float
from ember_ml.dtypes import describe as _describe
from ember_ml.dtypes import free, indexed
from ember_ml.dtypes import promote as _promote
from ember_ml.ops import comparison, control, dtypes, indexing, linearalg, manipulation, math
from ember_ml.ops import device as _device_category
from ember_ml.random import sampling as _sampling
from ember_ml.random import threefry as _threefry
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.types import DeviceLike, DTypeLike, Shape, Tensor, TensorLike

# A number, or a tensor that broadcasts to the shape of the result.
Parameter: TypeAlias = Any
# A 64-bit integer, two 32-bit integers, or a tensor of the latter.
Key: TypeAlias = Any

# Number of keys of a traced ``stream`` block that are computed at once.
_AHEAD = 64

# Types whose values are always available on the host.
_KNOWN = frozenset({*_NUMBERS, str})


def _any_order(*names: str, bounds: bool = False, inverse: bool = False) -> _Arrangement:
    """Function that puts the shape of a draw first. NumPy has it last, as ``size``; if both could be meant, it raises.

    Args:
        names: the parameters after ``shape``.
        bounds: whether they are a lower and an upper bound, which are not NumPy's if the lower is not less.
        inverse: whether the last one is the inverse of NumPy's, so that a call in NumPy's order means something else.
    """

    def arrange(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if "size" in kwargs:
            size = kwargs.pop("size")
            if "shape" in kwargs:
                raise TypeError(f"shape must be given once, got shape={kwargs['shape']} and size={size}")
            return in_our_order(args, size), kwargs
        if not 2 <= len(args) <= len(names) + 1 or any(n in kwargs for n in ("shape", *names)):
            return args, kwargs
        parameters, size = (args[:-1], args[-1]) if len(args) > len(names) else (args, None)
        is_numpy = (
            all(map(_is_parameter, parameters))
            and (size is None or (_is_shape(size) and all(_broadcasts(p, size) for p in parameters)))
            and not is_empty(*parameters)
        )
        # Without a shape in the last place, a length and a float are a shape and a parameter.
        is_ours = _is_shape(args[0]) and type(size) is not tuple
        if not is_numpy or (is_ours and size is None and float in map(type, args)):
            return args, kwargs
        if not is_ours:
            return in_our_order(parameters, size), kwargs
        forms = [("shape", *names), names if size is None else (*names, "size")]
        ours, numpy = (", ".join(f"{n}={v}" for n, v in zip(form, args, strict=False)) for form in forms)
        raise TypeError(f"the shape must be a tuple or named, got {args}; write {ours} or {numpy}")

    def is_empty(low: Any, high: Any = None) -> bool:
        return bounds and type(low) in (int, float) and type(high) in (int, float) and low >= high

    def in_our_order(parameters: tuple[Any, ...], size: Any) -> tuple[Any, ...]:
        if inverse and len(parameters) == len(names):
            raise TypeError(
                f"{names[-1]} must be named, since it is the inverse of NumPy's scale, got {parameters[-1]}"
            )
        return (
            manipulation.broadcast_shapes(*(getattr(p, "shape", ()) for p in parameters)) if size is None else size,
            *parameters,
        )

    return arrange


def _is_parameter(value: Any) -> bool:
    """Whether ``value`` is a number or a tensor."""
    return type(value) in (int, float) or hasattr(value, "shape")


def _broadcasts(parameter: Any, size: Any) -> bool:
    """Whether a parameter broadcasts to a shape."""
    lengths = (size,) if type(size) is int else tuple(size)
    own = tuple(getattr(parameter, "shape", ()))
    pairs = zip(reversed(own), reversed(lengths), strict=False)
    return len(own) <= len(lengths) and all(n in (1, m) for n, m in pairs)


def _is_shape(value: Any) -> bool:
    """Whether ``value`` is a length, or a list or tuple of them."""
    return (
        all(type(n) is int and n >= 0 for n in value)
        if type(value) in (list, tuple)
        else type(value) is int and value >= 0
    )


@op(free, lazy=False, differentiable=False)
def set_seed(seed: int) -> None:
    """Restart the random streams of this process from ``seed``, an integer from 0 to 2**64 - 1.

    The numbers of this thread are then the same in every run and on every engine. Each thread has its own stream.

    >>> set_seed(7)
    >>> first = random_uniform(3).tolist()
    >>> set_seed(7)
    >>> first == random_uniform(3).tolist()
    True
    """
    _threefry.set_seed(_checked_seed(seed, "seed"))


@op(free, lazy=False, differentiable=False)
def get_seed() -> int:
    """Seed of this process: the last one set, or one from the operating system.

    >>> set_seed(7)
    >>> get_seed()
    7
    """
    return _threefry.seed()


@op(free, differentiable=False)
def random_bits(
    shape: Shape = (), *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, key: Key = None
) -> Tensor:
    """Random integers in which every bit is uniform.

    Args:
        shape, device, key: as in ``random_uniform``.
        dtype: an integer dtype or bool; uint32 by default.

    >>> random_bits(2, dtype="uint8", key=7).tolist()
    [216, 116]
    """
    draw = _Draw(shape, device, key)
    kind = _as_dtype("uint32" if dtype is None else dtype)
    if kind.kind not in _KINDS["bits"]:
        raise TypeError(f"dtype must be an integer dtype or bool, got {kind.name}")
    return draw.made(_sampling.bits, kind.bits, kind.name, dtype=kind.name)


@op(free, arrange=_any_order("low", "high", bounds=True))
def random_uniform(
    shape: Shape = (),
    low: Parameter = 0.0,
    high: Parameter = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers uniform in the half-open interval from ``low`` to ``high``.

    All draws accept NumPy's order of arguments too, ``random_uniform(-1.0, 1.0, size=3)``. A call that could be meant
    in either order raises ``TypeError``.

    Args:
        shape: the shape of the result; ``low`` and ``high`` may be tensors that broadcast to it.
        dtype: a floating dtype; by default that of the parameters if they are floating tensors, else the default float.
        device: the device of the result, by default the default device.
        key: a random key; by default the next key of the current stream.

    >>> random_uniform(2, key=7, dtype="float16").tolist()
    [0.84375, 0.455078125]
    """
    draw = _Draw(shape, device, key, low, high)
    low, high = draw.parameters
    kind = draw.floating(dtype)
    if draw.are_numbers(low, high) and low == 0 and high == 1:
        return draw.made(_sampling.fractions, kind, dtype=kind)
    draw.check("low must be < high", lambda low, high: low < high, low=low, high=high)
    draw.check("high - low must be finite", lambda low, high: high - low < _math.inf, low=low, high=high)
    if not draw.are_numbers(low, high):
        return draw.between(draw.made(_sampling.fractions, kind, dtype=kind), low, high, kind)
    draw.check(
        f"low and high must fit into {kind}", lambda low, high: _sampling.hold(kind, low, high), low=low, high=high
    )
    low, high = _sampling.rounded(low, kind), _sampling.rounded(high, kind)
    return draw.made(
        _sampling.fractions_between, kind, draw.wide(kind), low, high, _sampling.before(high, kind), dtype=kind
    )


@op(free, arrange=_any_order("mean", "stddev"))
def random_normal(
    shape: Shape = (),
    mean: Parameter = 0.0,
    stddev: Parameter = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers from the normal distribution with mean ``mean`` and standard deviation ``stddev``.

    Args:
        shape, dtype, device, key: as in ``random_uniform``.

    >>> [f"{x:.2f}" for x in random_normal(2, key=7).tolist()]
    ['1.01', '-0.11']
    """
    draw = _Draw(shape, device, key, mean, stddev)
    mean, stddev = draw.parameters
    draw.check("stddev must be >= 0", lambda stddev: stddev >= 0, stddev=stddev)
    return draw.placed(_sampling.normals, mean, stddev, dtype)


@op(free)
def truncated_normal(
    shape: Shape = (),
    mean: Parameter = 0.0,
    stddev: Parameter = 1.0,
    low: float = -2.0,
    high: float = 2.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers from a normal distribution truncated to ``low`` to ``high`` standard deviations from its mean.

    If both bounds are more than 4 standard deviations away on one side, float32 has few distinct numbers; use float64
    there. Beyond 4.6 in float32 and 7.7 in float64, ``ValueError`` is raised.

    Args:
        shape, dtype, device, key: as in ``random_uniform``.
        mean, stddev: those of the normal distribution before it is truncated.

    >>> x = truncated_normal(1000, key=7)
    >>> bool(all(abs(x) <= 2))
    True
    """
    draw = _Draw(shape, device, key, mean, stddev)
    mean, stddev = draw.parameters
    draw.check("stddev must be >= 0", lambda stddev: stddev >= 0, stddev=stddev)
    low, high = _bound(low), _bound(high)
    draw.check("low must be < high", lambda low, high: low < high, low=low, high=high)
    ends = tuple(_math.erf(x / _math.sqrt(2)) / 2 for x in (low, high))
    kind = "float64" if draw.floating(dtype) == "float64" else "float32"
    if not -4 <= low <= 4 and not -4 <= high <= 4 and ends[1] - ends[0] < 16 * dtypes.finfo(kind).eps:
        more = "; float64 has more" if kind == "float32" else ""
        raise ValueError(
            f"low and high must have enough numbers of {kind} between them, got low={low}, high={high}{more}"
        )
    return draw.placed(_sampling.truncated_normals, mean, stddev, dtype, low, high, *ends)


@op(free, differentiable=False)
def random_bernoulli(
    shape: Shape = (),
    p: Parameter = 0.5,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random bools that are true with probability ``p``.

    Args:
        shape, device, key: as in ``random_uniform``.
        dtype: the dtype of the result, bool by default.

    >>> random_bernoulli(4, 0.5, key=7).tolist()
    [False, True, True, False]
    """
    draw = _Draw(shape, device, key, p)
    (p,) = draw.parameters
    draw.check("p must be from 0 to 1", _is_probability, p=p)
    return draw.made(_sampling.trials, p, dtype="bool" if dtype is None else _as_dtype(dtype).name)


@op(free, differentiable=False, arrange=_any_order("n", "p"))
def random_binomial(
    shape: Shape,
    n: Parameter,
    p: Parameter,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers of successes in ``n`` trials, each with probability ``p``.

    Args:
        shape, device, key: as in ``random_uniform``.
        dtype: the dtype of the result, int64 by default.

    >>> random_binomial(4, 10, 0.5, key=7).tolist()
    [3, 4, 5, 3]
    """
    draw = _Draw(shape, device, key, n, p)
    n, p = draw.parameters
    draw.check("n must be an integer from 0 to 2**53", _is_count, n=n)
    draw.check("p must be from 0 to 1", _is_probability, p=p)
    return draw.made(_sampling.binomials, _Each(n), _Each(p), draw.wide(), dtype=_name(dtype, "int64"))


@op(free, differentiable=False, arrange=_any_order("alpha", "beta", inverse=True))
def random_gamma(
    shape: Shape,
    alpha: Parameter,
    beta: Parameter = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers from the gamma distribution with shape ``alpha`` and rate ``beta``; the mean is ``alpha / beta``.

    Args:
        shape, dtype, device, key: as in ``random_uniform``.

    >>> bool(all(random_gamma(100, 0.5, key=7) >= 0))
    True
    """
    draw = _Draw(shape, device, key, alpha, beta)
    alpha, beta = draw.parameters
    draw.check("alpha must be > 0 and finite", _is_positive, alpha=alpha)
    draw.check("beta must be > 0 and finite", _is_positive, beta=beta)
    return draw.made(_sampling.gammas, _Each(alpha), _Each(beta), draw.wide(), dtype=draw.floating(dtype))


@op(free, differentiable=False, arrange=_any_order("a", "b"))
def random_beta(
    shape: Shape,
    a: Parameter,
    b: Parameter,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers from the beta distribution, between 0 and 1; the mean is ``a / (a + b)``.

    Args:
        shape, dtype, device, key: as in ``random_uniform``.

    >>> x = random_beta(100, 2.0, 3.0, key=7)
    >>> bool(all(logical_and(x >= 0, x <= 1)))
    True
    """
    draw = _Draw(shape, device, key, a, b)
    a, b = draw.parameters
    draw.check("a must be > 0 and finite", _is_positive, a=a)
    draw.check("b must be > 0 and finite", _is_positive, b=b)
    result = draw.made(_sampling.betas, _Each(a), _Each(b), draw.wide(), dtype=draw.floating(dtype))
    return control.stop_gradient(result)


@op(free, arrange=_any_order("scale"))
def random_exponential(
    shape: Shape = (),
    scale: Parameter = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers from the exponential distribution with mean ``scale``.

    Args:
        shape, dtype, device, key: as in ``random_uniform``.

    >>> [f"{x:.2f}" for x in random_exponential(2, key=7).tolist()]
    ['0.17', '0.79']
    """
    draw = _Draw(shape, device, key, scale)
    (scale,) = draw.parameters
    draw.check("scale must be >= 0", _is_scale, scale=scale)
    return draw.placed(_sampling.exponentials, 0.0, scale, dtype)


@op(free, differentiable=False, arrange=_any_order("lam"))
def random_poisson(
    shape: Shape = (),
    lam: Parameter = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers from the Poisson distribution with mean ``lam``.

    Args:
        shape, device, key: as in ``random_uniform``.
        dtype: the dtype of the result, int64 by default.

    >>> random_poisson(4, 3.0, key=7).tolist()
    [1, 2, 3, 1]
    """
    draw = _Draw(shape, device, key, lam)
    (lam,) = draw.parameters
    draw.check("lam must be from 0 to 2**52", lambda lam: (lam >= 0) & _is_at_most(lam, 2**52), lam=lam)
    return draw.made(_sampling.poissons, _Each(lam), draw.wide(), dtype=_name(dtype, "int64"))


@op(free, arrange=_any_order("loc", "scale"))
def random_laplace(
    shape: Shape = (),
    loc: Parameter = 0.0,
    scale: Parameter = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers from the Laplace distribution with mean ``loc`` and scale ``scale``.

    Args:
        shape, dtype, device, key: as in ``random_uniform``.

    >>> [f"{x:.2f}" for x in random_laplace(2, key=7).tolist()]
    ['-0.37', '0.09']
    """
    draw = _Draw(shape, device, key, loc, scale)
    loc, scale = draw.parameters
    draw.check("scale must be >= 0", _is_scale, scale=scale)
    return draw.placed(_sampling.laplaces, loc, scale, dtype)


@op(free, arrange=_any_order("loc", "scale"))
def random_gumbel(
    shape: Shape = (),
    loc: Parameter = 0.0,
    scale: Parameter = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random numbers from the Gumbel distribution with location ``loc`` and scale ``scale``.

    Args:
        shape, dtype, device, key: as in ``random_uniform``.

    >>> [f"{x:.2f}" for x in random_gumbel(2, key=7).tolist()]
    ['-0.62', '0.50']
    """
    draw = _Draw(shape, device, key, loc, scale)
    loc, scale = draw.parameters
    draw.check("scale must be >= 0", _is_scale, scale=scale)
    return draw.placed(_sampling.gumbels, loc, scale, dtype)


@op(indexed, kinds="real numeric", differentiable=False)
def random_categorical(logits: TensorLike, num_samples: int = 1, *, key: Key = None) -> Tensor:
    """Random class indices, with probabilities proportional to ``exp(logits)``.

    The last axis of ``logits``, that of the classes, is replaced by one of length ``num_samples``.

    Args:
        key: as in ``random_uniform``.

    >>> random_categorical([[0.0, 9.0, 0.0], [9.0, 0.0, 0.0]], 4, key=7).tolist()
    [[1, 1, 1, 1], [0, 0, 0, 0]]
    """
    *batch, size = manipulation.shape(logits) or (0,)
    if not size:
        raise ValueError("logits must have at least 1 class along the last axis, got none")
    draw = _Draw((*batch, num_samples), None, key, logits)
    (logits,) = draw.parameters
    draw.check("logits must be below inf, and one of each row above -inf", _are_logits, logits=logits)
    return draw.made(_sampling.categories, _All(logits), size, draw.wide(), dtype="int64", whole=True)


@op(free, kinds="real numeric")
def random_multivariate_normal(
    mean: TensorLike, cov: TensorLike, shape: Shape = (), *, dtype: DTypeLike | None = None, key: Key = None
) -> Tensor:
    """Random vectors from the normal distribution with the given mean and positive definite covariance.

    ``shape`` is prepended to the shape of ``mean``. The axes of ``mean`` before the last one, and those of ``cov``
    before the last two, are a batch.

    Args:
        dtype, key: as in ``random_uniform``.

    >>> random_multivariate_normal([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]], 3, key=7).shape == (3, 2)
    True
    """
    *batch, size = manipulation.shape(mean) or (0,)
    *others, rows, columns = (0, 0, *manipulation.shape(cov))[-max(2, len(manipulation.shape(cov))) :]
    if not size == rows == columns:
        raise ValueError(
            f"mean and cov must have shapes (..., n) and (..., n, n), got {list(manipulation.shape(mean))} and "
            f"{list(manipulation.shape(cov))}"
        )
    lead = (shape,) if isinstance(shape, int) else tuple(shape)
    full = (*lead, *manipulation.broadcast_shapes(tuple(batch), tuple(others)), size)
    kind = _float_of(dtype, (mean, cov))
    work = "float64" if kind == "float64" else "float32"
    root = linearalg.cholesky(dtypes.cast(cov, work))
    drawn = normal(full, dtype=work, device=_device_category.get_device(mean), key=key)
    moved = manipulation.squeeze(linearalg.matmul(root, manipulation.expand_dims(drawn, axis=-1)), axis=-1)
    return dtypes.cast(math.add(moved, dtypes.cast(mean, work)), kind)


@op(free, differentiable=False)
def random_dirichlet(
    alpha: Parameter,
    shape: Shape = (),
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random vectors that sum to 1, from the Dirichlet distribution.

    ``shape`` is prepended to the shape of ``alpha``.

    Args:
        dtype, device, key: as in ``random_uniform``.

    >>> x = random_dirichlet([1.0, 2.0, 3.0], 5, key=7)
    >>> x.shape == (5, 3) and bool(allclose(sum(x, axis=-1), 1.0))
    True
    """
    sizes = manipulation.shape(alpha)
    if not sizes or not sizes[-1]:
        raise ValueError(f"alpha must have at least 1 class along its last axis, got shape {list(sizes)}")
    lead = (shape,) if isinstance(shape, int) else tuple(shape)
    draw = _Draw((*lead, *sizes), device, key, alpha)
    (alpha,) = draw.parameters
    draw.check("alpha must be > 0 and finite", _is_positive, alpha=alpha)
    kind = draw.floating(dtype)
    result = draw.made(_sampling.dirichlets, _Each(alpha), sizes[-1], draw.wide(), dtype=kind, whole=True)
    return control.stop_gradient(result)


@op(free, differentiable=False, arrange=_any_order("low", "high", bounds=True))
def random_randint(
    shape: Shape,
    low: Parameter,
    high: Parameter,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Random integers from ``low`` up to but excluding ``high``.

    Args:
        shape, device, key: as in ``random_uniform``.
        dtype: the dtype of the result, int64 by default.

    >>> random_randint(4, 0, 10, key=7).tolist()
    [8, 0, 2, 0]
    """
    draw = _Draw(shape, device, key, low, high)
    low, high = draw.parameters
    kind = _as_dtype("int64" if dtype is None else dtype)
    if kind.kind not in _KINDS["integral"]:
        raise TypeError(f"dtype must be an integer dtype, got {kind.name}")
    least = 0 if kind.kind == "unsigned integer" else -1 << kind.bits - 1
    beyond = least + (1 << kind.bits)
    draw.check(
        f"low and high must be integers that fit into {kind.name}",
        lambda low, high: _within(low, high, least, beyond),
        low=low,
        high=high,
    )
    draw.check("low must be < high", lambda low, high: low < high, low=low, high=high)
    return draw.made(_sampling.integers, low, high, dtype=kind.name)


@op(free, differentiable=False)
def random_permutation(x: Parameter, *, device: DeviceLike | None = None, key: Key = None) -> Tensor:
    """Integers from 0 to ``x - 1`` in random order, as int64; for a tensor ``x``, its rows in random order.

    Args:
        device, key: as in ``random_uniform``.

    >>> random_permutation(5, key=7).tolist()
    [4, 1, 3, 2, 0]
    """
    if type(x) is not int:
        backend = _backend(x, key)
        return shuffle(backend.convert(x, None, device) if backend is _backends.current() else x, key=key)
    if x < 0:
        raise ValueError(f"x must be >= 0, got {x}")
    draw = _Draw(x, device, key)
    return draw.made(_sampling.order, max(x - 1, 1).bit_length(), dtype="int64", whole=True, has_rows=False)


@op(free, differentiable=False)
def shuffle(x: TensorLike, axis: int = 0, *, key: Key = None) -> Tensor:
    """``x`` with its slices along ``axis`` in random order.

    Args:
        key: as in ``random_uniform``.

    >>> shuffle([10, 20, 30, 40], key=7).tolist()
    [20, 40, 30, 10]
    """
    sizes = manipulation.shape(x)
    _axis(axis, len(sizes))
    ordered = random_permutation(sizes[axis], device=_device_category.get_device(x), key=key)
    return indexing.take(x, ordered, axis=axis)


random_shuffle = shuffle


@op(free, differentiable=False)
def random_choice(
    x: Parameter,
    shape: Shape = (),
    replace: bool = True,
    p: Parameter = None,
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
    key: Key = None,
) -> Tensor:
    """Randomly chosen slices of ``x`` along ``axis``, or integers below ``x``.

    Args:
        shape, device, key: as in ``random_uniform``.
        replace: whether a slice can be chosen more than once.
        p: the probability of each slice, by default uniform.

    >>> random_choice(5, 3, replace=False, key=7).tolist()
    [4, 1, 3]
    >>> random_choice([10, 20, 30], (2, 2), p=[0.0, 1.0, 0.0], key=7).tolist()
    [[20, 20], [20, 20]]
    """
    if type(x) is not int:
        backend = _backend(x, p, key)
        x = backend.convert(x, None, device)
        device = backend.device_like(x) if device is None and backend is _backends.current() else device
    size = x if type(x) is int else manipulation.shape(x)[_axis(axis, len(manipulation.shape(x)))]
    lead = (shape,) if isinstance(shape, int) else tuple(shape)
    count = _math.prod(lead)
    if size <= 0 and count:
        raise ValueError(f"a must have at least 1 element, got {size}")
    if not replace and count > size:
        raise ValueError(f"shape must hold at most {size} elements for replace=False, got {count}")
    chosen = _choose(size, lead, replace, p, device, key)
    result: Tensor = chosen if type(x) is int else _take_slices(x, chosen, axis)
    return result


@op(free, differentiable=False)
def random_keep_mask(shape: Shape, rate: Parameter, *, device: DeviceLike | None = None, key: Key = None) -> Tensor:
    """Dropout mask: false with probability ``rate``, else true.

    Args:
        shape, device, key: as in ``random_uniform``.

    >>> random_keep_mask(4, 0.5, key=7).tolist()
    [True, False, False, True]
    """
    return comparison.logical_not(random_bernoulli(shape, rate, device=device, key=key))


def key(seed: int) -> Tensor:
    """Key for ``seed``, an integer from 0 to 2**64 - 1, as two uint32.

    >>> key(2**32 + 5).tolist()
    [1, 5]
    """
    return _as_tensor(_backends.current(), _threefry.words(_checked_seed(seed, "key: seed")), None)


def split(key: Key, num: int = 2) -> Tensor:
    """``num`` keys that are independent of each other and of ``key``, one per row.

    >>> split(key(7), 3).shape == (3, 2)
    True
    """
    if num < 0:
        raise ValueError(f"split: num must be >= 0, got {num}")
    backend = _backend(key)
    device = _dispatch.common_device(backend, (key,))
    words = _words(backend, key, device)
    if type(words[0]) is int:
        return _as_tensor(backend, [_threefry.child(words, _threefry.SPLITS, i) for i in range(num)], device)
    made: Tensor = backend.random.keys(*backend.random.pairs(words, _threefry.SPLITS << 32, num, device))
    return made


def fold_in(key: Key, data: int | Tensor) -> Tensor:
    """Key derived from ``key`` and an integer ``data`` from 0 to 2**62 - 1, such as the number of a step or layer.

    >>> fold_in(key(7), 1).tolist() == fold_in(key(7), 2).tolist()
    False
    """
    backend = _backend(key, data)
    device = _dispatch.common_device(backend, (key,))
    words = _words(backend, key, device)
    xp = backend.random
    value: Any = data
    if not isinstance(_dispatch.classify(type(data)), _backends.Backend):
        value = _integer(data, "fold_in: data")
    elif backend.dtype_of(data).kind not in _KINDS["integral"] or tuple(value.shape):
        raise TypeError(f"fold_in: data must be an integer, got {_describe(data)}")
    else:
        value = xp.known(data) if xp.is_host(device) else None
    if value is None:
        folded = _nth(xp.pairs(words, _threefry.FOLDS << 32, 1, device, xp.cast(data, "int64")), 0)
    else:
        folded = _child(xp, words, int(value), device)
    made: Tensor = _as_tensor(backend, folded, device) if type(folded[0]) is int else xp.keys(*folded)
    return made


def _child(xp: Any, key: _threefry.Words, number: int, device: Any) -> _threefry.Words:
    """``number`` folded into a key of integers or tensors."""
    if type(key[0]) is int:
        return _threefry.child(key, _threefry.FOLDS, number)
    return _nth(xp.pairs(key, (_threefry.FOLDS << 32) + _threefry.checked(number), 1, device), 0)


def _nth(keys: _threefry.Words, number: int) -> _threefry.Words:
    return keys[0][number], keys[1][number]


def get_state() -> dict[str, int]:
    """State of this thread's stream, which JSON can store; ``set_state`` continues from it.

    >>> state = get_state()
    >>> first = random_uniform(3).tolist()
    >>> set_state(state)
    >>> first == random_uniform(3).tolist()
    True
    """
    return _threefry.state()


def set_state(state: dict[str, int]) -> None:
    """Continue this thread's stream from a state that ``get_state`` returned."""
    _threefry.restore(**_check_state(state, ("seed", "thread", "count")))


class stream:  # noqa: N801 - reads as a noun where it is used
    """Context manager in which draws without a key use ``fold_in(key, 0)``, then ``fold_in(key, 1)``, and so on.

    The key may be a tensor that a compiler traces. Only this thread is affected; the innermost block applies.

    >>> with stream(7):
    ...     x = random_uniform(3)
    >>> x.tolist() == random_uniform(3, key=fold_in(key(7), 0)).tolist()
    True
    """

    def __init__(self, key: Key) -> None:
        self.key = key

    def __enter__(self) -> None:
        here = _threefry.here
        backend = _backend(self.key)
        device = _dispatch.common_device(backend, (self.key,))
        words = _words(backend, self.key, device)
        # Most blocks have few draws, whose keys are computed at once.
        is_known = type(words[0]) is int
        children = None if is_known else backend.random.pairs(words, _threefry.FOLDS << 32, _AHEAD, device)
        here.block = _threefry.Block(words, here.block, children)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block = _threefry.here.block
        _threefry.here.block = None if block is None else block.outer


class rows:  # noqa: N801 - reads as a noun where it is used
    """Context manager in which draws of ``count`` rows are rows ``first``, ``first + 1``, ... of a larger draw.

    A process that computes a slice of a batch so draws for each example what a single process draws for it. It holds
    for every draw whose first axis has the length ``count``: those of other shapes, permutations and choices without
    replacement are the same in all processes. Two limits follow. A draw whose first axis has that length, but does not
    count examples, is taken for one that does. And a draw that has the examples along another axis is the same in all
    processes, so it repeats from slice to slice. Draws of ``native`` are not affected.

    Args:
        first: number of the first row.
        count: number of rows.
        of: number of rows of the larger draw. If it is given, they are the examples of a batch, of which each rank of
            ``ember_ml.distributed`` has a slice, and ``BatchNorm`` uses the statistics of the whole batch.

    >>> whole = random_uniform((4, 2), key=7)
    >>> with rows(2, 2):
    ...     random_uniform((2, 2), key=7).tolist() == whole[2:].tolist()
    True
    """

    def __init__(self, first: int, count: int, of: int | None = None) -> None:
        self.rows = _threefry.Rows(first, count, of)

    def __enter__(self) -> None:
        self.outer, _threefry.here.rows = _threefry.here.rows, self.rows

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _threefry.here.rows = self.outer


class native:  # noqa: N801 - reads as an adjective where it is used
    """Context manager in which draws without a key use the engine's own generator, however that was seeded.

    Uniform and normal numbers are then the engine's own; other distributions are computed from its random bits. Results
    differ between engines, and the current stream does not advance.

    >>> with native():
    ...     random_uniform(3).shape == (3,)
    True
    """

    def __enter__(self) -> None:
        _threefry.here.native += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _threefry.here.native -= 1


class Generator:
    """Independent stream of random numbers, with every distribution as a method; thread-safe and picklable.

    Args:
        seed: an integer from 0 to 2**64 - 1, by default one from the operating system.

    >>> Generator(7).uniform(3).tolist() == Generator(7).uniform(3).tolist()
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        seed = _threefry.fresh_seed() if seed is None else _checked_seed(seed, "Generator: seed")
        self._stream = _threefry.Stream(_threefry.words(seed))

    def key(self) -> Tensor:
        """Key of the next draw, for use elsewhere."""
        return _as_tensor(_backends.current(), self._stream.next(), None)

    def get_state(self) -> dict[str, int]:
        """State of the stream, which JSON can store."""
        high, low = self._stream.key
        return {"seed": high << 32 | low, "count": self._stream.count}

    def set_state(self, state: dict[str, int]) -> None:
        """Continue from a state that ``get_state`` returned."""
        found = _check_state(state, ("seed", "count"))
        self._stream = _threefry.Stream(_threefry.words(found["seed"]), found["count"])

    def __repr__(self) -> str:
        state = self.get_state()
        return f"Generator({state['seed']}) after {state['count']} draws"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Tensor]: ...


def _integer(value: Any, what: str) -> int:
    """A Python or NumPy integer, or a zero-dimensional tensor, as a Python integer."""
    try:
        return value if type(value) is int else _operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {_describe(value)}") from None


def _checked_seed(seed: Any, what: str) -> int:
    number = _integer(seed, what)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{what} must be an integer from 0 to 2**64 - 1, got {number}")
    return number


def _bound(value: Any) -> float:
    """A number or a zero-dimensional tensor as a Python float."""
    if tuple(getattr(value, "shape", ())):
        raise TypeError(f"low and high must be numbers, got {_describe(value)}")
    return float(value)


def _within(low: Any, high: Any, least: int, beyond: int) -> Any:
    """Whether bounds are integers that fit a dtype; values of integer tensors are not checked."""
    return all(not isinstance(x, int) or least <= x <= beyond for x in (low, high)) and not any(
        isinstance(x, float) or getattr(getattr(x, "dtype", None), "kind", "i") not in "iu" for x in (low, high)
    )


def _check_state(state: Any, names: tuple[str, ...]) -> dict[str, int]:
    if not isinstance(state, dict) or set(state) != set(names) or not all(type(v) is int for v in state.values()):
        raise ValueError(f"set_state: state must hold the integers {', '.join(names)}, got {state!r}")
    return state


def _backend(*values: Any) -> _backends.Backend:
    """The engine of the tensors among the values, else the active one."""
    return _dispatch.common_backend(map(type, values))


def _words(backend: _backends.Backend, key: Key, device: Any) -> Any:
    """The two 32-bit words of a key: integers if their values are available on the host, else tensors."""
    if type(key) in (int, list, tuple):
        return _threefry.words(key)
    if getattr(key, "shape", None) is None or getattr(key, "dtype", None) is None:
        raise TypeError(f"key must be an integer, two of them, or a tensor, got {_describe(key)}")
    if not isinstance(_dispatch.classify(type(key)), _backends.Backend):
        # A NumPy array is read directly, whichever engine is active.
        backend = _backends.load("numpy")
        key = backend.convert(key, None, None)
        if not key.shape and backend.dtype_of(key).kind in _KINDS["integral"]:
            return _threefry.words(int(key))
    if backend.dtype_of(key).kind not in _KINDS["integral"]:
        raise ValueError(f"key must hold integers, got {_describe(key)}")
    if tuple(key.shape) != (2,):
        raise ValueError(f"key must have shape [2], got {_describe(key)}")
    xp = backend.random
    values = xp.known(key) if xp.is_host(device) or backend.is_host else None
    return xp.pair_of(key) if values is None else _threefry.words(values.tolist())


def _as_tensor(backend: _backends.Backend, words: Any, device: Any) -> Tensor:
    made: Tensor = backend.random.tensor(words, "uint32", backend.device if device is None else device)
    return made


def _choose(size: int, shape: tuple[int, ...], replace: bool, p: Parameter, device: Any, key: Key) -> Any:
    """Chosen integers below ``size``."""
    count = _math.prod(shape)
    if p is None:
        if replace:
            return random_randint(shape, 0, max(size, 1), device=device, key=key)
        ordered = random_permutation(size, device=device, key=key)
        return manipulation.reshape(ordered[:count], shape)
    draw = _Draw(shape if replace else size, device, key, p)
    (p,) = draw.parameters
    lengths = tuple(getattr(p, "shape", ()))
    if lengths != (size,):
        raise ValueError(f"p must have one probability for each of {size}, got shape {list(lengths)}")
    # Probabilities in 16-bit floats sum to 1 less exactly.
    slack = {"float16": 1e-3, "bfloat16": 1e-2}.get(_as_dtype(p.dtype).name, 1e-4)
    draw.check("p must be probabilities that sum to 1", lambda p: _are_probabilities(p, slack), p=p)
    if replace:
        return draw.made(_sampling.choices, _All(p, (1, size)), draw.wide(), dtype="int64", whole=True)
    draw.check(f"p must be > 0 for at least {count} elements", lambda p: (p > 0).sum() >= count, p=p)
    ordered = draw.made(_sampling.ranks, _All(p), draw.wide(), dtype="int64", whole=True, has_rows=False)
    return manipulation.reshape(ordered[:count], shape)


def _take_slices(x: Any, chosen: Any, axis: int) -> Any:
    """Slices of ``x``, with the axes of ``chosen`` replacing ``axis``."""
    sizes = manipulation.shape(x)
    axis %= len(sizes)
    flat = indexing.take(x, manipulation.reshape(chosen, (-1,)), axis=axis)
    return manipulation.reshape(flat, (*sizes[:axis], *manipulation.shape(chosen), *sizes[axis + 1 :]))


def _name(dtype: Any, default: str) -> str:
    """Name of ``dtype``, or of the default."""
    return default if dtype is None else _as_dtype(dtype).name


def _is_scale(scale: Any) -> Any:
    return scale >= 0


def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _is_count(n: Any) -> Any:
    return (n >= 0) & _is_at_most(n, 2**53) & (n % 1 == 0)


def _is_at_most(value: Any, most: int) -> Any:
    # NumPy 2.4 warns about a comparison of float16 with a number beyond its range.
    return (value.astype("float64") if hasattr(value, "astype") else value) <= most


def _is_positive(**named: Any) -> Any:
    (value,) = named.values()
    return (value > 0) & (value < _math.inf)


def _are_logits(logits: Any) -> Any:
    largest = logits.max(-1) if logits.size else logits
    return (largest < _math.inf) & (largest > -_math.inf)


def _are_probabilities(p: Any, slack: float) -> Any:
    return (p >= 0).all() & (abs(p.astype("float64").sum() - 1) < slack)


def _float_of(dtype: Any, parameters: Sequence[Parameter]) -> str:
    """Name of a floating dtype: the requested one, else that of the parameters, else the default."""
    kind = None if dtype is None else _as_dtype(dtype)
    for parameter in parameters if kind is None else ():
        own = _as_dtype(parameter.dtype) if hasattr(parameter, "dtype") else None
        if own is not None and own.kind in _KINDS["floating"]:
            kind = own if kind is None else _promote(kind, own)
    kind = _default_float() if kind is None else kind
    if kind.kind != "real floating":
        raise TypeError(f"dtype must be real floating, got {kind.name}")
    return kind.name


_DOUBLE = "float64"


class _Each:
    """A parameter with one value per element."""

    def __init__(self, value: Parameter) -> None:
        self.value = value


class _All:
    """A parameter that each element needs as a whole."""

    def __init__(self, value: Any, shape: tuple[int, ...] | None = None) -> None:
        self.value = value
        self.shape = tuple(value.shape) if shape is None else shape


class _Draw:
    """One draw: its engine, device, key and shape."""

    def __init__(self, shape: Shape, device: Any, key: Key, *parameters: Parameter) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if self.shape and min(self.shape) < 0:
            raise ValueError(f"shape must have lengths >= 0, got {self.shape}")
        self.count = _math.prod(self.shape)
        self.backend = _backend(key, *parameters)
        self.xp = self.backend.random
        # Dispatch looks for the device among tensors, of which the parameters and the key are none to it.
        if device is None or self.backend is not _backends.current():
            device = _dispatch.common_device(self.backend, (key, *parameters))
        self.device = device
        self.parameters = [p if type(p) in _NUMBERS else self.backend.convert(p, None, self.device) for p in parameters]
        self.key = self._resolved(key)

    def _resolved(self, key: Key) -> Any:
        """Words of the key, or of the stream's next key; ``None`` if the engine's own generator is used."""
        if key is not None:
            return _words(self.backend, key, self.device)
        here = _threefry.here
        block = here.block
        if block is not None:
            number = block.count
            block.count += 1
            if block.children is not None and number < _AHEAD:
                return _nth(block.children, number)
            return _child(self.xp, block.key, number, self.device)
        return None if here.native else _threefry.draw()

    def made(
        self,
        sampler: Callable[..., Any],
        *parameters: Any,
        dtype: str,
        whole: bool = False,
        has_rows: bool = True,
    ) -> Tensor:
        """Result of a sampler, computed by NumPy if all values are available on the host, else by the engine.

        Args:
            whole: compute all elements at once.
            has_rows: whether the elements along the first axis are independent of each other, as ``rows`` requires.
        """
        start = self._start() if has_rows else 0
        lacks = not self.xp.has_double(self.device) and any(type(p) is str and p == _DOUBLE for p in parameters)
        key = self._known_key() if lacks else self.key
        if key is not None and isinstance(key[0], int) and (lacks or self.xp.is_host(self.device)):
            host = _backends.load("numpy").random
            hosted = [p if type(p) in _KNOWN else self._on_host(host, p) for p in parameters]
            if not any(p is None for p in hosted):
                make = host.at_once if whole else host.in_chunks
                flat = host.cast(make(sampler, key, self.count, hosted, start), dtype)
                adopted: Tensor = self.xp.adopt(flat.reshape(self.shape), self.device)
                return adopted
        source = _sampling.Source(self.xp, self.key, start, self.count, self.device)
        flat = sampler(source, *[self._on_engine(p) for p in parameters])
        made: Tensor = self.xp.cast(flat, dtype).reshape(self.shape)
        return made

    def _start(self) -> int:
        """Number of the first element: 0, except in a block of ``rows``."""
        rows = _threefry.here.rows
        if rows is None or not self.shape or self.shape[0] != rows.length:
            return 0
        return rows.first * _math.prod(self.shape[1:])

    def _known_key(self) -> Any:
        """Words of the key as integers where their values are available."""
        if self.key is None or isinstance(self.key[0], int):
            return self.key
        words = [self.seen(word) for word in self.key]
        return self.key if any(word is None for word in words) else tuple(int(word) for word in words)

    def _on_host(self, host: Any, parameter: Any) -> Any:
        """A parameter in host memory; ``None`` if its value is not available there."""
        value = parameter.value if isinstance(parameter, (_Each, _All)) else parameter
        if hasattr(value, "shape"):
            value = self.seen(value)
            if value is None:
                return None
        if isinstance(parameter, _All):
            return host.cast(value, "float64").reshape(parameter.shape)
        if isinstance(parameter, _Each):
            return host.spread(host.tensor(value, "float64", None), self.shape)
        return host.spread(value, self.shape) if hasattr(value, "shape") else value

    def _on_engine(self, parameter: Any) -> Any:
        """A parameter as the engine requires it."""
        if isinstance(parameter, _All):
            return self.xp.cast(parameter.value, self.widest()).reshape(parameter.shape)
        if isinstance(parameter, _Each):
            return self.xp.spread(self.tensor(parameter.value, self.widest()), self.shape)
        if type(parameter) is str and parameter == _DOUBLE:
            return self.widest()
        return self.xp.spread(parameter, self.shape) if hasattr(parameter, "shape") else parameter

    def placed(
        self, sampler: Callable[..., Any], location: Parameter, scale: Parameter, dtype: Any, *parameters: Any
    ) -> Tensor:
        """Samples of a standard distribution, shifted and scaled; location and scale may be tensors with gradients."""
        kind = self.floating(dtype)
        work = "float64" if kind == "float64" else "float32"
        if self.are_numbers(location, scale):
            return self.made(_sampling.standard, sampler, location, scale, work, *parameters, dtype=kind)
        standard = self.made(sampler, work, *parameters, dtype=work)
        moved = math.add(math.multiply(standard, self.tensor(scale, work)), self.tensor(location, work))
        return dtypes.cast(self.fitting(moved), kind)

    def between(self, values: Any, low: Parameter, high: Parameter, kind: str) -> Tensor:
        """Numbers in [0, 1) mapped to [low, high), of which one or both are tensors."""
        wide = self.widest() if self.wide(kind) == _DOUBLE else "float32"
        low, high = self.tensor(low, kind), self.tensor(high, kind)
        span = math.subtract(dtypes.cast(high, wide), dtypes.cast(low, wide))
        mapped = math.add(math.multiply(dtypes.cast(values, wide), span), dtypes.cast(low, wide))
        made = self.fitting(dtypes.cast(mapped, kind))
        # Engines do not differentiate nextafter, and this branch is hardly ever taken.
        top = math.nextafter(control.stop_gradient(high), control.stop_gradient(low))
        return comparison.where(comparison.less(made, high), made, top)

    def fitting(self, result: Tensor) -> Tensor:
        """``result``, checked to have the requested shape, which parameters may have broadcast."""
        if tuple(result.shape) != self.shape:
            raise ValueError(f"parameters must broadcast to shape {list(self.shape)}, got {list(result.shape)}")
        return result

    def tensor(self, value: Parameter, dtype: str) -> Any:
        """A parameter as a tensor of the engine."""
        if type(value) in _NUMBERS:
            return self.backend.convert(value, self.backend.dtypes[dtype], self.device)
        return dtypes.cast(value, dtype)

    def wide(self, kind: str = "float64") -> str:
        """Dtype in which rounding errors of ``kind`` vanish; if the device lacks it, NumPy computes."""
        return _DOUBLE if kind in ("float32", _DOUBLE) else "float32"

    def widest(self) -> str:
        """Widest floating dtype of the device."""
        return _DOUBLE if self.xp.has_double(self.device) else "float32"

    def are_numbers(self, *parameters: Parameter) -> bool:
        return all(type(p) in _NUMBERS for p in parameters)

    def floating(self, dtype: Any) -> str:
        """Floating dtype of the result."""
        return _float_of(dtype, self.parameters)

    def seen(self, x: Any) -> Any:
        """Values of a tensor in host memory; ``None`` where a compiler traces or checks are disabled."""
        return None if self.xp.is_traced() or not _is_checked() else self.xp.known(x)

    def check(self, rule: str, holds: Callable[..., Any], **parameters: Parameter) -> None:
        """Raise with the values unless ``rule`` holds; parameters whose values are not available are not checked."""
        values = {}
        for name, value in parameters.items():
            if hasattr(value, "shape"):
                value = self.seen(value)
                if value is None:
                    return
                if value.dtype.kind == "c":
                    raise TypeError(f"{name} must be real, got {_describe(value)}")
            values[name] = value
        sound = holds(**values)
        if not (sound if type(sound) is bool else sound.all()):
            shown = ", ".join(f"{name}={value}" if len(values) > 1 else f"{value}" for name, value in values.items())
            raise ValueError(f"{rule}, got {shown}")


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A distribution as a method that takes its key from the generator."""

    def method(self: Generator, *args: Any, **kwargs: Any) -> Any:
        return function(*args, key=self._stream.next(), **kwargs)

    method.__name__ = method.__qualname__ = function.__name__.removeprefix("random_")
    method.__doc__ = function.__doc__
    return method


# The same functions without the prefix; those that take a key become methods of ``Generator``.
bits = random_bits
uniform = random_uniform
normal = random_normal
bernoulli = random_bernoulli
binomial = random_binomial
gamma = random_gamma
beta = random_beta
exponential = random_exponential
poisson = random_poisson
laplace = random_laplace
gumbel = random_gumbel
categorical = random_categorical
multivariate_normal = random_multivariate_normal
dirichlet = random_dirichlet
randint = random_randint
permutation = random_permutation
choice = random_choice
keep_mask = random_keep_mask

# Names exported to ``ember_ml.ops``: those with the prefix, and ``shuffle`` and other names that need none.
__all__ = ["random_shuffle"]
for _name_of, _value in list(vars().items()):
    if hasattr(_value, "__operation__") and _value.__module__ == __name__ and _name_of == _value.__name__:
        __all__ += [_name_of]
        if any(_parameter.name == "key" for _parameter in _value.__operation__.parameters):
            setattr(Generator, _name_of.removeprefix("random_"), _method(_value))
