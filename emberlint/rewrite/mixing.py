"""Rewriting of expressions that combine tensors with arrays that may belong to NumPy.

After a port, operations return tensors of the active backend. Arguments, attributes and the results of other libraries
may still be NumPy arrays: ``array - tensor`` and ``tensor[0] = array`` raise on torch, ``tensor @ array`` on MLX.
Operations accept both.
"""

from __future__ import annotations

import ast
from typing import Any

from emberlint.findings import Edit
from emberlint.inference.file import File
from emberlint.inference.values import Value
from emberlint.knowledge.engines import EMBER, engine_of
from emberlint.knowledge.operators import BINARY, COMPARED, Sign
from emberlint.knowledge.types import DTYPE, HOST, INSTANCE, NONE, REFERENCE, SCALAR, SEQUENCE, SHAPE, STRING
from emberlint.rewrite.imports import import_name

_NUMBERS = frozenset({SCALAR, SHAPE, STRING, NONE, DTYPE})
_OWN, _CALLERS, _UNKNOWN, _NO_ARRAY = "own", "caller's", "unknown", "no array"


def operator(node: ast.BinOp | ast.Compare, file: File) -> tuple[Edit, ...]:
    """Edits that call the operation instead of an operator, if an operand may be a NumPy array; else none."""
    found = _sign(node)
    if found is None:
        return ()
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.left, node.comparators[0])
    if not _mixes(left, right, found, file):
        return ()
    bound, imports = import_name(file.config.namespace, file)
    parts = ", ".join(_bare(part, file) for part in (left, right))
    return (*imports, file.edit(node, f"{bound}.{found.operation}({parts})"))


def _sign(node: ast.BinOp | ast.Compare) -> Sign | None:
    if isinstance(node, ast.BinOp):
        return BINARY.get(type(node.op))
    if len(node.ops) != 1 or (type(node.comparators[0]) is ast.Constant and node.comparators[0].value is None):
        return None
    return COMPARED.get(type(node.ops[0]))


# Operators that an engine's tensors reject if the right operand is a NumPy array.
_STRICT = frozenset({"@", "<", "<=", ">", ">="})


def _mixes(left: ast.expr, right: ast.expr, found: Sign, file: File) -> bool:
    """Whether the operands of an operator may be a NumPy array and a tensor, in an order that an engine rejects."""
    first, second = _origin(left, file), _origin(right, file)
    if found.sign == "@" and _OWN in (first, second):
        return True  # torch does not promote the dtypes of a product
    if _NO_ARRAY in (first, second) or first == second == _OWN:
        return False
    if _UNKNOWN in (first, second) and found.operation in ("equal", "not_equal"):
        return False  # the value may be None or text
    if second == _OWN:
        return True
    if first == _OWN:
        return found.sign in _STRICT
    # Two arguments come from the same caller; attributes may be of different engines.
    return first == second == _CALLERS and not (_is_argument(left, file) and _is_argument(right, file))


def _origin(node: ast.expr, file: File, depth: int = 8) -> str:
    """Where the array of an expression comes from: an operation, the caller, or it is not known."""
    value = file.value(node)
    if type(node) is ast.Constant:
        return _NO_ARRAY
    if value is None:
        return _UNKNOWN
    if not value.is_array:
        return _NO_ARRAY if value.kind in _NUMBERS or value.kind == REFERENCE else _UNKNOWN
    if value.argument or _is_attribute(node, file):
        return _CALLERS
    if value.kind == HOST and value.engine == "numpy":
        return _CALLERS
    if isinstance(node, ast.Call):
        return _OWN if engine_of(file.path(node.func)) == EMBER else _UNKNOWN
    if not depth:
        return _UNKNOWN
    if isinstance(node, ast.Subscript):
        return _origin(node.value, file, depth - 1)
    if isinstance(node, ast.UnaryOp):
        return _origin(node.operand, file, depth - 1)
    if isinstance(node, ast.BinOp):
        origins = {_origin(part, file, depth - 1) for part in (node.left, node.right)}
        return _OWN if _OWN in origins else _CALLERS if _CALLERS in origins else _UNKNOWN
    if isinstance(value.node, ast.expr) and value.node is not node:
        return _origin(value.node, file, depth - 1)
    return _OWN if _is_computed(value) else _UNKNOWN


def _is_computed(value: Value) -> bool:
    return value.engine == EMBER and isinstance(value.node, ast.Call)


def _is_attribute(node: ast.expr, file: File) -> bool:
    """Whether an expression is an attribute of an instance, which code outside of the class may set."""
    if type(node) is not ast.Attribute:
        return False
    owner = file.value(node.value)
    return owner is not None and owner.kind == INSTANCE


def _is_argument(node: ast.expr, file: File) -> bool:
    """Whether an expression is computed from arguments and numbers only."""
    if isinstance(node, ast.BinOp):
        return all(_is_argument(part, file) or _origin(part, file) == _NO_ARRAY for part in (node.left, node.right))
    if isinstance(node, (ast.Subscript, ast.UnaryOp)):
        return _is_argument(node.value if isinstance(node, ast.Subscript) else node.operand, file)
    value = file.value(node)
    if value is not None and value.argument:
        return True
    # A variable that was computed from arguments.
    return (
        value is not None
        and isinstance(node, ast.Name)
        and isinstance(value.node, (ast.BinOp, ast.Subscript))
        and (_is_argument(value.node, file))
    )


def assigned(node: ast.Assign, file: File) -> tuple[Edit, ...]:
    """Edits that convert a value assigned to elements of a tensor, if it may be a NumPy array or a list; else none."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Subscript):
        return ()
    value = file.value(target.value)
    if value is None or not value.is_array or (value.kind == HOST and value.engine == "numpy"):
        return ()
    given = node.value
    origin = _origin(given, file)
    gathers = not _is_basic(target.slice, file)
    if isinstance(given, (ast.Await, ast.Yield, ast.YieldFrom)) or origin == _NO_ARRAY:
        return ()
    if _is_converted(given, gathers, file) or (origin == _OWN and not gathers):
        return ()
    bound, imports = import_name(file.config.namespace, file)
    # torch assigns to an index array only values of the same dtype.
    dtype = f", dtype={file.text(target.value)}.dtype" if gathers else ""
    return (*imports, file.edit(given, f"{bound}.asarray({_bare(given, file)}{dtype})"))


def _is_converted(node: ast.expr, typed: bool, file: File) -> bool:
    """Whether a value is the result of ``ops.asarray``, with a dtype if ``typed``."""
    if not isinstance(node, ast.Call) or not file.path(node.func).endswith("ops.asarray"):
        return False
    return not typed or any(keyword.arg == "dtype" for keyword in node.keywords)


def _is_basic(index: ast.expr, file: File) -> bool:
    """Whether no part of an index is known to be an array or a list."""
    for part in index.elts if isinstance(index, ast.Tuple) else [index]:
        value = file.value(part)
        if isinstance(part, ast.List) or (value is not None and (value.is_array or value.kind == SEQUENCE)):
            return False
    return True


def may_reject(node: ast.AugAssign, file: File) -> bool:
    """Whether an augmented assignment has a tensor on the right, and may have a NumPy array on the left."""
    target = node.target
    return _origin(node.value, file) == _OWN and _origin(target, file) in (_CALLERS, _UNKNOWN)


def indexed(node: ast.Subscript, file: File) -> tuple[Edit, ...]:
    """Edits that call ``ops.index_get`` if a tensor is indexed by a mask or a NumPy array; else none."""
    if type(node.ctx) is not ast.Load:
        return ()
    owner = file.value(node.value)
    if owner is None or not owner.is_array or (owner.kind == HOST and owner.engine == "numpy"):
        return ()
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not any(_is_array_index(part, file) for part in parts) or any(type(part) is ast.Starred for part in parts):
        return ()
    bound, imports = import_name(file.config.namespace, file)
    texts = [_index(part, file) for part in parts]
    index = f"({', '.join(texts)}{',' if len(texts) == 1 else ''})" if isinstance(node.slice, ast.Tuple) else texts[0]
    return (*imports, file.edit(node, f"{bound}.index_get({file.text(node.value)}, {index})"))


def _is_array_index(node: ast.expr, file: File) -> bool:
    """Whether an index may be a mask, or an array that may belong to NumPy."""
    value = file.value(node)
    return value is not None and value.is_array and (value.dtype != "int" or _origin(node, file) != _OWN)


def _index(node: ast.expr, file: File) -> str:
    if not isinstance(node, ast.Slice):
        return _bare(node, file)
    ends = [file.text(part) if part is not None else "None" for part in (node.lower, node.upper)]
    step = f", {file.text(node.step)}" if node.step is not None else ""
    return f"slice({ends[0]}, {ends[1]}{step})"


def _bare(node: Any, file: File) -> str:
    text = file.text(node)
    if isinstance(node, ast.Tuple) and not text.startswith("("):
        return f"({text})"
    return f"({text})" if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.GeneratorExp)) else text
