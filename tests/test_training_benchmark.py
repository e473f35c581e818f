"""The benchmark of training steps runs, and its models are the same; nothing here looks at how long anything takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ember_ml

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "training.py"


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), "--repeats", "1", "--modes", "eager", "--ops", "mlp", "cnn", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_every_engine_and_model_has_a_row(report: dict[str, Any]) -> None:
    found = {(row["engine"], row["case"], row["mode"]) for row in report["rows"]}
    engines = ember_ml.get_available_backends()
    assert found == {(e, c, "eager") for e in engines for c in ("mlp", "cnn") if c == "mlp" or e != "numpy"}


def test_losses_agree_with_the_hand_written_model(report: dict[str, Any]) -> None:
    for row in report["rows"]:
        assert set(row["skipped"]) <= {"Keras"}, row["skipped"]
        assert {"native", "native again", "ember_ml"} <= set(row["us"])
        assert set(row["ratios"]) == set(row["us"]) - {"native"}
        assert row["target"] in (1.1, 1.5)


def test_a_wrong_option_is_explained() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--modes", "warp"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'warp'" in done.stderr
