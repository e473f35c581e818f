"""An import of an engine by its name in a string.

## What it does

Reports `importlib.import_module("torch")`, `__import__("numpy")` and imports of a backend by a string or f-string in a
frontend.

## Why

The rules about import statements do not see it. Only `backend/__init__.py` chooses and loads a backend.

## Example

```python
import importlib

engine = importlib.import_module("numpy")


def rectified(x):
    return engine.maximum(x, 0)
```

## Use instead

```python
from ember_ml import ops


def rectified(x):
    return ops.maximum(x, 0)
```

## Fix safety

There is no fix: the code that uses the module must be written with operations.
"""

from __future__ import annotations

import ast
from itertools import pairwise

from emberlint.config import ENGINES
from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule("EMB107", "dynamic-import", "an import of an engine by its name in a string")


_IMPORTS = frozenset({"__import__", "importlib.import_module"})


@RULE.on(ast.Call, named=_IMPORTS.__contains__)
def check(node: ast.Call, file: File) -> None:
    """Report calls that import by name."""
    if not node.args or file.allowed is not None or _is_manager(file.where):
        return
    if not (file.is_builtin(node.func, "__import__") or file.path(node.func) == "importlib.import_module"):
        return
    text = _text(node.args[0])
    parts = text.split(".")
    if parts[0] in ENGINES or any(a in ("backend", "backends") and b for a, b in pairwise(parts)):
        shown = " ".join(file.text(node).split())
        file.report(RULE, node, f"`{shown}` imports an engine by name; use `{file.config.namespace}`")


def _text(node: ast.expr) -> str:
    """The text of a string expression, with ``*`` for each unknown part."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "*" for part in node.values)  # type: ignore[misc]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "*"


def _is_manager(where: str) -> bool:
    """Whether a file is the module that loads backends."""
    return where.endswith(("backend/__init__.py", "backends/__init__.py"))
