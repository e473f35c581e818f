"""Recurrent layers: torch's are the oracle, for outputs, states and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from agreement import assert_same, host

from ember_ml import nn, ops
from ember_ml.backend import Backend
from ember_ml.transform import value_and_grad

KINDS = ("RNN", "LSTM", "GRU")

every_kind = pytest.mark.parametrize("kind", KINDS)


def state_of(theirs: Any) -> dict[str, Any]:
    """The parameters of a torch layer under our paths."""
    state: dict[str, Any] = {}
    directions = 2 if theirs.bidirectional else 1
    for layer in range(theirs.num_layers):
        for direction in range(directions):
            suffix = f"l{layer}" + ("_reverse" if direction else "")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if theirs.bias else 2]:
                tensor = getattr(theirs, f"{name}_{suffix}").detach().numpy()
                state[f"cells.{layer * directions + direction}.{name}"] = tensor.T if "weight" in name else tensor
    return state


def agree(answer: Any, expected: Any) -> None:
    if isinstance(answer, tuple):
        for a, b in zip(answer, expected, strict=True):
            agree(a, b)
    else:
        np.testing.assert_allclose(host(answer), expected.detach().numpy(), rtol=1e-5, atol=1e-5)


@every_kind
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 2, "bias": False},
        {"bidirectional": True},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": False},
    ],
    ids=str,
)
def test_layers_are_torchs(kind: str, options: Any, backend: Backend) -> None:
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind)(3, 4, **{"batch_first": True, **options})
    ours = getattr(nn, kind)(3, 4, **options)
    ours.load_state_dict(state_of(theirs))
    x = torch.randn(2, 5, 3) if options.get("batch_first", True) else torch.randn(5, 2, 3)
    expected, state = theirs(x)
    agree(ours(x.numpy()), (expected, state))
    # From a state on, as a pair for an LSTM.
    own = tuple(s.detach().numpy() for s in state) if kind == "LSTM" else state.detach().numpy()
    agree(ours(x.numpy(), own), theirs(x, state))


@every_kind
def test_cells_are_torchs(kind: str, backend: Backend) -> None:
    torch.manual_seed(0)
    theirs = getattr(torch.nn, f"{kind}Cell")(3, 4)
    ours = getattr(nn, f"{kind}Cell")(3, 4)
    ours.load_state_dict({k: v.detach().numpy().T for k, v in theirs.named_parameters()})
    x = torch.randn(2, 3)
    state = theirs(x)
    agree(ours(x.numpy()), state)
    own = tuple(s.detach().numpy() for s in state) if kind == "LSTM" else state.detach().numpy()
    agree(ours(x.numpy(), own), theirs(x, state))


@every_kind
def test_a_sequence_can_be_cut(kind: str, backend: Backend) -> None:
    layer = getattr(nn, kind)(3, 4, 2)
    x = ops.asarray(np.random.default_rng(0).standard_normal((2, 6, 3)).astype(np.float32))
    whole, last = layer(x)
    first, state = layer(x[:, :4])
    second, end = layer(x[:, 4:], state)
    assert_same(ops.concat([first, second], axis=1), whole, tolerance=1e-6)
    assert_same(end, last, tolerance=1e-6)


@every_kind
def test_gradients_are_torchs(kind: str, backend: Backend) -> None:
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind)(3, 4, batch_first=True)
    ours = getattr(nn, kind)(3, 4)
    ours.load_state_dict(state_of(theirs))
    x = torch.randn(2, 5, 3)
    theirs(x)[0].square().sum().backward()
    _, gradients = value_and_grad(lambda model, x: ops.sum(ops.square(model(x)[0])))(ours, ops.asarray(x.numpy()))
    for name, parameter in theirs.named_parameters():
        expected = parameter.grad.numpy()
        own = gradients[f"cells.0.{name.removesuffix('_l0')}"]
        np.testing.assert_allclose(host(own), expected.T if "weight" in name else expected, rtol=1e-4, atol=1e-5)


def test_dropout_between_layers(backend: Backend) -> None:
    layer = nn.LSTM(3, 4, 2, dropout=0.5)
    x = ops.ones((2, 5, 3))
    ops.set_seed(1)
    first, second = layer(x)[0], layer(x)[0]
    assert not np.allclose(host(first), host(second))
    layer.eval()
    assert_same(layer(x)[0], layer(x)[0], tolerance=0.0)
    single = nn.LSTM(3, 4, 1, dropout=0.5)
    assert_same(single(x)[0], single(x)[0], tolerance=0.0)


def test_states_of_the_wrong_number(backend: Backend) -> None:
    with pytest.raises(ValueError, match="2 layers and directions, and states of 1"):
        nn.GRU(3, 4, 2)(ops.ones((2, 5, 3)), ops.zeros((1, 2, 4)))
