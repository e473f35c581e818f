"""Training on many ranks: a slice of each batch on each, and the curve of a single process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_program
from ranks import launch

import ember_ml
from ember_ml import ops, transform
from ember_ml.backend import Backend
from ember_ml.training.data import Arrays, Batches, slice_of

ENGINES = ember_ml.get_available_backends()

# The time of the suite is limited, and JAX compiles each operation.
STEPS = dict.fromkeys(ENGINES, 20) | {"torch": 50, "jax": 7}

# Without mpi4py, ranks of NumPy use the transport of torch.
needs_torch = pytest.mark.skipif("torch" not in ENGINES, reason="the ranks are those of torch, or use its transport")


@cache
def expected(name: str, steps: int, **options: Any) -> dict[str, Any]:
    """Figures of a single process of NumPy, whose curve is that of every engine."""
    with ember_ml.use_backend("numpy"):
        return rank_program.curve(name, steps, **options)


def assert_close(found: dict[str, Any], wanted: dict[str, Any], tolerance: float = 1e-5) -> None:
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        np.testing.assert_allclose(found[key], values, rtol=0, atol=tolerance, err_msg=key)


DRAWS: dict[str, Callable[[int], Any]] = {
    "bits": lambda n: ops.random.bits((n, 3), key=7),
    "uniform": lambda n: ops.random.uniform((n, 3), key=7),
    "uniform between": lambda n: ops.random.uniform((n, 3), -1.0, 2.0, key=7),
    "normal": lambda n: ops.random.normal((n, 3, 5), key=7),
    "bernoulli": lambda n: ops.random.bernoulli((n, 3), 0.3, key=7),
    "gamma": lambda n: ops.random.gamma((n, 3), 2.0, key=7),
    "poisson": lambda n: ops.random.poisson((n, 3), 4.0, key=7),
    "randint": lambda n: ops.random.randint((n, 3), 0, 1000, key=7),
    "dirichlet": lambda n: ops.random.dirichlet([1.0, 2.0], n, key=7),
    "categorical": lambda n: ops.random.categorical(ops.zeros((n, 7)), 3, key=7),
    "dropout": lambda n: ops.dropout(ops.ones((n, 3)), 0.5, key=7),
}


@pytest.mark.parametrize("name", DRAWS)
def test_rows_of_a_draw(backend: Backend, name: str) -> None:
    whole = ops.to_numpy(DRAWS[name](8))
    for first, count in ((0, 3), (3, 3), (3, 5)):
        with ops.random.rows(first, count):
            assert np.array_equal(ops.to_numpy(DRAWS[name](count)), whole[first : first + count])


def test_draws_that_are_not_of_examples(backend: Backend) -> None:
    def draws() -> Any:
        return [
            ops.random.permutation(5, key=7).tolist(),
            ops.random.choice(5, 5, replace=False, p=[0.2] * 5, key=7).tolist(),
            ops.random.uniform((3, 5), key=7).tolist(),
            float(ops.random.uniform((), key=7)),
        ]

    alone = draws()
    with ops.random.rows(2, 5):
        assert draws() == alone


@pytest.mark.usefixtures("traced_only")
def test_rows_in_compiled_code(backend: Backend) -> None:
    drop = transform.compile(lambda x: ops.dropout(x, 0.5))

    def run(first: int, count: int) -> Any:
        ops.random.set_seed(3)
        with ops.random.rows(first, count):
            return ops.to_numpy(drop(ops.ones((count, 4))))

    whole = run(0, 6)
    for first in (0, 3):
        assert np.array_equal(run(first, 3), whole[first : first + 3])


def test_rows_when_intermediate_values_are_recomputed(backend: Backend) -> None:
    def gradient() -> Any:
        ops.random.set_seed(3)
        layer = transform.checkpoint(lambda x: ops.dropout(ops.sin(x), 0.5))
        with ops.random.rows(3, 2):
            return ops.to_numpy(transform.grad(lambda x: ops.sum(layer(x)))(ops.ones((2, 8))))

    ops.random.set_seed(3)
    kept = ops.to_numpy(ops.dropout(ops.ones((5, 8)), 0.5))[3:]
    np.testing.assert_allclose(gradient(), kept * np.cos(1.0), rtol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 2, 7, 19])
def test_slices_of_a_batch(count: int, size: int) -> None:
    parts = [list(range(count))[slice_of(count, rank, size)] for rank in range(size)]
    if count < size:
        assert parts == [list(range(count))] * size
    else:
        assert list(chain.from_iterable(parts)) == list(range(count))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("is_file", [False, True], ids=["array", "file"])
def test_shares_of_data(backend: Backend, tmp_path: Path, is_file: bool) -> None:
    """The shares of all ranks are the batches of one, whatever holds the examples."""
    x, weights = np.arange(20.0, dtype=np.float32), np.arange(20.0, dtype=np.float32) / 7
    if is_file:
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "weights.npy", weights)
        x, weights = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("x", "weights"))

    def shares(data: Any, rank: int, size: int) -> list[Any]:
        ops.random.set_seed(0)
        return list(data.shares(True, rank=rank, size=size))

    arrays = Arrays(x, x, 6, weights=weights)
    for data in (arrays, Batches([(x[:5], x[:5], weights[:5]), (x[5:7], x[5:7], weights[5:7])])):
        whole = shares(data, 0, 1)
        ranks = [shares(data, rank, 3) for rank in range(3)]
        for one, parts in zip(whole, zip(*ranks, strict=True), strict=True):
            assert {float(part.weight) for part in parts} == {float(one.weight)}
            counted = [part for part in parts if part.is_counted]
            for i in range(3):
                together = np.concatenate([ops.to_numpy(part.batch[i]) for part in counted])
                assert np.array_equal(together, ops.to_numpy(one.batch[i]))
            assert [part.first for part in counted] == list(np.cumsum([0, *(part.examples for part in counted)])[:-1])


@pytest.mark.parametrize("engine", ENGINES)
def test_curves(engine: str, tmp_path: Path) -> None:
    """1 x 32, 2 x 16 and 4 x 8 have one curve; a run of 4 ranks goes on with 2 of them, and on another engine."""
    steps = STEPS[engine]
    jobs: list[dict[str, Any]] = [{"name": name, "steps": steps} for name in rank_program.TASKS]
    folder = str(tmp_path / "run")
    # Step 5 is within an epoch.
    broken = {"name": "transformer", "folder": folder, "steps": 5, "save_at": 5}
    resumed = {"name": "transformer", "folder": folder, "steps": 12}
    for size, last in ((4, broken), (2, resumed)) if engine != "jax" else ((2, broken),):
        *found, end = launch(engine, size, [*jobs, last])
        for job, one in zip(jobs, found, strict=True):
            assert_close(one, expected(**job))
    if engine != "jax":
        assert_close(end, expected("transformer", 12), 1e-4)
    with ember_ml.use_backend("numpy"):
        assert_close(rank_program.curve("transformer", 12, folder), expected("transformer", 12), 1e-4)


VARIANTS: dict[str, dict[str, Any]] = {
    "weights": {"name": "perceptron", "steps": 4, "is_weighted": True},
    "an iterable": {"name": "convolutional", "steps": 4, "is_iterated": True},
    "accumulation": {"name": "transformer", "steps": 4, "accumulate": 2},
    "accumulation with weights": {"name": "perceptron", "steps": 4, "accumulate": 2, "is_weighted": True},
    "float16": {"name": "perceptron", "steps": 4, "precision": "fp16-mixed"},
    "steps per epoch": {"name": "perceptron", "steps": 5, "fit": {"steps_per_epoch": 2}},
    "no shuffling": {"name": "perceptron", "steps": 4, "fit": {"shuffle": False}},
}


@needs_torch
def test_variants() -> None:
    """Three ranks, so that slices differ in length."""
    found = launch("numpy", 3, list(VARIANTS.values()))
    for job, one in zip(VARIANTS.values(), found, strict=True):
        with ember_ml.use_backend("numpy"):
            assert_close(one, rank_program.curve(**job), 1e-3 if "precision" in job else 1e-5)


@needs_torch
def test_a_compiled_step() -> None:
    job = {"name": "transformer", "steps": 2, "compile": True}
    found, _ = launch("torch", 2, [job, {"check": "compiled_statistics"}])
    assert_close(found, expected(**job))


@needs_torch
def test_what_ranks_agree_on(tmp_path: Path) -> None:
    checks = [name for name in vars(rank_program) if name.startswith("check_") and name != "check_model"]
    assert len(checks) == 10
    launch("numpy", 2, [{"check": name, "folder": str(tmp_path)} for name in checks])
