"""A file under the rules: what they ask about its nodes, and where they report."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from emberlint.findings import Edit, Finding, Fix
from emberlint.inference.imports import Imports
from emberlint.inference.scopes import BACKEND, Class, Env, Scopes, engines_of
from emberlint.inference.values import CONSTANTS, Value
from emberlint.knowledge.types import REFERENCE

if TYPE_CHECKING:
    from emberlint.config import Config
    from emberlint.source.text import Source


class Coded(Protocol):
    """A rule, as far as a report needs it."""

    code: str


class Uses:
    """How nodes are used: the functions of calls, what is given as ``dtype=`` to which call, the sides of comparisons.

    ``callees`` keeps what ``callees.called`` has found.
    """

    __slots__ = ("called", "callees", "compared", "given")

    def __init__(self) -> None:
        self.called: set[ast.AST] = set()
        self.given: dict[ast.AST, ast.Call] = {}
        self.compared: dict[ast.AST, ast.Compare] = {}
        self.callees: dict[ast.AST, Any] = {}


class File:
    """A file under the rules: all that a rule may use. The pass that shows it to them is a ``State``.

    ``source``, ``tree`` and ``config`` are what was read; ``module`` is the dotted name, ``where`` the path relative to
    the root, ``allowed`` the engines that the file's layer may import (``None`` in a frontend). ``function``, ``klass``
    and ``loops`` say what surrounds the node being checked: the innermost function's node, the innermost class, and how
    many loops are open in that function; ``typing`` and ``guarded``, whether it is for type checkers only, or in a
    ``try`` that handles errors. ``imports`` are the file's imports so far.

    Rules ask for the rest by methods: ``known`` has the values of the expressions that something is known of, ``uses``
    how nodes are used, ``env`` and ``outer`` are the names in scope, from the inside.
    """

    __slots__ = (
        "_shared",
        "allowed",
        "config",
        "env",
        "findings",
        "function",
        "guarded",
        "imports",
        "klass",
        "known",
        "loops",
        "module",
        "outer",
        "source",
        "tree",
        "typing",
        "uses",
        "where",
    )

    def __init__(
        self,
        source: Source,
        tree: ast.Module,
        config: Config,
        *,
        module: str = "",
        package: str = "",
        where: str = "",
        engines: frozenset[str] | None = None,
    ) -> None:
        self.source = source
        self.tree = tree
        self.config = config
        self.module = module
        self.where = where
        self.allowed = engines
        self.imports = Imports(module, package, config.namespace)
        self.findings: list[Finding] = []
        self.function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
        self.klass: Class | None = None
        self.loops = 0
        self.typing = False
        self.guarded = False
        # In tables and not on the tree: values point to nodes, and circles would have to wait for a collector.
        self.known: dict[ast.AST, Value] = {}
        self.uses = Uses()
        self.env: Env = {}
        self.outer: Scopes = ()
        self._shared: dict[str, Any] = {}

    # What rules ask.

    def value(self, node: ast.AST) -> Value | None:
        """What is known of an expression's value; ``None`` is unknown."""
        return CONSTANTS.get(type(node.value)) if type(node) is ast.Constant else self.known.get(node)

    def path(self, node: ast.AST) -> str:
        """The full name that a name or attribute was imported from (``numpy.linalg.norm``), or the empty string."""
        value = self.known.get(node)
        return value.path if value is not None and value.kind == REFERENCE else ""

    def text(self, node: Any) -> str:
        """The source text of a node."""
        source = self.source
        starts = source.starts
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        return source.data[start:end].decode(errors="replace")

    def span(self, node: Any) -> tuple[int, int]:
        """The offsets of a node's first byte and of the byte after its last."""
        starts = self.source.starts
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def lookup(self, name: str) -> Value | None:
        """The value of a name here."""
        if name in self.env:
            return self.env[name]
        for scope in self.outer:
            if name in scope:
                return scope[name]
        return None

    def is_bound(self, name: str) -> bool:
        """Whether anything in scope has a name, known or not."""
        if name in self.env:
            return True
        for scope in self.outer:  # noqa: SIM110 - a loop is faster here, and this is asked for every built-in
            if name in scope:
                return True
        return False

    def module_scope(self) -> Env:
        """The names at the top of the file."""
        return self.outer[-1] if self.outer else self.env

    def is_nested(self) -> bool:
        """Whether the function being visited is inside of another function or a class."""
        return len(self.outer) > 1

    def is_builtin(self, node: ast.AST, *names: str) -> bool:
        """Whether a node is the name of one of these built-in functions, and nothing in the file shadows it."""
        return type(node) is ast.Name and node.id in names and not self.is_bound(node.id)

    def is_called(self, node: ast.AST) -> bool:
        """Whether a node is the function of a call."""
        return node in self.uses.called

    def given_to(self, node: ast.AST) -> ast.Call | None:
        """The call that a node is the ``dtype=`` of."""
        return self.uses.given.get(node)

    def active_backends(self) -> frozenset[str]:
        """The engines one of which is the active backend wherever this place is reached; empty if nothing says so."""
        for scope in (self.env, *self.outer):
            if BACKEND in scope:
                return engines_of(scope)
        return frozenset()

    def comparison_of(self, node: ast.AST) -> ast.Compare | None:
        """The comparison that a name or attribute is a side of."""
        return self.uses.compared.get(node)

    def shared(self, key: str, make: Callable[[], Any]) -> Any:
        """A value that the checks of this file have in common, made when first asked for."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    # What rules report.

    def report(
        self, rule: Coded, node: Any, message: str, *, fix: Fix | None = None, because: Value | None = None
    ) -> None:
        """Add a finding at a node; ``because`` is the value whose reasons ``emberlint why`` tells."""
        self.findings.append(
            Finding(
                rule.code,
                message if "\n" not in message else " ".join(message.split()),
                self.source.path,
                node.lineno,
                node.col_offset,
                node.end_lineno or node.lineno,
                node.end_col_offset or node.col_offset,
                fix,
                self.reasons(because) if because is not None else (),
            )
        )

    def reasons(self, value: Value) -> tuple[str, ...]:
        """The chain of reasons for a value's kind, one sentence each, nearest first."""
        lines = []
        for step in value.chain():
            if step.node is None:
                continue
            text = " ".join(self.text(step.node).split())
            text = text if len(text) <= 60 else text[:57] + "..."
            lines.append(f"line {step.node.lineno}: `{text}` {step.reason or 'is'}: {step.described()}")  # type: ignore[attr-defined]
        return tuple(dict.fromkeys(lines))

    def edit(self, node: ast.AST, text: str) -> Edit:
        """The edit that puts a text in the place of a node."""
        start, end = self.span(node)
        return Edit(start, end, text)
