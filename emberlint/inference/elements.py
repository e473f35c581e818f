"""Elements that tensors cannot hold: objects, text, dates and records."""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.inference.values import Value
from emberlint.knowledge.types import DTYPE, INSTANCE, NONE, SEQUENCE, STRING
from emberlint.source.tree import dotted

# Path of the value of an array that holds what tensors cannot hold.
UNSUPPORTED = "numpy.ndarray of objects"

OBJECTS = "objects"
TEXT = "text"
DATES = "dates"
RECORDS = "records"

_NAMED = {
    "object": OBJECTS,
    "object_": OBJECTS,
    "O": OBJECTS,
    "str": TEXT,
    "str_": TEXT,
    "unicode_": TEXT,
    "bytes": TEXT,
    "bytes_": TEXT,
    "void": RECORDS,
    "datetime64": DATES,
    "timedelta64": DATES,
    "Decimal": OBJECTS,
    "Fraction": OBJECTS,
}
# First letters of NumPy's dtype codes, after the byte order: "<U8", "M8[ns]".
_CODES = {"U": TEXT, "S": TEXT, "a": TEXT, "V": RECORDS, "M": DATES, "m": DATES, "O": OBJECTS}

# Position of the values and of the dtype in functions that create arrays; -1 if there are no values.
_CREATION = {
    "array": (0, 1),
    "asarray": (0, 1),
    "asanyarray": (0, 1),
    "ascontiguousarray": (0, 1),
    "empty": (-1, 1),
    "empty_like": (0, 1),
    "fromiter": (-1, 1),
    "full": (1, 2),
    "full_like": (1, 2),
    "ones": (-1, 1),
    "ones_like": (0, 1),
    "zeros": (-1, 1),
    "zeros_like": (0, 1),
}


def created_elements(name: str, node: ast.Call, file: File) -> str:
    """What the array that a function of NumPy creates holds, if tensors cannot hold it; empty if they may."""
    places = _CREATION.get(name)
    if places is None:
        return ""
    values, dtypes = places
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            return dtype_elements(keyword.value, file)
        if keyword.arg == "fill_value" and values == 1 and (found := elements(keyword.value, file)):
            return found
    if len(node.args) > dtypes and (found := dtype_elements(node.args[dtypes], file)):
        return found
    return elements(node.args[values], file) if 0 <= values < len(node.args) else ""


def dtype_elements(node: ast.expr, file: File) -> str:
    """What arrays of a dtype hold, if tensors cannot hold it; empty if they may."""
    if isinstance(node, (ast.List, ast.ListComp, ast.Dict)):
        return RECORDS
    if isinstance(node, ast.Tuple):
        return dtype_elements(node.elts[0], file) if node.elts else ""
    if isinstance(node, ast.Constant):
        return _coded(node.value) if isinstance(node.value, str) else ""
    if isinstance(node, ast.Call):
        return dtype_elements(node.args[0], file) if node.args and dotted(node.func).endswith("dtype") else ""
    value = file.value(node)
    if value is not None and value.kind == DTYPE:
        return value.dtype or ""
    return _NAMED.get(dotted(node).rpartition(".")[2], "")


def _coded(text: str) -> str:
    if text in _NAMED:
        return _NAMED[text]
    if "," in text:
        return RECORDS
    code = text.lstrip("<>=|")
    if code.startswith(("datetime64", "timedelta64")):
        return DATES
    return _CODES.get(code[:1], "") if code[1:2].isdigit() or code[1:2] in ("", "[") else ""


def elements(node: ast.expr, file: File) -> str:
    """What an argument holds, if tensors cannot hold it; empty if they may."""
    if isinstance(node, ast.Constant):
        return TEXT if isinstance(node.value, (str, bytes)) else OBJECTS if node.value is None else ""
    if isinstance(node, (ast.List, ast.Tuple)):
        return next(filter(None, (elements(part, file) for part in node.elts)), "")
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return elements(node.elt, file)
    if isinstance(node, ast.BinOp) and isinstance(node.left, (ast.List, ast.Tuple, ast.BinOp)):
        return elements(node.left, file) or (elements(node.right, file) if isinstance(node.op, ast.Add) else "")
    if isinstance(node, (ast.Dict, ast.DictComp, ast.Set, ast.SetComp, ast.Lambda, ast.JoinedStr)):
        return TEXT if isinstance(node, ast.JoinedStr) else OBJECTS
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("Decimal", "Fraction", "slice"):
        return OBJECTS
    if isinstance(node, ast.Call) and dotted(node.func) in ("list", "tuple") and node.args:
        return elements(node.args[0], file)
    value = file.value(node)
    # A variable or attribute that is None here may hold an array later.
    return _held(value) if value is not None and value.kind != NONE else ""


def _held(value: Value | None, depth: int = 4) -> str:
    """What a value holds, if tensors cannot hold it."""
    if value is None or not depth:
        return ""
    if value.kind == STRING:
        return TEXT
    if value.kind == NONE or (value.kind == INSTANCE and value.path == UNSUPPORTED):
        return OBJECTS
    if value.kind == SEQUENCE:
        parts = value.items if value.items is not None else (value.element,)
        return next(filter(None, (_held(part, depth - 1) for part in parts)), "")
    return ""
