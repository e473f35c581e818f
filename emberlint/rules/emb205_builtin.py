"""A Python builtin that iterates over a tensor.

## What it does
Finds `max`, `min`, `sorted`, `any`, `all` and `sum` with a tensor as an argument.

## Why
The builtin iterates in Python and, except for `sum`, calls `bool()` on each comparison, which forces an evaluation each
time. The operation is a single call of the engine.

## Example
```python
from ember_ml.types import Tensor


def spread(x: Tensor) -> Tensor:
    return max(x) - min(x)
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def spread(x: Tensor) -> Tensor:
    return ops.max(x) - ops.min(x)
```

## Fix safety
No fix: the builtins work along the first axis and the operations, without `axis`, over all axes. The message names the
operation.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation

RULE = Rule("EMB205", "builtin", "builtin that iterates over a tensor")


@RULE.on(ast.Call, named=evaluation.BUILTINS.__contains__)
def check(node: ast.Call, file: File) -> None:
    """Report it outside of loops; EMB209 reports it in loops."""
    evaluation.report(RULE, evaluation.builtin, node, file)
