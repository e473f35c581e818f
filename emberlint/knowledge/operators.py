"""Python's operators and the equivalent operations."""

from __future__ import annotations

import ast
from typing import NamedTuple


class Sign(NamedTuple):
    """An operator's symbol, and the equivalent operation of ``ops``."""

    sign: str
    operation: str


BINARY: dict[type, Sign] = {
    ast.Add: Sign("+", "add"),
    ast.Sub: Sign("-", "subtract"),
    ast.Mult: Sign("*", "multiply"),
    ast.Div: Sign("/", "divide"),
    ast.FloorDiv: Sign("//", "floor_divide"),
    ast.Mod: Sign("%", "remainder"),
    ast.Pow: Sign("**", "power"),
    ast.MatMult: Sign("@", "matmul"),
    ast.BitAnd: Sign("&", "bitwise_and"),
    ast.BitOr: Sign("|", "bitwise_or"),
    ast.BitXor: Sign("^", "bitwise_xor"),
    ast.LShift: Sign("<<", "bitwise_left_shift"),
    ast.RShift: Sign(">>", "bitwise_right_shift"),
}
UNARY: dict[type, Sign] = {
    ast.USub: Sign("-", "negative"),
    ast.Invert: Sign("~", "bitwise_invert"),
    ast.UAdd: Sign("+", "positive"),
}
COMPARED: dict[type, Sign] = {
    ast.Eq: Sign("==", "equal"),
    ast.NotEq: Sign("!=", "not_equal"),
    ast.Lt: Sign("<", "less"),
    ast.LtE: Sign("<=", "less_equal"),
    ast.Gt: Sign(">", "greater"),
    ast.GtE: Sign(">=", "greater_equal"),
}
