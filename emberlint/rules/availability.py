"""Measured results of operations on the target engines, for the rules EMB4."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from emberlint.inference.callees import Called, called, keyword, spreads
from emberlint.inference.file import File
from emberlint.knowledge import catalogue, matrix
from emberlint.knowledge.engines import EMBER

# Statuses of the matrix for an operation that differs from the reference, and the predicate of the message.
WRONG = {
    "unsupported": "is not supported",
    "differs": "has a different result",
    "fails": "raises",
    "flaky": "has varying results",
}
FATAL = {"hang": "hung", "crash": "crashed the process"}


class Measured(NamedTuple):
    """A call of an operation, and its entry in the matrix for a target engine."""

    function: Called
    engine: str
    entry: dict[str, Any]


def is_operation(name: str) -> bool:
    """Whether a called name is that of an operation."""
    return name.startswith("ember_ml.ops.")


def measured(node: ast.Call, file: File) -> tuple[Measured, ...]:
    """Entries of an operation for the target engines; empty for other calls, or without a matrix."""
    function = called(node, file)
    if function is None or function.engine != EMBER or function.owner is not None or file.allowed is not None:
        return ()
    table = matrix.load(file.config)
    if table is None:
        return ()
    engines = _entries(function.name, table["operations"])
    return tuple(Measured(function, engine, engines[engine]) for engine in file.config.targets if engine in engines)


def _entries(name: str, operations: dict[str, Any]) -> dict[str, Any]:
    """Entries of an operation by engine. The matrix has it under its name, or under its category and name."""
    ember = catalogue.load()["ember"]
    full = ember["names"].get(name)
    if full is None:
        space, _, last = name.rpartition(".")
        full = f"{ember['namespaces'].get(space, space)}.{last}"
        full = ember["aliases"].get(full, full)
    category, _, last = full.rpartition(".")
    found = operations.get(full)
    if found is None:
        found = operations.get(last)
        if found is not None and found.get("category", category) != category:
            found = None
    engines: dict[str, Any] = found["engines"] if found is not None else {}
    return engines


def keywords(node: ast.Call, function: Called) -> Iterator[tuple[str, ast.AST]]:
    """Optional parameters that a call passes, by keyword or by position."""
    record = function.record
    if record is not None and not spreads(node):
        places = [parameter for parameter in catalogue.parameters(record) or () if parameter.kind in "PB"]
        for parameter, argument in zip(places, node.args, strict=False):
            if parameter.default is not None:
                yield parameter.name, argument
    for one in node.keywords:
        if one.arg is not None:
            yield one.arg, one


def dtypes(node: ast.Call, function: Called, file: File) -> Iterator[tuple[str, ast.expr]]:
    """Dtypes that a call names."""
    given = keyword(node, "dtype")
    places = [given.value] if given is not None else []
    if function.last in ("cast", "astype", "saturate_cast"):
        places += node.args[1:2]
    for place in places:
        if type(place) is ast.Constant and isinstance(place.value, str):
            yield place.value, place
        else:
            path = file.path(place)
            if path.rpartition(".")[2] in catalogue.dtypes():
                yield path.rpartition(".")[2], place


def reference(entry: dict[str, Any]) -> str:
    """Example of a difference, for messages."""
    for one in entry.get("differences", ()):
        return f" (`{one['input']}`)"
    return ""


def concerned(name: str, argument: ast.AST, entry: dict[str, Any]) -> str | None:
    """Example of a difference that applies to this argument; ``None`` if none applies, empty if there are no examples.

    If the entry has examples, one of them must have the same source text for the argument: an operation that rejects
    ``axis=()`` is not reported for ``axis=0``.
    """
    value = argument.value if isinstance(argument, ast.keyword) else argument
    examples = [one["input"] for one in entry.get("differences", ())]
    if not examples:
        return ""
    for example in examples:
        found = _given(name, example)
        if found is not None and ast.dump(found) == ast.dump(value):
            return f" (`{example}`)"
    return None


def _given(name: str, example: str) -> ast.expr | None:
    """Value of a keyword in the text of a call."""
    try:
        call = ast.parse(example, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    given = keyword(call, name) if isinstance(call, ast.Call) else None
    return given.value if given is not None else None
