"""A result whose shape depends on the data.

## What it does
Finds calls such as `nonzero`, `unique`, `argwhere`, `masked_select`, `where` with only a condition, and every operation
of `ops` that is not lazy for this reason.

## Why
A lazy engine must evaluate to know the shape, and a compiler cannot trace the call.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def first(x: Tensor) -> Tensor:
    return ops.nonzero(x > 0)[0][0]
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def first(x: Tensor) -> Tensor:
    return ops.argmax(x > 0)
```

## Fix safety
No fix: the replacement depends on how the result is used (`ops.where`, `ops.argmax`, `ops.top_k`, `ops.segment_sum`).
"""

from __future__ import annotations

import ast
from functools import cache

from emberlint.inference.callees import Called, called, last_of
from emberlint.inference.file import File
from emberlint.knowledge import catalogue
from emberlint.rules import Rule

RULE = Rule("EMB309", "data-dependent-shape", "shape that depends on the data")

# Functions with data-dependent shapes, in addition to the operations that are not lazy.
_OTHERS = frozenset(
    ["flatnonzero", "extract", "compress", "unique_consecutive", "argwhere", "masked_select", "trim_zeros", "ediff1d"]
)


def _may_depend(name: str) -> bool:
    last = last_of(name)
    return last == "where" or last in _OTHERS or _is_eager(last)


@RULE.on(ast.Call, named=_may_depend)
def check(node: ast.Call, file: File) -> None:
    """Report calls whose result has a data-dependent shape."""
    function = called(node, file)
    if function is None or file.allowed is not None or not _depends(function, node):
        return
    message = (
        f"the shape of the result of `{function.shown()}` depends on the data, "
        "which forces evaluation and cannot be compiled"
    )
    file.report(RULE, node, message, because=function.owner)


def _depends(function: Called, node: ast.Call) -> bool:
    name = function.last
    if name == "where":
        return function.owner is None and len(node.args) == 1 and not node.keywords
    if name in _OTHERS:
        return True
    if function.engine != "ember" and function.name != name and function.owner is None:
        return False
    return _is_eager(name)


@cache
def _is_eager(name: str) -> bool:
    """Whether the result of an indexing operation has a data-dependent shape."""
    full = catalogue.load()["ember"]["names"].get(name, "")
    record = catalogue.operation(name) if full.startswith("indexing.") else None
    return record is not None and not record["lazy"]
