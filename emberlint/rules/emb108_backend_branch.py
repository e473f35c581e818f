"""A branch on the name of the active backend.

## What it does

Reports a comparison of a backend's name with that of an engine in a frontend, and a `match` on it. A backend's name is
the result of `get_backend()`, a tensor's `.backend`, and anything with such a name: `backend()`, `config.backend`,
`os.environ["KERAS_BACKEND"]`. The module that chooses the backend (`backend/__init__.py`) is not checked.

## Why

Each branch is tested only where its engine is installed. A difference between engines belongs in `backend/<engine>/`,
as functions of one name that dispatch chooses from.

## Example

```python
from ember_ml import get_backend, ops
from ember_ml.types import Tensor


def flat(x: Tensor) -> Tensor:
    if get_backend() == "torch":
        return ops.reshape(x, (-1,))
    return ops.ravel(x)
```

## Use instead

```python
from ember_ml import ops
from ember_ml.types import Tensor


def flat(x: Tensor) -> Tensor:
    return ops.ravel(x)
```

## Fix safety

There is no fix: it is not known which branch is portable.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.inference.conditions import named_engines, of_case
from emberlint.inference.file import File
from emberlint.rules import Rule


def _is_not_manager(where: str) -> bool:
    return not configuration.is_manager(where)


RULE = Rule("EMB108", "backend-branch", "a branch on the name of the active backend", files=_is_not_manager)


@RULE.on(ast.Compare)
def check(node: ast.Compare, file: File) -> None:
    """Report comparisons of a backend's name with that of an engine."""
    if file.allowed is None and named_engines(node, file):
        _report(node, file)


@RULE.on(ast.Match)
def check_match(node: ast.Match, file: File) -> None:
    """Report ``match`` statements on a backend's name."""
    if file.allowed is None and any(of_case(node.subject, case.pattern, file) for case in node.cases):
        _report(node.subject, file)


def _report(node: ast.expr, file: File) -> None:
    text = " ".join(file.text(node).split())
    file.report(
        RULE,
        node,
        f"`{text}` branches on the backend's name; move the difference to `backend/<engine>/`",
    )
