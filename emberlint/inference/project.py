"""A whole project: its modules, their imports, and the operations that its frontend and backends define.

Project rules read facts: plain values for each file, which are cached with its findings.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import starmap
from typing import Any, NamedTuple

from emberlint import config as configuration
from emberlint.config import Config
from emberlint.findings import Finding, Fix
from emberlint.inference.conditions import narrowed, of_case
from emberlint.inference.scopes import engines_of
from emberlint.inference.state import State
from emberlint.knowledge.engines import engine_of
from emberlint.source.tree import dotted

# Line and column of the start and of the end.
Span = Sequence[int]


class Imported(NamedTuple):
    """An import: full name, location, and whether it runs at import time on every backend."""

    path: str
    span: Span
    eager: bool


class Defined(NamedTuple):
    """A module-level function; ``parameters`` are tuples of name, kind, default and annotation."""

    name: str
    span: Span
    parameters: tuple[tuple[str, str, str, str], ...]
    bare: bool
    decorators: tuple[str, ...]
    annotated: bool
    documented: bool


class Module(NamedTuple):
    """A file of the project."""

    path: str
    where: str
    name: str
    imports: tuple[Imported, ...]
    functions: tuple[Defined, ...]
    names: tuple[str, ...]
    exports: tuple[str, ...] | None
    stars: tuple[str, ...]


def facts(state: State) -> dict[str, Any]:
    """Facts about a file that project rules need, as plain values."""
    imports: list[list[Any]] = []
    stars: list[str] = []
    found: dict[str, Any] = {"imports": imports, "stars": stars}
    for node, runs, active in _imports(state.tree.body, state, True, frozenset()):
        span = [node.lineno, node.col_offset, node.end_lineno, node.end_col_offset]
        if type(node) is ast.Import:
            paths = [name.name for name in node.names]
        else:
            base = state.imports.resolve(node)
            stars += [base for name in node.names if name.name == "*"]
            paths = [base if name.name == "*" else f"{base}.{name.name}" for name in node.names]
        imports += [[path, span, runs and not (active and _engine(path) in active)] for path in paths]
    parts = state.where.split("/")
    if "ops" in parts[:-1] or "backend" in parts[:-1] or "backends" in parts[:-1]:
        found["functions"] = [
            _defined(node, state)
            for node in state.tree.body
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        found["names"] = sorted(_bound(state.tree.body))
        found["exports"] = _exports(state.tree.body)
    return found


def _engine(path: str) -> str:
    """Engine that an import loads, directly or as its backend; empty if there is none."""
    return engine_of(path) or configuration.backend_of(path.replace(".", "/"))


def _imports(
    body: list[Any], state: State, runs: bool, active: frozenset[str]
) -> Iterator[tuple[Any, bool, frozenset[str]]]:
    """Module-level imports, whether they run at import time, and the engines that may be the active backend then."""
    for node in body:
        kind = type(node)
        if kind is ast.Import or kind is ast.ImportFrom:
            yield node, runs, active
        elif kind is ast.If:
            typing = dotted(node.test).endswith("TYPE_CHECKING")
            yes, no = narrowed(node.test, state)
            yield from _imports(node.body, state, runs and not typing, engines_of(yes) or active)
            yield from _imports(node.orelse, state, runs, engines_of(no) or active)
        elif kind is ast.Match:
            for case in node.cases:
                engines = engines_of(of_case(node.subject, case.pattern, state))
                yield from _imports(case.body, state, runs, engines or active)
        elif kind is ast.Try:
            blocks = (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody)
            for part in blocks:
                yield from _imports(part, state, runs, active)


def _defined(node: Any, state: State) -> list[Any]:
    arguments = node.args
    rows = []
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    for i, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        rows.append(_parameter(argument, "P" if i < len(arguments.posonlyargs) else "B", default, state))
    if arguments.vararg is not None:
        rows.append(_parameter(arguments.vararg, "V", None, state))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        rows.append(_parameter(argument, "K", default, state))
    if arguments.kwarg is not None:
        rows.append(_parameter(arguments.kwarg, "W", None, state))
    received = _received(node)
    if received:
        known = {row[0]: row for row in rows}
        rows = [[name, kind or known[name][1], *known[name][2:]] for name, kind in received if name in known]
    every = [*positional, *arguments.kwonlyargs, *(a for a in (arguments.vararg, arguments.kwarg) if a is not None)]
    bare = all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in node.body)
    return [
        node.name,
        [node.lineno, node.col_offset, node.lineno, node.col_offset + len(f"def {node.name}")],
        rows,
        bare,
        [dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list],
        node.returns is not None and all(argument.annotation is not None for argument in every),
        ast.get_docstring(node, clean=False) is not None,
    ]


def _received(node: Any) -> list[tuple[str, str]]:
    """Names and kinds of the parameters that backends receive, if a decorator says so: ``@op(engine="x, *, axis")``.

    A kind is empty if it is that of the operation's parameter.
    """
    keywords = [keyword for d in node.decorator_list if isinstance(d, ast.Call) for keyword in d.keywords]
    for keyword in keywords:
        if keyword.arg == "engine" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
            text = keyword.value.value
            only, slash, rest = text.rpartition("/")
            positional, _, named = (rest if slash else text).partition("*")
            groups = ((only, "P"), (positional, ""), (named, "K"))
            return [(name.strip(), kind) for names, kind in groups for name in names.split(",") if name.strip()]
    return []


def _parameter(argument: ast.arg, kind: str, default: ast.expr | None, state: State) -> list[str]:
    return [argument.arg, kind, _written(default, state), _written(argument.annotation, state)]


def _written(node: ast.expr | None, state: State) -> str:
    """Normalized text of a default or an annotation."""
    if node is None:
        return ""
    return repr(node.value) if isinstance(node, ast.Constant) else " ".join(state.text(node).split())


def _bound(body: list[Any]) -> set[str]:
    """Module-level names."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                names.update(part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, (ast.If, ast.Try, ast.For, ast.With)):
            names |= _bound(node.body)
            names |= _bound(getattr(node, "orelse", []))
            for handler in getattr(node, "handlers", []):
                names |= _bound(handler.body)
    return names


def _exports(body: list[Any]) -> list[str] | None:
    """Names in ``__all__``, if it is a plain list or tuple of strings."""
    for node in body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, (ast.List, ast.Tuple)):
            continue
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return [e.value for e in node.value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    return None


class Project:
    """The files of a run, and the findings of project rules.

    ``modules`` are by dotted name; ``packages`` are those with an ``ops`` folder next to a ``backend`` folder that
    contains engines.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.modules: dict[str, Module] = {}
        self.findings: list[Finding] = []
        self._layers: dict[str, frozenset[str] | None] = {}

    def add(self, path: str, name: str, facts: dict[str, Any]) -> None:
        """Add the facts of a file."""
        self.modules[name] = Module(
            path,
            configuration.relative(path, self.config),
            name,
            tuple(starmap(Imported, facts["imports"])),
            tuple(
                Defined(n, s, tuple(map(tuple, p)), b, tuple(d), a, doc)
                for n, s, p, b, d, a, doc in facts.get("functions", ())
            ),
            tuple(facts.get("names", ())),
            None if facts.get("exports") is None else tuple(facts["exports"]),
            tuple(facts["stars"]),
        )

    def report(
        self, rule: Any, module: Module, span: Span, message: str, *, fix: Fix | None = None, why: tuple[str, ...] = ()
    ) -> None:
        """Add a finding in a module."""
        line, column, end_line, end_column = span
        self.findings.append(Finding(rule.code, message, module.path, line, column, end_line, end_column, fix, why))

    def target(self, path: str) -> Module | None:
        """Module of the project that an import refers to, as a module or as the module of a name."""
        return self.modules.get(path) or self.modules.get(path.rpartition(".")[0])

    def layer(self, module: Module) -> frozenset[str] | None:
        """Engines that a module may import; ``None`` for a frontend."""
        known = self._layers
        if module.where not in known:
            known[module.where] = configuration.layer(module.where, self.config)
        return known[module.where]

    @cached_property
    def packages(self) -> list[Package]:
        """Packages with a frontend of operations and backends."""
        roots: dict[str, set[str]] = {}
        for name in self.modules:
            parts = name.split(".")
            for i, part in enumerate(parts[:-1]):
                if part in ("backend", "backends") and configuration.backend_of("/".join([part, parts[i + 1]])):
                    roots.setdefault(".".join(parts[:i]), set()).add(".".join(parts[: i + 2]))
        found = []
        for root, backends in sorted(roots.items()):
            ops = f"{root}.ops" if root else "ops"
            if any(name == ops or name.startswith(ops + ".") for name in self.modules):
                found.append(Package(self, root, ops, tuple(sorted(backends))))
        return found


class Package:
    """A package with operations by category, and backends."""

    def __init__(self, project: Project, root: str, ops: str, backends: tuple[str, ...]) -> None:
        self.project = project
        self.root = root
        self.ops = ops
        self.backends = backends

    @cached_property
    def operations(self) -> list[tuple[Module, Defined]]:
        """Public functions of the frontend that ``@op`` decorates, or all of them if none is decorated."""
        found = []
        for name, module in self.project.modules.items():
            if name.startswith(self.ops + ".") and os.path.basename(module.path) != "__init__.py":
                found += [(module, f) for f in module.functions if not f.name.startswith("_")]
        marked = [(m, f) for m, f in found if any(d.rpartition(".")[2] == "op" for d in f.decorators)]
        return marked or found

    def provider(self, backend: str, module: Module) -> Module | None:
        """Module of a backend that mirrors a module of the frontend."""
        return self.project.modules.get(f"{backend}{module.name[len(self.ops) :]}")
