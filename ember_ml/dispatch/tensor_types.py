"""What a value is, by its type: a tensor of some backend, a number, a sequence, host data, or nothing of these."""

from __future__ import annotations

from typing import Any

from ember_ml import backend as backends
from ember_ml import tree
from ember_ml.backend import Backend
from ember_ml.shapes import MAX_AXES

# What ``classify`` returns for a type that is no backend's tensor. HOST is data in host memory, NumPy arrays above all,
# which belong to whichever backend is active.
NUMBER, SEQUENCE, HOST, NONE, UNKNOWN = "number", "sequence", "host", "none", "unknown"

REAL_NUMBERS = (bool, int, float)
NUMBERS = (*REAL_NUMBERS, complex)

_LISTS = (list, tuple, range)
_NUMBER_TYPES = frozenset(NUMBERS)

_classes: dict[type, Backend | str] = {
    **dict.fromkeys(NUMBERS, NUMBER),
    list: SEQUENCE,
    tuple: SEQUENCE,
    range: SEQUENCE,
    type(None): NONE,
}


def register(backend: Backend) -> None:
    """Recognize the tensors of ``backend``."""
    types = (*backend.tensors, *backend.scalars)
    _classes.update(dict.fromkeys(types, HOST if backend.is_host else backend))


def register_wrapper(wrapper: type) -> None:
    """Recognize wrapped tensors before a compiler meets one: it cannot look for the backends that are installed."""
    _classes[wrapper] = HOST


def unregister(backend: Backend) -> None:
    """Forget the tensors of ``backend``, which is being closed: ``classify`` raises for them."""
    for kind in [kind for kind, found in _classes.items() if found is backend]:
        del _classes[kind]


def classify(kind: type) -> Backend | str:
    """What instances of a type are: tensors of the backend that is returned, or one of the words above."""
    found = _classes.get(kind)
    if found is None:
        found = _classes[kind] = _classify(kind)
    return found


def registered(kind: type) -> Backend | str | None:
    """``classify`` of a type that was met before, without loading anything; else ``None``."""
    return _classes.get(kind)


def backend_of(x: Any) -> Backend | None:
    """The backend whose tensor ``x`` is; NumPy for host arrays, ``None`` for anything else.

    >>> from ember_ml.ops import asarray
    >>> with backends.use_backend("numpy"):
    ...     backend_of(asarray([1.0])), backend_of(1.0)
    (<numpy backend>, None)
    """
    found = classify(type(x))
    if isinstance(found, Backend):
        return found
    numpy = backends.load("numpy") if found == HOST else None
    return numpy if numpy is not None and isinstance(x, numpy.tensors) else None


def leaf_types(value: Any) -> set[type]:
    """The types of the elements of a nested sequence, its ranges among them."""
    found: set[type] = set()
    level: Any = () if type(value) is range else value
    for _ in range(MAX_AXES):
        types = set(map(type, level))
        if types <= _NUMBER_TYPES:
            return found | types
        nested = {kind for kind in types if classify(kind) == SEQUENCE and kind is not range}
        found |= types - nested
        if not nested:
            return found
        rows = level if nested == types else [row for row in level if type(row) in nested]
        level = tree.contents(rows, with_dicts=False)
    raise too_deep(tree.depth(value))


def too_deep(levels: int) -> ValueError:
    """The error for a nested sequence with more levels than a tensor has axes."""
    # The levels of a sequence that is neither a list nor a tuple are not counted.
    got = levels if levels > MAX_AXES else "more"
    return ValueError(f"a nested sequence must have at most {MAX_AXES} levels, got {got}")


def as_list(value: Any) -> Any:
    """A sequence of another type than list, tuple or range as a list; anything else as it is."""
    return value if isinstance(value, _LISTS) or classify(type(value)) != SEQUENCE else list(value)


def _classify(kind: type) -> Backend | str:
    """Loads the backend of an engine whose tensor type is met for the first time."""
    homes = {**backends.HIDDEN, **backends.homes()}
    # The library's own come first there, and the last one here stays.
    engines = {home.engine: name for name, home in reversed(homes.items())}
    for base in kind.__mro__:
        name = engines.get(base.__module__.partition(".")[0])
        if name is not None:
            backend = (backends.load_hidden if name in backends.HIDDEN else backends.load)(name)
            if issubclass(kind, backend.tensors):
                if backend.refusal is not None:
                    backend.refusal()
                return HOST if backend.is_host else backend
    for backend in backends.loaded():
        if issubclass(kind, backend.tensors):
            return backend
    if any(hasattr(kind, name) for name in ("__array__", "__dlpack__", "__array_interface__", "__buffer__")):
        return HOST
    if issubclass(kind, NUMBERS):
        return HOST
    if issubclass(kind, (str, bytes, bytearray, memoryview)) or hasattr(kind, "keys"):
        return UNKNOWN
    return SEQUENCE if hasattr(kind, "__getitem__") and hasattr(kind, "__len__") else UNKNOWN
