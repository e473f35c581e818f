"""Inferred values: their type, engine and dtype, and the reason for it.

``None`` instead of a ``Value`` means unknown, and rules about tensors do not report it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache

from emberlint.knowledge.engines import EMBER, engine_of
from emberlint.knowledge.types import (
    ARRAYS,
    CLASS,
    DTYPE,
    FUNCTION,
    HOST,
    INSTANCE,
    NONE,
    REFERENCE,
    SCALAR,
    SEQUENCE,
    SHAPE,
    STRING,
    TENSOR,
)

# Reasons for a value's type; `emberlint why` adds the source text.
ANNOTATED = "is annotated"
CALL = "is the result of this call"
METHOD = "is the result of this method"
OPERATOR = "is computed from a tensor"
ELEMENT = "is an element of a tensor"
LITERAL = "is a literal"
BOUND = "is assigned here"
CHECKED = "is tested here"
ATTRIBUTE = "is an attribute of a tensor"
MEMBER = "is assigned to the attribute"
# Path of ``x.at`` and ``x.at[i]``, whose methods return the updated array.
AT = "x.at"


class Value:
    """An inferred value: ``kind``, ``engine``, ``dtype`` ("int", "float", "bool", "complex" or None), and its reasons.

    ``path`` is the full name of a reference. ``element`` and ``items`` describe a sequence: any element, or each one.
    ``argument`` is the name of the parameter if the value is the object that the caller passed, else empty. ``node`` is
    the expression that determined the type, ``reason`` says how, ``source`` is the value it was derived from.
    ``relevant`` says whether a rule may apply to it: an array, an object of an engine, the backend's name, or a
    sequence of these.
    """

    __slots__ = (
        "argument",
        "dtype",
        "element",
        "engine",
        "items",
        "kind",
        "node",
        "nullable",
        "path",
        "reason",
        "relevant",
        "source",
    )

    def __init__(
        self,
        kind: str,
        engine: str = "",
        node: ast.AST | None = None,
        reason: str = "",
        source: Value | None = None,
        *,
        dtype: str | None = None,
        path: str = "",
        element: Value | None = None,
        items: tuple[Value | None, ...] | None = None,
        argument: str = "",
        nullable: bool = False,
    ) -> None:
        self.kind = kind
        self.engine = engine
        self.node = node
        self.reason = reason
        self.source = source
        self.dtype = dtype
        self.path = path
        self.element = element
        self.items = items
        self.argument = argument
        self.nullable = nullable
        if kind in ARRAYS:
            self.relevant = True
        elif kind == SEQUENCE:
            self.relevant = (element is not None and element.relevant) or (items is not None and any_relevant(items))
        elif kind == REFERENCE:
            self.relevant = engine_of(path) != ""
        else:
            self.relevant = path != "" and kind == STRING

    def __repr__(self) -> str:
        parts = [self.kind, *(part for part in (self.engine, self.dtype, self.path) if part)]
        return f"<{' '.join(parts)}>"

    @property
    def is_tensor(self) -> bool:
        """Whether the value is a tensor that is not known to be in host memory."""
        return self.kind == TENSOR

    @property
    def is_array(self) -> bool:
        """Whether the value is a tensor or a NumPy array."""
        return self.kind == TENSOR or self.kind == HOST

    @property
    def is_host(self) -> bool:
        """Whether the value is a Python number or a shape, which need no engine."""
        return self.kind == SCALAR or self.kind == SHAPE

    def described(self) -> str:
        """Description of the type, for messages."""
        names = {"numpy": "NumPy", "torch": "torch", "mlx": "MLX", "jax": "JAX", EMBER: "ember"}
        if self.kind in ARRAYS:
            noun = "array" if self.engine in ("numpy", "jax", "mlx") else "tensor"
            return f"{names.get(self.engine, self.engine)} {noun}".strip()
        words = {SCALAR: "Python number", SHAPE: "shape", SEQUENCE: "sequence", REFERENCE: self.path}
        return words.get(self.kind, self.kind)

    def chain(self) -> Iterator[Value]:
        """The value, the value it was derived from, and so on."""
        value: Value | None = self
        seen = 0
        while value is not None and seen < 24:
            yield value
            value = value.source
            seen += 1


def any_relevant(values: Iterable[Value | None]) -> bool:
    """Whether a rule may apply to one of some values."""
    for value in values:  # noqa: SIM110 - a loop is faster here, and this runs for every list
        if value is not None and value.relevant:
            return True
    return False


INT = Value(SCALAR, dtype="int", reason=LITERAL)
FLOAT = Value(SCALAR, dtype="float", reason=LITERAL)
BOOL = Value(SCALAR, dtype="bool", reason=LITERAL)
COMPLEX = Value(SCALAR, dtype="complex", reason=LITERAL)
NUMBER = Value(SCALAR, reason=LITERAL)
TEXT = Value(STRING, reason=LITERAL)
NOTHING = Value(NONE, reason=LITERAL)
DIMENSIONS = Value(SHAPE, dtype="int", reason=LITERAL, element=INT)
SOME_DTYPE = Value(DTYPE, reason=LITERAL)
CONSTANTS = {int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX, str: TEXT, type(None): NOTHING}
SCALARS = {"int": INT, "float": FLOAT, "bool": BOOL, "complex": COMPLEX, "": NUMBER}


@cache
def reference(path: str) -> Value:
    """Value of an imported name, the same object for each full name."""
    return Value(REFERENCE, path=path)


def merged(a: Value | None, b: Value | None) -> Value | None:
    """Value that is either of two values; ``None`` if they have nothing in common."""
    if a is b or a is None or b is None:
        return a if a is b else None
    if a.kind == b.kind:
        if a.kind == REFERENCE or a.kind in (FUNCTION, CLASS, INSTANCE):
            return a if a.path == b.path and a.node is b.node else None
        if a.kind == SEQUENCE:
            return Value(SEQUENCE, node=a.node, reason=a.reason, element=merged(a.element, b.element))
        if a.engine == b.engine and a.dtype == b.dtype and a.argument == b.argument:
            return a
        return Value(
            a.kind,
            a.engine if a.engine == b.engine else "",
            a.node,
            a.reason,
            a.source,
            dtype=a.dtype if a.dtype == b.dtype else None,
            element=a.element,
        )
    if a.kind == NONE and b.kind in ARRAYS:
        a, b = b, a
    if b.kind == NONE and a.kind in ARRAYS:
        return Value(a.kind, a.engine, a.node, a.reason, a.source, dtype=a.dtype, argument=a.argument, nullable=True)
    return None
