"""Ember's operations and the engines' functions, from ``catalogue.json``, which ``emberlint.generate`` writes."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any, NamedTuple

PATH = os.path.join(os.path.dirname(__file__), "catalogue.json")


class Parameter(NamedTuple):
    """A parameter.

    ``kind`` is P (by position), B (by position or keyword), K (by keyword), V (``*args``) or W (``**kwargs``).
    ``default`` is the source text of the default, ``None`` if there is none. ``role`` is the annotation that says how
    dispatch converts the argument.
    """

    name: str
    kind: str
    default: str | None
    role: str = ""


@cache
def load() -> dict[str, Any]:
    """The complete catalogue."""
    with open(PATH, "rb") as file:
        table: dict[str, Any] = json.loads(file.read())
    return table


@cache
def operation(path: str) -> dict[str, Any] | None:
    """Record of an operation by its name under ``ember_ml.ops``: ``sum``, ``stats.sum`` or ``linalg.norm``."""
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
    """Record of an engine's function by its full name: ``numpy.linalg.norm``."""
    engine = load()["engines"].get(path.partition(".")[0])
    record: dict[str, Any] | None = engine["functions"].get(path) if engine else None
    return record


def parameters(record: dict[str, Any]) -> list[Parameter] | None:
    """Parameters of a record; ``None`` if the engine does not document them."""
    rows = record.get("parameters")
    if rows is None:
        return None
    if rows and not isinstance(rows[0], Parameter):
        rows[:] = [Parameter(*row) for row in rows]
    found: list[Parameter] = rows
    return found


@cache
def out_place(path: str) -> int:
    """Index of ``out`` among the positional parameters of an engine's function, or -1."""
    names = [row.name for row in parameters(function(path) or {}) or () if row.kind in "PB"]
    return names.index("out") if "out" in names else -1


def engines() -> tuple[str, ...]:
    """Engines whose functions and methods are in the catalogue."""
    return tuple(load()["engines"])


@cache
def methods(engine: str) -> frozenset[str]:
    """Methods and properties of an engine's arrays; none for an engine that is not in the catalogue."""
    return frozenset(load()["engines"].get(engine, {}).get("methods", ()))


@cache
def dtypes() -> frozenset[str]:
    """Names of ember's dtypes."""
    return frozenset(load()["ember"]["dtypes"])


@cache
def constants() -> frozenset[str]:
    """Names of ember's constants, such as ``pi`` and ``inf``."""
    return frozenset(load()["ember"]["constants"])


@cache
def standard() -> frozenset[str]:
    """Names of the array API standard's functions."""
    return frozenset(load()["standard"])
