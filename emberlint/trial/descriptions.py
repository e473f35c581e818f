"""Descriptions of values, as JSON, that are comparable between a run with NumPy arrays and one with tensors.

A description is a dictionary. ``kind`` is ``array`` (numbers too: they are arrays of shape ``[]``), ``text``,
``sequence``, ``mapping``, ``object``, ``other`` or, for a call that raised, ``error``. Large values are sampled, so a
description has a bounded size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

Description = dict[str, Any]

ELEMENTS = 64
MEMBERS = 16
DEPTH = 4
PARTS = 100
TEXT = 200
# Arrays up to this size are read whole; of larger ones, only the sample is.
SUMMED = 200_000
_NUMBERS = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def described(value: object) -> Description:
    """Description of a value."""
    return _described(value, DEPTH, [PARTS])


def _described(value: object, depth: int, budget: list[int]) -> Description:
    """Description of a part of a value. ``budget`` holds the number of parts that may still be described."""
    kind = type(value)
    if kind in _NUMBERS:
        return _array(kind.__name__, _NUMBERS[kind], [], [value])
    if isinstance(value, str):
        return {"kind": "text", "type": kind.__name__, "text": value[:TEXT]}
    if value is None or isinstance(value, (bytes, type)) or hasattr(value, "__code__") or isinstance(value, Iterator):
        text = "None" if value is None else getattr(value, "__qualname__", "")
        return {"kind": "other", "type": kind.__name__, "text": text}
    try:
        if hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "tolist"):
            return _described_array(value, depth, budget)
        if isinstance(value, (list, tuple)):
            return _sequence(kind.__name__, value, len(value), depth, budget)
        if isinstance(value, Mapping):
            return _mapping(kind.__name__, value.items(), len(value), depth, budget)
        if isinstance(value, (set, frozenset)):
            return _sequence(kind.__name__, sorted(value, key=repr), len(value), depth, budget)
    except Exception as error:  # a value of the user's classes may raise anything
        return {"kind": "other", "type": kind.__name__, "text": f"not readable: {type(error).__name__}"}
    state = getattr(value, "__dict__", None)
    if not isinstance(state, dict) or kind.__name__ == "module":
        return {"kind": "other", "type": kind.__name__, "text": ""}
    return {**_mapping(kind.__name__, list(state.items()), len(state), depth, budget), "kind": "object"}


def _described_array(value: Any, depth: int, budget: list[int]) -> Description:
    shape = [int(size) for size in value.shape]
    size = math.prod(shape)
    dtype = str(value.dtype).rpartition(".")[2]
    step = max(1, -(-size // ELEMENTS))
    whole = size <= SUMMED
    flat = value if not shape else value.reshape(-1)
    numbers = [flat.tolist()] if not shape else (flat if whole else flat[::step]).tolist()
    if not all(type(number) in _NUMBERS for number in numbers):
        return _sequence(f"{type(value).__name__} of {dtype}", numbers, size, depth, budget)
    found = _array(type(value).__name__, dtype, shape, numbers[::step] if whole else numbers)
    if step > 1 and whole:
        found["sums"] = _parts([sum(numbers), sum(number * i for i, number in enumerate(numbers)) / size])
    return found


def _array(kind: str, dtype: str, shape: list[int], numbers: list[Any]) -> Description:
    return {"kind": "array", "type": kind, "dtype": dtype, "shape": shape, "values": _parts(numbers)}


def _parts(numbers: Iterable[Any]) -> list[Any]:
    """Numbers as JSON has them: the real and the imaginary part of a complex number are a list."""
    return [[number.real, number.imag] if isinstance(number, complex) else number for number in numbers]


def _sequence(kind: str, values: Iterable[Any], size: int, depth: int, budget: list[int]) -> Description:
    members = [_described(value, depth - 1, budget) for value in _some(values, depth, budget)]
    return {"kind": "sequence", "type": kind, "size": size, "members": members}


def _mapping(kind: str, items: Iterable[tuple[Any, Any]], size: int, depth: int, budget: list[int]) -> Description:
    members = {_key(key): _described(value, depth - 1, budget) for key, value in _some(items, depth, budget)}
    return {"kind": "mapping", "type": kind, "size": size, "members": members}


def _some(values: Iterable[Any], depth: int, budget: list[int]) -> list[Any]:
    """The first of some values, as many as may still be described."""
    found = list(islice(values, min(MEMBERS, budget[0]) if depth else 0))
    budget[0] -= len(found)
    return found


def _key(key: object) -> str:
    """Text of a key, the same for a NumPy number, a tensor of one number and a Python number."""
    if hasattr(key, "tolist"):
        key = key.tolist()
    return key[:TEXT] if isinstance(key, str) else repr(key)[:TEXT]


def shown(value: Description, width: int = 90) -> str:
    """Short text of a description."""
    text = _shown(value)
    return text if len(text) <= width else text[: width - 4] + " ..."


def _shown(value: Description) -> str:
    match value["kind"]:
        case "array" if not value["shape"]:
            return _number(value["values"][0])
        case "array":
            numbers = " ".join(_number(number) for number in value["values"][:ELEMENTS])
            shape = ", ".join(map(str, value["shape"]))
            return f"[{numbers}]" if len(value["shape"]) == 1 else f"[{numbers}] of shape [{shape}]"
        case "text":
            return repr(value["text"])
        case "sequence":
            return f"{value['type']}({', '.join(map(_shown, value['members']))})"
        case "mapping" | "object":
            inner = ", ".join(f"{key}={_shown(member)}" for key, member in value["members"].items())
            return f"{value['type']}({inner})"
        case "error":
            return "an exception"
    return value["text"] or str(value["type"])


def _number(number: Any) -> str:
    if isinstance(number, list):
        return f"{number[0]:.6g}{number[1]:+.6g}j"
    return f"{number:.6g}" if isinstance(number, float) else str(number)
