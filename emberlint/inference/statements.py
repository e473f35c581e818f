"""Effects of statements on the names in scope. Statements with blocks are in ``blocks``."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference.annotations import annotated, annotation
from emberlint.inference.conditions import narrowed
from emberlint.inference.imports import Import
from emberlint.inference.results import combined
from emberlint.inference.state import State
from emberlint.inference.targets import bind
from emberlint.inference.values import ANNOTATED, NOTHING, Value, reference
from emberlint.inference.visitors import EVALUATE, evaluate, evaluate_if_relevant, executes, run_checks, truth
from emberlint.knowledge.engines import engine_of
from emberlint.knowledge.types import ARRAYS, IRRELEVANT, SEQUENCE


@executes(ast.Import)
def _import(node: ast.Import, state: State) -> None:
    for name in node.names:
        if name.asname:
            bound, path = name.asname, name.name
        else:
            bound = path = name.name.partition(".")[0]
        state.env[bound] = reference(path)
        _imported(node, name.name, name, bound, state)
    run_checks(node, state)


@executes(ast.ImportFrom)
def _import_from(node: ast.ImportFrom, state: State) -> None:
    base = state.imports.resolve(node)
    for name in node.names:
        if name.name == "*":
            continue
        path = f"{base}.{name.name}" if base else name.name
        bound = name.asname or name.name
        state.env[bound] = reference(state.imports.canonical(path) if state.imports.renames else path)
        _imported(node, path, name, bound, state)
    run_checks(node, state)


def _imported(node: ast.stmt, path: str, name: ast.alias, bound: str, state: State) -> None:
    lazy = state.function is not None
    state.imports.entries.append(Import(node, path, name, bound, lazy, state.typing, state.guarded))
    if not (lazy or state.typing or state.guarded):
        state.imports.tops.setdefault(path, bound)
    engine = engine_of(path)
    if engine:
        state.imports.engines.add(engine)


@executes(ast.Return)
def _return(node: ast.Return, state: State) -> None:
    state.returns.append(NOTHING if node.value is None else evaluate_if_relevant(node, node.value, state))
    run_checks(node, state)
    state.ended = True


@executes(ast.Raise)
def _raise(node: ast.Raise, state: State) -> None:
    if state.interest.is_relevant(node):
        for part in (node.exc, node.cause):
            if part is not None:
                evaluate(part, state)
    run_checks(node, state)
    state.ended = True


@executes(ast.Continue, ast.Break)
def _leave(node: ast.stmt, state: State) -> None:
    run_checks(node, state)
    state.ended = True


@executes(ast.Expr)
def _expression(node: ast.Expr, state: State) -> None:
    value = node.value
    if type(value) is not ast.Constant and state.interest.is_relevant(node):
        EVALUATE[type(value)](value, state)
    if ast.Expr in state.checks.on:
        run_checks(node, state)


@executes(ast.Assign)
def _assign(node: ast.Assign, state: State) -> None:
    value = evaluate_if_relevant(node, node.value, state)
    targets = node.targets
    first = targets[0]
    if type(first) is ast.Name and len(targets) == 1:
        # An inlined `bind`: most statements are assignments to one name.
        state.env[first.id] = value
        if value is not None and (value.kind not in IRRELEVANT or value.path):
            state.interest.relevant.add(first.id.encode())
        if state.lenient:
            run_checks(node, state)  # a port notes the variables that hold views
        return
    for target in targets:
        bind(target, value, state)
    run_checks(node, state)


@executes(ast.AnnAssign)
def _annotated_assign(node: ast.AnnAssign, state: State) -> None:
    annotation(node.annotation, state)
    value = evaluate(node.value, state) if node.value is not None else None
    declared = annotated(node.annotation, state)
    if declared is not None and (value is None or value.kind not in ARRAYS):
        value = Value(
            declared.kind,
            declared.engine,
            node.target,
            ANNOTATED,
            dtype=declared.dtype,
            element=declared.element,
            items=declared.items,
            nullable=declared.nullable,
        )
    bind(node.target, value, state)
    run_checks(node, state)


@executes(ast.AugAssign)
def _augmented(node: ast.AugAssign, state: State) -> None:
    target = node.target
    before: Value | None
    if isinstance(target, ast.Name):
        before = state.lookup(target.id)
        if before is not None:
            state.known[target] = before
    else:
        before = evaluate(target, state)
    value = evaluate(node.value, state)
    run_checks(node, state)
    after = combined(node, before, value)
    if after is not None and before is not None and before.kind in ARRAYS:
        after.argument = before.argument
    if state.lenient and before is not None and before.kind == SEQUENCE and type(node.op) is ast.Add:
        after = Value(SEQUENCE, node=before.node, reason=before.reason)  # a list is extended
    if isinstance(target, ast.Name):
        bind(target, after, state)


@executes(ast.Delete)
def _delete(node: ast.Delete, state: State) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            state.env.pop(target.id, None)
        else:
            evaluate(target, state)
    run_checks(node, state)


@executes(ast.Assert)
def _assert(node: ast.Assert, state: State) -> None:
    if state.interest.is_relevant(node):
        truth(node.test, state)
        if node.msg is not None:
            evaluate(node.msg, state)
    run_checks(node, state)
    state.env.update(narrowed(node.test, state)[0])


@executes(ast.Global, ast.Nonlocal)
def _global(node: Any, state: State) -> None:
    for name in node.names:
        state.env[name] = None
    run_checks(node, state)
