"""What a package holds: its modules, which of them are engine code in the frontend, and the operations in those."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from ember_ml import backend as backends
from ember_ml.tools import source
from ember_ml.tools.source import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef

BACKEND = "backend"

# The category of functions that are not in a file of their own below the engine's folder.
GENERAL = "general"


class Home(NamedTuple):
    """Where an engine module is: its engine, the frontend package above it, and its category."""

    engine: str
    frontend: str
    category: str


class Key(NamedTuple):
    """A name in a module."""

    module: str
    name: str


class Survey:
    """What a package holds: its modules, which of them are engine code, and the operations in those."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self.modules = source.modules(package)
        self.root = next(name for name, module in self.modules.items() if module.path == package / "__init__.py")
        self.engines = list(backends.homes())
        self.homes = {name: home for name in self.modules if (home := self._home(name)) is not None}
        self.functions: dict[Key, Function] = {}
        for name in self.homes:
            for piece in self.modules[name].pieces:
                if isinstance(piece.node, Function) and not piece.node.name.startswith("_"):
                    self.functions[Key(name, piece.node.name)] = piece.node
        self.operations = list(self.functions)
        self.frontends = {home.frontend for home in self.homes.values()}

    def _home(self, name: str) -> Home | None:
        """Where an engine module is; none for a module that is not engine code in the frontend."""
        parts = name.split(".")
        inner = parts[len(self.root.split(".")) :]
        if BACKEND in inner or self.is_test(self.modules[name]):
            return None
        for i, part in enumerate(inner):
            if part in self.engines:
                frontend = ".".join([self.root, *inner[:i]])
                return Home(part, frontend, "_".join(inner[i + 1 :]) or GENERAL)
        return None

    def is_test(self, module: Module) -> bool:
        """Whether a module tests: those reach for an engine's own functions."""
        inner = module.path.relative_to(self.package).parts
        return "tests" in inner or inner[-1].startswith("test_") or inner[-1] == "conftest.py"

    def backend_module(self, home: Home) -> str:
        """The dotted name that an engine module's functions move to."""
        return ".".join([self.root, BACKEND, home.engine, home.category])

    def frontend_module(self, home: Home) -> str:
        """The dotted name of the module of dispatching functions."""
        return f"{home.frontend}.{home.category}"

    def path(self, name: str) -> Path:
        """The file of a module, whether it exists or not."""
        if name in self.modules:
            return self.modules[name].path
        inner = name.split(".")[len(self.root.split(".")) :]
        return self.package.joinpath(*inner).with_suffix(".py")

    def engine_of(self, name: str) -> str:
        """The engine whose code a module is, in the frontend or in the backend; empty for other modules."""
        if name in self.homes:
            return self.homes[name].engine
        inner = name.split(".")[len(self.root.split(".")) :]
        return inner[1] if len(inner) > 1 and inner[0] == BACKEND and inner[1] in self.engines else ""

    def bound_in(self, name: str) -> frozenset[str]:
        """The names that a module binds by its own statements, imports left out."""
        found = [piece.binds for piece in self.modules[name].pieces if not piece.is_import]
        return frozenset().union(*found)

    def origin(self, module: str, name: str) -> Key | None:
        """The engine module that binds a name which is imported from ``module``, seen through re-exports."""
        seen = set()
        while module in self.homes and (module, name) not in seen:
            seen.add((module, name))
            if name in self.bound_in(module):
                return Key(module, name)
            step = self._re_export(self.modules[module], name)
            if step is None:
                return None
            module, name = step
        return None

    def _re_export(self, module: Module, name: str) -> Key | None:
        for piece in module.pieces:
            node = piece.node
            if not isinstance(node, ast.ImportFrom):
                continue
            origin = module.resolve(node)
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return Key(origin, alias.name)
                if alias.name == "*" and origin in self.homes and name in self.bound_in(origin):
                    return Key(origin, name)
        return None

    def own(self, engine: str, name: str) -> Key | None:
        """The only operation of that name that an engine has in the frontend."""
        found = [key for key in self.operations if key.name == name and self.homes[key.module].engine == engine]
        return found[0] if len(found) == 1 else None
