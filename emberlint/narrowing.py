"""What a condition tells of names where it holds, and where it does not."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.file import File
from emberlint.kinds import CHECKED, NOTHING, NUMBER, TENSOR, Value, array_type, engine_of, merged
from emberlint.scopes import Env


def narrowed(test: Any, file: File) -> tuple[Env, Env]:
    """What a condition tells of names where it holds, and where it does not."""
    kind = type(test)
    if kind is ast.Compare:
        return _none(test)
    if kind is ast.Call:
        return _checked(test, file), {}
    if kind is ast.BoolOp:
        both: Env = {}
        holds = type(test.op) is ast.And
        for part in test.values:
            yes, no = narrowed(part, file)
            both.update(yes if holds else no)
        return (both, {}) if holds else ({}, both)
    if kind is ast.UnaryOp and type(test.op) is ast.Not:
        yes, no = narrowed(test.operand, file)
        return no, yes
    return {}, {}


def _none(test: ast.Compare) -> tuple[Env, Env]:
    """``x is None``."""
    if len(test.ops) == 1 and type(test.left) is ast.Name:
        right, sign = test.comparators[0], type(test.ops[0])
        if type(right) is ast.Constant and right.value is None:
            if sign is ast.Is:
                return {test.left.id: NOTHING}, {}
            if sign is ast.IsNot:
                return {}, {test.left.id: NOTHING}
    return {}, {}


def _checked(test: ast.Call, file: File) -> Env:
    """``isinstance(x, Tensor)``, ``torch.is_tensor(x)``."""
    if not test.args or type(test.args[0]) is not ast.Name:
        return {}
    name = test.args[0].id
    file.interest.warm.add(name.encode())
    function = test.func
    if len(test.args) == 2 and type(function) is ast.Name and function.id == "isinstance":
        value = _instance(test.args[1], test, file)
        return {name: value} if value is not None else {}
    path = file.path(function)
    if path.endswith((".is_tensor", ".is_array")):
        return {name: Value(TENSOR, engine_of(path), test, CHECKED)}
    return {}


def _instance(types: Any, test: ast.AST, file: File) -> Value | None:
    """What an object of some types is."""
    kind = type(types)
    if kind is ast.Tuple:
        found: Value | None = _instance(types.elts[0], test, file) if types.elts else None
        for element in types.elts[1:]:
            found = merged(found, _instance(element, test, file))
        return found
    if kind is ast.BinOp and type(types.op) is ast.BitOr:
        return merged(_instance(types.left, test, file), _instance(types.right, test, file))
    if kind is ast.Name and types.id in ("int", "float", "bool", "complex") and not file.is_bound(types.id):
        return NUMBER
    path = file.path(types)
    known = array_type(path) if path else None
    return Value(*known, test, CHECKED) if known is not None else None
