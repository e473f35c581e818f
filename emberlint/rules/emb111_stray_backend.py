"""A folder of engine code outside of ``backend/``.

## What it does

Reports a folder of a package that is named after an engine, contains modules that import that engine, and is not in
`backend/` (or `backends/`), such as `ops/torch/`.

## Why

Code for one engine belongs in one place, so that everything else is known to be frontend. `ember-ml ops migrate` moves
such folders.

## Example

`mypackage/ops/torch/math.py`:

```python
import torch


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.add(x, y)
```

## Use instead

`mypackage/backend/torch/math.py`:

```python
import torch


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.add(x, y)
```

## Fix safety

There is no fix here; `ember-ml ops plan` shows the move, `ember-ml ops migrate` makes it.
"""

from __future__ import annotations

from emberlint import config as configuration
from emberlint.config import ENGINES
from emberlint.inference.project import Module, Project
from emberlint.rules import Rule

RULE = Rule("EMB111", "stray-backend", "a folder of engine code outside of `backend/`")


@RULE.project
def check(project: Project) -> None:
    """Report each folder with an engine's name once."""
    folders: dict[tuple[str, str], list[Module]] = {}
    for module in project.modules.values():
        parts = module.where.split("/")
        if "." not in module.name or configuration.backend_of(module.where):
            continue
        packages = set(module.name.split("."))
        for i, part in enumerate(parts[:-1]):
            if part in ENGINES and part in packages:
                folders.setdefault(("/".join(parts[: i + 1]), part), []).append(module)
                break
    for (folder, engine), modules in sorted(folders.items()):
        if any(item.path.partition(".")[0] == engine for module in modules for item in module.imports):
            first = min(modules, key=lambda module: module.where)
            inside = folder.rpartition("/")[0].rpartition("/")[0] or "."
            belongs = f"it belongs in `backend/{engine}/` of `{inside}`"
            message = f"`{folder}/` holds code for {engine}; {belongs} (`ember-ml ops plan` shows the move)"
            project.report(RULE, first, (1, 0, 1, 0), message)
