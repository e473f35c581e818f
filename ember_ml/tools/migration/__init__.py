"""Migration of engine code from the frontend of a package to a backend.

A package that supports several engines often has ``ops/torch/math.py`` next to ``ops/numpy/math.py``, and imports of
both in many places. The plan moves each function of such a module to ``backend/<engine>/<category>.py``, where the
category is the name of its file, with the comments above it and the helpers, constants and imports that it needs. A
function of the same name in ``ops/<category>.py`` calls that of the active engine, and all imports of the package are
updated. The active engine is the one that ``ember_ml.get_backend()`` returns; ``backend/dispatch.py`` looks it up.

A package may choose its engine itself: its frontend calls ``get_backend().sin(x)`` or ``get_backend_module().sin(x)``,
which import an engine's module by a name from a dictionary of names. These functions stay as they are. The names in the
dictionary are changed to the modules' new ones.

A function that cannot be moved without changing the behavior of the package is refused, and is not moved.
"""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ember_ml import backend as backends
from ember_ml.tools import UsageError
from ember_ml.tools.migration import source
from ember_ml.tools.migration.moves import Attempt
from ember_ml.tools.migration.survey import Key, Survey
from emberlint import atomic


@dataclass(frozen=True)
class Move:
    """A function to move: its source module, its target module, and the module of its dispatching function."""

    engine: str
    operation: str
    source: str
    target: str
    frontend: str


@dataclass(frozen=True)
class Refusal:
    """A function that is not moved, and the reason."""

    engine: str
    operation: str
    source: str
    reason: str


@dataclass
class Plan:
    """Moves, refusals and file changes of a migration. A change to ``None`` removes the file."""

    package: Path
    moves: list[Move]
    refusals: list[Refusal]
    notes: list[str]
    changes: dict[Path, str | None] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Plan as JSON-compatible values."""
        return {
            "package": str(self.package),
            "moves": [vars(move) for move in self.moves],
            "refused": [vars(refusal) for refusal in self.refusals],
            "notes": self.notes,
            "files": {str(path): "removed" if text is None else "written" for path, text in self.changes.items()},
        }

    def text(self) -> str:
        """Plan as text: the moves of each engine, the refusals with their reasons, and notes."""
        lines = []
        for engine in dict.fromkeys(move.engine for move in self.moves):
            mine = [move for move in self.moves if move.engine == engine]
            lines.append(f"{engine}: {len(mine)} {'operation' if len(mine) == 1 else 'operations'} to move")
            lines += [f"  {move.operation}: {move.source} -> {move.target}" for move in mine]
        for refusal in self.refusals:
            lines.append(f"refused: {refusal.operation} of {refusal.source}: {refusal.reason}")
        lines += [f"note: {note}" for note in self.notes]
        return "".join(f"{line}\n" for line in lines or ["nothing to move: no engine code in the frontend"])

    def diff(self) -> str:
        """Changes as a unified diff."""
        parts: list[str] = []
        for path, text in sorted(self.changes.items()):
            before = source.rows(path.read_bytes().decode("utf-8")) if path.exists() else []
            after = source.rows(text) if text is not None else []
            shown = path.relative_to(self.package.parent).as_posix()
            old, new = (f"a/{shown}" if path.exists() else "/dev/null"), ("/dev/null" if text is None else f"b/{shown}")
            parts += difflib.unified_diff(before, after, old, new)
        return "".join(part if part.endswith("\n") else part + "\n" for part in parts)

    def apply(self, force: bool = False) -> None:
        """Write all changes, or none if one of them fails.

        Args:
            force: write even if the git tree is not clean.
        """
        if not self.changes:
            return
        if not force:
            _check_clean(self.package, [path for path in self.changes if path.exists()])
        before = {path: path.read_bytes() if path.exists() else None for path in self.changes}
        try:
            for path, text in self.changes.items():
                if text is not None:
                    atomic.write(path, text, parents=True)
            for path, text in self.changes.items():
                if text is None:
                    path.unlink()
        except BaseException:
            for path, content in before.items():
                if content is None:
                    path.unlink(missing_ok=True)
                else:
                    atomic.write(path, content, parents=True)
            raise
        finally:
            _remove_empty({path.parent for path in self.changes}, self.package)


def _check_clean(package: Path, touched: Iterable[Path]) -> None:
    """Raise an error unless git can undo the changes: the package is committed and the touched files are tracked."""
    command = ["git", "-C", str(package), "status", "--porcelain", "--", "."]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        raise UsageError("git must be installed, so that changes can be undone; --force writes anyway") from None
    if done.returncode:
        raise UsageError(f"{package} must be in a git repository, so that changes can be undone; --force writes anyway")
    if done.stdout.strip():
        count = len(done.stdout.splitlines())
        raise UsageError(
            f"{package} must have no uncommitted changes, got {count}; commit them first, or write anyway with --force"
        )
    listed = subprocess.run(["git", "-C", str(package), "ls-files", "-z"], capture_output=True, check=False)
    tracked = {package / name for name in listed.stdout.decode("utf-8", "surrogateescape").split("\0")}
    for path in touched:
        if path not in tracked:
            raise UsageError(f"git must not ignore {path}, so that changes can be undone; --force writes anyway")


def _remove_empty(folders: Iterable[Path], package: Path) -> None:
    """Remove folders that hold only compiled files, and parents that become empty."""
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        while folder != package and folder.is_dir() and all(child.name == "__pycache__" for child in folder.iterdir()):
            for cache in folder.iterdir():
                for file in cache.iterdir():
                    file.unlink()
                cache.rmdir()
            folder.rmdir()
            folder = folder.parent


def plan(package: Path, engine: str | None = None, operation: str | None = None) -> Plan:
    """Plan of the migration of a package.

    Args:
        package: folder of the package.
        engine: move only the code of this engine.
        operation: move only the operation of this name.
    """
    package = package.resolve()
    if not package.is_dir():
        raise UsageError(f"{package} must be a folder")
    if not (package / "__init__.py").exists():
        raise UsageError(f"{package} must be a package, got a folder without __init__.py")
    if engine is not None and engine not in backends.homes():
        raise UsageError(f"engine must be one of {', '.join(backends.homes())}, got {engine!r}")
    survey = Survey(package)
    selected = {
        key: survey.homes[key.module]
        for key in survey.operations
        if engine in (None, survey.homes[key.module].engine) and operation in (None, key.name)
    }
    odd = {
        key: survey.homes[key.module]
        for key in survey.odd
        if engine in (None, survey.homes[key.module].engine) and operation in (None, key.name)
    }
    if operation is not None and not selected and not odd:
        where = f" for {engine}" if engine else ""
        raise UsageError(f"{package.name} must have the operation{where} in its frontend, got {operation!r}")
    refused: dict[Key, str] = {}
    while True:
        chosen = {key for key in selected if key not in refused}
        attempt = Attempt(survey, chosen)
        if not attempt.refused:
            break
        refused |= attempt.refused
    refused |= {key: survey.odd[key] for key in odd}
    refusals = [Refusal((selected | odd)[key].engine, key.name, key.module, why) for key, why in refused.items()]
    return Plan(package, _moves(survey, chosen), refusals, attempt.notes, attempt.changes)


def _moves(survey: Survey, chosen: set[Key]) -> list[Move]:
    """Moves, ordered by engine."""
    order = [key for key in survey.operations if key in chosen]
    order.sort(key=lambda key: survey.engines.index(survey.homes[key.module].engine))
    found = []
    for key in order:
        home = survey.homes[key.module]
        target, frontend = survey.backend_module(home), survey.frontend_of(key)
        found.append(Move(home.engine, key.name, key.module, target, frontend))
    return found
