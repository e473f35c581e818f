"""What torch's compiler has to know, told without importing it, which takes longer than importing torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_COMPILER = "torch._dynamo"

_pending: list[Callable[[], object]] = []


def mark_constant(function: Callable[..., Any]) -> None:
    """Make the compiler call ``function`` while it traces, and take the result as a constant.

    ``torch.compiler.assume_constant_result`` sets the same attribute, but imports the compiler.
    """
    function._dynamo_marked_constant = True


def when_imported(action: Callable[[], object]) -> None:
    """Call ``action`` now if the compiler is imported, else at the end of its import."""
    if _COMPILER in sys.modules and not _pending:
        action()
        return
    _pending.append(action)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the compiler as Python does, and calls what waits for it after it was imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if name != _COMPILER:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_call(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                while _pending:
                    _pending.pop(0)()

            spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec
