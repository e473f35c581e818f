"""Importing is free. Who may import an engine is what the linter checks, in ``tests/lint/test_house.py``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ember_ml

ROOT = Path(ember_ml.__file__).parent


def test_importing_loads_no_engine_and_writes_no_file(tmp_path: Path) -> None:
    code = "import sys, ember_ml, ember_ml.ops; print([m for m in ('numpy', 'torch', 'mlx') if m in sys.modules])"
    home = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=home, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []
