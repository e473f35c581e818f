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
from emberlint.findings import SAFE, SUGGESTION, Fix
from emberlint.flow import File
from emberlint.kinds import SCALAR
from emberlint.rewrite import operation_for, rewritten
from emberlint.rules import Rule

RULE = Rule("EMB102", "backend-call", "a call of an engine's function for which there is an operation", fix="sometimes")


@RULE.on(ast.Call)
def check(node: ast.Call, file: File) -> None:
    """Calls into an engine's namespace."""
    path = file.path(node.func)
    if not path or file.allowed is not None:
        return
    engine = kinds.engine_of(path)
    if engine in ("", kinds.EMBER) or kinds.array_type(path) is not None:
        return
    value = file.value(node)
    if value is not None and value.kind == SCALAR and value.node is node:
        return
    name = file.text(node.func)
    operation = operation_for(path)
    if not operation:
        if kinds.answer(path) is not None:
            file.report(
                RULE,
                node.func,
                f"`{name}` has no operation of its own; compose it of operations, or move this to `backend/{engine}/`",
            )
        return
    prefix = "ops" if file.config.target == "ember" else "xp"
    if file.config.target == "array-api" and operation not in catalogue.standard():
        file.report(
            RULE, node.func, f"`{name}` runs on {engine} alone, and the array API standard has no such function"
        )
        return
    found = rewritten(node, path, file)
    message = f"`{name}` runs on {engine} alone; use `{prefix}.{operation}`"
    if found is None:
        file.report(RULE, node.func, f"{message}, whose arguments differ")
        return
    if file.config.target == "array-api":
        edits = (file.edit(node.func, f"xp.{operation}"), *found.edits)
        fix = Fix(edits, SUGGESTION, f"call `xp.{operation}`, where `xp` is the array namespace")
    else:
        bound, imports = file.import_name(file.config.namespace)
        message = f"`{name}` runs on {engine} alone; use `{bound}.{operation}`"
        edits = (*imports, file.edit(node.func, f"{bound}.{operation}"), *found.edits)
        note = "" if found.safety == SAFE else "; dtypes and errors may differ"
        fix = Fix(edits, found.safety, f"call `{bound}.{operation}`{note}")
    file.report(RULE, node.func, message, fix=fix)
