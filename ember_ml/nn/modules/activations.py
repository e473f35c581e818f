"""Activations, as functions and as modules.

Every activation function has a class with the same options: ``ReLU`` for ``relu``, ``LeakyReLU`` for ``leaky_relu``.

>>> LeakyReLU(negative_slope=0.5)([-2.0, 3.0]).tolist()
[-1.0, 3.0]
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from ember_ml import older_names as _older_names
from ember_ml.nn.modules.checks import check_sizes
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.slots import Parameter
from ember_ml.ops import activations as _functions
from ember_ml.ops import full
from ember_ml.ops.activations import *  # noqa: F403 - the names are listed there
from ember_ml.spellings import rename
from ember_ml.types import DTypeLike, Tensor


class Activation(Module):
    """Activation function as a module; subclasses are generated from the functions."""

    function: Callable[..., Any]
    options: inspect.Signature

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = list(self.options.parameters)
        kwargs = rename([type(self).__name__], kwargs, names, dict(zip(names, args, strict=False)))
        try:
            bound = self.options.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)
        self._values = tuple(bound.arguments.values())

    def forward(self, x: Any) -> Tensor:
        return self.function(x, *self._values)  # type: ignore[no-any-return]


class PReLU(Module):
    """``x`` where it is positive, else ``weight * x``: a leaky ReLU with a learned negative slope.

    Args:
        num_parameters: 1 for one shared slope, or the length of the last axis for one slope per channel.
        init: initial value of the slopes.

    >>> PReLU()([-4.0, 2.0]).tolist()
    [-1.0, 2.0]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: DTypeLike | None = None) -> None:
        check_sizes(self, num_parameters=num_parameters)
        self.num_parameters, self.init = num_parameters, init
        self.weight: Any = Parameter(full((num_parameters,), float(init), dtype=dtype))

    def forward(self, x: Any) -> Tensor:
        return _functions.prelu(x, self.weight)


# Words of function names that class names do not simply capitalize.
_SPELLING = {"lecun": "LeCun", "silu": "SiLU", "relu": "ReLU", "relu6": "ReLU6", "prelu": "PReLU"}


def class_name(function: str) -> str:
    """Name of the class for a function.

    >>> class_name("leaky_relu"), class_name("gelu"), class_name("hard_tanh")
    ('LeakyReLU', 'GELU', 'HardTanh')
    """
    words = function.split("_")
    return "".join(_SPELLING.get(w) or (w.upper() if re.fullmatch(r"\w?.lu", w) else w.capitalize()) for w in words)


def _class_of(function: Callable[..., Any]) -> type[Module]:
    """Class whose instances compute ``function``."""
    name = class_name(function.__name__)
    _, *options = inspect.signature(function).parameters.values()
    body = {
        "__doc__": (function.__doc__ or "").partition("\n    >>>")[0].rstrip(),
        "__module__": __name__,
        "function": staticmethod(function),
        "options": inspect.Signature(options),
        "__signature__": inspect.Signature(options),
    }
    if not options:
        body["forward"] = staticmethod(function)
    return type(name, (Activation,), body)


_classes: dict[Any, type[Module]] = {_functions.prelu: PReLU}
for _name, _function in vars(_functions).items():
    if hasattr(_function, "__operation__"):
        if _function not in _classes:
            _classes[_function] = _class_of(_function)
        globals()[class_name(_name)] = _classes[_function]

# torch's spelling of some names.
for _name in ("Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Softshrink", "Tanhshrink"):
    globals()[_name] = next(value for name, value in globals().items() if name.lower() == _name.lower())

CLASSES = {name: value for name, value in globals().items() if value in _classes.values()}


_older_names.register(__name__)


def __getattr__(name: str) -> type[Module]:
    # The classes are created at run time; the return type declares them to type checkers.
    try:
        found: type[Module] = _older_names.attribute(__name__, name)
    except AttributeError:
        raise AttributeError(f"an activation must be one of {', '.join(CLASSES)}, got {name!r}") from None
    return found
