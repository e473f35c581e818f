"""The general path of dispatch, for calls that the fast path (tensors of one engine and dtype, no cast) does not cover.

It converts arguments of any type to tensors of one engine, in the dtype that the operation's rule requires. A backend
function receives only its own tensors, already cast: here, or by the tables of ``promotion.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import backend as backends
from ember_ml import tree
from ember_ml.backend import Backend
from ember_ml.dispatch import wrapping
from ember_ml.dispatch.errors import ARGUMENT_ERRORS, annotate_error, called_as, hide_frames, nesting_error, rename
from ember_ml.dispatch.fast import binding_error
from ember_ml.dispatch.promotion import is_half_and_single, promotion_of
from ember_ml.dispatch.roles import COUNT, COUNTS, DEVICE, DTYPE, FLAG, INDEX, MASK, PLAIN, SCALAR, TENSOR
from ember_ml.dispatch.tensor_types import (
    HOST,
    NONE,
    NUMBER,
    NUMBERS,
    SEQUENCE,
    UNKNOWN,
    as_list,
    backend_of,
    classify,
    common_backend,
    common_device,
    leaf_types,
    registered,
)
from ember_ml.dtypes import (
    KIND_RANK,
    KINDS,
    EmberDType,
    accumulated,
    adapt,
    default_dtype,
    free,
    holds,
    promote,
    shown,
    with_article,
    written,
)
from ember_ml.errors import EmberError

if TYPE_CHECKING:
    from ember_ml.dispatch.operation import Operation


class PlacedParameter(NamedTuple):
    """A parameter that the general path processes, and its place among the values."""

    place: int
    role: str
    many: bool
    name: str
    optional: bool
    kind: str


class GeneralPath:
    """Calls an operation with arguments of any types, given in the order of its parameters."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.promotion = promotion_of(operation)
        parameters = [
            PlacedParameter(i, p.role, p.many, p.name, p.optional, p.kind) for i, p in enumerate(operation.parameters)
        ]
        # Dtype and device are settings, numbers and bools are options, and integers are counts.
        self.tensors = tuple(p for p in parameters if p.role in (TENSOR, INDEX, MASK))
        self.settings = tuple(p for p in parameters if p.role in (DTYPE, DEVICE))
        self.scalars = tuple(p.place for p in parameters if p.role == SCALAR)
        self.options = tuple((p.place, p.role, p.name, p.optional) for p in parameters if p.role in (SCALAR, FLAG))
        self.flags = tuple(p.place for p in parameters if p.role == FLAG)
        # These may be tensors that dispatch does not convert, such as what asarray is given.
        self.others = tuple(p.place for p in parameters if p.role == PLAIN)
        self.counts = tuple(p for p in parameters if p.role == COUNT)
        self.variadic = next((i for i, p in enumerate(operation.parameters) if p.variadic), None)
        self.keywords = tuple((i, p.name) for i, p in enumerate(operation.parameters) if p.keyword)
        self.positional = len(parameters) - len(self.keywords)
        # Whether the form of the operation takes a call with these values, which engines would refuse.
        self.claims: Callable[..., bool] | None = getattr(operation.form, "claims", None)

    def __call__(self, *values: Any) -> Any:
        if self.claims is not None and self.claims(*values):
            return self.call_form(*self.arguments(values))
        # The backend and the cast values, if the promotion table covers the call.
        promoted = None if self.promotion is None else self.promotion(*values)
        if promoted is None and self.holds_wrapped(values):
            return self.call_unwrapped(values)
        backend = self.find_backend(values) if promoted is None else promoted[0]
        try:
            values = self.prepare(backend, values) if promoted is None else promoted[1]
            return self.invoke(self.operation.runs[backend.name], values)
        except Exception as error:
            result, failure = self.recover(backend, error, values)
        if failure is not None:
            raise failure
        return result

    def call_form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the operation's form, on the engine of the tensors among the arguments."""
        if not self.tensors and self.claims is None:
            # What it creates is of the active engine, whatever it is created from.
            return self.run_form(args, kwargs)
        values = (*args, *kwargs.values())
        try:
            is_wrapped = wrapping.holds_wrapped(values)
            if is_wrapped:
                backend = wrapping.backend_of_wrapped(self.operation.name, values)
            else:
                kinds = [k for v in values for k in (leaf_types(v) if classify(type(v)) == SEQUENCE else (type(v),))]
                backend = common_backend(kinds)
        except (TypeError, ValueError) as error:
            raise rename(error, called_as(self.operation)) from None
        if is_wrapped:
            args = wrapping.unwrap_all(args, backend)
            kwargs = dict(zip(kwargs, wrapping.unwrap_all(tuple(kwargs.values()), backend), strict=True))
        if backends.current() is backend:
            result = self.run_form(args, kwargs)
        else:
            block = backends.enter(backend)
            try:
                result = self.run_form(args, kwargs)
            finally:
                backends.leave(block)
        return wrapping.wrap(result, backend) if is_wrapped else result

    def run_form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the form; arguments that it does not accept raise as those that fit no parameter do."""
        form: Any = self.operation.form
        try:
            return form(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
        raise binding_error(self.operation)(args, kwargs)

    def retry(self, error: Exception, *values: Any) -> Any:
        """Handle ``error``, which the engine raised on the fast path: return the result of another way, or raise it."""
        if self.claims is not None and self.claims(*values):
            return self(*values)
        if isinstance(error, (RuntimeError, OverflowError)) and any(
            type(values[s.place]) in NUMBERS for s in self.tensors
        ):
            # An engine may reject a number that it accepts as a tensor, such as one that float16 rounds to infinity.
            return self(*values)
        result, failure = self.recover(self.find_backend(values), error, values)
        if failure is not None:
            raise failure
        return result

    def holds_wrapped(self, values: tuple[Any, ...]) -> bool:
        """Whether an EmberTensor is among the values. Tensors nested too deeply are an error."""
        try:
            if not wrapping.holds_wrapped(values):
                return False
            for slot in self.tensors:
                if type(values[slot.place]) in (list, tuple):
                    leaf_types(values[slot.place])
            return True
        except ValueError as error:
            raise nesting_error(self.operation, backends.current(), error, values) from None

    def find_backend(self, values: tuple[Any, ...]) -> Backend:
        """The backend that computes: that of the tensors among the values, else the active one."""
        kinds: list[type] = []
        operands = self.operands(values)
        try:
            for item in operands:
                kind = type(item)
                if classify(kind) == SEQUENCE:
                    kinds += leaf_types(item)
                else:
                    kinds.append(kind)
            return common_backend(kinds)
        except ValueError as error:
            raise nesting_error(self.operation, backends.current(), error, values) from None
        except TypeError as error:
            raise rename(error, called_as(self.operation)) from None

    def operands(self, values: tuple[Any, ...]) -> list[Any]:
        """The values of the parameters that take tensors."""
        found: list[Any] = []
        for slot in self.tensors:
            if slot.many:
                found += self.items(values[slot.place], slot.name)
            else:
                found.append(values[slot.place])
        return found

    def call_unwrapped(self, values: tuple[Any, ...]) -> Any:
        """Unwrap the EmberTensors among the values, call the operation on their engine, and wrap the result."""
        try:
            backend = wrapping.backend_of_wrapped(self.operation.name, values)
        except ValueError as error:
            raise nesting_error(self.operation, backends.current(), error, values) from None
        except TypeError as error:
            raise rename(error, called_as(self.operation)) from None
        natives = wrapping.unwrap_all(values, backend)
        if backend.is_host:
            self.check_host(backend, values)
            is_selected = False
        else:
            # Native tensors of the engine among the arguments make dispatch select it.
            is_selected = any(isinstance(natives[s.place], backend.tensors) for s in self.tensors)
        if is_selected or backends.current() is backend:
            result = self.invoke(self.operation.call, natives)
        else:
            block = backends.enter(backend)
            try:
                result = self.invoke(self.operation.call, natives)
            finally:
                backends.leave(block)
        # An operation that returns its argument unchanged returns the same EmberTensor.
        if result is natives[0] and self.operation.rule is free:
            return values[0]
        return result if self.operation.returns_numpy else wrapping.wrap(result, backend)

    def check_host(self, host: Backend, values: tuple[Any, ...]) -> None:
        """Reject native tensors of another engine next to NumPy EmberTensors, which dispatch would convert to it."""
        for slot in self.tensors:
            for leaf in tree.leaves(values[slot.place]):
                found = registered(type(leaf))
                if type(found) is Backend and not issubclass(host.tensors[0], found.kinds):
                    raise wrapping.mixed_engines(called_as(self.operation), "numpy", found.chosen_as)

    def items(self, value: Any, name: str) -> Sequence[Any]:
        """Values of a parameter that takes several."""
        if value is None:
            return ()
        if type(value) in (list, tuple):
            return value  # type: ignore[no-any-return]
        if classify(type(value)) in (NUMBER, UNKNOWN):
            raise TypeError(f"{called_as(self.operation)}: {name} must be a sequence of tensors, got {written(value)}")
        return list(value)

    def prepare(self, backend: Backend, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values as the backend requires them: its own tensors, dtypes and devices, cast as the rule requires."""
        prepared = list(values)
        operands: list[tuple[list[Any], int]] = []
        for index, role, many, name, optional, kind in self.tensors:
            value = values[index]
            if value is None and optional:
                continue
            container, keys = prepared, [index]
            if many:
                if value is None:
                    raise TypeError(f"{name} must be a sequence of tensors, got None")
                container = prepared[index] = list(self.items(value, name))
                keys = list(range(len(container)))
            for key in keys:
                item = container[key]
                if role == TENSOR:
                    if type(item) not in NUMBERS:
                        container[key] = self.to_tensor(backend, values, item, None, name)
                    operands.append((container, key))
                elif role == INDEX:
                    container[key] = self.to_indices(backend, values, item, name)
                else:
                    container[key] = self.to_mask(backend, values, item, name, kind)
        common = self.promote(backend, values, operands) if operands else None
        for index, role, *_ in self.settings:
            value = values[index]
            if role == DEVICE:
                prepared[index] = self.placement(backend, values) if value is None else backend.find_device(value)
            elif value is not None:
                prepared[index] = backend.dtype(value)
            elif common is not None and self.operation.rule is accumulated:
                wide = accumulated.result(common) if accumulated.result else common
                prepared[index] = None if wide is common else backend.dtypes[wide.name]
        self.check_options(values)
        for index in self.scalars:
            value = values[index]
            if classify(type(value)) == HOST and not len(getattr(value, "shape", (0,))):
                # A NumPy scalar has a dtype, which must not take part in promotion.
                prepared[index] = value.item()
        for index in self.flags:
            if type(values[index]) is int:
                # When torch traces an integer, bool(...) would return a symbolic value.
                prepared[index] = True if values[index] else False  # noqa: SIM210
        for slot in self.counts:
            value = values[slot.place]
            if type(value) is not int and not (value is None and slot.optional):
                prepared[slot.place] = self.to_integer(value, slot.name)
        return tuple(prepared)

    def check_options(self, values: tuple[Any, ...]) -> None:
        """Reject strings, containers and ``None`` as numbers and bools, since engines treat them differently."""
        for index, role, name, optional in self.options:
            value = values[index]
            if isinstance(value, _NON_NUMBERS) or (value is None and not optional):
                required = "a number" if role == SCALAR else "True or False"
                raise TypeError(f"{name} must be {required}, got {written(value)}")

    def to_integer(self, value: Any, name: str) -> Any:
        """``value`` as an integer, checked here because some engines accept a tuple of one or truncate fractions."""
        if not hasattr(type(value), "__index__"):
            raise TypeError(f"{name} must be an integer, got {written(value)}")
        return _plain(value)

    def to_tensor(self, backend: Backend, values: tuple[Any, ...], value: Any, dtype: Any, name: str) -> Any:
        """``value`` as a tensor of ``backend``, on the device of the tensors among the values."""
        found: Any = classify(type(value))
        native: Any = backend.tensors
        if found is backend or (isinstance(value, native) and value.dtype in backend.names):
            if found is HOST and type(value) is not native[0] and not isinstance(value, backend.scalars):
                # NumPy matrices and masked arrays override NumPy's functions; other engines have no such types.
                return backend.to_host(value)
            return value
        if found in (UNKNOWN, NONE):
            tree.depth(value)  # raises its own error for a container that contains itself
            raise TypeError(f"{name} must be a tensor, a number or a sequence of numbers, got {written(value)}")
        return backend.convert(as_list(value), dtype, self.device(backend, values))

    def device(self, backend: Backend, values: tuple[Any, ...]) -> Any:
        """The device of the first tensor of ``backend`` among the values, else the default device."""
        return common_device(backend, self.operands(values))

    def placement(self, backend: Backend, values: tuple[Any, ...]) -> Any:
        """The device of a result: that of the first tensor among the values, whatever their roles, else the default."""
        return common_device(backend, [*self.operands(values), *(values[place] for place in self.others)])

    def to_indices(self, backend: Backend, values: tuple[Any, ...], value: Any, name: str) -> Any:
        """``value`` as an int64 tensor."""
        int64 = backend.dtypes["int64"]
        empty = type(value) in (list, tuple) and not value
        x = self.to_tensor(backend, values, value, int64 if empty else None, name)
        dtype = backend.dtype_of(x)
        if dtype.kind not in KINDS["integral"]:
            raise self.dtype_error(name, "integers", dtype)
        return x if dtype.name == "int64" else backend.cast(x, int64)

    def to_mask(self, backend: Backend, values: tuple[Any, ...], value: Any, name: str, kind: str) -> Any:
        """``value`` as a bool tensor; nonzero elements are true."""
        x = self.to_tensor(backend, values, value, None, name)
        dtype = backend.dtype_of(x)
        if dtype.kind not in KINDS[kind]:
            raise self.dtype_error(name, "bool or integers", dtype)
        return x if dtype.name == "bool" else backend.cast(x, backend.dtypes["bool"])

    def dtype_error(self, name: str, required: str, dtype: EmberDType) -> TypeError:
        """The error for a parameter of another dtype than the required ones."""
        from ember_ml.spellings import argument_hint  # rarely needed

        return TypeError(f"{name} must be {required}, got {dtype.name}{argument_hint(self.operation.name, name)}")

    def promote(self, backend: Backend, values: tuple[Any, ...], operands: list[tuple[list[Any], int]]) -> EmberDType:
        """Cast the operands, each a container and a key, as the rule requires, and return their common dtype."""
        rule = self.operation.rule
        dtypes = [_own_dtype(backend, container[key]) for container, key in operands]
        if rule.mode == "separate":
            for (container, key), dtype in zip(operands, dtypes, strict=True):
                self.check_kind(dtype)
                if type(container[key]) in NUMBERS:
                    self.check_range(container[key], dtype)
                    container[key] = self.convert_number(backend, values, container[key], dtype)
            return dtypes[0]
        if rule.mode == "first":
            common = dtypes[0]
            for (container, key), dtype in zip(operands, dtypes, strict=True):
                self.check_fit(container[key], dtype, common)
        else:
            common = _common_dtype(operands, dtypes)
        self.check_kind(common)
        computed = rule.compute(common)
        if self.operation.name in backend.autocast:
            tensors = [container[key] for container, key in operands if type(container[key]) not in NUMBERS]
            if len(tensors) == len(operands) and is_half_and_single(backend, tensors):
                return common
        for (container, key), dtype in zip(operands, dtypes, strict=True):
            if type(container[key]) in NUMBERS:
                self.check_range(container[key], common)
                container[key] = self.convert_number(backend, values, container[key], computed)
            elif dtype is not computed:
                container[key] = backend.cast(container[key], backend.dtype(computed))
        return common

    def convert_number(self, backend: Backend, values: tuple[Any, ...], number: Any, dtype: EmberDType) -> Any:
        """A Python number as a zero-dimensional tensor."""
        return backend.convert(number, backend.dtype(dtype), self.device(backend, values))

    def check_kind(self, dtype: EmberDType) -> None:
        """Reject a dtype that the operation does not support."""
        operation = self.operation
        if dtype.name not in operation.dtypes:
            kinds = " or ".join(_KIND_WORDS.get(kind, kind) for kind in operation.kinds)
            raise TypeError(f"the dtype must be {kinds}, got {dtype.name}")

    def check_fit(self, value: Any, dtype: EmberDType, into: EmberDType) -> None:
        """Reject values of a higher kind than the tensor they are stored in, except 0 and 1 in a bool tensor.

        The order of kinds is bool, integer, float, complex.
        """
        if KIND_RANK[dtype.kind] > KIND_RANK[into.kind] and not (
            into.kind == "bool" and type(value) is int and value in (0, 1)
        ):
            raise TypeError(
                f"values for {with_article(into.name)} tensor must be of its kind or a lower one (bool < integer < "
                f"float < complex), got {dtype.name}; cast the values or the tensor first"
            )

    def check_range(self, number: Any, dtype: EmberDType) -> None:
        """Reject a Python integer that the dtype cannot store."""
        if isinstance(number, int) and not holds(dtype, number):
            raise ValueError(f"numbers must fit into {dtype.name}, got {shown(number)}")

    def invoke(self, run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        """Call ``run`` with the values, positional or by keyword as the signature requires."""
        args, kwargs = self.arguments(values)
        return run(*args, **kwargs)

    def arguments(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values as positional and keyword arguments."""
        positional = values[: self.positional]
        if self.variadic is not None:
            positional = (*positional[: self.variadic], *positional[self.variadic])
        return positional, {name: values[index] for index, name in self.keywords}

    def recover(self, backend: Backend, error: Exception, values: tuple[Any, ...]) -> tuple[Any, Exception | None]:
        """``(result, None)`` if NumPy or simpler options make the call possible, else ``(None, annotated error)``."""
        try:
            if _lacks_kernel(backend, error):
                return self.fall_back_to_numpy(backend, values), None
            simple = tuple(
                _SIMPLER[p.role](v) if p.role in _SIMPLER else v
                for v, p in zip(values, self.operation.parameters, strict=True)
            )
            changed = any(new is not old for new, old in zip(simple, values, strict=True))
            if changed and isinstance(error, ARGUMENT_ERRORS):
                return self(*simple), None
        except Exception as other:
            return None, hide_frames(other)
        return None, annotate_error(self.operation, backend, error, values)

    def fall_back_to_numpy(self, backend: Backend, values: tuple[Any, ...]) -> Any:
        """The result computed by NumPy, for dtypes without a kernel; torch 2.13 has few for uint16 to uint64."""
        numpy = backends.load("numpy")
        asked = [values[s.place] for s in self.settings if s.role == DEVICE and values[s.place] is not None]
        device = backend.find_device(asked[0]) if asked else self.placement(backend, values)

        def to_numpy(value: Any, role: str) -> Any:
            if isinstance(value, backend.tensors):
                return backend.to_host(value)
            if type(value) in (list, tuple):
                return type(value)(to_numpy(item, role) for item in value)
            if role == DEVICE:
                return None
            return numpy.dtypes[backend.names[value].name] if role == DTYPE and value is not None else value

        def from_numpy(result: Any) -> Any:
            if isinstance(result, numpy.tensors):
                return backend.convert(result, None, device)
            if isinstance(result, tuple) and hasattr(result, "_fields"):
                return type(result)(*map(from_numpy, result))
            return type(result)(map(from_numpy, result)) if isinstance(result, (list, tuple)) else result

        def run(*values: Any) -> Any:
            roles = [p.role for p in self.operation.parameters]
            arrays = tuple(to_numpy(value, role) for value, role in zip(values, roles, strict=True))
            try:
                return from_numpy(self.invoke(self.operation.runs[numpy.name], arrays))
            except Exception as error:
                failure = annotate_error(self.operation, numpy, error, values)
                raise failure from failure.__cause__

        # ``opaque`` makes the engine's autograd treat the result as one operation with its own rule.
        opaque = getattr(backend.core, "opaque", None)
        return run(*values) if opaque is None else opaque(self.operation, run, values)


# How messages describe each kind.
_KIND_WORDS = {
    "bits": "bool or integer",
    "integral": "integer",
    "numeric": "numeric, not bool",
    "real": "real, not complex",
    "real numeric": "real and numeric, neither bool nor complex",
}

_NON_NUMBERS = (str, bytes, list, tuple, dict, set)

# Backends without a fallback: NumPy itself, and the one that records operations to differentiate them.
_WITHOUT_FALLBACK = ("numpy", *backends.HIDDEN)


def _lacks_kernel(backend: Backend, error: Exception) -> bool:
    """Whether the engine raised ``error`` because it has no kernel for these dtypes."""
    is_missing = isinstance(error, NotImplementedError) and not isinstance(error, EmberError)
    return is_missing and backend.name not in _WITHOUT_FALLBACK


def _plain(value: Any, levels: int = 3) -> Any:
    """``value`` with NumPy integers and zero-dimensional tensors replaced by Python integers.

    Axes and lengths are often computed, and not all engines accept these types.
    """
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        if not levels:
            return value
        items = [_plain(item, levels - 1) for item in value]
        return type(value)(items) if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, int) or not hasattr(value, "__index__"):
        return value
    # A bool tensor is not an integer.
    is_number = backend_of(value) is None or _is_scalar_of(KINDS["integral"], value)
    return _read(operator.index, value) if is_number else value


def _flag(value: Any) -> Any:
    """``value`` as a bool if it is an integer, or a zero-dimensional tensor of bool or integers; else unchanged.

    Flags are often results of comparisons, and not all engines accept these.
    """
    if isinstance(value, bool):
        return value
    return _read(bool, value) if isinstance(value, int) or _is_scalar_of(KINDS["bits"], value) else value


def _integers(value: Any) -> Any:
    """A range, a list, or a one-dimensional tensor of integers, as a tuple; other values are passed to ``_plain``."""
    backend = backend_of(value)
    if backend is not None and len(value.shape) == 1 and backend.dtype_of(value).kind in KINDS["integral"]:
        return _read(lambda x: tuple(x.tolist()), value)
    return _plain(tuple(value) if isinstance(value, (range, list)) else value)


# How to simplify a value, by role, after the engine rejected it.
_SIMPLER: dict[str, Callable[[Any], Any]] = {
    PLAIN: _plain,
    FLAG: _flag,
    SCALAR: _plain,
    COUNT: _plain,
    COUNTS: _integers,
}


def _is_scalar_of(kinds: tuple[str, ...], value: Any) -> bool:
    """Whether ``value`` is a zero-dimensional tensor with a dtype of these kinds."""
    backend = backend_of(value)
    return backend is not None and not len(value.shape) and backend.dtype_of(value).kind in kinds


def _read(how: Callable[[Any], Any], value: Any) -> Any:
    """``how(value)``, or ``value`` if its elements are not available, as in traced code."""
    try:
        return how(value)
    except (TypeError, ValueError, RuntimeError):
        return value


def _own_dtype(backend: Backend, value: Any) -> EmberDType:
    """Dtype of a tensor, or the default dtype of a Python number."""
    if type(value) in NUMBERS:
        return default_dtype(type(value))
    return backend.dtype_of(value)


def _common_dtype(operands: list[tuple[list[Any], int]], dtypes: list[EmberDType]) -> EmberDType:
    """Dtype that tensors are promoted to. Numbers adapt to it, and determine it only if there are no tensors."""
    common: EmberDType | None = None
    numbers: list[type] = []
    for (container, key), dtype in zip(operands, dtypes, strict=True):
        if type(container[key]) in NUMBERS:
            numbers.append(type(container[key]))
        elif dtype is not common:
            common = dtype if common is None else promote(common, dtype)
    if common is None:
        common = dtypes[0]
        for dtype in dtypes:
            common = promote(common, dtype)
        return common
    for number in numbers:
        common = adapt(common, number)
    return common
