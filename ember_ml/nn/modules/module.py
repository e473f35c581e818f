"""Module: tensors and other modules under names, and what is done with all of them at once.

A module holds the engine's own tensors as plain attributes, so that a layer reads its weight at no cost. Assigning a
``Parameter`` or a ``Buffer`` registers the name; the attribute itself is the tensor. Paths such as
``"layers.0.weight"`` name every tensor of a model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias
from weakref import ref

from ember_ml import backend as backends
from ember_ml import door, ops, portable, tree
from ember_ml.backend import Backend
from ember_ml.dtypes import KINDS, as_dtype, describe
from ember_ml.types import DeviceLike, DTypeLike, Tensor, TensorLike

if TYPE_CHECKING:
    from ember_ml.nn.modules.summary import Summary

TRAINABLE, FROZEN, BUFFER, CONSTANT, TIED = "trainable", "frozen", "buffer", "constant", "tied"


if TYPE_CHECKING:
    # What a slot is assigned to holds a tensor afterwards, so type checkers take the one for the other.
    _Assigned: TypeAlias = Any
else:
    _Assigned = object


class Slot(_Assigned):  # type: ignore[misc]
    """A tensor on its way into a module: assigned to an attribute, it registers the name and leaves itself there."""

    def __init__(self, value: TensorLike, role: str) -> None:
        self.value = native(value)
        self.role = role

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.value)})"


class Parameter(Slot):
    """A tensor that training changes.

    Args:
        trainable: if false, the parameter starts out frozen.

    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = Parameter([2.0, 3.0])
    ...     def forward(self, x):
    ...         return ops.multiply(x, self.factor)
    >>> Scale()([1.0, 10.0]).tolist()
    [2.0, 30.0]
    >>> list(Scale().parameters())
    ['factor']
    """

    def __init__(self, value: TensorLike, *, trainable: bool = True) -> None:
        super().__init__(value, TRAINABLE if trainable else FROZEN)
        if trainable and as_dtype(self.value.dtype).kind not in KINDS["floating"]:
            raise TypeError(
                f"a parameter that trains is floating, not {describe(self.value)}; a Buffer may be anything"
            )


class Buffer(Slot):
    """A tensor that belongs to a module but is not trained, such as running statistics.

    Args:
        persistent: if false, it is no part of ``state_dict``: a table that the constructor computes, for example.

    >>> module = Module()
    >>> module.count = Buffer(0)
    >>> list(module.buffers()), list(module.parameters())
    (['count'], [])
    """

    def __init__(self, value: TensorLike, *, persistent: bool = True) -> None:
        super().__init__(value, BUFFER if persistent else CONSTANT)


class Tied(_Assigned):  # type: ignore[misc]
    """Another name for a tensor that a module has: what is assigned to either name, both have.

    It is one parameter, listed under the first of its paths and saved under each. A new ``Parameter`` ends the tie.

    Args:
        module: the module that has the tensor.
        name: the tensor's name there.

    >>> from ember_ml.nn.modules import Linear, Sequential
    >>> model = Sequential(Linear(2, 2), Linear(2, 2))
    >>> model[1].weight = Tied(model[0], "weight")
    >>> list(model.parameters())
    ['0.weight', '0.bias', '1.bias']
    >>> model[0].weight = ops.ones((2, 2))
    >>> model[1].weight.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, module: Module, name: str) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"Tied takes the module that has the tensor, and its name there, not {describe(module)}")
        self.module, self.name = module, name

    def __repr__(self) -> str:
        return f"Tied({type(self.module).__name__}, {self.name!r})"


def native(value: Any) -> Any:
    """``value`` if it is a tensor of an engine, else a tensor of the active backend that holds it."""
    value = portable.opened(value)
    return value if isinstance(door.species_of(type(value)), Backend) else ops.asarray(value)


class Keys(NamedTuple):
    """The paths that a loaded state lacked, and those that it had too many."""

    missing: list[str]
    unexpected: list[str]


class Entry(NamedTuple):
    """Where a tensor is: its path, and the module and attribute that hold it, which of a tied one are elsewhere."""

    path: str
    module: Module
    name: str


class Layout:
    """The modules and tensors below a module, found once and used until that structure changes."""

    def __init__(self, root: Module) -> None:
        self.modules: dict[str, Module] = {}
        self.roles: dict[str, str] = {}
        # Every tensor once, under the first of its paths; and all paths.
        self.entries: dict[str, Entry] = {}
        self.names: dict[str, Entry] = {}
        # The first path of each tensor that is tied, for the others.
        self.ties: dict[str, str] = {}
        self._places: dict[tuple[int, str], str] = {}
        # Empty lists, which may get modules by ``append`` without anyone being told.
        self.empty: list[Any] = []
        self._visit(root, "", set())
        self.trainable = self._having(TRAINABLE)
        self.is_checked = False

    def _visit(self, module: Module, path: str, seen: set[int]) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        self.modules[path] = module
        prefix = path and path + "."
        for name, value in list(module.__dict__.items()):
            if type(value) in (list, dict) and name not in _OWN:
                if not value:
                    self.empty.append(value)
                elif holds_modules(value):
                    setattr(module, name, value)
        for name in module._roles:
            self._enter(prefix + name, *module._holder(name))
        for name in module._children:
            self._visit(getattr(module, name), prefix + name, seen)

    def _enter(self, path: str, holder: Module, name: str) -> None:
        self.names[path] = entry = Entry(path, holder, name)
        first = self._places.setdefault((id(holder), name), path)
        if first is path:
            self.roles[path] = holder._roles[name]
            self.entries[path] = entry
        else:
            self.ties[path] = first

    def check(self, root: Module) -> None:
        """Raise an error if one tensor was assigned to two names: an update would make two of it without a word."""
        entries = self._having(TRAINABLE, FROZEN)
        for entry in entries if any(name in module._rebound for _, module, name in entries) else ():
            tensor = getattr(entry.module, entry.name)
            for other in entries if entry.name in entry.module._rebound else ():
                if other is not entry and getattr(other.module, other.name) is tensor:
                    first, second = (one.path for one in entries if one is entry or one is other)
                    raise ValueError(
                        f"{first!r} and {second!r} of {type(root).__name__} are one tensor, which was assigned to a "
                        "second name. To train it as one, assign Tied(module, name) of where it is to that name; "
                        "ops.copy(x) makes two of it"
                    )
        self.is_checked = True

    def _having(self, *roles: str) -> list[Entry]:
        return [entry for path, entry in self.entries.items() if self.roles[path] in roles]

    def having(self, *roles: str) -> dict[str, Tensor]:
        return {path: getattr(module, name) for path, module, name in self._having(*roles)}

    def saved(self) -> dict[str, Tensor]:
        """The tensors that are worth keeping, those that are tied under each of their paths."""
        return {
            path: getattr(module, name)
            for path, module, name in self.names.values()
            if self.roles[self.ties.get(path, path)] != CONSTANT
        }


def _forward(self: Module, *args: Any, **kwargs: Any) -> Any:
    """What the module computes; subclasses say."""
    raise NotImplementedError(f"{type(self).__name__} has no forward")


class Module:
    """A part of a network: tensors, other modules, and a ``forward`` that computes with them.

    A subclass assigns parameters and modules to attributes in its ``__init__`` and writes ``forward``; calling the
    module runs it. Lists and dictionaries of modules become a ``ModuleList`` and a ``ModuleDict``. A module that is
    reached by two paths counts once, under the first, and so does a tensor that is ``Tied``. A model computes on the
    engine that its tensors are of: the one that was active when it was made, or that ``to_backend`` moved it to.

    >>> from ember_ml.nn.modules import Linear
    >>> class Network(Module):
    ...     def __init__(self):
    ...         self.hidden, self.out = Linear(4, 8), Linear(8, 1)
    ...     def forward(self, x):
    ...         return self.out(ops.tanh(self.hidden(x)))
    >>> network = Network()
    >>> tuple(network(ops.ones((5, 4))).shape)
    (5, 1)
    >>> {path: tuple(tensor.shape) for path, tensor in network.parameters().items()}
    {'hidden.weight': (4, 8), 'hidden.bias': (8,), 'out.weight': (8, 1), 'out.bias': (1,)}
    """

    training: bool
    _roles: dict[str, str]
    # Where those names lead that are tied, and the parameters that were assigned a tensor.
    _ties: dict[str, tuple[Module, str]]
    _rebound: dict[str, None]
    _children: dict[str, None]
    _layout: Layout | None
    _parents: dict[int, ref[Module]]
    # What a compiled program does not depend on, or knows from the paths of the tensors.
    _untold = frozenset({"_roles", "_rebound", "_children", "_layout", "_parents"})

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Here, so that a subclass need not call super().__init__().
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise TypeError(f"{cls.__name__} takes no arguments")
        self = super().__new__(cls)
        self.__dict__.update(training=True, _roles={}, _ties={}, _rebound={}, _children={}, _layout=None, _parents={})
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.forward(*args, **kwargs)
        except Exception as error:
            self._explain(error, (*args, *kwargs.values()))
            raise

    # Typed as an attribute, so that subclasses may write one with any parameters.
    forward: Callable[..., Any] = _forward

    def _explain(self, error: Exception, values: tuple[Any, ...]) -> None:
        """Note on ``error`` the innermost layer that raised it, by its path in this module."""
        layer, at, about = error.__dict__.get("_ember_layer", (None, 0, ""))
        if layer is None:
            about = self._holding() + _given(values)
            error.add_note(f"in {type(self).__name__}{about}")
            error._ember_layer = (self, len(error.__notes__) - 1, about)  # type: ignore[attr-defined]
        elif layer is not self:
            path = next((path for path, module in self.named_modules() if module is layer), None)
            if path is not None:
                error.__notes__[at] = f"in {type(layer).__name__} {path!r} of {type(self).__name__}{about}"

    def _holding(self) -> str:
        """The tensors of this module, or the first of those below it, for messages."""
        held = {name: getattr(self, name) for name in self._roles} or self.tensors()
        shown = [f"{name} {describe(tensor)}" for name, tensor in list(held.items())[:_SHOWN]]
        return f" ({', '.join(shown + ['...'] * (len(held) > _SHOWN))})" if shown else ""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Slot):
            self._register(name)
            self._roles[name] = value.role
            value = value.value
        elif isinstance(value, Module):
            self._adopt(name, value)
        elif isinstance(value, Tied):
            self._tie(name, value)
            return
        elif name in self._roles:
            if value is None:
                self._forget(name)
            else:
                value = native(value) if type(value) in _NOT_TENSORS else portable.opened(value)
                role = self._roles[name]
                if role is TIED:
                    setattr(*self._holder(name), value)
                    return
                if role is TRAINABLE or role is FROZEN:
                    self._rebound[name] = None
                    # It may be a tensor that another has.
                    for module in self._containing():
                        if module._layout is not None:
                            module._layout.is_checked = False
        else:
            if name in self._children:
                self._forget(name)
            if type(value) in _CONTAINERS:
                if not value:
                    # It may be filled with modules later on, and must be known for that.
                    self._change()
                elif holds_modules(value):
                    value = as_module(value)
                    self._adopt(name, value)
        object.__setattr__(self, name, value)

    if not TYPE_CHECKING:  # for which every module would have every attribute

        def __getattr__(self, name: str) -> Any:
            if name in self.__dict__.get("_ties", ()):
                return getattr(*self._holder(name))
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("__"):
                # What compiled code may ask for; torch's compiler knows no errors with names.
                raise AttributeError(message)
            raise AttributeError(message, name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        is_tied = name in self._ties
        self._forget(name)
        if not is_tied:
            object.__delattr__(self, name)

    def _register(self, name: str) -> None:
        """Make ``name`` free for a tensor or a module."""
        if hasattr(Module, name) or name in _OWN:
            raise AttributeError(f"{name!r} is what every Module has, so that no tensor or module can be called so")
        if "." in name or not name:
            raise ValueError(f"{name!r} cannot name a tensor or a module, as dots separate the names in a path")
        self._forget(name)
        self._change()

    def _adopt(self, name: str, child: Module) -> None:
        self._register(name)
        self._children[name] = None
        child._parents[id(self)] = ref(self)

    def _tie(self, name: str, tied: Tied) -> None:
        if tied.name not in tied.module._roles:
            known = ", ".join(tied.module._roles) or "none"
            raise ValueError(f"{type(tied.module).__name__} has no tensor {tied.name!r}; it has {known}")
        holder, held = tied.module._holder(tied.name)
        if holder is self and held == name:
            raise ValueError(f"{name!r} of {type(self).__name__} cannot be tied to itself")
        new = getattr(holder, held)
        if name in self._roles and tuple(getattr(self, name).shape) != tuple(new.shape):
            raise ValueError(f"{name} is {describe(getattr(self, name))}, and cannot be tied to {describe(new)}")
        # The name keeps its place among the others.
        places = {**self._roles, name: TIED}
        self._register(name)
        self.__dict__.pop(name, None)
        self.__dict__["_roles"] = places
        self._ties[name] = holder, held
        # So that it is told of changes there.
        holder._parents[id(self)] = ref(self)

    def _holder(self, name: str) -> tuple[Module, str]:
        """The module that holds a tensor, and its name there: of a tied one, those that it is tied to."""
        holder = self
        while name in holder._ties:
            holder, name = holder._ties[name]
        if name not in holder._roles:
            raise AttributeError(f"{type(holder).__name__} no longer has the tensor {name!r}, which others are tied to")
        return holder, name

    def _forget(self, name: str) -> None:
        if name in self._roles or name in self._children:
            self._roles.pop(name, None)
            self._ties.pop(name, None)
            self._rebound.pop(name, None)
            self._children.pop(name, None)
            self._change()

    def _change(self) -> None:
        """Let this module, and all that contain it, look anew at what is below them."""
        for module in self._containing():
            object.__setattr__(module, "_layout", None)

    def _containing(self) -> list[Module]:
        """This module, and all that contain it or are tied to it."""
        found = [self]
        seen = {id(self)}
        for module in found:
            for link in list(module._parents.values()):
                parent = link()
                if parent is not None and id(parent) not in seen:
                    seen.add(id(parent))
                    found.append(parent)
        return found

    def layout(self) -> Layout:
        """The modules and tensors below this one."""
        layout = self._layout
        if layout is None or any(layout.empty):
            layout = Layout(self)
            object.__setattr__(self, "_layout", layout)
        if not layout.is_checked:
            layout.check(self)
        return layout

    def __getstate__(self) -> dict[str, Any]:
        from ember_ml.nn.tensor import EmberTensor

        # As portable tensors: an engine may lose digits when it pickles its own.
        state = {name: value for name, value in self.__dict__.items() if name not in ("_layout", "_parents")}
        # A shallow copy has its own names.
        own = {name: dict(self.__dict__[name]) for name in ("_roles", "_ties", "_rebound", "_children")}
        return {**state, **own, **{name: EmberTensor(state[name]) for name in self._roles if name not in self._ties}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.update({name: state[name].native for name in self._roles if name not in self._ties})
        for below in [state[name] for name in self._children] + [holder for holder, _ in self._ties.values()]:
            below._parents[id(self)] = ref(self)

    def parameters(self, trainable: bool | None = True) -> dict[str, Tensor]:
        """The parameters by path: those that train, with ``False`` those that are frozen, with ``None`` all.

        >>> from ember_ml.nn.modules import Linear
        >>> list(Linear(2, 3).parameters())
        ['weight', 'bias']
        """
        layout = self.layout()
        if trainable:
            return {path: getattr(module, name) for path, module, name in layout.trainable}
        return layout.having(FROZEN) if trainable is False else layout.having(TRAINABLE, FROZEN)

    def named_parameters(self, trainable: bool | None = True) -> Iterator[tuple[str, Tensor]]:
        """Pairs of path and parameter, as ``parameters`` answers."""
        return iter(self.parameters(trainable).items())

    def buffers(self) -> dict[str, Tensor]:
        """The tensors by path that are no parameters."""
        return self.layout().having(BUFFER, CONSTANT)

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by path, parameters and buffers."""
        return {path: getattr(module, name) for path, module, name in self.layout().entries.values()}

    def assign(self, values: Mapping[str, Any]) -> None:
        """Bind tensors to paths as they are, without conversion or check; ``load_state_dict`` converts and checks."""
        entries = self.layout().names
        for path, value in values.items():
            if path not in entries:
                raise KeyError(f"{type(self).__name__} has no tensor {path!r}; it has {', '.join(entries) or 'none'}")
            _, module, name = entries[path]
            object.__setattr__(module, name, value)

    def state_dict(self) -> dict[str, Tensor]:
        """What is saved: the parameters and persistent buffers by path, those that are tied by each of their paths.

        >>> from ember_ml.nn.modules import Linear
        >>> {path: tuple(tensor.shape) for path, tensor in Linear(2, 3).state_dict().items()}
        {'weight': (2, 3), 'bias': (3,)}
        """
        return self.layout().saved()

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Keys:
        """The paths that ``state`` lacks and those that are unknown; the others are loaded.

        Tensors of any engine, and anything that can become one, are copied to the engine, device and dtype of what they
        replace. Nothing is loaded if anything is wrong.

        Args:
            strict: raise ``ValueError`` for missing and unexpected paths. Wrong shapes always raise.

        >>> from ember_ml.nn.modules import Linear
        >>> layer = Linear(1, 2)
        >>> layer.load_state_dict({"weight": [[1.0, 2.0]], "bias": [0.5, 0.25]})
        Keys(missing=[], unexpected=[])
        >>> layer([[2.0]]).tolist()
        [[2.5, 4.25]]
        """
        own = self.state_dict()
        firsts = self.layout().ties
        # One of its names is enough for a tensor that is tied.
        present = {firsts.get(path, path) for path in state}
        keys = Keys(
            [path for path in own if firsts.get(path, path) not in present], [path for path in state if path not in own]
        )
        loaded: dict[str, Tensor] = {}
        wrong: list[str] = []
        for path, old in own.items():
            if path in state:
                try:
                    new = _taking_the_place_of(old, state[path])
                except Exception as error:
                    error.add_note(f"in the state for {path!r} of {type(self).__name__}")
                    raise
                loaded[path] = new
                if tuple(new.shape) != tuple(old.shape):
                    wrong.append(f"  {path}: {list(new.shape)} where the model has {list(old.shape)}")
        complaints = [f"missing: {', '.join(keys.missing)}"] if strict and keys.missing else []
        complaints += [f"unexpected: {', '.join(keys.unexpected)}"] if strict and keys.unexpected else []
        complaints += ["wrong shape:", *wrong] if wrong else []
        complaints += [
            f"{first} and {path} are tied, and differ in the state"
            for path, first in firsts.items()
            if not wrong and path in loaded and first in loaded and not _are_equal(loaded[path], loaded[first])
        ]
        if complaints:
            raise ValueError("\n".join([f"the state does not fit {type(self).__name__}", *complaints]))
        self.assign(loaded)
        return keys

    def save(self, path: object) -> None:
        """Write ``state_dict()`` to a file that ``load`` reads on any engine; the suffix decides the format."""
        ops.save(path, self.state_dict())

    def load(self, path: object, strict: bool = True) -> Keys:
        """What ``load_state_dict`` answers for the state in a file.

        >>> import tempfile
        >>> from ember_ml.nn.modules import Linear
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Linear(2, 3).save(f"{folder}/model.safetensors")
        ...     Linear(2, 3).load(f"{folder}/model.safetensors")
        Keys(missing=[], unexpected=[])
        """
        return self.load_state_dict(ops.load(path), strict)

    def modules(self) -> Iterator[Module]:
        """This module and all those below it."""
        return iter(self.layout().modules.values())

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module and all those below it, each with its path; that of this one is empty."""
        return iter(self.layout().modules.items())

    def children(self) -> dict[str, Module]:
        """The modules directly below this one, by name."""
        self.layout()
        return {name: getattr(self, name) for name in self._children}

    def train(self, mode: bool = True) -> Self:
        """The module itself, in training: dropout drops, and statistics are those of the batch."""
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Self:
        """The module itself, no longer in training.

        >>> from ember_ml.nn.modules import Dropout
        >>> Dropout(0.5).eval()([1.0, 2.0]).tolist()
        [1.0, 2.0]
        """
        return self.train(False)

    def freeze(self, *patterns: str) -> Self:
        """The module itself, with parameters that training leaves alone.

        Args:
            patterns: paths of parameters or modules, with ``*`` for anything; all parameters, if not given.

        >>> from ember_ml.nn.modules import Linear, Sequential
        >>> list(Sequential(Linear(2, 2), Linear(2, 2)).freeze("0", "*.bias").parameters())
        ['1.weight']
        """
        return self._mark(FROZEN, patterns)

    def unfreeze(self, *patterns: str) -> Self:
        """The module itself, with parameters that train again; the opposite of ``freeze``."""
        return self._mark(TRAINABLE, patterns)

    def _mark(self, role: str, patterns: tuple[str, ...]) -> Self:
        layout = self.layout()
        entries = [e for e in layout.names.values() if e.module._roles[e.name] in (TRAINABLE, FROZEN)]
        chosen = set() if patterns else {entry.path for entry in entries}
        for pattern in patterns:
            found = {e.path for e in entries if fnmatchcase(e.path, pattern) or fnmatchcase(e.path, pattern + ".*")}
            if not found:
                known = ", ".join(entry.path for entry in entries) or "none"
                raise ValueError(f"no parameter of {type(self).__name__} matches {pattern!r}; there are: {known}")
            chosen |= found
        for path, module, name in entries:
            if path in chosen:
                module._roles[name] = role
                module._change()
        return self

    @property
    def backend(self) -> str:
        """The name of the engine that the module's tensors are of; the active one, if it has none.

        >>> from ember_ml.nn.modules import Linear
        >>> Linear(2, 3).to_backend("numpy").backend
        'numpy'
        """
        first = next(iter(self.tensors().values()), None)
        home = door.home_of(first) or backends.current()
        return home.name

    def to(self, device: DeviceLike) -> Self:
        """The module itself, with its tensors on another device."""
        return self._convert(lambda tensor: ops.to_device(tensor, device), self.backend)

    def to_backend(self, name: str) -> Self:
        """The module itself, with its tensors moved to another engine.

        >>> from ember_ml.nn.modules import Linear
        >>> type(Linear(2, 3).to_backend("numpy").weight).__module__
        'numpy'
        """
        return self._convert(ops.asarray, name)

    def astype(self, dtype: DTypeLike) -> Self:
        """The module itself, with its floating tensors in another dtype.

        >>> from ember_ml.nn.modules import Linear
        >>> ops.to_dtype_str(Linear(2, 3).astype("float16").bias.dtype)
        'float16'
        """
        if as_dtype(dtype).kind not in KINDS["floating"]:
            raise TypeError(f"the floating tensors of a module become floating ones, not {as_dtype(dtype).name}")
        return self._convert(lambda tensor: ops.cast(tensor, dtype) if ops.is_float(tensor) else tensor, self.backend)

    def _convert(self, change: Callable[[Any], Any], backend: str) -> Self:
        # With that backend active, since host arrays would otherwise go to the one that is.
        with backends.use_backend(backend):
            self.assign({path: change(tensor) for path, tensor in self.tensors().items()})
        return self

    def summary(self, *inputs: Any) -> Summary:
        """A table of the layers: path, output shape and parameters, with totals.

        Args:
            inputs: what the model is called with, for the output shapes: tensors, or tuples of integers, which stand
                for zeros of that shape in the dtype of the parameters.

        >>> from ember_ml.nn.modules import Linear, ReLU, Sequential
        >>> summary = Sequential(Linear(4, 8), ReLU(), Linear(8, 2)).summary((32, 4))
        >>> summary.total, [row.shape for row in summary.rows]
        (58, ['[32, 2]', '[32, 8]', '[32, 8]', '[32, 2]'])
        """
        from ember_ml.nn.modules.summary import summarize  # slow to import, and needed only here

        return summarize(self, inputs)

    def __repr__(self) -> str:
        options = self.extra_repr()
        children = [f"({name}): {child!r}" for name, child in self.children().items()]
        if not children:
            return f"{type(self).__name__}({options})"
        lines = [options, *children] if options else children
        inner = "\n".join(lines).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {inner}\n)"

    def extra_repr(self) -> str:
        """What ``repr`` shows of the module itself: the arguments of its constructor that attributes still hold."""
        shown: list[str] = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = self.__dict__.get(name, parameter.default)
            if value is None and parameter.default is True:
                value = False
            is_default = value is parameter.default or (
                type(value) is type(parameter.default) and _equal(value, parameter)
            )
            if name not in self.__dict__ or isinstance(value, Module) or is_default or name in self._roles:
                continue
            text = getattr(value, "__name__", None) or repr(value)
            shown.append(text if parameter.default is parameter.empty else f"{name}={text}")
        return ", ".join(shown)


def _equal(value: Any, parameter: inspect.Parameter) -> bool:
    try:
        return bool(value == parameter.default)
    except Exception:
        return False


def _given(values: tuple[Any, ...]) -> str:
    """The tensors that a module was called with, for messages."""
    shown = [text for value in values for text in _described(value)]
    return f" given {', '.join(shown)}" if shown else ""


def _described(value: Any) -> list[str]:
    """The tensors in a value, or the sizes of nested lists of numbers."""
    found = [describe(leaf) for leaf in tree.leaves(value) if hasattr(leaf, "shape")]
    if found or not isinstance(value, (list, tuple)):
        return found
    kind, sizes = type(value).__name__, []
    while isinstance(value, (list, tuple)):
        sizes.append(len(value))
        value = value[0] if value else None
    return [f"{kind}{sizes}"]


# How many tensors a message shows.
_SHOWN = 6

# The attributes of every module that are not in its class.
_OWN = frozenset({"training", "_roles", "_ties", "_rebound", "_children", "_layout", "_parents"})

_CONTAINERS = (list, tuple, dict)
_NOT_TENSORS = (bool, int, float, complex, list, tuple)


def holds_modules(value: Any) -> bool:
    """Whether a container holds modules, and nothing else."""
    items = list(value.values() if isinstance(value, dict) else value)
    slots = [item for item in items if isinstance(item, Slot)]
    if slots:
        raise TypeError(f"a {type(value).__name__} of parameters would not be found; give each an attribute of its own")
    found = [
        isinstance(item, Module) or (isinstance(item, _CONTAINERS) and item and holds_modules(item)) for item in items
    ]
    if any(found) and not all(found):
        raise TypeError(
            f"a {type(value).__name__} of modules and other values is ambiguous; keep them in attributes of their own"
        )
    return any(found)


def _are_equal(one: Any, other: Any) -> bool:
    same = ops.array_equal(one, other, equal_nan=True)
    return bool(same)  # emberlint: ignore[EMB201] a state is checked before it is loaded


def _taking_the_place_of(old: Any, value: Any) -> Any:
    """A copy of ``value`` on the engine and device of ``old``, in its dtype."""
    home = door.home_of(old) or backends.current()
    with backends.use_backend(home.name):
        new = ops.asarray(portable.opened(value))
        if ops.is_complex(new) and not ops.is_complex(old):
            raise TypeError(f"complex numbers have no place in {describe(old)}")
        return ops.asarray(new, dtype=old.dtype, device=home.device_of(old), copy=True)


class Chain(Module):
    """Modules in a row, under the names "0", "1" and so on."""

    def __init__(self, *modules: Any) -> None:
        self.extend(modules)

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, name) for name in self._children])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)._of(list(self)[index])
        return getattr(self, str(self._position(index)))

    def __setitem__(self, index: int, module: Any) -> None:
        setattr(self, str(self._position(index)), as_module(module))

    def __delitem__(self, index: Any) -> None:
        modules = list(self)
        del modules[index]
        self._fill(modules)

    def append(self, module: Any) -> Self:
        """The row itself, with one more module at its end."""
        setattr(self, str(len(self)), as_module(module))
        return self

    def extend(self, modules: Iterable[Any]) -> Self:
        """The row itself, with more modules at its end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Self:
        """The row itself, with one more module before the one at ``index``."""
        modules = list(self)
        modules.insert(index, as_module(module))
        return self._fill(modules)

    def pop(self, index: int = -1) -> Any:
        """The module at ``index``, which is no longer in the row."""
        modules = list(self)
        taken = modules.pop(index)
        self._fill(modules)
        return taken

    @classmethod
    def _of(cls, modules: list[Any]) -> Self:
        return cls(*modules)

    def _fill(self, modules: list[Any]) -> Self:
        for name in list(self._children):
            delattr(self, name)
        return self.extend(modules)

    def _position(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{type(self).__name__} has {len(self)} modules, and none at {index}")
        return index % len(self)

    def extra_repr(self) -> str:
        return ""


class Sequential(Chain):
    """Modules that are called one after the other, each with what the one before it answered.

    Functions may stand among them. A list of all is taken as well.

    >>> model = Sequential(ops.square, ops.negative)
    >>> model([1.0, 2.0]).tolist()
    [-1.0, -4.0]
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__(*(modules[0] if len(modules) == 1 and isinstance(modules[0], (list, tuple)) else modules))

    def forward(self, x: Any) -> Any:
        for name in self._children:
            x = getattr(self, name)(x)
        return x


class ModuleList(Chain):
    """A list of modules, which a ``forward`` goes through as it likes.

    >>> from ember_ml.nn.modules import Linear
    >>> layers = ModuleList([Linear(2, 2) for _ in range(3)])
    >>> len(layers), list(layers.parameters())[-1]
    (3, '2.bias')
    """

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        self.extend(modules)

    @classmethod
    def _of(cls, modules: list[Any]) -> Self:
        return cls(modules)


class ModuleDict(Module):
    """A dictionary of modules.

    >>> from ember_ml.nn.modules import Linear
    >>> heads = ModuleDict({"left": Linear(2, 1), "right": Linear(2, 1)})
    >>> list(heads.parameters())
    ['left.weight', 'left.bias', 'right.weight', 'right.bias']
    """

    def __init__(self, modules: Mapping[str, Any] | None = None) -> None:
        for name, module in (modules or {}).items():
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        if name not in self._children:
            raise KeyError(f"no module {name!r}; there are: {', '.join(self._children) or 'none'}")
        return getattr(self, name)

    def __setitem__(self, name: str, module: Any) -> None:
        setattr(self, str(name), as_module(module))

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self._children

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[str]:
        return iter(self._children)

    def keys(self) -> list[str]:
        """The names of the modules."""
        return list(self._children)

    def values(self) -> list[Any]:
        """The modules."""
        return [getattr(self, name) for name in self._children]

    def items(self) -> list[tuple[str, Any]]:
        """Pairs of name and module."""
        return [(name, getattr(self, name)) for name in self._children]

    def extra_repr(self) -> str:
        return ""


class Lambda(Module):
    """A function as a module.

    >>> Lambda(ops.square)([3.0]).tolist()
    [9.0]
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def as_module(value: Any) -> Module:
    """``value`` if it is a module; a list, a dictionary or a function as one."""
    if isinstance(value, Module):
        return value
    if isinstance(value, dict):
        return ModuleDict(value)
    if isinstance(value, (list, tuple)):
        return ModuleList(value)
    if callable(value) and not isinstance(value, type):
        return Lambda(value)
    hint = f"; write {value.__name__}(...)" if isinstance(value, type) else ""
    raise TypeError(f"a module or a function is wanted, not {value!r}{hint}")
