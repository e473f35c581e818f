"""The middle way into an operation: one or two tensors of an engine, or a tensor and a number, that a table casts.

The short way is for tensors of one dtype that the engine takes as they are, the door for everything. Most of what is
left lies in between: a mask times a tensor, an integer by another, an integer tensor and a float. What they meet in is
known beforehand, so that a call is a look-up, the casts, and the engine's function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import backend as backends
from ember_ml.door import TENSOR
from ember_ml.dtypes import DTYPES, PROMOTION, EmberDType, Law, adapt, bfloat16, default_float, of_kind

if TYPE_CHECKING:
    from ember_ml.backend import Backend
    from ember_ml.contract import Operation

# The dtype to enter an operation in, by that of the first tensor and that of the second. A number stands there by its
# type, and nothing beside a single tensor.
Table = dict[Any, dict[Any, Any]]

# Python's integers below this are in all dtypes that a table has them meet.
_FEW = 1 << 11

_NO_ROW: dict[Any, Any] = {}


class Way(NamedTuple):
    """What the tensors of one engine need to meet: the engine, its tensor type and function, and the table."""

    backend: Backend
    own: type
    run: Callable[..., Any]
    table: Table


class Meeting:
    """The middle way into an operation; what it does not know goes through the door."""

    __slots__ = ("door", "ways")

    def __init__(self, operation: Operation) -> None:
        self.door = operation.door
        self.ways: dict[type, Way] = {}

    def open(self, operation: Operation, backend: Backend, run: Callable[..., Any]) -> None:
        """Let the tensors of ``backend`` meet in ``run``."""
        own = backend.tensors[0]
        self.ways[own] = Way(backend, own, run, _table(backend, operation.law, operation.kinds, default_float()))


class Alone(Meeting):
    """The middle way into an operation of one tensor."""

    __slots__ = ()

    def __call__(self, x: Any) -> Any:
        way = self.ways.get(type(x))
        if way is None or (way.backend.is_host and backends.calm() is not way.backend):
            return self.door(x)
        backend, _, run, table = way
        entered = table.get(x.dtype, _NO_ROW).get(None)
        if entered is None:
            return self.door(x)
        x = backend.cast(x, entered)
        try:
            return run(x)
        except Exception as error:
            return self.door.recover(backend, error, (x,))


class Pair(Meeting):
    """The middle way into an operation of two tensors."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any) -> Any:
        kind, other = type(x), type(y)
        way = self.ways.get(kind) or self.ways.get(other)
        if way is None or (way.backend.is_host and backends.calm() is not way.backend):
            return self.door(x, y)
        backend, own, run, table = way
        first = x.dtype if kind is own else kind
        second = y.dtype if other is own else other
        entered = table.get(first, _NO_ROW).get(second)
        if entered is None or (kind is int and not -_FEW < x < _FEW) or (other is int and not -_FEW < y < _FEW):
            return self.door(x, y)
        if kind is own and first != entered:
            x = backend.cast(x, entered)
        if other is not own:
            y = backend.lift(y, x)
        elif second != entered:
            y = backend.cast(y, entered)
        if kind is not own:
            x = backend.lift(x, y)
        try:
            return run(x, y)
        except Exception as error:
            return self.door.recover(backend, error, (x, y))


def of(operation: Operation) -> Meeting | None:
    """The middle way into an operation, if there is one: it takes one tensor or two, and nothing else."""
    parameters = operation.parameters
    if not 1 <= len(parameters) <= 2 or operation.law.meet != "together":
        return None
    if any(p.role != TENSOR or p.many or p.keyword for p in parameters):
        return None
    return Pair(operation) if len(parameters) == 2 else Alone(operation)


@cache
def _table(backend: Backend, law: Law, kinds: tuple[str, ...], default: EmberDType) -> Table:
    """What tensors and numbers enter an operation in. ``default`` is the default float, which some laws answer with."""
    taken = of_kind(kinds)
    known = [DTYPES[name] for name in backend.dtypes]
    table: Table = {float: {}, int: {}}
    for a in known:
        row = table[backend.dtypes[a.name]] = {}
        for b in known:
            row[backend.dtypes[b.name]] = _entered(backend, law, taken, PROMOTION[a.name, b.name], (a, b))
        row[None] = _entered(backend, law, taken, a, (a,))
        for number in (float, int):
            if a is not bfloat16 and (number is float or (a.kind != "unsigned integer" and a.name != "int8")):
                row[number] = _entered(backend, law, taken, adapt(a, number), (a,))
                table[number][backend.dtypes[a.name]] = row[number]
    return table


def _entered(
    backend: Backend, law: Law, taken: tuple[EmberDType, ...], common: EmberDType | None, given: tuple[EmberDType, ...]
) -> Any:
    """The engine's dtype that what meets in ``common`` enters in; ``None`` where the door has something to say."""
    if common is None or common not in taken:
        return None
    entered = law.enter(common)
    # A device may be without the widest dtypes. Where a tensor is of one, it is not.
    if entered.bits > max(dtype.bits for dtype in given) and entered.name in ("float64", "complex128"):
        return None
    return backend.dtypes.get(entered.name)
