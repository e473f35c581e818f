"""An operation with a missing annotation.

## What it does

In the files of an `ops/` folder, reports a public module-level function with a parameter or a result that has no
annotation.

## Why

The annotations are the contract: dispatch reads from them which arguments become tensors, and type checkers read what a
call returns.

## Example

`mypackage/ops/math.py`:

```python
from ember_ml.ops import multiply


def doubled(x):
    return multiply(x, 2)
```

## Use instead

`mypackage/ops/math.py`:

```python
from ember_ml.ops import multiply
from ember_ml.types import Tensor, TensorLike


def doubled(x: TensorLike) -> Tensor:
    return multiply(x, 2)
```

## Fix safety

There is no fix. The rule is opt-in, because type checkers report the same for all functions.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule("EMB505", "annotation-missing", "an operation with a missing annotation")


@RULE.on(ast.FunctionDef)
def check(node: ast.FunctionDef, file: File) -> None:
    """Report public module-level functions without annotations."""
    if not is_operation(node, file):
        return
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    for argument in every:
        if argument.annotation is None:
            file.report(
                RULE,
                argument,
                f"`{argument.arg}` of `{node.name}` has no annotation, so every backend receives it unchanged",
            )
    if node.returns is None:
        name = ast.Name(node.name)
        name.lineno, name.col_offset = node.lineno, node.col_offset + 4
        name.end_lineno, name.end_col_offset = node.lineno, node.col_offset + 4 + len(node.name.encode())
        file.report(RULE, name, f"the result of `{node.name}` has no annotation")


def is_operation(node: ast.FunctionDef, file: File) -> bool:
    """Whether a function is a public module-level function under `ops/`."""
    folders = file.where.split("/")[:-1]
    return "ops" in folders and file.function is None and file.klass is None and not node.name.startswith("_")
