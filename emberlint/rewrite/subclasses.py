"""Instances of subclasses of NumPy's arrays, which are made with ``array.view(cls)`` and stay NumPy's."""

from __future__ import annotations

import ast

from emberlint.findings import Edit
from emberlint.inference.file import File
from emberlint.source.tree import dotted


def class_view(node: ast.Call, file: File) -> tuple[Edit, ...]:
    """Edits of ``x.view(cls)`` to ``np.asarray(x).view(cls)``, because ``x`` may be a tensor after a port."""
    function = node.func
    if not isinstance(function, ast.Attribute) or not _is_class_view(node):
        return ()
    if not isinstance(function.value, (ast.Name, ast.Attribute, ast.Subscript)):
        return ()
    numpy = _numpy(file)
    return (file.edit(function.value, f"{numpy}.asarray({file.text(function.value)})"),) if numpy else ()


def _is_class_view(node: ast.Call) -> bool:
    """Whether a node is a call ``x.view(cls)``, ``x.view(type(self))`` or ``x.view(Name)``, a class by its spelling."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "view" or len(node.args) != 1 or node.keywords:
        return False
    kind = node.args[0]
    if isinstance(kind, ast.Call):
        return dotted(kind.func) == "type"
    last = dotted(kind).rpartition(".")[2]
    return last in ("cls", "__class__") or (last[:1].isupper() and not last.isupper())


def _numpy(file: File) -> str:
    """Name by which a file has imported NumPy; empty if it has not."""
    for node in file.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "numpy":
                    return alias.asname or alias.name
    return ""
