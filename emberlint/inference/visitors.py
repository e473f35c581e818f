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
from emberlint.inference.results import BUILTIN_ANSWERS
from emberlint.inference.values import CONSTANTS, Value
from emberlint.knowledge.engines import TYPE_NAMES
from emberlint.knowledge.types import ARRAYS
from emberlint.source.tree import last_part

Evaluator = Callable[[Any, File], Value | None]
Executor = Callable[[Any, File], None]


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


def evaluate(node: Any, file: File) -> Value | None:
    """The value of an expression; its parts are visited first, then the rules see it."""
    return EVALUATE[type(node)](node, file)


def quietly(node: Any, file: File) -> Value | None:
    """The value of an expression, without showing it to the rules."""
    checks, file.checks = file.checks, NONE
    try:
        return EVALUATE[type(node)](node, file)
    finally:
        file.checks = checks


def worthwhile(statement: ast.stmt, node: Any, file: File) -> Value | None:
    """The value of a statement's expression. A call in a statement that mentions nothing of interest is not visited:
    only a built-in function could answer anything that is known.
    """
    kind = type(node)
    if kind is ast.Call:
        function = node.func
        name = function.id if type(function) is ast.Name else getattr(function, "attr", "")
        if name not in BUILTIN_ANSWERS and name not in TYPE_NAMES and not file.interest.is_warm(statement):
            return None
    return EVALUATE[kind](node, file)


def block(body: Iterable[ast.stmt], file: File) -> None:
    """Execute statements one after the other."""
    for statement in body:
        EXECUTE[type(statement)](statement, file)


def shown(node: Any, value: Value | None, file: File) -> Value | None:
    """The value of an expression, after it is kept and the rules have seen the node."""
    if value is not None:
        file.known[node] = value
    if type(node) in file.checks.on:
        checked(node, file)
    return value


def checked(node: Any, file: File) -> None:
    """Show a node to the rules that asked for its class."""
    for check in file.checks.on.get(type(node), ()):
        check(node, file)


def truth(node: Any, file: File) -> Value | None:
    """The value of an expression whose truth is asked for."""
    value = asked = EVALUATE[type(node)](node, file)
    if type(node) is ast.BoolOp:
        asked = file.value(last_part(node))
    if asked is not None and asked.kind in ARRAYS:
        for check in file.checks.on.get(Truth, ()):
            check(node, file)
    return value


def iterated(node: Any, file: File) -> Value | None:
    """The value of an expression that is iterated over."""
    value = EVALUATE[type(node)](node, file)
    if value is not None and value.kind in ARRAYS:
        for check in file.checks.on.get(Iteration, ()):
            check(node, file)
    return value


def parts(node: ast.AST, file: File) -> None:
    """Visit whatever a node is made of."""
    known = node.__dict__
    for name in node._fields:
        child = known.get(name)
        if type(child) is list:
            for item in child:
                if isinstance(item, ast.expr):
                    EVALUATE[type(item)](item, file)
                elif isinstance(item, ast.stmt):
                    EXECUTE[type(item)](item, file)
                elif isinstance(item, ast.AST):
                    parts(item, file)
        elif isinstance(child, ast.expr):
            EVALUATE[type(child)](child, file)
        elif isinstance(child, ast.AST) and not isinstance(child, (ast.expr_context, ast.operator, ast.boolop)):
            parts(child, file)


@evaluates(*ast.expr.__subclasses__())
def _other(node: ast.expr, file: File) -> Value | None:
    """An expression of which nothing is known but that its parts are expressions."""
    parts(node, file)
    return shown(node, None, file)


@executes(*ast.stmt.__subclasses__())
def _unknown(node: ast.stmt, file: File) -> None:
    parts(node, file)
    checked(node, file)


@evaluates(ast.Constant)
def _constant(node: ast.Constant, file: File) -> Value | None:
    return CONSTANTS.get(type(node.value))
