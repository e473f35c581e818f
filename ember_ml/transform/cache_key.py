"""Cache key of a compiled program: tree structures, options of models and optimizers, and values that are not tensors.

Engines that compile functions of tensors see only tensors, so one program is kept for each key. Changes that a function
made to attributes of its models while it was traced are repeated whenever its program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import is_, itemgetter
from types import NoneType
from typing import Any

from ember_ml.dispatch import holds_wrapped, is_tensor
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


class _Hashed:
    """Key that is hashed once, and compared by value only with keys that are not the same object."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.hash = hash(key)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is _Hashed and other.hash == self.hash and other.key == self.key)

    def __hash__(self) -> int:
        return self.hash


class Keys:
    """Cache keys of the calls of one function, which remember the keys of stateful arguments until those change."""

    def __init__(self) -> None:
        self._states: dict[int, _StateKey] = {}

    def of_call(self, args: Any, constants: Hashable, paths: Mapping[int, list[str]]) -> Hashable:
        """Key of the arguments without their tensors, and of constants.

        Args:
            constants: key of the constants.
            paths: paths of the tensors of each stateful argument, by its ``id``.
        """
        return _of_value(args, None, lambda state: self._of_state(state, paths[id(state)])), constants

    def _of_state(self, state: Any, paths: list[str]) -> Hashable:
        known = self._states.get(id(state))
        if known is None or not known.holds(paths):
            if known is None and len(self._states) >= _STATES:
                self._states.clear()
            known = self._states[id(state)] = _StateKey(state, paths)
        return known.key


# Number of stateful arguments whose keys are remembered per function.
_STATES = 64


def of_constants(constants: Sequence[Any]) -> Hashable:
    """Key of constants; tensors are compared by identity, NumPy numbers by value."""
    return _Hashed(_of_value(constants, ()))


class _StateKey:
    """Key of a stateful object, and what it was computed from."""

    def __init__(self, state: Any, paths: list[str]) -> None:
        self.state, self.paths, self.trainable = state, paths, _trainable(state)
        self.parts = parts(state)
        self.key = _Hashed(_of_state(state, paths))
        # For each part the names of its attributes, and a function from them to the values compared by identity.
        self.forms: list[tuple[tuple[str, ...], Any]] = []
        self.values: list[Any] = []
        # Values that may change in place: empty containers, and others with their keys.
        self.empty: list[Any] = []
        self.changeable: list[tuple[Any, str, Hashable]] = []
        for part in self.parts:
            self._add_part(part)

    def _add_part(self, part: Any) -> None:
        held = getattr(part, "__dict__", {})
        excluded, registered = getattr(part, "_not_in_cache_key", ()), getattr(part, "_roles", None)
        fixed: list[str] = []
        for name, value in held.items():
            if name in excluded or (registered is not None and name in registered and type(value) not in PLAIN):
                continue
            is_nested = registered is None and (is_tensor(value) or is_stateful(value))
            if is_nested or (isinstance(value, (dict, list, tuple)) and value):
                self.changeable.append((part, name, _of_value(value, registered)))
                continue
            fixed.append(name)
            self.values.append(value)
            if isinstance(value, (dict, list, tuple)):
                self.empty.append(value)
        self.forms.append((tuple(held), _getter(fixed)))

    def holds(self, paths: list[str]) -> bool:
        """Whether the key is still that of the object, whose tensors have these paths now."""
        if paths != self.paths or _trainable(self.state) != self.trainable:
            return False
        now = parts(self.state)
        if len(now) != len(self.parts) or not all(map(is_, now, self.parts)):
            return False
        found: list[Any] = []
        for part, (names, getter) in zip(now, self.forms, strict=True):
            held = getattr(part, "__dict__", {})
            if tuple(held) != names:
                return False
            found += getter(held)
        if any(self.empty) or not all(map(is_, found, self.values)):
            return False
        return all(
            _of_value(part.__dict__[name], getattr(part, "_roles", None)) == key for part, name, key in self.changeable
        )


def _getter(names: list[str]) -> Any:
    """Function from a dictionary to the values of these names."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda held: [held[name] for name in names]


def _of_state(state: Any, paths: list[str]) -> Hashable:
    return _Same(state), tuple(paths), tuple(_trainable(state)), tuple([_of_part(part) for part in parts(state)])


def _trainable(state: Any) -> list[str]:
    return list(state.parameters()) if hasattr(state, "parameters") else []


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


def _of_value(value: Any, registered: Any, of_state: Callable[[Any], Hashable] | None = None) -> Hashable:
    """Key of a value: the value itself, the keys of its items, or its identity.

    Zeros and NaN are represented by their ``repr``, since 0.0 equals -0.0 and NaN does not equal itself.

    Args:
        registered: names of the tensors of the module that holds the value; ``()`` for constants, ``None`` for
            arguments. Tensors of arguments are inputs, whose key is whether they are wrapped; others are part of the
            program.
        of_state: key of a stateful argument; by default it is computed anew.
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, value if kind is not float or (value and value == value) else repr(value)
    if kind is dict:
        return kind, tuple([(key, _of_value(child, registered, of_state)) for key, child in value.items()])
    if isinstance(value, (list, tuple)):
        return kind, tuple([_of_value(child, registered, of_state) for child in value])
    if is_stateful(value):
        if of_state is not None:
            return of_state(value)
        # Submodules of a model are among its parts already.
        return _Same(value) if registered is not None else _of_state(value, list(value.tensors()))
    if registered == () and is_number(value) and hasattr(value, "dtype"):
        return kind, str(value.dtype), value.tobytes()
    if is_tensor(value):
        return holds_wrapped((value,)) if registered is None else _Same(value)
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
