"""Functional updates: ``x.at[key].set(values)`` returns a new tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ember_ml import ops

if TYPE_CHECKING:
    from ember_ml.nn.tensor.tensor import EmberTensor


class At:
    """Result of ``x.at``; indexing it with a key selects elements of ``x`` for an update."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: EmberTensor) -> None:
        self._tensor = tensor

    def __getitem__(self, key: Any) -> Place:
        return Place(self._tensor, key)


class Place:
    """Selected elements of a tensor. The methods return a new tensor in which these elements are changed.

    If the key selects an element more than once, ``add`` and ``subtract`` apply all values; with the other methods the
    last value wins.

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
        """The selected elements."""
        return self._tensor[self._key]

    def set(self, values: Any) -> Any:
        """Tensor with the elements replaced by ``values``."""
        return ops.index_update(self._tensor, self._key, values)

    def add(self, values: Any) -> Any:
        """Tensor with ``values`` added to the elements."""
        return ops.index_add(self._tensor, self._key, values)

    def subtract(self, values: Any) -> Any:
        """Tensor with ``values`` subtracted from the elements."""
        operand = self._tensor.__array_namespace__().asarray(values)
        return ops.index_add(self._tensor, self._key, ops.negative(operand))

    def multiply(self, values: Any) -> Any:
        """Tensor with the elements multiplied by ``values``."""
        return self._update(ops.multiply, values)

    def divide(self, values: Any) -> Any:
        """Tensor with the elements divided by ``values``."""
        return self._update(ops.divide, values)

    def power(self, values: Any) -> Any:
        """Tensor with the elements raised to the power ``values``."""
        return self._update(ops.power, values)

    def min(self, values: Any) -> Any:
        """Tensor with the elements replaced by the minimum of themselves and ``values``."""
        return self._update(ops.minimum, values)

    def max(self, values: Any) -> Any:
        """Tensor with the elements replaced by the maximum of themselves and ``values``."""
        return self._update(ops.maximum, values)

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """Tensor with the elements replaced by ``function`` of them."""
        return self.set(function(self.get()))

    def _update(self, operation: Callable[..., Any], values: Any) -> Any:
        return self.set(operation(self.get(), values))
