"""The fast path: tensors of one engine and one dtype that needs no cast go straight to the engine's function.

It is written twice, with one behavior: here, as closures over a table, and in ``_fast.c``, which is used where it was
built and ``EMBER_ML_PURE_PYTHON`` is not set. What the table does not hold goes to the operation's general path.

torch's compiler traces the closures in either case. It looks at what they hold without guarding it, so a table that it
sees holds functions, types and constants of torch alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import backend as backends
from ember_ml.dispatch.roles import COUNT, DEVICE, DTYPE, FLAG, INDEX, MASK, SCALAR, TENSOR, TENSOR_ROLES
from ember_ml.dtypes import DTYPES, EmberDType, accumulated, bfloat16, of_kind, wide_of

if TYPE_CHECKING:
    from ember_ml.backend import Backend
    from ember_ml.dispatch.operation import Operation

_c: Any = None
if os.environ.get("EMBER_ML_PURE_PYTHON", "") in ("", "0"):
    try:
        from ember_ml.dispatch import _fast as _c  # type: ignore[no-redef]
    except ImportError:
        # It was not built: there was no compiler.
        _c = None


class REQUIRED:
    """The default of a parameter that has none."""


class Engine(NamedTuple):
    """What all operations share about a backend: its types, and what a number or an index must be to need no cast.

    ``active`` holds one truth value: whether host arrays, if these are the engine's tensors, are its own without a look
    at the active backend. ``numbers`` maps float and int to the dtypes that such a number joins without raising the
    kind. ``guests`` are tensor types of another engine that the functions of this one take as they are.
    """

    name: str
    is_host: bool
    active: list[bool]
    types: tuple[type, ...]
    guests: tuple[type, ...]
    stable: bool
    index: Any
    mask: Any
    numbers: dict[type, frozenset[Any]]
    scalar_like: Callable[..., Any]


class Row(NamedTuple):
    """What one operation does with the tensors of one engine.

    ``runs`` maps the dtypes that need no cast to the functions that compute on them; ``any_run`` is the function where
    it is the same whatever the dtype. ``raw`` says whether the second operand may be a Python number.
    """

    engine: Engine
    runs: dict[Any, Callable[..., Any]]
    any_run: Callable[..., Any] | None
    raw: bool


Table = dict[type, Row]

# By name.
ENGINES: dict[str, Engine] = {}


def register(backend: Backend) -> Engine:
    """Make the tensors of ``backend`` known to the fast path."""
    known = ENGINES.get(backend.name)
    if known is not None:
        return known
    engine = ENGINES[backend.name] = Engine(
        name=backend.name,
        is_host=backend.is_host,
        active=[not backend.is_host],
        types=(*backend.tensors, *backend.scalars),
        guests=tuple(t for other in ENGINES.values() for t in other.types if issubclass(t, backend.guests)),
        stable=backend.stable_dtypes,
        index=backend.dtypes["int64"],
        mask=backend.dtypes["bool"],
        numbers={float: _joined(backend, "floating"), int: _joined(backend, "numeric")},
        scalar_like=backend.scalar_like,
    )
    _follow()
    if _c is not None:
        _numbers[engine.name] = _c.register(
            engine.types,
            engine.stable,
            engine.active,
            partial(is_active, engine),
            engine.guests,
            engine.index,
            engine.mask,
            engine.numbers[float],
            engine.numbers[int],
            engine.scalar_like,
        )
    return engine


def _joined(backend: Backend, kind: str) -> frozenset[Any]:
    """The dtypes of a kind; bfloat16 is left to the general path, as NumPy does not take it for a float."""
    return frozenset(backend.dtypes[d.name] for d in of_kind(kind) if d.name in backend.dtypes and d is not bfloat16)


def _follow() -> None:
    """Note whether host arrays are NumPy's, when that may have changed."""
    active = backends.process_backend()
    for engine in ENGINES.values():
        if engine.is_host:
            engine.active[0] = active is not None and active.name == engine.name


backends.on_change(_follow)


def row_of(operation: Operation, backend: Backend, run: Callable[..., Any]) -> Row:
    """What ``operation`` does with the tensors of ``backend``, of which ``run`` computes it."""
    direct, direct_dtypes = getattr(run, "native_for", (None, ()))
    runs: dict[Any, Callable[..., Any]] = {}
    for name, own in backend.dtypes.items():
        if _needs_no_cast(operation, DTYPES[name]):
            runs[own] = direct if name in direct_dtypes else run
    # NumPy has dtypes that are none of ours, such as those of the other byte order.
    is_one = not backend.is_host and len(runs) == len(backend.dtypes) and len(set(map(id, runs.values()))) == 1
    native = backend.raw_numbers is None or operation.name in backend.raw_numbers
    raw = all(hasattr(f, "takes_numbers") if isinstance(f, FunctionType) else native for f in runs.values())
    return Row(ENGINES[backend.name], runs, run if is_one else None, raw)


def _needs_no_cast(operation: Operation, dtype: EmberDType) -> bool:
    """Whether tensors of that dtype reach the backend as they are."""
    rule = operation.rule
    return (
        dtype.name in operation.dtypes
        and rule.compute(dtype) is dtype
        and (rule is not accumulated or wide_of(dtype) is dtype)
    )


def is_active(engine: Engine) -> bool:
    """Whether tensors of the engine's types are its own here and now."""
    return engine.active[0] or backends.current().name == engine.name


def python_call(
    operation: Operation, table: Table, general: Callable[..., Any], retry: Callable[..., Any]
) -> Callable[..., Any]:
    """A function that calls an operation by its table.

    Args:
        general: called with the values of all parameters where the table says nothing.
        retry: called with the error that the engine raised, and the values.
    """
    bind = binder(operation)
    parameters = operation.parameters
    plain = all(p.role == TENSOR and not p.many and not p.keyword and not p.optional for p in parameters)
    if plain and len(parameters) == 1:
        return _unary(table, bind, general, retry)
    if plain and len(parameters) == 2:
        return _binary(table, bind, general, retry)
    if not _has_fast_path(operation):
        return _general_only(bind, general)
    return _with_options(operation, table, bind, general, retry)


def _has_fast_path(operation: Operation) -> bool:
    """Whether there are tensors to look at, each in a place of its own."""
    return bool(operation.tensors) and not any(p.variadic for p in operation.parameters)


def _unary(table: Table, bind: Any, general: Any, retry: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != 1:
            args = bind(args, kwargs)
        (x,) = args
        row = table.get(type(x))
        if row is not None and (row.engine.active[0] or is_active(row.engine)):
            run = row.any_run or row.runs.get(x.dtype)
            if run is not None:
                try:
                    return run(x)
                except Exception as error:
                    return retry(error, x)
        return general(x)

    return call


def _binary(table: Table, bind: Any, general: Any, retry: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != 2:
            args = bind(args, kwargs)
        x, y = args
        row = table.get(type(x))
        if row is None:
            return general(x, y)
        kind = type(y)
        if kind is not type(x):
            if kind is float or (kind is int and 0 <= y < 128):
                return number(row, x, y)
            row = _common(table, row, kind)
            if row is None:
                return general(x, y)
        if row.engine.active[0] or is_active(row.engine):
            dtype = x.dtype
            if dtype is y.dtype or (not row.engine.stable and dtype == y.dtype):
                run = row.runs.get(dtype)
                if run is not None:
                    try:
                        return run(x, y)
                    except Exception as error:
                        return retry(error, x, y)
        return general(x, y)

    def number(row: Row, x: Any, y: Any) -> Any:
        dtype = x.dtype
        run = row.runs.get(dtype)
        if run is None or dtype not in row.engine.numbers[type(y)] or not is_active(row.engine):
            return general(x, y)
        try:
            return run(x, y if row.raw else row.engine.scalar_like(y, x))
        except Exception as error:
            return retry(error, x, y)

    return call


def _common(table: Table, row: Row, kind: type) -> Row | None:
    """The row for tensors of ``row`` together with one of another type."""
    other = table.get(kind)
    if other is None or other is row or kind in row.engine.guests:
        return row if other is not None else None
    return other if set(row.engine.types) & set(other.engine.guests) else None


def _general_only(bind: Any, general: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return general(*bind(args, kwargs))

    return call


def _with_options(operation: Operation, table: Table, bind: Any, general: Any, retry: Any) -> Callable[..., Any]:
    """Any number of tensors, with options: these must be of the plain types that all engines agree on."""
    options = tuple((i, p.role, p.optional) for i, p in enumerate(operation.parameters) if p.role in _CHECKED)
    operands = tuple(
        (i, p.role, p.many, p.optional) for i, p in enumerate(operation.parameters) if p.role in TENSOR_ROLES
    )
    keywords = tuple((i, p.name) for i, p in enumerate(operation.parameters) if p.keyword)
    positional = len(operation.parameters) - len(keywords)
    single = len(operands) == 1 and not operands[0][2]

    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(args, kwargs)
        for at, role, optional in options:
            value = values[at]
            if not (value is None if role in _UNSET else type(value) in _PLAIN_TYPES[role] or (optional and value is None)):
                return general(*values)
        row, dtype, like, number = _match(table, operands, single, values)
        if row is None or not (row.engine.active[0] or is_active(row.engine)):
            return general(*values)
        run = row.any_run if dtype is None else row.runs.get(dtype)
        if run is None:
            return general(*values)
        given = values
        try:
            if number is not None and not row.raw:
                scalar = row.engine.scalar_like(values[number], like)
                given = (*values[:number], scalar, *values[number + 1 :])
            return run(*given[:positional], **{name: given[at] for at, name in keywords})
        except Exception as error:
            return retry(error, *values)

    return call


# What an option must be for the fast path: engines disagree on other values.
_UNSET = (DTYPE, DEVICE)
_PLAIN_TYPES: dict[str, tuple[type, ...]] = {FLAG: (bool,), SCALAR: (float, int), COUNT: (int,)}
_CHECKED = (*_UNSET, *_PLAIN_TYPES)


_NO_MATCH = (None, None, None, None)


def _match(
    table: Table, operands: tuple[Any, ...], single: bool, values: tuple[Any, ...]
) -> tuple[Row | None, Any, Any, int | None]:
    """The row for the tensors among the values, their dtype if it matters, one of them, and the place of a number."""
    row: Row | None = None
    dtype: Any = None
    like: Any = None
    number: int | None = None
    for at, role, many, optional in operands:
        value = values[at]
        if many:
            if type(value) not in (list, tuple) or not value:
                return _NO_MATCH
        elif value is None and optional:
            continue
        elif role == TENSOR and dtype is not None and number is None and _is_small_number(value):
            number = at
            continue
        for x in value if many else (value,):
            found = table.get(type(x))
            if found is None:
                return _NO_MATCH
            if row is None:
                row = found
            elif found is not row:
                common = _common(table, row, type(x))
                if common is None:
                    return _NO_MATCH
                row = common
            if single and row.any_run is not None:
                return row, None, None, None
            own = x.dtype
            if role != TENSOR:
                required = row.engine.index if role == INDEX else row.engine.mask
                if own is not required and (row.engine.stable or own != required):
                    return _NO_MATCH
            elif dtype is None:
                dtype, like = own, x
            elif own is not dtype and (row.engine.stable or own != dtype):
                return _NO_MATCH
    if row is not None and dtype is None:
        # Indices or masks alone, whose dtype was looked at.
        dtype = row.engine.index if operands[0][1] == INDEX else row.engine.mask
    if number is not None and (row is None or dtype not in row.engine.numbers[type(values[number])]):
        return _NO_MATCH
    return row, dtype, like, number


def _is_small_number(value: Any) -> bool:
    """Whether ``value`` is a Python number that every numeric dtype of its kind holds."""
    return type(value) is float or (type(value) is int and 0 <= value < 128)


def binder(operation: Operation) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]]:
    """A function that turns arguments into the values of all parameters, in order, as a Python call would."""
    parameters = operation.parameters
    places = {p.name: i for i, p in enumerate(parameters) if not p.variadic and i >= operation.positional_only}
    positional = sum(not p.keyword and not p.variadic for p in parameters)
    variadic = any(p.variadic for p in parameters)
    defaults = operation.defaults
    wrong = binding_error(operation)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        count = len(args)
        if count > positional:
            if not variadic:
                raise wrong(args, kwargs)
            args = (*args[:positional], args[positional:])
        values = args + defaults[len(args) :]
        if kwargs:
            named = list(values)
            for name, value in kwargs.items():
                place = places.get(name, -1)
                if place < 0 or place < min(count, positional):
                    raise wrong(args, kwargs)
                named[place] = value
            values = tuple(named)
        for value in values:
            if value is REQUIRED:
                raise wrong(args, kwargs)
        return values

    return bind


def binding_error(operation: Operation) -> Callable[[tuple[Any, ...], dict[str, Any]], TypeError]:
    """A function that makes the error for arguments that do not fit the signature."""
    function, name = operation.function, operation.name

    def wrong(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
        import inspect  # its import takes longer than that of this module, and errors are rare

        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            return TypeError(f"{name}() {error}")
        raise AssertionError(f"{name}: the arguments fit its signature")

    return wrong


def make_call(operation: Operation) -> Callable[..., Any]:
    """What users call: the closure, or the extension's function that behaves in the same way."""
    call = python_call(operation, operation.table, operation.general, operation.general.retry)
    parameters = operation.parameters
    if _c is None or not _has_fast_path(operation) or len(parameters) > _MOST_PARAMETERS:
        return call
    return _c.function(  # type: ignore[no-any-return]
        call,
        operation.general,
        operation.general.retry,
        tuple(p.name for p in parameters),
        operation.defaults,
        REQUIRED,
        sum(not p.keyword for p in parameters),
        operation.positional_only,
        tuple((i, _CODES[p.role], p.many, p.optional) for i, p in enumerate(parameters) if p.role in _CODES),
    )


def bind(operation: Operation, backend: Backend, run: Callable[..., Any]) -> Row:
    """Let ``run`` compute the operation on the tensors of ``backend``."""
    row = row_of(operation, backend, run)
    operation.table.update(dict.fromkeys(row.engine.types, row))
    if _c is not None and isinstance(operation.call, _c.Function):
        operation.call.bind(_numbers[backend.name], backend.dtypes["float32"], row.runs, row.any_run, row.raw)
    return row


# The extension's number of each engine, its codes for roles, and the most parameters that it takes.
_numbers: dict[str, int] = {}
_CODES = {TENSOR: 0, INDEX: 1, MASK: 2, DTYPE: 3, DEVICE: 3, FLAG: 4, SCALAR: 5, COUNT: 6}
_MOST_PARAMETERS = 24
