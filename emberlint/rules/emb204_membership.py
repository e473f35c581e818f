"""A chained comparison of tensors, or `in` with a tensor.

## What it does
Finds `a < x < b` where an operand is a tensor, `v in x` where `x` is a tensor, and `x in values` where `x` is a
tensor and `values` a list or tuple.

## Why
`a < x < b` is `a < x and x < b`: Python tests the truth value of the first half. `in` tests the comparison with each
element. Both force evaluation, and both fail for tensors with several elements.

## Example
```python
from ember_ml.types import Tensor


def inside(x: Tensor) -> Tensor:
    return 0 < x < 1
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def inside(x: Tensor) -> Tensor:
    return ops.logical_and(0 < x, x < 1)
```

## Fix safety
No fix: `0 < x < 1` works for one element only, so the code does not say what it means for several. `ops.isin` tests
membership.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation

RULE = Rule("EMB204", "membership", "chained comparison of tensors, or `in`")


@RULE.on(ast.Compare)
def check(node: ast.Compare, file: File) -> None:
    """Report it outside of loops; EMB209 reports it in loops."""
    evaluation.report(RULE, evaluation.comparison, node, file)
