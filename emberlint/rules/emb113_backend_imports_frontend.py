"""A backend that imports the frontend when it is imported.

## What it does

Reports, in `backend/<engine>/`, an import of the same package's `ops` or `nn` that runs with the module. Inside of a
function it is let be, and so are classes (`EigResult`): the types of results are a part of the contract that a
backend answers with.

## Why

The frontend stands on the backends. An import back is a circle, which works or fails by the order in which modules
are loaded.

## Example

```python
# mypackage/backend/torch/stats.py
from mypackage import ops
```

## Use instead

```python
# mypackage/backend/torch/stats.py
import torch
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
    "a backend that imports the frontend when it is imported",
    everywhere=True,
    files=configuration.is_backend,
)


@RULE.on(ast.Import, ast.ImportFrom)
def check(node: ast.Import | ast.ImportFrom, file: File) -> None:
    """Eager imports of `ops` or `nn` of the same package."""
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
                message = f"the {own} backend imports `{path}`, which stands on it"
                file.report(RULE, alias, f"{message}; import it inside of the function that needs it")
