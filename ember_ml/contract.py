"""From a documented signature to a function that computes wherever its tensors live.

``@op(law)`` turns a function of ``ops/`` into an operation. Its annotations say which parameters are tensors, its law
how their dtypes meet, its body (if it has one) what it computes on a backend that offers nothing faster.

A call goes one of two ways. The short way is generated per signature (``shortcut.py``): tensors of one engine and one
dtype go straight to the engine's function after a few identity tests. Everything else enters by the door: find the
engine, convert, promote, cast, call. When the engine complains, both ways end in ``_recover``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from types import CodeType
from typing import Any, TypeVar

from ember_ml import backend as backends
from ember_ml import shortcut
from ember_ml.backend import Backend
from ember_ml.dtypes import (
    KINDS,
    EmberDType,
    Law,
    adapt,
    default_dtype,
    describe,
    of_kind,
    promote,
)
from ember_ml.errors import EmberError

F = TypeVar("F", bound=Callable[..., Any])

TENSOR, INDEX, MASK, DTYPE, DEVICE, PLAIN = "tensor", "index", "mask", "dtype", "device", "plain"

_ROLES = {"TensorLike": TENSOR, "Indices": INDEX, "Mask": MASK, "DTypeLike": DTYPE, "DeviceLike": DEVICE}
_ROLE = re.compile(rf"\b({'|'.join(_ROLES)})\b")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation: its role at the door, and whether it holds several values of that role."""

    name: str
    role: str
    many: bool
    variadic: bool
    keyword: bool


@dataclass(eq=False)
class Operation:
    """The record of one operation: what tests, documentation and tools read."""

    name: str
    category: str
    law: Law
    kinds: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    definition: Callable[..., Any] | None
    lazy: bool
    differentiable: bool
    call: Callable[..., Any] = field(init=False)
    door: Callable[..., Any] = field(init=False)
    short: shortcut.Shortcut = field(init=False)
    runs: dict[str, Callable[..., Any]] = field(init=False, default_factory=dict)

    def __repr__(self) -> str:
        return f"<operation {self.category}.{self.name}>"

    @cached_property
    def dtypes(self) -> dict[str, EmberDType]:
        """The dtypes that the operation takes, by name."""
        return {dtype.name: dtype for dtype in of_kind(self.kinds)}

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        """The parameters that become tensors."""
        return tuple(p for p in self.parameters if p.role in (TENSOR, INDEX, MASK))

    def run(self, backend: Backend) -> Callable[..., Any]:
        """What computes the operation on a backend: the engine's own function, or the definition."""
        run = self.runs.get(backend.name)
        if run is None:
            run = backend.own(self)
            if run is None:
                if self.definition is None:
                    raise backends.missing(self, backend)
                run = _within(backend, self.definition)
            self.runs[backend.name] = run
            self.short.open(self, backend, run)
        return run


REGISTRY: dict[str, Operation] = {}


def op(
    law: Law, *, kinds: str | tuple[str, ...] = "any", lazy: bool = True, differentiable: bool = True
) -> Callable[[F], F]:
    """A decorator that makes a documented function an operation.

    Args:
        law: how the dtypes of the tensors meet; one of the laws in ``ember_ml.dtypes``.
        kinds: the dtype kinds that the tensors may have, as ``isdtype`` names them.
        lazy: false where the answer's shape depends on the data, so that a compiler cannot trace it.
        differentiable: false where no gradient is defined.

    >>> from ember_ml.dtypes import floating
    >>> from ember_ml.ops import exp, negative
    >>> from ember_ml.types import Tensor, TensorLike
    >>> @op(floating)
    ... def decay(x: TensorLike, /) -> Tensor:
    ...     return exp(negative(x))
    >>> decay([0.0]).tolist()
    [1.0]
    """

    def decorate(function: F) -> F:
        operation = Operation(
            name=function.__name__,
            category=function.__module__.rpartition(".")[2],
            law=law,
            kinds=(kinds,) if isinstance(kinds, str) else kinds,
            parameters=_parameters(function),
            definition=None if _is_bare(function) else function,
            lazy=lazy,
            differentiable=differentiable,
        )
        operation.door = _door(operation)
        operation.short = shortcut.Shortcut(operation, function, _rescue(operation))
        operation.call = operation.short.call
        if function.__module__.startswith("ember_ml.ops."):
            REGISTRY[operation.name] = operation
        return operation.call  # type: ignore[return-value]

    return decorate


def operation_of(function: Callable[..., Any]) -> Operation:
    """The record behind an operation's function."""
    return function.__operation__  # type: ignore[attr-defined, no-any-return]


def _bare() -> None: ...


def _is_bare(function: Callable[..., Any]) -> bool:
    """Whether the body is only ``...``."""
    code: CodeType = function.__code__  # type: ignore[attr-defined]
    return code.co_code == _bare.__code__.co_code and set(code.co_consts) <= {None, function.__doc__}


def _parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    code: CodeType = function.__code__  # type: ignore[attr-defined]
    plain, keyword = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    found = [_parameter(function, name, keyword=i >= plain) for i, name in enumerate(names[: plain + keyword])]
    if code.co_flags & 0x04:
        found.insert(plain, _parameter(function, names[plain + keyword], variadic=True))
    return tuple(found)


def _parameter(
    function: Callable[..., Any], name: str, *, keyword: bool = False, variadic: bool = False
) -> Parameter:
    annotation = function.__annotations__.get(name, "")
    text = annotation if isinstance(annotation, str) else repr(annotation)
    match = _ROLE.search(text)
    role = _ROLES[match[1]] if match else PLAIN
    return Parameter(name, role, variadic or text.startswith("Sequence["), variadic, keyword)


def _within(backend: Backend, definition: Callable[..., Any]) -> Callable[..., Any]:
    """``definition`` with ``backend`` active, so that what it creates lives beside its arguments."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if backends.current() is backend:
            return definition(*args, **kwargs)
        token = backends.enter(backend)
        try:
            return definition(*args, **kwargs)
        finally:
            backends.leave(token)

    return run


def _door(operation: Operation) -> Callable[..., Any]:
    """The long way in: takes the values of all parameters in order."""

    def door(*values: Any) -> Any:
        backend = _home(operation, values)
        run = operation.run(backend)
        try:
            values = _admit(operation, backend, values)
            args, kwargs = _arguments(operation, values)
            return run(*args, **kwargs)
        except Exception as error:
            return _recover(operation, backend, error, values)

    return door


def _rescue(operation: Operation) -> Callable[..., Any]:
    """What the short way calls when ``error`` was raised: by the engine, or because the first operand is no tensor."""
    first = next((i for i, p in enumerate(operation.parameters) if p.role == TENSOR), 0)

    def rescue(error: Exception, *values: Any) -> Any:
        if isinstance(error, AttributeError) and not hasattr(values[first], "dtype"):
            return operation.door(*values)
        return _recover(operation, _home(operation, values), error, values)

    return rescue


def _arguments(operation: Operation, values: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter, value in zip(operation.parameters, values, strict=True):
        if parameter.keyword:
            kwargs[parameter.name] = value
        elif parameter.variadic:
            args.extend(value)
        else:
            args.append(value)
    return args, kwargs


# What a value is, by its type: a backend (it is a tensor of that engine) or one of these.
_NUMBER, _SEQUENCE, _HOST, _NONE, _UNKNOWN = "number", "sequence", "host", "none", "unknown"

_species: dict[type, Backend | str] = {
    bool: _NUMBER,
    int: _NUMBER,
    float: _NUMBER,
    complex: _NUMBER,
    list: _SEQUENCE,
    tuple: _SEQUENCE,
    range: _SEQUENCE,
    type(None): _NONE,
}


def _species_of(kind: type) -> Backend | str:
    found = _species.get(kind)
    if found is None:
        found = _species[kind] = _classify(kind)
    return found


def _classify(kind: type) -> Backend | str:
    """What instances of ``kind`` are; loads the backend of an engine whose tensor is seen for the first time."""
    engines = {home.engine: name for name, home in backends.homes().items()}
    for base in kind.__mro__:
        name = engines.get(base.__module__.partition(".")[0])
        if name is not None:
            backend = backends.load(name)
            if issubclass(kind, backend.tensors):
                return _HOST if name == "numpy" else backend
    for backend in backends.loaded():
        if issubclass(kind, backend.tensors):
            return backend
    if issubclass(kind, (bool, int, float, complex)):
        return _NUMBER
    if any(hasattr(kind, name) for name in ("__array__", "__dlpack__", "__array_interface__", "__buffer__")):
        return _HOST
    if issubclass(kind, (bytes, bytearray, memoryview)) or not hasattr(kind, "__getitem__") or issubclass(kind, str):
        return _UNKNOWN
    return _SEQUENCE if hasattr(kind, "__len__") and not hasattr(kind, "keys") else _UNKNOWN


def _home(operation: Operation, values: tuple[Any, ...]) -> Backend:
    """The backend that computes: the one its tensors live on, else the active one."""
    found: Backend | None = None
    for parameter, value in zip(operation.parameters, values, strict=True):
        if parameter.role in (TENSOR, INDEX, MASK):
            for item in _items(operation, parameter, value):
                species = _species_of(type(item))
                while species == _SEQUENCE and len(item):
                    item = item[0]
                    species = _species_of(type(item))
                if isinstance(species, Backend) and species is not found:
                    if found is not None:
                        raise TypeError(
                            f"{operation.name} was given tensors of two engines, {found.name} and {species.name}; "
                            "ember_ml.ops.convert_to_tensor(x) moves either to the active backend "
                            f"({backends.current().name})"
                        )
                    found = species
    return found or backends.current()


def _items(operation: Operation, parameter: Parameter, value: Any) -> Iterator[Any]:
    if not parameter.many or value is None:
        yield value
        return
    species = _species_of(type(value))
    if species in (_NUMBER, _UNKNOWN):
        raise TypeError(f"{operation.name} takes a sequence of tensors, not {describe(value)}")
    yield from value


def _admit(operation: Operation, backend: Backend, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values as the backend is to see them: its own tensors, cast as the law says, its own dtypes and devices."""
    parameters = operation.parameters
    admitted = list(values)
    device = _device_among(operation, backend, values)
    entrants: list[tuple[int, int | None]] = []
    for i, parameter in enumerate(parameters):
        role, value = parameter.role, values[i]
        if value is None or role == PLAIN:
            continue
        if role == DTYPE:
            admitted[i] = backend.dtype(value)
        elif role == DEVICE:
            admitted[i] = backend.find_device(value)
        elif parameter.many:
            items = [_tensor(operation, backend, parameter, item, device) for item in value]
            admitted[i] = items
            entrants += [(i, j) for j in range(len(items))] if role == TENSOR else []
        else:
            admitted[i] = _tensor(operation, backend, parameter, value, device)
            entrants += [(i, None)] if role == TENSOR else []
    tensors = [admitted[i] if j is None else admitted[i][j] for i, j in entrants]
    cast, entered = _promote(operation, backend, tensors, device)
    for (i, j), tensor in zip(entrants, cast, strict=True):
        if j is None:
            admitted[i] = tensor
        else:
            admitted[i][j] = tensor
    for i, parameter in enumerate(parameters):
        if admitted[i] is None and parameter.role == DEVICE:
            admitted[i] = backend.device
        elif admitted[i] is None and parameter.role == DTYPE and operation.law.name == "accumulated" and entered:
            wide = operation.law.answer(entered) if operation.law.answer else entered
            admitted[i] = None if wide is entered else backend.dtype(wide)
    return tuple(admitted)


def _device_among(operation: Operation, backend: Backend, values: tuple[Any, ...]) -> Any:
    """The device of the first tensor that lives on ``backend``; its default device if there is none."""
    for parameter, value in zip(operation.parameters, values, strict=True):
        if parameter.role in (TENSOR, INDEX, MASK):
            for item in _items(operation, parameter, value):
                if isinstance(item, backend.tensors):
                    return backend.find_device(backend.device_of(item))
    return backend.device


def _tensor(operation: Operation, backend: Backend, parameter: Parameter, value: Any, device: Any) -> Any:
    """``value`` as a tensor of ``backend``; a number that takes part in promotion stays one for now."""
    species = _species_of(type(value))
    if species == _UNKNOWN or species == _NONE:
        raise TypeError(
            f"{operation.name} takes tensors, numbers and sequences of them; {parameter.name} is a {type(value).__name__}"
        )
    role = parameter.role
    if species is not backend and not (species == _NUMBER and role == TENSOR):
        empty = role == INDEX and species == _SEQUENCE and len(value) == 0
        value = backend.convert(value, backend.dtypes["int64"] if empty else None, device)
    if role == TENSOR:
        return value
    dtype = backend.dtype_of(value)
    if role == MASK:
        return value if dtype.kind == "bool" else backend.cast(value, backend.dtypes["bool"])
    if dtype.kind not in KINDS["integral"]:
        raise TypeError(f"{operation.name} takes integers for {parameter.name}, not {dtype.name}")
    return value if dtype.name == "int64" else backend.cast(value, backend.dtypes["int64"])


def _promote(
    operation: Operation, backend: Backend, tensors: list[Any], device: Any
) -> tuple[list[Any], EmberDType | None]:
    """The tensors and numbers as tensors of the dtypes that the law gives them, and the dtype they met in."""
    if not tensors:
        return [], None
    law = operation.law
    numbers = [_species_of(type(x)) == _NUMBER for x in tensors]
    own = [
        default_dtype(_number_type(x)) if number else backend.dtype_of(x)
        for x, number in zip(tensors, numbers, strict=True)
    ]
    if law.meet == "apart":
        for dtype in own:
            _check_kind(operation, dtype)
        return [
            backend.convert(x, backend.dtype(dtype), device) if number else x
            for x, dtype, number in zip(tensors, own, numbers, strict=True)
        ], own[0]
    common = own[0] if law.meet == "first" else _meet(tensors, own, numbers)
    _check_kind(operation, common)
    if law.meet == "first":
        _check_fit(operation, common, tensors, own, numbers)
    entered = law.enter(common)
    native = backend.dtype(entered)
    cast = []
    for x, dtype, number in zip(tensors, own, numbers, strict=True):
        if number:
            _check_range(operation, x, common)
            x = backend.convert(x, native, device)
        elif dtype is not entered:
            x = backend.cast(x, native)
        cast.append(x)
    return cast, common


def _number_type(x: Any) -> type:
    return next(kind for kind in (bool, int, float, complex) if isinstance(x, kind))


def _meet(tensors: list[Any], own: list[EmberDType], numbers: list[bool]) -> EmberDType:
    strong = [dtype for dtype, number in zip(own, numbers, strict=True) if not number]
    if not strong:
        return reduce(promote, own)
    common = reduce(promote, strong)
    for x, number in zip(tensors, numbers, strict=True):
        if number:
            common = adapt(common, _number_type(x))
    return common


def _check_kind(operation: Operation, dtype: EmberDType) -> None:
    if dtype.name not in operation.dtypes:
        raise TypeError(f"{operation.name} takes dtypes of kind {' or '.join(operation.kinds)}, not {dtype.name}")


_RANK = {"bool": 0, "unsigned integer": 1, "signed integer": 1, "real floating": 2, "complex floating": 3}


def _check_fit(
    operation: Operation, dtype: EmberDType, tensors: list[Any], own: list[EmberDType], numbers: list[bool]
) -> None:
    """Values of a higher kind do not fit into a tensor of a lower one."""
    for x, other, number in zip(tensors, own, numbers, strict=True):
        kind = _RANK[other.kind]
        if kind > _RANK[dtype.kind] and not (number and isinstance(x, int) and dtype.kind == "bool" and x in (0, 1)):
            raise TypeError(f"{operation.name} cannot put {other.name} values into a {dtype.name} tensor")


def _check_range(operation: Operation, number: Any, dtype: EmberDType) -> None:
    if dtype.kind in KINDS["integral"] and isinstance(number, int):
        low = -(1 << dtype.bits - 1) if dtype.kind == "signed integer" else 0
        high = (1 << dtype.bits - (dtype.kind == "signed integer")) - 1
        if not low <= number <= high:
            raise ValueError(f"{operation.name} was given {number}, which {dtype.name} cannot hold")


def _recover(operation: Operation, backend: Backend, error: Exception, values: tuple[Any, ...]) -> Any:
    """The answer by the reference where the engine has no kernel for these dtypes; else the error, explained."""
    if isinstance(error, NotImplementedError) and not isinstance(error, EmberError) and backend.name != "numpy":
        return _by_reference(operation, backend, values)
    raise _explained(operation, backend, error, values)


def _by_reference(operation: Operation, backend: Backend, values: tuple[Any, ...]) -> Any:
    """The answer computed by NumPy on the host: some engines have no kernels for some dtypes (torch: uint16 to uint64)."""
    reference = backends.load("numpy")
    device = _device_among(operation, backend, values)

    def there(value: Any, role: str) -> Any:
        if isinstance(value, backend.tensors):
            return backend.to_host(value)
        if isinstance(value, (list, tuple)):
            return type(value)(there(item, role) for item in value)
        if role == DEVICE:
            return None
        return reference.dtypes[backend.names[value].name] if role == DTYPE and value is not None else value

    def back(answer: Any) -> Any:
        if isinstance(answer, reference.tensors):
            return backend.convert(answer, None, device)
        if isinstance(answer, tuple) and hasattr(answer, "_fields"):
            return type(answer)(*map(back, answer))
        return type(answer)(map(back, answer)) if isinstance(answer, (list, tuple)) else answer

    run = operation.run(reference)
    hosted = tuple(there(v, p.role) for p, v in zip(operation.parameters, values, strict=True))
    args, kwargs = _arguments(operation, hosted)
    return back(run(*args, **kwargs))


def _explained(operation: Operation, backend: Backend, error: Exception, values: tuple[Any, ...]) -> Exception:
    """The error in its agreed class, with a note that names the operation, its tensors and the engine."""
    wanted = None if isinstance(error, EmberError) else backend.error_class(error)
    if wanted is not None and not isinstance(error, wanted):
        translated = wanted(str(error))
        translated.__cause__ = error
        error = translated
    shown = ", ".join(
        describe(item)
        for parameter, value in zip(operation.parameters, values, strict=True)
        if parameter.role in (TENSOR, INDEX, MASK)
        for item in (value if parameter.many and isinstance(value, (list, tuple)) else [value])
    )
    note = f"in ember_ml.ops.{operation.name}({shown}) on the {backend.name} backend"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error
