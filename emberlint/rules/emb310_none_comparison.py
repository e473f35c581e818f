"""A tensor compared with None by `==`.

## What it does
Finds `x == None` and `x != None` where `x` is an array or tensor, or may be one.

## Why
NumPy compares element by element, torch answers False, MLX raises. `is` asks what is meant.

## Example
```python
def scaled(x: Tensor, weight: Tensor | None = None) -> Tensor:
    if weight == None:
        return x
    return x * weight
```

## Use instead
```python
def scaled(x: Tensor, weight: Tensor | None = None) -> Tensor:
    if weight is None:
        return x
    return x * weight
```

## Fix safety
Safe.
"""

from __future__ import annotations

import ast

from emberlint.calls import array
from emberlint.file import File
from emberlint.findings import SAFE, Fix
from emberlint.rules import Rule

RULE = Rule("EMB310", "none-comparison", "`== None`", fix="safe")


@RULE.on(ast.Compare)
def check(node: ast.Compare, file: File) -> None:
    """``==`` and ``!=`` between an array and None."""
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
    fix = Fix((file.edit(node, text),), SAFE, f"write `{text}`")
    sign = "==" if word == "is" else "!="
    message = (
        f"`{sign} None` compares element by element on NumPy, is False on torch and raises on MLX; write `{word} None`"
    )
    file.report(RULE, node, message, fix=fix, because=value)


def _is_none(node: ast.expr) -> bool:
    return type(node) is ast.Constant and node.value is None
