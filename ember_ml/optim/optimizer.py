"""Base class of optimizers: their state, the learning rate, and the application of the update rule."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from ember_ml import ops, tree
from ember_ml.backend import use_backend
from ember_ml.dtypes import KINDS, describe, written
from ember_ml.extend import Backend, backend_of, current_backend
from ember_ml.interrupts import uninterrupted
from ember_ml.optim.clipping import clip_by_global_norm, clip_by_value

Tensors: TypeAlias = dict[str, Any]
Schedule: TypeAlias = Callable[[Any], Any]

STEP, RATE = "step", "learning_rate"


class Plan(NamedTuple):
    """An update, computed but not yet written to the state."""

    paths: list[str]
    # The new parameters. If ``write`` is given, they are buffers that it fills.
    new: list[Any]
    states: dict[str, Tensors]
    write: Callable[[], None] | None
    step: Any
    ages: dict[str, int]
    counts: dict[int, Any]
    is_traced: bool

    def section(self) -> AbstractContextManager[None]:
        """Context manager in which the update is committed without interruption."""
        # Signals cannot be deferred in traced code; the caller of the compiled program does it.
        return nullcontext() if self.is_traced else uninterrupted()


class Optimizer:
    """Base class of optimizers.

    A subclass defines ``rule`` and, optionally, ``memory`` or ``start``, and ``common``. The state consists of tensors
    on the device of the parameters: the number of steps, the learning rate, and the state of each parameter. Compiled
    functions and checkpoints include it. A parameter that missed steps, because it was frozen or had no gradient, has
    its own step count.

    Args:
        learning_rate: a number, or a schedule: a function from the number of steps so far to the learning rate.
        clip_value: largest absolute value of an element of a gradient; larger elements are clipped.
        clip_norm: largest global norm of the gradients; larger gradients are all scaled by the same factor.

    >>> class Descent(Optimizer):
    ...     def rule(self, parameter, gradient, state, common):
    ...         rate, _ = common
    ...         return ops.subtract(parameter, ops.multiply(rate, gradient)), state
    >>> optimizer = Descent(0.5)
    >>> optimizer.update({"w": ops.asarray([1.0])}, {"w": ops.asarray([1.0])})["w"].tolist()
    [0.5]
    """

    # Attributes that compiled programs do not depend on, or that follow from the paths of the tensors.
    _not_in_cache_key = frozenset({"_states", "_forms", "_is_owned", "_ages", "_counts"})

    def __init__(
        self, learning_rate: float | Schedule, *, clip_value: float | None = None, clip_norm: float | None = None
    ) -> None:
        self.clip_value = _positive(self, "clip_value", clip_value)
        self.clip_norm = _positive(self, "clip_norm", clip_norm)
        self._step: Any = None
        self._rate: Any = None
        self._schedule: Schedule | None = None
        self._states: dict[str, Tensors] = {}
        # Parameters that missed a step: the number of the count that each uses, and the counts by number.
        self._ages: dict[str, int] = {}
        self._counts: dict[int, Any] = {}
        # Native dtype and shape of each parameter, and the names of its state.
        self._forms: dict[str, tuple[Any, Any, tuple[str, ...]]] = {}
        self._is_owned = False
        self.learning_rate = learning_rate

    def memory(self) -> tuple[str, ...]:
        """Names of the state tensors of a parameter, given the current options. Names must not contain dots.

        If an option changes later so that more names are required, their tensors start at zeros.
        """
        return ()

    def start(self, parameter: Any) -> Tensors:
        """Initial state tensors of a parameter, by name."""
        return {name: state_like(parameter) for name in self.memory()}

    def common(self, step: Any, rate: Any) -> Any:
        """Values that the rule shares between parameters, from the number of this step (1, 2, ...) and its rate.

        ``step`` counts the steps of the parameter itself. A schedule counts all steps of the optimizer.
        """
        return rate, step

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        """New parameter and new state of one parameter.

        Args:
            parameter: the parameter, in float32 if its dtype is narrower.
            gradient: the gradient, in the same dtype.
            state: the state tensors of the parameter, by name.
            common: the value of ``common`` for this step.
        """
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Optimizer must define rule, got none")

    def check(self, path: str, parameter: Any) -> None:
        """Raise an error if the rule does not support this parameter."""
        dtype = ops.dtype(parameter)
        if dtype.kind not in KINDS["real floating"]:
            raise TypeError(f"{type(self).__name__}: parameters must be real floating, got {dtype.name} for {path}")

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step, as a number. It can be set to a number or a schedule."""
        if self._schedule is None:
            return float(self._rate)
        return float(self._schedule(self.step))

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if callable(value):
            self._schedule, self._rate = value, None
            return
        if isinstance(value, (str, dict, list, tuple)) or value is None:
            hint = "; the parameters are given to update" if isinstance(value, (dict, list, tuple)) else ""
            raise TypeError(
                f"{type(self).__name__}: learning_rate must be a number or a schedule, got {written(value)}{hint}"
            )
        number = float(value)
        if not number >= 0:
            raise ValueError(f"{type(self).__name__}: learning_rate must be >= 0, got {number}")
        self._schedule = None
        known = self._rate if type(self._rate) is not float else None
        like = self._step if known is None else known
        self._rate = number if like is None else ops.full_like(like, number, dtype="float32" if known is None else None)

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return 0 if self._step is None else int(self._step)  # emberlint: ignore[EMB201] it is for people to read

    def init(self, model: Any) -> Optimizer:
        """Create the state of every parameter of ``model`` and return this optimizer.

        ``update`` does this when needed. Call ``init`` before compiling a function that updates parameters.

        Args:
            model: a model, or a tree of parameters.

        >>> from ember_ml.optim import Adam
        >>> sorted(Adam().init({"w": ops.asarray([1.0])}).tensors())
        ['learning_rate', 'step', 'w.momentum', 'w.variance']
        """
        self._prepare(flat(model))
        if len(self._counts) > 1:
            self._join_counts()
        return self

    def update(self, model: Any, grads: Any) -> Any:
        """Update the parameters of a model in place; for a tree of parameters, return the new tree.

        Args:
            model: a model, or a tree of parameters.
            grads: gradients as returned by ``value_and_grad``: a dictionary by path for a model, a tree of the same
                structure for a tree. Parameters whose gradient is missing or ``None`` are not changed.

        >>> from ember_ml.optim import SGD
        >>> SGD(0.5).update([ops.asarray([1.0])], [ops.asarray([4.0])])[0].tolist()
        [-1.0]
        """
        if type(model) is dict and type(grads) is dict and not _is_nested(model):
            return {**model, **self._update(model, grads)}
        if isinstance(model, (dict, list, tuple)):
            tree.map(lambda *pair: None, model, grads)
            parameters = flat(model)
            return tree.unflatten(model, list({**parameters, **self._update(parameters, flat(grads))}.values()))
        if type(grads) is not dict and not isinstance(grads, Mapping):
            hint = "; value_and_grad returns (value, grads): pass grads only" if isinstance(grads, tuple) else ""
            raise TypeError(
                f"{type(self).__name__}: grads must be a dictionary from path to tensor, got {written(grads)}{hint}"
            )
        self._update(model.parameters(), grads, model)
        return None

    def tensors(self) -> Tensors:
        """All state tensors, by path; empty before ``init`` or the first update."""
        self._is_owned = False
        found: Tensors = {}
        if self._step is not None:
            found[STEP] = self._step
            if self._schedule is None:
                found[RATE] = self._rate
        for path, state in self._states.items():
            for name, value in state.items():
                found[f"{path}.{name}"] = value
        for path, age in self._ages.items():
            found[f"{path}.{STEP}"] = self._counts[age]
        return found

    def assign(self, values: Mapping[str, Any], /) -> None:
        """Replace the state tensors at these paths, which are those of ``tensors``.

        If ``values`` has the step count of the optimizer but none for a parameter with state, the parameter uses the
        count of the optimizer.
        """
        self._is_owned = False
        # Parameters with the same count tensor share one entry.
        ages: dict[int, int] = {}
        first = max(self._counts, default=0) + 1
        for key, value in values.items():
            path, dot, name = key.rpartition(".")
            if dot and name == STEP:
                self._ages[path] = age = ages.setdefault(id(value), first + len(ages))
                self._counts[age] = value
            elif dot:
                self._states.setdefault(path, {})[name] = value
                if STEP in values and f"{path}.{STEP}" not in values:
                    self._ages.pop(path, None)
            elif key == STEP:
                self._step = value
            elif key != RATE:
                raise ValueError(
                    f"{type(self).__name__}: a state key must be {STEP!r}, {RATE!r} or a path, got {key!r}"
                )
            elif self._schedule is None:
                self._rate = value
        used = set(self._ages.values())
        self._counts = {age: count for age, count in self._counts.items() if age in used}

    def own(self) -> None:
        """Copy state tensors that may be referenced elsewhere, so that an engine can write into them in place.

        ``update`` calls this where needed; compiled functions call it before they run.
        """
        if not self._is_owned:
            for path, state in self._states.items():
                self._states[path] = {name: ops.copy(value) for name, value in state.items()}
            self._is_owned = True

    def to_backend(self, name: str) -> Optimizer:
        """Move the state to another engine and return this optimizer.

        Args:
            name: name of the backend.

        >>> from ember_ml.optim import Adam
        >>> optimizer = Adam().init({"w": ops.asarray([1.0])}).to_backend("numpy")
        >>> {type(value).__module__ for value in optimizer.tensors().values()}
        {'numpy'}
        """
        values = self.tensors()
        with use_backend(name):
            moved = {id(value): ops.asarray(value) for value in values.values()}
        self.assign({path: moved[id(value)] for path, value in values.items()})
        return self

    def __getstate__(self) -> Any:
        from ember_ml.nn.tensor import EmberTensor

        # Native tensors of some engines lose precision when pickled.
        made: dict[str, Any] = {"_states": {}, "_forms": {}, "_ages": {}, "_counts": {}}
        state = {**self.__dict__, **made, "_step": None, "_is_owned": False}
        return state, {path: EmberTensor(value) for path, value in self.tensors().items()}

    def __setstate__(self, state: Any) -> None:
        options, tensors = state
        self.__dict__.update(options)
        self.assign({path: value.native for path, value in tensors.items()})

    def __repr__(self) -> str:
        options = {RATE: self._schedule or self._rate, **{k: v for k, v in vars(self).items() if k[0] != "_"}}
        given = (f"{name}={_shown(value)}" for name, value in options.items() if value is not None)
        return f"{type(self).__name__}({', '.join(given)})"

    def _prepare(self, parameters: Tensors) -> None:
        """Create the missing state of the parameters, including state that options set later require."""
        names = self.memory()
        # The first parameters share the step count of the optimizer, which may have been assigned.
        is_late, age = bool(self._states), max(self._counts, default=0) + 1
        if parameters:
            # Import the fused rules now, since traced code cannot import.
            _fused_rules(next(iter(parameters.values())))
        created: dict[str, Tensors] = {}
        for path, parameter in parameters.items():
            if path not in self._states:
                self.check(path, parameter)
                created[path] = self.start(parameter)
                self._forms[path] = parameter.dtype, parameter.shape, names
                if self._step is None:
                    self._step = ops.zeros((), dtype="int64", device=ops.get_device(parameter))
                if type(self._rate) is float:
                    self._rate = ops.full_like(self._step, self._rate, dtype=wide(parameter))
                if is_late and path not in self._ages:
                    self._counts.setdefault(age, ops.zeros_like(self._step))
                    self._ages[path] = age
            elif path in self._forms:
                self._extend_state(path, parameter, names)
        # New tensors are not referenced elsewhere.
        self._is_owned = self._is_owned or not self._states
        # The state changes last and at once, so that an error above leaves it unchanged.
        self._states.update(created)

    def _extend_state(self, path: str, parameter: Any, names: tuple[str, ...]) -> None:
        """Add zeros for the names that the options require and the state of a parameter lacks."""
        held = self._states[path]
        self._states[path] = {**held, **{name: state_like(parameter) for name in names if name not in held}}
        self._forms[path] = (*self._forms[path][:2], names)

    def _join_counts(self) -> None:
        """Share one tensor between parameters of equal counts; those of a checkpoint have one each."""
        numbers = {age: int(count) for age, count in self._counts.items()}
        first = {number: age for age, number in reversed(numbers.items())}
        self._ages = {path: first[numbers[age]] for path, age in self._ages.items()}
        self._counts = {age: self._counts[age] for age in first.values()}

    def _update(self, parameters: Tensors, grads: Mapping[str, Any], model: Any = None) -> Tensors:
        """New values of the parameters that have a gradient, assigned to ``model`` if it is given."""
        plan = self._plan(parameters, grads)
        if plan is None:
            return {}
        with plan.section():
            new = self._commit(plan)
            if model is not None:
                model.assign(new)
        return new

    def _plan(self, parameters: Tensors, grads: Mapping[str, Any]) -> Plan | None:
        """Plan of the update of the parameters that have a gradient; ``None`` if there are none.

        Errors are raised here, before the state changes.
        """
        paths = [path for path, gradient in grads.items() if gradient is not None and path in parameters]
        if len(paths) != len(grads):
            _check_paths(self, parameters, grads)
        if not paths:
            return None
        values, gradients = [parameters[path] for path in paths], [grads[path] for path in paths]
        for path, value, gradient in zip(paths, values, gradients, strict=True):
            if value.shape != gradient.shape:
                raise ValueError(
                    f"{type(self).__name__}: the gradient of {path} must have the shape of the parameter, "
                    f"{describe(value)}, got {describe(gradient)}"
                )
        if not self._states.keys() >= grads.keys():
            self._prepare({path: parameters[path] for path in paths})
        self._match_parameters(paths, values)
        if self.clip_value is not None:
            gradients = clip_by_value(gradients, self.clip_value)
        if self.clip_norm is not None:
            gradients = clip_by_global_norm(gradients, self.clip_norm)
        return self._apply_rule(paths, values, gradients)

    def _commit(self, plan: Plan) -> Tensors:
        """Write the new state and return the new parameters by path."""
        if plan.write is not None:
            plan.write()
        self._states.update(plan.states)
        self._step, self._ages, self._counts = plan.step, plan.ages, plan.counts
        return dict(zip(plan.paths, plan.new, strict=True))

    def _next_counts(self, paths: list[str]) -> tuple[dict[str, int], dict[int, Any]]:
        """``_ages`` and ``_counts`` after a step of the parameters at ``paths``."""
        if not self._ages and len(paths) == len(self._states):
            return self._ages, self._counts
        ages, counts, taking = dict(self._ages), dict(self._counts), set(paths)
        moving = {self._ages[path] for path in paths if path in self._ages}
        # Parameters that miss this step keep their count, separate from those that shared it and take part.
        apart: dict[int, int] = {}
        for path in self._states:
            age = self._ages.get(path, 0)
            if path not in taking and (age == 0 or age in moving):
                if age not in apart:
                    apart[age] = max(counts, default=0) + 1
                    counts[apart[age]] = self._counts[age] if age else self._step
                ages[path] = apart[age]
        for age in moving:
            counts[age] = ops.add(self._counts[age], 1)
        return ages, counts

    def _match_parameters(self, paths: list[str], values: list[Any]) -> None:
        """Convert the state to the engine and dtypes of the parameters, which may have been moved or cast."""
        backend = _compute_backend(values[0])
        kinds = backend.kinds
        if not isinstance(self._step, kinds):
            self.to_backend(backend.chosen_as)
        names = self.memory()
        for path, value in zip(paths, values, strict=True):
            old, shape, created = self._forms.get(path, (None, None, names))
            new = value.dtype
            if shape is None:
                shape = self._check_assigned(path, value)
            if tuple(shape) != tuple(value.shape):
                raise ValueError(
                    f"{type(self).__name__}: {path} must have the shape {list(shape)}, for which the optimizer has a "
                    f"state, got {describe(value)}; a parameter that takes the place of another needs a new optimizer"
                )
            # Some engines cannot compare their dtypes with other objects.
            if old is not new and (type(old) is not type(new) or old != new):
                dtype = wide(value)
                self._states[path] = {name: ops.cast(x, dtype) for name, x in self._states[path].items()}
                if path == paths[0] and self._schedule is None:
                    self._rate = ops.cast(self._rate, dtype)
                self._forms[path] = new, shape, created
            if created != names:
                self._extend_state(path, value, names)

    def _check_assigned(self, path: str, value: Any) -> Any:
        """Shape of a parameter whose state was assigned, after a check that the state has the shapes of ``start``."""
        for name, x in self.start(value).items():
            held = self._states[path].get(name)
            if held is None or tuple(held.shape) != tuple(x.shape):
                found = "none" if held is None else describe(held)
                raise ValueError(f"{type(self).__name__}: the state {path}.{name} must be {describe(x)}, got {found}")
        return value.shape

    def _apply_rule(self, paths: list[str], values: list[Any], gradients: list[Any]) -> Plan:
        """Plan of the update, by the fused rule of the engine if it supports these tensors, otherwise by ``rule``."""
        done = self._step
        rate = self._rate if self._schedule is None else self._schedule(ops.cast(done, wide(values[0])))
        step = ops.add(done, 1)
        ages, counts = self._next_counts(paths)
        # The distinct counts of these parameters, and the index of the count of each parameter.
        steps, places = [step], [0] * len(paths)
        if ages:
            own = [ages.get(path, 0) for path in paths]
            found = {age: place for place, age in enumerate(dict.fromkeys(own))}
            steps, places = [counts[age] if age else step for age in found], [found[age] for age in own]
        engine = _fused_rules(values[0])
        is_traced = engine is not None and engine.is_traced()
        name = type(self).__name__
        fused = getattr(engine, name, None) if type(self).__module__ in FUSED else None
        if fused is not None and engine.serves(name, values, gradients):
            self.own()
            states = [self._states[path] for path in paths]
            new = engine.room(values)

            def write() -> None:
                fused(self, new, values, gradients, states, steps, places, rate)

            return Plan(paths, new, {}, write, step, ages, counts, is_traced)
        commons: dict[tuple[str, int], Any] = {}
        results: list[Any] = []
        memory: dict[str, Tensors] = {}
        for path, value, gradient, place in zip(paths, values, gradients, places, strict=True):
            dtype = ops.dtype(value).name
            is_narrow = dtype in ("float16", "bfloat16")
            if is_narrow:
                value, gradient = ops.cast(value, "float32"), ops.cast(gradient, "float32")
            kind = "float64" if dtype == "float64" else "float32"
            if (kind, place) not in commons:
                # Computed per dtype, since a rate in float64 would promote float32 parameters.
                size = rate if type(rate) in (float, int) else ops.cast(rate, kind)
                commons[kind, place] = self.common(ops.cast(steps[place], kind), size)
            result, memory[path] = self.rule(value, gradient, self._states[path], commons[kind, place])
            results.append(ops.cast(result, dtype) if is_narrow else result)
        return Plan(paths, results, memory, None, step, ages, counts, is_traced)


def wide(parameter: Any) -> str:
    """Dtype that a rule computes in: that of the parameter, but at least float32."""
    return "float64" if ops.dtype(parameter).name == "float64" else "float32"


def state_like(parameter: Any, value: float = 0.0) -> Any:
    """State tensor of a parameter: its shape, filled with ``value``, in the dtype that the rule computes in."""
    return ops.full_like(parameter, value, dtype=wide(parameter))


# Modules whose optimizers an engine may fuse; classes of the same name in other modules are never fused.
FUSED = frozenset(f"ember_ml.optim.{name}" for name in ("sgd", "adam", "rmsprop", "adagrad", "lion"))

_fused_modules: dict[str, ModuleType | None] = {}


def _compute_backend(parameter: Any) -> Backend:
    """Engine that computes with ``parameter``."""
    return backend_of(parameter, host=False) or current_backend()


def _fused_rules(parameter: Any) -> Any:
    """Module of fused rules of the engine that computes with ``parameter``; ``None`` if there is none."""
    backend = _compute_backend(parameter)
    if backend.name not in _fused_modules:
        name = f"{backend.module.__name__}.optim"
        _fused_modules[backend.name] = importlib.import_module(name) if importlib.util.find_spec(name) else None
    return _fused_modules[backend.name]


def flat(model: Any) -> Tensors:
    """Parameters of a model or of a tree, by path."""
    if not isinstance(model, (dict, list, tuple)):
        return dict(model.parameters())
    places = [(".".join(map(str, path)), value) for path, value in tree.places(model)]
    found = dict(places)
    if len(found) < len(places):
        raise ValueError(
            f"parameters must have different paths, their keys joined by dots, got {', '.join(p for p, _ in places)}"
        )
    return found


def _is_nested(model: dict[str, Any]) -> bool:
    return any(type(value) in (dict, list, tuple) for value in model.values())


def _check_paths(optimizer: Optimizer, parameters: Tensors, grads: Mapping[str, Any]) -> None:
    """Raise an error if a gradient belongs to no parameter."""
    unknown = [path for path in grads if path not in parameters]
    if unknown:
        raise ValueError(
            f"{type(optimizer).__name__}: grads must be of parameters, which are {', '.join(parameters)}; "
            f"got one of {', '.join(unknown)}"
        )


def _positive(optimizer: Optimizer, name: str, limit: float | None) -> float | None:
    if limit is not None and not limit > 0:
        raise ValueError(f"{type(optimizer).__name__}: {name} must be > 0, got {limit}")
    return limit


def _shown(value: Any) -> str:
    if callable(value):
        # A schedule that is a local function is shown by the function that defines it.
        return str(getattr(value, "__qualname__", repr(value))).partition(".<locals>")[0]
    return f"{float(value):g}" if ops.is_tensor(value) else repr(value)  # emberlint: ignore[EMB201] it is for people
