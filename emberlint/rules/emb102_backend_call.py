"""A call of an engine's function.

## What it does

Reports `np.sum(x)`, `torch.cat(parts)`, `mx.where(...)` in a frontend, and names the equivalent operation. EMB104
reports calls on Python numbers and shapes.

Arrays of NumPy that are made at import are not reported in a file that imports `ember_ml.nn.tensor`, or with the
setting `namespace = "ember_ml.nn.tensor"`: EmberTensors of every engine combine with them, and a tensor would belong to
one engine.

## Why

The engine's function runs on that engine only, with its own defaults, dtypes and errors. The operation runs on the
engine of its tensors, with the same dtype rule on all of them.

## Example

```python
import numpy as np


def scaled(x):
    return x / np.max(x, axis=0, keepdims=True)
```

## Use instead

```python
from ember_ml import ops


def scaled(x):
    return x / ops.max(x, axis=0, keepdims=True)
```

## Fix safety

Safe where the measured matrix shows that function and operation have the same values, dtypes, shapes and errors for
these keywords, and the arguments are known to be of the types that were measured: arrays, and options that are literals
or known to be integers, bools or shapes. Unsafe elsewhere: where the type of a value is not known (`np.ndim` takes any
object), where default dtypes differ (`np.zeros(3)` is float64, `ops.zeros(3)` is float32; `dtype=float` is float64 for
NumPy and float32 for ember), or where other inputs differ (`np.cumsum` of a number along an axis returns an array with
one element). A default that the operation does not share is written out (`F.normalize(x)` becomes `ops.normalize(x,
axis=1)`). There is no fix where the operation does not support an argument (`out=`, `where=`), where an argument is a
string or an object dtype, where the name means something else (`np.random.shuffle` changes its argument), or for
methods of functions (`np.add.at`).
"""

from __future__ import annotations

import ast

from emberlint.findings import SAFE, SUGGESTION, Edit, Fix
from emberlint.inference.elements import created_elements, elements
from emberlint.inference.file import File
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER, array_type, engine_of
from emberlint.knowledge.returns import result_of
from emberlint.knowledge.types import SCALAR
from emberlint.rewrite.arguments import missing_parameters
from emberlint.rewrite.functions import rewritten
from emberlint.rewrite.imports import import_name, namespace_name
from emberlint.rewrite.names import difference, operation_for, spelled, substitute
from emberlint.rewrite.ufuncs import is_supported, method_advice, ufunc_method
from emberlint.rules import Rule

RULE = Rule("EMB102", "backend-call", "a call of an engine's function", fix="sometimes")


# Differences of an operation, for the title of its unsafe fix.
_NOTES = {
    "numpy.bitwise_count": "it counts the bits of negative integers, not those of their absolute values",
    **dict.fromkeys(
        [f"{place}.{name}" for place in ("numpy", "torch", "mlx.core", "jax.numpy") for name in ("diagonal", "trace")],
        "with more than two axes it uses the last two, not the first",
    ),
}


def _is_foreign(name: str) -> bool:
    if engine_of(name) in ("", EMBER) or array_type(name) is not None:
        return False
    return (
        operation_for(name) != ""
        or result_of(name) is not None
        or ufunc_method(name)[1] != ""
        or substitute(name, "") != ""
    )


def _unsupported_elements(node: ast.Call, path: str, file: File) -> str:
    """What tensors cannot hold in the arguments of a call of NumPy, or in the array that it creates."""
    found = created_elements(path.rpartition(".")[2], node, file)
    return found or next(filter(None, (elements(part, file) for part in node.args if _is_written_out(part))), "")


def _is_written_out(node: ast.expr) -> bool:
    """Whether an argument is a list or tuple of values, and not an option such as ``mode="same"``."""
    return isinstance(node, (ast.List, ast.Tuple, ast.ListComp))


@RULE.on(ast.Call, named=_is_foreign)
def check(node: ast.Call, file: File) -> None:
    """Report calls into an engine's namespace."""
    value = file.value(node)
    if (value is not None and value.kind == SCALAR and value.node is node) or file.allowed is not None:
        return
    path = file.path(node.func)
    engine = engine_of(path)
    name = file.text(node.func)
    function, method = ufunc_method(path)
    if method:
        if not is_supported(node, method, file):
            instead = method_advice(function, method, len(node.args), namespace_name(file))
            file.report(RULE, node.func, f"`{name}` runs on numpy only; {instead}")
        return
    operation = operation_for(path)
    if not operation:
        instead = substitute(path, namespace_name(file))
        advice = f"use {instead}" if instead else "write it with operations"
        file.report(RULE, node.func, f"`{name}` has no equivalent operation; {advice}")
        return
    held = _unsupported_elements(node, path, file) if engine == "numpy" else ""
    if held:
        reason = "tensors cannot hold them, and operations reject the array"
        file.report(RULE, node.func, f"`{name}` makes an array of {held}, and stays: {reason}")
        return
    standard = file.config.target == "array-api"
    if standard and operation not in catalogue.standard():
        file.report(RULE, node.func, f"`{name}` runs on {engine} only, and the array API standard does not have it")
        return
    found = rewritten(node, path, file)
    if found is None:
        portable = f"{'xp' if standard else namespace_name(file)}.{operation}"
        missing = missing_parameters(path, len(node.args), tuple(keyword.arg for keyword in node.keywords))
        names = " and no ".join(f"`{name}`" for name in missing)
        advice = f"use `{portable}`, which has {f'no {names}' if missing else 'other arguments'}"
        reason = difference(path)
        if reason:
            advice = f"`{portable}` means something else, so rewrite it by hand: {reason}"
        file.report(RULE, node.func, f"`{name}` runs on {engine} only; {advice}")
        return
    if standard:
        portable, safety, note = f"xp.{operation}", SUGGESTION, ", where `xp` is the array namespace"
        imports: tuple[Edit, ...] = ()
    else:
        bound, imports = import_name(file.config.namespace, file)
        portable, safety = f"{bound}.{spelled(operation, file.config.namespace)}", found.safety
        note = "" if safety == SAFE else f"; {_NOTES.get(path, 'dtypes and errors may differ')}"
    fix = Fix((*imports, file.edit(node.func, portable), *found.edits), safety, f"call `{portable}`{note}")
    file.report(RULE, node.func, f"`{name}` runs on {engine} only; use `{portable}`", fix=fix)
