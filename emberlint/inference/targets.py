"""Binding of assignment targets to values."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference import classes
from emberlint.inference.checks import Iteration
from emberlint.inference.results import element_of
from emberlint.inference.state import State
from emberlint.inference.values import Value
from emberlint.inference.visitors import evaluate, run_checks
from emberlint.knowledge.types import ARRAYS, INSTANCE, IRRELEVANT


def bind(target: Any, value: Value | None, state: State) -> None:
    """Bind a target to a value."""
    kind = type(target)
    if kind is ast.Name:
        name = target.id
        state.env[name] = value
        if value is not None and (value.kind not in IRRELEVANT or value.path):
            state.interest.relevant.add(name.encode())
    elif kind is ast.Tuple or kind is ast.List:
        _unpack(target, value, state)
    elif kind is ast.Attribute:
        owner = evaluate(target.value, state)
        if owner is not None and owner.kind == INSTANCE and owner.node in state.classes:
            classes.record_attribute(state.classes[owner.node], target.attr, value, state)
        run_checks(target, state)
    elif kind is ast.Starred:
        bind(target.value, None, state)
    else:
        evaluate(target, state)


def _unpack(target: Any, value: Value | None, state: State) -> None:
    elements = target.elts
    values: list[Value | None] = [None] * len(elements)
    if value is not None:
        if value.kind in ARRAYS:
            state.known[target] = value
            for check in state.checks.on.get(Iteration, ()):
                check(target, state)
        if not any(type(element) is ast.Starred for element in elements):
            if value.items is not None and len(value.items) == len(elements):
                values = list(value.items)
            else:
                values = [element_of(value, target)] * len(elements)
    for element, part in zip(elements, values, strict=True):
        bind(element, part, state)


def forget(target: ast.AST, state: State) -> None:
    """Bind the names of a target to an unknown value."""
    if isinstance(target, ast.Name):
        state.env[target.id] = None
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            forget(element, state)
