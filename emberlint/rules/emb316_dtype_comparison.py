"""A comparison of a tensor's `.dtype` with a portable dtype on its right.

## What it does
Finds `x.dtype == ops.float32` and `x.dtype != ops.float32` where `x` is a tensor.

## Why
`x.dtype` is the engine's own object, and Python calls `__eq__` of the left operand first. An MLX dtype is unequal to
everything that is not an MLX dtype, so `==` is always False there. `ops.dtype(x)` is the portable dtype on every
engine.

`ops.float32 == x.dtype` and `x.dtype in (ops.float32, ops.float64)` compare by the portable dtype. They are correct on
every engine and are not reported.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def halved(x: Tensor) -> Tensor:
    if x.dtype == ops.float32:
        return ops.cast(x, ops.float16)
    return x
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def halved(x: Tensor) -> Tensor:
    if ops.dtype(x) == ops.float32:
        return ops.cast(x, ops.float16)
    return x
```

## Fix safety
Unsafe: on MLX the result of the comparison changes. It stays the same on NumPy and torch, and for an `EmberTensor`,
whose `.dtype` is already portable.
"""

from __future__ import annotations

import ast

from emberlint.findings import UNSAFE, Fix
from emberlint.inference.file import File
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER
from emberlint.rewrite.imports import import_name
from emberlint.rules import Rule

RULE = Rule("EMB316", "dtype-comparison", "`.dtype` compared with a portable dtype", fix="unsafe")


def _is_dtype(name: str) -> bool:
    place, _, last = name.rpartition(".")
    return place in ("ember_ml", "ember_ml.ops", "ember_ml.dtypes") and last in catalogue.dtypes()


@RULE.on(ast.Attribute, ast.Name, named=_is_dtype)
def check(node: ast.Attribute | ast.Name, file: File) -> None:
    """Report portable dtypes on the right of a ``.dtype``."""
    comparison = file.comparison_of(node)
    if comparison is None or len(comparison.ops) != 1 or type(comparison.ops[0]) not in (ast.Eq, ast.NotEq):
        return
    left = comparison.left
    if left is node or type(left) is not ast.Attribute or left.attr != "dtype":
        return
    owner = file.value(left.value)
    if owner is None or not owner.is_array or owner.engine not in ("mlx", EMBER):
        return
    sign, result = ("==", False) if type(comparison.ops[0]) is ast.Eq else ("!=", True)
    bound, imports = import_name(file.config.namespace, file)
    text = f"{bound}.dtype({file.text(left.value)})"
    fix = Fix((*imports, file.edit(left, text)), UNSAFE, f"write `{text}`")
    compared = f"{sign} {file.text(node)}"
    message = f"`{file.text(left)} {compared}` is always {result} on MLX; write `{text} {compared}`"
    file.report(RULE, comparison, message, fix=fix, because=owner)
