"""Validation of JSON that people may have edited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_NAMES: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


class Each:
    """An object with any keys, whose values all have one shape."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


class Fields:
    """An object with at least these keys, each with its shape; ``optional`` ones may be missing."""

    def __init__(self, required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> None:
        self.required = required
        self.optional = optional or {}


def fault(value: Any, shape: Any, where: str) -> str:
    """Message about the first part of a value that does not have its shape; empty if there is none.

    A shape is a type, ``Each``, ``Fields`` or a list with the shape of its elements. ``where`` names the value.

    >>> fault({"a": [1, 2]}, Each([str]), "table")
    'table["a"][0] must be a string, got 1'
    """
    if isinstance(shape, type):
        return "" if isinstance(value, shape) else _wrong(where, _NAMES[shape], value)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _wrong(where, _NAMES[list], value)
        parts = [(f"{where}[{i}]", item, shape[0]) for i, item in enumerate(value)]
    elif not isinstance(value, dict):
        return _wrong(where, _NAMES[dict], value)
    elif isinstance(shape, Each):
        parts = [(_at(where, key), item, shape.shape) for key, item in value.items()]
    else:
        for key in shape.required:
            if key not in value:
                return f"{_at(where, key)} is missing"
        shapes = {**shape.required, **shape.optional}
        parts = [(_at(where, key), value[key], inner) for key, inner in shapes.items() if key in value]
    for name, item, inner in parts:
        found = fault(item, inner, name)
        if found:
            return found
    return ""


def _at(where: str, key: str) -> str:
    return f"{where}[{json.dumps(key)}]"


def _wrong(where: str, expected: str, value: Any) -> str:
    text = json.dumps(value)
    return f"{where} must be {expected}, got {text if len(text) <= 60 else text[:57] + '...'}"
