"""Liquid networks: their equations, solved independently, and the wirings that connect them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import Backend
from ember_ml.nn.wirings import NCP, AutoNCP, Dice, FullyConnected, Random, Wiring
from ember_ml.testing.comparison import assert_same, host
from ember_ml.transform import value_and_grad, vmap

_draw = np.random.default_rng(3)


def floats(*shape: int) -> Any:
    return _draw.standard_normal(shape).astype(np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softplus(x: Any) -> Any:
    return np.log1p(np.exp(x))


def parameters(cell: Any) -> dict[str, Any]:
    return {path: host(tensor).astype(np.float64) for path, tensor in cell.tensors().items()}


def test_ltc_solves_its_equation(backend: Backend) -> None:
    """Many small semi-implicit steps come to where many explicit ones come to."""
    ops.set_seed(0)
    cell = nn.LTCCell(2, AutoNCP(6, 1, seed=4), ode_unfolds=400)
    x, v, elapsed = floats(3, 2), floats(3, 6) * 0.1, 0.5
    output, state = cell(x, v, elapsed)
    p = parameters(cell)
    inputs = x * p["input_weight"] + p["input_bias"]
    expected, steps = v.astype(np.float64), 20000
    for _ in range(steps):
        synapses = softplus(p["weight"]) * p["mask"] * sigmoid(p["sigma"] * (expected[:, :, None] - p["mu"]))
        senses = softplus(p["sensory_weight"]) * p["sensory_mask"]
        senses = senses * sigmoid(p["sensory_sigma"] * (inputs[:, :, None] - p["sensory_mu"]))
        current = softplus(p["gleak"]) * (p["vleak"] - expected)
        current = current + (synapses * (p["erev"] - expected[:, None, :])).sum(1)
        current = current + (senses * (p["sensory_erev"] - expected[:, None, :])).sum(1)
        expected = expected + current / softplus(p["cm"]) * (elapsed / steps)
    np.testing.assert_allclose(host(state), expected, atol=2e-3)
    np.testing.assert_allclose(host(output), expected[:, :1], atol=2e-3)


def test_ltc_ranges(backend: Backend) -> None:
    p = parameters(nn.LTCCell(3, 20))
    for name, low, high in (
        ("gleak", 0.001, 1.0), ("cm", 0.4, 0.6), ("weight", 0.001, 1.0), ("sensory_weight", 0.001, 1.0)
    ):  # fmt: skip
        assert low - 1e-5 <= softplus(p[name]).min() <= softplus(p[name]).max() <= high + 1e-5
    for name, low, high in (
        ("vleak", -0.2, 0.2), ("sigma", 3.0, 8.0), ("mu", 0.3, 0.8), ("sensory_sigma", 3.0, 8.0),
        ("sensory_mu", 0.3, 0.8),
    ):  # fmt: skip
        assert low <= p[name].min() <= p[name].max() <= high
        # Sixty numbers and more leave no quarter at an end of the range empty.
        assert p[name].size < 60 or p[name].min() < low + (high - low) / 4 < high - (high - low) / 4 < p[name].max()
    assert set(np.unique(p["erev"])) == {-1.0, 1.0}


@pytest.mark.parametrize("mode", ["default", "no_gate", "pure"])
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_cfc_is_its_formula(mode: str, layers: int, backend: Backend) -> None:
    cell = nn.CfCCell(3, 4, mode=mode, backbone_units=5, backbone_layers=layers)
    cell.assign({path: ops.asarray(floats(*tensor.shape)) for path, tensor in cell.tensors().items()})
    x, h, elapsed = floats(2, 3), floats(2, 4), 0.7
    p = parameters(cell)
    y = x @ p["weight_ih"] + h @ p["weight_hh"] + p["bias"]
    if layers:
        y = 1.7159 * np.tanh(2 / 3 * y)
        for i in range(layers - 1):
            y = 1.7159 * np.tanh(2 / 3 * (y @ p[f"backbone.{i}.weight"] + p[f"backbone.{i}.bias"]))
        y = y @ p["heads.weight"] + p["heads.bias"]
    if mode == "pure":
        expected = p["amplitude"] - p["amplitude"] * np.exp(-elapsed * (np.abs(p["tau"]) + np.abs(y))) * y
    else:
        g, end, a, b = np.split(y, 4, axis=-1)
        s = sigmoid(a * elapsed + b)
        expected = (1 if mode == "no_gate" else 1 - s) * np.tanh(g) + s * np.tanh(end)
    np.testing.assert_allclose(host(cell(x, h, elapsed)), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("make", [lambda: nn.CfC(3, 4), lambda: nn.CfC(3, AutoNCP(8, 2)), lambda: nn.LTC(3, 4)])
def test_steps_of_any_length(make: Any, backend: Backend) -> None:
    layer = make()
    x = ops.asarray(floats(2, 5, 3))
    ones = ops.ones((2, 5))
    outputs, state = layer(x, timespans=ones)
    assert_same(layer(x), (outputs, state), tolerance=1e-6)
    longer, _ = layer(x, timespans=ops.multiply(ones, 2.0))
    assert not np.allclose(host(longer), host(outputs))
    # Each example has its own lengths.
    mixed, _ = layer(x, timespans=ops.asarray(np.array([[1.0] * 5, [2.0] * 5], np.float32)))
    np.testing.assert_allclose(host(mixed)[0], host(outputs)[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(host(mixed)[1], host(longer)[1], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"timespans must have shape \[2, 5\], got \[5, 2\]"):
        layer(x, timespans=ops.ones((5, 2)))
    first, middle = layer(x[:, :3])
    second, end = layer(x[:, 3:], middle)
    assert_same(ops.concat([first, second], axis=1), outputs, tolerance=1e-5)
    assert_same(end, state, tolerance=1e-5)


def test_options_of_layers(backend: Backend) -> None:
    x = ops.asarray(floats(2, 5, 3))
    for layer in (nn.CfC, nn.LTC):
        ops.set_seed(1)
        outputs, _ = layer(3, 4)(x)
        ops.set_seed(1)
        last, _ = layer(3, 4, return_sequences=False)(x)
        assert_same(last, outputs[:, -1], tolerance=1e-6)
        ops.set_seed(1)
        turned, _ = layer(3, 4, batch_first=False)(ops.swapaxes(x, 0, 1))
        assert_same(ops.swapaxes(turned, 0, 1), outputs, tolerance=1e-6)


def test_a_neuron_depends_on_its_synapses_alone(backend: Backend) -> None:
    """The gradient of each layer of a wired CfC is zero where there is no synapse."""
    wiring = AutoNCP(10, 2, sparsity_level=0.8, seed=5)
    layer = nn.CfC(4, wiring)
    for cell, before, after in zip(layer.cells, [range(4), *wiring.layers], [*wiring.layers], strict=False):
        rows = wiring.sensory_adjacency if cell is layer.cells[0] else wiring.adjacency
        mask = np.abs(np.array([[rows[i][j] for j in after] for i in before]))
        np.testing.assert_array_equal(host(cell.mask_ih), np.tile(mask, (1, 4)))
        _, gradients = value_and_grad(lambda cell, x: ops.sum(ops.square(cell(x))))(
            cell, ops.asarray(floats(3, len(before)))
        )
        assert not np.any(host(gradients["weight_ih"])[np.tile(mask, (1, 4)) == 0])
        assert np.any(host(gradients["weight_ih"]))


def test_a_liquid_network_learns(backend: Backend) -> None:
    ops.set_seed(0)
    x = ops.asarray(np.sin(np.linspace(0, 6, 16, dtype=np.float32)).reshape(1, 16, 1))
    target = ops.asarray(np.cos(np.linspace(0, 6, 16, dtype=np.float32)).reshape(1, 16, 1))
    model = nn.CfC(1, 8, proj_size=1, backbone_units=16)
    step = value_and_grad(lambda model: ops.mse(target, model(x)[0]))
    losses = []
    for _ in range(25):
        loss, gradients = step(model)
        losses.append(float(loss))
        own = model.parameters()
        model.assign({path: ops.subtract(own[path], ops.multiply(g, 0.1)) for path, g in gradients.items()})
    assert losses[-1] < losses[0] / 2


def reached(matrix: list[list[int]], sources: Any, targets: Any) -> list[int]:
    return [j for j in targets if any(matrix[i][j] for i in sources)]


@pytest.mark.parametrize("seed", range(5))
def test_circuits(seed: int) -> None:
    wiring = NCP(7, 5, 3, 3, 2, 4, 2, seed=seed).build(4)
    assert (len(wiring.inter), len(wiring.command), len(wiring.motor)) == (7, 5, 3)
    types = [wiring.type_of_neuron(i) for i in range(15)]
    assert types == ["motor"] * 3 + ["command"] * 5 + ["inter"] * 7
    # Every neuron is reached by the layer before, every command neuron reaches a motor neuron, and none skips a layer.
    assert reached(wiring.sensory_adjacency, range(4), range(15)) == wiring.inter
    assert reached(wiring.adjacency, wiring.inter, range(15)) == wiring.command
    assert set(reached(wiring.adjacency, wiring.command, wiring.motor)) == set(wiring.motor)
    assert all(any(wiring.adjacency[i][j] for j in wiring.motor) for i in wiring.command)
    assert not any(any(wiring.adjacency[i]) for i in wiring.motor)
    assert not any(wiring.adjacency[i][j] for i in wiring.inter for j in wiring.motor + wiring.inter)
    assert all(sum(map(abs, row)) >= 3 for row in wiring.sensory_adjacency)
    recurrent = sum(abs(wiring.adjacency[i][j]) for i in wiring.command for j in wiring.command)
    assert 1 <= recurrent <= 4
    assert {p for row in wiring.adjacency for p in row} <= {-1, 0, 1}


def test_sparsity() -> None:
    counts = [AutoNCP(32, 4, level).build(8).synapse_count for level in (0.1, 0.5, 0.9)]
    assert counts == sorted(counts, reverse=True)
    assert Random(10, sparsity_level=0.7).synapse_count == 30
    assert FullyConnected(10).build(3).sensory_synapse_count == 30


def test_one_seed_one_wiring_on_every_engine() -> None:
    found = []
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            wirings = [AutoNCP(20, 3, seed=9), FullyConnected(9, seed=9), Random(9, seed=9)]
            found.append([(w.build(5).adjacency, w.sensory_adjacency) for w in wirings])
    assert all(other == found[0] for other in found)
    assert AutoNCP(20, 3, seed=1).adjacency != AutoNCP(20, 3, seed=2).adjacency


def test_dice_are_fair() -> None:
    dice = Dice(1)
    counts = np.bincount([dice.below(6) for _ in range(6000)])
    assert len(counts) == 6
    assert np.abs(counts - 1000).max() < 150
    assert sorted(dice.sample(range(5), 5)) == list(range(5))
    assert abs(sum(dice.polarity() for _ in range(3000)) - 1000) < 200


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Wiring(3, 4), "Wiring: output_dim must be from 1 to units=3, got 4"),
        (lambda: AutoNCP(4, 2), "AutoNCP: output_size must be from 1 to units - 3, got output_size=2, units=4"),
        (lambda: AutoNCP(10, 2, 0.95), "0.1 to 0.9"),
        (lambda: NCP(2, 2, 1, 3, 1, 1, 1), "NCP: sensory_fanout must be from 1 to 2, the number of neurons there,"),
        (lambda: Random(3, sparsity_level=1.0), "sparsity"),
        (lambda: AutoNCP(10, 2).build(3).build(4), "AutoNCP: input_dim must be 3, as it was built before, got 4"),
        (lambda: Wiring(2).add_synapse(0, 5, 1), "Wiring: source must be from 0 to 1 and target from 0 to 1, got"),
        (lambda: Wiring(2).add_synapse(0, 1, 2), "polarity"),
        (lambda: Wiring(2).add_sensory_synapse(0, 1, 1), "build"),
        (lambda: nn.CfCCell(1, 1, mask=[[1], [1]]), "backbone"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_no_time_changes_nothing(backend: Backend) -> None:
    """Two observations at one time: the equation has not moved on, and gradients are finite."""
    ops.set_seed(0)
    layer = nn.LTC(3, AutoNCP(8, 2))
    x = ops.asarray(floats(2, 4, 3))
    spans = ops.asarray([[1.0, 0.0, 0.5, 1.0], [0.0, 1.0, 0.0, 0.0]])
    _, first = layer(x[:1, :1])
    _, state = layer(x[:1, :2], timespans=spans[:1, :2])
    np.testing.assert_allclose(host(state), host(first), rtol=1e-5)
    outputs, _ = layer(x, timespans=spans)
    assert np.isfinite(host(outputs)).all()
    _, gradients = value_and_grad(lambda layer, spans: ops.sum(layer(x, timespans=spans)[0]), argnums=(0, 1))(
        layer, spans
    )
    assert all(np.isfinite(host(g)).all() for g in (*gradients[0].values(), gradients[1]))
    assert np.abs(host(gradients[1])[1, 3]) > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.LTC(3, 8)(ops.ones((2, 5, 1))), "LTCCell: x must have 3 features, got 1"),
        (lambda: nn.LTCCell(3, 8)(ops.ones((2, 1))), "LTCCell: x must have 3 features, got 1"),
        (lambda: nn.CfC(3, 8)(ops.ones((2, 5, 4))), "CfCCell: x must have 3 features, got 4"),
        (lambda: nn.CfC(3, AutoNCP(16, 2))(ops.ones((2, 5, 3)), ops.zeros((2, 20))), "the state must have shape"),
        (lambda: nn.CfC(3, 8)(ops.ones((2, 5, 3)), ops.zeros((2, 7))), r"the state must have shape \[2, 8\], got"),
        (lambda: nn.LTC(3, 8)(ops.ones((2, 5, 3)), ops.zeros((2, 1))), r"the state must have shape \[2, 8\], got"),
        (lambda: nn.LTC(3, 8)(ops.ones((2, 5, 3)), ops.zeros((1, 8))), r"the state must have shape \[2, 8\], got"),
        (lambda: nn.LTC(3, 8, mixed_memory=True)(ops.ones((2, 5, 3)), ops.zeros((2, 8))), "pair"),
        (lambda: nn.LTC(3, 8, ode_unfolds=0), "LTC: ode_unfolds must be >= 1, got 0"),
        (lambda: nn.CfC(3, 8, proj_size=0), "CfC: proj_size must be >= 1 or None, got 0"),
        (lambda: nn.CfC(3, 8, backbone_dropout=1.5), r"CfCCell: backbone_dropout must be from 0 to 1, got 1\.5"),
        (lambda: nn.CfC(3, 0), "CfC: units must be >= 1, got 0"),
        (lambda: nn.LTC(3, 0), "LTC: units must be >= 1, got 0"),
    ],
)
def test_mistakes_in_layers(make: Any, message: str, backend: Backend) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("make", [nn.LTC, nn.CfC, nn.LTCCell, nn.CfCCell])
def test_time_does_not_go_back(make: Any, backend: Backend) -> None:
    layer = make(3, 4)
    is_cell = make in (nn.LTCCell, nn.CfCCell)
    x = ops.asarray(floats(2, 3) if is_cell else floats(2, 5, 3))

    def run(layer: Any, spans: Any) -> Any:
        return ops.sum((layer(x, None, spans) if is_cell else layer(x, timespans=spans))[0])

    spans = np.full((2, 1) if is_cell else (2, 5), 0.5, np.float32)
    late = np.where(np.arange(spans.size).reshape(spans.shape) == 1, -0.5, spans)
    for wrong in (late, late.tolist(), ops.asarray(late), *([-1, -0.5] if is_cell else [])):
        for call in (run, value_and_grad(run)):
            with pytest.raises(ValueError, match="timespans must be >= 0, got negative ones"):
                call(layer, wrong)
    for right in (spans, np.zeros_like(spans), ops.asarray(spans)):
        assert np.isfinite(host(run(layer, right)))
    assert np.isfinite(host(ops.sum(vmap(lambda spans: run(layer, spans))(ops.asarray(np.stack([spans, spans]))))))


@pytest.mark.parametrize("make", [nn.LTC, nn.CfC, lambda *args, **options: nn.CfC(*args, mode="pure", **options)])
@pytest.mark.parametrize("wiring", [lambda: 5, lambda: AutoNCP(9, 2, seed=3)])
def test_mixed_memory_is_an_lstm_before_each_step(make: Any, wiring: Any, backend: Backend) -> None:
    ops.set_seed(0)
    layer = make(3, wiring(), mixed_memory=True)
    x, spans = ops.asarray(floats(2, 4, 3)), ops.asarray(np.abs(floats(2, 4)) + 0.1)
    outputs, (h, c) = layer(x, timespans=spans)
    units = h.shape[-1]
    assert tuple(c.shape) == (2, units)
    # The same by hand: the LSTM reads the input and makes of the state what the liquid neurons go on from.
    cells = [layer.cell] if isinstance(layer, nn.LTC) else list(layer.cells)
    state, memory = ops.zeros((2, units)), ops.zeros((2, units))
    for step in range(4):
        state, memory = layer.memory(x[:, step], (state, memory))
        seen, parts, at = x[:, step], [], 0
        for cell in cells:
            if isinstance(layer, nn.LTC):
                result, seen = cell(seen, state, spans[:, step, None])
            else:
                width = cell.hidden_size
                result = seen = cell(seen, state[:, at : at + width], spans[:, step, None])
                at += width
            parts.append(seen)
        state = ops.concat(parts, axis=-1)
        assert_same(outputs[:, step], result, tolerance=1e-5)
    assert_same((h, c), (state, memory), tolerance=1e-5)
    # A sequence can be cut.
    first, middle = layer(x[:, :3], timespans=spans[:, :3])
    second, end = layer(x[:, 3:], middle, spans[:, 3:])
    assert_same(ops.concat([first, second], axis=1), outputs, tolerance=1e-5)
    assert_same(end, (h, c), tolerance=1e-5)
    _, gradients = value_and_grad(lambda layer: ops.sum(ops.square(layer(x)[0])))(layer)
    assert all(np.any(host(gradients[f"memory.{name}"])) for name in ("weight_ih", "weight_hh", "bias_ih"))


def test_mixed_memory_draws_last(backend: Backend) -> None:
    """A seed gives the same neurons with the memory and without."""
    for make in (nn.LTC, nn.CfC):
        found = []
        for mixed in (False, True):
            ops.set_seed(4)
            found.append(make(3, AutoNCP(9, 2), mixed_memory=mixed).state_dict())
        for path, tensor in found[0].items():
            assert_same(found[1][path], tensor, tolerance=0.0)
        assert {path.partition(".")[0] for path in found[1]} - {path.partition(".")[0] for path in found[0]} == {
            "memory"
        }


def test_a_step_may_be_one_of_the_solver(backend: Backend) -> None:
    output, _ = nn.LTCCell(3, 4, ode_unfolds=1)(ops.ones((2, 3)))
    assert output.shape == (2, 4)
    with pytest.raises(ValueError, match="LTCCell: ode_unfolds must be >= 1, got 0"):
        nn.LTCCell(3, 4, ode_unfolds=0)


def test_the_steps_of_the_solver_divide_the_time(backend: Backend) -> None:
    """Two of them over a time are one over each half of it."""
    ops.set_seed(5)
    once = nn.LTCCell(3, 4, ode_unfolds=1)
    twice = nn.LTCCell(3, 4, ode_unfolds=2)
    twice.load_state_dict(once.state_dict())
    x = ops.ones((2, 3))
    _, half = once(x, None, 0.5)
    _, whole = once(x, half, 0.5)
    assert_same(twice(x)[1], whole)


@pytest.mark.parametrize("make", [nn.LTCCell, nn.LTC])
def test_the_solver_makes_six_steps_by_default(make: Any, backend: Backend) -> None:
    x, states = ops.ones((2, 5, 3) if make is nn.LTC else (2, 3)), []
    for options in ({}, {"ode_unfolds": 6}):
        ops.set_seed(5)
        states.append(make(3, 4, **options)(x)[1])
    assert_same(*states, tolerance=0.0)
