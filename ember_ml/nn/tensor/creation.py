"""The operations that take no tensors, answering with portable ones.

All others answer in kind and need nothing. These are found in the registry, by their parameters, and not listed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import ModuleType
from typing import Any, ParamSpec

from ember_ml.extend import current_backend, holds_wrapped, operation_of, unwrap
from ember_ml.nn.tensor.tensor import wrap

P = ParamSpec("P")


def creators(names: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Those operations among ``names`` that answer with tensors and take none, made to answer with portable ones."""
    found = {name: value for name, value in names.items() if hasattr(value, "__operation__")}
    return {name: portable_of(function) for name, function in found.items() if _creates(function)}


def category(module: ModuleType) -> ModuleType:
    """A category of operations whose creators answer with portable tensors."""
    name = f"{__name__.rpartition('.')[0]}.{module.__name__.rpartition('.')[2]}"
    made = sys.modules[name] = ModuleType(name, module.__doc__)
    own = {key: value for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    vars(made).update({key: value for key, value in own.items() if not key.startswith("_")} | creators(own))
    return made


def _creates(function: Callable[..., Any]) -> bool:
    answer = str(function.__annotations__.get("return"))
    return not operation_of(function).tensors and ("Tensor" in answer or "Any" in answer)


@cache
def portable_of(function: Callable[P, Any]) -> Callable[P, Any]:
    """``function``, which answers with native tensors, answering with portable ones."""

    @wraps(function)
    def create(*args: P.args, **kwargs: P.kwargs) -> Any:
        if holds_wrapped(args) or holds_wrapped(kwargs.values()):
            return function(*args, **kwargs)
        home = current_backend()
        return wrap(function(*unwrap(args, home), **unwrap(kwargs, home)))

    return create
