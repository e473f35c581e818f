"""``[tool.emberlint]``: valid settings, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberlint import config as configuration
from emberlint.cli import main
from emberlint.codes import chosen_codes, optional_codes
from emberlint.config import Config, ConfigError
from emberlint.lint import linter
from emberlint.lint.selection import selected


def written(folder: Path, text: str) -> Config:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    configuration.load.cache_clear()
    return configuration.load(str(folder))


def test_all_keys(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        """
        [tool.emberlint]
        select = ["EMB1", "EMB203"]
        ignore = ["EMB110"]
        targets = ["torch", "mlx"]
        target = "array-api"
        namespace = "shop.ops"
        matrix = "matrix.json"
        baseline = "known.json"
        exclude = ["shop/generated"]

        [tool.emberlint.layers]
        "shop/backend/torch" = ["torch"]

        [tool.emberlint.per-file-ignores]
        "tests/*" = ["EMB2"]
        """,
    )
    assert config == Config(
        root=str(tmp_path),
        select=("EMB1", "EMB203"),
        ignore=("EMB110",),
        targets=("torch", "mlx"),
        target="array-api",
        namespace="shop.ops",
        layers=(("shop/backend/torch", ("torch",)),),
        matrix="matrix.json",
        baseline="known.json",
        exclude=("shop/generated",),
        per_file_ignores=(("tests/*", ("EMB2",)),),
    )
    assert "EMB110" not in selected(config)
    assert "EMB203" in selected(config)
    assert "EMB201" not in selected(config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.emberlint]\nselct = []", "unknown key `selct`"),
        ("[tool.emberlint]\nselect = 'EMB1'", "must be a list of strings"),
        ("[tool.emberlint]\nselect = [1]", "must be a list of strings"),
        ("[tool.emberlint]\nselect = ['EMB9']", "must name rules, got 'EMB9'"),
        ("[tool.emberlint]\ntargets = ['abacus']", "`targets` must be engines (numpy"),
        ("[tool.emberlint]\ntarget = 'keras'", "ember or array-api"),
        ("[tool.emberlint]\nlayers = []", "must be a table"),
        ("[tool.emberlint]\nper-file-ignores = {'a' = 'EMB1'}", "must be a list of strings"),
        ("[tool.emberlint\n", "pyproject.toml"),
    ],
)
def test_configuration_errors_are_status_two(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(ConfigError):
        written(tmp_path, text)
    configuration.load.cache_clear()
    assert main([str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_the_nearest_table_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'a'\n", encoding="utf-8")
    written(tmp_path, "[tool.emberlint]\nselect = ['EMB1']\n")
    assert configuration.load(str(inner)).root == str(tmp_path)
    assert configuration.load(str(inner)).select == ("EMB1",)


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a/b.py", "a", True),
        ("a/b.py", "a/*.py", True),
        ("a/c/b.py", "a/*.py", False),
        ("a/c/b.py", "a/**/*.py", True),
        ("a/b.py", "a/**/*.py", True),
        ("ab/b.py", "a", False),
        ("a/b.py", "**/b.py", True),
        ("b.py", "**/b.py", True),
        ("a.b.py", "a?b.py", True),
    ],
)
def test_patterns(path: str, pattern: str, fits: bool) -> None:
    assert configuration.matches(path, pattern) is fits


def test_layers() -> None:
    config = Config(layers=(("shop/host/**", ("numpy",)),))
    assert configuration.layer("shop/ops/math.py", config) is None
    assert configuration.layer("shop/host/a.py", config) == {"numpy"}
    assert configuration.layer("shop/backend/torch/math.py", config) == {"torch", "numpy", "ml_dtypes"}
    assert configuration.layer("shop/backend/mlx.py", config) == {"mlx", "numpy", "ml_dtypes"}
    assert configuration.layer("shop/torch/backend/x.py", config) is None


def test_a_layer_may_import_only_its_own_engines() -> None:
    """EMB112 reports a backend that imports another engine."""
    config = Config(layers=(("shop/host/**", ("numpy",)),), select=("EMB101",))
    for path, found in (("shop/host/a.py", 1), ("shop/ops/a.py", 2), ("shop/backend/torch/a.py", 0)):
        assert len(linter.lint(b"import mlx\nimport numpy\n", path, config).findings) == found


def test_optional_rules_are_selected_by_full_code() -> None:
    assert optional_codes() <= set(chosen_codes(("ALL",), ()))
    assert not optional_codes() & set(chosen_codes(("EMB",), ()))
    for code in optional_codes():
        assert code in chosen_codes((code,), ())
    assert chosen_codes(("EMB1",), ("EMB1",)) == []


def test_without_a_table_the_root_is_the_project_or_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "shop" / "backend" / "torch"
    inner.mkdir(parents=True)
    configuration.load.cache_clear()
    assert configuration.load(str(inner)).root == str(inner)
    monkeypatch.chdir(tmp_path)
    configuration.load.cache_clear()
    assert configuration.load(str(inner)).root == str(tmp_path)
    (tmp_path / "shop" / "pyproject.toml").write_text("[project]\nname = 'shop'\n", encoding="utf-8")
    configuration.load.cache_clear()
    assert configuration.load(str(inner)).root == str(tmp_path / "shop")
