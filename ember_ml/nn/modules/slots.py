"""What is assigned to a module to give it a tensor: a ``Parameter`` or a ``Buffer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ember_ml import ops
from ember_ml.dtypes import KINDS, as_dtype, describe
from ember_ml.extend import backend_of, rename_error, unwrap
from ember_ml.types import TensorLike

TRAINABLE, FROZEN, BUFFER, CONSTANT, TIED = "trainable", "frozen", "buffer", "constant", "tied"

if TYPE_CHECKING:
    # What a slot is assigned to holds a tensor afterwards, so type checkers take the one for the other.
    Assigned: TypeAlias = Any
else:
    Assigned = object


class Slot(Assigned):  # type: ignore[misc]
    """A tensor on its way into a module: assigned to an attribute, it registers the name and leaves itself there."""

    def __init__(self, value: TensorLike, role: str) -> None:
        try:
            self.value = native(value)
        except (TypeError, ValueError) as error:
            raise rename_error(error, type(self).__name__) from error.__cause__
        self.role = role

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.value)})"


class Parameter(Slot):
    """A tensor that training changes.

    Args:
        trainable: if false, the parameter starts out frozen.

    >>> from ember_ml.nn.modules import Module
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = Parameter([2.0, 3.0])
    ...     def forward(self, x):
    ...         return ops.multiply(x, self.factor)
    >>> Scale()([1.0, 10.0]).tolist()
    [2.0, 30.0]
    >>> list(Scale().parameters())
    ['factor']
    """

    def __init__(self, value: TensorLike, *, trainable: bool = True) -> None:
        super().__init__(value, TRAINABLE if trainable else FROZEN)
        if trainable and as_dtype(self.value.dtype).kind not in KINDS["floating"]:
            raise TypeError(
                f"Parameter: value must be floating to be trained, got {describe(self.value)}; a Buffer may be anything"
            )


class Buffer(Slot):
    """A tensor that belongs to a module but is not trained, such as running statistics.

    Args:
        persistent: if false, it is no part of ``state_dict``: a table that the constructor computes, for example.

    >>> from ember_ml.nn.modules import Module
    >>> module = Module()
    >>> module.count = Buffer(0)
    >>> list(module.buffers()), list(module.parameters())
    (['count'], [])
    """

    def __init__(self, value: TensorLike, *, persistent: bool = True) -> None:
        super().__init__(value, BUFFER if persistent else CONSTANT)


def native(value: Any) -> Any:
    """``value`` if it is a tensor of an engine, else a tensor of the active backend that holds it."""
    value = unwrap(value)
    return value if backend_of(value, host=False) is not None else ops.asarray(value)
