"""Modules: what is registered, under which paths, and what is done with all of it at once."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import Backend
from ember_ml.dispatch import backend_of
from ember_ml.nn import Buffer, Linear, Module, ModuleDict, ModuleList, Parameter, Sequential
from ember_ml.nn.tensor import EmberTensor
from ember_ml.testing.comparison import assert_same, host


class Block(Module):
    def __init__(self, width: int) -> None:
        self.scale = Parameter(ops.ones((width,)))
        self.count = Buffer(ops.zeros(()))
        self.linear = Linear(width, width)

    def forward(self, x: Any) -> Any:
        self.count = ops.add(self.count, 1)
        return self.linear(ops.multiply(x, self.scale))


class Tower(Module):
    def __init__(self) -> None:
        self.blocks = [Block(3), Block(3)]
        self.heads = {"left": Linear(3, 1), "right": Linear(3, 2)}

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.heads["left"](x), self.heads["right"](x)


PATHS = [
    "blocks.0.scale", "blocks.0.count", "blocks.0.linear.weight", "blocks.0.linear.bias",
    "blocks.1.scale", "blocks.1.count", "blocks.1.linear.weight", "blocks.1.linear.bias",
    "heads.left.weight", "heads.left.bias", "heads.right.weight", "heads.right.bias",
]  # fmt: skip


def test_paths(backend: Backend) -> None:
    tower = Tower()
    assert list(tower.tensors()) == PATHS
    assert list(tower.parameters()) == [path for path in PATHS if "count" not in path]
    assert list(tower.buffers()) == [path for path in PATHS if "count" in path]
    assert [path for path, _ in tower.named_modules()] == [
        "", "blocks", "blocks.0", "blocks.0.linear", "blocks.1", "blocks.1.linear", "heads",
        "heads.left", "heads.right",
    ]  # fmt: skip
    assert list(tower.children()) == ["blocks", "heads"]
    assert dict(tower.named_parameters()).keys() == tower.parameters().keys()


def test_attributes_are_the_engines_own(backend: Backend) -> None:
    layer = Linear(2, 3)
    assert type(layer.weight) is backend.tensors[0]
    assert layer.parameters()["weight"] is layer.weight
    assert layer.tensors()["weight"] is layer.weight


def test_rebinding(backend: Backend) -> None:
    layer = Linear(2, 3)
    new = ops.ones((2, 3))
    layer.weight = new
    assert layer.parameters()["weight"] is new
    layer.weight = [[1, 2, 3], [4, 5, 6]]
    assert type(layer.weight) is backend.tensors[0]
    layer.bias = None
    assert list(layer.parameters()) == ["weight"]
    layer.bias = Parameter(ops.zeros((3,)))
    assert list(layer.parameters()) == ["weight", "bias"]
    del layer.weight
    assert list(layer.parameters()) == ["bias"]


def test_a_name_changes_what_it_is(backend: Backend) -> None:
    module = Module()
    module.part = Linear(1, 1)
    assert list(module.parameters()) == ["part.weight", "part.bias"]
    module.part = Parameter([1.0])
    assert list(module.parameters()) == ["part"]
    assert not module.children()
    module.part = Buffer([1.0])
    assert not module.parameters()
    assert list(module.buffers()) == ["part"]
    module.part = Linear(1, 1)
    module.part = None
    assert not module.tensors()
    assert not module.children()


def test_caches_follow_the_structure(backend: Backend) -> None:
    tower = Tower()
    before = list(tower.parameters())
    tower.blocks.append(Block(3))
    assert len(tower.parameters()) == len(before) + 3
    del tower.blocks[0]
    assert list(tower.parameters()) == before
    tower.blocks[0].linear.bias = None
    assert "blocks.0.linear.bias" not in tower.parameters()
    tower.heads["middle"] = Linear(3, 1)
    assert "heads.middle.weight" in tower.tensors()
    del tower.heads["middle"]
    assert "heads.middle.weight" not in tower.tensors()


def test_caches_stay_while_the_structure_does(backend: Backend) -> None:
    tower = Tower()
    layout = tower.layout()
    Tower().freeze()
    tower.assign(tower.tensors())
    tower.eval()
    tower.blocks[0].linear.weight = ops.ones((3, 3))
    assert tower.layout() is layout
    tower.blocks[0].linear.freeze()
    assert tower.layout() is not layout


def test_modules_do_not_keep_what_contains_them() -> None:
    inner = Linear(1, 1)
    outer = Sequential(inner)
    gone = weakref.ref(outer)
    outer.parameters()
    del outer
    gc.collect()
    assert gone() is None
    inner.bias = None
    assert list(inner.parameters()) == ["weight"]


def test_lists_that_grow(backend: Backend) -> None:
    class Growing(Module):
        def __init__(self) -> None:
            self.layers = []
            self.notes = []
            for _ in range(2):
                self.layers.append(Linear(1, 1))

    model = Growing()
    assert list(model.parameters()) == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    assert isinstance(model.layers, ModuleList)
    model.notes.append("seen")
    assert len(model.parameters()) == 4
    assert model.notes == ["seen"]
    late = Growing()
    late.layers = []
    assert not late.parameters()
    late.layers.append(Linear(1, 1))
    assert list(late.parameters()) == ["layers.0.weight", "layers.0.bias"]


def test_nested_containers(backend: Backend) -> None:
    model = Module()
    model.grid = [[Linear(1, 1), Linear(1, 1)], (Linear(1, 1),), {"last": Linear(1, 1)}]
    paths = [path for path in model.parameters() if "weight" in path]
    assert paths == ["grid.0.0.weight", "grid.0.1.weight", "grid.1.0.weight", "grid.2.last.weight"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda: [Linear(1, 1), 3], "in an attribute must hold modules alone or none"),
        (lambda: {"a": Linear(1, 1), "b": None}, "in an attribute must hold modules alone or none"),
        (lambda: [Parameter(1.0)], "parameters must each be an attribute, got a list of them"),
    ],
)
def test_ambiguous_containers(value: Any, message: str) -> None:
    model = Module()
    with pytest.raises(TypeError, match=message):
        model.parts = value()


@pytest.mark.parametrize("name", ["parameters", "train", "training", "forward", "_roles"])
def test_names_that_are_taken(name: str) -> None:
    with pytest.raises(AttributeError, match="must not be that of an attribute of Module"):
        setattr(Module(), name, Parameter(1.0))


def test_private_names_are_free(backend: Backend) -> None:
    model = Module()
    for _ in range(2):
        model._layers = [Linear(1, 1, bias=False)]
        model._scale = Parameter(1.0)
    assert list(model.parameters()) == ["_scale", "_layers.0.weight"]
    model._rest = []
    assert len(model.parameters()) == 2
    model._rest.append(nn.ReLU())
    assert isinstance(model.children()["_rest"], ModuleList)


def test_parameters_are_floating(backend: Backend) -> None:
    with pytest.raises(TypeError, match=r"Parameter: value must be floating to be trained, got int64\[2\]; a Buff"):
        Parameter([1, 2])
    module = Module()
    module.steps = Parameter([1, 2], trainable=False)
    module.seen = Buffer([True])
    assert list(module.tensors()) == ["steps", "seen"]


def test_arguments_that_no_one_takes() -> None:
    for make in (lambda: nn.Identity(3), lambda: nn.ReLU(3), lambda: Module(size=2)):
        with pytest.raises(TypeError, match="argument"):
            make()


def test_names_have_no_dots() -> None:
    with pytest.raises(ValueError, match="dots"):
        ModuleDict({"a.b": Linear(1, 1)})


def test_shared_modules_count_once(backend: Backend) -> None:
    shared = Linear(2, 2)
    model = Sequential(shared, nn.ReLU(), shared)
    assert list(model.parameters()) == ["0.weight", "0.bias"]
    assert len(list(model.modules())) == 3
    other = copy.deepcopy(model)
    assert other[0] is other[2]
    assert pickle.loads(pickle.dumps(model))[0] is not shared


def test_a_module_within_itself() -> None:
    model = Module()
    model.inner = Module()
    model.inner.outer = model
    assert [path for path, _ in model.named_modules()] == ["", "inner"]
    model.inner.weight = Parameter(ops.ones(2))
    assert list(model.parameters()) == ["inner.weight"]


def test_rows(backend: Backend) -> None:
    layers = [Linear(2, 2) for _ in range(4)]
    row = ModuleList(layers[:2])
    row.extend(layers[2:])
    assert list(row) == layers
    assert row[-1] is layers[3]
    assert isinstance(row[1:3], ModuleList)
    assert list(row[1:3]) == layers[1:3]
    assert row.pop() is layers[3]
    row.insert(0, layers[3])
    assert list(row) == [layers[3], *layers[:3]]
    row[0] = layers[0]
    assert row[0] is layers[0]
    with pytest.raises(IndexError, match="ModuleList: an index must be from -4 to 3, got 4"):
        row[4]
    assert len(Sequential(*layers)[:2]) == 2


def test_dictionaries(backend: Backend) -> None:
    parts = ModuleDict({"a": Linear(1, 1)})
    parts["b"] = nn.ReLU()
    assert parts.keys() == list(parts) == ["a", "b"]
    assert parts.items() == list(zip(parts.keys(), parts.values(), strict=True))
    assert "a" in parts
    assert len(parts) == 2
    with pytest.raises(KeyError, match="ModuleDict: key must be one of a, b, got 'c"):
        parts["c"]


class Heads(Module):
    def __init__(self) -> None:
        self.heads = {2: Linear(3, 2), 5: Linear(3, 5), "other": {True: Linear(3, 1)}}

    def forward(self, x: Any) -> Any:
        return {key: self.heads[key](x) for key in self.heads if key in (2, 5)}


def test_keys_of_dictionaries_may_be_numbers(backend: Backend) -> None:
    model = Heads()
    assert list(model.parameters())[::2] == ["heads.2.weight", "heads.5.weight", "heads.other.True.weight"]
    for same in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert {key: tuple(x.shape) for key, x in same(ops.ones((4, 3))).items()} == {2: (4, 2), 5: (4, 5)}
        assert same.heads.keys() == list(same.heads) == [2, 5, "other"]
        assert same.heads["2"] is same.heads[2]
        assert same.heads["other"][True] is dict(same.heads["other"].items())[True]
        assert 3 not in same.heads
    with pytest.raises(KeyError, match="ModuleDict: key must be one of 2, 5, other, got 3"):
        model.heads[3]
    with pytest.raises(ValueError, match="2 and '2'"):
        model.heads["2"] = Linear(3, 2)
    del model.heads[2]
    model.heads["2"] = Linear(3, 2)
    assert model.heads.keys() == [5, "other", "2"]
    with pytest.raises(KeyError, match="got 7"):
        del model.heads[7]


def test_a_class_is_no_module() -> None:
    with pytest.raises(TypeError, match=r"write ReLU\(\.\.\.\)"):
        Sequential(nn.ReLU)
    with pytest.raises(TypeError, match="Sequential: a module must be a Module or a function, got 3"):
        Sequential(3)


def test_assign(backend: Backend) -> None:
    tower = Tower()
    new = ops.zeros((3,))
    tower.assign({"blocks.1.scale": new})
    assert tower.blocks[1].scale is new
    with pytest.raises(KeyError, match=r"Tower: a path must be that of a tensor, one of blocks\.0\.scale, blocks"):
        tower.assign({"blocks.7.scale": new})


def test_modes(backend: Backend) -> None:
    tower = Tower()
    assert tower.eval() is tower
    assert not any(module.training for module in tower.modules())
    tower.train()
    assert all(module.training for module in tower.modules())


def test_freezing(backend: Backend) -> None:
    tower = Tower()
    everything = list(tower.parameters())
    assert tower.freeze() is tower
    assert not tower.parameters()
    assert list(tower.parameters(trainable=False)) == everything
    tower.unfreeze("heads", "*.scale")
    assert list(tower.parameters()) == [p for p in everything if p.startswith("heads") or p.endswith("scale")]
    tower.unfreeze().freeze("blocks.0")
    assert list(tower.parameters()) == [p for p in everything if not p.startswith("blocks.0")]
    assert list(tower.parameters(trainable=None)) == everything
    assert list(tower.state_dict()) == PATHS
    with pytest.raises(ValueError, match=r"Tower: pattern must match a parameter, one of blocks\.0\.scale, blocks"):
        tower.freeze("tail")
    assert not Linear(1, 1, bias=False).freeze().parameters()
    module = Module()
    module.fixed = Parameter([1.0], trainable=False)
    assert not module.parameters()


def test_a_result_of_several_parts_is_named_as_such(backend: Backend) -> None:
    """A recurrent layer returns its outputs and its last state, which a linear layer does not take."""
    model = Sequential(nn.GRU(3, 2), Linear(2, 1))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 the engine's words
        model(ops.ones((2, 8, 3)))
    assert caught.value.__notes__[-1].endswith("given a tuple of float32[2, 8, 2], float32[1, 2, 2]")
    model.insert(1, lambda result: result[0])
    assert tuple(model(ops.ones((2, 8, 3))).shape) == (2, 8, 1)


def test_a_state_is_a_dictionary(backend: Backend) -> None:
    layer = Linear(2, 2)
    for state, hint in (
        (layer, r"got a Linear; state_dict\(\)"),
        ("a.safetensors", r"got 'a.safetensors'; load\(path\)"),
        (3, "got 3"),
    ):
        with pytest.raises(TypeError, match=hint):
            layer.load_state_dict(state)  # type: ignore[arg-type]


def test_state_dict_is_a_snapshot(backend: Backend) -> None:
    tower = Tower()
    state = tower.state_dict()
    tower(ops.ones((2, 3)))
    assert float(state["blocks.0.count"]) == 0
    assert float(tower.state_dict()["blocks.0.count"]) == 1
    tower.load_state_dict(state)
    assert float(tower.blocks[0].count) == 0


def test_buffers_that_are_not_saved(backend: Backend) -> None:
    model = nn.PositionalEncoding(4, 8)
    assert list(model.tensors()) == ["table"]
    assert not model.state_dict()
    assert not model.load_state_dict({}).missing


def test_loading_complains_of_everything_at_once(backend: Backend) -> None:
    tower = Tower()
    state: Any = dict(tower.state_dict())
    before = tower.tensors()
    del state["blocks.0.scale"], state["heads.left.bias"]
    state["blocks.2.scale"] = state["tail"] = ops.ones((1,))
    state["blocks.1.linear.weight"] = ops.ones((3, 4))
    state["heads.right.bias"] = ops.ones(())
    with pytest.raises(ValueError, match="Tower: state must fit the module") as caught:
        tower.load_state_dict(state)
    assert str(caught.value).splitlines()[1:] == [
        "missing: blocks.0.scale, heads.left.bias",
        "unexpected: blocks.2.scale, tail",
        "wrong shape:",
        "  blocks.1.linear.weight: [3, 4] where the model has [3, 3]",
        "  heads.right.bias: [] where the model has [2]",
    ]
    assert all(tower.tensors()[path] is tensor for path, tensor in before.items())
    with pytest.raises(ValueError, match="wrong shape") as caught:
        tower.load_state_dict(state, strict=False)
    assert "missing" not in str(caught.value)
    del state["blocks.1.linear.weight"], state["heads.right.bias"]
    state["heads.right.weight"] = ops.full((3, 2), 2.0)
    keys = tower.load_state_dict(state, strict=False)
    assert keys.unexpected == ["blocks.2.scale", "tail"]
    assert "blocks.0.scale" in keys.missing
    assert host(tower.heads["right"].weight).tolist() == [[2.0, 2.0]] * 3


def test_loading_keeps_dtype_and_copies(backend: Backend) -> None:
    layer = Linear(2, 1, bias=False).astype("float16")
    weight = np.array([[1.0], [2.0]])
    layer.load_state_dict({"weight": weight})
    assert ops.to_dtype_str(layer.weight.dtype) == "float16"
    own = np.array([[1.0], [2.0]], np.float32)
    layer = Linear(2, 1, bias=False)
    layer.load_state_dict({"weight": own})
    own[:] = 9.0
    assert host(layer.weight).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_files(suffix: str, backend: Backend, tmp_path: Path) -> None:
    tower = Tower()
    tower(ops.ones((2, 3)))
    tower.save(tmp_path / f"tower{suffix}")
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            other = Tower()
            assert other.load(tmp_path / f"tower{suffix}") == ([], [])
            assert type(other.blocks[0].scale) is ember_ml.backend.load(name).tensors[0]
        for path, tensor in tower.tensors().items():
            np.testing.assert_array_equal(host(other.tensors()[path]), host(tensor))
    with pytest.raises(ValueError, match="Linear: state must fit the module"):
        Linear(1, 1).load(tmp_path / f"tower{suffix}")


def test_moving_to_another_engine(backend: Backend) -> None:
    tower = Tower().eval()
    x = np.ones((2, 3), np.float32)
    expected = [host(part) for part in tower(x)]
    for name in [*ember_ml.get_available_backends(), backend.name]:
        assert tower.to_backend(name) is tower
        assert {backend_of(tensor).name for tensor in tower.tensors().values()} == {name}
        with ember_ml.use_backend(name):
            assert_same(list(tower(ops.asarray(x))), [ops.asarray(part) for part in expected], tolerance=1e-5)


def test_a_model_computes_where_it_lives() -> None:
    for name in set(ember_ml.get_available_backends()) - {"numpy"}:
        with ember_ml.use_backend(name):
            models = [nn.LSTM(3, 4), nn.CfC(3, 4), nn.LTC(3, 4), nn.TransformerEncoder(1, 4, 2, 8), nn.BatchNorm(4)]
            inputs = [ops.ones((2, 5, 3))] * 3 + [ops.ones((2, 5, 4))] * 2
        for other in ember_ml.get_available_backends():
            with ember_ml.use_backend(other):
                for model, x in zip(models, inputs, strict=True):
                    result = model(x)
                    result = result[0] if isinstance(result, tuple) else result
                    assert backend_of(result).name == name


def test_an_ember_tensor_gives_an_ember_tensor(backend: Backend) -> None:
    x = EmberTensor(ops.ones((4, 3)))
    model = Sequential(Linear(3, 2), nn.BatchNorm(2))
    assert isinstance(model(x), EmberTensor)
    assert {type(tensor) for tensor in model.tensors().values()} == {backend.tensors[0]}
    outputs, state = nn.GRU(3, 2)(EmberTensor(ops.ones((1, 2, 3))))
    assert isinstance(outputs, EmberTensor)
    assert isinstance(state, EmberTensor)
    model[0].weight = x[:3, :2]
    model[0].bias = Parameter(x[0, :2])
    assert type(model[0].weight) is type(model[0].bias) is backend.tensors[0]
    model.load_state_dict({path: EmberTensor(tensor) for path, tensor in model.state_dict().items()})
    assert {type(tensor) for tensor in model.tensors().values()} == {backend.tensors[0]}


def test_devices_and_dtypes(backend: Backend) -> None:
    tower = Tower()
    assert tower.backend == backend.name
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            assert tower.to("cpu") is tower
            assert tower.astype("float32").backend == backend.name
    with pytest.raises(ValueError, match="abacus"):
        tower.to("abacus")
    tower.count = Buffer(ops.asarray([1, 2], device="cpu"))
    tower.astype("float16")
    kinds = {path: ops.to_dtype_str(tensor.dtype) for path, tensor in tower.tensors().items()}
    assert kinds.pop("count") == "int64"
    assert set(kinds.values()) == {"float16"}
    result = tower(ops.ones((2, 3), dtype="float16", device="cpu"))
    assert ops.to_dtype_str(result[0].dtype) == "float16"


def test_errors_name_the_layer(backend: Backend) -> None:
    model = Sequential(Linear(4, 3), Tower())
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - each engine has its own words
        model(ops.ones((2, 5)))
    assert caught.value.__notes__[-1] == (
        "in Linear '0' of Sequential (weight float32[4, 3], bias float32[3]) given float32[2, 5]"
    )
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Tower().heads["left"](ops.ones((2, 7)))
    assert "in Linear (weight float32[3, 1], bias float32[1]) given float32[2, 7]" in caught.value.__notes__
    tower = Tower()
    tower.blocks[1].linear = Linear(5, 3)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Sequential(tower)(ops.ones((2, 3)))
    assert caught.value.__notes__[-1] == (
        "in Linear '0.blocks.1.linear' of Sequential (weight float32[5, 3], bias float32[3]) given float32[2, 3]"
    )
    assert sum("in Linear" in note for note in caught.value.__notes__) == 1


@pytest.mark.parametrize(
    ("layer", "shape", "held"),
    [
        (lambda: nn.Conv2d(3, 4, 2), (1, 5, 5, 2), "weight float32[2, 2, 3, 4], bias float32[4]"),
        (lambda: nn.LayerNorm(4), (2, 3), "weight float32[4], bias float32[4]"),
        (lambda: nn.BatchNorm(4), (2, 3), "running_var float32[4]"),
        (lambda: nn.LSTM(4, 2), (2, 3, 5), "cells.0.weight_ih float32[4, 8]"),
        (lambda: nn.MultiHeadAttention(4, 2), (2, 3, 5), "weight float32[4, 4]"),
        (lambda: nn.CfC(4, 2), (2, 3, 5), "cells.0.weight_ih float32[4, 128]"),
        (lambda: nn.LTC(4, 2), (2, 3, 5), "cell.gleak float32[2]"),
    ],
)
def test_errors_of_every_kind_of_layer(layer: Any, shape: Any, held: str, backend: Backend) -> None:
    model = Module()
    model.forward = lambda x: model.inner(x)
    model.inner = layer()
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        model(ops.ones(shape))
    (note,) = [note for note in caught.value.__notes__ if note.startswith("in ") and "'inner" in note]
    assert held in note
    assert str(list(shape)) in note


def test_any_error_is_noted(backend: Backend) -> None:
    def fail(x: Any) -> Any:
        raise KeyError("lost")

    with pytest.raises(KeyError) as caught:
        Sequential(nn.Identity(), fail)(ops.ones((2,)))
    assert caught.value.__notes__ == ["in Lambda '1' of Sequential given float32[2]"]
    for value, shown in (
        ([[1.0, 2.0]], "list[1, 2]"),
        ((ops.ones((2,)), {"a": ops.ones(())}), "a tuple of float32[2], float32[]"),
    ):
        with pytest.raises(KeyError) as caught:
            nn.Lambda(fail)(value)
        assert caught.value.__notes__ == [f"in Lambda given {shown}"]
    with pytest.raises(NotImplementedError, match="Module: a subclass of Module must define forward, got none"):
        Module()(1)


def test_repr() -> None:
    with ember_ml.use_backend("numpy"):
        model = Sequential(Linear(2, 3, bias=False), nn.LeakyReLU(0.2), Sequential(nn.BatchNorm(3, axis=1)), ops.square)
        assert repr(model) == (
            "Sequential(\n"
            "  (0): Linear(2, 3, bias=False)\n"
            "  (1): LeakyReLU(negative_slope=0.2)\n"
            "  (2): Sequential(\n"
            "    (0): BatchNorm(3, axis=1)\n"
            "  )\n"
            "  (3): Lambda(square)\n"
            ")"
        )
        assert repr(Linear(2, 3, weight_init="ones")) == "Linear(2, 3)"
        assert repr(nn.Conv2d(1, 2, 3, padding="same")) == "Conv2d(1, 2, 3, padding='same')"
        assert repr(Parameter([1.0])) == "Parameter(float32[1])"
        assert repr(Module()) == "Module()"


def test_summary(backend: Backend) -> None:
    model = Sequential(Linear(4, 8), nn.BatchNorm(8), nn.LSTM(8, 2)).freeze("0")
    before = model.tensors()
    summary = model.summary((3, 5, 4))
    rows = {row.path: row for row in summary.rows}
    assert rows["0"].shape == "[3, 5, 8]"
    assert rows["2"].shape == "[3, 5, 2], [1, 3, 2], [1, 3, 2]"
    assert (rows["0"].trainable, rows["0"].frozen) == (0, 40)
    assert (summary.total, summary.trainable, summary.frozen) == (40 + 16 + 96, 112, 40)
    text = str(summary)
    assert "152 parameters: 112 trainable, 40 frozen; 608 bytes" in text
    assert "LSTM" in text
    assert all(model.tensors()[path] is tensor for path, tensor in before.items())
    assert all(module.training for module in model.modules())
    assert not any("forward" in vars(module) for module in model.modules())
    assert model.summary(ops.ones((1, 2, 4))).rows[0].shape.startswith("[1, 2, 2]")
    assert not any(row.shape for row in model.summary().rows)
    assert model.astype("float64").summary((3, 5, 4)).rows[0].shape.startswith("[3, 5, 2]")
    assert "1.2 KiB" in str(model.summary())
    with pytest.raises(ValueError):  # noqa: PT011
        model.summary((3, 5, 7))
    assert not any("forward" in vars(module) for module in model.modules())


def test_a_shallow_copy_has_names_of_its_own(backend: Backend) -> None:
    model = Sequential(Linear(2, 2))
    other = copy.copy(model)
    other.append(nn.ReLU())
    other[0] = nn.Tanh()
    assert (len(model), len(other)) == (1, 2)
    assert list(model.parameters()) == ["0.weight", "0.bias"]
    assert tuple(model(ops.ones((1, 2))).shape) == (1, 2)


def test_a_row_from_a_list(backend: Backend) -> None:
    model = Sequential([Linear(2, 3), nn.ReLU()])
    assert list(model.parameters()) == ["0.weight", "0.bias"]
    assert tuple(model(ops.ones((1, 2))).shape) == (1, 3)
    assert len(model[:1]) == 1


@pytest.mark.parametrize("value", ["text", None, [[1j, 2.0]]])
def test_a_state_of_other_kinds_names_its_place(value: Any, backend: Backend) -> None:
    with pytest.raises(TypeError) as caught:
        Sequential(Linear(1, 2)).load_state_dict({"0.weight": value}, strict=False)
    assert caught.value.__notes__[-1] == "in the state for '0.weight' of Sequential"


def test_summary_of_a_model_that_takes_integers(backend: Backend) -> None:
    model = Sequential(nn.Embedding(10, 4), Linear(4, 2))
    assert [row.shape for row in model.summary((3, 5)).rows] == ["[3, 5, 2]", "[3, 5, 4]", "[3, 5, 2]"]
    model.table = Parameter(ops.asarray([1, 2, 3]), trainable=False)
    assert "53 parameters: 50 trainable, 3 frozen; 224 bytes" in str(model.summary())
    with pytest.raises(TypeError, match="complex") as caught:
        Sequential(nn.Lambda(lambda x: ops.bitwise_and(ops.multiply(x, 1j), 1))).summary((3, 5))
    assert "float32[3, 5]" in caught.value.__notes__[-1], "the first error counts"


def test_torch_trains_a_model_by_itself() -> None:
    """The engine's own gradients and optimisers work on the tensors of a model."""
    with ember_ml.use_backend("torch"):
        model = Sequential(Linear(2, 4), nn.Tanh(), Linear(4, 1))
        x = torch.randn(8, 2, device=ops.get_device())
        own = [tensor.requires_grad_() for tensor in model.parameters().values()]
        optimizer = torch.optim.SGD(own, 0.1)
        losses = []
        for _ in range(20):
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        assert all(a is b for a, b in zip(own, model.parameters().values(), strict=True))


def test_subclasses_need_no_super_init() -> None:
    class Plain(Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Linear(1, 1)

    assert list(Plain().parameters()) == ["part.weight", "part.bias"]


def test_names_of_the_package() -> None:
    assert nn.Linear is nn.modules.Linear is nn.Dense
    assert nn.ReLU is nn.modules.activations.ReLU
    assert {"Linear", "ReLU", "modules", "initializers", "wirings"} <= set(dir(nn))
    for place in (nn, nn.modules, nn.modules.activations):
        with pytest.raises(AttributeError, match="Abacus"):
            _ = place.Abacus


def test_importing_loads_no_engine() -> None:
    code = "import sys, ember_ml.nn.modules; print([m for m in ('numpy', 'torch', 'mlx') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_threads_make_models_of_their_own(backend: Backend) -> None:
    found: list[int] = []

    def make() -> None:
        model = Sequential(*(Linear(1, 1) for _ in range(20)))
        found.append(len(model.parameters()))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [40] * 4


def test_pickles_keep_every_digit(backend: Backend) -> None:
    model = Sequential(Linear(3, 2, dtype="float64"))
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        for path, tensor in model.tensors().items():
            assert isinstance(other.tensors()[path], backend.tensors)
            assert ops.dtype(other.tensors()[path]) == "float64"
            assert ops.array_equal(other.tensors()[path], tensor)


@pytest.mark.parametrize("dtype", ["int32", "bool", "uint8"])
def test_weights_do_not_become_integers(backend: Backend, dtype: str) -> None:
    layer = Linear(2, 2)
    with pytest.raises(TypeError, match=f"dtype must be floating, got {dtype}"):
        layer.astype(dtype)
    assert ops.to_dtype_str(layer.weight.dtype) == "float32"
