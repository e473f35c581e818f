"""Devices: the ones there are, the default one, and what is said of those that are absent."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import Backend


@pytest.fixture(autouse=True)
def _as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test makes the default device, it is none afterwards."""
    from ember_ml.ops import device

    device._missed.clear()
    yield
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            ops.set_default_device(None)


def test_the_cpu_is_always_there(backend: Backend) -> None:
    found = ops.get_available_devices()
    assert found[0] == "cpu"
    assert all(isinstance(name, str) and ops.is_available(name) for name in found)
    assert ops.get_available_devices(backend.name) == found
    assert ops.get_available_devices("numpy") == ["cpu"]


def test_devices_of_an_unknown_backend() -> None:
    with pytest.raises(ember_ml.errors.BackendNotFoundError, match="abacus"):
        ops.get_available_devices("abacus")


def test_every_device_holds_tensors(backend: Backend) -> None:
    for name in ops.get_available_devices():
        x = ops.to_device([1.0, 2.0], name)
        assert ops.get_device(x).startswith(name) or backend.name == "mlx"
        assert ops.to_numpy(ops.add(x, 1.0)).tolist() == [2.0, 3.0]
        assert ops.get_device(ops.to_device(x, "cpu")) == "cpu" or backend.name == "mlx"


def test_moving_to_where_it_is_changes_nothing(backend: Backend) -> None:
    x = ops.to_device(ops.asarray([1.0]), "cpu")
    assert ops.to_device(x, "cpu") is x


@pytest.mark.parametrize("wrong", ["abacus", "cuda:99", "", 3, "CPU "])
def test_an_absent_device_raises_and_says_which_there_are(backend: Backend, wrong: object) -> None:
    before = backend.device
    assert not ops.is_available(wrong)
    for use in (ops.set_default_device, lambda name: ops.to_device([1.0], name), ops.synchronize, ops.memory_info):
        with pytest.raises(ValueError, match=r"available: cpu"):
            use(wrong)
    assert backend.device is before


def test_the_default_device_is_where_tensors_are_made(backend: Backend) -> None:
    for name in ops.get_available_devices():
        ops.set_default_device(name)
        assert ops.get_default_device().startswith(name)
        assert ops.get_device(ops.asarray([1.0])) == ops.get_default_device()
        assert ops.get_device(ops.zeros((2,))) == ops.get_default_device()
    ops.set_default_device(None)
    assert backend.device is None


def test_each_backend_has_a_default_of_its_own(backend: Backend) -> None:
    ops.set_default_device("cpu")
    assert backend.device is not None
    for name in ember_ml.get_available_backends():
        if name != backend.name:
            assert ember_ml.backend.load(name).device is None


def test_falling_back_is_asked_for_and_warned_about_once(backend: Backend) -> None:
    with pytest.warns(UserWarning, match="no device 'abacus'.*CPU"):
        ops.set_default_device("abacus", fallback=True)
    assert ops.get_default_device() == "cpu"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.set_default_device("abacus", fallback=True)
        ops.set_default_device("cpu", fallback=True)
    assert ops.get_default_device() == "cpu"


def test_the_preferred_device_is_the_first_that_exists(backend: Backend) -> None:
    assert ops.prefer_device("abacus", "cpu", "cuda") == "cpu"
    assert ops.prefer_device("cuda", "mps", "cpu") in ops.get_available_devices()
    with pytest.raises(ValueError, match=r"abacus, slate; available: cpu"):
        ops.prefer_device("abacus", "slate")
    with pytest.raises(ValueError, match="available: cpu"):
        ops.prefer_device()


def test_gpu_is_the_best_accelerator_or_absent(backend: Backend) -> None:
    assert ops.is_available("gpu") is (len(ops.get_available_devices()) > 1)


@pytest.mark.device
def test_gpu_is_a_name_of_the_accelerator(backend: Backend) -> None:
    assert ops.prefer_device("gpu", "cpu") == "gpu"
    ops.set_default_device("gpu")
    assert ops.get_default_device() != "cpu"
    assert ops.get_device(ops.zeros(2)) == ops.get_default_device()


@pytest.mark.device
def test_the_memory_of_an_accelerator_is_that_of_its_tensors(backend: Backend, device: str) -> None:
    before = ops.memory_usage(device)
    big = ops.add(ops.zeros((1000, 1000), device=device), 1.0)
    assert float(ops.to_numpy(big)[0, 0]) == 1.0
    assert ops.memory_usage(device) >= before + 4_000_000


def test_waiting_answers_nothing(backend: Backend) -> None:
    for name in (None, *ops.get_available_devices()):
        assert ops.synchronize(name) is None


def test_memory_is_told_in_bytes(backend: Backend) -> None:
    big = ops.add(ops.zeros((1000, 1000)), 1.0)
    assert float(ops.to_numpy(big)[0, 0]) == 1.0
    for name in (None, *ops.get_available_devices()):
        told = ops.memory_info(name)
        assert list(told) == ["allocated", "peak", "total", "free"]
        assert all(value is None or type(value) is int for value in told.values())
        assert type(ops.memory_usage(name)) is int
    here = ops.memory_info(ops.get_default_device())
    assert here["allocated"] is None or here["allocated"] >= 4_000_000
    assert here["peak"] is None or here["peak"] >= 4_000_000
    assert here["total"] is None or here["free"] is None or 0 < here["free"] <= here["total"]


def test_a_host_array_is_where_the_active_backend_puts_it(backend: Backend) -> None:
    assert ops.get_device(np.ones(3)) == ops.get_default_device()
