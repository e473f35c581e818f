"""Weight decay by pattern: ``no_decay`` of every optimizer."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops, optim, transform
from ember_ml.backend import Backend

OPTIMIZERS = {
    name: made
    for name, made in vars(optim).items()
    if isinstance(made, type) and issubclass(made, optim.Optimizer) and made is not optim.Optimizer
}
PATTERNS = ("*.bias", "norm")


class Model(nn.Module):
    def __init__(self) -> None:
        self.linear, self.norm = nn.Linear(3, 2, bias_init=0.5), nn.LayerNorm(2)

    def forward(self, x: Any) -> Any:
        return ops.sum(ops.square(self.norm(self.linear(x))))


class Matrices(nn.Module):
    """As ``Model``, of matrices alone, which Muon is for."""

    def __init__(self) -> None:
        self.linear, self.norm = nn.Linear(3, 2, bias=False), nn.Linear(2, 2, bias=False)

    def forward(self, x: Any) -> Any:
        return ops.sum(ops.square(self.norm(self.linear(x))))


# Compilation is slow. These are a fused call, a rule that compilers fuse, and another.
COMPILED = ("AdamW", "SGD", "Lion")


@pytest.mark.usefixtures("traced_only")
@pytest.mark.parametrize(
    ("name", "compile"), [(name, False) for name in OPTIMIZERS] + [(name, True) for name in COMPILED]
)
def test_as_two_optimizers_of_which_one_has_no_decay(name: str, compile: bool, backend: Backend) -> None:
    made = OPTIMIZERS[name]
    ops.random.set_seed(0)
    model: Any = Matrices() if name == "Muon" else Model()
    other = copy.deepcopy(model)
    ours = made(0.1, weight_decay=0.5, no_decay=PATTERNS).init(model)
    theirs = optim.Grouped(
        [
            (lambda path, p: path.startswith("norm") or path.endswith(".bias"), made(0.1, weight_decay=0.0)),
            (lambda path, p: True, made(0.1, weight_decay=0.5)),
        ]
    )
    x = ops.asarray([[1.0, 2.0, -1.0]])

    def step(model: Any, optimizer: Any) -> None:
        optimizer.update(model, transform.grad(lambda model: model(x))(model))

    for _ in range(3):
        (transform.compile(step) if compile else step)(model, ours)
        step(other, theirs)
    for path, wanted in other.parameters().items():
        np.testing.assert_allclose(
            ops.to_numpy(model.parameters()[path]), ops.to_numpy(wanted), rtol=1e-4, atol=1e-5, err_msg=path
        )
    assert ours.weight_decay == 0.5


def test_a_weight_decays_that_no_pattern_matches(backend: Backend) -> None:
    ones = {"a.weight": ops.ones(1), "a.bias": ops.ones(1)}
    zeros = {path: ops.zeros(1) for path in ones}
    optimizer = optim.AdamW(1.0, weight_decay=0.5, no_decay="*.bias")
    found = optimizer.update(ones, zeros)
    assert {path: x.tolist() for path, x in found.items()} == {"a.weight": [0.5], "a.bias": [1.0]}
    assert "no_decay=('*.bias',)" in repr(optimizer)
    assert "no_decay" not in repr(optim.AdamW())


def test_the_patterns_hold_for_state_that_was_assigned(backend: Backend) -> None:
    first, second = (optim.AdamW(1.0, weight_decay=0.5, no_decay=("*.bias",)) for _ in range(2))
    ones = {"a.weight": ops.ones(1), "a.bias": ops.ones(1)}
    second.assign(first.init(ones).tensors())
    found = second.update(ones, {path: ops.zeros(1) for path in ones})
    assert found["a.bias"].tolist() == [1.0]
