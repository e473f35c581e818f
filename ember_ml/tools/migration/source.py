"""Python source as statements and edits: the names that a module binds and uses, and replacement of spans."""

from __future__ import annotations

import ast
import codecs
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ember_ml.tools import UsageError


@dataclass(frozen=True)
class Edit:
    """Replacement of the bytes from ``start`` to ``end`` of a source by a text."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Piece:
    """Statement of a module with the comments above it: its lines, and the names that it binds and uses."""

    node: ast.stmt
    first: int
    last: int
    binds: frozenset[str]
    uses: frozenset[str]

    @property
    def is_import(self) -> bool:
        """Whether the statement only imports."""
        return _only_imports(self.node)

    @property
    def is_all(self) -> bool:
        """Whether the statement assigns ``__all__``."""
        return self.binds == {"__all__"}


@dataclass
class Module:
    """Module of a package: its file, dotted name and source."""

    path: Path
    name: str
    source: bytes
    is_package: bool
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        try:
            self.tree = ast.parse(self.source, str(self.path))
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"{self.path} must be valid Python, got {error}") from None

    @cached_property
    def lines(self) -> list[str]:
        """Lines of the source, as counted by Python."""
        return rows(self.source.decode("utf-8"))

    @cached_property
    def starts(self) -> list[int]:
        """Offset of each line in bytes."""
        found = [0]
        for line in self.source.splitlines(keepends=True):
            found.append(found[-1] + len(line))
        return found

    @cached_property
    def pieces(self) -> list[Piece]:
        """Statements of the module, in order. Comments belong to the statement below them."""
        found = []
        last = 0
        for node in self.tree.body:
            end = node.end_lineno or node.lineno
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            if first <= last:
                raise UsageError(f"{self.path}:{first}: a line must hold one statement, got two")
            found.append(Piece(node, last + 1, end, frozenset(bound(node)), frozenset(used(node))))
            last = end
        return found

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the module."""
        return list(ast.walk(self.tree))

    @cached_property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        """All imports, including those inside functions."""
        return [node for node in self.nodes if isinstance(node, (ast.Import, ast.ImportFrom))]

    @cached_property
    def strings(self) -> list[ast.Constant]:
        """All strings that may be the dotted name of a module."""
        found = [node for node in self.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        return [node for node in found if "." in str(node.value) and str(node.value).replace(".", "_").isidentifier()]

    @cached_property
    def imports_by_name(self) -> list[ast.Call]:
        """All calls that import a module by its name, such as ``importlib.import_module(name)``."""
        return [node for node in self.nodes if isinstance(node, ast.Call) and imports_by_name(node)]

    @property
    def only_imports(self) -> bool:
        """Whether the module only imports, but for its docstring and ``__all__``."""
        return all(piece.is_import or piece.is_all or piece.node is self.docstring for piece in self.pieces)

    @cached_property
    def docstring(self) -> ast.stmt | None:
        """Statement of the module docstring."""
        first = self.tree.body[0] if self.tree.body else None
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return first if documented and ast.get_docstring(self.tree) is not None else None

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Start and end of a node in bytes."""
        start = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return start, end

    def edited(self, edits: Iterable[Edit]) -> str:
        """Source with all edits applied; an edit inside another is dropped."""
        text = self.source
        inner = self.source
        limit = len(inner)
        for edit in sorted(_outermost(edits), key=lambda edit: edit.start, reverse=True):
            assert edit.end <= limit
            text = text[: edit.start] + edit.text.encode() + text[edit.end :]
            limit = edit.start
        return text.decode("utf-8")

    def resolve(self, node: ast.ImportFrom) -> str:
        """Dotted name of the module that a ``from`` import imports from."""
        if not node.level:
            return node.module or ""
        base = self.name.split(".")
        base = base[: len(base) - node.level + (1 if self.is_package else 0)]
        return ".".join([*base, *([node.module] if node.module else [])])

    def indent(self, node: ast.stmt) -> str:
        """Indentation of a statement."""
        line = self.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]


def rows(text: str) -> list[str]:
    """Lines of a source with their line ends, as counted by Python; ``str.splitlines`` also splits at form feeds."""
    return [line.decode("utf-8") for line in text.encode("utf-8").splitlines(keepends=True)]


def _outermost(edits: Iterable[Edit]) -> list[Edit]:
    found: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if not found or edit.start >= found[-1].end:
            found.append(edit)
    return found


def bound(node: ast.stmt) -> Iterator[str]:
    """Names that a statement of a module binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.With)):
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
    elif isinstance(node, (ast.If, ast.Try)):
        for block in ("body", "handlers", "orelse", "finalbody"):
            for child in getattr(node, block, ()):
                children = child.body if isinstance(child, ast.ExceptHandler) else [child]
                for statement in children:
                    yield from bound(statement)


def used(node: ast.AST) -> Iterator[str]:
    """Names that a statement reads, including those in annotations that are strings."""
    for child in ast.walk(node):
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.Constant) and isinstance(child.value, str) and len(child.value) < 200:
            try:
                inner = ast.parse(child.value, mode="eval")
            except (SyntaxError, ValueError):
                continue
            for name in ast.walk(inner):
                if isinstance(name, ast.Name):
                    yield name.id


def _only_imports(node: ast.stmt) -> bool:
    """Whether a statement is an import, or a conditional with only imports."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.If):
        return all(map(_only_imports, [*node.body, *node.orelse]))
    if isinstance(node, ast.Try):
        handled = [statement for handler in node.handlers for statement in handler.body]
        plain = (ast.Import, ast.ImportFrom, ast.Assign, ast.Pass, ast.Raise)
        return all(map(_only_imports, node.body)) and all(isinstance(s, plain) for s in [*handled, *node.orelse])
    return False


def dotted(node: ast.expr) -> str:
    """Dotted name ``a.b.c`` of a chain of attributes; empty for other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def imports_by_name(node: ast.Call) -> bool:
    """Whether a call imports a module by its name."""
    return dotted(node.func).rpartition(".")[2] in ("import_module", "__import__")


def alias_text(name: str, bound: str | None) -> str:
    """Text of a name in an import: ``name``, or ``name as bound``."""
    return name if bound in (None, name) else f"{name} as {bound}"


def modules(package: Path) -> dict[str, Module]:
    """Modules of a package by dotted name."""
    base = package.parent
    while (base / "__init__.py").exists():
        base = base.parent
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = list(path.relative_to(base).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(path, name, _read(path), is_package)
    return found


def _read(path: Path) -> bytes:
    """Bytes of a UTF-8 source without a byte order mark, which Python does not count in column offsets."""
    content = path.read_bytes()
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        content.decode("utf-8")
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} must be written in UTF-8, got {error}") from None
    if encoding not in ("utf-8", "utf-8-sig") and not content.isascii():
        raise UsageError(f"{path} must be written in UTF-8, got {encoding}")
    return content.removeprefix(codecs.BOM_UTF8)
