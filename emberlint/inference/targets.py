"""Targets of assignments, and what they are bound to."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference import classes
from emberlint.inference.checks import Iteration
from emberlint.inference.file import File
from emberlint.inference.results import element_of
from emberlint.inference.values import Value
from emberlint.inference.visitors import checked, evaluate
from emberlint.knowledge.types import ARRAYS, COLD, INSTANCE


def bind(target: Any, value: Value | None, file: File) -> None:
    """Bind a target to a value."""
    kind = type(target)
    if kind is ast.Name:
        name = target.id
        file.env[name] = value
        if value is not None and (value.kind not in COLD or value.path):
            file.interest.warm.add(name.encode())
    elif kind is ast.Tuple or kind is ast.List:
        _unpack(target, value, file)
    elif kind is ast.Attribute:
        owner = evaluate(target.value, file)
        if owner is not None and owner.kind == INSTANCE and owner.node in file.classes:
            classes.keep(file.classes[owner.node], target.attr, value, file)
        checked(target, file)
    elif kind is ast.Starred:
        bind(target.value, None, file)
    else:
        evaluate(target, file)


def _unpack(target: Any, value: Value | None, file: File) -> None:
    elements = target.elts
    values: list[Value | None] = [None] * len(elements)
    if value is not None:
        if value.kind in ARRAYS:
            file.known[target] = value
            for check in file.checks.on.get(Iteration, ()):
                check(target, file)
        if not any(type(element) is ast.Starred for element in elements):
            if value.items is not None and len(value.items) == len(elements):
                values = list(value.items)
            else:
                values = [element_of(value, target)] * len(elements)
    for element, part in zip(elements, values, strict=True):
        bind(element, part, file)


def forget(target: ast.AST, file: File) -> None:
    """Bind the names of a target to something unknown."""
    if isinstance(target, ast.Name):
        file.env[target.id] = None
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            forget(element, file)
