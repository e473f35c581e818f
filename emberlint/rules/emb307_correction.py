"""A standard deviation or variance with the engine's default divisor.

## What it does
Finds `std` and `var` of torch without `correction=`, the older keywords `unbiased=` and `ddof=`, and the methods
`.std()` and `.var()` of a tensor whose engine is not known.

## Why
By default torch divides by n - 1, and every other engine by n.

## Example
```python
import torch


def spread(x: torch.Tensor) -> torch.Tensor:
    return torch.std(x)
```

## Use instead
```python
import torch


def spread(x: torch.Tensor) -> torch.Tensor:
    return torch.std(x, correction=1)
```

## Fix safety
Safe: the engine's default is written out, under the name that NumPy 2, torch and `ops` share. There is no fix where the
engine is not known, or where the function has only `ddof`: the methods of NumPy's arrays, and MLX.
"""

from __future__ import annotations

import ast

from emberlint.findings import SAFE, Edit, Fix
from emberlint.inference.callees import Called, called, keyword, last_of, spreads
from emberlint.inference.file import File
from emberlint.knowledge.catalogue import operation, parameters
from emberlint.knowledge.engines import EMBER
from emberlint.rules import Rule

RULE = Rule("EMB307", "correction", "divisor of `std` and `var`", fix="safe")

_NAMES = frozenset({"std", "var", "std_mean", "var_mean", "nanstd", "nanvar"})


def _is_spread(name: str) -> bool:
    return last_of(name) in _NAMES


@RULE.on(ast.Call, named=_is_spread)
def check(node: ast.Call, file: File) -> None:
    """Report ``std`` and ``var``, as a function or as a method."""
    function = called(node, file)
    if function is None or file.allowed is not None or keyword(node, "correction") is not None:
        return
    older = keyword(node, "ddof") or keyword(node, "unbiased")
    if older is not None and function.engine != EMBER:
        known = _has_correction(function)
        name = function.name if operation(function.name) is not None else function.last
        use = "write `correction=`" if known else f"use `ops.{name}` with `correction=`"
        message = f"not every engine has `{older.arg}=`; {use}"
        file.report(RULE, node, message, fix=_renamed(older, file) if known else None, because=function.owner)
    elif function.engine == "torch":
        message = f"`{function.shown()}` divides by n - 1 on torch and by n elsewhere; write `correction=1`"
        file.report(RULE, node, message, fix=_added(node, function, file), because=function.owner)
    elif function.owner is not None and function.engine in (EMBER, ""):
        message = f"`{function.shown()}` divides by n - 1 on torch and by n elsewhere; use `ops.{function.name}`"
        file.report(RULE, node, message, because=function.owner)


def _has_correction(function: Called) -> bool:
    """Whether the function has a parameter ``correction``: NumPy's methods and MLX do not."""
    if function.owner is not None:
        return function.engine == "torch"
    return any(parameter.name == "correction" for parameter in parameters(function.record or {}) or ())


def _renamed(older: ast.keyword, file: File) -> Fix | None:
    text = file.text(older.value)
    if older.arg == "unbiased":
        if type(older.value) is not ast.Constant or type(older.value.value) is not bool:
            return None
        text = str(int(older.value.value))
    return Fix((file.edit(older, f"correction={text}"),), SAFE, f"write `correction={text}`")


def _added(node: ast.Call, function: Called, file: File) -> Fix | None:
    # A second argument may be torch's older `unbiased`, which excludes `correction`.
    if spreads(node) or len(node.args) > (1 if function.owner is None else 0):
        return None
    end = file.span(node)[1] - 1
    before = file.source.data[file.span(node.func)[1] : end].rstrip()
    comma = "" if before.endswith((b"(", b",")) else ", "
    comma = " " if before.endswith(b",") else comma
    return Fix((Edit(end, end, f"{comma}correction=1"),), SAFE, "write out torch's default, `correction=1`")
