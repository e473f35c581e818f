"""The door: where any value becomes a tensor of one engine, in the dtype that the operation's law gives it.

Conversion and promotion happen here and nowhere else, so a backend function sees only its own tensors, already cast.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import backend as backends
from ember_ml import portable, tree
from ember_ml.backend import Backend
from ember_ml.dtypes import KINDS, EmberDType, accumulated, adapt, default_dtype, describe, free, holds, promote, shown
from ember_ml.errors import EmberError
from ember_ml.shapes import MAX_AXES

if TYPE_CHECKING:
    from ember_ml.contract import Operation

TENSOR, INDEX, MASK, DTYPE, DEVICE = "tensor", "index", "mask", "dtype", "device"
FLAG, SCALAR, COUNT, COUNTS, PLAIN = "flag", "scalar", "count", "counts", "plain"


class Place(NamedTuple):
    """Where among the values of a call something stands that the door looks at."""

    at: int
    role: str
    many: bool
    name: str
    optional: bool


class Door:
    """The long way into an operation: takes the values of all its parameters, in order."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        places = [Place(i, p.role, p.many, p.name, p.optional) for i, p in enumerate(operation.parameters)]
        self.tensors = tuple(p for p in places if p.role in (TENSOR, INDEX, MASK))
        self.settings = tuple(p for p in places if p.role in (DTYPE, DEVICE))
        self.scalars = tuple(p.at for p in places if p.role == SCALAR)
        self.options = tuple((p.at, p.role, p.name, p.optional) for p in places if p.role in (SCALAR, FLAG))
        self.flags = tuple(p.at for p in places if p.role == FLAG)
        self.counts = tuple(p for p in places if p.role == COUNT)
        self.variadic = next((i for i, p in enumerate(operation.parameters) if p.variadic), None)
        self.keywords = tuple((i, p.name) for i, p in enumerate(operation.parameters) if p.keyword)
        self.positional = len(places) - len(self.keywords)

    def __call__(self, *values: Any) -> Any:
        if portable.holds(values):
            return self.in_kind(values)
        backend = self.home(values)
        run = self.operation.runs[backend.name]
        try:
            values = self.admit(backend, values)
            return self.pass_on(run, values)
        except Exception as error:
            return self.recover(backend, error, values)

    def home(self, values: tuple[Any, ...]) -> Backend:
        """The backend that computes: the one that the tensors live on, else the active one."""
        found: Backend | None = None
        for index, _, many, _, _ in self.tensors:
            value = values[index]
            for item in self.items(value) if many else (value,):
                outer = species_of(type(item))
                for species in map(species_of, leaf_types(item)) if outer == SEQUENCE else (outer,):
                    if type(species) is not Backend or species is found:
                        continue
                    if found is not None:
                        raise TypeError(
                            f"{self.operation.name} was given tensors of two engines, {found.chosen_as} and "
                            f"{species.chosen_as}; "
                            "ember_ml.ops.convert_to_tensor(x) moves either to the active backend "
                            f"({backends.current().name})"
                        )
                    found = species
        return found or backends.current()

    def in_kind(self, values: tuple[Any, ...]) -> Any:
        """The answer in portable tensors to a call with some, computed by the engine that they live on."""
        for place in self.tensors:
            if type(values[place.at]) in (list, tuple):
                leaf_types(values[place.at])  # which checks that it can be looked through
        backend = portable.home_of(self.operation.name, values)
        natives = portable.opened_all(values, backend)
        if backend.name == "numpy":
            self.check_host(backend, values)
            found = backends.current() is backend
        else:
            # Native tensors find their engine by themselves.
            found = any(isinstance(natives[p.at], backend.tensors) for p in self.tensors)
        if found or backends.current() is backend:
            answer = self.pass_on(self.operation.call, natives)
        else:
            block = backends.enter(backend)
            try:
                answer = self.pass_on(self.operation.call, natives)
            finally:
                backends.leave(block)
        if answer is natives[0] and self.operation.law is free:
            return values[0]
        return answer if self.operation.hosts else portable.closed(answer, backend)

    def check_host(self, host: Backend, values: tuple[Any, ...]) -> None:
        """No native tensor of another engine is beside a portable one of NumPy: the host's arrays would go to it."""
        for place in self.tensors:
            for leaf in tree.leaves(values[place.at]):
                species = _species.get(type(leaf))
                if type(species) is Backend and not issubclass(host.tensors[0], species.kinds):
                    raise portable.mixture(self.operation.name, "numpy", species.chosen_as)

    def items(self, value: Any) -> Sequence[Any]:
        """The values in a parameter that takes several."""
        if value is None:
            return ()
        if type(value) in (list, tuple):
            return value  # type: ignore[no-any-return]
        if species_of(type(value)) in (NUMBER, UNKNOWN):
            raise TypeError(f"{self.operation.name} takes a sequence of tensors, not {describe(value)}")
        return list(value)

    def admit(self, backend: Backend, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values as the backend is to see them: its own tensors, dtypes and devices, cast as the law says."""
        admitted = list(values)
        entrants: list[tuple[list[Any], int]] = []
        for index, role, many, name, optional in self.tensors:
            value = values[index]
            if value is None and optional:
                continue
            container, keys = admitted, [index]
            if many:
                if value is None:
                    raise TypeError(f"{self.operation.name} takes a sequence of tensors, not None, for {name}")
                container = admitted[index] = list(self.items(value))
                keys = list(range(len(container)))
            for key in keys:
                item = container[key]
                if role == TENSOR:
                    if type(item) not in _NUMBERS:
                        container[key] = self.tensor(backend, values, item, None, name)
                    entrants.append((container, key))
                elif role == INDEX:
                    container[key] = self.indices(backend, values, item, name)
                else:
                    container[key] = self.mask(backend, values, item, name)
        met = self.promote(backend, values, entrants) if entrants else None
        for index, role, _, _, _ in self.settings:
            value = values[index]
            if role == DEVICE:
                admitted[index] = self.device(backend, values) if value is None else backend.find_device(value)
            elif value is not None:
                admitted[index] = backend.dtype(value)
            elif met is not None and self.operation.law is accumulated:
                wide = accumulated.answer(met) if accumulated.answer else met
                admitted[index] = None if wide is met else backend.dtypes[wide.name]
        self.check_options(values)
        for index in self.scalars:
            value = values[index]
            if species_of(type(value)) == HOST and not len(getattr(value, "shape", (0,))):
                # One of NumPy's scalars has a dtype, which must not count: an option is no tensor.
                admitted[index] = value.item()
        for index in self.flags:
            if type(values[index]) is int:
                # bool(...) would leave it open in code that torch traces for any integer.
                admitted[index] = True if values[index] else False  # noqa: SIM210
        for index, _, _, name, optional in self.counts:
            value = values[index]
            if type(value) is not int and not (value is None and optional):
                admitted[index] = self.count(value, name)
        return tuple(admitted)

    def check_options(self, values: tuple[Any, ...]) -> None:
        """Numbers are numbers, flags flags: engines take others here and there, or complain in words of their own."""
        for index, role, name, optional in self.options:
            value = values[index]
            if isinstance(value, _NO_NUMBERS) or (value is None and not optional):
                wanted = "a number" if role == SCALAR else "True or False"
                raise TypeError(f"{self.operation.name} takes {wanted} for {name}, not {_written(value)}")

    def misfit(self, error: Exception, values: tuple[Any, ...]) -> TypeError | None:
        """What is wrong with an option that is to hold integers, if something is, and ``error`` does not say more."""
        import inspect  # its import takes longer than that of this module, and errors are rare

        defaults = inspect.signature(self.operation.call).parameters
        for value, parameter in zip(values, self.operation.parameters, strict=True):
            if parameter.role == COUNTS and not parameter.variadic:
                if value is None and defaults[parameter.name].default is None:
                    continue
                several = isinstance(value, (list, tuple))
                if isinstance(error, TypeError) and parameter.many and isinstance(value, int):
                    wanted = "a sequence of integers"
                elif all(hasattr(type(item), "__index__") for item in (value if several else [value])):
                    continue
                else:
                    wanted = "integers" if parameter.many else "an integer or a sequence of integers"
                return TypeError(f"{self.operation.name} takes {wanted} for {parameter.name}, not {_written(value)}")
        return None

    def count(self, value: Any, name: str) -> Any:
        """``value`` as an integer: engines here and there take a tuple of one, or cut off a fraction."""
        if not hasattr(type(value), "__index__"):
            raise TypeError(f"{self.operation.name} takes an integer for {name}, not {describe(value)}")
        return _plain(value)

    def tensor(self, backend: Backend, values: tuple[Any, ...], value: Any, dtype: Any, name: str) -> Any:
        """``value`` as a tensor of ``backend``, beside the tensors that are there already."""
        species: Any = species_of(type(value))
        native: Any = backend.tensors
        if species is backend or (isinstance(value, native) and value.dtype in backend.names):
            if species is HOST and type(value) is not native[0] and not isinstance(value, backend.scalars):
                # A matrix or a masked array of NumPy computes in its own way, and no other engine does.
                return backend.to_host(value)
            return value
        if species in (UNKNOWN, NONE):
            tree.depth(value)  # what contains itself has an error of its own
            raise TypeError(
                f"{self.operation.name} takes tensors, numbers and sequences, not a {type(value).__name__} for {name}"
            )
        return backend.convert(listed(value), dtype, self.device(backend, values))

    def device(self, backend: Backend, values: tuple[Any, ...]) -> Any:
        """The device of the first tensor that lives on ``backend``, else its default device."""
        for index, _, many, _, _ in self.tensors:
            for item in self.items(values[index]) if many else (values[index],):
                if isinstance(item, backend.tensors):
                    return backend.beside(item)
        return backend.device

    def indices(self, backend: Backend, values: tuple[Any, ...], value: Any, name: str) -> Any:
        """``value`` as an int64 tensor."""
        int64 = backend.dtypes["int64"]
        empty = type(value) in (list, tuple) and not value
        x = self.tensor(backend, values, value, int64 if empty else None, name)
        dtype = backend.dtype_of(x)
        if dtype.kind not in KINDS["integral"]:
            raise TypeError(f"{self.operation.name} takes integers for {name}, not {dtype.name}")
        return x if dtype.name == "int64" else backend.cast(x, int64)

    def mask(self, backend: Backend, values: tuple[Any, ...], value: Any, name: str) -> Any:
        """``value`` as a bool tensor: what is not zero is true."""
        x = self.tensor(backend, values, value, None, name)
        return x if backend.dtype_of(x).name == "bool" else backend.cast(x, backend.dtypes["bool"])

    def promote(self, backend: Backend, values: tuple[Any, ...], entrants: list[tuple[list[Any], int]]) -> EmberDType:
        """Cast the entrants to the dtype that the law gives them; answers the dtype that they met in."""
        law = self.operation.law
        own = [_own_dtype(backend, container[key]) for container, key in entrants]
        if law.meet == "apart":
            for (container, key), dtype in zip(entrants, own, strict=True):
                self.check_kind(dtype)
                if type(container[key]) in _NUMBERS:
                    self.check_range(container[key], dtype)
                    container[key] = self.convert(backend, values, container[key], dtype)
            return own[0]
        if law.meet == "first":
            common = own[0]
            for (container, key), dtype in zip(entrants, own, strict=True):
                self.check_fit(container[key], dtype, common)
        else:
            common = _meeting(entrants, own)
        self.check_kind(common)
        entered = law.enter(common)
        for (container, key), dtype in zip(entrants, own, strict=True):
            if type(container[key]) in _NUMBERS:
                self.check_range(container[key], common)
                container[key] = self.convert(backend, values, container[key], entered)
            elif dtype is not entered:
                container[key] = backend.cast(container[key], backend.dtype(entered))
        return common

    def convert(self, backend: Backend, values: tuple[Any, ...], number: Any, dtype: EmberDType) -> Any:
        """A Python number as a 0-d tensor."""
        return backend.convert(number, backend.dtype(dtype), self.device(backend, values))

    def check_kind(self, dtype: EmberDType) -> None:
        """The operation takes tensors of this dtype."""
        operation = self.operation
        if dtype.name not in operation.dtypes:
            kinds = " or ".join(operation.kinds)
            raise TypeError(f"{operation.name} takes dtypes of kind {kinds}, not {dtype.name}")

    def check_fit(self, value: Any, dtype: EmberDType, into: EmberDType) -> None:
        """Values of a higher kind do not go into a tensor of a lower one; 0 and 1 do go into bool."""
        if _RANK[dtype.kind] > _RANK[into.kind] and not (
            into.kind == "bool" and type(value) is int and value in (0, 1)
        ):
            raise TypeError(f"{self.operation.name} cannot put {dtype.name} values into a {into.name} tensor")

    def check_range(self, number: Any, dtype: EmberDType) -> None:
        """A Python integer is one that the dtype can hold."""
        if isinstance(number, int) and not holds(dtype, number):
            raise ValueError(f"{self.operation.name} was given {shown(number)}, which {dtype.name} cannot hold")

    def pass_on(self, run: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        """Call ``run`` with the values, each in the way that its parameter is given."""
        args, kwargs = self.given(values)
        return run(*args, **kwargs)

    def given(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values as positional and keyword arguments."""
        positional = values[: self.positional]
        if self.variadic is not None:
            positional = (*positional[: self.variadic], *positional[self.variadic])
        return positional, {name: values[index] for index, name in self.keywords}

    def rescue(self, error: Exception, *values: Any) -> Any:
        """What the short way ends in when ``error`` is raised: by the engine, or because an operand is no tensor."""
        if isinstance(error, AttributeError) and not all(hasattr(values[p.at], "dtype") for p in self.tensors):
            return self(*values)
        if isinstance(error, (RuntimeError, OverflowError)) and any(
            type(values[p.at]) in _NUMBERS for p in self.tensors
        ):
            # An engine may refuse a number that it would take as a tensor, such as one that a half rounds to infinity.
            return self(*values)
        return self.recover(self.home(values), error, values)

    def recover(self, backend: Backend, error: Exception, values: tuple[Any, ...]) -> Any:
        """The answer by the reference where the engine has no kernel for these dtypes; else the error, explained."""
        if isinstance(error, NotImplementedError) and not isinstance(error, EmberError) and backend.name not in _FINAL:
            return self.by_reference(backend, values)
        plain = tuple(
            _PLAINER[p.role](v) if p.role in _PLAINER else v
            for v, p in zip(values, self.operation.parameters, strict=True)
        )
        changed = any(new is not old for new, old in zip(plain, values, strict=True))
        if changed and isinstance(error, _COMPLAINTS):
            return self(*plain)
        raise self.explained(backend, error, values)

    def by_reference(self, backend: Backend, values: tuple[Any, ...]) -> Any:
        """The answer computed by NumPy on the host: torch, for one, has few kernels for uint16 to uint64."""
        reference = backends.load("numpy")
        device = self.device(backend, values)

        def there(value: Any, role: str) -> Any:
            if isinstance(value, backend.tensors):
                return backend.to_host(value)
            if type(value) in (list, tuple):
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

        def run(*values: Any) -> Any:
            roles = [p.role for p in self.operation.parameters]
            hosted = tuple(there(value, role) for value, role in zip(values, roles, strict=True))
            try:
                return back(self.pass_on(self.operation.runs[reference.name], hosted))
            except Exception as error:
                explained = self.explained(reference, error, values)
                raise explained from explained.__cause__

        opaque = getattr(backend.core, "opaque", None)
        return run(*values) if opaque is None else opaque(self.operation, run, values)

    def explained(self, backend: Backend, error: Exception, values: tuple[Any, ...]) -> Exception:
        """The error in its agreed class, with a note that names the operation, its tensors and the engine."""
        wrong = self.misfit(error, values) if isinstance(error, _COMPLAINTS) else None
        if wrong is not None:
            wrong.__cause__, error = error, wrong
        wanted = None if isinstance(error, EmberError) else backend.error_class(error)
        if isinstance(error, (OverflowError, ZeroDivisionError)):
            wanted = ValueError
        if wanted is not None and not isinstance(error, wanted):
            translated = wanted(str(error))
            translated.__cause__ = error
            error = translated
        shown: list[str] = []
        for index, _, many, _, _ in self.tensors:
            several = many and isinstance(values[index], (list, tuple))
            shown += map(describe, values[index] if several else [values[index]])
        note = f"in ember_ml.ops.{self.operation.name}({', '.join(shown)}) on the {backend.chosen_as} backend"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return error


# What a value is, by its type: a backend (it is a tensor of that engine) or one of these.
NUMBER, SEQUENCE, HOST, NONE, UNKNOWN = "number", "sequence", "host", "none", "unknown"

_NUMBERS = (bool, int, float, complex)
_LISTS = (list, tuple, range)
_NO_NUMBERS = (str, bytes, list, tuple, dict, set)
_PLAIN_TYPES = frozenset(_NUMBERS)

# What engines say of arguments. Other exceptions are no mistakes, such as that by which torch ends a recomputation.
_COMPLAINTS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError)

# Engines whose word is the last: the reference itself, and the one that traces it, whose answers must not be untraced.
_FINAL = ("numpy", "autograd")

_species: dict[type, Backend | str] = {
    **dict.fromkeys(_NUMBERS, NUMBER),
    list: SEQUENCE,
    tuple: SEQUENCE,
    range: SEQUENCE,
    type(None): NONE,
}

_RANK = {"bool": 0, "unsigned integer": 1, "signed integer": 1, "real floating": 2, "complex floating": 3}


def know(backend: Backend) -> None:
    """Recognise the tensors of ``backend``. Host arrays are no engine's until someone is active."""
    kinds = (*backend.tensors, *backend.scalars)
    _species.update(dict.fromkeys(kinds, HOST if backend.name == "numpy" else backend))


def forget(backend: Backend) -> None:
    """Recognise the tensors of ``backend``, which is being closed, as an error."""
    for kind in [kind for kind, species in _species.items() if species is backend]:
        del _species[kind]


def species_of(kind: type) -> Backend | str:
    """What instances of ``kind`` are."""
    found = _species.get(kind)
    if found is None:
        found = _species[kind] = _classify(kind)
    return found


def leaf_types(value: Any) -> set[type]:
    """The types of what a nested sequence holds, its ranges among them."""
    found: set[type] = set()
    level: Any = () if type(value) is range else value
    for _ in range(MAX_AXES):
        kinds = set(map(type, level))
        if kinds <= _PLAIN_TYPES:
            return found | kinds
        nested = {kind for kind in kinds if species_of(kind) == SEQUENCE and kind is not range}
        found |= kinds - nested
        if not nested:
            return found
        rows = level if nested == kinds else [row for row in level if type(row) in nested]
        level = tree.contents(rows, with_dicts=False)
    raise too_deep(tree.depth(value))


def too_deep(levels: int) -> ValueError:
    """The error for a nested sequence with more levels than a tensor has axes."""
    # Those of a sequence that is neither a list nor a tuple are not counted.
    got = levels if levels > MAX_AXES else "more"
    return ValueError(f"a nested sequence must have at most {MAX_AXES} levels, got {got}")


def listed(value: Any) -> Any:
    """``value``; of a sequence that is neither a list nor a tuple nor a range, the list of what it holds."""
    return value if isinstance(value, _LISTS) or species_of(type(value)) != SEQUENCE else list(value)


def home_of(x: Any) -> Backend | None:
    """The backend whose tensor ``x`` is, if it is one's; host arrays are NumPy's here."""
    species = species_of(type(x))
    if isinstance(species, Backend):
        return species
    host = backends.load("numpy") if species == HOST else None
    return host if host is not None and isinstance(x, host.tensors) else None


def _classify(kind: type) -> Backend | str:
    """What instances of ``kind`` are; loads the backend of an engine whose tensor is seen for the first time."""
    homes = {**backends.HIDDEN, **backends.homes()}
    # The library's own come first there, and the last one here stays.
    engines = {home.engine: name for name, home in reversed(homes.items())}
    for base in kind.__mro__:
        name = engines.get(base.__module__.partition(".")[0])
        if name is not None:
            backend = (backends.load_hidden if name in backends.HIDDEN else backends.load)(name)
            if issubclass(kind, backend.tensors):
                if backend.refusal is not None:
                    backend.refusal()
                return HOST if name == "numpy" else backend
    for backend in backends.loaded():
        if issubclass(kind, backend.tensors):
            return backend
    if any(hasattr(kind, name) for name in ("__array__", "__dlpack__", "__array_interface__", "__buffer__")):
        return HOST
    if issubclass(kind, _NUMBERS):
        return HOST
    if issubclass(kind, (str, bytes, bytearray, memoryview)) or hasattr(kind, "keys"):
        return UNKNOWN
    return SEQUENCE if hasattr(kind, "__getitem__") and hasattr(kind, "__len__") else UNKNOWN


def _plain(value: Any, levels: int = 3) -> Any:
    """``value`` with Python's integers for those of NumPy and for tensors without axes; itself if there are none.

    Axes and lengths often come from a computation. Engines take them here and there; where one does not, these it does.

    Args:
        levels: how far to look into nested sequences; none of axes or lengths has more levels.
    """
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        if not levels:
            return value
        items = [_plain(item, levels - 1) for item in value]
        return type(value)(items) if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, int) or not hasattr(value, "__index__"):
        return value
    # A mask is no number.
    is_number = home_of(value) is None or _is_one_of(KINDS["integral"], value)
    return _read(operator.index, value) if is_number else value


def _truth(value: Any) -> Any:
    """``value`` as True or False if it is an integer or a tensor without axes, of bool or integers; else itself.

    Flags often come from a comparison. Definitions take them as Python does; engines here and there, and else these.
    """
    if isinstance(value, bool):
        return value
    return _read(bool, value) if isinstance(value, int) or _is_one_of(KINDS["bits"], value) else value


def _counts(value: Any) -> Any:
    """``value`` as a tuple if it is a tensor of integers with one axis, or a range; else as ``_plain`` has it."""
    home = home_of(value)
    if home is not None and len(value.shape) == 1 and home.dtype_of(value).kind in KINDS["integral"]:
        return _read(lambda x: tuple(x.tolist()), value)
    return tuple(value) if isinstance(value, range) else _plain(value)


_PLAINER: dict[str, Callable[[Any], Any]] = {
    PLAIN: _plain,
    FLAG: _truth,
    SCALAR: _plain,
    COUNT: _plain,
    COUNTS: _counts,
}


def _is_one_of(kinds: tuple[str, ...], value: Any) -> bool:
    """Whether ``value`` is a tensor without axes, of a dtype of these kinds."""
    home = home_of(value)
    return home is not None and not len(value.shape) and home.dtype_of(value).kind in kinds


def _read(how: Callable[[Any], Any], value: Any) -> Any:
    """``how`` of ``value``, or itself where that cannot be told, as in traced code."""
    try:
        return how(value)
    except (TypeError, ValueError, RuntimeError):
        return value


# All of a sequence may be more than memory holds, or without end.
_SHORT = reprlib.Repr()
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxdict = _SHORT.maxset = 60
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60
_SHORT.maxlevel = 3


def _written(value: Any) -> str:
    """An option as it was given, if that is short; for messages."""
    text = _SHORT.repr(value) if value is None or isinstance(value, _NO_NUMBERS) else ""
    return text if 0 < len(text) <= 60 and "..." not in text else describe(value)


def _own_dtype(backend: Backend, value: Any) -> EmberDType:
    if type(value) in _NUMBERS:
        return default_dtype(type(value))
    return backend.dtype_of(value)


def _meeting(entrants: list[tuple[list[Any], int]], own: list[EmberDType]) -> EmberDType:
    """The dtype that tensors are promoted to; numbers adapt to it, and decide it only among themselves."""
    common: EmberDType | None = None
    numbers: list[type] = []
    for (container, key), dtype in zip(entrants, own, strict=True):
        if type(container[key]) in _NUMBERS:
            numbers.append(type(container[key]))
        elif dtype is not common:
            common = dtype if common is None else promote(common, dtype)
    if common is None:
        common = own[0]
        for dtype in own:
            common = promote(common, dtype)
        return common
    for number in numbers:
        common = adapt(common, number)
    return common
