"""Rewriting of calls of an engine's function to calls of an operation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from emberlint.findings import SAFE, UNSAFE, Edit
from emberlint.inference.file import File
from emberlint.knowledge import matrix
from emberlint.rewrite.arguments import planned
from emberlint.rewrite.safety import OF_NUMBERS, TENSORS, is_measured, is_unsupported


class Rewrite(NamedTuple):
    """Name of the operation under ``ops``, edits of the arguments, and safety of the rewrite."""

    operation: str
    edits: tuple[Edit, ...]
    safety: str


def rewritten(node: ast.Call, path: str, file: File) -> Rewrite | None:
    """Rewrite of a call to a call of an operation; ``None`` if the arguments do not match."""
    arguments, keywords = node.args, node.keywords
    names = tuple([keyword.arg for keyword in keywords]) if keywords else ()
    if path in _SPREAD and len(arguments) > 1:
        return _gathered(node, path, names, file)
    plan = planned(path, len(arguments), names, matrix.path_of(file.config))
    if plan is None or ast.Starred in map(type, arguments):
        return None
    operation, changes, safety, places, missing = plan
    if missing == "copy=True" and arguments and isinstance(arguments[0], (ast.List, ast.Tuple, ast.Constant)):
        missing = ""  # the argument is a new object
    given = [*arguments, *[keyword.value for keyword in keywords]] if keywords else arguments
    for argument, parameter in zip(given, places, strict=True):
        if type(argument) is ast.Constant and type(argument.value) is not str:
            continue
        if is_unsupported(argument, parameter.role, file):
            return None
    if safety != UNSAFE:
        numbers = safety == OF_NUMBERS and sum(place.role in TENSORS for place in places) == 1
        safety = SAFE if all(is_measured(*pair, numbers, file) for pair in zip(given, places, strict=True)) else UNSAFE
    edits = tuple(_edits(node, changes, file)) if changes else ()
    return Rewrite(operation, (*edits, last_argument(node, missing, file)) if missing else edits, safety)


# Functions that take the lengths of axes as separate arguments; the operation takes a shape.
_SPREAD = frozenset({"torch.empty", "torch.ones", "torch.zeros"})


def _gathered(node: ast.Call, path: str, names: tuple[str | None, ...], file: File) -> Rewrite | None:
    """Rewrite of a call with the lengths of axes to a call with a shape."""
    plan = planned(path, 1, names, matrix.path_of(file.config))
    if plan is None or ast.Starred in map(type, node.args):
        return None
    start, end = file.span(node.args[0])[0], file.span(node.args[-1])[1]
    if b"(" in file.source.data[file.span(node.func)[1] : start].strip(b" \t\n")[1:]:
        return None  # the first argument is in parentheses, whose end is not known
    return Rewrite(plan.operation, (Edit(start, start, "("), Edit(end, end, ")")), UNSAFE)


def _edits(node: ast.Call, changes: tuple[tuple[int, str], ...], file: File) -> Iterator[Edit]:
    """Edits that add or replace keywords of a call's arguments."""
    count = len(node.args)
    for place, name in changes:
        if place < count:
            start, _ = file.span(node.args[place])
            yield Edit(start, start, f"{name}=")
        else:
            keyword = node.keywords[place - count]
            start, _ = file.span(keyword)
            yield Edit(start, start + len((keyword.arg or "").encode()), name)


def last_argument(node: ast.Call, text: str, file: File) -> Edit:
    """Edit that adds a last argument to a call that has arguments."""
    end = file.span(node)[1] - 1
    before = file.source.data[file.span(node.func)[1] : end].rstrip()
    return Edit(end, end, f"{' ' if before.endswith(b',') else ', '}{text}")
