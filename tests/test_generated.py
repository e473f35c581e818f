"""Every generated file is current, and ``make generate`` writes it.

The outputs of the rules of emberlint, ``bad.txt``, are compared by ``tests/lint/test_rules.py``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ember_ml
from ember_ml import backend as backends

ROOT = Path(__file__).parents[1]
GENERATORS = ("ember_ml.reference", "emberlint.generate")


@pytest.mark.skipif(
    not set(backends.OWN) <= set(ember_ml.get_available_backends()), reason="what is generated names every engine"
)
@pytest.mark.parametrize("generator", GENERATORS)
def test_what_is_generated_is_current(generator: str) -> None:
    command = [sys.executable, "-m", generator, "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"run: make generate\n{done.stdout}{done.stderr}"


def test_make_generate_runs_every_generator() -> None:
    recipe = re.search(r"^generate:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None
    assert tuple(re.findall(r"python -m ((?:ember_ml|emberlint)\S*)", recipe[1])) == GENERATORS
    assert "EMBERLINT_UPDATE=1" in recipe[1]
