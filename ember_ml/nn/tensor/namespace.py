"""The namespace of the array API standard: what it says of itself, and its form for one engine."""

from __future__ import annotations

import sys
from functools import cache, wraps
from types import ModuleType
from typing import Any

from ember_ml.backend import use_backend
from ember_ml.dtypes import EmberDType, default_dtype, of_kind
from ember_ml.extend import Backend, current_backend, load_backend
from ember_ml.nn.tensor.creation import creators
from ember_ml.types import MAX_AXES

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

_HERE = __name__.rpartition(".")[0]


def namespace_of(home: Backend, version: str | None = None) -> ModuleType:
    """The namespace for tensors of ``home``: the package, or where another engine is active, the package for this one.

    They differ in what they create: a function that asks a tensor for its namespace makes others beside it.
    """
    if version is not None and version not in _VERSIONS:
        raise ValueError(f"__array_namespace__: api_version must be one of {', '.join(_VERSIONS)}, got {version!r}")
    return sys.modules[_HERE] if current_backend() is home else _bound(home, sys.modules[_HERE])


@cache
def _bound(home: Backend, module: ModuleType) -> Namespace:
    return Namespace(home, module)


class Namespace(ModuleType):
    """A module whose functions create tensors on one engine, whichever is active."""

    def __init__(self, home: Backend, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._home = home
        self._module = module
        self._creators = creators(vars(module))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if name in self._creators or value is info:
            value = _within(self._home, value)
        elif isinstance(value, ModuleType) and value.__name__.startswith(_HERE):
            value = _bound(self._home, value)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} for the {self._home.name} engine>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._home.name, self.__name__)


def _restored(home: str, module: str) -> Namespace:
    return _bound(load_backend(home), sys.modules[module])


def _within(home: Backend, function: Any) -> Any:
    @wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        with use_backend(home.name):
            return function(*args, **kwargs)

    return within


class Info:
    """What a namespace can do: its devices, its dtypes and their defaults, as the standard asks for them."""

    def __init__(self, home: Backend) -> None:
        self._home = home

    def capabilities(self) -> dict[str, Any]:
        """What the standard leaves open."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_AXES}

    def default_device(self) -> str:
        """The device on which tensors are made."""
        home = self._home
        return home.device_of(home.convert(0, None, home.device))

    def devices(self) -> list[str]:
        """The devices of the engine."""
        return self._home.devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, EmberDType]:
        """The dtypes of Python numbers and of indices."""
        self._check(device)
        return {
            "real floating": default_dtype(float),
            "complex floating": default_dtype(complex),
            "integral": default_dtype(int),
            "indexing": default_dtype(int),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, EmberDType]:
        """The dtypes of the standard, by name, that the engine has on a device.

        Args:
            kind: the kinds to list, as ``isdtype`` names them; by default all.
        """
        self._check(device)
        lacking = {"float16", "bfloat16"} if self._home.has_float64() else {"float16", "bfloat16", "float64"}
        kinds = "any" if kind is None else kind
        return {d.name: d for d in of_kind(kinds) if d.name in self._home.dtypes and d.name not in lacking}

    def _check(self, device: Any) -> None:
        if device is not None:
            self._home.find_device(device)


def info() -> Info:
    """What the active backend can do, as the array API standard asks for it.

    >>> info().default_dtypes()["integral"]
    ember_ml.int64
    """
    return Info(current_backend())
