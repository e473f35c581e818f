"""Options of layers: errors for wrong ones name the layer and the option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml.dtypes import written
from ember_ml.extend import backend_of, unwrap
from ember_ml.ops.activations import get_activation


def check_sizes(layer: object, **sizes: object) -> None:
    """Raise an error that names the layer and the option unless every size is an integer of at least 0.

    >>> check_sizes(object(), in_features=-1)
    Traceback (most recent call last):
    ValueError: object: in_features must be >= 0, got -1
    """
    for name, size in sizes.items():
        if not hasattr(type(size), "__index__"):
            raise TypeError(f"{type(layer).__name__}: {name} must be an integer, got {written(size)}")
        if size < 0:  # type: ignore[operator]
            raise ValueError(f"{type(layer).__name__}: {name} must be >= 0, got {size}")


def is_known_true(condition: Any) -> bool:
    """Whether a 0-d bool tensor is true; false in traced code, which cannot read values.

    >>> from ember_ml import ops
    >>> is_known_true(ops.any([False, True]))
    True
    """
    native = unwrap(condition)
    backend = backend_of(native)
    return bool(backend is not None and not backend.random.is_traced() and backend.random.known(native))


def find_activation(layer: object, activation: str | Callable[..., Any]) -> Callable[..., Any]:
    """Function that the option ``activation`` names."""
    try:
        return get_activation(activation)
    except (TypeError, ValueError) as error:
        text = str(error).removeprefix("get_activation: name ")
        raise type(error)(f"{type(layer).__name__}: activation {text}") from None
