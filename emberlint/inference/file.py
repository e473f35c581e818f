"""A file under the rules: what they ask about its nodes, and where they report."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from emberlint.config import NAMESPACE
from emberlint.findings import Edit, Finding, Fix
from emberlint.inference.checks import NONE, Checks
from emberlint.inference.interest import Interest, Places
from emberlint.inference.scopes import BACKEND, Body, Class, Env, Functions, Import, Scopes, engines_of
from emberlint.inference.values import CONSTANTS, Value
from emberlint.knowledge.engines import array_type
from emberlint.knowledge.types import REFERENCE
from emberlint.source.text import ENDS, UNDOTTED
from emberlint.source.tree import binders

if TYPE_CHECKING:
    from emberlint.config import Config
    from emberlint.rules import Rule
    from emberlint.source.text import Source


class File:
    """A file under the rules.

    ``function``, ``klass`` and ``loops`` say what surrounds the node being checked: the innermost function's node, the
    innermost class, and how many loops are open in that function. ``imports`` lists what has been imported so far,
    ``engines`` says whose it is, and ``tops`` has the names of modules that are there in all of the file. ``known`` has
    the values of the expressions that something is known of.

    The rest is the pass's: ``env`` and ``outer`` are the names in scope, from the inside; ``returns`` and ``pending``
    are what the function being visited has answered, and the functions in it that are to be visited after it;
    ``ended`` says that what follows in this block is not reached.
    """

    __slots__ = (
        "_shared",
        "allowed",
        "called",
        "callees",
        "checks",
        "classes",
        "compared",
        "config",
        "ended",
        "engines",
        "env",
        "findings",
        "function",
        "functions",
        "given",
        "guarded",
        "helpers",
        "imports",
        "interest",
        "klass",
        "known",
        "loops",
        "module",
        "outer",
        "own",
        "package",
        "pending",
        "renames",
        "returns",
        "source",
        "tops",
        "tree",
        "typing",
        "where",
    )

    def __init__(
        self,
        source: Source,
        tree: ast.Module,
        config: Config,
        checks: Checks = NONE,
        *,
        module: str = "",
        package: str = "",
        where: str = "",
        engines: frozenset[str] | None = None,
        thorough: bool = False,
    ) -> None:
        self.source = source
        self.tree = tree
        self.config = config
        self.checks = checks
        self.module = module
        self.package = package
        self.where = where
        self.allowed = engines
        self.own = frozenset({module.partition(".")[0], config.namespace.partition(".")[0]})
        self.renames = config.namespace != NAMESPACE
        self.interest = Interest(source, thorough)
        self.findings: list[Finding] = []
        self.imports: list[Import] = []
        self.tops: dict[str, str] = {}
        self.engines: set[str] = set()
        self.classes: dict[ast.AST | None, Class] = {}
        self.functions = Functions()
        self.function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
        self.klass: Class | None = None
        self.loops = 0
        self.typing = False
        self.guarded = False
        self.env: Env = {}
        self.outer: Scopes = ()
        self.returns: list[Value | None] = []
        self.ended = False
        self.pending: list[Body] = []
        # Beside the tree and not on it: values point to nodes, and circles would have to wait for a collector.
        self.known: dict[ast.AST, Value] = {}
        self.called: set[ast.AST] = set()
        self.given: dict[ast.AST, ast.Call] = {}
        self.compared: dict[ast.AST, ast.Compare] = {}
        self.callees: dict[ast.AST, Any] = {}
        self.helpers: dict[str, bool] = {}
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
        """What a name stands for here."""
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

    def is_builtin(self, node: ast.AST, *names: str) -> bool:
        """Whether a node is the name of one of these built-in functions, and nothing in the file shadows it."""
        return type(node) is ast.Name and node.id in names and not self.is_bound(node.id)

    def is_called(self, node: ast.AST) -> bool:
        """Whether a node is the function of a call."""
        return node in self.called

    def given_to(self, node: ast.AST) -> ast.Call | None:
        """The call that a node is the ``dtype=`` of."""
        return self.given.get(node)

    def active_backends(self) -> frozenset[str]:
        """The engines one of which is the active backend wherever this place is reached; empty if nothing says so."""
        for scope in (self.env, *self.outer):
            if BACKEND in scope:
                return engines_of(scope)
        return frozenset()

    def comparison_of(self, node: ast.AST) -> ast.Compare | None:
        """The comparison that a name or attribute is a side of."""
        return self.compared.get(node)

    def shared(self, key: str, make: Callable[[], Any]) -> Any:
        """A value that the checks of this file have in common, made when first asked for."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def array_type(self, path: str) -> tuple[str, str] | None:
        """The kind and engine of the objects of a class by its full name, if they are arrays."""
        return array_type(path, self.own)

    # Full names.

    def resolve(self, node: ast.ImportFrom) -> str:
        """The full name of the module that a ``from`` import names, relative ones included."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".") if self.package else []
        if node.level > 1:
            parts = parts[: 1 - node.level] if node.level - 1 <= len(parts) else []
        return ".".join([*parts, *([node.module] if node.module else [])])

    def imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[ast.alias, str]]:
        """The names of an import, each with its full name."""
        base = f"{self.resolve(node)}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            yield alias, base + alias.name

    def canonical(self, path: str) -> str:
        """A full name in which the project's own namespace of operations is ember's."""
        namespace = self.config.namespace
        if self.renames and (path == namespace or path.startswith(namespace + ".")):
            return NAMESPACE + path[len(namespace) :]
        return path

    # What rules report.

    def report(
        self, rule: Rule, node: Any, message: str, *, fix: Fix | None = None, because: Value | None = None
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

    def import_name(self, path: str, *, other: str = "") -> tuple[str, tuple[Edit, ...]]:
        """A name for a module in this file, and the edit that imports it if nothing does yet.

        ``path`` is the module's full name: ``ember_ml.ops`` becomes ``from ember_ml import ops``, ``math`` becomes
        ``import math``. The name is taken from an import at the top of the file where there is one; ``other`` is the
        name for it in a file that binds its own to something else, in whatever scope and line.
        """
        top = self.tops.get(path)
        if top is not None and self._stands_for(top, path):
            return top, ()
        parent, _, last = path.rpartition(".")
        name = last
        if not self._stands_for(name, path):
            name = other or f"ember_{last}"
            if any(one.path == path and one.alias == name and not one.lazy for one in self.imports):
                return name, ()
        edits = self.shared("import edits", dict)
        if (path, name) not in edits:
            line = f"from {parent} import {last}" if parent else f"import {last}"
            if name != last:
                line += f" as {name}"
            offset, before, after = self.shared("import place", self._import_place)
            edits[path, name] = (Edit(offset, offset, f"{before}{line}{after}"),)
        return name, edits[path, name]

    def _stands_for(self, name: str, path: str) -> bool:
        """Whether nothing in the file binds a name, but for imports of a module."""
        found: bool = self.shared(f"{name} is {path}", lambda: self._is_bound_to(name, path))
        return found

    def _is_bound_to(self, name: str, path: str) -> bool:
        scope = self.outer[-1] if self.outer else self.env
        if name in scope:
            value = scope[name]
            if value is None or value.path != self.canonical(path):
                return False
        # Most uses of a module have a dot behind them, which binds nothing but in an import.
        near = Places(self.source, [(name.encode(), UNDOTTED), (b"import", ENDS)])
        return binders(name, self.tree, near.are_in, self.resolve) <= {path}

    def _import_place(self) -> tuple[int, str, str]:
        """Where a new import goes: after the last of the imports that open the file, else after the docstring."""
        body = self.tree.body
        newline = self.source.newline
        last: ast.stmt | None = None
        for i, statement in enumerate(body):
            docstring = i == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, (ast.Import, ast.ImportFrom)) or docstring:
                last = statement
            else:
                break
        starts, data = self.source.starts, self.source.data
        if last is None:
            offset = starts[body[0].lineno - 1] if body else len(data)
            first: Any = body[0] if body else None
            for decorator in getattr(first, "decorator_list", ()):
                offset = min(offset, starts[decorator.lineno - 1])
            return offset, "", newline
        end = last.end_lineno or last.lineno
        if end < len(starts):
            rest = data[starts[end - 1] + (last.end_col_offset or 0) : starts[end]]
            if not rest.endswith((b"\n", b"\r")) and (not rest.strip() or rest.lstrip().startswith(b"#")):
                return len(data), newline, ""
            if not rest.strip() or rest.lstrip().startswith(b"#"):
                return starts[end], "", newline
            return starts[last.lineno - 1], "", newline
        return len(data), newline, ""
