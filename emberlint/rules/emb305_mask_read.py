"""Indexing with a boolean mask.

## What it does
Finds `x[mask]` where `mask` is a boolean array, such as a comparison.

## Why
The number of elements depends on the data: MLX raises, and JAX and torch cannot compile it.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def positive_sum(x: Tensor) -> Tensor:
    return ops.sum(x[x > 0])
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def positive_sum(x: Tensor) -> Tensor:
    return ops.sum(ops.where(x > 0, x, 0))
```

## Fix safety
No fix: `ops.where` with a neutral value keeps the shape. `ops.masked_select` returns the same elements on every engine,
but is not lazy.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import array
from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule("EMB305", "mask-read", "indexing with a boolean mask")


@RULE.on(ast.Subscript)
def check(node: ast.Subscript, file: File) -> None:
    """Report indices that are boolean arrays."""
    if type(node.ctx) is not ast.Load or file.allowed is not None:
        return
    value = array(node.value, file)
    if value is None:
        return
    for index in node.slice.elts if type(node.slice) is ast.Tuple else [node.slice]:
        mask = array(index, file)
        if mask is not None and mask.dtype == "bool":
            message = (
                f"indexing `{file.text(node.value)}` with a boolean mask raises on MLX and cannot be compiled; "
                "use `ops.where` or `ops.masked_select`"
            )
            file.report(RULE, node, message, because=mask)
            return
