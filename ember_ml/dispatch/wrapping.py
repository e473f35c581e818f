"""EmberTensors in a call: recognized among its values, unwrapped to native tensors, and wrapped again in its result.

``ember_ml.nn.tensor`` registers the type of wrapped tensors here. An instance has a ``native`` tensor and the backend
that is its ``home``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ember_ml import tree
from ember_ml.dispatch import tensor_types
from ember_ml.shapes import MAX_AXES

if TYPE_CHECKING:
    from ember_ml.backend import Backend

_CONTAINERS = (dict, list, tuple)
_FUNCTIONS = (FunctionType, MethodType, partial)
_UNWRAPPED = (*_CONTAINERS, *_FUNCTIONS)

# The type of wrapped tensors, once it is registered, and what makes one of a backend and a native tensor.
_types: tuple[type[Any], ...] = ()
_make: Callable[[Any, Any], Any]


def register(wrapper: type[Any], make: Callable[[Any, Any], Any]) -> None:
    """Recognize instances of ``wrapper`` from now on."""
    global _types, _make
    _types, _make = (wrapper,), make
    tensor_types.register_wrapper(wrapper)


def close(backend: Backend, refusal: Callable[[], Any]) -> None:
    """Put the native tensors of EmberTensors of ``backend``, which is being closed, out of reach."""
    for wrapper in _types:
        slot = wrapper.native

        def native(self: Any, slot: Any = slot) -> Any:
            return refusal() if self.home is backend else slot.__get__(self)

        wrapper.native = property(native, slot.__set__)


def holds_wrapped(values: Iterable[Any]) -> bool:
    """Whether an EmberTensor is among ``values``, or somewhere within their containers."""
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
        # There may be very many numbers, but hardly many types.
        types = set(map(type, items))
        if any(issubclass(kind, _types) for kind in types):
            return True
        inner = {kind for kind in types if issubclass(kind, _CONTAINERS)}
        if not inner:
            return False
        if levels == MAX_AXES:
            # A container that contains itself has no last level.
            tree.depth(value)
        levels += 1
        items = tree.contents(items if inner == types else [item for item in items if type(item) in inner])


def backend_of_wrapped(name: str, values: tuple[Any, ...]) -> Backend:
    """The backend of the EmberTensors among ``values``, which are the arguments of the operation ``name``.

    Where one engine takes the tensors of another as they are, it is that one.
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
    """The error for EmberTensors and tensors of two engines in one call."""
    return TypeError(
        f"{name}: tensors must be of one engine, got {first} and {second}; x.to_backend({first!r}) moves an "
        "EmberTensor, and EmberTensor(x) makes one of a native tensor"
    )


def unwrap_all(values: tuple[Any, ...], backend: Backend) -> tuple[Any, ...]:
    """``unwrap`` of the values of an operation."""
    return tuple(
        value.native
        if isinstance(value, _types)
        else unwrap(value, backend)
        if isinstance(value, _UNWRAPPED)
        else value
        for value in values
    )


def unwrap(value: Any, backend: Backend | None = None) -> Any:
    """``value`` with native tensors in place of EmberTensors.

    Args:
        backend: functions in ``value`` are wrapped, so that they see EmberTensors for the tensors of this backend.
    """

    def of(leaf: Any) -> Any:
        if isinstance(leaf, _types):
            return leaf.native
        if backend is not None and isinstance(leaf, _FUNCTIONS) and not hasattr(leaf, "__operation__"):
            return _on_natives(backend, leaf)
        return leaf

    return tree.map(of, value)


def wrap(value: Any, backend: Backend) -> Any:
    """``value`` with EmberTensors in place of the native tensors of ``backend``."""
    if isinstance(value, backend.kinds):
        return _make(backend, value)
    return tree.map(partial(wrap, backend=backend), value) if isinstance(value, _CONTAINERS) else value


def _on_natives(backend: Backend, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` on EmberTensors, for a caller that has native tensors."""

    @wraps(function)
    def on_natives(*args: Any, **kwargs: Any) -> Any:
        return unwrap(function(*wrap(args, backend), **wrap(kwargs, backend)))

    return on_natives
