"""Imports of a file, and the full names of imported objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from emberlint.config import NAMESPACE
from emberlint.knowledge.engines import array_type


class Import(NamedTuple):
    """A name that an import binds, the full name of the object, and the context of the import."""

    node: ast.stmt
    path: str
    name: ast.alias
    alias: str
    lazy: bool
    typing: bool
    guarded: bool


class Imports:
    """The imports of a file.

    ``entries`` are the imports visited so far, ``engines`` the engines of the imported names, and ``tops`` the names of
    modules that are imported unconditionally at module level. ``package`` is the package that relative imports start
    from. ``renames`` says that the project's namespace of operations is not ember's.
    """

    __slots__ = ("_namespace", "_own", "engines", "entries", "package", "renames", "tops")

    def __init__(self, module: str, package: str, namespace: str) -> None:
        self.package = package
        self.renames = namespace != NAMESPACE
        self.entries: list[Import] = []
        self.engines: set[str] = set()
        self.tops: dict[str, str] = {}
        self._namespace = namespace
        self._own = frozenset({module.partition(".")[0], namespace.partition(".")[0]})

    def resolve(self, node: ast.ImportFrom) -> str:
        """Full name of the module of a ``from`` import, including relative ones."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".") if self.package else []
        if node.level > 1:
            parts = parts[: 1 - node.level] if node.level - 1 <= len(parts) else []
        return ".".join([*parts, *([node.module] if node.module else [])])

    def names(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[ast.alias, str]]:
        """Names of an import, each with its full name."""
        base = f"{self.resolve(node)}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            yield alias, base + alias.name

    def canonical(self, path: str) -> str:
        """Full name with the project's namespace of operations replaced by ember's."""
        namespace = self._namespace
        if self.renames and (path == namespace or path.startswith(namespace + ".")):
            return NAMESPACE + path[len(namespace) :]
        return path

    def array_type(self, path: str) -> tuple[str, str] | None:
        """Type and engine of the instances of a class, by its full name; ``None`` if they are not arrays."""
        return array_type(path, self._own)
