"""Captures of a function: values that it uses through closures, defaults, global names or the object of a method.

Engines that compile a function, or run it again, see only its arguments, so captures are passed as arguments too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import is_
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from ember_ml import dispatch, tree
from ember_ml.backend import Backend
from ember_ml.dispatch import is_tensor

NUMBERS = (bool, int, float, complex, str)
_NUMERIC = NUMBERS[:-1]

_LIBRARY = __name__.partition(".")[0] + "."

# In place of the value of a name that is not defined.
_MISSING = object()

# Longer containers are considered data, and are not searched for numbers and tensors.
_LONGEST = 64


def is_stateful(leaf: Any) -> bool:
    """Whether ``leaf`` is a ``Stateful``; checking two methods is faster than ``isinstance`` with a protocol."""
    kind = type(leaf)
    return hasattr(kind, "tensors") and hasattr(kind, "assign")


def is_number(leaf: Any) -> bool:
    """Whether ``leaf`` is a Python number, an enumeration member with a number, or a zero-dimensional NumPy value."""
    kind = type(leaf)
    if kind in _NUMERIC:
        return True
    if dispatch.classify(kind) != dispatch.HOST or dispatch.holds_wrapped((leaf,)):
        return False
    return isinstance(leaf, _NUMERIC) or getattr(leaf, "shape", None) == ()


class Captures(NamedTuple):
    """Captures of a function.

    ``models`` are stateful objects. ``cells`` are closure cells, and objects like them, that hold tensors or trees of
    tensors. ``values`` are numbers, functions and NumPy arrays, which are constants of a program of another engine.
    """

    models: list[Any]
    cells: list[Any]
    values: list[Any]


class Name:
    """Name in a dictionary of globals or attributes, with the interface of a cell."""

    def __init__(self, scope: dict[str, Any], name: str) -> None:
        self.scope, self.name = scope, name

    @property
    def cell_contents(self) -> Any:
        return self.scope[self.name]

    @cell_contents.setter
    def cell_contents(self, content: Any) -> None:
        self.scope[self.name] = content


class _Default:
    """Default of a positional parameter, with the interface of a cell."""

    def __init__(self, function: FunctionType, place: int) -> None:
        self.function, self.place = function, place

    @property
    def cell_contents(self) -> Any:
        return (self.function.__defaults__ or ())[self.place]

    @cell_contents.setter
    def cell_contents(self, content: Any) -> None:
        self.function.__defaults__ = _with(self.function.__defaults__ or (), self.place, content)


class _Argument:
    """Positional argument of a ``partial``, with the interface of a cell."""

    def __init__(self, function: partial[Any], place: int) -> None:
        self.function, self.place = function, place

    @property
    def cell_contents(self) -> Any:
        return self.function.args[self.place]

    @cell_contents.setter
    def cell_contents(self, content: Any) -> None:
        function: Any = self.function
        args = _with(function.args, self.place, content)
        # The attributes of a partial are read-only.
        function.__setstate__((function.func, args, function.keywords, function.__dict__))


def _with(values: tuple[Any, ...], place: int, content: Any) -> tuple[Any, ...]:
    return *values[:place], content, *values[place + 1 :]


def captures_of(f: Any, arguments: Any, home: Backend) -> Captures:
    """Captures of ``f`` that are not among the arguments.

    Tensors of other engines are ignored. Global functions are not searched: they are captured as values, by identity.
    """
    return Search(home, [leaf for leaf in tree.leaves(arguments) if is_stateful(leaf)]).run(f)


class Search:
    """Search for the captures of a function, which remembers what it read.

    Args:
        home: engine whose tensors are captures.
        given: stateful arguments, which are not captures.
    """

    def __init__(self, home: Backend, given: list[Any]) -> None:
        self.home, self.given = home, given
        self.seen: set[Any] = {id(leaf) for leaf in given}
        self.rest: list[Any] = []
        self.found = Captures([], [], [])
        # What was read: names with their values, cells with their contents, functions with their code and defaults,
        # methods of classes, and cells with a tensor, in whose stead another may be. ``can_hold`` is false if
        # something was read that may change in place, such as a list.
        self.can_hold = True
        self.names: list[tuple[dict[str, Any], str, Any]] = []
        self.cells: list[tuple[Any, Any]] = []
        self.functions: list[tuple[FunctionType, Any, Any, Any]] = []
        self.methods: list[tuple[type, str, Any]] = []
        self.tensors: list[Any] = []

    def run(self, f: Any) -> Captures:
        """Captures of ``f``."""
        self.rest.append(f)
        while self.rest:
            self.look_at(self.rest.pop())
        return self.found

    def holds(self, given: list[Any]) -> bool:
        """Whether a search with these stateful arguments would find the same; false if that cannot be told."""
        return (
            self.can_hold
            and len(given) == len(self.given)
            and all(map(is_, given, self.given))
            and all(scope.get(name, _MISSING) is value for scope, name, value in self.names)
            and all(_is_filled(cell) and cell.cell_contents is content for cell, content in self.cells)
            and all(
                f.__code__ is code and f.__defaults__ is defaults and f.__kwdefaults__ is named
                for f, code, defaults, named in self.functions
            )
            and all(getattr(kind, name, None) is value for kind, name, value in self.methods)
            and all(_is_filled(cell) and _is_capture(cell.cell_contents, self.home) for cell in self.tensors)
            and all(_are_of(model, self.home) for model in self.found.models)
        )

    def look_at(self, value: Any) -> None:
        """Record a model, or queue what a function or a container refers to."""
        function, owner = _parts(value)
        key = id(value) if owner is None else (id(owner), id(function))
        if key in self.seen:
            return
        self.seen.add(key)
        if owner is value:
            self.methods.append((type(value), "__call__", function))
        if is_stateful(value):
            if _are_of(value, self.home):
                self.found.models.append(value)
            else:
                self.can_hold = False
        elif isinstance(value, (dict, list, tuple)):
            self.rest += [leaf for leaf in tree.leaves(value) if callable(leaf) or is_stateful(leaf)]
        elif isinstance(value, partial):
            self.can_hold = False
            self.rest.append(value.func)
            for place, content in enumerate(value.args):
                self._take(content, _Argument(value, place), ())
            for name, content in value.keywords.items():
                self._take(content, Name(value.keywords, name), ())
        elif isinstance(function, FunctionType):
            self._look_into(function, owner)
        elif getattr(value, "__self__", None) is not None:
            self.rest.append(value.__self__)

    def _look_into(self, function: FunctionType, owner: Any) -> None:
        scope, names = function.__globals__, _names(function.__code__)
        self.functions.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            # The cell of a name that is not yet assigned is empty.
            if _is_filled(cell):
                self._take(cell.cell_contents, cell, names)
            else:
                self.can_hold = False
        for place, content in enumerate(function.__defaults__ or ()):
            self._take(content, _Default(function, place), names)
        defaults = function.__kwdefaults__ or {}
        for name, content in defaults.items():
            self._take(content, Name(defaults, name), names)
        for name in names:
            if name in scope:
                if isinstance(scope[name], FunctionType):
                    self._remember(scope[name], Name(scope, name))
                    self.found.values.append(scope[name])
                else:
                    self._take(scope[name], Name(scope, name), names)
            else:
                self._remember(_MISSING, Name(scope, name))
        if is_stateful(owner):
            self.rest.append(owner)
        elif owner is not None:
            self._look_at_attributes(owner, names)

    def _look_at_attributes(self, owner: Any, names: tuple[str, ...]) -> None:
        """Record the attributes of an object that the code of a function names."""
        held = getattr(owner, "__dict__", {})
        if isinstance(owner, (type, ModuleType, Backend)) or (id(owner), id(names)) in self.seen:
            return
        self.seen.add((id(owner), id(names)))
        for name in names:
            if name in held:
                self._take(held[name], Name(held, name), names)
                continue
            method = getattr(type(owner), name, None)
            self.names.append((held, name, _MISSING))
            self.methods.append((type(owner), name, method))
            if isinstance(method, FunctionType):
                self.rest.append(getattr(owner, name))

    def _take(self, content: Any, cell: Any, names: tuple[str, ...]) -> None:
        """Record the content of a cell or name, for code that uses these names."""
        self._remember(content, cell)
        if type(content) in NUMBERS:
            self.found.values.append(content)
        elif isinstance(content, (dict, list, tuple)):
            self.rest.append(content)
            if len(content) <= _LONGEST:
                leaves = tree.leaves(content)
                if any(is_tensor(leaf) and _belongs_to(leaf, self.home) for leaf in leaves):
                    self.found.cells.append(cell)
                else:
                    self.found.values.extend(leaf for leaf in leaves if type(leaf) in NUMBERS or _is_host_array(leaf))
        elif is_tensor(content):
            if _belongs_to(content, self.home):
                self.found.cells.append(cell)
            elif _is_host_array(content):
                self.found.values.append(content)
        elif is_stateful(content) or (callable(content) and not isinstance(content, type)):
            self.rest.append(content)
            if isinstance(content, FunctionType):
                self.found.values.append(content)
        else:
            self._look_at_attributes(content, names)

    def _remember(self, content: Any, cell: Any) -> None:
        """Record that the content of a cell or name was read, for ``holds``."""
        if _is_capture(content, self.home):
            self.tensors.append(cell)
        elif isinstance(cell, Name):
            # The names of this library do not change; reading them takes time.
            if not str(cell.scope.get("__name__", "")).startswith(_LIBRARY):
                self.names.append((cell.scope, cell.name, content))
        elif not isinstance(cell, _Default):
            self.cells.append((cell, content))
        leaves = content if type(content) is tuple else (content,)
        if any(isinstance(leaf, (dict, list, tuple)) or _is_host_number(leaf) for leaf in leaves) or (
            leaves is content and any(map(is_tensor, leaves))
        ):
            self.can_hold = False


def _parts(value: Any) -> tuple[Any, Any]:
    """Function that calling ``value`` runs, and the object that it is a method of, or ``None``."""
    if isinstance(value, FunctionType) or is_stateful(value) or isinstance(value, (dict, list, tuple, partial)):
        return value, None
    if isinstance(getattr(value, "__func__", None), FunctionType):
        return value.__func__, value.__self__
    call = getattr(type(value), "__call__", None)  # noqa: B004 - it is looked into, not called
    return (call, value) if isinstance(call, FunctionType) else (value, None)


def _belongs_to(x: Any, home: Backend) -> bool:
    """Whether a tensor, wrapped or native, belongs to an engine; host arrays belong to NumPy."""
    owner = x.home if dispatch.holds_wrapped((x,)) else dispatch.classify(type(x))
    name = owner.chosen_as if isinstance(owner, Backend) else "numpy" if owner == dispatch.HOST else None
    return name == home.chosen_as


def _is_capture(x: Any, home: Backend) -> bool:
    return is_tensor(x) and _belongs_to(x, home)


def _are_of(state: Any, home: Backend) -> bool:
    """Whether all tensors of a stateful object belong to an engine."""
    return all(_belongs_to(x, home) for x in state.tensors().values())


def _is_host_number(x: Any) -> bool:
    """Whether ``x`` is a NumPy number, which is compared by value."""
    return is_tensor(x) and is_number(x)


def _is_host_array(x: Any) -> bool:
    return dispatch.classify(type(x)) == dispatch.HOST


# By ``id`` of the code. Holding a reference keeps the ``id`` from being reused.
_known: dict[int, tuple[CodeType, tuple[str, ...]]] = {}


def _names(code: CodeType) -> tuple[str, ...]:
    """Global names and attributes that a code object and the code objects nested in it use."""
    if id(code) not in _known:
        codes = [code]
        for one in codes:
            codes += [part for part in one.co_consts if isinstance(part, CodeType)]
        _known[id(code)] = code, tuple(dict.fromkeys(name for one in codes for name in one.co_names))
    return _known[id(code)][1]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - it is asked for whether there is one
    except ValueError:
        return False
    return True


def with_captures(f: Callable[..., Any], cells: list[Any]) -> Callable[..., Any]:
    """``f`` with its captures as an additional first argument, whose tensors replace the contents of the cells."""

    def run(held: Any, *args: Any) -> Any:
        before = [cell.cell_contents for cell in cells]
        for cell, content in zip(cells, held[1], strict=True):
            cell.cell_contents = content
        try:
            return f(*args)
        finally:
            for cell, content in zip(cells, before, strict=True):
                cell.cell_contents = content

    return run
