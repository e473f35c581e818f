"""The conformance kit: what it says of engines, right and wrong ones, and what of results it takes for different."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from example_engine import ROOT, blocks, environment, install, write_metadata

import ember_ml
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, op, operation_of
from ember_ml.dtypes import promoted
from ember_ml.testing import check_backend, comparison, contract, gradients
from ember_ml.testing.comparison import assert_close, assert_same, difference, expect_error, is_close
from ember_ml.testing.report import FAILED, PASSED, Outcome, Report
from ember_ml.testing.samples import Call
from ember_ml.types import Tensor, TensorLike

OTHERS = [name for name in ember_ml.get_available_backends() if name != "numpy"]


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What Python does with these arguments where the folder is on the path."""
    return subprocess.run(
        [sys.executable, *command], env=environment(site), cwd=site, capture_output=True, text=True, check=False
    )


class TestCheckBackend:
    def test_our_engines_pass(self, backend: Backend) -> None:
        report = check_backend(backend.name, ["add", "math.lerp", "sort", "random_uniform", "matmul"])
        assert report.failures == []
        expected = {"indexing.sort", "math.add", "math.lerp", "random.random_uniform", "linearalg.matmul"}
        assert set(report.passed) == expected
        assert report.missing == {}
        aspects = {"values", "dtypes", "inputs", "errors", "gradients"}
        assert aspects <= {line.split()[0] for line in str(report).splitlines()}
        report.raise_for_failures()

    def test_settings_stay(self, backend: Backend) -> None:
        ops.random.set_seed(5)
        ops.random.random_bits(3)
        before = ops.random.get_state(), ops.get_default_dtype(), backend.device, ember_ml.get_backend()
        check_backend(backend.name, ["set_default_dtype", "set_seed", "set_default_device"])
        assert before == (ops.random.get_state(), ops.get_default_dtype(), backend.device, ember_ml.get_backend())

    @pytest.mark.parametrize("backend", OTHERS, indirect=True)
    def test_a_wrong_result_is_a_failure(self, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        right = backend.to_host
        monkeypatch.setattr(backend, "to_host", lambda x: right(x) + 1 if right(x).dtype == np.float32 else right(x))
        report = check_backend(backend.name, ["maximum"])
        monkeypatch.undo()
        assert report.failed == ["math.maximum"]
        assert report.passed == []
        with pytest.raises(AssertionError, match=r"math\.maximum: test_results_are_those_of_the_reference"):
            report.raise_for_failures()

    def test_unknown_names(self) -> None:
        expected = "check_backend: the name of a backend must be a known one, got 'abacuss'"
        with pytest.raises(ember_ml.BackendNotFoundError, match=expected):
            check_backend("abacuss")
        with pytest.raises(ValueError, match="operations must be names of operations, got ad, sinn"):
            check_backend("numpy", ["sinn", "add", "ad"])

    def test_importing_the_library_does_not_load_it(self, tmp_path: Path) -> None:
        code = "import sys, ember_ml; print([name for name in sys.modules if 'testing' in name or name == 'pytest'])"
        assert run(tmp_path, "-c", code).stdout == "[]\n"

    def test_it_needs_no_pytest(self, tmp_path: Path) -> None:
        code = "import sys; sys.modules['pytest'] = None; from ember_ml.testing import check_backend"
        done = run(tmp_path, "-c", f"{code}; print(check_backend('numpy', ['add']))")
        assert done.stdout.startswith("numpy: 1 operations passed, 0 failed, 0 missing\n"), done.stderr


class TestExampleEngine:
    def test_the_report_names_what_is_missing(self, tmp_path: Path) -> None:
        install(tmp_path)
        done = run(tmp_path, "-m", "ember_ml.testing", "abacus")
        assert done.returncode == 0, done.stdout + done.stderr
        first, head, *rows = done.stdout.splitlines()
        assert first == "abacus: 36 operations passed, 0 failed, 468 missing"
        assert head.split() == ["category", "passed", "failed", "missing"]
        assert ["math", "5", "0", "80"] in [row.split() for row in rows]
        missing = next(row for row in rows if row.startswith("missing in math: "))
        assert {"sin", "divide", "exp"} <= set(missing.removeprefix("missing in math: ").split(", "))

    def test_a_wrong_operation_fails(self, tmp_path: Path) -> None:
        engine = install(tmp_path)
        text = (engine / "math.py").read_text()
        (engine / "math.py").write_text(text.replace("x.array * y.array", "x.array + y.array"))
        done = run(tmp_path, "-m", "ember_ml.testing", "abacus", "multiply", "add")
        assert done.returncode == 1
        assert done.stdout.startswith("abacus: 1 operations passed, 1 failed, 0 missing\n")
        shown = next(block for block in blocks(ROOT / "docs" / "backends.md") if block.language == "console")
        assert shown.text in done.stdout
        assert "math.add:" not in done.stdout

    def test_a_wrong_dtype_fails(self, tmp_path: Path) -> None:
        engine = install(tmp_path)
        text = (engine / "math.py").read_text()
        (engine / "math.py").write_text(text.replace("x.array - y.array", "(x.array - y.array).astype('float32')"))
        done = run(tmp_path, "-m", "ember_ml.testing", "abacus", "subtract")
        assert "dtype differs: got float32, expected int64\n    in subtract(int64[36], int64[36])" in done.stdout

    def test_pytest_runs_the_checks(self, tmp_path: Path) -> None:
        install(tmp_path)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        points = project["entry-points"]["pytest11"]
        write_metadata(tmp_path, "kit", "[pytest11]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
        command = ["-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "ember_ml.testing", "--backend"]
        done = run(tmp_path, *command, "abacus", "-k", "math.lerp or math.add", "-v")
        assert done.returncode == 0, done.stdout
        assert "test_contract.py::test_results_are_those_of_the_reference[abacus-math.lerp] PASSED" in done.stdout
        assert "abacus: 2 operations passed, 0 failed, 468 missing" in done.stdout
        expected = "ERROR: --backend: the name of a backend must be a known one, got 'abacuss'"
        assert run(tmp_path, *command, "abacuss").stderr.startswith(expected)
        # Other test suites may have an option of that name.
        done = run(tmp_path, "-m", "pytest", "--backend", "abacus")
        assert "unrecognized arguments: --backend" in done.stderr


class TestReport:
    def test_an_operation_fails_with_any_of_its_checks(self) -> None:
        check, other = "test_example_runs", "test_dtype_rule_holds"
        outcomes = [
            Outcome("math.add", check, PASSED),
            Outcome("math.add", other, FAILED, "got 1\nin add()"),
            Outcome("math.sin", check, PASSED),
        ]
        report = Report("abacus", outcomes, {"math.exp": "why"})
        assert (report.passed, report.failed, list(report.missing)) == (["math.sin"], ["math.add"], ["math.exp"])
        assert str(report).endswith("failures:\n  math.add: test_dtype_rule_holds\n    got 1\n    in add()")
        assert repr(report) == str(report)


class TestComparison:
    @pytest.mark.parametrize(
        ("result", "expected", "what"),
        [
            ((1, 2), [1, 2, 3], "structure"),
            (1, 1.0, "structure"),
            (np.float32(1), 1.0, "structure"),
            (np.zeros(2), np.zeros((2, 1)), "shape"),
            (np.zeros(2), np.zeros(2, np.float32), "dtype"),
            (np.ones(2), np.array([1.0, np.nan]), "value"),
            (np.array([np.inf]), np.array([-np.inf]), "value"),
            (np.array([1]), np.array([2]), "value"),
            ("a", "b", "value"),
        ],
    )  # fmt: skip
    def test_differences(self, result: object, expected: object, what: str) -> None:
        found = difference(list(comparison.leaves(result)), list(comparison.leaves(expected)))
        assert found is not None
        assert found.what == what
        with pytest.raises(AssertionError, match=f"{what} differs"):
            assert_same(result, expected)

    @pytest.mark.parametrize("value", [1.5, float("nan"), "a", np.array([np.nan, np.inf, 1.0]), [1, {"a": np.ones(2)}]])
    def test_what_is_the_same(self, value: object) -> None:
        assert_same(value, value)

    def test_tolerance(self) -> None:
        a, b = np.float32([1.0, 100.0]), np.float32([1.00002, 100.002])
        assert_same(a, b)
        assert difference([("", a)], [("", b)], 0.0) is not None
        assert is_close(a, [1.000015, 100.003], 1e-5).tolist() == [True, False]
        assert_close(a, 1.0, 100.0)
        with pytest.raises(AssertionError, match=r"shape \(2,\), expected \(3,\)"):
            assert_close(a, np.zeros(3), 1.0)
        with pytest.raises(AssertionError, match=r"got 100\.0 at \[1\], expected 200\.0 \(1 of 2 elements differ\)"):
            assert_same(a, np.float32([1.0, 200.0]))

    def test_tolerance_below_the_precision_of_float32(self) -> None:
        assert is_close([1.0, 1.0], [1.0 + 1e-13, 1.0 + 1e-9], 1e-12).tolist() == [True, False]

    def test_errors(self) -> None:
        with expect_error(ValueError):
            int("x")
        with (
            pytest.raises(AssertionError, match="expected TypeError or ValueError, got no error"),
            expect_error(TypeError, ValueError),
        ):
            int("1")
        with pytest.raises(ZeroDivisionError), expect_error(ValueError):
            _ = 1 / 0


@op(promoted)
def doubled(x: TensorLike, /) -> Tensor:
    """Twice ``x``; the example leaves something out, and breaks a line.

    >>> ops.multiply(ops.arange(40), 2).tolist()
    [0,  2,
     4, ..., 78]
    """
    return ops.multiply(x, 2)


class TestContract:
    def test_examples_may_leave_out_and_break_lines(self, backend: Backend) -> None:
        assert "..." in (doubled.__doc__ or "")
        contract.test_example_runs(operation_of(doubled), backend)

    @pytest.mark.parametrize(
        ("name", "expected"), [("sum", True), ("squeeze", True), ("top_k", False), ("add", False), ("zeros", False)]
    )
    def test_an_axis_alone_is_needed(self, name: str, expected: bool) -> None:
        assert contract.needs_only_axis(REGISTRY[name]) is expected

    def test_calls_that_noise_makes_invalid(self) -> None:
        """They are left out where the operation has no gradient to check; elsewhere they are mistakes of a sample."""
        wrong = np.asarray([0.3, 0.3])
        case = gradients.Case(Call((np.asarray([1.0, 2.0]),), {"p": wrong}), (0,))
        assert not gradients.is_defined(REGISTRY["random_choice"], case)
        assert gradients.is_defined(REGISTRY["random_choice"], gradients.Case(Call((wrong,), {"p": wrong + 0.2}), (0,)))
        with pytest.raises(ValueError, match="matmul"):
            gradients.is_defined(REGISTRY["matmul"], gradients.Case(Call((np.ones(2), np.ones(3)), {}), (0,)))
