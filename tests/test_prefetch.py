"""Batches of memory-mapped files, which a thread reads ahead."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops, optim, training
from ember_ml.backend import Backend
from ember_ml.training.data import AHEAD, Arrays, prefetch


def threads() -> int:
    return sum(thread.name.startswith("ember_ml-prefetch") for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Any:
    yield
    assert threads() == 0


@pytest.fixture
def files(tmp_path: Path) -> tuple[Any, Any]:
    rows = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "y.npy", rows[:, :1])
    return np.load(tmp_path / "x.npy", mmap_mode="r"), np.load(tmp_path / "y.npy", mmap_mode="r")


def fit(x: Any, y: Any, **options: Any) -> Any:
    ops.random.set_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    trainer = training.Trainer(model, "mse", optim.SGD(0.1), **options)
    return trainer.fit(x, y, epochs=3, batch_size=8, verbose=0), ops.random.get_state()


class TestPrefetch:
    def test_results_are_in_order_and_a_few_are_ahead(self) -> None:
        started: list[int] = []

        def double(x: int) -> int:
            started.append(x)
            return 2 * x

        results = prefetch(double, range(20))
        assert next(results) == 0
        time.sleep(0.1)
        assert len(started) <= AHEAD + 1
        assert list(results) == list(range(2, 40, 2))
        assert started == list(range(20))

    def test_the_thread_works_while_the_caller_does(self) -> None:
        is_started = threading.Event()

        def wait(x: int) -> int:
            if x == 1:
                is_started.set()
            return x

        results = prefetch(wait, range(3))
        assert next(results) == 0
        # Nothing is asked of the iterator meanwhile.
        assert is_started.wait(10)
        results.close()

    def test_an_error_is_raised_in_its_place(self) -> None:
        results = prefetch(lambda x: 1 // x, [1, 0, 2])
        assert next(results) == 1
        with pytest.raises(ZeroDivisionError):
            next(results)
        assert threads() == 0

    def test_a_caller_that_stops_ends_the_thread(self) -> None:
        results = prefetch(lambda x: x, iter(int, 1))
        next(results)
        assert threads() == 1
        results.close()
        assert threads() == 0

    @pytest.mark.parametrize("items", [[], [1]])
    def test_few_items(self, items: list[int]) -> None:
        assert list(prefetch(lambda x: x, items)) == items


class TestTraining:
    @pytest.mark.parametrize("accumulate", [1, 3])
    def test_files_train_as_arrays_do(self, backend: Backend, files: tuple[Any, Any], accumulate: int) -> None:
        """In the same order, with the same random numbers during and after the run."""
        found, state = fit(*files, accumulate=accumulate)
        expected, expected_state = fit(*map(np.array, files), accumulate=accumulate)
        assert found.steps == expected.steps
        assert state == expected_state

    def test_a_file_and_an_array(self, backend: Backend, files: tuple[Any, Any]) -> None:
        x, y = files
        found, _ = fit(x, np.array(y))
        assert found.steps == fit(np.array(x), y)[0].steps

    def test_tensors_of_the_engine_of_the_caller(self, backend: Backend, files: tuple[Any, Any]) -> None:
        batches = Arrays(*files, batch_size=20).batches(shuffle=True)
        kind = type(ops.ones(1))
        assert [[type(part) for part in batch] for batch in batches] == [[kind, kind]] * 3

    def test_an_error_of_the_thread_is_that_of_fit(self, backend: Backend, files: tuple[Any, Any]) -> None:
        class Broken(np.memmap):  # type: ignore[type-arg]
            def __getitem__(self, key: Any) -> Any:
                if isinstance(key, np.ndarray) and self.filename is not None:
                    raise OSError("the disk is gone")
                return super().__getitem__(key)

        x, y = files
        with pytest.raises(OSError, match="the disk is gone"):
            fit(x.view(Broken), y)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_no_thread_is_left_by_a_run_that_stops(
        self, backend: Backend, files: tuple[Any, Any], error: type[BaseException]
    ) -> None:
        def stop(trainer: Any, loss: Any) -> None:
            assert threads() == 1
            raise error

        with pytest.raises(error):
            fit(*files, callbacks=training.LambdaCallback(on_step_end=stop))
        assert threads() == 0

    def test_a_run_that_stops_early_goes_on(self, backend: Backend, files: tuple[Any, Any], tmp_path: Path) -> None:
        expected, _ = fit(*files)

        def save(trainer: Any, loss: Any) -> None:
            if trainer.step == 4:
                trainer.save(tmp_path / "run")

        fit(*files, callbacks=training.LambdaCallback(on_step_end=save))
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        trainer = training.Trainer(model, "mse", optim.SGD(0.1), callbacks=training.LambdaCallback())
        found = trainer.fit(*files, epochs=3, batch_size=8, verbose=0, resume=tmp_path / "run")
        assert found.steps == expected.steps
