"""Module: the base class of layers and models, with named tensors and submodules.

A module stores the engine's own tensors as plain attributes, so reading a weight has no overhead. Assigning a
``Parameter`` or a ``Buffer`` registers the name of the attribute, which then holds the plain tensor. A path such as
``"layers.0.weight"`` identifies a tensor in a model. A layout (``layout.py``) is the cached list of the modules and
tensors below a module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, Self, TypeVar
from weakref import ref

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.dtypes import KINDS, as_dtype, describe
from ember_ml.errors import UnsupportedError
from ember_ml.extend import backend_of, current_backend, unwrap
from ember_ml.nn.modules.description import annotate_error, options
from ember_ml.nn.modules.layout import CONTAINERS, OWN, Node, Tied, holds_modules
from ember_ml.nn.modules.slots import BUFFER, CONSTANT, FROZEN, TIED, TRAINABLE, Slot, native
from ember_ml.nn.modules.state import Keys, load_state
from ember_ml.nn.modules.unregistered import PLAIN, warn_if_unregistered
from ember_ml.spellings import OF_MODULES, unknown_attribute
from ember_ml.types import DeviceLike, DTypeLike, Tensor

if TYPE_CHECKING:
    from ember_ml.nn.modules.summary import Summary

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Forward(Protocol[P, R]):
    """What ``__call__`` needs of a module: checkers read the parameters and the result of a call from ``forward``."""

    @property
    def forward(self) -> Callable[P, R]: ...


def _forward(self: Module, *args: Any, **kwargs: Any) -> Any:
    """Compute the output of the module; subclasses override this method."""
    raise NotImplementedError(f"{type(self).__name__}: a subclass of Module must define forward, got none")


class Module(Node):
    """Base class of layers and models: tensors, submodules, and a ``forward`` method that computes with them.

    A subclass assigns parameters and modules to attributes in ``__init__`` and defines ``forward``; calling the module
    runs ``forward``. Lists and dictionaries of modules are converted to ``ModuleList`` and ``ModuleDict``. A shared
    module or ``Tied`` tensor is listed once, under its first path, but ``state_dict`` has a tied tensor under every
    path. A model runs on the engine of its tensors: the engine that was active when it was created, or the one that
    ``to_backend`` moved it to.

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

    def __call__(self: Forward[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return self.forward(*args, **kwargs)
        except Exception as error:
            annotate_error(self, error, (*args, *kwargs.values()))
            raise

    # Names that states of other libraries have in such a layer, and that are not loaded.
    _ignored_in_states: ClassVar[frozenset[str]] = frozenset()

    # Typed as an attribute, so that type checkers accept any signature in subclasses.
    forward: Callable[..., Any] = _forward

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Slot):
            self._register(name)
            self._roles[name] = value.role
            value = value.value
        elif isinstance(value, Module):
            self._register_child(name, value)
        elif isinstance(value, Tied):
            self._tie(name, value)
            return
        elif name in self._roles:
            if value is None:
                self._unregister(name)
            else:
                value = native(value) if type(value) in _NOT_TENSORS else unwrap(value)
                role = self._roles[name]
                if role is TIED:
                    setattr(*self._holder(name), value)
                    return
                if role is TRAINABLE or role is FROZEN:
                    self._rebound[name] = None
                    # Another name may hold the same tensor, which is an error: check again on next use.
                    for module in self._dependents():
                        if module._layout is not None:
                            module._layout.is_checked = False
        else:
            if name in self._children:
                self._unregister(name)
            if type(value) in CONTAINERS:
                if not value:
                    # Modules may be added to it later, so layouts keep track of empty containers.
                    self._invalidate_layouts()
                elif holds_modules(value):
                    from ember_ml.nn.modules.containers import as_module  # imported here to avoid a circular import

                    value = as_module(value)
                    self._register_child(name, value)
            elif type(value) not in PLAIN:
                warn_if_unregistered(self, name, value)
        object.__setattr__(self, name, value)

    if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any attribute name

        def __getattr__(self, name: str) -> Any:
            if name in self.__dict__.get("_ties", ()):
                return getattr(*self._holder(name))
            raise unknown_attribute(self, name, OF_MODULES)

    def __delattr__(self, name: str) -> None:
        is_tied = name in self._ties
        self._unregister(name)
        if not is_tied:
            object.__delattr__(self, name)

    def _register(self, name: str) -> None:
        """Check that ``name`` is valid for a tensor or module, and unregister what it names now."""
        if hasattr(Module, name) or name in OWN:
            raise AttributeError(
                f"{type(self).__name__}: the name of a tensor or module must not be that of an attribute of Module, "
                f"got {name!r}"
            )
        if "." in name or not name:
            raise ValueError(
                f"{type(self).__name__}: the name of a tensor or module must not be empty or contain dots, which "
                f"separate names in a path, got {name!r}"
            )
        self._unregister(name)
        self._invalidate_layouts()

    def _register_child(self, name: str, child: Module) -> None:
        self._register(name)
        self._children[name] = None
        child._parents[id(self)] = ref(self)

    def _tie(self, name: str, tied: Tied) -> None:
        if tied.name not in tied.module._roles:
            known = ", ".join(tied.module._roles) or "none"
            raise ValueError(
                f"Tied: name must be that of a tensor of {type(tied.module).__name__}, one of {known}, got "
                f"{tied.name!r}"
            )
        holder, held = tied.module._holder(tied.name)
        if holder is self and held == name:
            raise ValueError(f"Tied: a tensor must not be tied to itself, got {name!r} of {type(self).__name__}")
        new = getattr(holder, held)
        if name in self._roles and tuple(getattr(self, name).shape) != tuple(new.shape):
            raise ValueError(
                f"Tied: the tensors must have the same shape, got {describe(new)} for {name}, which is "
                f"{describe(getattr(self, name))}"
            )
        # Tying a name does not change the order of the tensors.
        roles = {**self._roles, name: TIED}
        self._register(name)
        self.__dict__.pop(name, None)
        self.__dict__["_roles"] = roles
        self._ties[name] = holder, held
        # Changes in the holder invalidate the layout of this module too.
        holder._parents[id(self)] = ref(self)

    def parameters(self, trainable: bool | None = True) -> dict[str, Tensor]:
        """Parameters by path.

        Args:
            trainable: ``True`` for trainable parameters, ``False`` for frozen ones, ``None`` for both.

        >>> from ember_ml.nn.modules import Linear
        >>> list(Linear(2, 3).parameters())
        ['weight', 'bias']
        """
        layout = self.layout()
        if trainable:
            return {path: getattr(module, name) for path, module, name in layout.trainable}
        return layout.with_roles(FROZEN) if trainable is False else layout.with_roles(TRAINABLE, FROZEN)

    def count_parameters(self, trainable: bool | None = None) -> int:
        """Number of elements of all parameters; a tied one counts once.

        Args:
            trainable: ``None`` for all parameters, ``True`` for trainable ones, ``False`` for frozen ones.

        >>> from ember_ml.nn.modules import Linear
        >>> Linear(2, 3).freeze("bias").count_parameters(), Linear(2, 3).freeze("bias").count_parameters(trainable=True)
        (9, 6)
        """
        return sum(math.prod(tensor.shape) for tensor in self.parameters(trainable).values())

    def named_parameters(self, trainable: bool | None = True) -> Iterator[tuple[str, Tensor]]:
        """Pairs of path and parameter; see ``parameters``."""
        return iter(self.parameters(trainable).items())

    def buffers(self) -> dict[str, Tensor]:
        """Buffers, persistent or not, by path."""
        return self.layout().with_roles(BUFFER, CONSTANT)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors, parameters and buffers, by path."""
        return {path: getattr(module, name) for path, module, name in self.layout().entries.values()}

    def assign(self, values: Mapping[str, Any]) -> None:
        """Replace tensors by path, as they are; ``load_state_dict`` converts them and checks shapes."""
        entries = self.layout().names
        for path, value in values.items():
            if path not in entries:
                raise KeyError(
                    f"{type(self).__name__}: a path must be that of a tensor, one of {', '.join(entries) or 'none'}, "
                    f"got {path!r}"
                )
            _, module, name = entries[path]
            object.__setattr__(module, name, value)

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers by path; tied tensors are listed under all of their paths.

        >>> from ember_ml.nn.modules import Linear
        >>> {path: tuple(tensor.shape) for path, tensor in Linear(2, 3).state_dict().items()}
        {'weight': (2, 3), 'bias': (3,)}
        """
        return self.layout().saved()

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Keys:
        """Load tensors by path, and return the missing and the unexpected paths.

        Values may be tensors of any engine or anything that converts to a tensor. They are copied to the engine, device
        and dtype of the tensors that they replace. If an error is raised, the module is unchanged.

        Args:
            state: tensors by path, such as the result of ``state_dict``.
            strict: raise ``ValueError`` for missing and unexpected paths. Wrong shapes always raise it.

        >>> from ember_ml.nn.modules import Linear
        >>> layer = Linear(1, 2)
        >>> layer.load_state_dict({"weight": [[1.0, 2.0]], "bias": [0.5, 0.25]})
        Keys(missing=[], unexpected=[])
        >>> layer([[2.0]]).tolist()
        [[2.5, 4.25]]
        """
        return load_state(self, state, strict)

    def load_torch_state_dict(
        self, state: Mapping[str, Any], strict: bool = True, *, flattened: Mapping[str, int] | None = None
    ) -> Keys:
        """Load the state of a ``torch.nn`` model with the same structure, and return the paths as ``load_state_dict``.

        The weights of ``Linear``, convolutions, recurrent layers and attention are converted to the order of axes of
        this library, and those of recurrent, attention and transformer layers to its names. Other tensors must have the
        same paths and shapes.

        Args:
            state: tensors by path, such as ``state_dict()`` of the torch model.
            strict: as in ``load_state_dict``.
            flattened: number of channels by path of each ``Linear`` whose input was flattened from images. torch
                flattens (channels, height, width), but a model with channels last flattens (height, width, channels).

        >>> from ember_ml.nn.modules import Linear
        >>> layer = Linear(2, 1)
        >>> layer.load_torch_state_dict({"weight": [[1.0, 2.0]], "bias": [0.5]})
        Keys(missing=[], unexpected=[])
        >>> layer.weight.tolist()
        [[1.0], [2.0]]
        """
        from ember_ml.nn.modules.torch_state import convert_torch_state  # imports the layers, which import this module

        return load_state(self, convert_torch_state(self, state, flattened or {}), strict)

    def save(self, path: object) -> None:
        """Write ``state_dict()`` to a file that ``load`` reads on any engine; the suffix determines the format."""
        ops.save(path, self.state_dict())

    def load(self, path: object, strict: bool = True) -> Keys:
        """Load the state that ``save`` wrote to a file; see ``load_state_dict``.

        >>> import tempfile
        >>> from ember_ml.nn.modules import Linear
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Linear(2, 3).save(f"{folder}/model.safetensors")
        ...     Linear(2, 3).load(f"{folder}/model.safetensors")
        Keys(missing=[], unexpected=[])
        """
        return self.load_state_dict(ops.load(path), strict)

    def modules(self) -> Iterator[Module]:
        """This module and all modules below it."""
        return iter(self.layout().modules.values())

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Pairs of path and module for this module, whose path is empty, and all modules below it."""
        return iter(self.layout().modules.items())

    def children(self) -> dict[str, Module]:
        """Modules directly below this one, by name."""
        self.layout()
        return {name: getattr(self, name) for name in self._children}

    def train(self, mode: bool = True) -> Self:
        """Set training mode and return the module: dropout is active, and batch statistics are used.

        Args:
            mode: if false, set evaluation mode instead.
        """
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode and return the module: dropout is inactive, and running statistics are used.

        >>> from ember_ml.nn.modules import Dropout
        >>> Dropout(0.5).eval()([1.0, 2.0]).tolist()
        [1.0, 2.0]
        """
        return self.train(False)

    def freeze(self, *patterns: str) -> Self:
        """Exclude parameters from training, and return the module.

        Args:
            patterns: paths of parameters or modules, in which ``*`` matches anything; by default all parameters.

        >>> from ember_ml.nn.modules import Linear, Sequential
        >>> list(Sequential(Linear(2, 2), Linear(2, 2)).freeze("0", "*.bias").parameters())
        ['1.weight']
        """
        return self._set_role(FROZEN, patterns)

    def unfreeze(self, *patterns: str) -> Self:
        """Make parameters trainable again, and return the module; the opposite of ``freeze``."""
        return self._set_role(TRAINABLE, patterns)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Let PyTorch record operations on the trainable parameters, for ``loss.backward()``, and return the module.

        ``transform.grad`` and ``Trainer`` need no record, and work on every engine. Other engines have none, and raise
        ``UnsupportedError``. Parameters that are loaded, cast or moved later are new tensors: call this method again.

        Args:
            requires_grad: if false, record no more.
        """
        for parameter in self.parameters().values():
            if not hasattr(parameter, "requires_grad_"):
                raise UnsupportedError(
                    f"requires_grad_: the module must be on the torch backend, got {self.backend}; "
                    "ember_ml.transform.value_and_grad and training.Trainer compute gradients on every engine"
                )
            parameter.requires_grad_(requires_grad)
        return self

    def _set_role(self, role: str, patterns: tuple[str, ...]) -> Self:
        layout = self.layout()
        entries = [e for e in layout.names.values() if e.module._roles[e.name] in (TRAINABLE, FROZEN)]
        chosen = set() if patterns else {entry.path for entry in entries}
        for pattern in patterns:
            found = {e.path for e in entries if fnmatchcase(e.path, pattern) or fnmatchcase(e.path, pattern + ".*")}
            if not found:
                known = ", ".join(entry.path for entry in entries) or "none"
                raise ValueError(
                    f"{type(self).__name__}: pattern must match a parameter, one of {known}, got {pattern!r}"
                )
            chosen |= found
        for path, module, name in entries:
            if path in chosen:
                module._roles[name] = role
                module._invalidate_layouts()
        return self

    @property
    def backend(self) -> str:
        """Name of the engine of the module's tensors; the active engine if there are no tensors.

        >>> from ember_ml.nn.modules import Linear
        >>> Linear(2, 3).to_backend("numpy").backend
        'numpy'
        """
        first = next(iter(self.layout().entries.values()), None)
        backend = backend_of(first and getattr(first.module, first.name)) or current_backend()
        return backend.chosen_as

    def to(self, device: DeviceLike) -> Self:
        """Move the tensors to another device, and return the module."""
        return self._convert(lambda tensor: ops.to_device(tensor, device), self.backend)

    def to_backend(self, name: str) -> Self:
        """Move the tensors to another engine, and return the module.

        >>> from ember_ml.nn.modules import Linear
        >>> type(Linear(2, 3).to_backend("numpy").weight).__module__
        'numpy'
        """
        return self._convert(ops.asarray, name)

    def astype(self, dtype: DTypeLike) -> Self:
        """Cast the floating-point tensors to another dtype, and return the module.

        >>> from ember_ml.nn.modules import Linear
        >>> ops.to_dtype_str(Linear(2, 3).astype("float16").bias.dtype)
        'float16'
        """
        if as_dtype(dtype).kind not in KINDS["floating"]:
            raise TypeError(f"{type(self).__name__}: dtype must be floating, got {as_dtype(dtype).name}")
        return self._convert(lambda tensor: ops.cast(tensor, dtype) if ops.is_float(tensor) else tensor, self.backend)

    def _convert(self, change: Callable[[Any], Any], backend: str) -> Self:
        # NumPy arrays are converted to the active backend, so activate the intended one.
        with use_backend(backend):
            self.assign({path: change(tensor) for path, tensor in self.tensors().items()})
        return self

    def summary(self, *inputs: Any) -> Summary:
        """Table of the layers with their paths, output shapes and numbers of parameters, and totals.

        Args:
            inputs: example arguments, with which the model is called once to find the output shapes. A tuple of
                integers is a tensor of zeros of that shape, in the dtype of the parameters.

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

    def _repr_html_(self) -> str:
        """Table of the layers for notebooks."""
        return self.summary()._repr_html_()

    def extra_repr(self) -> str:
        """Text that ``repr`` shows for the module itself: constructor arguments that are also attributes."""
        return options(self)


_NOT_TENSORS = (bool, int, float, complex, list, tuple)
