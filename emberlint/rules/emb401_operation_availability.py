"""An operation that a target engine does not have.

## What it does
Finds a call of `ops` that is missing or fails on one of the target engines, according to the measured matrix.

## Why
The call raises there.

## Example

`pyproject.toml`:

```toml
[tool.emberlint]
matrix = "matrix.json"
```

`matrix.json`:

```json
{"format": 1, "operations": {"hfft": {"engines": {"mlx": {"status": "missing", "dtypes": {}, "keywords": {}}}}}}
```

`model.py`:

```python
from ember_ml import ops
from ember_ml.types import Tensor


def spectrum(x: Tensor) -> Tensor:
    return ops.hfft(x)
```

## Use instead

`model.py`:

```python
from ember_ml import ops
from ember_ml.types import Tensor


def spectrum(x: Tensor) -> Tensor:
    return ops.irfft(ops.conj(x), norm="forward")
```

## Fix safety
No fix.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule
from emberlint.rules.availability import WRONG, is_operation, measured, reference

RULE = Rule("EMB401", "operation-availability", "operation that a target lacks")


@RULE.on(ast.Call, named=is_operation)
def check(node: ast.Call, file: File) -> None:
    """Report operations that are missing, or that fail or differ in every dtype; without tensors, with every option."""
    for function, engine, entry in measured(node, file):
        status = entry["status"]
        if status == "missing":
            file.report(RULE, node.func, f"`{function.shown()}` is missing on {engine}")
        elif status in WRONG and "same" not in (entry["dtypes"] or entry["keywords"]).values():
            message = f"`{function.shown()}` {WRONG[status]} on {engine}, according to the matrix{reference(entry)}"
            file.report(RULE, node.func, message)
