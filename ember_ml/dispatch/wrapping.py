"""EmberTensors in a call: found among its values, unwrapped to native tensors, and wrapped again in its result.

``ember_ml.nn.tensor`` registers the type of wrapped tensors here. An instance has a ``native`` tensor and a ``home``,
its backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ember_ml import backend as backends
from ember_ml import tree
from ember_ml.dispatch import tensor_types
from ember_ml.types import MAX_AXES

if TYPE_CHECKING:
    from ember_ml.backend import Backend

_CONTAINERS = (dict, list, tuple)
_FUNCTIONS = (FunctionType, MethodType, partial)
_UNWRAPPED = (*_CONTAINERS, *_FUNCTIONS)

# The type of wrapped tensors, once registered, and the function that makes one from a backend and a native tensor.
_types: tuple[type[Any], ...] = ()
_make: Callable[[Any, Any], Any]


def register(wrapper: type[Any], make: Callable[[Any, Any], Any]) -> None:
    """Recognize instances of ``wrapper`` from now on."""
    global _types, _make
    _types, _make = (wrapper,), make
    tensor_types.register_wrapper(wrapper)


def close(backend: Backend, refusal: Callable[[], Any]) -> None:
    """Make the native tensors of ``backend``, which is being closed, inaccessible."""
    for wrapper in _types:
        slot = wrapper.native

        def native(self: Any, slot: Any = slot) -> Any:
            return refusal() if self.home is backend else slot.__get__(self)

        wrapper.native = property(native, slot.__set__)


def holds_wrapped(values: Iterable[Any]) -> bool:
    """Whether an EmberTensor is among ``values`` or nested in their containers."""
    if not _types:
        return False
    for value in values:  # noqa: SIM110 - a generator costs as much as all the rest
        if isinstance(value, _types) or (isinstance(value, _CONTAINERS) and _holds_within(value)):
            return True
    return False


def _holds_within(value: Any) -> bool:
    items: Any = list(value.values()) if isinstance(value, dict) else value
    levels = 1
    while True:
        # There may be many numbers, but hardly many types.
        types = set(map(type, items))
        if any(issubclass(kind, _types) for kind in types):
            return True
        inner = {kind for kind in types if issubclass(kind, _CONTAINERS)}
        if not inner:
            return False
        if levels == MAX_AXES:
            # Raises for a container that contains itself.
            tree.depth(value)
        levels += 1
        items = tree.contents(items if inner == types else [item for item in items if type(item) in inner])


def backend_of_wrapped(name: str, values: tuple[Any, ...]) -> Backend:
    """The backend of the EmberTensors among ``values``, the arguments of the operation ``name``.

    If one engine accepts the tensors of the other, it is that one.
    """
    first: Any = None
    for value in values:
        for x in tree.leaves(value) if isinstance(value, _CONTAINERS) else (value,):
            if not isinstance(x, _types):
                continue
            if first is None or (x.home is not first.home and isinstance(first.native, x.home.kinds)):
                first = x
            elif x.home is not first.home and not isinstance(x.native, first.home.kinds):
                raise mixed_engines(name, first.home.chosen_as, x.home.chosen_as)
    return first.home  # type: ignore[no-any-return]


def mixed_engines(name: str, first: str, second: str) -> TypeError:
    """The error for EmberTensors and tensors of two engines in one call, which advises the active one of them."""
    active = backends.current().chosen_as
    advised = active if active == second else first
    return TypeError(
        f"{name}: tensors must be of one engine, got {first} and {second}; x.to_backend({advised!r}) moves an "
        "EmberTensor, and EmberTensor(x) makes one of a native tensor"
    )


def unwrap_all(values: tuple[Any, ...], backend: Backend) -> tuple[Any, ...]:
    """``unwrap`` for each of the values of an operation."""
    return tuple(
        value.native
        if isinstance(value, _types)
        else unwrap(value, backend)
        if isinstance(value, _UNWRAPPED)
        else value
        for value in values
    )


def unwrap(value: Any, backend: Backend | None = None) -> Any:
    """``value`` with EmberTensors replaced by their native tensors.

    Args:
        backend: wrap functions in ``value``, so that they receive EmberTensors for tensors of this backend.
    """

    def of(leaf: Any) -> Any:
        if isinstance(leaf, _types):
            return leaf.native
        if backend is not None and isinstance(leaf, _FUNCTIONS) and not hasattr(leaf, "__operation__"):
            return _on_natives(backend, leaf)
        return leaf

    return tree.map(of, value)


def wrap(value: Any, backend: Backend) -> Any:
    """``value`` with native tensors of ``backend`` replaced by EmberTensors."""
    if isinstance(value, backend.kinds):
        return _make(backend, value)
    return tree.map(partial(wrap, backend=backend), value) if isinstance(value, _CONTAINERS) else value


def _on_natives(backend: Backend, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which takes EmberTensors, for a caller that passes native tensors."""

    @wraps(function)
    def on_natives(*args: Any, **kwargs: Any) -> Any:
        return unwrap(function(*wrap(args, backend), **wrap(kwargs, backend)))

    return on_natives
