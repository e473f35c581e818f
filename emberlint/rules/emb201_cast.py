"""A tensor cast to a Python number.

## What it does
Finds `float(x)`, `int(x)`, `bool(x)` and `complex(x)` where `x` is a tensor.

## Why
A Python number needs the value immediately. A lazy engine (MLX) must compute everything that `x` depends on, a device
must finish and copy the value back, and a compiler cannot trace through the call: in `jax.jit` it raises.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def step(x: Tensor) -> float:
    return float(ops.sum(x))
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def step(x: Tensor) -> Tensor:
    return ops.sum(x)
```

## Fix safety
No fix: only the author knows whether the number is needed. To change the dtype, use `ops.cast`.
"""

from __future__ import annotations

import ast

from emberlint.inference.checks import TENSORS
from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation

RULE = Rule("EMB201", "cast", "tensor cast to a Python number")


@RULE.on(ast.Call, named=evaluation.CASTS.__contains__, given=TENSORS)
def check(node: ast.Call, file: File) -> None:
    """Report it outside of loops; EMB209 reports it in loops."""
    evaluation.report(RULE, evaluation.cast, node, file)
