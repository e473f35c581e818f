"""Base class of optimizers: their state, the learning rate, and the application of the update rule."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

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
    """An update that is checked and prepared but not yet applied. A fused rule computes it in ``write``."""

    paths: list[str]
    # The new parameters. If ``write`` is given, they are buffers that it fills.
    new: list[Any]
    states: dict[str, Tensors]
    write: Callable[[], None] | None
    step: Any
    counter_ids: dict[str, int]
    counters: dict[int, Any]
    is_traced: bool

    def section(self) -> AbstractContextManager[None]:
        """Context manager in which the update is committed without interruption."""
        # Signals cannot be deferred in traced code; the caller of the compiled function defers them.
        return nullcontext() if self.is_traced else uninterrupted()


class Optimizer:
    """Base class of optimizers.

    A subclass defines ``rule`` and, optionally, ``state_names`` (state tensors that begin at zero) or ``start`` (their
    initial values), and ``common`` (values that all parameters share in a step). The state consists of tensors
    on the device of the parameters: the number of steps, the learning rate, and the state of each parameter. Compiled
    functions and checkpoints include it. A parameter that missed steps, because it was frozen or had no gradient, has
    its own step count.

    Args:
        learning_rate: a number, or a schedule: a function from the number of steps so far to the learning rate.
        clip_value: largest absolute value of an element of a gradient; larger elements are clipped.
        clip_norm: largest global norm of the gradients; larger gradients are all scaled by the same factor.
        no_decay: patterns of the paths of parameters that ``weight_decay`` does not apply to, such as
            ``("*.bias", "*norm*")``. A pattern also matches all parameters below a module.

    >>> class Descent(Optimizer):
    ...     def rule(self, parameter, gradient, state, common):
    ...         rate, _ = common
    ...         return ops.subtract(parameter, ops.multiply(rate, gradient)), state
    >>> optimizer = Descent(0.5)
    >>> optimizer.update({"w": ops.asarray([1.0])}, {"w": ops.asarray([1.0])})["w"].tolist()
    [0.5]
    """

    # Attributes that compiled programs do not depend on, or that follow from the paths of the tensors.
    _not_in_cache_key = frozenset({"_states", "_forms", "_is_owned", "_counter_ids", "_counters", "_decays"})

    # Optimizers without the option have no weight decay.
    weight_decay = 0.0

    # Whether ``rule`` computes each element of a parameter from that element alone, so that parts can be updated.
    is_elementwise = True

    # Whether each rank holds parts of the parameters, which clipping by the global norm must know.
    _is_divided = False

    def __init__(
        self,
        learning_rate: float | Schedule,
        *,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        no_decay: str | Sequence[str] = (),
    ) -> None:
        self.clip_value = positive(self, "clip_value", clip_value)
        self.clip_norm = positive(self, "clip_norm", clip_norm)
        self.no_decay = (no_decay,) if isinstance(no_decay, str) else tuple(no_decay)
        # Whether the weight decay applies to a parameter, by path.
        self._decays: dict[str, bool] = {}
        self._step: Any = None
        self._rate: Any = None
        self._schedule: Schedule | None = None
        self._states: dict[str, Tensors] = {}
        # Step counters of parameters that missed steps: the id of the counter of each, and the counters by id. A
        # parameter without an entry uses the counter of the optimizer, whose id is 0.
        self._counter_ids: dict[str, int] = {}
        self._counters: dict[int, Any] = {}
        # Native dtype and shape of each parameter, and the names of its state.
        self._forms: dict[str, tuple[Any, Any, tuple[str, ...]]] = {}
        # Whether no state tensor is referenced elsewhere, so that an engine may write into them in place.
        self._is_owned = False
        self.learning_rate = learning_rate

    if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any attribute name

        def __getattr__(self, name: str) -> Any:
            from ember_ml.spellings import OF_OPTIMIZERS, unknown_attribute  # rarely needed

            raise unknown_attribute(self, name, OF_OPTIMIZERS)

    def state_names(self) -> tuple[str, ...]:
        """Names of the state tensors of a parameter, given the current options. Names must not contain dots.

        If an option changes later so that more names are required, their tensors are initialized to zero.
        """
        return self.memory()

    def memory(self) -> tuple[str, ...]:
        """Alias of ``state_names``, which a subclass may define in its place."""
        return () if type(self).state_names is Optimizer.state_names else self.state_names()

    def start(self, parameter: Any) -> Tensors:
        """Initial state tensors of a parameter, by name."""
        return {name: state_like(parameter) for name in self.state_names()}

    def common(self, step: Any, rate: Any) -> Any:
        """Values that ``rule`` needs for all parameters with one step count, from that count (1, 2, ...) and the rate.

        ``step`` counts the steps of the parameter itself. A schedule counts all steps of the optimizer.
        """
        return rate, step

    def rule(self, parameter: Any, gradient: Any, state: Tensors, common: Any) -> tuple[Any, Tensors]:
        """New value and new state of one parameter.

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
            raise TypeError(
                f"{type(self).__name__}: parameters must have a real floating dtype, got {dtype.name} for {path}"
            )

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
            hint = "; pass the parameters to update" if isinstance(value, (dict, list, tuple)) else ""
            raise TypeError(
                f"{type(self).__name__}: learning_rate must be a number or a schedule, got {written(value)}{hint}"
            )
        rate = float(value)
        if not rate >= 0:
            raise ValueError(f"{type(self).__name__}: learning_rate must be >= 0, got {rate}")
        self._schedule = None
        known = self._rate if type(self._rate) is not float else None
        like = self._step if known is None else known
        self._rate = rate if like is None else ops.full_like(like, rate, dtype="float32" if known is None else None)

    @property
    def schedule(self) -> Schedule | None:
        """Schedule of the learning rate; ``None`` if the rate is a number."""
        return self._schedule

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return 0 if self._step is None else int(self._step)  # emberlint: ignore[EMB201] for display to read

    def init(self, model: Any) -> Optimizer:
        """Create the state of every parameter of ``model`` and return this optimizer.

        ``update`` does this when needed. Call ``init`` before compiling a function that updates parameters.

        Args:
            model: a model, or a tree of parameters.

        >>> from ember_ml.optim import Adam
        >>> sorted(Adam().init({"w": ops.asarray([1.0])}).tensors())
        ['learning_rate', 'step', 'w.momentum', 'w.variance']
        """
        self._prepare(parameters_by_path(model))
        if len(self._counters) > 1:
            self._join_counts()
        return self

    def update(self, model: Any, grads: Any) -> Any:
        """Assign updated tensors to the parameters of a model; for a tree of parameters, return the new tree.

        Existing parameter tensors are not modified.

        Args:
            model: a model, or a tree of parameters.
            grads: gradients as returned by ``value_and_grad``: for a model, a dictionary from path to gradient; for a
                tree, a tree of the same structure. Parameters whose gradient is missing or ``None`` do not change.

        >>> from ember_ml.optim import SGD
        >>> SGD(0.5).update([ops.asarray([1.0])], [ops.asarray([4.0])])[0].tolist()
        [-1.0]
        """
        if type(model) is dict and type(grads) is dict and not _is_nested(model):
            return {**model, **self._update(model, grads)}
        if isinstance(model, (dict, list, tuple)):
            tree.map(lambda *pair: None, model, grads)
            parameters = parameters_by_path(model)
            return tree.unflatten(
                model, list({**parameters, **self._update(parameters, parameters_by_path(grads))}.values())
            )
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
        for path, counter in self._counter_ids.items():
            found[f"{path}.{STEP}"] = self._counters[counter]
        return found

    def assign(self, values: Mapping[str, Any], /) -> None:
        """Replace state tensors, by path as in ``tensors``.

        If ``values`` has the step count of the optimizer but none for a parameter with state, the parameter uses the
        count of the optimizer.
        """
        self._is_owned = False
        # Parameters with the same count tensor share one entry.
        ids: dict[int, int] = {}
        first = max(self._counters, default=0) + 1
        for key, value in values.items():
            path, dot, name = key.rpartition(".")
            if dot and name == STEP:
                self._counter_ids[path] = counter = ids.setdefault(id(value), first + len(ids))
                self._counters[counter] = value
            elif dot:
                self._states.setdefault(path, {})[name] = value
                if self._counter_ids and STEP in values and f"{path}.{STEP}" not in values:
                    self._counter_ids.pop(path, None)
            elif key == STEP:
                self._step = value
            elif key != RATE:
                raise ValueError(
                    f"{type(self).__name__}: a state key must be {STEP!r}, {RATE!r} or '<path>.<name>', got {key!r}"
                )
            elif self._schedule is None:
                self._rate = value
        used = set(self._counter_ids.values())
        self._counters = {counter: count for counter, count in self._counters.items() if counter in used}

    def copy_shared_state(self) -> None:
        """Copy state tensors that may be referenced elsewhere, so that an engine can write into them in place.

        ``update`` calls this where needed; compiled functions call it before they run.
        """
        if not self._is_owned:
            for path, state in self._states.items():
                self._states[path] = {name: ops.copy(value) for name, value in state.items()}
            self._is_owned = True

    def convert_state(self, convert: Callable[[str, Any], Any], is_divided: bool) -> None:
        """Replace each state tensor of a parameter when parameters are divided over ranks, or joined again.

        Args:
            convert: function from the path of the parameter and the tensor to the new tensor.
            is_divided: whether each rank holds parts of the parameters from now on.
        """
        self._is_owned = False
        self._is_divided = is_divided
        for path, state in self._states.items():
            self._states[path] = {name: convert(path, value) for name, value in state.items()}
        # The shapes of the parameters are no longer those known.
        self._forms = {}

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
        from ember_ml.nn.tensor import wrap

        empty: dict[str, Any] = {"_states": {}, "_forms": {}, "_counter_ids": {}, "_counters": {}}
        state = {**self.__dict__, **empty, "_step": None, "_is_owned": False}
        # As EmberTensors, since native tensors of some engines lose precision when pickled.
        return state, wrap(self.tensors())

    def __setstate__(self, state: Any) -> None:
        options, tensors = state
        self.__dict__.update(options)
        self.assign({path: value.native for path, value in tensors.items()})

    def __repr__(self) -> str:
        options = {RATE: self._schedule or self._rate, **{k: v for k, v in vars(self).items() if k[0] != "_"}}
        if not self.no_decay:
            del options["no_decay"]
        given = (f"{name}={_shown(value)}" for name, value in options.items() if value is not None)
        return f"{type(self).__name__}({', '.join(given)})"

    def _prepare(self, parameters: Tensors) -> None:
        """Create the missing state of the parameters, including tensors that a changed option requires."""
        names = self.state_names()
        # Parameters of the first call use the counter of the optimizer; later ones start their own at 0.
        is_late, counter = bool(self._states), max(self._counters, default=0) + 1
        if parameters:
            # Import the fused rules now, since traced code cannot import.
            _fused_rules(next(iter(parameters.values())))
        created: dict[str, Tensors] = {}
        self._find_decays(parameters)
        for path, parameter in parameters.items():
            if path not in self._states:
                self.check(path, parameter)
                created[path] = self.start(parameter)
                self._forms[path] = parameter.dtype, parameter.shape, names
                if self._step is None:
                    self._step = ops.zeros((), dtype="int64", device=ops.get_device(parameter))
                if type(self._rate) is float:
                    self._rate = ops.full_like(self._step, self._rate, dtype=wide(parameter))
                if is_late and path not in self._counter_ids:
                    self._counters.setdefault(counter, ops.zeros_like(self._step))
                    self._counter_ids[path] = counter
            elif path in self._forms:
                self._extend_state(path, parameter, names)
        # New tensors are not referenced elsewhere.
        self._is_owned = self._is_owned or not self._states
        # Added together at the end, so that an error above adds no state for some parameters only.
        self._states.update(created)

    def _find_decays(self, paths: Iterable[str]) -> None:
        """Match paths with ``no_decay``, here and not in traced code."""
        if self.no_decay:
            for path in paths:
                self._decays[path] = not any(
                    fnmatchcase(path, pattern) or fnmatchcase(path, pattern + ".*") for pattern in self.no_decay
                )

    def _with_decay(self, is_decayed: bool, run: Callable[..., Any], *args: Any) -> Any:
        """``run(*args)`` with the weight decay, or with none."""
        if is_decayed:
            return run(*args)
        weight_decay, self.weight_decay = self.weight_decay, 0.0
        try:
            return run(*args)
        finally:
            self.weight_decay = weight_decay

    def _extend_state(self, path: str, parameter: Any, names: tuple[str, ...]) -> None:
        """Add zero tensors for state names that the options require but the state of a parameter lacks."""
        held = self._states[path]
        self._states[path] = {**held, **{name: state_like(parameter) for name in names if name not in held}}
        self._forms[path] = (*self._forms[path][:2], names)

    def _join_counts(self) -> None:
        """Let parameters with equal counts share one counter; after loading a checkpoint, each has its own."""
        numbers = {counter: int(count) for counter, count in self._counters.items()}
        first = {count: counter for counter, count in reversed(numbers.items())}
        self._counter_ids = {path: first[numbers[counter]] for path, counter in self._counter_ids.items()}
        self._counters = {counter: self._counters[counter] for counter in first.values()}

    def _update(self, parameters: Tensors, grads: Mapping[str, Any], model: Any = None) -> Tensors:
        """New values of the parameters that have a gradient, assigned to ``model`` if it is given."""
        if model is not None:
            parameters, grads, record = detach(parameters, grads)
        # The model and the dictionary hold the parameters of a model; the caller may hold those of a tree.
        plan = self._plan(parameters, grads, 0 if model is None else 2)
        if plan is None:
            return {}
        with plan.section():
            new = self._commit(plan)
            if model is not None:
                record(new)
                model.assign(new)
        return new

    def _plan(self, parameters: Tensors, grads: Mapping[str, Any], holders: int = 0) -> Plan | None:
        """Plan of the update of the parameters that have a gradient; ``None`` if there are none.

        Errors are raised here, before any parameter or counter changes.

        Args:
            holders: number of objects that refer to a parameter of which nothing else needs the old value; 0 if others
                may need it.
        """
        paths = [path for path, gradient in grads.items() if gradient is not None and path in parameters]
        if len(paths) != len(grads):
            _check_paths(self, parameters, grads)
        if not paths:
            return None
        values, gradients = [parameters[path] for path in paths], [grads[path] for path in paths]
        _check_shapes(self, paths, values, gradients)
        if not self._states.keys() >= grads.keys():
            self._prepare({path: parameters[path] for path in paths})
        self._match_parameters(paths, values)
        return self._apply_rule(paths, values, clipped(self, gradients), holders)

    def _commit(self, plan: Plan) -> Tensors:
        """Write the new state and return the new parameters by path."""
        if plan.write is not None:
            plan.write()
        self._states.update(plan.states)
        self._step, self._counter_ids, self._counters = plan.step, plan.counter_ids, plan.counters
        return dict(zip(plan.paths, plan.new, strict=True))

    def _next_counts(self, paths: list[str]) -> tuple[dict[str, int], dict[int, Any]]:
        """``_counter_ids`` and ``_counters`` after a step of the parameters at ``paths``."""
        if not self._counter_ids and len(paths) == len(self._states):
            return self._counter_ids, self._counters
        ids, counts, stepping = dict(self._counter_ids), dict(self._counters), set(paths)
        advancing = {self._counter_ids[path] for path in paths if path in self._counter_ids}
        # A parameter without a gradient keeps its count. If others share its counter and step, it gets a new counter.
        split_off: dict[int, int] = {}
        for path in self._states:
            counter = self._counter_ids.get(path, 0)
            if path not in stepping and (counter == 0 or counter in advancing):
                if counter not in split_off:
                    split_off[counter] = max(counts, default=0) + 1
                    counts[split_off[counter]] = self._counters[counter] if counter else self._step
                ids[path] = split_off[counter]
        for counter in advancing:
            counts[counter] = ops.add(self._counters[counter], 1)
        return ids, counts

    def _match_parameters(self, paths: list[str], values: list[Any]) -> None:
        """Convert the state to the engine and dtypes of the parameters, which may have been moved or cast."""
        backend = _compute_backend(values[0])
        kinds = backend.kinds
        if not isinstance(self._step, kinds):
            self.to_backend(backend.chosen_as)
        if getattr(values[0], "device", None) != getattr(self._step, "device", None):
            # The model was moved.
            device = ops.get_device(values[0])
            self.assign({path: ops.to_device(x, device) for path, x in self.tensors().items()})
        names = self.state_names()
        for path, value in zip(paths, values, strict=True):
            old, shape, created = self._forms.get(path, (None, None, names))
            new = value.dtype
            if shape is None:
                shape = self._check_assigned(path, value)
            if tuple(shape) != tuple(value.shape):
                raise ValueError(
                    f"{type(self).__name__}: {path} must have shape {list(shape)}, that of its optimizer state, got "
                    f"{describe(value)}; create a new optimizer after replacing a parameter"
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
        """Check that the assigned state of a parameter has the shapes of ``start``; return its shape."""
        for name, x in self.start(value).items():
            held = self._states[path].get(name)
            if held is None or tuple(held.shape) != tuple(x.shape):
                found = "none" if held is None else describe(held)
                raise ValueError(f"{type(self).__name__}: the state {path}.{name} must be {describe(x)}, got {found}")
        return value.shape

    def _apply_rule(self, paths: list[str], values: list[Any], gradients: list[Any], holders: int) -> Plan:
        """Plan of the update, by the fused rule of the engine if it supports these tensors, otherwise by ``rule``."""
        completed = self._step
        rate = self._rate if self._schedule is None else self._schedule(ops.cast(completed, wide(values[0])))
        step = ops.add(completed, 1)
        ids, counts = self._next_counts(paths)
        # The distinct counts of these parameters, and the index of the count of each parameter.
        steps, places = [step], [0] * len(paths)
        if ids:
            counters = [ids.get(path, 0) for path in paths]
            found = {counter: place for place, counter in enumerate(dict.fromkeys(counters))}
            steps = [counts[counter] if counter else step for counter in found]
            places = [found[counter] for counter in counters]
        decays = [True] * len(paths)
        if self.no_decay:
            self._find_decays([path for path in paths if path not in self._decays])
            decays = [self._decays[path] for path in paths]
        is_mixed = len(set(decays)) > 1
        fused_rules = _fused_rules(values[0])
        is_traced = fused_rules is not None and fused_rules.is_traced()
        name = type(self).__name__
        fused = getattr(fused_rules, name, None) if type(self).__module__ in FUSED else None
        if fused is not None and fused_rules.supports(name, values, gradients):
            self.copy_shared_state()
            states = [self._states[path] for path in paths]
            new = fused_rules.allocate(values, holders)

            def write() -> None:
                if not is_mixed:
                    self._with_decay(decays[0], fused, self, new, values, gradients, states, steps, places, rate)
                    return
                for is_decayed in (True, False):
                    chosen = [i for i, decay in enumerate(decays) if decay is is_decayed]
                    parts = [[some[i] for i in chosen] for some in (new, values, gradients, states)]
                    self._with_decay(is_decayed, fused, self, *parts, steps, [places[i] for i in chosen], rate)

            return Plan(paths, new, {}, write, step, ids, counts, is_traced)
        commons: dict[tuple[str, int, bool], Any] = {}
        results: list[Any] = []
        states_by_path: dict[str, Tensors] = {}
        for path, value, gradient, place, decay in zip(paths, values, gradients, places, decays, strict=True):
            dtype = ops.dtype(value).name
            is_narrow = dtype in ("float16", "bfloat16")
            if is_narrow:
                value, gradient = ops.cast(value, "float32"), ops.cast(gradient, "float32")
            compute_dtype = "float64" if dtype == "float64" else "float32"
            if (compute_dtype, place, decay) not in commons:
                # Computed per dtype, since a rate in float64 would promote float32 parameters.
                cast_rate = rate if type(rate) in (float, int) else ops.cast(rate, compute_dtype)
                step_count = ops.cast(steps[place], compute_dtype)
                commons[compute_dtype, place, decay] = self._with_decay(decay, self.common, step_count, cast_rate)
            common = commons[compute_dtype, place, decay]
            result, states_by_path[path] = self._with_decay(
                decay, self.rule, value, gradient, self._states[path], common
            )
            results.append(ops.cast(result, dtype) if is_narrow else result)
        return Plan(paths, results, states_by_path, None, step, ids, counts, is_traced)


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


def parameters_by_path(model: Any) -> Tensors:
    """Parameters of a model or of a tree, by path."""
    if not isinstance(model, (dict, list, tuple)):
        return dict(model.parameters())
    places = [(".".join(map(str, path)), value) for path, value in tree.places(model)]
    found = dict(places)
    if len(found) < len(places):
        raise ValueError(
            f"the paths of parameters (their keys joined by dots) must be unique, got {', '.join(p for p, _ in places)}"
        )
    return found


def detach(parameters: Tensors, grads: Mapping[str, Any]) -> tuple[Tensors, Any, Callable[[Tensors], None]]:
    """Parameters of a model and their gradients, without a record of how they were computed.

    torch may record operations on parameters, for ``backward``. New parameters must not refer to that record, which
    would grow with every step. The third value is a function that lets torch record operations on the new ones too.
    """
    rules = _fused_rules(next(iter(parameters.values()), None))
    paths = rules.recorded(parameters) if hasattr(rules, "recorded") else ()
    if not paths:
        return parameters, grads, _do_nothing
    parameters = {**parameters, **{path: ops.stop_gradient(parameters[path]) for path in paths}}
    grads = {path: None if gradient is None else ops.stop_gradient(gradient) for path, gradient in grads.items()}
    return parameters, grads, lambda new: rules.record([new[path] for path in paths if path in new])


def _do_nothing(new: Tensors) -> None:
    """Record nothing."""


def clipped(optimizer: Any, gradients: Any) -> Any:
    """Gradients clipped as the options ``clip_value`` and ``clip_norm`` of an optimizer say."""
    if optimizer.clip_value is not None:
        gradients = clip_by_value(gradients, optimizer.clip_value)
    if optimizer.clip_norm is not None:
        gradients = clip_by_global_norm(gradients, optimizer.clip_norm, over_ranks=optimizer._is_divided)
    return gradients


def _is_nested(model: dict[str, Any]) -> bool:
    return any(type(value) in (dict, list, tuple) for value in model.values())


def _check_paths(optimizer: Optimizer, parameters: Tensors, grads: Mapping[str, Any]) -> None:
    """Raise an error if a gradient belongs to no parameter."""
    unknown = [path for path in grads if path not in parameters]
    if unknown:
        raise ValueError(
            f"{type(optimizer).__name__}: every gradient must belong to a parameter, one of "
            f"{', '.join(parameters)}, got gradients of {', '.join(unknown)}"
        )


def _check_shapes(optimizer: Optimizer, paths: list[str], values: list[Any], gradients: list[Any]) -> None:
    """Raise an error if a gradient does not have the shape of its parameter."""
    for path, value, gradient in zip(paths, values, gradients, strict=True):
        if value.shape != gradient.shape:
            raise ValueError(
                f"{type(optimizer).__name__}: the gradient of {path} must have the shape of the parameter, "
                f"{describe(value)}, got {describe(gradient)}"
            )


def positive(optimizer: Any, name: str, limit: float | None) -> float | None:
    """``limit``, an option of an optimizer; an error if it is not positive or ``None``."""
    if limit is not None and not limit > 0:
        raise ValueError(f"{type(optimizer).__name__}: {name} must be > 0, got {limit}")
    return limit


def _shown(value: Any) -> str:
    if callable(value):
        # A schedule that is a nested function is shown by the name of the enclosing function, such as ``cosine``.
        return str(getattr(value, "__qualname__", repr(value))).partition(".<locals>")[0]
    return f"{float(value):g}" if ops.is_tensor(value) else repr(value)  # emberlint: ignore[EMB201] for display
