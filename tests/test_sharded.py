"""``Trainer(strategy="sharded")``: each rank holds a part of the parameters, gradients and optimizer state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_program
from ranks import launch

import ember_ml
from ember_ml import nn, ops, optim, training
from ember_ml.backend import Backend
from ember_ml.errors import UnsupportedError
from ember_ml.training.sharding import ENGINES

SIZES = ("held", "shapes")


def assert_close(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for key in wanted.keys() - {*SIZES, "averaged"}:
        np.testing.assert_allclose(found[key], wanted[key], rtol=0, atol=1e-5, err_msg=key)
    for key, value in wanted["averaged"].items():
        assert found["averaged"][key] == pytest.approx(value, abs=1e-5)
    assert found["shapes"] == wanted["shapes"]


@pytest.mark.parametrize("engine", [name for name in ENGINES if name in ember_ml.get_available_backends()])
def test_parts_on_each_rank(engine: str, tmp_path: Path) -> None:
    """The curve is that of whole models, with half of the memory, and a checkpoint is of no number of ranks."""
    with ember_ml.use_backend("numpy"):
        wanted = rank_program.sharded(str(tmp_path / "whole"), strategy="replicated")
    (found,) = launch(engine, 2, [{"check": "sharded", "folder": str(tmp_path / "run")}])
    assert_close(found, wanted)
    for held in found["held"]:
        assert sum(held) <= 0.55 * sum(wanted["held"][0])
        assert all(part <= 0.55 * whole for part, whole in zip(held, wanted["held"][0], strict=True))
    # The run goes on from step 4 in one process: of MLX, if it is installed.
    (tmp_path / "run").mkdir(exist_ok=True)
    other = next(name for name in ("mlx", "numpy") if name in ember_ml.get_available_backends())
    with ember_ml.use_backend(other):
        assert_close(rank_program.sharded(str(tmp_path / "run"), strategy="replicated"), wanted)


def test_engines_without_it(backend: Backend) -> None:
    trainer = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.1), strategy="sharded")
    if backend.name in ENGINES:
        assert len(trainer.fit(ops.ones((4, 2)), ops.ones((4, 1)), verbose=0)) == 1
    else:
        with pytest.raises(UnsupportedError, match=f"with one of the backends torch, jax, got {backend.name}"):
            trainer.fit(ops.ones((4, 2)), ops.ones((4, 1)))


def test_what_cannot_be_divided() -> None:
    with pytest.raises(UnsupportedError, match=r"must update each element by itself .*, got Adafactor"):
        training.Trainer(nn.Linear(2, 1), "mse", optim.Adafactor(), strategy="sharded")
    with pytest.raises(UnsupportedError, match="precision must not be in float16"):
        training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.1), precision="fp16-mixed", strategy="sharded")
    with pytest.raises(ValueError, match="strategy must be 'replicated' or 'sharded', got 'fsdp'"):
        training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.1), strategy="fsdp")
