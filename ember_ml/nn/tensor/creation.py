"""Operations without tensor parameters, which here return an ``EmberTensor``.

Other operations return an ``EmberTensor`` if any argument is one, so they need no wrapper. Operations that create
tensors are recognized by their parameters.
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
    """The operations in ``names`` that create tensors, with their results wrapped in ``EmberTensor``."""
    found = {name: value for name, value in names.items() if hasattr(value, "__operation__")}
    return {name: with_wrapped_result(function) for name, function in found.items() if _creates(function)}


def category(module: ModuleType) -> ModuleType:
    """Copy of a category of operations, whose functions that create tensors return an ``EmberTensor``."""
    name = f"{__name__.rpartition('.')[0]}.{module.__name__.rpartition('.')[2]}"
    made = sys.modules[name] = ModuleType(name, module.__doc__)
    own = {key: value for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    vars(made).update({key: value for key, value in own.items() if not key.startswith("_")} | creators(own))
    return made


def _creates(function: Callable[..., Any]) -> bool:
    result = str(function.__annotations__.get("return"))
    return not operation_of(function).tensors and ("Tensor" in result or "Any" in result)


@cache
def with_wrapped_result(function: Callable[P, Any]) -> Callable[P, Any]:
    """``function`` with its result wrapped in ``EmberTensor``."""

    @wraps(function)
    def create(*args: P.args, **kwargs: P.kwargs) -> Any:
        if holds_wrapped(args) or holds_wrapped(kwargs.values()):
            return function(*args, **kwargs)
        backend = current_backend()
        return wrap(function(*unwrap(args, backend), **unwrap(kwargs, backend)))

    return create
