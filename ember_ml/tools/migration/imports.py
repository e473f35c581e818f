"""Selection of the code that moves with an operation, and rewriting of imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ember_ml.tools.migration import source
from ember_ml.tools.migration.names import ModuleNames
from ember_ml.tools.migration.source import Edit, Module, Piece, alias_text, imports_by_name
from ember_ml.tools.migration.survey import BACKEND, Function, Key, Survey


class ImportRewriter:
    """Code that moves with the chosen operations, edits of imports, and operations that have to be refused."""

    def __init__(self, survey: Survey, chosen: set[Key]) -> None:
        self.survey = survey
        self.chosen = chosen
        self.refused: dict[Key, str] = {}
        # Names that move, with their target modules.
        self.moved: dict[Key, str] = {}
        self.pieces: dict[str, list[Piece]] = {}
        self.whole: set[str] = set()
        # Packages of an engine that are imported by their name, and move to the backend of the engine.
        self.packages: set[str] = set()
        # Operations that the frontend used of an engine, and uses of the active engine then.
        self.used: set[Key] = set()
        self.names = ModuleNames(survey)
        self.edits: dict[str, list[Edit]] = {}
        for name in dict.fromkeys(key.module for key in sorted(chosen)):
            self._choose(name)
        renamed = self._renamed_strings()
        for module in survey.modules.values():
            self.edits[module.name] = self._import_edits(module) + renamed.get(module.name, [])

    def _refuse(self, keys: Iterable[Key], reason: str) -> None:
        for key in keys:
            if key in self.chosen:
                self.refused.setdefault(key, reason)

    def _mine(self, module: str) -> list[Key]:
        return [key for key in self.survey.operations if key.module == module and key in self.chosen]

    def _where(self, module: Module, node: ast.AST) -> str:
        return f"{module.path.relative_to(self.survey.package.parent).as_posix()}:{node.lineno}"  # type: ignore[attr-defined]

    def _choose(self, name: str) -> None:
        """Determine the pieces of a module that move: all, or the chosen operations and their dependencies."""
        module, mine = self.survey.modules[name], self._mine(name)
        own = [piece for piece in module.pieces if not piece.is_import and piece.node is not module.docstring]
        operations = [key for key in self.survey.operations if key.module == name]
        by_name: dict[str, list[Piece]] = {}
        for piece in own:
            for bound in piece.binds:
                by_name.setdefault(bound, []).append(piece)
        for piece in own:
            if not piece.binds and not _is_main_guard(piece.node):
                self._refuse(mine, f"module state: {self._where(module, piece.node)} runs when the module is imported")
        for piece in module.pieces:
            if _is_star(piece.node) and not module.is_package:
                self._refuse(mine, f"the star import at {self._where(module, piece.node)} hides what it needs")
        odd = {key.name: reason for key, reason in self.survey.odd.items() if key.module == name}
        for key in mine:
            needed_odd = sorted({bound for piece in _closure(key.name, by_name) for bound in piece.binds} & odd.keys())
            if needed_odd:
                self._refuse([key], f"it needs {needed_odd[0]}, which stays: {odd[needed_odd[0]]}")
        if len(mine) == len(operations) and not odd:
            self.whole.add(name)
            self.pieces[name] = [piece for piece in own if not piece.is_all]
        else:
            needed: set[int] = set()
            for key in mine:
                needed |= {id(piece) for piece in _closure(key.name, by_name)}
            self.pieces[name] = [piece for piece in own if id(piece) in needed and not piece.is_all]
        for key in mine:
            for piece in _closure(key.name, by_name):
                self._check_piece(module, key, piece, by_name)
        target = self.survey.backend_module(self.survey.homes[name])
        for piece in self.pieces[name]:
            for bound in piece.binds:
                self.moved[Key(name, bound)] = target

    def _check_piece(self, module: Module, key: Key, piece: Piece, by_name: dict[str, list[Piece]]) -> None:
        for bound in piece.binds:
            if len(by_name[bound]) > 1:
                self._refuse([key], f"{bound} is bound more than once in {module.name}")
        for node in ast.walk(piece.node):
            if isinstance(node, ast.Global):
                self._refuse(
                    [key], f"module state: {', '.join(node.names)} is assigned at {self._where(module, node)} (global)"
                )
            if isinstance(node, ast.Call) and imports_by_name(node) and self.names.of(module, node) is None:
                self._refuse([key], f"{self._where(module, node)} imports a module whose name is computed")
            if isinstance(node, ast.Name) and node.id in ("__file__", "__path__", "__spec__"):
                self._refuse([key], f"{self._where(module, node)} reads {node.id}, which is another one elsewhere")

    def _renamed_strings(self) -> dict[str, list[Edit]]:
        """Edits, by module, of the strings that name modules which move.

        Operations are refused if their module is named in another string, or may be imported by a computed name.
        """
        moving = {name: self._mine(name) for name in self.pieces}
        imported: set[int] = set()
        for module in self.survey.modules.values():
            for call in module.imports_by_name:
                found = self.names.of(module, call)
                if found is not None:
                    imported |= set(map(id, found))
                elif not self._is_ours(module):
                    keys = [key for mine in moving.values() for key in mine]
                    where = self._where(module, call)
                    self._refuse(keys, f"{where} imports a module whose name is computed: it may be one that moves")
        edits: dict[str, list[Edit]] = {}
        for module in self.survey.modules.values():
            for text in module.strings:
                target = self._renamed(module, text) if id(text) in imported else ""
                if target:
                    start, end = module.span(text)
                    written = module.source[start:end].decode().replace(str(text.value), target)
                    edits.setdefault(module.name, []).append(Edit(start, end, written))
                    continue
                for name, keys in moving.items():
                    package = self.survey.engine_package(name)
                    if text.value in (name, package) or str(text.value).startswith(f"{name}."):
                        named = package if text.value == package else name
                        self._refuse(keys, f"{self._where(module, text)} names {named} in a string")
        return edits

    def _renamed(self, module: Module, text: ast.Constant) -> str:
        """New name of a module that is imported by its name; empty if it does not move whole."""
        name, survey = str(text.value), self.survey
        if name in self.whole and not survey.modules[name].is_package:
            return survey.backend_module(survey.homes[name])
        inside = [other for other in survey.homes if other.startswith(f"{name}.")]
        found = survey.modules.get(name)
        if name not in survey.homes or name in self.pieces or found is None or not found.only_imports:
            return ""
        if any(other not in self.whole for other in inside if survey.defines_operations(other)):
            return ""
        if not any(other in self.whole for other in inside):
            return ""
        self.packages.add(name)
        return f"{survey.root}.{BACKEND}.{survey.homes[name].engine}"

    def _is_ours(self, module: Module) -> bool:
        return module.name == f"{self.survey.root}.{BACKEND}.dispatch" or module.name in self.survey.homes

    def _import_edits(self, module: Module) -> list[Edit]:
        """Edits that make a module import moved names from their new module."""
        edits: list[Edit] = []
        replaced: dict[int, list[str]] = {}
        top = {id(node) for node in module.tree.body}
        for node in module.imports:
            if isinstance(node, ast.ImportFrom):
                lines = self._import_from(module, node, edits)
            else:
                lines = self._import(module, node)
            if lines is not None:
                replaced[id(node)] = lines
                nothing = [""] if id(node) in top else ["pass"]
                edits.append(Edit(*module.span(node), _joined(lines or nothing, module.indent(node))))
        if replaced:
            edits += self._selectors(module, replaced)
        return edits

    def _import_from(self, module: Module, node: ast.ImportFrom, edits: list[Edit]) -> list[str] | None:
        """Imports that replace an import; ``None`` if it is unchanged."""
        place = module.resolve(node)
        groups: dict[str, list[str]] = {}
        further: list[str] = []
        changed = node.level > 0 and module.name in self.whole
        own = self.survey.backend_module(self.survey.homes[module.name]) if module.name in self.pieces else module.name
        for alias in node.names:
            bound = alias.asname or alias.name
            if self._is_frontend_module(module, f"{place}.{alias.name}"):
                further += self._attributes(module, bound, edits)
                changed = True
                continue
            target, name = self._target(module, node, place, alias)
            if target == own and (target != place or module.name in self.pieces) and name in (bound, "*"):
                changed = True  # the module will define the name itself
                continue
            if name == "*" and place in self.pieces and place not in self.whole:
                changed = True
                further.append(self._rest_of_star(module, place))
            changed = changed or (target, name) != (place, alias.name)
            groups.setdefault(target, []).append(alias_text(name, bound))
        if not changed:
            return None
        return [*(f"from {target} import {', '.join(names)}" for target, names in groups.items()), *further]

    def _target(self, module: Module, node: ast.ImportFrom, place: str, alias: ast.alias) -> tuple[str, str]:
        """Module to import a name from, and its name there."""
        survey = self.survey
        here = survey.engine_of(module.name)
        if alias.name == "*":
            return self._star_target(module, node, place), "*"
        inner = f"{place}.{alias.name}"
        if inner in survey.homes:
            return self._module_target(module, node, inner, alias.asname or alias.name)
        key = survey.origin(place, alias.name)
        if key is None and here and module.name in self.pieces:
            return self._from_frontend(module, node, place, alias.name)
        if key is None or key not in self.moved:
            return place, alias.name
        home = survey.homes[key.module]
        if here and here != home.engine and module.name in self.pieces:
            reason = f"{self._where(module, node)} imports the {home.engine} engine's {key.name}"
            self._refuse(self._mine(module.name), reason)
            return place, alias.name
        if here or survey.is_test(module):
            return self.moved[key], key.name
        if key not in survey.functions:
            reason = f"{self._where(module, node)} imports its {key.name}, which is no operation"
            self._refuse(self._mine(key.module), reason)
            return place, alias.name
        self._check_keywords(module, alias.asname or alias.name, key)
        self.used.add(key)
        return survey.frontend_of(key), key.name

    def _star_target(self, module: Module, node: ast.ImportFrom, place: str) -> str:
        """Module that a star import should import from."""
        if place not in self.whole:
            return place
        home = self.survey.homes[place]
        if self.survey.engine_of(module.name) == home.engine or self.survey.is_test(module):
            return self.survey.backend_module(home)
        self._check_one_frontend(module, node, place)
        return self.survey.frontend_module(home)

    def _check_one_frontend(self, module: Module, node: ast.stmt, inner: str) -> None:
        """Refuse the operations of an engine module that is used whole if their dispatching functions are scattered."""
        self.used |= set(self._mine(inner))
        usual = self.survey.frontend_module(self.survey.homes[inner])
        for key in self._mine(inner):
            found = self.survey.frontend_of(key)
            if found != usual:
                where = self._where(module, node)
                self._refuse(self._mine(inner), f"{where} uses {inner} as a whole, and {key.name} is in {found}")

    def _rest_of_star(self, module: Module, place: str) -> str:
        """Import of the names that a star import no longer provides."""
        home = self.survey.homes[place]
        same = self.survey.engine_of(module.name) == home.engine or self.survey.is_test(module)
        target = self.survey.backend_module(home) if same else self.survey.frontend_module(home)
        self.used |= set() if same else set(self._mine(place))
        return f"from {target} import {', '.join(key.name for key in self._mine(place))}"

    def _module_target(self, module: Module, node: ast.stmt, inner: str, bound: str) -> tuple[str, str]:
        """New location of an engine module that is imported as a whole: the package, and the name in it."""
        survey = self.survey
        stays = inner.rpartition(".")[0], inner.rpartition(".")[2]
        where = self._where(module, node)
        if survey.modules[inner].is_package:
            for name in self.pieces:
                if name == inner or name.startswith(f"{inner}."):
                    self._refuse(self._mine(name), f"{where} binds the whole engine package {inner}")
            return stays
        if inner not in self.whole:
            self._refuse(self._mine(inner), f"{where} imports the module {inner} as a whole")
            return stays
        home = survey.homes[inner]
        if survey.engine_of(module.name) == home.engine or survey.is_test(module):
            target = survey.backend_module(home)
        else:
            self._check_attributes(module, bound, inner)
            self._check_one_frontend(module, node, inner)
            target = survey.frontend_module(home)
        return target.rpartition(".")[0], target.rpartition(".")[2]

    def _check_attributes(self, module: Module, bound: str, inner: str) -> None:
        """Refuse the operations of an engine module if other attributes of it are used, which the frontend lacks."""
        for child in module.nodes:
            if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name) and child.value.id == bound:
                key = Key(inner, child.attr)
                if key not in self.chosen:
                    where = self._where(module, child)
                    self._refuse(self._mine(inner), f"{where} uses its {child.attr}, which is no operation that moves")

    def _from_frontend(self, module: Module, node: ast.stmt, place: str, name: str) -> tuple[str, str]:
        """Replacement for a frontend import in an engine module that moves: the function of the same engine."""
        if not self._is_frontend(place):
            return place, name
        engine = self.survey.engine_of(module.name)
        found = self._provided(engine, name)
        if found is None:
            self._refuse_circle(module, node, f"imports {name} from the frontend")
            return place, name
        return found, name

    def _refuse_circle(self, module: Module, node: ast.AST, what: str) -> None:
        engine = self.survey.engine_of(module.name)
        reason = (
            f"circular import: {self._where(module, node)} {what}, and the {engine} engine has none to take its place"
        )
        self._refuse(self._mine(module.name), reason)

    def _is_frontend_module(self, module: Module, inner: str) -> bool:
        """Whether an engine module that moves imports a whole module of the frontend."""
        moving = module.name in self.pieces and bool(self.survey.engine_of(module.name))
        return moving and inner in self.survey.modules and self._is_frontend(inner)

    def _is_frontend(self, name: str) -> bool:
        """Whether a module is part of a frontend with engine code, and is not engine code itself."""
        return name not in self.survey.homes and any(
            name == frontend or name.startswith(f"{frontend}.") for frontend in self.survey.frontends
            if frontend != self.survey.root or name == frontend
        )  # fmt: skip

    def _provided(self, engine: str, name: str) -> str | None:
        """Backend module that holds an operation of an engine after the migration."""
        key = self.survey.only_operation(engine, name)
        if key is not None and key in self.moved:
            return self.moved[key]
        prefix = f"{self.survey.root}.{BACKEND}.{engine}."
        found = [m for m in self.survey.modules if m.startswith(prefix) and name in self.survey.bound_in(m)]
        return found[0] if len(found) == 1 else None

    def _attributes(self, module: Module, bound: str, edits: list[Edit]) -> list[str]:
        """Add edits that replace ``ops.f`` in an engine module by ``f`` of the engine; return the imports required."""
        engine = self.survey.engine_of(module.name)
        own = self.survey.backend_module(self.survey.homes[module.name])
        imports: dict[str, str] = {}
        reached = set()
        for node in module.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == bound:
                reached.add(id(node.value))
                found = self._provided(engine, node.attr)
                if found is None:
                    self._refuse_circle(module, node, f"uses {bound}.{node.attr} of the frontend")
                elif found == own:
                    edits.append(Edit(*module.span(node), node.attr))
                else:
                    # Import the module, not the name: in a circular import the name may not exist yet.
                    place, _, last = found.rpartition(".")
                    imports[found] = f"from {place} import {last} as _{last}"
                    edits.append(Edit(*module.span(node), f"_{last}.{node.attr}"))
        for node in module.nodes:
            if isinstance(node, ast.Name) and node.id == bound and id(node) not in reached:
                reason = f"{self._where(module, node)} uses the frontend {bound} as a value"
                self._refuse(self._mine(module.name), reason)
        return list(imports.values())

    def _check_keywords(self, module: Module, bound: str, key: Key) -> None:
        """Refuse an operation if it is called with keywords that the dispatching function does not have."""
        reference = self._reference(key)
        accepted = {a.arg for a in [*reference.args.args, *reference.args.kwonlyargs]}
        if reference.args.kwarg is not None:
            return
        for child in module.nodes:
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == bound:
                for keyword in child.keywords:
                    if keyword.arg is not None and keyword.arg not in accepted:
                        where = self._where(module, child)
                        self._refuse([key], f"{where} passes {keyword.arg}=, which the common signature does not have")

    def _import(self, module: Module, node: ast.Import) -> list[str] | None:
        lines = []
        for alias in node.names:
            shown = f"import {alias_text(alias.name, alias.asname)}"
            if any(name == alias.name or name.startswith(f"{alias.name}.") for name in self.pieces):
                if alias.name in self.survey.homes and alias.asname is not None:
                    place, last = self._module_target(module, node, alias.name, alias.asname)
                    shown = f"import {place}.{last} as {alias.asname}"
                else:
                    self._check_dotted(module, alias)
            lines.append(shown)
        return None if lines == [f"import {alias_text(a.name, a.asname)}" for a in node.names] else lines

    def _check_dotted(self, module: Module, alias: ast.alias) -> None:
        """Refuse operations whose module is accessed by its dotted name through an imported package."""
        for node in module.nodes:
            if isinstance(node, ast.Attribute):
                path = source.dotted(node)
                if alias.asname is not None and path.startswith(f"{alias.asname}."):
                    path = alias.name + path.removeprefix(alias.asname)
                for name in self.pieces:
                    if path == name:
                        self._refuse(self._mine(name), f"{self._where(module, node)} reaches {name} by its dotted name")

    def _selectors(self, module: Module, replaced: dict[int, list[str]]) -> list[Edit]:
        """Edits that remove the condition of imports if all branches now import dispatching functions."""
        if self.survey.engine_of(module.name):
            return []
        edits = []
        inner = {id(s) for n in module.nodes if isinstance(n, ast.If) for s in n.orelse if isinstance(s, ast.If)}
        for node in module.nodes:
            if not isinstance(node, ast.If) or id(node) in inner or not _is_choice(node):
                continue
            imports = [s for s in _branches(node) if isinstance(s, (ast.Import, ast.ImportFrom))]
            lines = [self._dispatching_lines(module, statement, replaced) for statement in imports]
            if any(id(statement) in replaced for statement in imports) and all(x is not None for x in lines):
                merged_lines = merged([line for found in lines for line in found or ()])
                edits.append(Edit(*module.span(node), _joined(merged_lines or [""], module.indent(node))))
        return edits

    def _dispatching_lines(
        self, module: Module, statement: ast.Import | ast.ImportFrom, replaced: dict[int, list[str]]
    ) -> list[str] | None:
        """Imports that replace a statement, if they no longer import engine code; otherwise ``None``."""
        found = replaced.get(id(statement))
        if found is not None:
            return None if any(map(self._is_engine_import, found)) else found
        if isinstance(statement, ast.ImportFrom) and self._is_frontend(module.resolve(statement)):
            return [ast.unparse(statement)]
        return None

    def _is_engine_import(self, line: str) -> bool:
        return any(f"from {name} " in line or f"import {name} " in line for name in self.survey.homes)

    def _reference(self, key: Key) -> Function:
        """Function whose signature the dispatching function has: that of the first engine, starting with NumPy."""
        survey = self.survey
        home = survey.homes[key.module]
        same = [
            other
            for other in survey.operations
            if other.name == key.name
            and survey.frontend_module(survey.homes[other.module]) == survey.frontend_module(home)
        ]
        same.sort(key=lambda other: survey.engines.index(survey.homes[other.module].engine))
        return survey.functions[same[0]]


def _closure(name: str, by_name: dict[str, list[Piece]]) -> list[Piece]:
    """Pieces that bind a name, and their dependencies."""
    found: list[Piece] = []
    waiting = list(by_name.get(name, ()))
    while waiting:
        piece = waiting.pop()
        if piece not in found:
            found.append(piece)
            waiting += [other for used in piece.uses for other in by_name.get(used, ())]
    return found


def _is_star(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}


def _is_choice(node: ast.If) -> bool:
    """Whether the branches of an ``if`` only import, raise or pass."""
    return bool(node.orelse) and all(
        isinstance(s, (ast.Import, ast.ImportFrom, ast.Raise, ast.Pass)) for s in _branches(node)
    )


def _branches(node: ast.If) -> Iterator[ast.stmt]:
    """Statements of all branches."""
    yield from node.body
    for statement in node.orelse:
        if isinstance(statement, ast.If):
            yield from _branches(statement)
        else:
            yield statement


def merged(lines: list[str]) -> list[str]:
    """Imports merged into one line per module, without duplicates."""
    groups: dict[str, list[str]] = {}
    others = []
    for line in lines:
        if line.startswith("from "):
            place, _, names = line.removeprefix("from ").partition(" import ")
            groups.setdefault(place, []).extend(n for n in names.split(", ") if n not in groups.get(place, ()))
        elif line not in others:
            others.append(line)
    return others + [f"from {place} import {', '.join(sorted(names))}" for place, names in groups.items()]


def _joined(lines: list[str], indent: str) -> str:
    return f"\n{indent}".join(lines)
