"""Warnings about attributes of modules that hold tensors which are neither parameters nor buffers."""

from __future__ import annotations

from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ember_ml.dtypes import KINDS, as_dtype, describe
from ember_ml.errors import warn
from ember_ml.extend import backend_of, unwrap

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module


def warn_if_unregistered(module: Module, name: str, value: Any) -> None:
    """Warn, once for a class and name, of a floating tensor or another library's module in a plain attribute.

    >>> from ember_ml.nn.modules import Linear
    >>> warn_if_unregistered(Linear(2, 3), "names", ["a", "b"])
    """
    reported = _REPORTED.get(type(module), frozenset())
    if name in reported:
        return
    tensor = unwrap(value)
    backend = backend_of(tensor)
    if backend is not None:
        # A compiler that traces the assignment cannot warn. Engines without one need not say whether it does.
        is_traced = getattr(backend.control, "is_traced", None)
        if not _is_floating(tensor) or (is_traced is not None and is_traced()):
            return
        text = (
            f"a tensor in an attribute must be Parameter(...) to be trained or Buffer(...) to be kept, got "
            f"{describe(tensor)} in {name!r}, which is not saved, moved or trained"
        )
    else:
        library = _library_of(type(value))
        if library is None:
            return
        text = (
            f"a module in an attribute must be an ember_ml.nn.Module, got {type(value).__name__} of {library} in "
            f"{name!r}, whose tensors are not saved, moved or trained; load_state_dict of the same layer in "
            "ember_ml.nn takes its weights"
        )
    _REPORTED[type(module)] = reported | {name}
    warn(f"{type(module).__name__}: {text}")


def _is_floating(tensor: Any) -> bool:
    try:
        return as_dtype(tensor.dtype).kind in KINDS["floating"]
    except TypeError:
        # A NumPy array of strings, objects or dates.
        return False


def _library_of(kind: type) -> str | None:
    """Library whose modules a class belongs to, if it is not this one."""
    return next((_LIBRARIES[c.__module__] for c in kind.__mro__ if c.__module__ in _LIBRARIES), None)


_REPORTED: WeakKeyDictionary[type[Module], frozenset[str]] = WeakKeyDictionary()

# Python modules that define the base class of the modules of a library.
_LIBRARIES = {"torch.nn.modules.module": "torch.nn", "mlx.nn.layers.base": "mlx.nn"}

# Types of the usual attributes, none of which is a tensor or a module.
PLAIN = frozenset(
    {
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type(None),
        tuple,
        list,
        dict,
        set,
        frozenset,
        type,
        BuiltinFunctionType,
        FunctionType,
        MethodType,
        partial,
    }
)
