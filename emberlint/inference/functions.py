"""Functions of a file. Heads are visited at the definition, bodies later or on the first call."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference import parameters
from emberlint.inference.annotations import annotated, annotation
from emberlint.inference.scopes import Body, Class, Scopes
from emberlint.inference.state import State
from emberlint.inference.values import ANNOTATED, CALL, NOTHING, Value, merged
from emberlint.inference.visitors import EVALUATE, block, executes, run_checks
from emberlint.knowledge.types import ARRAYS, FUNCTION, IRRELEVANT, SEQUENCE
from emberlint.source.tree import is_static, is_wrapped


@executes(ast.FunctionDef, ast.AsyncFunctionDef)
def define(node: Any, state: State) -> None:
    """Bind a function's name, and defer its body."""
    decorators = node.decorator_list
    if decorators or state.interest.touches(node):
        _head(node, state)
    name = node.name
    state.env[name] = None if decorators and is_wrapped(node) else Value(FUNCTION, node=node, path=name)
    state.interest.relevant.add(name.encode())
    defer(Body(node, (state.env, *state.outer)), state)
    if type(node) in state.checks.on:
        run_checks(node, state)


def defer(body: Body, state: State) -> None:
    """Queue a function's body, to be visited when the names around it are known or when it is called."""
    state.functions.waiting[body.node] = body
    state.pending.append(body)


def _head(node: Any, state: State) -> None:
    """Visit a function's decorators, defaults and annotations."""
    arguments = node.args
    for part in (*node.decorator_list, *arguments.defaults, *arguments.kw_defaults):
        if part is not None:
            EVALUATE[type(part)](part, state)
    others = arguments.vararg, arguments.kwarg
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *others):
        if argument is not None and argument.annotation is not None:
            annotation(argument.annotation, state)
    if node.returns is not None:
        annotation(node.returns, state)


def enter(body: Body, state: State) -> Value | None:
    """Visit a function's body in a new scope, and return the value that the function returns."""
    node, outer, klass = body
    functions = state.functions
    scope = state.env, state.outer, state.klass, state.function
    progress = state.loops, state.returns, state.ended, state.pending
    state.env, state.outer, state.klass, state.function, state.loops = {}, outer, klass, node, 0
    state.returns, state.ended, state.pending = [], False, []
    functions.open.add(node)
    try:
        _parameters(node, klass, state)
        block(node.body, state)
        if not state.ended:
            state.returns.append(NOTHING)
        if state.pending:
            _enter_inner(state.pending, (state.env, *outer), state)
        values = state.returns
    finally:
        functions.open.discard(node)
        state.env, state.outer, state.klass, state.function = scope
        state.loops, state.returns, state.ended, state.pending = progress
    value = declared(node, state)
    if value is None and node not in functions.generators and type(node) is ast.FunctionDef:
        value = values[0] if values else None
        for other in values[1:]:
            value = merged(value, other)
    functions.results[node] = value
    if value is not None and (value.kind in ARRAYS or value.kind == SEQUENCE):
        state.interest.note(node.name, value)
    return value


def _enter_inner(pending: list[Body], scopes: Scopes, state: State) -> None:
    functions = state.functions
    while pending:
        node, _, klass = pending.pop(0)
        if node not in functions.results and node not in functions.open:
            enter(Body(node, scopes, klass), state)


def declared(node: Any, state: State) -> Value | None:
    """Value that a function's return annotation declares."""
    if node.returns is None or type(node) is ast.AsyncFunctionDef:
        return None
    return annotated(node.returns, state)


def _parameters(node: Any, klass: Class | None, state: State) -> None:
    """Bind the parameters of the function being visited."""
    arguments = node.args
    env, relevant = state.env, state.interest.relevant
    positional = [*arguments.posonlyargs, *arguments.args]
    every = [*positional, *arguments.kwonlyargs]
    first = every[0] if klass is not None and every else None
    if klass is not None and first is not None and first.annotation is None and not is_static(node):
        env[first.arg] = klass.instance
        del every[0]
    if every:
        inferred = parameters.parameters(every, node, klass, state.functions.passed.get(node, {}), state)
        defaults = _defaults(positional, arguments) if inferred else {}
        for argument in every:
            value: Value | None = None
            if argument.annotation is not None:
                value = _declared_parameter(argument, state)
            elif argument.arg in inferred:
                default = defaults.get(argument)
                if default is None or (type(default) is ast.Constant and default.value is None):
                    value = inferred[argument.arg]
                    value.nullable = default is not None
            env[argument.arg] = value
            if value is not None and value.kind not in IRRELEVANT and argument is not first:
                relevant.add(argument.arg.encode())
    for argument in (arguments.vararg, arguments.kwarg):
        if argument is not None:
            relevant.add(argument.arg.encode())
            known = annotated(argument.annotation, state) if argument.annotation is not None else None
            env[argument.arg] = (
                Value(SEQUENCE, node=argument, reason=ANNOTATED, element=known)
                if known is not None and argument is arguments.vararg
                else None
            )


def _defaults(positional: list[ast.arg], arguments: ast.arguments) -> dict[ast.arg, ast.expr | None]:
    found: dict[ast.arg, ast.expr | None] = dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    found.update(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    return found


def _declared_parameter(argument: ast.arg, state: State) -> Value | None:
    """Value that the annotation of a parameter declares."""
    known = annotated(argument.annotation, state)
    if known is None:
        return None
    return Value(
        known.kind,
        known.engine,
        argument,
        ANNOTATED,
        dtype=known.dtype,
        path=known.path,
        element=known.element,
        items=known.items,
        argument=argument.arg,
        nullable=known.nullable,
    )


def function_result(target: Value, node: ast.AST, state: State) -> Value | None:
    """Value of a call of a function of the file; visits its body if that has not been done."""
    definition: Any = target.node
    functions = state.functions
    if definition in functions.results:
        value = functions.results[definition]
    elif definition in functions.open:
        value = None
    else:
        value = declared(definition, state)
        if value is None:
            waiting = functions.waiting.get(definition)
            if waiting is None:
                return None
            if type(node) is ast.Call and parameters.is_helper(definition.name, state):
                functions.passed[definition] = parameters.passed(definition, node, state)
            if not functions.passed.get(definition) and not state.interest.touches(definition):
                return None
            value = enter(waiting, state)
    if value is None or value.kind not in ARRAYS:
        return value
    return Value(value.kind, value.engine, node, CALL, value, dtype=value.dtype)
