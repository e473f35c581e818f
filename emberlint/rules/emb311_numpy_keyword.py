"""A keyword that only NumPy has.

## What it does
Finds keywords such as `order=`, `casting=`, `subok=`, `like=` and `where=` of an elementwise function in a call of a
function that other engines have without them.

## Why
The other engines raise `TypeError`.

## Example
```python
import numpy as np


def by_columns(x: np.ndarray) -> np.ndarray:
    return np.ravel(x, order="F")
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def by_columns(x: Tensor) -> Tensor:
    return ops.ravel(ops.transpose(x))
```

## Fix safety
No fix: write the effect of the keyword with operations.
"""

from __future__ import annotations

import ast
from functools import cache

from emberlint.inference.callees import called
from emberlint.inference.checks import KEYWORDS
from emberlint.inference.file import File
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER
from emberlint.rules import Rule

RULE = Rule("EMB311", "numpy-keyword", "keyword that only NumPy has")

# Other rules report these.
_ELSEWHERE = frozenset({"out", "ddof", "dtype", "correction"})


def _has_numpy_keywords(name: str) -> bool:
    root, _, rest = name.partition(".")
    if root in ("", "numpy"):
        return bool(_numpy_only(rest))
    return name.startswith("ember_ml.ops.") and bool(_foreign(name[13:]))


@RULE.on(ast.Call, named=_has_numpy_keywords, given=KEYWORDS)
def check(node: ast.Call, file: File) -> None:
    """Report keywords that the other engines lack."""
    if file.allowed is not None:
        return
    function = called(node, file)
    if function is None or function.engine not in ("numpy", EMBER):
        return
    missing = _numpy_only(function.name) if function.engine == "numpy" else None
    for one in node.keywords:
        if one.arg is None or one.arg in _ELSEWHERE:
            continue
        if missing is not None and one.arg in missing:
            who = "NumPy and JAX have" if one.arg in _of_jax(function.name) else "NumPy has"
            message = f"only {who} `{one.arg}=` in `{function.shown()}`; write its effect with operations"
            file.report(RULE, one, message, because=function.owner)
        elif function.engine == EMBER and function.owner is None and one.arg in _foreign(function.name):
            file.report(
                RULE, one, f"`{function.shown()}` does not have NumPy's `{one.arg}=`; write its effect with operations"
            )


@cache
def _numpy_only(name: str) -> frozenset[str]:
    """Optional parameters that only NumPy's version of a function has, if other engines have the function."""
    record = catalogue.function(f"numpy.{name}")
    if record is None:
        return frozenset()
    others = [catalogue.operation(name), catalogue.function(f"torch.{name}"), catalogue.function(f"mlx.core.{name}")]
    known = [other for other in others if other]
    if not known:
        return frozenset()
    optional = {p.name for p in catalogue.parameters(record) or () if p.default is not None and p.kind in "BK"}
    for other in known:
        optional -= {parameter.name for parameter in catalogue.parameters(other) or ()}
    return frozenset(optional)


@cache
def _of_jax(name: str) -> frozenset[str]:
    """Parameters of the function of ``jax.numpy``."""
    record = catalogue.function(f"jax.numpy.{name}")
    return frozenset(parameter.name for parameter in catalogue.parameters(record or {}) or ())


@cache
def _foreign(name: str) -> frozenset[str]:
    """Parameters of NumPy's function that the operation of the same name does not have."""
    mine, record = catalogue.operation(name), catalogue.function(f"numpy.{name}")
    if mine is None or record is None:
        return frozenset()
    theirs = {parameter.name for parameter in catalogue.parameters(record) or ()}
    return frozenset(theirs - {parameter.name for parameter in catalogue.parameters(mine) or ()})
