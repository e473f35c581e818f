"""A backend's function whose parameters differ from the operation's.

## What it does

In a package with `ops/` and `backend/<engine>/`, compares each function of a backend with the operation of the same
name: parameters, their order, their kinds (positional, keyword) and their defaults. Names that a backend imports from
its engine are not compared. Where the operation says which parameters engines receive, as `@op(engine="x, *, axis")`,
those are compared.

## Why

A call that works on one engine raises on another, or means something else there.

## Example

`mypackage/ops/stats.py`:

```python
def mean(x, /, *, axis=None, keepdims=False): ...
```

`mypackage/backend/torch/stats.py`:

```python
import torch


def mean(x: torch.Tensor, axis=None, keepdim=False):
    return torch.mean(x, axis, keepdim)
```

## Use instead

`mypackage/ops/stats.py`:

```python
def mean(x, /, *, axis=None, keepdims=False): ...
```

`mypackage/backend/torch/stats.py`:

```python
import torch


def mean(x: torch.Tensor, /, *, axis=None, keepdims=False):
    return torch.mean(x, axis, keepdims)
```

## Fix safety

There is no fix: the body may have to change with the parameters.
"""

from __future__ import annotations

from emberlint import config as configuration
from emberlint.inference.project import Defined, Project
from emberlint.rules import Rule

RULE = Rule("EMB502", "signature-differs", "a backend's function whose parameters differ from the operation's")


@RULE.project
def check(project: Project) -> None:
    """Report functions of backends that differ from the operation of the same name."""
    functions: dict[str, dict[str, Defined]] = {}
    for package in project.packages:
        for module, function in package.operations:
            for backend in package.backends:
                provider = package.provider(backend, module)
                if provider is None:
                    continue
                if provider.name not in functions:
                    # The first of several functions with one name counts.
                    functions[provider.name] = {own.name: own for own in reversed(provider.functions)}
                own = functions[provider.name].get(function.name)
                if own is None:
                    continue
                difference = _difference(function, own)
                if difference:
                    engine = configuration.backend_of(backend.replace(".", "/"))
                    message = (
                        f"`{own.name}` of the {engine} backend {difference}; the operation is `{_shown(function)}`"
                    )
                    project.report(RULE, provider, own.span, message)


def _difference(expected: Defined, found: Defined) -> str:
    """First difference of a function, as the predicate of a message; empty if there is none."""
    names = [parameter[0] for parameter in expected.parameters]
    own = [parameter[0] for parameter in found.parameters]
    missing = [name for name in names if name not in own]
    more = [name for name in own if name not in names]
    if missing or more:
        parts = [f"lacks `{name}`" for name in missing] + [f"has an additional `{name}`" for name in more]
        return " and ".join(parts)
    if names != own:
        return "has its parameters in a different order"
    for ours, theirs in zip(expected.parameters, found.parameters, strict=True):
        if ours[1] != theirs[1]:
            return f"takes `{ours[0]}` {_WAYS[theirs[1]]} instead of {_WAYS[ours[1]]}"
        if ours[2] != theirs[2]:
            return f"has {f'the default `{theirs[2]}`' if theirs[2] else 'no default'} for `{ours[0]}`"
    return ""


_WAYS = {
    "P": "by position only",
    "B": "by position or keyword",
    "K": "by keyword only",
    "V": "as `*args`",
    "W": "as `**kwargs`",
}


def _shown(function: Defined) -> str:
    """Signature as Python source."""
    parts: list[str] = []
    kinds = [parameter[1] for parameter in function.parameters]
    for i, (name, kind, default, _) in enumerate(function.parameters):
        if kind == "K" and "V" not in kinds and (i == 0 or kinds[i - 1] != "K"):
            parts.append("*")
        star = {"V": "*", "W": "**"}.get(kind, "")
        parts.append(f"{star}{name}" + (f"={default}" if default else ""))
        if kind == "P" and (i + 1 == len(kinds) or kinds[i + 1] != "P"):
            parts.append("/")
    return f"{function.name}({', '.join(parts)})"
