"""Promotion by table: one or two tensors of an engine, or a tensor and a number, that need a cast.

The fast path is for tensors of one dtype that need no cast. Most other calls are of this form: a mask times a tensor,
an integer divided by another, an integer tensor plus a float. Their common dtype is tabulated, so that the general path
need not compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import backend as backends
from ember_ml.dispatch.roles import TENSOR
from ember_ml.dtypes import DTYPES, PROMOTION, DTypeRule, EmberDType, adapt, bfloat16, default_float, of_kind

if TYPE_CHECKING:
    from ember_ml.backend import Backend
    from ember_ml.dispatch.operation import Operation

# The engine's dtype to compute in, by the first and the second operand: the engine's dtype for a tensor, the Python
# type for a number, and ``None`` for the second operand of a unary operation.
Table = dict[Any, dict[Any, Any]]

# Every dtype that a table promotes a Python integer to can store integers of a smaller magnitude.
_SMALL = 1 << 11

_NO_ROW: dict[Any, Any] = {}


class Entry(NamedTuple):
    """The backend, its tensor type, the table, and whether the engine may cast itself, for tensors of one engine."""

    backend: Backend
    tensor_type: type
    table: Table
    is_autocast: bool


class Promotion:
    """Base class of ``Unary`` and ``Binary``: a table for each engine.

    Both map operands to the backend that computes and the cast operands, or to ``None`` if the general path must
    process them.
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[type, Entry] = {}

    def bind(self, operation: Operation, backend: Backend) -> None:
        """Register the tensors of ``backend``."""
        tensor_type = backend.tensors[0]
        self.entries[tensor_type] = Entry(
            backend,
            tensor_type,
            _table(backend, operation.rule, operation.kinds, default_float()),
            operation.name in backend.autocast,
        )


class Unary(Promotion):
    """Promotion of one tensor."""

    __slots__ = ()

    def __call__(self, x: Any) -> tuple[Backend, tuple[Any, ...]] | None:
        entry = self.entries.get(type(x))
        if entry is None or (entry.backend.is_host and backends.process_backend() is not entry.backend):
            return None
        backend, _, table, _ = entry
        computed = table.get(x.dtype, _NO_ROW).get(None)
        return None if computed is None else (backend, (backend.cast(x, computed),))


class Binary(Promotion):
    """Promotion of two tensors, or of a tensor and a number."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any) -> tuple[Backend, tuple[Any, ...]] | None:
        first, second = type(x), type(y)
        entry = self.entries.get(first) or self.entries.get(second)
        if entry is None or (entry.backend.is_host and backends.process_backend() is not entry.backend):
            return None
        backend, tensor_type, table, is_autocast = entry
        left = x.dtype if first is tensor_type else first
        right = y.dtype if second is tensor_type else second
        computed = table.get(left, _NO_ROW).get(right)
        if computed is None or not (_is_small(x) and _is_small(y)):
            return None
        if is_autocast and first is second and is_half_and_single(backend, (x, y)):
            return backend, (x, y)
        if first is tensor_type and left != computed:
            x = backend.cast(x, computed)
        if second is not tensor_type:
            y = backend.scalar_like(y, x)
        elif right != computed:
            y = backend.cast(y, computed)
        if first is not tensor_type:
            x = backend.scalar_like(x, y)
        return backend, (x, y)


def is_half_and_single(backend: Backend, tensors: Sequence[Any]) -> bool:
    """Whether the engine itself casts these tensors at the moment: all of float32 or of half precision."""
    return backend.autocasts(tensors[0]) and all(backend.names[x.dtype].name in _AUTOCAST_DTYPES for x in tensors)


_AUTOCAST_DTYPES = frozenset({"float16", "bfloat16", "float32"})


def _is_small(value: Any) -> bool:
    """Whether ``value`` is not a Python integer, or one that every dtype of a table can store."""
    return type(value) is not int or -_SMALL < value < _SMALL


def promotion_of(operation: Operation) -> Unary | Binary | None:
    """Promotion of an operation whose only parameters are one or two tensors that are promoted; else ``None``."""
    parameters = operation.parameters
    if not 1 <= len(parameters) <= 2 or operation.rule.mode != "promote":
        return None
    if any(p.role != TENSOR or p.many or p.keyword for p in parameters):
        return None
    return Binary() if len(parameters) == 2 else Unary()


@cache
def _table(backend: Backend, rule: DTypeRule, kinds: tuple[str, ...], default: EmberDType) -> Table:
    """Dtypes that tensors and numbers are cast to. ``default`` is the default float, which some rules use."""
    taken = of_kind(kinds)
    known = [DTYPES[name] for name in backend.dtypes]
    table: Table = {float: {}, int: {}}
    for a in known:
        row = table[backend.dtypes[a.name]] = {}
        for b in known:
            row[backend.dtypes[b.name]] = _computed(backend, rule, taken, PROMOTION[a.name, b.name], (a, b))
        row[None] = _computed(backend, rule, taken, a, (a,))
        for number in (float, int):
            if a is not bfloat16 and (number is float or (a.kind != "unsigned integer" and a.name != "int8")):
                row[number] = _computed(backend, rule, taken, adapt(a, number), (a,))
                table[number][backend.dtypes[a.name]] = row[number]
    return table


def _computed(
    backend: Backend,
    rule: DTypeRule,
    taken: tuple[EmberDType, ...],
    common: EmberDType | None,
    given: tuple[EmberDType, ...],
) -> Any:
    """The engine's dtype in which ``common`` is computed, or ``None`` if the general path must decide."""
    if common is None or common not in taken:
        return None
    computed = rule.compute(common)
    # A device may lack the widest dtypes, unless one of the given tensors has one.
    if computed.bits > max(dtype.bits for dtype in given) and computed.name in ("float64", "complex128"):
        return None
    return backend.dtypes.get(computed.name)
