"""Operators of ``EmberTensor``, built from operations.

Each operator has a fast path, which calls the operation with native tensors, for two tensors of one engine or a tensor
and a Python number. All other operands are passed to the operation as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from ember_ml import ops
from ember_ml.dtypes import KIND_RANK, with_article
from ember_ml.extend import ENGINES, is_tensor_like, process_backend

if TYPE_CHECKING:
    from ember_ml.nn.tensor.tensor import EmberTensor

F = TypeVar("F", bound=Callable[..., Any])

# Type of the results, also for operators that a subclass inherits.
_tensor_type: type[Any] = object


def register(tensor_type: type[Any]) -> None:
    """Make the operators return instances of ``tensor_type``."""
    global _tensor_type
    _tensor_type = tensor_type


def unary(name: str) -> Callable[[EmberTensor], EmberTensor]:
    """Operator with one operand, for the operation ``name``."""
    operation = getattr(ops, name)

    def operator(self: Any) -> Any:
        home = self.home
        if home.is_host and process_backend() is not home:
            return operation(self)
        result = object.__new__(_tensor_type)
        result.home, result.native = home, operation(self.native)
        return result

    return _documented(operator, operation)


def binary(name: str) -> Callable[[EmberTensor, Any], EmberTensor]:
    """Operator with two operands, for the operation ``name``."""
    operation = getattr(ops, name)

    def operator(self: Any, other: Any) -> Any:
        home = self.home
        other_type = type(other)
        if other_type is type(self):
            if other.home is not home:
                return operation(self, other)
            other = other.native
        elif other_type is not float and other_type is not int:
            return operation(self, other) if is_tensor_like(other_type) else NotImplemented
        if home.is_host and process_backend() is not home:
            return operation(self, other)
        result = object.__new__(_tensor_type)
        result.home, result.native = home, operation(self.native, other)
        return result

    return _documented(operator, operation)


def reflected(name: str) -> Callable[[EmberTensor, Any], EmberTensor]:
    """Operator with exchanged operands: the first is a number or a native tensor."""
    operation = getattr(ops, name)
    _RUNS[name] = operation.__operation__.runs
    takes_floats = "float32" in operation.__operation__.dtypes

    def operator(self: Any, other: Any) -> Any:
        other_type = type(other)
        if takes_floats and (other_type is float or (other_type is int and 0 <= other < 128)):
            home, x = self.home, self.native
            engine = ENGINES[home.name]
            run = _RUNS[name][home.name]
            result = object.__new__(_tensor_type)
            # With a floating-point tensor, no dtype rule requires a cast.
            if x.dtype in engine.numbers[float] and type(run) is not FunctionType:
                number = other if home.raw_numbers is None else engine.scalar_like(other, x)
                result.home, result.native = home, run(number, x)
                return result
            if x.dtype in engine.numbers[other_type] and (not home.is_host or process_backend() is home):
                result.home, result.native = home, operation(engine.scalar_like(other, x), x)
                return result
        return operation(other, self) if is_tensor_like(other_type) else NotImplemented

    return _documented(operator, operation)


# Functions by operation and engine. torch 2.13: the compiler can read them here, but not in a closure.
_RUNS: dict[str, dict[str, Callable[..., Any]]] = {}


def in_place(name: str) -> Callable[[EmberTensor, Any], EmberTensor]:
    """Operator that assigns the result to its first operand, which keeps its dtype and shape."""
    operation = getattr(ops, name)
    operator = binary(name)

    def assign(self: Any, other: Any) -> Any:
        result = operator(self, other)
        if result is NotImplemented:
            return result
        if result.shape != self.shape:
            raise ValueError(
                f"{operation.__name__}: the result must have the shape of the tensor that it is assigned to, "
                f"{list(self.shape)}, got {list(result.shape)}"
            )
        self.native = _cast_like(self, result, operation.__name__)
        return self

    return _documented(assign, operation)


def _cast_like(x: Any, value: Any, name: str) -> Any:
    """Native tensor of ``value`` in the dtype of ``x``, whose kind must be the same or higher."""
    own, given = x.dtype, value.dtype
    if own is given:
        return value.native
    if KIND_RANK[given.kind] > KIND_RANK[own.kind]:
        raise TypeError(
            f"{name}: a result that is assigned to {with_article(own.name)} tensor must be of its kind or a lower one, "
            f"got {given.name}; cast the tensor with astype first"
        )
    return value.astype(own).native


def _documented(function: F, operation: Callable[..., Any]) -> F:
    function.__doc__ = operation.__doc__
    return function
