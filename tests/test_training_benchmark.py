"""The benchmark of training steps runs, and its models are the same; nothing here looks at how long anything takes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import ember_ml

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "training.py"


ENGINES = [name for name in ember_ml.get_available_backends() if name != "jax" or find_spec("optax")]


def measured(*options: str) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), "--repeats", "1", "--json", "-", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return measured("--modes", "eager", "--ops", "mlp", "cnn", "--engines", *ENGINES)


def test_every_engine_and_model_has_a_row(report: dict[str, Any]) -> None:
    found = {(row["engine"], row["case"], row["mode"]) for row in report["rows"]}
    assert found == {(e, c, "eager") for e in ENGINES for c in ("mlp", "cnn") if c == "mlp" or e != "numpy"}


def test_losses_agree_with_the_hand_written_model(report: dict[str, Any]) -> None:
    for row in report["rows"]:
        assert set(row["skipped"]) <= {"Keras"}, row["skipped"]
        assert {"native", "native again", "ember_ml"} <= set(row["us"])
        assert set(row["ratios"]) == set(row["us"]) - {"native"}
        assert row["target"] == {"numpy": 1.5, "jax": None}.get(row["engine"], 1.1)


@pytest.mark.skipif("jax" not in ENGINES, reason="JAX or optax is not installed")
def test_compiled_steps_of_jax_agree_and_have_a_target() -> None:
    (row,) = measured("--modes", "compiled", "--ops", "transformer", "--engines", "jax")["rows"]
    assert row["skipped"] == {}
    assert row["ratios"]["ember_ml"] > 0
    assert row["target"] == 1.03


def test_a_wrong_option_is_explained() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--modes", "warp"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'warp'" in done.stderr
