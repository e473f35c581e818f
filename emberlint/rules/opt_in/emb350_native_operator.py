"""An operator on a tensor.

## What it does
Finds `+ - * / // % ** @ & | ^ ~ << >>`, unary minus and comparisons where an operand is a native tensor. The operators
of an `EmberTensor` are operations already, and are not reported. Opt-in: select EMB350.

## Why
The operator uses the engine's own type promotion: int64 with float32 is float64 on NumPy and float32 elsewhere. The
operation uses the same dtype rule on every engine.

## Example
```python
from ember_ml.types import Tensor


def total(x: Tensor, y: Tensor) -> Tensor:
    return x + y
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def total(x: Tensor, y: Tensor) -> Tensor:
    return ops.add(x, y)
```

## Fix safety
Unsafe: the dtype changes where the engine's promotion differs.
"""

from __future__ import annotations

import ast

from emberlint.findings import UNSAFE, Fix
from emberlint.inference.file import File
from emberlint.inference.values import Value
from emberlint.knowledge.operators import BINARY, COMPARED, UNARY
from emberlint.rewrite.imports import import_name
from emberlint.rules import Rule
from emberlint.rules.evaluation import tensor

RULE = Rule("EMB350", "native-operator", "native operator on a tensor", fix="unsafe")


@RULE.on(ast.BinOp)
def check_binary(node: ast.BinOp, file: File) -> None:
    """Report binary operators."""
    found = BINARY.get(type(node.op))
    if found is not None:
        _report(node, found.operation, found.sign, [node.left, node.right], file)


@RULE.on(ast.UnaryOp)
def check_unary(node: ast.UnaryOp, file: File) -> None:
    """Report unary operators."""
    found = UNARY.get(type(node.op))
    if found is not None:
        _report(node, found.operation, found.sign, [node.operand], file)


@RULE.on(ast.Compare)
def check_comparison(node: ast.Compare, file: File) -> None:
    """Report comparisons of two operands."""
    found = COMPARED.get(type(node.ops[0])) if len(node.ops) == 1 else None
    if found is not None and not (type(node.comparators[0]) is ast.Constant and node.comparators[0].value is None):
        _report(node, found.operation, found.sign, [node.left, node.comparators[0]], file)


def _report(node: ast.expr, name: str, sign: str, operands: list[ast.expr], file: File) -> None:
    if file.allowed is not None:
        return
    found = [value for part in operands if (value := tensor(part, file)) is not None]
    if not found or any(_is_ember_tensor(value) for value in found):
        return
    ops, edits = import_name("ember_ml.ops", file)
    text = f"{ops}.{name}({', '.join(_bare(part, file) for part in operands)})"
    fix = Fix((*edits, file.edit(node, text)), UNSAFE, f"call `ops.{name}`")
    message = f"`{sign}` uses the engine's own type promotion; use `ops.{name}`"
    file.report(RULE, node, message, fix=fix, because=found[0])


def _is_ember_tensor(value: Value) -> bool:
    """Whether a value was created or annotated as an ``EmberTensor``, or computed from one."""
    return any(_names_ember_tensor(step.node) for step in value.chain())


def _names_ember_tensor(node: ast.AST | None) -> bool:
    named = node.func if isinstance(node, ast.Call) else node.annotation if isinstance(node, ast.arg) else node
    return named is not None and any(
        getattr(part, "attr", getattr(part, "id", "")) == "EmberTensor" for part in ast.walk(named)
    )


def _bare(node: ast.expr, file: File) -> str:
    text = file.text(node)
    return f"({text})" if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.GeneratorExp)) else text
