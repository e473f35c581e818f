"""An engine's type in an annotation or in ``isinstance``.

## What it does

Reports `np.ndarray`, `torch.Tensor`, `mx.array`, `jax.Array` in annotations and in `isinstance` and `issubclass` of a
frontend.

## Why

The annotation is wrong for another engine's tensors, and the test is false for them: the program silently takes the
wrong branch.

## Example

```python
import numpy as np
from ember_ml import ops


def scaled(x: np.ndarray) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return ops.divide(x, 2)
    return x
```

## Use instead

```python
from ember_ml import ops
from ember_ml.types import Tensor


def scaled(x: Tensor) -> Tensor:
    if ops.is_tensor(x):
        return ops.divide(x, 2)
    return x
```

## Fix safety

Unsafe: code that reads annotations at run time sees another type, and `ops.is_tensor` is true for the tensors of every
engine.
"""

from __future__ import annotations

import ast

from emberlint.findings import UNSAFE, Fix
from emberlint.inference.annotations import declared_value
from emberlint.inference.checks import Annotation
from emberlint.inference.file import File
from emberlint.knowledge.engines import EMBER, array_type
from emberlint.rewrite.imports import import_name
from emberlint.rules import Rule

RULE = Rule("EMB105", "backend-type", "an engine's type in an annotation or in `isinstance`", fix="unsafe")

TYPES = "ember_ml.types"


@RULE.on(Annotation)
def check_annotation(node: ast.expr, file: File) -> None:
    """Report an engine's types in an annotation, quoted ones included."""
    if file.allowed is not None:
        return
    if isinstance(node, ast.Constant):
        value = declared_value(node, file)
        if value is not None and value.is_array and value.engine != EMBER and value.engine:
            file.report(RULE, node, f"the annotation {file.text(node)} is an engine's type; use `{TYPES}.Tensor`")
        return
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, (ast.Attribute, ast.Name)):
            if _is_foreign(part, file):
                _report(part, file)
        elif isinstance(part, ast.Subscript) and _is_foreign(part.value, file):
            _report(part, file)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            check_annotation(part, file)
        else:
            stack += ast.iter_child_nodes(part)


def _report(node: ast.expr, file: File) -> None:
    text = " ".join(file.text(node).split())
    name, imports = import_name(f"{TYPES}.Tensor", file, other="PortableTensor")
    fix = Fix(
        (*imports, file.edit(node, name)),
        UNSAFE,
        f"annotate with `{name}`, the type of every engine's tensors",
    )
    file.report(RULE, node, f"`{text}` is an engine's type; annotate with `{TYPES}.Tensor`", fix=fix)


def _is_foreign(node: ast.AST, file: File) -> bool:
    path = file.path(node)
    known = array_type(path) if path else None
    return known is not None and known[1] not in ("", EMBER)


_TESTS = frozenset({"isinstance", "issubclass"})


@RULE.on(ast.Call, named=_TESTS.__contains__)
def check_instance(node: ast.Call, file: File) -> None:
    """Report an engine's types in a test of a value's type."""
    if file.allowed is not None or len(node.args) != 2 or not file.is_builtin(node.func, *_TESTS):
        return
    types = node.args[1]
    parts = types.elts if isinstance(types, ast.Tuple) else [types]
    foreign = [part for part in parts if _is_foreign(part, file)]
    if not foreign:
        return
    text = file.text(node)
    fix = None
    if len(foreign) == len(parts) and file.is_builtin(node.func, "isinstance"):
        name, imports = import_name(file.config.namespace, file)
        call = f"{name}.is_tensor({file.text(node.args[0])})"
        fix = Fix(
            (*imports, file.edit(node, call)),
            UNSAFE,
            f"call `{name}.is_tensor`, which is true for every engine's tensors",
        )
    names = ", ".join(f"`{file.text(part)}`" for part in foreign)
    text = " ".join(text.split())
    file.report(
        RULE, node, f"`{text}` is false for the tensors of other engines ({names}); use `ops.is_tensor`", fix=fix
    )
