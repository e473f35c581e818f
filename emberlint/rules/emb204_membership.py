"""A chained comparison of tensors, or `in` with a tensor.

## What it does
Finds `a < x < b` where an operand is a tensor, `v in x` where `x` is a tensor, and `x in values` where `x` is a
tensor and `values` a list or tuple.

## Why
`a < x < b` is `a < x and x < b`: Python asks the first half for its truth value. `in` asks the comparison with each
element. Both evaluate, and both fail for tensors with several elements.

## Example
```python
def inside(x: Tensor) -> Tensor:
    return 0 < x < 1
```

## Use instead
```python
def inside(x: Tensor) -> Tensor:
    return ops.logical_and(0 < x, x < 1)
```

## Fix safety
No fix: `0 < x < 1` answers a tensor for one element only, so what the author wants for several is not in the code.
`ops.isin` finds elements.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation

RULE = Rule("EMB204", "membership", "chained comparison of tensors, or `in`")


@RULE.on(ast.Compare)
def check(node: ast.Compare, file: File) -> None:
    """Report it outside of loops; inside, EMB209 does."""
    evaluation.report(RULE, evaluation.comparison, node, file)
