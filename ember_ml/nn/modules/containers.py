"""Containers: sequences, lists and dictionaries of modules, and functions as modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self

from ember_ml.dtypes import written
from ember_ml.nn.modules.module import Module


class Chain(Module):
    """Modules in order, named "0", "1" and so on."""

    def __init__(self, *modules: Any) -> None:
        self.extend(modules)

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, name) for name in self._children])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)._of(list(self)[index])
        return getattr(self, str(self._position(index)))

    def __setitem__(self, index: int, module: Any) -> None:
        setattr(self, str(self._position(index)), as_module(module, type(self).__name__))

    def __delitem__(self, index: Any) -> None:
        modules = list(self)
        del modules[index]
        self._fill(modules)

    def append(self, module: Any) -> Self:
        """Add a module at the end, and return the container."""
        setattr(self, str(len(self)), as_module(module, type(self).__name__))
        return self

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add modules at the end, and return the container."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Self:
        """Insert a module before the one at ``index``, and return the container."""
        modules = list(self)
        modules.insert(index, as_module(module, type(self).__name__))
        return self._fill(modules)

    def pop(self, index: int = -1) -> Any:
        """Remove the module at ``index``, and return it."""
        modules = list(self)
        taken = modules.pop(index)
        self._fill(modules)
        return taken

    @classmethod
    def _of(cls, modules: list[Any]) -> Self:
        return cls(*modules)

    def _fill(self, modules: list[Any]) -> Self:
        for name in list(self._children):
            delattr(self, name)
        return self.extend(modules)

    def _position(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"{type(self).__name__}: an index must be from {-len(self)} to {len(self) - 1}, got {index}"
            )
        return index % len(self)

    def extra_repr(self) -> str:
        return ""


class Sequential(Chain):
    """Modules called in order, each with the output of the one before it.

    Args:
        modules: modules or functions, or one list of them.

    >>> from ember_ml import ops
    >>> model = Sequential(ops.square, ops.negative)
    >>> model([1.0, 2.0]).tolist()
    [-1.0, -4.0]
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__(*(modules[0] if len(modules) == 1 and isinstance(modules[0], (list, tuple)) else modules))

    def forward(self, x: Any) -> Any:
        for name in self._children:
            x = getattr(self, name)(x)
        return x


class ModuleList(Chain):
    """List of modules, for use in a ``forward`` method.

    >>> from ember_ml.nn.modules import Linear
    >>> layers = ModuleList([Linear(2, 2) for _ in range(3)])
    >>> len(layers), list(layers.parameters())[-1]
    (3, '2.bias')
    """

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        self.extend(modules)

    @classmethod
    def _of(cls, modules: list[Any]) -> Self:
        return cls(modules)


class ModuleDict(Module):
    """Dictionary of modules. A key that is not a string, such as a number, is converted to one in paths.

    >>> from ember_ml.nn.modules import Linear
    >>> heads = ModuleDict({"left": Linear(2, 1), "right": Linear(2, 1)})
    >>> list(heads.parameters())
    ['left.weight', 'left.bias', 'right.weight', 'right.bias']
    """

    # Keys that are not strings, by their names in paths.
    _keys: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, modules: Mapping[Any, Any] | None = None) -> None:
        for key, module in (modules or {}).items():
            self[key] = module

    def __getitem__(self, key: Any) -> Any:
        return getattr(self, self._name(key))

    def __setitem__(self, key: Any, module: Any) -> None:
        name = str(key)
        known = self._keys.get(name, name)
        if name in self._children and known != key:
            raise ValueError(
                f"{type(self).__name__}: keys must have different names in paths, got {known!r} and {key!r}"
            )
        setattr(self, name, as_module(module, type(self).__name__))
        if key != name:
            self._keys = {**self._keys, name: key}

    def __delitem__(self, key: Any) -> None:
        name = self._name(key)
        delattr(self, name)
        self._keys = {other: known for other, known in self._keys.items() if other != name}

    def __contains__(self, key: object) -> bool:
        return str(key) in self._children and key in (str(key), self._keys.get(str(key)))

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def keys(self) -> list[Any]:
        """List of the keys."""
        return [self._keys.get(name, name) for name in self._children]

    def values(self) -> list[Any]:
        """List of the modules."""
        return [getattr(self, name) for name in self._children]

    def items(self) -> list[tuple[Any, Any]]:
        """List of pairs of key and module."""
        return list(zip(self.keys(), self.values(), strict=True))

    def _name(self, key: Any) -> str:
        """Name of the module at ``key``, which must exist."""
        if key not in self:
            raise KeyError(
                f"{type(self).__name__}: key must be one of {', '.join(map(str, self)) or 'none'}, got {key!r}"
            )
        return str(key)

    def extra_repr(self) -> str:
        return ""


class Lambda(Module):
    """Module that calls a function.

    >>> from ember_ml import ops
    >>> Lambda(ops.square)([3.0]).tolist()
    [9.0]
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"{type(self).__name__}: function must be a function, got {written(function)}")
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def as_module(value: Any, owner: str = "Module") -> Module:
    """``value`` as a module: a list, dictionary or function is converted, a module is returned as it is."""
    if isinstance(value, Module):
        return value
    if isinstance(value, dict):
        return ModuleDict(value)
    if isinstance(value, (list, tuple)):
        return ModuleList(value)
    if callable(value) and not isinstance(value, type):
        return Lambda(value)
    hint = f"; write {value.__name__}(...)" if isinstance(value, type) else ""
    raise TypeError(f"{owner}: a module must be a Module or a function, got {written(value)}{hint}")
