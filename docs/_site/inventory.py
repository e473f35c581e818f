"""Everything that has a generated page."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import ember_ml
from ember_ml import backend, distributed, models, nn, ops, optim, training, transform
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.models.decoder import Decoder
from ember_ml.nn import features, initializers, wirings
from ember_ml.optim import schedules
from ember_ml.tools import layers as layer_page


class Entry(NamedTuple):
    """A class or function with a page of its own: where the page is, its full name, and the object."""

    docname: str
    name: str
    thing: Any
    other_names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.name.rpartition(".")[2]


class Group(NamedTuple):
    """Pages below one index page: ``folder`` holds them, ``sections`` are the headings of the index."""

    folder: str
    title: str
    text: str
    sections: dict[str, list[Entry]]

    @property
    def entries(self) -> list[Entry]:
        return [entry for entries in self.sections.values() for entry in entries]


def page_of(operation: Operation) -> str:
    """Document of an operation.

    >>> page_of(REGISTRY["add"])
    'operations/math/add'
    """
    return f"operations/{operation.category}/{operation.name}"


def _entries(folder: str, place: str, things: Mapping[str, Any]) -> list[Entry]:
    """Entries of objects by the names that users write. Further names of one object are listed on its page."""
    own = {name: thing for name, thing in things.items() if getattr(thing, "__name__", name) == name}
    return [
        Entry(
            f"{folder}/{_file_name(name, own)}",
            f"{place}.{name}",
            thing,
            tuple(f"{place}.{other}" for other, same in things.items() if same is thing and other != name),
        )
        for name, thing in own.items()
    ]


def _file_name(name: str, names: Iterable[str]) -> str:
    """Name of a page; a function whose name differs from that of a class in case alone has a longer one."""
    alike = [other for other in names if other.lower() == name.lower() and other != name]
    return f"{name}_function" if alike and name.islower() else name


def _public(module: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Public classes and functions that a module defines, or those of these names, in the order of the source."""
    found = {name: getattr(module, name) for name in names or vars(module) if not name.startswith("_")}
    things = {
        name: thing
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isroutine(thing))
        and (names is not None or thing.__module__ == module.__name__)
        and inspect.getdoc(thing)
        and not (inspect.isclass(thing) and issubclass(thing, BaseException))
    }
    return things if names is None else dict(sorted(things.items(), key=lambda item: item[0].lower()))


def groups() -> list[Group]:
    """All groups but the operations and the rules, in the order of the reference."""
    every_layer = {
        title: _entries("layers", "ember_ml.nn", layer_page.members(modules))
        for title, modules in layer_page.CATEGORIES.items()
    }
    trained = _public(training, training.__all__)
    metrics = {name: thing for name, thing in trained.items() if issubclass(thing, training.Metric)}
    callbacks = {name: thing for name, thing in trained.items() if issubclass(thing, training.Callback)}
    rest = {name: thing for name, thing in trained.items() if name not in metrics and name not in callbacks}
    updating = _public(optim, [name for name in optim.__all__ if name != "schedules"])
    transforms = {
        name: getattr(ember_ml, name)
        for name in dir(ember_ml)
        if getattr(getattr(ember_ml, name), "__module__", "").startswith(transform.__name__)
    }
    loading = _public(models, models.__all__)
    choosing = {
        name: getattr(ember_ml, name)
        for name in dir(ember_ml)
        if getattr(getattr(ember_ml, name), "__module__", "") == backend.__name__
    }
    tensor = importlib.import_module("ember_ml.nn.tensor")  # a package of the same name as its functions' module
    return [
        Group("layers", "Layers", "Every layer is `nn.<name>` after `from ember_ml import nn`.", every_layer),
        Group(
            "optimizers",
            "Optimizers",
            "Every optimizer is `optim.<name>` after `from ember_ml import optim`.",
            {
                "Optimizers": _entries("optimizers", "ember_ml.optim", _of(updating, inspect.isclass)),
                "Clipping": _entries("optimizers", "ember_ml.optim", _of(updating, inspect.isroutine)),
            },
        ),
        Group(
            "schedules",
            "Schedules",
            "A schedule is a function from the number of steps so far to the learning rate of the next step.",
            {
                "Schedules": _entries(
                    "schedules", "ember_ml.optim.schedules", _of(_public(schedules), inspect.isroutine)
                )
            },
        ),
        Group(
            "training",
            "Trainer, metrics and callbacks",
            "The training loop, what it measures, and what it calls on the way.",
            {
                "Trainer": _entries("training", "ember_ml.training", rest),
                "Metrics": _entries("training", "ember_ml.training", metrics),
                "Callbacks": _entries("training", "ember_ml.training", callbacks),
            },
        ),
        Group(
            "transforms",
            "Transforms",
            "Functions that take a function: its gradient, its vectorized form, its compiled form.",
            {"Transforms": _entries("transforms", "ember_ml", transforms)},
        ),
        Group(
            "initializers",
            "Initializers and wirings",
            "Initial values of parameters, and the connections of liquid networks.",
            {
                "Initializers": _entries("initializers", "ember_ml.nn.initializers", _public(initializers)),
                "Wirings": _entries("initializers", "ember_ml.nn.wirings", _public(wirings)),
            },
        ),
        Group(
            "features",
            "Features",
            "Scaling and principal components with the protocol of scikit-learn.",
            {"Features": _entries("features", "ember_ml.nn.features", _public(features, features.__all__))},
        ),
        Group(
            "tensor",
            "EmberTensor",
            "One tensor type for every engine. Functions of `ember_ml.nn.tensor` are the operations, and return it.",
            {"Classes": _entries("tensor", "ember_ml.nn.tensor", {"EmberTensor": tensor.EmberTensor})},
        ),
        Group(
            "backends",
            "Backends and operations",
            "Functions that choose the engine, and declare operations of your own.",
            {
                "Backends": _entries("backends", "ember_ml", choosing),
                "Operations": _entries("backends", "ember_ml", {"op": ember_ml.op, "unchecked": ember_ml.unchecked}),
            },
        ),
        Group(
            "models",
            "Pretrained models",
            "Loading, saving and adapters, and what every model has.",
            {
                "Functions": _entries("models", "ember_ml.models", _of(loading, inspect.isroutine)),
                "Classes": [
                    *_entries("models", "ember_ml.models", _of(loading, inspect.isclass)),
                    *_entries("models", "ember_ml.models.decoder", {"Decoder": Decoder}),
                ],
            },
        ),
        Group(
            "distributed",
            "Ranks and collectives",
            "What the processes of a launch compute together.",
            {"Functions": _entries("distributed", "ember_ml.distributed", _public(distributed, distributed.__all__))},
        ),
        Group(
            "interop",
            "torch, ONNX and scikit-learn",
            "Conversion of models to and from torch, ONNX files, and estimators for scikit-learn.",
            {
                "torch": _entries("interop", "ember_ml.nn", {"to_torch": nn.to_torch, "from_torch": nn.from_torch}),
                "ONNX": _entries("interop", "ember_ml.export", {"onnx": ember_ml.export.onnx}),
                "scikit-learn": _entries(
                    "interop", "ember_ml.sklearn", _public(ember_ml.sklearn, ember_ml.sklearn.__all__)
                ),
            },
        ),
    ]


def _of(things: Mapping[str, Any], test: Any) -> dict[str, Any]:
    return {name: thing for name, thing in things.items() if test(thing)}


def examples() -> dict[str, tuple[str, dict[str, Any]]]:
    """Docstring with examples and the names that these use, by document."""
    names = {name: value for name, value in vars(ops).items() if hasattr(value, "__operation__")}
    names |= {"ops": ops, "ember_ml": ember_ml}
    found = {
        page_of(operation): (operation.call.__doc__ or "", {**names, operation.name: operation.call})
        for operation in REGISTRY.values()
    }
    for group in groups():
        for entry in group.entries:
            module = inspect.getmodule(entry.thing)
            found[entry.docname] = (entry.thing.__doc__ or "", dict(vars(module)) if module else {})
    return found
