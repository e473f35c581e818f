"""A backend's function that returns a host value instead of a tensor.

## What it does

In `backend/<engine>/` of any engine but NumPy: reports a public function that returns `.item()`, `.tolist()`,
`float(x)` or a NumPy array, unless its return annotation says so.

## Why

The value has left its device and its graph: gradients stop, a lazy engine evaluates, a compiler cannot trace it, and
the next operation may create its tensor on another device.

## Example

`mypackage/backend/torch/linearalg.py`:

```python
import torch


def norm(x: torch.Tensor, /):
    return float(torch.linalg.norm(x))
```

## Use instead

`mypackage/backend/torch/linearalg.py`:

```python
import torch


def norm(x: torch.Tensor, /):
    return torch.linalg.norm(x)
```

## Fix safety

There is no fix.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.inference.file import File
from emberlint.knowledge.types import HOST, SCALAR
from emberlint.rules import Rule


def _has_tensors(where: str) -> bool:
    return configuration.backend_of(where) not in ("", "numpy")


RULE = Rule(
    "EMB507",
    "host-result",
    "a backend's function that returns a host value instead of a tensor",
    files=_has_tensors,
)

_PLAIN = ("int", "bool", "float", "str", "None", "tuple[int", "list", "dict", "Any", "np.", "object", "NDArray")


@RULE.on(ast.Return, host=True)
def check(node: ast.Return, file: File) -> None:
    """Report host values that public functions of a backend return."""
    function = file.function
    if function is None or node.value is None:
        return
    if function.name.startswith("_") or file.klass is not None or file.is_nested():
        return
    if function.returns is not None and ast.unparse(function.returns).strip("'\"").startswith(_PLAIN):
        return
    value = file.value(node.value)
    if value is None:
        return
    if value.kind == HOST:
        what = "a NumPy array"
    elif value.kind == SCALAR and _comes_from_tensor(node.value, file):
        what = "a Python number"
    else:
        return
    engine = configuration.backend_of(file.where)
    file.report(
        RULE, node, f"`{function.name}` of the {engine} backend returns {what} instead of a tensor", because=value
    )


def _comes_from_tensor(node: ast.expr, file: File) -> bool:
    """Whether a number was read from a tensor: `.item()`, `float(x)`."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
        owner = file.value(node.func.value)
        return owner is not None and owner.is_array
    if file.is_builtin(node.func, "float", "int", "bool", "complex") and len(node.args) == 1:
        value = file.value(node.args[0])
        return value is not None and value.is_array
    return False
