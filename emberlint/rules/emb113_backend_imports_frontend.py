"""A backend that imports the frontend at import time.

## What it does

Reports, in `backend/<engine>/`, an import of the same package's `ops` or `nn` at module level. Imports in a function
are not reported, nor are classes (`EigResult`), because the types of results are part of a backend's contract.

## Why

The frontend depends on the backends. An import in the other direction is circular, and works or fails depending on the
order of imports.

## Example

`mypackage/ops/__init__.py`:

```python
from ember_ml.ops import max, min
```

`mypackage/backend/torch/stats.py`:

```python
import torch
from mypackage import ops


def spread(x: torch.Tensor) -> torch.Tensor:
    return ops.max(x) - ops.min(x)
```

## Use instead

`mypackage/backend/torch/stats.py`:

```python
import torch


def spread(x: torch.Tensor) -> torch.Tensor:
    return torch.max(x) - torch.min(x)
```

## Fix safety

There is no fix.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule(
    "EMB113",
    "backend-imports-frontend",
    "a backend that imports the frontend at import time",
    everywhere=True,
    files=configuration.is_backend,
)


@RULE.on(ast.Import, ast.ImportFrom)
def check(node: ast.Import | ast.ImportFrom, file: File) -> None:
    """Report module-level imports of ``ops`` or ``nn`` of the same package."""
    if file.typing or file.function is not None:
        return
    own = configuration.backend_of(file.where)
    parts = file.module.split(".")
    place = next((i for i, part in enumerate(parts) if part in ("backend", "backends")), 0)
    package = ".".join(parts[:place])
    if not package:
        return
    for alias, path in file.imports.names(node):
        for layer in ("ops", "nn"):
            frontend = f"{package}.{layer}"
            if (path == frontend or path.startswith(frontend + ".")) and not alias.name[:1].isupper():
                message = f"the {own} backend imports `{path}`, which depends on it"
                file.report(RULE, alias, f"{message}; import it in the function that needs it")
