"""One attempt at moving operations: the resulting changes, or the operations that prevent it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path

from ember_ml.tools import UsageError
from ember_ml.tools.migration import source
from ember_ml.tools.migration.imports import ImportRewriter, merged
from ember_ml.tools.migration.signatures import Signature, SignatureError, compared
from ember_ml.tools.migration.source import Edit, Module, Piece, alias_text
from ember_ml.tools.migration.survey import BACKEND, Function, Key, Survey, is_dispatcher

_DISPATCH = '''"""Which function computes: that of the active engine, as ``ember_ml.get_backend()`` names it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import ember_ml
from ember_ml.errors import MissingOperationError

# The packages that hold a folder per engine.
PLACES = ({places})


def implementation(category: str, name: str) -> Callable[..., Any]:
    """The active engine's function of that name."""
    return _find(ember_ml.get_backend(), category, name)


@cache
def _find(engine: str, category: str, name: str) -> Callable[..., Any]:
    for package in PLACES:
        place = f"{package}.{engine}.{category}"
        try:
            found: Callable[..., Any] | None = getattr(importlib.import_module(place), name, None)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{place}.".startswith(f"{error.name}."):
                raise
            continue
        if found is not None:
            return found
    raise MissingOperationError(f"the {engine} engine has no {name} in {__package__}.{engine}.{category}")
'''


class Attempt(ImportRewriter):
    """Migration of some operations: its changes, and the operations that it has to refuse."""

    def __init__(self, survey: Survey, chosen: set[Key]) -> None:
        super().__init__(survey, chosen)
        self.notes: list[str] = []
        self.changes: dict[Path, str | None] = {}
        if chosen and not self.refused:
            self._write_targets()
            self._write_packages()
            self._write_sources()
            self._write_frontends()
            self._write_others()
            self._check_circles()

    def _write_targets(self) -> None:
        """Write the backend modules with the code that moves."""
        survey = self.survey
        by_target: dict[str, list[str]] = {}
        for name in self.pieces:
            by_target.setdefault(survey.backend_module(survey.homes[name]), []).append(name)
        for target, names in by_target.items():
            existing = survey.modules.get(target)
            if existing is None and len(names) == 1 and names[0] in self.whole:
                module = survey.modules[names[0]]
                self.changes[survey.path(target)] = self._clean(module.edited(self.edits[names[0]]))
                continue
            self._assemble(target, existing, names)
        for engine in {survey.homes[name].engine for name in self.pieces}:
            for folder in (BACKEND, f"{BACKEND}.{engine}"):
                path = survey.package.joinpath(*folder.split(".")) / "__init__.py"
                said = "How: one folder per engine." if folder == BACKEND else f"The functions of the {engine} engine."
                if not path.exists():
                    self.changes[path] = f'"""{said}"""\n'

    def _write_packages(self) -> None:
        """Write the ``__init__.py`` of engine packages that are imported by name, in the backend of their engine."""
        survey = self.survey
        for name in sorted(self.packages):
            target = f"{survey.root}.{BACKEND}.{survey.homes[name].engine}"
            module, existing = survey.modules[name], survey.modules.get(target)
            text = self._clean(module.edited(self.edits[name]))
            if existing is None:
                self.changes[survey.package / BACKEND / survey.homes[name].engine / "__init__.py"] = text
            elif any(piece.is_all for piece in module.pieces) or not existing.only_imports:
                self._refuse(self._below(name), f"name clash: {target} already has an __init__.py that does more")
            else:
                now = existing.edited(self.edits[target])
                known = {ast.unparse(node) for node in ast.parse(now).body}
                lines = [ast.unparse(node) for node in ast.parse(text).body if not isinstance(node, ast.Expr)]
                fresh = [line for line in lines if line not in known and not line.startswith("from __future__")]
                self.changes[existing.path] = _with_imports(now, fresh)

    def _below(self, package: str) -> list[Key]:
        return [key for key in self.survey.operations if key.module.startswith(f"{package}.") and key in self.chosen]

    def _write_dispatch(self, path: Path) -> None:
        """Write ``dispatch.py``, which also searches engine code that has not been moved yet."""
        survey = self.survey
        if path.exists() and not path.read_text(encoding="utf-8").startswith(_DISPATCH.partition("\n")[0]):
            self._refuse(self.chosen, f"{BACKEND}/dispatch.py is there and is something else")
            return
        stay = [*survey.odd, *(key for key in survey.operations if key not in self.chosen)]
        left = {survey.homes[key.module].frontend for key in stay}
        places = ["__package__", *(f'"{frontend}"' for frontend in sorted(left))]
        shown = f"{places[0]}," if len(places) == 1 else ", ".join(places)
        self.changes[path] = _DISPATCH.replace("{places}", shown)

    def _assemble(self, target: str, existing: Module | None, names: list[str]) -> None:
        """Write a module with pieces of one or several modules."""
        survey = self.survey
        taken: dict[str, str] = {}
        imports: list[str] = []
        if existing is not None:
            for piece in existing.pieces:
                for bound in piece.binds:
                    taken[bound] = ast.dump(piece.node)
        body: list[str] = []
        for name in names:
            module = survey.modules[name]
            for piece in self.pieces[name]:
                same = [bound for bound in piece.binds if taken.get(bound) == ast.dump(piece.node)]
                if same:
                    continue
                clash = [bound for bound in piece.binds if bound in taken]
                if clash:
                    self._refuse(self._mine(name), f"name clash: {target} already has {clash[0]}")
                    return
                taken |= {bound: ast.dump(piece.node) for bound in piece.binds}
                body.append(self._piece_text(module, piece))
            imports += self._imports_for(module, self.pieces[name])
        if existing is not None:
            known = {line.strip() for line in existing.lines}
            fresh = [
                line for line in dict.fromkeys(imports) if line not in known and not line.startswith("from __future__")
            ]
            self.changes[survey.path(target)] = _with_imports(existing.edited(self.edits[target]), fresh) + _spaced(
                body
            )
            return
        engine, category = survey.homes[names[0]].engine, survey.homes[names[0]].category
        head = f'"""The {engine} engine\'s functions of {category}."""\n\n'
        self.changes[survey.path(target)] = (
            head + "".join(f"{line}\n" for line in dict.fromkeys(imports)) + _spaced(body)
        )

    def _piece_text(self, module: Module, piece: Piece) -> str:
        """Text of a piece with updated imports."""
        start, end = module.starts[piece.first - 1], module.starts[piece.last]
        inside = [
            Edit(edit.start - start, edit.end - start, edit.text)
            for edit in self.edits[module.name]
            if start <= edit.start and edit.end <= end
        ]
        part = Module.__new__(Module)
        part.source = module.source[start:end]
        return part.edited(inside).strip("\n")

    def _imports_for(self, module: Module, pieces: Sequence[Piece]) -> list[str]:
        """Updated imports of a module that some of its pieces use."""
        used = frozenset().union(*(piece.uses for piece in pieces))
        lines: list[str] = []
        for piece in module.pieces:
            if not piece.is_import:
                continue
            node = piece.node
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                lines.insert(0, ast.unparse(node))
            elif piece.binds & used:
                text = self._piece_text(module, piece)
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    kept = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in used]
                    if len(kept) < len(node.names):
                        text = self._narrowed(module, node, kept)
                lines += text.splitlines()
        return lines

    def _narrowed(self, module: Module, node: ast.Import | ast.ImportFrom, kept: list[ast.alias]) -> str:
        """Import with only some of its names."""
        if isinstance(node, ast.Import):
            return "\n".join(f"import {alias_text(alias.name, alias.asname)}" for alias in kept)
        part = ast.copy_location(ast.ImportFrom(node.module, kept, node.level), node)
        lines = self._import_from(module, part, [])
        names = ", ".join(alias_text(alias.name, alias.asname) for alias in kept)
        return f"from {module.resolve(node)} import {names}" if lines is None else "\n".join(lines)

    def _write_sources(self) -> None:
        """Remove the moved code from its modules, and modules that become empty."""
        survey = self.survey
        for name, pieces in self.pieces.items():
            module = survey.modules[name]
            if name in self.whole:
                self.changes[module.path] = None
                continue
            gone = {id(piece) for piece in pieces}
            stay = [piece for piece in module.pieces if id(piece) not in gone]
            rest = frozenset().union(*(piece.uses for piece in stay if not piece.is_import))
            edits = [edit for edit in self.edits[name] if not self._within(module, edit, pieces)]
            edits += [Edit(module.starts[piece.first - 1], module.starts[piece.last], "") for piece in pieces]
            edits += [_without(module, piece, {b for p in pieces for b in p.binds}) for piece in stay if piece.is_all]
            back = sorted({bound for piece in pieces for bound in piece.binds} & rest)
            text = module.edited(edits)
            if back:
                home = survey.backend_module(survey.homes[name])
                text = _with_imports(text, [f"from {home} import {', '.join(back)}"])
            self.changes[module.path] = self._clean(text)
        self._drop_engine_packages()

    def _within(self, module: Module, edit: Edit, pieces: Sequence[Piece]) -> bool:
        return any(module.starts[p.first - 1] <= edit.start and edit.end <= module.starts[p.last] for p in pieces)

    def _drop_engine_packages(self) -> None:
        """Remove the ``__init__.py`` of engine folders that only imports moved code."""
        survey = self.survey
        for name, module in survey.modules.items():
            if name not in survey.homes or not module.is_package:
                continue
            inside = [m for m in survey.modules if m.startswith(f"{name}.")]
            emptied = all(
                self.changes.get(survey.modules[m].path, "") is None for m in inside if not survey.modules[m].is_package
            )
            if emptied and (module.only_imports or name in self.whole) and (inside or name in self.whole):
                self.changes[module.path] = None

    def _write_frontends(self) -> None:
        """Write the dispatching functions, in place of functions that select an engine."""
        survey = self.survey
        by_module: dict[str, dict[str, list[Key]]] = {}
        for key in survey.operations:
            if key in self.chosen:
                by_module.setdefault(survey.frontend_of(key), {}).setdefault(key.name, []).append(key)
        for module, operations in list(by_module.items()):
            needed = {name: keys for name, keys in operations.items() if not self._is_unused(module, keys)}
            by_module[module] = needed
            if not needed:
                del by_module[module]
        for name, operations in by_module.items():
            self._write_frontend(name, operations)
        dispatch = survey.package / BACKEND / "dispatch.py"
        if dispatch.exists() or any(_needs_dispatch(text) for text in self.changes.values()):
            self._write_dispatch(dispatch)

    def _is_unused(self, name: str, keys: list[Key]) -> bool:
        """Whether an operation needs no dispatching function: the package has its own for others, and none uses it."""
        taken = self.survey.bound_in(name) if name in self.survey.modules else frozenset()
        return self._chooses(keys) and self.used.isdisjoint(keys) and keys[0].name not in taken

    def _chooses(self, keys: list[Key]) -> bool:
        """Whether functions of the frontend of an operation choose the engine themselves."""
        frontend = self.survey.homes[keys[0].module].frontend
        return any(place == frontend for place, _ in self.survey.dispatchers)

    def _write_frontend(self, name: str, operations: dict[str, list[Key]]) -> None:
        survey = self.survey
        existing = survey.modules.get(name)
        category = name.rpartition(".")[2]
        present = {p.node.name: p.node for p in existing.pieces if isinstance(p.node, Function)} if existing else {}
        taken = survey.bound_in(name) if existing else frozenset()
        imports = [f"from {survey.root}.{BACKEND}.dispatch import implementation"]
        edits = list(self.edits[name]) if existing else []
        added = []
        for operation, keys in operations.items():
            here = present.get(operation)
            if here is not None and is_dispatcher(here):
                # It calls what it called before, so its signature is its own affair.
                self._note_missing(operation, keys)
                continue
            if here is not None and _is_dispatching(here):
                self._check_signatures(operation, here, keys)
                continue
            if here is None and operation in taken:
                self._refuse(keys, f"name clash: {name} already has {operation}")
                continue
            if here is not None and not self._is_selector(existing, here):
                self._refuse(
                    keys, f"name clash: {name} already has a function {operation} that does more than choose an engine"
                )
                continue
            reference = here or self._reference(keys[0])
            text, needed = self._dispatching(reference, operation, category, keys, existing if here else None)
            if text:
                imports += needed
                if here is not None and existing is not None:
                    edits.append(Edit(*existing.span(here), text.rstrip("\n")))
                else:
                    added.append(text)
                if self._chooses(keys):
                    self.notes.append(f"{operation}: its engine is ember_ml.get_backend(), not that of the package")
                self._check_signatures(operation, reference, keys)
        if existing is not None:
            body = existing.edited(edits)
            fresh = [line for line in dict.fromkeys(imports) if line not in {x.strip() for x in existing.lines}]
            content = _with_imports(body, fresh if added or len(edits) > len(self.edits[name]) else []) + _spaced(added)
        else:
            head = f'"""Operations of {category}, computed by the active engine."""\n'
            head += "\nfrom __future__ import annotations\n"
            content = f"{head}\n{_sorted_imports(imports)}{_spaced(added)}"
        self.changes[survey.path(name)] = content
        if existing is None and (survey.path(name).with_suffix("") / "__init__.py").exists():
            for keys in operations.values():
                self._refuse(keys, f"name clash: {name} is a package")

    def _is_selector(self, module: Module | None, function: Function) -> bool:
        """Whether a function only imports and calls the function of an engine."""
        assert module is not None
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        engine_calls = 0
        for statement in body:
            for child in ast.walk(statement):
                if isinstance(
                    child, (ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.AugAssign, ast.Yield)
                ):
                    return False
                if isinstance(child, ast.ImportFrom):
                    if not any(self.survey.origin(module.resolve(child), alias.name) for alias in child.names):
                        return False
                    engine_calls += 1
                if isinstance(child, ast.Return) and not isinstance(child.value, ast.Call):
                    return False
        return engine_calls > 0

    def _dispatching(
        self, reference: Function, operation: str, category: str, keys: list[Key], module: Module | None
    ) -> tuple[str, list[str]]:
        """Text of a dispatching function and the imports that it needs; empty if its defaults cannot be written."""
        owner = module or self._owner(reference)
        needed: list[str] = []
        arguments = Signature(self.survey, owner, reference)
        try:
            shown = arguments.text(needed)
        except SignatureError as error:
            self._refuse(keys, str(error))
            return "", []
        returns = arguments.returns(needed)
        documented = ast.get_docstring(reference) or next(
            (text for key in keys if (text := ast.get_docstring(self.survey.functions[key]))), None
        )
        lines = [f"def {operation}({shown}){returns}:"]
        if documented:
            lines += _docstring(documented)
        lines.append(f'    return implementation("{category}", "{operation}")({arguments.forwarded()})')
        return "\n".join(lines) + "\n", needed

    def _owner(self, function: Function) -> Module:
        key = next(key for key, node in self.survey.functions.items() if node is function)
        return self.survey.modules[key.module]

    def _check_signatures(self, operation: str, reference: Function, keys: list[Key]) -> None:
        """Refuse functions that cannot be called the way the dispatching function calls them."""
        for key in keys:
            function = self.survey.functions[key]
            if function is reference:
                continue
            problem, note = compared(
                self.survey, self._owner_or_front(reference), reference, self._owner(function), function
            )
            engine = self.survey.homes[key.module].engine
            if problem:
                self._refuse([key], f"inconsistent signature: {problem}")
            elif note:
                self.notes.append(f"{operation}: on {engine}, {note}")
        self._note_missing(operation, keys)

    def _note_missing(self, operation: str, keys: list[Key]) -> None:
        """Note the engines of the package that lack an operation."""
        homes = [self.survey.homes[key.module] for key in keys]
        known = {
            self.survey.homes[other.module].engine
            for other in self.survey.operations
            if other.name == operation
            and self.survey.frontend_module(self.survey.homes[other.module]) == self.survey.frontend_module(homes[0])
        }
        known |= {e for e in self.survey.engines if self._provided(e, operation)}
        used = {home.engine for home in self.survey.homes.values()} | {
            e for e in self.survey.engines if self._has_backend(e)
        }
        missing = [engine for engine in self.survey.engines if engine in used - known]
        if missing:
            self.notes.append(f"{operation}: missing on {', '.join(missing)}; calling it there says so")

    def _has_backend(self, engine: str) -> bool:
        return f"{self.survey.root}.{BACKEND}.{engine}" in self.survey.modules

    def _owner_or_front(self, function: Function) -> Module:
        try:
            return self._owner(function)
        except StopIteration:
            return next(m for m in self.survey.modules.values() if any(node is function for node in ast.walk(m.tree)))

    def _write_others(self) -> None:
        """Write the modules in which only imports change."""
        for name, edits in self.edits.items():
            module = self.survey.modules[name]
            if edits and module.path not in self.changes:
                self.changes[module.path] = module.edited(edits)
            changed = self.changes.get(module.path)
            if changed is not None and not self.survey.is_test(module):
                self.changes[module.path] = _without_idle_imports(module, changed)
        for path, text in list(self.changes.items()):
            if text is not None:
                try:
                    ast.parse(text)
                except SyntaxError as error:  # pragma: no cover - a defect here must not reach the disk
                    raise UsageError(f"{path} must still parse after the move, got {error}") from error
                before = path.read_bytes() if path.exists() else b""
                if b"\r\n" in before:
                    # Added lines end with LF; the file uses CRLF.
                    text = self.changes[path] = text.replace("\r\n", "\n").replace("\n", "\r\n")
                if path.exists() and before == text.encode("utf-8"):
                    del self.changes[path]

    def _clean(self, text: str) -> str:
        return text.rstrip("\n") + "\n"

    def _check_circles(self) -> None:
        """Refuse operations that would make backend modules import each other in a circle."""
        survey = self.survey
        prefix = f"{survey.root}.{BACKEND}."
        needs: dict[str, set[str]] = {}
        for path, text in self.changes.items():
            inner = path.relative_to(survey.package).with_suffix("").parts
            name = ".".join([survey.root, *inner])
            if text is None or not name.startswith(prefix):
                continue
            for node in ast.parse(text).body:
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(prefix):
                    needs.setdefault(name, set()).add(node.module or "")
        for start in needs:
            circle = _circle(start, needs)
            if circle:
                chain = " -> ".join(circle)
                for name in self.pieces:
                    if survey.backend_module(survey.homes[name]) in circle:
                        self._refuse(self._mine(name), f"circular import: {chain}")


def _circle(start: str, needs: dict[str, set[str]]) -> list[str]:
    """Chain of imports from a module back to itself; empty if there is none."""
    ways = [[start]]
    seen = {start}
    while ways:
        way = ways.pop()
        for after in sorted(needs.get(way[-1], ())):
            if after == start:
                return [*way, start]
            if after not in seen:
                seen.add(after)
                ways.append([*way, after])
    return []


def _needs_dispatch(text: str | None) -> bool:
    """Whether a written module has dispatching functions of a migration."""
    return text is not None and f".{BACKEND}.dispatch import implementation\n" in text


def _is_dispatching(function: Function) -> bool:
    """Whether a function is a dispatching function written by a migration."""
    last = function.body[-1]
    call = last.value if isinstance(last, ast.Return) else None
    chosen = call.func if isinstance(call, ast.Call) else None
    return isinstance(chosen, ast.Call) and source.dotted(chosen.func) == "implementation"


def _spaced(parts: list[str]) -> str:
    """Functions and constants, each after two blank lines."""
    return "".join("\n\n" + part.strip("\n") + "\n" for part in parts)


def _sorted_imports(lines: Iterable[str]) -> str:
    """Imports in the usual order: the standard library first."""
    unique = sorted(merged(list(dict.fromkeys(lines))))
    standard = [line for line in unique if line.startswith(("from typing", "from collections"))]
    others = [line for line in unique if line not in standard]
    return "\n".join(["\n".join(group) + "\n" for group in (standard, others) if group])


def _with_imports(text: str, lines: list[str]) -> str:
    """Source with additional imports after the existing ones, or after its docstring."""
    if not lines:
        return text
    tree = ast.parse(text)
    at = 0
    for i, node in enumerate(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (i == 0 and isinstance(node, ast.Expr)):
            at = node.end_lineno or at
    rows = source.rows(text)
    alone = at == 1 and rows[0].lstrip().startswith(('"', "'"))
    return "".join(rows[:at]) + ("\n" if alone else "") + "".join(f"{line}\n" for line in lines) + "".join(rows[at:])


def _names_used(module: Module) -> set[str]:
    """Names that a module uses outside imports."""
    plain = (ast.Import, ast.ImportFrom)
    return {name for piece in module.pieces if not isinstance(piece.node, plain) for name in piece.uses}


def _without_idle_imports(before: Module, text: str) -> str:
    """Source without imports that became unused."""
    now = Module(before.path, before.name, text.encode(), before.is_package)
    rest, once = _names_used(now), _names_used(before)
    edits = []
    for node in now.tree.body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        bound = {alias: alias.asname or alias.name.partition(".")[0] for alias in node.names}
        kept = [alias for alias, name in bound.items() if name in rest or name not in once]
        if len(kept) == len(node.names):
            continue
        start, end = now.span(node)
        if kept:
            fewer = (
                ast.ImportFrom(node.module, kept, node.level) if isinstance(node, ast.ImportFrom) else ast.Import(kept)
            )
            edits.append(Edit(start, end, ast.unparse(fewer)))
        else:
            edits.append(Edit(now.starts[node.lineno - 1], now.starts[node.end_lineno or node.lineno], ""))
    return now.edited(edits)


def _without(module: Module, piece: Piece, names: set[str]) -> Edit:
    """``__all__`` without some names."""
    value = getattr(piece.node, "value", None)
    kept = [e for e in getattr(value, "elts", ()) if not (isinstance(e, ast.Constant) and e.value in names)]
    if value is None:
        return Edit(0, 0, "")
    return Edit(*module.span(value), "[" + ", ".join(ast.unparse(element) for element in kept) + "]")


def _docstring(text: str) -> list[str]:
    quoted = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = quoted.splitlines()
    shown = [f'    """{lines[0]}', *(f"    {line}" if line else "" for line in lines[1:])]
    if len(lines) == 1:
        return [shown[0] + '"""']
    return [*shown, '    """']
