"""Arithmetic on Python numbers that goes through NumPy.

## What it does

Reports `np.prod(x.shape)`, `np.sqrt(2.0)`, `np.ceil(n / 2)`: a NumPy function whose arguments are Python numbers or
shapes.

## Why

It needs no engine. `math` computes it faster, answers a Python number and not a NumPy scalar, and the file may not
need NumPy at all.

## Example

```python
import numpy as np

size = np.prod(x.shape[1:])
```

## Use instead

```python
import math

size = math.prod(x.shape[1:])
```

## Fix safety

Safe for products of shapes and for numbers that are written out, inside of the function's domain. Unsafe elsewhere:
`math.sqrt(-1)` raises where `np.sqrt(-1)` warns and answers NaN, and `math.floor` answers an int.
"""

from __future__ import annotations

import ast
import math

from emberlint.calls import last_of
from emberlint.file import File
from emberlint.findings import SAFE, UNSAFE, Edit, Fix
from emberlint.kinds import SCALAR, SHAPE
from emberlint.results import HOST_MATHS
from emberlint.rules import Rule

RULE = Rule("EMB104", "host-maths", "arithmetic on Python numbers that goes through NumPy", fix="sometimes")

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
_EXACT = frozenset({"prod", "isnan", "isinf", "isfinite", "gcd", "lcm"})
_INTEGERS = frozenset({"floor", "ceil", "trunc"})


def _is_maths(name: str) -> bool:
    return name.startswith(("numpy.", "jax.numpy.")) and last_of(name) in HOST_MATHS


@RULE.on(ast.Call, named=_is_maths)
def check(node: ast.Call, file: File) -> None:
    """Calls whose arguments are all numbers or shapes."""
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
    if node.keywords or not node.args or (name in _BUILTINS and not file.is_builtin(ast.Name(target), target)):
        file.report(RULE, node, message)
        return
    imports: tuple[Edit, ...] = ()
    if name in _MATH:
        bound, imports = file.import_name("math")
        target = f"{bound}.{_MATH[name]}"
    safe = _is_exact(name, node, file)
    fix = Fix((*imports, file.edit(node.func, target)), SAFE if safe else UNSAFE, f"call `{target}`")
    file.report(RULE, node, message, fix=fix)


def _is_exact(name: str, node: ast.Call, file: File) -> bool:
    """Whether `math` gives the same number and cannot raise."""
    if name in _EXACT or name in ("abs", "absolute"):
        return True
    first = file.value(node.args[0])
    if name in ("max", "min", "amax", "amin", "sum"):
        return first is not None and first.kind == SHAPE and len(node.args) == 1 and name == "sum"
    if name in _INTEGERS or name in _BUILTINS:
        return False
    numbers = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    if len(numbers) != len(node.args) or not all(isinstance(number, (int, float)) for number in numbers):
        return False
    try:
        getattr(math, _MATH[name])(*numbers)
    except (ValueError, OverflowError, TypeError):
        return False
    return True
