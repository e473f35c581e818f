"""A model of this library as a ``torch.nn.Module``; ``ember_ml.nn.to_torch`` creates it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from ember_ml import backend as backends


class Part(torch.nn.Module):
    """The parameters and buffers of one module of the model; the root computes with all of them."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        # Set without registration: the model is not a part of its own mirror.
        self.__dict__["_source"] = source
        self.training = source.training

    def _get_name(self) -> str:
        return type(self.__dict__["_source"]).__name__

    def extra_repr(self) -> str:
        return str(self.__dict__["_source"].extra_repr())


class Place(NamedTuple):
    """Where a tensor is: its first path, the module and attribute in the model, and all its names in the adapter."""

    path: str
    module: Any
    attribute: str
    is_parameter: bool
    names: list[tuple[Part, str]]

    def tensor(self) -> torch.Tensor:
        part, name = self.names[0]
        # An attribute of the part may be replaced by torch.func.functional_call, which the dictionaries hold.
        found: Any = part._parameters[name] if self.is_parameter else part._buffers[name]
        return found


class Adapter(Part):
    """A ``torch.nn.Module`` that computes what a model of this library does, with parameters of its own.

    Its parameters and buffers have the paths of the model. A call gives the model the current ones and the mode of each
    part, runs it on the torch backend, and writes the buffers that it changed in place. Hooks of the parts below are
    not called, since the model calls its own modules.

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
        for path, (module, attribute, tensor, role) in tensors.items():
            prefix, _, name = path.rpartition(".")
            part = mirror[prefix]
            if id(tensor) in places:
                value = places[id(tensor)].tensor()
                places[id(tensor)].names.append((part, name))
            else:
                is_parameter = role in ("trainable", "frozen")
                value = torch.nn.Parameter(tensor, role == "trainable") if is_parameter else tensor
                places[id(tensor)] = Place(path, module, attribute, is_parameter, [(part, name)])
            _register(part, name, value, role != "constant")
        self.__dict__["_parts"], self.__dict__["_places"] = list(mirror.values()), list(places.values())
        self._take_back()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given = self._lend()
        try:
            with backends.active(backends.load("torch")):
                result = self.__dict__["_source"](*args, **kwargs)
            self._store(given)
            return result
        finally:
            self._take_back()

    def _lend(self) -> list[torch.Tensor]:
        """Give the model the tensors and modes of the adapter, and return the tensors."""
        for part in self.__dict__["_parts"]:
            object.__setattr__(part._source, "training", part.training)
        given = []
        for place in self.__dict__["_places"]:
            tensor = place.tensor()
            given.append(tensor)
            object.__setattr__(place.module, place.attribute, tensor)
        return given

    def _store(self, given: list[torch.Tensor]) -> None:
        """Write the buffers that the model has changed."""
        for place, old in zip(self.__dict__["_places"], given, strict=True):
            new = getattr(place.module, place.attribute)
            if new is old:
                continue
            if place.is_parameter:
                raise RuntimeError(f"to_torch: forward must not assign parameters, got another {place.path!r}")
            for part, name in place.names:
                _write(part, name, new)

    def _take_back(self) -> None:
        """Leave the model without tensors, so that a copy or a pickle of the adapter has each of them once."""
        for place in self.__dict__["_places"]:
            object.__setattr__(place.module, place.attribute, _NOTHING)


_NOTHING = torch.empty(0)


def _register(part: Part, name: str, value: Any, is_persistent: bool = True) -> None:
    """Register a parameter, a buffer or a part under ``name``."""
    try:
        if isinstance(value, torch.nn.Module):
            part.add_module(name, value)
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
