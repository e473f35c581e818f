"""An import of an engine outside of its backend.

## What it does

Reports `import numpy`, `from torch import ...` and similar imports in a file that is not part of a backend. The setting
`layers` says which files may import which engine; without it, `backend/<engine>/` may import that engine and NumPy. Two
kinds of import are not reported: those for type checkers only (`if TYPE_CHECKING:`), and those that run only when their
engine is the active backend (`if backend() == "torch":`), which EMB108 reports as a branch. In a file that imports
`ember_ml.nn.tensor`, or with the setting `namespace = "ember_ml.nn.tensor"`, an import of NumPy that only arrays made
at import use is not reported either.

## Why

A program that imports an engine runs on that engine only. If the frontend says what to compute and a backend says how,
one program runs on every engine.

## Example

```python
import numpy as np


def spread(x):
    return np.max(x) - np.min(x)
```

## Use instead

```python
from ember_ml import ops


def spread(x):
    return ops.max(x) - ops.min(x)
```

## Fix safety

Safe: an import whose names are not used in the file is removed. The fixes of EMB102, EMB103 and EMB104 leave such
imports behind. An import is kept if its name is used or listed in `__all__`, or if it is in an `__init__.py` or in a
`try`. `import ml_dtypes` is kept too, because it registers dtype names with NumPy.
"""

from __future__ import annotations

import ast

from emberlint import config as configuration
from emberlint.config import ENGINES
from emberlint.findings import SAFE, Edit, Fix
from emberlint.inference.file import File
from emberlint.rules import Rule

RULE = Rule("EMB101", "backend-import", "an import of an engine outside of its backend", fix="safe", everywhere=True)

_ENGINES = frozenset({*ENGINES, "ml_dtypes"})


@RULE.on(ast.Import, ast.ImportFrom)
def check(node: ast.Import | ast.ImportFrom, file: File) -> None:
    """Report names imported from an engine that the file's layer may not import."""
    if file.typing:
        return
    if isinstance(node, ast.ImportFrom):
        if node.level or not node.module or node.module.partition(".")[0] not in _ENGINES:
            return
        paths = [node.module] * len(node.names)
    else:
        paths = [alias.name for alias in node.names]
    allowed = file.allowed or frozenset()
    for path, alias in zip(paths, node.names, strict=True):
        engine = path.partition(".")[0]
        if engine not in _ENGINES or engine in allowed or engine in file.active_backends():
            continue
        if file.allowed is not None and configuration.backend_of(file.where):
            continue  # EMB112 reports a backend that imports another engine
        where = "outside of a backend" if file.allowed is None else "in this layer"
        allow = "or allow it in `layers` of [tool.emberlint]"
        message = f"`{path}` is imported {where}; use `{file.config.namespace}`, {allow}"
        file.report(RULE, alias, message, fix=_removal(node, alias, file))


def _removal(node: ast.Import | ast.ImportFrom, alias: ast.alias, file: File) -> Fix | None:
    """Edit that removes an unused name from an import, or the whole import if it is the only name."""
    bound = alias.asname or alias.name.partition(".")[0]
    if alias.name == "*" or file.guarded or file.source.path.endswith("__init__.py") or alias.asname == alias.name:
        return None
    if bound == "ml_dtypes":
        return None  # the import registers `bfloat16` with NumPy
    if _is_used(node, bound, file):
        return None
    if len(node.names) > 1:
        i = node.names.index(alias)
        start, end = file.span(alias)
        if i + 1 < len(node.names):
            edit = Edit(start, file.span(node.names[i + 1])[0], "")
        else:
            edit = Edit(file.span(node.names[i - 1])[1], end, "")
        return Fix((edit,), SAFE, f"remove the unused import of `{bound}`")
    statement = _statement(node, file)
    return Fix((statement,), SAFE, f"remove the unused import of `{bound}`") if statement is not None else None


def _is_used(node: ast.stmt, name: str, file: File) -> bool:
    """Whether a name appears elsewhere in the file. In a comment or a string it may be a use as well."""
    start, end = file.span(node)
    uses = file.source.uses
    # Most uses come after the import, so search there first.
    return any(True for _ in uses(name.encode(), end)) or any(True for _ in uses(name.encode(), 0, start))


def _statement(node: ast.stmt, file: File) -> Edit | None:
    """Edit that removes a statement with its lines; ``None`` if they hold other code or it is all of a block."""
    source = file.source
    start, end = source.starts[node.lineno - 1], file.span(node)[1]
    last = node.end_lineno or node.lineno
    line_end = source.starts[last] if last < len(source.starts) else len(source.data)
    rest = source.data[end:line_end].strip()
    if source.data[start : file.span(node)[0]].strip() or rest:
        return None
    if node.col_offset and not _has_siblings(node, file.tree):
        return None
    return Edit(start, line_end, "")


def _has_siblings(node: ast.stmt, tree: ast.AST) -> bool:
    for parent in ast.walk(tree):
        for block in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and any(item is node for item in block):
                return len(block) > 1
    return False
