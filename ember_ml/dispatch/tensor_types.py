"""Classification of values by type: a tensor of a backend, a number, a sequence, host data, or none of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ember_ml import backend as backends
from ember_ml import tree
from ember_ml.backend import Backend
from ember_ml.types import MAX_AXES

# What ``classify`` returns for types that are not tensors of a backend. HOST is data in host memory, such as NumPy
# arrays, which belongs to whichever backend is active.
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
    """Register the type of wrapped tensors before a compiler meets one: it cannot search installed backends."""
    _classes[wrapper] = HOST


def unregister(backend: Backend) -> None:
    """Forget the tensors of ``backend``, which is being closed; ``classify`` then raises for them."""
    for kind in [kind for kind, found in _classes.items() if found is backend]:
        del _classes[kind]


def classify(kind: type) -> Backend | str:
    """The backend whose tensors are instances of ``kind``, or one of the constants above."""
    found = _classes.get(kind)
    if found is None:
        found = _classes[kind] = _classify(kind)
    return found


def registered(kind: type) -> Backend | str | None:
    """Result of an earlier ``classify``, without loading anything, or ``None``."""
    return _classes.get(kind)


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a tensor: of an engine, an EmberTensor, or a host array.

    >>> from ember_ml.ops import asarray
    >>> is_tensor(asarray([1.0])), is_tensor([1.0])
    (True, False)
    """
    found = classify(type(x))
    return isinstance(found, Backend) or (found == HOST and hasattr(x, "dtype"))


def is_tensor_like(kind: type) -> bool:
    """Whether operations take instances of a type for tensors: tensors themselves, numbers and sequences.

    >>> is_tensor_like(float), is_tensor_like(str)
    (True, False)
    """
    return classify(kind) not in (NONE, UNKNOWN)


def backend_of(x: Any, host: bool = True) -> Backend | None:
    """The backend whose tensor ``x`` is; NumPy for host arrays, ``None`` for anything else.

    Args:
        host: if false, ``None`` for host arrays as well: whichever backend is active computes with them.

    >>> from ember_ml.ops import asarray
    >>> with backends.use_backend("numpy"):
    ...     backend_of(asarray([1.0])), backend_of(1.0)
    (<numpy backend>, None)
    """
    found = classify(type(x))
    if isinstance(found, Backend):
        return found
    if not host:
        return None
    numpy = backends.load("numpy") if found == HOST else None
    return numpy if numpy is not None and isinstance(x, numpy.tensors) else None


def common_backend(kinds: Iterable[type]) -> Backend:
    """The backend of the tensors among arguments of these types, else the active one."""
    found: Backend | None = None
    for kind in kinds:
        one = classify(kind)
        if type(one) is not Backend or one is found:
            continue
        if found is not None:
            raise TypeError(
                f"tensors must be of one engine, got {found.chosen_as} and {one.chosen_as}; "
                f"ember_ml.ops.convert_to_tensor(x) moves either to the active backend ({backends.current().name})"
            )
        found = one
    return found or backends.current()


def common_device(backend: Backend, values: Iterable[Any]) -> Any:
    """The device of the first tensor of ``backend`` among the values, or in a sequence of them, else its default."""
    nested = []
    for value in values:
        if isinstance(value, backend.tensors):
            return backend.device_like(value)
        if type(value) in (list, tuple):
            nested.append(value)
    for value in nested:
        if any(issubclass(kind, backend.tensors) for kind in leaf_types(value)):
            return backend.device_like(next(leaf for leaf in tree.leaves(value) if isinstance(leaf, backend.tensors)))
    return backend.device


def leaf_types(value: Any) -> set[type]:
    """Types of the elements of a nested sequence, including ranges."""
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
    """The error for a nested sequence with more levels than a tensor can have axes."""
    # The levels of a sequence that is neither a list nor a tuple are not counted.
    got = levels if levels > MAX_AXES else "more"
    return ValueError(f"a nested sequence must have at most {MAX_AXES} levels, got {got}")


def as_list(value: Any) -> Any:
    """A sequence that is not a list, tuple or range as a list; other values unchanged."""
    return value if isinstance(value, _LISTS) or classify(type(value)) != SEQUENCE else list(value)


def _classify(kind: type) -> Backend | str:
    """Classify a type that was not met before, and load the backend of its engine if it is a tensor type."""
    homes = {**backends.HIDDEN, **backends.homes()}
    # The library's own backends come first in ``homes``, so in reverse order they win.
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
