"""Syntax trees: parsing, dotted names, bound names."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Any

from emberlint.source.text import Source

# Exceptions of ``parse`` for invalid Python, and of ``Source`` for an unknown encoding.
PARSE_ERRORS = (SyntaxError, LookupError, UnicodeError)

_BOUND = {ast.arg: "arg", ast.MatchMapping: "rest"}


def parse(source: Source) -> ast.Module:
    """Syntax tree of a source; any error of the parser is raised as ``SyntaxError``."""
    data: Any = source.data if source.encoding == "utf-8" else source.data.decode()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree: ast.Module = ast.parse(data, source.path)
            return tree
    except (ValueError, RecursionError, MemoryError, OverflowError, UnicodeError) as error:
        raise SyntaxError(str(error) or "too deeply nested") from error


def dotted(node: Any) -> str:
    """Dotted name as it is written; empty for any other expression."""
    parts = []
    while type(node) is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    if type(node) is not ast.Name:
        return ""
    return ".".join([node.id, *reversed(parts)])


def is_static(node: Any) -> bool:
    decorators = node.decorator_list
    return bool(decorators) and any(dotted(one) in ("staticmethod", "classmethod") for one in decorators)


def is_wrapped(node: Any) -> bool:
    """Whether a decorator may change what calling the function returns."""
    kept = (
        "staticmethod",
        "classmethod",
        "cache",
        "lru_cache",
        "no_grad",
        "inference_mode",
        "jit",
        "compile",
        "wraps",
        "override",
    )
    for decorator in node.decorator_list:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2]
        if name not in kept:
            return True
    return False


def stored(body: list[ast.stmt]) -> set[str]:
    """Names that statements bind, including those in nested blocks."""
    names: set[str] = set()
    stack: list[Any] = list(body)
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is ast.Assign:
            for target in node.targets:
                _names(target, names)
        elif kind is ast.AugAssign or kind is ast.AnnAssign:
            _names(node.target, names)
        elif kind is ast.For or kind is ast.AsyncFor:
            _names(node.target, names)
            stack += node.body
            stack += node.orelse
        elif kind in (ast.If, ast.While):
            stack += node.body
            stack += node.orelse
        elif kind in (ast.With, ast.AsyncWith):
            stack += node.body
        elif kind is ast.Try:
            stack += node.body
            stack += node.orelse
            stack += node.finalbody
            for handler in node.handlers:
                stack += handler.body
    return names


def _names(target: Any, names: set[str]) -> None:
    if type(target) is ast.Name:
        names.add(target.id)
    elif type(target) in (ast.Tuple, ast.List):
        for element in target.elts:
            _names(element, names)


def binders(
    name: str, tree: ast.AST, near: Callable[[Any], bool], resolve: Callable[[ast.ImportFrom], str]
) -> set[str]:
    """Full names of the imports that bind a name in any scope of a file; an empty string for any other binding.

    ``near`` says whether the lines of a statement contain the name; ``resolve`` is the full name of the module of a
    ``from`` import.
    """
    found: set[str] = set()
    stack: list[Any] = [tree]
    while stack:
        node = stack.pop()
        kind = type(node)
        if isinstance(node, ast.stmt) and not near(node):
            stack += getattr(node, "decorator_list", ())  # decorators come before the lines of the statement
            continue
        if kind is ast.Import:
            for alias in node.names:
                first = alias.name.partition(".")[0]
                if (alias.asname or first) == name:
                    found.add(alias.name if alias.asname else first)
        elif kind is ast.ImportFrom:
            found.update(
                f"{resolve(node)}.{alias.name}" for alias in node.names if (alias.asname or alias.name) == name
            )
        elif kind is ast.Name:
            if node.id == name and type(node.ctx) is not ast.Load:
                found.add("")
        else:
            # Parameters, functions, classes, exceptions and patterns.
            if getattr(node, _BOUND.get(kind, "name"), None) == name:
                found.add("")
            stack += ast.iter_child_nodes(node)
    return found


def has_keyword(node: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in node.keywords)


def last_part(node: ast.expr) -> ast.expr:
    """Last operand of ``and`` and ``or``; the truth values of the other operands are tested separately."""
    while type(node) is ast.BoolOp:
        node = node.values[-1]
    return node
