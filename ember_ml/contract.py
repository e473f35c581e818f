"""From a documented signature to a function that computes wherever its tensors live.

``@op(law)`` turns a function of ``ops/`` into an operation. Its annotations say which parameters are tensors, its law
how their dtypes meet, its body (if it has one) what it computes on a backend that offers nothing faster.

A call goes one of two ways. The short way (``shortcut.py``) is generated per signature: tensors of one engine and one
dtype go straight to the engine's function after a few identity tests. Everything else enters by the door
(``door.py``): find the engine, convert, promote, cast, call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar, cast

from ember_ml import backend as backends
from ember_ml import door, portable, shortcut
from ember_ml.backend import Backend
from ember_ml.door import COUNT, COUNTS, DEVICE, DTYPE, FLAG, INDEX, MASK, PLAIN, SCALAR, TENSOR
from ember_ml.dtypes import EmberDType, Law, of_kind

F = TypeVar("F", bound=Callable[..., Any])

_ROLES = {"TensorLike": TENSOR, "Indices": INDEX, "Mask": MASK, "DTypeLike": DTYPE, "DeviceLike": DEVICE}
_ROLE = re.compile(rf"\b({'|'.join(_ROLES)})\b")
_SETTINGS = {
    FLAG: re.compile(r"((\w+\.)?bool|<class 'bool'>)( \| None)?"),
    SCALAR: re.compile(r"(int \| )?(float|complex|<class '(float|complex)'>)( \| None)?"),
    COUNT: re.compile(r"(int|<class 'int'>)( \| None)?"),
    COUNTS: re.compile(r"Shape|Axis|(int \| )?([\w.]+\.)?Sequence\[int\]( \| None)?"),
}
_SEVERAL = re.compile(r"([\w.]+\.)?Sequence\[")


class Parameter(NamedTuple):
    """A parameter of an operation: its role at the door, and whether it holds several values of that role."""

    name: str
    role: str
    many: bool
    variadic: bool
    keyword: bool
    optional: bool


class Operation:
    """The record of one operation: what tests, documentation and tools read.

    ``hosts`` says that it answers with an array of the host, whatever the engine.
    """

    call: Callable[..., Any]
    door: door.Door
    short: shortcut.Shortcut

    def __init__(
        self,
        *,
        name: str,
        module: str,
        category: str,
        law: Law,
        kinds: tuple[str, ...],
        parameters: tuple[Parameter, ...],
        definition: Callable[..., Any] | None,
        lazy: bool,
        differentiable: bool,
        hosts: bool,
    ) -> None:
        self.name = name
        self.module = module
        self.category = category
        self.law = law
        self.kinds = kinds
        self.parameters = parameters
        self.definition = definition
        self.lazy = lazy
        self.differentiable = differentiable
        self.hosts = hosts
        self.runs: dict[str, Callable[..., Any]] = {}

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

    def find(self, backend: Backend) -> Callable[..., Any]:
        """What computes the operation on a backend: the engine's own function, or the definition."""
        run = backend.own(self)
        if run is None:
            run = _lacking(self, backend) if self.definition is None else within(backend, self.definition)
        return run

    def open(self, backend: Backend, run: Callable[..., Any]) -> None:
        """Let ``run`` compute the operation on the tensors of ``backend``."""
        self.runs[backend.name] = run
        self.short.open(self, backend, run)


# By name; by category and name where another category had the name first.
REGISTRY: dict[str, Operation] = {}

# Those that users declare as well.
_operations: list[Operation] = []


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
            module=function.__module__,
            category=function.__module__.rpartition(".")[2],
            law=law,
            kinds=(kinds,) if isinstance(kinds, str) else kinds,
            parameters=_parameters(function),
            definition=None if _is_bare(function) else function,
            lazy=lazy,
            differentiable=differentiable,
            hosts="HostArray" in str(function.__annotations__.get("return")),
        )
        operation.door = door.Door(operation)
        operation.short = shortcut.Shortcut(operation, cast(FunctionType, function))
        operation.call = operation.short.call
        _operations.append(operation)
        for backend in backends.loaded():
            operation.open(backend, operation.find(backend))
        if operation.module.startswith("ember_ml.ops."):
            taken = operation.name in REGISTRY
            REGISTRY[f"{operation.category}.{operation.name}" if taken else operation.name] = operation
        return operation.call  # type: ignore[return-value]

    return decorate


def reopen() -> None:
    """Open every operation anew to the engines that are loaded, as must be when a default changes."""
    for backend in backends.loaded():
        _welcome(backend)


def _welcome(backend: Backend) -> None:
    """Open every operation to a backend that was just loaded."""
    # Looking for the functions imports the backend's modules; if one fails to, nothing may know of the backend yet.
    runs = [operation.find(backend) for operation in _operations]
    door.know(backend)
    for operation, run in zip(_operations, runs, strict=True):
        operation.open(backend, run)
    shortcut.know(backend)


def operation_of(function: Callable[..., Any]) -> Operation:
    """The record behind an operation's function."""
    return function.__operation__  # type: ignore[attr-defined, no-any-return]


def definition_of(name: str) -> Callable[..., Any]:
    """The body of an operation, for a backend whose own function serves only some of its inputs."""
    definition = REGISTRY[name].definition
    if definition is None:
        raise LookupError(f"{name} has no body")
    return definition


def _bare() -> None: ...


def _bare_and_documented() -> None:
    """Documented."""
    ...


_BARE_CODES = {_bare.__code__.co_code, _bare_and_documented.__code__.co_code}


def _is_bare(function: Callable[..., Any]) -> bool:
    """Whether the body is only ``...``: nothing but ``None`` is ever loaded."""
    code: CodeType = function.__code__
    return code.co_code in _BARE_CODES and set(code.co_consts) <= {None, function.__doc__}


def _parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    code: CodeType = function.__code__
    plain, keyword = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    found = [_parameter(function, name, keyword=i >= plain) for i, name in enumerate(names[: plain + keyword])]
    if code.co_flags & 0x04:
        found.insert(plain, _parameter(function, names[plain + keyword], variadic=True))
    return tuple(found)


def _parameter(function: Callable[..., Any], name: str, *, keyword: bool = False, variadic: bool = False) -> Parameter:
    annotation = function.__annotations__.get(name, "")
    text = annotation if isinstance(annotation, str) else repr(annotation)
    role, several = _meaning(text)
    return Parameter(name, role, variadic or several, variadic, keyword, optional="None" in text)


@cache
def _meaning(annotation: str) -> tuple[str, bool]:
    """The role of a parameter, and whether it takes several values; most annotations stand in many places."""
    match = _ROLE.search(annotation)
    role = _ROLES[match[1]] if match else next((r for r, f in _SETTINGS.items() if f.fullmatch(annotation)), PLAIN)
    return role, _SEVERAL.match(annotation) is not None


def _lacking(operation: Operation, backend: Backend) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        raise backends.missing(operation, backend)

    return run


def within(backend: Backend, definition: Callable[..., Any]) -> Callable[..., Any]:
    """``definition`` with ``backend`` active, so that what it creates lives beside its arguments."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if backends.current() is backend:
            return definition(*args, **kwargs)
        block = backends.enter(backend)
        try:
            return definition(*args, **kwargs)
        finally:
            backends.leave(block)

    return run


def _dismiss(backend: Backend, refusal: backends.Refusal) -> None:
    """Let no operation compute on a backend that is being closed."""
    door.forget(backend)
    shortcut.forget(backend)
    for operation in _operations:
        operation.runs[backend.name] = refusal
        operation.short.close(backend)
    portable.close(backend, refusal)


backends.on_load(_welcome)
backends.on_close(_dismiss)
