"""Listing of the operations and their providers."""

from __future__ import annotations

import csv
import inspect
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops as ops  # importing it fills the registry
from ember_ml.dispatch import REGISTRY
from ember_ml.tools import STATUSES, UsageError

FORMATS = ("table", "md", "csv", "html", "json")

PROVIDERS = ("own", "defined", "missing")


@dataclass(frozen=True)
class Entry:
    """Properties of an operation, and its provider on each engine."""

    name: str
    category: str
    signature: str
    dtype_rule: str
    kinds: tuple[str, ...]
    lazy: bool
    differentiable: bool
    summary: str
    providers: dict[str, str]


def entries(category: str | None = None, engines: Sequence[str] | None = None) -> list[Entry]:
    """Operations, optionally of one category, with their providers on the given engines, or all installed ones."""
    known = categories()
    if category is not None and category not in known:
        raise UsageError(f"category must be one of {', '.join(known)}, got {category!r}")
    loaded = [backends.load(name) for name in engines or ember_ml.get_available_backends()]
    return [
        Entry(
            name=name,
            category=operation.category,
            signature=signature(operation.call),
            dtype_rule=operation.rule.name,
            kinds=operation.kinds,
            lazy=operation.lazy,
            differentiable=operation.differentiable,
            summary=(inspect.getdoc(operation.call) or "").partition("\n")[0],
            providers={engine.name: engine.provider(operation) for engine in loaded},
        )
        for name, operation in REGISTRY.items()
        if category in (None, operation.category)
    ]


def categories() -> list[str]:
    """Categories of operations, in alphabetical order."""
    return sorted({operation.category for operation in REGISTRY.values()})


def counts(found: Sequence[Entry]) -> dict[str, dict[str, int]]:
    """Number of operations of each provider, by engine."""
    engines = found[0].providers if found else {}
    tallies = {engine: Counter(entry.providers[engine] for entry in found) for engine in engines}
    return {engine: {kind: tally[kind] for kind in PROVIDERS} for engine, tally in tallies.items()}


def lacking(found: Sequence[Entry]) -> dict[str, list[str]]:
    """Operations that each engine lacks."""
    engines = found[0].providers if found else {}
    return {e: [entry.name for entry in found if entry.providers[e] == "missing"] for e in engines}


def as_json(found: Sequence[Entry]) -> str:
    """Matrix as JSON."""
    facts = {
        "operations": [asdict(entry) for entry in found],
        "counts": counts(found),
        "missing": lacking(found),
    }
    return json.dumps(facts, indent=2) + "\n"


def as_csv(found: Sequence[Entry]) -> str:
    """Matrix as CSV: name, category, dtype rule and one column per engine."""
    engines = list(found[0].providers) if found else []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["operation", "category", "dtype_rule", *engines])
    writer.writerows([e.name, e.category, e.dtype_rule, *(e.providers[engine] for engine in engines)] for e in found)
    return text.getvalue()


def as_markdown(found: Sequence[Entry]) -> str:
    """Matrix as Markdown tables: the counts, then one table per category."""
    engines = list(found[0].providers) if found else []
    parts = [
        table(["engine", *PROVIDERS], [[engine, *map(str, tally.values())] for engine, tally in counts(found).items()])
    ]
    for category in dict.fromkeys(entry.category for entry in found):
        rows = [
            [f"`{entry.name}`", entry.dtype_rule, *(entry.providers[engine] for engine in engines)]
            for entry in found
            if entry.category == category
        ]
        parts += [f"## {category}\n", table(["operation", "dtype rule", *engines], rows)]
    return "\n".join(parts)


def summary(matrix: dict[str, Any]) -> str:
    """Number of operations of each status on each engine, as a Markdown table."""
    engines = list(dict.fromkeys(e for operation in matrix["operations"].values() for e in operation["engines"]))
    tallies = {
        engine: Counter(
            operation["engines"][engine]["status"]
            for operation in matrix["operations"].values()
            if engine in operation["engines"]
        )
        for engine in engines
    }
    shown = [status for status in STATUSES if any(tally[status] for tally in tallies.values())]
    return table(["engine", *shown], [[e, *(str(tallies[e][status]) for status in shown)] for e in engines])


def signature(function: Callable[..., object]) -> str:
    """Signature of a function without annotations."""
    bare = inspect.signature(function)
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in bare.parameters.values()]
    return str(inspect.Signature(parameters))


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown table."""
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
