"""A read through a boolean mask.

## What it does
Finds `x[mask]` where `mask` is a boolean array, as a comparison is.

## Why
How many elements there are depends on the data: MLX raises, and JAX and torch cannot compile it.

## Example
```python
def positive_sum(x: Tensor) -> Tensor:
    return ops.sum(x[x > 0])
```

## Use instead
```python
def positive_sum(x: Tensor) -> Tensor:
    return ops.sum(ops.where(x > 0, x, 0))
```

## Fix safety
No fix: `ops.where` with a neutral value keeps the shape, `ops.masked_select` gives the same elements on every engine
but is not lazy.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import array
from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule("EMB305", "mask-read", "read through a boolean mask")


@RULE.on(ast.Subscript)
def check(node: ast.Subscript, file: File) -> None:
    """An index that is a boolean array."""
    if type(node.ctx) is not ast.Load or file.allowed is not None:
        return
    value = array(node.value, file)
    if value is None:
        return
    for index in node.slice.elts if type(node.slice) is ast.Tuple else [node.slice]:
        mask = array(index, file)
        if mask is not None and mask.dtype == "bool":
            message = (
                f"a read of `{file.text(node.value)}` through a boolean mask raises on MLX and does not compile; "
                "use `ops.where`, or `ops.masked_select`"
            )
            file.report(RULE, node, message, because=mask)
            return
