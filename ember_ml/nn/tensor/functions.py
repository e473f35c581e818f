"""Operations whose results are EmberTensors, whatever their arguments are.

The operations of ``ops`` return an ``EmberTensor`` only if an argument is one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import ModuleType
from typing import Any, ParamSpec

from ember_ml.extend import current_backend, holds_wrapped, operation_of, unwrap
from ember_ml.nn.tensor.tensor import EmberTensor, wrap

P = ParamSpec("P")


def functions(names: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """The operations in ``names`` that return tensors, with their results wrapped in ``EmberTensor``."""
    found = {name: value for name, value in names.items() if hasattr(value, "__operation__")}
    return {name: with_wrapped_result(function) for name, function in found.items() if _returns_tensors(function)}


def category(module: ModuleType) -> ModuleType:
    """Copy of a category of operations, whose functions return EmberTensors."""
    name = f"{__name__.rpartition('.')[0]}.{module.__name__.rpartition('.')[2]}"
    made = sys.modules[name] = ModuleType(name, module.__doc__)
    own = {key: value for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    vars(made).update({key: value for key, value in own.items() if not key.startswith("_")} | functions(own))
    return made


def creates(function: Callable[..., Any]) -> bool:
    """Whether a function creates tensors: it returns some, and takes none."""
    return _returns_tensors(function) and not operation_of(function).tensors


def _returns_tensors(function: Callable[..., Any]) -> bool:
    operation = operation_of(function)
    result = str(function.__annotations__.get("return"))
    # Several results are a named tuple, which its module defines.
    fields = getattr(operation.function.__globals__.get(result), "__annotations__", {})
    kinds = (result, *map(str, fields.values()))
    return not operation.returns_numpy and any("Tensor" in kind or "Any" in kind for kind in kinds)


@cache
def with_wrapped_result(function: Callable[P, Any]) -> Callable[P, Any]:
    """``function`` with its result wrapped in ``EmberTensor``."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        result = function(*args, **kwargs)
        return result if type(result) is EmberTensor else wrap(result)

    @wraps(function)
    def create(*args: P.args, **kwargs: P.kwargs) -> Any:
        if holds_wrapped(args) or holds_wrapped(kwargs.values()):
            return function(*args, **kwargs)
        # Functions among the arguments receive EmberTensors.
        backend = current_backend()
        return wrap(function(*unwrap(args, backend), **unwrap(kwargs, backend)))

    return create if creates(function) else call
