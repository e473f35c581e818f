"""Initializers: values of the weights of a layer before training.

An initializer is a function ``(shape, dtype=None, key=None)``. Without a key, it uses the random stream, so a seed
gives the same weights on every engine. The last two axes of a shape are inputs and outputs; the axes before them are
the window of a kernel. Further options are keywords: ``functools.partial(normal, stddev=0.02)`` is an initializer too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ember_ml import ops
from ember_ml.dtypes import written
from ember_ml.extend import current_backend
from ember_ml.ops import random
from ember_ml.spellings import accept, unknown_name, value_hint, value_named
from ember_ml.types import DTypeLike, Shape, Tensor

Initializer: TypeAlias = Callable[..., Any]

# Where parameters are left without values, the zeros that stand for them, by backend and dtype; elsewhere None.
_placeholders: ContextVar[dict[tuple[str, Any], Any] | None] = ContextVar("placeholders", default=None)

# Standard deviation of the standard normal distribution truncated to the interval from -2 to 2.
_TRUNCATED = 0.87962566103423978


def zeros(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Zeros.

    >>> zeros((2,)).tolist()
    [0.0, 0.0]
    """
    return ops.zeros(shape, dtype=dtype)


def ones(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Ones.

    >>> ones((2,)).tolist()
    [1.0, 1.0]
    """
    return ops.ones(shape, dtype=dtype)


def constant(shape: Shape, dtype: DTypeLike | None = None, key: object = None, *, value: float = 0.0) -> Tensor:
    """Tensor filled with ``value``.

    >>> constant((2,), value=0.5).tolist()
    [0.5, 0.5]
    """
    return ops.full(shape, float(value), dtype=dtype)


def uniform(
    shape: Shape, dtype: DTypeLike | None = None, key: object = None, *, low: float = -0.05, high: float = 0.05
) -> Tensor:
    """Uniform random numbers between ``low`` and ``high``.

    >>> bool(ops.all(ops.abs(uniform((100,))) <= 0.05))
    True
    """
    return random.uniform(shape, low, high, dtype=dtype, key=key)


def normal(
    shape: Shape, dtype: DTypeLike | None = None, key: object = None, *, mean: float = 0.0, stddev: float = 0.05
) -> Tensor:
    """Normal random numbers with the given mean and standard deviation.

    >>> abs(float(ops.std(normal((1000,), key=1, stddev=2.0))) - 2.0) < 0.2
    True
    """
    return random.normal(shape, mean, stddev, dtype=dtype, key=key)


def standard_normal(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Normal random numbers with mean 0 and variance 1.

    >>> tuple(standard_normal((3, 4)).shape)
    (3, 4)
    """
    return normal(shape, dtype, key, stddev=1.0)


def truncated_normal(
    shape: Shape, dtype: DTypeLike | None = None, key: object = None, *, mean: float = 0.0, stddev: float = 0.05
) -> Tensor:
    """Normal random numbers, truncated at two standard deviations from the mean.

    >>> bool(ops.all(ops.abs(truncated_normal((1000,), stddev=1.0)) <= 2.0))
    True
    """
    return random.truncated_normal(shape, mean, stddev, dtype=dtype, key=key)


def variance_scaling(
    shape: Shape,
    dtype: DTypeLike | None = None,
    key: object = None,
    *,
    scale: float = 1.0,
    mode: str = "fan_in",
    distribution: str = "truncated_normal",
) -> Tensor:
    """Random numbers with mean 0 and variance ``scale / n``, where ``n`` is the number of connections of a unit.

    Args:
        scale: numerator of the variance.
        mode: connections to count: ``"fan_in"`` (inputs), ``"fan_out"`` (outputs) or ``"fan_avg"`` (mean of both).
        distribution: ``"truncated_normal"``, ``"normal"`` or ``"uniform"``.

    >>> abs(float(ops.std(variance_scaling((400, 10), key=1))) - 0.05) < 0.005
    True
    """
    fan_in, fan_out = fans(shape)
    counts = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
    if mode not in counts:
        raise ValueError(f"variance_scaling: mode must be one of {', '.join(map(repr, counts))}, got {mode!r}")
    stddev = math.sqrt(scale / max(counts[mode], 1.0))
    if distribution == "uniform":
        limit = stddev * math.sqrt(3)
        return uniform(shape, dtype, key, low=-limit, high=limit)
    if distribution == "normal":
        return normal(shape, dtype, key, stddev=stddev)
    if distribution == "truncated_normal":
        return truncated_normal(shape, dtype, key, stddev=stddev / _TRUNCATED)
    raise ValueError(
        f"variance_scaling: distribution must be 'truncated_normal', 'normal' or 'uniform', got {distribution!r}"
    )


def glorot_uniform(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Uniform random numbers with variance ``2 / (fan_in + fan_out)`` (Glorot and Bengio, 2010).

    >>> bool(ops.all(ops.abs(glorot_uniform((2, 4))) <= 1.0))
    True
    """
    return variance_scaling(shape, dtype, key, mode="fan_avg", distribution="uniform")


def glorot_normal(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Truncated normal random numbers with variance ``2 / (fan_in + fan_out)`` (Glorot and Bengio, 2010).

    >>> tuple(glorot_normal((2, 4)).shape)
    (2, 4)
    """
    return variance_scaling(shape, dtype, key, mode="fan_avg")


def he_uniform(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Uniform random numbers with variance ``2 / fan_in``, for layers before a ReLU (He et al., 2015).

    >>> bool(ops.all(ops.abs(he_uniform((6, 4))) <= 1.0))
    True
    """
    return variance_scaling(shape, dtype, key, scale=2.0, distribution="uniform")


def he_normal(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Truncated normal random numbers with variance ``2 / fan_in``, for layers before a ReLU (He et al., 2015).

    >>> tuple(he_normal((3, 3, 2, 4)).shape)
    (3, 3, 2, 4)
    """
    return variance_scaling(shape, dtype, key, scale=2.0)


def lecun_uniform(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Uniform random numbers with variance ``1 / fan_in`` (LeCun et al., 1998).

    >>> bool(ops.all(ops.abs(lecun_uniform((3, 4))) <= 1.0))
    True
    """
    return variance_scaling(shape, dtype, key, distribution="uniform")


def lecun_normal(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Truncated normal random numbers with variance ``1 / fan_in`` (LeCun et al., 1998).

    >>> tuple(lecun_normal((3, 4)).shape)
    (3, 4)
    """
    return variance_scaling(shape, dtype, key)


def fan_in_uniform(shape: Shape, dtype: DTypeLike | None = None, key: object = None) -> Tensor:
    """Uniform random numbers between ``-1 / sqrt(fan_in)`` and ``1 / sqrt(fan_in)``.

    >>> bool(ops.all(ops.abs(fan_in_uniform((4, 2))) <= 0.5))
    True
    """
    return variance_scaling(shape, dtype, key, scale=1 / 3, distribution="uniform")


def orthogonal(shape: Shape, dtype: DTypeLike | None = None, key: object = None, *, gain: float = 1.0) -> Tensor:
    """Random matrix with orthonormal columns, or rows if there are fewer, times ``gain``.

    All axes before the last are flattened into rows.

    >>> q = orthogonal((3, 3))
    >>> bool(ops.allclose(ops.matmul(q, ops.matrix_transpose(q)), ops.eye(3), atol=1e-5))
    True
    """
    shape = _shape(shape)
    if len(shape) < 2:
        raise ValueError(f"orthogonal: shape must have at least 2 axes, got {list(shape)}")
    rows, columns = math.prod(shape[:-1]), shape[-1]
    # float16 and bfloat16 are too imprecise to orthogonalize, so compute in float32.
    drawn = random.normal((max(rows, columns), min(rows, columns)), dtype=_drawn_dtype(dtype), key=key)
    matrix = ops.multiply(ops.orthogonalize(drawn), gain)
    matrix = ops.matrix_transpose(matrix) if rows < columns else matrix
    matrix = ops.reshape(matrix, shape)
    return matrix if dtype is None else ops.cast(matrix, dtype)


def identity(shape: Shape, dtype: DTypeLike | None = None, key: object = None, *, gain: float = 1.0) -> Tensor:
    """Matrix with ``gain`` on the diagonal and zero elsewhere.

    >>> identity((2, 3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    shape = _shape(shape)
    if len(shape) != 2:
        raise ValueError(f"identity: shape must have 2 axes, got {list(shape)}")
    return ops.multiply(ops.eye(*shape, dtype=dtype), gain)


def sparse(
    shape: Shape, dtype: DTypeLike | None = None, key: object = None, *, sparsity: float = 0.9, stddev: float = 0.01
) -> Tensor:
    """Normal random numbers with mean 0, each of which is set to zero with probability ``sparsity``.

    >>> float(ops.mean(ops.equal(sparse((10, 100), sparsity=1.0), 0)))
    1.0
    """
    values, kept = (None, None) if key is None else random.split(key)
    drawn = normal(shape, dtype, values, stddev=stddev)
    return ops.where(random.bernoulli(shape, 1 - sparsity, key=kept), drawn, 0)


def get_initializer(value: str | float | Initializer) -> Initializer:
    """Initializer for ``value``: a name, a number (for a constant) or a function, which is returned as it is.

    >>> get_initializer("ones")((2,)).tolist(), get_initializer(0.5)((2,)).tolist()
    ([1.0, 1.0], [0.5, 0.5])
    """
    if isinstance(value, (int, float)):
        return partial(constant, value=value)
    if callable(value):
        return value
    if not isinstance(value, str):
        raise TypeError(f"get_initializer: value must be a name, a function or a number, got {written(value)}")
    name = value_named(value, INITIALIZERS)
    if name is None:
        hint = value_hint(value, INITIALIZERS)
        raise ValueError(f"get_initializer: value must be one of {', '.join(INITIALIZERS)}, got {value!r}{hint}")
    return INITIALIZERS[name]


def initialized(
    value: str | float | Initializer, shape: Shape, dtype: DTypeLike | None = None, name: str = "initialized: value"
) -> Tensor:
    """Result of ``get_initializer(value)`` for a shape, which the result must have.

    Args:
        name: the layer and the option, for messages.

    >>> initialized("ones", (2, 1)).tolist()
    [[1.0], [1.0]]
    """
    try:
        initializer = get_initializer(value)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("get_initializer: value", name, 1)) from None
    placeholders = _placeholders.get()
    if placeholders is not None:
        kind = current_backend().name, dtype
        if kind not in placeholders:
            placeholders[kind] = ops.zeros((), dtype=dtype)
        return ops.broadcast_to(placeholders[kind], _shape(shape))
    made: Any = initializer(shape, dtype)
    if tuple(ops.shape(made)) != _shape(shape):
        raise ValueError(f"{name} must return shape {list(_shape(shape))}, got {list(ops.shape(made))}")
    return made  # type: ignore[no-any-return]


@contextmanager
def skip_initialization() -> Iterator[None]:
    """Leave the parameters of layers that are created in this block without values, for models that are loaded next.

    They are zeros that, on engines with views, take no memory.

    >>> from ember_ml.nn.modules import Linear
    >>> with skip_initialization():
    ...     Linear(2, 1).weight.tolist()
    [[0.0], [0.0]]
    """
    before = _placeholders.set({})
    try:
        yield
    finally:
        _placeholders.reset(before)


def fans(shape: Shape) -> tuple[int, int]:
    """Numbers of inputs and outputs of a unit: fan-in and fan-out.

    >>> fans((3, 3, 2, 8))
    (18, 72)
    """
    shape = _shape(shape)
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    window = math.prod(shape[:-2])
    return window * shape[-2], window * shape[-1]


def _shape(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _drawn_dtype(dtype: Any) -> Any:
    """The dtype in which the matrix of ``orthogonal`` is factored: engines factor no halves."""
    return "float32" if dtype is not None and ops.to_dtype_str(dtype) in ("float16", "bfloat16") else dtype


INITIALIZERS: dict[str, Initializer] = {
    name: accept(value)
    for name, value in list(vars().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and "key" in value.__code__.co_varnames
}
globals().update(INITIALIZERS)


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> Any:
        raise unknown_name(__name__, name, INITIALIZERS)
