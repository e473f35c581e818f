"""Integer arithmetic whose edge cases differ by engine.

## What it does
Finds `//` and `%` of integer arrays by a divisor that may be zero, `@` of integer arrays, and shifts by a count that
may be negative or not less than the integer's width.

## Why
For a zero divisor, NumPy returns 0 with a warning, torch raises, and MLX and JAX return other values. MLX does not
support integer matrix products. `x << 70` is 0 on NumPy and torch and `x << 6` on MLX.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def ratios(x: Tensor) -> Tensor:
    places = ops.argsort(x)
    return ops.flip(places) // places
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def ratios(x: Tensor) -> Tensor:
    places = ops.argsort(x)
    return ops.floor_divide(ops.flip(places), places)
```

## Fix safety
No fix: `ops.floor_divide`, `ops.remainder`, `ops.matmul` and the shifts of `ops.bitwise` are the same on every
engine.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import array
from emberlint.inference.file import File
from emberlint.rules import Rule
from emberlint.rules.operands import integer_array, operands

RULE = Rule("EMB308", "integer-division", "integer `//`, `%`, `@` and shifts")

_WIDTH = 32


@RULE.on(ast.BinOp, ast.AugAssign)
def check(node: ast.BinOp | ast.AugAssign, file: File) -> None:
    """Report integer operators whose edge cases differ."""
    sign = _SIGNS.get(type(node.op))
    if sign is None or file.allowed is not None:
        return
    value = integer_array(node, file)
    if value is None:
        return
    _, right = operands(node)
    is_scalar = array(right, file) is None
    if sign == "@":
        message = "MLX does not support `@` of integers; use `ops.matmul`"
    elif sign in ("<<", ">>"):
        if type(right) is ast.Constant and type(right.value) is int and 0 <= right.value < _WIDTH:
            return
        if is_scalar and type(right) is not ast.Constant:
            return
        name = "ops.bitwise_left_shift" if sign == "<<" else "ops.bitwise_right_shift"
        message = (
            f"`{sign}` by a count that is negative or not less than the integer's width differs by engine; use `{name}`"
        )
    else:
        if is_scalar and not (type(right) is ast.Constant and right.value == 0):
            return
        name = "ops.floor_divide" if sign == "//" else "ops.remainder"
        message = (
            f"`{sign}` by an integer zero is 0 on NumPy, an error on torch and a different value on MLX; use `{name}`"
        )
    file.report(RULE, node, message, because=value)


_SIGNS = {ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>"}
