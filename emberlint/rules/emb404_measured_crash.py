"""An operation that crashed or hung on a target engine when it was measured.

## What it does
Finds a call of `ops` that crashed the process or did not return when it was measured on one of the target engines.

## Why
`except` can catch neither.

## Example

`pyproject.toml`:

```toml
[tool.emberlint]
matrix = "matrix.json"
```

`matrix.json`:

```json
{"format": 1, "operations": {"cumprod": {"engines": {"mlx": {"status": "crash", "dtypes": {}, "keywords": {}}}}}}
```

`model.py`:

```python
from ember_ml import ops
from ember_ml.types import Tensor


def products(x: Tensor) -> Tensor:
    return ops.cumprod(x)
```

## Use instead

`model.py`:

```python
from ember_ml import ops
from ember_ml.types import Tensor


def products(x: Tensor) -> Tensor:
    return ops.exp(ops.cumsum(ops.log(x)))
```

## Fix safety
No fix.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule
from emberlint.rules.availability import FATAL, dtypes, is_operation, keywords, measured, reference

RULE = Rule("EMB404", "measured-crash", "measured crash or hang")


@RULE.on(ast.Call, named=is_operation)
def check(node: ast.Call, file: File) -> None:
    """Report operations that hung or crashed when they were measured."""
    for function, engine, entry in measured(node, file):
        found = [entry["status"]]
        found += [entry["dtypes"].get(name, "") for name, _ in dtypes(node, function, file)]
        found += [entry["keywords"].get(name, "") for name, _ in keywords(node, function)]
        word = next((FATAL[status] for status in found if status in FATAL), None)
        if word is not None:
            file.report(
                RULE, node.func, f"`{function.shown()}` {word} on {engine} when it was measured{reference(entry)}"
            )
