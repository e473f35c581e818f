"""The matrix of operations as a self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ember_ml
from ember_ml.tools.operations import Entry

_TEMPLATE = Path(__file__).with_name("page.html")


def page(found: Sequence[Entry], matrix: dict[str, Any] | None = None) -> str:
    """HTML page of these operations, with their measurements if a matrix is given."""
    measured = matrix["operations"] if matrix else {}
    operations = []
    for entry in found:
        facts = asdict(entry)
        facts["measured"] = {
            engine: result
            for engine, result in measured.get(entry.name, {}).get("engines", {}).items()
            if engine in entry.providers
        }
        operations.append(facts)
    data = {
        "version": ember_ml.__version__,
        "versions": matrix["versions"] if matrix else {},
        "engines": list(found[0].providers) if found else [],
        "operations": operations,
    }
    # A closing tag inside a string would end the script.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return _TEMPLATE.read_text(encoding="utf-8").replace("{{data}}", text)
