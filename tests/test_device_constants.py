"""What an operation creates besides its result is on the device of its tensors, never where torch would put it.

Tensors on ``meta`` have no values, so that one which torch made there by itself cannot be computed with on the CPU.
On a machine with a GPU, the same mistake puts a tensor on the CPU next to one on the GPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from layers import CASES

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops, optim
from ember_ml.dispatch import DEVICE, REGISTRY, Operation
from ember_ml.dispatch.general import GeneralPath
from ember_ml.testing.comparison import assert_same, leaves
from ember_ml.testing.samples import calls, given

torch = pytest.importorskip("torch", reason="torch is the engine whose tensors are each on one device")


_fallbacks: list[str] = []


@pytest.fixture(autouse=True)
def _on_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """torch, active, with a record of the calls that NumPy computes, as it would those that mix devices."""
    fall_back = GeneralPath.fall_back_to_numpy

    def recorded(path: GeneralPath, *args: Any) -> Any:
        _fallbacks.append(path.operation.name)
        return fall_back(path, *args)

    monkeypatch.setattr(GeneralPath, "fall_back_to_numpy", recorded)
    ember_ml.set_backend("torch", device="cpu")
    yield
    backends.load("torch").choose_device(None)
    ember_ml.set_backend("numpy")


def assert_placed(compute: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Fail if a function of tensors on the CPU lets torch choose the device of anything that it creates."""
    expected, usual = _computed(compute, *args, **kwargs)
    with torch.device("meta"):
        found, fallbacks = _computed(compute, *args, **kwargs)
    assert fallbacks == usual
    assert not [leaf for _, leaf in leaves(found) if isinstance(leaf, torch.Tensor) and leaf.is_meta]
    assert_same(found, expected)


def _computed(compute: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """The result of a function, and the operations that NumPy computed for it."""
    _fallbacks.clear()
    ops.set_seed(3)
    return compute(*args, **kwargs), list(_fallbacks)


OPERATIONS = [
    operation
    for operation in REGISTRY.values()
    if operation.category not in ("device", "io") and not given(operation, "VARIES")
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_operation_names_the_device_of_what_it_creates(operation: Operation) -> None:
    for call in calls(operation):
        native = call.map(lambda array: ops.asarray(array, device="cpu"))
        assert_placed(operation.call, *native.args, **native.kwargs)


@pytest.mark.parametrize(
    "operation",
    [o for o in OPERATIONS if any(p.role == DEVICE for p in o.parameters)],
    ids=lambda operation: operation.name,
)
def test_an_operation_with_a_device_names_it_wherever_it_creates(operation: Operation) -> None:
    name = next(p.name for p in operation.parameters if p.role == DEVICE)

    def on_cpu(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(operation.call).bind(*args, **kwargs)
        bound.arguments[name] = "cpu"
        return operation.call(*bound.args, **bound.kwargs)

    for call in calls(operation):
        assert_placed(on_cpu, *call.args, **call.kwargs)


@pytest.mark.parametrize("case", CASES)
def test_a_layer_names_the_device_of_what_it_creates(case: str) -> None:
    make, arguments = CASES[case]

    def forward(*tensors: Any) -> Any:
        return make()(*tensors)

    assert_placed(forward, *(ops.asarray(x, device="cpu") for x in arguments))


OPTIMIZERS = [
    optimizer
    for optimizer in vars(optim).values()
    if isinstance(optimizer, type) and issubclass(optimizer, optim.Optimizer) and optimizer is not optim.Optimizer
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_names_the_device_of_what_it_creates(optimizer: Any) -> None:
    first = {"weight": ops.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3), device="cpu")}

    def train() -> Any:
        rule, parameters = optimizer(0.1), first
        for _ in range(2):
            parameters = rule.update(parameters, first)
        return parameters

    assert_placed(train)
