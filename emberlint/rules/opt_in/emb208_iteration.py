"""A Python loop over a tensor.

## What it does
Finds `for row in x`, `list(x)`, `tuple(x)`, `enumerate(x)`, `zip(x, ...)`, `map(f, x)`, a comprehension over `x` and
`*x`, where `x` is a tensor. Opt-in: select EMB208.

## Why
Each turn makes a small tensor and a call of its own; a compiler unrolls the loop, so that a longer tensor is another
program.

## Example
```python
def norms(x: Tensor) -> list[Tensor]:
    return [ops.norm(row) for row in x]
```

## Use instead
```python
def norms(x: Tensor) -> Tensor:
    return ops.vectorized_map(ops.norm, x)
```

## Fix safety
No fix. `axis=` of the operation, `ops.vectorized_map`, `ops.map`, `ops.scan` and `ops.unstack` stand for the loop.
"""

from __future__ import annotations

import ast

from emberlint.inference.checks import Iteration
from emberlint.inference.file import File
from emberlint.rules import Rule
from emberlint.rules.evaluation import tensor

RULE = Rule("EMB208", "iteration", "iteration over a tensor")

_BUILTINS = ("list", "tuple", "enumerate", "zip", "map", "filter", "reversed", "iter", "set")


@RULE.on(Iteration)
def check(node: ast.expr, file: File) -> None:
    """What a loop, a comprehension or a star goes through."""
    _report(node, "iteration over", file)


@RULE.on(ast.Call)
def check_builtin(node: ast.Call, file: File) -> None:
    """What ``list`` and its like go through."""
    if file.is_builtin(node.func, *_BUILTINS):
        for argument in node.args:
            _report(argument, f"`{node.func.id}` of", file)  # type: ignore[attr-defined]


def _report(node: ast.expr, what: str, file: File) -> None:
    if file.allowed is not None:
        return
    value = tensor(node, file)
    if value is not None:
        message = f"{what} `{file.text(node)}` makes a tensor of each element; use `axis=` or `ops.vectorized_map`"
        file.report(RULE, node, message, because=value)
