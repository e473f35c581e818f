"""Gradients where a function has none, or two: at ties, corners and zeros every engine gives the same one."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest

from ember_ml import ops, transform, use_backend
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY
from ember_ml.errors import UnsupportedError
from ember_ml.testing.comparison import dtypes_of_device, host, leaves

HALF, SIXTH, ROOT = 0.5, 1 / 6, math.sqrt(0.5)
NAN = math.nan


class Corner(NamedTuple):
    """An operation, its tensors, the gradient of the sum of its floating results for each, and its options."""

    name: str
    tensors: tuple[Any, ...]
    gradients: tuple[Any, ...]
    options: dict[str, Any]


def at(name: str, *tensors: Any, to: Any, **options: Any) -> Corner:
    """A row of the table; ``to`` is a tuple of gradients where there are several tensors."""
    return Corner(name, tensors, to if len(tensors) > 1 else (to,), options)


CORNERS = [
    # Two equals share, one half each.
    at("maximum", [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], to=([HALF, 0, 1], [HALF, 1, 0])),
    at("minimum", [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], to=([HALF, 1, 0], [HALF, 0, 1])),
    # Here the first one is chosen, and has all.
    at("fmax", [1.0, 2.0, NAN], [1.0, 3.0, 2.0], to=([1, 0, 0], [0, 1, 1])),
    at("fmin", [1.0, 2.0, NAN], [1.0, 3.0, 2.0], to=([1, 1, 0], [0, 0, 1])),
    # The ends belong to what is clipped.
    at("clip", [-1.0, 0.0, 1.0, 2.0, 3.0], 0.0, 2.0, to=([0, 1, 1, 1, 0], 1, 1)),
    at("kl_divergence", [[1.0]], [[1.0]], to=([[1.0]], [[-1.0]])),
    # All that are equal share.
    at("max", [2.0, 1.0, 2.0, 2.0], to=[1 / 3, 0, 1 / 3, 1 / 3]),
    at("min", [[1.0, 1.0], [2.0, 1.0]], to=[[HALF, HALF], [0, 1]], axis=1),
    at("ptp", [2.0, 1.0, 2.0, 1.0], to=[HALF, -HALF, HALF, -HALF]),
    at("segment_max", [2.0, 2.0, 5.0], to=[HALF, HALF, 1], segment_ids=[0, 0, 1]),
    at("vector_norm", [2.0, -2.0, 1.0], to=[HALF, -HALF, 0], ord=math.inf),
    # Order is stable: what is taken from among equals is the first in order.
    at("sort", [2.0, 1.0, 1.0], to=[1, 1, 1]),
    at("top_k", [2.0, 1.0, 2.0, 2.0], to=[1, 0, 1, 0], k=2),
    at("median", [1.0, 1.0, 1.0, 3.0], to=[0, 1, 0, 0]),
    at("cummax", [1.0, 1.0, 0.0], to=[1, 2, 0], axis=0),
    at("max_pool", [[[1.0], [1.0], [1.0], [1.0]]], to=[[[1], [0], [1], [0]]], pool_size=2),
    at("max_pool", [[[[1.0], [2.0]], [[2.0], [1.0]]]], to=[[[[0], [1]], [[0], [0]]]], pool_size=2),
    # An activation goes on as it was before the corner, where it is flat.
    at("relu", [-1.0, 0.0, 1.0], to=[0, 0, 1]),
    at("leaky_relu", [-1.0, 0.0, 1.0], to=[0.25, 0.25, 1], negative_slope=0.25),
    at("prelu", [-1.0, 0.0, 1.0], [0.25, 0.25, 0.25], to=([0.25, 0.25, 1], [-1, 0, 0])),
    at("elu", [0.0, 1.0], to=[2, 1], alpha=2.0),
    at("relu6", [-1.0, 0.0, 1.0, 6.0, 7.0], to=[0, 0, 1, 0, 0]),
    at("hard_tanh", [-2.0, -1.0, 0.0, 1.0, 2.0], to=[0, 0, 1, 0, 0]),
    at("hard_tanh", [-0.25, 0.0, 0.75, 1.0], to=[0, 1, 0, 0], min_val=-0.25, max_val=0.75),
    at("hard_sigmoid", [-4.0, -3.0, 0.0, 3.0, 4.0], to=[0, 0, SIXTH, 0, 0]),
    at("hard_silu", [-4.0, -3.0, 0.0, 3.0, 4.0], to=[0, 0, HALF, 1, 1]),
    at("threshold", [0.0, 1.0, 2.0], to=[0, 0, 1], threshold=1.0, value=5.0),
    at("hard_shrink", [-1.0, -0.5, 0.0, 0.5, 1.0], to=[1, 0, 0, 0, 1]),
    at("soft_shrink", [-1.0, -0.5, 0.0, 0.5, 1.0], to=[1, 0, 0, 0, 1]),
    at("softplus", [20.0], to=[1], threshold=20.0),
    at("sparsemax", [1.0, 0.0], to=[0, 0]),
    at("hinge_loss", [1.0, 1.0, -1.0], [1.0, 0.0, -1.0], to=([0, 0, 0], [0, -1, 0]), reduction="sum"),
    at("triplet_loss", [[0.0]], [[1.0]], [[2.0]], to=([[0]], [[0]], [[0]]), margin=1.0),
    # A magnitude, a deviation, a norm, a distance has no gradient at zero.
    at("abs", [-1.0, 0.0, -0.0, 1.0], to=[-1, 0, 0, 1]),
    at("fabs", [-1.0, 0.0, -0.0, 1.0], to=[-1, 0, 0, 1]),
    at("copysign", [0.0, -0.0, 1.0], [-1.0, 1.0, -1.0], to=([0, 0, -1], [0, 0, 0])),
    at("sign", [-1.0, 0.0, 1.0], to=[0, 0, 0]),
    at("angle", [-1.0, 0.0, 1.0], to=[0, 0, 0]),
    at("std", [1.0, 1.0, 1.0], to=[0, 0, 0]),
    at("norm", [[0.0, 0.0], [0.0, 0.0]], to=[[0, 0], [0, 0]]),
    at("vector_norm", [[0.0, 0.0], [3.0, 4.0]], to=[[0, 0], [0.6, 0.8]], axis=1),
    at("vector_norm", [0.0, 0.0], to=[0, 0], ord=1, keepdims=True),
    at("vector_norm", [0.0, 2.0], to=[0, 1], ord=3),
    at("matrix_norm", [[[0.0, 0.0], [0.0, 0.0]]], to=[[[0, 0], [0, 0]]]),
    at("cdist", [[0.0, 0.0]], [[0.0, 0.0], [3.0, 4.0]], to=([[-0.6, -0.8]], [[0, 0], [0.6, 0.8]])),
    at("euclidean_distance", [0.0, 0.0], [0.0, 0.0], to=([0, 0], [0, 0])),
    at("normalize_vector", [0.0, 0.0], to=[1e3, 1e3], eps=1e-3),
    at("cosine_similarity", [0.0, 0.0], [3.0, 4.0], to=([600, 800], [0, 0]), eps=1e-3),
    at("mean_absolute_error", [0.0, 1.0], [0.0, 0.0], to=([0, 1], [0, -1]), reduction="sum"),
    at("huber_loss", [0.0, 1.0, -1.0], [0.0, 0.0, 0.0], to=([0, 1, -1], [0, -1, 1]), reduction="sum"),
    at("hypot", [0.0, 0.0, 3.0], [0.0, 1.0, 4.0], to=([0, 0, 0.6], [0, 1, 0.8])),
    at("atan2", [0.0, 1.0], [0.0, 0.0], to=([0, 0], [0, -1])),
    at("power", [0.0, 0.0, 0.0], [0.0, 1.0, 2.0], to=([0, 1, 0], [0, 0, 0])),
    # No corner at all, but two pieces meet there.
    at("hypot", [1.0, -1.0], [1.0, 1.0], to=([ROOT, -ROOT], [ROOT, ROOT])),
    at("logaddexp", [1.0, -2.0], [1.0, -2.0], to=([HALF, HALF], [HALF, HALF])),
    at("logaddexp2", [1.0, -2.0], [1.0, -2.0], to=([HALF, HALF], [HALF, HALF])),
    at("fmod", [0.0, -0.0, 5.0], [3.0, 3.0, -3.0], to=([1, 1, 1], [0, 0, 1])),
    at("i0", [20.0, -20.0], to=[42454973.385127775, -42454973.385127775]),
    at("hypot", [1e-30, -1e30], [0.0, 1e30], to=([1, -ROOT], [0, ROOT])),
    at("sinc", [0.0, 1e-20, -1e-30], to=[0, 0, 0]),
]

# Where an engine's own gradient is left as it is, with the reason. The key's last part, if there is one, is the number
# of the row among those of its operation. A row that holds after all fails.
DIFFERENT: dict[tuple[str, str] | tuple[str, str, int], str] = {
    ("mlx", "maximum"): "MLX gives all to the second of equals; a rule of our own would cost a fifth and more",
    ("mlx", "minimum"): "as for maximum",
    ("mlx", "max_pool", 1): "MLX goes through a window by columns, which is quicker",
    ("mlx", "norm"): "NaN at zero; a look for that would cost short vectors a third of their time",
    ("mlx", "vector_norm", 1): "as for norm",
    ("mlx", "matrix_norm"): "as for norm",
    ("mlx", "cdist"): "as for norm",
    ("torch", "hypot", 0): "NaN at the origin; a look for that would more than double the time",
    ("numpy", "atan2"): "NaN at the origin, as in JAX",
    ("mlx", "atan2"): "NaN at the origin, as in JAX",
    ("mlx", "power"): "MLX multiplies by the logarithm of zero",
}


def numbered() -> list[tuple[Corner, int]]:
    """Every row, with its number among those of its operation."""
    seen: Counter[str] = Counter()
    rows = []
    for corner in CORNERS:
        rows.append((corner, seen[corner.name]))
        seen[corner.name] += 1
    return rows


def found(corner: Corner, dtype: str) -> list[np.ndarray]:
    """The gradients for the tensors of a row, on the active engine."""

    def total(xs: list[Any]) -> Any:
        result = REGISTRY[corner.name].call(*xs, **corner.options)
        parts = [ops.sum(x) for _, x in leaves(result) if ops.is_tensor(x) and ops.isdtype(x.dtype, "real floating")]
        return sum(parts[1:], parts[0])

    with np.errstate(all="ignore"):
        return [host(g) for g in transform.grad(total)([ops.asarray(x, dtype=dtype) for x in corner.tensors])]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("corner", "row"), numbered(), ids=lambda value: getattr(value, "name", None))
def test_gradients_at_corners(corner: Corner, row: int, dtype: str, backend: Backend) -> None:
    if dtype == "float64" and not backend.has_float64():
        pytest.skip(f"{backend.name} has no {dtype} here")
    known = DIFFERENT.get((backend.name, corner.name)) or DIFFERENT.get((backend.name, corner.name, row))
    got = found(corner, dtype)
    expected = [np.asarray(gradient, dtype) for gradient in corner.gradients]
    agree = all(
        g.shape == e.shape and np.allclose(g, e, 1e-5, 1e-6, equal_nan=True) for g, e in zip(got, expected, strict=True)
    )
    assert agree == (known is None), f"{got} for {expected}" if known is None else f"no longer so: {known}"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("name", "z", "gradient"),
    [
        ("sign", 0j, 0j),
        ("abs", 0j, 0j),
        ("acos", 0j, -1 - 1j),
        ("acos", complex(0, -0.0), -1 - 1j),
        ("acos", 0.6 + 0j, -1.25 - 1.25j),
        ("acos", complex(0.6, -0.0), -1.25 - 1.25j),
    ],
)
def test_complex_gradients_at_zero(name: str, z: complex, gradient: complex, dtype: str, backend: Backend) -> None:
    if dtype not in dtypes_of_device(backend):
        pytest.skip(f"{backend.name} has no {dtype} here")

    def total(x: Any) -> Any:
        result = REGISTRY[name].call(x)
        return ops.sum(ops.add(ops.real(result), ops.imag(result)))

    with np.errstate(all="ignore"):
        got = host(transform.grad(total)(ops.asarray([z] * 5, dtype=dtype)))
    np.testing.assert_allclose(got, [gradient] * 5, atol=1e-6)


def test_a_gradient_has_the_kind_and_precision_of_what_it_is_of(backend: Backend) -> None:
    """The gradient of a real tensor is real, and that of a complex one keeps its imaginary part when it is narrowed."""
    number = ops.asarray([2 + 3j], dtype="complex64")
    found = transform.grad(lambda x: ops.sum(ops.real(ops.multiply(x, number))))(ops.asarray([1.0]))
    assert ops.dtype(found).name == "float32"
    assert host(found).tolist() == [2.0]
    if backend.name != "mlx":  # MLX has no complex128
        wide = transform.grad(lambda z: ops.sum(ops.real(ops.multiply(ops.cast(z, "complex128"), 1j))))(number)
        assert ops.dtype(wide).name == "complex64"
        assert host(wide).tolist() == [-1j]


@pytest.mark.parametrize("options", [{"axes": (0, 1)}, {"s": [4, 6], "axes": [0, 1]}])
def test_a_gradient_is_right_or_refused_in_the_name_of_the_operation(backend: Backend, options: dict[str, Any]) -> None:
    """MLX computes this transform of float64 on the host, and has no gradient of it."""
    x = np.random.default_rng(0).normal(size=(3, 4))

    def gradient() -> Any:
        return transform.grad(lambda a: ops.sum(ops.square(ops.irfftn(a, **options))))(ops.asarray(x))

    with use_backend("numpy"):
        expected = host(gradient())
    if backend.name == "mlx" and "float64" in dtypes_of_device(backend):
        with pytest.raises(UnsupportedError, match=r"must have a gradient on the mlx backend .* got irfftn of mlx"):
            gradient()
    else:
        np.testing.assert_allclose(host(gradient()), expected, atol=1e-5)
