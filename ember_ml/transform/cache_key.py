"""Cache key of a compiled program: tree structures, options of models and optimizers, and values that are not tensors.

Engines that compile functions of tensors see only tensors, so one program is kept for each key. Changes that a function
made to attributes of its models while it was traced are repeated whenever its program runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import NoneType
from typing import Any

from ember_ml.dispatch import is_tensor
from ember_ml.transform.captures import is_number, is_stateful

PLAIN = frozenset({bool, int, float, complex, str, bytes, NoneType})

Attributes = list[tuple[Any, dict[str, Any]]]


class _Same:
    """Value compared by identity. Holding a reference keeps its ``id`` from being reused."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def cache_key(tree: Any, constants: Sequence[Any] = ()) -> Hashable:
    """Key of the arguments without their tensors, and of constants with their tensors, compared by identity.

    NumPy numbers among the constants are compared by value.
    """
    return _of_value(tree, None), _of_value(constants, ())


def _of_state(state: Any) -> Hashable:
    trainable = tuple(state.parameters()) if hasattr(state, "parameters") else ()
    return _Same(state), tuple(state.tensors()), trainable, tuple([_of_part(part) for part in parts(state)])


def parts(state: Any) -> Sequence[Any]:
    """Objects that hold the attributes of a stateful object: the modules of a model, or the object itself."""
    return list(state.modules()) if hasattr(state, "modules") else [state]


def _of_part(part: Any) -> Hashable:
    """Key of the attributes of a module or an optimizer, except tensors and attributes that follow from others."""
    excluded = getattr(part, "_not_in_cache_key", ())
    registered = getattr(part, "_roles", None)
    # Name, type and value of each, in one flat list, which takes less time than tuples of them.
    found: list[Any] = []
    for name, value in getattr(part, "__dict__", {}).items():
        kind = type(value)
        if name in excluded:
            continue
        if kind in PLAIN:
            found += name, kind, value if kind is not float or (value and value == value) else repr(value)
        elif registered is None or name not in registered:
            found += name, None, _of_value(value, registered)
    return tuple(found)


def _of_value(value: Any, registered: Any) -> Hashable:
    """Key of a value: the value itself, the keys of its items, or its identity.

    Zeros and NaN are represented by their ``repr``, since 0.0 equals -0.0 and NaN does not equal itself.

    Args:
        registered: names of the tensors of the module that holds the value; ``()`` for constants, ``None`` for
            arguments. Tensors of arguments are inputs and have one key; others are part of the program.
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, value if kind is not float or (value and value == value) else repr(value)
    if kind is dict:
        return kind, tuple([(key, _of_value(child, registered)) for key, child in value.items()])
    if isinstance(value, (list, tuple)):
        return kind, tuple([_of_value(child, registered) for child in value])
    if is_stateful(value):
        # Submodules of a model are among its parts already.
        return _Same(value) if registered is not None else _of_state(value)
    if registered == () and is_number(value) and hasattr(value, "dtype"):
        return kind, str(value.dtype), value.tobytes()
    if is_tensor(value):
        return None if registered is None else _Same(value)
    return kind, value if _is_hashable(value) else _Same(value)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def attributes(states: Sequence[Any]) -> Attributes:
    """Current values of the plain attributes of stateful objects."""
    return [
        (part, {name: value for name, value in part.__dict__.items() if type(value) in PLAIN})
        for state in states
        for part in parts(state)
        if hasattr(part, "__dict__")
    ]


def changed(before: Attributes, after: Attributes) -> Attributes:
    """Attributes of ``after`` that are new or have another value than in ``before``."""
    old = {id(part): values for part, values in before}
    found = []
    for part, values in after:
        were = old.get(id(part), {})
        new = {
            name: value
            for name, value in values.items()
            if name not in were or type(were[name]) is not type(value) or were[name] != value
        }
        if new:
            found.append((part, new))
    return found
