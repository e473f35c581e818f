"""Memory of training steps on torch: gradients and updates reuse memory that nothing else refers to.

A compiled step runs in parts on accelerators; here, on the CPU too.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch.nn import functional  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_iter  # noqa: E402

from ember_ml import backend as backends  # noqa: E402
from ember_ml import nn, ops, optim, use_backend  # noqa: E402
from ember_ml.backend.torch import transform as engine  # noqa: E402
from ember_ml.ops import random  # noqa: E402
from ember_ml.transform import compile, value_and_grad  # noqa: E402


@pytest.fixture(autouse=True)
def _on_torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(engine, "is_better_in_parts", lambda tensors: True)
    with use_backend("torch", device="cpu"):
        yield


class Live(TorchDispatchMode):
    """Number of tensors of at least ``size`` bytes that operations made and that are alive, and its maximum."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.memory, self.largest = size, set[int](), 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for x in tree_iter(result):
            storage = x.untyped_storage() if isinstance(x, torch.Tensor) else None
            if storage is not None and storage.nbytes() >= self.size and storage._cdata not in self.memory:
                self.memory.add(storage._cdata)
                weakref.finalize(storage, self.memory.discard, storage._cdata)
        self.largest = max(self.largest, len(self.memory))
        return result


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_gradient_of_a_large_crossentropy_takes_the_memory_of_the_probabilities(reduction: str) -> None:
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.standard_normal((1024, 4096), "float32"))
    labels = torch.from_numpy(rng.integers(0, 4096, 1024))

    def loss(logits: Any) -> Any:
        found = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True, reduction=reduction)
        return ops.sum(found) if reduction == "none" else found

    with Live(logits.numel() * 4) as live:
        value, gradient = value_and_grad(loss)(logits)
    given = logits.clone().requires_grad_()
    expected = functional.cross_entropy(given, labels, reduction=reduction)
    expected.sum().backward()
    torch.testing.assert_close(value, expected.sum().detach())
    torch.testing.assert_close(gradient, given.grad)
    # The logits are given, and seen because they are detached; the log-probabilities become the gradient.
    assert live.largest == 2


def test_a_large_crossentropy_has_second_derivatives() -> None:
    logits = torch.zeros((1024, 4096))
    labels = torch.zeros(1024, dtype=torch.int64)

    def slope(logits: Any) -> Any:
        _, gradient = value_and_grad(
            lambda x: ops.sparse_categorical_crossentropy(labels, x, from_logits=True, reduction="sum")
        )(logits)
        return ops.sum(ops.square(gradient))

    _, gradient = value_and_grad(slope)(logits)
    assert bool(torch.isfinite(gradient).all())
    assert bool((gradient != 0).any())


def make_step(optimizer: Any) -> Any:
    gradient = value_and_grad(lambda model, x: ops.mean(ops.square(model(x))))

    def step(model: Any, x: Any) -> Any:
        loss, grads = gradient(model, x)
        optimizer.update(model, grads)
        return loss

    return step


OPTIMIZERS = {
    "adam": lambda: optim.AdamW(0.1),
    "sgd": lambda: optim.SGD(0.1, momentum=0.9),
    "lion": lambda: optim.Lion(0.1),
    "grouped": lambda: optim.Grouped(
        [(lambda path, x: "bias" in path, optim.SGD(0.1)), (lambda *_: True, optim.AdamW(0.1))]
    ),
}


def addresses(model: Any) -> list[int]:
    return [x.data_ptr() for x in model.parameters().values()]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_parameters_that_nothing_else_refers_to_are_updated_in_place(optimizer: str, is_compiled: bool) -> None:
    model, x = nn.Linear(3, 2), torch.ones((4, 3))
    step = make_step(OPTIMIZERS[optimizer]().init(model))
    run = compile(step) if is_compiled else step
    run(model, x)  # initial weights are those of the host
    before = addresses(model)
    for _ in range(3):
        run(model, x)
        assert addresses(model) == before


HOLDERS = {
    "the tensor": lambda x: x,
    "a view": lambda x: x[:1],
    "a detached tensor": lambda x: x.detach(),
    "a NumPy array": lambda x: x.numpy(),
    "a DLPack capsule": lambda x: np.from_dlpack(x),
    "an EmberTensor": lambda x: nn.tensor.wrap(x),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_parameter_that_something_else_refers_to_is_not_changed(holder: str) -> None:
    model, x = nn.Linear(3, 2), torch.ones((4, 3))
    step = make_step(optim.AdamW(0.1).init(model))
    step(model, x)
    held = HOLDERS[holder](model.weight)
    values = ops.to_numpy(held).copy()
    step(model, x)
    np.testing.assert_array_equal(ops.to_numpy(held), values)
    assert not np.array_equal(ops.to_numpy(model.weight)[:1], values[:1])


def test_memory_of_another_library_is_not_changed() -> None:
    model, x = nn.Linear(3, 2), torch.ones((4, 3))
    array = np.ones((3, 2), "float32")
    model.weight = torch.from_numpy(array)
    step = make_step(optim.AdamW(0.1).init(model))
    step(model, x)
    np.testing.assert_array_equal(array, 1.0)


def test_the_state_of_an_optimizer_follows_its_model_to_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    # The device without memory is not one of those that can be chosen.
    monkeypatch.setattr(backends.load("torch"), "find_device", torch.device)
    model = nn.Linear(3, 2)
    optimizer = optim.AdamW(0.1).init(model)
    model.to("meta")
    optimizer.update(model, {path: torch.ones_like(x) for path, x in model.parameters().items()})
    assert {x.device.type for x in (*optimizer.tensors().values(), *model.tensors().values())} == {"meta"}


class Network(nn.Module):
    def __init__(self) -> None:
        # A bias before the normalization has no gradient but rounding errors, which AdamW scales to whole steps.
        self.first, self.norm = nn.Linear(3, 8, bias=False), nn.BatchNorm(8)
        self.dropout, self.last = nn.Dropout(0.5), nn.Linear(8, 1)

    def forward(self, x: Any) -> Any:
        return self.last(self.dropout(ops.relu(self.norm(self.first(x)))))


def curve(steps: int = 4) -> list[float]:
    random.set_seed(3)
    model = Network()
    step = compile(make_step(optim.AdamW(0.01).init(model)))
    # Nor have weights a gradient if all examples are equal.
    x = ops.sin(ops.reshape(ops.arange(48.0), (16, 3)))
    losses = [float(step(model, x)) for _ in range(steps)]
    return [*losses, float(ops.sum(model.norm.running_mean)), float(random.random_uniform(()))]


def test_a_step_in_parts_draws_and_assigns_what_the_whole_step_does(monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts = curve()
    monkeypatch.setattr(engine, "is_better_in_parts", lambda tensors: False)
    np.testing.assert_allclose(in_parts, curve(), rtol=1e-5)
    with use_backend("numpy"):
        np.testing.assert_allclose(in_parts, curve(), rtol=1e-4)


def test_parts_are_compiled_once_for_functions_with_the_same_code() -> None:
    traced = []

    def step(model: Any, x: Any) -> Any:
        def loss(model: Any) -> Any:
            traced.append(torch.compiler.is_compiling())
            return ops.sum(ops.square(model(x)))

        value, _ = value_and_grad(loss)(model)
        return value

    model, run = nn.Linear(3, 2), compile(step)
    for scale in (1.0, 2.0, 3.0):
        x = torch.full((4, 3), scale)
        torch.testing.assert_close(run(model, x), ops.sum(ops.square(model(x))))
    assert all(traced)


def test_an_update_writes_to_the_memory_of_parameters_before_the_last_one() -> None:
    """Unless something refers to them: the values that a user, an array or a graph holds do not change."""
    start = torch.ones(600, 500)
    parameters, optimizer = {"w": start}, optim.SGD(0.5)
    places, held = [], []
    for step in range(6):
        old = parameters  # as the snapshot of a Trainer
        parameters = optimizer.update(parameters, {"w": torch.ones(600, 500)})
        places.append(parameters["w"].data_ptr())
        if step == 2:
            held += [old["w"].numpy()]
        if step == 3:
            variable = torch.ones((), requires_grad=True)
            held += [(old["w"] * variable).sum()]
    assert places[2] == places[0], "the memory of the first update is free by the third"
    assert start[0, 0] == 1.0
    assert held[0].ravel()[0] == 0.0
    held[1].backward()
    assert variable.grad == -0.5 * 300_000
    assert parameters["w"][0, 0] == -2.0
