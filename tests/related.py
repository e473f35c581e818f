"""The tests that are related to a place in the source, as the steps that ``tests/mutants.py`` runs one by one.

A step is a test file, whole or with ``-k``. For a place in ``ember_ml`` or ``emberlint`` they are:

- Operations: a place in ``ops/X.py``, ``backend/ENGINE/X.py`` or ``gradients/X.py`` belongs to an operation if it is in
  the function of that name, in the entry of a table under that name, or in what one of these uses in the same file.
  The steps are the files whose test ids hold ``category.operation`` (``BY_OPERATION``), each with ``-k`` for these
  operations and, where the file is an engine's, that engine. NumPy is what the others are compared with, so its files
  select all engines. ``tests/test_X.py`` follows.
- Rules of the linter: ``emberlint/rules/embNNN_name.py`` has ``tests/lint/test_rules.py -k EMBNNN`` first.
- Everything: the test files that are named after the module or a package that it is in (``training/data.py``:
  ``test_data.py``, ``test_training.py``); those that import the module; and those that mention the class that the place
  is in, themselves or in a module of ``tests/`` that they import.
- What no name shows is in the table ``related`` of ``tests/mutants.toml``.

A step for the class around the place (``-k Adam``) goes before the file that it is in: files may take a minute.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from bugs import Bug, names, units

BY_OPERATION = tuple(f"tests/test_{name}.py" for name in ("contract", "oracles", "differential", "empty", "gradients"))
AT_MOST = 8
"""The number of operations of a place that are tested: a helper may serve a whole category."""


class Step(NamedTuple):
    """A test file, and what selects some of its tests, if not all are run."""

    file: str
    selected: str = ""

    def __str__(self) -> str:
        return f'{self.file} -k "{self.selected}"' if self.selected else self.file


class Related:
    """The relation between the source and the tests of one tree."""

    def __init__(self, root: Path, table: list[dict[str, list[str]]]) -> None:
        self.root = root
        self.table = table
        self.tests = {
            str(path.relative_to(root)): path.read_text(encoding="utf-8")
            for path in sorted((root / "tests").rglob("test_*.py"))
            if not {"legacy", "fixtures"} & set(path.parts)
        }
        helpers = {
            path.stem: path.read_text(encoding="utf-8")
            for path in sorted((root / "tests").rglob("*.py"))
            if path.stem.isidentifier() and not path.stem.startswith("test_")
        }
        self.imported = {file: _imported(text) for file, text in self.tests.items()}
        self.mentioned = {
            file: _words(text).union(*(_words(helpers[name]) for name in helpers if name in self.imported[file]))
            for file, text in self.tests.items()
        }

    def steps(self, bug: Bug) -> list[Step]:
        """The steps for a bug."""
        found: dict[Step, None] = {}
        for step in (*self._by_operation(bug), *self._by_rule(bug), *self._by_name(bug), *self._by_table(bug)):
            if step.file in self.tests:
                found[step] = None
        return list(found)

    def _by_operation(self, bug: Bug) -> Iterable[Step]:
        match = re.fullmatch(r"ember_ml/(ops|gradients|backend/(\w+))/(\w+)\.py", bug.path)
        if match is None:
            return []
        engine, category = match[2], match[3]
        known = operations(self.root, category)
        found = [name for name in owners(self.root, bug.path, bug.unit) if name in known]
        if not found:
            return []
        chosen = " or ".join(f"{category}.{name}] or {category}.{name}-" for name in found[:AT_MOST])
        selected = f"{engine} and ({chosen})" if engine not in (None, "numpy") else chosen
        return [Step(file, selected) for file in BY_OPERATION]

    def _by_rule(self, bug: Bug) -> Iterable[Step]:
        match = re.fullmatch(r"emberlint/rules/(emb\d+)_\w+\.py", bug.path)
        return [Step("tests/lint/test_rules.py", match[1].upper())] if match else []

    def _by_name(self, bug: Bug) -> Iterable[Step]:
        parts = bug.path.removesuffix(".py").removesuffix("/__init__").split("/")
        module = ".".join(parts)
        folder = "tests/lint/" if parts[0] == "emberlint" else "tests/"
        is_class = bug.unit.strip("_")[:1].isupper() and not bug.unit.isupper()
        for file, imported in self.imported.items():
            named = file.startswith(folder) and Path(file).stem.removeprefix("test_") in parts[1:]
            shown = is_class and bug.unit in self.mentioned[file]
            if file not in BY_OPERATION and (named or (len(parts) > 1 and module in imported) or shown):
                if is_class:
                    yield Step(file, bug.unit.strip("_"))
                yield Step(file)

    def _by_table(self, bug: Bug) -> Iterable[Step]:
        for row in self.table:
            if any(PurePosixPath(bug.path).match(pattern) for pattern in row["files"]):
                for text in row["tests"]:
                    file, _, selected = text.partition(" -k ")
                    yield from (Step(name, selected) for name in self.tests if PurePosixPath(name).match(file))


def operations(root: Path, category: str) -> frozenset[str]:
    """The names of the operations of a category, as ``ops`` declares them."""
    path = root / "ember_ml" / "ops" / f"{category}.py"
    if not path.is_file():
        return frozenset()
    return frozenset(
        node.name
        for node in _parsed(path).body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "op" for mark in node.decorator_list)
    )


def owners(root: Path, path: str, unit: str) -> list[str]:
    """A unit of a file, and those that use it, directly or not, nearest first."""
    users = _users(root / path)
    found = [unit]
    for name in found:
        found += [user for user in users.get(name, ()) if user not in found]
    return found


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


@cache
def _users(path: Path) -> dict[str, list[str]]:
    """Name to the units of the file that read it."""
    found: dict[str, list[str]] = {}
    for unit, node in units(_parsed(path)):
        for name in names(node):
            if name != unit:
                found.setdefault(name, []).append(unit)
    return found


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _imported(text: str) -> set[str]:
    """The modules that a file imports, and the names that it takes from them, in full."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return found
