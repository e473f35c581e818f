"""What a call calls: an engine's function, an operation, or a method of an array."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from emberlint.inference.file import File
from emberlint.inference.values import Value
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER, engine_of

_PREFIXES = {"mlx": "core.", "jax": "numpy.", EMBER: "ops."}


class Called(NamedTuple):
    """The engine, the name without the engine's (``linalg.norm``), and the array whose method it is, if it is one."""

    engine: str
    name: str
    owner: Value | None = None

    @property
    def last(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]

    @property
    def record(self) -> dict[str, Any] | None:
        """What the catalogue knows of it."""
        if self.engine == EMBER:
            return catalogue.operation(self.name)
        root = {"mlx": "mlx.core", "jax": "numpy"}.get(self.engine, self.engine)
        return catalogue.function(f"{root}.{self.name}")

    def shown(self) -> str:
        """It as messages name it."""
        if self.owner is not None:
            return f".{self.name}()"
        return f"{ {'numpy': 'np', 'mlx': 'mx', 'jax': 'jnp', EMBER: 'ops'}.get(self.engine, self.engine) }.{self.name}"


def is_engines(name: str) -> bool:
    """Whether a name that is called can be an engine's function, an operation, or a method of an array.

    >>> is_engines("numpy.sum"), is_engines(".sum"), is_engines("sum")
    (True, True, False)
    """
    return name.startswith(".") or engine_of(name) != ""


def last_of(name: str) -> str:
    """A name without its namespace: ``norm`` of ``numpy.linalg.norm``, and of the method ``.norm``."""
    return name.rpartition(".")[2]


def called(node: ast.Call, file: File) -> Called | None:
    """What a call calls; ``None`` for anything but engines, operations and arrays."""
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
    """What is known of an expression, if it is an array or tensor."""
    value = file.value(node)
    return value if value is not None and value.is_array else None


def keyword(node: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument of a name."""
    for one in node.keywords:
        if one.arg == name:
            return one
    return None


def spreads(node: ast.Call) -> bool:
    """Whether a call has ``*args`` or ``**kwargs``, so that its arguments cannot be told apart."""
    return ast.Starred in map(type, node.args) or any(one.arg is None for one in node.keywords)
