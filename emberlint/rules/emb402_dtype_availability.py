"""A dtype that an operation does not support on a target engine.

## What it does
Finds a call of `ops` with a dtype that is unsupported or has a different result for this operation on one of the target
engines, according to the measured matrix.

## Why
The call raises there, or has a different result.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def widened(x: Tensor) -> Tensor:
    return ops.cast(x, "complex128")  # MLX has complex64 only
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def widened(x: Tensor) -> Tensor:
    return ops.cast(x, "complex64")
```

## Fix safety
No fix: choose a dtype that all targets have, or cast before and after.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule
from emberlint.rules.availability import WRONG, dtypes, is_operation, measured

RULE = Rule("EMB402", "dtype-availability", "dtype that a target lacks")


@RULE.on(ast.Call, named=is_operation)
def check(node: ast.Call, file: File) -> None:
    """Report dtypes that a call names."""
    for function, engine, entry in measured(node, file):
        for name, place in dtypes(node, function, file):
            word = WRONG.get(entry["dtypes"].get(name, ""))
            if word is not None:
                file.report(RULE, place, f"`{function.shown()}` in {name} {word} on {engine}, according to the matrix")
