"""Operands of an operator, for rules about integers."""

from __future__ import annotations

import ast

from emberlint.inference.callees import array
from emberlint.inference.file import File
from emberlint.inference.values import Value


def operands(node: ast.BinOp | ast.AugAssign) -> tuple[ast.expr, ast.expr]:
    """Left and right operand; for ``x += y``, the target and the value."""
    return (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)


def integer_array(node: ast.BinOp | ast.AugAssign, file: File) -> Value | None:
    """Array operand of an operator between integers; ``None`` for any other operator."""
    left, right = operands(node)
    one, other = file.value(left), file.value(right)
    if one is None or other is None or one.dtype != "int" or other.dtype != "int":
        return None
    return array(left, file) or array(right, file)
