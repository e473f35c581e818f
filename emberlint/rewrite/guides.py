"""What the pages for users of another library show: its calls, the operations that they become, and what differs."""

from __future__ import annotations

from typing import Any

from emberlint.knowledge import catalogue
from emberlint.knowledge.returns import words
from emberlint.rewrite.jax import ADVICE, TRANSFORMS
from emberlint.rewrite.names import differs, operation_for

# Parameters that say where or how a result is stored; operations have none of them, and none is needed.
_STORAGE = words("out where casting order subok signature extobj requires_grad pin_memory layout generator")

_PAIR = "torch returns `(values, indices)` along `dim`; ops returns only the values"
_OTHER = "different arguments or results: see its docstring"
# What differs between functions and operations of the same name, by engine and name.
_REASONS = {
    "numpy": {
        "eig": "NumPy returns real numbers when it can; ops always returns complex numbers",
        "eigvals": "NumPy returns real numbers when it can; ops always returns complex numbers",
        "load": "ops reads .safetensors, .npz and .npy, in the structure that was saved, and never unpickles",
        "save": "ops takes the path first, then any tree of tensors; the suffix sets the format",
    },
    "torch": {
        **dict.fromkeys(("cummax", "cummin", "max", "min", "sort"), _PAIR),
        **dict.fromkeys(("std", "var"), "`correction` defaults to 1 in torch, to 0 in ops"),
        "load": "ops reads .safetensors, .npz and .npy, and never unpickles",
        "median": "torch returns the lower of the two middle values, ops their mean",
        "meshgrid": '`indexing` defaults to "ij" in torch, to "xy" in ops',
        "nanmedian": "torch returns the lower of the two middle values, ops their mean",
        "nonzero": "torch returns one row per element; ops returns a tuple with the indices along each axis",
        "save": "ops takes the path first, and never pickles",
        "split": "torch takes the size of a part; ops takes the number of parts or the split points, as NumPy does",
    },
    "jax": {
        "load": "ops reads .safetensors, .npz and .npy, and never unpickles",
        "save": "ops takes the path first, then any tree of tensors; the suffix sets the format",
    },
}


def renamed(engine: str) -> list[list[str]]:
    """Rows of an engine's functions that are called differently here: the call there, the call here, what differs."""
    rows = []
    for path, record in _functions(engine).items():
        operation = operation_for(path)
        if operation and not differs(path):
            theirs, ours = _names(record), _names(catalogue.operation(operation) or {})
            remark = _remark(path, operation, theirs, ours)
            if remark:
                rows.append([_call(path, theirs), _call(f"ops.{operation}", ours), remark])
    if engine == "jax":
        rows += [
            [f"`{path}`", f"`ember_ml.{row.name}`", "in `ember_ml`, not `ops`"] for path, row in TRANSFORMS.items()
        ]
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
        parts.append("renamed")
    for old, new in (("dim", "axis"), ("dims", "axis"), ("keepdim", "keepdims"), ("ddof", "correction")):
        if old in theirs and new in ours and old not in ours:
            parts.append(f"`{old}` is `{new}`")
    return "; ".join(parts)
