"""What the tests themselves keep to."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(path for path in TESTS.rglob("*.py") if not {"legacy", "fixtures"}.intersection(path.parts))

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> list[Function]:
    """The functions of a module and the methods of its classes; not those within functions."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [node for body in (tree, *classes) for node in body.body if isinstance(node, Function)]


def asserts(function: Function, helpers: set[str]) -> bool:
    """Whether it contains an assertion, or calls a helper that does."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            *owner, name = ast.unparse(node.func).split(".")
            # ``expect`` is the assertion of ``ember_ml.testing``.
            if name == "expect" or name.startswith("assert_") or (owner == ["pytest"] and name in ("raises", "warns")):
                return True
            if owner in ([], ["self"]) and name in helpers:
                return True
    return False


def without_assertion(trees: dict[str, ast.Module]) -> list[str]:
    """The tests of some modules that contain no assertion and call nothing in these modules that does."""
    found: dict[str, set[str]] = {module: set() for module in trees}
    while True:
        # What a module imports from others is seen under the name that it has there.
        for module, tree in trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module in found:
                    names = found[node.module]
                    found[module] |= {alias.asname or alias.name for alias in node.names if alias.name in names}
        more = {
            (module, f.name) for module, tree in trees.items() for f in functions(tree) if asserts(f, found[module])
        }
        if all(name in found[module] for module, name in more):
            break
        for module, name in more:
            found[module].add(name)
    tests = ((m, f.name) for m, tree in trees.items() for f in functions(tree) if f.name.startswith("test_"))
    return [f"{module}.{name}" for module, name in tests if name not in found[module]]


def test_every_test_asserts_something() -> None:
    assert not without_assertion({path.stem: ast.parse(path.read_text()) for path in FILES})


HELPERS = """
def check(): assert run()
def run(): return 1
"""


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("def test_a(): run()", True),
        ("def test_a(): assert run()", False),
        ("def test_a(): pytest.raises(ValueError, run)", False),
        ("def test_a(): np.testing.assert_allclose(run(), 1)", False),
        ("def check(): assert run()\ndef test_a(): check()", False),
        ("def check(): run()\ndef test_a(): check()", True),
        ("def check(): assert run()\ndef both(): check()\ndef test_a(): both()", False),
        ("def check(): assert run()\ndef test_a(): other.check()", True),
        ("from helpers import check as look\ndef test_a(): look()", False),
        ("from helpers import run\ndef test_a(): run()", True),
        ("class TestB:\n def check(self): assert run()\n def test_a(self): self.check()", False),
        ("class TestB:\n def test_a(self): run()", True),
    ],
)
def test_a_test_without_assertion_is_found(source: str, is_found: bool) -> None:
    trees = {"helpers": ast.parse(HELPERS), "module": ast.parse(source)}
    assert without_assertion(trees) == (["module.test_a"] if is_found else [])
