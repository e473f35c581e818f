"""Base classes of architectures: the configuration, and the model with its table of tensor names."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from ember_ml import ops
from ember_ml.dtypes import as_dtype
from ember_ml.nn.modules import Module
from ember_ml.nn.modules.torch_state import torch_axes
from ember_ml.types import DTypeLike, Tensor


@dataclass(frozen=True, kw_only=True)
class Config:
    """Configuration of an architecture: the entries of ``config.json`` that it uses, under the same names.

    ``extra`` has the other entries, which ``to_dict`` writes back unchanged.
    """

    model_type: str = ""
    architectures: list[str] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    # Entries of config.json that have another name here, and their names here.
    aliases: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Configuration with the entries of a ``config.json``; an entry of the wrong type is an error."""
        hints = get_type_hints(cls)
        names = {entry.name for entry in dataclasses.fields(cls)} - {"extra"}
        given = {cls.aliases.get(name, name): value for name, value in values.items()}
        wrong = [
            f"{name} must be {values[other]!r} as {other}, which is another name for it, got {values[name]!r}"
            for other, name in cls.aliases.items()
            if other in values and name in values and values[other] != values[name]
        ]
        own = {name: value for name, value in given.items() if name in names}
        wrong += [
            f"{name} must be {_written_type(hints[name])}, got {value!r}"
            for name, value in own.items()
            if not _is_of(value, hints[name])
        ]
        required = {
            entry.name
            for entry in dataclasses.fields(cls)
            if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        }
        wrong += [f"{name} must be given" for name in sorted(required - own.keys())]
        if wrong:
            raise ValueError("; ".join(wrong))
        config = cls(**own, extra={name: value for name, value in given.items() if name not in names})
        config.check()
        return config

    def to_dict(self) -> dict[str, Any]:
        """Entries for a ``config.json``."""
        entries = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self) if entry.name != "extra"}
        return {**self.extra, **entries}

    def check(self) -> None:
        """Raise ``ValueError`` for values that the architecture does not support; subclasses override this method."""


def _is_of(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if get_origin(hint) in (Union, UnionType):
        return any(_is_of(value, option) for option in get_args(hint))
    kind = get_origin(hint) or hint
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is kind


def _written_type(hint: Any) -> str:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words = {int: "an integer", float: "a number", bool: "true or false", str: "a string", NoneType: "null"}
    return " or ".join(words.get(option, (get_origin(option) or option).__name__) for option in options)


class StoredName(NamedTuple):
    """Name of a layer or tensor in the files of an architecture, if its layout there is not that of ``torch.nn``.

    ``has_own_axes``: weights have the axes of this library. ``part``: index of the tensor, and number of equal parts
    along the last axis, in the layout of this library, that the stored tensor consists of.
    """

    name: str
    has_own_axes: bool = False
    part: tuple[int, int] = (0, 1)


class Source(NamedTuple):
    """Where a file stores a tensor of the model.

    ``axes[i]`` is the axis in the file of axis ``i`` in the model; ``None`` if the axes are the same. ``part`` is that
    of ``StoredName``.
    """

    name: str
    axes: tuple[int, ...] | None
    part: tuple[int, int]

    def stored_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape in the file of a tensor that has ``shape`` in the model."""
        if self.part[1] > 1:
            shape = (*shape[:-1], shape[-1] * self.part[1])
        if self.axes is None:
            return shape
        stored = [0] * len(shape)
        for place, axis in enumerate(self.axes):
            stored[axis] = shape[place]
        return tuple(stored)

    def extract(self, stored: Any) -> Any:
        """Tensor of the model in that of the file."""
        x = stored if self.axes is None else ops.permute_dims(stored, self.axes)
        index, count = self.part
        if count == 1:
            return x
        size = x.shape[-1] // count
        return x[..., index * size : (index + 1) * size]

    def restore(self, tensors: list[Any]) -> Any:
        """Tensor of the file, from all parts of it in the model."""
        x = tensors[0] if len(tensors) == 1 else ops.concat(tensors, axis=-1)
        if self.axes is None:
            return x
        return ops.permute_dims(x, tuple(sorted(range(len(self.axes)), key=self.axes.__getitem__)))


class PretrainedModel(Module):
    """Base class of architectures: a model with a configuration, whose tensors have other names in files.

    A subclass defines ``__init__(self, config, *, dtype=None)``, ``forward``, and:

    - ``config_class``: its subclass of ``Config``.
    - ``names``: the name in files of each layer or tensor by its path; ``{}`` in both is a number. The longest path
      wins. Layouts are those of ``torch.nn`` unless a ``StoredName`` says otherwise.
    - ``base``: prefix of the names of the model without its head, in files of a model with a head.
    - ``ignored``: patterns (regular expressions) of names in files, without ``base``, that are not loaded.
    - ``defaulted``: patterns of names that a file may lack, where the model keeps its initial values.
    - ``file_renames``: patterns (regular expressions) in names of files of any version, and their replacements.
    - ``adapter_renames``: patterns in names of files, and their replacements in files of adapters.
    - ``optional``: paths of layers that the model does without if a file has none of their tensors.
    - ``heads``: paths of the layers that ``add_head`` adds to those of a model without a head.
    """

    config_class: ClassVar[type[Config]]
    names: ClassVar[Mapping[str, str | StoredName]]
    base: ClassVar[str] = ""
    ignored: ClassVar[tuple[str, ...]] = ()
    defaulted: ClassVar[tuple[str, ...]] = ()
    file_renames: ClassVar[Mapping[str, str]] = {}
    adapter_renames: ClassVar[Mapping[str, str]] = {}
    optional: ClassVar[tuple[str, ...]] = ()
    heads: ClassVar[tuple[str, ...]] = ()

    config: Any

    def __init__(self, config: Any, *, dtype: DTypeLike | None = None) -> None:
        raise NotImplementedError(f"{type(self).__name__}: a subclass of PretrainedModel must define __init__")

    def add_head(self, *, dtype: DTypeLike | None = None) -> None:
        """Assign new layers to the paths ``heads``."""

    def duplicates(self) -> dict[str, str]:
        """Names that files may have for a second copy of a tensor, and the name of the tensor."""
        return {}

    def sources(self) -> dict[str, Source]:
        """Where a file has each tensor of ``state_dict()``, by its path."""
        modules = dict(self.named_modules())
        found: dict[str, Source] = {}
        # Layers of one kind differ in their number alone.
        entries: dict[str, StoredName] = {}
        for path, tensor in self.state_dict().items():
            prefix, _, name = path.rpartition(".")
            numbers = _NUMBER.findall(path)
            pattern = _NUMBER.sub("{}", path) if numbers else path
            entry = entries.get(pattern)
            if entry is None:
                entry = entries[pattern] = _find(self.names, pattern, type(self).__name__)
            axes = None if entry.has_own_axes else torch_axes(modules.get(prefix), name, len(tensor.shape))
            found[path] = Source(entry.name.format(*numbers) if numbers else entry.name, axes, entry.part)
        return found

    def stored(self) -> dict[str, tuple[str, tuple[int, ...], Callable[[], Tensor]]]:
        """Dtype, shape and a function that makes the tensor, for each tensor of a file, by its name there."""
        parts: dict[str, dict[int, tuple[str, Source]]] = {}
        ties = self.layout().ties
        for path, source in self.sources().items():
            if path not in ties:
                parts.setdefault(source.name, {})[source.part[0]] = path, source
        state: dict[str, Any] = self.state_dict()
        found: dict[str, tuple[str, tuple[int, ...], Callable[[], Tensor]]] = {}
        for name, pieces in parts.items():
            tensors = [state[pieces[index][0]] for index in sorted(pieces)]
            source = pieces[0][1]
            shape = source.stored_shape(tuple(tensors[0].shape))
            found[name] = as_dtype(tensors[0].dtype).name, shape, partial(source.restore, tensors)
        return found

    def renamed(self, name: str) -> str:
        """Name that ``names`` has for a tensor, from the name in a file of any version."""
        return _substituted(self.file_renames, name)

    def adapter_name(self, name: str) -> str:
        """Name of a layer or tensor in files of adapters, from its name in files of the model."""
        return _substituted(self.adapter_renames, name)

    def is_ignored(self, name: str) -> bool:
        """Whether a tensor of a file is not loaded."""
        rest = name.removeprefix(self.base)
        return name in self.duplicates() or any(re.fullmatch(pattern, rest) for pattern in self.ignored)

    def is_defaulted(self, name: str) -> bool:
        """Whether a file may lack a tensor."""
        return any(re.fullmatch(pattern, name) for pattern in self.defaulted)


def _substituted(patterns: Mapping[str, str], text: str) -> str:
    for pattern, replacement in patterns.items():
        text = re.sub(pattern, replacement, text)
    return text


# A part of a path that is a number.
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


def _find(names: Mapping[str, str | StoredName], pattern: str, model: str) -> StoredName:
    """Entry for the longest part of ``pattern`` that ``names`` has, with the rest of the pattern."""
    parts = pattern.split(".")
    for length in range(len(parts), 0, -1):
        key = ".".join(parts[:length])
        if key in names:
            entry = names[key]
            entry = entry if isinstance(entry, StoredName) else StoredName(entry)
            return entry._replace(name=".".join([entry.name, *parts[length:]]))
    raise ValueError(f"{model}: names must have an entry for every tensor, got none for {pattern!r}")


# Names of activations in config.json that are other ones here, with options.
_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu_new": partial(ops.gelu, approximate=True),
    "gelu_fast": partial(ops.gelu, approximate=True),
    "gelu_pytorch_tanh": partial(ops.gelu, approximate=True),
    "gelu": ops.gelu,
    "gelu_python": ops.gelu,
    "relu": ops.relu,
    "silu": ops.silu,
    "swish": ops.silu,
    "tanh": ops.tanh,
}


def activation(name: str) -> Callable[[Any], Any]:
    """Function that ``config.json`` calls ``name``."""
    if name not in _ACTIVATIONS:
        raise ValueError(f"the activation must be one of {', '.join(_ACTIVATIONS)}, got {name!r}")
    return _ACTIVATIONS[name]
