"""A dtype or a constant of an engine.

## What it does

Reports `np.float32`, `torch.long`, `mx.bool_`, `np.pi`, `np.inf`, `np.newaxis` in a frontend.

## Why

Only that engine accepts its dtype objects. Ember's dtypes are the same objects on every engine, and are equal to their
names and to each engine's dtypes. Constants are plain numbers and need no engine.

## Example

```python
import numpy as np
from ember_ml import ops

angles = ops.linspace(0, 2 * np.pi, 9, dtype=np.float32)
```

## Use instead

```python
from ember_ml import ops

angles = ops.linspace(0, 2 * ops.pi, 9, dtype=ops.float32)
```

## Fix safety

Safe for constants, for dtypes in a `dtype=` of an operation or of NumPy (which accepts ember's dtypes), and for dtypes
that are compared with the `.dtype` of that engine's arrays. In a comparison, ember's dtype is written on the left
(`ops.float32 == x.dtype`), because an MLX dtype is unequal to everything else. Unsafe elsewhere: an object that goes
into a table or to another library may have to be the engine's own, and ember's dtypes are equal to their names and to
each engine's dtypes, which `np.float32` is not (`x.dtype == np.float32` is false for a torch tensor). Constants that
are floats are unsafe in a file that tests identity with `is`, because `ops.nan` is not the same object as `np.nan`.
"""

from __future__ import annotations

import ast
import re
from functools import cache

from emberlint.findings import SAFE, SUGGESTION, UNSAFE, Edit, Fix
from emberlint.inference.file import File
from emberlint.inference.visitors import value_ahead
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER, engine_of
from emberlint.rewrite import surroundings
from emberlint.rewrite.functions import rewritten
from emberlint.rewrite.imports import import_name
from emberlint.rules import Rule

RULE = Rule("EMB103", "backend-constant", "a dtype or a constant of an engine", fix="sometimes")

_RENAMED = {
    "numpy": {
        "bool_": "bool",
        "double": "float64",
        "float_": "float64",
        "half": "float16",
        "int_": "int64",
        "intp": "int64",
        "longlong": "int64",
        "single": "float32",
        "ubyte": "uint8",
        "Inf": "inf",
        "NaN": "nan",
    },
    "torch": {
        "cdouble": "complex128",
        "cfloat": "complex64",
        "double": "float64",
        "float": "float32",
        "half": "float16",
        "int": "int32",
        "long": "int64",
        "short": "int16",
    },
    "mlx": {"bool_": "bool"},
    "jax": {"bool_": "bool"},
}
_PLACES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core", "jax": "jax.numpy"}


@cache
def _portable(path: str) -> str:
    """Name of ember's dtype or constant for an engine's; empty if there is none."""
    engine = engine_of(path)
    place, _, name = path.rpartition(".")
    if not place or _PLACES.get(engine) != place:
        return ""
    portable = _RENAMED[engine].get(name, name)
    return portable if portable in catalogue.constants() or portable in catalogue.dtypes() else ""


def _is_constant(name: str) -> bool:
    return _portable(name) != ""


@RULE.on(ast.Attribute, ast.Name, named=_is_constant)
def check(node: ast.Attribute | ast.Name, file: File) -> None:
    """Report references to a dtype or constant of an engine."""
    path = file.path(node)
    portable = _portable(path)
    if not portable or file.allowed is not None or not isinstance(node.ctx, ast.Load) or file.is_called(node):
        return
    if isinstance(node, ast.Name) and not any(one.alias == node.id for one in file.imports.entries):
        return  # a variable: the value assigned to it is reported there
    engine = engine_of(path)
    text = file.text(node)
    if file.config.target == "array-api":
        fix = Fix((file.edit(node, f"xp.{portable}"),), SUGGESTION, f"use `xp.{portable}`")
        file.report(RULE, node, f"`{text}` belongs to {engine}; use `xp.{portable}`", fix=fix)
        return
    bound, imports = import_name(file.config.namespace, file)
    ours = f"{bound}.{portable}"
    edit = file.edit(node, ours)
    if portable in catalogue.constants():
        safety = UNSAFE if portable != "newaxis" and _is_identity_tested(text, file) else SAFE
    elif (compared := _compared_dtype(node, file)) is not None:
        swapped = _swapped(node, ours, file)
        safety = SAFE if swapped is not None and _is_of(compared, engine, file) else UNSAFE
        edit = swapped or edit
    else:
        safety = _safety(node, engine, file)
    fixed = Fix((*imports, edit), safety, f"use `{ours}`") if safety else None
    file.report(RULE, node, f"`{text}` belongs to {engine}; use `{ours}`", fix=fixed)


def _is_identity_tested(text: str, file: File) -> bool:
    """Whether the file tests the identity of a constant: ``x is np.nan``."""

    def search() -> bool:
        data, name = file.source.data, text.encode()
        if b" is " + name not in data and b" is not " + name not in data:
            return False
        return re.search(rb" is (?:not )?" + re.escape(name) + rb"\b", data) is not None

    found: bool = file.shared(f"is {text}", search)
    return found


def _compared_dtype(node: ast.Attribute | ast.Name, file: File) -> ast.Attribute | None:
    """The ``.dtype`` attribute that a dtype is compared with by a single ``==`` or ``!=``."""
    comparison = file.comparison_of(node)
    if comparison is None or len(comparison.ops) != 1 or type(comparison.ops[0]) not in (ast.Eq, ast.NotEq):
        return None
    other = comparison.comparators[0] if comparison.left is node else comparison.left
    return other if type(other) is ast.Attribute and other.attr == "dtype" else None


def _is_of(dtype: ast.Attribute, engine: str, file: File) -> bool:
    """Whether a ``.dtype`` belongs to the engine's arrays, or to a value in a file that imports no other engine."""
    owner = value_ahead(dtype.value, file)
    if owner is not None and owner.is_array and owner.engine:
        return owner.engine in (engine, EMBER)
    return file.imports.engines <= {engine, EMBER}


def _swapped(node: ast.Attribute | ast.Name, ours: str, file: File) -> Edit | None:
    """Edit that writes ember's dtype on the left of its comparison; ``None`` if a comment would be lost."""
    comparison = file.comparison_of(node)
    if comparison is None or comparison.left is node:
        return file.edit(node, ours)
    if "#" in file.text(comparison):
        return None
    sign = "==" if type(comparison.ops[0]) is ast.Eq else "!="
    return file.edit(comparison, f"{ours} {sign} {file.text(comparison.left)}")


def _safety(node: ast.Attribute | ast.Name, engine: str, file: File) -> str:
    """Safe if the callee also accepts ember's dtype; empty (no fix) if the call stays the engine's."""
    call = file.given_to(node)
    if call is None:
        # NumPy accepts ember's dtypes; methods of other engines do not, so those are rewritten first.
        return (
            "" if engine != "numpy" and "." in surroundings.callee(node, file) and not _is_taken(node, file) else UNSAFE
        )
    # A call's function is evaluated after its arguments, so its value is not known yet.
    callee = value_ahead(call.func, file)
    path = callee.path if callee is not None else ""
    if path.startswith("ember_ml.ops.") or (engine == "numpy" and path.startswith("numpy.")):
        return SAFE
    if engine_of(path) not in ("", EMBER) and rewritten(call, path, file) is None:
        return ""
    return "" if engine != "numpy" and not path and type(call.func) is ast.Attribute else UNSAFE


def _is_taken(node: ast.Attribute | ast.Name, file: File) -> bool:
    """Whether a dtype is a positional argument of an operation."""
    name = surroundings.callee(node, file)
    function = value_ahead(ast.parse(name, mode="eval").body, file) if not name.startswith(".") else None
    return function is not None and engine_of(function.path) == EMBER
