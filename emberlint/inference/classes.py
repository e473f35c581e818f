"""Classes of a file: their members, the attributes that methods assign, and calls of their instances."""

from __future__ import annotations

import ast

from emberlint.inference.elements import UNSUPPORTED
from emberlint.inference.functions import defer, function_result
from emberlint.inference.scopes import Body, Class
from emberlint.inference.state import State
from emberlint.inference.values import CALL, Value, merged
from emberlint.inference.visitors import block, evaluate, executes, run_checks
from emberlint.knowledge.types import ARRAYS, CLASS, FUNCTION, INSTANCE, IRRELEVANT, NONE, SEQUENCE, TENSOR
from emberlint.source.tree import dotted

# Methods that assign attributes are visited before the others.
_FIRST = frozenset({"__init__", "__post_init__", "setup", "build"})


@executes(ast.ClassDef)
def define(node: ast.ClassDef, state: State) -> None:
    """Visit a class's head and body, bind its name, and defer its methods."""
    for part in (*node.decorator_list, *node.bases):
        evaluate(part, state)
    for keyword in node.keywords:
        evaluate(keyword.value, state)
    klass = Class(node, [state.path(base) or dotted(base) for base in node.bases])
    state.classes[node] = klass
    run_checks(node, state)
    enclosing, outer, around, pending = state.env, state.outer, state.klass, state.pending
    scopes = (enclosing, *outer)
    state.env, state.outer, state.klass, state.pending = {}, scopes, klass, []
    block(node.body, state)
    members, methods = state.env, state.pending
    state.env, state.outer, state.klass, state.pending = enclosing, outer, around, pending
    for name, value in members.items():
        if value is not None and value.kind == FUNCTION:
            klass.methods[name] = value
        else:
            klass.attributes[name] = value
    methods.sort(key=lambda body: body.node.name not in _FIRST)
    for inner, _, inner_class in methods:
        defer(Body(inner, scopes, inner_class or klass), state)
    enclosing[node.name] = Value(CLASS, node=node, path=node.name)
    state.interest.relevant.add(node.name.encode())


def record_attribute(klass: Class, name: str, value: Value | None, state: State) -> None:
    """Record an assignment to an attribute of a class's instances."""
    if name in klass.attributes:
        before = klass.attributes[name]
        if before is not None and before.kind == NONE:
            pass
        elif before is not None and before.path == UNSUPPORTED:
            value = before
        elif state.lenient and (before is None or value is None):
            value = before if value is None else value
        else:
            value = merged(before, value)
    klass.attributes[name] = value
    if value is not None and value.kind not in IRRELEVANT:
        state.interest.relevant.add(name.encode())
        if value.kind in ARRAYS or value.kind == INSTANCE or value.kind == SEQUENCE:
            state.interest.note(name, value)


def called(target: Value, node: ast.AST, state: State) -> Value | None:
    """Value of a call of an instance."""
    klass = state.classes.get(target.node)
    if klass is not None:
        method = klass.methods.get("__call__") or klass.methods.get("forward")
        return function_result(method, node, state) if method is not None else None
    return Value(TENSOR, target.engine, node, CALL, target) if target.engine else None
