"""What a file's scopes hold: names and their values, classes, and functions that are still to be visited."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from emberlint.inference.values import Value
from emberlint.knowledge.types import INSTANCE

Env = dict[str, Value | None]
Scopes = tuple[Env, ...]

# The entry of a scope for the active backend, where a condition says which it is; no name is written so.
BACKEND = "<backend>"


def engines_of(known: Env) -> frozenset[str]:
    """The engines one of which is the active backend, as a scope or a condition tells; empty if it does not."""
    value = known.get(BACKEND)
    return frozenset(value.engine.split(",")) - {""} if value is not None else frozenset()


class Class:
    """What is known of a class of the file: its attributes, its methods and the full names of its bases.

    ``instance`` is any object of it.
    """

    __slots__ = ("attributes", "bases", "instance", "methods", "node")

    def __init__(self, node: ast.ClassDef, bases: list[str]) -> None:
        self.node = node
        self.bases = bases
        self.attributes: Env = {}
        self.methods: dict[str, Value] = {}
        self.instance = Value(INSTANCE, node=node, path=node.name)


class Body(NamedTuple):
    """A statement that is still to be visited, with the scopes around it and the class it is in: a function's body
    when the names around it are known or when it is called, another one when a name in it turns out to matter.
    """

    node: Any
    outer: Scopes
    klass: Class | None = None


class Functions:
    """The functions of a file: those that wait, those that are being visited, and what the others return.

    ``waiting`` has every function that has been met. ``helpers`` says which names are those of functions with one call
    in the file, ``passed`` are the arrays that this call passes, and ``deferred`` the helpers that have been put off
    until it is found.
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
