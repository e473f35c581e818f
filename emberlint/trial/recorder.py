"""Records of what the functions of a package get and return while a test runs."""

from __future__ import annotations

import dis
import inspect
import os
import sys
import time
from types import CodeType, FrameType
from typing import Any

from emberlint.trial.descriptions import described

CALLS = 3000
LINES = 400
SECONDS = 10.0
# Their inputs are the variables of the function around them, in which a difference is found.
_INNER = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<module>")
_RETURNING = {
    dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE", "RETURN_GENERATOR") if name in dis.opmap
}

# Values of these kinds do not change in a call.
_CONSTANT = ("text", "other")

Record = dict[str, Any]


class Files:
    """The files of a package below a folder."""

    def __init__(self, root: str, names: list[str]) -> None:
        self._root = os.path.realpath(root)
        self._names = frozenset(names)
        self._known: dict[str, str] = {}

    def name(self, path: str) -> str:
        """Path of a file of the package relative to the folder; empty for other files."""
        if path not in self._known:
            name = self.relative(path)
            self._known[path] = name if name in self._names else ""
        return self._known[path]

    def relative(self, path: str) -> str:
        """Path of a file relative to the folder; empty for files elsewhere."""
        full = os.path.realpath(path)
        return os.path.relpath(full, self._root) if full.startswith(self._root + os.sep) else ""


class Calls:
    """Recorder of calls, in the order in which they return.

    ``index`` counts the calls of a function. ``outer`` is whether other code than the package calls it.
    ``changed`` are the arguments that have another value after the call.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: dict[FrameType, tuple[int, dict[str, Any], dict[str, Any]]] = {}
        self._counts: dict[CodeType, int] = {}
        self._until = time.monotonic() + SECONDS
        self.records: list[Record] = []

    def start(self) -> None:
        sys.setprofile(self._profile)

    def stop(self) -> list[Record]:
        sys.setprofile(None)
        return self.records

    def _profile(self, frame: FrameType, event: str, value: object) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        name = self._files.name(code.co_filename)
        if not name or code.co_name in _INNER:
            return
        if event == "call":
            index = self._counts[code] = self._counts.get(code, -1) + 1
            given = arguments(frame)
            self._open[frame] = index, given, {key: described(one) for key, one in given.items()}
        elif opened := self._open.pop(frame, None):
            index, given, before = opened
            raised = value is None and code.co_code[frame.f_lasti] not in _RETURNING
            after = {key: described(one) for key, one in given.items() if before[key]["kind"] not in _CONSTANT}
            self.records.append(
                {
                    "file": name,
                    "function": code.co_qualname,
                    "start": code.co_firstlineno,
                    "line": frame.f_lineno,
                    "index": index,
                    "outer": frame.f_back is None or not self._files.name(frame.f_back.f_code.co_filename),
                    "given": before,
                    "changed": {key: one for key, one in after.items() if one != before[key]},
                    "result": {"kind": "error", "type": "exception"} if raised else described(value),
                }
            )
            if len(self.records) >= CALLS or time.monotonic() > self._until:
                sys.setprofile(None)


class Lines:
    """Recorder of the variables of chosen calls, before each line: of functions (file, name) the calls ``indices``."""

    def __init__(self, files: Files, chosen: dict[tuple[str, str], set[int]]) -> None:
        self._files = files
        self._chosen = chosen
        self._counts: dict[CodeType, int] = {}
        self.records: list[Record] = []

    def start(self) -> None:
        sys.settrace(self._trace)

    def stop(self) -> list[Record]:
        sys.settrace(None)
        return self.records

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        key = self._files.name(code.co_filename), code.co_qualname
        if event != "call" or key not in self._chosen:
            return None
        index = self._counts[code] = self._counts.get(code, -1) + 1
        if index not in self._chosen[key]:
            return None
        steps: list[tuple[int, dict[str, Any]]] = []
        self.records.append({"file": key[0], "function": key[1], "index": index, "steps": steps})

        def step(frame: FrameType, event: str, value: object) -> Any:
            if event in ("line", "return"):
                known = {name: described(one) for name, one in frame.f_locals.items() if not name.startswith("__")}
                steps.append((frame.f_lineno - code.co_firstlineno, known))
            return step if len(steps) < LINES else None

        return step


def arguments(frame: FrameType) -> dict[str, Any]:
    """Arguments of a call, and the variables of enclosing functions that it uses."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    known = frame.f_locals
    return {name: known[name] for name in (*code.co_varnames[:count], *code.co_freevars) if name in known}
