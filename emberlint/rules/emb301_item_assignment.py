"""An assignment to elements of an array.

## What it does
Finds `x[i] = v`, `x[i] += v` and `del x[i]` where `x` is an array or tensor.

## Why
Engines disagree on who sees the change. NumPy and torch write into memory that views and other names share, MLX
rebinds, JAX raises. Under automatic differentiation and in compiled code it fails or is copied.

## Example
```python
def without_diagonal(x: Tensor, i: int) -> Tensor:
    x[i, i] = 0
    return x
```

## Use instead
```python
def without_diagonal(x: Tensor, i: int) -> Tensor:
    return ops.index_update(x, (i, i), 0)
```

## Fix safety
No fix: other names for the same memory may count on the change. `ops.index_update`, `ops.slice_update`, `ops.where`
and `ops.scatter` answer a new tensor; collecting parts in a list and `ops.stack` is often simplest.
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
    """Targets that are elements of an array."""
    if file.allowed is not None:
        return
    targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [node.target]
    for target in targets:
        for part in _parts(target) if type(target) is not ast.Name else ():
            value = array(part.value, file)
            if value is not None and not _is_field(part):
                message = (
                    f"assignment into `{file.text(part.value)}`: who else sees it differs by engine, and JAX raises; "
                    "use `ops.index_update` or `ops.where`"
                )
                file.report(RULE, part, message, because=value)


def _is_field(node: ast.Subscript) -> bool:
    """Whether a part is named: then the array is one of records, which no tensor is."""
    return type(node.slice) is ast.Constant and type(node.slice.value) is str


def _parts(target: ast.expr) -> Iterator[ast.Subscript]:
    if isinstance(target, ast.Subscript):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _parts(element)
    elif isinstance(target, ast.Starred):
        yield from _parts(target.value)
