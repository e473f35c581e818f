"""A keyword that does not work on a target engine.

## What it does
Finds a keyword of a call of `ops` that is unsupported or has a different result on one of the target engines, according
to the measured matrix.

## Why
The call raises there, or has a different result.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def weights(x: Tensor) -> Tensor:
    return ops.convert_to_tensor(x, requires_grad=True)  # only torch has `requires_grad`
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def weights(x: Tensor) -> Tensor:
    return ops.convert_to_tensor(x)
```

## Fix safety
No fix.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule
from emberlint.rules.availability import WRONG, concerned, is_operation, keywords, measured

RULE = Rule("EMB403", "keyword-availability", "keyword that a target lacks")


@RULE.on(ast.Call, named=is_operation)
def check(node: ast.Call, file: File) -> None:
    """Report optional parameters that a call passes."""
    for function, engine, entry in measured(node, file):
        for name, place in keywords(node, function):
            word = WRONG.get(entry["keywords"].get(name, ""))
            example = concerned(name, place, entry) if word is not None else None
            if example is not None:
                message = f"`{name}=` of `{function.shown()}` {word} on {engine}, according to the matrix{example}"
                file.report(RULE, place, message)
