"""Scopes of a file: names with their values, classes, and functions that have not been visited yet."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from emberlint.inference.values import Value
from emberlint.knowledge.types import INSTANCE

Env = dict[str, Value | None]
Scopes = tuple[Env, ...]

# Key of the active backend in a scope, where a condition determines it; it is not a valid name.
BACKEND = "<backend>"


def engines_of(known: Env) -> frozenset[str]:
    """Engines that may be the active backend in a scope; empty if unknown."""
    value = known.get(BACKEND)
    return frozenset(value.engine.split(",")) - {""} if value is not None else frozenset()


class Class:
    """A class of the file: its attributes, its methods and the full names of its bases.

    ``instance`` is the value of its instances.
    """

    __slots__ = ("attributes", "bases", "instance", "methods", "node")

    def __init__(self, node: ast.ClassDef, bases: list[str]) -> None:
        self.node = node
        self.bases = bases
        self.attributes: Env = {}
        self.methods: dict[str, Value] = {}
        self.instance = Value(INSTANCE, node=node, path=node.name)


class Body(NamedTuple):
    """A statement that has not been visited yet, with its enclosing scopes and class.

    A function's body is visited when the names around it are known or when it is called, another statement when a name
    in it becomes relevant.
    """

    node: Any
    outer: Scopes
    klass: Class | None = None


class Functions:
    """The functions of a file: their bodies, those being visited (``open``), and the values they return (``results``).

    ``waiting`` has every function defined so far. ``helpers`` says which names are functions with one call in the file,
    ``passed`` has the arrays that this call passes, and ``deferred`` the helpers whose call has not been found yet.
    """

    __slots__ = ("deferred", "generators", "helpers", "open", "passed", "results", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[ast.AST, Body] = {}
        self.open: set[ast.AST] = set()
        self.results: dict[ast.AST, Value | None] = {}
        self.generators: set[ast.AST] = set()
        self.passed: dict[ast.AST, dict[str, Value]] = {}
        self.deferred: set[ast.AST] = set()
        self.helpers: dict[str, bool] = {}
