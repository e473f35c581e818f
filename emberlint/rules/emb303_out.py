"""A result written into `out=`.

## What it does
Finds `out=` in a call of an engine or of `ops`, and its positional form in NumPy (`np.maximum(x, y, out)`).

## Why
MLX and JAX do not support `out=`, because their tensors are immutable. Where it exists, the dtypes that it accepts
differ by engine.

## Example
```python
import numpy as np


def scale(x: np.ndarray) -> np.ndarray:
    np.multiply(x, 2.0, out=x)
    return x
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def scale(x: Tensor) -> Tensor:
    return ops.multiply(x, 2.0)
```

## Fix safety
No fix: code that shares the memory may rely on the change.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import Called, called, keyword, may_be_engine_call, spreads
from emberlint.inference.checks import KEYWORDS
from emberlint.inference.file import File
from emberlint.knowledge import catalogue
from emberlint.rules import Rule

RULE = Rule("EMB303", "out", "`out=`")


@RULE.on(ast.Call, named=may_be_engine_call, given=KEYWORDS)
def check_keyword(node: ast.Call, file: File) -> None:
    """Report ``out=``."""
    given = keyword(node, "out")
    function = called(node, file) if given is not None else None
    if given is not None and function is not None:
        _report(given, given.value, function, file)


def _has_place(name: str) -> bool:
    return name.startswith("numpy.") and catalogue.out_place(name) >= 0


@RULE.on(ast.Call, named=_has_place)
def check_place(node: ast.Call, file: File) -> None:
    """Report a positional ``out``."""
    if len(node.args) < 2 or keyword(node, "out") is not None or spreads(node):
        return
    function = called(node, file)
    place = catalogue.out_place(f"numpy.{function.name}") if function is not None else -1
    if function is not None and 0 <= place < len(node.args):
        _report(node.args[place], node.args[place], function, file)


def _report(node: ast.AST, place: ast.expr, function: Called, file: File) -> None:
    if file.allowed is not None or (type(place) is ast.Constant and place.value is None):
        return
    message = (
        f"`{function.shown()}` writes into `{file.text(place)}`, but MLX and JAX do not support `out`; "
        "assign the result"
    )
    file.report(RULE, node, message, because=file.value(place))
