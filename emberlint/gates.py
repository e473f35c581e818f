"""Which expressions the rules are shown: those that something is known of. Most of a file interests none of them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from emberlint import kinds
from emberlint.kinds import ARRAYS, DTYPE, NONE, REFERENCE, SCALAR, SEQUENCE, SHAPE, STRING, Value

Known = dict[ast.AST, Value]


def is_hot(value: Value | None) -> bool:
    """Whether a value can interest a rule: an array, something of an engine's, or a sequence of such."""
    if value is None:
        return False
    kind = value.kind
    if kind in ARRAYS:
        return True
    if kind == REFERENCE:
        return kinds.engine_of(value.path) != ""
    if kind == SEQUENCE:
        return is_hot(value.element) or (value.items is not None and any(map(is_hot, value.items)))
    return kind == STRING and value.path != ""


def _hot_reference(node: Any, value: Value | None, known: Known) -> bool:
    return value is not None and value.kind == REFERENCE and kinds.engine_of(value.path) != ""


def _hot_attribute(node: ast.Attribute, value: Value | None, known: Known) -> bool:
    if value is not None and value.kind == REFERENCE:
        return kinds.engine_of(value.path) != ""
    owner = known.get(node.value)
    return owner is not None and (owner.kind in ARRAYS or owner.kind == DTYPE)


def _hot_result(node: Any, value: Value | None, known: Known) -> bool:
    return value is not None and (value.kind in ARRAYS or value.kind == STRING)


def _hot_call(node: ast.Call, value: Value | None, known: Known) -> bool:
    function: Any = node.func
    target = known.get(function)
    if target is not None and target.kind == REFERENCE:
        if kinds.engine_of(target.path) or target.path == "importlib.import_module":
            return True
    elif type(function) is ast.Attribute:
        owner = known.get(function.value)
        if owner is not None and (owner.kind in ARRAYS or owner.engine):
            return True
    elif type(function) is ast.Name and function.id == "__import__":
        return True
    for argument in node.args:
        given = known.get(argument)
        if given is not None and given.kind not in COLD and is_hot(given):
            return True
    for keyword in node.keywords:
        given = known.get(keyword.value)
        if given is not None and given.kind not in COLD and is_hot(given):
            return True
    return False


def _hot_compare(node: ast.Compare, value: Value | None, known: Known) -> bool:
    return is_hot(known.get(node.left)) or any(is_hot(known.get(part)) for part in node.comparators)


def _hot_part(node: Any, value: Value | None, known: Known) -> bool:
    return is_hot(known.get(node.value))


# Which nodes the rules are shown; those of other classes always are.
GATES: dict[type, Callable[[Any, Value | None, Known], bool]] = {
    ast.Name: _hot_reference,
    ast.Attribute: _hot_attribute,
    ast.BinOp: _hot_result,
    ast.UnaryOp: _hot_result,
    ast.Subscript: _hot_result,
    ast.Call: _hot_call,
    ast.Compare: _hot_compare,
    ast.FormattedValue: _hot_part,
}


COLD = frozenset({SCALAR, STRING, NONE, SHAPE, DTYPE})
