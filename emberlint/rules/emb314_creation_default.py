"""A tensor created with the engine's default dtype, or on the default device.

## What it does
Finds `zeros`, `ones`, `empty`, `full`, `eye`, `linspace` and `arange` of an engine without `dtype=`, and of `ops`
without `device=` in a function with a tensor argument.

## Why
NumPy's default is float64 (int64), torch's float32 (int64), that of MLX and JAX float32 (int32). A tensor on the
default device cannot be combined with one on another device.

## Example
```python
from ember_ml import ops
from ember_ml.types import Tensor


def padded(x: Tensor) -> Tensor:
    return ops.concat([x, ops.zeros(3)])
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def padded(x: Tensor) -> Tensor:
    return ops.concat([x, ops.zeros(3, device=ops.get_device(x))])
```

## Fix safety
No fix: pass `dtype=` and `device=`, or use `zeros_like` and similar functions, which take both from a tensor.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import called, keyword, last_of, spreads
from emberlint.inference.file import File
from emberlint.knowledge.engines import EMBER
from emberlint.rules import Rule

RULE = Rule("EMB314", "creation-default", "creation without dtype or device")

# Number of positional arguments before the dtype.
_MADE = {"zeros": 1, "ones": 1, "empty": 1, "full": 2, "eye": 4, "identity": 1, "linspace": 5, "arange": 3}


def _is_creation(name: str) -> bool:
    return last_of(name) in _MADE


@RULE.on(ast.Call, named=_is_creation)
def check(node: ast.Call, file: File) -> None:
    """Report calls that create a tensor with default dtype or device."""
    function = called(node, file)
    if function is None or function.owner is not None or function.name not in _MADE or file.allowed is not None:
        return
    if spreads(node) or keyword(node, "like") is not None:
        return
    if function.engine == EMBER:
        if keyword(node, "device") is None and _has_tensor(file):
            message = (
                f"`{function.shown()}` uses the default device, which may not be that of the arguments; pass `device=`"
            )
            file.report(RULE, node, message)
    elif keyword(node, "dtype") is None and not _has_dtype(node, function.engine, function.name):
        message = f"the default dtype of `{function.shown()}` differs by engine; pass `dtype=`"
        file.report(RULE, node, message)


def _has_tensor(file: File) -> bool:
    """Whether the enclosing function has a tensor argument."""
    function = file.function
    if function is None:
        return False
    names = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    values = (file.lookup(name.arg) for name in names)
    return any(value is not None and value.is_tensor and bool(value.argument) for value in values)


def _has_dtype(node: ast.Call, engine: str, name: str) -> bool:
    if engine == "torch":
        return False
    count = _MADE[name]
    if name == "eye" and engine == "mlx":
        count = 3
    return len(node.args) > count
