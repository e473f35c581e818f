"""Questions about the tree alone: names as they are written, the names that statements bind."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any


def dotted(node: Any) -> str:
    """A dotted name as it is written; empty for anything else."""
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
    """Whether a decorator may change what calling the function answers."""
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
    """The names that statements bind, those of nested blocks included."""
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


def bindings(tree: ast.AST, resolve: Callable[[ast.ImportFrom], str]) -> dict[str, set[str]]:
    """What binds each name of a file, in whatever scope: the full names of imports; empty for all that is no import.

    ``resolve`` is the full name of the module that a ``from`` import names.
    """
    found: dict[str, set[str]] = {}
    node: Any
    for node in ast.walk(tree):
        kind = type(node)
        if kind is ast.Import:
            for name in node.names:
                first = name.name.partition(".")[0]
                found.setdefault(name.asname or first, set()).add(name.name if name.asname else first)
        elif kind is ast.ImportFrom:
            for name in node.names:
                found.setdefault(name.asname or name.name, set()).add(f"{resolve(node)}.{name.name}")
        elif kind is ast.Name:
            if type(node.ctx) is not ast.Load:
                found.setdefault(node.id, set()).add("")
        elif kind is not ast.alias:
            # Parameters, functions, classes, exceptions and patterns.
            bound = node.arg if kind is ast.arg else getattr(node, "rest" if kind is ast.MatchMapping else "name", None)
            if bound:
                found.setdefault(bound, set()).add("")
    return found


def has_keyword(node: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in node.keywords)
