"""The two dispatch tables of the pass: evaluators of expressions, and executors of statements.

Other modules register a function for a class of node; the functions of this module handle the remaining classes. An
evaluator visits the child nodes, infers the value, stores it in ``state.known``, and runs the checks on the node.
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
    """Decorator that registers a function as the evaluator of expressions of these classes."""

    def enter(function: Evaluator) -> Evaluator:
        EVALUATE.update(dict.fromkeys(classes, function))
        return function

    return enter


def executes(*classes: type) -> Callable[[Executor], Executor]:
    """Decorator that registers a function as the executor of statements of these classes."""

    def enter(function: Executor) -> Executor:
        EXECUTE.update(dict.fromkeys(classes, function))
        return function

    return enter


def evaluate(node: Any, state: State) -> Value | None:
    """Value of an expression. Visits its child nodes, then runs the checks."""
    return EVALUATE[type(node)](node, state)


def evaluate_unchecked(node: Any, state: State) -> Value | None:
    """Value of an expression, without running the checks."""
    checks, state.checks = state.checks, NONE
    try:
        return EVALUATE[type(node)](node, state)
    finally:
        state.checks = checks


def value_ahead(node: ast.expr, file: File) -> Value | None:
    """Value of an expression that may not have been visited yet, for use by rules."""
    return evaluate_unchecked(node, state_of(file))


def evaluate_if_relevant(statement: ast.stmt, node: Any, state: State) -> Value | None:
    """Value of a statement's expression.

    A call in an irrelevant statement is not visited unless it is of a built-in function: no other result could be
    known.
    """
    kind = type(node)
    if kind is ast.Call:
        function = node.func
        name = function.id if type(function) is ast.Name else getattr(function, "attr", "")
        if name not in BUILTIN_RESULTS and name not in TYPE_NAMES and not state.interest.is_relevant(statement):
            return None
    return EVALUATE[kind](node, state)


def block(body: Iterable[ast.stmt], state: State) -> None:
    """Execute statements in order."""
    for statement in body:
        EXECUTE[type(statement)](statement, state)


def record_value(node: Any, value: Value | None, state: State) -> Value | None:
    """Store and return the value of an expression, after running the checks on the node."""
    if value is not None:
        state.known[node] = value
    if type(node) in state.checks.on:
        run_checks(node, state)
    return value


def run_checks(node: Any, state: State) -> None:
    """Run the checks that subscribe to the class of a node."""
    for check in state.checks.on.get(type(node), ()):
        check(node, state)


def truth(node: Any, state: State) -> Value | None:
    """Value of an expression whose truth value is tested."""
    value = asked = EVALUATE[type(node)](node, state)
    if type(node) is ast.BoolOp:
        asked = state.value(last_part(node))
    if asked is not None and asked.kind in ARRAYS:
        for check in state.checks.on.get(Truth, ()):
            check(node, state)
    return value


def iterated(node: Any, state: State) -> Value | None:
    """Value of an expression that is iterated over."""
    value = EVALUATE[type(node)](node, state)
    if value is not None and value.kind in ARRAYS:
        for check in state.checks.on.get(Iteration, ()):
            check(node, state)
    return value


def visit_children(node: ast.AST, state: State) -> None:
    """Visit the child nodes of a node."""
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
                    visit_children(item, state)
        elif isinstance(child, ast.expr):
            EVALUATE[type(child)](child, state)
        elif isinstance(child, ast.AST) and not isinstance(child, (ast.expr_context, ast.operator, ast.boolop)):
            visit_children(child, state)


@evaluates(*ast.expr.__subclasses__())
def _other(node: ast.expr, state: State) -> Value | None:
    """Visit any other expression, whose value is unknown."""
    visit_children(node, state)
    return record_value(node, None, state)


@executes(*ast.stmt.__subclasses__())
def _unknown(node: ast.stmt, state: State) -> None:
    visit_children(node, state)
    run_checks(node, state)


@evaluates(ast.Constant)
def _constant(node: ast.Constant, state: State) -> Value | None:
    return CONSTANTS.get(type(node.value))
