"""The operators of the portable tensor, made from operations.

Each has a short way of its own: two tensors of one engine, or a tensor and a Python number, go to the operation as
native tensors. Everything else is the operation's affair.
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

_new = object.__new__

# The type of the answers, also of operators that a subclass inherits.
_kind: type[Any] = object


def know(kind: type[Any]) -> None:
    """Make the operators answer with instances of ``kind``."""
    global _kind
    _kind = kind


def unary(name: str) -> Callable[[EmberTensor], EmberTensor]:
    """The operator of one tensor that an operation stands for."""
    operation = getattr(ops, name)

    def operator(self: Any) -> Any:
        home = self.home
        if home.is_host and process_backend() is not home:
            return operation(self)
        answer = _new(_kind)
        answer.home, answer.native = home, operation(self.native)
        return answer

    return _named(operator, operation)


def binary(name: str) -> Callable[[EmberTensor, Any], EmberTensor]:
    """The operator of two tensors that an operation stands for."""
    operation = getattr(ops, name)

    def operator(self: Any, other: Any) -> Any:
        home = self.home
        kind = type(other)
        if kind is type(self):
            if other.home is not home:
                return operation(self, other)
            other = other.native
        elif kind is not float and kind is not int:
            return operation(self, other) if is_tensor_like(kind) else NotImplemented
        if home.is_host and process_backend() is not home:
            return operation(self, other)
        answer = _new(_kind)
        answer.home, answer.native = home, operation(self.native, other)
        return answer

    return _named(operator, operation)


def reflected(name: str) -> Callable[[EmberTensor, Any], EmberTensor]:
    """The operator with its operands the other way round: the first is a number, or a native tensor."""
    operation = getattr(ops, name)
    _RUNS[name] = operation.__operation__.runs
    takes_floats = "float32" in operation.__operation__.dtypes

    def operator(self: Any, other: Any) -> Any:
        kind = type(other)
        if takes_floats and (kind is float or (kind is int and 0 <= other < 128)):
            home, x = self.home, self.native
            engine = ENGINES[home.name]
            run = _RUNS[name][home.name]
            answer = _new(_kind)
            # A floating tensor is in the right dtype whatever the rule.
            if x.dtype in engine.numbers[float] and type(run) is not FunctionType:
                number = other if home.raw_numbers is None else engine.scalar_like(other, x)
                answer.home, answer.native = home, run(number, x)
                return answer
            if x.dtype in engine.numbers[kind] and (not home.is_host or process_backend() is home):
                answer.home, answer.native = home, operation(engine.scalar_like(other, x), x)
                return answer
        return operation(other, self) if is_tensor_like(kind) else NotImplemented

    return _named(operator, operation)


# What computes each operation, by name and engine: torch's compiler finds it here, but not in a closure.
_RUNS: dict[str, dict[str, Callable[..., Any]]] = {}


def assigning(name: str) -> Callable[[EmberTensor, Any], EmberTensor]:
    """The operator that gives its first operand the answer for a value, in the dtype and shape that it has."""
    operation = getattr(ops, name)
    operator = binary(name)

    def assign(self: Any, other: Any) -> Any:
        answer = operator(self, other)
        if answer is NotImplemented:
            return answer
        if answer.shape != self.shape:
            raise ValueError(
                f"{operation.__name__}: the result must have the shape of the tensor that it is assigned to, "
                f"{list(self.shape)}, got {list(answer.shape)}"
            )
        self.native = kept(self, answer, operation.__name__)
        return self

    return _named(assign, operation)


def kept(x: Any, value: Any, name: str) -> Any:
    """The native tensor of ``value`` in the dtype of ``x``, which must be of no lower kind."""
    own, given = x.dtype, value.dtype
    if own is given:
        return value.native
    if KIND_RANK[given.kind] > KIND_RANK[own.kind]:
        raise TypeError(
            f"{name}: a result that is assigned to {with_article(own.name)} tensor must not be of a higher kind, got "
            f"{given.name}; cast the tensor with astype first"
        )
    return value.astype(own).native


def _named(function: F, operation: Callable[..., Any]) -> F:
    function.__doc__ = operation.__doc__
    return function
