"""An operation without a docstring.

## What it does

In the files of an `ops/` folder, reports a public module-level function that has no docstring.

## Why

The documented function is the contract: a description of the result, and an example that runs on every engine.

## Example

`mypackage/ops/math.py`:

```python
from ember_ml.ops import multiply
from ember_ml.types import Tensor, TensorLike


def scaled(x: TensorLike, factor: float) -> Tensor:
    return multiply(x, factor)
```

## Use instead

`mypackage/ops/math.py`:

```python
from ember_ml.ops import multiply
from ember_ml.types import Tensor, TensorLike


def scaled(x: TensorLike, factor: float) -> Tensor:
    \"\"\"``x`` times ``factor``.\"\"\"
    return multiply(x, factor)
```

## Fix safety

There is no fix. The rule is opt-in, because other tools report the same for all functions.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule
from emberlint.rules.opt_in.emb505_annotation_missing import is_operation

RULE = Rule("EMB506", "docstring-missing", "an operation without a docstring")


@RULE.on(ast.FunctionDef)
def check(node: ast.FunctionDef, file: File) -> None:
    """Report public module-level functions without a docstring."""
    if is_operation(node, file) and ast.get_docstring(node, clean=False) is None:
        name = ast.Name(node.name)
        name.lineno, name.col_offset = node.lineno, node.col_offset + 4
        name.end_lineno, name.end_col_offset = node.lineno, node.col_offset + 4 + len(node.name.encode())
        file.report(RULE, name, f"`{node.name}` has no docstring; describe the result in its first line")
