"""The first difference between two descriptions of values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from emberlint.trial.descriptions import Description, shown

# From a difference that tests notice to one of the last digits.
TOLERANCES = (1e-5, 1e-9, 1e-14)
_SEQUENCES = ("array", "sequence")


class Difference(NamedTuple):
    """A difference: the path to the part of the value, and both parts as text."""

    part: str
    before: str
    after: str


def difference(before: Description, after: Description, tolerance: float, part: str = "") -> Difference | None:
    """First difference in value or shape. Types and dtypes may differ, and a list may be an array of its elements."""
    kinds = before["kind"], after["kind"]
    if kinds == ("array", "array"):
        return _of_arrays(before, after, tolerance, part)
    if kinds[0] != kinds[1] and all(kind in _SEQUENCES for kind in kinds):
        return Difference(part, shown(before), shown(after)) if _differ(before, after, tolerance) else None
    if kinds[0] != kinds[1]:
        return Difference(part, _with_type(before), _with_type(after))
    if kinds[0] == "sequence":
        if before["size"] != after["size"]:
            return Difference(part, f"{before['size']} elements", f"{after['size']} elements")
        pairs = zip(before["members"], after["members"], strict=False)
        for i, (left, right) in enumerate(pairs):
            if found := difference(left, right, tolerance, f"{part}[{i}]"):
                return found
        return None
    if kinds[0] in ("mapping", "object"):
        return _of_members(before, after, tolerance, part)
    if before.get("text") != after.get("text") and kinds[0] == "text":
        return Difference(part, shown(before), shown(after))
    return None


def _differ(before: Description, after: Description, tolerance: float) -> bool:
    """Whether an array and a sequence differ; of a sequence that is not described whole, the length is compared."""
    left, right = _as_array(before), _as_array(after)
    if left is not None and right is not None:
        return _of_arrays(left, right, tolerance, "") is not None
    sequence, array = (before, after) if before["kind"] == "sequence" else (after, before)
    return bool(len(sequence["members"]) == sequence["size"] or [sequence["size"]] != array["shape"][:1])


def _of_members(before: Description, after: Description, tolerance: float, part: str) -> Difference | None:
    left, right = before["members"], after["members"]
    for key in left.keys() & right.keys():
        inner = f"{part}.{key}" if before["kind"] == "object" else f"{part}[{key}]"
        if found := difference(left[key], right[key], tolerance, inner):
            return found
    missing = left.keys() ^ right.keys()
    if missing and before["size"] == len(left) and after["size"] == len(right):
        return Difference(part, f"keys {', '.join(left)}", f"keys {', '.join(right)}")
    return None


def _with_type(value: Description) -> str:
    text = shown(value)
    return text if value["type"] in text else f"{text} ({value['type']})"


def _of_arrays(before: Description, after: Description, tolerance: float, part: str) -> Difference | None:
    if before["shape"] != after["shape"]:
        return Difference(part, _with_shape(before), _with_shape(after))
    for name in ("values", "sums"):
        left, right = before.get(name), after.get(name)
        if left is not None and right is not None and not _are_close(left, right, tolerance):
            return Difference(part, shown(before), shown(after))
    return None


def _with_shape(value: Description) -> str:
    return f"{shown(value)} (shape [{', '.join(map(str, value['shape']))}])"


def _are_close(left: list[Any], right: list[Any], tolerance: float) -> bool:
    """Whether numbers agree; one that is almost zero is compared with the largest of them, and with 1e-4."""
    size = max((abs(part) for number in left for part in _both(number) if math.isfinite(part)), default=0.0)
    least = max(1e-3 * size, 1e-4)
    return all(
        one == other or (math.isnan(one) and math.isnan(other)) or abs(one - other) <= tolerance * max(abs(one), least)
        for a, b in zip(left, right, strict=False)
        for one, other in zip(_both(a), _both(b), strict=True)
    )


def _both(number: Any) -> tuple[Any, Any]:
    """Real and imaginary part."""
    return (number[0], number[1]) if isinstance(number, list) else (number, 0.0)


def _as_array(value: Description) -> Description | None:
    """An array with the elements of a sequence of numbers or of arrays of one shape; ``None`` if it is not one."""
    if value["kind"] == "array":
        return value
    if value["kind"] != "sequence" or value["size"] != len(value["members"]):
        return None
    members = [_as_array(member) for member in value["members"]]
    shapes = {tuple(member["shape"]) if member else None for member in members}
    if None in shapes or len(shapes) > 1:
        return None
    numbers = [number for member in members if member for number in member["values"]]
    shape = [len(members), *(shapes.pop() if shapes else ())]  # type: ignore[misc]
    return {"kind": "array", "type": value["type"], "dtype": "", "shape": shape, "values": numbers}


def type_difference(before: Description, after: Description, part: str = "") -> Difference | None:
    """First difference of dtypes or, if there is none, of types, where the values are the same."""
    found = _type_differences(before, after, part)
    return next((one for is_dtype, one in found if is_dtype), found[0][1] if found else None)


def _type_differences(before: Description, after: Description, part: str) -> list[tuple[bool, Difference]]:
    """Differences of types, each with whether it is one of dtypes."""
    if before["kind"] == after["kind"] == "array":
        left, right = before["dtype"], after["dtype"]
        names = (f"{one['type']} of {one['dtype']}" for one in (before, after))
        if left != right or before["type"] != after["type"]:
            return [(left != right, Difference(part, *names))]
        return []
    if before["kind"] == after["kind"] and "members" in before:
        left, right = before["members"], after["members"]
        if isinstance(left, dict):
            pairs = [(f"{part}.{key}", left[key], right[key]) for key in left if key in right]
        else:
            pairs = [(f"{part}[{i}]", one, two) for i, (one, two) in enumerate(zip(left, right, strict=False))]
        return [found for name, one, two in pairs for found in _type_differences(one, two, name)]
    if before["type"] != after["type"]:
        return [(False, Difference(part, before["type"], after["type"]))]
    return []
