"""Safety of calling the operation instead, according to the measured matrix and the types of the arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from emberlint.findings import UNSAFE
from emberlint.inference.elements import dtype_elements, elements
from emberlint.inference.file import File
from emberlint.inference.values import INT, Value
from emberlint.knowledge import catalogue, matrix
from emberlint.knowledge.catalogue import Parameter
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import ARRAYS, NONE, SCALAR, SEQUENCE, SHAPE, STRING
from emberlint.source.tree import dotted

# Functions that differ from the operation for inputs that the matrix does not measure, with the parameters that cause
# it (or all calls). Examples: 0-d arrays with an axis; complex arrays with a real dtype; numbers out of range; bools as
# indices; lists instead of tuples of arrays; NumPy's order of unique values; torch's dtypes, sizes and errors.
_ALL = "*"
_LOOSE = {
    "numpy.broadcast_arrays": (_ALL,),
    "numpy.cumprod": ("axis", "dtype"),
    "numpy.cumsum": ("axis", "dtype"),
    "numpy.diff": ("n",),
    "numpy.dsplit": (_ALL,),
    "numpy.from_dlpack": (_ALL,),
    "numpy.full_like": (_ALL,),
    "numpy.hsplit": (_ALL,),
    "numpy.isreal": (_ALL,),
    "numpy.meshgrid": (_ALL,),
    "numpy.packbits": ("axis",),
    "numpy.pad": (_ALL,),
    "numpy.prod": ("dtype",),
    "numpy.squeeze": ("axis",),
    "numpy.sum": ("dtype",),
    "numpy.take": (_ALL,),
    "numpy.unique": ("axis",),
    "numpy.unique_values": (_ALL,),
    "numpy.unravel_index": (_ALL,),
    "numpy.vsplit": (_ALL,),
    "torch.bincount": (_ALL,),
    "torch.broadcast_shapes": (_ALL,),
    "torch.get_default_dtype": (_ALL,),
    "torch.unravel_index": (_ALL,),
}
OF_ARRAYS = "safe, if all tensors are arrays"
OF_NUMBERS = "safe, if all tensors are arrays, or the only one is made of numbers"
TENSORS = frozenset({"TensorLike", "Indices", "Mask"})


def is_loose(path: str, names: Iterable[str]) -> bool:
    """Whether function and operation may differ if these parameters are given."""
    loose = _LOOSE.get(path, ())
    return _ALL in loose or any(name in loose for name in names)


def measured_safety(place: str, path: str, count: int, names: tuple[str | None, ...]) -> str:
    """Safety of a rewrite according to the matrix at ``place``, for this number of arguments and these keywords.

    The result is a condition on the types of the arguments (``OF_ARRAYS``, ``OF_NUMBERS``), or ``UNSAFE``.
    """
    measured = matrix.native(path, place)
    if measured is None or not measured.get("errors"):
        return UNSAFE
    keywords = measured.get("keywords", {})
    if not all(keywords.get(name) for name in names):
        return UNSAFE
    if count > len(measured.get("parameters", ())) and measured.get("parameters") is not None:
        return UNSAFE
    if measured.get("same"):
        return OF_NUMBERS
    if not count or not measured.get("arrays") or (count > 1 and not measured.get("mixed")):
        return UNSAFE
    return OF_ARRAYS


def is_measured(node: ast.expr, parameter: Parameter, numbers: bool, file: File) -> bool:
    """Whether an argument is of a type that the matrix measures."""
    value = file.value(node)
    if parameter.role == "DTypeLike":
        return _is_dtype(node, file)
    if parameter.role not in TENSORS:
        return _is_option(node, value, parameter)
    if value is None:
        return False
    if value.kind in ARRAYS:
        return not value.nullable and not any(_is_foreign(step.node) for step in value.chain())
    if not numbers:
        return False
    items = value.items if value.kind == SEQUENCE else (value,)
    return items is not None and all(item is not None and item.is_host for item in items)


def _is_option(node: ast.expr, value: Value | None, parameter: Parameter) -> bool:
    """Whether an option is a literal, or known to be an integer, a bool, or several integers if that is allowed."""
    if value is None:
        return False
    if value.kind == STRING:
        return isinstance(node, ast.Constant)
    if value.kind == NONE:
        return parameter.default == "None"
    if value.kind == SCALAR:
        return value.dtype in ("int", "bool")
    items = value.items if isinstance(node, ast.Tuple) else None
    several = parameter.name != "axis" or parameter.default == "None"
    integers = value.kind == SHAPE or (items is not None and all(item is INT for item in items))
    return several and integers


def _is_dtype(node: ast.expr, file: File) -> bool:
    """Whether a dtype is one of ember's, or an engine's dtype of the same name."""
    if isinstance(node, ast.Constant):
        return node.value is None or node.value in catalogue.dtypes()
    space, _, name = file.path(node).rpartition(".")
    return space in ("numpy", "torch", "ember_ml", "ember_ml.ops") and name in catalogue.dtypes()


def _is_foreign(node: ast.AST | None) -> bool:
    """Whether an array is created with elements that tensors do not support: objects, text, dates, records."""
    if not isinstance(node, ast.Call):
        return False
    dtypes = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    dtypes += [argument for argument in node.args[1:] if isinstance(argument, ast.Name) or _is_text(argument)]
    if not all(map(_may_be_supported, dtypes)):
        return True
    first = node.args[0] if node.args else None
    return isinstance(first, (ast.List, ast.Tuple)) and any(map(_is_text, ast.walk(first)))


def is_unsupported(node: ast.expr, role: str, file: File) -> bool:
    """Whether an argument is neither a tensor nor a dtype of one: text, ``[None] * 3``, ``dtype=object``."""
    if role == "DTypeLike":
        code = node.value if isinstance(node, ast.Constant) else None
        return (code is not None and code not in catalogue.dtypes()) or bool(dtype_elements(node, file))
    return role in TENSORS and bool(elements(node, file))


# Dtypes that tensors do not support.
_UNSUPPORTED = words("object object_ str str_ bytes bytes_ datetime64 timedelta64")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _may_be_supported(node: ast.expr) -> bool:
    """Whether the name of a dtype may be one of ember's."""
    if isinstance(node, ast.Constant):
        return node.value is None or node.value in catalogue.dtypes()
    last = dotted(node).rpartition(".")[2]
    return bool(last) and last not in _UNSUPPORTED
