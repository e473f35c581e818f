"""What the linter knows of ember's operations and of the engines' functions: ``catalogue.json``, which ``generate``
writes.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any, NamedTuple

PATH = os.path.join(os.path.dirname(__file__), "catalogue.json")


class Parameter(NamedTuple):
    """A parameter: ``kind`` is P (by position), B (both ways), K (by keyword), V (``*args``) or W (``**kwargs``).

    ``default`` is its text, ``None`` where there is none; ``role`` is what dispatch makes of it.
    """

    name: str
    kind: str
    default: str | None
    role: str = ""


@cache
def load() -> dict[str, Any]:
    """The whole table."""
    with open(PATH, "rb") as file:
        table: dict[str, Any] = json.loads(file.read())
    return table


@cache
def operation(path: str) -> dict[str, Any] | None:
    """Ember's record of an operation named as under ``ember_ml.ops``: ``sum``, ``stats.sum`` or ``linalg.norm``."""
    ember = load()["ember"]
    full = ember["names"].get(path)
    if full is None:
        space, _, name = path.rpartition(".")
        full = f"{ember['namespaces'].get(space, space)}.{name}"
        full = ember["aliases"].get(full, full)
    record: dict[str, Any] | None = ember["operations"].get(full)
    return record


@cache
def function(path: str) -> dict[str, Any] | None:
    """The record of an engine's function by its full name: ``numpy.linalg.norm``."""
    engine = load()["engines"].get(path.partition(".")[0])
    record: dict[str, Any] | None = engine["functions"].get(path) if engine else None
    return record


def parameters(record: dict[str, Any]) -> list[Parameter] | None:
    """The parameters of a record; ``None`` where the engine does not tell them."""
    rows = record.get("parameters")
    if rows is None:
        return None
    if rows and not isinstance(rows[0], Parameter):
        rows[:] = [Parameter(*row) for row in rows]
    found: list[Parameter] = rows
    return found


def engines() -> tuple[str, ...]:
    """The engines whose functions and methods are known."""
    return tuple(load()["engines"])


@cache
def methods(engine: str) -> frozenset[str]:
    """The methods and properties of an engine's arrays."""
    return frozenset(load()["engines"][engine]["methods"])


@cache
def dtypes() -> frozenset[str]:
    """The names of ember's dtypes."""
    return frozenset(load()["ember"]["dtypes"])


@cache
def constants() -> frozenset[str]:
    """The names of ember's constants: ``pi``, ``inf`` and the like."""
    return frozenset(load()["ember"]["constants"])


@cache
def standard() -> frozenset[str]:
    """The names of the array API standard's functions."""
    return frozenset(load()["standard"])
