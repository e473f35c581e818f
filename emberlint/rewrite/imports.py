"""Imports that a fix needs."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.config import EMBER_TENSORS
from emberlint.findings import Edit
from emberlint.inference.file import File
from emberlint.inference.interest import Places
from emberlint.source.text import ENDS, UNDOTTED
from emberlint.source.tree import binders


def import_name(path: str, file: File, *, other: str = "") -> tuple[str, tuple[Edit, ...]]:
    """Name for a module in this file, and the edit that imports it if that is needed.

    ``path`` is the module's full name: ``ember_ml.ops`` becomes ``from ember_ml import ops``, ``math`` becomes ``import
    math``. An existing module-level import is used if there is one. ``other`` is the name to use if the file binds the
    default name to another object in any scope.
    """
    top = file.imports.tops.get(path)
    if top is not None and _is_available(top, path, file):
        return top, ()
    parent, _, last = path.rpartition(".")
    name = last
    if not _is_available(name, path, file):
        name = other or f"ember_{last}"
        if any(one.path == path and one.alias == name and not one.lazy for one in file.imports.entries):
            return name, ()
    edits = file.shared("import edits", dict)
    if (path, name) not in edits:
        line = f"from {parent} import {last}" if parent else f"import {last}"
        if name != last:
            line += f" as {name}"
        offset, before, after = file.shared("import place", lambda: _import_place(file))
        edits[path, name] = (Edit(offset, offset, f"{before}{line}{after}"),)
    return name, edits[path, name]


def namespace_name(file: File) -> str:
    """Name of the namespace of operations that a file uses, for messages: ``tensor`` in a file of EmberTensors."""
    space = EMBER_TENSORS if EMBER_TENSORS in file.imports.tops else file.config.namespace
    return file.imports.tops.get(space) or space.rpartition(".")[2]


def _is_available(name: str, path: str, file: File) -> bool:
    """Whether a name is bound in the file only by imports of a module, or not at all."""
    found: bool = file.shared(f"{name} is {path}", lambda: _is_bound_to(name, path, file))
    return found


def _is_bound_to(name: str, path: str, file: File) -> bool:
    scope = file.module_scope()
    if name in scope:
        value = scope[name]
        if value is None or value.path != file.imports.canonical(path):
            return False
    # Most uses of a module are followed by a dot; those bind a name only in an import.
    near = Places(file.source, [(name.encode(), UNDOTTED), (b"import", ENDS)])
    return binders(name, file.tree, near.are_in, file.imports.resolve) <= {path}


def _import_place(file: File) -> tuple[int, str, str]:
    """Offset of a new import, and the text before and after it: after the first imports, or after the docstring."""
    body = file.tree.body
    newline = file.source.newline
    last: ast.stmt | None = None
    for i, statement in enumerate(body):
        docstring = i == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or docstring:
            last = statement
        else:
            break
    starts, data = file.source.starts, file.source.data
    if last is None:
        offset = starts[body[0].lineno - 1] if body else len(data)
        first: Any = body[0] if body else None
        for decorator in getattr(first, "decorator_list", ()):
            offset = min(offset, starts[decorator.lineno - 1])
        return offset, "", newline
    end = last.end_lineno or last.lineno
    if end < len(starts):
        rest = data[starts[end - 1] + (last.end_col_offset or 0) : starts[end]]
        if not rest.endswith((b"\n", b"\r")) and (not rest.strip() or rest.lstrip().startswith(b"#")):
            return len(data), newline, ""
        if not rest.strip() or rest.lstrip().startswith(b"#"):
            return starts[end], "", newline
        return starts[last.lineno - 1], "", newline
    return len(data), newline, ""
