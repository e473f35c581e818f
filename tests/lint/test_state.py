"""Files that emberlint keeps between runs: whatever their content, a run ends with findings or a clear message."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberlint import config as configuration
from emberlint.cli import main
from emberlint.config import Config
from emberlint.knowledge import matrix
from emberlint.lint import cache, runner
from emberlint.source import files
from emberlint.source.schema import fault

# "a\0b" and lone surrogates are valid in JSON but not in a path.
TEXTS = st.sampled_from(["", "EMB101", "bad.py", "a\0b", "\ud800", "/", "version"]) | st.text(max_size=4)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Current folder with two findings in one file."""
    configuration.load.cache_clear()
    (tmp_path / "bad.py").write_text("import numpy as np\nx = np.pi\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.emberlint]\nselect = ["EMB0", "EMB1"]\n', encoding="utf-8")
    os.utime(tmp_path / "bad.py", (1e9, 1e9))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Path to each value inside of another, including itself."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Copy of a value with one part replaced."""
    if not path:
        return new
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


def saved(project: Path) -> Path:
    """The only file of the cache."""
    (path,) = (project / cache.FOLDER).glob("*.json")
    return path


@many
@given(data=st.data())
def test_an_invalid_cache_is_rebuilt(data: st.DataObject, project: Path) -> None:
    config = configuration.load(".")
    expected = runner.run(["."], config).findings
    assert len(expected) == 2
    path = saved(project)
    whole = json.loads(path.read_bytes())
    place = data.draw(st.sampled_from(list(places(whole))))
    path.write_text(json.dumps(replaced(whole, place, data.draw(VALUES))), encoding="utf-8")
    assert runner.run(["."], config).findings == expected
    assert runner.run(["."], config).cached == 1, "the cache was rebuilt"


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"a": ' * 100_000, "1" * 5_000, "NaN", "\x00", "{}", "[[]]"])
def test_a_cache_that_is_not_json_is_rebuilt(text: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["."]) == 1
    expected = capsys.readouterr()
    saved(project).write_text(text, encoding="utf-8")
    assert main(["."]) == 1
    assert capsys.readouterr() == expected


def run_with(baseline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run every command with a baseline: it works or reports an error, and does not change a file that is not one."""
    before = baseline.read_bytes()
    named = ["--baseline", str(baseline)]
    capsys.readouterr()
    for command in (["."], ["--fix", "."], ["baseline", "stats"], ["baseline", "prune"], ["baseline", "update"]):
        baseline.write_bytes(before)
        (baseline.parent / "bad.py").write_text("import numpy as np\nx = np.pi\n", encoding="utf-8")
        status = main([*command, *named])
        printed = capsys.readouterr().err
        assert "internal error" not in printed, command
        if status == 2:
            assert str(baseline) in printed
            assert baseline.read_bytes() == before


@many
@given(data=st.data())
def test_a_baseline_of_any_shape_is_used_or_rejected(
    data: st.DataObject, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "known.json"
    path.unlink(missing_ok=True)
    (project / "bad.py").write_text("import numpy as np\nx = np.pi\n", encoding="utf-8")
    assert main(["baseline", "update", "--baseline", "known.json"]) == 0
    whole = json.loads(path.read_bytes())
    place = data.draw(st.sampled_from(list(places(whole))))
    path.write_text(json.dumps(replaced(whole, place, data.draw(VALUES))), encoding="utf-8")
    run_with(path, capsys)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "1" * 5_000, "NaN", "\x00", "{}", "[[]]", "[tool.emberlint]\n"])
def test_a_baseline_that_is_not_json_is_rejected(text: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "known.json"
    path.write_text(text, encoding="utf-8")
    run_with(path, capsys)
    assert main(["baseline", "update", "--baseline", "known.json"]) == 2
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (3, 'findings["f00"] must be an object, got 3'),
        ({"code": "EMB101", "path": "a.py"}, 'findings["f00"]["message"] is missing'),
        ({"code": 1, "path": "a.py", "message": ""}, 'findings["f00"]["code"] must be a string, got 1'),
        (
            {"code": "", "path": "a\0.py", "message": ""},
            'findings["f00"]["path"] must be the path of a file, got "a\\u0000.py"',
        ),
    ],
)
def test_the_error_about_a_baseline_says_where(
    entry: Any, message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "known.json").write_text(json.dumps({"version": 1, "findings": {"f00": entry}}), encoding="utf-8")
    assert main(["--baseline", "known.json", "."]) == 2
    assert f"known.json: {message}" in capsys.readouterr().err


def test_a_baseline_of_another_version_is_kept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "known.json").write_text('{"version": 2, "findings": {}}', encoding="utf-8")
    assert main(["baseline", "update", "--baseline", "known.json"]) == 2
    printed = capsys.readouterr().err
    assert "known.json must be a baseline of version 1" in printed
    assert "remove it" in printed


MATRIX = {
    "format": 1,
    "versions": {},
    "operations": {
        "sum": {
            "category": "stats",
            "engines": {
                "torch": {
                    "status": "differs",
                    "dtypes": {"float32": "fails"},
                    "keywords": {"axis": "hang"},
                    "differences": [{"input": "sum([1.0], axis=0)"}],
                }
            },
        }
    },
    "native": {
        "numpy": {
            "numpy.sum": {
                "same": True,
                "arrays": True,
                "mixed": True,
                "errors": True,
                "keywords": {"axis": True},
                "parameters": ["a", "axis"],
            }
        }
    },
}


def run_with_matrix(table: Any, project: Path) -> tuple[int, str]:
    """Exit status, and the name of the file with the matrix, which is new because a matrix is cached by its path."""
    path = project / f"matrix{len(list(project.iterdir()))}.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    (project / "bad.py").write_text(
        "import numpy as np\nfrom ember_ml import ops\n\n\ndef f(x: np.ndarray):\n"
        "    return np.sum(x, axis=0), ops.sum(x, axis=0), ops.sum(x, dtype='float32')\n",
        encoding="utf-8",
    )
    text = f'[tool.emberlint]\nselect = ["EMB102", "EMB4"]\nmatrix = "{path.name}"\n'
    (project / "pyproject.toml").write_text(text, encoding="utf-8")
    configuration.load.cache_clear()
    return main(["--no-cache", "--output-format", "concise", "."]), path.name


def test_a_matrix_is_used(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with_matrix(MATRIX, project)[0] == 1
    printed = capsys.readouterr()
    codes = [line.split()[1] for line in printed.out.splitlines()[:-1]]
    assert (codes, printed.err) == (["EMB102", "EMB401", "EMB404", "EMB401", "EMB402"], "")


@many
@given(data=st.data())
def test_a_matrix_of_any_shape_is_used_or_rejected(
    data: st.DataObject, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = data.draw(st.sampled_from(list(places(MATRIX))))
    status, name = run_with_matrix(replaced(MATRIX, place, data.draw(VALUES)), project)
    printed = capsys.readouterr().err
    assert "internal error" not in printed
    assert status == 1 or name in printed


def test_the_matrix_of_this_release_is_valid() -> None:
    table = files.read_json(matrix.path_of(Config()))
    assert fault(table, matrix.SHAPE, "matrix") == ""
