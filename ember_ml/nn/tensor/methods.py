"""The methods that operations are: those whose first parameter is one tensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ember_ml import ops
from ember_ml.extend import TENSOR, called_as, operation_of


def methods() -> dict[str, Callable[..., Any]]:
    """Every operation, under each of its names, that takes one tensor first: what is ``ops.f(x)`` is ``x.f()`` too."""
    found = {}
    for name in ops.__all__:
        function = getattr(ops, name)
        if hasattr(function, "__operation__"):
            parameters = operation_of(function).parameters
            if parameters and parameters[0].role == TENSOR and not parameters[0].many and not parameters[0].keyword:
                found[name] = method(function)
    return found


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation as a method, whose options may be given by position, as NumPy's and torch's users do.

    ``numpy.sum(x)`` and its like call the method, with options of their own that say nothing.
    """
    parameters = operation_of(function).parameters
    options = [p.name for p in parameters if p.keyword]
    if not options or any(p.variadic for p in parameters):
        return function
    count = len(parameters) - len(options) - 1
    void = {"out", "dtype"}.difference(options)
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
            for name in void:
                if kwargs.get(name, name) is None:
                    del kwargs[name]
            if corrects and "ddof" in kwargs:
                kwargs["correction"] = kwargs.pop("ddof")
        return function(self, *args, **kwargs)

    return with_options
