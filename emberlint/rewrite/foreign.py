"""Functions of SciPy that reject tensors: they get NumPy arrays, and their results become tensors again."""

from __future__ import annotations

import ast

from emberlint.findings import Edit
from emberlint.inference.file import File
from emberlint.knowledge.types import INSTANCE, NONE, SCALAR, STRING
from emberlint.rewrite.imports import import_name

_CONSTANT = frozenset({SCALAR, STRING, NONE, INSTANCE})


def special_function(node: ast.Call, file: File) -> tuple[Edit, ...]:
    """Edits of ``scipy.special.j0(x)`` to ``tensor.asarray(scipy.special.j0(tensor.to_numpy(x)))``.

    Its functions are ufuncs, which reject EmberTensors. Arguments that are numbers stay as they are.
    """
    if not file.path(node.func).startswith("scipy.special.") or any(isinstance(one, ast.Starred) for one in node.args):
        return ()
    arrays = [argument for argument in node.args if _may_be_tensor(argument, file)]
    if not arrays or b"ember_ml" not in file.source.data:
        return ()
    name, imports = import_name(file.config.namespace, file)
    edits = [file.edit(argument, f"{name}.to_numpy({file.text(argument)})") for argument in arrays]
    start, end = file.span(node)
    return (*imports, Edit(start, start, f"{name}.asarray("), *edits, Edit(end, end, ")"))


def _may_be_tensor(node: ast.expr, file: File) -> bool:
    operand = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(operand, ast.Constant):
        return False
    if isinstance(node, ast.Call) and file.path(node.func).endswith(".to_numpy"):
        return False
    value = file.value(node)
    return value is None or value.kind not in _CONSTANT
