"""A method that another engine's tensors do not have.

## What it does
Finds a method or property of a tensor that one of the target engines lacks: `x.astype` (not on torch), `x.numel` (torch
only), `x.clip` (not on MLX), `x.size(0)` (a method on torch only), torch's keywords (`x.sum(dim=0)`), and the updates
of JAX and MLX (`x.at[0].set(v)`).

## Why
`ops` returns the engine's own tensors, so portable code can only use methods that all engines have.

## Example
```python
from ember_ml.types import Tensor


def halved(x: Tensor) -> Tensor:
    return x.astype("float16")
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def halved(x: Tensor) -> Tensor:
    return ops.cast(x, "float16")
```

## Fix safety
Safe where the operation has the same name and arguments as the method and the value is known to come from `ops`: by a
call, or by a `Tensor` annotation of ember or of the project. Unsafe for the tensors of one engine, whose methods may
return other dtypes, and for the `Tensor` of another library. `x.size(0)` becomes `x.shape[0]`, which is safe.
`x.at[0].set(v)` becomes `ops.index_update(x, 0, v)`, which raises for an index that is out of bounds.
"""

from __future__ import annotations

import ast
from functools import cache

from emberlint.findings import SAFE, UNSAFE, Fix
from emberlint.inference.file import File
from emberlint.inference.values import AT, Value
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER
from emberlint.rewrite import methods
from emberlint.rewrite.jax import UPDATES, update_edits
from emberlint.rules import Rule
from emberlint.rules.emb106_backend_method import NAMES as MACHINERY

RULE = Rule("EMB315", "missing-method", "method that an engine lacks", fix="sometimes")

# Methods with the same values, dtypes, shapes and errors as the operation of their name.
_SAME = frozenset({"abs", "copy", "ravel", "square"})


def _may_lack(name: str) -> bool:
    return name.startswith(".") and not name.endswith("_") and _is_method(name[1:])


@RULE.on(ast.Call, named=_may_lack)
def check_method(node: ast.Call, file: File) -> None:
    """Report methods that a target engine does not have."""
    function = node.func
    if type(function) is not ast.Attribute or file.allowed is not None:
        return
    owner = file.value(function.value)
    if owner is None or not owner.is_array or file.path(function):
        return
    name = function.attr
    if name in MACHINERY and owner.engine != EMBER:
        return
    message = _lack(node, name, owner, file)
    if not message:
        return
    found = methods.rewritten_method(node, owner, file)
    if found is None:
        file.report(RULE, function, message, because=owner)
        return
    same = _is_part(node, file) if name == "size" else name in _SAME and _is_ember(owner, file)
    fix = Fix(found.edits, SAFE if same else UNSAFE, found.described)
    file.report(RULE, function, f"{message}; use `{found.use}`", fix=fix, because=owner)


def _is_part(node: ast.Call, file: File) -> bool:
    """Whether the axis of ``x.size(...)``, if given, is known to be an integer, since it may be None."""
    values = [file.value(given) for given in (*node.args, *(keyword.value for keyword in node.keywords))]
    return all(value is not None and value.dtype == "int" for value in values)


_TORCH_KEYWORDS = frozenset({"dim", "dims", "keepdim"})


def _lack(node: ast.Call, name: str, owner: Value, file: File) -> str:
    """Message about what a target engine lacks; empty if all have the method with these keywords."""
    engine = methods.engine_without(name, file.config.targets)
    if engine:
        return f"`.{name}()` is not a method on {engine}"
    others = [engine for engine in file.config.targets if engine != "torch"]
    if not others or owner.engine not in ("torch", EMBER):
        return ""
    if name == "size":
        return f"`.size()` is not a method on {others[0]}"
    for keyword in node.keywords:
        if keyword.arg in _TORCH_KEYWORDS:
            return f"`.{name}()` has no `{keyword.arg}=` on {others[0]}"
    return ""


def _is_update(name: str) -> bool:
    return name.startswith(".") and name[1:] in UPDATES


@RULE.on(ast.Call, named=_is_update)
def check_update(node: ast.Call, file: File) -> None:
    """Report ``x.at[i].set(v)``, which only JAX and MLX have."""
    function = node.func
    part = file.value(function.value) if isinstance(function, ast.Attribute) else None
    if part is None or part.path != AT or file.allowed is not None:
        return
    engine = methods.engine_without("at", file.config.targets)
    if not engine or part.source is None:
        return
    message = f"`.at` is not an attribute on {engine}"
    found = update_edits(node, file, file.config.namespace)
    if found is None:
        file.report(RULE, node, f"{message}; write it with `ops.index_update`", because=part.source)
        return
    operation, edits = found
    fix = Fix(edits, UNSAFE, f"call `ops.{operation}`")
    file.report(RULE, node, f"{message}; use `ops.{operation}`", fix=fix, because=part.source)


@RULE.on(ast.Attribute, named=".size".__eq__)
def check_property(node: ast.Attribute, file: File) -> None:
    """Report ``x.size``, which is a method on torch."""
    if node.attr != "size" or type(node.ctx) is not ast.Load or file.allowed is not None or file.is_called(node):
        return
    owner = file.value(node.value)
    if owner is None or not owner.is_array or owner.engine == "torch" or "torch" not in file.config.targets:
        return
    fix = Fix(methods.rewritten_property(node, file), SAFE if _is_ember(owner, file) else UNSAFE, "call `ops.size`")
    file.report(RULE, node, "`.size` is a method on torch; use `ops.size`", fix=fix, because=owner)


def _is_ember(value: Value, file: File) -> bool:
    """Whether a tensor certainly comes from ``ops``: by a call, or by a type of ember or of the project."""
    own = {"ember_ml", file.config.namespace.partition(".")[0], file.module.partition(".")[0]}
    return value.engine == EMBER and any(_roots(step.node, file) & own - {""} for step in value.chain())


def _roots(node: ast.AST | None, file: File) -> set[str]:
    """Libraries that define a value's function, or the types in its annotation."""
    named = node.func if isinstance(node, ast.Call) else node.annotation if isinstance(node, ast.arg) else node
    return {file.path(part).partition(".")[0] for part in ast.walk(named)} if named is not None else set()


@cache
def _is_method(name: str) -> bool:
    return any(name in catalogue.methods(engine) for engine in catalogue.engines())
