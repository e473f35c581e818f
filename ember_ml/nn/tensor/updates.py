"""Functional updates: ``x.at[key].set(values)`` is a new tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ember_ml import ops

if TYPE_CHECKING:
    from ember_ml.nn.tensor.tensor import EmberTensor


class At:
    """What ``x.at`` is: indexing it names a place in ``x``."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: EmberTensor) -> None:
        self._tensor = tensor

    def __getitem__(self, key: Any) -> Place:
        return Place(self._tensor, key)


class Place:
    """A place in a tensor. Its methods answer with a new tensor in which that place is changed.

    Where the key names an element twice, ``add`` and ``subtract`` count both values, and of the others the last one
    stands.

    >>> from ember_ml.nn.tensor import asarray
    >>> x = asarray([1, 2, 3])
    >>> x.at[1:].add(10).tolist(), x.tolist()
    ([1, 12, 13], [1, 2, 3])
    """

    __slots__ = ("_key", "_tensor")

    def __init__(self, tensor: EmberTensor, key: Any) -> None:
        self._tensor = tensor
        self._key = key

    def get(self) -> Any:
        """The elements at the place."""
        return self._tensor[self._key]

    def set(self, values: Any) -> Any:
        """The tensor with ``values`` there."""
        return ops.index_update(self._tensor, self._key, values)

    def add(self, values: Any) -> Any:
        """The tensor with ``values`` added there."""
        return ops.index_add(self._tensor, self._key, values)

    def subtract(self, values: Any) -> Any:
        """The tensor with ``values`` subtracted there."""
        beside = self._tensor.__array_namespace__().asarray(values)
        return ops.index_add(self._tensor, self._key, ops.negative(beside))

    def multiply(self, values: Any) -> Any:
        """The tensor with the elements there multiplied by ``values``."""
        return self._changed(ops.multiply, values)

    def divide(self, values: Any) -> Any:
        """The tensor with the elements there divided by ``values``."""
        return self._changed(ops.divide, values)

    def power(self, values: Any) -> Any:
        """The tensor with the elements there raised to ``values``."""
        return self._changed(ops.power, values)

    def min(self, values: Any) -> Any:
        """The tensor with the lesser of the elements there and ``values``."""
        return self._changed(ops.minimum, values)

    def max(self, values: Any) -> Any:
        """The tensor with the greater of the elements there and ``values``."""
        return self._changed(ops.maximum, values)

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """The tensor with ``function`` of the elements there."""
        return self.set(function(self.get()))

    def _changed(self, operation: Callable[..., Any], values: Any) -> Any:
        return self.set(operation(self.get(), values))
