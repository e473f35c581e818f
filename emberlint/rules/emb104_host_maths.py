"""Arithmetic on Python numbers by NumPy.

## What it does

Reports `np.prod(x.shape)`, `np.sqrt(2.0)`, `np.ceil(n / 2)`: a NumPy function whose arguments are Python numbers or
shapes.

## Why

It needs no engine. `math` is faster and returns a Python number instead of a NumPy scalar, and the file may not need
NumPy at all.

## Example

```python
import numpy as np
from ember_ml.types import Tensor


def features(x: Tensor) -> int:
    return int(np.prod(x.shape[1:]))
```

## Use instead

```python
import math

from ember_ml.types import Tensor


def features(x: Tensor) -> int:
    return math.prod(x.shape[1:])
```

## Fix safety

Safe where the result becomes a Python number anyway, in `int(...)`, `float(...)`, `bool(...)` or, for `isnan` and
similar tests, a condition. This holds for products and sums of shapes, `gcd` and `lcm` of integers, `abs`, `floor` and
`ceil` of floats, and for literals inside of the function's domain. Unsafe elsewhere: NumPy returns a NumPy scalar,
which has a dtype (`x * np.sqrt(2.0)` is float64 where `x` is float32, `x * math.sqrt(2.0)` is float32), and
`math.sqrt(-1)` raises where `np.sqrt(-1)` warns and returns NaN. There is no fix where methods of the result are called
(`np.prod(x.shape).astype(int)`).
"""

from __future__ import annotations

import ast
import math
import re

from emberlint.findings import SAFE, UNSAFE, Edit, Fix
from emberlint.inference.callees import last_of
from emberlint.inference.file import File
from emberlint.inference.results import HOST_MATHS
from emberlint.inference.values import INT
from emberlint.knowledge.types import SCALAR, SEQUENCE, SHAPE
from emberlint.rewrite import surroundings
from emberlint.rewrite.imports import import_name
from emberlint.rules import Rule

RULE = Rule("EMB104", "host-maths", "arithmetic on Python numbers by NumPy", fix="sometimes")

_MATH = {
    "prod": "prod",
    "sqrt": "sqrt",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "log1p": "log1p",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "fabs": "fabs",
    "hypot": "hypot",
    "cbrt": "cbrt",
    "degrees": "degrees",
    "rad2deg": "degrees",
    "radians": "radians",
    "deg2rad": "radians",
    "isnan": "isnan",
    "isinf": "isinf",
    "isfinite": "isfinite",
    "gcd": "gcd",
    "lcm": "lcm",
}
_BUILTINS = {
    "abs": "abs",
    "absolute": "abs",
    "max": "max",
    "min": "min",
    "amax": "max",
    "amin": "min",
    "sum": "sum",
    "maximum": "max",
    "minimum": "min",
}
# Functions of one sequence, and functions of two numbers; the rest take one number.
_GATHERING = frozenset({"prod", "sum", "max", "min", "amax", "amin"})
_PAIRING = frozenset({"arctan2", "gcd", "hypot", "lcm", "maximum", "minimum"})
_TESTS = frozenset({"isnan", "isinf", "isfinite"})
_INTEGERS = frozenset({"floor", "ceil", "trunc"})
_CONVERTED = re.compile(rb"(?<![\w.])(int|float|bool)\s*\(\s*$")


def _is_maths(name: str) -> bool:
    return name.startswith(("numpy.", "jax.numpy.")) and last_of(name) in HOST_MATHS


@RULE.on(ast.Call, named=_is_maths)
def check(node: ast.Call, file: File) -> None:
    """Report calls whose arguments are all numbers or shapes."""
    value = file.value(node)
    if value is None or value.kind != SCALAR or value.node is not node or file.allowed is not None:
        return
    name = last_of(file.path(node.func))
    text = file.text(node.func)
    if name in _MATH:
        target = f"math.{_MATH[name]}"
    elif name in _BUILTINS:
        target = _BUILTINS[name]
    else:
        file.report(RULE, node, f"`{text}` of Python numbers needs no engine; write it in Python")
        return
    message = f"`{text}` of Python numbers needs no engine; use `{target}`"
    if name in _BUILTINS and not file.is_builtin(ast.Name(target), target):
        file.report(RULE, node, message)
        return
    if not _is_taken(name, node, file):
        file.report(RULE, node, f"`{text}` of Python numbers needs no engine; write it in Python")
        return
    if surroundings.following(node, file) == b".":
        file.report(RULE, node, f"{message}, which returns a Python number")
        return
    imports: tuple[Edit, ...] = ()
    if name in _MATH:
        bound, imports = import_name("math", file)
        target = f"{bound}.{_MATH[name]}"
    safe = _is_exact(name, node, file)
    note = "" if safe else ", which returns a Python number"
    fix = Fix((*imports, file.edit(node.func, target)), SAFE if safe else UNSAFE, f"call `{target}`{note}")
    file.report(RULE, node, message, fix=fix)


def _is_taken(name: str, node: ast.Call, file: File) -> bool:
    """Whether Python's function accepts the arguments: one sequence, or numbers."""
    if node.keywords or not node.args:
        return False
    values = list(map(file.value, node.args))
    if name in _GATHERING:
        return len(values) == 1 and values[0] is not None and values[0].kind in (SHAPE, SEQUENCE)
    if len(values) != (2 if name in _PAIRING else 1):
        return False
    return all(value is not None and value.kind == SCALAR and value.dtype != "complex" for value in values)


def _is_exact(name: str, node: ast.Call, file: File) -> bool:
    """Whether Python's function returns the same number, cannot raise, and the type of the number does not matter."""
    into = _destination(node, file)
    if not into:
        return False
    values = list(map(file.value, node.args))
    dtypes = {value.dtype for value in values if value is not None}
    if name in _GATHERING:
        items = (values[0].items or ()) if values[0] is not None else ()
        return name in ("prod", "sum") and (dtypes == {"int"} or (bool(items) and all(item is INT for item in items)))
    if name in _TESTS:
        return dtypes == {"float"}
    if into == "condition":
        return False
    if name in _INTEGERS:
        return into == "int" and dtypes == {"float"}
    if name in ("gcd", "lcm"):
        return dtypes == {"int"}
    if name in ("abs", "absolute"):
        return dtypes in ({"int"}, {"float"})
    return name not in _BUILTINS and _is_written_out(name, node)


def _destination(node: ast.Call, file: File) -> str:
    """Built-in type that the result is converted to, or ``condition``; empty if it is used as it is."""
    found = _CONVERTED.search(surroundings.before(node, file))
    if found is None:
        return "condition" if surroundings.is_condition(node, file) else ""
    word = found[1].decode()
    return word if surroundings.following(node, file) == b")" and file.is_builtin(ast.Name(word), word) else ""


def _is_written_out(name: str, node: ast.Call) -> bool:
    """Whether the arguments are literals that `math` accepts."""
    numbers = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    if len(numbers) != len(node.args) or not all(type(number) in (int, float) for number in numbers):
        return False
    try:
        getattr(math, _MATH[name])(*numbers)
    except (ValueError, OverflowError, TypeError):
        return False
    return True
