"""The layers of emberlint: each part imports only lower ones, and rules do not use the state of the pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import emberlint

ROOT = Path(emberlint.__file__).parent

# From the bottom to the top. Every import counts, including those in functions and those for type checkers.
LAYERS = (
    {"atomic"},
    {"codes", "findings", "output", "source"},
    {"config"},
    {"knowledge"},
    {"inference"},
    {"rewrite"},
    {"rules"},
    {"report"},
    {"lint"},
    {"trial"},
    {"commands"},
    {"cli", "flake8", "generate"},
    {"__main__"},
)


def module_name(path: Path) -> str:
    """Name of a file's module below ``emberlint``; empty for the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(nodes: Iterator[ast.AST] | list[ast.stmt]) -> Iterator[str]:
    """Modules below ``emberlint`` that some nodes import."""
    for node in nodes:
        assert not isinstance(node, ast.ImportFrom) or node.level == 0
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("emberlint.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "emberlint":
            base = node.module.partition(".")[2]
            for alias in node.names:
                full = f"{base}.{alias.name}" if base else alias.name
                yield full if full in MODULES else base


def layer(module: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if module.partition(".")[0] in names)


def test_every_part_has_a_layer() -> None:
    parts = {module.partition(".")[0] for module in MODULES} - {""}
    assert parts == set().union(*LAYERS)


def test_a_part_imports_only_lower_layers() -> None:
    wrong = []
    for module, path in MODULES.items():
        if not module:
            continue
        for other in imported(ast.walk(ast.parse(path.read_bytes()))):
            inside = module.partition(".")[0] == other.partition(".")[0]
            if other and not inside and layer(other) >= layer(module):
                wrong.append(f"{module} imports {other}")
    assert wrong == []


def test_there_are_no_circular_imports() -> None:
    graph = {
        module: set(imported(ast.parse(path.read_bytes()).body)) - {module, ""} for module, path in MODULES.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


@pytest.mark.parametrize("package", sorted({path.parent for path in MODULES.values()}), ids=lambda path: path.name)
def test_every_package_has_a_docstring(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_bytes())) or ""
    assert text.partition("\n")[0].endswith(".")


def test_rules_do_not_use_the_state_of_the_pass() -> None:
    rules = [path for module, path in MODULES.items() if module.startswith("rules.")]
    assert len(rules) > 50
    assert [path.name for path in rules if "inference.state" in path.read_text(encoding="utf-8")] == []
