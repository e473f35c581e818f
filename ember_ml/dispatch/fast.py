"""The fast path: tensors of one engine and one dtype that needs no cast go straight to the engine's function.

It has two implementations with the same behavior: closures over a table here, and ``_fast.c``, which is used if it was
built and ``EMBER_ML_PURE_PYTHON`` is not set. Calls that the table does not cover take the operation's general path.

torch's compiler traces the closures in both cases. It reads what they hold without guarding it, so a table that it sees
holds only functions, types and constants of torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import backend as backends
from ember_ml.dispatch.errors import called_as, rename
from ember_ml.dispatch.roles import COUNT, DEVICE, DTYPE, FLAG, INDEX, MASK, SCALAR, TENSOR, TENSOR_ROLES
from ember_ml.dtypes import (
    DTYPES,
    EmberDType,
    accumulated,
    bfloat16,
    compared,
    default_float,
    float32,
    floating,
    magnitude,
    of_kind,
    promoted,
    wide_of,
)

if TYPE_CHECKING:
    from ember_ml.backend import Backend
    from ember_ml.dispatch.operation import Operation

_c: Any = None
if os.environ.get("EMBER_ML_PURE_PYTHON", "") in ("", "0"):
    try:
        from ember_ml.dispatch import _fast as _c  # type: ignore[attr-defined, no-redef]
    except ImportError:
        # The extension was not built: there was no compiler.
        _c = None


def has_extension() -> bool:
    """Whether the fast path runs in C."""
    return _c is not None


class REQUIRED:
    """Marks a parameter without a default."""


class Engine(NamedTuple):
    """What all operations share about a backend.

    ``active`` is a list of one bool: whether tensors of ``types`` belong to this engine whatever backend is active,
    which is not always so for NumPy arrays. ``guests`` are tensor types of another engine that functions of this one
    accept. ``stable`` says whether dtypes can be compared by identity. ``index`` and ``mask`` are the dtypes of indices
    and masks. ``numbers`` maps float and int to the dtypes that such a number does not promote.
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

    ``runs`` maps the dtypes that need no cast to the functions that compute on them. ``any_run`` is called without
    checking dtypes, on tensors with ``width`` bytes per element, or with any number if that is zero. ``raw`` says
    whether the second operand may be a Python number. ``bare_runs`` are called with positional arguments only, if all
    of these and no keyword arguments are given. ``active`` is that of the engine.
    """

    active: list[bool]
    any_run: Callable[..., Any] | None
    width: int
    runs: dict[Any, Callable[..., Any]]
    engine: Engine
    raw: bool
    bare_runs: dict[Any, Callable[..., Any]]


# Rows are plain tuples here, which Python unpacks faster than named ones; they are compared by identity.
Table = dict[type, Any]

# Engines by name.
ENGINES: dict[str, Engine] = {}


def register(backend: Backend) -> Engine:
    """Register the tensors of ``backend`` with the fast path."""
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
        index=backend.dtypes.get("int64"),
        mask=backend.dtypes.get("bool"),
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
    """Dtypes of a kind, except bfloat16, which NumPy does not treat as a float; the general path handles it."""
    return frozenset(backend.dtypes[d.name] for d in of_kind(kind) if d.name in backend.dtypes and d is not bfloat16)


def _follow() -> None:
    """Record whether NumPy arrays belong to the NumPy backend, when the active backend may have changed."""
    active = backends.process_backend()
    for engine in ENGINES.values():
        if engine.is_host:
            engine.active[0] = active is not None and active.name == engine.name


backends.on_change(_follow)


def row_of(operation: Operation, backend: Backend, run: Callable[..., Any]) -> Row:
    """What ``operation``, computed by ``run``, does with the tensors of ``backend``."""
    native, names, bare = getattr(run, "native_for", (run, (), False))
    ready = {own: name in names for name, own in backend.dtypes.items() if _needs_no_cast(operation, DTYPES[name])}
    runs = {own: native if direct and not bare else run for own, direct in ready.items()}
    bare_runs = {own: native for own, direct in ready.items() if direct and bare}
    any_run, width = _any_run(operation, backend, runs)
    takes = backend.raw_numbers is None or operation.name in backend.raw_numbers
    raw = all(hasattr(f, "takes_numbers") if isinstance(f, FunctionType) else takes for f in runs.values())
    engine = ENGINES[backend.name]
    return Row(engine.active, any_run, width, runs, engine, raw, bare_runs)


def _any_run(operation: Operation, backend: Backend, runs: dict[Any, Callable[..., Any]]) -> tuple[Any, int]:
    """The function that may be called without checking dtypes, and the bytes per element that its tensors must have.

    It is the function for all dtypes if there is only one. On an engine that creates a dtype object on every access,
    which costs twice as much as reading an item size, it is a native function for the dtypes of four bytes, among which
    the engine's promotion is the same as ours.
    """
    tensors = operation.tensors
    single = len(tensors) == 1 and tensors[0].role == TENSOR and not tensors[0].many
    # NumPy has further dtypes, such as those of the other byte order.
    if single and not backend.is_host and len(runs) == len(backend.dtypes) and len(set(map(id, runs.values()))) == 1:
        return next(iter(runs.values())), 0
    run = runs.get(backend.dtypes.get("float32"))
    if (
        (single or (len(operation.parameters) == 2 and _is_plain(operation)))
        and not backend.stable_dtypes
        and operation.rule in (promoted, floating, magnitude, compared)
        and default_float() is float32
        and not isinstance(run, FunctionType)
        and all(name in operation.dtypes and runs.get(backend.dtypes.get(name), run) is run for name in _FOUR_BYTES)
    ):
        return run, 4
    return None, 0


_FOUR_BYTES = ("float32", "int32", "uint32")


def _needs_no_cast(operation: Operation, dtype: EmberDType) -> bool:
    """Whether tensors of this dtype reach the backend without a cast."""
    rule = operation.rule
    return (
        dtype.name in operation.dtypes
        and rule.compute(dtype) is dtype
        and (rule is not accumulated or wide_of(dtype) is dtype)
    )


def is_active(engine: Engine) -> bool:
    """Whether tensors of the engine's types belong to it at this point."""
    return engine.active[0] or backends.current().name == engine.name


def python_call(
    operation: Operation,
    table: Table,
    general: Callable[..., Any],
    retry: Callable[..., Any],
    form: Callable[..., Any],
) -> Callable[..., Any]:
    """Function that calls an operation by its table.

    Args:
        general: called with the values of all parameters if the table has no function for them.
        retry: called with the error that the engine raised, and the values.
        form: called with the arguments, if the operation has a form and they do not fit its parameters.
    """
    if _is_plain(operation) and len(operation.parameters) == 1:
        return _unary(table, general, retry, _refuse(operation) if operation.form is None else form)
    if operation.form is None and _is_plain(operation) and len(operation.parameters) == 2:
        return _binary(table, general, retry, _refuse(operation))
    bind = binder(operation)
    if not _has_fast_path(operation):
        return _general_only(bind if operation.arrange is None else _arranged(operation, bind), form, general)
    return _with_options(operation, table, bind, form, general, retry)


def _is_plain(operation: Operation) -> bool:
    """Whether all parameters are tensors, required and positional."""
    required = all(default is REQUIRED for default in operation.defaults)
    return (
        required
        and operation.positional_only == len(operation.parameters)
        and all(p.role == TENSOR and not p.many and not p.optional for p in operation.parameters)
    )


def _has_fast_path(operation: Operation) -> bool:
    """Whether there are tensors, none of them variadic."""
    return bool(operation.tensors) and not any(p.variadic for p in operation.parameters)


def _unary(table: Table, general: Any, retry: Any, reject: Any) -> Callable[..., Any]:
    """Function of one tensor; ``reject`` is called with the arguments of a call that does not fit."""

    def call(x: Any = REQUIRED, /, *more: Any, **options: Any) -> Any:
        if more or options or x is REQUIRED:
            return reject(_given(x, *more), options)
        row = table.get(type(x))
        if row is not None:
            active, any_run, width, runs, engine, _, _ = row
            if active[0] or is_active(engine):
                run = any_run if any_run and (not width or x.itemsize == width) else runs.get(x.dtype)
                if run is not None:
                    try:
                        return run(x)
                    except Exception as error:
                        return retry(error, x)
        return general(x)

    return call


def _given(*args: Any) -> tuple[Any, ...]:
    return tuple([value for value in args if value is not REQUIRED])


def _binary(table: Table, general: Any, retry: Any, reject: Any) -> Callable[..., Any]:
    """Function of two tensors; ``reject`` is called with the arguments of a call that does not fit."""

    def call(x: Any = REQUIRED, y: Any = REQUIRED, /, *more: Any, **options: Any) -> Any:
        if more or options or y is REQUIRED:
            return reject(_given(x, y, *more), options)
        row = table.get(type(x))
        kind = type(y)
        if kind is not type(x) and row is not None:
            if kind is float or (kind is int and 0 <= y < 128):
                return number(row, x, y)
            row = _common(table, row, kind)
        if row is not None:
            active, any_run, width, runs, engine, _, _ = row
            if active[0] or is_active(engine):
                if any_run and x.itemsize == width == y.itemsize:
                    run = any_run
                else:
                    dtype, other = x.dtype, y.dtype
                    run = runs.get(dtype) if dtype is other or (not engine.stable and dtype == other) else None
                if run is not None:
                    try:
                        return run(x, y)
                    except Exception as error:
                        return retry(error, x, y)
        return general(x, y)

    def number(row: Any, x: Any, y: Any) -> Any:
        _, any_run, width, runs, engine, raw, _ = row
        if any_run and raw and x.itemsize == width:
            run = any_run
        else:
            dtype = x.dtype
            run = runs.get(dtype) if dtype in engine.numbers[type(y)] else None
        if run is None or not is_active(engine):
            return general(x, y)
        try:
            return run(x, y if raw else engine.scalar_like(y, x))
        except Exception as error:
            return retry(error, x, y)

    return call


def _common(table: Table, row: Any, kind: type) -> Any:
    """Row for tensors of ``row`` together with one of type ``kind``, or ``None``."""
    other = table.get(kind)
    if other is None or other is row:
        return other
    mine, its = row[4], other[4]
    if kind in mine.guests:
        return row
    return other if any(own in its.guests for own in mine.types) else None


def _general_only(bind: Any, form: Any, general: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(args, kwargs)
        if values is None:
            return form(args, kwargs)
        return general(*values)

    return call


def _arranged(operation: Operation, bind: Any) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...] | None]:
    """Function that binds arguments that the operation's own function has arranged."""
    arrange: Any = operation.arrange

    def named(error: TypeError) -> TypeError:
        return rename(error, called_as(operation))

    def arranged(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        try:
            args, kwargs = arrange(args, kwargs)
        except TypeError as error:
            raise named(error) from None
        values: tuple[Any, ...] | None = bind(args, kwargs)
        return values

    return arranged


def _with_options(
    operation: Operation, table: Table, bind: Any, form: Any, general: Any, retry: Any
) -> Callable[..., Any]:
    """Any number of tensors, with options, which must have the plain types that all engines accept."""
    parameters = operation.parameters
    options = tuple((i, _plain_types(p.role, p.optional)) for i, p in enumerate(parameters) if p.role in _PLAIN_TYPES)
    operands = tuple((i, p.role, p.many, p.optional) for i, p in enumerate(parameters) if p.role in TENSOR_ROLES)
    single = len(operands) == 1 and operands[0][1:] == (TENSOR, False, False)
    first = operands[0][0]
    names = tuple(p.name for p in parameters if p.keyword)
    positional = len(parameters) - len(names)
    defaults = dict(zip(names, operation.defaults[positional:], strict=True))

    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(args, kwargs)
        if values is None:
            return form(args, kwargs)
        for at, plain in options:
            if type(values[at]) not in plain:
                return general(*values)
        if single:
            x = values[first]
            row, dtype, like, number = table.get(type(x)), None, x, None
        else:
            row, dtype, like, number = _match(table, operands, values)
        if row is None:
            return general(*values)
        active, any_run, width, runs, engine, raw, bare_runs = row
        if not (active[0] or is_active(engine)):
            return general(*values)
        if single and any_run and (not width or like.itemsize == width):
            run = any_run
        else:
            dtype = like.dtype if single else dtype
            run = runs.get(dtype)
        if run is None:
            return general(*values)
        given = values
        try:
            if bare_runs and not kwargs and len(args) == positional and number is None and dtype in bare_runs:
                return bare_runs[dtype](*args)
            if number is not None and not raw:
                given = (*values[:number], engine.scalar_like(values[number], like), *values[number + 1 :])
            is_default = not kwargs and len(args) <= positional
            keywords = defaults if is_default else dict(zip(names, given[positional:], strict=True))
            return run(*given[:positional], **keywords)
        except Exception as error:
            return retry(error, *values)

    return call


# Types of options that all engines accept; dtypes and devices must be absent.
_PLAIN_TYPES: dict[str, tuple[type, ...]] = {
    DTYPE: (type(None),),
    DEVICE: (type(None),),
    FLAG: (bool,),
    SCALAR: (float, int),
    COUNT: (int,),
}


def _plain_types(role: str, optional: bool) -> tuple[type, ...]:
    return (*_PLAIN_TYPES[role], type(None)) if optional else _PLAIN_TYPES[role]


_NO_MATCH = (None, None, None, None)


def _match(table: Table, operands: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, Any, Any, int | None]:
    """The row for the tensors among the values, their dtype, one of them, and the index of a number."""
    row: Any = None
    engine: Any = None
    dtype = like = number = None
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
            row = table.get(type(x)) if row is None else _common(table, row, type(x))
            if row is None:
                return _NO_MATCH
            engine, found = row[4], x.dtype
            required = dtype if role == TENSOR else engine.index if role == INDEX else engine.mask
            if required is None:
                dtype, like = found, x
            elif found is not required and (engine.stable or found != required):
                return _NO_MATCH
    if engine is not None and dtype is None:
        # Only indices or masks, whose dtype is checked above.
        dtype = engine.index if operands[0][1] == INDEX else engine.mask
    if number is not None and dtype not in engine.numbers[type(values[number])]:
        return _NO_MATCH
    return row, dtype, like, number


def _is_small_number(value: Any) -> bool:
    """Whether ``value`` is a Python number that every numeric dtype of its kind can store."""
    return type(value) is float or (type(value) is int and 0 <= value < 128)


def binder(operation: Operation) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...] | None]:
    """Function that binds arguments to the parameters that engines receive, in order, as a Python call does.

    It returns ``None`` if they do not fit and the operation has a form, which may accept them.
    """
    parameters = operation.parameters
    places = {p.name: i for i, p in enumerate(parameters) if not p.variadic and i >= operation.positional_only}
    positional = operation.accepted
    variadic = any(p.variadic for p in parameters)
    defaults = operation.defaults
    least = max((i + 1 for i, default in enumerate(defaults) if default is REQUIRED), default=0)
    form, wrong = operation.form, binding_error(operation)

    def reject(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        if form is None:
            raise wrong(args, kwargs)
        return None

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        count = len(args)
        if not kwargs and least <= count <= positional:
            return args + defaults[count:]
        if count > positional:
            if not variadic:
                return reject(args, kwargs)
            args = (*args[:positional], args[positional:])
        values = args + defaults[len(args) :]
        if kwargs:
            named = list(values)
            for name, value in kwargs.items():
                place = places.get(name, -1)
                if place < 0 or place < min(count, positional):
                    return reject(args, kwargs)
                named[place] = value
            values = tuple(named)
        if len(args) < least:
            for value in values:
                if value is REQUIRED:
                    return reject(args, kwargs)
        return values

    return bind


def binding_error(operation: Operation) -> Callable[[tuple[Any, ...], dict[str, Any]], TypeError]:
    """Function that returns the error for arguments that do not fit the signature."""
    function = operation.function

    def wrong(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
        import inspect  # takes longer to import than this module, and errors are rare

        from ember_ml.spellings import argument_hint, unknown_option

        signature = inspect.signature(function)
        names = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_POSITIONAL]
        operands, options = names[: operation.positional_only], names[operation.positional_only :]
        for name in kwargs:
            if name not in names:
                return unknown_option(called_as(operation), name, options, operands)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            called = called_as(operation)
            hint = argument_hint(called, "args") if len(args) > len(names) else ""
            return TypeError(f"{called}() {error}{hint}")
        raise AssertionError(f"{operation.name}: the arguments fit its signature")

    return wrong


def _refuse(operation: Operation) -> Callable[..., Any]:
    """Function that raises the error for arguments that do not fit."""
    wrong = binding_error(operation)

    def refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise wrong(args, kwargs)

    return refuse


def make_call(operation: Operation) -> Callable[..., Any]:
    """The function that users call: the closure, or the extension's equivalent."""
    general = operation.general
    call = python_call(operation, operation.table, general, general.retry, general.call_form)
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
        operation.accepted,
    )


def bind(operation: Operation, backend: Backend, run: Callable[..., Any]) -> Row:
    """Use ``run`` to compute the operation on tensors of ``backend``."""
    row = row_of(operation, backend, run)
    operation.table.update(dict.fromkeys(row.engine.types, tuple(row)))
    if _c is not None and isinstance(operation.call, _c.Function):
        operation.call.bind(
            _numbers[backend.name],
            backend.dtypes.get("float32"),
            row.runs,
            row.any_run,
            row.width,
            row.raw,
            row.bare_runs,
        )
    return row


def unbind(operation: Operation, backend: Backend) -> None:
    """Let tensors of ``backend`` take the general path."""
    for kind in ENGINES[backend.name].types:
        operation.table.pop(kind, None)
    if _c is not None and isinstance(operation.call, _c.Function):
        operation.call.bind(_numbers[backend.name], None, {}, None, 0, False, {})


# Indices of engines in the extension, its codes for roles, and the most parameters that it supports.
_numbers: dict[str, int] = {}
_CODES = {TENSOR: 0, INDEX: 1, MASK: 2, DTYPE: 3, DEVICE: 3, FLAG: 4, SCALAR: 5, COUNT: 6}
_MOST_PARAMETERS = 24
