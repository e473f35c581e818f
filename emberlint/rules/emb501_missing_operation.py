"""An operation that a backend does not provide.

## What it does

In a package with `ops/` and `backend/<engine>/`, reports an operation whose body is only `...`, which every backend
must provide, and which a backend's file of the same name does not define.

## Why

It fails when it is called, on that engine only.

## Example

`mypackage/ops/math.py`:

```python
def add(x, y, /): ...


def subtract(x, y, /): ...
```

`mypackage/backend/mlx/math.py`:

```python
from mlx.core import add
```

## Use instead

`mypackage/ops/math.py`:

```python
def add(x, y, /): ...


def subtract(x, y, /): ...
```

`mypackage/backend/mlx/math.py`:

```python
from mlx.core import add, subtract
```

## Fix safety

There is no fix. Give the operation a body, which every backend can use, or define the function in the backend.
"""

from __future__ import annotations

from emberlint import config as configuration
from emberlint.inference.project import Project
from emberlint.rules import Rule

RULE = Rule("EMB501", "missing-operation", "an operation that a backend does not provide")


@RULE.project
def check(project: Project) -> None:
    """Report operations without a body that a backend does not define."""
    for package in project.packages:
        for module, function in package.operations:
            if not function.bare:
                continue
            for backend in package.backends:
                provider = package.provider(backend, module)
                if provider is not None and (function.name in provider.names or provider.stars):
                    continue
                engine = configuration.backend_of(backend.replace(".", "/"))
                where = (
                    f"`{provider.where}`"
                    if provider is not None
                    else f"there is no `{backend}{module.name[len(package.ops) :]}`"
                )
                message = f"`{function.name}` has no body, and the {engine} backend does not provide it ({where})"
                project.report(RULE, module, function.span, message)
