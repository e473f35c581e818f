"""Rewriting of array methods to operations: ``x.sum(0)`` becomes ``ops.sum(x, axis=0)``."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any, NamedTuple

from emberlint.findings import Edit
from emberlint.inference.file import File
from emberlint.inference.results import dtype_word
from emberlint.inference.values import Value
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER
from emberlint.knowledge.types import SCALAR
from emberlint.rewrite.functions import rewritten
from emberlint.rewrite.imports import import_name
from emberlint.rewrite.names import DIFFERENT, agrees, operation_for
from emberlint.rewrite.safety import is_unsupported
from emberlint.rewrite.surroundings import is_viewed

# Methods that take separate arguments where the operation takes a tuple.
_TUPLES = {"reshape": "reshape", "view": "reshape", "permute": "permute_dims", "transpose": "transpose"}
# Methods whose operation has another name, with the maximum number of arguments.
_RENAMED = {
    "astype": ("cast", 1),
    "clone": ("copy", 0),
    "conjugate": ("conj", 0),
    "dim": ("ndim", 0),
    "element_size": ("", 0),
    "expand": ("", 0),
    "flatten": ("ravel", 0),
    "ndimension": ("ndim", 0),
    "nelement": ("size", 0),
    "numel": ("size", 0),
    "t": ("transpose", 0),
    "unsqueeze": ("expand_dims", 1),
}
# Casts of torch.
_CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "byte": "uint8",
    "bool": "bool",
}
# Methods that change the array, or whose result differs from that of the function of the same name.
_OTHERS = frozenset(
    {
        "sort",
        "partition",
        "resize",
        "put",
        "fill",
        "item",
        "tolist",
        "itemset",
        "view_as",
        "where",
        "split",
        "choose",
        "compress",
    }
)
# Methods whose arguments have different meanings in NumPy and torch.
_AMBIGUOUS = frozenset({"repeat", "transpose"})
# Properties that an engine does not have, or has as a method.
PROPERTIES = {
    "size": "size",
    "T": "transpose",
    "mT": "matrix_transpose",
    "real": "real",
    "imag": "imag",
    "flat": "ravel",
}


class MethodRewrite(NamedTuple):
    """Replacement of a method as it appears in messages, and the edits."""

    use: str
    edits: tuple[Edit, ...]

    @property
    def described(self) -> str:
        """Title of the fix."""
        return f"{'call' if self.use.startswith('ops.') else 'write'} `{self.use}`"


def rewritten_method(node: ast.Call, owner: Value, file: File, origin: str = "") -> MethodRewrite | None:
    """Rewrite of a method call to a call of an operation; ``None`` if it cannot be rewritten.

    ``origin`` is the engine that the code was written for, which determines the meaning of methods of ember's tensors.
    """
    function: Any = node.func
    name = function.attr
    meant = owner.engine if owner.engine not in (EMBER, "") else origin
    if name == "item" and meant == "numpy" and len(node.args) == 1 and not node.keywords:
        bound, imports = import_name(file.config.namespace, file)
        text = f"{bound}.ravel({file.text(function.value)})[{file.text(node.args[0])}].item()"
        return MethodRewrite("ops.ravel", (*imports, file.edit(node, text)))
    if name == "view" and not meant and node.args and all(_is_length(argument, file) for argument in node.args):
        meant = "torch"  # NumPy's ``view`` takes a dtype
    engines = [meant] if meant else [engine for engine in ("numpy", "torch") if name in catalogue.methods(engine)]
    if len(engines) == 1:
        meant = engines[0]
    if (name in _OTHERS and (name, meant) != ("sort", "jax")) or (name == "view" and meant != "torch"):
        return None
    if any(name in DIFFERENT.get(engine, ()) for engine in engines):
        names = tuple(keyword.arg for keyword in node.keywords)
        if not agrees(name, len(node.args) + 1, names):
            return None
    if not meant and name in _AMBIGUOUS and node.args:
        return None
    if name == "size":
        return _shape(node, file)
    if name == "contiguous" and not node.args and not node.keywords and not is_viewed(node, file):
        text = file.text(function.value)
        return MethodRewrite(" ".join(text.split()), (file.edit(node, text),))
    if name in ("to", "type") and meant == "torch":
        return _cast(node, file)
    if name == "repeat" and meant == "torch":
        return _gathered(node, "tile", file)
    if name in _CASTS and meant == "torch" and not node.args and not node.keywords:
        bound, imports = import_name(file.config.namespace, file)
        return MethodRewrite(
            "ops.cast",
            (*imports, file.edit(node, f"{bound}.cast({file.text(function.value)}, {bound}.{_CASTS[name]})")),
        )
    if name in _TUPLES and not (name == "transpose" and meant == "torch"):
        return _gathered(node, _TUPLES[name], file)
    if name in _RENAMED:
        operation, most = _RENAMED[name]
        if not operation or len(node.args) > most or (node.keywords and name != "astype"):
            return None
        if any(keyword.arg not in ("copy", "dtype") for keyword in node.keywords) or (
            name == "astype" and (len(node.args) != 1 or is_unsupported(node.args[0], "DTypeLike", file))
        ):
            return None
        if name == "flatten":
            return _flattened(node, file)
        return _called(node, operation, (), file)
    for engine in engines:
        place = {"mlx": "mlx.core", "jax": "jax.numpy"}.get(engine, engine)
        call = ast.copy_location(ast.Call(function, [function.value, *node.args], node.keywords), node)
        path = f"{place}.{name}"
        # The parameters of a method are known only from the function of the same name.
        known = catalogue.function(path)
        if known is None or not operation_for(path):
            continue
        found = rewritten(call, path, file)
        if found is not None:
            return _called(node, found.operation, found.edits, file)
    return None


def rewritten_property(node: ast.Attribute, file: File) -> tuple[Edit, ...]:
    """Edits that replace a property by a call of an operation."""
    bound, imports = import_name(file.config.namespace, file)
    return (*imports, file.edit(node, f"{bound}.{PROPERTIES[node.attr]}({file.text(node.value)})"))


@cache
def engine_without(name: str, targets: tuple[str, ...]) -> str:
    """First target engine whose arrays do not have a method; empty if all have it."""
    for engine in targets:
        known = catalogue.methods(engine)
        if known and name not in known:
            return engine
    return ""


def _called(node: ast.Call, operation: str, edits: tuple[Edit, ...], file: File) -> MethodRewrite:
    """Rewrite that keeps the arguments and puts the operation and the array before them."""
    function: Any = node.func
    bound, imports = import_name(file.config.namespace, file)
    start = file.span(node)[0]
    opening = _opening(function, file)
    comma = ", " if node.args or node.keywords else ""
    head = Edit(start, opening + 1, f"{bound}.{operation}({file.text(function.value)}{comma}")
    return MethodRewrite(f"ops.{operation}", (*imports, head, *edits))


def _flattened(node: ast.Call, file: File) -> MethodRewrite:
    """Rewrite of ``x.flatten()``, which always copies; ``ops.ravel`` may share memory."""
    function: Any = node.func
    bound, imports = import_name(file.config.namespace, file)
    text = f"{bound}.reshape({file.text(function.value)}, (-1,), copy=True)"
    return MethodRewrite("ops.reshape", (*imports, file.edit(node, text)))


def _is_length(node: ast.expr, file: File) -> bool:
    value = file.value(node)
    return value is not None and value.kind == SCALAR and value.dtype == "int"


def _shape(node: ast.Call, file: File) -> MethodRewrite | None:
    """Rewrite of torch's ``x.size()`` to ``x.shape``, and of ``x.size(0)`` to ``x.shape[0]``."""
    function: Any = node.func
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dim")]
    if len(given) > 1 or len(node.args) + len(node.keywords) != len(given) or ast.Starred in map(type, given):
        return None
    index = f"[{file.text(given[0])}]" if given else ""
    return MethodRewrite(".shape", (file.edit(node, f"{file.text(function.value)}.shape{index}"),))


def _cast(node: ast.Call, file: File) -> MethodRewrite | None:
    """Rewrite of torch's ``x.to(dtype)`` and ``x.type(dtype)``; ``None`` if the argument may be a device."""
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]
    if len(given) != 1 or len(node.args) + len(node.keywords) != 1:
        return None
    space, _, word = file.path(given[0]).rpartition(".")
    named = space in ("torch", "ember_ml", "ember_ml.ops") and dtype_word(word) is not None
    if not named and getattr(given[0], "attr", "") != "dtype":
        return None
    function: Any = node.func
    bound, imports = import_name(file.config.namespace, file)
    new = f"{bound}.cast({file.text(function.value)}, {file.text(given[0])})"
    return MethodRewrite("ops.cast", (*imports, file.edit(node, new)))


def _gathered(node: ast.Call, operation: str, file: File) -> MethodRewrite | None:
    """Rewrite of a method whose arguments become one tuple."""
    if any(type(argument) is ast.Starred for argument in node.args):
        return None
    if node.keywords and (operation != "reshape" or any(keyword.arg != "shape" for keyword in node.keywords)):
        return None
    values = [file.value(argument) for argument in node.args]
    if (
        len(values) == 1
        and (values[0] is None or values[0].kind != "scalar")
        and not isinstance(node.args[0], ast.UnaryOp)
    ):
        if type(node.args[0]) not in (ast.Tuple, ast.List, ast.Attribute) and values[0] is None:
            return None  # it may be a number or a shape
        return _called(node, operation, (), file)
    if not values:
        return _called(node, operation, (), file) if operation == "transpose" else None
    text = ", ".join(file.text(argument) for argument in node.args)
    comma = "," if len(values) == 1 else ""
    function: Any = node.func
    bound, imports = import_name(file.config.namespace, file)
    new = f"{bound}.{operation}({file.text(function.value)}, ({text}{comma}))"
    return MethodRewrite(f"ops.{operation}", (*imports, file.edit(node, new)))


def _opening(function: ast.Attribute, file: File) -> int:
    """Offset of the parenthesis that opens the arguments."""
    return file.source.data.index(b"(", file.span(function)[1])
