"""A branch on the name of the active backend.

## What it does

Reports a comparison of a backend's name with that of an engine in a frontend, and a `match` on it. A backend's name is
what `get_backend()` and a tensor's `.backend` return, and anything that is called so: `backend()`, `config.backend`,
`os.environ["KERAS_BACKEND"]`. The module that chooses among the backends (`backend/__init__.py`) is let be.

## Why

Each such branch is a program of its own, tested only where that engine is. A difference between engines belongs under
one name in `backend/<engine>/`, where the dispatcher finds it.

## Example

```python
if get_backend() == "torch":
    y = ops.reshape(x, (-1,))
else:
    y = ops.ravel(x)
```

## Use instead

```python
y = ops.ravel(x)
```

## Fix safety

There is no fix: which branch is the portable one is not known.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.inference.conditions import named_engines, of_case
from emberlint.inference.file import File
from emberlint.rules import Rule


def _is_no_manager(where: str) -> bool:
    return not configuration.is_manager(where)


RULE = Rule("EMB108", "backend-branch", "a branch on the name of the active backend", files=_is_no_manager)


@RULE.on(ast.Compare)
def check(node: ast.Compare, file: File) -> None:
    """Comparisons of a backend's name with that of an engine."""
    if file.allowed is None and named_engines(node, file):
        _report(node, file)


@RULE.on(ast.Match)
def check_match(node: ast.Match, file: File) -> None:
    """Patterns that a backend's name is matched with."""
    if file.allowed is None and any(of_case(node.subject, case.pattern, file) for case in node.cases):
        _report(node.subject, file)


def _report(node: ast.expr, file: File) -> None:
    text = " ".join(file.text(node).split())
    file.report(
        RULE, node, f"`{text}` branches on the backend's name; put the difference under one name in `backend/<engine>/`"
    )
