"""How safe it is to call the operation: what the measured matrix has established, for arguments of these types."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from emberlint.findings import UNSAFE
from emberlint.inference.file import File
from emberlint.inference.values import INT, Value
from emberlint.knowledge import catalogue, matrix
from emberlint.knowledge.catalogue import Parameter
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import ARRAYS, NONE, SCALAR, SEQUENCE, SHAPE, STRING
from emberlint.source.tree import dotted

# Where function and operation differ for other inputs than the matrix is measured with: the parameters with which they
# do, or all calls. Arrays of no dimensions and an axis; complex arrays and a real dtype; numbers that do not fit; bools
# as indices; lists of arrays that are tuples on the other side; the order in which NumPy finds unique values; torch's
# own dtypes, sizes and errors.
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
    """Whether function and operation may differ where these parameters are given."""
    loose = _LOOSE.get(path, ())
    return _ALL in loose or any(name in loose for name in names)


def measured_safety(place: str, path: str, count: int, names: tuple[str | None, ...]) -> str:
    """Safe where the matrix in a file has established that function and operation agree for as many arguments and these
    keywords, given such arguments as it was measured with.
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
    """Whether an argument is of a kind that the matrix was measured with."""
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
    """Whether an option is written out, or known to be an integer, a bool, or integers where several may be given."""
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
    """Whether a dtype is one of ember's by its name, or NumPy's of the same name."""
    if isinstance(node, ast.Constant):
        return node.value is None or node.value in catalogue.dtypes()
    space, _, name = file.path(node).rpartition(".")
    return space in ("numpy", "torch", "ember_ml", "ember_ml.ops") and name in catalogue.dtypes()


def _is_foreign(node: ast.AST | None) -> bool:
    """Whether an array is made of something that no tensor holds: objects, text, dates, records."""
    if not isinstance(node, ast.Call):
        return False
    dtypes = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    dtypes += [argument for argument in node.args[1:] if isinstance(argument, ast.Name) or _is_text(argument)]
    if not all(map(_may_be_held, dtypes)):
        return True
    first = node.args[0] if node.args else None
    return isinstance(first, (ast.List, ast.Tuple)) and any(map(_is_text, ast.walk(first)))


def is_unheld(node: ast.expr, role: str) -> bool:
    """Whether an argument is written out, and no tensor and no dtype of one: text, ``dtype=object``."""
    if role == "DTypeLike":
        return isinstance(node, (ast.Constant, ast.Name, ast.Attribute)) and not _may_be_held(node)
    if role not in TENSORS:
        return False
    return _is_text(node) or (isinstance(node, ast.List) and any(map(_is_text, node.elts)))


# The dtypes of arrays that no tensor is.
_UNHELD = words("object object_ str str_ bytes bytes_ datetime64 timedelta64")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _may_be_held(node: ast.expr) -> bool:
    """Whether the text of a dtype may mean one of ember's."""
    if isinstance(node, ast.Constant):
        return node.value is None or node.value in catalogue.dtypes()
    last = dotted(node).rpartition(".")[2]
    return bool(last) and last not in _UNHELD
