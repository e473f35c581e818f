"""A tensor compared with None by `==`.

## What it does
Finds `x == None` and `x != None` where `x` is an array or tensor, or may be one.

## Why
NumPy compares element by element, torch returns False, MLX raises. `is` is the test that is meant.

## Example
```python
from ember_ml.types import Tensor


def scaled(x: Tensor, weight: Tensor | None = None) -> Tensor:
    if weight == None:
        return x
    return x * weight
```

## Use instead
```python
from ember_ml.types import Tensor


def scaled(x: Tensor, weight: Tensor | None = None) -> Tensor:
    if weight is None:
        return x
    return x * weight
```

## Fix safety
Safe for torch's tensors, and in a condition (`if`, `while`, `not`), where the comparison could only raise or have the
same result. Unsafe elsewhere: NumPy's elementwise comparison becomes one bool.
"""

from __future__ import annotations

import ast

from emberlint.findings import SAFE, UNSAFE, Fix
from emberlint.inference.callees import array
from emberlint.inference.file import File
from emberlint.rewrite.surroundings import is_condition
from emberlint.rules import Rule

RULE = Rule("EMB310", "none-comparison", "`== None`", fix="sometimes")


@RULE.on(ast.Compare)
def check(node: ast.Compare, file: File) -> None:
    """Report ``==`` and ``!=`` between an array and None."""
    if len(node.ops) != 1 or type(node.ops[0]) not in (ast.Eq, ast.NotEq) or file.allowed is not None:
        return
    left, right = node.left, node.comparators[0]
    if _is_none(left):
        left, right = right, left
    if not _is_none(right):
        return
    value = array(left, file)
    if value is None:
        return
    word = "is" if type(node.ops[0]) is ast.Eq else "is not"
    text = f"{file.text(left)} {word} None"
    if node.lineno != node.end_lineno:
        text = f"({text})"
    safety = SAFE if value.engine == "torch" or is_condition(node, file) else UNSAFE
    fix = Fix((file.edit(node, text),), safety, f"write `{text}`")
    sign = "==" if word == "is" else "!="
    message = (
        f"`{sign} None` compares element by element on NumPy, is {sign == '!='} on torch and raises on MLX; "
        f"write `{word} None`"
    )
    file.report(RULE, node, message, fix=fix, because=value)


def _is_none(node: ast.expr) -> bool:
    return type(node) is ast.Constant and node.value is None
