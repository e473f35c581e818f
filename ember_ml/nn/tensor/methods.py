"""Operations as methods of ``EmberTensor``: those whose first parameter is one tensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ember_ml import ops
from ember_ml.extend import TENSOR, called_as, operation_of


def methods() -> dict[str, Callable[..., Any]]:
    """Methods by name, for every operation whose first parameter is one tensor: ``x.f()`` is ``ops.f(x)``."""
    found = {}
    for name in ops.__all__:
        function = getattr(ops, name)
        if hasattr(function, "__operation__"):
            parameters = operation_of(function).parameters
            if parameters and parameters[0].role == TENSOR and not parameters[0].many and not parameters[0].keyword:
                found[name] = method(function)
    return found


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Operation as a method, whose options may be given by position, as in NumPy and torch.

    Functions such as ``numpy.sum(x)`` call the method with ``out=None`` and ``dtype=None``, which are ignored.
    """
    parameters = operation_of(function).parameters
    options = [p.name for p in parameters if p.keyword]
    if not options or any(p.variadic for p in parameters):
        return function
    count = len(parameters) - len(options) - 1
    ignored = {"out", "dtype"}.difference(options)
    corrects = "correction" in options

    @wraps(function)
    def with_options(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if len(args) > count:
            extra = args[count:]
            if len(extra) > len(options):
                raise TypeError(
                    f"{called_as(operation_of(function))}() takes {count + len(options)} arguments, got {len(args)}"
                )
            for name, value in zip(options, extra, strict=False):
                if name in kwargs:
                    raise TypeError(f"{called_as(operation_of(function))}() got multiple values for argument {name!r}")
                kwargs[name] = value
            args = args[:count]
        if kwargs:
            for name in ignored:
                if kwargs.get(name, name) is None:
                    del kwargs[name]
            if corrects and "ddof" in kwargs:
                kwargs["correction"] = kwargs.pop("ddof")
        return function(self, *args, **kwargs)

    return with_options
