"""The two tables of the pass, and the ways into them: what an expression's value is, and what a statement does.

Functions of other modules fill the tables, one for each class of node; those of this one serve the other classes. An
expression's function visits its parts, finds its value, keeps it in ``file.known``, and shows the node to the rules.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from emberlint.inference.checks import NONE, Iteration, Truth
from emberlint.inference.file import File
from emberlint.inference.results import BUILTIN_RESULTS
from emberlint.inference.state import State, state_of
from emberlint.inference.values import CONSTANTS, Value
from emberlint.knowledge.engines import TYPE_NAMES
from emberlint.knowledge.types import ARRAYS
from emberlint.source.tree import last_part

Evaluator = Callable[[Any, State], Value | None]
Executor = Callable[[Any, State], None]


EVALUATE: dict[type, Evaluator] = {}
EXECUTE: dict[type, Executor] = {}


def evaluates(*classes: type) -> Callable[[Evaluator], Evaluator]:
    """A decorator: a function finds the value of expressions of these classes."""

    def enter(function: Evaluator) -> Evaluator:
        EVALUATE.update(dict.fromkeys(classes, function))
        return function

    return enter


def executes(*classes: type) -> Callable[[Executor], Executor]:
    """A decorator: a function does what statements of these classes do."""

    def enter(function: Executor) -> Executor:
        EXECUTE.update(dict.fromkeys(classes, function))
        return function

    return enter


def evaluate(node: Any, state: State) -> Value | None:
    """The value of an expression; its parts are visited first, then the rules see it."""
    return EVALUATE[type(node)](node, state)


def quietly(node: Any, state: State) -> Value | None:
    """The value of an expression, without showing it to the rules."""
    checks, state.checks = state.checks, NONE
    try:
        return EVALUATE[type(node)](node, state)
    finally:
        state.checks = checks


def value_ahead(node: ast.expr, file: File) -> Value | None:
    """The value of an expression that the rules may not have been shown yet, for a rule that must know it."""
    return quietly(node, state_of(file))


def worthwhile(statement: ast.stmt, node: Any, state: State) -> Value | None:
    """The value of a statement's expression. A call in a statement that mentions nothing of interest is not visited:
    only a built-in function could return anything that is known.
    """
    kind = type(node)
    if kind is ast.Call:
        function = node.func
        name = function.id if type(function) is ast.Name else getattr(function, "attr", "")
        if name not in BUILTIN_RESULTS and name not in TYPE_NAMES and not state.interest.is_warm(statement):
            return None
    return EVALUATE[kind](node, state)


def block(body: Iterable[ast.stmt], state: State) -> None:
    """Execute statements one after the other."""
    for statement in body:
        EXECUTE[type(statement)](statement, state)


def shown(node: Any, value: Value | None, state: State) -> Value | None:
    """The value of an expression, after it is kept and the rules have seen the node."""
    if value is not None:
        state.known[node] = value
    if type(node) in state.checks.on:
        checked(node, state)
    return value


def checked(node: Any, state: State) -> None:
    """Show a node to the rules that asked for its class."""
    for check in state.checks.on.get(type(node), ()):
        check(node, state)


def truth(node: Any, state: State) -> Value | None:
    """The value of an expression whose truth is asked for."""
    value = asked = EVALUATE[type(node)](node, state)
    if type(node) is ast.BoolOp:
        asked = state.value(last_part(node))
    if asked is not None and asked.kind in ARRAYS:
        for check in state.checks.on.get(Truth, ()):
            check(node, state)
    return value


def iterated(node: Any, state: State) -> Value | None:
    """The value of an expression that is iterated over."""
    value = EVALUATE[type(node)](node, state)
    if value is not None and value.kind in ARRAYS:
        for check in state.checks.on.get(Iteration, ()):
            check(node, state)
    return value


def parts(node: ast.AST, state: State) -> None:
    """Visit whatever a node is made of."""
    known = node.__dict__
    for name in node._fields:
        child = known.get(name)
        if type(child) is list:
            for item in child:
                if isinstance(item, ast.expr):
                    EVALUATE[type(item)](item, state)
                elif isinstance(item, ast.stmt):
                    EXECUTE[type(item)](item, state)
                elif isinstance(item, ast.AST):
                    parts(item, state)
        elif isinstance(child, ast.expr):
            EVALUATE[type(child)](child, state)
        elif isinstance(child, ast.AST) and not isinstance(child, (ast.expr_context, ast.operator, ast.boolop)):
            parts(child, state)


@evaluates(*ast.expr.__subclasses__())
def _other(node: ast.expr, state: State) -> Value | None:
    """An expression of which nothing is known but that its parts are expressions."""
    parts(node, state)
    return shown(node, None, state)


@executes(*ast.stmt.__subclasses__())
def _unknown(node: ast.stmt, state: State) -> None:
    parts(node, state)
    checked(node, state)


@evaluates(ast.Constant)
def _constant(node: ast.Constant, state: State) -> Value | None:
    return CONSTANTS.get(type(node.value))
