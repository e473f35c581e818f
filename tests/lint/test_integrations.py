"""Integrations of emberlint: pre-commit and flake8."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from emberlint import config as configuration
from emberlint.commands.check import parser
from emberlint.flake8 import Plugin

ROOT = Path(__file__).parent.parent.parent


def test_flake8(tmp_path: Path) -> None:
    configuration.load.cache_clear()
    path = tmp_path / "m.py"
    text = "é = 1; import numpy as np\nx = np.pi  # noqa: EMB103\n"
    path.write_text(text, encoding="utf-8")
    found = list(Plugin(ast.parse(text), text.splitlines(keepends=True), str(path)).run())
    assert [(line, column, message[:6]) for line, column, message, _ in found] == [(1, 14, "EMB101")]
    assert list(Plugin(ast.parse("x = 1"), ["x = 1"]).run()) == []


def test_pre_commit_hooks_have_valid_options() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^- id: (.+)$", text, re.MULTILINE) == ["emberlint", "emberlint-fix"]
    entries = re.findall(r"^  entry: (.+)$", text, re.MULTILINE)
    assert len(entries) == 2
    for entry in entries:
        program, *options = entry.split()
        assert program == "emberlint"
        parser().parse_args([*options, "file.py"])
    assert text.count("  language: python\n") == text.count("  types: [python]\n") == 2
