"""Methods of NumPy's functions of elements: ``np.add.at``, ``np.maximum.reduce``."""

from __future__ import annotations

import ast

from emberlint.findings import Edit
from emberlint.inference.callees import spreads
from emberlint.inference.file import File
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER
from emberlint.knowledge.returns import words
from emberlint.rewrite.constants import kept_nodes
from emberlint.rewrite.imports import import_name
from emberlint.rewrite.names import operation_for
from emberlint.rewrite.safety import is_unsupported

_METHODS = words("accumulate at outer reduce reduceat")
# NumPy reduces the first axis by default, operations all axes.
_REDUCTIONS = {
    "add": "sum",
    "logaddexp": "logsumexp",
    "logical_and": "all",
    "logical_or": "any",
    "maximum": "max",
    "minimum": "min",
    "multiply": "prod",
}
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}


def ufunc_method(path: str) -> tuple[str, str]:
    """Names of the function and of its method for ``numpy.add.at``; empty for other names."""
    root, _, rest = path.partition(".")
    name, _, method = rest.partition(".")
    is_method = root == "numpy" and method in _METHODS and catalogue.function(f"numpy.{name}") is not None
    return (name, method) if is_method else ("", "")


def is_supported(node: ast.Call, method: str, file: File) -> bool:
    """Whether EmberTensors compute a method on their engine, as they do ``np.add.outer(x, y)``."""
    values = map(file.value, node.args)
    return method == "outer" and any(one is not None and one.is_tensor and one.engine == EMBER for one in values)


def method_advice(name: str, method: str, count: int, space: str) -> str:
    """What to write instead of a method of a function, called with ``count`` arguments.

    ``space`` is the name of the namespace of operations.
    """
    operation = operation_for(f"numpy.{name}")
    called = f"{space}.{operation}" if operation else f"np.{name}"
    if method == "at" and name in ("add", "subtract"):
        return f"use `x = {space}.index_add(x, i, {'v' if name == 'add' else '-v'})`"
    if method == "at":
        operands = "x[i]" if count == 2 else "x[i], v"
        return f"use `x = {space}.index_update(x, i, {called}({operands}))` if no index repeats"
    if method == "outer":
        return f"use `{called}(x[:, None], y)` for vectors"
    found = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, {}).get(name)
    return f"use `{space}.{found}(x, axis=0)`" if found else "write it with operations"


def added(node: ast.Expr, file: File, kept: frozenset[str]) -> tuple[Edit, ...]:
    """Edits that make an assignment to all elements of ``np.add.at(x, i, v)``.

    Other variables may hold the same array, so it is changed and not replaced.
    """
    call = node.value
    if not isinstance(call, ast.Call) or file.path(call.func) != "numpy.add.at":
        return ()
    if len(call.args) != 3 or call.keywords or spreads(call) or call in kept_nodes(kept, file):
        return ()
    array, *others = call.args
    if any(is_unsupported(one, "TensorLike", file) for one in (array, others[1])):
        return ()
    if isinstance(array, ast.Subscript):
        owner = file.value(array.value)
        if owner is None or not owner.is_array:
            return ()  # the owner may be a dictionary of arrays
        target = file.text(array)
    elif isinstance(array, (ast.Name, ast.Attribute)):
        target = f"{file.text(array)}[...]"
    else:
        return ()
    space, imports = import_name(file.config.namespace, file)
    given = ", ".join(file.text(one) for one in call.args)
    return (*imports, file.edit(node, f"{target} = {space}.index_add({given})"))
