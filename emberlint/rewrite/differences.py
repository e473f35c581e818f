"""Expressions of a ported file whose results may be different, although nothing raises.

NumPy's elements are numbers: ``np.float64`` is a subclass of ``float``, integers repeat lists, and equal numbers are
the same key of a dictionary. Elements of tensors are tensors. Results of floating-point functions are rounded
differently by each engine.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from emberlint.config import EMBER_TENSORS
from emberlint.findings import Finding
from emberlint.inference.file import File
from emberlint.inference.state import State
from emberlint.inference.values import ELEMENT, Value
from emberlint.knowledge.engines import EMBER, engine_of
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import INSTANCE, SCALAR, SEQUENCE, SHAPE, STRING

# Operations whose results differ between engines in the last digits.
_ROUNDED = words(
    """
    average cholesky corrcoef cos cosh cov cumprod cumsum det dot einsum exp expm1 fft ifft inner interp inv irfft log
    log10 log1p log2 lstsq matmul mean norm outer pinv power rfft sin sinh solve std tan tanh tensordot trapezoid var
    vdot
    """
)
# Operations whose vectors are determined up to their signs.
_SIGNED = words("eig eigh qr svd")
# Operations that sort the eigenvalues, which engines return in any order.
_ORDERED = words("eig eigvals")
# Methods that change NumPy's arrays, and return a new tensor.
_IN_PLACE = words("sort partition resize")
_NUMBERS = words("complex float Number Real Integral Complex floating integer number float64 int64")


def silent_differences(state: State, origin: str) -> list[Finding]:
    """Places where NumPy and tensors, or the engines, may differ without an error; ``origin`` is the ported engine."""
    wrapped = state.config.namespace == EMBER_TENSORS
    describe: dict[type, Callable[[Any, File], str]] = {
        ast.Call: lambda node, file: (
            _operation(node, file, origin) or (_printed(node, file) if wrapped else "") or _call(node, file)
        ),
        ast.Compare: _comparison,
        ast.BinOp: _repetition,
        ast.Expr: _in_place,
        **({ast.Attribute: _kind} if wrapped else {ast.Subscript: _key}),
    }
    found = []
    raised = {part for node in ast.walk(state.tree) if isinstance(node, ast.Raise) for part in ast.walk(node)}
    if wrapped:
        describe[ast.FormattedValue] = lambda node, file: "" if node in raised else _text(node, file)
    for node in ast.walk(state.tree):
        if type(node) in describe and (message := describe[type(node)](node, state)):
            line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
            found.append(Finding("", message, state.source.path, line, column, line, column, None, ()))
    return found


def is_repeatable(node: ast.expr) -> bool:
    """Whether an expression is a list, tuple or text of one element, which ``*`` repeats."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return len(node.elts) == 1
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _operation(node: ast.Call, file: File, origin: str) -> str:
    """Note about an operation whose results differ from those of the ported engine."""
    path = file.path(node.func)
    name = path.rpartition(".")[2]
    if engine_of(path) != EMBER:
        return ""
    library = "NumPy" if origin == "numpy" else origin
    notes = []
    if name == "reciprocal" and origin == "numpy" and node.args and _may_be_integer(file.value(node.args[0])):
        notes.append("of integers, NumPy rounds toward zero; this returns floats")
    if name in _ORDERED:
        notes.append(f"the eigenvalues are in ascending order, those of {library} in any")
    if name in _SIGNED and not _has_values_only(node):
        notes.append(f"the signs of the vectors may differ from {library}'s")
    return f"`{shortened(file.text(node))}`: {', and '.join(notes)}" if notes else ""


def _call(node: ast.Call, file: File) -> str:
    path = file.path(node.func)
    text = shortened(file.text(node))
    if not node.args or _is_plain(file.value(node.args[0])):
        return ""
    value = file.value(node.args[0])
    if value is not None and value.is_tensor and not value.argument and file.is_builtin(node.func, "str", "repr"):
        return f"`{text}` is `EmberTensor(...)`, and not NumPy's text"
    if path == "numpy.isscalar":
        return f"`{text}` is true for NumPy's numbers and false for elements of tensors; use `ndim`"
    if len(node.args) == 2 and file.is_builtin(node.func, "isinstance") and _names(node.args[1]) & _NUMBERS:
        return f"`{text}` is true for NumPy's numbers and false for elements of tensors"
    return ""


def _may_be_integer(value: Value | None) -> bool:
    return value is None or value.dtype in (None, "int")


def _printed(node: ast.Call, file: File) -> str:
    """Note about a tensor that is printed."""
    if not file.is_builtin(node.func, "print"):
        return ""
    for argument in node.args:
        value = file.value(argument)
        if value is not None and value.is_tensor and not value.argument:
            text = file.text(argument)
            return f"`{shortened(file.text(node))}` shows `EmberTensor(...)`; print `{shortened(text)}.numpy()`"
    return ""


def _has_values_only(node: ast.Call) -> bool:
    """Whether a decomposition is called for the singular values alone."""
    return any(keyword.arg == "compute_uv" for keyword in node.keywords)


def _names(node: ast.expr) -> set[str]:
    """Last names of the types in ``isinstance(x, (a.b, c))``."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return {part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in parts}


def _comparison(node: ast.Compare, file: File) -> str:
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return ""
    for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        if isinstance(other, ast.Constant) and type(other.value) in (int, float) and other.value:
            function = _rounding(file.value(one), file)
            if function:
                text = shortened(file.text(node))
                return f"`{text}` compares the rounded results of `{function}`, which differ between engines"
    return ""


def _rounding(value: Value | None, file: File) -> str:
    """Text of the function whose rounded results a value has; empty if they are not known to be rounded."""
    if value is None or not value.is_tensor or value.dtype in ("bool", "int"):
        return ""
    for step in value.chain():
        if isinstance(step.node, ast.Call):
            path = file.path(step.node.func)
            rounded = engine_of(path) == EMBER and path.rpartition(".")[2] in _ROUNDED
            return file.text(step.node.func) if rounded else ""
    return ""


def _repetition(node: ast.BinOp, file: File) -> str:
    """Note about ``values * n`` of a list and a tensor, which may be an integer that repeats the list."""
    if type(node.op) is not ast.Mult:
        return ""
    for one, other in ((node.left, node.right), (node.right, node.left)):
        count, repeated = file.value(other), file.value(one)
        if repeated is not None and repeated.kind == SEQUENCE and count is not None and count.is_tensor:
            return f"`{shortened(file.text(node))}` repeats a list if `{file.text(other)}` is an integer of NumPy"
    return ""


def _in_place(node: ast.Expr, file: File) -> str:
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or file.path(call.func):
        return ""
    owner = file.value(call.func.value)
    if call.func.attr not in _IN_PLACE or (owner is not None and not owner.is_array):
        return ""
    return f"`{shortened(file.text(call))}` changes a NumPy array; of a tensor it returns a new one"


def _text(node: ast.FormattedValue, file: File) -> str:
    value = file.value(node.value)
    if value is None or not value.is_tensor or value.argument or node.format_spec is not None:
        return ""
    return f"`{shortened(file.text(node.value))}` in a text is `EmberTensor(...)`, and not NumPy's text"


def _kind(node: ast.Attribute, file: File) -> str:
    if node.attr != "kind" or not isinstance(node.value, ast.Attribute) or node.value.attr != "dtype":
        return ""
    return f"`{shortened(file.text(node))}` of a tensor is 'real floating' where NumPy's is 'f'; use `isdtype`"


def _key(node: ast.Subscript, file: File) -> str:
    """Note about an element of a tensor that may be the key of a dictionary: an engine's hash by identity."""
    key, owner = file.value(node.slice), file.value(node.value)
    if key is None or not key.is_tensor or key.reason != ELEMENT or not (owner is None or owner.kind == INSTANCE):
        return ""
    text = shortened(file.text(node))
    return f"`{text}`: elements of torch and MLX tensors hash by identity; if this is a dictionary, use `.item()`"


def _is_plain(value: Value | None) -> bool:
    """Whether a value is known not to be a tensor or a number of NumPy."""
    return value is not None and value.kind in (SCALAR, SEQUENCE, SHAPE, STRING)


def shortened(text: str) -> str:
    """Text of an expression in one line of at most 60 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
