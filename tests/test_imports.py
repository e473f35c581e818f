"""Importing is free. Who may import an engine is what the linter checks, in ``tests/lint/test_house.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ember_ml

ROOT = Path(ember_ml.__file__).parent


def test_importing_loads_no_engine_and_writes_no_file(tmp_path: Path) -> None:
    code = (
        "import sys, ember_ml, ember_ml.ops; print([m for m in ('numpy', 'torch', 'mlx', 'jax') if m in sys.modules])"
    )
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=home, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []


# What is compiled has an operation in it whose call the compiler cannot trace; it has to trace another in its place.
TRAIN_AND_COMPILE = """
import sys
import ember_ml
from ember_ml import nn, ops, optim, training
ember_ml.set_backend("torch")
trainer = training.Trainer(nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.1)), "mse", optim.Adam(0.1))
trainer.fit(ops.ones((4, 3)), ops.ones((4, 2)), verbose=0)
print("torch._dynamo" in sys.modules)
import torch
found = torch.compile(lambda x: ops.add(ops.sin(x), 1), fullgraph=True, backend="eager")(torch.zeros(2))
print(found.tolist(), "torch._dynamo" in sys.modules)
"""


@pytest.mark.skipif("torch" not in ember_ml.get_available_backends(), reason="torch is not installed")
def test_training_on_torch_does_not_import_its_compiler(tmp_path: Path) -> None:
    """Importing it takes longer than importing torch; a user who compiles imports it later."""
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT.parent)}
    command = [sys.executable, "-c", TRAIN_AND_COMPILE]
    done = subprocess.run(command, env=home, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "[1.0, 1.0] True"]
