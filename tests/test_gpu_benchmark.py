"""The benchmark of a GPT on an accelerator runs on the CPU, and both models are the same; no time is looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ember_ml

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu.py"
SIZE = "1,16,2,64,2,8"


def run(*options: str) -> Any:
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--size", SIZE, "--turns", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


ROWS = [("torch", "mixed"), ("torch", "bfloat16"), ("mlx", "float32"), ("mlx", "mixed")]


@pytest.mark.parametrize(("engine", "precision"), [row for row in ROWS if row[0] in ember_ml.get_available_backends()])
def test_the_losses_of_a_row_agree(engine: str, precision: str) -> None:
    done = run("--row", engine, "eager", precision)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["native"]["losses"]) == len(found["ember_ml"]["losses"]) == 3
    assert found["ember_ml"]["losses"][2] <= found["ember_ml"]["losses"][0]


def test_a_row_that_fails_is_named() -> None:
    done = run("--engines", "torch", "--modes", "eager", "--precisions", "float32", "--size", "1,15,2,64,2,8")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout
    assert "torch eager float32: " in done.stdout
