"""One pass over a file: names are resolved, values get kinds, rules see each node after its parts.

Functions whose text mentions nothing of interest (no engine, no operation, no tensor) are not visited at all; that is
what makes the pass fast. Which names are of interest grows as the file tells more: a module's tensors, the functions
that answer them, the attributes that hold them.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from emberlint import inference, kinds
from emberlint.findings import Edit, Finding, Fix
from emberlint.gates import COLD, GATES
from emberlint.kinds import (
    ARRAYS,
    BOOL,
    CHECKED,
    CLASS,
    CONSTANTS,
    DIMENSIONS,
    ELEMENT,
    FUNCTION,
    HOST,
    INSTANCE,
    INT,
    METHOD,
    NONE,
    NOTHING,
    NUMBER,
    OPERATOR,
    REFERENCE,
    SAYS,
    SCALAR,
    SCALARS,
    SEQUENCE,
    SHAPE,
    SOME_DTYPE,
    STRING,
    TENSOR,
    TEXT,
    Value,
    merged,
    reference,
)
from emberlint.results import (
    BUILTIN_ANSWERS,
    BUILTIN_TYPES,
    HOST_MATHS,
    PLAIN,
    all_host,
    combined,
    dtype_word,
    first_array,
    is_number_type,
    method_dtype,
    result_dtype,
    several,
    stronger,
    worded,
)
from emberlint.source import LETTERS
from emberlint.syntax import dotted, has_keyword, is_static, is_wrapped, stored

if TYPE_CHECKING:
    from emberlint.config import Config
    from emberlint.rules import Rule
    from emberlint.source import Source

Env = dict[str, Value | None]
Check = Callable[[Any, "File"], None]


class Truth:
    """The event of an expression whose truth value is asked for: ``if``, ``while``, ``assert``, ``and``, ``not`` ..."""


class Annotation:
    """The event of an expression that annotates a parameter, a result or a variable."""


class Iteration:
    """The event of an expression that is iterated over: ``for``, comprehensions, unpacking."""


_WORD = re.compile(rb"[A-Za-z_]\w*")
_WARM = frozenset({b"__import__", b"import_module", b"get_backend", b"backend", b"yield", b"await"})
_ANNOTATED = frozenset({b"KerasTensor", b"EmberTensor", b"get_backend"})
_ALWAYS = frozenset({b"import", b"import_module", b"Tensor", b"ndarray", b"NDArray", b"backend"})


class Class:
    """What is known of a class of the file: its attributes, its methods and the full names of its bases."""

    __slots__ = ("attributes", "bases", "methods", "node")

    def __init__(self, node: ast.ClassDef, bases: list[str]) -> None:
        self.node = node
        self.bases = bases
        self.attributes: Env = {}
        self.methods: dict[str, Value] = {}


class Import:
    """A name that an import binds: the full name of what it is, and how it came in."""

    __slots__ = ("alias", "guarded", "lazy", "name", "node", "path", "typing")

    def __init__(
        self, node: ast.stmt, path: str, name: ast.alias, alias: str, lazy: bool, typing: bool, guarded: bool
    ) -> None:
        self.node = node
        self.path = path
        self.name = name
        self.alias = alias
        self.lazy = lazy
        self.typing = typing
        self.guarded = guarded


class File:
    """A file under the rules: what they ask about nodes, and where they report.

    ``function``, ``klass`` and ``loops`` say what surrounds the node being checked: the innermost function's node, the
    innermost class, and how many loops are open in that function. ``imports`` lists what has been imported so far.
    """

    def __init__(
        self,
        source: Source,
        tree: ast.Module,
        config: Config,
        checks: dict[type, list[Check]],
        *,
        module: str = "",
        package: str = "",
        where: str = "",
        engines: frozenset[str] | None = None,
        thorough: bool = False,
    ) -> None:
        self.source = source
        self.where = where
        self.tree = tree
        self.config = config
        self.on = checks
        self.module = module
        self.package = package
        self.allowed = engines
        self.findings: list[Finding] = []
        self.imports: list[Import] = []
        self.classes: dict[ast.AST | None, Class] = {}
        self.function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
        self.klass: Class | None = None
        self.loops = 0
        self.typing = False
        self.guarded = False
        self.thorough = thorough
        # Beside the tree and not on it: values point to nodes, and circles would have to wait for a collector.
        self.known: dict[ast.AST, Value] = {}
        self.callees: dict[ast.AST, Any] = {}
        self.forced: dict[ast.AST, Any] = {}
        self.helpers: dict[str, bool] = {}
        self.engines: set[str] = set()
        self.values: list[tuple[ast.AST, Value]] = []
        self.env: Env = {}
        self.outer: tuple[Env, ...] = ()
        self._returns: list[Value | None] = []
        self._ended = False
        self._answers: dict[ast.AST, Value | None] = {}
        self._open: set[ast.AST] = set()
        self._pending: list[tuple[Any, tuple[Env, ...], Class | None]] = []
        self._generators: set[ast.AST] = set()
        self._dynamic: set[str] = set()
        self._warm = set(_WARM)
        self._names: set[bytes] | None = None
        self._places: list[int] | None = None
        self._walruses = b":=" in source.data
        self._called: set[ast.AST] = set()
        self._given: dict[ast.AST, tuple[ast.Call, str | None]] = {}
        self._compared: dict[ast.AST, list[ast.cmpop]] = {}
        self._shared: dict[str, Any] = {}
        self._waiting: dict[ast.AST, tuple[Any, tuple[Env, ...], Class | None]] = {}
        self._passed: dict[ast.AST, dict[str, Value]] = {}
        self._deferred: set[ast.AST] = set()

    # What rules ask.

    def value(self, node: ast.AST) -> Value | None:
        """What is known of an expression's value; ``None`` is unknown."""
        return CONSTANTS.get(type(node.value)) if type(node) is ast.Constant else self.known.get(node)

    def path(self, node: ast.AST) -> str:
        """The full name that a name or attribute was imported from (``numpy.linalg.norm``), or the empty string."""
        value = self.known.get(node)
        return value.path if value is not None and value.kind == REFERENCE else ""

    def text(self, node: ast.AST) -> str:
        """The source text of a node."""
        start, end = self.span(node)
        return self.source.data[start:end].decode(errors="replace")

    def span(self, node: Any) -> tuple[int, int]:
        """The offsets of a node's first byte and of the byte after its last."""
        starts = self.source.starts
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def is_builtin(self, node: ast.AST, *names: str) -> bool:
        """Whether a node is the name of one of these built-in functions, and nothing in the file shadows it."""
        return isinstance(node, ast.Name) and node.id in names and not self._bound(node.id)

    def is_called(self, node: ast.AST) -> bool:
        """Whether a node is the function of a call."""
        return node in self._called

    def given_to(self, node: ast.AST) -> tuple[ast.Call, str | None] | None:
        """The call that a node is the ``dtype=`` of, and that keyword."""
        return self._given.get(node)

    def signs_beside(self, node: ast.AST) -> list[ast.cmpop]:
        """The signs of the comparison that a name or attribute is a side of."""
        return self._compared.get(node, [])

    def shared(self, key: str, make: Callable[[], Any]) -> Any:
        """A value that the checks of this file have in common, made when first asked for."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    # What rules report.

    def report(
        self, rule: Rule, node: Any, message: str, *, fix: Fix | None = None, because: Value | None = None
    ) -> None:
        """Add a finding at a node; ``because`` is the value whose reasons ``emberlint why`` tells."""
        self.findings.append(
            Finding(
                rule.code,
                message,
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
        name for it in a file where its own is taken.
        """
        known = self.shared("import names", dict)
        key = (path, len(self.imports))
        if key not in known:
            top = (i for i in self.imports if i.path == path and not i.lazy and not i.typing and not i.guarded)
            known[key] = next((item.alias for item in top), "")
        if known[key]:
            return known[key], ()
        parent, _, last = path.rpartition(".")
        name = last
        if name in self.env or name in self._module_env():
            name = other or f"ember_{last}"
        line = f"from {parent} import {last}" if parent else f"import {last}"
        if name != last:
            line += f" as {name}"
        offset, before, after = self.shared("import place", self._import_place)
        return name, (Edit(offset, offset, f"{before}{line}{after}"),)

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

    def _module_env(self) -> Env:
        return self.outer[0] if self.outer else self.env

    def _bound(self, name: str) -> bool:
        if name in self.env:
            return True
        for scope in self.outer:  # noqa: SIM110 - a loop is faster here, and this is asked for every built-in
            if name in scope:
                return True
        return False

    def lookup(self, name: str) -> Value | None:
        """What a name stands for here."""
        return self.env[name] if name in self.env else self._outside(name)

    # The pass.

    def run(self) -> list[Finding]:
        """Visit the module; the findings are in the order of their places."""
        names = self._names = self._interesting()
        places = self._places = self._worth(names) if names is not None else None
        skipped = self._module(self.tree.body)
        while True:
            while self._pending:
                node, outer, klass = self._pending.pop(0)
                if node in self._answers or node in self._open:
                    continue
                if node not in self._deferred and inference.is_helper(node.name, self):
                    # Its one call, somewhere below, tells what its parameters are.
                    self._deferred.add(node)
                    self._pending.append((node, outer, klass))
                    continue
                if places is not None and not self._touches(node, places):
                    skipped.append((node, outer, klass))
                    continue
                self._enter(node, outer, klass)
            if not self._dynamic or not skipped:
                break
            places = self.source.words(name.encode() for name in self._dynamic)
            self._dynamic = set()
            retry, skipped = skipped, []
            for node, outer, klass in retry:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self._pending.append((node, outer, klass))
                elif self._touches(node, places):
                    self.env, self.outer = outer[0], ()
                    self.execute(node)
                else:
                    skipped.append((node, outer, klass))
        self.findings.sort(key=lambda finding: (finding.line, finding.column, finding.code))
        return self.findings

    def _worth(self, names: set[bytes]) -> list[int]:
        """The places of the names that make a function worth a visit."""
        if not names <= _ALWAYS or self.allowed is not None or ast.FunctionDef in self.on:
            return self.source.words(names)
        # Without an engine there are arrays by annotation only, and of a backend no more to find than branches on its
        # name: what is taken from it by a dot is nothing to any rule.
        data = self.source.data
        places = self.source.words((names - {b"backend"}) | _ANNOTATED)
        places += [place for place in self.source.words((b"backend",)) if data[place + 7 : place + 8] != b"."]
        places.sort()
        return places

    def _module(self, body: list[ast.stmt]) -> list[tuple[Any, tuple[Env, ...], Class | None]]:
        skipped: list[tuple[Any, tuple[Env, ...], Class | None]] = []
        for statement in body:
            kind = type(statement)
            if (
                kind in (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
                or self._places is None
                or self._touches(statement, self._places)
            ):
                self.execute(statement)
            else:
                if kind is ast.Assign:
                    for target in statement.targets:  # type: ignore[attr-defined]
                        self._forget(target)
                skipped.append((statement, (self.env,), None))
        module = self.env
        for name, value in module.items():
            if value is not None and (
                value.kind in ARRAYS
                or (value.kind == REFERENCE and kinds.engine_of(value.path))
                or value.kind == INSTANCE
            ):
                self._dynamic.add(name)
        return skipped

    def _touches(self, node: Any, places: list[int]) -> bool:
        """Whether one of these places, which are in order, is on the lines of a node."""
        starts = self.source.starts
        i = bisect_left(places, starts[node.lineno - 1])
        return i < len(places) and places[i] < starts[node.end_lineno]

    def _interesting(self) -> set[bytes] | None:
        """The names that make a function worth a visit; ``None`` if all of it is."""
        names = set(_ALWAYS)
        roots = {name.encode() for name in kinds.ENGINES} | {
            b"ember_ml",
            b"ml_dtypes",
            self.config.namespace.partition(".")[0].encode(),
        }
        for module, bound, plain in self.source.imports():
            if plain is not None:
                for part in plain.split(b","):
                    words = _WORD.findall(part)
                    if words and words[0] in roots:
                        names.add(words[-1] if b" as " in part else words[0])
            elif module.startswith(b".") or module.partition(b".")[0] in roots:
                if b"*" in bound:
                    self.thorough = True
                    return None
                names.update(_WORD.findall(bound))
        names.discard(b"as")
        self._warm |= names
        return names

    def _enter(self, node: Any, outer: tuple[Env, ...], klass: Class | None) -> Value | None:
        """Visit a function's body in a scope of its own; what it answers."""
        saved = self.env, self.outer, self.klass, self.function, self.loops, self._returns, self._ended, self._pending
        self.env, self.outer, self.klass, self.function, self.loops = {}, outer, klass, node, 0
        self._returns, self._ended, self._pending = [], False, []
        self._open.add(node)
        try:
            self._parameters(node, klass)
            self.block(node.body)
            if not self._ended:
                self._returns.append(NOTHING)
            pending, scopes = self._pending, (*outer, self.env)
            while pending:
                inner, _, inner_class = pending.pop(0)
                if inner not in self._answers and inner not in self._open:
                    self._enter(inner, scopes, inner_class)
            answers, yields = self._returns, node in self._generators
        finally:
            self._open.discard(node)
            self.env, self.outer, self.klass, self.function, self.loops, self._returns, self._ended, self._pending = (
                saved
            )
        value = answers[0] if answers else None
        for other in answers[1:]:
            value = merged(value, other)
        if yields or isinstance(node, ast.AsyncFunctionDef):
            value = None
        declared = self._declared(node)
        if declared is not None:
            value = declared
        self._answers[node] = value
        if value is not None and (value.kind in ARRAYS or value.kind == SEQUENCE):
            self._dynamic.add(node.name)
        return value

    def _declared(self, node: Any) -> Value | None:
        if node.returns is None or isinstance(node, ast.AsyncFunctionDef):
            return None
        return self.annotated(node.returns)

    def _parameters(self, node: Any, klass: Class | None) -> None:
        arguments = node.args
        env = self.env
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
        defaults.update(
            (a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None
        )
        inferred = inference.parameters(
            node, klass.node if klass is not None else None, self._passed.get(node, {}), self
        )
        for i, argument in enumerate((*positional, *arguments.kwonlyargs)):
            value: Value | None = None
            if argument.annotation is not None:
                known = self.annotated(argument.annotation)
                if known is not None:
                    value = Value(
                        known.kind,
                        known.engine,
                        argument,
                        SAYS,
                        dtype=known.dtype,
                        path=known.path,
                        element=known.element,
                        items=known.items,
                        argument=argument.arg,
                        nullable=known.nullable,
                    )
            elif i == 0 and klass is not None and not is_static(node):
                value = Value(INSTANCE, node=klass.node, path=klass.node.name)
            elif argument.arg in inferred:
                default = defaults.get(argument)
                if default is None or (type(default) is ast.Constant and default.value is None):
                    value = inferred[argument.arg]
                    value.nullable = default is not None
            env[argument.arg] = value
            if value is not None and value.kind not in COLD and (i > 0 or klass is None):
                self._warm.add(argument.arg.encode())
        for argument in (arguments.vararg, arguments.kwarg):
            if argument is not None:
                self._warm.add(argument.arg.encode())
                known = self.annotated(argument.annotation) if argument.annotation is not None else None
                env[argument.arg] = (
                    Value(SEQUENCE, node=argument, reason=SAYS, element=known)
                    if known is not None and argument is arguments.vararg
                    else None
                )

    # Statements.

    def block(self, body: Iterable[ast.stmt]) -> None:
        """Execute statements one after the other."""
        for statement in body:
            self.execute(statement)

    def execute(self, node: Any) -> None:
        """What a statement does to the names in scope."""
        handler = _EXECUTE.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self._generic(node)
            self._check(node)

    def _check(self, node: Any) -> None:
        for check in self.on.get(type(node), ()):
            check(node, self)

    def _generic(self, node: ast.AST) -> None:
        known = node.__dict__
        for name in node._fields:
            child = known.get(name)
            if type(child) is list:
                for item in child:
                    if isinstance(item, ast.expr):
                        self.evaluate(item)
                    elif isinstance(item, ast.stmt):
                        self.execute(item)
                    elif isinstance(item, ast.AST):
                        self._generic(item)
            elif isinstance(child, ast.expr):
                self.evaluate(child)
            elif isinstance(child, ast.AST) and not isinstance(child, (ast.expr_context, ast.operator, ast.boolop)):
                self._generic(child)

    def _import(self, node: ast.Import) -> None:
        for name in node.names:
            if name.asname:
                bound, path = name.asname, name.name
            else:
                bound = path = name.name.partition(".")[0]
            self.env[bound] = reference(path)
            self._imported(Import(node, name.name, name, bound, self.function is not None, self.typing, self.guarded))
        self._check(node)

    def _import_from(self, node: ast.ImportFrom) -> None:
        base = self.resolve(node)
        for name in node.names:
            if name.name == "*":
                continue
            path = f"{base}.{name.name}" if base else name.name
            bound = name.asname or name.name
            self.env[bound] = reference(self._canonical(path))
            self._imported(Import(node, path, name, bound, self.function is not None, self.typing, self.guarded))
        self._check(node)

    def _imported(self, item: Import) -> None:
        self.imports.append(item)
        engine = kinds.engine_of(item.path)
        if engine:
            self.engines.add(engine)

    def uses(self, name: str) -> Iterator[int]:
        """The offsets at which a name stands, as a word and not as an attribute; in comments and strings too."""
        word = name.encode()
        if self._names is None or word not in self._names or self._places is None:
            yield from self.source.uses(name)
            return
        data, after = self.source.data, len(word)
        for place in self._places:
            end = place + after
            if data[place:end] == word and data[end : end + 1] not in LETTERS and data[place - 1 : place] != b".":
                yield place

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
        for alias in node.names:
            yield alias, f"{self.resolve(node)}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name

    def _canonical(self, path: str) -> str:
        """A full name in which the project's own namespace of operations is ember's."""
        namespace = self.config.namespace
        if namespace != "ember_ml.ops" and (path == namespace or path.startswith(namespace + ".")):
            return "ember_ml.ops" + path[len(namespace) :]
        return path

    def _define(self, node: Any) -> None:
        if self._places is None or self._touches(node, self._places) or node.decorator_list:
            self._head(node)
        value = Value(FUNCTION, node=node, path=node.name)
        value.items = None
        self.env[node.name] = value if not is_wrapped(node) else None
        self._warm.add(node.name.encode())
        self._later(node, (*self.outer, self.env), None)
        self._check(node)

    def _later(self, node: Any, outer: tuple[Env, ...], klass: Class | None) -> None:
        """Visit a function's body when the names around it are known, or when it is called."""
        self._waiting[node] = (node, outer, klass)
        self._pending.append((node, outer, klass))

    def _head(self, node: Any) -> None:
        """Visit what surrounds a function's body: decorators, defaults, annotations."""
        for decorator in node.decorator_list:
            self.evaluate(decorator)
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.evaluate(default)
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        for argument in every:
            if argument is not None and argument.annotation is not None:
                self._annotation(argument.annotation)
        if node.returns is not None:
            self._annotation(node.returns)

    def _class(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases):
            self.evaluate(part)
        for keyword in node.keywords:
            self.evaluate(keyword.value)
        klass = Class(node, [self.path(base) or dotted(base) for base in node.bases])
        self.classes[node] = klass
        self._check(node)
        enclosing, scopes, outer_class = self.env, (*self.outer, self.env), self.klass
        pending, self._pending = self._pending, []
        self.env, self.outer, self.klass = {}, scopes, klass
        for statement in node.body:
            self.execute(statement)
        members = self.env
        mine, self._pending = self._pending, pending
        self.env, self.outer, self.klass = enclosing, scopes[:-1], outer_class
        for name, value in members.items():
            if value is not None and value.kind == FUNCTION:
                klass.methods[name] = value
            else:
                klass.attributes[name] = value
        # What the constructor assigns is known before the other methods are read.
        mine.sort(key=lambda item: getattr(item[0], "name", "") not in ("__init__", "__post_init__", "setup", "build"))
        for inner, _, inner_class in mine:
            self._later(inner, scopes, inner_class or klass)
        enclosing[node.name] = Value(CLASS, node=node, path=node.name)
        self._warm.add(node.name.encode())

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            self._returns.append(NOTHING)
        else:
            self._returns.append(self.evaluate(node.value) if self._is_warm(node) else self._cold(node.value))
        self._check(node)
        self._ended = True

    def _end(self, node: Any) -> None:
        if self._is_warm(node):
            self._generic(node)
        self._check(node)
        self._ended = True

    def _assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value) if self._is_warm(node) else self._cold(node.value)
        for target in node.targets:
            self.assign(target, value)
        self._check(node)

    def _annotated_assign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        value = self.evaluate(node.value) if node.value is not None else None
        declared = self.annotated(node.annotation)
        if declared is not None and (value is None or value.kind not in ARRAYS):
            value = Value(
                declared.kind,
                declared.engine,
                node.target,
                SAYS,
                dtype=declared.dtype,
                element=declared.element,
                items=declared.items,
                nullable=declared.nullable,
            )
        self.assign(node.target, value)
        self._check(node)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        before: Value | None
        if isinstance(target, ast.Name):
            before = self.lookup(target.id)
            if before is not None:
                self.known[target] = before
        else:
            before = self.evaluate(target)
        value = self.evaluate(node.value)
        self._check(node)
        after = combined(node, before, value)
        if after is not None and before is not None and before.kind in ARRAYS:
            after.argument = before.argument
        if isinstance(target, ast.Name):
            self.assign(target, after)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.env.pop(target.id, None)
            else:
                self.evaluate(target)
        self._check(node)

    def assign(self, target: ast.AST, value: Value | None) -> None:
        """Bind a target to a value."""
        kind = type(target)
        if kind is ast.Name:
            self.env[target.id] = value  # type: ignore[attr-defined]
            if value is not None and (value.kind not in COLD or value.path):
                self._warm.add(target.id.encode())  # type: ignore[attr-defined]
        elif kind is ast.Tuple or kind is ast.List:
            self._unpack(target, value)
        elif kind is ast.Attribute:
            owner = self.evaluate(target.value)  # type: ignore[attr-defined]
            if owner is not None and owner.kind == INSTANCE and owner.node in self.classes:
                self._member(self.classes[owner.node], target.attr, target, value)  # type: ignore[attr-defined]
            self._check(target)
        elif kind is ast.Starred:
            self.assign(target.value, None)  # type: ignore[attr-defined]
        else:
            self.evaluate(target)

    def _member(self, klass: Class, name: str, target: ast.AST, value: Value | None) -> None:
        if name in klass.attributes:
            before = klass.attributes[name]
            value = value if before is not None and before.kind == NONE else merged(before, value)
        klass.attributes[name] = value
        if value is not None and value.kind not in COLD:
            self._warm.add(name.encode())
        if value is not None and (value.kind in ARRAYS or value.kind in (INSTANCE, SEQUENCE)):
            self._dynamic.add(name)

    def _unpack(self, target: Any, value: Value | None) -> None:
        elements = target.elts
        parts: list[Value | None] = [None] * len(elements)
        if value is not None:
            if value.kind in ARRAYS:
                self.known[target] = value
                for check in self.on.get(Iteration, ()):
                    check(target, self)
            starred = any(type(element) is ast.Starred for element in elements)
            if value.items is not None and len(value.items) == len(elements) and not starred:
                parts = list(value.items)
            elif not starred:
                parts = [self.element(value, target)] * len(elements)
        for element, part in zip(elements, parts, strict=True):
            self.assign(element, part)

    def _forget(self, target: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = None
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._forget(element)

    def _expression(self, node: ast.Expr) -> None:
        if type(node.value) is not ast.Constant and self._is_warm(node):
            self.evaluate(node.value)
        self._check(node)

    def _is_warm(self, node: Any) -> bool:
        """Whether the lines of a node mention anything that a rule could fire on: what is cold need not be visited."""
        if self.thorough:
            return True
        starts = self.source.starts
        start, end = starts[node.lineno - 1], starts[node.end_lineno]
        places = self._places
        if places is not None:
            i = bisect_left(places, start)
            if i < len(places) and places[i] < end:
                return True
        return not self._warm.isdisjoint(self.source.spaced[start:end].split()) or (
            self._walruses and b":=" in self.source.data[start:end]
        )

    def _cold(self, node: ast.expr) -> Value | None:
        """The value of an expression in which nothing is of interest: at most a number, a string or a tuple of them."""
        if type(node) is ast.Call:
            name = node.func.id if type(node.func) is ast.Name else getattr(node.func, "attr", "")
            if name not in BUILTIN_ANSWERS and name not in kinds.TYPE_NAMES:
                return None
        return self.evaluate(node)

    def _if(self, node: ast.If) -> None:
        if self._is_warm(node.test):
            self.truth(node.test)
        self._check(node)
        yes, no = self._narrowed(node.test)
        before, typing = self.env, self.typing
        if dotted(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            self.typing = True
        self.env = {**before, **yes}
        self.block(node.body)
        self.typing = typing
        first, first_ended = self.env, self._ended
        self.env, self._ended = {**before, **no}, False
        self.block(node.orelse)
        self._join(first, first_ended)

    def _join(self, other: Env, other_ended: bool) -> None:
        """Meet of the environment here and that of another branch; a branch that ended does not count."""
        if other_ended:
            return
        if self._ended:
            self.env, self._ended = other, False
            return
        here = self.env
        if here is other:
            return
        both = {}
        for name, value in here.items():
            if name in other:
                there = other[name]
                both[name] = value if value is there else merged(value, there)
            else:
                both[name] = None
        for name in other:
            if name not in here:
                both[name] = None
        self.env = both

    def _while(self, node: ast.While) -> None:
        self._loop(node, None)

    def _for(self, node: Any) -> None:
        over = self.iterated(node.iter)
        self._loop(node, self.element(over, node.iter) if over is not None else None, over)

    def _loop(self, node: Any, element: Value | None, over: Value | None = None) -> None:
        before = self.env
        self.env = env = before.copy()
        for name in stored(node.body):
            value = env.get(name)
            if value is not None and value.kind in (SCALAR, SEQUENCE, SHAPE):
                env[name] = None
        self.loops += 1
        if isinstance(node, ast.While):
            self.truth(node.test)
        else:
            self.assign(node.target, element)
        self._check(node)
        ended = self._ended
        self.block(node.body)
        self.loops -= 1
        self._ended = ended
        self._join(before, False)
        self.block(node.orelse)

    def _with(self, node: Any) -> None:
        for item in node.items:
            value = self.evaluate(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value if value is not None and value.kind in ARRAYS else None)
        self._check(node)
        self.block(node.body)

    def _try(self, node: Any) -> None:
        self._check(node)
        before, ended, guarded = self.env.copy(), self._ended, self.guarded
        self.guarded = bool(node.handlers)
        self.block(node.body)
        self.block(node.orelse)
        self.guarded = guarded
        after, after_ended = self.env, self._ended
        halfway = before
        if after is not before:
            self.env, self._ended = after.copy(), False
            self._join(before, False)
            halfway = self.env
        self.env, self._ended = after, after_ended
        for handler in node.handlers:
            one, one_ended = self.env, self._ended
            self.env, self._ended = halfway.copy(), ended
            if handler.type is not None:
                self.evaluate(handler.type)
            if handler.name:
                self.env[handler.name] = None
            self._check(handler)
            self.block(handler.body)
            self._join(one, one_ended)
        self.block(node.finalbody)

    def _match(self, node: ast.Match) -> None:
        self.evaluate(node.subject)
        self._check(node)
        before = self.env
        result: tuple[Env, bool] = (before.copy(), False)
        for case in node.cases:
            self.env, self._ended = before.copy(), False
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.env[name] = None
            if case.guard is not None:
                self.truth(case.guard)
            self.block(case.body)
            self._join(*result)
            result = (self.env, self._ended)
        self.env, self._ended = result

    def _assert(self, node: ast.Assert) -> None:
        if self._is_warm(node):
            self.truth(node.test)
            if node.msg is not None:
                self.evaluate(node.msg)
        self._check(node)
        self.env.update(self._narrowed(node.test)[0])

    def _global(self, node: Any) -> None:
        for name in node.names:
            self.env[name] = None
        self._check(node)

    def _narrowed(self, test: Any) -> tuple[Env, Env]:
        """What a condition tells of names where it holds, and where it does not."""
        kind = type(test)
        if kind is ast.UnaryOp and type(test.op) is ast.Not:
            yes, no = self._narrowed(test.operand)
            return no, yes
        if kind is ast.BoolOp:
            both: Env = {}
            for part in test.values:
                yes, no = self._narrowed(part)
                both.update(yes if type(test.op) is ast.And else no)
            return (both, {}) if type(test.op) is ast.And else ({}, both)
        if kind is ast.Call and test.args and type(test.args[0]) is ast.Name:
            name = test.args[0].id
            self._warm.add(name.encode())
            if len(test.args) == 2 and type(test.func) is ast.Name and test.func.id == "isinstance":
                value = self._instance(test.args[1], test)
                return ({name: value} if value is not None else {}), {}
            if self.path(test.func).endswith((".is_tensor", ".is_array")):
                engine = kinds.engine_of(self.path(test.func))
                return {name: Value(TENSOR, engine, test, CHECKED)}, {}
        if kind is ast.Compare and len(test.ops) == 1 and type(test.left) is ast.Name:
            right = test.comparators[0]
            if type(right) is ast.Constant and right.value is None:
                if type(test.ops[0]) is ast.Is:
                    return {test.left.id: NOTHING}, {}
                if type(test.ops[0]) is ast.IsNot:
                    return {}, {test.left.id: NOTHING}
        return {}, {}

    def _instance(self, types: Any, test: ast.AST) -> Value | None:
        if type(types) is ast.Tuple:
            found: Value | None = self._instance(types.elts[0], test) if types.elts else None
            for element in types.elts[1:]:
                found = merged(found, self._instance(element, test))
            return found
        if type(types) is ast.BinOp and type(types.op) is ast.BitOr:
            return merged(self._instance(types.left, test), self._instance(types.right, test))
        if type(types) is ast.Name and types.id in ("int", "float", "bool", "complex") and not self._bound(types.id):
            return NUMBER
        path = self.path(types)
        known = kinds.array_type(path) if path else None
        return Value(*known, test, CHECKED) if known is not None else None

    # Annotations.

    def _annotation(self, node: ast.expr) -> None:
        """Visit an annotation: rules see it, names in it resolve."""
        if type(node) is ast.Constant or (type(node) is ast.Name and node.id in BUILTIN_TYPES):
            if type(node) is ast.Constant and isinstance(node.value, str):
                for check in self.on.get(Annotation, ()):
                    check(node, self)
            return
        self.evaluate(node)
        for check in self.on.get(Annotation, ()):
            check(node, self)

    def annotated(self, node: Any) -> Value | None:
        """The value that an annotation promises."""
        kind = type(node)
        if kind is ast.Name:
            found = BUILTIN_TYPES.get(node.id)
            if found is not None and not self._bound(node.id):
                return found
            return self._typed(self.lookup(node.id), node)
        if kind is ast.Attribute:
            return self._typed(self.value(node) or self.evaluate(node), node)
        if kind is ast.Constant:
            if node.value is None:
                return NOTHING
            if isinstance(node.value, str) and len(node.value) < 200:
                return self._quoted(node)
            return None
        if kind is ast.BinOp and type(node.op) is ast.BitOr:
            return merged(self.annotated(node.left), self.annotated(node.right))
        if kind is ast.Subscript:
            return self._generic_type(node)
        return None

    def _quoted(self, node: ast.Constant) -> Value | None:
        try:
            inner = ast.parse(str(node.value), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        checks, self.on = self.on, {}
        try:
            return self.annotated(inner)
        finally:
            self.on = checks

    def _typed(self, value: Value | None, node: ast.AST) -> Value | None:
        if value is None:
            return None
        if value.kind == CLASS:
            return Value(INSTANCE, node=value.node, path=value.path)
        if value.kind != REFERENCE:
            return None
        known = kinds.array_type(value.path)
        if known is not None:
            return Value(*known, node, SAYS)
        if value.path == "torch.Size":
            return DIMENSIONS
        if value.path.startswith(("torch.nn.", "mlx.nn.")):
            return Value(INSTANCE, kinds.engine_of(value.path), node, SAYS, path=value.path)
        return None

    def _generic_type(self, node: ast.Subscript) -> Value | None:
        head = node.value
        name = self.path(head).rpartition(".")[2] or dotted(head).rpartition(".")[2]
        inner = node.slice
        parts = inner.elts if type(inner) is ast.Tuple else [inner]
        if name in ("Optional", "Union"):
            found = self.annotated(parts[0])
            for part in parts[1:]:
                found = merged(found, self.annotated(part))
            return merged(found, NOTHING) if name == "Optional" else found
        if name in ("Annotated", "Final", "ClassVar", "Required", "NotRequired"):
            return self.annotated(parts[0])
        if name in ("tuple", "Tuple"):
            if len(parts) == 2 and type(parts[1]) is ast.Constant and parts[1].value is Ellipsis:
                return several(self.annotated(parts[0]))
            items = tuple(self.annotated(part) for part in parts)
            if items and all(item is INT for item in items):
                return DIMENSIONS
            return Value(SEQUENCE, reason=SAYS, items=items)
        if name in ("list", "List", "Sequence", "Iterable", "Iterator", "Collection", "Set", "set", "frozenset"):
            return several(self.annotated(parts[0]))
        if self.path(head).startswith("jaxtyping."):
            return self.annotated(parts[0])
        return self.annotated(head) if name in ("NDArray", "ndarray", "Tensor", "Array") else None

    # Expressions.

    def evaluate(self, node: Any) -> Value | None:
        """The value of an expression; its parts are visited first, then the rules see it.

        Rules see only nodes that something is known of (``GATES``): most of a file is of no interest to any of them.
        """
        kind = type(node)
        if kind is ast.Constant:
            return CONSTANTS.get(type(node.value))
        if kind is ast.Name:
            name = node.id
            env = self.env
            value = env[name] if name in env else self._outside(name)
            if value is None:
                return None
            if value.kind != REFERENCE or "." not in value.path:
                self.known[node] = value
                if self.thorough:
                    self.values.append((node, value))
                return value
        else:
            handler = _EVALUATE.get(kind)
            if handler is not None:
                value = handler(self, node)
            else:
                self._generic(node)
                value = None
        if value is not None:
            self.known[node] = value
            if self.thorough:
                self.values.append((node, value))
        elif kind in _KNOWN:
            return None
        checks = self.on.get(kind)
        if checks is not None:
            gate = GATES.get(kind)
            if gate is None or gate(node, value, self.known):
                for check in checks:
                    check(node, self)
        return value

    def evaluate_quietly(self, node: Any) -> Value | None:
        """The value of an expression, without showing it to the rules."""
        checks, self.on = self.on, {}
        try:
            return self.evaluate(node)
        finally:
            self.on = checks

    def truth(self, node: Any) -> Value | None:
        """The value of an expression whose truth is asked for."""
        value = self.evaluate(node)
        if value is not None and value.kind in ARRAYS:
            for check in self.on.get(Truth, ()):
                check(node, self)
        return value

    def iterated(self, node: Any) -> Value | None:
        """The value of an expression that is iterated over."""
        value = self.evaluate(node)
        if value is not None and value.kind in ARRAYS:
            for check in self.on.get(Iteration, ()):
                check(node, self)
        return value

    def element(self, value: Value, node: ast.AST) -> Value | None:
        """What iterating over a value gives."""
        if value.kind in ARRAYS:
            return Value(value.kind, value.engine, node, ELEMENT, value, dtype=value.dtype)
        if value.kind == SHAPE:
            return INT
        if value.kind == SEQUENCE:
            if value.items is not None:
                found: Value | None = value.items[0] if value.items else None
                for item in value.items[1:]:
                    found = merged(found, item)
                return found
            return value.element
        return TEXT if value.kind == STRING else None

    def _outside(self, name: str) -> Value | None:
        """What a name stands for in the scopes around this one."""
        for scope in reversed(self.outer):
            if name in scope:
                return scope[name]
        return None

    def _attribute(self, node: ast.Attribute) -> Value | None:
        owner = self.evaluate(node.value)
        if owner is None:
            return None
        kind = owner.kind
        if kind == REFERENCE:
            return reference(self._canonical(f"{owner.path}.{node.attr}"))
        if kind in ARRAYS:
            word = kinds.ATTRIBUTES.get(node.attr)
            if word is None:
                return Value(STRING, node=node, path="get_backend") if node.attr == "backend" else None
            if word == "same":
                return Value(kind, owner.engine, node, kinds.ATTRIBUTE, owner, dtype=owner.dtype)
            if word == SHAPE:
                return Value(SHAPE, node=node, reason=kinds.ATTRIBUTE, source=owner, dtype="int", element=INT)
            if node.attr == "size" and owner.engine == "torch":
                return None
            return worded(word, "", node)
        if kind == INSTANCE:
            klass = self.classes.get(owner.node)
            if klass is not None:
                if node.attr in klass.attributes:
                    return klass.attributes[node.attr]
                return klass.methods.get(node.attr)
            if owner.engine and node.attr in ("weight", "bias"):
                return Value(TENSOR, owner.engine, node, kinds.ATTRIBUTE)
        return None

    def _call(self, node: ast.Call) -> Value | None:
        function = node.func
        self._called.add(function)
        arguments = []
        for argument in node.args:
            arguments.append(
                CONSTANTS.get(type(argument.value)) if type(argument) is ast.Constant else self.evaluate(argument)
            )
        for keyword in node.keywords:
            if keyword.arg == "dtype":
                self._given[keyword.value] = node, keyword.arg
            self.evaluate(keyword.value)
        target = self.evaluate(function)
        if target is None:
            if type(function) is ast.Name:
                return self._builtin(function.id, node, arguments) if not self._bound(function.id) else None
            if type(function) is ast.Attribute:
                owner = self.value(function.value)
                return self._method(owner, function.attr, node, arguments) if owner is not None else None
            return None
        kind = target.kind
        if kind == REFERENCE:
            return self._engine(target.path, node, arguments)
        if kind == FUNCTION:
            return self._own(target, node)
        if kind == CLASS:
            return Value(INSTANCE, node=target.node, path=target.path)
        if kind == INSTANCE:
            return self._instance_call(target, node)
        # A method whose name is an attribute too, such as torch's ``x.size()``.
        if kind in (TENSOR, HOST, SCALAR, SHAPE) and type(function) is ast.Attribute:
            owner = self.value(function.value)
            return self._method(owner, function.attr, node, arguments) if owner is not None else None
        return None

    def _own(self, target: Value, node: ast.AST) -> Value | None:
        definition: Any = target.node
        if definition in self._answers:
            value = self._answers[definition]
        elif definition in self._open:
            value = None
        else:
            value = self._declared(definition)
            if value is None:
                waiting = self._waiting.get(definition)
                if waiting is None:
                    return None
                if isinstance(node, ast.Call) and inference.is_helper(definition.name, self):
                    self._passed[definition] = inference.passed(definition, node, self)
                if (
                    not self._passed.get(definition)
                    and self._places is not None
                    and not self._touches(definition, self._places)
                ):
                    return None
                value = self._enter(*waiting)
        if value is None or value.kind not in ARRAYS:
            return value
        return Value(value.kind, value.engine, node, kinds.CALL, value, dtype=value.dtype)

    def _instance_call(self, target: Value, node: ast.AST) -> Value | None:
        klass = self.classes.get(target.node)
        if klass is not None:
            method = klass.methods.get("__call__") or klass.methods.get("forward")
            return self._own(method, node) if method is not None else None
        if target.engine:
            return Value(TENSOR, target.engine, node, kinds.CALL, target)
        return None

    def _engine(self, path: str, node: ast.Call, arguments: list[Value | None]) -> Value | None:
        found = kinds.answer(path)
        if found is None:
            return self._special(path, node, arguments)
        word, engine = found
        name = path.rpartition(".")[2]
        if word in ARRAYS:
            if engine in ("numpy", "jax") and name in HOST_MATHS and arguments and all_host(arguments):
                return Value(SCALAR, node=node, reason=kinds.CALL, dtype=result_dtype(name, node, arguments))
            pair = engine == "torch" and name in kinds.PAIRS and _is_along(node, arguments[1:])
            if pair or (name == "where" and len(node.args) == 1):
                word = SEQUENCE
        if word == SEQUENCE:
            one = Value(HOST if engine == "numpy" else TENSOR, engine, node, kinds.CALL)
            return Value(SEQUENCE, node=node, reason=kinds.CALL, element=one)
        if word in ARRAYS:
            return Value(
                word, engine, node, kinds.CALL, first_array(arguments), dtype=result_dtype(name, node, arguments)
            )
        return worded(word, engine, node)

    def _special(self, path: str, node: ast.Call, arguments: list[Value | None]) -> Value | None:
        known = kinds.array_type(path)
        if known is not None:
            return Value(*known, node, kinds.CALL)
        root, _, rest = path.partition(".")
        if rest.endswith(("get_backend", "backend.backend")) and not arguments:
            return Value(STRING, node=node, reason=kinds.CALL, path="get_backend")
        if root == "numpy":
            if rest in ("unique", "linalg.svd", "average"):
                several = any(k.arg and (k.arg.startswith("return") or k.arg == "compute_uv") for k in node.keywords)
                one = Value(HOST, "numpy", node, kinds.CALL)
                if several == (rest == "linalg.svd"):
                    return one
                return Value(SEQUENCE, node=node, reason=kinds.CALL, element=one)
            if rest == "random.default_rng":
                return Value(INSTANCE, "numpy", node, kinds.CALL, path="numpy.random.Generator")
            if rest == "dtype":
                return SOME_DTYPE
            if is_number_type(rest):
                return Value(HOST, "numpy", node, kinds.CALL, dtype=dtype_word(rest))
        elif root in ("torch", "mlx"):
            if rest.startswith("nn.") and rest.rpartition(".")[2][:1].isupper():
                return Value(INSTANCE, root, node, kinds.CALL, path=path)
        elif root == "copy" and rest in ("copy", "deepcopy") and arguments:
            return arguments[0]
        return None

    def _method(self, owner: Value, name: str, node: ast.Call, arguments: list[Value | None]) -> Value | None:
        kind = owner.kind
        if kind == STRING:
            return TEXT if name in ("join", "format", "lower", "upper", "strip", "replace") else None
        if kind == INSTANCE and owner.path == "numpy.random.Generator":
            return Value(HOST, "numpy", node, METHOD) if name not in ("shuffle", "bytes") else None
        if kind not in ARRAYS:
            return None
        word = kinds.METHODS.get(name)
        if word is None:
            return None
        engine = owner.engine
        if word == "same":
            if engine == "torch" and name in kinds.PAIRS and _is_along(node, arguments):
                one = Value(TENSOR, engine, node, METHOD, owner)
                return Value(SEQUENCE, node=node, reason=METHOD, element=one)
            if name == "sort" and kind == HOST:
                return NOTHING
            return Value(kind, engine, node, METHOD, owner, dtype=method_dtype(name, node, owner))
        if word == "number":
            return Value(SCALAR, node=node, reason=METHOD, source=owner, dtype=owner.dtype)
        if word == "size":
            return INT if arguments else Value(SHAPE, node=node, reason=METHOD, source=owner, dtype="int", element=INT)
        if word == SEQUENCE or (word == "nonzero" and kind == HOST):
            return Value(SEQUENCE, node=node, reason=METHOD, element=Value(kind, engine, node, METHOD, owner))
        if word == "nonzero":
            return Value(kind, engine, node, METHOD, owner, dtype="int")
        if word == HOST:
            return Value(HOST, "numpy", node, METHOD, owner, dtype=owner.dtype)
        return worded(word, engine, node)

    def _builtin(self, name: str, node: ast.Call, arguments: list[Value | None]) -> Value | None:
        simple = BUILTIN_ANSWERS.get(name)
        if simple is not None:
            return simple
        first = arguments[0] if arguments else None
        if name in ("abs", "round"):
            return first if first is not None and first.kind in (SCALAR, *ARRAYS) else None
        if name in ("sum", "max", "min"):
            if first is None:
                return None
            if first.kind == SHAPE:
                return INT
            if first.kind in ARRAYS:
                return Value(first.kind, first.engine, node, kinds.CALL, first, dtype=first.dtype)
            if all(argument is not None and argument.kind == SCALAR for argument in arguments):
                return NUMBER if first.dtype is None else SCALARS.get(first.dtype, NUMBER)
            element = self.element(first, node)
            return element if len(arguments) == 1 else None
        if name == "range":
            return Value(SEQUENCE, element=INT)
        if name == "map" and len(arguments) > 1 and first is not None and first.kind == REFERENCE:
            found = kinds.answer(first.path)
            if found is not None and found[0] in ARRAYS:
                return Value(SEQUENCE, element=Value(found[0], found[1], node, kinds.CALL))
        if name == "enumerate" and first is not None:
            return Value(SEQUENCE, element=Value(SEQUENCE, items=(INT, self.element(first, node))))
        if name == "zip":
            items = tuple(self.element(value, node) if value is not None else None for value in arguments)
            return Value(SEQUENCE, element=Value(SEQUENCE, items=items))
        if name in ("list", "tuple", "sorted", "reversed") and first is not None:
            if first.kind == SHAPE:
                return DIMENSIONS
            if first.kind == SEQUENCE:
                return first if name != "sorted" else Value(SEQUENCE, element=self.element(first, node))
            element = self.element(first, node)
            return Value(SEQUENCE, element=element) if element is not None else None
        return None

    def _binary(self, node: ast.BinOp) -> Value | None:
        left = self.evaluate(node.left)
        right = self.evaluate(node.right)
        return combined(node, left, right)

    def _unary(self, node: ast.UnaryOp) -> Value | None:
        if type(node.op) is ast.Not:
            self.truth(node.operand)
            return BOOL
        value = self.evaluate(node.operand)
        if value is None or value.kind == SCALAR:
            return value
        return (
            Value(value.kind, value.engine, node, OPERATOR, value, dtype=value.dtype) if value.kind in ARRAYS else None
        )

    def _compare(self, node: ast.Compare) -> Value | None:
        parts = (node.left, *node.comparators)
        for part in parts:
            if type(part) is ast.Attribute or type(part) is ast.Name:
                self._compared[part] = node.ops
        values = [self.evaluate(part) for part in parts]
        if type(node.ops[0]) in (ast.Is, ast.IsNot, ast.In, ast.NotIn):
            return BOOL
        array = first_array(values)
        if array is not None:
            return Value(stronger(values), array.engine, node, OPERATOR, array, dtype="bool")
        return BOOL if all(value is not None and value.kind in PLAIN for value in values) else None

    def _boolean(self, node: ast.BoolOp) -> Value | None:
        last = len(node.values) - 1
        value: Value | None = None
        env = self.env
        for i, part in enumerate(node.values):
            one = self.truth(part) if i < last else self.evaluate(part)
            value = one if i == 0 else merged(value, one)
            if i < last:
                yes, no = self._narrowed(part)
                self.env = {**self.env, **(yes if type(node.op) is ast.And else no)}
        self.env = env
        return value

    def _conditional(self, node: ast.IfExp) -> Value | None:
        self.truth(node.test)
        yes, no = self._narrowed(node.test)
        env = self.env
        self.env = {**env, **yes} if yes else env
        first = self.evaluate(node.body)
        self.env = {**env, **no} if no else env
        second = self.evaluate(node.orelse)
        self.env = env
        return merged(first, second)

    def _subscript(self, node: ast.Subscript) -> Value | None:
        owner = self.evaluate(node.value)
        index = self.evaluate(node.slice)
        if owner is None:
            return None
        kind = owner.kind
        if kind in ARRAYS:
            return Value(kind, owner.engine, node, ELEMENT, owner, dtype=owner.dtype)
        if kind == REFERENCE and owner.path in ("numpy.r_", "numpy.c_", "numpy.mgrid"):
            return Value(HOST, "numpy", node, kinds.CALL)
        if kind == SHAPE:
            return DIMENSIONS if type(node.slice) is ast.Slice else INT
        if kind == SEQUENCE:
            if type(node.slice) is ast.Slice:
                return Value(SEQUENCE, element=self.element(owner, node))
            if owner.items is not None and type(node.slice) is ast.Constant and isinstance(node.slice.value, int):
                place = node.slice.value
                return owner.items[place] if -len(owner.items) <= place < len(owner.items) else None
            return self.element(owner, node) if index is not None and index.kind == SCALAR else None
        return TEXT if kind == STRING else None

    def _display(self, node: Any) -> Value | None:
        items = []
        starred = False
        for element in node.elts:
            if type(element) is ast.Constant:
                items.append(CONSTANTS.get(type(element.value)))
                continue
            items.append(self.evaluate(element))
            if type(element) is ast.Starred:
                starred = True
        if starred or type(node.ctx) is not ast.Load:
            return None
        return Value(SEQUENCE, node=node, reason=kinds.LITERAL, items=tuple(items))

    def _comprehension(self, node: Any) -> Value | None:
        env = self.env
        self.env = env.copy()
        self.loops += 1
        for generator in node.generators:
            over = self.iterated(generator.iter)
            self.assign(generator.target, self.element(over, generator.iter) if over is not None else None)
            for condition in generator.ifs:
                self.truth(condition)
        if type(node) is ast.DictComp:
            self.evaluate(node.key)
            self.evaluate(node.value)
            value = None
        else:
            value = self.evaluate(node.elt)
        self.loops -= 1
        self.env = env
        return Value(SEQUENCE, node=node, reason=kinds.LITERAL, element=value) if value is not None else None

    def _lambda(self, node: ast.Lambda) -> Value | None:
        env, loops = self.env, self.loops
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.evaluate(default)
        names = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        self.env = {**env, **{argument.arg: None for argument in names if argument is not None}}
        self.loops = 0
        self.evaluate(node.body)
        self.env, self.loops = env, loops
        return None

    def _walrus(self, node: ast.NamedExpr) -> Value | None:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def _string(self, node: Any) -> Value | None:
        for part in node.values:
            if type(part) is ast.FormattedValue:
                self.evaluate(part)
        return TEXT

    def _yield(self, node: Any) -> Value | None:
        if self.function is not None:
            self._generators.add(self.function)
        if node.value is not None:
            self.evaluate(node.value)
        return None

    def _starred(self, node: ast.Starred) -> Value | None:
        self.iterated(node.value)
        return None


def _is_along(node: ast.Call, rest: list[Value | None]) -> bool:
    """Whether a reduction of torch's is given a dimension, so that it answers values and indices."""
    if not rest:
        return has_keyword(node, "dim")
    return rest[0] is None or rest[0].kind not in ARRAYS


_EXECUTE: dict[type, Callable[[File, Any], None]] = {
    ast.Import: File._import,
    ast.ImportFrom: File._import_from,
    ast.FunctionDef: File._define,
    ast.AsyncFunctionDef: File._define,
    ast.ClassDef: File._class,
    ast.Return: File._return,
    ast.Raise: File._end,
    ast.Continue: File._end,
    ast.Break: File._end,
    ast.Assign: File._assign,
    ast.AnnAssign: File._annotated_assign,
    ast.AugAssign: File._augmented,
    ast.Delete: File._delete,
    ast.Expr: File._expression,
    ast.If: File._if,
    ast.While: File._while,
    ast.For: File._for,
    ast.AsyncFor: File._for,
    ast.With: File._with,
    ast.AsyncWith: File._with,
    ast.Try: File._try,
    ast.TryStar: File._try,
    ast.Match: File._match,
    ast.Assert: File._assert,
    ast.Global: File._global,
    ast.Nonlocal: File._global,
}
# The classes whose gate is shut where nothing is known of the value.
_KNOWN = frozenset({ast.BinOp, ast.UnaryOp, ast.Subscript})
_EVALUATE: dict[type, Callable[[File, Any], Value | None]] = {
    ast.Attribute: File._attribute,
    ast.Call: File._call,
    ast.BinOp: File._binary,
    ast.UnaryOp: File._unary,
    ast.Compare: File._compare,
    ast.BoolOp: File._boolean,
    ast.IfExp: File._conditional,
    ast.Subscript: File._subscript,
    ast.Tuple: File._display,
    ast.List: File._display,
    ast.ListComp: File._comprehension,
    ast.SetComp: File._comprehension,
    ast.GeneratorExp: File._comprehension,
    ast.DictComp: File._comprehension,
    ast.Lambda: File._lambda,
    ast.NamedExpr: File._walrus,
    ast.JoinedStr: File._string,
    ast.Starred: File._starred,
    ast.Yield: File._yield,
    ast.YieldFrom: File._yield,
}
