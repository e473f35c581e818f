"""Portable tensors in a call: recognised among its values, opened to native tensors, and closed again in its answer.

The type of portable tensors is ``ember_ml.nn.tensor.EmberTensor``, which makes itself known here. An instance has a
``native`` tensor and the backend that is its ``home``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ember_ml import tree
from ember_ml.shapes import MAX_AXES

if TYPE_CHECKING:
    from ember_ml.backend import Backend

_CONTAINERS = (dict, list, tuple)
_FUNCTIONS = (FunctionType, MethodType, partial)
_OPENED = (*_CONTAINERS, *_FUNCTIONS)

# The type of portable tensors, once there is one, and what makes one of a backend and a native tensor that it takes.
_kinds: tuple[type[Any], ...] = ()
_make: Callable[[Any, Any], Any]


def know(kind: type[Any], make: Callable[[Any, Any], Any]) -> None:
    """Recognise instances of ``kind`` from now on."""
    global _kinds, _make
    _kinds, _make = (kind,), make


def close(backend: Backend, refusal: Callable[[], Any]) -> None:
    """Let the native tensor of a portable one of ``backend``, which is being closed, be out of reach."""
    for kind in _kinds:
        slot = kind.native

        def native(self: Any, slot: Any = slot) -> Any:
            return refusal() if self.home is backend else slot.__get__(self)

        kind.native = property(native, slot.__set__)


def holds(values: Iterable[Any]) -> bool:
    """Whether a portable tensor is among ``values``, or somewhere within their containers."""
    if not _kinds:
        return False
    for value in values:  # noqa: SIM110 - a generator costs as much as all the rest
        if isinstance(value, _kinds) or (isinstance(value, _CONTAINERS) and _holds_within(value)):
            return True
    return False


def _holds_within(value: Any) -> bool:
    items: Any = list(value.values()) if isinstance(value, dict) else value
    levels = 1
    while True:
        # There may be very many numbers, but hardly many types.
        kinds = set(map(type, items))
        if any(issubclass(kind, _kinds) for kind in kinds):
            return True
        inner = {kind for kind in kinds if issubclass(kind, _CONTAINERS)}
        if not inner:
            return False
        if levels == MAX_AXES:
            # A container that contains itself has no last level.
            tree.depth(value)
        levels += 1
        items = tree.contents(items if inner == kinds else [item for item in items if type(item) in inner])


def home_of(name: str, values: tuple[Any, ...]) -> Backend:
    """The engine of the portable tensors among ``values``, which are those of an operation.

    Where one engine takes the tensors of another as guests, it is that one.
    """
    first: Any = None
    for value in values:
        for x in tree.leaves(value) if isinstance(value, _CONTAINERS) else (value,):
            if not isinstance(x, _kinds):
                continue
            if first is None or (x.home is not first.home and isinstance(first.native, x.home.kinds)):
                first = x
            elif x.home is not first.home and not isinstance(x.native, first.home.kinds):
                raise mixture(name, first.home.chosen_as, x.home.chosen_as)
    return first.home  # type: ignore[no-any-return]


def mixture(name: str, first: str, second: str) -> TypeError:
    """The error for tensors of two engines in one call."""
    return TypeError(
        f"{name} was given tensors of two engines, {first} and {second}; x.to_backend({first!r}) moves an EmberTensor, "
        "and EmberTensor(x) makes one of a native tensor"
    )


def opened_all(values: tuple[Any, ...], backend: Backend) -> tuple[Any, ...]:
    """``opened``, for the values of an operation."""
    return tuple(
        value.native if isinstance(value, _kinds) else opened(value, backend) if isinstance(value, _OPENED) else value
        for value in values
    )


def opened(value: Any, backend: Backend | None = None) -> Any:
    """``value`` with native tensors for portable ones.

    Args:
        backend: the functions in ``value`` are given portable tensors for those of this backend, and opened likewise.
    """

    def of(leaf: Any) -> Any:
        if isinstance(leaf, _kinds):
            return leaf.native
        if backend is not None and isinstance(leaf, _FUNCTIONS) and not hasattr(leaf, "__operation__"):
            return _in_kind(backend, leaf)
        return leaf

    return tree.map(of, value)


def closed(value: Any, backend: Backend) -> Any:
    """``value`` with portable tensors for the native ones of ``backend``."""
    if isinstance(value, backend.kinds):
        return _make(backend, value)
    return tree.map(partial(closed, backend=backend), value) if isinstance(value, _CONTAINERS) else value


def _in_kind(backend: Backend, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which works on portable tensors, for a caller that works on native ones."""

    @wraps(function)
    def of_natives(*args: Any, **kwargs: Any) -> Any:
        return opened(function(*closed(args, backend), **closed(kwargs, backend)))

    return of_natives
