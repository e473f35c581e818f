"""A tensor that is printed or formatted.

## What it does
Finds a tensor in an f-string, in `print`, `str`, `repr`, `format`, in `"..." % x`, in `"...".format(x)` and in a
logging call. Opt-in: select EMB207.

## Why
The text needs the values, so the tensor is evaluated and copied to the host, even if nobody reads the log.

## Example
```python
from ember_ml.types import Tensor


def report(loss: Tensor) -> None:
    print(f"loss {loss}")
```

## Use instead
```python
from ember_ml.types import Tensor


def report(loss: Tensor) -> None:
    print("loss of shape", loss.shape)
```

## Fix safety
No fix.
"""

from __future__ import annotations

import ast

from emberlint.inference.file import File
from emberlint.knowledge.types import STRING
from emberlint.rules import Rule
from emberlint.rules.evaluation import tensor

RULE = Rule("EMB207", "formatting", "formatting or printing of a tensor")

_LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")


@RULE.on(ast.FormattedValue)
def check_fields(node: ast.FormattedValue, file: File) -> None:
    """Report fields of an f-string."""
    _report(node.value, node.value, "an f-string", file)


@RULE.on(ast.Call)
def check_call(node: ast.Call, file: File) -> None:
    """Report ``print`` and similar builtins, ``"...".format(x)``, and logging."""
    function = node.func
    if file.is_builtin(function, "print", "str", "repr", "format", "ascii"):
        word = f"`{function.id}`"  # type: ignore[attr-defined]
    elif type(function) is ast.Attribute and _is_text(function.value, file) and function.attr == "format":
        word = "`format`"
    elif type(function) is ast.Attribute and function.attr in _LEVELS and _is_logger(function.value, file):
        word = "a log entry"
    else:
        return
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        _report(argument, argument, word, file)


@RULE.on(ast.BinOp)
def check_percent(node: ast.BinOp, file: File) -> None:
    """Report ``"..." % x``."""
    if type(node.op) is ast.Mod and _is_text(node.left, file):
        for part in node.right.elts if type(node.right) is ast.Tuple else [node.right]:
            _report(part, part, "`%`", file)


def _is_text(node: ast.expr, file: File) -> bool:
    value = file.value(node)
    return value is not None and value.kind == STRING


def _is_logger(node: ast.expr, file: File) -> bool:
    name = node.id if type(node) is ast.Name else node.attr if type(node) is ast.Attribute else ""
    return file.path(node) == "logging" or name.strip("_").lower() in ("log", "logger", "logging")


def _report(node: ast.expr, part: ast.expr, where: str, file: File) -> None:
    if file.allowed is not None:
        return
    value = tensor(part, file)
    if value is not None:
        file.report(
            RULE,
            node,
            f"`{file.text(part)}` in {where} is evaluated and copied to the host",
            because=value,
        )
