"""An augmented assignment to an argument.

## What it does
Finds `x += v` (and `-=`, `*=`, ...) where `x` is a parameter that still holds the caller's tensor.

## Why
On NumPy and torch the caller's tensor changes; on MLX and JAX it does not. The same program then has two results.

## Example
```python
from ember_ml.types import Tensor


def shifted(x: Tensor) -> Tensor:
    x += 1
    return x
```

## Use instead
```python
from ember_ml.types import Tensor


def shifted(x: Tensor) -> Tensor:
    x = x + 1
    return x
```

## Fix safety
No fix is applied, because the caller may rely on the change. The plain assignment is suggested.
"""

from __future__ import annotations

import ast

from emberlint.findings import SUGGESTION, Fix
from emberlint.inference.callees import array
from emberlint.inference.file import File
from emberlint.knowledge.operators import BINARY
from emberlint.rules import Rule

RULE = Rule("EMB302", "augmented-argument", "augmented assignment to an argument")


@RULE.on(ast.AugAssign)
def check(node: ast.AugAssign, file: File) -> None:
    """Report parameters that are changed in place."""
    target = node.target
    if type(target) is not ast.Name or file.allowed is not None:
        return
    value = array(target, file)
    if value is None or not value.argument:
        return
    sign = BINARY[type(node.op)].sign
    text = file.text(node.value)
    plain = f"{target.id} = {target.id} {sign} {text if _is_tight(node.value) else f'({text})'}"
    fix = Fix((file.edit(node, plain),), SUGGESTION, f"assign: `{plain}`")
    message = (
        f"`{target.id} {sign}=` changes the caller's `{value.argument}` on NumPy and torch, but not on MLX and JAX"
    )
    file.report(RULE, node, message, fix=fix, because=value)


def _is_tight(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript))
