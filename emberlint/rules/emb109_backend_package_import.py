"""A frontend that imports the backend of one engine.

## What it does

Reports an import of `backend.<engine>` (or of something in it) from a file outside of `backend/`. An import that runs
only when the engine is the active backend is not reported; EMB108 reports the branch.

## Why

Dispatch chooses the backend. A frontend that imports one directly runs on that backend only, and loads its engine at
import time.

## Example

```python
from ember_ml.backend.numpy import math


def decay(x):
    return math.exp(-x)
```

## Use instead

```python
from ember_ml import ops


def decay(x):
    return ops.exp(-x)
```

## Fix safety

There is no fix: make the function an operation, or move it to the backend.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.inference.file import File
from emberlint.rules import Rule


def _is_outside(where: str) -> bool:
    folders = where.split("/")[:-1]
    return "backend" not in folders and "backends" not in folders


RULE = Rule("EMB109", "backend-package-import", "a frontend that imports the backend of one engine", files=_is_outside)


@RULE.on(ast.Import, ast.ImportFrom)
def check(node: ast.Import | ast.ImportFrom, file: File) -> None:
    """Report imports of ``backend.<engine>``."""
    if file.allowed is not None or file.typing:
        return
    if isinstance(node, ast.ImportFrom) and not node.level and "backend" not in (node.module or ""):
        return
    for alias, path in file.imports.names(node):
        engine = configuration.backend_of(path.replace(".", "/")) if "backend" in path else ""
        if engine and engine not in file.active_backends():
            file.report(
                RULE,
                alias,
                f"`{path}` belongs to the {engine} backend; import the operation, which uses the active backend",
            )
