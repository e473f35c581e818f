"""Optimisers: equal to torch's over a hundred updates, on every engine; their state, schedules and clipping."""

from __future__ import annotations

import copy
import math
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from exceptions import HIDDEN_WARNING

import ember_ml
import ember_ml.transform
from ember_ml import ops, optim
from ember_ml import tree as ember_tree
from ember_ml.backend import Backend
from ember_ml.nn import modules
from ember_ml.nn.tensor import EmberTensor
from ember_ml.optim import schedules
from ember_ml.testing.comparison import assert_close, host, is_on_cpu

SHAPES = {"weight": (5, 3), "tall": (7, 2), "bias": (3,), "scale": (), "kernel": (3, 2, 4)}

CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "sgd": (optim.SGD(0.05), torch.optim.SGD, {"lr": 0.05}),
    "sgd momentum": (optim.SGD(0.05, 0.9), torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "sgd dampened": (
        optim.SGD(0.05, 0.9, dampening=0.5),
        torch.optim.SGD,
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.5},
    ),
    "sgd nesterov": (
        optim.SGD(0.05, 0.9, nesterov=True, weight_decay=0.1),
        torch.optim.SGD,
        {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ),
    "adam": (optim.Adam(0.01), torch.optim.Adam, {"lr": 0.01}),
    "adam betas": (
        optim.Adam(0.01, 0.0, 0.9, 1e-6),
        torch.optim.Adam,
        {"lr": 0.01, "betas": (0.0, 0.9), "eps": 1e-6},
    ),
    "adam decayed": (
        optim.Adam(0.01, weight_decay=0.1, amsgrad=True),
        torch.optim.Adam,
        {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True},
    ),
    "adamw": (optim.AdamW(0.01), torch.optim.AdamW, {"lr": 0.01}),
    "adamw amsgrad": (
        optim.AdamW(0.01, weight_decay=0.3, amsgrad=True),
        torch.optim.AdamW,
        {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True},
    ),
    "rmsprop": (optim.RMSprop(0.005), torch.optim.RMSprop, {"lr": 0.005}),
    "rmsprop centered": (
        optim.RMSprop(0.005, 0.9, momentum=0.5, centered=True, weight_decay=0.1),
        torch.optim.RMSprop,
        {"lr": 0.005, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1},
    ),
    "adagrad": (optim.Adagrad(0.05), torch.optim.Adagrad, {"lr": 0.05}),
    "adagrad decayed": (
        optim.Adagrad(0.05, 0.01, 0.1, weight_decay=0.1),
        torch.optim.Adagrad,
        {"lr": 0.05, "lr_decay": 0.01, "initial_accumulator_value": 0.1, "weight_decay": 0.1},
    ),
    "adafactor": (optim.Adafactor(0.05), torch.optim.Adafactor, {"lr": 0.05}),
    "adafactor decayed": (
        optim.Adafactor(0.05, -0.5, 1e-4, 1e-2, 2.0, 0.01),
        torch.optim.Adafactor,
        {"lr": 0.05, "beta2_decay": -0.5, "eps": (1e-4, 1e-2), "d": 2.0, "weight_decay": 0.01},
    ),
    "muon": (optim.Muon(0.01), torch.optim.Muon, {"lr": 0.01}),
    "muon adjusted": (
        optim.Muon(0.01, 0.8, nesterov=False, weight_decay=0.0, steps=3, adjust="match_rms_adamw"),
        torch.optim.Muon,
        {
            "lr": 0.01,
            "momentum": 0.8,
            "nesterov": False,
            "weight_decay": 0.0,
            "ns_steps": 3,
            "adjust_lr_fn": "match_rms_adamw",
        },
    ),
}

every_case = pytest.mark.parametrize("case", CASES)


def fresh(optimizer: Any) -> Any:
    """An optimiser with the same options and no state."""
    new = object.__new__(type(optimizer))
    new.__dict__.update({k: dict(v) if isinstance(v, dict) else v for k, v in vars(optimizer).items()})
    return new


def start(case: str) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    shapes = {k: s for k, s in SHAPES.items() if len(s) == 2 or "muon" not in case}
    return {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


def gradient_of(values: dict[str, Any], target: dict[str, Any], step: int) -> dict[str, Any]:
    """The noisy gradient of a curved valley, as a function of where one is: errors of an update would add up."""
    rng = np.random.default_rng(step)
    return {
        name: (0.2 * (x - target[name]) + 0.1 * np.sin(3 * x) + 0.1 * rng.standard_normal(x.shape)).astype("float32")
        for name, x in values.items()
    }


@pytest.fixture
def muon_in_single(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep torch's Muon in float32: in bfloat16 it is the order of additions that decides."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda self: self.clone())


@every_case
@pytest.mark.usefixtures("muon_in_single")
def test_a_hundred_updates_equal_torchs(backend: Backend, case: str) -> None:
    ours, theirs, options = CASES[case]
    optimizer = fresh(ours)
    begin, target = start(case), {name: x[::-1].copy() if x.ndim else -x for name, x in start(case).items()}
    native = {name: torch.nn.Parameter(torch.tensor(x)) for name, x in begin.items()}
    reference = theirs(native.values(), **options)
    mine = {name: ops.asarray(x) for name, x in begin.items()}
    for step in range(100):
        for name, gradient in gradient_of({k: v.detach().numpy() for k, v in native.items()}, target, step).items():
            native[name].grad = torch.tensor(gradient)
        reference.step()
        grads = gradient_of({name: backend.to_host(x) for name, x in mine.items()}, target, step)
        mine = optimizer.update(mine, {name: ops.asarray(g) for name, g in grads.items()})
    near = 1e-6 if is_on_cpu(backend) else 5e-6  # the reference is computed on the CPU
    for name, x in native.items():
        np.testing.assert_allclose(backend.to_host(mine[name]), x.detach().numpy(), rtol=0, atol=near, err_msg=name)
        assert np.abs(x.detach().numpy() - begin[name]).max() > 1e-2
    assert optimizer.step == 100


# Which updates a parameter takes part in: all, those from some on, every other one, and all but a few.
TURNS: dict[str, Any] = {
    "weight": lambda step: True,
    "tall": lambda step: step >= 7,
    "bias": lambda step: step % 2 == 0,
    "scale": lambda step: step >= 7,
    "kernel": lambda step: step not in (3, 4, 20),
}


@every_case
@pytest.mark.parametrize("is_resumed", [False, True], ids=["whole", "resumed"])
@pytest.mark.usefixtures("muon_in_single")
def test_each_parameter_counts_its_own_updates(backend: Backend, case: str, is_resumed: bool, tmp_path: Path) -> None:
    """One that is trained from later on begins as the others began, as in torch; so it is after a resume."""
    ours, theirs, options = CASES[case]
    optimizer = fresh(ours)
    begin, target = start(case), {name: x[::-1].copy() if x.ndim else -x for name, x in start(case).items()}
    native = {name: torch.nn.Parameter(torch.tensor(x)) for name, x in begin.items()}
    reference = theirs(native.values(), **options)
    mine = {name: ops.asarray(x) for name, x in begin.items()}
    for step in range(30):
        for name, gradient in gradient_of({k: v.detach().numpy() for k, v in native.items()}, target, step).items():
            native[name].grad = torch.tensor(gradient) if TURNS[name](step) else None
        reference.step()
        grads = gradient_of({name: backend.to_host(x) for name, x in mine.items()}, target, step)
        # Those without a gradient are left out, or have none.
        taking = {name: ops.asarray(g) if TURNS[name](step) else None for name, g in grads.items()}
        if step % 3:
            taking = {name: g for name, g in taking.items() if g is not None}
        mine = optimizer.update(mine, taking)
        if is_resumed and step % 10 == 9:
            ops.save(tmp_path / "state.safetensors", optimizer.tensors())
            optimizer = fresh(ours)
            optimizer.assign(ops.load(tmp_path / "state.safetensors"))
            if step > 10:
                optimizer.init(mine)
    near = 1e-6 if is_on_cpu(backend) else 5e-6  # the reference is computed on the CPU
    for name, x in native.items():
        np.testing.assert_allclose(backend.to_host(mine[name]), x.detach().numpy(), rtol=0, atol=near, err_msg=name)
    assert optimizer.step == 30


@pytest.mark.usefixtures("traced_only")
@pytest.mark.parametrize("case", ["sgd dampened", "adam", "adamw amsgrad", "adagrad decayed", "adafactor"])
def test_counts_of_their_own_in_compiled_code(backend: Backend, case: str) -> None:
    """One layer trains, then both, then the other: compiled updates are the same as eager ones."""
    phases = [{"a"}, {"a", "b", "c"}, {"b", "c"}, {"a", "b"}]
    optimizers = fresh(CASES[case][0]), fresh(CASES[case][0])
    update = ember_ml.transform.compile(lambda optimizer, values, grads: optimizer.update(values, grads))
    found = []
    for optimizer, step in zip(optimizers, (lambda optimizer, *given: optimizer.update(*given), update), strict=True):
        values = {name: ops.asarray([0.5, -1.0, 2.0]) for name in "abc"}
        for phase in phases:
            optimizer.init({name: values[name] for name in phase})
            for _ in range(2):
                values = step(optimizer, values, {name: ops.square(values[name]) for name in sorted(phase)})
        found.append({**values, **optimizer.tensors()})
    eager, compiled = found
    assert eager.keys() == compiled.keys()
    assert {name: int(x) for name, x in compiled.items() if "step" in name} == {
        "step": 8, "a.step": 6, "b.step": 6, "c.step": 4,
    }  # fmt: skip
    for name, x in eager.items():
        assert_close(backend.to_host(compiled[name]), backend.to_host(x), 1e-6, name)


def test_parameters_of_one_age_share_their_count(backend: Backend, tmp_path: Path) -> None:
    """So that a model that is unfrozen costs one count more, and not one for each of its parameters."""
    values = {name: ops.ones(2) for name in ("head", *(f"body.{i}" for i in range(5)))}
    optimizer = optim.Adam(0.1)
    optimizer.update(values, {"head": ops.ones(2)})
    assert list(optimizer.tensors()) == ["step", "learning_rate", "head.momentum", "head.variance"]
    for _ in range(2):
        optimizer.update(values, values)
    counts = [x for path, x in optimizer.tensors().items() if path.endswith(".step")]
    assert [int(x) for x in counts] == [2] * 5
    assert len({id(x) for x in counts}) == 1
    ops.save(tmp_path / "state.safetensors", optimizer.tensors())
    again = optim.Adam(0.1)
    again.assign(ops.load(tmp_path / "state.safetensors"))
    again.init(values)
    assert len({id(x) for path, x in again.tensors().items() if path.endswith(".step")}) == 1
    moved = pickle.loads(pickle.dumps(again)).to_backend(backend.name)
    one, other = moved.update(values, values), optimizer.update(values, values)
    for name, x in one.items():
        np.testing.assert_array_equal(backend.to_host(x), backend.to_host(other[name]), name)


def test_a_state_with_one_count_is_that_of_all(backend: Backend) -> None:
    """As earlier versions wrote it: whatever the optimiser counted before."""
    state = {"step": ops.asarray(5), "learning_rate": ops.asarray(0.1)}
    state |= {f"{name}.{kept}": ops.full((2,), 0.5) for name in "ab" for kept in ("momentum", "variance")}
    ones = {"a": ops.ones(2), "b": ops.ones(2)}
    used = optim.Adam(0.1)
    used.update(ones, {"a": ones["a"]})
    used.update(ones, ones)
    assert "b.step" in used.tensors()
    expected = 1 - 0.1 * (0.55 / (1 - 0.9**6)) / (math.sqrt(0.5005 / (1 - 0.999**6)) + 1e-8)
    for optimizer in (optim.Adam(0.1), used):
        optimizer.assign(state)
        assert optimizer.tensors().keys() == state.keys()
        for x in optimizer.update(ones, ones).values():
            assert x.tolist() == pytest.approx([expected] * 2, abs=1e-6)


def test_rates_go_by_the_updates_of_all(backend: Backend) -> None:
    optimizer = optim.SGD(schedules.step(1.0, every=2, factor=0.5))
    values = {"a": ops.zeros(1), "b": ops.zeros(1)}
    for _ in range(2):
        values = optimizer.update(values, {"a": ops.ones(1)})
    values = optimizer.update(values, {"a": ops.ones(1), "b": ops.ones(1)})
    assert [x.tolist() for x in values.values()] == [[-2.5], [-0.5]]


def test_muon_in_bfloat16_is_nearly_the_same(backend: Backend) -> None:
    gradient = ops.asarray(np.random.default_rng(5).standard_normal((6, 4)), dtype="float32")
    one, other = (
        optim.Muon(1.0, dtype=dtype, weight_decay=0.0).update([ops.zeros((6, 4))], [gradient])[0]
        for dtype in ("float32", "bfloat16")
    )
    assert ops.dtype(other).name == "float32"
    assert 0 < float(ops.max(ops.abs(ops.subtract(one, other)))) < 0.1
    sizes = np.linalg.svd(backend.to_host(one), compute_uv=False) / math.sqrt(6 / 4)
    assert sizes.min() > 0.6
    assert sizes.max() < 1.3


def test_lion_is_its_formula(backend: Backend) -> None:
    p, m = np.float64(0.3), np.float64(0.0)
    optimizer, mine = optim.Lion(0.01, weight_decay=0.1), {"p": ops.asarray([0.3])}
    for step in range(100):
        g = np.sin(step + 3 * float(p))
        p = p - 0.01 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * p)
        m = 0.99 * m + 0.01 * g
        mine = optimizer.update(mine, {"p": ops.asarray([g], dtype="float32")})
    assert mine["p"].tolist()[0] == pytest.approx(p, abs=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if "adam" in case or "sgd" in case])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_fused_rule_is_the_rule(backend: Backend, case: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fused, plain = fresh(CASES[case][0]), fresh(CASES[case][0])
    rng = np.random.default_rng(1)
    # Strides of every kind: a rule goes by axes, not by memory.
    a = {"w": ops.asarray(rng.standard_normal((4, 6, 5)), dtype=dtype), "b": ops.ones((3,), dtype=dtype)}
    a["t"] = ops.permute_dims(a["w"], (2, 0, 1))
    b = dict(a)
    for _ in range(5):
        grads = {
            "w": ops.permute_dims(ops.asarray(rng.standard_normal((5, 4, 6)), dtype=dtype), (1, 2, 0)),
            "b": ops.broadcast_to(ops.asarray(0.5, dtype=dtype), (3,)),
            "t": ops.asarray(rng.standard_normal((5, 4, 6)), dtype=dtype),
        }
        a = fused.update(a, grads)
        with monkeypatch.context() as patch:
            patch.setattr("ember_ml.optim.optimizer.FUSED", frozenset())
            b = plain.update(b, grads)
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    for mine, theirs in ((a, b), (fused.tensors(), plain.tensors())):
        assert list(mine) == list(theirs)
        for name, x in mine.items():
            assert ops.dtype(x) == ops.dtype(theirs[name])
            assert_close(backend.to_host(x), backend.to_host(theirs[name]), tolerance, name)


@every_case
def test_nothing_that_somebody_holds_changes(backend: Backend, case: str) -> None:
    optimizer = fresh(CASES[case][0])
    parameters = {name: ops.asarray(x) for name, x in start(case).items()}
    grads = {name: ops.ones_like(x) for name, x in parameters.items()}
    for _ in range(3):
        held = {**{f"p {k}": v for k, v in parameters.items()}, **{f"g {k}": v for k, v in grads.items()}}
        held |= {f"s {k}": v for k, v in optimizer.tensors().items()}
        before = {name: np.array(backend.to_host(x)) for name, x in held.items()}
        parameters = optimizer.update(parameters, grads)
        parameters = optimizer.update(parameters, grads)
        for name, x in held.items():
            np.testing.assert_array_equal(backend.to_host(x), before[name], name)


def test_nor_does_what_is_held_of_parameters_without_a_gradient(backend: Backend) -> None:
    optimizer = optim.Adam(0.1)
    both = {"a": ops.ones(2), "b": ops.ones(2)}
    both = optimizer.update(both, both)
    held = optimizer.tensors()["b.momentum"]
    before = np.array(backend.to_host(held))
    both = optimizer.update(both, {"a": both["a"]})
    optimizer.update(both, {"b": both["b"]})
    np.testing.assert_array_equal(backend.to_host(held), before)


@every_case
def test_the_state_travels(backend: Backend, case: str, tmp_path: Path) -> None:
    """An optimiser that is given another's state goes on as that one does."""
    first, second = fresh(CASES[case][0]), fresh(CASES[case][0])
    parameters = {name: ops.asarray(x) for name, x in start(case).items()}
    for _ in range(3):
        parameters = first.update(parameters, parameters)
    ops.save(tmp_path / "state.safetensors", first.tensors())
    second.assign(ops.load(tmp_path / "state.safetensors"))
    assert second.step == 3
    assert second.learning_rate == pytest.approx(first.learning_rate)
    one, other = first.update(parameters, parameters), second.update(parameters, parameters)
    for name, x in one.items():
        np.testing.assert_array_equal(backend.to_host(x), backend.to_host(other[name]), name)


def test_the_state_moves_between_engines(backend: Backend) -> None:
    parameters = {"w": ops.asarray([1.0, 2.0])}
    first = optim.Adam(0.1)
    after = first.update(first.update(parameters, parameters), parameters)["w"].tolist()
    second = optim.Grouped([(lambda path, p: True, optim.Adam(0.1))])
    moved = second.update(parameters, parameters)["w"]
    for name in ember_ml.get_available_backends():
        second.to_backend(name)
        with ember_ml.use_backend(name):
            moved = ops.asarray(moved)
    second.to_backend(backend.name)
    moved = second.update({"w": ops.asarray(moved)}, parameters)["w"]
    assert isinstance(moved, backend.tensors)
    assert moved.tolist() == pytest.approx(after, abs=1e-6)


@every_case
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_computed_in_single(backend: Backend, case: str, dtype: str) -> None:
    half, single = fresh(CASES[case][0]), fresh(CASES[case][0])
    parameters = {name: ops.asarray(x, dtype=dtype) for name, x in start(case).items()}
    wide = {name: ops.cast(x, "float32") for name, x in parameters.items()}
    if "adafactor" in case:
        half.eps_1 = single.eps_1 = 1e-4
    narrow = half.update(parameters, parameters)
    expected = single.update(wide, wide)
    for name, x in narrow.items():
        assert ops.dtype(x).name == dtype
        np.testing.assert_array_equal(backend.to_host(x), backend.to_host(ops.cast(expected[name], dtype)), name)
    assert all(ops.dtype(x).name in ("float32", "int64") for x in half.tensors().values())


def test_parameters_come_in_many_forms(backend: Backend) -> None:
    x = ops.asarray([1.0])
    tree = optim.SGD(0.5).update({"a": [x, (x,)], "b": {"c": x}}, {"a": [x, (x,)], "b": {"c": None}})
    assert [leaf.tolist() for leaf in ember_tree.leaves(tree)] == [[0.5], [0.5], [1.0]]
    assert isinstance(tree["a"][1], tuple)
    optimizer = optim.Adam()
    optimizer.update({"w": {"x": x}}, {"w": {"x": x}})
    assert list(optimizer.tensors()) == ["step", "learning_rate", "w.x.momentum", "w.x.variance"]
    assert optim.SGD().update({}, {}) == {}
    with pytest.raises(
        ValueError, match=r"the paths of parameters \(their keys joined by dots\) must be unique, got a"
    ):
        optim.SGD().update({"a.b": x, "a": {"b": x}}, {"a.b": x, "a": {"b": x}})
    with pytest.raises(ValueError, match="every gradient must belong to a parameter"):
        optim.SGD().update({"w": x}, {"v": x})
    with pytest.raises(ValueError, match="structure"):
        optim.SGD().update([x], [x, x])
    with pytest.raises(TypeError, match="must have a real floating dtype, got int64 for w"):
        optim.SGD().update({"w": ops.asarray([1])}, {"w": ops.asarray([1])})
    with pytest.raises(ValueError, match=r"got b of shape \[1\].*Grouped"):
        optim.Muon().update({"b": x}, {"b": x})


def test_a_model_is_updated_in_place(backend: Backend) -> None:
    model = modules.Sequential(modules.Linear(2, 3), modules.Linear(3, 1)).freeze("0")
    before = {path: x.tolist() for path, x in model.tensors().items()}
    optimizer = optim.SGD(0.5, momentum=0.9)
    grads = {path: ops.ones_like(x) for path, x in model.parameters().items()}
    assert optimizer.update(model, grads) is None
    after = {path: x.tolist() for path, x in model.tensors().items()}
    assert after["0.weight"] == before["0.weight"]
    assert after["1.bias"] == [before["1.bias"][0] - 0.5]
    model.unfreeze()
    optimizer.update(model, {path: ops.ones_like(x) for path, x in model.parameters().items()})
    assert "0.weight.velocity" in optimizer.tensors()


def test_rates_are_numbers_tensors_and_functions(backend: Backend) -> None:
    x = {"x": ops.asarray([0.0])}
    one = {"x": ops.asarray([1.0])}
    optimizer = optim.SGD(0.5)
    assert optimizer.learning_rate == 0.5
    x = optimizer.update(x, one)
    optimizer.learning_rate = 0.25
    x = optimizer.update(x, one)
    assert (x["x"].tolist(), optimizer.learning_rate, optimizer.step) == ([-0.75], 0.25, 2)
    optimizer.learning_rate = lambda step: 1.0 - 0.25 * step
    x = optimizer.update(x, one)
    assert x["x"].tolist() == [-1.25]
    assert optimizer.learning_rate == 0.25
    assert "learning_rate" not in optimizer.tensors()
    with pytest.raises(ValueError, match=r"Adam: learning_rate must be >= 0, got -1\.0"):
        optim.Adam(-1.0)
    with pytest.raises(ValueError, match=r"SGD: a state key must be 'step', .* or '<path>\.<name>', got 'wrong'"):
        optimizer.assign({"wrong": x})
    lion = optim.Lion(schedules.cosine(0.1, 5))
    assert repr(lion).startswith("Lion(learning_rate=cosine(rate=0.1, steps=5), beta_1=0.9")
    assert repr(optim.SGD(0.5, 0.9)) == (
        "SGD(learning_rate=0.5, momentum=0.9, nesterov=False, dampening=0.0, weight_decay=0.0)"
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.SGD(momentum=-1),
        lambda: optim.SGD(nesterov=True),
        lambda: optim.Adam(beta_1=1.0),
        lambda: optim.Adam(clip_norm=0.0),
        lambda: optim.RMSprop(rho=2),
        lambda: optim.Adafactor(beta_2_decay=1.0),
        lambda: optim.Muon(adjust="some"),
        lambda: optim.Grouped([]),
        lambda: schedules.cosine(0.1, 0),
        lambda: schedules.one_cycle(0.1, 1),
        lambda: schedules.joined([schedules.constant(1.0)], [3]),
        lambda: optim.clip_by_norm([], 0.0),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        make()


SCHEDULES: dict[str, tuple[Any, Any]] = {
    "step": (schedules.step(0.1, 7, 0.5), lambda o: torch.optim.lr_scheduler.StepLR(o, 7, 0.5)),
    "exponential": (schedules.exponential(0.1, 0.9), lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9)),
    "linear": (schedules.linear(0.02, 0.1, 20), lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.2, 1.0, 20)),
    "cosine": (
        schedules.cosine(0.1, 50, 0.01),
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 50, 0.01),
    ),
    "one cycle": (schedules.one_cycle(0.1, 50), lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 50)),
    "constant": (schedules.constant(0.1), lambda o: torch.optim.lr_scheduler.ConstantLR(o, 1.0)),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_equal_torchs(backend: Backend, name: str) -> None:
    ours, theirs = SCHEDULES[name]
    reference = torch.optim.SGD([torch.zeros(1)], 0.1)
    scheduler = theirs(reference)
    for step in range(50):
        expected = reference.param_groups[0]["lr"]
        assert ours(step) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        rate = ours(ops.asarray(float(step)))
        assert float(rate) == pytest.approx(expected, rel=1e-4, abs=1e-7)
        assert ops.dtype(rate).name == "float32"
        reference.step()
        if step < 49:
            scheduler.step()


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (lambda: schedules.linear(0.5, 0.125, 1), [0.5, 0.125, 0.125]),
        (lambda: schedules.cosine(1.0, 1, 0.25), [1.0, 0.25, 0.25]),
        (lambda: schedules.step(1.0, 1, 0.5), [1.0, 0.5, 0.25]),
        (lambda: schedules.warm_up(1.0, 1, 0.5), [0.5, 1.0, 1.0]),
    ],
)
def test_a_schedule_may_take_a_single_step(schedule: Any, rates: list[float]) -> None:
    assert [schedule()(n) for n in range(3)] == rates


@pytest.mark.parametrize("every", [2, 3, 49, 1000])
def test_a_step_falls_at_every_so_many_updates_exactly(backend: Backend, every: int) -> None:
    schedule = schedules.step(1.0, every, 0.5)
    for number in (1, 2, 3):
        before, at = number * every - 1, number * every
        assert [schedule(before), schedule(at)] == [0.5 ** (number - 1), 0.5**number]
        assert [float(schedule(ops.asarray(float(n)))) for n in (before, at)] == [0.5 ** (number - 1), 0.5**number]


def test_a_step_is_a_tenth_by_default() -> None:
    assert [schedules.step(1.0, 2)(n) for n in range(5)] == pytest.approx([1.0, 1.0, 0.1, 0.1, 0.01])


def test_a_boundary_is_the_update_that_the_next_schedule_begins_with(backend: Backend) -> None:
    schedule = schedules.joined([schedules.constant(rate) for rate in (1.0, 0.5, 0.25)], [2, 5])
    expected = [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert [schedule(n) for n in range(7)] == expected
    assert [float(schedule(ops.asarray(float(n)))) for n in range(7)] == expected


def test_schedules_join(backend: Backend) -> None:
    warm = schedules.warm_up(schedules.cosine(1.0, 10), 5)
    assert [round(warm(n), 3) for n in (0, 1, 5, 10, 15, 99)] == [0.0, 0.2, 1.0, 0.5, 0.0, 0.0]
    for n in (0.0, 3.0, 5.0, 12.0):
        assert float(warm(ops.asarray(n))) == pytest.approx(warm(n), abs=1e-6)


def test_clipping_equals_torchs(backend: Backend) -> None:
    rng = np.random.default_rng(2)
    grads = {name: rng.standard_normal(shape).astype("float32") for name, shape in SHAPES.items()}
    for limit in (0.5, 100.0):
        native = [torch.nn.Parameter(torch.zeros(x.shape)) for x in grads.values()]
        for p, g in zip(native, grads.values(), strict=True):
            p.grad = torch.tensor(g)
        norm = torch.nn.utils.clip_grad_norm_(native, limit)
        mine = {name: ops.asarray(g) for name, g in grads.items()}
        assert float(optim.global_norm(mine)) == pytest.approx(float(norm), rel=1e-6)
        for p, g in zip(native, optim.clip_by_global_norm(mine, limit).values(), strict=True):
            np.testing.assert_allclose(backend.to_host(g), p.grad.numpy(), rtol=1e-5, atol=1e-6)
        for name, g in optim.clip_by_norm(mine, limit).items():
            size = np.linalg.norm(grads[name])
            np.testing.assert_allclose(backend.to_host(g), grads[name] * min(1, limit / size), rtol=1e-5)
        for name, g in optim.clip_by_value(mine, limit).items():
            np.testing.assert_array_equal(backend.to_host(g), np.clip(grads[name], -limit, limit))
    assert optim.clip_by_global_norm({"a": None}, 1.0) == {"a": None}
    half = optim.clip_by_global_norm([ops.full((4,), 6e4, dtype="float16")], 1.0)[0]
    assert ops.dtype(half).name == "float16"
    assert half.tolist() == [0.5] * 4
    zero = optim.clip_by_global_norm([ops.zeros((4,))], 1.0)[0]
    assert zero.tolist() == [0.0] * 4


def test_an_optimiser_clips(backend: Backend) -> None:
    x, g = {"x": ops.asarray([0.0, 0.0])}, {"x": ops.asarray([30.0, -40.0])}
    assert optim.SGD(1.0, clip_norm=5.0).update(x, g)["x"].tolist() == [-3.0, 4.0]
    assert optim.SGD(1.0, clip_value=1.0).update(x, g)["x"].tolist() == [-1.0, 1.0]


def test_a_group_without_gradients_does_not_change(backend: Backend) -> None:
    both = optim.Grouped([(lambda path, p: path == "a", optim.SGD(0.5)), (lambda path, p: True, optim.SGD(0.25))])
    new = both.update({"a": ops.ones(1), "b": ops.ones(1)}, {"a": ops.ones(1)})
    assert {path: x.tolist() for path, x in new.items()} == {"a": [0.5], "b": [1.0]}


def test_groups_have_optimisers_of_their_own(backend: Backend) -> None:
    model = modules.Sequential(modules.Linear(2, 3), modules.Linear(3, 1))
    both = optim.Grouped([(lambda path, p: p.ndim == 2, optim.Muon(0.1)), (lambda path, p: True, optim.AdamW(0.01))])
    both.init(model)
    names = list(both.tensors())
    assert "0.0.weight.velocity" in names
    assert "1.1.bias.momentum" in names
    grads = {path: ops.ones_like(x) for path, x in model.parameters().items()}
    bias = model[1].bias.tolist()[0]
    both.update(model, grads)
    assert model[1].bias.tolist()[0] == pytest.approx(bias * (1 - 1e-4) - 0.01, abs=1e-6)
    assert (both.step, both.learning_rate) == (1, pytest.approx(0.1))
    other = optim.Grouped([(lambda path, p: p.ndim == 2, optim.Muon(0.1)), (lambda path, p: True, optim.AdamW(0.01))])
    other.assign(both.tensors())
    assert other.step == 1
    with pytest.raises(ValueError, match="Grouped: an optimizer must take every parameter, got none for b"):
        optim.Grouped([(lambda path, p: path == "a", optim.SGD())]).init({"b": ops.ones(1)})
    with pytest.raises(ValueError, match="Grouped: a state key must begin with the number of an optimizer, from 0"):
        both.assign({"x": ops.ones(1)})


def test_a_compiled_update_is_the_update(backend: Backend) -> None:
    rates = schedules.warm_up(schedules.cosine(0.05, 10), 2)
    eager, compiled = optim.AdamW(rates, clip_norm=1.0), optim.AdamW(rates, clip_norm=1.0)
    a = {name: ops.asarray(x) for name, x in start("muon").items()}
    b = dict(a)
    compiled.init(b)
    update = ember_ml.transform.compile(lambda optimizer, values, grads: optimizer.update(values, grads))
    for _ in range(3):
        a, b = eager.update(a, a), update(compiled, b, b)
    assert compiled.step == 3
    for name, x in a.items():
        assert_close(backend.to_host(b[name]), backend.to_host(x), 1e-5, name)


@pytest.mark.parametrize("case", ["adam", "adam decayed", "adamw", "sgd nesterov"])
def test_nothing_that_somebody_holds_changes_in_compiled_code(backend: Backend, case: str) -> None:
    eager, optimizer = fresh(CASES[case][0]), fresh(CASES[case][0])
    expected = {name: ops.asarray(x) for name, x in start(case).items()}
    # Strides of every kind: a compiled rule goes by axes too.
    expected["t"] = ops.permute_dims(ops.reshape(ops.arange(24, dtype="float32"), (4, 6)), (1, 0))
    parameters = dict(expected)
    optimizer.init(parameters)
    update = ember_ml.transform.compile(lambda optimizer, values, grads: optimizer.update(values, grads))
    grads = {name: ops.divide(ops.add(ops.square(x), 1.0), 8.0) for name, x in parameters.items()}
    for _ in range(3):
        held = {**{f"p {k}": v for k, v in parameters.items()}, **{f"g {k}": v for k, v in grads.items()}}
        held |= {f"s {k}": v for k, v in optimizer.tensors().items()}
        before = {name: np.array(backend.to_host(x)) for name, x in held.items()}
        for _ in range(2):
            parameters = update(optimizer, parameters, grads)
            expected = eager.update(expected, grads)
        for name, x in held.items():
            np.testing.assert_array_equal(backend.to_host(x), before[name], name)
        for name, x in {**expected, **eager.tensors()}.items():
            assert_close(backend.to_host({**parameters, **optimizer.tensors()}[name]), backend.to_host(x), 1e-5, name)


def test_a_rate_may_be_a_number_of_a_schedule_in_compiled_code(backend: Backend) -> None:
    optimizer = optim.Adam(lambda step: 0.25, eps=0.0).init({"w": ops.ones(2)})
    update = ember_ml.transform.compile(lambda optimizer, w: optimizer.update({"w": w}, {"w": w})["w"])
    np.testing.assert_allclose(backend.to_host(update(optimizer, ops.ones(2))), [0.75, 0.75], rtol=1e-6)


@pytest.mark.skipif("torch" not in ember_ml.get_available_backends(), reason="torch traces, and is not installed")
def test_looking_at_the_state_compiles_nothing_again() -> None:
    with ember_ml.use_backend("torch"):
        torch._dynamo.reset()
        w = ops.ones(3)
        optimizer = optim.Adam(0.1).init({"w": w})
        update = ember_ml.transform.compile(lambda optimizer, w: optimizer.update({"w": w}, {"w": w})["w"])
        w = update(optimizer, w)
        memory = optimizer._states["w"]["momentum"]
        with torch._dynamo.config.patch(error_on_recompile=True):
            w = update(optimizer, w)
            assert optimizer._states["w"]["momentum"] is memory
            held = optimizer.tensors()["w.momentum"]
            update(optimizer, w)
        assert held is memory
        assert optimizer.tensors()["w.momentum"] is not memory


@pytest.mark.parametrize(
    "case",
    ["sgd nesterov", "sgd dampened", "adam decayed", "adamw", "rmsprop centered", "adagrad decayed",
     "adafactor decayed", "muon"],
)  # fmt: skip
@pytest.mark.skipif("torch" not in ember_ml.get_available_backends(), reason="torch traces, and is not installed")
def test_every_update_is_traced_as_one_graph(case: str) -> None:
    with ember_ml.use_backend("torch"):
        eager, traced = fresh(CASES[case][0]), fresh(CASES[case][0])
        a = {name: ops.asarray(x) for name, x in start(case).items()}
        b = dict(a)
        traced.init(b)
        torch._dynamo.reset()
        update = torch.compile(lambda values: traced.update(values, values), backend="eager", fullgraph=True)
        with torch._dynamo.config.patch(error_on_recompile=True):
            for _ in range(3):
                a, b = eager.update(a, a), update(b)
        assert traced.step == 3
        for name, x in a.items():
            assert_close(ops.to_numpy(b[name]), ops.to_numpy(x), 1e-5, name)


def test_empty_and_single_parameters(backend: Backend) -> None:
    parameters = {"none": ops.zeros((0, 3)), "one": ops.asarray(2.0)}
    for optimizer in (optim.SGD(0.1, 0.9), optim.Adam(), optim.RMSprop(), optim.Adagrad(), optim.Lion()):
        new = optimizer.update(parameters, parameters)
        assert tuple(new["none"].shape) == (0, 3)
        assert tuple(new["one"].shape) == ()
        assert float(new["one"]) < 2.0


def test_gradients_flow_through_updates(backend: Backend) -> None:
    """What a parameter becomes can be differentiated with respect to what it was, as learning to learn needs."""

    def after(w: Any) -> Any:
        optimizer = optim.SGD(0.1, 0.9)
        parameters = {"w": w}
        for _ in range(2):
            parameters = optimizer.update(parameters, {"w": ops.multiply(parameters["w"], 2.0)})
        return ops.sum(ops.square(parameters["w"]))

    # The second step goes on with 0.9 of the first: w (0.8 - 0.2 * (0.8 + 0.9)) = 0.46 w.
    gradient = ember_ml.transform.grad(after)(ops.asarray([1.0, 2.0]))
    np.testing.assert_allclose(backend.to_host(gradient), [2 * 0.46**2, 4 * 0.46**2], rtol=1e-5)


@pytest.mark.filterwarnings(HIDDEN_WARNING)
def test_gradients_flow_through_updates_in_compiled_code(backend: Backend) -> None:
    def after(w: Any) -> Any:
        return ops.sum(optim.Adam(0.5, beta_1=0.0, beta_2=0.0, eps=1.0).update({"w": w}, {"w": w})["w"])

    # The step is 0.5 * w / (w + 1), so that the derivative is 1 - 0.5 / (w + 1) ** 2.
    gradient = ember_ml.transform.compile(ember_ml.transform.grad(after))(ops.asarray([1.0, 3.0]))
    np.testing.assert_allclose(backend.to_host(gradient), [1 - 0.5 / 4, 1 - 0.5 / 16], rtol=1e-5)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_updates_are_vectorised(backend: Backend, is_compiled: bool) -> None:
    w = ops.asarray([[1.0, 2.0], [3.0, 4.0]])
    mapped = ember_ml.transform.vmap(lambda w: optim.Adam(0.1).update({"w": w}, {"w": w})["w"])
    found = (ember_ml.transform.compile(mapped) if is_compiled else mapped)(w)
    np.testing.assert_allclose(backend.to_host(found), [[0.9, 1.9], [2.9, 3.9]], rtol=1e-5)


def test_an_ember_tensor_gives_an_ember_tensor(backend: Backend) -> None:
    w = EmberTensor([1.0, 2.0])
    for optimizer in (optim.SGD(0.1), optim.Adam(0.1)):
        new = optimizer.update({"w": w}, {"w": w})["w"]
        assert isinstance(new, EmberTensor)
        assert new.tolist() == pytest.approx([0.9, 1.8 if isinstance(optimizer, optim.SGD) else 1.9], abs=1e-6)


def test_gradients_of_a_model_are_a_dictionary(backend: Backend) -> None:
    model = modules.Linear(2, 1)
    pair = ember_ml.transform.value_and_grad(lambda model: ops.sum(model([[1.0, 2.0]])))(model)
    for grads, hint in ((pair, r"got a tuple; value_and_grad returns \(value, grads\)"), ([], r"got \[\]")):
        with pytest.raises(TypeError, match=hint):
            optim.SGD(0.1).update(model, grads)


def test_gradients_of_another_shape_are_refused(backend: Backend) -> None:
    """They would be stretched over the parameter, or the parameter over them."""
    for optimizer in (optim.SGD(0.1), optim.Adam(0.1).init({"w": ops.ones((2, 2))})):
        with pytest.raises(ValueError, match="the gradient of w must have the shape of the parameter, float"):
            optimizer.update({"w": ops.ones((2, 2))}, {"w": ops.ones((2,))})


@pytest.mark.parametrize("value", [{"w": 1.0}, [1.0], "fast", None])
def test_a_learning_rate_of_another_kind(value: Any) -> None:
    with pytest.raises(TypeError, match="learning_rate must be a number or a schedule, got "):
        optim.Adam(value)


def test_pickles_keep_every_digit(backend: Backend) -> None:
    w = {"w": ops.asarray([1.0, 2.0], dtype="float64")}
    grads = {"w": ops.asarray([1 / 3, 1e-9], dtype="float64")}
    mine = optim.Adam(0.1)
    w = mine.update(w, grads)
    for other in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine)):
        assert repr(other) == repr(mine)
        assert {path: (ops.dtype(x).name, x.tolist()) for path, x in other.tensors().items()} == {
            path: (ops.dtype(x).name, x.tolist()) for path, x in mine.tensors().items()
        }
        assert other.update(w, grads)["w"].tolist() == copy.deepcopy(mine).update(w, grads)["w"].tolist()
    assert pickle.loads(pickle.dumps(optim.SGD(0.5))).learning_rate == 0.5


def test_schedules_are_pickled() -> None:
    warm = schedules.warm_up(schedules.cosine(0.05, 10), steps=2)
    assert repr(warm) == "warm_up(schedule=cosine(rate=0.05, steps=10), steps=2)"
    optimizer = optim.SGD(warm)
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        assert repr(other) == repr(optimizer)
        assert [other._schedule(n) for n in range(6)] == [warm(n) for n in range(6)]


def _mixed() -> dict[str, Any]:
    return {
        "fine": ops.ones((2, 3), dtype="float64"),
        "plain": ops.ones((3,)),
        "half": ops.ones((3,), dtype="bfloat16"),
    }


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adafactor", "Lion"])
@pytest.mark.parametrize("order", [1, -1])
def test_parameters_of_several_dtypes_keep_their_own(backend: Backend, name: str, order: int) -> None:
    """And each is updated as it would be alone."""
    parameters = dict(list(_mixed().items())[::order])
    grads = {path: ops.multiply(x, 0.3) for path, x in parameters.items()}
    maker = partial(getattr(optim, name), 0.1, weight_decay=0.01)
    together = maker()
    found = parameters
    for _ in range(3):
        found = together.update(found, grads)
    for path, x in parameters.items():
        assert ops.dtype(found[path]) == ops.dtype(x), path
        alone, new = maker(), {path: x}
        for _ in range(3):
            new = alone.update(new, {path: grads[path]})
        assert_close(host(ops.cast(found[path], "float64")), host(ops.cast(new[path], "float64")), 1e-6, path)
    kinds = {path: str(ops.dtype(x)) for path, x in together.tensors().items()}
    assert {kind for path, kind in kinds.items() if path.startswith("fine.")} <= {"float64"}
    assert {kind for path, kind in kinds.items() if path.startswith(("plain.", "half."))} <= {"float32"}


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adafactor", "Lion"])
def test_the_state_follows_a_model_to_another_dtype(backend: Backend, name: str) -> None:
    ops.random.set_seed(0)
    model = modules.Linear(3, 2)
    optimizer = getattr(optim, name)(0.1, **({"momentum": 0.9} if name == "SGD" else {}))
    before = {path: host(x) for path, x in model.parameters().items()}
    for dtype in ("float32", "float64", "bfloat16", "float32"):
        model.astype(dtype)
        optimizer.update(model, {path: ops.ones_like(x) for path, x in model.parameters().items()})
        assert {str(ops.dtype(x)) for x in model.tensors().values()} == {dtype}
        state = "float64" if dtype == "float64" else "float32"
        assert {str(ops.dtype(x)) for path, x in optimizer.tensors().items() if path != "step"} == {state}
    other = getattr(optim, name)(0.1, **({"momentum": 0.9} if name == "SGD" else {}))
    plain = {path: ops.asarray(x) for path, x in before.items()}
    for _ in range(4):
        plain = other.update(plain, {path: ops.ones_like(x) for path, x in plain.items()})
    for path, x in model.parameters().items():
        assert_close(host(x), host(plain[path]), 2e-2, path)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adafactor"])
def test_the_state_follows_a_model_to_another_engine(backend: Backend, name: str) -> None:
    ops.random.set_seed(0)
    model = modules.Linear(3, 2)
    moved, stays = copy.deepcopy(model), model
    optimizers = [getattr(optim, name)(0.1, **({"momentum": 0.9} if name == "SGD" else {})) for _ in range(2)]
    for engine in [*ember_ml.get_available_backends(), backend.name]:
        moved.to_backend(engine)
        for one, optimizer in zip((moved, stays), optimizers, strict=True):
            with ember_ml.use_backend(one.backend):
                optimizer.update(one, {path: ops.full_like(x, 0.3) for path, x in one.parameters().items()})
        assert moved.backend == engine
        for path, x in stays.parameters().items():
            assert_close(host(moved.parameters()[path]), host(x), 1e-6, path)


def test_a_gradient_that_is_always_the_same_has_no_variance(backend: Backend) -> None:
    """Its square less the square of its mean may be rounded to less than zero, which has no root."""
    optimizer = optim.RMSprop(1e-3, rho=0.5, centered=True)
    parameters = {"w": ops.zeros((1000,))}
    gradients = {"w": ops.linspace(-1.0, 1.0, 1000)}
    for _ in range(40):
        parameters = optimizer.update(parameters, gradients)
    assert np.isfinite(host(parameters["w"])).all()


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adafactor"])
@pytest.mark.parametrize("sizes", [(1, 8), (8, 1)])
def test_a_parameter_of_another_shape_needs_a_new_state(backend: Backend, name: str, sizes: tuple[int, int]) -> None:
    """Engines would broadcast, or write over the end of a tensor."""
    model = modules.Sequential(modules.Linear(4, sizes[0]))
    optimizer = getattr(optim, name)(0.1, **({"momentum": 0.9} if name == "SGD" else {}))
    optimizer.update(model, {path: ops.ones_like(x) for path, x in model.parameters().items()})
    model[0] = modules.Linear(4, sizes[1])
    with pytest.raises(
        ValueError, match=rf"0\.weight must have shape \[4, {sizes[0]}\].*\[4, {sizes[1]}\]; .*new optimizer"
    ):
        optimizer.update(model, {path: ops.ones_like(x) for path, x in model.parameters().items()})


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adafactor"])
def test_a_state_of_another_shape_does_not_fit(backend: Backend, name: str) -> None:
    options = {"momentum": 0.9} if name == "SGD" else {}
    small, large = {"w": ops.ones((4, 1))}, {"w": ops.ones((4, 8))}
    for begin, later in ((small, large), (large, small)):
        state = getattr(optim, name)(0.1, **options).init(begin).tensors()
        optimizer = getattr(optim, name)(0.1, **options)
        optimizer.assign(state)
        with pytest.raises(ValueError, match=r"the state w\."):
            optimizer.update(later, later)
    lacking = getattr(optim, name)(0.1, **options)
    lacking.assign({"step": ops.asarray(0), "learning_rate": ops.asarray(0.1), "w.other": ops.ones(3)})
    with pytest.raises(ValueError, match=r"the state w\."):
        lacking.update(small, small)


RAISED: dict[str, tuple[Any, dict[str, Any], set[str]]] = {
    "sgd momentum": (optim.SGD(0.05), {"momentum": 0.9}, {"velocity"}),
    "sgd dampened": (optim.SGD(0.05), {"momentum": 0.9, "dampening": 0.5}, {"velocity"}),
    "sgd nesterov": (optim.SGD(0.05), {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {"velocity"}),
    "sgd nesterov alone": (optim.SGD(0.05), {"nesterov": True}, set()),
    "adam": (optim.Adam(0.05), {"amsgrad": True, "weight_decay": 0.1}, {"largest"}),
    "adamw": (optim.AdamW(0.05, weight_decay=0.0), {"amsgrad": True, "weight_decay": 0.1}, {"largest"}),
    "rmsprop momentum": (optim.RMSprop(0.05), {"momentum": 0.9}, {"velocity"}),
    "rmsprop centered": (optim.RMSprop(0.05), {"centered": True, "weight_decay": 0.1}, {"mean"}),
    "adagrad": (optim.Adagrad(0.05), {"weight_decay": 0.1, "rate_decay": 0.1}, set()),
    "adafactor": (optim.Adafactor(0.05), {"weight_decay": 0.1, "eps_1": 1e-3}, set()),
    "lion": (optim.Lion(0.05), {"weight_decay": 0.1}, set()),
    "muon": (optim.Muon(0.05, 0.0, nesterov=False, weight_decay=0.0), {"momentum": 0.9, "nesterov": True}, set()),
}


@pytest.mark.usefixtures("traced_only")
@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("case", RAISED)
def test_an_option_that_needs_memory_begins_it_at_zeros(backend: Backend, case: str, is_compiled: bool) -> None:
    """Whenever it is raised; while it is lowered, what was remembered for it stays as it is."""
    made, raised, begun = RAISED[case]
    optimizer, twin = fresh(made), fresh(made)
    parameters = {name: ops.asarray(x) for name, x in start("muon").items()}
    expected = dict(parameters)
    grads = {name: ops.divide(ops.add(ops.square(x), 1.0), 8.0) for name, x in parameters.items()}

    def update(optimizer: Any, values: Any, grads: Any) -> Any:
        return optimizer.update(values, grads)

    step = ember_ml.transform.compile(update) if is_compiled else update
    lowered = {name: getattr(made, name) for name in raised}
    for turn, options in enumerate((lowered, raised, lowered, raised)):
        for name, value in options.items():
            setattr(optimizer, name, value)
            setattr(twin, name, value)
        if turn == 1:
            twin.assign({f"{path}.{name}": ops.zeros_like(x) for path, x in parameters.items() for name in begun})
            assert not begun & {path.rpartition(".")[2] for path in optimizer.tensors()}
        for _ in range(2):
            parameters = step(optimizer, parameters, grads)
            expected = _by_its_rule(twin, expected, grads)
    assert list(optimizer.tensors()) == list(twin.tensors())
    for name, x in {**expected, **twin.tensors()}.items():
        assert_close(backend.to_host({**parameters, **optimizer.tensors()}[name]), backend.to_host(x), 1e-5, name)


def _by_its_rule(optimizer: Any, values: Any, grads: Any) -> Any:
    """An update by the rule itself, whatever fused form of it an engine has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ember_ml.optim.optimizer.FUSED", frozenset())
        return optimizer.update(values, grads)


def test_memory_begins_by_init_too_and_only_where_it_is_missing(backend: Backend) -> None:
    parameters = {"a": ops.ones(2), "b": ops.ones(3)}
    optimizer = optim.SGD(0.5).init(parameters)
    optimizer.momentum = 0.5
    optimizer.update({"a": parameters["a"]}, {"a": parameters["a"]})
    assert "b.velocity" not in optimizer.tensors()
    optimizer.init(parameters)
    assert optimizer.tensors()["a.velocity"].tolist() == [1.0, 1.0]
    assert optimizer.tensors()["b.velocity"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["state_names", "memory"])
def test_a_subclass_names_its_state_by_either_name(name: str, backend: Backend) -> None:
    class Summing(optim.Optimizer):
        def rule(self, parameter: Any, gradient: Any, state: Any, common: Any) -> Any:
            total = ops.add(state["total"], gradient)
            return ops.subtract(parameter, ops.multiply(common[0], total)), {"total": total}

    setattr(Summing, name, lambda self: ("total",))
    optimizer = Summing(0.5)
    assert (optimizer.state_names(), optimizer.memory()) == (("total",), ("total",))
    assert (optim.Adam().memory(), optim.SGD().memory()) == (optim.Adam().state_names(), ())
    w = ops.asarray([1.0])
    for expected in (0.5, -0.5):
        w = optimizer.update({"w": w}, {"w": ops.asarray([1.0])})["w"]
        assert w.tolist() == [expected]
