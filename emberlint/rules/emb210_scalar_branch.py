"""A branch on the result of an operation on Python numbers.

## What it does
Finds a condition that calls `ops` on Python numbers only: `if ops.greater(n, 1)`.

## Why
The numbers become tensors, the engine computes, and the result is evaluated for the branch. Python needs no engine for
this, and a compiler then sees a constant.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def halves(x: Tensor) -> Tensor:
    if ops.greater(x.ndim, 1):
        return x[0]
    return x
```

## Use instead
```python
from ember_ml.types import Tensor


def halves(x: Tensor) -> Tensor:
    if x.ndim > 1:
        return x[0]
    return x
```

## Fix safety
Safe where integers and bools are compared and combined with `and`, `or` and `not`, and only the truth value of the
result is used (`if`, `while`, `assert`, `not`). Unsafe for floats, which `ops` compares as float32 and Python as
float64, for sums, differences and products (`ops` computes in int64, and does not subtract bools), and where the result
itself may be used, as in `flag = ops.greater(n, 1) or default`.
"""

from __future__ import annotations

import ast

from emberlint.findings import SAFE, UNSAFE, Fix
from emberlint.inference.callees import last_of
from emberlint.inference.checks import Truth
from emberlint.inference.file import File
from emberlint.rewrite.surroundings import is_alone, is_condition
from emberlint.rules import Rule
from emberlint.rules.evaluation import JOINING, on_numbers
from emberlint.source.tree import last_part

RULE = Rule("EMB210", "scalar-branch", "branch on an operation on Python numbers", fix="sometimes")


@RULE.on(Truth)
def check(node: ast.expr, file: File) -> None:
    """Report conditions that ``ops`` computes from Python numbers."""
    joined, node = type(node) is ast.BoolOp, last_part(node)
    found = on_numbers(node, file)
    if found is None or file.allowed is not None:
        return
    # An operand of `not`, `and` and `or` needs parentheses if it contains `and` or `or`.
    bare = "\n" not in found.text and (found.precedence > JOINING or is_alone(node, file))
    text = found.text if bare else f"({found.text})"
    asked = joined or is_condition(node, file)
    safety = SAFE if found.exact and asked and not _computes(node, file) else UNSAFE
    fix = Fix((file.edit(node, text),), safety, f"compute in Python: `{found.text}`")
    file.report(
        RULE,
        node,
        f"`{file.text(node)}` computes with Python numbers as tensors and evaluates the result; write `{found.text}`",
        fix=fix,
    )


_ARITHMETIC = frozenset({"add", "subtract", "multiply", "negative"})


def _computes(node: ast.AST, file: File) -> bool:
    """Whether an expression calls an arithmetic operation."""
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(last_of(file.path(function)) in _ARITHMETIC for function in calls)
