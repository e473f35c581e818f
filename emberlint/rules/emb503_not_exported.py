"""An operation that the package `ops` does not export.

## What it does

In a package with `ops/` and `backend/<engine>/`, reports a public operation that `ops/__init__.py` does not import,
neither by name nor by `from .category import *` (limited to `__all__` of the category, if it has one).

## Why

Users and tools look for operations in one namespace, and do not find this one.

## Example

`mypackage/ops/__init__.py`:

```python
from mypackage.ops.math import add
```

`mypackage/ops/math.py`:

```python
def add(x, y, /): ...


def subtract(x, y, /): ...
```

`mypackage/backend/mlx/math.py`:

```python
from mlx.core import add, subtract
```

## Use instead

`mypackage/ops/__init__.py`:

```python
from mypackage.ops.math import add, subtract
```

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

There is no fix. If the operation is meant to be private, give its name a leading underscore.
"""

from __future__ import annotations

from emberlint.inference.project import Project
from emberlint.rules import Rule

RULE = Rule("EMB503", "not-exported", "an operation that the package `ops` does not export")


@RULE.project
def check(project: Project) -> None:
    """Report operations that the package does not import."""
    for package in project.packages:
        root = project.modules.get(package.ops)
        if root is None:
            continue
        for module, function in package.operations:
            category = module.name[len(package.ops) + 1 :]
            starred = module.name in root.stars and (module.exports is None or function.name in module.exports)
            if not starred and function.name not in root.names and category.partition(".")[0] not in root.names:
                full = f"{package.ops}.{function.name}"
                message = f"`{function.name}` is not exported as `{full}`; import it in `{root.where}`"
                project.report(RULE, module, function.span, message)
