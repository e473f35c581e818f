"""Compiled functions: the programs that engines make of them, and which of those a call runs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import Any

from ember_ml import dispatch
from ember_ml import tree as _tree
from ember_ml.dispatch import is_tensor
from ember_ml.errors import warn
from ember_ml.interrupts import interruptible, uninterrupted
from ember_ml.ops import random
from ember_ml.random import threefry
from ember_ml.transform.cache_key import Attributes, attributes, cache_key, changed
from ember_ml.transform.call import STILL, Call, F, is_compiled, named
from ember_ml.transform.captures import Name, captures_of, is_number, with_captures
from ember_ml.transform.leaves import as_tensor, engine_of, home_of, is_writing, states


def compile(f: F) -> F:
    """``f``, compiled by the engine of its tensors: ``torch.compile``, ``mx.compile``; NumPy runs ``f`` itself.

    Tensors are inputs; numbers, strings and the like are part of the program, so that other values compile it again.
    Numbers of NumPy and arrays of it without axes are numbers, unless NumPy is active; but ``torch.compile`` knows none
    of their values, and is given Python's for integers and bools, and tensors for floats.
    Models and optimisers go in and come out: what ``f`` assigns to them is there after the call. Random draws inside
    use a fresh key of the current stream on each call. A mistake is explained as without the compiler, with the names
    of the operation and of the layer.

    >>> from ember_ml import ops
    >>> compile(lambda x, n: ops.power(x, n))(ops.asarray([1.0, 2.0]), 2).tolist()
    [1.0, 4.0]
    """
    programs: dict[str, Callable[..., Any]] = {}

    def seeded(key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with random.stream(key):
            return f(*args, **kwargs)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        words = _next_words()
        if words is None:
            return f(*args, **kwargs)
        home = home_of("compile", (args, kwargs), ())
        program = programs.get(home.name)
        if program is None:
            program = programs[home.name] = _program(seeded, engine_of(home, "compile"))
        return program(home.convert(words, home.dtypes["uint32"], home.device), args, kwargs)

    return named(transformed, f, "compile")  # type: ignore[return-value]


def _next_words() -> list[int] | None:
    """The next key of the current stream; ``None`` in compiled code, where that is known to the engine alone.

    Every call takes one, whether it is used or not, so that streams go on alike on all engines.
    """
    block = threefry.here.block
    if block is None:
        return list(threefry.draw())
    if is_compiled():
        return None
    block.count += 1
    return list(threefry.child(block.key, threefry.FOLDS, block.count - 1))


def _program(f: Callable[..., Any], engine: Any) -> Callable[..., Any]:
    """``f`` compiled by an engine that traces Python, or that traces functions of tensors; else ``f`` itself."""
    if not hasattr(engine, "compiled"):
        return _Program(f, engine) if hasattr(engine, "compiled_flat") else f
    return _Traced(f, engine)


class _Traced:
    """A function for an engine that traces Python."""

    def __init__(self, f: Callable[..., Any], engine: Any) -> None:
        self.f, self.engine = f, engine
        self.run = engine.compiled(f)
        # The shapes and types that it was called with, and whether there were models: others are compiled first.
        self.known: dict[Hashable, bool] = {}
        # Whether it is known that there is something in it that cannot be compiled.
        self.is_plain = False
        # Captures that may have a global name.
        self.models: list[Any] = []
        self.names: list[Name] = []

    def __call__(self, *args: Any) -> Any:
        if self.is_plain:
            return self.f(*args)
        if not self.known:
            self.models, cells, _ = captures_of(self.f, args, home_of("compile", args[:1], ()))
            self.names = [cell for cell in cells if isinstance(cell, Name)]
        leaves = _tree.leaves(args)
        are_numbers = is_below = False
        for leaf in leaves:
            if type(leaf) is float:
                is_below = is_below or (not leaf and math.copysign(1.0, leaf) < 0)
            elif not are_numbers:
                are_numbers = _is_of_numpy(leaf)
        if are_numbers:
            args = _read(args)
        if self.names or self.models:
            args = self._apart(args)
        if is_below:
            # A compiler takes a negative zero, which is equal to the other, for the same number.
            return self.f(*args)
        try:
            return self._run(args, leaves)
        except Exception as error:
            if not self.engine.is_of_compiler(error):
                raise
            count = self.engine.uncompilable()
            mistake = _mistake(self.f, args)
            if mistake is not None:
                # Without the compiler's own words, which are many.
                raise mistake from mistake.__cause__
            if self.engine.uncompilable() == count:
                raise
            self.is_plain = True
            return self.f(*args)

    def _run(self, args: tuple[Any, ...], leaves: list[Any]) -> Any:
        """Result of the program. What it assigns to models is assigned as a whole, or not at all."""
        shapes = tuple([leaf.shape if hasattr(type(leaf), "shape") else type(leaf) for leaf in leaves])
        known = self.known.get(shapes)
        if known is not None:
            for leaf in leaves:
                if is_writing(leaf):
                    # Here, or the program would be traced twice: with the copies that this takes, and without.
                    leaf.own()
            if not known:
                return self.run(*args)
            with uninterrupted():
                return self.run(*args)
        held = _held(args)
        others = captures_of(self.f, args, home_of("compile", args[:1], ())).models
        for leaf in (*leaves, *others):
            if is_writing(leaf):
                leaf.own()
        with uninterrupted():
            try:
                # A compiler takes long. What the arguments hold is put back; of other models nothing is known.
                with nullcontext() if others else interruptible():
                    result = self.run(*args)
            except BaseException:
                _put_back(held)
                raise
        self.known[shapes] = bool(held or others)
        return result

    def _apart(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with another object for each tensor that the function also captures.

        torch 2.13 takes a tensor that is both an argument and a global for one input, and does not check in later calls
        that it is still one (``torch._dynamo.guards.make_dupe_guard``).
        """
        held = {id(dispatch.unwrap(x)) for name in self.names for x in _tree.leaves(name.cell_contents)}
        for model in self.models:
            held.update(map(id, model.tensors().values()))

        def apart(leaf: Any) -> Any:
            native = dispatch.unwrap(leaf) if is_tensor(leaf) else leaf
            if id(native) not in held or not is_tensor(native):
                return leaf
            other = self.engine.aliased(native)
            return other if native is leaf else dispatch.wrap(other, leaf.home)

        return tuple([_tree.map(apart, one) for one in args])


def _is_of_numpy(leaf: Any) -> bool:
    """Whether ``leaf`` is a number of NumPy."""
    return is_tensor(leaf) and is_number(leaf)


def _read(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, after a key, with Python's for the integers and bools of NumPy, and tensors for its floats."""
    home = home_of("compile", args[:1], ())

    def read(leaf: Any) -> Any:
        if not _is_of_numpy(leaf):
            return leaf
        number = leaf.item()
        return number if isinstance(number, int) else as_tensor(home, leaf, args[:1])

    return tuple([_tree.map(read, one) for one in args])


def _held(args: Any) -> list[tuple[Any, dict[str, Any]]]:
    """The stateful arguments with the tensors that they have."""
    return [(state, dict(state.tensors())) for state in states(args)]


def _put_back(held: list[tuple[Any, dict[str, Any]]]) -> None:
    for state, old in held:
        state.assign(old)


def _mistake(f: Callable[..., Any], args: tuple[Any, ...]) -> Exception | None:
    """What ``f`` itself raises, which names the operation and the layer; nothing that it assigns is kept."""
    before = _held(args)
    try:
        f(*args)
    except Exception as error:
        return error
    finally:
        _put_back(before)
    return None


class _Program:
    """A function for an engine that compiles functions of tensors: one of these for each structure of arguments."""

    def __init__(self, f: Callable[..., Any], engine: Any) -> None:
        self.f = f
        self.engine = engine
        self.entries: dict[Hashable, _Entry] = {}
        self.is_told = False

    def __call__(self, *args: Any) -> Any:
        with _one_at_a_time:
            return self._run(args)

    def _run(self, args: tuple[Any, ...]) -> Any:
        # The first argument is the key, which is at home.
        models, cells, names = captures_of(self.f, args, home_of("compile", args[:1], ()))
        args = (models, [cell.cell_contents for cell in cells]), *args
        call = Call(
            "compile", with_captures(self.f, cells), args, {}, tuple(range(len(args))), strict=False, everything=True
        )
        places = zip(_tree.leaves(args), call.places, strict=True)
        numbers = [leaf for leaf, place in places if place is STILL and is_tensor(leaf)]
        key = cache_key(args, [*names, *numbers])
        entry = self.entries.get(key)
        if entry is None:
            self._make_room()
            entry = self.entries[key] = _Entry(call.emptied(), self.engine)
        return entry(call.tensors)

    def _make_room(self) -> None:
        """Let go of the oldest program if there are many, and say so the first time."""
        if len(self.entries) < _PROGRAMS:
            return
        self.entries.pop(next(iter(self.entries)))
        if not self.is_told:
            self.is_told = True
            warn(
                f"compile: a function was compiled for the {_PROGRAMS + 1}th time, each for other numbers, options or "
                "models. A number that is another in every call is best given as a tensor, or held in a Buffer"
            )


# While one thread traces a function, its models and closures hold what stands for their tensors, which is of no use to
# another that runs it or one like it.
_one_at_a_time = threading.RLock()

# How many programs of one function are kept.
_PROGRAMS = 16


class _Entry:
    """A program, and what the function did to attributes while it was traced."""

    def __init__(self, call: Call, engine: Any) -> None:
        self.call = call
        self.run = engine.compiled_flat(self.traced)
        self.is_traced = self.is_known = False
        self.before: Attributes = []
        self.changes: Attributes = []

    def traced(self, *tensors: Any) -> tuple[Any, ...]:
        if self.is_traced:
            # An engine may trace it twice in one call.
            for part, values in self.before:
                part.__dict__.update(values)
        self.before = attributes(self.call.states)
        found = self.call.joined(*tensors)
        self.changes = changed(self.before, attributes(self.call.states))
        self.is_traced = True
        return found

    def __call__(self, tensors: Sequence[Any]) -> Any:
        if not self.call.states:
            return self._closed(self._run(tensors))
        with uninterrupted():
            if self.is_known:
                return self._closed(self._run(tensors))
            held = [(state, dict(state.tensors())) for state in self.call.states]
            try:
                with interruptible():
                    found = self._run(tensors)
            except BaseException:
                _put_back(held)
                raise
            self.is_known = True
            return self._closed(found)

    def _run(self, tensors: Sequence[Any]) -> Any:
        self.is_traced = False
        return self.run(*tensors)

    def _closed(self, found: Any) -> Any:
        """Result of the call, after what the program assigned is assigned."""
        if not self.is_traced:
            for part, values in self.changes:
                part.__dict__.update(values)
        self.call.close(found[self.call.count :])
        return self.call.answer(found[: self.call.count])
