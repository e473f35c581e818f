"""Tests that distinguish numbers from sequences, which take elements of tensors for sequences.

An element of a NumPy array is a number without a length; an element of a tensor is a tensor.
"""

from __future__ import annotations

import ast

from emberlint.findings import Edit
from emberlint.inference.file import File
from emberlint.knowledge.returns import words
from emberlint.source.tree import dotted

_CLASSES = words("Collection Container Iterable Sized")
_METHODS = frozenset({"__getitem__", "__iter__", "__len__"})


def sequence_test(node: ast.Call, file: File) -> tuple[Edit, ...]:
    """Edits of ``isinstance(x, Iterable)`` and ``hasattr(x, "__len__")`` that exclude tensors without axes.

    Values that are known to be no tensors, and files that do not use arrays, stay as they are.
    """
    if len(node.args) != 2 or not _is_sequence_test(node, file) or not _uses_arrays(file):
        return ()
    subject = node.args[0]
    value = file.value(subject)
    if (value is not None and not value.is_array) or any(isinstance(part, ast.Call) for part in ast.walk(subject)):
        return ()
    axes = f' and getattr({file.text(subject)}, "ndim", 1) > 0'
    if file.source.data[file.span(node)[1] :].startswith(axes.encode()):
        return ()
    return (file.edit(node, f"({file.text(node)}{axes})"),)


def dtype_test(node: ast.Call, file: File) -> tuple[Edit, ...]:
    """Edits of ``issubclass(x.dtype.type, np.number)`` to ``np.issubdtype(x.dtype, np.number)``.

    NumPy's dtypes have a class; those of tensors do not, and ``np.issubdtype`` accepts both.
    """
    if len(node.args) != 2 or not file.is_builtin(node.func, "issubclass"):
        return ()
    kind, group = node.args
    named = dotted(group).partition(".")[0]
    if (
        not dotted(kind).endswith(".dtype.type")
        or not file.path(group).startswith("numpy.")
        or "." not in dotted(group)
    ):
        return ()
    dtype = file.text(kind).removesuffix(".type")
    return (file.edit(node, f"{named}.issubdtype({dtype}, {file.text(group)})"),)


def classes(file: File) -> frozenset[ast.AST]:
    """Expressions in the second argument of ``isinstance`` and ``issubclass``, which are classes and no dtypes."""

    def search() -> frozenset[ast.AST]:
        return frozenset(
            part
            for node in ast.walk(file.tree)
            if isinstance(node, ast.Call) and dotted(node.func) in ("isinstance", "issubclass") and len(node.args) == 2
            for part in ast.walk(node.args[1])
        )

    found: frozenset[ast.AST] = file.shared("classes", search)
    return found


def _is_sequence_test(node: ast.Call, file: File) -> bool:
    kind = node.args[1]
    if file.is_builtin(node.func, "hasattr"):
        return isinstance(kind, ast.Constant) and kind.value in _METHODS
    if not file.is_builtin(node.func, "isinstance"):
        return False
    return any(_name(one) in _CLASSES for one in (kind.elts if isinstance(kind, ast.Tuple) else [kind]))


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _uses_arrays(file: File) -> bool:
    return b"numpy" in file.source.data or b"ember_ml" in file.source.data
