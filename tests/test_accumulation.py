"""Gradient accumulation: ``Trainer(accumulate=...)`` trains as with batches of that many times the size."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops, optim, training
from ember_ml.backend import Backend

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((44, 3)).astype(np.float32)
Y = np.sin(X[:, :1])
WEIGHTS = RANDOM.uniform(0.0, 2.0, 44).astype(np.float32)


def trainer(loss: Any = "mse", **options: Any) -> Any:
    ops.random.set_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    return training.Trainer(model, loss, optim.Adam(1e-2), ["mae"], **options)


def fit(mine: Any, size: int, **options: Any) -> Any:
    given: dict[str, Any] = {"epochs": 2, "shuffle": False, "verbose": 0, **options}
    return mine.fit(X, Y, batch_size=size, **given)


def assert_close(mine: Any, other: Any) -> None:
    np.testing.assert_allclose(mine.history.steps, other.history.steps, rtol=1e-5)
    for name in ("loss", "mae"):
        np.testing.assert_allclose(mine.history[name], other.history[name], rtol=1e-5)
    for path, x in other.model.parameters().items():
        np.testing.assert_allclose(ops.to_numpy(mine.model.parameters()[path]), ops.to_numpy(x), atol=2e-5)


# 44 examples: in the last step of an epoch, batches of 4 fill 12 of 16 examples, and those of 5 end with one of 4.
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("accumulate", "size"), [(4, 4), (3, 5)])
@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
def test_as_large_batches(backend: Backend, accumulate: int, size: int, is_weighted: bool, compile: bool) -> None:
    options = {"sample_weight": WEIGHTS} if is_weighted else {}
    mine, other = trainer(accumulate=accumulate, compile=compile), trainer()
    fit(mine, size, **options)
    fit(other, size * accumulate, **options)
    assert mine.step == other.step
    assert_close(mine, other)


def test_a_loss_that_is_a_sum(backend: Backend) -> None:
    loss = partial(ops.mean_squared_error, reduction="sum")
    mine, other = trainer(loss, accumulate=3), trainer(loss)
    fit(mine, 5)
    fit(other, 15)
    for path, x in other.model.parameters().items():
        np.testing.assert_allclose(ops.to_numpy(mine.model.parameters()[path]), ops.to_numpy(x), atol=2e-5)


def test_as_torch_with_large_batches() -> None:
    torch = pytest.importorskip("torch")
    with ember_ml.use_backend("torch"):
        mine = trainer(accumulate=4)
        native = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        for place in (0, 2):
            native[place].weight.data = mine.model[place].weight.cpu().T.clone()
            native[place].bias.data = mine.model[place].bias.cpu().clone()
        fit(mine, 4, epochs=1)
    optimizer = torch.optim.Adam(native.parameters(), lr=1e-2)
    losses = []
    for begin in range(0, 44, 16):
        loss = ((native(torch.tensor(X[begin : begin + 16])) - torch.tensor(Y[begin : begin + 16])) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(mine.history.steps, losses, rtol=1e-5)


def test_an_iterable_of_batches(backend: Backend) -> None:
    batches = [(X[i : i + 4], Y[i : i + 4]) for i in range(0, 44, 4)]
    mine, other = trainer(accumulate=4), trainer()
    mine.fit(batches, epochs=2, verbose=0)
    fit(other, 16)
    assert_close(mine, other)


def test_steps_of_an_epoch(backend: Backend) -> None:
    """An epoch of so many steps goes on where the last one stopped; a step does not go beyond a pass over the data."""
    mine = trainer(accumulate=4)
    fit(mine, 4, epochs=3, steps_per_epoch=2)
    assert (mine.step, mine.epoch, len(mine.history.steps)) == (6, 3, 6)
    other = trainer()
    fit(other, 16, epochs=3, steps_per_epoch=2)
    assert_close(mine, other)


@pytest.mark.parametrize("precision", [None, "fp16-mixed"])
def test_a_run_goes_on_from_a_checkpoint(backend: Backend, tmp_path: Path, precision: str | None) -> None:
    whole, first, second = (trainer(accumulate=3, precision=precision) for _ in range(3))
    expected = fit(whole, 5, epochs=3, shuffle=True)

    def stop(trainer: Any, loss: Any) -> None:
        if trainer.step == 4:
            raise RuntimeError("stopped")

    first.callbacks.append(training.LambdaCallback(on_step_end=stop))
    trainer()  # for the seed
    with pytest.raises(RuntimeError, match="stopped"):
        fit(first, 5, epochs=3, shuffle=True)
    first.save(tmp_path)
    found = fit(second, 5, epochs=3, shuffle=True, resume=tmp_path)
    np.testing.assert_array_equal(found.steps, expected.steps)


def test_an_error_between_two_batches_leaves_a_whole_step(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = trainer(accumulate=4), trainer(accumulate=4)
    fit(other, 4, max_steps=1)
    calls = []
    gradient = mine._gradient

    def failing(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 6:
            raise RuntimeError("failed once")
        return gradient(*args)

    monkeypatch.setattr(mine, "_gradient", failing)
    with pytest.raises(RuntimeError, match="failed once"):
        fit(mine, 4)
    assert mine.step == mine.optimizer.step == 1
    for path, x in other.model.tensors().items():
        np.testing.assert_array_equal(ops.to_numpy(mine.model.tensors()[path]), ops.to_numpy(x))


def test_in_mixed_precision(backend: Backend) -> None:
    mine, other = trainer(accumulate=4, precision="bf16-mixed"), trainer()
    fit(mine, 4)
    fit(other, 16)
    np.testing.assert_allclose(mine.history.steps, other.history.steps, rtol=0.02)


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (1.5, TypeError)])
def test_mistakes(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="Trainer: accumulate must be"):
        trainer(accumulate=value)
