"""Values of operators and calls, inferred from their operands: type, engine and dtype."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from emberlint.inference.values import (
    ANNOTATED,
    BOOL,
    CALL,
    COMPLEX,
    DIMENSIONS,
    ELEMENT,
    FLOAT,
    INT,
    NOTHING,
    NUMBER,
    OPERATOR,
    SCALARS,
    SOME_DTYPE,
    TEXT,
    Value,
    merged,
)
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import ARRAYS, DTYPE, HOST, NONE, SCALAR, SEQUENCE, SHAPE, STRING, TENSOR
from emberlint.source.tree import dotted


def several(value: Value | None) -> Value | None:
    if value is None:
        return None
    if value is INT:
        return DIMENSIONS
    return Value(SEQUENCE, reason=ANNOTATED, element=value)


def element_of(value: Value, node: ast.AST) -> Value | None:
    """Value of an element when iterating over a value."""
    kind = value.kind
    if kind in ARRAYS:
        return Value(kind, value.engine, node, ELEMENT, value, dtype=value.dtype)
    if kind == SHAPE:
        return INT
    if kind == SEQUENCE:
        items = value.items
        if items is None:
            return value.element
        found: Value | None = items[0] if items else None
        for item in items[1:]:
            found = merged(found, item)
        return found
    return TEXT if kind == STRING else None


def first_array(values: Iterable[Value | None]) -> Value | None:
    for value in values:
        if value is not None and value.kind in ARRAYS:
            return value
    return None


def stronger(values: Iterable[Value | None]) -> str:
    """``TENSOR`` if one of the values is a tensor, else ``HOST``."""
    return TENSOR if any(value is not None and value.kind == TENSOR for value in values) else HOST


def all_host(values: list[Value | None]) -> bool:
    return all(value is not None and (value.is_host or _host_items(value)) for value in values)


def _host_items(value: Value) -> bool:
    return (
        value.kind == SEQUENCE
        and value.items is not None
        and bool(value.items)
        and all(item is not None and item.kind == SCALAR for item in value.items)
    )


def combined(node: Any, left: Value | None, right: Value | None) -> Value | None:
    """Value of an arithmetic operator."""
    if left is not None and left.kind in ARRAYS:
        kind, engine = left.kind, left.engine
        if right is not None and right.kind == TENSOR and kind == HOST:
            kind, engine = TENSOR, right.engine
        return Value(kind, engine, node, OPERATOR, left, dtype=_operator_dtype(node.op, left, right))
    if right is not None and right.kind in ARRAYS:
        if left is not None and left.kind == STRING:
            return TEXT
        return Value(right.kind, right.engine, node, OPERATOR, right, dtype=_operator_dtype(node.op, left, right))
    if left is None or right is None:
        return None
    if left.kind == SCALAR and right.kind == SCALAR:
        if type(node.op) is ast.Div:
            return FLOAT
        if left.dtype == right.dtype:
            return left if left in _SINGLES else SCALARS.get(left.dtype or "", NUMBER)
        return FLOAT if "float" in (left.dtype, right.dtype) else NUMBER
    if left.kind == STRING:
        return TEXT
    if left.kind == SHAPE and right.kind in (SHAPE, SEQUENCE) and type(node.op) is ast.Add:
        return DIMENSIONS if right.kind == SHAPE or _host_items(right) else None
    if right.kind == SHAPE and left.kind == SEQUENCE and type(node.op) is ast.Add:
        return DIMENSIONS if _host_items(left) else None
    if left.kind == SEQUENCE and type(node.op) is ast.Mult and left.items is not None and right.kind == SCALAR:
        return Value(SEQUENCE, node=node, element=left.items[0] if len(left.items) == 1 else None)
    return None


_SINGLES = frozenset({INT, FLOAT, BOOL, NUMBER})


def _operator_dtype(op: ast.operator, left: Value | None, right: Value | None) -> str | None:
    a = left.dtype if left is not None else None
    b = right.dtype if right is not None else None
    if type(op) is ast.Div:
        return "complex" if "complex" in (a, b) else "float" if a and b else None
    if a is None or b is None:
        return "float" if "float" in (a, b) and None not in (left, right) else None
    order = ("bool", "int", "float", "complex")
    return order[max(order.index(a), order.index(b))] if a in order and b in order else None


_FLOATING = words(
    """
    sqrt exp log log2 log10 log1p expm1 sin cos tan arcsin arccos arctan sinh cosh tanh mean std var median rand randn
    normal linspace logspace sigmoid softmax random uniform zeros ones eye identity
    """
)


_BOOLEAN = words(
    """
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not logical_xor isnan isinf
    isfinite isclose all any isin signbit eq ne lt le gt ge
    """
)


_INTEGER = words(
    """
    argmax argmin argsort searchsorted digitize bincount count_nonzero randint floor_int
    """
)


_CREATION = words(
    """
    zeros ones eye identity
    """
)


HOST_MATHS = words(
    """
    prod sum max min amax amin sqrt exp exp2 log log2 log10 log1p expm1 sin cos tan arcsin arccos arctan arctan2 sinh
    cosh tanh floor ceil round rint trunc abs absolute fabs sign power mod maximum minimum mean hypot square cbrt
    deg2rad rad2deg degrees radians isnan isinf isfinite gcd lcm any all add subtract multiply divide
    """
)


def dtype_word(name: str) -> str | None:
    last = name.rpartition(".")[2]
    if last.startswith(("int", "uint", "long", "short", "intp", "intc")):
        return "int"
    if last.startswith(("float", "half", "double", "bfloat", "single")):
        return "float"
    if last.startswith("bool"):
        return "bool"
    return "complex" if last.startswith(("complex", "cfloat", "cdouble")) else None


def is_number_type(name: str) -> bool:
    return name.rstrip("_0123456789") in (
        "int",
        "uint",
        "float",
        "complex",
        "bool",
        "longlong",
        "intp",
        "double",
        "half",
        "single",
    )


def _given_dtype(node: ast.Call) -> str | None:
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
                return dtype_word(keyword.value.value) or "other"
            return dtype_word(dotted(keyword.value)) or "other"
    return None


def result_dtype(name: str, node: ast.Call, arguments: list[Value | None]) -> str | None:
    given = _given_dtype(node)
    if given is not None:
        return None if given == "other" else given
    if name in _BOOLEAN:
        return "bool"
    if name in _INTEGER:
        return "int"
    if name in _FLOATING:
        return "float" if name not in _CREATION or len(node.args) == 1 else None
    if name == "arange":
        known = [value.dtype if value is not None else None for value in arguments[:3]]
        return "int" if known and all(dtype == "int" for dtype in known) else "float" if "float" in known else None
    if name in ("full", "full_like"):
        return None
    if (
        name in ("array", "asarray", "tensor")
        and arguments
        and arguments[0] is not None
        and arguments[0].kind == SEQUENCE
    ):
        return _sequence_dtype(arguments[0])
    array = first_array(arguments)
    if array is not None and len([a for a in arguments if a is None or a.kind in ARRAYS]) == 1:
        return array.dtype
    return None


def _sequence_dtype(value: Value) -> str | None:
    found = {item.dtype if item is not None else None for item in value.items or ()}
    if found == {"int", "float"}:
        return "float"
    return found.pop() if len(found) == 1 else None


def method_dtype(name: str, node: ast.Call, owner: Value) -> str | None:
    if name in ("astype", "to", "type", "view"):
        for argument in node.args:
            word = dtype_word(dotted(argument))
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                word = dtype_word(argument.value)
            if word is not None:
                return word
        given = _given_dtype(node)
        if given is not None:
            return None if given == "other" else given
        return owner.dtype if name in ("to", "view") else None
    if name in ("float", "double", "half", "bfloat16"):
        return "float"
    if name in ("long", "int"):
        return "int"
    if name in _BOOLEAN or name == "bool":
        return "bool"
    if name in _INTEGER:
        return "int"
    if name in _FLOATING:
        return "float"
    return owner.dtype


def value_of_type(word: str, engine: str, node: ast.AST) -> Value | None:
    if word in SCALARS:
        return SCALARS[word]
    if word == SHAPE:
        return DIMENSIONS
    if word == STRING or word == "string":
        return TEXT
    if word == DTYPE:
        return SOME_DTYPE
    if word in ARRAYS:
        return Value(word, engine, node, CALL)
    return None


PLAIN = frozenset({SCALAR, STRING, NONE, SHAPE})


BUILTIN_TYPES = {"int": INT, "float": FLOAT, "bool": BOOL, "complex": COMPLEX, "str": TEXT}


BUILTIN_RESULTS = {
    "len": INT,
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "complex": COMPLEX,
    "isinstance": BOOL,
    "issubclass": BOOL,
    "hasattr": BOOL,
    "callable": BOOL,
    "str": TEXT,
    "repr": TEXT,
    "format": TEXT,
    "any": BOOL,
    "all": BOOL,
    "hash": INT,
    "id": INT,
    "ord": INT,
    "print": NOTHING,
}
