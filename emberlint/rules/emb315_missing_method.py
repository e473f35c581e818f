"""A method that another engine's tensors do not have.

## What it does
Finds a method or property of a tensor that one of the target engines lacks: `x.astype` (not on torch), `x.numel`
(torch alone), `x.clip` (not on MLX).

## Why
`ops` answers the engine's own tensors, so what may be called on them is what all engines have.

## Example
```python
def halved(x: Tensor) -> Tensor:
    return x.astype("float16")
```

## Use instead
```python
def halved(x: Tensor) -> Tensor:
    return ops.cast(x, "float16")
```

## Fix safety
Safe where the operation has the same name and arguments as the method and the value is one of `ops`; unsafe for the
tensors of one engine, whose methods may answer other dtypes.
"""

from __future__ import annotations

import ast
from functools import cache

from emberlint import catalogue, methods
from emberlint.file import File
from emberlint.findings import SAFE, UNSAFE, Fix
from emberlint.kinds import EMBER
from emberlint.rules import Rule
from emberlint.rules.emb106_backend_method import NAMES as MACHINERY

RULE = Rule("EMB315", "missing-method", "method that an engine lacks", fix="sometimes")

# Those that answer the same values, dtypes, shapes and errors under the operation's name.
_SAME = frozenset({"abs", "copy", "moveaxis", "ravel", "square"})


def _may_lack(name: str) -> bool:
    return name.startswith(".") and not name.endswith("_") and _is_method(name[1:])


@RULE.on(ast.Call, named=_may_lack)
def check_method(node: ast.Call, file: File) -> None:
    """Methods that some engine does not have."""
    function = node.func
    if type(function) is not ast.Attribute or file.allowed is not None:
        return
    owner = file.value(function.value)
    if owner is None or not owner.is_array or file.path(function):
        return
    name = function.attr
    if name in MACHINERY and owner.engine != EMBER:
        return
    engine = methods.is_lacking(name, file.config.targets)
    if not engine:
        return
    found = methods.moved(node, owner, file)
    message = f"`.{name}()` is no method of {engine}'s arrays"
    if found is None:
        file.report(RULE, function, message, because=owner)
        return
    safety = SAFE if owner.engine == EMBER and name in _SAME else UNSAFE
    fix = Fix(found.edits, safety, f"call `ops.{found.operation}`")
    file.report(RULE, function, f"{message}; use `ops.{found.operation}`", fix=fix, because=owner)


@RULE.on(ast.Attribute, named=".size".__eq__)
def check_property(node: ast.Attribute, file: File) -> None:
    """``x.size``, which is a method on torch."""
    if node.attr != "size" or type(node.ctx) is not ast.Load or file.allowed is not None or file.is_called(node):
        return
    owner = file.value(node.value)
    if owner is None or not owner.is_array or owner.engine == "torch" or "torch" not in file.config.targets:
        return
    fix = Fix(methods.property_moved(node, file), SAFE if owner.engine == EMBER else UNSAFE, "call `ops.size`")
    file.report(RULE, node, "`.size` is a method on torch; use `ops.size`", fix=fix, because=owner)


@cache
def _is_method(name: str) -> bool:
    return any(name in catalogue.methods(engine) for engine in ("numpy", "torch", "mlx"))
