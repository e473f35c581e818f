"""Survey of a package: its modules, those that are engine code in the frontend, and their operations."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.tools.migration import source
from ember_ml.tools.migration.source import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef

BACKEND = "backend"

# Category of functions in the __init__.py of an engine folder, or in a module named after the engine.
GENERAL = "general"


class Home(NamedTuple):
    """Location of an engine module: its engine, the frontend package above it, and its category."""

    engine: str
    frontend: str
    category: str


class Key(NamedTuple):
    """A name in a module."""

    module: str
    name: str


class Survey:
    """Modules of a package, those that are engine code in the frontend, and their operations."""

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
        # Public functions that are not plain definitions at module level, with the reason why they cannot move.
        self.odd = {
            Key(name, bound): why for name in self.homes for bound, why in self._odd(self.modules[name]).items()
        }
        self.frontends = {home.frontend for home in self.homes.values()}
        # Modules with a function of that name that calls the one of the active engine, by frontend and name.
        self.dispatchers: dict[Key, list[str]] = {}
        for frontend in self.frontends:
            for name in self._frontend_modules(frontend):
                for piece in self.modules[name].pieces:
                    if isinstance(piece.node, Function) and is_dispatcher(piece.node):
                        self.dispatchers.setdefault(Key(frontend, piece.node.name), []).append(name)

    def _frontend_modules(self, frontend: str) -> list[str]:
        """Modules of a frontend that are no engine code, in the backend or in the frontend, and no tests."""
        found = [name for name in self.modules if name == frontend or name.startswith(f"{frontend}.")]
        backend = f"{self.root}.{BACKEND}"
        return [
            name
            for name in found
            if name not in self.homes
            and not f"{name}.".startswith(f"{backend}.")
            and not self.is_test(self.modules[name])
        ]

    def _home(self, name: str) -> Home | None:
        """Location of an engine module; ``None`` for a module that is not engine code in the frontend."""
        parts = name.split(".")
        inner = parts[len(self.root.split(".")) :]
        if BACKEND in inner or self.is_test(self.modules[name]):
            return None
        for i, part in enumerate(inner):
            if part in self.engines:
                frontend = ".".join([self.root, *inner[:i]])
                return Home(part, frontend, "_".join(inner[i + 1 :]) or GENERAL)
        return None

    def _odd(self, module: Module) -> dict[str, str]:
        """Public names of a module that are bound to functions other than by a plain definition, and how."""
        found: dict[str, str] = {}
        defined = {piece.node.name for piece in module.pieces if isinstance(piece.node, Function)}
        engines: set[str] = set()
        for piece in module.pieces:
            node = piece.node
            if isinstance(node, ast.Import):
                engines |= {a.asname or a.name.partition(".")[0] for a in node.names if self._is_engine(a.name)}
            elif isinstance(node, (ast.If, ast.Try)) and not piece.is_import:
                inner = {child.name for child in ast.walk(node) if isinstance(child, Function)}
                found |= dict.fromkeys(
                    inner & piece.binds, "it is defined in a branch, and may be another one elsewhere"
                )
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_function(node.value, defined, engines):
                found |= dict.fromkeys(piece.binds, "it is a name for another function, not a definition")
        return {name: why for name, why in found.items() if not name.startswith("_") and name not in defined}

    def _is_engine(self, module: str) -> bool:
        return module.partition(".")[0] in {home.engine for home in backends.homes().values()}

    def is_test(self, module: Module) -> bool:
        """Whether a module is a test module. Tests may import functions of an engine directly."""
        inner = module.path.relative_to(self.package).parts
        return "tests" in inner or inner[-1].startswith("test_") or inner[-1] == "conftest.py"

    def backend_module(self, home: Home) -> str:
        """Dotted name of the module that the functions of an engine module move to."""
        return ".".join([self.root, BACKEND, home.engine, home.category])

    def frontend_module(self, home: Home) -> str:
        """Dotted name of the module of dispatching functions."""
        return f"{home.frontend}.{home.category}"

    def frontend_of(self, key: Key) -> str:
        """Dotted name of the module of the dispatching function of an operation, whether it exists or not."""
        home = self.homes[key.module]
        usual, found = self.frontend_module(home), self.dispatchers.get(Key(home.frontend, key.name), [])
        return found[0] if found and usual not in found else usual

    def engine_package(self, name: str) -> str:
        """Dotted name of the folder of engine code that an engine module is in; its own name if it is a file."""
        home = self.homes[name]
        return f"{home.frontend}.{home.engine}"

    def defines_operations(self, name: str) -> bool:
        """Whether a module has functions to move."""
        return any(key.module == name for key in (*self.operations, *self.odd))

    def path(self, name: str) -> Path:
        """File of a module, whether it exists or not."""
        if name in self.modules:
            return self.modules[name].path
        inner = name.split(".")[len(self.root.split(".")) :]
        return self.package.joinpath(*inner).with_suffix(".py")

    def engine_of(self, name: str) -> str:
        """Engine of a module of engine code, in the frontend or in the backend; empty for other modules."""
        if name in self.homes:
            return self.homes[name].engine
        inner = name.split(".")[len(self.root.split(".")) :]
        engine = inner[1].removesuffix(f"_{BACKEND}") if len(inner) > 1 and inner[0] == BACKEND else ""
        return engine if engine in self.engines else ""

    def bound_in(self, name: str) -> frozenset[str]:
        """Names that a module binds, except by imports."""
        found = [piece.binds for piece in self.modules[name].pieces if not piece.is_import]
        return frozenset().union(*found)

    def origin(self, module: str, name: str) -> Key | None:
        """Engine module that defines a name imported from ``module``, with re-exports resolved."""
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

    def only_operation(self, engine: str, name: str) -> Key | None:
        """The only operation of this name that an engine has in the frontend; ``None`` if there are none or several."""
        found = [key for key in self.operations if key.name == name and self.homes[key.module].engine == engine]
        return found[0] if len(found) == 1 else None


# Functions that return the module of the active engine.
_CHOOSERS = ("get_backend", "get_backend_module")


def is_dispatcher(function: Function) -> bool:
    """Whether a function only converts its arguments and calls the active engine's function of its name.

    As in ``x = convert_to_tensor(x); return get_backend().sin(x)``.
    """
    *converted, last = function.body[1:] if ast.get_docstring(function) is not None else [*function.body]
    engines = set()
    for statement in converted:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            return False
        if _chooses(statement.value):
            engines |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        elif source.dotted(statement.value.func).rpartition(".")[2] != "convert_to_tensor":
            return False
    call = last.value if isinstance(last, ast.Return) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != function.name:
        return False
    engine = call.func.value
    return _chooses(engine) or (isinstance(engine, ast.Name) and engine.id in engines)


def _chooses(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and not node.args
        and not node.keywords
        and source.dotted(node.func).rpartition(".")[2] in _CHOOSERS
    )


# Functions that return functions.
_MAKERS = ("compile", "jit", "njit", "partial", "script", "vectorize", "vmap")


def _is_function(value: ast.expr | None, defined: set[str], engines: set[str]) -> bool:
    """Whether a value is recognizably a function: of the module, of an engine, or returned by one of ``_MAKERS``."""
    if isinstance(value, ast.Lambda):
        return True
    if isinstance(value, ast.Call):
        return source.dotted(value.func).rpartition(".")[2] in _MAKERS
    if isinstance(value, ast.Name):
        return value.id in defined
    root, _, name = source.dotted(value).partition(".") if value is not None else ("", "", "")
    return root in engines and hasattr(getattr(ops, name.rpartition(".")[2], None), "__operation__")
