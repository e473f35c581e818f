"""The benchmark of a GPT on an accelerator runs on the CPU, and both models are the same; no time is looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import ember_ml

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu.py"
SIZE = "1,16,2,64,2,8"


def run(*options: str) -> Any:
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--size", SIZE, "--turns", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


ENGINES = [name for name in ember_ml.get_available_backends() if name != "jax" or find_spec("optax")]
ROWS = [
    ("torch", "eager", "mixed"),
    ("torch", "eager", "bfloat16"),
    ("mlx", "eager", "float32"),
    ("mlx", "eager", "mixed"),
    ("jax", "compiled", "float32"),
    ("jax", "compiled", "mixed"),
]


@pytest.mark.parametrize(("engine", "mode", "precision"), [row for row in ROWS if row[0] in ENGINES])
def test_the_losses_of_a_row_agree(engine: str, mode: str, precision: str) -> None:
    done = run("--row", engine, mode, precision)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["native"]["losses"]) == len(found["ember_ml"]["losses"]) == 3
    assert found["ember_ml"]["losses"][2] <= found["ember_ml"]["losses"][0]


@pytest.mark.skipif("jax" not in ENGINES, reason="JAX or optax is not installed")
def test_rows_of_jax_are_compiled_and_each_side_runs_alone_too() -> None:
    done = run("--engines", "jax", "--precisions", "bfloat16", "--json", "-")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["mode"], row["precision"]) == ("compiled", "bfloat16")
    assert all(row[side][figure] > 0 for side in ("native", "ember_ml") for figure in ("step", "warm-up"))


def test_a_row_that_fails_is_named() -> None:
    done = run("--engines", "torch", "--modes", "eager", "--precisions", "float32", "--size", "1,15,2,64,2,8")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout
    assert "torch eager float32: " in done.stdout
