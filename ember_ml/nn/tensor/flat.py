"""The elements of an EmberTensor by one index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_ml.nn.tensor.tensor import EmberTensor


class Flat:
    """The elements of a tensor in row-major order, as NumPy's ``x.flat``; assignments change the tensor.

    >>> from ember_ml.nn.tensor import EmberTensor
    >>> x = EmberTensor([[1, 2], [3, 4]])
    >>> x.flat[2].item(), len(x.flat), [element.item() for element in x.flat]
    (3, 4, [1, 2, 3, 4])
    >>> x.flat[::3] = 0
    >>> x.tolist()
    [[0, 2], [3, 0]]
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor: EmberTensor) -> None:
        self._tensor = tensor

    def __len__(self) -> int:
        return self._tensor.size

    def __iter__(self) -> Iterator[EmberTensor]:
        return iter(self._tensor.reshape(-1))

    def __getitem__(self, key: Any) -> EmberTensor:
        return self._tensor.reshape(-1)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        elements = self._tensor.reshape(-1)
        elements[key] = value
        self._tensor[...] = elements.reshape(self._tensor.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._tensor.reshape(-1).__array__(dtype, copy=copy)
