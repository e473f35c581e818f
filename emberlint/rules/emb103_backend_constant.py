"""A dtype or a constant that is taken from an engine.

## What it does

Reports `np.float32`, `torch.long`, `mx.bool_`, `np.pi`, `np.inf`, `np.newaxis` in a frontend.

## Why

An engine's dtype object is known to that engine alone; ember's dtypes are the same objects everywhere, equal to their
names and to every engine's own. Constants are plain numbers and need no engine.

## Example

```python
import numpy as np

angles = ops.linspace(0, 2 * np.pi, 9, dtype=np.float32)
```

## Use instead

```python
angles = ops.linspace(0, 2 * ops.pi, 9, dtype=ops.float32)
```

## Fix safety

Safe for constants, for dtypes in a `dtype=` of an operation or of NumPy (which takes ember's dtypes), and for dtypes
that are compared with the `.dtype` of something. Elsewhere unsafe: an object that goes into a table or to another
library may have to be the engine's own, and ember's dtypes equal their names and each engine's, which `np.float32` does
not.
"""

from __future__ import annotations

import ast
import re
from functools import cache

from emberlint import catalogue, kinds, places
from emberlint.file import File
from emberlint.findings import SAFE, SUGGESTION, UNSAFE, Fix
from emberlint.rewrite import rewritten
from emberlint.rules import Rule
from emberlint.visit import quietly

RULE = Rule("EMB103", "backend-constant", "a dtype or a constant that is taken from an engine", fix="sometimes")

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
    """The name of ember's dtype or constant for that of an engine; empty if it is none."""
    engine = kinds.engine_of(path)
    place, _, name = path.rpartition(".")
    if not place or _PLACES.get(engine) != place:
        return ""
    portable = _RENAMED[engine].get(name, name)
    return portable if portable in catalogue.constants() or portable in catalogue.dtypes() else ""


def _is_constant(name: str) -> bool:
    return _portable(name) != ""


@RULE.on(ast.Attribute, ast.Name, named=_is_constant)
def check(node: ast.Attribute | ast.Name, file: File) -> None:
    """References to a dtype or constant of an engine."""
    path = file.path(node)
    portable = _portable(path)
    if not portable or file.allowed is not None or not isinstance(node.ctx, ast.Load) or file.is_called(node):
        return
    if isinstance(node, ast.Name) and not any(one.alias == node.id for one in file.imports):
        return  # a variable: what it was given is reported there
    engine = kinds.engine_of(path)
    text = file.text(node)
    if file.config.target == "array-api":
        fix = Fix((file.edit(node, f"xp.{portable}"),), SUGGESTION, f"use `xp.{portable}`")
        file.report(RULE, node, f"`{text}` is {engine}'s; use `xp.{portable}`", fix=fix)
        return
    bound, imports = file.import_name(file.config.namespace)
    safety = SAFE if portable in catalogue.constants() else _safety(node, engine, file)
    mend = None
    if safety:
        mend = Fix((*imports, file.edit(node, f"{bound}.{portable}")), safety, f"use `{bound}.{portable}`")
    file.report(RULE, node, f"`{text}` is {engine}'s; use `{bound}.{portable}`", fix=mend)


_BEFORE = re.compile(rb"\.dtype\s*[!=]=\s*$")
_AFTER = re.compile(rb"\s*[!=]=\s*[\w.]+\.dtype\b(?!\s*[.(\[])")


def _is_beside_a_dtype(node: ast.Attribute | ast.Name, file: File) -> bool:
    """Whether the other side of a comparison is the ``.dtype`` of something."""
    return bool(_BEFORE.search(places.before(node, file)) or _AFTER.match(file.source.data, file.span(node)[1]))


def _safety(node: ast.Attribute | ast.Name, engine: str, file: File) -> str:
    """Safe where what a dtype is given to takes ember's as well; no fix where it is a call that stays the engine's."""
    signs = file.signs_beside(node)
    if len(signs) == 1 and isinstance(signs[0], (ast.Eq, ast.NotEq)) and _is_beside_a_dtype(node, file):
        return SAFE
    call = file.given_to(node)
    if call is None:
        return UNSAFE
    # The function is evaluated after its arguments, so it is looked up here.
    callee = quietly(call.func, file)
    path = callee.path if callee is not None else ""
    if path.startswith("ember_ml.ops.") or (engine == "numpy" and path.startswith("numpy.")):
        return SAFE
    if kinds.engine_of(path) not in ("", kinds.EMBER) and rewritten(call, path, file) is None:
        return ""
    return UNSAFE
