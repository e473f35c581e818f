"""Recurrent layers: torch's are the oracle, for outputs, states and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import Backend
from ember_ml.testing.comparison import assert_same, host
from ember_ml.transform import checkpoint, grad, hessian, value_and_grad, vmap

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


def agree(result: Any, expected: Any) -> None:
    if isinstance(result, tuple):
        for a, b in zip(result, expected, strict=True):
            agree(a, b)
    else:
        np.testing.assert_allclose(host(result), expected.detach().numpy(), rtol=1e-5, atol=1e-5)


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


def weighed(kind: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """A function of the input weights of a layer and its argument, ours and torch's."""
    rng = np.random.default_rng(3)
    gates = 4 if kind == "lstm" else 3
    x, ih, hh, a, b = (
        rng.standard_normal(n).astype(np.float32) for n in ((2, 2, 2), (2, gates), (1, gates), gates, gates)
    )

    def ours(w: Any) -> Any:
        outputs, *states = getattr(ops, kind)(x, w, hh, a, b)
        return ops.add(ops.sum(ops.power(outputs, 3)), ops.sum(states[-1]))

    def theirs(w: Any) -> Any:
        start = torch.zeros(1, 2, 1, dtype=torch.float64)
        weights = [w.t(), *(torch.tensor(one, dtype=torch.float64) for one in (hh.T, a, b))]
        starts: Any = (start, start) if kind == "lstm" else start
        options = (True, 1, 0.0, True, False, True)
        outputs, *states = getattr(torch, kind)(torch.tensor(x, dtype=torch.float64), starts, weights, *options)
        return outputs.pow(3).sum() + states[-1].sum()

    return (ours, ops.asarray(ih)), (theirs, torch.tensor(ih, dtype=torch.float64))


def steepness(f: Any, w: torch.Tensor) -> np.ndarray[Any, Any]:
    """The gradient of the square of the gradient, in torch's own way."""
    w = w.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(f(w), w, create_graph=True)
    return torch.autograd.grad(gradient.square().sum(), w)[0].numpy(force=True)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_second_derivatives_are_torchs(kind: str, backend: Backend) -> None:
    (ours, w), theirs = weighed(kind)
    for f in (ours, checkpoint(ours)):
        found = grad(lambda w, f=f: ops.sum(ops.square(grad(f)(w))))(w)
        np.testing.assert_allclose(host(found), steepness(*theirs), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.skipif("torch" not in ember_ml.get_available_backends(), reason="it is torch whose fused layers have none")
def test_derivatives_that_torchs_fused_layers_lack(kind: str) -> None:
    with ember_ml.use_backend("torch"):
        (ours, w), (theirs, v) = weighed(kind)
        np.testing.assert_allclose(steepness(ours, w), steepness(theirs, v), rtol=1e-3, atol=1e-4)
        gradient = torch.autograd.functional.jacobian(theirs, v)
        for found in vmap(grad(ours))(ops.stack([w, w])):
            np.testing.assert_allclose(host(found), gradient, rtol=1e-3, atol=1e-4)
        curvature = torch.autograd.functional.hessian(theirs, v)
        for f in (ours, checkpoint(ours)):
            np.testing.assert_allclose(host(hessian(f)(w)), curvature, rtol=1e-3, atol=1e-4)


def test_a_cell_of_ones_own_takes_its_own_steps(backend: Backend) -> None:
    class Leaky(nn.LSTMCell):
        def step(self, kept: Any, projected: Any, state: Any) -> Any:
            h, c = super().step(kept, projected, state)
            return ops.multiply(h, 0.5), c

    class Layer(nn.LSTM):
        cell = Leaky

    ours, plain = Layer(3, 4), nn.LSTM(3, 4)
    ours.load_state_dict(plain.state_dict())
    x = ops.ones((2, 1, 3))
    assert_same(ours(x)[0], ops.multiply(plain(x)[0], 0.5), tolerance=1e-6)


@pytest.mark.parametrize(
    ("shapes", "options", "match"),
    [
        ([(2, 3), (3, 8), (2, 8)], {}, r"lstm: x must have 3 axes, \(batch, time, features\) or \(time, batch, fe"),
        ([(2, 0, 3), (3, 8), (2, 8)], {}, r"lstm: x must have at least 1 step along axis 1, got shape \[2, 0, 3\]"),
        ([(2, 5, 4), (3, 8), (2, 8)], {}, r"lstm: weight_ih and weight_hh must have shapes \(features, 4 \* size"),
        ([(2, 5, 3), (3, 8), (2, 7)], {}, r"lstm: weight_ih and weight_hh must have shapes \(features, 4 \* size"),
        ([(2, 5, 3), (3, 8), (2, 8), (7,)], {}, r"lstm: bias must have shape \[8\], got \[7\]"),
        ([(2, 5, 3), (3, 8), (2, 8), (8,), (8,), (2, 3)], {}, r"lstm: the state must have shape \[2, 2\], got \[2"),
        ([(2, 5, 3), (3, 8), (2, 8)], {"axis": 2}, "features"),
    ],
)
def test_what_does_not_fit_is_explained(shapes: Any, options: Any, match: str, backend: Backend) -> None:
    with pytest.raises(ValueError, match=match):
        ops.lstm(*map(ops.ones, shapes), **options)


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
    with pytest.raises(ValueError, match=r"GRUCell: the state must have shape \[2, 2, 4\], got \[1, 2, 4\]"):
        nn.GRU(3, 4, 2)(ops.ones((2, 5, 3)), ops.zeros((1, 2, 4)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, h: nn.LSTM(3, 4)(x, h), "pair of h and c"),
        (lambda x, h: nn.GRU(3, 4)(x, (h, h)), "GRUCell: the state must be one tensor, h, got a tuple"),
        (lambda x, h: nn.LSTMCell(3, 4)(x[:, 0], h[0]), "pair of h and c"),
        (lambda x, h: nn.GRU(3, 4)(x, h[:, :1]), r"GRUCell: the state must have shape \[1, 2, 4\], got \[1, 1, 4"),
        (lambda x, h: nn.LSTM(3, 4)(x, (h, h[..., :2])), r"LSTMCell: the state must have shape \[1, 2, 4\], got"),
        (lambda x, h: nn.LSTM(3, 4, num_layers=0), "LSTM: num_layers must be >= 1, got 0"),
        (lambda x, h: nn.LSTM(3, 4, dropout=1.5), r"LSTM: dropout must be from 0 to 1, got 1\.5"),
    ],
)
def test_states_are_not_taken_for_others(make: Any, message: str, backend: Backend) -> None:
    """A batch of two: one tensor would else be taken for the pair of its rows."""
    with pytest.raises(ValueError, match=message):
        make(ops.ones((2, 5, 3)), ops.zeros((1, 2, 4)))


@pytest.mark.parametrize(("layer", "gates"), [(ops.lstm, 4), (ops.gru, 3)], ids=["lstm", "gru"])
def test_recurrent_weights_without_axes_are_a_value_error(layer: Any, gates: int, backend: Backend) -> None:
    with pytest.raises(ValueError, match=rf"\(size, {gates} \* size\)"):
        layer(ops.ones((2, 5, 3)), ops.ones((3, gates)), ops.ones(()))


@pytest.mark.parametrize(("layer", "gates"), [(ops.lstm, 4), (ops.gru, 3)], ids=["lstm", "gru"])
def test_states_are_on_the_engine_of_the_tensors(layer: Any, gates: int, backend: Backend) -> None:
    """Float16 has no fused layer on torch; the initial states are not those of the active backend."""
    shapes = ((2, 5, 3), (3, gates * 4), (4, gates * 4))
    tensors = [ops.full(shape, 0.1, dtype="float16") for shape in shapes]
    expected = layer(*tensors)[0]
    with ember_ml.use_backend("torch" if backend.name == "numpy" else "numpy"):
        assert_same(layer(*tensors)[0], expected, tolerance=0.0)
