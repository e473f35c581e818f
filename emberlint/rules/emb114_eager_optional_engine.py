"""A module-level import of an optional engine.

## What it does

Reports a module-level import of torch, MLX, JAX, TensorFlow or CuPy, or of the backend of one of them, in a module that
may import the engine but is not code of that engine: the module that loads backends, or a tool or test helper to which
`layers` grants several engines. A file to which `layers` grants one of these engines alone is code of that engine. An
import in a function, in a `try` that handles its failure, or in a branch that runs only when the engine is the active
backend is not reported.

## Why

The import makes the engine a requirement of the program, and slows down its start where the engine is installed.

## Example

`mypackage/backend/torch/math.py`:

```python
from torch import add
```

`mypackage/backend/__init__.py`:

```python
from mypackage.backend.torch import math


def load_add():
    return math.add
```

## Use instead

`mypackage/backend/torch/math.py`:

```python
from torch import add
```

`mypackage/backend/__init__.py`:

```python
def load_add():
    from mypackage.backend.torch import math

    return math.add
```

## Fix safety

There is no fix: move the import to the function that uses the engine.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.config import ENGINES
from emberlint.inference.file import File
from emberlint.rules import Rule


def _is_not_backend(where: str) -> bool:
    return not configuration.is_backend(where)


RULE = Rule(
    "EMB114",
    "eager-optional-engine",
    "a module-level import of an optional engine",
    everywhere=True,
    files=_is_not_backend,
)

_OPTIONAL = frozenset(ENGINES) - {"numpy"}


@RULE.on(ast.Import, ast.ImportFrom)
def check(node: ast.Import | ast.ImportFrom, file: File) -> None:
    """Report module-level imports of an optional engine outside of its backend."""
    if file.typing or file.guarded or file.function is not None:
        return
    if file.allowed is None and not configuration.is_manager(file.where):
        return
    granted = _OPTIONAL & (file.allowed or frozenset())
    for alias, path in file.imports.names(node):
        root = path.partition(".")[0]
        engine = root if root in _OPTIONAL else configuration.backend_of(path.replace(".", "/"))
        if engine in _OPTIONAL - file.active_backends() and {engine} != granted:
            message = f"`{path}` is imported at module level, which makes {engine} a requirement"
            file.report(RULE, alias, f"{message}; import it in a function")
