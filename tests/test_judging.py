"""The contract judges what it says, and no less than it did."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
import test_contract
import test_differential
import test_empty
import test_gradients  # noqa: F401 - its checks have floors
import test_oracles
from floors import FLOORS

from ember_ml.testing.pairing import CHECKS, ENGINES

MODULES = (test_contract, test_differential, test_empty, test_oracles)
assert all(module.pytestmark.name == "contract" for module in MODULES)


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_no_check_judges_fewer_operations(check: str) -> None:
    judged = Counter(engine for _, engine in CHECKS[check].pairs(ENGINES))
    floors = {engine: floor for engine, floor in FLOORS.get(check, {}).items() if engine in ENGINES}
    fewer = {engine: (judged[engine], floor) for engine, floor in floors.items() if judged[engine] < floor}
    assert not fewer, "operations judged, and the floor"


def test_every_floor_is_that_of_a_check() -> None:
    assert set(FLOORS) <= set(CHECKS)


CASES = """
import pytest
from ember_ml.testing.comparison import expect, expect_error

pytestmark = pytest.mark.contract

@pytest.mark.parametrize("case", ["asserts", "raises", "nothing"])
def test_check(case):
    if case == "asserts":
        expect(1 + 1 == 2)
    if case == "raises":
        with expect_error(ValueError):
            int("x")
"""


def test_a_case_without_an_assertion_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    pytester.makepyfile(CASES)
    result = pytester.runpytest_subprocess("-p", "ember_ml.testing.plugin", "-p", "no:xdist")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*this case made no assertion*"])


def test_quick_takes_two_engines_and_a_sample_of_the_contract() -> None:
    command = [sys.executable, "-m", "pytest", "--quick", "--collect-only", test_contract.__file__]
    # The process is no worker of pytest-xdist, for which pytest-benchmark, where installed, would take it, and warn.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    found = [line for line in done.stdout.splitlines() if "::" in line]
    cases = sum(len(check.pairs(ENGINES)) for name, check in CHECKS.items() if hasattr(test_contract, name))
    assert 0 < len(found) < cases / 10
    assert not [line for line in found if "[mlx-" in line]
