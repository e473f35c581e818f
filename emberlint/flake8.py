"""The flake8 plugin, which reports emberlint's findings under the code ``EMB``.

Settings come from ``[tool.emberlint]``. Rules about a project as a whole run only in the program ``emberlint``.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from emberlint import __version__
from emberlint import config as configuration
from emberlint.lint import linter
from emberlint.source.modules import module_of


class Plugin:
    """Interface that flake8 calls for each file."""

    name = "emberlint"
    version = __version__

    def __init__(self, tree: ast.AST, lines: list[str], filename: str = "stdin") -> None:
        self.lines = lines
        self.path = filename

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """Findings as line (from 1), column (in characters, from 0), text and plugin type."""
        exists = os.path.exists(self.path)
        config = configuration.load(os.path.dirname(self.path) or "." if exists else ".")
        module, package = module_of(self.path) if exists else ("", "")
        data = "".join(self.lines).encode()
        for finding in linter.lint(data, self.path, config, module=module, package=package).findings:
            if finding.code == "EMB001":
                continue  # flake8 reports syntax errors itself
            before = self.lines[finding.line - 1].encode()[: finding.column] if finding.line <= len(self.lines) else b""
            column = len(before.decode(errors="replace"))
            yield finding.line, column, f"{finding.code} {finding.message}", type(self)
