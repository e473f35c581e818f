"""Namespace of the array API standard: its inspection functions, and its variant for a given engine."""

from __future__ import annotations

import sys
from functools import cache, wraps
from types import ModuleType
from typing import Any

from ember_ml.backend import use_backend
from ember_ml.dtypes import EmberDType, default_dtype, of_kind
from ember_ml.extend import Backend, current_backend, holds_wrapped, load_backend
from ember_ml.nn.tensor.functions import creates
from ember_ml.types import MAX_AXES

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

_HERE = __name__.rpartition(".")[0]


def namespace_of(backend: Backend, version: str | None = None) -> ModuleType:
    """Namespace whose functions create tensors on ``backend``: the package itself if that backend is active."""
    if version is not None and version not in _VERSIONS:
        raise ValueError(f"__array_namespace__: api_version must be one of {', '.join(_VERSIONS)}, got {version!r}")
    return sys.modules[_HERE] if current_backend() is backend else _bound(backend, sys.modules[_HERE])


@cache
def _bound(backend: Backend, module: ModuleType) -> Namespace:
    return Namespace(backend, module)


class Namespace(ModuleType):
    """Copy of a module, whose functions create tensors on one engine, whichever is active."""

    def __init__(self, backend: Backend, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._backend = backend
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if value is info or hasattr(value, "__operation__"):
            value = _with_backend(self._backend, value)
        elif isinstance(value, ModuleType) and value.__name__.startswith(_HERE):
            value = _bound(self._backend, value)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} for the {self._backend.name} engine>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._backend.name, self.__name__)


def _restored(backend: str, module: str) -> Namespace:
    return _bound(load_backend(backend), sys.modules[module])


def _with_backend(backend: Backend, function: Any) -> Any:
    takes_tensors = hasattr(function, "__operation__") and not creates(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if takes_tensors and (holds_wrapped(args) or holds_wrapped(kwargs.values())):
            # It computes on the engine of its EmberTensors.
            return function(*args, **kwargs)
        with use_backend(backend.name):
            return function(*args, **kwargs)

    return call


class Info:
    """Inspection of a namespace: its devices, dtypes and defaults, as the standard defines them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def capabilities(self) -> dict[str, Any]:
        """Support for features that the standard makes optional."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_AXES}

    def default_device(self) -> str:
        """Device on which tensors are created."""
        backend = self._backend
        return backend.device_of(backend.convert(0, None, backend.device))

    def devices(self) -> list[str]:
        """Devices of the engine."""
        return self._backend.devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, EmberDType]:
        """Default dtypes of Python numbers and of indices."""
        self._check(device)
        return {
            "real floating": default_dtype(float),
            "complex floating": default_dtype(complex),
            "integral": default_dtype(int),
            "indexing": default_dtype(int),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, EmberDType]:
        """Dtypes of the standard that the engine supports on a device, by name.

        Args:
            kind: kinds of dtypes to list, as in ``isdtype``; by default all.
        """
        self._check(device)
        lacking = {"float16", "bfloat16"} if self._backend.has_float64() else {"float16", "bfloat16", "float64"}
        kinds = "any" if kind is None else kind
        return {d.name: d for d in of_kind(kinds) if d.name in self._backend.dtypes and d.name not in lacking}

    def _check(self, device: Any) -> None:
        if device is not None:
            self._backend.find_device(device)


def info() -> Info:
    """Inspection of the active backend, as the array API standard defines it.

    >>> info().default_dtypes()["integral"]
    ember_ml.int64
    """
    return Info(current_backend())
