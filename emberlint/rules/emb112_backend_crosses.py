"""A backend that imports another engine or another backend.

## What it does

Reports, in `backend/<engine>/`, an import of an engine that its layer does not allow, and of the backend of such an
engine. NumPy and its backend are allowed by default, because NumPy arrays are the host representation and the NumPy
backend is the reference.

## Why

A backend that depends on another one cannot be used without it, and tensors may move between engines unnoticed.

## Example

`mypackage/backend/mlx/linearalg.py`:

```python
import mlx.core as mx
import torch


def norm(x: mx.array) -> torch.Tensor:
    return torch.linalg.norm(torch.asarray(x))
```

## Use instead

`mypackage/backend/mlx/linearalg.py`:

```python
import mlx.core as mx


def norm(x: mx.array) -> mx.array:
    return mx.linalg.norm(x)
```

## Fix safety

There is no fix.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.config import ENGINES
from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule(
    "EMB112",
    "backend-crosses",
    "a backend that imports another engine or another backend",
    everywhere=True,
    files=configuration.is_backend,
)


@RULE.on(ast.Import, ast.ImportFrom)
def check(node: ast.Import | ast.ImportFrom, file: File) -> None:
    """Report imports of another engine or its backend."""
    if file.typing:
        return
    own = configuration.backend_of(file.where)
    allowed = file.allowed or frozenset()
    for alias, path in file.imports.names(node):
        root = path.partition(".")[0]
        other = configuration.backend_of(path.replace(".", "/"))
        relative = isinstance(node, ast.ImportFrom) and node.level > 0
        if root in ENGINES and root not in allowed and not relative:
            file.report(RULE, alias, f"the {own} backend imports `{root}`; a backend may import its own engine only")
        elif other and other != own and other not in allowed:
            file.report(RULE, alias, f"the {own} backend imports `{path}` from the {other} backend")
