"""Values of expressions. Calls are in ``calls``.

Checks run only on relevant nodes: names and attributes of an engine or an array, operators and subscripts whose value
is an array or a string, and comparisons with these.
"""

from __future__ import annotations

import ast
from typing import Any

from emberlint.config import EMBER_TENSORS
from emberlint.inference.conditions import named_engines, narrowed
from emberlint.inference.results import PLAIN, combined, element_of, first_array, stronger, value_of_type
from emberlint.inference.state import State
from emberlint.inference.targets import bind
from emberlint.inference.values import (
    AT,
    ATTRIBUTE,
    BOOL,
    CALL,
    CONSTANTS,
    DIMENSIONS,
    ELEMENT,
    INT,
    LITERAL,
    MEMBER,
    OPERATOR,
    TEXT,
    Value,
    any_relevant,
    merged,
    reference,
)
from emberlint.inference.visitors import EVALUATE, evaluate, evaluates, iterated, record_value, run_checks, truth
from emberlint.knowledge.returns import ATTRIBUTES
from emberlint.knowledge.types import ARRAYS, DTYPE, HOST, INSTANCE, REFERENCE, SCALAR, SEQUENCE, SHAPE, STRING, TENSOR


@evaluates(ast.Name)
def _name(node: ast.Name, state: State) -> Value | None:
    name = node.id
    env = state.env
    if name in env:
        value = env[name]
    else:
        for scope in state.outer:
            if name in scope:
                value = scope[name]
                break
        else:
            return None
    if value is None:
        return None
    state.known[node] = value
    if value.relevant and value.kind == REFERENCE and "." in value.path:
        for check in state.checks.names[value.path]:
            check(node, state)
    return value


@evaluates(ast.Attribute)
def _attribute(node: ast.Attribute, state: State) -> Value | None:
    part = node.value
    owner = EVALUATE[type(part)](part, state)
    if owner is None:
        return None
    kind = owner.kind
    if kind == REFERENCE:
        path = f"{owner.path}.{node.attr}"
        known = state.known[node] = reference(state.imports.canonical(path) if state.imports.renames else path)
        if known.relevant:
            for check in state.checks.attributes[known.path]:
                check(node, state)
        return known
    if kind == INSTANCE:
        # Code outside of the class may replace an attribute that holds an engine's function, so no check sees it.
        value = _member(owner, node, state)
        if value is not None:
            state.known[node] = value
        return value
    if kind in ARRAYS:
        value = _property(owner, node)
        if value is not None:
            state.known[node] = value
    elif kind == DTYPE:
        value = None
    else:
        return None
    for check in state.checks.properties[node.attr]:
        check(node, state)
    return value


def _member(owner: Value, node: ast.Attribute, state: State) -> Value | None:
    """Attribute of an instance of a class of the file, or of an engine's layer."""
    klass = state.classes.get(owner.node)
    name = node.attr
    if klass is not None:
        if name not in klass.attributes:
            return klass.methods.get(name)
        value = klass.attributes[name]
        if value is None or value.kind not in ARRAYS:
            return value
        return Value(value.kind, value.engine, node, MEMBER, value, dtype=value.dtype, nullable=value.nullable)
    if owner.engine and name in ("weight", "bias"):
        return Value(TENSOR, owner.engine, node, ATTRIBUTE)
    return None


def _property(owner: Value, node: ast.Attribute) -> Value | None:
    """Attribute of an array."""
    name = node.attr
    word = ATTRIBUTES.get(name)
    if word is None:
        if name == "at" and owner.kind == TENSOR and owner.engine != "torch":
            return Value(INSTANCE, owner.engine, node, ATTRIBUTE, owner, path=AT)
        return Value(STRING, node=node, path="get_backend") if name == "backend" else None
    if word == "same" or word == owner.engine:
        return Value(owner.kind, owner.engine, node, ATTRIBUTE, owner, dtype=owner.dtype)
    if word == SHAPE:
        return Value(SHAPE, node=node, reason=ATTRIBUTE, source=owner, dtype="int", element=INT)
    if name == "size" and owner.engine == "torch":
        return None
    return value_of_type(word, "", node)


def _computed(node: Any, value: Value | None, state: State) -> Value | None:
    """Record the value of an operator or a subscript, and run the checks if it is an array or a string."""
    if value is not None:
        state.known[node] = value
        if value.kind in ARRAYS or value.kind == STRING:
            run_checks(node, state)
    return value


@evaluates(ast.BinOp)
def _binary(node: ast.BinOp, state: State) -> Value | None:
    left, right = node.left, node.right
    first = EVALUATE[type(left)](left, state)
    second = EVALUATE[type(right)](right, state)
    value = combined(node, first, second)
    if value is not None and value.kind == HOST and (first is None or second is None) and _may_wrap(state):
        value = None
    return _computed(node, value, state)


def _may_wrap(state: State) -> bool:
    """Whether an unknown value may be an EmberTensor, whose result with a NumPy array is an EmberTensor too."""
    return EMBER_TENSORS in state.imports.tops and not state.imports.renames


@evaluates(ast.UnaryOp)
def _unary(node: ast.UnaryOp, state: State) -> Value | None:
    if type(node.op) is ast.Not:
        truth(node.operand, state)
        value: Value | None = BOOL
    else:
        value = evaluate(node.operand, state)
        if value is not None and value.kind != SCALAR:
            array = value.kind in ARRAYS
            value = Value(value.kind, value.engine, node, OPERATOR, value, dtype=value.dtype) if array else None
    return _computed(node, value, state)


@evaluates(ast.Compare)
def _compare(node: ast.Compare, state: State) -> Value | None:
    values = []
    for part in (node.left, *node.comparators):
        kind = type(part)
        if kind is ast.Attribute or kind is ast.Name:
            state.uses.compared[part] = node
        values.append(EVALUATE[kind](part, state))
    value: Value | None = None
    if type(node.ops[0]) in (ast.Is, ast.IsNot, ast.In, ast.NotIn):
        value = BOOL
    else:
        array = first_array(values)
        if array is not None:
            value = Value(stronger(values), array.engine, node, OPERATOR, array, dtype="bool")
        elif all(one is not None and one.kind in PLAIN for one in values):
            value = BOOL
    if value is not None:
        state.known[node] = value
    if any_relevant(values) or (state.interest.branches and named_engines(node, state)):
        run_checks(node, state)
    return value


@evaluates(ast.BoolOp)
def _boolean(node: ast.BoolOp, state: State) -> Value | None:
    last = len(node.values) - 1
    holds = type(node.op) is ast.And
    value: Value | None = None
    env = state.env
    for i, part in enumerate(node.values):
        one = truth(part, state) if i < last else evaluate(part, state)
        value = one if i == 0 else merged(value, one)
        if i < last:
            yes, no = narrowed(part, state)
            state.env = {**state.env, **(yes if holds else no)}
    state.env = env
    return record_value(node, value, state)


@evaluates(ast.IfExp)
def _conditional(node: ast.IfExp, state: State) -> Value | None:
    truth(node.test, state)
    yes, no = narrowed(node.test, state)
    env = state.env
    state.env = {**env, **yes} if yes else env
    first = evaluate(node.body, state)
    state.env = {**env, **no} if no else env
    second = evaluate(node.orelse, state)
    state.env = env
    return record_value(node, merged(first, second), state)


@evaluates(ast.Subscript)
def _subscript(node: ast.Subscript, state: State) -> Value | None:
    owner = evaluate(node.value, state)
    index = evaluate(node.slice, state)
    return _computed(node, _part(owner, index, node), state) if owner is not None else None


def _part(owner: Value, index: Value | None, node: ast.Subscript) -> Value | None:
    """Value of a subscript."""
    kind = owner.kind
    if kind in ARRAYS:
        if index is not None and index.kind == STRING:
            return None  # a field of a structured array, which is not a tensor
        return Value(kind, owner.engine, node, ELEMENT, owner, dtype=owner.dtype)
    if kind == INSTANCE:
        return owner if owner.path == AT else None
    if kind == REFERENCE:
        return Value(HOST, "numpy", node, CALL) if owner.path in ("numpy.r_", "numpy.c_", "numpy.mgrid") else None
    if kind == SHAPE:
        return DIMENSIONS if type(node.slice) is ast.Slice else INT
    if kind == SEQUENCE:
        if type(node.slice) is ast.Slice:
            return Value(SEQUENCE, element=element_of(owner, node))
        if owner.items is not None and type(node.slice) is ast.Constant and isinstance(node.slice.value, int):
            place = node.slice.value
            return owner.items[place] if -len(owner.items) <= place < len(owner.items) else None
        return element_of(owner, node) if index is not None and index.kind == SCALAR else None
    return TEXT if kind == STRING else None


@evaluates(ast.Tuple, ast.List)
def _display(node: Any, state: State) -> Value | None:
    items: list[Value | None] = []
    starred = False
    for element in node.elts:
        kind = type(element)
        if kind is ast.Constant:
            items.append(CONSTANTS.get(type(element.value)))
        else:
            items.append(EVALUATE[kind](element, state))
            starred = starred or kind is ast.Starred
    if starred or type(node.ctx) is not ast.Load:
        return record_value(node, None, state)
    return record_value(node, Value(SEQUENCE, node=node, reason=LITERAL, items=tuple(items)), state)


@evaluates(ast.Dict)
def _dictionary(node: ast.Dict, state: State) -> Value | None:
    for part in (*node.keys, *node.values):
        if part is not None:
            EVALUATE[type(part)](part, state)
    return record_value(node, None, state)


@evaluates(ast.Slice)
def _slice(node: ast.Slice, state: State) -> Value | None:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            EVALUATE[type(part)](part, state)
    return record_value(node, None, state)


@evaluates(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
def _comprehension(node: Any, state: State) -> Value | None:
    env = state.env
    state.env = env.copy()
    loops = state.loops
    for generator in node.generators:
        over = iterated(generator.iter, state)
        state.loops = loops + 1  # the first iterable is evaluated once, outside of the loop
        bind(generator.target, element_of(over, generator.iter) if over is not None else None, state)
        for condition in generator.ifs:
            truth(condition, state)
    if type(node) is ast.DictComp:
        evaluate(node.key, state)
        evaluate(node.value, state)
        element = None
    else:
        element = evaluate(node.elt, state)
    state.loops = loops
    state.env = env
    value = Value(SEQUENCE, node=node, reason=LITERAL, element=element) if element is not None else None
    return record_value(node, value, state)


@evaluates(ast.Lambda)
def _lambda(node: ast.Lambda, state: State) -> Value | None:
    env, loops = state.env, state.loops
    arguments = node.args
    for default in (*arguments.defaults, *arguments.kw_defaults):
        if default is not None:
            evaluate(default, state)
    names = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    state.env = {**env, **{argument.arg: None for argument in names if argument is not None}}
    state.loops = 0
    evaluate(node.body, state)
    state.env, state.loops = env, loops
    return record_value(node, None, state)


@evaluates(ast.NamedExpr)
def _walrus(node: ast.NamedExpr, state: State) -> Value | None:
    value = evaluate(node.value, state)
    bind(node.target, value, state)
    return record_value(node, value, state)


@evaluates(ast.JoinedStr)
def _string(node: ast.JoinedStr, state: State) -> Value | None:
    for part in node.values:
        if type(part) is ast.FormattedValue:
            evaluate(part, state)
    return record_value(node, TEXT, state)


@evaluates(ast.FormattedValue)
def _field(node: ast.FormattedValue, state: State) -> Value | None:
    evaluate(node.value, state)
    if node.format_spec is not None:
        evaluate(node.format_spec, state)
    value = state.known.get(node.value)
    if value is not None and value.relevant:
        run_checks(node, state)
    return None


@evaluates(ast.Yield, ast.YieldFrom)
def _yield(node: Any, state: State) -> Value | None:
    if state.function is not None:
        state.functions.generators.add(state.function)
    if node.value is not None:
        evaluate(node.value, state)
    return record_value(node, None, state)


@evaluates(ast.Starred)
def _starred(node: ast.Starred, state: State) -> Value | None:
    iterated(node.value, state)
    return record_value(node, None, state)
