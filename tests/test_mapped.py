"""Operations of several tensors under ``vmap``, which may run over some of them only."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from ember_ml import ops, transform
from ember_ml.backend import Backend
from ember_ml.testing.comparison import host, leaves

RNG = np.random.default_rng(3)
INTEGERS = RNG.integers(-9, 9, (2, 3, 4))
COUNTS = RNG.integers(0, 6, (2, 3, 4))
FLOATS = RNG.standard_normal((2, 3, 4)).astype(np.float32)
IMAGES, KERNELS = (RNG.standard_normal((2, *shape)).astype(np.float32) for shape in ((2, 5, 5, 4), (2, 2, 4, 4)))
HEADS = RNG.standard_normal((3, 2, 3, 2, 4)).astype(np.float32)
MASK, BIAS = RNG.random((2, 2, 3, 3)) < 0.5, RNG.standard_normal((2, 2, 3, 3)).astype(np.float32)

# Functions of tensors, each with two of what it takes along a first axis.
CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "and": (ops.bitwise_and, [INTEGERS, COUNTS]),
    "or": (ops.bitwise_or, [INTEGERS, COUNTS]),
    "xor": (ops.bitwise_xor, [INTEGERS, COUNTS]),
    "left shift": (ops.bitwise_left_shift, [INTEGERS, COUNTS]),
    "right shift": (ops.bitwise_right_shift, [INTEGERS, COUNTS]),
    "rotation": (ops.rotate_left, [INTEGERS, COUNTS]),
    "bit": (ops.set_bit, [INTEGERS, COUNTS]),
    "bools": (ops.bitwise_and, [INTEGERS > 0, COUNTS > 2]),
    "a row": (lambda x, y: ops.bitwise_xor(x, y[0]), [INTEGERS, COUNTS]),
    "a number": (lambda x, y: ops.bitwise_and(ops.bitwise_or(x, y), 5), [INTEGERS, COUNTS]),
    "a constant": (lambda x, y: ops.bitwise_xor(ops.add(x, y), ops.asarray(COUNTS[0])), [INTEGERS, COUNTS]),
    "not equal": (ops.not_equal, [COUNTS, COUNTS[::-1]]),
    "not equal floats": (ops.not_equal, [FLOATS, FLOATS[::-1]]),
    "not equal to a constant": (lambda y: ops.not_equal(ops.asarray(COUNTS[0]), y), [COUNTS]),
    "not equal to a number": (lambda y: ops.not_equal(y, 3), [COUNTS]),
    "either": (ops.logical_xor, [COUNTS, COUNTS[::-1]]),
    "quotient": (ops.floor_divide, [INTEGERS, INTEGERS[::-1]]),
    "remainder": (ops.remainder, [INTEGERS, INTEGERS[::-1]]),
    "fmod": (ops.fmod, [INTEGERS, INTEGERS[::-1]]),
    "power": (ops.power, [INTEGERS, INTEGERS[::-1]]),
    "next": (ops.nextafter, [FLOATS, FLOATS[::-1]]),
    "the largest": (lambda x: ops.top_k(x, 2), [FLOATS]),
    "slices assigned": (lambda x, y: ops.index_update(x, slice(1, 3), y[0]), [FLOATS, FLOATS[::-1]]),
    "an element assigned": (lambda x, y: ops.index_update(x, (1, 2), y[0, 0]), [FLOATS, FLOATS[::-1]]),
    "rows assigned": (lambda x, y: ops.index_update(x, [2, 0], y[:2]), [FLOATS, FLOATS[::-1]]),
    "slices updated": (lambda x, y: ops.slice_update(x, [1, 0], y[:2, :2]), [FLOATS, FLOATS[::-1]]),
    "slices added to": (lambda x, y: ops.index_add(x, slice(1, 3), y[0]), [FLOATS, FLOATS[::-1]]),
    "convolution": (lambda x, k: ops.conv(x, k), [IMAGES, KERNELS]),
    "convolution in groups": (lambda x, k: ops.conv(x, k[..., :2, :], groups=2), [IMAGES, KERNELS]),
    "depthwise convolution": (ops.depthwise_conv, [IMAGES, KERNELS]),
    "transposed convolution": (lambda x, k: ops.conv_transpose(x, k[..., :2, :], groups=2), [IMAGES, KERNELS]),
    "attention": (
        lambda q, k, v, m, b: ops.dot_product_attention(q, k, v, m, b, is_causal=True),
        [*(np.stack([part, part[::-1]]) for part in HEADS), MASK, BIAS],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_vmap_runs_over_meets_what_it_does_not(backend: Backend, case: str) -> None:
    function, arrays = CASES[case]
    for mapped in itertools.product((True, False), repeat=len(arrays)):
        if not any(mapped):
            continue
        given = [ops.asarray(a if is_mapped else a[0]) for a, is_mapped in zip(arrays, mapped, strict=True)]
        result = transform.vmap(function, tuple(0 if is_mapped else None for is_mapped in mapped))(*given)
        slices = [
            function(*(x[i] if is_mapped else x for x, is_mapped in zip(given, mapped, strict=True))) for i in range(2)
        ]
        found = [host(x) for path, x in leaves(result) if not path.endswith(".length")]
        for position, values in enumerate(found):
            wanted = [[host(x) for path, x in leaves(one) if not path.endswith(".length")][position] for one in slices]
            np.testing.assert_allclose(values, np.stack(wanted), rtol=1e-5, atol=1e-6, err_msg=f"mapped: {mapped}")


FALLBACKS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "one hot": (lambda i: ops.one_hot(i, 6), [COUNTS]),
    "attention": (ops.dot_product_attention, [np.stack([part, part[::-1]]) for part in HEADS]),
    "near": (ops.isclose, [FLOATS, FLOATS[::-1]]),
    "among": (ops.isin, [INTEGERS, COUNTS]),
    "factors": (lambda x: ops.lu(ops.matmul(x, ops.matrix_transpose(x)))[1], [FLOATS]),
}


@pytest.mark.parametrize("mapping", [transform.vmap, lambda f: lambda *xs: ops.vectorized_map(lambda row: f(*row), xs)])
@pytest.mark.parametrize("case", FALLBACKS)
def test_what_an_engine_cannot_vectorise_is_told_nobody(backend: Backend, case: str, mapping: Any) -> None:
    """torch, which then takes one slice after the other, would have every user file an issue about it."""
    function, arrays = FALLBACKS[case]
    given = [ops.asarray(a) for a in arrays]
    expected = np.stack([host(function(*(x[i] for x in given))) for i in range(2)])
    with _every_warning(backend), warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(host(mapping(function)(*given)), expected, rtol=1e-5, atol=1e-6)


@contextmanager
def _every_warning(backend: Backend) -> Iterator[None]:
    """torch warns each time, not the first time alone."""
    if backend.name != "torch":
        yield
        return
    import torch

    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(before)


MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
SHIFTS = np.array([1.0, 3.0, 0.0], np.float32)


@transform.custom_gradient
def _unlike(x: Any, y: Any) -> Any:
    """A product with gradients that no other rule would give."""
    return ops.multiply(x, y), lambda g: (ops.multiply(g, 7.0), ops.multiply(g, 11.0))


RULED: dict[str, Callable[[Any, Any], Any]] = {
    "solve": lambda t, e: ops.solve(_shifted(t), ops.multiply(e, [1.0, 2.0])),
    "solve of both": lambda t, e: ops.solve(_shifted(ops.add(t, e)), ops.multiply(ops.add(t, e), [1.0, 2.0])),
    "triangle": lambda t, e: ops.solve_triangular(_shifted(t), ops.multiply(e, [[1.0], [2.0]])),
    "inverse": lambda t, e: ops.inv(_shifted(ops.multiply(t, e))),
    "Cholesky": lambda t, e: ops.cholesky(_shifted(ops.multiply(t, e))),
    "QR": lambda t, e: ops.qr(_shifted(ops.multiply(t, e)))[1],
    "eigenvalues": lambda t, e: ops.eigvalsh(_shifted(ops.multiply(t, e))),
    "determinant": lambda t, e: ops.logdet(_shifted(ops.multiply(t, e))),
    "own rule": lambda t, e: _unlike(ops.exp(t), e),
    "own rule of both": lambda t, e: _unlike(ops.multiply(t, e), ops.add(t, e)),
    "mapped twice": lambda t, e: transform.vmap(lambda b: _unlike(ops.multiply(t, b), e))(ops.asarray(SHIFTS)),
}


def _shifted(t: Any) -> Any:
    return ops.add(MATRIX, ops.multiply(t, ops.eye(2)))


@pytest.mark.parametrize("case", RULED)
def test_gradients_of_rules_go_through_vmap(backend: Backend, case: str) -> None:
    """They are those of the loop over the slices, in first and second derivatives."""
    rows, t = [ops.asarray(e) for e in SHIFTS], ops.asarray(0.3)

    def mapped(t: Any) -> Any:
        return ops.sum(ops.sin(transform.vmap(lambda e: RULED[case](t, e))(ops.stack(rows))))

    def looped(t: Any) -> Any:
        return ops.sum(ops.sin(ops.stack([RULED[case](t, e) for e in rows])))

    for derived in (transform.grad, lambda f: transform.grad(transform.grad(f)), transform.hessian):
        np.testing.assert_allclose(host(derived(mapped)(t)), host(derived(looped)(t)), rtol=1e-4, atol=1e-4)
    second = transform.grad(transform.grad(looped))(t)
    np.testing.assert_allclose(host(transform.hessian(looped)(t)), host(second), rtol=1e-4, atol=1e-4)
