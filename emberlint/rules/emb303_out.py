"""A result written into `out=`.

## What it does
Finds `out=` in a call into an engine or into `ops`, and NumPy's third argument of `np.maximum(x, y, out)` and its
like.

## Why
MLX and JAX have no `out=`: their tensors do not change. Where it exists, what dtypes it takes differs by engine.

## Example
```python
def scale(x: np.ndarray) -> np.ndarray:
    np.multiply(x, 2.0, out=x)
    return x
```

## Use instead
```python
def scale(x: Tensor) -> Tensor:
    return ops.multiply(x, 2.0)
```

## Fix safety
No fix: other names for the same memory may count on the change.
"""

from __future__ import annotations

import ast
from functools import cache

from emberlint import catalogue
from emberlint.calls import Called, called, keyword, spreads
from emberlint.flow import File
from emberlint.rules import Rule

RULE = Rule("EMB303", "out", "`out=`")


@RULE.on(ast.Call)
def check(node: ast.Call, file: File) -> None:
    """``out=``, or the argument in its place."""
    if file.allowed is not None:
        return
    function = called(node, file)
    if function is None:
        return
    given = keyword(node, "out")
    place = given.value if given is not None else _positional(node, function)
    if place is None or (type(place) is ast.Constant and place.value is None):
        return
    message = (
        f"`{function.shown()}` writes into `{file.text(place)}`: MLX and JAX have no `out`; assign what it answers"
    )
    file.report(RULE, given if given is not None else place, message, because=file.value(place))


def _positional(node: ast.Call, function: Called) -> ast.expr | None:
    if function.engine != "numpy" or function.owner is not None or len(node.args) < 2 or spreads(node):
        return None
    place = _place(function.name)
    return node.args[place] if 0 <= place < len(node.args) else None


@cache
def _place(name: str) -> int:
    """The place of ``out`` among the positional parameters of a NumPy function, or -1."""
    record = catalogue.function(f"numpy.{name}")
    names = [parameter.name for parameter in catalogue.parameters(record or {}) or () if parameter.kind in "PB"]
    return names.index("out") if "out" in names else -1
