"""Activation functions."""

from __future__ import annotations

import math as _math
from collections.abc import Callable as _Callable
from typing import Any

from ember_ml.dispatch import op
from ember_ml.dtypes import floating
from ember_ml.ops import comparison, control, creation, device, indexing, manipulation, math, stats
from ember_ml.ops.math import tanh as tanh
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.types import Axis, Tensor, TensorLike


@op(floating, kinds="real")
def relu(x: TensorLike, /) -> Tensor:
    """``max(x, 0)``.

    >>> relu([-2.0, 0.0, 3.0]).tolist()
    [0.0, 0.0, 3.0]
    """
    return math.maximum(x, 0)


@op(floating, kinds="real")
def relu6(x: TensorLike, /) -> Tensor:
    """``x`` clipped to the range from 0 to 6.

    >>> relu6([-2.0, 3.0, 8.0]).tolist()
    [0.0, 3.0, 6.0]
    """
    return math.clip(x, 0, 6)


@op(floating, kinds="real")
def leaky_relu(x: TensorLike, /, negative_slope: float = 0.01) -> Tensor:
    """``x`` where it is positive, else ``negative_slope * x``.

    >>> leaky_relu([-2.0, 3.0], negative_slope=0.25).tolist()
    [-0.5, 3.0]
    """
    return comparison.where(comparison.greater(x, 0), x, math.multiply(x, negative_slope))


@op(floating, kinds="real")
def prelu(x: TensorLike, weight: TensorLike, /) -> Tensor:
    """``x`` where it is positive, else ``weight * x``, with broadcasting.

    A leaky ReLU whose negative slope is learned.

    >>> prelu([[-2.0, 3.0], [-4.0, -1.0]], [0.5, 0.25]).tolist()
    [[-1.0, 3.0], [-2.0, -0.25]]
    """
    return comparison.where(comparison.greater(x, 0), x, math.multiply(x, weight))


@op(floating, kinds="real")
def elu(x: TensorLike, /, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    >>> elu([float("-inf"), 0.0, 2.0], alpha=3.0).tolist()
    [-3.0, 0.0, 2.0]
    """
    return math._in_single(_elu, x, slope=1.0, alpha=alpha, scale=1.0)


def _elu(x: Any, slope: float, alpha: float, scale: float) -> Tensor:
    """``slope * x`` where it is positive, else ``alpha * (exp(scale * x) - 1)``."""
    positive = x > 0
    # Any number will do in place of the positive ones but 0: JAX 0.10 makes a minimum of that, which drops signs of 0.
    below: Any = math.expm1(comparison.where(positive, -1, x) * scale)
    return comparison.where(positive, x * slope, below * alpha)


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@op(floating, kinds="real")
def selu(x: TensorLike, /) -> Tensor:
    """``scale * elu(x, alpha)``, with the constants that keep mean 0 and variance 1 from layer to layer.

    >>> f"{float(selu(1.0)):.4f}", f"{float(selu(-100.0)):.4f}"
    ('1.0507', '-1.7581')
    """
    return math._in_single(_elu, x, slope=_SELU_SCALE, alpha=_SELU_SCALE * _SELU_ALPHA, scale=1.0)


@op(floating, kinds="real")
def celu(x: TensorLike, /, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Unlike ``elu``, its derivative at zero is 1 for every ``alpha``.

    >>> celu([float("-inf"), 0.0, 2.0], alpha=3.0).tolist()
    [-3.0, 0.0, 2.0]
    """
    if alpha == 0:
        raise ValueError("alpha must not be 0, got 0")
    return math._in_single(_elu, x, slope=1.0, alpha=alpha, scale=1 / alpha)


@op(floating, kinds="real")
def gelu(x: TensorLike, /, approximate: bool = False) -> Tensor:
    """``x * P(z < x)`` for a standard normal ``z``.

    Args:
        approximate: compute ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`` instead, which differs by
            less than 0.001.

    >>> f"{float(gelu(1.0)):.4f}", f"{float(gelu(1.0, approximate=True)):.4f}"
    ('0.8413', '0.8412')
    """
    return math._in_single(_gelu_tanh if approximate else _gelu, x)


def _gelu(x: Any) -> Tensor:
    return math.multiply(x * 0.5, 1 + math.erf(x * _math.sqrt(0.5)))


def _gelu_tanh(x: Any) -> Tensor:
    inner = (x + x * x * x * 0.044715) * _math.sqrt(2 / _math.pi)
    return math.multiply(x * 0.5, 1 + math.tanh(inner))


@op(floating, kinds="real")
def silu(x: TensorLike, /) -> Tensor:
    """``x * sigmoid(x)``.

    >>> f"{float(silu(1.0)):.4f}"
    '0.7311'
    """
    return math._in_single(_silu, x)


def _silu(x: Any) -> Tensor:
    return math.multiply(x, _sigmoid(x))


swish = silu


@op(floating, kinds="real")
def mish(x: TensorLike, /) -> Tensor:
    """``x * tanh(softplus(x))``.

    >>> f"{float(mish(1.0)):.4f}"
    '0.8651'
    """
    return math._in_single(_mish, x)


def _mish(x: Any) -> Tensor:
    return math.multiply(x, math.tanh(_softplus(x)))


@op(floating, kinds="real")
def sigmoid(x: TensorLike, /) -> Tensor:
    """``1 / (1 + exp(-x))``, between 0 and 1.

    >>> sigmoid([float("-inf"), 0.0, 1e4]).tolist()
    [0.0, 0.5, 1.0]
    """
    return math._in_single(_sigmoid, x)


def _sigmoid(x: Any) -> Tensor:
    # Both exponents are <= 0, so neither exponential overflows.
    positive = x > 0
    below: Any = math.exp(comparison.where(positive, 0, x))
    above: Any = math.exp(comparison.where(positive, -x, 0))
    return math.divide(below, below + above)


@op(floating, kinds="real")
def hard_sigmoid(x: TensorLike, /) -> Tensor:
    """``relu6(x + 3) / 6``: a piecewise linear approximation of the sigmoid.

    >>> hard_sigmoid([-4.0, 0.0, 1.5, 4.0]).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """
    return math._in_single(_hard_sigmoid, x)


def _hard_sigmoid(x: Any) -> Tensor:
    return math.divide(math.clip(x + 3, 0, 6), 6)


@op(floating, kinds="real")
def hard_silu(x: TensorLike, /) -> Tensor:
    """``x * hard_sigmoid(x)``.

    >>> hard_silu([0.0, 1.5, 3.0, 4.0]).tolist()
    [0.0, 1.125, 3.0, 4.0]
    """
    return math._in_single(_hard_silu, x)


def _hard_silu(x: Any) -> Tensor:
    return math.multiply(x, _hard_sigmoid(x))


hard_swish = hard_silu


@op(floating, kinds="real")
def hard_tanh(x: TensorLike, /, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """``x`` clipped to the range from ``min_val`` to ``max_val``.

    >>> hard_tanh([-2.0, 0.5, 3.0]).tolist()
    [-1.0, 0.5, 1.0]
    """
    if min_val > max_val:
        raise ValueError(f"min_val must be <= max_val, got min_val={min_val}, max_val={max_val}")
    return math.clip(x, min_val, max_val)


@op(floating, kinds="real")
def lecun_tanh(x: TensorLike, /) -> Tensor:
    """``1.7159 * tanh(2 * x / 3)``, which is close to ``x`` at -1, 0 and 1.

    >>> f"{float(lecun_tanh(1.0)):.4f}"
    '1.0000'
    """
    return math._in_single(_lecun_tanh, x)


def _lecun_tanh(x: Any) -> Tensor:
    return math.multiply(math.tanh(x * (2 / 3)), 1.7159)


@op(floating, kinds="real")
def tanh_shrink(x: TensorLike, /) -> Tensor:
    """``x - tanh(x)``.

    >>> tanh_shrink([0.0, 100.0]).tolist()
    [0.0, 99.0]
    """
    return math._in_single(_tanh_shrink, x)


def _tanh_shrink(x: Any) -> Tensor:
    return math.subtract(x, math.tanh(x))


@op(floating, kinds="real")
def soft_shrink(x: TensorLike, /, threshold: float = 0.5) -> Tensor:
    """``x`` moved towards zero by ``threshold``, or zero where ``|x| <= threshold``.

    >>> soft_shrink([-2.0, 0.25, 1.0]).tolist()
    [-1.5, 0.0, 0.5]
    """
    if threshold < 0:
        raise ValueError(f"threshold must be >= 0, got {threshold}")
    inside = comparison.less_equal(math.abs(x), threshold)
    return comparison.where(inside, 0, math.subtract(x, math.clip(x, -threshold, threshold)))


@op(floating, kinds="real")
def hard_shrink(x: TensorLike, /, threshold: float = 0.5) -> Tensor:
    """``x``, or zero where ``|x| <= threshold``.

    >>> hard_shrink([-2.0, 0.25, 0.5]).tolist()
    [-2.0, 0.0, 0.0]
    """
    return comparison.where(comparison.less_equal(math.abs(x), threshold), 0, x)


@op(floating, kinds="real")
def softplus(x: TensorLike, /, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``: a smooth ReLU.

    Args:
        beta: how sharp the corner is; the larger, the closer to ``relu``.
        threshold: where ``beta * x`` is above this, the result is ``x`` itself.

    >>> softplus([-1e4, 1e4]).tolist(), f"{float(softplus(0.0)):.4f}"
    ([0.0, 10000.0], '0.6931')
    """
    if beta == 0:
        raise ValueError("beta must not be 0, got 0")
    return math._in_single(_softplus, x, beta=beta, threshold=threshold)


# Above this, softplus(x) == x in every dtype; far above it, exp overflows.
_STRAIGHT = 40.0


def _softplus(x: Any, beta: float = 1.0, threshold: float = _STRAIGHT) -> Tensor:
    threshold = min(threshold, _STRAIGHT)
    scaled = x * beta
    straight = scaled > threshold
    curve: Any = math.log1p(math.exp(comparison.where(straight, threshold, scaled)))
    return comparison.where(straight, x, curve / beta)


@op(floating, kinds="real")
def softsign(x: TensorLike, /) -> Tensor:
    """``x / (1 + abs(x))``.

    >>> softsign([-1.0, 0.0, 3.0]).tolist()
    [-0.5, 0.0, 0.75]
    """
    return math._in_single(_softsign, x)


def _softsign(x: Any) -> Tensor:
    return math.divide(x, 1 + math.abs(x))


@op(floating, kinds="real")
def squareplus(x: TensorLike, /, b: float = 4.0) -> Tensor:
    """``(x + sqrt(x ** 2 + b)) / 2``: a smooth ReLU without exponentials.

    >>> squareplus([-1.5, 0.0, 1.5]).tolist()
    [0.5, 1.0, 2.0]
    """
    if b < 0:
        raise ValueError(f"b must be >= 0, got {b}")
    return math._in_single(_squareplus, x, b=b)


def _squareplus(x: Any, b: float) -> Tensor:
    # Above the limit, b is lost in the square, which may overflow. For negative x, the sum would cancel.
    limit = 1e9 * _math.sqrt(b + 1)
    size: Any = math.abs(x)
    root: Any = comparison.where(size > limit, size, math.sqrt(math.square(math.minimum(size, limit)) + b))
    below = math.minimum(x, 0)
    return comparison.where(x < 0, (b / 2) / comparison.where(x < 0, root - below, 1), (x + root) / 2)


@op(floating, kinds="real")
def softmax(x: TensorLike, /, axis: Axis = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``axis``: positive, with sum 1.

    Args:
        axis: one axis, several axes that are normalized together, or ``None`` for all.

    >>> softmax([[1e4, 1e4], [float("-inf"), 0.0]]).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    return math._in_single(_softmax, x, axis=axis)


def _softmax(x: Any, axis: Axis) -> Tensor:
    powers: Any = math.exp(_subtract_max(x, axis))
    return math.divide(powers, stats.sum(powers, axis=axis, keepdims=True))


def _subtract_max(x: Any, axis: Axis) -> Any:
    """``x - max(x)`` along ``axis``, whose exponential cannot overflow.

    What is computed of it does not depend on the maximum, so no gradient flows through that.
    """
    _axes(axis, x.ndim)
    return x if 0 in x.shape else x - control.stop_gradient(stats.max(x, axis=axis, keepdims=True))


@op(floating, kinds="real")
def log_softmax(x: TensorLike, /, axis: Axis = -1) -> Tensor:
    """Logarithm of ``softmax(x)``, accurate even where the softmax underflows to zero.

    Args:
        axis: one axis, several axes that are normalized together, or ``None`` for all.

    >>> log_softmax([0.0, -1e4]).tolist()
    [0.0, -10000.0]
    """
    return math._in_single(_log_softmax, x, axis=axis)


def _log_softmax(x: Any, axis: Axis) -> Tensor:
    lowered = _subtract_max(x, axis)
    return math.subtract(lowered, math.log(stats.sum(math.exp(lowered), axis=axis, keepdims=True)))


@op(floating, kinds="real")
def log_sigmoid(x: TensorLike, /) -> Tensor:
    """Logarithm of ``sigmoid(x)``, accurate even where the sigmoid underflows to zero.

    >>> log_sigmoid(-1e4).tolist(), f"{float(log_sigmoid(0.0)):.4f}"
    (-10000.0, '-0.6931')
    """
    return math._in_single(_log_sigmoid, x)


def _log_sigmoid(x: Any) -> Tensor:
    return math.negative(_softplus(-x))


@op(floating, kinds="real")
def sparsemax(x: TensorLike, /, axis: int = -1) -> Tensor:
    """Projection of ``x`` onto the probability simplex along ``axis``.

    Like ``softmax``, it is nonnegative with sum 1, but small values become exactly zero.

    >>> sparsemax([[1.0, 0.5, -1.0], [2.0, 0.0, 0.0]]).tolist()
    [[0.75, 0.25, 0.0], [1.0, 0.0, 0.0]]
    """
    return math._in_single(_sparsemax, x, axis=axis)


def _sparsemax(x: Any, axis: int) -> Tensor:
    (axis,) = _axes(axis, x.ndim)
    lowered = _subtract_max(x, axis)
    ordered: Any = indexing.sort(lowered, axis=axis, descending=True)
    ranks: Any = creation.arange(1, x.shape[axis] + 1, dtype=x.dtype, device=device.get_device(x))
    ranks = manipulation.reshape(ranks, [-1 if i == axis else 1 for i in range(x.ndim)])
    # A value is in the support if it exceeds (the sum of the values down to it, minus 1) / rank.
    support = 1 + ranks * ordered > stats.cumsum(ordered, axis=axis)
    count: Any = stats.sum(comparison.where(support, ranks * 0 + 1, 0), axis=axis, keepdims=True)
    excess: Any = stats.sum(comparison.where(support, ordered, 0), axis=axis, keepdims=True) - 1
    return relu(lowered - excess / count)


@op(floating, kinds="real")
def glu(x: TensorLike, /, axis: int = -1) -> Tensor:
    """First half of ``x`` along ``axis``, times the sigmoid of the second half.

    >>> glu([[4.0, 6.0, 0.0, 1e4]]).tolist()
    [[2.0, 6.0]]
    """
    return math._in_single(_glu, x, axis=axis)


def _glu(x: Any, axis: int) -> Tensor:
    (axis,) = _axes(axis, x.ndim)
    if x.shape[axis] % 2:
        raise ValueError(f"axis {axis} must have an even length, got {x.shape[axis]}")
    value, gate = manipulation.split(x, 2, axis)
    return math.multiply(value, _sigmoid(gate))


@op(floating, kinds="real")
def threshold(x: TensorLike, /, threshold: float, value: float) -> Tensor:
    """``x`` where it is above ``threshold``, else ``value``.

    >>> threshold([-1.0, 0.5, 2.0], 0.5, 9.0).tolist()
    [9.0, 9.0, 2.0]
    """
    return comparison.where(comparison.less_equal(x, threshold), value, x)


def get_activation(name: str | _Callable[..., Any] | None) -> _Callable[..., Any]:
    """Activation function called ``name``.

    A function is returned unchanged. ``None`` and ``"linear"`` are the identity.

    >>> get_activation("relu")([-1.0, 2.0]).tolist()
    [0.0, 2.0]
    """
    if name is None or name == "linear":
        return _linear
    if callable(name):
        return name
    known: dict[str, _Callable[..., Any]] = {n: f for n, f in globals().items() if hasattr(f, "__operation__")}
    if name not in known:
        raise ValueError(f"get_activation: name must be one of {', '.join(['linear', *known])}, got {name!r}")
    return known[name]


def _linear(x: Any) -> Any:
    """Identity."""
    return x
