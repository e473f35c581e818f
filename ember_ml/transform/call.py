"""One call of a transformed function: trees for the caller, flat lists of tensors for the engine."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, TypeVar

from ember_ml import dispatch
from ember_ml import tree as _tree
from ember_ml.backend import Backend
from ember_ml.dispatch import is_tensor
from ember_ml.dispatch.tensor_types import NUMBERS as _NUMBERS
from ember_ml.dtypes import KINDS, describe, with_article, written
from ember_ml.random import threefry
from ember_ml.transform.captures import captures_of, is_number, is_stateful
from ember_ml.transform.leaves import as_tensor, engine_of, find_backend, parameters, states

F = TypeVar("F", bound=Callable[..., Any])


def named(transformed: Callable[..., Any], f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """``transformed`` with the signature and docstring of ``f``, and a name such as ``grad(f)``."""
    update_wrapper(transformed, f, assigned=("__module__", "__doc__"), updated=())
    transformed.__name__ = transformed.__qualname__ = f"{name}({getattr(f, '__name__', type(f).__name__)})"
    return transformed


def unpacking(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as a function of a tuple of positional arguments and a dictionary of keyword arguments."""
    return lambda args, kwargs: f(*args, **kwargs)


def is_compiled() -> bool:
    """Whether this code is being compiled: the key of the random stream is then a traced tensor."""
    block = threefry.here.block
    return block is not None and type(block.key[0]) is not int


class _Watch(threading.local):
    """Tensors that are being differentiated with respect to, on engines that cannot tell from the tensor itself."""

    def __init__(self) -> None:
        self.levels: list[Sequence[Any]] = []

    def sees(self, x: Any) -> bool:
        return any(x is other for level in self.levels for other in level)


watch = _Watch()


class Call:
    """One call of a transformed function, with the chosen arguments as a flat list of tensors.

    ``tensors`` are the leaves that the engine traces. ``run_flat`` runs the function with other tensors in their place.
    It returns two tuples: the leaves of the result, and the tensors that are passed on without being differentiated
    (auxiliary tensors, and those assigned to stateful arguments). ``scalar`` does the same for a function that must
    return a number.

    Args:
        name: name of the transform, for errors.
        chosen: positions of the arguments to trace.
        has_aux: whether the function returns a pair of value and auxiliary tree.
        strict: whether a chosen leaf that is not a floating tensor is an error.
        everything: whether to trace all tensors of the chosen arguments, not only floating ones.
        home: engine of the tensors, if it is known. The models that the function captures are then arguments too.
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
        home: Backend | None = None,
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
        # For each leaf of the chosen arguments a mark, or a stateful argument with the paths of its tensors.
        self.places: list[Any] = []
        self.tensors: list[Any] = []
        self.structure: Any = None
        self.assigned: list[tuple[Any, dict[str, Any]]] = []
        # Position in the random stream at which the first run began.
        self.draws: threefry.Position | None = None
        self.home = home or find_backend(name, [args[i] for i in chosen], (args, kwargs))
        self.engine = engine_of(self.home, name)
        self.states = states((args, kwargs))
        if home is None and ((name in _REPEATED and not is_compiled()) or getattr(self.engine, "EXPIRES", False)):
            self.states += captures_of(f, (args, kwargs), self.home)[0]
        for i in chosen:
            for leaf in _tree.leaves(args[i]):
                self._add_leaf(leaf, i, strict)

    def _add_leaf(self, leaf: Any, position: int, strict: bool) -> None:
        if is_stateful(leaf):
            values = leaf.tensors() if self.everything else parameters(leaf, self.name)
            self.places.append((leaf, list(values)))
            home, kinds = self.home, self.home.kinds
            # A model of NumPy arrays computes on the active engine.
            self.tensors += [x if isinstance(x, kinds) else as_tensor(home, x, self.tensors) for x in values.values()]
            return
        x = None if self._is_constant(leaf) else as_tensor(self.home, leaf, self.tensors)
        if x is not None and (self.everything or self.home.dtype_of(x).kind in KINDS["floating"]):
            self.places.append(WRAPPED if dispatch.holds_wrapped((leaf,)) else TRACED)
            self.tensors.append(x)
        elif strict and leaf is not None:
            raise TypeError(
                f"{self.name}: argument {position} must hold floating tensors to differentiate with respect to, got "
                f"{describe(leaf)}"
            )
        else:
            self.places.append(STATIC)

    def _is_constant(self, leaf: Any) -> bool:
        """Whether ``leaf`` is a number that is passed to the function unchanged."""
        if not self.keeps_numbers:
            return self.everything and type(leaf) in _NUMBERS
        kinds: Any = self.home.kinds
        return not isinstance(leaf, kinds) and is_number(leaf)

    def _check_given(self, given: list[tuple[Any, dict[str, Any]]]) -> None:
        """Raise an error if two of the chosen models share a parameter, since its gradient would be ambiguous."""
        for state, now in given:
            held = state.tensors()
            for path, x in now.items():
                if held[path] is not x:
                    raise ValueError(
                        f"{self.name}: a tensor must be differentiated with respect to once, got {path!r} of a "
                        f"{type(state).__name__} twice: another of the models that are given has it as well"
                    )

    def run_flat(self, *tensors: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Run the function on these tensors; return the tensors of the result and those passed on."""
        result = self.run(tensors)
        if self.has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                if self.name == "custom_gradient":
                    wanted = "the function must return a pair of value and gradient function"
                else:
                    wanted = "the function must return a pair of value and aux for has_aux=True"
                raise TypeError(f"{self.name}: {wanted}, got {_describe_result(result)}")
            result, self.aux = result
        outputs: list[Any] = []

        def taken(leaf: Any) -> Any:
            if self.name in _DERIVATIVES:
                self._check_output(leaf)
            x = leaf if self.keeps_numbers and type(leaf) in _NUMBERS else as_tensor(self.home, leaf, tensors)
            if x is None and not self.everything:
                raise TypeError(f"{self.name}: the function must return tensors, got {written(leaf)}")
            if x is None or type(x) in _NUMBERS:
                return leaf
            outputs.append(x)
            return WRAPPED if dispatch.holds_wrapped((leaf,)) else TRACED

        self.structure = _tree.map(taken, result)
        self.count = len(outputs)
        return tuple(outputs), self._passing()

    def _check_output(self, leaf: Any) -> None:
        """Raise an error if ``leaf`` is not a tensor of this engine: its derivative would always be zero."""
        x = dispatch.unwrap(leaf)
        kind, kinds = type(x), self.home.kinds
        if not isinstance(x, kinds) and dispatch.classify(kind) in (dispatch.NUMBER, dispatch.HOST):
            raise TypeError(
                f"{self.name}: the function must return tensors, got {with_article(kind.__name__)}, through which no "
                "gradient flows: float(x), x.item(), to_numpy(x) and the like take numbers out of the engine. "
                "ops.asarray makes a tensor of a constant, whose gradient is zero"
            )

    def joined(self, *tensors: Any) -> tuple[Any, ...]:
        """As ``run_flat``, in one tuple. The first ``count`` tensors are those of the result."""
        outputs, passing = self.run_flat(*tensors)
        return (*outputs, *passing)

    def without_tensors(self) -> Call:
        """Copy of this call without its tensors, to keep with a compiled program."""
        places = iter(self.places)
        empty = copy.copy(self)
        empty.args = tuple(_tree.map(lambda leaf: None if is_mark(next(places)) else leaf, list(self.args)))
        empty.tensors = []
        return empty

    def scalar(self, *tensors: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """As ``run_flat``, for a function that must return a real floating scalar."""
        outputs, passing = self.run_flat(*tensors)
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
        """Result of the function with these tensors in place of the original ones. Its assignments are undone."""
        rest, places = iter(tensors), iter(self.places)
        before = [dict(state.tensors()) for state in self.states]
        given: list[tuple[Any, dict[str, Any]]] = []

        def placed(leaf: Any) -> Any:
            place = next(places)
            if place is STATIC:
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
                result = self.f(*args, **self.kwargs)
                self.draws = threefry.since(*began)
                return result
            # Engines may run a function again, for the gradient or for another slice; it draws the same numbers then.
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
        """``x``, as an ``EmberTensor`` if ``place`` is marked so."""
        return dispatch.wrap(x, self.home) if place is WRAPPED else x

    def _passing(self) -> tuple[Any, ...]:
        leaves = [dispatch.unwrap(leaf) for leaf in _tree.leaves(self.aux) if is_tensor(leaf)]
        return tuple(leaves + [x for _, new in self.assigned for x in new.values()])

    def close(self, passing: Sequence[Any]) -> None:
        """Put the tensors passed on, now computed, into ``aux`` and the stateful arguments."""
        rest = iter(passing)

        def settled(leaf: Any) -> Any:
            if not is_tensor(leaf):
                return leaf
            return self._wrapped(WRAPPED if dispatch.holds_wrapped((leaf,)) else TRACED, next(rest))

        self.aux = _tree.map(settled, self.aux)
        for state, new in self.assigned:
            if new:
                state.assign({path: next(rest) for path in new})

    def check_unchanged(self) -> None:
        """Raise an error if the function assigned to a model, since each slice would assign different tensors."""
        for state, new in self.assigned:
            if new:
                raise ValueError(
                    f"{self.name}: the function must not assign to a model, got {', '.join(new)} of a "
                    f"{type(state).__name__}, which can have those of one slice alone; eval() keeps the statistics of "
                    "a model as they are"
                )

    def result(self, outputs: Sequence[Any]) -> Any:
        """Tensors in the structure of the result of the function."""
        rest = iter(outputs)
        return _tree.map(lambda leaf: self._wrapped(leaf, next(rest)) if is_mark(leaf) else leaf, self.structure)

    def gradients(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Tensors in the structure of the chosen arguments."""
        rest, places = iter(tensors), iter(self.places)

        def placed(_: Any) -> Any:
            place = next(places)
            if place is STATIC:
                return None
            return self._wrapped(place, next(rest)) if is_mark(place) else {path: next(rest) for path in place[1]}

        return tuple([_tree.map(placed, self.args[i]) for i in self.chosen])

    def cotangents(self, outputs: Sequence[Any], cotangent: Any) -> list[Any]:
        """Leaves of ``cotangent``, which must have the structure, shapes and dtypes of the outputs."""
        leaves: list[Any] = []
        _tree.map(lambda _, leaf: leaves.append(leaf), self.structure, cotangent)
        return [self._like(x, leaf, "cotangent") for x, leaf in zip(outputs, leaves, strict=True)]

    def tangents(self, tangents: Sequence[Any]) -> list[Any]:
        """Leaves of ``tangents``, which must have the structure, shapes and dtypes of the chosen arguments."""
        found: list[Any] = []
        places = iter(self.places)

        def taken(_: Any, tangent: Any) -> None:
            place = next(places)
            if is_mark(place):
                found.append(tangent)
            elif place is not STATIC:
                found.extend(tangent.value[path] for path in place[1])

        for i in self.chosen:
            shielded = _shield_states(self.args[i], tangents[i])
            _tree.map(taken, self.args[i], shielded)
        return [self._like(x, leaf, "tangent") for x, leaf in zip(self.tensors, found, strict=True)]

    def gradient_like(self, x: Any, gradient: Any) -> Any:
        """``gradient`` as a tensor of the shape and dtype of ``x``."""
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
    """Mark of a native tensor."""


class WRAPPED:
    """Mark of an ``EmberTensor``."""


class STATIC:
    """Mark of a leaf of the chosen arguments that is not traced."""


# Transforms that compute derivatives.
_DERIVATIVES = frozenset({"grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian"})

# Transforms that may run a function more than once. Its assignments to captured models must happen once.
_REPEATED = frozenset({"vjp", "jvp", "jacobian", "hessian", "vmap"})


def _describe_result(result: Any) -> str:
    """Description of a result: a tuple with its length, anything else by its type."""
    return f"a tuple of {len(result)}" if type(result) is tuple else written(result)


def is_mark(place: Any) -> bool:
    """Whether ``place`` is the mark of a tensor; compared by identity, which compilers can trace."""
    return place is TRACED or place is WRAPPED


class _Shield:
    """Dictionary that is one leaf of a tree."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value


def _shield_states(tree: Any, other: Any) -> Any:
    """``other``, with the dictionaries at the stateful leaves of ``tree`` wrapped as leaves."""
    if is_stateful(tree):
        return _Shield(other)
    if isinstance(tree, dict) and isinstance(other, dict):
        return {key: _shield_states(tree.get(key), child) for key, child in other.items()}
    if isinstance(tree, (list, tuple)) and isinstance(other, (list, tuple)) and len(tree) == len(other):
        return type(other)([_shield_states(a, b) for a, b in zip(tree, other, strict=True)])
    return other
