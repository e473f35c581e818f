"""float64 by name.

## What it does
Finds the dtype float64 (or complex128) of any engine or of `ops`, its name as `dtype=`, and torch's `.double()`.

## Why
Apple's GPUs have no float64, and MLX has it on the CPU alone; where it exists it is many times slower on an
accelerator.

## Example
```python
def precise(n: int) -> Tensor:
    return ops.zeros(n, dtype=ops.float64)
```

## Use instead
```python
def precise(n: int) -> Tensor:
    return ops.zeros(n)
```

## Fix safety
No fix: the width is part of the result. `ops.set_default_dtype("float64")` chooses it in one place.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import called, is_engines, keyword, last_of
from emberlint.inference.checks import KEYWORDS
from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule("EMB313", "float64", "float64")

_NAMES = frozenset({"float64", "double", "complex128", "cdouble", "float_", "longdouble"})
_TEXTS = frozenset({"float64", "complex128", "double", "f8", "<f8", "d", "c16"})


def _is_wide(name: str) -> bool:
    return last_of(name) in _NAMES


@RULE.on(ast.Attribute, ast.Name, named=_is_wide)
def check_name(node: ast.Attribute | ast.Name, file: File) -> None:
    """A dtype of an engine or of ``ops``."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    if name not in _NAMES or type(node.ctx) is not ast.Load or file.allowed is not None:
        return
    path = file.path(node)
    if path and not path.startswith("ember_ml.dtypes"):
        _report(node, file)


@RULE.on(ast.Call, named=is_engines, given=KEYWORDS)
def check_dtype(node: ast.Call, file: File) -> None:
    """Its name as ``dtype=``."""
    given = keyword(node, "dtype")
    if given is not None and called(node, file) is not None and file.allowed is None:
        _check_text(given.value, file)


def _is_cast(name: str) -> bool:
    return is_engines(name) and last_of(name) in ("astype", "cast", "to", "double", "cdouble")


@RULE.on(ast.Call, named=_is_cast)
def check_cast(node: ast.Call, file: File) -> None:
    """Its name as what is cast to, and ``x.double()``."""
    function = called(node, file)
    if function is None or file.allowed is not None:
        return
    if function.last in ("astype", "cast", "to"):
        for place in node.args:
            _check_text(place, file)
    if function.engine == "torch" and function.owner is not None and function.name in ("double", "cdouble"):
        _report(node, file)


def _check_text(node: ast.expr, file: File) -> None:
    if type(node) is ast.Constant and type(node.value) is str and node.value in _TEXTS:
        _report(node, file)


def _report(node: ast.expr, file: File) -> None:
    message = f"`{file.text(node)}`: Apple's GPUs have no 64-bit floats, and other accelerators are slow with them"
    file.report(RULE, node, message)
