"""Tied weights: one parameter under several names, through gradients, updates, files and engines."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ember_ml
from ember_ml import ops, optim, training, transform
from ember_ml.backend import Backend
from ember_ml.nn import Buffer, Linear, Module, Parameter, Sequential, Tied
from ember_ml.testing.comparison import assert_close, host

X = np.random.default_rng(0).standard_normal((6, 3)).astype("float32")


class Autoencoder(Module):
    """Two layers with one matrix; the decoder has its own bias."""

    def __init__(self) -> None:
        self.encoder, self.decoder = Linear(3, 3), Linear(3, 3)
        self.decoder.weight = Tied(self.encoder, "weight")

    def forward(self, x: Any) -> Any:
        return self.decoder(ops.tanh(self.encoder(x)))


def made() -> Autoencoder:
    ops.random.set_seed(3)
    return Autoencoder()


def loss_of(model: Any, x: Any) -> Any:
    return ops.mean(ops.square(ops.subtract(model(x), x)))


def update(model: Any, optimizer: Any, x: Any) -> Any:
    loss, grads = transform.value_and_grad(loss_of)(model, x)
    optimizer.update(model, grads)
    return loss


def is_tied(model: Any) -> bool:
    return model.decoder.weight is model.encoder.weight


def test_a_tied_parameter_is_listed_once_and_saved_under_both_names(backend: Backend) -> None:
    model = made()
    assert list(model.parameters()) == ["encoder.weight", "encoder.bias", "decoder.bias"]
    assert list(model.tensors()) == list(model.parameters())
    assert list(model.state_dict()) == ["encoder.weight", "encoder.bias", "decoder.weight", "decoder.bias"]
    assert model.summary((2, 3)).total == 9 + 3 + 3
    assert [row.trainable for row in model.summary().rows] == [0, 12, 3]
    assert list(model.decoder.parameters()) == ["weight", "bias"]
    assert is_tied(model)


@pytest.mark.parametrize(
    ("maker", "compiled"),
    [
        (lambda: optim.SGD(0.1, 0.9), False),
        (lambda: optim.Adam(0.05), False),
        (lambda: optim.Adam(0.05), True),
        (lambda: optim.Adafactor(0.1), False),
    ],
)
def test_updates_equal_those_of_torch(backend: Backend, maker: Any, compiled: bool) -> None:
    """The gradient is the sum of both uses, and the moments are kept once."""
    model, optimizer = made(), maker()
    theirs = torch.nn.ModuleDict({name: torch.nn.Linear(3, 3) for name in ("encoder", "decoder")})
    theirs.decoder.weight = theirs.encoder.weight
    with torch.no_grad():
        for path, tensor in theirs.named_parameters():
            tensor.copy_(torch.tensor(host(model.parameters()[path]).T))
    other = {
        "SGD": lambda p: torch.optim.SGD(p, 0.1, 0.9),
        "Adam": lambda p: torch.optim.Adam(p, 0.05),
        "Adafactor": lambda p: torch.optim.Adafactor(p, 0.1),
    }[type(optimizer).__name__](theirs.parameters())
    optimizer.init(model)
    step = transform.compile(update) if compiled else update
    x, given = ops.asarray(X), torch.tensor(X)
    for _ in range(5):
        step(model, optimizer, x)
        other.zero_grad()
        (theirs.decoder(torch.tanh(theirs.encoder(given))) - given).square().mean().backward()
        other.step()
    assert is_tied(model)
    for path, tensor in theirs.named_parameters():
        assert_close(host(model.parameters()[path]), tensor.detach().numpy().T, 1e-5)
    assert {path.rpartition(".")[0] for path in optimizer.tensors() if "." in path} == set(model.parameters())


def test_the_first_path_names_it_wherever_it_is_held(backend: Backend) -> None:
    """The holder may come after the one that is tied to it, or be no part of the model at all."""
    model = made()
    turned = Sequential(model.decoder, model.encoder)
    assert list(turned.parameters()) == ["0.weight", "0.bias", "1.bias"]
    update(turned, optim.SGD(0.5), ops.asarray(X))
    assert is_tied(model)
    before = host(model.encoder.weight)
    alone = transform.value_and_grad(loss_of)(model.decoder, ops.asarray(X))[1]
    optim.SGD(0.5).update(model.decoder, alone)
    assert is_tied(model)
    assert np.abs(host(model.encoder.weight) - before).max() > 1e-3


def test_either_name_is_assigned_to_and_both_have_it(backend: Backend) -> None:
    model = made()
    for module in (model.decoder, model.encoder):
        new = ops.random.normal((3, 3))
        module.weight = new
        assert model.encoder.weight is new
        assert is_tied(model)
    new = ops.zeros((3, 3))
    model.assign({"decoder.weight": new})
    assert model.encoder.weight is new
    model.decoder.weight = [[1.0] * 3] * 3
    assert host(model.encoder.weight).sum() == 9


def test_a_new_parameter_ends_a_tie(backend: Backend) -> None:
    model = made()
    model.decoder.weight = Parameter(model.encoder.weight)
    assert len(model.parameters()) == 4
    update(model, optim.SGD(0.5), ops.asarray(X))
    assert np.abs(host(model.encoder.weight) - host(model.decoder.weight)).max() > 1e-3
    model.decoder.weight = Tied(model.encoder, "weight")
    assert is_tied(model)
    model.decoder.weight = None
    assert model.decoder.weight is None
    assert list(model.parameters()) == ["encoder.weight", "encoder.bias", "decoder.bias"]
    del model.decoder.weight
    assert not hasattr(model.decoder, "weight")


def test_states_and_files_keep_both_names(backend: Backend, tmp_path: Path) -> None:
    model = made()
    model.save(tmp_path / "model.safetensors")
    ops.random.set_seed(9)
    other = Autoencoder()
    other.load(tmp_path / "model.safetensors")
    assert is_tied(other)
    for path, tensor in model.state_dict().items():
        assert_close(host(other.state_dict()[path]), host(tensor), 0.0)
    separate = Sequential(Linear(3, 3), Linear(3, 3))
    names = {"encoder": "0", "decoder": "1"}
    separate.load_state_dict({f"{names[p.split('.')[0]]}.{p.split('.')[1]}": x for p, x in model.state_dict().items()})
    assert_close(host(separate[1].weight), host(model.encoder.weight), 0.0)


def test_one_name_is_enough_to_load_and_two_must_agree(backend: Backend) -> None:
    model = made()
    state = {path: host(x) for path, x in model.state_dict().items()}
    state["decoder.weight"] = state["encoder.weight"] + 1
    before = host(model.encoder.weight)
    with pytest.raises(ValueError, match=r"encoder\.weight and decoder\.weight are tied"):
        model.load_state_dict(state)
    assert_close(host(model.encoder.weight), before, 0.0)
    del state["encoder.weight"]
    assert model.load_state_dict(state) == ([], [])
    assert is_tied(model)
    assert_close(host(model.encoder.weight), before + 1, 0.0)
    del state["decoder.weight"]
    with pytest.raises(ValueError, match=r"missing: encoder\.weight, decoder\.weight"):
        model.load_state_dict(state)


def test_ties_stay_through_engines_and_dtypes(backend: Backend) -> None:
    model = made()
    for change in ("float16", "float32"):
        model.astype(change)
        assert is_tied(model)
        assert ops.to_dtype_str(model.decoder.weight.dtype) == change
    for name in ember_ml.get_available_backends():
        model.to_backend(name)
        assert is_tied(model)
        assert model.decoder.backend == name
    model.decoder.astype("float16")
    assert is_tied(model)


@pytest.mark.parametrize("pattern", ["encoder", "decoder", "*.weight", "decoder.weight"])
def test_freezing_one_name_freezes_both(backend: Backend, pattern: str) -> None:
    model = made()
    model.parameters()
    model.freeze(pattern)
    assert "encoder.weight" in model.parameters(trainable=False)
    before = host(model.encoder.weight)
    update(model, optim.SGD(0.5), ops.asarray(X))
    assert_close(host(model.decoder.weight), before, 0.0)
    model.decoder.unfreeze()
    assert "encoder.weight" in model.parameters()
    model.encoder.freeze()
    assert list(model.decoder.parameters()) == ["bias"]


def test_copies_are_tied_to_each_other(backend: Backend) -> None:
    model = made()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert is_tied(other)
        update(other, optim.SGD(0.5), ops.asarray(X))
        assert is_tied(other)
        other.decoder.freeze()
        assert list(other.parameters()) == ["encoder.bias"]
        assert other.encoder is not model.encoder
    assert len(model.parameters()) == 3


def test_training_goes_on_from_a_checkpoint(backend: Backend, tmp_path: Path) -> None:
    def trainer(*callbacks: Any) -> Any:
        return training.Trainer(made(), "mse", optim.Adam(0.01), callbacks=callbacks)

    whole = trainer()
    expected = whole.fit(X, X, epochs=4, batch_size=4)
    trainer(training.Checkpoint(tmp_path, every=3)).fit(X, X, epochs=2, batch_size=4)
    later = trainer()
    found = later.fit(X, X, epochs=4, batch_size=4, resume=tmp_path)
    assert found["loss"] == pytest.approx(expected["loss"], abs=1e-6)
    assert is_tied(later.model)


def test_buffers_can_be_tied(backend: Backend) -> None:
    class Counter(Module):
        def __init__(self) -> None:
            self.count = Buffer(ops.zeros(()))

        def forward(self, x: Any) -> Any:
            self.count = ops.add(self.count, 1)
            return x

    model = Sequential(Counter(), Counter())
    model[1].count = Tied(model[0], "count")
    model(ops.asarray(X))
    assert list(model.buffers()) == ["0.count"]
    assert float(model[0].count) == float(model[1].count) == 2


def test_a_shared_module_trains_as_one(backend: Backend) -> None:
    shared = Linear(3, 3)
    model = Sequential(shared, ops.tanh, shared)
    model.to_backend(backend.name)
    update(model, optim.Adam(0.1), ops.asarray(X))
    assert model[0] is model[2]
    assert list(model.parameters()) == ["0.weight", "0.bias"]
    copied = copy.deepcopy(model)
    assert copied[0] is copied[2]


def test_what_cannot_be_tied_says_so(backend: Backend) -> None:
    layer, other = Linear(3, 3), Linear(3, 2)
    with pytest.raises(ValueError, match="Tied: name must be that of a tensor of Linear, one of weight, bias, got"):
        layer.weight = Tied(other, "w")
    with pytest.raises(ValueError, match=r"float32\[3, 2\]"):
        layer.weight = Tied(other, "weight")
    with pytest.raises(TypeError, match="module"):
        Tied(layer.weight, "weight")
    with pytest.raises(ValueError, match="itself"):
        layer.weight = Tied(layer, "weight")
    third = Linear(3, 3)
    third.weight = Tied(layer, "weight")
    with pytest.raises(ValueError, match="itself"):
        layer.weight = Tied(third, "weight")
    assert list(Sequential(layer, third).parameters()) == ["0.weight", "0.bias", "1.bias"]
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wieght'"):
        layer.wieght  # noqa: B018


USES = {
    "gradient": lambda model: transform.grad(loss_of)(model, ops.asarray(X)),
    "update": lambda model: optim.SGD(0.1).init(model),
    "compile": lambda model: transform.compile(loss_of)(model, ops.asarray(X)),
    "engine": lambda model: model.to_backend("numpy"),
    "dtype": lambda model: model.astype("float64"),
    "state": lambda model: model.load_state_dict(model.state_dict()),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("was_looked_at", [False, True])
def test_one_tensor_assigned_to_two_names_is_an_error(backend: Backend, use: str, was_looked_at: bool) -> None:
    """They would part at the first update, or, if they are meant to be two, be one before it."""
    model = Sequential(Linear(3, 3), Linear(3, 3))
    if was_looked_at:
        model.parameters()
    model[1].weight = model[0].weight
    with pytest.raises(ValueError, match=r"Sequential: a tensor must have one name, got '0\.weight' and '1\.weigh"):
        USES[use](model)
    model[1].weight = ops.copy(model[0].weight)
    assert len(model.parameters()) == 4


def test_parameters_that_begin_as_one_tensor_are_two(backend: Backend) -> None:
    class Pair(Module):
        def __init__(self) -> None:
            begin = ops.ones((3,))
            self.one, self.other = Parameter(begin), Parameter(begin)

        def forward(self, x: Any) -> Any:
            return ops.add(ops.multiply(x, self.one), self.other)

    model = Pair()
    update(model, optim.SGD(0.5), ops.asarray(X))
    assert np.abs(host(model.one) - host(model.other)).max() > 1e-3
