"""Statements: what they do to the names in scope. Those with blocks are in ``branches``."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference.annotations import annotated, annotation
from emberlint.inference.conditions import narrowed
from emberlint.inference.file import File
from emberlint.inference.results import combined
from emberlint.inference.scopes import Import
from emberlint.inference.targets import bind
from emberlint.inference.values import NOTHING, SAYS, Value, reference
from emberlint.inference.visitors import EVALUATE, checked, evaluate, executes, truth, worthwhile
from emberlint.knowledge.engines import engine_of
from emberlint.knowledge.types import ARRAYS, COLD


@executes(ast.Import)
def _import(node: ast.Import, file: File) -> None:
    for name in node.names:
        if name.asname:
            bound, path = name.asname, name.name
        else:
            bound = path = name.name.partition(".")[0]
        file.env[bound] = reference(path)
        _imported(node, name.name, name, bound, file)
    checked(node, file)


@executes(ast.ImportFrom)
def _import_from(node: ast.ImportFrom, file: File) -> None:
    base = file.resolve(node)
    for name in node.names:
        if name.name == "*":
            continue
        path = f"{base}.{name.name}" if base else name.name
        bound = name.asname or name.name
        file.env[bound] = reference(file.canonical(path) if file.renames else path)
        _imported(node, path, name, bound, file)
    checked(node, file)


def _imported(node: ast.stmt, path: str, name: ast.alias, bound: str, file: File) -> None:
    lazy = file.function is not None
    file.imports.append(Import(node, path, name, bound, lazy, file.typing, file.guarded))
    if not (lazy or file.typing or file.guarded):
        file.tops.setdefault(path, bound)
    engine = engine_of(path)
    if engine:
        file.engines.add(engine)


@executes(ast.Return)
def _return(node: ast.Return, file: File) -> None:
    file.returns.append(NOTHING if node.value is None else worthwhile(node, node.value, file))
    checked(node, file)
    file.ended = True


@executes(ast.Raise)
def _raise(node: ast.Raise, file: File) -> None:
    if file.interest.is_warm(node):
        for part in (node.exc, node.cause):
            if part is not None:
                evaluate(part, file)
    checked(node, file)
    file.ended = True


@executes(ast.Continue, ast.Break)
def _leave(node: ast.stmt, file: File) -> None:
    checked(node, file)
    file.ended = True


@executes(ast.Expr)
def _expression(node: ast.Expr, file: File) -> None:
    value = node.value
    if type(value) is not ast.Constant and file.interest.is_warm(node):
        EVALUATE[type(value)](value, file)
    if ast.Expr in file.checks.on:
        checked(node, file)


@executes(ast.Assign)
def _assign(node: ast.Assign, file: File) -> None:
    value = worthwhile(node, node.value, file)
    targets = node.targets
    first = targets[0]
    if type(first) is ast.Name and len(targets) == 1:
        # What `bind` does, without a call: most statements are these.
        file.env[first.id] = value
        if value is not None and (value.kind not in COLD or value.path):
            file.interest.warm.add(first.id.encode())
        return
    for target in targets:
        bind(target, value, file)
    checked(node, file)


@executes(ast.AnnAssign)
def _annotated_assign(node: ast.AnnAssign, file: File) -> None:
    annotation(node.annotation, file)
    value = evaluate(node.value, file) if node.value is not None else None
    declared = annotated(node.annotation, file)
    if declared is not None and (value is None or value.kind not in ARRAYS):
        value = Value(
            declared.kind,
            declared.engine,
            node.target,
            SAYS,
            dtype=declared.dtype,
            element=declared.element,
            items=declared.items,
            nullable=declared.nullable,
        )
    bind(node.target, value, file)
    checked(node, file)


@executes(ast.AugAssign)
def _augmented(node: ast.AugAssign, file: File) -> None:
    target = node.target
    before: Value | None
    if isinstance(target, ast.Name):
        before = file.lookup(target.id)
        if before is not None:
            file.known[target] = before
    else:
        before = evaluate(target, file)
    value = evaluate(node.value, file)
    checked(node, file)
    after = combined(node, before, value)
    if after is not None and before is not None and before.kind in ARRAYS:
        after.argument = before.argument
    if isinstance(target, ast.Name):
        bind(target, after, file)


@executes(ast.Delete)
def _delete(node: ast.Delete, file: File) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            file.env.pop(target.id, None)
        else:
            evaluate(target, file)
    checked(node, file)


@executes(ast.Assert)
def _assert(node: ast.Assert, file: File) -> None:
    if file.interest.is_warm(node):
        truth(node.test, file)
        if node.msg is not None:
            evaluate(node.msg, file)
    checked(node, file)
    file.env.update(narrowed(node.test, file)[0])


@executes(ast.Global, ast.Nonlocal)
def _global(node: Any, file: File) -> None:
    for name in node.names:
        file.env[name] = None
    checked(node, file)
