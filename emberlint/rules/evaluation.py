"""Expressions that force a lazy engine to evaluate.

Each detector takes a node and its file and returns a ``Forced``, or ``None``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from emberlint.codes import chosen_codes
from emberlint.inference.file import File
from emberlint.inference.results import element_of
from emberlint.inference.values import Value
from emberlint.knowledge.catalogue import operation
from emberlint.knowledge.engines import EMBER
from emberlint.knowledge.operators import BINARY, COMPARED
from emberlint.knowledge.types import SCALAR, SEQUENCE, TENSOR
from emberlint.rules import Rule
from emberlint.source.tree import last_part

CASTS = ("float", "int", "bool", "complex")
BUILTINS = ("max", "min", "sorted", "any", "all", "sum")
READS = ("item", "tolist")
MOVES = ("numpy", "cpu", "__array__")


def is_read(name: str) -> bool:
    """Whether a called name is a method that converts a tensor to Python values."""
    return name.startswith(".") and name[1:] in READS


def is_move(name: str) -> bool:
    """Whether a called name is a method that moves a tensor to the host."""
    return name.startswith(".") and name[1:] in MOVES


def is_host_function(name: str) -> bool:
    """Whether a called name is a function that converts tensors to host values: NumPy, ``math``, ``range``."""
    return name.startswith(("numpy.", "math.")) or name == "range"


def is_forcing(name: str) -> bool:
    """Whether a called name may force evaluation."""
    return name in CASTS or name in BUILTINS or is_read(name) or is_move(name) or is_host_function(name)


class Forced(NamedTuple):
    """A forced evaluation: its node, the cause, what to do instead, and the tensor."""

    node: Any
    what: str
    instead: str
    value: Value


def tensor(node: ast.AST, file: File) -> Value | None:
    """Value of an expression, if it is known to be a tensor."""
    value = file.known.get(node)
    return value if value is not None and value.kind == TENSOR else None


def cast(node: ast.Call, file: File) -> Forced | None:
    """``float(x)`` and other casts."""
    if len(node.args) == 1 and not node.keywords and file.is_builtin(node.func, *CASTS):
        value = tensor(node.args[0], file)
        if value is not None:
            name = node.func.id  # type: ignore[attr-defined]
            return Forced(
                node, f"`{name}()` of {_a(value)}", "keep the tensor, or convert it where results are reported", value
            )
    return None


def read(node: ast.Call, file: File) -> Forced | None:
    """``x.item()`` and ``x.tolist()``."""
    function = node.func
    if type(function) is ast.Attribute and function.attr in READS:
        value = tensor(function.value, file)
        if value is not None:
            return Forced(
                node,
                f"`.{function.attr}()` of {_a(value)}",
                "keep the tensor, or convert it where results are reported",
                value,
            )
    return None


def truth(node: ast.expr, file: File) -> Forced | None:
    """A tensor as a condition."""
    node = last_part(node)
    if is_chain(node) or on_numbers(node, file):
        return None
    value = tensor(node, file)
    if value is None:
        return None
    return Forced(node, f"the truth value of {_a(value)}", "use `ops.where` or `ops.cond`", value)


def comparison(node: ast.Compare, file: File) -> Forced | None:
    """``a < x < b``, and ``in``."""
    parts = [node.left, *node.comparators]
    last = len(node.ops) - 1
    for i, op in enumerate(node.ops):
        left, right = tensor(parts[i], file), tensor(parts[i + 1], file)
        if type(op) in (ast.In, ast.NotIn):
            word = "in" if type(op) is ast.In else "not in"
            if right is not None:
                return Forced(node, f"`{word}` {_a(right)}", "use `ops.any(ops.isin(...))`", right)
            container = file.value(parts[i + 1])
            if left is not None and container is not None and container.kind == SEQUENCE:
                return Forced(node, f"`{word}` with {_a(left)}", "use `ops.isin`", left)
        elif i < last and type(op) not in (ast.Is, ast.IsNot):
            value = left or right
            if value is not None:
                return Forced(
                    node,
                    f"a chained comparison of {_a(value)}",
                    "combine the comparisons with `ops.logical_and`",
                    value,
                )
    return None


def builtin(node: ast.Call, file: File) -> Forced | None:
    """``max(x)`` and other builtins."""
    if not node.args or not file.is_builtin(node.func, *BUILTINS):
        return None
    name = node.func.id  # type: ignore[attr-defined]
    for argument in node.args:
        value = file.value(argument)
        if value is None:
            continue
        if value.kind == SEQUENCE and name != "sum":
            value = element_of(value, argument)
        if value is not None and value.is_tensor:
            pair = name in ("max", "min") and len(node.args) > 1
            use = f"ops.{name}imum" if pair else f"ops.{'sort' if name == 'sorted' else name}"
            return Forced(node, f"`{name}()` of {_a(value)}", f"use `{use}`", value)
    return None


def host_conversion(node: ast.Call, file: File) -> Forced | None:
    """A tensor passed to NumPy or ``math``, and ``x.numpy()``."""
    function = node.func
    path = file.path(function)
    if path:
        root = path.partition(".")[0]
        if root not in ("numpy", "math"):
            return None
    elif type(function) is ast.Attribute:
        if function.attr not in MOVES or node.args:
            return None
        value = tensor(function.value, file)
        if value is None:
            return None
        return Forced(
            node, f"`.{function.attr}()` of {_a(value)}", "use `ops.to_numpy` where results leave the program", value
        )
    elif not file.is_builtin(function, "range"):
        return None
    arguments = [*node.args, *[keyword.value for keyword in node.keywords]] if node.keywords else node.args
    for argument in arguments:
        value = tensor(argument, file)
        if value is not None:
            use = _operation(path)
            return Forced(node, f"`{file.text(function)}` of {_a(value)}", use, value)
    return None


def _operation(path: str) -> str:
    name = path.partition(".")[2]
    if name and operation(name) is not None:
        return f"use `ops.{name}`"
    return "use `ops`, or convert explicitly with `ops.to_numpy`"


def of_call(node: ast.Call, file: File) -> Forced | None:
    """Evaluation that a call forces, by any of these."""
    return cast(node, file) or read(node, file) or builtin(node, file) or host_conversion(node, file)


def is_chain(node: ast.expr) -> bool:
    """Whether an expression is a chained comparison, or one with ``in``."""
    return type(node) is ast.Compare and (len(node.ops) > 1 or type(node.ops[0]) in (ast.In, ast.NotIn))


# Precedence of Python's operators for the operations on numbers.
_PRECEDENCES = {ast.Add: 9, ast.Sub: 9, ast.Mult: 10, ast.Div: 10, ast.FloorDiv: 10, ast.Mod: 10}
JOINING = 2  # the precedence of `and`, above that of `or`
OPERATORS = {
    "logical_or": ("or", 1),
    "logical_and": ("and", JOINING),
    **{sign.operation: (sign.sign, 4) for sign in COMPARED.values()},
    **{BINARY[kind].operation: (BINARY[kind].sign, precedence) for kind, precedence in _PRECEDENCES.items()},
}
_SIGNS = {"logical_not": ("not ", 3), "negative": ("-", 11)}


class Numbers(NamedTuple):
    """A Python expression, its precedence, and whether ``ops`` computes exactly the same."""

    text: str
    precedence: int
    exact: bool


def on_numbers(node: ast.AST, file: File) -> Numbers | None:
    """Python expression for a call of ``ops`` on Python numbers only; ``None`` for anything else."""
    if type(node) is not ast.Call:
        return None
    path = file.path(node.func)
    if not path.startswith("ember_ml.ops.") or node.keywords:
        return None
    name = path.rpartition(".")[2]
    if name in OPERATORS and len(node.args) == 2:
        sign, precedence = OPERATORS[name]
        left, right = (_number(argument, file) for argument in node.args)
        if left is None or right is None or (precedence == 4 and 4 in (left.precedence, right.precedence)):
            return None
        exact = left.exact and right.exact and sign not in ("/", "//", "%")
        # The operators are left-associative: a right operand of the same precedence needs parentheses.
        return Numbers(
            f"{_parenthesized(left, precedence)} {sign} {_parenthesized(right, precedence + 1)}", precedence, exact
        )
    if name in _SIGNS and len(node.args) == 1:
        sign, precedence = _SIGNS[name]
        operand = _number(node.args[0], file)
        return (
            Numbers(f"{sign}{_parenthesized(operand, precedence)}", precedence, operand.exact)
            if operand is not None
            else None
        )
    return None


def _parenthesized(part: Numbers, precedence: int) -> str:
    return part.text if part.precedence >= precedence else f"({part.text})"


def _number(node: ast.AST, file: File) -> Numbers | None:
    inner = on_numbers(node, file)
    if inner is not None:
        return inner
    value = file.value(node)
    if value is None or value.kind != SCALAR:
        return None
    precedence = 12 if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)) else 0
    return Numbers(file.text(node), precedence, value.dtype in ("int", "bool"))


def _a(value: Value) -> str:
    words = value.described()
    return f"{'an' if words.startswith((EMBER, 'MLX')) else 'a'} {words}"


def report(rule: Rule, detect: Callable[[Any, File], Forced | None], node: Any, file: File) -> None:
    """Report what a detector finds in a node, unless the node is in a loop, where EMB209 reports it."""
    if file.allowed is not None or (file.loops and loops_reported(file)):
        return
    forced = detect(node, file)
    if forced is not None:
        _report(rule, forced, file)


def _report(rule: Rule, forced: Forced, file: File) -> None:
    # In compiled code, JAX's arrays have no values; ``sum()`` only adds the elements.
    raises = forced.value.engine == "jax" and not forced.what.startswith("`sum()`")
    effect = "forces evaluation, and raises in `jax.jit`" if raises else "forces evaluation"
    file.report(rule, forced.node, f"{forced.what} {effect}; {forced.instead}", because=forced.value)


def loops_reported(file: File) -> bool:
    """Whether EMB209 is among the selected rules."""
    found: bool = file.shared("EMB209", lambda: "EMB209" in chosen_codes(file.config.select, file.config.ignore))
    return found
