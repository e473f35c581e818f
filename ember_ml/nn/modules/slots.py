"""``Parameter`` and ``Buffer``: assigned to an attribute of a module, they register a tensor under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ember_ml import ops
from ember_ml.dtypes import KINDS, as_dtype, describe
from ember_ml.extend import backend_of, rename_error, unwrap
from ember_ml.types import Tensor, TensorLike

TRAINABLE, FROZEN, BUFFER, CONSTANT, TIED = "trainable", "frozen", "buffer", "constant", "tied"

if TYPE_CHECKING:
    # The attribute holds a tensor after the assignment, so type checkers treat a slot as one.
    Assigned: TypeAlias = Any
else:
    Assigned = object


class Slot(Assigned):  # type: ignore[misc]
    """Tensor to register: assigning it to an attribute of a module stores the tensor and records its role."""

    if TYPE_CHECKING:
        # Any as a base class hides the operators from mypy, which would take the type of the other operand.
        def __add__(self, other: Any, /) -> Tensor: ...
        def __radd__(self, other: Any, /) -> Tensor: ...
        def __sub__(self, other: Any, /) -> Tensor: ...
        def __rsub__(self, other: Any, /) -> Tensor: ...
        def __mul__(self, other: Any, /) -> Tensor: ...
        def __rmul__(self, other: Any, /) -> Tensor: ...
        def __truediv__(self, other: Any, /) -> Tensor: ...
        def __rtruediv__(self, other: Any, /) -> Tensor: ...
        def __pow__(self, other: Any, /) -> Tensor: ...
        def __rpow__(self, other: Any, /) -> Tensor: ...
        def __matmul__(self, other: Any, /) -> Tensor: ...
        def __getitem__(self, key: Any, /) -> Tensor: ...
        def __neg__(self) -> Tensor: ...

    def __init__(self, value: TensorLike, role: str) -> None:
        try:
            self.value = native(value)
        except (TypeError, ValueError) as error:
            raise rename_error(error, type(self).__name__) from error.__cause__
        self.role = role

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.value)})"


class Parameter(Slot):
    """A tensor that is learned in training.

    Args:
        value: the initial value, a tensor or anything that converts to one.
        trainable: if false, the parameter is frozen until ``Module.unfreeze``.

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
        value: the initial value, a tensor or anything that converts to one.
        persistent: if false, the buffer is not part of ``state_dict``. Use it for tables that the constructor computes.

    >>> from ember_ml.nn.modules import Module
    >>> module = Module()
    >>> module.count = Buffer(0)
    >>> list(module.buffers()), list(module.parameters())
    (['count'], [])
    """

    def __init__(self, value: TensorLike, *, persistent: bool = True) -> None:
        super().__init__(value, BUFFER if persistent else CONSTANT)


def native(value: Any) -> Any:
    """``value`` as an engine's own tensor: unwrapped, or else converted by the active backend."""
    value = unwrap(value)
    return value if backend_of(value, host=False) is not None else ops.asarray(value)
