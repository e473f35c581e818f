"""Statements with blocks: what is known after them is what holds on every way through."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference.conditions import narrowed, of_case
from emberlint.inference.file import File
from emberlint.inference.results import element_of
from emberlint.inference.scopes import Env
from emberlint.inference.targets import bind
from emberlint.inference.values import Value, merged
from emberlint.inference.visitors import block, checked, evaluate, executes, iterated, truth
from emberlint.knowledge.types import ARRAYS, SCALAR, SEQUENCE, SHAPE
from emberlint.source.tree import dotted, stored

_NAMES = (ast.Name, ast.Attribute)


def _join(other: Env, other_ended: bool, file: File) -> None:
    """Meet of the environment here and that of another branch; a branch that ended does not count."""
    if other_ended:
        return
    if file.ended:
        file.env, file.ended = other, False
        return
    here = file.env
    if here is other or here == other:
        return
    file.env = both = dict.fromkeys(other)
    for name, value in here.items():
        there = other.get(name)
        both[name] = value if value is there else merged(value, there)


@executes(ast.If)
def _if(node: ast.If, file: File) -> None:
    test = node.test
    if file.interest.is_warm(test):
        truth(test, file)
    checked(node, file)
    yes, no = narrowed(test, file)
    before, typing = file.env, file.typing
    if type(test) in _NAMES and dotted(test).rpartition(".")[2] == "TYPE_CHECKING":
        file.typing = True
    file.env = {**before, **yes} if yes else before.copy()
    block(node.body, file)
    file.typing = typing
    first, first_ended = file.env, file.ended
    file.env, file.ended = {**before, **no} if no else before.copy(), False
    if node.orelse:
        block(node.orelse, file)
    _join(first, first_ended, file)


@executes(ast.While)
def _while(node: ast.While, file: File) -> None:
    _loop(node, None, file)


@executes(ast.For, ast.AsyncFor)
def _for(node: Any, file: File) -> None:
    over = iterated(node.iter, file)
    _loop(node, element_of(over, node.iter) if over is not None else None, file)


def _loop(node: Any, element: Value | None, file: File) -> None:
    before = file.env
    file.env = env = before.copy()
    for name in stored(node.body):
        value = env.get(name)
        if value is not None and value.kind in (SCALAR, SEQUENCE, SHAPE):
            env[name] = None
    file.loops += 1
    if type(node) is ast.While:
        truth(node.test, file)
    else:
        bind(node.target, element, file)
    checked(node, file)
    ended = file.ended
    block(node.body, file)
    file.loops -= 1
    file.ended = ended
    _join(before, False, file)
    block(node.orelse, file)


@executes(ast.With, ast.AsyncWith)
def _with(node: Any, file: File) -> None:
    for item in node.items:
        value = evaluate(item.context_expr, file)
        if item.optional_vars is not None:
            bind(item.optional_vars, value if value is not None and value.kind in ARRAYS else None, file)
    checked(node, file)
    block(node.body, file)


@executes(ast.Try, ast.TryStar)
def _try(node: Any, file: File) -> None:
    checked(node, file)
    before, ended, guarded = file.env.copy(), file.ended, file.guarded
    file.guarded = bool(node.handlers)
    block(node.body, file)
    block(node.orelse, file)
    file.guarded = guarded
    after, after_ended = file.env, file.ended
    file.env, file.ended = after.copy(), False
    _join(before, False, file)
    halfway = file.env
    file.env, file.ended = after, after_ended
    for handler in node.handlers:
        one, one_ended = file.env, file.ended
        file.env, file.ended = halfway.copy(), ended
        if handler.type is not None:
            evaluate(handler.type, file)
        if handler.name:
            file.env[handler.name] = None
        checked(handler, file)
        block(handler.body, file)
        _join(one, one_ended, file)
    block(node.finalbody, file)


@executes(ast.Match)
def _match(node: ast.Match, file: File) -> None:
    evaluate(node.subject, file)
    checked(node, file)
    before = file.env
    result: tuple[Env, bool] = (before.copy(), False)
    for case in node.cases:
        file.env, file.ended = before.copy(), False
        for part in ast.walk(case.pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                file.env[name] = None
        file.env.update(of_case(node.subject, case.pattern, file))
        if case.guard is not None:
            truth(case.guard, file)
        block(case.body, file)
        _join(*result, file)
        result = (file.env, file.ended)
    file.env, file.ended = result
