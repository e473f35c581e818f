"""Promotion by table: one or two tensors of an engine, or a tensor and a number, whose dtypes call for a cast.

The fast path is for tensors of one dtype that the engine takes as they are. What is left is mostly this: a mask times a
tensor, an integer by another, an integer tensor and a float. Their common dtype is known beforehand, so that the
general path need not work it out.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import backend as backends
from ember_ml.dispatch.roles import TENSOR
from ember_ml.dtypes import DTYPES, PROMOTION, DTypeRule, EmberDType, adapt, bfloat16, default_float, of_kind

if TYPE_CHECKING:
    from ember_ml.backend import Backend
    from ember_ml.dispatch.operation import Operation

# The engine's dtype to compute in, by that of the first operand and that of the second: an engine's dtype for a
# tensor, its type for a number, ``None`` for the second operand of an operation that has one.
Table = dict[Any, dict[Any, Any]]

# All dtypes that a table promotes a Python integer to hold those below this.
_SMALL = 1 << 11

_NO_ROW: dict[Any, Any] = {}


class Entry(NamedTuple):
    """What tensors of one engine need: the backend, its tensor type, and the table."""

    backend: Backend
    own: type
    table: Table


class Promotion:
    """What ``Unary`` and ``Binary`` share: a table for each engine.

    Both are functions from operands to the backend that computes and the operands as it needs them, or to ``None`` for
    operands that the general path has to look at.
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[type, Entry] = {}

    def bind(self, operation: Operation, backend: Backend) -> None:
        """Look up the tensors of ``backend`` from now on."""
        own = backend.tensors[0]
        self.entries[own] = Entry(backend, own, _table(backend, operation.rule, operation.kinds, default_float()))


class Unary(Promotion):
    """The promotion of one tensor."""

    __slots__ = ()

    def __call__(self, x: Any) -> tuple[Backend, tuple[Any, ...]] | None:
        entry = self.entries.get(type(x))
        if entry is None or (entry.backend.is_host and backends.process_backend() is not entry.backend):
            return None
        backend, _, table = entry
        computed = table.get(x.dtype, _NO_ROW).get(None)
        return None if computed is None else (backend, (backend.cast(x, computed),))


class Binary(Promotion):
    """The promotion of two tensors, or of a tensor and a number."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any) -> tuple[Backend, tuple[Any, ...]] | None:
        first, second = type(x), type(y)
        entry = self.entries.get(first) or self.entries.get(second)
        if entry is None or (entry.backend.is_host and backends.process_backend() is not entry.backend):
            return None
        backend, own, table = entry
        left = x.dtype if first is own else first
        right = y.dtype if second is own else second
        computed = table.get(left, _NO_ROW).get(right)
        if computed is None or not (_is_small(x) and _is_small(y)):
            return None
        if first is own and left != computed:
            x = backend.cast(x, computed)
        if second is not own:
            y = backend.scalar_like(y, x)
        elif right != computed:
            y = backend.cast(y, computed)
        if first is not own:
            x = backend.scalar_like(x, y)
        return backend, (x, y)


def _is_small(value: Any) -> bool:
    """Whether ``value`` is no Python integer, or one that every dtype of a table holds."""
    return type(value) is not int or -_SMALL < value < _SMALL


def promotion_of(operation: Operation) -> Unary | Binary | None:
    """The promotion of an operation that takes one tensor or two, promotes them, and takes nothing else."""
    parameters = operation.parameters
    if not 1 <= len(parameters) <= 2 or operation.rule.mode != "promote":
        return None
    if any(p.role != TENSOR or p.many or p.keyword for p in parameters):
        return None
    return Binary() if len(parameters) == 2 else Unary()


@cache
def _table(backend: Backend, rule: DTypeRule, kinds: tuple[str, ...], default: EmberDType) -> Table:
    """The dtype that tensors and numbers are cast to. ``default`` is the default float, which some rules return."""
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
    """The engine's dtype that ``common`` is computed in; ``None`` where the general path has something to say."""
    if common is None or common not in taken:
        return None
    computed = rule.compute(common)
    # A device may be without the widest dtypes; one that a given tensor has is there.
    if computed.bits > max(dtype.bits for dtype in given) and computed.name in ("float64", "complex128"):
        return None
    return backend.dtypes.get(computed.name)
