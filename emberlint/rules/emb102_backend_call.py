"""A call of an engine's function for which there is an operation.

## What it does

Reports `np.sum(x)`, `torch.cat(parts)`, `mx.where(...)` in a frontend, and names the operation that stands for it.
Calls on Python numbers and shapes are EMB104's.

## Why

The engine's function computes on that engine alone, with its own defaults, dtypes and errors. The operation computes
wherever its tensors live, by one dtype rule.

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
for these keywords, and the arguments are known to be of the kinds it was measured with: arrays, and options that are
written out or known to be integers, bools or shapes. Unsafe elsewhere: where it is not known what a value is (`np.ndim`
takes any object), because of default dtypes (`np.zeros(3)` is float64, `ops.zeros(3)` is float32; `dtype=float` is
float64 for NumPy and float32 for ember), or because of other inputs (`np.cumsum` of a number along an axis answers an
array with one). What a function takes for granted and the operation does not is written out (`F.normalize(x)` is
`ops.normalize(x, axis=1)`). No fix where an argument has no place in the operation (`out=`, `where=`), is text or a
dtype of objects, or where the name means something else there (`np.random.shuffle` changes its argument).
"""

from __future__ import annotations

import ast

from emberlint.findings import SAFE, SUGGESTION, Edit, Fix
from emberlint.inference.file import File
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER, array_type, engine_of
from emberlint.knowledge.returns import result_of
from emberlint.knowledge.types import SCALAR
from emberlint.rewrite.functions import rewritten
from emberlint.rewrite.imports import import_name
from emberlint.rewrite.names import differs, operation_for
from emberlint.rules import Rule

RULE = Rule("EMB102", "backend-call", "a call of an engine's function for which there is an operation", fix="sometimes")


# What a call of the operation changes besides.
_NOTES = {
    "numpy.bitwise_count": "it counts the bits of negative integers, and not those of their absolute values",
    **dict.fromkeys(
        [f"{place}.{name}" for place in ("numpy", "torch", "mlx.core", "jax.numpy") for name in ("diagonal", "trace")],
        "of more than two axes it takes the last two, and not the first",
    ),
}


def _is_foreign(name: str) -> bool:
    if engine_of(name) in ("", EMBER) or array_type(name) is not None:
        return False
    return operation_for(name) != "" or result_of(name) is not None


@RULE.on(ast.Call, named=_is_foreign)
def check(node: ast.Call, file: File) -> None:
    """Calls into an engine's namespace."""
    value = file.value(node)
    if (value is not None and value.kind == SCALAR and value.node is node) or file.allowed is not None:
        return
    path = file.path(node.func)
    engine = engine_of(path)
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
        advice = f"use `{portable}`, whose arguments differ"
        if differs(path):
            advice = f"`{portable}` has the name and another meaning, so rewrite it by hand"
        file.report(RULE, node.func, f"`{name}` runs on {engine} alone; {advice}")
        return
    if standard:
        portable, safety, note = f"xp.{operation}", SUGGESTION, ", where `xp` is the array namespace"
        imports: tuple[Edit, ...] = ()
    else:
        bound, imports = import_name(file.config.namespace, file)
        portable, safety = f"{bound}.{operation}", found.safety
        note = "" if safety == SAFE else f"; {_NOTES.get(path, 'dtypes and errors may differ')}"
    fix = Fix((*imports, file.edit(node.func, portable), *found.edits), safety, f"call `{portable}`{note}")
    file.report(RULE, node.func, f"`{name}` runs on {engine} alone; use `{portable}`", fix=fix)
