"""float64 by name.

## What it does
Finds the dtype float64 (or complex128) of any engine or of `ops`, its name as `dtype=`, and torch's `.double()`.

## Why
Apple GPUs do not support float64, MLX supports it on the CPU only, and JAX makes float32 of it unless it is enabled for
the whole process. On other accelerators it is many times slower.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def precise(n: int) -> Tensor:
    return ops.zeros(n, dtype=ops.float64)
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def precise(n: int) -> Tensor:
    return ops.zeros(n)
```

## Fix safety
No fix: the width is part of the result. `ops.set_default_dtype("float64")` sets it in one place.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import called, keyword, last_of, may_be_engine_call
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
    """Report the dtype of an engine or of ``ops``."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    if name not in _NAMES or type(node.ctx) is not ast.Load or file.allowed is not None:
        return
    path = file.path(node)
    if path and not path.startswith("ember_ml.dtypes"):
        _report(node, file)


@RULE.on(ast.Call, named=may_be_engine_call, given=KEYWORDS)
def check_dtype(node: ast.Call, file: File) -> None:
    """Report its name as ``dtype=``."""
    given = keyword(node, "dtype")
    if given is not None and called(node, file) is not None and file.allowed is None:
        _check_text(given.value, file)


def _is_cast(name: str) -> bool:
    return may_be_engine_call(name) and last_of(name) in ("astype", "cast", "to", "double", "cdouble")


@RULE.on(ast.Call, named=_is_cast)
def check_cast(node: ast.Call, file: File) -> None:
    """Report its name as the dtype of a cast, and ``x.double()``."""
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
    message = f"`{file.text(node)}` is not supported on Apple GPUs, and is slow on other accelerators"
    file.report(RULE, node, message)
