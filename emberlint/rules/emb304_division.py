"""A division of integers, or a builtin float type as a dtype.

## What it does
Finds `/` between integer arrays, or an integer array and a Python integer, and the builtin `float` or `complex` as a
dtype.

## Why
The integers become floats of a width that differs: float64 on NumPy, float32 on torch, MLX and JAX. `dtype=float` is
float64 on NumPy and torch, the default float on JAX, and an error on MLX.

## Example
```python
import numpy as np


def shares(n: int) -> np.ndarray:
    return np.arange(n) / n
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def shares(n: int) -> Tensor:
    return ops.divide(ops.arange(n), n)
```

## Fix safety
No fix: `ops.divide` returns the default float on every engine; cast first to get another width.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import called, keyword, may_be_engine_call
from emberlint.inference.checks import KEYWORDS
from emberlint.inference.file import File
from emberlint.knowledge.engines import EMBER
from emberlint.rules import Rule
from emberlint.rules.operands import integer_array

RULE = Rule("EMB304", "division", "integer `/`, or the builtin `float` as a dtype")


@RULE.on(ast.BinOp, ast.AugAssign)
def check_division(node: ast.BinOp | ast.AugAssign, file: File) -> None:
    """Report ``/`` between integers, one of them an array."""
    if type(node.op) is not ast.Div or file.allowed is not None:
        return
    value = integer_array(node, file)
    if value is not None:
        message = (
            "`/` of integers is float64 on NumPy but float32 on the other engines; use `ops.divide`, or cast first"
        )
        file.report(RULE, node, message, because=value)


@RULE.on(ast.Call, named=may_be_engine_call, given=KEYWORDS)
def check_dtype(node: ast.Call, file: File) -> None:
    """Report the builtins ``float`` and ``complex`` as ``dtype=``."""
    given = keyword(node, "dtype")
    if given is not None:
        _check_builtin(given.value, node, file)


@RULE.on(ast.Call, named=frozenset({".astype", ".view", ".to", ".type"}).__contains__)
def check_cast(node: ast.Call, file: File) -> None:
    """Report them as the dtype of a cast."""
    for place in node.args[:1]:
        _check_builtin(place, node, file)


def _check_builtin(place: ast.expr, node: ast.Call, file: File) -> None:
    function = called(node, file) if file.is_builtin(place, "float", "complex") else None
    # Operations take float for the default float, the same on every engine.
    if function is not None and file.allowed is None and (function.owner is not None or function.engine != EMBER):
        name = place.id  # type: ignore[attr-defined]
        message = (
            f"`{name}` as a dtype has a different width on each engine; name the dtype, or use the default of `ops`"
        )
        file.report(RULE, place, message, because=function.owner)
