"""An assignment to elements of an array.

## What it does
Finds `x[i] = v`, `x[i] += v` and `del x[i]` where `x` is an array or tensor.

## Why
Engines disagree on what else changes. NumPy and torch write into memory that views and other names share, MLX rebinds
the name, JAX raises. Under automatic differentiation and in compiled code the assignment fails or copies.

## Example
```python
from ember_ml.types import Tensor


def without(x: Tensor, i: int) -> Tensor:
    x[i] = 0
    return x
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def without(x: Tensor, i: int) -> Tensor:
    return ops.index_update(x, i, 0)
```

## Fix safety
No fix: code that shares the memory may rely on the change. `ops.index_update`, `ops.slice_update`, `ops.where` and
`ops.scatter` return a new tensor. It is often simplest to collect the parts in a list and call `ops.stack`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from emberlint.inference.callees import array
from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule("EMB301", "item-assignment", "item assignment")


@RULE.on(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)
def check(node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete, file: File) -> None:
    """Report targets that are elements of an array."""
    if file.allowed is not None:
        return
    targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [node.target]
    for target in targets:
        for part in _parts(target) if type(target) is not ast.Name else ():
            value = array(part.value, file)
            if value is not None and not _is_field(part):
                message = (
                    f"item assignment to `{file.text(part.value)}` has different side effects on each engine, "
                    "and raises on JAX; use `ops.index_update` or `ops.where`"
                )
                file.report(RULE, part, message, because=value)


def _is_field(node: ast.Subscript) -> bool:
    """Whether a subscript is a field name: then the array is a structured one, and not a tensor."""
    return type(node.slice) is ast.Constant and type(node.slice.value) is str


def _parts(target: ast.expr) -> Iterator[ast.Subscript]:
    if isinstance(target, ast.Subscript):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _parts(element)
    elif isinstance(target, ast.Starred):
        yield from _parts(target.value)
