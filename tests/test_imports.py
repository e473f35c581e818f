"""Importing is free, and engines stay behind the backends that own them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ember_ml

ROOT = Path(ember_ml.__file__).parent
ENGINES = {"numpy", "torch", "mlx", "jax", "ml_dtypes"}
FILES = sorted(ROOT.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The top-level packages that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_backends_import_engines(path: Path) -> None:
    inside = path.relative_to(ROOT).parts
    allowed = {inside[1], "numpy", "ml_dtypes"} if inside[0] == "backend" and len(inside) > 2 else set()
    assert imported(path) & ENGINES <= allowed


def test_importing_loads_no_engine_and_writes_no_file(tmp_path: Path) -> None:
    code = "import sys, ember_ml, ember_ml.ops; print([m for m in ('numpy', 'torch', 'mlx') if m in sys.modules])"
    home = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=home, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []
