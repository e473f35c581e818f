"""``@op``: from a documented signature to an operation that computes on the engine of its tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, cached_property, update_wrapper
from types import CodeType
from typing import Any, TypeVar

from ember_ml import backend as backends
from ember_ml.backend import Backend
from ember_ml.dispatch import fast, tensor_types, wrapping
from ember_ml.dispatch.fast import REQUIRED, Table
from ember_ml.dispatch.general import GeneralPath
from ember_ml.dispatch.roles import TENSOR_ROLES, Parameter, parameters_of, returns_numpy
from ember_ml.dtypes import DTypeRule, EmberDType, of_kind

F = TypeVar("F", bound=Callable[..., Any])

Arrangement = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


class Operation:
    """Metadata of one operation, which tests, documentation and tools read.

    ``function`` is the documented function, ``call`` the one that users call, and ``definition`` is ``function`` if it
    has a body. ``runs`` maps the name of a backend to the function that computes the operation there. ``parameters``
    are those that engines receive; ``form``, if there is one, computes the calls whose arguments do not fit these.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        rule: DTypeRule,
        kinds: tuple[str, ...],
        lazy: bool,
        differentiable: bool,
        engine: str | None = None,
        form: Callable[..., Any] | None = None,
        arrange: Arrangement | None = None,
    ) -> None:
        self._returns_numpy: bool | None = None
        self.function = function
        self.name = function.__name__
        self.module = function.__module__
        self.category = function.__module__.rpartition(".")[2]
        self.rule = rule
        self.kinds = kinds
        self.lazy = lazy
        self.differentiable = differentiable
        self.arrange = arrange
        self.definition = None if _is_bare(function) else function
        documented = parameters_of(function)
        self.form = form
        self.parameters: tuple[Parameter, ...] = documented if engine is None else _received(documented, engine)
        self.defaults: tuple[Any, ...] = _defaults(function, documented, self.parameters)
        self.positional_only: int = function.__code__.co_posonlyargcount
        self.accepted: int = _accepted(documented, self.parameters)
        self.runs: dict[str, Callable[..., Any]] = {}
        self.general = GeneralPath(self)
        self.table: Table = {}
        # The table that torch's compiler sees.
        self.traced_table: Table = {}
        self.key = len(_operations)
        _operations.append(self)
        self.call: Callable[..., Any] = fast.make_call(self)
        # From Python 3.14 on, the default is __annotate__ alone, from which only Python functions make __annotations__.
        update_wrapper(self.call, function, assigned=(*WRAPPER_ASSIGNMENTS, "__annotations__"))
        self.call.__operation__ = self  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<operation {self.category}.{self.name}>"

    @cached_property
    def dtypes(self) -> dict[str, EmberDType]:
        """Dtypes that the operation accepts, by name."""
        return {dtype.name: dtype for dtype in of_kind(self.kinds)}

    @property
    def returns_numpy(self) -> bool:
        """Whether the result is a NumPy array on every engine."""
        if self._returns_numpy is None:
            self._returns_numpy = returns_numpy(self.function)
        return self._returns_numpy

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        """Parameters that become tensors."""
        return tuple(p for p in self.parameters if p.role in TENSOR_ROLES)

    def find(self, backend: Backend) -> Callable[..., Any]:
        """The function that computes the operation on a backend: the engine's own, or the definition."""
        run = backend.implementation(self)
        if run is not None:
            return run
        if self.definition is None:
            return _missing(self, backend)
        return backend.define(self, within(backend.name, self.definition))

    def bind(self, backend: Backend, run: Callable[..., Any]) -> None:
        """Use ``run`` to compute the operation on tensors of ``backend``."""
        self.runs[backend.name] = run
        # Resolved before any call, as torch's compiler cannot read annotations.
        self._returns_numpy = self.returns_numpy
        if self.general.promotion is not None and backend.name not in backends.HIDDEN:
            self.general.promotion.bind(self, backend)
        row = fast.bind(self, backend, run)
        if backend.substitute is not None:
            if not self.traced_table:
                general, retry, form = _general_of(self.key), _retry_of(self.key), _form_of(self.key)
                backend.substitute(self.call, fast.python_call(self, self.traced_table, general, retry, form))
            self.traced_table.update(dict.fromkeys(row.engine.types, tuple(row)))


# By name, or by category and name if another category has the name already.
REGISTRY: dict[str, Operation] = {}

# All operations, including those that users declare, by their ``key``.
_operations: list[Operation] = []


def op(
    rule: DTypeRule,
    *,
    kinds: str | tuple[str, ...] = "any",
    lazy: bool = True,
    differentiable: bool = True,
    engine: str | None = None,
    form: Callable[..., Any] | None = None,
    arrange: Arrangement | None = None,
) -> Callable[[F], F]:
    """Decorator that turns a documented function into an operation.

    Args:
        rule: how the dtypes of the tensors combine; one of the dtype rules in ``ember_ml.dtypes``.
        kinds: the dtype kinds that tensors may have, named as in ``isdtype``.
        lazy: false if the shape of the result depends on data, so that a compiler cannot trace it.
        differentiable: false if no gradient is defined.
        engine: the parameters that engines receive, as ``"x, /, *, axis, keepdims"``: those after the asterisk by
            keyword. By default all, as the function declares them.
        form: called in place of the engine's function, with the arguments as they were given, if these do not fit
            ``engine``. It computes the other forms of the call, such as ``where=`` of a sum.
        arrange: for an operation without tensor parameters, a function from the positional and keyword arguments of a
            call to those that fit the signature. It may accept another order.

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
        accepted = (kinds,) if isinstance(kinds, str) else kinds
        operation = Operation(function, rule, accepted, lazy, differentiable, engine, form, arrange)
        for backend in backends.loaded():
            operation.bind(backend, operation.find(backend))
        if operation.module.startswith("ember_ml.ops."):
            taken = operation.name in REGISTRY
            REGISTRY[f"{operation.category}.{operation.name}" if taken else operation.name] = operation
        return operation.call  # type: ignore[return-value]

    return decorate


def bind_all(backend: Backend) -> None:
    """Bind every operation to a backend that was just loaded."""
    # This imports the backend's modules; if one fails to import, the backend must not be registered anywhere.
    runs = [operation.find(backend) for operation in _operations]
    tensor_types.register(backend)
    fast.register(backend)
    for operation, run in zip(_operations, runs, strict=True):
        operation.bind(backend, run)


def unbind_all(backend: Backend, refusal: backends.Refusal) -> None:
    """Stop all operations from computing on a backend that is being closed."""
    tensor_types.unregister(backend)
    for operation in _operations:
        operation.runs[backend.name] = refusal
        if operation.general.promotion is not None:
            operation.general.promotion.entries.pop(backend.tensors[0], None)
        fast.unbind(operation, backend)
    wrapping.close(backend, refusal)


def rebind() -> None:
    """Bind all operations to the loaded backends again, since tables depend on the default float."""
    for backend in backends.loaded():
        bind_all(backend)


def operation_of(function: Callable[..., Any]) -> Operation:
    """The ``Operation`` of an operation's function."""
    return function.__operation__  # type: ignore[attr-defined, no-any-return]


def definition_of(name: str) -> Callable[..., Any]:
    """Body of an operation, for a backend whose own function supports only some inputs."""
    definition = REGISTRY[name].definition
    if definition is None:
        raise LookupError(f"{name} must have a body, got a signature alone")
    return definition


def within(name: str, definition: Callable[..., Any]) -> Callable[..., Any]:
    """``definition`` run with the named backend active, so that it creates tensors of that engine."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if backends.current().name == name:
            return definition(*args, **kwargs)
        block = backends.enter(backends.loaded_as(name))
        try:
            return definition(*args, **kwargs)
        finally:
            backends.leave(block)

    return run


def computed_by(module: str, name: str) -> Callable[..., Any]:
    """The operation ``name`` of ``ember_ml.ops``, run with the backend active that ``module`` is the module of."""
    call: Any = vars(sys.modules["ember_ml.ops"]).get(name)
    if not hasattr(call, "__operation__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    def run(*args: Any, **kwargs: Any) -> Any:
        with backends.active(backends.load(module.rpartition(".")[2])):
            return call(*args, **kwargs)

    return update_wrapper(run, call)


def _missing(operation: Operation, backend: Backend) -> Callable[..., Any]:
    key, name = operation.key, backend.name

    def run(*args: Any, **kwargs: Any) -> Any:
        raise backends.missing(_operations[key], backends.loaded_as(name))

    return run


# torch's compiler reads what a traced function holds without guarding it, and supports only constants there, so an
# operation is looked up by its key.
def _general_of(key: int) -> Callable[..., Any]:
    def general(*values: Any) -> Any:
        return _operations[key].general(*values)

    return general


def _retry_of(key: int) -> Callable[..., Any]:
    def retry(error: Exception, *values: Any) -> Any:
        return _operations[key].general.retry(error, *values)

    return retry


def _form_of(key: int) -> Callable[..., Any]:
    def form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _operations[key].general.call_form(args, kwargs)

    return form


def _received(documented: tuple[Parameter, ...], engine: str) -> tuple[Parameter, ...]:
    """The parameters that engines receive, of those documented, as ``@op(engine=...)`` names them."""
    positional, _, keyword = engine.replace("/", "").partition("*")
    known = {p.name: p for p in documented}
    return tuple(
        known[name.strip()]._replace(keyword=by_keyword)
        for names, by_keyword in ((positional, False), (keyword, True))
        for name in names.split(",")
        if name.strip()
    )


def _accepted(documented: tuple[Parameter, ...], received: tuple[Parameter, ...]) -> int:
    """Number of arguments that may be positional and are the first that engines receive.

    An operation without tensors, whose first arguments may have several meanings, leaves the others to its form.
    """
    if not any(p.role in TENSOR_ROLES for p in received):
        return sum(not p.keyword and not p.variadic for p in received)
    count = 0
    for own, other in zip(documented, received, strict=False):
        if own.keyword or own.variadic or own.name != other.name:
            break
        count += 1
    return count


def _defaults(
    function: Callable[..., Any], documented: tuple[Parameter, ...], received: tuple[Parameter, ...]
) -> tuple[Any, ...]:
    """Default of every parameter that engines receive, or ``REQUIRED``."""
    positional = [p for p in documented if not p.keyword and not p.variadic]
    given = dict(zip((p.name for p in reversed(positional)), reversed(function.__defaults__ or ()), strict=False))
    given.update(function.__kwdefaults__ or {})
    return tuple(() if p.variadic else given.get(p.name, REQUIRED) for p in received)


def _bare() -> None: ...


def _bare_and_documented() -> None:
    """Documented."""
    ...


_BARE_CODES = {_bare.__code__.co_code, _bare_and_documented.__code__.co_code}


def _is_bare(function: Callable[..., Any]) -> bool:
    """Whether the body is only ``...``: it loads no constant but ``None``."""
    code: CodeType = function.__code__
    return code.co_code in _BARE_CODES and set(code.co_consts) <= {None, function.__doc__}


backends.on_load(bind_all)
backends.on_close(unbind_all)
