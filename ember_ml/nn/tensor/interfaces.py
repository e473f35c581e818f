"""Protocols that ``EmberTensor`` and ``EmberDType`` meet, for annotations of code that needs neither class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ember_ml import older_names
from ember_ml.types import Tensor

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return older_names.attribute(__name__, name)


@runtime_checkable
class DTypeInterface(Protocol):
    """A dtype that is independent of the engine, as ``EmberDType`` is.

    >>> import ember_ml
    >>> isinstance(ember_ml.float32, DTypeInterface)
    True
    """

    name: str
    kind: str
    bits: int

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        ...


@runtime_checkable
class TensorInterface(Tensor, Protocol):
    """A tensor that is the same on every engine, as ``EmberTensor`` is.

    Beyond ``ember_ml.types.Tensor``, it knows its engine and device, and moves to others.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.tensor import EmberTensor
    >>> isinstance(EmberTensor([1.0]), TensorInterface), isinstance(ops.ones(1), TensorInterface)
    (True, False)
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DTypeInterface: ...
    @property
    def size(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def requires_grad(self) -> bool: ...
    def numpy(self) -> Any: ...
    def to(self, device: Any) -> TensorInterface: ...
    def to_backend(self, name: str) -> TensorInterface: ...
    def detach(self) -> TensorInterface: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
