"""A model of this library as a ``torch.nn.Module``; ``ember_ml.nn.to_torch`` creates it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch._C._functorch import peek_interpreter_stack

from ember_ml import backend as backends
from ember_ml.random import threefry


class Part(torch.nn.Module):
    """The parameters and buffers of one module of the model; the root computes with all of them."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        # Set without registration: the model is not a part of its own mirror.
        self.__dict__["_source"] = source
        self.training = source.training

    def __setattr__(self, name: str, value: Any) -> None:
        self._check_part(name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._check_part(name, None)
        super().__delattr__(name)

    def add_module(self, name: str, module: torch.nn.Module | None) -> None:
        self._check_part(name, module)
        super().add_module(name, module)

    def _check_part(self, name: str, value: Any) -> None:
        """Raise an error if a part would be added, replaced or removed: the model would compute without the change."""
        parts = self.__dict__.get("_modules", {})
        # torch.nn.utils.parametrize adds its modules under this name.
        if name == "parametrizations" or not (isinstance(value, torch.nn.Module) or name in parts):
            return
        # Functions that replace some layers, such as SyncBatchNorm.convert_sync_batchnorm, assign the others again.
        if value is not None and value is parts.get(name):
            return
        got = type(value).__name__ if isinstance(value, torch.nn.Module) else "none"
        raise AttributeError(
            f"to_torch: the layers of the module must stay those of the model, got {got} for {name!r} in "
            f"{self._get_name()}; change the model (nn.from_torch returns it) and call to_torch again, or make the "
            "module a part of another torch.nn.Module"
        )

    def _get_name(self) -> str:
        return type(self.__dict__["_source"]).__name__

    def extra_repr(self) -> str:
        return str(self.__dict__["_source"].extra_repr())


class Place(NamedTuple):
    """Where a tensor is: its first path, the attribute in the model, and all its names in the adapter."""

    path: str
    attribute: str
    is_parameter: bool
    names: list[tuple[Part, str]]

    def tensor(self) -> torch.Tensor:
        part, name = self.names[0]
        # An attribute of the part may be replaced by torch.func.functional_call, which the dictionaries hold.
        held: Any = part._parameters if self.is_parameter else part._buffers
        if name in held:
            return held[name]
        if torch.nn.utils.parametrize.is_parametrized(part, name):
            return getattr(part, name)
        kind = "parameter" if self.is_parameter else "buffer"
        raise RuntimeError(
            f"to_torch: {self.path!r} must be a {kind} of the module, got an attribute that a hook would compute, "
            "which is not called; use torch.nn.utils.parametrize, or make it permanent, as "
            "torch.nn.utils.prune.remove does"
        )


class Structure(NamedTuple):
    """The modules of the model, which hold tensors during one call alone.

    Args:
        root: the model.
        modules: one for each part of the adapter.
        holders: one for each place, the module that has the attribute.
    """

    root: Any
    modules: list[Any]
    holders: list[Any]


class Adapter(Part):
    """A ``torch.nn.Module`` that computes what a model of this library does, with parameters of its own.

    Its parameters and buffers have the paths of the model. A call gives the model the current ones and the mode of each
    part, runs it on the torch backend, and writes the buffers that it changed in place. Hooks of the parts below are
    not called, since the model calls its own modules. Threads that call it at the same time use copies of the model
    without tensors.

    Args:
        source: the model, which belongs to the adapter alone.
        parts: all of its modules by path, parents first; the path of the model itself is empty.
        tensors: by path, the module and attribute that hold a tensor, the tensor, and its role: ``"trainable"``,
            ``"frozen"``, ``"buffer"`` or ``"constant"``. Paths that are tied have the same tensor.
    """

    def __init__(
        self, source: Any, parts: Mapping[str, Any], tensors: Mapping[str, tuple[Any, str, torch.Tensor, str]]
    ) -> None:
        super().__init__(source)
        mirror: dict[str, Part] = {path: Part(part) if path else self for path, part in parts.items()}
        for path, part in mirror.items():
            if path:
                parent, _, name = path.rpartition(".")
                _register(mirror[parent], name, part)
        places: dict[int, Place] = {}
        holders = []
        for path, (module, attribute, tensor, role) in tensors.items():
            prefix, _, name = path.rpartition(".")
            part = mirror[prefix]
            if id(tensor) in places:
                value = places[id(tensor)].tensor()
                places[id(tensor)].names.append((part, name))
            else:
                is_parameter = role in ("trainable", "frozen")
                value = torch.nn.Parameter(tensor, role == "trainable") if is_parameter else tensor
                places[id(tensor)] = Place(path, attribute, is_parameter, [(part, name)])
                holders.append(module)
            _register(part, name, value, role != "constant")
        structure = Structure(source, list(parts.values()), holders)
        self.__dict__.update(
            _parts=list(mirror.values()), _places=list(places.values()), _structure=structure, _idle=[]
        )
        self._take_back(structure)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        structure = self._borrow()
        try:
            given = self._lend(structure)
            with backends.active(backends.load("torch")), draws():
                result = structure.root(*args, **kwargs)
            self._store(structure, given)
            return result
        finally:
            self._take_back(structure)
            if structure is not self.__dict__["_structure"]:
                self.__dict__["_idle"].append(structure)

    def _last_model(self) -> Any:
        """The model without tensors, with what else its last call has changed."""
        idle = self.__dict__["_idle"]
        return (idle[-1] if idle else self.__dict__["_structure"]).root

    def _borrow(self) -> Structure:
        """A structure that no other call uses."""
        original: Structure = self.__dict__["_structure"]
        # torch.compile traces the original, whose attributes its programs assume to be unchanged. torch 2.13: the
        # function is_compiling is true in all threads while one of them compiles.
        if torch.compiler.is_dynamo_compiling():
            return original
        try:
            found: Structure = self.__dict__["_idle"].pop()
        except IndexError:
            found = copy.deepcopy(original, {id(_NOTHING): _NOTHING})
        return found

    def _lend(self, structure: Structure) -> list[torch.Tensor]:
        """Give the model the tensors and modes of the adapter, and return the tensors."""
        for part, module in zip(self.__dict__["_parts"], structure.modules, strict=True):
            object.__setattr__(module, "training", part.training)
        given = []
        for place, holder in zip(self.__dict__["_places"], structure.holders, strict=True):
            tensor = place.tensor()
            given.append(tensor)
            object.__setattr__(holder, place.attribute, tensor)
        return given

    def _store(self, structure: Structure, given: list[torch.Tensor]) -> None:
        """Write the buffers that the model has changed."""
        for place, holder, old in zip(self.__dict__["_places"], structure.holders, given, strict=True):
            new = getattr(holder, place.attribute)
            if new is old:
                continue
            if place.is_parameter:
                raise RuntimeError(f"to_torch: forward must not assign parameters, got another {place.path!r}")
            for part, name in place.names:
                _write(part, name, new)

    def _take_back(self, structure: Structure) -> None:
        """Leave the model without tensors, so that a copy or a pickle of the adapter has each of them once."""
        for place, holder in zip(self.__dict__["_places"], structure.holders, strict=True):
            object.__setattr__(holder, place.attribute, _NOTHING)


class Draws(threefry.Block):
    """Stream of the random numbers of one call, whose key is drawn from torch's generator with the first of them.

    ``torch.manual_seed`` so seeds it, and ``torch.utils.checkpoint``, which restores that generator, repeats it. A call
    without random numbers draws no key.
    """

    def __init__(self, outer: threefry.Block | None) -> None:
        self.children = None
        self.count = 0
        self.outer = outer

    @cached_property
    def key(self) -> tuple[int, int]:
        # torch restores and seeds the generator of the CPU for models on all devices.
        return threefry.words(int(torch.randint(2**63 - 1, (), device="cpu")))


class draws:  # noqa: N801 - reads as a noun where it is used
    """Context manager in which random numbers follow torch's generator, except in a block of ``stream``."""

    def __enter__(self) -> None:
        here = threefry.here
        self.outer, self.native = here.block, here.native
        if here.block is not None or here.native:
            return
        is_traced = torch.compiler.is_dynamo_compiling() or torch.compiler.is_exporting()
        if is_traced or peek_interpreter_stack() is not None:
            # Compilers and torch.func know torch's own draws, while a key would be a constant to them.
            here.native = 1
        else:
            here.block = Draws(None)

    def __exit__(self, *error: object) -> None:
        threefry.here.block, threefry.here.native = self.outer, self.native


_NOTHING = torch.empty(0)


def _register(part: Part, name: str, value: Any, is_persistent: bool = True) -> None:
    """Register a parameter, a buffer or a part under ``name``."""
    try:
        if isinstance(value, torch.nn.Module):
            torch.nn.Module.add_module(part, name, value)
        elif isinstance(value, torch.nn.Parameter):
            part.register_parameter(name, value)
        else:
            part.register_buffer(name, value, is_persistent)
    except KeyError:
        raise ValueError(
            "to_torch: the name of a tensor or module must not be that of an attribute of torch.nn.Module, got "
            f"{name!r} in {part._get_name()}"
        ) from None


def _write(part: Part, name: str, new: torch.Tensor) -> None:
    """Set a buffer; in place if the value fits, since DDP and others keep the tensor."""
    old = part._buffers[name]
    with torch.no_grad():
        if old is not None and old.shape == new.shape and old.dtype == new.dtype and old.device == new.device:
            old.copy_(new)
        else:
            part._buffers[name] = new.detach()
