"""What the pages for users of another library show: its calls, the operations that they become, and what differs."""

from __future__ import annotations

from typing import Any

from emberlint.knowledge import catalogue
from emberlint.knowledge.returns import words
from emberlint.rewrite.jax import ADVICE, TRANSFORMS
from emberlint.rewrite.names import differs, operation_for

# Parameters that say where or how a result is stored; operations have none of them, and none is needed.
_STORAGE = words("out where casting order subok signature extobj requires_grad pin_memory layout generator")

_PAIR = "torch returns a pair of values and indices along `dim`, ops the values alone"
_OTHER = "another result or other arguments: see its help"
# What differs between functions and operations of the same name, by engine and name.
_REASONS = {
    "numpy": {
        "eig": "NumPy returns real numbers where it can, ops always complex ones",
        "eigvals": "NumPy returns real numbers where it can, ops always complex ones",
        "load": "ops reads .safetensors, .npz and .npy, into the structure that was saved; nothing is unpickled",
        "save": "ops takes the path first and any tree of tensors; the suffix is the format",
    },
    "torch": {
        **dict.fromkeys(("cummax", "cummin", "max", "min", "sort"), _PAIR),
        **dict.fromkeys(("std", "var"), "`correction` is 1 by default in torch, 0 in ops"),
        "load": "ops reads .safetensors, .npz and .npy; nothing is unpickled",
        "median": "torch returns the lower of the middle two, ops their mean",
        "meshgrid": '`indexing` is "ij" by default in torch, "xy" in ops',
        "nanmedian": "torch returns the lower of the middle two, ops their mean",
        "nonzero": "torch returns a row for each element, ops a tuple with the indices of each axis",
        "save": "ops takes the path first, and pickles nothing",
        "split": "torch takes the length of a part, ops the number of parts or where to cut, as NumPy",
    },
    "jax": {
        "load": "ops reads .safetensors, .npz and .npy; nothing is unpickled",
        "save": "ops takes the path first and any tree of tensors; the suffix is the format",
    },
}


def renamed(engine: str) -> list[list[str]]:
    """Rows of an engine's functions that are written in another way here: their call, our call, what differs."""
    rows = []
    for path, record in _functions(engine).items():
        operation = operation_for(path)
        if operation and not differs(path):
            theirs, ours = _names(record), _names(catalogue.operation(operation) or {})
            remark = _remark(path, operation, theirs, ours)
            if remark:
                rows.append([_call(path, theirs), _call(f"ops.{operation}", ours), remark])
    if engine == "jax":
        rows += [[f"`{path}`", f"`ember_ml.{row.name}`", "a transform"] for path, row in TRANSFORMS.items()]
    return rows


def different(engine: str) -> list[list[str]]:
    """Rows of an engine's functions that are not ported, since the operation of that name means something else."""
    rows = []
    for path, record in _functions(engine).items():
        if differs(path):
            name = path.rpartition(".")[2]
            ours = catalogue.operation(name)
            remark = _REASONS[engine].get(name, _OTHER)
            rows.append([_call(path, _names(record)), _call(f"ops.{name}", _names(ours or {})), remark])
    if engine == "jax":
        rows += [[f"`{path}`", "", advice] for path, advice in ADVICE.items()]
    return rows


def same(engine: str) -> list[str]:
    """Names of an engine's functions whose calls are the same here, apart from the module."""
    found = []
    for path, record in _functions(engine).items():
        operation = operation_for(path)
        if operation and not differs(path):
            ours = _names(catalogue.operation(operation) or {})
            if not _remark(path, operation, _names(record), ours):
                found.append(operation)
    return sorted(set(found))


def _functions(engine: str) -> dict[str, Any]:
    functions: dict[str, Any] = catalogue.load()["engines"][engine]["functions"]
    return functions


def _names(record: dict[str, Any]) -> list[str]:
    """Names of the parameters that a caller gives, without those for storage."""
    rows = catalogue.parameters(record) or []
    return [row.name for row in rows if row.kind != "W" and row.name not in _STORAGE]


def _call(path: str, names: list[str]) -> str:
    return f"`{path}({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})`" if names else f"`{path}`"


def _remark(path: str, operation: str, theirs: list[str], ours: list[str]) -> str:
    """What a reader has to change in a call; empty if nothing."""
    parts = []
    if path.rpartition(".")[2] != operation.rpartition(".")[2]:
        parts.append("another name")
    for old, new in (("dim", "axis"), ("dims", "axis"), ("keepdim", "keepdims"), ("ddof", "correction")):
        if old in theirs and new in ours and old not in ours:
            parts.append(f"`{old}` is `{new}`")
    return "; ".join(parts)
