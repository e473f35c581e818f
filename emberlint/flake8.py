"""The flake8 plugin: emberlint's findings among those of flake8, under the code ``EMB``.

Settings come from ``[tool.emberlint]``; rules about a project as a whole need the program itself.
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
    """What flake8 calls for each file: it gives the tree, the lines and the name, and takes place and text."""

    name = "emberlint"
    version = __version__

    def __init__(self, tree: ast.AST, lines: list[str], filename: str = "stdin") -> None:
        self.lines = lines
        self.path = filename

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """The findings: line from 1, column in characters from 0, code and message."""
        known = os.path.exists(self.path)
        config = configuration.load(os.path.dirname(self.path) or "." if known else ".")
        module, package = module_of(self.path) if known else ("", "")
        data = "".join(self.lines).encode()
        for finding in linter.lint(data, self.path, config, module=module, package=package).findings:
            if finding.code == "EMB001":
                continue  # flake8 says so itself
            before = self.lines[finding.line - 1].encode()[: finding.column] if finding.line <= len(self.lines) else b""
            column = len(before.decode(errors="replace"))
            yield finding.line, column, f"{finding.code} {finding.message}", type(self)
