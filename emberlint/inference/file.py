"""The interface between rules and a file: queries about its nodes, and reports."""

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
    """The part of a rule that a report needs."""

    code: str


class Uses:
    """How nodes are used: functions of calls, ``dtype=`` arguments, operands of comparisons.

    ``callees`` caches the results of ``callees.called``.
    """

    __slots__ = ("called", "callees", "compared", "given")

    def __init__(self) -> None:
        self.called: set[ast.AST] = set()
        self.given: dict[ast.AST, ast.Call] = {}
        self.compared: dict[ast.AST, ast.Compare] = {}
        self.callees: dict[ast.AST, Any] = {}


class File:
    """A file as rules see it. The subclass ``State`` adds the state of the pass.

    ``source``, ``tree`` and ``config`` are the text, the syntax tree and the settings; ``module`` is the dotted name,
    ``where`` the path relative to the root, ``allowed`` the engines that the file's layer may import (``None`` in a
    frontend). ``function``, ``klass`` and ``loops`` describe the context of the node being checked: the innermost
    function's node, the innermost class, and the number of enclosing loops in that function. ``typing`` and ``guarded``
    say whether it is for type checkers only, or in a ``try`` that handles errors. ``imports`` are the file's imports so
    far.

    The other attributes are accessed through methods: ``known`` has the inferred values of expressions, ``uses`` says
    how nodes are used, ``env`` and ``outer`` are the names in scope, innermost first.
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
        # Values refer to nodes, so storing them on the tree would create reference cycles.
        self.known: dict[ast.AST, Value] = {}
        self.uses = Uses()
        self.env: Env = {}
        self.outer: Scopes = ()
        self._shared: dict[str, Any] = {}

    # Queries of rules.

    def value(self, node: ast.AST) -> Value | None:
        """Inferred value of an expression; ``None`` if unknown."""
        return CONSTANTS.get(type(node.value)) if type(node) is ast.Constant else self.known.get(node)

    def path(self, node: ast.AST) -> str:
        """Full name that a name or attribute was imported from (``numpy.linalg.norm``); empty if it was not."""
        value = self.known.get(node)
        return value.path if value is not None and value.kind == REFERENCE else ""

    def text(self, node: Any) -> str:
        """Source text of a node."""
        source = self.source
        starts = source.starts
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        return source.data[start:end].decode(errors="replace")

    def span(self, node: Any) -> tuple[int, int]:
        """Offsets of a node's first byte and of the byte after its last."""
        starts = self.source.starts
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def lookup(self, name: str) -> Value | None:
        """Value of a name in the current scope."""
        if name in self.env:
            return self.env[name]
        for scope in self.outer:
            if name in scope:
                return scope[name]
        return None

    def is_bound(self, name: str) -> bool:
        """Whether a name is bound in scope, to a known value or not."""
        if name in self.env:
            return True
        for scope in self.outer:  # noqa: SIM110 - a loop is faster here, and this runs for every built-in
            if name in scope:
                return True
        return False

    def module_scope(self) -> Env:
        """Module-level names."""
        return self.outer[-1] if self.outer else self.env

    def is_nested(self) -> bool:
        """Whether the function being visited is inside of another function or a class."""
        return len(self.outer) > 1

    def is_builtin(self, node: ast.AST, *names: str) -> bool:
        """Whether a node is the name of one of these built-in functions and is not shadowed."""
        return type(node) is ast.Name and node.id in names and not self.is_bound(node.id)

    def is_called(self, node: ast.AST) -> bool:
        """Whether a node is the function of a call."""
        return node in self.uses.called

    def given_to(self, node: ast.AST) -> ast.Call | None:
        """Call that has a node as its ``dtype=``."""
        return self.uses.given.get(node)

    def active_backends(self) -> frozenset[str]:
        """Engines that may be the active backend at this point; empty if unknown."""
        for scope in (self.env, *self.outer):
            if BACKEND in scope:
                return engines_of(scope)
        return frozenset()

    def comparison_of(self, node: ast.AST) -> ast.Compare | None:
        """Comparison that has a name or attribute as an operand."""
        return self.uses.compared.get(node)

    def shared(self, key: str, make: Callable[[], Any]) -> Any:
        """Value that the checks of this file share, created on first use."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    # Reports of rules.

    def report(
        self, rule: Coded, node: Any, message: str, *, fix: Fix | None = None, because: Value | None = None
    ) -> None:
        """Add a finding at a node; ``because`` is the value whose reasons ``--verbose`` shows."""
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
        """Reasons for a value's type, one line each, nearest first."""
        lines = []
        for step in value.chain():
            if step.node is None:
                continue
            text = " ".join(self.text(step.node).split())
            text = text if len(text) <= 60 else text[:57] + "..."
            lines.append(f"line {step.node.lineno}: `{text}` {step.reason or 'is'}: {step.described()}")  # type: ignore[attr-defined]
        return tuple(dict.fromkeys(lines))

    def edit(self, node: ast.AST, text: str) -> Edit:
        """Edit that replaces a node by a text."""
        start, end = self.span(node)
        return Edit(start, end, text)
