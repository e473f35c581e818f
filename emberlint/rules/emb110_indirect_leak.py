"""An import that loads an engine through other modules.

## What it does

Follows the import statements of a frontend module that run at import time, and reports the one that leads out of the
frontend to a module that imports an engine, directly or through others. EMB101 and EMB109 report direct imports.
Imports that run only when the engine is the active backend (`if backend() == "torch":`) are not followed.

## Why

Importing a frontend should not load an engine: that is slow, and fails where the engine is not installed.

## Example

`pyproject.toml`:

```toml
[tool.emberlint.layers]
"mypackage/tools" = ["numpy"]
```

`mypackage/tools/plots.py`:

```python
import numpy as np


def bars(values):
    return np.histogram(values)[0]
```

`mypackage/nn/layers.py`:

```python
from mypackage.tools import plots


def show(weights):
    return plots.bars(weights)
```

## Use instead

`mypackage/tools/plots.py`:

```python
import numpy as np


def bars(values):
    return np.histogram(values)[0]
```

`mypackage/nn/layers.py`:

```python
def show(weights):
    from mypackage.tools import plots

    return plots.bars(weights)
```

## Fix safety

There is no fix. Import the module in the function that needs it, or split it.
"""

from __future__ import annotations

from emberlint import config as configuration
from emberlint.config import ENGINES
from emberlint.inference.project import Module, Project
from emberlint.rules import Rule

RULE = Rule("EMB110", "indirect-leak", "an import that loads an engine through other modules")

_ENGINES = frozenset({*ENGINES, "ml_dtypes"})


@RULE.project
def check(project: Project) -> None:
    """Report imports from a frontend module to one that leads to an engine."""
    known: dict[str, tuple[str, ...] | None] = {}
    for module in project.modules.values():
        if project.layer(module) is not None:
            continue
        for item in module.imports:
            target = project.target(item.path) if item.eager else None
            if target is None or target is module or project.layer(target) is None:
                continue
            if configuration.backend_of(target.where) and not _is_manager(module.where):
                continue
            chain = _chain(target, project, known)
            if chain is not None:
                message = f"importing `{target.name}` loads `{chain[-1]}`; import it in the function that needs it"
                project.report(RULE, module, item.span, message, why=(" -> ".join([module.name, *chain]),))


def _is_manager(where: str) -> bool:
    return where.endswith(("backend/__init__.py", "backends/__init__.py"))


def _chain(module: Module, project: Project, known: dict[str, tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Modules from this one to an engine, along imports that run; ``None`` if there is no path."""
    if module.name in known:
        return known[module.name]
    known[module.name] = None
    found: tuple[str, ...] | None = None
    for item in module.imports:
        root = item.path.partition(".")[0]
        if item.eager and root in _ENGINES:
            found = (module.name, root)
            break
    if found is None:
        for item in module.imports:
            target = project.target(item.path) if item.eager else None
            rest = _chain(target, project, known) if target is not None and target is not module else None
            if rest is not None:
                found = (module.name, *rest)
                break
    known[module.name] = found
    return found
