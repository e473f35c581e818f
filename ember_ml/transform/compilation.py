"""Compiled functions: the programs that engines compile, and the choice of the program for a call."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from ember_ml import dispatch
from ember_ml import tree as _tree
from ember_ml.backend import Backend
from ember_ml.dispatch import is_tensor
from ember_ml.errors import warn
from ember_ml.interrupts import interruptible, uninterrupted
from ember_ml.ops import random
from ember_ml.random import threefry
from ember_ml.transform import parts
from ember_ml.transform.cache_key import PLAIN, Attributes, Keys, attributes, changed, of_constants
from ember_ml.transform.call import STATIC, TRACED, Call, F, is_compiled, is_mark, named, unpacking
from ember_ml.transform.captures import Name, Search, captures_of, is_number, is_stateful, with_captures
from ember_ml.transform.leaves import as_tensor, engine_of, find_backend, is_writing, states


def compile(f: F) -> F:
    """``f`` compiled by the engine of its tensors: ``torch.compile``, ``mx.compile`` or ``jax.jit``. NumPy runs ``f``.

    Tensors are inputs of the program. Numbers, strings and other Python values are constants: ``f`` is compiled again
    for other values. NumPy scalars and zero-dimensional arrays are constants too, unless NumPy is the active engine.
    torch does not specialize on them, so they are passed to it as Python numbers if they are integers or bools, and as
    tensors if they are floats.

    On an accelerator of torch, a function that calls ``grad`` or ``value_and_grad`` runs as Python, and what it
    differentiates is compiled: torch then decides which intermediate values to keep for the gradient and which to
    recompute, and ``update`` of an optimizer is a few fused calls.

    Models and optimizers may be arguments or captured; tensors that ``f`` assigns to them remain assigned after the
    call. Random functions inside ``f`` use a new key of the current stream in each call. Errors are the same as without
    compilation, and name the operation and the layer.

    >>> from ember_ml import ops
    >>> compile(lambda x, n: ops.power(x, n))(ops.asarray([1.0, 2.0]), 2).tolist()
    [1.0, 4.0]
    """
    programs: dict[str, Callable[..., Any]] = {}

    def transformed(*args: Any, **kwargs: Any) -> Any:
        key = _next_key()
        if key is None:
            return f(*args, **kwargs)
        home = find_backend("compile", (args, kwargs), ())
        program = programs.get(home.name)
        if program is None:
            program = programs[home.name] = _program(f, engine_of(home, "compile"), home)
        return program(key, args, kwargs)

    return named(transformed, f, "compile")  # type: ignore[return-value]


def _next_key() -> list[int] | None:
    """Next key of the current stream; ``None`` in compiled code, where the key is a traced tensor.

    Every call takes a key, used or not, so that streams advance equally on all engines.
    """
    block = threefry.here.block
    if block is None:
        return list(threefry.draw())
    if is_compiled():
        return None
    block.count += 1
    return list(threefry.child(block.key, threefry.FOLDS, block.count - 1))


def _program(f: Callable[..., Any], engine: Any, home: Backend) -> Callable[..., Any]:
    """``f``, of a random key, arguments and keyword arguments, compiled if the engine has a compiler."""
    if hasattr(engine, "compiled"):
        return _Traced(f, engine, home)
    if hasattr(engine, "compiled_flat"):
        return _Program(f, engine, home)

    def seeded(key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with random.stream(_key_tensor(key, home)):
            return f(*args, **kwargs)

    return seeded


def _key_tensor(key: Sequence[int], home: Backend) -> Any:
    return home.convert(list(key), home.dtypes["uint32"], home.device)


class _Traced:
    """Compiled function of an engine that traces Python: one program, or one for each part that it differentiates."""

    def __init__(self, f: Callable[..., Any], engine: Any, home: Backend) -> None:
        self.f, self.engine, self.home = f, engine, home
        self.whole = _TracedProgram(engine, home)
        # Forms of the calls that differentiate, and the programs of their parts, by code.
        self.forms: set[Hashable] = set()
        self.parts: dict[Any, _TracedProgram] = {}

    def __call__(self, key: tuple[int, int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        form = tuple([_form(leaf) for leaf in _tree.leaves((args, kwargs))])
        if form not in self.forms:
            with parts.whole():
                try:
                    return self.whole(self.f, key, 0, args, kwargs)[0]
                except Exception as error:
                    if not self.engine.was_stopped(error):
                        raise
            self.forms.add(form)
        # What the parts and the Python between them assign to models is atomic, as it is for one program.
        with random.stream(key), parts.compiled_by(self._part), uninterrupted():
            return self.f(*args, **kwargs)

    def _part(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """``f``, compiled, with draws from the stream of the caller."""
        code = getattr(f, "__code__", f)
        program = self.parts.get(code)
        if program is None:
            program = self.parts[code] = _TracedProgram(self.engine, self.home)

        def part(*args: Any, **kwargs: Any) -> Any:
            block: Any = threefry.here.block
            with parts.compiled_by(None):
                result, block.count = program(f, block.key, block.count, args, kwargs)
            return result

        return part


def _form(leaf: Any) -> Any:
    """What a leaf tells about the kind of a call: a switch such as ``train=False`` itself, otherwise its type."""
    return leaf if type(leaf) in (bool, str) else type(leaf)


def _counted(f: Callable[..., Any], key: Any, count: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Result of ``f``, whose draws use the key from number ``count`` on, and the number after its last draw."""
    with random.stream(key):
        block: Any = threefry.here.block
        block.count = count
        return f(*args, **kwargs), block.count


class _TracedProgram:
    """Program of an engine that traces Python, for functions with the same code."""

    def __init__(self, engine: Any, home: Backend) -> None:
        self.engine, self.home = engine, home
        self.run = engine.compiled(_counted)
        # Shapes and types of earlier calls, for which a program exists, and whether those calls involved models.
        self.known: dict[Hashable, bool] = {}
        # Whether the function was found to be impossible to compile.
        self.is_plain = False
        # Function that was last searched for captures, its captured models, and its captures by name.
        self.searched: Any = None
        self.models: list[Any] = []
        self.names: list[Name] = []

    def __call__(
        self, f: Callable[..., Any], key: Sequence[int], count: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """``_counted`` of these arguments."""
        if self.is_plain:
            return _counted(f, key, count, args, kwargs)
        if f is not self.searched:
            self.models, cells, _ = captures_of(f, (args, kwargs), self.home)
            self.names = [cell for cell in cells if isinstance(cell, Name)]
            self.searched = f
        leaves = _tree.leaves((args, kwargs))
        are_numbers = is_below = False
        for leaf in leaves:
            if type(leaf) is float:
                is_below = is_below or (not leaf and math.copysign(1.0, leaf) < 0)
            elif not are_numbers:
                are_numbers = _is_numpy_number(leaf)
        given = args, kwargs
        if are_numbers:
            given = _convert_numpy_numbers(given, self.home)
        if self.names or self.models:
            given = self._alias_captured(given)
        call = f, _key_tensor(key, self.home), count, *given
        if is_below:
            # torch 2.13: a program compiled for 0.0 is reused for -0.0, since the two compare equal.
            return _counted(*call)
        try:
            return self._run(call, leaves)
        except Exception as error:
            if not self.engine.is_of_compiler(error) or self.engine.was_stopped(error):
                raise
            uncompilable = self.engine.uncompilable()
            plain_error = _plain_error(call)
            if plain_error is not None:
                # Omit the long error of the compiler.
                raise plain_error from plain_error.__cause__
            if self.engine.uncompilable() == uncompilable:
                raise
            self.is_plain = True
            return _counted(*call)

    def _run(self, call: tuple[Any, ...], leaves: list[Any]) -> Any:
        """Result of the program. Its assignments to models are atomic."""
        shapes = tuple([leaf.shape if hasattr(type(leaf), "shape") else type(leaf) for leaf in leaves])
        known = self.known.get(shapes)
        if known is not None:
            for leaf in leaves:
                if is_writing(leaf):
                    # Copied outside the program, which would otherwise be traced twice: with the copies and without.
                    leaf.copy_shared_state()
            if not known:
                return self.run(*call)
            with uninterrupted():
                return self.run(*call)
        f, _, _, *given = call
        held = _tensors_of(given)
        others = captures_of(f, given, self.home).models
        for leaf in (*leaves, *others):
            if is_writing(leaf):
                leaf.copy_shared_state()
        with uninterrupted():
            try:
                # Compilation is slow, so allow Ctrl-C; the arguments are restored, but captured models cannot be.
                with nullcontext() if others else interruptible():
                    result = self.run(*call)
            except BaseException:
                _restore(held)
                raise
        self.known[shapes] = bool(held or others)
        return result

    def _alias_captured(self, given: Any) -> Any:
        """Arguments, with an alias for each tensor that the function also captures.

        torch 2.13 treats a tensor that is both an argument and a global as one input, and does not check in later calls
        that both are still the same tensor (``torch._dynamo.guards.make_dupe_guard``).
        """
        held = {id(dispatch.unwrap(x)) for name in self.names for x in _tree.leaves(name.cell_contents)}
        for model in self.models:
            held.update(map(id, model.tensors().values()))

        def aliased(leaf: Any) -> Any:
            native = dispatch.unwrap(leaf) if is_tensor(leaf) else leaf
            if id(native) not in held or not is_tensor(native):
                return leaf
            other = self.engine.aliased(native)
            return other if native is leaf else dispatch.wrap(other, leaf.home)

        return _tree.map(aliased, given)


def _is_numpy_number(leaf: Any) -> bool:
    """Whether ``leaf`` is a NumPy scalar or a zero-dimensional array."""
    return is_tensor(leaf) and is_number(leaf)


def _convert_numpy_numbers(given: Any, home: Backend) -> Any:
    """Arguments, with NumPy integers and bools as Python numbers, and floats as tensors."""

    def read(leaf: Any) -> Any:
        if not _is_numpy_number(leaf):
            return leaf
        number = leaf.item()
        return number if isinstance(number, int) else as_tensor(home, leaf, ())

    return _tree.map(read, given)


def _tensors_of(args: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Stateful arguments with their current tensors."""
    return [(state, dict(state.tensors())) for state in states(args)]


def _restore(held: list[tuple[Any, dict[str, Any]]]) -> None:
    for state, old in held:
        state.assign(old)


def _plain_error(call: tuple[Any, ...]) -> Exception | None:
    """Error of the call without compilation, which names operation and layer. Its assignments are undone."""
    before = _tensors_of(call[3:])
    try:
        _counted(*call)
    except Exception as error:
        return error
    finally:
        _restore(before)
    return None


class _Program:
    """Compiled function of an engine that traces functions of tensors, with one program per cache key."""

    def __init__(self, f: Callable[..., Any], engine: Any, home: Backend) -> None:
        self.f, self.engine, self.home = unpacking(f), engine, home
        self.key_tensor = getattr(engine, "key_tensor", partial(_key_tensor, home=home))
        self.entries: dict[Hashable, _Entry] = {}
        self.keys = Keys()
        self.search: Search | None = None
        self.captured: tuple[list[Any], list[Any], Hashable] = [], [], ()
        self.has_warned = False

    def __call__(self, key: Sequence[int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with _one_at_a_time:
            return self._run(self.key_tensor(key), (args, kwargs))

    def _run(self, random_key: Any, args: tuple[Any, ...]) -> Any:
        models, cells, constants = self._captures(args)
        args = (models, [cell.cell_contents for cell in cells]), *args
        known = self._known(args, constants)
        if known is not None:
            program, tensors = known
            tensors.insert(0, random_key)
            return program(tensors)
        f, chosen = with_captures(self.f, cells), tuple(range(len(args)))
        call = Call("compile", f, args, {}, chosen, strict=False, everything=True, home=self.home)
        places = zip(_tree.leaves(args), call.places, strict=True)
        numbers = [leaf for leaf, place in places if place is STATIC and is_tensor(leaf)]
        paths = {id(place[0]): place[1] for place in call.places if type(place) is tuple}
        key = self._key(args, (constants, of_constants(numbers)) if numbers else constants, paths)
        entry = self.entries.get(key)
        if entry is None:
            self._make_room()
            entry = self.entries[key] = _Entry(call.without_tensors(), self.engine)
        call.tensors.insert(0, random_key)
        return entry(call.tensors)

    def _key(self, args: Any, constants: Hashable, paths: Mapping[int, list[str]]) -> Hashable:
        return self.keys.of_call(args, constants, paths), threefry.here.rows

    def _known(self, args: Any, constants: Hashable) -> tuple[_Entry, list[Any]] | None:
        """Program of an earlier call, and its tensors; ``None`` if there is none, or if a leaf must be converted."""
        kinds: Any = self.home.kinds
        tensors: list[Any] = []
        paths: dict[int, list[str]] = {}
        for leaf in _tree.leaves(args):
            if isinstance(leaf, kinds):
                tensors.append(leaf)
            elif is_stateful(leaf):
                values = leaf.tensors()
                paths[id(leaf)] = list(values)
                tensors += values.values()
            elif isinstance(native := dispatch.unwrap(leaf), kinds):
                tensors.append(native)
            elif type(leaf) not in PLAIN:
                return None
        if not all(isinstance(x, kinds) for x in tensors):
            return None
        known = self.entries.get(self._key(args, constants, paths))
        return None if known is None else (known, tensors)

    def _captures(self, args: Any) -> tuple[list[Any], list[Any], Hashable]:
        """Models and cells that the function captures, and the key of its other captures.

        They are searched again if anything that the last search read is another object now.
        """
        given = [leaf for leaf in _tree.leaves(args) if is_stateful(leaf)]
        if self.search is None or not self.search.holds(given):
            self.search = Search(self.home, given)
            models, cells, values = self.search.run(self.f)
            self.captured = models, cells, of_constants(values)
        return self.captured

    def _make_room(self) -> None:
        """Drop the oldest program if the limit is reached, and warn the first time."""
        if len(self.entries) < _PROGRAMS:
            return
        self.entries.pop(next(iter(self.entries)))
        if not self.has_warned:
            self.has_warned = True
            warn(
                f"compile: a function was compiled for the {_PROGRAMS + 1}th time, each for other numbers, options or "
                "models. A number that is another in every call is best given as a tensor, or held in a Buffer"
            )


# While a function is traced, its models and closures hold tracers, which another thread must not use.
_one_at_a_time = threading.RLock()

# Number of programs kept per function.
_PROGRAMS = 16


class _Entry:
    """A program, and the changes that the function made to attributes while it was traced."""

    def __init__(self, call: Call, engine: Any) -> None:
        self.call = call
        self.run = engine.compiled_flat(self.traced, self.replaced if call.states else None)
        self.is_traced = self.is_known = False
        self.before: Attributes = []
        self.changes: Attributes = []
        # Stateful objects, with the paths of the tensors that the function assigned to them.
        self.assigned: list[tuple[Any, list[str]]] = []

    def traced(self, key: Any, *tensors: Any) -> tuple[Any, ...]:
        if self.is_traced:
            # Engines may trace a function twice in one call.
            for part, values in self.before:
                part.__dict__.update(values)
        self.before = attributes(self.call.states)
        with random.stream(key):
            found = self.call.joined(*tensors)
        self.changes = changed(self.before, attributes(self.call.states))
        self.assigned = [(state, list(new)) for state, new in self.call.assigned if new]
        self.is_traced = True
        return found

    def replaced(self) -> list[int]:
        """Places of the input tensors in whose stead the function, which was traced, assigned others to their model."""
        new = {id(state): assigned for state, assigned in self.call.assigned}
        found: list[int] = []
        # The first input is the random key.
        count = 1
        for place in self.call.places:
            if is_mark(place):
                count += 1
            elif place is not STATIC:
                state, paths = place
                found += [count + i for i, path in enumerate(paths) if path in new.get(id(state), ())]
                count += len(paths)
        return found

    def __call__(self, tensors: Sequence[Any]) -> Any:
        if not self.call.states:
            return self._finish(self._run(tensors))
        with uninterrupted():
            if self.is_known:
                return self._finish(self._run(tensors))
            held = [(state, dict(state.tensors())) for state in self.call.states]
            prepare = getattr(self.run, "prepare", None)
            try:
                with interruptible():
                    found = self._run(tensors, prepare)
            except BaseException:
                _restore(held)
                raise
            self.is_known = True
            # The program takes over the memory of tensors that nothing else refers to.
            del held
            return self._finish(found if prepare is None else self._run(tensors))

    def _run(self, tensors: Sequence[Any], run: Callable[..., Any] | None = None) -> Any:
        self.is_traced = False
        return (run or self.run)(*tensors)

    def _finish(self, found: Any) -> Any:
        """Assign the tensors and attributes that the function assigned, and return the result of the call."""
        call = self.call
        if not self.is_traced:
            for part, values in self.changes:
                part.__dict__.update(values)
        start = call.count
        for state, paths in self.assigned:
            end = start + len(paths)
            state.assign(dict(zip(paths, found[start:end], strict=True)))
            start = end
        return found[0] if call.structure is TRACED else call.result(found[: call.count])
