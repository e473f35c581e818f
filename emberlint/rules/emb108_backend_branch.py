"""A branch on the name of the active backend.

## What it does

Reports a comparison of `get_backend()` (or of a tensor's `.backend`) with an engine's name in a frontend, and a
`match` on it.

## Why

Each such branch is a program of its own, tested only where that engine is. A difference between engines belongs under
one name in `backend/<engine>/`, where the dispatcher finds it.

## Example

```python
if get_backend() == "torch":
    y = ops.reshape(x, (-1,))
else:
    y = ops.ravel(x)
```

## Use instead

```python
y = ops.ravel(x)
```

## Fix safety

There is no fix: which branch is the portable one is not known.
"""

from __future__ import annotations

import ast

from emberlint import kinds
from emberlint.file import File
from emberlint.rules import Rule

RULE = Rule("EMB108", "backend-branch", "a branch on the name of the active backend")


@RULE.on(ast.Compare)
def check(node: ast.Compare, file: File) -> None:
    """Comparisons of a backend's name with that of an engine."""
    if file.allowed is not None:
        return
    sides = [node.left, *node.comparators]
    if any(_is_name(side, file) for side in sides) and any(_has_engine(side) for side in sides):
        _report(node, file)


@RULE.on(ast.Match)
def check_match(node: ast.Match, file: File) -> None:
    """Patterns that a backend's name is matched with."""
    if file.allowed is None and _is_name(node.subject, file):
        _report(node.subject, file)


def _report(node: ast.expr, file: File) -> None:
    text = " ".join(file.text(node).split())
    file.report(
        RULE, node, f"`{text}` branches on the backend's name; put the difference under one name in `backend/<engine>/`"
    )


def _is_name(node: ast.expr, file: File) -> bool:
    value = file.value(node)
    if value is not None:
        return value.path == "get_backend"
    if isinstance(node, ast.Attribute) and node.attr == "backend":
        owner = file.value(node.value)
        return owner is not None and owner.is_array
    if isinstance(node, ast.Call):
        called = node.func
        return isinstance(called, ast.Name) and called.id == "get_backend"
    return False


def _has_engine(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(_has_engine(element) for element in node.elts)
    return isinstance(node, ast.Constant) and node.value in kinds.ENGINES
