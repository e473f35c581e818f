"""An operation on Python numbers whose answer is branched on.

## What it does
Finds a condition that calls `ops` on Python numbers alone: `if ops.greater(n, 1)`.

## Why
The numbers become tensors, the engine computes, and the answer is evaluated for the branch. Python does it without an
engine, and a compiler then sees a constant.

## Example
```python
def halves(x: Tensor) -> Tensor:
    if ops.greater(x.ndim, 1):
        return x[0]
    return x
```

## Use instead
```python
def halves(x: Tensor) -> Tensor:
    if x.ndim > 1:
        return x[0]
    return x
```

## Fix safety
Safe where integers and bools are compared and joined by `and`, `or` and `not`, and only the truth of the answer counts
(`if`, `while`, `assert`, `not`). Unsafe for floats, which `ops` compares as float32 and Python as float64, for sums,
differences and products (`ops` computes in int64, and subtracts no bools), and where the answer itself may be taken
further, as in `flag = ops.greater(n, 1) or default`.
"""

from __future__ import annotations

import ast

from emberlint.findings import SAFE, UNSAFE, Fix
from emberlint.inference.callees import last_of
from emberlint.inference.checks import Truth
from emberlint.inference.file import File
from emberlint.rewrite.surroundings import is_alone, is_asked
from emberlint.rules import Rule
from emberlint.rules.evaluation import JOINING, on_numbers
from emberlint.source.tree import last_part

RULE = Rule("EMB210", "scalar-branch", "branch on an operation on Python numbers", fix="sometimes")


@RULE.on(Truth)
def check(node: ast.expr, file: File) -> None:
    """A condition that ``ops`` computes from Python numbers."""
    joined, node = type(node) is ast.BoolOp, last_part(node)
    found = on_numbers(node, file)
    if found is None or file.allowed is not None:
        return
    # Beside `not`, `and` and `or`, what is joined by `and` and `or` needs brackets.
    bare = "\n" not in found.text and (found.strength > JOINING or is_alone(node, file))
    text = found.text if bare else f"({found.text})"
    asked = joined or is_asked(node, file)
    safety = SAFE if found.exact and asked and not _computes(node, file) else UNSAFE
    fix = Fix((file.edit(node, text),), safety, f"compute in Python: `{found.text}`")
    file.report(
        RULE,
        node,
        f"`{file.text(node)}` makes tensors of Python numbers and evaluates them; write `{found.text}`",
        fix=fix,
    )


_ARITHMETIC = frozenset({"add", "subtract", "multiply", "negative"})


def _computes(node: ast.AST, file: File) -> bool:
    """Whether a call of `ops` among Python numbers does more than compare them."""
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(last_of(file.path(function)) in _ARITHMETIC for function in calls)
