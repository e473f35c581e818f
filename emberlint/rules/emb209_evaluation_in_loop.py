"""A loop that forces evaluation in each iteration.

## What it does
Finds code that evaluates a tensor in each iteration of a loop or comprehension. In a loop, this rule reports what
EMB201 to EMB206 report elsewhere.

## Why
One evaluation waits once. An evaluation in each iteration limits a lazy engine to one iteration of work at a time, and
an accelerator is idle in between.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def train(steps: int, x: Tensor) -> float:
    total = 0.0
    for _ in range(steps):
        total += float(ops.sum(x))
    return total
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def train(steps: int, x: Tensor) -> Tensor:
    total = ops.sum(x)
    for _ in range(steps - 1):
        total = ops.add(total, ops.sum(x))
    return total
```

## Fix safety
No fix: collect the tensors and read them once, after the loop.
"""

from __future__ import annotations

import ast

from emberlint.inference.checks import Truth
from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation
from emberlint.rules.evaluation import Forced

RULE = Rule("EMB209", "evaluation-in-loop", "evaluation in a loop")


@RULE.on(ast.Call, named=evaluation.is_forcing)
def check_call(node: ast.Call, file: File) -> None:
    """Report casts, reads, builtins and conversions."""
    if file.loops and file.allowed is None:
        _report(evaluation.of_call(node, file), file)


@RULE.on(ast.Compare)
def check_comparison(node: ast.Compare, file: File) -> None:
    """Report chained comparisons and ``in``."""
    if file.loops and file.allowed is None:
        _report(evaluation.comparison(node, file), file)


@RULE.on(Truth)
def check_truth(node: ast.expr, file: File) -> None:
    """Report conditions."""
    if file.loops and file.allowed is None:
        _report(evaluation.truth(node, file), file)


def _report(forced: Forced | None, file: File) -> None:
    if forced is not None:
        message = f"{forced.what} forces evaluation in each iteration of the loop; {forced.instead}"
        file.report(RULE, forced.node, message, because=forced.value)
