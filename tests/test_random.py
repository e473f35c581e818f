"""Random numbers: the same on every engine and in compiled code, of the right distributions, with checked inputs."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops, optim
from ember_ml.backend import Backend
from ember_ml.dispatch import operation_of
from ember_ml.nn import modules
from ember_ml.ops import random
from ember_ml.random import sampling
from ember_ml.testing.comparison import host
from ember_ml.transform import checkpoint, grad, value_and_grad, vmap

scipy = pytest.importorskip("scipy", reason="draws are compared with the distributions of SciPy")
pytest.importorskip("scipy.stats", reason="draws are compared with the distributions of SciPy")

ENGINES = ember_ml.get_available_backends()
COUNT = 3001

# Every function that draws, with arguments that take each of its ways.
DRAWS: dict[str, Callable[..., Any]] = {
    "bits": lambda key: random.bits(COUNT, key=key),
    "bits uint64": lambda key: random.bits(COUNT, dtype="uint64", key=key),
    "uniform": lambda key: random.uniform(COUNT, key=key),
    "uniform float64": lambda key: random.uniform(COUNT, dtype="float64", key=key),
    "uniform float16": lambda key: random.uniform(COUNT, dtype="float16", key=key),
    "uniform between": lambda key: random.uniform(COUNT, -1.7, 3.1, key=key),
    "uniform between tensors": lambda key: random.uniform((COUNT, 2), ops.asarray([0.1, 5.0]), 7.3, key=key),
    "bernoulli": lambda key: random.bernoulli(COUNT, 0.3, key=key),
    "bernoulli of tensors": lambda key: random.bernoulli((COUNT, 2), ops.asarray([0.2, 0.9]), key=key),
    "keep_mask": lambda key: random.keep_mask(COUNT, 0.1, key=key),
    "randint": lambda key: random.randint(COUNT, -5, 1000, key=key),
    "randint wide": lambda key: random.randint(COUNT, -5, 2**60, key=key),
    "randint of tensors": lambda key: random.randint((COUNT, 2), 0, ops.asarray([7, 2**50]), key=key),
    "permutation": lambda key: random.permutation(COUNT, key=key),
    "shuffle": lambda key: random.shuffle(ops.arange(COUNT), key=key),
    "choice": lambda key: random.choice(50, COUNT, p=ops.full(50, 0.02), key=key),
    "choice once": lambda key: random.choice(50, 20, False, ops.full(50, 0.02), key=key),
    "categorical": lambda key: random.categorical(ops.asarray([[0.5, -1.0, 2.0], [1.0, 1.0, 1.0]]), COUNT, key=key),
    "normal": lambda key: random.normal(COUNT, 0.5, 2.0, key=key),
    "normal float64": lambda key: random.normal(COUNT, dtype="float64", key=key),
    "truncated_normal": lambda key: random.truncated_normal(COUNT, key=key),
    "exponential": lambda key: random.exponential(COUNT, 3.0, key=key),
    "laplace": lambda key: random.laplace(COUNT, key=key),
    "gumbel": lambda key: random.gumbel(COUNT, key=key),
    "gamma": lambda key: random.gamma((COUNT, 3), ops.asarray([0.1, 1.0, 30.0]), 2.0, key=key),
    "beta": lambda key: random.beta((COUNT, 2), ops.asarray([0.5, 20.0]), 3.0, key=key),
    "dirichlet": lambda key: random.dirichlet(ops.asarray([0.5, 2.0, 9.0]), COUNT, key=key),
    "poisson": lambda key: random.poisson((COUNT, 3), ops.asarray([0.5, 9.0, 300.0]), key=key),
    "binomial": lambda key: random.binomial((COUNT, 3), 1000, ops.asarray([0.003, 0.4, 0.999]), key=key),
    "multivariate_normal": lambda key: random.multivariate_normal(
        ops.zeros(2), ops.asarray([[2.0, 0.5], [0.5, 1.0]]), COUNT, key=key
    ),
}  # fmt: skip

# What may differ where an engine computes the numbers itself, in units of the last place.
LARGEST = {"normal": 4, "normal float64": 4, "truncated_normal": 4, "multivariate_normal": 4}


def units(result: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference in units of the last place of the larger of one and the expected values; 0 if none."""
    if np.array_equal(result, expected):
        return 0.0
    assert expected.dtype.kind == "f", "these are not equal"
    size = np.spacing(np.maximum(np.abs(expected), expected.dtype.type(1)))
    return float(np.max(np.abs(result - expected) / size))


def reference(name: str, key: Any = 12345) -> np.ndarray:
    with ember_ml.use_backend("numpy"):
        return np.asarray(DRAWS[name](key))


@pytest.fixture
def on_the_engine(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws by the engine's own operations, as on a GPU and in compiled code."""
    if backend.name != "numpy":
        monkeypatch.setattr(backend.module.random, "is_host", lambda device: False)


def test_every_function_is_the_same_on_every_engine(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    rows = []
    for name in DRAWS:
        expected = reference(name)
        cells = []
        for engine in ENGINES:
            with ember_ml.use_backend(engine):
                plain = host(DRAWS[name](12345))
                with monkeypatch.context() as patch:
                    if engine != "numpy":
                        module = backends.load(engine).module.random
                        patch.setattr(module, "is_host", lambda device: False)
                    own = host(DRAWS[name](12345))
            assert plain.dtype == own.dtype == expected.dtype
            allowed = LARGEST.get(name, 0)
            found = units(plain, expected), units(own, expected)
            assert found[0] <= (allowed if name == "multivariate_normal" else 0), (name, engine, found)
            assert found[1] <= allowed, (name, engine, found)
            cells.append("identical" if max(found) == 0 else f"{max(found):.1f} ulp")
        rows.append(f"{name:24}" + "".join(f"{engine}: {cell:12}" for engine, cell in zip(ENGINES, cells, strict=True)))
    with capsys.disabled():
        print("\n" + "\n".join(rows))
    assert len(rows) >= 25


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "laplace", "gumbel", "truncated_normal"])
def test_floats_of_every_dtype(backend: Backend, name: str, dtype: str) -> None:
    for shape in ((), 1, 7, (3, 5), (0, 4)):
        result = host(getattr(random, name)(shape, dtype=dtype, key=9))
        with ember_ml.use_backend("numpy"):
            expected = np.asarray(getattr(random, name)(shape, dtype=dtype, key=9))
        assert result.shape == ((shape,) if isinstance(shape, int) else shape)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "laplace", "gumbel", "truncated_normal"])
def test_float64_numbers_are_made_of_more_than_32_bits(backend: Backend, name: str) -> None:
    """Of numbers that are made of 31 or 32 bits, some of so many would be equal."""
    x = host(getattr(random, name)(200_000, dtype="float64", key=9))
    assert len(np.unique(np.abs(x))) == len(x)


def test_stirlings_series_is_that_of_the_logarithm_of_the_gamma_function(generator: Any) -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 12.0, 20.0, 100.0, 1e4])
    mpmath = pytest.importorskip("mpmath", reason="it computes what is expected")
    with mpmath.workdps(40):
        tau = mpmath.log(2 * mpmath.pi) / 2
        expected = [float(mpmath.loggamma(n) - ((n - 0.5) * mpmath.log(n) - n + tau)) for n in map(mpmath.mpf, x)]
    np.testing.assert_allclose(sampling.stirling(generator, x), expected, rtol=0, atol=2e-14)


@pytest.mark.parametrize("name", ["bernoulli", "binomial", "bits", "categorical", "permutation", "poisson", "randint"])
def test_draws_of_whole_numbers_are_said_to_have_no_gradient(name: str) -> None:
    assert not operation_of(getattr(random, name)).differentiable


def test_an_element_depends_on_the_key_and_its_place_alone(backend: Backend) -> None:
    for draw in (random.bits, random.uniform, random.normal, random.gumbel):
        long = host(draw(40_001, key=3))
        np.testing.assert_array_equal(host(draw((7, 5), key=3)).ravel(), long[:35])
    gammas = host(random.gamma(40_001, 0.7, key=3))
    np.testing.assert_array_equal(host(random.gamma(100, 0.7, key=3)), gammas[:100])
    np.testing.assert_array_equal(host(random.poisson(40_001, 20.0, key=3))[:9], host(random.poisson(9, 20.0, key=3)))


# Draws with their own loops where Numba is installed, and some of the others, which use the random bits of those.
LOOPS: dict[str, Callable[[int], Any]] = {
    "bits": lambda n: random.bits(n, key=9),
    "bits uint64": lambda n: random.bits(n, dtype="uint64", key=9),
    "uniform": lambda n: random.uniform(n, key=9),
    "uniform float64": lambda n: random.uniform(n, dtype="float64", key=9),
    "uniform float16": lambda n: random.uniform(n, dtype="float16", key=9),
    "uniform between": lambda n: random.uniform(n, -1.7, 3.1, key=9),
    "uniform between float64": lambda n: random.uniform(n, -1.7, 3.1, dtype="float64", key=9),
    "uniform in a narrow range": lambda n: random.uniform(n, 1.0, 1.0000002, key=9),
    "normal": lambda n: random.normal(n, key=9),
    "normal elsewhere": lambda n: random.normal(n, 0.3, 1.7, key=9),
    "normal float64": lambda n: random.normal(n, dtype="float64", key=9),
    "normal float64 elsewhere": lambda n: random.normal(n, 0.3, 1.7, dtype="float64", key=9),
    "normal bfloat16": lambda n: random.normal(n, 0.3, 1.7, dtype="bfloat16", key=9),
    "bernoulli": lambda n: random.bernoulli(n, 0.3, key=9),
    "bernoulli always": lambda n: random.bernoulli(n, 1, key=9),
    "randint": lambda n: random.randint(n, -5, 1000, key=9),
    "exponential": lambda n: random.exponential(n, key=9),
    "gamma": lambda n: random.gamma(n, 0.5, key=9),
}


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that makes words on the host, with no loop compiled so far."""
    module = backends.load("numpy").module.random
    monkeypatch.setattr(module, "_ready", {})
    return module


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="there are no compiled loops without Numba")
@pytest.mark.parametrize("name", LOOPS)
def test_compiled_loops_make_the_same_bits(name: str, generator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with ember_ml.use_backend("numpy"):
        for count in (0, 1, 2, 9, 511, 1000, 65_537, 200_003):
            monkeypatch.setattr(generator, "_MANY", 1 << 60)
            plain = np.asarray(LOOPS[name](count))
            assert not generator._ready
            monkeypatch.setattr(generator, "_MANY", 0)
            fast = np.asarray(LOOPS[name](count))
            assert any(generator._ready.values()) or not count
            generator._ready.clear()
            assert fast.dtype == plain.dtype
            assert fast.tobytes() == plain.tobytes()


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="there are no compiled loops without Numba")
def test_compiled_loops_know_the_far_tail_and_large_counters(generator: Any) -> None:
    kernels = generator._kernels()
    q = np.array([0.1, 0.4251, 0.49, 0.5 - 2.0**-40, 0.5 - 2.0**-53, -0.5 + 2.0**-54, -0.5 + 2.0**-30, -0.3])
    result = q.copy()
    kernels._to_normals_float64(result, 0.0, 1.0)
    np.testing.assert_array_equal(result, sampling.normal_quantile(generator, q, "float64"))
    for start in (2**32 - 3, 2**40 + 1, 2**61):
        fast, plain = np.empty(10, np.uint32), np.empty(10, np.uint32)
        kernels.words(*generator._kernel_arguments((5, 2**32 - 2), start), fast)
        generator._encrypt((5, 2**32 - 2), start, plain[0::2], plain[1::2])
        np.testing.assert_array_equal(fast, plain)


def test_small_draws_load_no_compiler_and_later_ones_use_what_is_there(generator: Any) -> None:
    code = "import sys; from ember_ml.ops import random; random.normal(60_000, key=1); print('numba' in sys.modules)"
    environment = {**os.environ, "EMBER_ML_BACKEND": "numpy"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    with ember_ml.use_backend("numpy"):
        random.uniform(10, key=1)
        assert generator._ready == {}
        random.uniform(generator._MANY, key=1)
        assert list(generator._ready) == ["fractions_float32"]


@pytest.mark.parametrize("name", ["uniform", "normal float64", "bits", "gamma"])
def test_large_draws_need_no_numba(name: str, generator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with ember_ml.use_backend("numpy"):
        expected = np.asarray(LOOPS[name](generator._MANY))
        generator._ready.clear()
        monkeypatch.setitem(sys.modules, "numba", None)
        monkeypatch.delitem(sys.modules, "ember_ml.backend.numpy.kernels", raising=False)
        monkeypatch.delattr("ember_ml.backend.numpy.kernels", raising=False)
        monkeypatch.setattr(generator, "_kernels", generator._kernels.__wrapped__)
        result = np.asarray(LOOPS[name](generator._MANY))
        assert not any(generator._ready.values())
    np.testing.assert_array_equal(result, expected)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="there are no compiled loops without Numba")
def test_loops_compile_where_nothing_can_be_written(generator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import numba.core.caching

    def refuse(self: object) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(numba.core.caching._CacheLocator, "ensure_cache_path", refuse)
    double = generator._kernels()._compile(lambda x: x + x)
    assert double(4) == 8


def test_uniform_numbers_stay_below_the_end(backend: Backend) -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for low, high in ((0.0, 1.0), (1.0, 1.0078125), (-3.0, -2.984375), (0.0, 1e-7), (1000.0, 1008.0)):
            x = host(random.uniform(20_000, low, high, dtype=dtype, key=1)).astype(np.float64)
            bounds = np.asarray([low, high]).astype(np.float64)
            if dtype not in ("bfloat16", "float16"):
                assert x.max() < bounds[1]
            assert x.min() >= min(bounds[0], float(host(ops.asarray(low, dtype=dtype))))
            assert x.max() < float(host(ops.asarray(high, dtype=dtype)))
    narrow = host(random.uniform(1000, ops.asarray([1.0]), 1.0000001, key=1))
    assert set(narrow.tolist()) == {1.0}


SOME = 40_000
CONTINUOUS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("uniform", (0.0, 1.0), scipy.stats.uniform()),
    ("uniform", (-3.0, 5.0), scipy.stats.uniform(-3, 8)),
    ("normal", (0.0, 1.0), scipy.stats.norm()),
    ("normal", (5.0, 0.1), scipy.stats.norm(5, 0.1)),
    ("truncated_normal", (), scipy.stats.truncnorm(-2, 2)),
    ("truncated_normal", (1.0, 2.0, -0.5, 3.0), scipy.stats.truncnorm(-0.5, 3, 1, 2)),
    ("exponential", (0.5,), scipy.stats.expon(scale=0.5)),
    ("laplace", (2.0, 3.0), scipy.stats.laplace(2, 3)),
    ("gumbel", (2.0, 3.0), scipy.stats.gumbel_r(2, 3)),
    *(("gamma", (a, 2.0), scipy.stats.gamma(a, scale=0.5)) for a in (0.05, 0.5, 1.0, 1.5, 40.0, 1e5)),
    *(("beta", ab, scipy.stats.beta(*ab)) for ab in ((0.3, 0.3), (1.0, 1.0), (2.0, 30.0))),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "parameters", "distribution"), CONTINUOUS, ids=lambda value: str(value)[:24])
def test_continuous_distributions(name: str, parameters: tuple[Any, ...], distribution: Any, dtype: str) -> None:
    with ember_ml.use_backend("numpy"):
        x = np.asarray(getattr(random, name)(SOME, *parameters, dtype=dtype, key=2024), np.float64)
    assert scipy.stats.kstest(x, distribution.cdf).pvalue > 1e-3
    mean, variance, kurtosis = distribution.stats("mvk")
    assert abs(x.mean() - mean) < 4.5 * np.sqrt(variance / SOME)
    assert abs(x.var() - variance) < 4.5 * variance * np.sqrt((kurtosis + 2) / SOME)


DISCRETE: list[tuple[str, tuple[Any, ...], Any]] = [
    *(("poisson", (rate,), scipy.stats.poisson(rate)) for rate in (0.0, 0.01, 1.0, 9.9, 10.0, 33.0, 1e4)),
    *(
        ("binomial", np_, scipy.stats.binom(*np_))
        for np_ in ((1, 0.5), (10, 0.1), (20, 0.5), (60, 0.6), (1000, 0.999), (10**5, 0.3), (7, 0.0), (7, 1.0))
    ),
    ("bernoulli", (0.3,), scipy.stats.bernoulli(0.3)),
    ("randint", (-3, 8), scipy.stats.randint(-3, 8)),
    ("randint", (0, 3 * 2**30), None),
]


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """The probability of counts this far off, rare values taken together."""
    rare = expected < 8
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 1:
            counts, expected = counts[:-1], expected[:-1]
    if len(counts) < 2:
        return 1.0
    return float(scipy.stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize(("name", "parameters", "distribution"), DISCRETE, ids=lambda value: str(value)[:24])
def test_discrete_distributions(name: str, parameters: tuple[Any, ...], distribution: Any) -> None:
    with ember_ml.use_backend("numpy"):
        x = np.asarray(getattr(random, name)(SOME, *parameters, key=77)).astype(np.int64)
    if distribution is None:
        # A range that is no divisor of 2**32: a remainder would favour its first third by two to one.
        x, distribution = x // 2**30, scipy.stats.randint(0, 3)
    values = np.arange(x.min(), x.max() + 1)
    assert chi_square(np.bincount(x - x.min()).astype(float), distribution.pmf(values) * SOME) > 1e-3
    assert abs(x.mean() - distribution.mean()) <= 4.5 * distribution.std() / np.sqrt(SOME)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("poisson", (4e15,)), ("binomial", (10**15, 0.3)), ("binomial", (2**53, 0.5)), ("binomial", (2**53, 1e-9))],
)
def test_large_counts_are_normal(backend: Backend, name: str, parameters: tuple[Any, ...]) -> None:
    n, p = parameters if name == "binomial" else (parameters[0], 0.0)
    mean, spread = (n * p, np.sqrt(n * p * (1 - p))) if p else (n, np.sqrt(n))
    x = (host(getattr(random, name)(SOME, *parameters, key=77)) - mean) / spread
    assert scipy.stats.kstest(x, "norm").pvalue > 1e-3
    assert abs(x.std() - 1) < 4.5 / np.sqrt(2 * SOME)


@pytest.mark.usefixtures("on_the_engine")
def test_large_counts_are_the_same_on_the_engine(backend: Backend) -> None:
    def draws() -> list[np.ndarray]:
        n, p = ops.asarray([2**53, 10**12, 20]), ops.asarray([0.3, 0.9, 0.5], dtype="float64")
        rate = ops.asarray([4e15, 1e9, 10.0], dtype="float64")
        return [host(random.binomial((200, 3), n, p, key=9)), host(random.poisson((200, 3), rate, key=9))]

    found = draws()
    with ember_ml.use_backend("numpy"):
        expected = draws()
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_distributions_over_classes() -> None:
    with ember_ml.use_backend("numpy"):
        p = np.array([0.1, 0.0, 0.2, 0.3, 0.4])
        with np.errstate(divide="ignore"):
            logits = np.log(p)
        x = np.asarray(random.categorical(logits, SOME, key=3))
        assert chi_square(np.bincount(x, minlength=5).astype(float), p * SOME) > 1e-3
        x = np.asarray(random.choice(5, SOME, p=p, key=4))
        assert chi_square(np.bincount(x, minlength=5).astype(float), p * SOME) > 1e-3
        # The first of two that are not put back has the probabilities themselves, and the second follows from it.
        drawn = np.stack([np.asarray(random.choice(5, 2, False, p, key=k)) for k in range(4000)])
        assert chi_square(np.bincount(drawn[:, 0], minlength=5).astype(float), p * 4000) > 1e-3
        second = np.array([sum(p[i] * p[j] / (1 - p[i]) for i in range(5) if i != j) for j in range(5)])
        assert chi_square(np.bincount(drawn[:, 1], minlength=5).astype(float), second * 4000) > 1e-3
        x = np.asarray(random.dirichlet([0.5, 1.0, 2.5], SOME, key=5, dtype="float64"))
        for i, a in enumerate((0.5, 1.0, 2.5)):
            assert scipy.stats.kstest(x[:, i], scipy.stats.beta(a, 4 - a).cdf).pvalue > 1e-3
        cov = np.array([[2.0, 0.6], [0.6, 0.5]])
        x = np.asarray(random.multivariate_normal([1.0, -1.0], cov, SOME, dtype="float64", key=6))
        np.testing.assert_allclose(np.cov(x.T), cov, atol=0.05)
        np.testing.assert_allclose(x.mean(0), [1, -1], atol=0.03)


def test_permutations_are_equally_likely(backend: Backend) -> None:
    found: dict[tuple[int, ...], int] = {}
    for key in range(2400):
        with ember_ml.use_backend("numpy"):
            order = tuple(np.asarray(random.permutation(4, key=key)).tolist())
        found[order] = found.get(order, 0) + 1
    assert len(found) == 24
    assert scipy.stats.chisquare(list(found.values())).pvalue > 1e-3
    for count in (0, 1, 2, 3, 1000, 4096):
        assert sorted(host(random.permutation(count, key=1)).tolist()) == list(range(count))


def test_words_look_random() -> None:
    """Balance of every bit, runs, collisions, and correlation of neighbours: a smoke test of the layout."""
    with ember_ml.use_backend("numpy"):
        words = np.asarray(random.bits(2**18, key=1))
        others = np.asarray(random.bits(2**18, key=2))
    for x in (words, others, words ^ others, words[1:] ^ words[:-1], words ^ (words >> 1)):
        ones = np.unpackbits(np.ascontiguousarray(x).view(np.uint8)).reshape(-1, 32).sum(0)
        assert np.all(np.abs(ones - len(x) / 2) < 5 * np.sqrt(len(x)) / 2)
    bits = np.unpackbits(words.view(np.uint8)).astype(np.int64)
    runs = 1 + np.count_nonzero(bits[1:] != bits[:-1])
    assert abs(runs - len(bits) / 2) < 5 * np.sqrt(len(bits)) / 2
    collisions = len(words) - len(np.unique(words))
    expected = len(words) ** 2 / 2 / 2**32
    assert abs(collisions - expected) < 5 * np.sqrt(expected)
    fractions = words / 2**32
    for lag in (1, 2, 3, 64):
        assert abs(np.corrcoef(fractions[lag:], fractions[:-lag])[0, 1]) < 5 / np.sqrt(len(words))


def test_split_keys_are_independent(backend: Backend) -> None:
    keys = random.split(random.key(5), 16)
    assert host(keys).dtype == np.uint32
    assert tuple(keys.shape) == (16, 2)
    rows = np.stack([host(random.uniform(2000, key=keys[i])) for i in range(16)] + [host(random.uniform(2000, key=5))])
    off = np.corrcoef(rows)[~np.eye(17, dtype=bool)]
    assert np.abs(off).max() < 5 / np.sqrt(2000)
    assert len({tuple(key) for key in host(keys).tolist()}) == 16
    with ember_ml.use_backend("numpy"):
        np.testing.assert_array_equal(host(keys), random.split(5, 16))


@pytest.mark.usefixtures("on_the_engine")
def test_keys_derive_in_the_same_way_on_the_engine(backend: Backend) -> None:
    key = random.key(2**40 + 9)
    results = [random.split(key, 3), random.fold_in(key, 2**35 + 1), random.fold_in(key, ops.asarray(2**35 + 1))]
    with ember_ml.use_backend("numpy"):
        expected = [random.split(2**40 + 9, 3), *[random.fold_in(2**40 + 9, 2**35 + 1)] * 2]
    for result, wanted in zip(results, expected, strict=True):
        assert host(result).dtype == np.uint32
        np.testing.assert_array_equal(host(result), wanted)


def compiled(backend: Backend, function: Callable[..., Any]) -> Callable[..., Any]:
    if backend.name == "torch":
        import torch

        torch._dynamo.reset()
        return torch.compile(function, fullgraph=True, backend="eager", dynamic=False)
    if backend.name == "mlx":
        import mlx.core as mx

        return mx.compile(function)
    if backend.name == "jax":
        import jax

        return jax.jit(function)
    return function


# The others differ in nothing that a compiler sees, and take it long.
COMPILED = ["bits", "uniform between", "bernoulli", "randint", "permutation", "exponential", "categorical"]


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_draws_the_same_numbers(backend: Backend, name: str) -> None:
    draw = compiled(backend, DRAWS[name])
    # Numbers that are derived from uniform ones agree to a few units in the last place.
    tolerance = 4e-7 if name == "exponential" and backend.name == "jax" else 0
    for seed in (1, 2**63 + 5):
        np.testing.assert_allclose(host(draw(random.key(seed))), reference(name, seed), tolerance)


@pytest.mark.parametrize("name", ["gamma", "beta", "dirichlet", "poisson", "binomial"])
def test_keys_that_a_transform_traces_draw_the_same_numbers(backend: Backend, name: str) -> None:
    seeds = 1, 2**63 + 5
    result = host(vmap(DRAWS[name])(ops.stack([random.key(seed) for seed in seeds])))
    for i, seed in enumerate(seeds):
        np.testing.assert_array_equal(result[i], reference(name, seed))


def test_rejection_is_compiled_too() -> None:
    torch = pytest.importorskip("torch")
    with ember_ml.use_backend("torch"):
        torch._dynamo.reset()
        draw = torch.compile(DRAWS["poisson"], fullgraph=True, backend="eager")
        np.testing.assert_array_equal(host(draw(random.key(8))), reference("poisson", 8))


def test_a_stream_in_compiled_code_is_that_of_its_key(backend: Backend) -> None:
    def pair(key: Any) -> tuple[Any, Any]:
        with random.stream(key):
            return random.uniform(5), random.bits(3)

    draw = compiled(backend, pair)
    for seed in (3, 4):
        for result, expected in zip(draw(random.key(seed)), pair(seed), strict=True):
            np.testing.assert_array_equal(host(result), host(expected))
    first = host(random.uniform(5, key=random.fold_in(random.key(3), 0)))
    np.testing.assert_array_equal(host(pair(3)[0]), first)


def test_code_that_an_engine_compiles_itself_keeps_the_key_that_it_drew(backend: Backend) -> None:
    ops.set_seed(5)
    draw = compiled(backend, lambda x: x + random.uniform(3))
    first, second = (host(draw(ops.zeros(3))).tolist() for _ in range(2))
    assert (first == second) == (backend.name != "numpy")
    ops.set_seed(5)
    assert host(random.uniform(3)).tolist() == first


def test_inductor_and_eager_agree() -> None:
    torch = pytest.importorskip("torch")
    with ember_ml.use_backend("torch"):
        torch._dynamo.reset()
        draw = torch.compile(DRAWS["uniform between"], fullgraph=True)
        np.testing.assert_array_equal(host(draw(random.key(8))), reference("uniform between", 8))


def test_compiled_training_drops_other_elements_on_each_call_and_the_same_on_each_engine(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend.name == "torch":
        import torch

        torch._dynamo.reset()
        transform = backends.submodule(backend.module, "transform")
        monkeypatch.setattr(transform, "compiled", lambda f: torch.compile(f, backend="eager"))

    def trained(step: Callable[..., Any]) -> list[np.ndarray]:
        ops.set_seed(3)
        model, optimizer = modules.Sequential(modules.Linear(8, 16), modules.Dropout(0.3)), optim.SGD(0.1)
        x = random.normal((32, 8))
        return [host(step(model, optimizer, x)) for _ in range(4)]

    def step(model: Any, optimizer: Any, x: Any) -> Any:
        def loss(model: Any) -> Any:
            result = model(x)
            return ops.mean(result**2), result == 0

        (_, dropped), grads = value_and_grad(loss, has_aux=True)(model)
        optimizer.update(model, grads)
        return dropped

    found = trained(ember_ml.compile(step))
    with ember_ml.use_backend("numpy"):
        expected = trained(ember_ml.compile(step))
    for i, dropped in enumerate(found):
        assert 0.2 < dropped.mean() < 0.4
        np.testing.assert_array_equal(dropped, expected[i])
        assert not any(np.array_equal(dropped, other) for other in found[:i])


def test_streams_nest_and_end(backend: Backend) -> None:
    ops.set_seed(1)
    outside = host(ops.random_uniform(3)).tolist()
    ops.set_seed(1)
    with random.stream(5):
        first = host(random.uniform(3)).tolist()
        with random.stream(random.key(5)):
            assert host(random.uniform(3)).tolist() == first
        second = host(random.uniform(3)).tolist()
    assert first != second
    with pytest.raises(RuntimeError, match="mine"), random.stream(5):
        raise RuntimeError("mine")
    assert host(random.uniform(3)).tolist() == outside


def test_seed_and_state(backend: Backend) -> None:
    ops.set_seed(42)
    assert ops.get_seed() == 42
    expected = [host(random.normal(4)).tolist() for _ in range(3)]
    ops.set_seed(42)
    assert host(random.normal(4)).tolist() == expected[0]
    state = json.loads(json.dumps(random.get_state()))
    assert host(random.normal(4)).tolist() == expected[1]
    random.set_state(state)
    assert host(random.normal(4)).tolist() == expected[1]
    assert host(random.normal(4)).tolist() == expected[2]
    with ember_ml.use_backend("numpy"):
        random.set_state(state)
        assert random.normal(4).tolist() == expected[1]
    with pytest.raises(ValueError, match="state"):
        random.set_state({"seed": 1})


def test_generators(backend: Backend) -> None:
    one, other = random.Generator(9), random.Generator(9)
    names = [name for name in random.__all__ if hasattr(random.Generator, name.removeprefix("random_"))]
    assert {"random_uniform", "random_choice", "shuffle", "random_dirichlet", "truncated_normal"} <= set(names)
    assert host(one.uniform((2, 3))).tolist() == host(other.uniform((2, 3))).tolist()
    state = json.loads(json.dumps(one.get_state()))
    copy = pickle.loads(pickle.dumps(one))
    expected = host(one.gamma(5, 2.0)).tolist()
    assert host(copy.gamma(5, 2.0)).tolist() == expected
    other.set_state(state)
    assert host(other.gamma(5, 2.0)).tolist() == expected
    assert host(one.key()).shape == (2,)
    assert random.Generator().get_state() != random.Generator().get_state()
    assert "2 draws" in repr(copy)


def test_threads_draw_different_numbers(backend: Backend) -> None:
    shared, found = random.Generator(3), []

    def draw() -> None:
        with ember_ml.use_backend(backend.name):
            found.extend([host(random.uniform(4)).tobytes() for _ in range(20)])
            found.extend([host(shared.uniform(4)).tobytes() for _ in range(20)])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 160


def test_native_numbers_are_the_engines_own(backend: Backend) -> None:
    state = random.get_state()
    with random.native():
        for name in ("uniform", "normal", "bits", "exponential", "gumbel"):
            x = host(getattr(random, name)(2000))
            y = host(getattr(random, name)(2000))
            assert x.shape == (2000,)
            assert not np.array_equal(x, y)
        assert 0.4 < host(random.uniform(5000)).mean() < 0.6
        assert abs(host(random.normal(5000, 3.0, 1.0)).mean() - 3) < 0.1
        assert abs(host(random.gamma(5000, 2.0)).mean() - 2) < 0.2
        assert abs(host(random.poisson(5000, 20.0)).mean() - 20) < 0.5
        assert sorted(host(random.permutation(50)).tolist()) == list(range(50))
        np.testing.assert_array_equal(host(random.uniform(4, key=1)), reference_uniform())
    assert random.get_state() == state


def test_recomputation_repeats_native_numbers(backend: Backend) -> None:
    """On NumPy and MLX, the stream is drawn from, as their generators cannot repeat numbers."""

    def total(x: Any) -> Any:
        return ops.sum(ops.multiply(ops.dropout(x, 0.5), x))

    x = ops.ones(64)
    with random.native():
        value, gradient = value_and_grad(checkpoint(total))(x)
    assert float(ops.sum(gradient)) == 2 * float(value)
    assert 0 < float(value) < 128
    if backend.name == "torch":
        # The gradient may be computed after the block.
        x.requires_grad_()
        with random.native():
            value = checkpoint(total)(x)
        value.backward()
        assert float(x.grad.sum()) == 2 * float(value.detach())


def test_native_numbers_fill_their_dtype(backend: Backend) -> None:
    """Of numbers with the 24 bits of float32, 100000 would have hundreds in common."""
    with random.native():
        for draw in (random.uniform, random.normal, random.exponential):
            x = host(draw(100_000, dtype="float64"))
            assert x.dtype == np.float64
            assert len(np.unique(x)) == x.size


def reference_uniform() -> np.ndarray:
    with ember_ml.use_backend("numpy"):
        return np.asarray(random.uniform(4, key=1))


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "negative stddev": (lambda: random.normal(3, 0.0, -1.5), "-1.5"),
    "negative stddev in a tensor": (lambda: random.normal(3, 0.0, ops.asarray([1.0, -2.5, 1.0])), "-2.5"),
    "negative scale": (lambda: random.laplace(3, 0.0, -1.5), "-1.5"),
    "negative scale of exponential": (lambda: random.exponential(3, -1.5), "-1.5"),
    "negative scale of gumbel": (lambda: random.gumbel(3, 0.0, -1.5), "-1.5"),
    "p above one": (lambda: random.bernoulli(3, 1.5), "1.5"),
    "p below zero in a tensor": (lambda: random.bernoulli(3, ops.asarray([0.5, -0.5, 0.5])), "-0.5"),
    "p that is no number": (lambda: random.bernoulli(3, float("nan")), "nan"),
    "p of binomial": (lambda: random.binomial(3, 5, 1.5), "1.5"),
    "n of binomial": (lambda: random.binomial(3, -5, 0.5), "-5"),
    "n that is not whole": (lambda: random.binomial(3, 2.5, 0.5), "2.5"),
    "rate of a mask": (lambda: random.keep_mask(3, 1.25), "1.25"),
    "alpha": (lambda: random.gamma(3, 0.0), "0.0"),
    "beta": (lambda: random.gamma(3, 1.0, -2.0), "-2.0"),
    "a of beta": (lambda: random.beta(3, -2.0, 1.0), "-2.0"),
    "rate of poisson": (lambda: random.poisson(3, -2.0), "-2.0"),
    "alpha of dirichlet": (lambda: random.dirichlet([1.0, -2.5]), "-2.5"),
    "low above high": (lambda: random.uniform(3, 2.0, 1.0), "2.0"),
    "bounds beyond float16": (lambda: random.uniform(3, 0.0, 1e5, dtype="float16"), "100000"),
    "bounds that are not finite": (lambda: random.uniform(3, 0.0, float("inf")), "inf"),
    "low equal to high": (lambda: random.randint((3,), 5, 5), "5"),
    "low above high in truncated": (lambda: random.truncated_normal(3, 0.0, 1.0, 2.0, 1.0), "2.0"),
    "bounds off in float32": (lambda: random.truncated_normal(3, 0.0, 1.0, 5.0, 6.0), "float32 .* low=5.0, high=6.0"),
    "bounds off in float16": (
        lambda: random.truncated_normal(3, 0.0, 1.0, -9.0, -6.0, dtype="float16"),
        "low=-9.0, high=-6.0",
    ),
    "bounds off in float64": (
        lambda: random.truncated_normal(3, 0.0, 1.0, 8.0, 9.0, dtype="float64"),
        "low=8.0, high=9.0",
    ),
    "bounds beyond the dtype": (lambda: random.randint(3, 0, 300, dtype="uint8"), "300"),
    "shape of a key": (lambda: random.uniform(3, key=ops.asarray([1, 2, 3])), "3"),
    "dtype of a key": (lambda: random.uniform(3, key=ops.asarray([1.0, 2.0])), "float32"),
    "size of a key": (lambda: random.uniform(3, key=2**64), str(2**64)),
    "negative key": (lambda: random.uniform(3, key=-1), "-1"),
    "negative seed": (lambda: ops.set_seed(-1), "-1"),
    "negative length": (lambda: random.uniform((2, -3)), "-3"),
    "parameters that do not fit": (lambda: random.normal((2, 3), ops.zeros(4)), "4"),
    "logits without a class": (lambda: random.categorical(ops.full((2, 3), -float("inf"))), "inf"),
    "probabilities that do not sum to 1": (lambda: random.choice(3, 2, p=[0.5, 0.1, 0.1]), "0.5"),
    "too many to choose": (lambda: random.choice(3, 4, replace=False), "4"),
    "nothing to choose from": (lambda: random.choice(0, 4), "0"),
    "too few keys": (lambda: random.split(random.key(1), -2), "-2"),
    "an axis to choose along": (lambda: random.choice(ops.ones((2, 3)), 4, axis=2), "axis must be from -2 to 1"),
    "a number to choose from": (lambda: random.choice(2.5, 4), "axis must not be given for a 0-d tensor"),
}


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("float32", 3.5, 9.0), ("float64", -np.inf, -5.0), ("float64", 6, 7)]
)
def test_truncated_tails_are_those_of_scipy(dtype: str, low: float, high: float, backend: Backend) -> None:
    x = host(random.truncated_normal(20000, 0.0, 1.0, low, high, dtype=dtype, key=1)).astype("float64")
    expected = scipy.stats.truncnorm(low, high)
    assert low <= x.min() <= x.max() <= high
    assert x.mean() == pytest.approx(expected.mean(), abs=6 * expected.std() / 20000**0.5)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values(backend: Backend, name: str) -> None:
    call, value = WRONG[name]
    with pytest.raises(ValueError, match=value.replace("+", r"\+")):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: random.uniform(3, dtype="int32"),
        lambda: random.normal(3, dtype="complex64"),
        lambda: random.bits(3, dtype="float32"),
        lambda: random.randint(3, 0, 5, dtype="float32"),
        lambda: random.uniform(3, key="seven"),
        lambda: ops.set_seed(1.5),
        lambda: random.key(1.5),
        lambda: random.Generator("seven"),
        lambda: random.fold_in(7, 1.5),
        lambda: random.fold_in(random.key(7), ops.asarray(1.5)),
        lambda: random.fold_in(random.key(7), ops.asarray([1, 2])),
        lambda: random.bernoulli(3, 0.5j),
        lambda: random.binomial(3, 5, 0.5j),
        lambda: random.poisson(3, ops.asarray([1j, 2j, 3j])),
        lambda: random.truncated_normal(3, low=ops.asarray([0.5])),
    ],
)
def test_wrong_kinds(backend: Backend, call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        call()


def test_draws_do_not_wait_for_a_lazy_engine(backend: Backend) -> None:
    with ember_ml.unchecked():
        result = random.normal(3, ops.asarray(2.0), ops.asarray(-1.0), key=1)
    assert host(result).shape == (3,)


def test_gradients_flow_to_location_and_scale(backend: Backend) -> None:
    standard = {name: float(ops.sum(getattr(random, name)(5, key=1))) for name in ("uniform", "normal", "exponential")}

    def derivative(draw: Callable[[Any], Any]) -> float:
        return float(grad(lambda x: ops.sum(draw(x)))(ops.asarray(1.5)))

    assert derivative(lambda x: random.normal(5, x, 2.0, key=1)) == 5.0
    assert derivative(lambda x: random.normal(5, 0.0, x, key=1)) == pytest.approx(standard["normal"], rel=1e-5)
    assert derivative(lambda x: random.exponential(5, x, key=1)) == pytest.approx(standard["exponential"], rel=1e-5)
    assert derivative(lambda x: random.uniform(5, x, 2.0, key=1)) == pytest.approx(5 - standard["uniform"], rel=1e-5)


def test_integers_of_numpy_are_integers(backend: Backend) -> None:
    assert host(random.bits(3, key=np.int64(7))).tolist() == host(random.bits(3, key=7)).tolist()
    ops.set_seed(np.uint64(2**63))
    assert ops.get_seed() == 2**63
    assert host(random.key(np.uint64(2**63))).tolist() == host(random.key(2**63)).tolist()
    assert random.Generator(np.int64(7)).get_state() == random.Generator(7).get_state()
    for number in (np.int64(2**40), np.array(2**40), ops.asarray(2**40)):
        assert host(random.fold_in(random.key(7), number)).tolist() == host(random.fold_in(7, 2**40)).tolist()


def test_bounds_of_numpy_are_numbers(backend: Backend) -> None:
    expected = host(random.truncated_normal(9, low=-0.7, high=1.3, key=7))
    for low, high in ((np.float64(-0.7), np.float64(1.3)), (ops.asarray(-0.7, dtype="float64"), 1.3)):
        np.testing.assert_array_equal(host(random.truncated_normal(9, low=low, high=high, key=7)), expected)
    half = host(random.truncated_normal(9, low=np.float16(-0.5), high=np.float32(1.5), key=7))
    np.testing.assert_array_equal(half, host(random.truncated_normal(9, low=-0.5, high=1.5, key=7)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parameters_may_be_halves(backend: Backend, dtype: str) -> None:
    few, many = ops.asarray([3.0, 4.0], dtype=dtype), ops.full(10, 0.1, dtype=dtype)
    assert host(random.poisson(2, few, key=7)).tolist() == host(random.poisson(2, [3.0, 4.0], key=7)).tolist()
    assert host(random.binomial(2, few, 0.5, key=7)).tolist() == host(random.binomial(2, [3, 4], 0.5, key=7)).tolist()
    assert host(random.choice(10, 5, p=many, key=7)).max() < 10


def test_a_device_without_double_precision_draws_the_same(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs float64 is made in host memory there, so that the numbers do not depend on the device."""
    logits, shares = [[0.1, 0.2, 0.3], [3.0, 1.0, 0.0]], [0.2, 0.3, 0.5]

    def draws() -> list[Any]:
        return [
            random.categorical(logits, 50, key=3),
            random.categorical(logits, 50, key=random.key(3)),
            random.choice(3, 40, p=shares, key=4),
            random.poisson((30,), lam=7.5, key=5),
            random.gamma((30,), 2.5, 1.5, key=6),
            random.binomial((30,), 20, 0.3, key=7),
            random.uniform((30,), -1.5, 2.25, key=8),
        ]

    expected = list(map(host, draws()))
    monkeypatch.setattr(backend.module.random, "has_double", lambda device: False)
    monkeypatch.setattr(backend.module.random, "is_host", lambda device: False)
    for result, wanted in zip(draws(), expected, strict=True):
        np.testing.assert_array_equal(host(result), wanted)
