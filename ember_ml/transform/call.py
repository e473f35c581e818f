"""One call of a function under a transform: trees outside, a flat list of tensors for the engine."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, TypeVar

from ember_ml import dispatch
from ember_ml import tree as _tree
from ember_ml.dispatch import is_tensor
from ember_ml.dispatch.tensor_types import NUMBERS as _NUMBERS
from ember_ml.dtypes import KINDS, describe, with_article, written
from ember_ml.random import threefry
from ember_ml.transform.captures import captures_of, is_number, is_stateful
from ember_ml.transform.leaves import as_tensor, engine_of, home_of, parameters, states

F = TypeVar("F", bound=Callable[..., Any])


def named(transformed: Callable[..., Any], f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """``transformed`` with the signature and documentation of ``f``, and a name that says what was done to it."""
    update_wrapper(transformed, f, assigned=("__module__", "__doc__"), updated=())
    transformed.__name__ = transformed.__qualname__ = f"{name}({getattr(f, '__name__', type(f).__name__)})"
    return transformed


def unpacking(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as a function of its positional arguments in one tuple and its keyword arguments in a dictionary."""
    return lambda args, kwargs: f(*args, **kwargs)


def is_compiled() -> bool:
    """Whether this is compiled code, where the key of the stream is known to the engine alone."""
    block = threefry.here.block
    return block is not None and type(block.key[0]) is not int


class _Watch(threading.local):
    """The tensors that stand for those being differentiated with respect to, on engines that cannot tell."""

    def __init__(self) -> None:
        self.levels: list[Sequence[Any]] = []

    def sees(self, x: Any) -> bool:
        return any(x is other for level in self.levels for other in level)


watch = _Watch()


class Call:
    """One call of a function under a transform: its chosen arguments as a flat list of tensors, and the way back.

    ``tensors`` are the leaves that the engine traces. ``flat`` runs the function on tensors in their place and answers
    two tuples of tensors: the leaves of its answer, and what passes by untraced (auxiliary tensors, and those assigned
    to stateful arguments). ``scalar`` is the same for a function whose answer must be a number.
    """

    def __init__(
        self,
        name: str,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        chosen: tuple[int, ...],
        *,
        has_aux: bool = False,
        strict: bool = True,
        everything: bool = False,
    ) -> None:
        self.name = name
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.chosen = chosen
        self.has_aux = has_aux
        self.everything = everything
        self.keeps_numbers = name in ("compile", "checkpoint")
        self.aux: Any = None
        self.count = 0
        # The containers of the chosen arguments, with a leaf or the paths of a stateful argument at each place.
        self.places: list[Any] = []
        self.tensors: list[Any] = []
        self.structure: Any = None
        self.states = states((args, kwargs))
        if name in _REPEATED and not is_compiled():
            self.states += captures_of(f, (args, kwargs), home_of(name, [args[i] for i in chosen], (args, kwargs)))[0]
        self.assigned: list[tuple[Any, dict[str, Any]]] = []
        # Where in the random stream the first run began.
        self.draws: tuple[Any, int] | None = None
        self.home = home_of(name, [args[i] for i in chosen], (args, kwargs))
        self.engine = engine_of(self.home, name)
        for i in chosen:
            for leaf in _tree.leaves(args[i]):
                self._enter(leaf, i, strict)

    def _enter(self, leaf: Any, position: int, strict: bool) -> None:
        if is_stateful(leaf):
            values = leaf.tensors() if self.everything else parameters(leaf, self.name)
            self.places.append((leaf, list(values)))
            home, kinds = self.home, self.home.kinds
            # A model of NumPy's arrays computes on the active engine.
            self.tensors += [x if isinstance(x, kinds) else as_tensor(home, x, self.tensors) for x in values.values()]
            return
        x = None if self._stays(leaf) else as_tensor(self.home, leaf, self.tensors)
        if x is not None and (self.everything or self.home.dtype_of(x).kind in KINDS["floating"]):
            self.places.append(PORTABLE if dispatch.holds_wrapped((leaf,)) else TRACED)
            self.tensors.append(x)
        elif strict and leaf is not None:
            raise TypeError(
                f"{self.name}: argument {position} must hold floating tensors to differentiate with respect to, got "
                f"{describe(leaf)}"
            )
        else:
            self.places.append(STILL)

    def _stays(self, leaf: Any) -> bool:
        """Whether ``leaf`` is a number, and the function is to be given it as it is."""
        if not self.keeps_numbers:
            return self.everything and type(leaf) in _NUMBERS
        kinds: Any = self.home.kinds
        return not isinstance(leaf, kinds) and is_number(leaf)

    def _check_given(self, given: list[tuple[Any, dict[str, Any]]]) -> None:
        """Raise an error if two of the chosen models are one, or one part of the other: whose would a gradient be?"""
        for state, now in given:
            held = state.tensors()
            for path, x in now.items():
                if held[path] is not x:
                    raise ValueError(
                        f"{self.name}: a tensor must be differentiated with respect to once, got {path!r} of a "
                        f"{type(state).__name__} twice: another of the models that are given has it as well"
                    )

    def flat(self, *tensors: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The tensors of the answer, and those that pass by, when the function is run on these tensors."""
        answer = self.run(tensors)
        if self.has_aux:
            if not isinstance(answer, tuple) or len(answer) != 2:
                if self.name == "custom_gradient":
                    wanted = "the function must return a pair of value and gradient function"
                else:
                    wanted = "the function must return a pair of value and aux for has_aux=True"
                raise TypeError(f"{self.name}: {wanted}, got {_shown(answer)}")
            answer, self.aux = answer
        outputs: list[Any] = []

        def taken(leaf: Any) -> Any:
            if self.name in _DERIVATIVES:
                self._check_answer(leaf)
            x = leaf if self.keeps_numbers and type(leaf) in _NUMBERS else as_tensor(self.home, leaf, tensors)
            if x is None and not self.everything:
                raise TypeError(f"{self.name}: the function must return tensors, got {written(leaf)}")
            if x is None or type(x) in _NUMBERS:
                return leaf
            outputs.append(x)
            return PORTABLE if dispatch.holds_wrapped((leaf,)) else TRACED

        self.structure = _tree.map(taken, answer)
        self.count = len(outputs)
        return tuple(outputs), self._passing()

    def _check_answer(self, leaf: Any) -> None:
        """Raise an error if ``leaf`` is no tensor of this engine: its derivative would be zero, whatever it is."""
        x = dispatch.unwrap(leaf)
        kind, kinds = type(x), self.home.kinds
        if not isinstance(x, kinds) and dispatch.classify(kind) in (dispatch.NUMBER, dispatch.HOST):
            raise TypeError(
                f"{self.name}: the function must return tensors, got {with_article(kind.__name__)}, through which no "
                "gradient flows: float(x), x.item(), to_numpy(x) and the like take numbers out of the engine. "
                "ops.asarray makes a tensor of a constant, whose gradient is zero"
            )

    def joined(self, *tensors: Any) -> tuple[Any, ...]:
        """As ``flat``, in one tuple, of which the first ``count`` are the answer's."""
        outputs, passing = self.flat(*tensors)
        return (*outputs, *passing)

    def emptied(self) -> Call:
        """This call without its tensors, which need not be kept once the function is compiled."""
        places = iter(self.places)
        empty = copy.copy(self)
        empty.args = tuple(_tree.map(lambda leaf: None if is_mark(next(places)) else leaf, list(self.args)))
        empty.tensors = []
        return empty

    def scalar(self, *tensors: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """As ``flat``, for a value that can be differentiated."""
        outputs, passing = self.flat(*tensors)
        if not is_mark(self.structure):
            raise TypeError(
                f"{self.name}: the function must return one number, got a {type(self.structure).__name__}"
                + ("; has_aux=True passes on what comes with it" if isinstance(self.structure, tuple) else "")
            )
        (value,) = outputs
        if len(value.shape):
            raise TypeError(
                f"{self.name}: the function must return a 0-d tensor, got shape {list(value.shape)}; vjp takes any"
            )
        kind = self.home.dtype_of(value).kind
        if kind != "real floating":
            raise TypeError(f"{self.name}: the function must return a real floating number, got {describe(value)}")
        return outputs, passing

    def run(self, tensors: Sequence[Any]) -> Any:
        """The function's own answer, with these tensors in the place of the ones it was given."""
        rest, places = iter(tensors), iter(self.places)
        before = [dict(state.tensors()) for state in self.states]
        given: list[tuple[Any, dict[str, Any]]] = []

        def placed(leaf: Any) -> Any:
            place = next(places)
            if place is STILL:
                return leaf
            if is_mark(place):
                return self._wrapped(place, next(rest))
            state, paths = place
            now = {path: next(rest) for path in paths}
            given.append((state, now))
            state.assign(now)
            return state

        args = list(self.args)
        for i in self.chosen:
            args[i] = _tree.map(placed, args[i])
        is_watched = self.name in _DERIVATIVES and not hasattr(self.engine, "is_traced")
        if is_watched:
            watch.levels.append(tensors)
        try:
            if len(given) > 1 and self.name in _DERIVATIVES:
                self._check_given(given)
            if self.name == "compile":
                return self.f(*args, **self.kwargs)
            if self.draws is None:
                began = threefry.position()
                answer = self.f(*args, **self.kwargs)
                self.draws = threefry.since(*began)
                return answer
            # An engine may run it again, for the gradient or for another slice: with the same random numbers.
            with threefry.repeated(*self.draws):
                return self.f(*args, **self.kwargs)
        finally:
            if is_watched:
                watch.levels.pop()
            self.assigned = []
            for state, old in zip(self.states, before, strict=True):
                start = dict(old)
                for other, now in given:
                    if other is state:
                        start.update(now)
                after = state.tensors()
                self.assigned.append((state, {path: x for path, x in after.items() if x is not start.get(path)}))
                state.assign(old)

    def _wrapped(self, place: Any, x: Any) -> Any:
        """``x`` in the kind of tensor that is at a place."""
        return dispatch.wrap(x, self.home) if place is PORTABLE else x

    def _passing(self) -> tuple[Any, ...]:
        leaves = [dispatch.unwrap(leaf) for leaf in _tree.leaves(self.aux) if is_tensor(leaf)]
        return tuple(leaves + [x for _, new in self.assigned for x in new.values()])

    def close(self, passing: Sequence[Any]) -> None:
        """Put what passed by, now untraced, where it belongs."""
        rest = iter(passing)

        def settled(leaf: Any) -> Any:
            if not is_tensor(leaf):
                return leaf
            return self._wrapped(PORTABLE if dispatch.holds_wrapped((leaf,)) else TRACED, next(rest))

        self.aux = _tree.map(settled, self.aux)
        for state, new in self.assigned:
            if new:
                state.assign({path: next(rest) for path in new})

    def check_unchanged(self) -> None:
        """Raise an error if the function assigned anything to a model: it would be another thing for each slice."""
        for state, new in self.assigned:
            if new:
                raise ValueError(
                    f"{self.name}: the function must not assign to a model, got {', '.join(new)} of a "
                    f"{type(state).__name__}, which can have those of one slice alone; eval() keeps the statistics of "
                    "a model as they are"
                )

    def answer(self, outputs: Sequence[Any]) -> Any:
        """These tensors in the structure of the function's answer."""
        rest = iter(outputs)
        return _tree.map(lambda leaf: self._wrapped(leaf, next(rest)) if is_mark(leaf) else leaf, self.structure)

    def gradients(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """These tensors in the structure of the chosen arguments."""
        rest, places = iter(tensors), iter(self.places)

        def placed(_: Any) -> Any:
            place = next(places)
            if place is STILL:
                return None
            return self._wrapped(place, next(rest)) if is_mark(place) else {path: next(rest) for path in place[1]}

        return tuple([_tree.map(placed, self.args[i]) for i in self.chosen])

    def cotangents(self, outputs: Sequence[Any], cotangent: Any) -> list[Any]:
        """The leaves of ``cotangent``, which must look like the outputs."""
        leaves: list[Any] = []
        _tree.map(lambda _, leaf: leaves.append(leaf), self.structure, cotangent)
        return [self._like(x, leaf, "cotangent") for x, leaf in zip(outputs, leaves, strict=True)]

    def tangents(self, tangents: Sequence[Any]) -> list[Any]:
        """The leaves of ``tangents``, which must look like the chosen arguments."""
        found: list[Any] = []
        places = iter(self.places)

        def taken(_: Any, tangent: Any) -> None:
            place = next(places)
            if is_mark(place):
                found.append(tangent)
            elif place is not STILL:
                found.extend(tangent.value[path] for path in place[1])

        for i in self.chosen:
            shielded = _shielded(self.args[i], tangents[i])
            _tree.map(taken, self.args[i], shielded)
        return [self._like(x, leaf, "tangent") for x, leaf in zip(self.tensors, found, strict=True)]

    def fitted(self, x: Any, gradient: Any) -> Any:
        """``gradient`` as a tensor of the shape of ``x``."""
        return self._like(x, gradient, "gradient")

    def _like(self, x: Any, leaf: Any, what: str) -> Any:
        """``leaf`` as a tensor of the shape and dtype of ``x``."""
        given = as_tensor(self.home, leaf, [x])
        if given is None:
            raise TypeError(f"{self.name}: each {what} must be a tensor, got {written(leaf)}")
        if tuple(given.shape) != tuple(x.shape):
            raise ValueError(
                f"{self.name}: the {what} must have shape {list(x.shape)}, as what it belongs to, got "
                f"{list(given.shape)}"
            )
        if type(leaf) in _NUMBERS:
            return self.home.cast(given, x.dtype)
        if self.home.dtype_of(given) is not self.home.dtype_of(x):
            raise TypeError(
                f"{self.name}: the {what} must be {describe(x)}, as what it belongs to, got {describe(given)}"
            )
        return given


class TRACED:
    """The mark of a place where there is a tensor."""


class PORTABLE:
    """The mark of a place where there is a tensor in an ``EmberTensor``."""


class STILL:
    """The mark of a place among the chosen arguments where there is something else."""


# The transforms that answer derivatives.
_DERIVATIVES = frozenset({"grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian"})

# Those that may run a function more than once. What it does to models that it captures is to be done once.
_REPEATED = frozenset({"vjp", "jvp", "jacobian", "hessian", "vmap"})


def _shown(answer: Any) -> str:
    """A tuple with its length, anything else by its type."""
    return f"a tuple of {len(answer)}" if type(answer) is tuple else written(answer)


def is_mark(place: Any) -> bool:
    """Whether there is a tensor; by identity, which compilers can trace."""
    return place is TRACED or place is PORTABLE


class _Shield:
    """A dictionary that is one leaf of a tree."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value


def _shielded(tree: Any, other: Any) -> Any:
    """``other`` with the dictionaries that stand for stateful leaves of ``tree`` as leaves."""
    if is_stateful(tree):
        return _Shield(other)
    if isinstance(tree, dict) and isinstance(other, dict):
        return {key: _shielded(tree.get(key), child) for key, child in other.items()}
    if isinstance(tree, (list, tuple)) and isinstance(other, (list, tuple)) and len(tree) == len(other):
        return type(other)([_shielded(a, b) for a, b in zip(tree, other, strict=True)])
    return other
