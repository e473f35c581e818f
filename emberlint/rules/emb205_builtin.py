"""A Python builtin that goes through a tensor element by element.

## What it does
Finds `max`, `min`, `sorted`, `any`, `all` and `sum` with a tensor as an argument.

## Why
The builtin iterates in Python and, except for `sum`, compares element after element through `bool()`: one evaluation
each. The operation does it at once, on the engine.

## Example
```python
def spread(x: Tensor) -> Tensor:
    return max(x) - min(x)
```

## Use instead
```python
def spread(x: Tensor) -> Tensor:
    return ops.max(x) - ops.min(x)
```

## Fix safety
No fix: the builtins work along the first axis and the operations, without `axis`, over all of them. The suggestion
names the operation.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation

RULE = Rule("EMB205", "builtin", "builtin that goes through a tensor")


@RULE.on(ast.Call, named=evaluation.BUILTINS.__contains__)
def check(node: ast.Call, file: File) -> None:
    """Report it outside of loops; inside, EMB209 does."""
    evaluation.report(RULE, evaluation.builtin, node, file)
