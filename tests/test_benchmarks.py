"""The benchmark runs, says what it measured and what it could not; nothing here looks at how long anything takes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ember_ml

FOLDER = Path(__file__).parents[1] / "benchmarks"


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / script), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def dispatch() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("dispatch")


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    done = run(
        "dispatch.py", "--repeats", "2", "--runs", "2", "--ops", "add", "sqrt", "--sizes", "4", "100000", "--json", "-"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_every_engine_size_and_case_has_a_row(report: dict[str, Any]) -> None:
    found = {(row["engine"], row["size"], row["case"]) for row in report["rows"]}
    cases = ("add(x, y)", "add(x, 2.0)", "sqrt(x)")
    engines = ember_ml.get_available_backends()
    assert found == {(e, n, c) for e in engines for n in (4, 100_000) for c in cases}
    for row in report["rows"]:
        assert {"native", "native again", "ember_ml"} <= set(row["us"])
        assert all(time > 0 for time in row["us"].values())
        assert set(row["ratios"]) == set(row["us"]) - {"native"}
        assert row["ratios"]["ember_ml"] == row["us"]["ember_ml"] / row["us"]["native"]


def test_what_is_missing_is_skipped_with_a_reason(report: dict[str, Any]) -> None:
    for row in report["rows"]:
        for way in ("autoray", "compat", "compat look-up", "keras"):
            assert (way in row["us"]) != bool(row["skipped"].get(way))


def test_means_and_targets_are_stated(report: dict[str, Any]) -> None:
    engines = ember_ml.get_available_backends()
    assert [(m["engine"], m["size"]) for m in report["geometric_means"]] == [
        (e, n) for e in engines for n in (4, 100_000)
    ]
    assert all(mean["ratios"]["ember_ml"] > 0 for mean in report["geometric_means"])
    # Without a compiler there is no extension, and the report says so.
    assert set(report["runs_skipped"]) <= {"extension"}
    speeds = [speed for speed in ("extension", "pure Python") if speed not in report["runs_skipped"]]
    places = [(speed, e, n) for speed in speeds for e in engines for n in (4, 100_000)]
    # Small tensors on JAX have a target with the extension only.
    targets = [place for place in places if place != ("pure Python", "jax", 4)]
    assert [(v["speed"], v["engine"], v["size"]) for v in report["targets"]] == targets
    for verdict in report["targets"]:
        assert verdict["operations"] == 2
        assert verdict["met"] == (verdict["ratio"] <= verdict["target"])
    assert {(row["speed"], row["engine"], row["size"], row["case"]) for row in report["runs"]} == {
        (*place, case) for place in places for case in ("add(x, y)", "sqrt(x)")
    }
    assert all(len(row["ratios"]) == 2 for row in report["runs"])
    assert report["versions"]["numpy"]


@pytest.mark.skipif("jax" not in ember_ml.get_available_backends(), reason="JAX is not installed")
def test_composed_operations_are_measured_against_their_formula() -> None:
    names = ("softmax", "gelu", "layer_normalization", "sparse_categorical_crossentropy", "dot_product_attention")
    done = run("dispatch.py", "--engines", "jax", "--repeats", "2", "--runs", "1", "--ops", *names, "--json", "-")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["rows"] == report["targets"] == []
    assert tuple(row["case"].partition("(")[0] for row in report["composed"]) == names
    for row in report["composed"]:
        assert row["skipped"] == {}
        assert len(row["ratios"]) == len(row["again"]) == 1
        assert row["met"] == (row["ratio"] <= row["target"])


def test_the_quicker_call_is_chosen_and_one_that_fails_is_not(dispatch: ModuleType) -> None:
    measuring = importlib.import_module("measuring")
    slow, fast, failing = (measuring.Caller(text, {}) for text in ("sum(range(10_000))", "1 + x", "x()"))
    assert measuring.quicker([slow, fast, failing], {"x": 1}, None, 1e-4) is fast
    assert measuring.quicker([slow, failing], {"x": 1}, None, 1e-4) is slow


def test_a_target_is_the_median_of_geometric_means(dispatch: ModuleType) -> None:
    place = {"speed": "extension", "engine": "torch", "size": 4, "again": [1.0] * 3}
    runs = [
        {**place, "case": "add(x, y)", "ratios": [1.0, 4.0, 1.0]},
        {**place, "case": "sqrt(x)", "ratios": [4.0, 4.0, 1.0]},
    ]
    (verdict,) = dispatch.verdicts(runs)
    assert verdict["ratio"] == pytest.approx(2.0)
    assert (verdict["target"], verdict["met"]) == (1.12, False)


def test_a_speed_that_cannot_run_is_named(dispatch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "SPEEDS", {"extension": {"PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"}})
    plan = dispatch.Plan(["numpy"], dispatch.PANEL[:1], [4], 1, 1e-5)
    found, skipped = dispatch.target_rows(plan, 1, lambda what, steps: None)
    assert found == []
    assert set(skipped) == {"extension"}


def test_a_missing_peer_is_named(dispatch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "find_spec", lambda name: None)
    plan = dispatch.Plan(["numpy"], dispatch.PANEL[:1], [4], 1, 1e-5)
    (row,) = dispatch.measure(plan, lambda what, steps: None)
    assert row["skipped"] == {
        "autoray": "autoray is not installed",
        "compat": "array-api-compat is not installed",
        "compat look-up": "array-api-compat is not installed",
        "keras": "keras is not installed",
    }
    assert set(row["us"]) == {"native", "ember_ml", "native again"}


def test_a_missing_operation_and_a_wrong_result_are_named(
    dispatch: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ember_ml.ops, "sqrt", lambda x: x)
    monkeypatch.delattr(ember_ml.ops, "negative")
    cases = [case for case in dispatch.PANEL if case.name in ("sqrt", "negative")]
    found = {
        row["case"]: row["skipped"]
        for row in dispatch.rows(dispatch.Plan(["numpy"], cases, [4], 1, 1e-5), dispatch.HERE)
    }
    assert found["sqrt(x)"]["ember_ml"] == "its result differs from the native one"
    assert found["negative(x)"]["ember_ml"] == "ember_ml.ops has no negative"


def test_the_panel_is_of_operations_that_every_engine_has(dispatch: ModuleType) -> None:
    assert set(dispatch.TEN) <= {case.name for case in dispatch.PANEL}
    assert len(dispatch.TEN) == 10
    missing = [case.name for case in dispatch.PANEL if not hasattr(ember_ml.ops, case.name)]
    assert missing == []


SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if "__main__" in path.read_text())


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_helps(script: str) -> None:
    done = run(script, "--help")
    assert done.returncode == 0, done.stderr
    assert "--json" in done.stdout


@pytest.mark.parametrize("script", ["dispatch.py", "ops.py", "tensor.py"])
def test_an_unknown_engine_is_refused_in_one_line(script: str) -> None:
    done = run(script, "--engines", "abacus")
    assert done.returncode == 2
    assert "invalid choice: 'abacus'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def heavy() -> dict[str, Any]:
    done = run("ops.py", "--quick", "--repeats", "1", "--ops", "matmul", "conv", "sum", "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_every_heavy_operation_is_measured_against_the_engine(heavy: dict[str, Any]) -> None:
    engines = ember_ml.get_available_backends()
    assert [(row["engine"], row["case"]) for row in heavy["rows"]] == [
        (e, c) for e in engines for c in ("matmul", "conv", "sum")
    ]
    for row in heavy["rows"]:
        assert row["skipped"] == {}
        assert row["ratios"]["ember_ml"] > 0
        assert row["calls"]["native"]
        naive = row["engine"] == "numpy" and row["case"] == "conv"
        assert ({"naive NumPy", "torch on the CPU"} <= set(row["us"])) == naive


def test_the_targets_of_heavy_operations_are_stated(heavy: dict[str, Any]) -> None:
    for engine in heavy["engines"]:
        assert engine["mean_met"] == (engine["geometric_mean"] <= engine["target_mean"])
        assert engine["each_met"] == (engine["worst"]["ratio"] <= engine["target_each"]) == (not engine["over"])


def test_a_missing_heavy_operation_and_a_wrong_result_are_named(
    dispatch: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = importlib.import_module("ops")
    monkeypatch.setattr(ember_ml.ops, "sum", lambda x, axis: x)
    monkeypatch.delattr(ember_ml.ops, "mean")
    cases = [case for case in bench.PANEL if case.name in ("sum", "mean")]
    found = {row["case"]: row for row in bench.rows(bench.Plan(["numpy"], cases, 1, 1e-5))}
    assert found["sum"]["skipped"] == {"ember_ml": "its result differs from the native one"}
    assert found["mean"]["skipped"] == {"ember_ml": "ember_ml.ops has no mean"}
    assert bench.summaries(list(found.values())) == []


def test_the_heavy_panel_is_forty_operations_and_more(dispatch: ModuleType) -> None:
    assert len({case.name for case in importlib.import_module("ops").PANEL}) >= 40


def test_distributed_prints_ratios() -> None:
    engine = "mlx" if "mlx" in ember_ml.get_available_backends() else "numpy"
    done = run("distributed.py", "--engines", engine, "--turns", "1", "--scale", "1e-5", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert [figure["what"] for figure in figures] == ["average_gradients", "checked all_sum"]
    assert all(figure["ratio"] > 0 for figure in figures)


def test_scaling_follows_its_formulas() -> None:
    """Without jitter, the simulation is the formula."""
    done = run("scaling.py", "--ranks", "8", "64", "--jitter", "0", "--bucket", "1e12", "--json")
    assert done.returncode == 0, done.stderr
    size, latency, bandwidth = 350e6 * 2, 10e-6, 50e9 / 8
    for row, n, levels in zip(json.loads(done.stdout), (8, 64), (3, 6), strict=True):
        assert row["ring"] == pytest.approx(2 * (n - 1) * (latency + size / n / bandwidth))
        assert row["tree"] == pytest.approx(2 * levels * latency + 2 * size / bandwidth)
        assert 0 < row["goodput"] < row["efficiency"] < 1
    assert run("scaling.py", "--ranks", "1").returncode == 2


def test_decoding_and_loading_are_measured(tmp_path: Path) -> None:
    options = [
        "--engines",
        "numpy",
        "torch",
        "--model",
        "tiny",
        "--tokens",
        "4",
        "--prompt",
        "3",
        "--repeats",
        "1",
        "--load",
        "0.002",
        "--json",
    ]
    done = run("generate.py", *options, str(tmp_path / "report.json"))
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    names = {(row["engine"], row["name"]) for row in report["decode"]}
    assert names >= {("numpy", "ember_ml"), ("torch", "ember_ml"), ("torch", "transformers")}
    assert all(row["tokens_per_second"] > 0 for row in report["decode"])
    assert len(report["load"]) == 4
    assert all(row["seconds"] > 0 and row["bytes"] > 1e6 for row in report["load"])
    assert "ember_ml is" in done.stdout
