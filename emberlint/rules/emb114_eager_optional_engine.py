"""An optional engine that is imported with the module.

## What it does

Reports an import of torch, MLX, JAX, TensorFlow or CuPy, or of the backend of one, that runs when a module is
imported which may import it but is not that engine's backend: the manager of the backends, a tool, a test helper. An
import in a function, in a `try` that handles its failure, or in a branch that is taken only where the engine is the
active backend is let be.

## Why

An engine is optional when the program runs without it. This import makes it required, and slow to start where it is
installed.

## Example

```python
# backend/__init__.py
import torch
```

## Use instead

```python
# backend/__init__.py
def load():
    import torch

    return torch
```

## Fix safety

There is no fix: the import must move to where the engine is used.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.config import ENGINES
from emberlint.inference.file import File
from emberlint.rules import Rule


def _is_no_backend(where: str) -> bool:
    return not configuration.is_backend(where)


RULE = Rule(
    "EMB114",
    "eager-optional-engine",
    "an optional engine that is imported with the module",
    everywhere=True,
    files=_is_no_backend,
)

_OPTIONAL = frozenset(ENGINES) - {"numpy"}


@RULE.on(ast.Import, ast.ImportFrom)
def check(node: ast.Import | ast.ImportFrom, file: File) -> None:
    """Eager imports of an optional engine outside of its backend."""
    if file.typing or file.guarded or file.function is not None:
        return
    if file.allowed is None and not configuration.is_manager(file.where):
        return
    for alias, path in file.imports.names(node):
        root = path.partition(".")[0]
        engine = root if root in _OPTIONAL else configuration.backend_of(path.replace(".", "/"))
        if engine in _OPTIONAL and engine not in file.active_backends():
            message = f"`{path}` is imported with the module, so {engine} is no longer optional"
            file.report(RULE, alias, f"{message}; import it inside of a function")
