"""Options for the order of an array's elements in memory, which tensors do not have."""

from __future__ import annotations

import ast

from emberlint.findings import Edit
from emberlint.inference.file import File

_ORDERS = ("A", "C", "F", "K")


def ordered_copy(node: ast.Call, file: File) -> tuple[Edit, ...]:
    """Edits of ``x.copy("K")`` and ``x.copy(order="C")`` to ``x.copy()``; only arrays have that option."""
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "order")]
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "copy" or file.path(node.func):
        return ()
    if len(given) != 1 or len(node.args) + len(node.keywords) != 1 or b"ember_ml" not in file.source.data:
        return ()
    order = given[0]
    if not isinstance(order, ast.Constant) or order.value not in _ORDERS:
        return ()
    return (file.edit(node, f"{file.text(node.func)}()"),)
