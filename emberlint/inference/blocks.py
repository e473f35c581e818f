"""Statements with blocks. After them, a name has the values of all branches merged."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference.conditions import narrowed, of_case
from emberlint.inference.results import element_of
from emberlint.inference.scopes import Env
from emberlint.inference.state import State
from emberlint.inference.targets import bind
from emberlint.inference.values import Value, merged
from emberlint.inference.visitors import block, evaluate, executes, iterated, run_checks, truth
from emberlint.knowledge.types import ARRAYS, SCALAR, SEQUENCE, SHAPE
from emberlint.source.tree import dotted, stored

_NAMES = (ast.Name, ast.Attribute)


def _join(other: Env, other_ended: bool, state: State) -> None:
    """Merge the environment of another branch into the current one; a branch that ended is ignored."""
    if other_ended:
        return
    if state.ended:
        state.env, state.ended = other, False
        return
    here = state.env
    if here is other or here == other:
        return
    state.env = both = dict.fromkeys(other)
    for name, value in here.items():
        there = other.get(name)
        both[name] = value if value is there else merged(value, there)


@executes(ast.If)
def _if(node: ast.If, state: State) -> None:
    test = node.test
    if state.interest.is_relevant(test):
        truth(test, state)
    run_checks(node, state)
    yes, no = narrowed(test, state)
    before, typing = state.env, state.typing
    if type(test) in _NAMES and dotted(test).rpartition(".")[2] == "TYPE_CHECKING":
        state.typing = True
    state.env = {**before, **yes} if yes else before.copy()
    block(node.body, state)
    state.typing = typing
    first, first_ended = state.env, state.ended
    state.env, state.ended = {**before, **no} if no else before.copy(), False
    if node.orelse:
        block(node.orelse, state)
    _join(first, first_ended, state)


@executes(ast.While)
def _while(node: ast.While, state: State) -> None:
    _loop(node, None, state)


@executes(ast.For, ast.AsyncFor)
def _for(node: Any, state: State) -> None:
    over = iterated(node.iter, state)
    _loop(node, element_of(over, node.iter) if over is not None else None, state)


def _loop(node: Any, element: Value | None, state: State) -> None:
    before = state.env
    state.env = env = before.copy()
    for name in stored(node.body):
        value = env.get(name)
        if value is not None and value.kind in (SCALAR, SEQUENCE, SHAPE):
            env[name] = None
    state.loops += 1
    if type(node) is ast.While:
        truth(node.test, state)
    else:
        bind(node.target, element, state)
    run_checks(node, state)
    ended = state.ended
    block(node.body, state)
    state.loops -= 1
    state.ended = ended
    _join(before, False, state)
    block(node.orelse, state)


@executes(ast.With, ast.AsyncWith)
def _with(node: Any, state: State) -> None:
    for item in node.items:
        value = evaluate(item.context_expr, state)
        if item.optional_vars is not None:
            bind(item.optional_vars, value if value is not None and value.kind in ARRAYS else None, state)
    run_checks(node, state)
    block(node.body, state)


@executes(ast.Try, ast.TryStar)
def _try(node: Any, state: State) -> None:
    run_checks(node, state)
    before, ended, guarded = state.env.copy(), state.ended, state.guarded
    state.guarded = bool(node.handlers)
    block(node.body, state)
    block(node.orelse, state)
    state.guarded = guarded
    after, after_ended = state.env, state.ended
    state.env, state.ended = after.copy(), False
    _join(before, False, state)
    halfway = state.env
    state.env, state.ended = after, after_ended
    for handler in node.handlers:
        one, one_ended = state.env, state.ended
        state.env, state.ended = halfway.copy(), ended
        if handler.type is not None:
            evaluate(handler.type, state)
        if handler.name:
            state.env[handler.name] = None
        run_checks(handler, state)
        block(handler.body, state)
        _join(one, one_ended, state)
    block(node.finalbody, state)


@executes(ast.Match)
def _match(node: ast.Match, state: State) -> None:
    evaluate(node.subject, state)
    run_checks(node, state)
    before = state.env
    result: tuple[Env, bool] = (before.copy(), False)
    for case in node.cases:
        state.env, state.ended = before.copy(), False
        for part in ast.walk(case.pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                state.env[name] = None
        state.env.update(of_case(node.subject, case.pattern, state))
        if case.guard is not None:
            truth(case.guard, state)
        block(case.body, state)
        _join(*result, state)
        result = (state.env, state.ended)
    state.env, state.ended = result
