"""The counter-based generator: the words that its authors publish, on every engine, and what is made of them."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from agreement import host

import ember_ml
from ember_ml import ops, threefry
from ember_ml.backend import Backend

ONES = 0xFFFFFFFF

# Random123, kat_vectors: threefry2x32 with 20 rounds.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_published_words(backend: Backend, key: tuple[int, int], counter: tuple[int, int], expected: object) -> None:
    answer = threefry.block(key, *(ops.asarray([word]) for word in counter))
    assert tuple(word.tolist()[0] for word in answer) == expected


def test_words_are_the_same_on_every_engine(backend: Backend) -> None:
    words = host(threefry.bits(2**63 + 11, 1000))
    assert words.dtype == np.int64
    assert words.min() >= 0
    assert words.max() < 2**32
    with ember_ml.use_backend("numpy"):
        np.testing.assert_array_equal(words, threefry.bits(2**63 + 11, 1000))
        np.testing.assert_array_equal(words[:10], threefry.bits((2**31, 11), 10))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_fractions_are_the_same_on_every_engine(backend: Backend, dtype: str) -> None:
    answer = host(threefry.uniform(5, (40, 50), dtype))
    assert answer.shape == (40, 50)
    with ember_ml.use_backend("numpy"):
        expected = threefry.uniform(5, (40, 50), dtype)
    assert answer.dtype == expected.dtype
    np.testing.assert_array_equal(answer, expected)
    assert answer.min() >= 0
    assert answer.max() < 1
    assert abs(float(answer.astype(np.float64).mean()) - 0.5) < 0.03


@pytest.mark.parametrize(("dtype", "units"), [("float32", 8), ("float64", 24)])
def test_normal_numbers_agree_to_a_few_units(backend: Backend, dtype: str, units: int) -> None:
    answer = host(threefry.normal(5, 20000, dtype))
    with ember_ml.use_backend("numpy"):
        expected = np.asarray(threefry.normal(5, 20000, dtype))
    assert np.max(np.abs(answer - expected) / np.spacing(np.abs(expected))) <= units
    moments = [float(np.mean(answer**k)) for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.15)


def test_shapes(backend: Backend) -> None:
    assert threefry.uniform(1).shape == ()
    assert tuple(threefry.normal(1, 3).shape) == (3,)
    assert tuple(threefry.uniform(1, (0, 2)).shape) == (0, 2)


@pytest.mark.parametrize("key", [-1, 2**64, (1,), (1, 2, 3), (0, 2**32), (0.5, 1)])
def test_a_key_is_64_bits(key: object) -> None:
    with pytest.raises(ValueError, match="key"):
        threefry.bits(key, 1)  # type: ignore[arg-type]


def test_fractions_are_floating() -> None:
    with pytest.raises(TypeError, match="floating"):
        threefry.uniform(1, (), "int32")


def test_examples(backend: Backend) -> None:
    assert doctest.testmod(threefry).failed == 0
