"""An operation that cannot be reached from the package of operations.

## What it does

In a package with `ops/` and `backend/<engine>/`: reports a public operation that `ops/__init__.py` does not bind: not
by name, not by `from .category import *` (and `__all__` of the category, where it has one).

## Why

Users look for operations in one place. One that is not there does not exist for them, nor for the tools that read the
namespace.

## Example

```python
# ops/__init__.py, beside ops/math.py and ops/stats.py
from mypackage.ops.math import *
```

## Use instead

```python
# ops/__init__.py
from mypackage.ops.math import *
from mypackage.ops.stats import *
```

## Fix safety

There is no fix: the name may be private on purpose, which a leading underscore says.
"""

from __future__ import annotations

from emberlint.inference.project import Project
from emberlint.rules import Rule

RULE = Rule("EMB503", "not-exported", "an operation that cannot be reached from the package of operations")


@RULE.project
def check(project: Project) -> None:
    """Operations that the package does not bind."""
    for package in project.packages:
        roof = project.modules.get(package.ops)
        if roof is None:
            continue
        for module, function in package.operations:
            category = module.name[len(package.ops) + 1 :]
            starred = module.name in roof.stars and (module.exports is None or function.name in module.exports)
            if not starred and function.name not in roof.names and category.partition(".")[0] not in roof.names:
                full = f"{package.ops}.{function.name}"
                message = f"`{function.name}` is not reachable as `{full}`; import it in `{roof.where}`"
                project.report(RULE, module, function.span, message)
