"""Arrays that a module makes when it is imported: constants, attributes of classes, and defaults of parameters.

A tensor belongs to the backend that is active when it is made, and operations reject tensors of two engines. A NumPy
array has no such limit: operations and operators convert it to the engine of the other arguments. So a port to
EmberTensors leaves these arrays as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from emberlint.config import EMBER_TENSORS
from emberlint.findings import Finding
from emberlint.inference.file import File
from emberlint.inference.state import State
from emberlint.knowledge.engines import engine_of
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import HOST

# Rules about NumPy's arrays, whose fixes would make tensors of one engine.
_OF_ARRAYS = words("EMB101 EMB102 EMB103 EMB105 EMB106 EMB314")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Constant(NamedTuple):
    """An expression that is evaluated at import: ``name`` is ``A``, ``C.a`` or ``f(a)``."""

    name: str
    value: ast.expr
    annotation: ast.expr | None = None

    def nodes(self) -> Iterator[ast.AST]:
        """Nodes that are evaluated at import, with those of the annotation."""
        yield from _evaluated(self.value)
        if self.annotation is not None:
            yield from ast.walk(self.annotation)


def array_constants(state: State, taken: frozenset[str]) -> frozenset[str]:
    """Names of the constants of a visited file that hold NumPy arrays.

    ``taken`` are the names that other files import from it.
    """
    found = [one for one in _constants(state.tree) if any(_is_host(node, state) for node in _evaluated(one.value))]
    return _lasting(found, state.tree, taken)


def kept_nodes(names: frozenset[str], file: File) -> frozenset[ast.AST]:
    """Nodes of a file that belong to the constants of these names."""

    def search() -> frozenset[ast.AST]:
        return frozenset(node for one in _constants(file.tree) if one.name in names for node in one.nodes())

    found: frozenset[ast.AST] = file.shared("constants", search) if names else frozenset()
    return found


def tensor_constants(state: State, taken: frozenset[str]) -> list[Finding]:
    """Notes about the constants of a visited file that hold tensors."""
    found = []
    for one in _constants(state.tree):
        value = state.value(one.value)
        if value is not None and value.is_tensor:
            found.append(one)
    names = _lasting(found, state.tree, taken)
    return [_note(one, state) for one in found if one.name in names]


def is_of_ember_tensors(file: File) -> bool:
    """Whether a file computes with EmberTensors: by its configuration, or by an import at its top."""
    return EMBER_TENSORS in (file.config.namespace, *file.imports.tops)


def without_constants(findings: list[Finding], state: State, names: frozenset[str]) -> list[Finding]:
    """Findings in a visited file, without those about the constants of these names.

    An import of NumPy that only these constants use is not reported either.
    """
    kept = kept_nodes(names, state)
    if not kept:
        return findings
    places = {(node.lineno, node.col_offset) for node in kept if isinstance(node, ast.expr)}
    used = {node.id for node in ast.walk(state.tree) if isinstance(node, ast.Name) and node not in kept}
    for entry in state.imports.entries:
        if engine_of(entry.path) == "numpy" and entry.alias not in used:
            places.add((entry.name.lineno, entry.name.col_offset))
    return [one for one in findings if one.code not in _OF_ARRAYS or (one.line, one.column) not in places]


def _note(one: Constant, state: State) -> Finding:
    line, column = one.value.lineno, one.value.col_offset
    message = (
        f"`{one.name}` is a tensor of the backend that is active at import; "
        "combined with tensors of another engine it raises TypeError"
    )
    return Finding("", message, state.source.path, line, column, line, column, None, ())


def _is_host(node: ast.AST, state: State) -> bool:
    """Whether an expression is a NumPy array."""
    value = state.value(node)
    return value is not None and value.kind == HOST


def _lasting(found: list[Constant], tree: ast.Module, taken: frozenset[str]) -> frozenset[str]:
    """Names of constants that are used after the import, in functions or other files, or by another of them.

    Other names of a module are the variables of a script.
    """
    used = {name for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) for name in _free(node)}
    names = {
        one.name
        for one in found
        if not one.name.isidentifier() or one.name.isupper() or one.name in used or taken & {one.name, "*"}
    }
    while True:
        needed = {name for one in found if one.name in names for name in _read(one.value)}
        more = {one.name for one in found if one.name in needed} - names
        if not more:
            return frozenset(names)
        names |= more


def _read(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            yield part.id


def _free(function: ast.AST) -> set[str]:
    """Names that a function reads and does not bind."""
    parts = list(ast.walk(function))
    bound = {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    bound |= {part.arg for part in parts if isinstance(part, ast.arg)}
    bound -= {name for part in parts if isinstance(part, ast.Global) for name in part.names}
    return {*_read(function)} - bound


def _constants(tree: ast.Module) -> Iterator[Constant]:
    yield from _of_block(tree.body, "")


def _of_block(body: list[ast.stmt], owner: str) -> Iterator[Constant]:
    """Constants of the statements of a module or class."""
    for node in body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in _bound(target):
                    yield Constant(owner + name, node.value, annotation)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function, arguments = node.value.func, node.value.args
            if isinstance(function, ast.Attribute) and function.attr == "at" and arguments:  # np.add.at(a, i, v)
                for name in _bound(arguments[0]):
                    yield Constant(owner + name, node.value)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            places = [*node.args.posonlyargs, *node.args.args]
            defaults = node.args.defaults
            pairs = [*zip(places[len(places) - len(defaults) :], defaults, strict=True)]
            pairs += [
                (one, value)
                for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                if value is not None
            ]
            for one, default in pairs:
                yield Constant(f"{owner}{node.name}({one.arg})", default)
        elif isinstance(node, ast.ClassDef):
            yield from _of_block(node.body, f"{owner}{node.name}.")
        elif not _is_main(node):
            for block in ("body", "orelse", "finalbody"):
                yield from _of_block(getattr(node, block, []), owner)
            for handler in getattr(node, "handlers", []):
                yield from _of_block(handler.body, owner)


def _is_main(node: ast.stmt) -> bool:
    """Whether a statement is ``if __name__ == "__main__"``."""
    return isinstance(node, ast.If) and "__name__" in _read(node.test)


def _bound(target: ast.expr) -> Iterator[str]:
    """Names that an assignment binds, and the names of the arrays that it writes to."""
    while isinstance(target, (ast.Subscript, ast.Starred)):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _bound(part)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of an expression without the bodies of functions in it."""
    yield node
    if not isinstance(node, ast.Lambda):
        for part in ast.iter_child_nodes(node):
            yield from _evaluated(part)
