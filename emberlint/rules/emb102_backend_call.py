"""A call of an engine's function for which there is an operation.

## What it does

Reports `np.sum(x)`, `torch.cat(parts)`, `mx.where(...)` in a frontend, and names the operation that stands for it.
Calls on Python numbers and shapes are EMB104's.

## Why

The engine's function computes on that engine alone, with its own defaults, dtypes and errors. The operation computes
wherever its tensors live, by one law.

## Example

```python
import numpy as np


def scaled(x):
    return x / np.max(x, axis=0, keepdims=True)
```

## Use instead

```python
from ember_ml import ops


def scaled(x):
    return x / ops.max(x, axis=0, keepdims=True)
```

## Fix safety

Safe where the measured matrix establishes that function and operation give the same values, dtypes, shapes and errors
for these kinds of argument and these keywords; unsafe elsewhere, mostly because of default dtypes (`np.zeros(3)` is
float64, `ops.zeros(3)` is float32). No fix where an argument has no place in the operation (`out=`, `where=`) or the
name means something else there.
"""

from __future__ import annotations

import ast

from emberlint import catalogue, kinds
from emberlint.file import File
from emberlint.findings import SAFE, SUGGESTION, Edit, Fix
from emberlint.kinds import SCALAR
from emberlint.rewrite import operation_for, rewritten
from emberlint.rules import Rule

RULE = Rule("EMB102", "backend-call", "a call of an engine's function for which there is an operation", fix="sometimes")


def _is_foreign(name: str) -> bool:
    if kinds.engine_of(name) in ("", kinds.EMBER) or kinds.array_type(name) is not None:
        return False
    return operation_for(name) != "" or kinds.answer(name) is not None


@RULE.on(ast.Call, named=_is_foreign)
def check(node: ast.Call, file: File) -> None:
    """Calls into an engine's namespace."""
    value = file.value(node)
    if (value is not None and value.kind == SCALAR and value.node is node) or file.allowed is not None:
        return
    path = file.path(node.func)
    engine = kinds.engine_of(path)
    name = file.text(node.func)
    operation = operation_for(path)
    if not operation:
        file.report(
            RULE,
            node.func,
            f"`{name}` has no operation of its own; compose it of operations, or move this to `backend/{engine}/`",
        )
        return
    standard = file.config.target == "array-api"
    if standard and operation not in catalogue.standard():
        file.report(
            RULE, node.func, f"`{name}` runs on {engine} alone, and the array API standard has no such function"
        )
        return
    found = rewritten(node, path, file)
    if found is None:
        portable = f"{'xp' if standard else 'ops'}.{operation}"
        file.report(RULE, node.func, f"`{name}` runs on {engine} alone; use `{portable}`, whose arguments differ")
        return
    if standard:
        portable, safety, note = f"xp.{operation}", SUGGESTION, ", where `xp` is the array namespace"
        imports: tuple[Edit, ...] = ()
    else:
        bound, imports = file.import_name(file.config.namespace)
        portable, safety = f"{bound}.{operation}", found.safety
        note = "" if safety == SAFE else "; dtypes and errors may differ"
    fix = Fix((*imports, file.edit(node.func, portable), *found.edits), safety, f"call `{portable}`{note}")
    file.report(RULE, node.func, f"`{name}` runs on {engine} alone; use `{portable}`", fix=fix)
