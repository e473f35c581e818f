"""An operation without a sample call for the contract test.

## What it does

In a package with `ops/`, `backend/<engine>/` and `testing/samples/`, reports an operation with a required parameter
that is not a tensor and that the samples of its category do not name. Calls of operations on tensors only are
generated.

## Why

The contract test compares every engine with the reference on its sample calls. An operation without one is not tested
at all.

## Example

`mypackage/ops/manipulation.py`:

```python
from ember_ml.types import Shape, Tensor, TensorLike


def reshape(x: TensorLike, /, shape: Shape) -> Tensor: ...
```

`mypackage/backend/torch/manipulation.py`:

```python
from torch import reshape
```

`mypackage/testing/samples/manipulation.py`:

```python
CALLS = {}
```

## Use instead

`mypackage/ops/manipulation.py`:

```python
from ember_ml.types import Shape, Tensor, TensorLike


def reshape(x: TensorLike, /, shape: Shape) -> Tensor: ...
```

`mypackage/backend/torch/manipulation.py`:

```python
from torch import reshape
```

`mypackage/testing/samples/manipulation.py`:

```python
import numpy as np
from ember_ml.testing.samples import call

CALLS = {"reshape": [call(np.ones((2, 3)), (3, 2)), call(np.ones((2, 3)), (-1,))]}
```

## Fix safety

There is no fix.
"""

from __future__ import annotations

import os
import re
from functools import cache

from emberlint.inference.project import Defined, Project
from emberlint.rules import Rule

RULE = Rule("EMB504", "no-sample", "an operation without a sample call for the contract test")

_TENSORS = re.compile(r"\b(?:Bool)?(TensorLike|Indices|Mask)\b")


@RULE.project
def check(project: Project) -> None:
    """Report operations that need a sample and have none."""
    for package in project.packages:
        folder = _samples(project, package.root)
        if not folder:
            continue
        for module, function in package.operations:
            category = module.name.rpartition(".")[2]
            if _is_generated(function):
                continue
            named = _named(os.path.join(folder, f"{category}.py"))
            if function.name not in named:
                message = f"`{function.name}` has no call in `testing/samples/{category}.py`, so no test runs it"
                project.report(RULE, module, function.span, message)


def _is_generated(function: Defined) -> bool:
    return all(
        default or kind in "VW" or _TENSORS.search(annotation) for _, kind, default, annotation in function.parameters
    ) and any(_TENSORS.search(annotation) for _, _, _, annotation in function.parameters)


def _samples(project: Project, root: str) -> str:
    """Folder of samples in the package; empty if there is none."""
    module = next((m for name, m in project.modules.items() if name == root or name.startswith(root + ".")), None)
    if module is None:
        return ""
    depth = module.name.count(".") - root.count(".") + (os.path.basename(module.path) == "__init__.py")
    top = os.path.abspath(module.path)
    for _ in range(depth):
        top = os.path.dirname(top)
    folder = os.path.join(top, "testing", "samples")
    return folder if os.path.isdir(folder) else ""


@cache
def _named(path: str) -> frozenset[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return frozenset(re.findall(r"[A-Za-z_]\w*", file.read()))
    except OSError:
        return frozenset()
