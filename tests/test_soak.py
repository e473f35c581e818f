"""A few seconds of ``soak.py``, so that it works when it is needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).parent / "soak.py"

CHECKS = ("operations", "switching", "compiled", "generators", "interrupts", "kills", "children")


def soak(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SOAK, *options], capture_output=True, text=True, timeout=600)


def test_nothing_is_found_in_a_few_seconds() -> None:
    # Engines load their compilers in these seconds, up to 200 MiB each.
    done = soak("--minutes=0.05", "--seed=1", "--growth=1000")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = ", ".join(rf"[1-9]\d* {worker}" for worker in ("threads", "interrupts", "kills", "children"))
    assert re.search(rf": {counts}; 0 findings\n$", done.stdout)


def test_a_finding_can_be_repeated() -> None:
    """No process shrinks by as much as is asked for here."""
    done = soak("--minutes=0.01", "--seed=1", "--only=generators", "--growth=-100000")
    assert done.returncode == 1, done.stderr
    assert "FINDING: memory grew" in done.stdout
    assert "reproduce: python tests/soak.py --minutes=0.01 --seed=1" in done.stdout
    assert done.stdout.endswith("1 findings\n")


HANGING = """
import argparse, time, soak

def sleep(rng):
    time.sleep(300)

soak.WORKERS["threads"] = (sleep,), 1
soak.Run(argparse.Namespace(worker="threads", only=["sleep"], minutes=1, seed=0, patience=1, growth=1))()
"""


def test_a_case_that_hangs_is_found_and_its_stack_written() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=120, cwd=SOAK.parent)
    assert done.returncode == 1
    assert "no end after 1 s" in done.stdout
    assert "in sleep" in done.stderr


def test_a_case_runs_alone() -> None:
    assert soak("--only=generators", "--case=3").returncode == 0


def test_help_lists_the_checks() -> None:
    text = soak("--help").stdout
    for name in CHECKS:
        assert f"\n  {name} " in text
    assert "unknown checks: nothing" in soak("--only=nothing").stderr
