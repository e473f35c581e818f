"""Callees of calls: an engine's function, an operation, or a method of an array."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from emberlint.inference.file import File
from emberlint.inference.values import Value
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER, engine_of

_PREFIXES = {"mlx": "core.", "jax": "numpy.", EMBER: "ops."}


class Called(NamedTuple):
    """A callee: its engine, its name without the engine (``linalg.norm``), and the array if it is a method."""

    engine: str
    name: str
    owner: Value | None = None

    @property
    def last(self) -> str:
        """Name without its namespace."""
        return self.name.rpartition(".")[2]

    @property
    def record(self) -> dict[str, Any] | None:
        """Record of the callee in the catalogue."""
        if self.engine == EMBER:
            return catalogue.operation(self.name)
        root = {"mlx": "mlx.core", "jax": "jax.numpy"}.get(self.engine, self.engine)
        return catalogue.function(f"{root}.{self.name}")

    def shown(self) -> str:
        """Name of the callee in messages."""
        if self.owner is not None:
            return f".{self.name}()"
        return f"{ {'numpy': 'np', 'mlx': 'mx', 'jax': 'jnp', EMBER: 'ops'}.get(self.engine, self.engine) }.{self.name}"


def may_be_engine_call(name: str) -> bool:
    """Whether a called name may be an engine's function, an operation, or a method of an array.

    >>> may_be_engine_call("numpy.sum"), may_be_engine_call(".sum"), may_be_engine_call("sum")
    (True, True, False)
    """
    return name.startswith(".") or engine_of(name) != ""


def last_of(name: str) -> str:
    """Name without its namespace: ``norm`` for ``numpy.linalg.norm`` and for the method ``.norm``."""
    return name.rpartition(".")[2]


def called(node: ast.Call, file: File) -> Called | None:
    """Callee of a call; ``None`` unless it is an engine's function, an operation, or a method of an array."""
    known = file.uses.callees
    if node not in known:
        known[node] = _called(node, file)
    found: Called | None = known[node]
    return found


def _called(node: ast.Call, file: File) -> Called | None:
    function = node.func
    path = file.path(function)
    if path:
        engine = engine_of(path)
        if not engine:
            return None
        name = path.partition(".")[2]
        prefix = _PREFIXES.get(engine, "")
        if not name.startswith(prefix):
            return None
        return Called(engine, name[len(prefix) :])
    if type(function) is ast.Attribute:
        owner = file.value(function.value)
        if owner is not None and owner.is_array:
            return Called(owner.engine, function.attr, owner)
    return None


def array(node: ast.AST, file: File) -> Value | None:
    """Value of an expression, if it is known to be an array or tensor."""
    value = file.value(node)
    return value if value is not None and value.is_array else None


def keyword(node: ast.Call, name: str) -> ast.keyword | None:
    """Keyword argument with this name."""
    for one in node.keywords:
        if one.arg == name:
            return one
    return None


def spreads(node: ast.Call) -> bool:
    """Whether a call has ``*args`` or ``**kwargs``, so that its arguments cannot be matched to parameters."""
    return ast.Starred in map(type, node.args) or any(one.arg is None for one in node.keywords)
