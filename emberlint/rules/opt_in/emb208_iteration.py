"""A Python loop over a tensor.

## What it does
Finds `for row in x`, `list(x)`, `tuple(x)`, `enumerate(x)`, `zip(x, ...)`, `map(f, x)`, a comprehension over `x` and
`*x`, where `x` is a tensor. Opt-in: select EMB208.

## Why
Each iteration creates a small tensor and calls the engine. A compiler unrolls the loop, so a longer tensor needs
another program.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def norms(x: Tensor) -> list[Tensor]:
    return [ops.norm(row) for row in x]
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def norms(x: Tensor) -> Tensor:
    return ops.vectorized_map(ops.norm, x)
```

## Fix safety
No fix. Replace the loop with `axis=` of the operation, `ops.vectorized_map`, `ops.map`, `ops.scan` or `ops.unstack`.
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
    """Report loops, comprehensions and stars over a tensor."""
    _report(node, "iteration over", file)


@RULE.on(ast.Call)
def check_builtin(node: ast.Call, file: File) -> None:
    """Report builtins that iterate over a tensor."""
    if file.is_builtin(node.func, *_BUILTINS):
        for argument in node.args:
            _report(argument, f"`{node.func.id}` of", file)  # type: ignore[attr-defined]


def _report(node: ast.expr, what: str, file: File) -> None:
    if file.allowed is not None:
        return
    value = tensor(node, file)
    if value is not None:
        message = f"{what} `{file.text(node)}` creates a tensor for each element; use `axis=` or `ops.vectorized_map`"
        file.report(RULE, node, message, because=value)
