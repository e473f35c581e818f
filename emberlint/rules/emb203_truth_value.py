"""A tensor whose truth value Python tests.

## What it does
Finds a tensor as the condition of `if`, `while`, `assert`, a conditional expression or a comprehension, and as an
operand of `and`, `or` and `not`. A comparison of tensors is a tensor.

## Why
Python calls `bool()`, which evaluates a lazy engine's graph, waits for the device and cannot be compiled: in `jax.jit`
it raises. With more than one element it is an error on every engine.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def clipped(x: Tensor) -> Tensor:
    if ops.max(x) > 1:
        return x / ops.max(x)
    return x
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def clipped(x: Tensor) -> Tensor:
    return ops.where(ops.max(x) > 1, x / ops.max(x), x)
```

## Fix safety
No fix. `ops.where` selects between values, `ops.cond` between computations; `ops.logical_and`, `ops.logical_or` and
`ops.logical_not` replace `and`, `or` and `not`.
"""

from __future__ import annotations

import ast

from emberlint.inference.checks import Truth
from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation

RULE = Rule("EMB203", "truth-value", "truth value of a tensor")


@RULE.on(Truth)
def check(node: ast.expr, file: File) -> None:
    """Report it outside of loops; EMB209 reports it in loops."""
    evaluation.report(RULE, evaluation.truth, node, file)
