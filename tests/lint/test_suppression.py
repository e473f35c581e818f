"""Comments that suppress findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberlint.config import Config
from emberlint.lint import linter, runner

CONFIG = Config(select=("EMB0", "EMB101"))


def codes(text: str, config: Config = CONFIG) -> list[str]:
    return [finding.code for finding in linter.lint(text.encode(), "m.py", config).findings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import numpy\n", ["EMB101"]),
        ("import numpy  # noqa\n", []),
        ("import numpy  # NOQA : EMB101\n", []),
        ("import numpy  # noqa: F401,EMB101\n", []),
        ("import numpy  # noqa: F401\n", ["EMB101"]),
        ("import numpy  # emberlint: ignore[EMB101] the reference\n", []),
        ("import numpy  # emberlint: ignore[EMB102]\n", ["EMB101"]),
        ("import numpy  # emberlint: ignore\n", ["EMB101", "EMB003"]),
        ("import numpy  # emberlint: ignore[] why\n", ["EMB101", "EMB003"]),
        ("import numpy  # emberlint: ignores\n", ["EMB101"]),
        ("x = 1  # emberlint: ignore\n", []),
        ("from numpy import (  # noqa: EMB101\n    pi,\n)\n", ["EMB101", "EMB002"]),
        ("from numpy import (\n    pi,  # noqa: EMB101\n)\n", []),
        ("x = '# noqa: EMB101'\nimport numpy\n", ["EMB101"]),
        ("x = '''\n# noqa: EMB101\n'''\n", []),
        ("import numpy  # noqa: EMB999\n", ["EMB101", "EMB003"]),
        ("x = 1  # noqa: EMB101\n", ["EMB002"]),
        ("x = 1  # noqa\n", []),
        ("x = 1  # noqa: EMB203\n", []),
        ("x = (  # noqa: EMB001\n", ["EMB001"]),
    ],
)
def test_comments(text: str, expected: list[str]) -> None:
    assert sorted(codes(text)) == sorted(expected)


def test_per_file_ignores() -> None:
    config = CONFIG._replace(per_file_ignores=(("tests/**", ("EMB1",)), ("m.py", ("EMB101",))))
    assert codes("import numpy\n", config) == []
    assert codes("import numpy\n", CONFIG._replace(per_file_ignores=(("other/*", ("EMB1",)),))) == ["EMB101"]


def test_project_rules_are_suppressed_where_they_report(tmp_path: Path) -> None:
    ops, torch = tmp_path / "shop" / "ops", tmp_path / "shop" / "backend" / "torch"
    for folder in (ops, torch):
        folder.mkdir(parents=True)
        for part in (folder, folder.parent):
            (part / "__init__.py").touch()
    (torch / "math.py").write_text("from torch import add\n", encoding="utf-8")
    (ops / "__init__.py").write_text("from shop.ops.math import *\n", encoding="utf-8")
    path = ops / "math.py"
    config = Config(root=str(tmp_path), select=("EMB002", "EMB501"))

    def found(text: str) -> tuple[list[str], int]:
        path.write_text(text, encoding="utf-8")
        done = runner.run([str(tmp_path)], config, cached=False)
        return [finding.code for finding in done.findings], done.suppressed

    assert found("def add(x, /): ...\n") == ([], 0)
    assert found("def subtract(x, /): ...\n") == (["EMB501"], 0)
    assert found("def subtract(x, /): ...  # noqa: EMB501\n") == ([], 1)
    assert found("def add(x, /): ...  # noqa: EMB501\n") == (["EMB002"], 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # noqa: EMB101\n", "x = 1\n"),
        ("x = 1  # noqa: EMB101 # the reason\n", "x = 1  # the reason\n"),
        ("x = 1  # noqa: EMB101# the reason\n", "x = 1  # the reason\n"),
        ("# noqa: EMB101\nx = 1\n", "x = 1\n"),
    ],
)
def test_the_fix_of_an_unused_suppression_keeps_other_comments(before: str, after: str) -> None:
    (finding,) = linter.lint(before.encode(), "m.py", CONFIG).findings
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    assert before[: edit.start] + edit.text + before[edit.end :] == after


def test_a_comment_that_is_no_text() -> None:
    """Python 3.11 parses such a file, but its tokenizer stops there; 3.13 reads on; 3.14 does not parse it."""
    data = b"import numpy  # noqa: EMB101\nx = 1\n# caf\xe9\nimport numpy  # noqa: EMB101\n"
    found = [(finding.code, finding.line) for finding in linter.lint(data, "m.py", CONFIG).findings]
    assert found in ([("EMB101", 4)], [], [("EMB001", 3)])
