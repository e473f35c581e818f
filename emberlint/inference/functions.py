"""Functions of a file: their heads where they stand, their bodies later or when they are called, what they answer."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference import parameters
from emberlint.inference.annotations import annotated, annotation
from emberlint.inference.file import File
from emberlint.inference.scopes import Body, Class, Scopes
from emberlint.inference.values import CALL, NOTHING, SAYS, Value, merged
from emberlint.inference.visitors import EVALUATE, block, checked, executes
from emberlint.knowledge.types import ARRAYS, COLD, FUNCTION, SEQUENCE
from emberlint.source.tree import is_static, is_wrapped


@executes(ast.FunctionDef, ast.AsyncFunctionDef)
def define(node: Any, file: File) -> None:
    """Bind a function's name, and put its body off."""
    decorators = node.decorator_list
    if decorators or file.interest.touches(node):
        _head(node, file)
    name = node.name
    file.env[name] = None if decorators and is_wrapped(node) else Value(FUNCTION, node=node, path=name)
    file.interest.warm.add(name.encode())
    later(Body(node, (file.env, *file.outer)), file)
    if type(node) in file.checks.on:
        checked(node, file)


def later(body: Body, file: File) -> None:
    """Visit a function's body when the names around it are known, or when it is called."""
    file.functions.waiting[body.node] = body
    file.pending.append(body)


def _head(node: Any, file: File) -> None:
    """Visit what surrounds a function's body: decorators, defaults, annotations."""
    arguments = node.args
    for part in (*node.decorator_list, *arguments.defaults, *arguments.kw_defaults):
        if part is not None:
            EVALUATE[type(part)](part, file)
    others = arguments.vararg, arguments.kwarg
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *others):
        if argument is not None and argument.annotation is not None:
            annotation(argument.annotation, file)
    if node.returns is not None:
        annotation(node.returns, file)


def enter(body: Body, file: File) -> Value | None:
    """Visit a function's body in a scope of its own; what it answers."""
    node, outer, klass = body
    functions = file.functions
    saved = file.env, file.outer, file.klass, file.function, file.loops, file.returns, file.ended, file.pending
    file.env, file.outer, file.klass, file.function, file.loops = {}, outer, klass, node, 0
    file.returns, file.ended, file.pending = [], False, []
    functions.open.add(node)
    try:
        _parameters(node, klass, file)
        block(node.body, file)
        if not file.ended:
            file.returns.append(NOTHING)
        if file.pending:
            _enter_inner(file.pending, (file.env, *outer), file)
        answers = file.returns
    finally:
        functions.open.discard(node)
        file.env, file.outer, file.klass, file.function, file.loops, file.returns, file.ended, file.pending = saved
    value = declared(node, file)
    if value is None and node not in functions.generators and type(node) is ast.FunctionDef:
        value = answers[0] if answers else None
        for other in answers[1:]:
            value = merged(value, other)
    functions.answers[node] = value
    if value is not None and (value.kind in ARRAYS or value.kind == SEQUENCE):
        file.interest.note(node.name, value)
    return value


def _enter_inner(pending: list[Body], scopes: Scopes, file: File) -> None:
    functions = file.functions
    while pending:
        node, _, klass = pending.pop(0)
        if node not in functions.answers and node not in functions.open:
            enter(Body(node, scopes, klass), file)


def declared(node: Any, file: File) -> Value | None:
    """What a function is annotated to answer."""
    if node.returns is None or type(node) is ast.AsyncFunctionDef:
        return None
    return annotated(node.returns, file)


def _parameters(node: Any, klass: Class | None, file: File) -> None:
    """Bind the parameters of a function that is being visited."""
    arguments = node.args
    env, warm = file.env, file.interest.warm
    positional = [*arguments.posonlyargs, *arguments.args]
    every = [*positional, *arguments.kwonlyargs]
    first = every[0] if klass is not None and every else None
    if klass is not None and first is not None and first.annotation is None and not is_static(node):
        env[first.arg] = klass.instance
        del every[0]
    if every:
        inferred = parameters.parameters(every, node, klass, file.functions.passed.get(node, {}), file)
        defaults = _defaults(positional, arguments) if inferred else {}
        for argument in every:
            value: Value | None = None
            if argument.annotation is not None:
                value = _promised(argument, file)
            elif argument.arg in inferred:
                default = defaults.get(argument)
                if default is None or (type(default) is ast.Constant and default.value is None):
                    value = inferred[argument.arg]
                    value.nullable = default is not None
            env[argument.arg] = value
            if value is not None and value.kind not in COLD and argument is not first:
                warm.add(argument.arg.encode())
    for argument in (arguments.vararg, arguments.kwarg):
        if argument is not None:
            warm.add(argument.arg.encode())
            known = annotated(argument.annotation, file) if argument.annotation is not None else None
            env[argument.arg] = (
                Value(SEQUENCE, node=argument, reason=SAYS, element=known)
                if known is not None and argument is arguments.vararg
                else None
            )


def _defaults(positional: list[ast.arg], arguments: ast.arguments) -> dict[ast.arg, ast.expr | None]:
    found: dict[ast.arg, ast.expr | None] = dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    found.update(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    return found


def _promised(argument: ast.arg, file: File) -> Value | None:
    """What the annotation of a parameter promises, passed in by its name."""
    known = annotated(argument.annotation, file)
    if known is None:
        return None
    return Value(
        known.kind,
        known.engine,
        argument,
        SAYS,
        dtype=known.dtype,
        path=known.path,
        element=known.element,
        items=known.items,
        argument=argument.arg,
        nullable=known.nullable,
    )


def answered(target: Value, node: ast.AST, file: File) -> Value | None:
    """What a call of a function of the file answers; its body is visited for that, if it has not been."""
    definition: Any = target.node
    functions = file.functions
    if definition in functions.answers:
        value = functions.answers[definition]
    elif definition in functions.open:
        value = None
    else:
        value = declared(definition, file)
        if value is None:
            waiting = functions.waiting.get(definition)
            if waiting is None:
                return None
            if type(node) is ast.Call and parameters.is_helper(definition.name, file):
                functions.passed[definition] = parameters.passed(definition, node, file)
            if not functions.passed.get(definition) and not file.interest.touches(definition):
                return None
            value = enter(waiting, file)
    if value is None or value.kind not in ARRAYS:
        return value
    return Value(value.kind, value.engine, node, CALL, value, dtype=value.dtype)
