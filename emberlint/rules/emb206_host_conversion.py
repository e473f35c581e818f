"""An implicit conversion of a tensor to a host value.

## What it does
Finds a tensor passed to a function of NumPy or of `math`, to `range`, `numpy.asarray` and `numpy.array`, and the
methods `.numpy()` and `.cpu()`.

## Why
NumPy and `math` accept host values only. They call `__array__` or `__float__`, which evaluates a lazy engine's graph,
copies from the device (or fails there) and drops the gradient.

## Example
```python
import numpy as np
from ember_ml import ops
from ember_ml.types import Tensor


def decay(x: Tensor) -> Tensor:
    return np.exp(ops.negative(x))
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def decay(x: Tensor) -> Tensor:
    return ops.exp(ops.negative(x))
```

## Fix safety
No fix here; EMB102 rewrites calls into NumPy. Where a host array is intended, write `ops.to_numpy(x)`, which is not
reported.
"""

from __future__ import annotations

import ast

from emberlint.inference.checks import TENSORS
from emberlint.inference.file import File
from emberlint.rules import Rule, evaluation

RULE = Rule("EMB206", "host-conversion", "implicit conversion to the host")


@RULE.on(ast.Call, named=evaluation.is_host_function, given=TENSORS)
@RULE.on(ast.Call, named=evaluation.is_move)
def check(node: ast.Call, file: File) -> None:
    """Report it outside of loops; EMB209 reports it in loops."""
    evaluation.report(RULE, evaluation.host_conversion, node, file)
