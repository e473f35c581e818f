"""Names of modules in calls of ``importlib.import_module``: which modules a call may import."""

from __future__ import annotations

import ast

from ember_ml.tools.migration.source import Module
from ember_ml.tools.migration.survey import BACKEND, Survey

# Methods that change a dictionary.
_CHANGES = ("clear", "pop", "popitem", "setdefault", "update")


class ModuleNames:
    """The strings in a package that are names of modules to import."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey

    def of(self, module: Module, call: ast.Call) -> list[ast.Constant] | None:
        """Strings that a call may import by; ``None`` if the name is computed.

        A name is a constant, an item of a dictionary of constants (``import_module(_BACKENDS[name])``), or a variable
        that holds one of these. A formatted string that begins with the name of the backend has none: what it imports
        is in the backend already.
        """
        return self._strings(module, call.args[0], call) if call.args else None

    def _strings(
        self, module: Module, node: ast.expr, call: ast.Call, is_variable: bool = False
    ) -> list[ast.Constant] | None:
        if isinstance(node, ast.Constant):
            return [node]
        if isinstance(node, ast.JoinedStr):
            return [] if self._is_in_backend(module, node, call) else None
        if isinstance(node, ast.Subscript):
            return self._items(module, node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            default = self._strings(module, node.args[1], call) if len(node.args) > 1 else []
            items = self._items(module, node.func.value)
            return None if items is None or default is None else items + default
        if isinstance(node, ast.Name) and not is_variable:
            values = _values(module, node.id)
            found = [self._strings(module, value, call, is_variable=True) for value in values or ()]
            if values and all(strings is not None for strings in found):
                return [text for strings in found for text in strings or ()]
        return None

    def _items(self, module: Module, node: ast.expr) -> list[ast.Constant] | None:
        """Values of a dictionary of strings that is never changed; ``None`` if it is something else."""
        if not isinstance(node, ast.Name):
            return None
        home, name = self._definition(module, node.id)
        values = _values(home, name)
        if values is None or len(values) != 1 or not isinstance(values[0], ast.Dict) or _is_changed(home, name):
            return None
        found = [
            value for value in values[0].values if isinstance(value, ast.Constant) and isinstance(value.value, str)
        ]
        return found if len(found) == len(values[0].values) else None

    def _definition(self, module: Module, name: str) -> tuple[Module, str]:
        """Module that defines a name, with one import resolved, and its name there."""
        for node in module.imports:
            if not isinstance(node, ast.ImportFrom):
                continue
            for alias in node.names:
                place = self.survey.modules.get(module.resolve(node)) if (alias.asname or alias.name) == name else None
                if place is not None:
                    return place, alias.name
        return module, name

    def _is_in_backend(self, module: Module, node: ast.JoinedStr, call: ast.Call) -> bool:
        """Whether a formatted string names a module of the package's own backend."""
        start = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                start += str(part.value)
            elif isinstance(part, ast.FormattedValue) and not start:
                start = self._package(module, part.value)
            else:
                break
        if start.startswith("."):
            given = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "package")]
            package = self._package(module, given[0]) if given else ""
            start = package + start if package and not start.startswith("..") else ""
        return start.startswith(f"{self.survey.root}.{BACKEND}.")

    def _package(self, module: Module, node: ast.expr) -> str:
        """Name of a package that an expression is; empty if it is not known."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.Name) and (node.id == "__package__" or (node.id == "__name__" and module.is_package)):
            return module.name if module.is_package else module.name.rpartition(".")[0]
        return ""


def _values(module: Module, name: str) -> list[ast.expr] | None:
    """Values that are assigned to a name; ``None`` if it is bound in another way too, such as by a parameter."""
    found: list[ast.expr] = []
    for node in module.nodes:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            found.append(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            found += [] if node.value is None else [node.value]
        elif isinstance(node, ast.arg) and node.arg == name:
            return None
    stores = [n for n in module.nodes if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)]
    declared = [n for n in module.nodes if isinstance(n, ast.AnnAssign) and n.value is None and n.target in stores]
    return found if len(stores) - len(declared) == len(found) else None


def _is_changed(module: Module, name: str) -> bool:
    """Whether a module changes a dictionary after its definition."""
    for node in module.nodes:
        if (isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)) or (
            isinstance(node, ast.Attribute) and node.attr in _CHANGES
        ):
            target = node.value
        else:
            continue
        if isinstance(target, ast.Name) and target.id == name:
            return True
    return False
