"""The cache key of a compiled program: structures, options of models and optimizers, and other values than tensors.

Engines that compile functions of tensors see tensors alone, so one program is kept for each key. What a function did to
the attributes of its models while it was traced is done again when the program runs without it.
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
    """A value that is equal to itself alone, and stays there, lest another takes its address."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def cache_key(tree: Any, constants: Sequence[Any] = ()) -> Hashable:
    """What a program depends on in its arguments except for their tensors; in constants, tensors count by identity.

    Among the constants may be numbers of the host, which count by value.
    """
    return _of_value(tree, None), _of_value(constants, ())


def _of_state(state: Any) -> Hashable:
    trainable = tuple(state.parameters()) if hasattr(state, "parameters") else ()
    return _Same(state), tuple(state.tensors()), trainable, tuple([_of_part(part) for part in parts(state)])


def parts(state: Any) -> Sequence[Any]:
    """The objects that have the attributes of a stateful one: a model's modules, or itself."""
    return list(state.modules()) if hasattr(state, "modules") else [state]


def _of_part(part: Any) -> Hashable:
    """The attributes of a module or an optimiser, without those that travel as tensors or follow from others."""
    excluded = getattr(part, "_not_in_cache_key", ())
    registered = getattr(part, "_roles", None)
    found: list[Any] = []
    for name, value in getattr(part, "__dict__", {}).items():
        kind = type(value)
        if kind in PLAIN:
            if name not in excluded:
                found.append((name, kind, value if kind is not float or (value and value == value) else repr(value)))
        elif name not in excluded and (registered is None or name not in registered):
            found.append((name, _of_value(value, registered)))
    return tuple(found)


def _of_value(value: Any, registered: Any) -> Hashable:
    """A value by itself, by what it contains, or by its identity.

    Zeros of either sign are equal, and no NaN is, itself neither: these are known by what is written for them.

    Args:
        registered: the names of the tensors of the module that has the value, none for constants. It tells tensors that
            are inputs, which count as one, from those that are part of the program.
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, value if kind is not float or (value and value == value) else repr(value)
    if kind is dict:
        return kind, tuple([(key, _of_value(child, registered)) for key, child in value.items()])
    if isinstance(value, (list, tuple)):
        return kind, tuple([_of_value(child, registered) for child in value])
    if is_stateful(value):
        # A model's own are among its modules.
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
    """The plain attributes of stateful objects as they are now."""
    return [
        (part, {name: value for name, value in part.__dict__.items() if type(value) in PLAIN})
        for state in states
        for part in parts(state)
        if hasattr(part, "__dict__")
    ]


def changed(before: Attributes, after: Attributes) -> Attributes:
    """Those that have another value than before."""
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
