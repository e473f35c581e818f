"""The demonstration: one seed, one program, the same curve on every engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ember_ml
from ember_ml import datasets, demo, ops
from ember_ml.backend import Backend


def test_the_digits_are_all_there(backend: Backend) -> None:
    images, labels = datasets.digits()
    assert isinstance(images, backend.tensors)
    assert tuple(images.shape) == (1797, 8, 8)
    assert ops.dtype(labels) == "int64"
    assert (float(ops.min(images)), float(ops.max(images))) == (0.0, 1.0)
    assert np.bincount(ops.to_numpy(labels)).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


@pytest.mark.parametrize("model", demo.MODELS)
def test_every_model_begins_alike_on_every_engine(model: str, backend: Backend) -> None:
    found = demo.run(backend.name, model, seed=3, epochs=1)
    wanted = _reference(model)
    np.testing.assert_allclose(found.updates, wanted.updates, rtol=0, atol=1e-4)
    assert found.accuracy == pytest.approx(wanted.accuracy, abs=0.01)
    assert found.seconds > 0


_found: dict[str, demo.Run] = {}


def _reference(model: str) -> demo.Run:
    if model not in _found:
        _found[model] = demo.run("torch" if "torch" in ember_ml.get_available_backends() else "numpy", model, 3, 1)
    return _found[model]


def test_the_default_model_learns_the_digits(backend: Backend) -> None:
    heard: list[float] = []
    found = demo.run(backend.name, tell=heard.append)
    assert found.accuracy >= 0.97
    assert heard == found.losses
    assert found.losses[-1] < 0.05 < found.losses[0]


def test_the_default_seed_is_zero(backend: Backend) -> None:
    assert demo.run(backend.name, epochs=1).losses == demo.run(backend.name, seed=0, epochs=1).losses


def _run(backend: str, losses: list[float]) -> demo.Run:
    return demo.Run(backend, losses, losses, 0.5, 1.0)


def test_disagreement_is_the_largest_difference_in_an_epoch() -> None:
    runs = [_run("a", [3.0, 2.0]), _run("b", [3.5, 2.0]), _run("c", [2.75, 2.25])]
    assert demo.disagreement(runs) == [0.75, 0.25]
    assert demo.disagreement(runs[:1]) == [0.0, 0.0]
    assert demo.report(runs, "mlp", 0)["largest_disagreement"] == 0.75
    assert demo.report(runs[:1], "mlp", 0)["largest_disagreement"] is None


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    runs = [_run("a", [3.0, 2.0]), _run("b", [3.5, 2.0])]
    both = demo.plot(runs, "two runs", str(tmp_path / "curves.png"))
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert [axes.get_ylabel() for axes in both.axes] == ["loss of a step", "largest difference"]
    alone = demo.plot(runs[:1], "one run", str(tmp_path / "one.png"))
    (panel,) = alone.axes
    assert (panel.get_ylabel(), panel.get_xlabel()) == ("loss of a step", "step")
