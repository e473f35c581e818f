"""A slice with a negative step.

## What it does
Finds `x[::-1]` and other slices of an array whose step is a negative number.

## Why
torch raises, because it does not support negative strides.

## Example
```python
from ember_ml.types import Tensor


def backwards(x: Tensor) -> Tensor:
    return x[::-1]
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def backwards(x: Tensor) -> Tensor:
    return ops.flip(x, axis=0)
```

## Fix safety
Unsafe, for a full slice with step -1: `ops.flip` returns a new tensor, while NumPy's slice is a view.
"""

from __future__ import annotations

import ast

from emberlint.findings import UNSAFE, Fix
from emberlint.inference.callees import array
from emberlint.inference.file import File
from emberlint.rewrite.imports import import_name
from emberlint.rules import Rule

RULE = Rule("EMB306", "negative-step", "negative step", fix="unsafe")


@RULE.on(ast.Subscript)
def check(node: ast.Subscript, file: File) -> None:
    """Report slices whose step is a negative number."""
    parts = node.slice.elts if type(node.slice) is ast.Tuple else [node.slice]
    steps = list(map(_step, parts))
    if min(steps, default=1) >= 0 or file.allowed is not None:
        return
    value = array(node.value, file)
    if value is None:
        return
    axes = _axes(parts, steps) if type(node.ctx) is ast.Load else None
    fix = None
    if axes is not None:
        axis = str(axes[0]) if len(axes) == 1 else str(tuple(axes))
        ops, edits = import_name("ember_ml.ops", file)
        text = f"{ops}.flip({file.text(node.value)}, axis={axis})"
        fix = Fix((*edits, file.edit(node, text)), UNSAFE, f"flip: `{text}`")
    file.report(RULE, node, "a slice with a negative step raises on torch; use `ops.flip`", fix=fix, because=value)


def _step(part: ast.expr) -> int:
    step = part.step if type(part) is ast.Slice else None
    if type(step) is ast.UnaryOp and type(step.op) is ast.USub and type(step.operand) is ast.Constant:
        number = step.operand.value
        return -number if type(number) is int else 1
    return 1


def _axes(parts: list[ast.expr], steps: list[int]) -> list[int] | None:
    """Axes that are reversed; ``None`` if the index does anything else."""
    axes = []
    dots = False
    for i, (part, step) in enumerate(zip(parts, steps, strict=True)):
        if type(part) is ast.Constant and part.value is Ellipsis and not dots:
            dots = True
            continue
        if type(part) is not ast.Slice or part.lower is not None or part.upper is not None:
            return None
        if step == -1:
            axes.append(i - len(parts) if dots else i)
        elif part.step is not None:
            return None
    return axes
