"""A tensor converted to Python values by `.item()` or `.tolist()`.

## What it does
Finds `.item()` and `.tolist()` on a tensor.

## Why
The value is needed immediately: a lazy engine evaluates, a device must finish and copy the value back, and a compiler
cannot trace through the call. JAX waits for what it has dispatched, and raises in `jax.jit`.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def scaled(x: Tensor) -> Tensor:
    return x / ops.max(x).item()
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def scaled(x: Tensor) -> Tensor:
    return ops.divide(x, ops.max(x))
```

## Fix safety
No fix: the tensor can often stay a tensor, but only the author knows what the number is for.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation

RULE = Rule("EMB202", "item", "tensor converted by `.item()` or `.tolist()`")


@RULE.on(ast.Call, named=evaluation.is_read)
def check(node: ast.Call, file: File) -> None:
    """Report it outside of loops; EMB209 reports it in loops."""
    evaluation.report(RULE, evaluation.read, node, file)
